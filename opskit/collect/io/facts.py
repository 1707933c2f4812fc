"""What is read of input and output. None: unknown. Rates are a second, over the window."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.records import NamedTuple

if TYPE_CHECKING:
    from opskit.proc.process import Process


class Request(NamedTuple):
    """What to read. `pid` None: the machine. `ask`: the Java stacks, by one thread dump of a JVM."""

    pid: int | None
    window_s: float
    ask: bool = False
    uids: frozenset[int] = frozenset()


class Rates(NamedTuple):
    """Of read and write calls (files, pipes, sockets), and of storage: what was fetched, made dirty, and made dirty but deleted before it was written."""

    reads: float
    writes: float
    read_bytes: float
    written_bytes: float
    disk_read_bytes: float
    disk_written_bytes: float
    cancelled_bytes: float

    @property
    def bytes_per_read(self) -> float | None:
        """None: nothing was read."""
        return self.read_bytes / self.reads if self.reads else None

    @property
    def bytes_per_write(self) -> float | None:
        """None: nothing was written."""
        return self.written_bytes / self.writes if self.writes else None


class Seen(NamedTuple):
    """In which call a thread was seen, in how many looks: `read`, `fsync`, … with its fd; `running` where it was on a CPU or waited for one.

    `length`: the most bytes that these reads or writes asked for; None: another call, or several buffers.
    """

    call: str
    fd: int | None
    looks: int
    length: int | None = None


class Stalled(NamedTuple):
    """Looks that found a thread in state D, by the kernel's function where it waited (wchan; None: unreadable)."""

    where: str | None
    looks: int


class Thread(NamedTuple):
    """A thread that read or wrote in the window, or was in state D. `looks`: how often it was looked at. `frames`: its Java stack, innermost first.

    `user`, `system`, `block_wait`: shares of the window on a CPU, and waiting for storage where the kernel counts that (delayacct).
    `major_faults`: a second, pages of mapped files and swap that had to be fetched. `asleep_s`: of a thread in state D, how long it
    is known to be in this one sleep; 0: it ran meanwhile. `started`: within the window.
    """

    tid: int
    name: str
    rates: Rates
    looks: int
    seen: tuple[Seen, ...] = ()
    stalled: tuple[Stalled, ...] = ()
    frames: tuple[str, ...] = ()
    block_wait: float | None = None
    user: float | None = None
    system: float | None = None
    major_faults: float | None = None
    asleep_s: float | None = None
    started: bool = False


class File(NamedTuple):
    """A file whose position moved or whose fd threads were seen on. `moved_bytes`: a second, forward (seeks back are not counted).

    None: it has no position, or jumped further than the process read and wrote. `threads`: that were seen in a call on it.
    `mount_point`: of its file system. `size_bytes`: None where a look at it could wait for a server. `runs`, `jumps`: how often two looks right after each other found the position a little further,
    and elsewhere: one that reads from begin to end, again and again, runs. `pace`: bytes a second between such looks, without jumps.
    """

    fd: int
    path: str
    kind: str  # file, socket, pipe, device, deleted, …
    moved_bytes: float | None
    flags: int | None = None  # of open(2): O_DIRECT, O_SYNC, O_APPEND
    device: str | None = None  # sda1, overlay, nfs4 …
    threads: tuple[int, ...] = ()
    mount_point: str | None = None
    runs: int = 0
    jumps: int = 0
    pace: float | None = None
    size_bytes: int | None = None


class Step(NamedTuple):
    """Bytes in a short part of the window: that threads read and wrote, by TID, and that positions moved forward, by fd; -1: only back."""

    read: dict[int, int]
    written: dict[int, int]
    moved: dict[int, int]


class IoLimit(NamedTuple):
    """A limit of a cgroup above the process for one device (io.max, blkio.throttle): `what` is rbps, wbps, riops or wiops; `used`: a second."""

    path: str
    device: str
    what: str
    limit: float
    used: float | None


class CgroupIo(NamedTuple):
    """The process's cgroup. `some`, `full`: share of the window in which some or all of its tasks waited for storage (PSI).

    `refaults`: pages a second that were read again soon after they had been dropped from the page cache. `memory_limit_bytes`, `cache_bytes`: of it.
    `memory_some`: share of the window in which some task waited for memory, such refaults among it (PSI).
    """

    path: str
    some: float | None
    full: float | None
    refaults: float | None
    limits: tuple[IoLimit, ...] = ()
    memory_limit_bytes: int | None = None
    cache_bytes: int | None = None
    memory_some: float | None = None
    usage_bytes: int | None = None


class Device(NamedTuple):
    """A block device. `await_s`: mean time of a request; `busy`: share of the window with a request; `queue`: requests at a time; sizes in bytes.

    `stacked_on`: the devices below it. `write_cache`: `write back` or `write through`. `is_rotating`: a hard disk, as it says.
    """

    name: str
    reads: float
    writes: float
    read_bytes: float
    written_bytes: float
    read_await_s: float | None
    write_await_s: float | None
    flush_await_s: float | None
    flushes: float
    busy: float
    queue: float
    in_flight: int
    scheduler: str | None = None
    write_cache: str | None = None
    is_rotating: bool | None = None
    model: str | None = None
    stacked_on: tuple[str, ...] = ()
    mounts: tuple[str, ...] = ()
    discards: float = 0.0


class StalledThread(NamedTuple):
    """A thread in state D, or one that waits for a FUSE server. `where`: the kernel's function where it waits (wchan; None: unreadable).

    `for_s`: how long it is known to be in this one sleep; 0: it ran meanwhile. `call`: the system call; None: unknown.
    """

    tid: int
    name: str
    where: str | None
    for_s: float = 0.0
    call: str | None = None


class ProcessIo(NamedTuple):
    """One process of the machine. `stalled`: its threads in state D at the last look. `in_d`: share of looks with one at least.

    `children`: what its children that were reaped in the window did then, short-lived ones too; None: none was reaped.
    """

    process: Process
    rates: Rates | None  # None: its counters may not be read
    stalled: tuple[StalledThread, ...] = ()
    in_d: float = 0.0
    children: Rates | None = None
    is_kernel_thread: bool = False


class Facts(NamedTuple):
    """One window of `window_s`. `process` None: the machine, with `processes` and `devices`; else its `threads`, `files` and `cgroup`."""

    process: Process | None
    window_s: float
    threads: tuple[Thread, ...] = ()
    files: tuple[File, ...] = ()
    cgroup: CgroupIo | None = None
    total: Rates | None = None
    processes: tuple[ProcessIo, ...] = ()
    devices: tuple[Device, ...] = ()
    host_some: float | None = None  # PSI of the machine, as in CgroupIo
    host_full: float | None = None
    is_jvm: bool = False
    asked: bool = False
    missing: tuple[str, ...] = ()
    dirty_bytes: int | None = None
    available_bytes: int | None = None  # of the machine's memory
    writeback_bytes: int | None = None
    stored_pages: int | None = None  # dirty pages that the machine has stored in the window
    steps: tuple[Step, ...] = ()  # a file is a thread's where the steps of both are equal
    looks: int = 0  # at the threads that did the most
    thread_total: int = 0  # of the process
    stalled_total: int = 0  # of its threads that waited for storage at the begin, of which at most 116 are looked at
    ended: Rates | None = (
        None  # of threads that ended in the window, and of children that were reaped in it; `total` is without them
    )
    unmoved: tuple[File, ...] | None = None  # the other open files; None: too many, or they change
