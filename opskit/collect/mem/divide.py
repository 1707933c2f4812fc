"""Divide the memory of one process by what it is used for: its mappings, and what its JVM, its threads and its allocator say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.collect.limits.program import cpu_count, glibc_version, read_program
from opskit.collect.mem.accounting import account, total_of
from opskit.collect.mem.jvm import read_jvm
from opskit.errors import NotPermitted, NotSupported
from opskit.proc.bss import large_bss
from opskit.proc.files.smaps import parse_smaps
from opskit.proc.fs import optional
from opskit.proc.malloc.allocators import read_malloc
from opskit.proc.malloc.limit import arena_limit
from opskit.proc.malloc.runtimes import Runtime, glibc_of, read_runtime
from opskit.proc.memory import ProcessMemory
from opskit.proc.pagemap import PageMap, PresentMemory
from opskit.proc.ranges import layered
from opskit.proc.stacks import thread_stacks
from opskit.proc.tmpfs_mounts import memory_devices
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opskit.collect.mem.facts import JvmMemory, Part, Request, Row
    from opskit.host import Host
    from opskit.proc.files.smaps import Region, Usage
    from opskit.proc.files.status import Status
    from opskit.proc.malloc.record import Malloc
    from opskit.proc.ranges import Range

_32_BIT_END = 1 << 32


class Divided(NamedTuple):
    """The memory of a process by kinds; `total` is the sum of its mappings."""

    total: Usage
    rows: tuple[Row, ...]
    parts: tuple[Part, ...]
    malloc: Malloc | None
    jvm: JvmMemory | None
    missing: tuple[str, ...] = ()


def jvm_of(
    host: Host, ask: Request, regions: Sequence[Region]
) -> tuple[JvmMemory | None, list[Range], tuple[str, ...]]:
    """What its JVM says, and what is missing where it is unknown whether it is one. Raises NoSuchProcess."""
    try:
        return (*read_jvm(host, ask.pid, regions, ask=ask.ask), ())
    except (NotPermitted, NotSupported) as error:
        return None, [], (str(error),)


class Divider:
    """Divides one process's memory, again and again: what cannot change is read once."""

    def __init__(self, host: Host, ask: Request) -> None:
        self._host, self._ask = host, ask
        self._program: tuple[object, ...] | None = None
        self._pagemap: PageMap | None = None
        self._memory: ProcessMemory | None = None
        self._runtime = Runtime(None, None)
        self._arena_limit: int | None = None
        self._memory_devices: frozenset[str] = frozenset()

    @property
    def reads_memory(self) -> bool:
        """Whether its memory may be read, without which arenas and large blocks stay unknown."""
        return self._memory is not None and self._pagemap is not None

    def divide(self, status: Status) -> Divided:
        """One look. Raises OSError and BadInput where smaps cannot be read; NoSuchProcess."""
        host, pid = self._host, self._ask.pid
        regions = host.fs.load(parse_smaps, pid, "smaps")
        self._open(regions, status)
        jvm, of_jvm, missing = jvm_of(host, self._ask, regions)
        ranges, malloc = self._ranges(regions, of_jvm)
        by_elimination = malloc is not None and malloc.unknown is not None and self.reads_memory
        rest = "runtime-heap" if self._runtime.language or by_elimination else "unnamed"
        rows, parts = account(regions, ranges, self._pagemap, rest, self._memory_devices)
        # Neighbours are one range each: the kernel and the allocator count better.
        counted = {"thread-stacks": status.threads, "malloc-arenas": malloc.arenas if malloc is not None else None}
        rows = tuple(row._replace(items=counted.get(row.kind) or row.items) for row in rows)
        return Divided(total_of(region.usage for region in regions), rows, parts, malloc, jvm, missing)

    def _open(self, regions: Sequence[Region], status: Status) -> None:
        """Open its files, which after execve(2) are of the memory before; read what cannot change once for each program."""
        fs, pid = self._host.fs, self._ask.pid
        # Each may be refused where smaps is not: pagemap to a reader without rights, the memory also by Yama.
        self._pagemap = optional(PageMap, fs, pid)
        self._memory = optional(ProcessMemory, fs, pid)
        program = tuple((each.name, each.start) for each in regions if each.name == "[vdso]" or each is regions[0])
        if program == self._program:
            return
        self._program = program
        self._runtime = read_runtime(fs, pid, regions)
        self._arena_limit = self._read_arena_limit(regions, status)
        self._memory_devices = fs.maybe(memory_devices, pid, "mountinfo", default=frozenset())

    def _ranges(self, regions: Sequence[Region], of_jvm: Sequence[Range]) -> tuple[list[Range], Malloc | None]:
        fs, pid = self._host.fs, self._ask.pid
        if not regions or regions[-1].end <= _32_BIT_END:  # other layouts of stacks, chunks and arenas
            return layered(of_jvm), None
        present = PresentMemory(self._memory, self._pagemap) if self._memory and self._pagemap else None
        known = layered(of_jvm, thread_stacks(fs, pid, regions, present), large_bss(fs, pid, regions))
        malloc, of_malloc = read_malloc(
            fs, pid, regions, self._memory, self._pagemap, known, self._runtime, exact=self._ask.exact
        )
        if malloc.name == "glibc":
            malloc = malloc._replace(arena_limit=self._arena_limit)
        # The ring of its arenas proves them; a JVM's tables are found by their shape.
        arenas = [each for each in of_malloc if each.kind == "malloc-arenas"] if malloc.arenas else []
        return layered(arenas, known, of_malloc), malloc

    def _read_arena_limit(self, regions: Sequence[Region], status: Status) -> int:
        fs, pid = self._host.fs, self._ask.pid
        libc = glibc_of(regions)
        options = read_program(fs, pid, None).malloc_options
        online = fs.maybe_root(cpu_count, "sys/devices/system/cpu/online")
        return arena_limit(options, status, online, glibc_version(fs, pid, libc) if libc else None)
