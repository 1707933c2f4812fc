"""One thread dump of each of some JVMs, all at once: one that does not answer holds up no other."""

from __future__ import annotations

import copy
import threading
from typing import TYPE_CHECKING

from opskit.collect.found_jvms import found_jvms
from opskit.errors import OpskitError
from opskit.jvm.attach.connect import client_of
from opskit.jvm.perfdata.stop_clock import StopClock
from opskit.proc.cgroup.owner import owner_of
from opskit.proc.cgroup.tree import parse_cgroup
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opskit.host import Host
    from opskit.jvm.discover import Jvm
    from opskit.jvm.dumps.thread_dump import ThreadDump

MOST = 20  # JVMs that are asked
_DEFAULT_S = 5.0
_END_S, _EXPLAIN_S = 0.1, 0.1  # before the end: for the judge; for what a JVM did that did not answer
_LEAST_S = 0.05
_LOOK_S = 0.005


class Request(NamedTuple):
    """Of which JVMs among these processes. `until_s`: the end, by the host's clock; None: in five seconds."""

    pids: tuple[int, ...]
    until_s: float | None = None


class Asked(NamedTuple):
    """A JVM: its dump, or why there is none. `paused_s`: for how long it was stopped, None: unknown, but at most `took_s`.

    `place`: the cgroup of its container, pod or unit.
    """

    jvm: Jvm
    dump: ThreadDump | None = None
    paused_s: float | None = None
    took_s: float | None = None
    why_none: str | None = None
    java_major: int | None = None
    place: str | None = None


class Facts(NamedTuple):
    """The JVMs that were asked; `left_out`: how many more there are; `denied`: processes of which it is unknown."""

    asked: Sequence[Asked]
    left_out: int = 0
    denied: int = 0


class Dumps:
    """Asks the JVMs when it is made. Raises NotPermitted for another machine's tree: nothing is sent then."""

    def __init__(self, host: Host, ask: Request) -> None:
        self._host, self._found = host, found_jvms(host, ask.pids)
        if self._found.jvms:
            host.prove_asking()
        until_s = host.monotonic() + _DEFAULT_S if ask.until_s is None else ask.until_s
        self._until_s = until_s - _END_S
        left_s = max(_LEAST_S, self._until_s - _EXPLAIN_S - host.monotonic())
        self._asking = [_Asking(host, jvm, left_s) for jvm in self._found.jvms[:MOST]]

    def wait(self) -> Facts:
        """What they have answered by the end."""
        host, found = self._host, self._found
        while any(each.is_alive() for each in self._asking) and host.monotonic() < self._until_s:
            host.sleep(_LOOK_S)
        return Facts([each.result() for each in self._asking], len(found.jvms) - len(self._asking), len(found.denied))


class _Asking:
    """Asks one JVM in a thread of its own, which ends by itself.

    What was kept of a process is not good enough for who sends it a signal: all is read again.
    """

    def __init__(self, host: Host, jvm: Jvm, timeout_s: float) -> None:
        self._host, self._jvm, self._timeout_s = host, jvm, round(timeout_s, 2)
        self._fs = copy.copy(host.fs)
        self._fs.kept = None
        self._text: str | None = None
        self._paused_s: float | None = None
        self._took_s: float | None = None
        self._major: int | None = None
        self._why: str | None = None
        self._thread = threading.Thread(target=self._ask, daemon=True)
        if host.is_recorded:  # the reply is there
            self._ask()
            return
        try:
            self._thread.start()
        except (RuntimeError, MemoryError):
            self._why = "no thread can be started to ask it"

    def is_alive(self) -> bool:
        """Whether it still waits for the answer."""
        return self._thread.is_alive()

    def _ask(self) -> None:
        client = client_of(self._fs, self._jvm.pid, self._timeout_s)
        clock = StopClock(self._fs, self._jvm.perf)
        try:
            self._major = client.target.java_major
            before, begun_s = clock.read_s(), self._host.monotonic()
            text = client.thread_dump()
            if not self._host.is_recorded:
                after, self._took_s = clock.read_s(), self._host.monotonic() - begun_s
                self._paused_s = None if before is None or after is None else max(0.0, after - before)
            self._text = text
        except OpskitError as error:
            self._why = short_reason(error, self._jvm)
        except OSError as error:
            self._why = error.strerror or str(error)

    def result(self) -> Asked:
        """What came of it."""
        from opskit.jvm.dumps.dialects import DumpReader

        jvm = self._jvm
        owner = owner_of(self._host.fs.maybe(parse_cgroup, jvm.pid, "cgroup", default=[]))
        asked = Asked(jvm, None, self._paused_s, self._took_s, self._why, self._major, owner and owner.path)
        if self._text is None:
            return asked._replace(why_none=self._why or "it did not answer by the deadline")
        try:
            dumps = DumpReader("locks").read(self._text.encode("utf-8", "surrogateescape"), f"the dump of {jvm.pid}")
        except OpskitError as error:
            return asked._replace(why_none=str(error))
        # A thread's name may look like the head of another dump.
        return asked._replace(dump=max(dumps, key=lambda dump: len(dump.threads)))


def short_reason(error: OpskitError, jvm: Jvm) -> str:
    """The reason without the process, which is named beside it, and without advice about options of other commands."""
    text = str(error)
    for begin in ("cannot attach to ", "timeout: ", ""):
        text = text.removeprefix(f"{begin}{jvm.pid} ({jvm.main}): ")
    for mark in (": if that is a loop", ": it may be waiting", "; try a longer"):
        text = text.partition(mark)[0]
    return text
