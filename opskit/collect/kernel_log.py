"""The OOM kills in the log of the running kernel, and the counters that a killed JVM has left."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.jvm.launch import main_of_command
from opskit.jvm.perfdata.counters import Heap, heap
from opskit.jvm.perfdata.hsperfdata import parse_hsperfdata
from opskit.proc.fs import optional
from opskit.proc.namespaces import in_initial
from opskit.quantities import integer
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from opskit.host import Host
    from opskit.proc.fs import ProcFS
    from opskit.proc.kernel.kmsg import KernelLog
    from opskit.proc.oom.log import OomLog
    from opskit.proc.oom.records import Kill

_LARGEST_FILE_BYTES = 16 << 20
CLOCK_SLACK_S = 10.0  # between the clock of the kernel's log and the others
_CHUNK_BYTES = 1 << 16  # one without a kill is skipped
_TMP = "tmp"
OF_A_COPY = "this is a copy: give its logs to opskit oom, or read them"
_COUNTER = "\noom_kill "


class Left(NamedTuple):
    """The hsperfdata file that a JVM left when it was killed: its main class, its heap, the file's path."""

    main: str
    heap: Heap | None
    path: str


class Ring(NamedTuple):
    """The kernel's log in its ring buffer. `is_whole`: nothing since boot was overwritten; None: unknown."""

    log: OomLog
    is_whole: bool | None


def counted_kills(host: Host) -> int | None:
    """How many processes the OOM killer has killed since boot; None where this kernel does not count it."""
    return host.fs.maybe(_parse_counter, "vmstat")


def _parse_counter(vmstat: str) -> int | None:
    return integer(("\n" + vmstat).partition(_COUNTER)[2][:21].partition("\n")[0])


def kernel_log(host: Host) -> KernelLog:
    """The log of the running kernel, read once in a run of several checks. Raises OSError: EPERM without CAP_SYSLOG."""
    from opskit.proc.kernel.kmsg import read_kernel_log

    fs = host.fs
    if fs.kept is None:
        return fs.calls.ask(read_kernel_log)
    return fs.kept.once(read_kernel_log, lambda: fs.calls.ask(read_kernel_log))


def why_denied(fs: ProcFS) -> str:
    """Why the log of the running kernel cannot be read, where the kernel does not allow it."""
    from opskit.proc.rights import RUN_AS_ROOT, missing, our_rights

    rights = our_rights(fs)
    if rights is None or rights.euid:
        return f"permission denied: {RUN_AS_ROOT}"
    if missing(rights.effective, "CAP_SYSLOG") or not rights.in_initial_user_namespace:
        return "root lacks CAP_SYSLOG here: run opskit on the host"
    return "/dev/kmsg cannot be opened here: run opskit on the host"


def read_ring(host: Host, *, whole: bool = True) -> Ring:
    """The log of the running kernel; `whole`: with reports that lack their beginning. Raises OSError: EPERM without CAP_SYSLOG."""
    from opskit.proc.oom.log import read_log

    found = kernel_log(host)
    data = found.text.encode("utf-8", "surrogateescape")
    chunks = (data[at : at + _CHUNK_BYTES] for at in range(0, len(data), _CHUNK_BYTES))
    more = {} if whole else {"first_lines": 0}
    return Ring(read_log(chunks, host.page_bytes, **more), found.is_whole)


def kernel_kills(host: Host) -> dict[int, Kill]:
    """The last kill of each PID in the kernel's log; empty where it cannot be read, or has other PIDs than we."""
    if not host.is_own or not in_initial(host.fs, "pid") or counted_kills(host) == 0:
        return {}
    ring = optional(lambda: read_ring(host, whole=False))
    return {kill.pid: kill for kill in ring.log.kills if kill.pid is not None} if ring else {}


def left_counters(host: Host, pid: int, ended_s: float, uid: int | None) -> Left | None:
    """What a JVM has left until the next JVM of its user starts. `ended_s`: when it was killed, since the epoch.

    `uid`: its user, whose file it must be; None: unknown.
    """
    fs = host.fs
    for user in [name for name in fs.names_root(_TMP) if name.startswith("hsperfdata_")]:
        directory = f"{fs.root}/{_TMP}/{user}"
        file, data = optional(fs.read_untrusted, directory, str(pid), _LARGEST_FILE_BYTES, default=(None, b""))
        if file is None or uid not in (None, file.uid):
            continue
        perf = optional(parse_hsperfdata, data, directory)
        began_s = ((perf and perf.number("sun.rt.createVmBeginTime")) or 0) / 1000
        if perf is not None and began_s <= ended_s + CLOCK_SLACK_S:
            main = main_of_command(perf.text("sun.rt.javaCommand") or "") or "java"
            return Left(main, heap(perf), f"{directory}/{pid}")
    return None
