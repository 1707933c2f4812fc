"""Which process a word means that is no command: `opskit orders`. A child looks, as a scan may hang where a process's memory is locked."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from opskit.collect.targets import find_process, is_pid
from opskit.errors import NotSupported, TargetTimeout
from opskit.interrupts import Guard, Interruptible
from opskit.proc.kernel.children import answer_of, start_child
from opskit.quantities import integer

if TYPE_CHECKING:
    from opskit.host import Host
    from opskit.proc.kernel.children import Send

_LONGEST_S = 2.0


def process_of_word(host: Host, word: str) -> int | None:
    """The PID, if such a process runs; None: it names none. Raises OpskitError where several are meant, and TargetTimeout."""
    if is_pid(word):
        pid = integer(word)
        return pid if pid is not None and host.fs.pids() and host.fs.exists(pid) else None
    host.fs.uses_nss = False
    if host.is_recorded:
        return find_process(host, word)
    message = None
    with Guard():
        try:
            child = start_child(partial(_find, host, word), host.fs.fds, patient=True)
        except NotSupported:  # no process can be started
            return find_process(host, word)
        try:
            with Interruptible():
                message = answer_of(child, _LONGEST_S)
        except (TimeoutError, ChildProcessError) as error:
            raise TargetTimeout(f"cannot tell which process is {word!r}: {error.strerror}; give its PID") from None
        finally:
            child.leave(has_ended=message is not None)
    found: int | None = message["pid"]
    return found


def _find(host: Host, word: str, send: Send) -> None:
    send({"pid": find_process(host, word)})
