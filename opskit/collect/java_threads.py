"""The Java threads of a process by one thread dump, which pauses the JVM for a moment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.errors import NotAJvm, OpskitError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opskit.host import Host
    from opskit.jvm.dumps.thread_dump import Thread


def java_threads(host: Host, pid: int, problems: list[str] | None) -> Mapping[int, Thread]:
    """The threads of one dump by their native id (fd_waits.inner_id); of a carrier the virtual thread that it carries.

    Empty for a process that is no JVM. `problems` gets the reason why a JVM gives no dump.
    """
    from opskit.jvm.attach.connect import client_of
    from opskit.jvm.dumps.dialects import DumpReader

    try:
        host.prove_asking(pid)
        text = client_of(host.fs, pid).thread_dump().encode("utf-8", "surrogateescape")
        dumps = DumpReader("threads").read(text, f"the dump of {pid}")
    except NotAJvm:
        return {}
    except (OpskitError, OSError) as error:
        if problems is not None:
            problems += [f"no thread dump of {pid}: {error}", *getattr(error, "lines", ())]
        return {}
    threads = max(dumps, key=lambda dump: len(dump.threads)).threads
    # A mounted virtual thread comes after its carrier.
    return {thread.native_id: thread for thread in threads if thread.native_id is not None}
