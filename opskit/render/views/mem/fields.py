"""The values that are shown of a process's memory, each named once."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any

from opskit.proc.ranges import KINDS
from opskit.quantities import duration, signed_size, size
from opskit.records import NamedTuple
from opskit.render.cells import or_dash
from opskit.render.fields import (
    COUNT,
    FLAG,
    ID,
    NUMBER,
    SIZE,
    TEXT,
    TOTAL,
    Field,
    Kind,
    list_of,
    map_of,
    records,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from opskit.analysis.mem.result import Growth, Headroom, Slope, Suspect
    from opskit.collect.mem.facts import Facts, HostMemory, JvmMemory, Malloc, Member, Part, Unheld
    from opskit.proc.cgroup.memory import HugeLimit, MemoryGroup
    from opskit.proc.files.smaps import Usage
    from opskit.proc.process import Process

# Rows that are no kind of memory: sums, and what -w follows beside the rows.
SUMS = {"rss": "total (RSS)", "cgroup": "memory cgroup", "direct": "direct buffers"}


class Line(NamedTuple):
    """A row of the table. `usage` None: of a sum that is not resident memory of this process, `bytes` long."""

    kind: str
    usage: Usage | None
    bytes: int | None
    reserved_bytes: int | None
    items: int | None
    details: str
    slope: Slope | None = None
    at_s: float = 0.0


def title(kind: str) -> str:
    """The name of a kind in a table or a sentence."""
    return KINDS.get(kind) or SUMS.get(kind, kind)


def _blank(show: Callable[[Any], str]) -> Callable[[Any], str]:
    return lambda value: show(value) if value else ""


def _of_usage(name: str) -> Callable[[Line], int | None]:
    return lambda line: None if line.usage is None else getattr(line.usage, name)


_STILL = 512  # bytes a minute: below it a row does not change


def _whole(value: float | None) -> int | None:
    """Bytes a second and seconds have no fractions: -f text would round large ones to six digits."""
    return None if value is None else round(value)


def _per_min(rate: float | None) -> str:
    return "-" if rate is None else "0" if abs(rate) < _STILL else signed_size(rate)


_AMOUNT = Kind(SIZE.schema, _blank(size), right=True)  # empty in a table where there is none
USAGE: Sequence[Field[Usage]] = (
    Field("rss_bytes", SIZE, help="resident memory"),
    Field("pss_bytes", SIZE, help="resident memory, each page divided by the processes that map it"),
    Field("anonymous_bytes", SIZE, help="of the resident memory: not of a file"),
    Field("huge_bytes", SIZE, help="of the resident memory: transparent huge pages"),
    Field("hugetlb_bytes", SIZE, help="reserved huge pages, beside the resident memory"),
    Field("swap_bytes", SIZE, help="swapped out"),
    Field("locked_bytes", SIZE, help="locked in memory"),
)


# Also the columns of -f text, whose names they are.
ROW: Sequence[Field[Line]] = (
    Field("kind", TEXT, "kind", help="what the memory is used for"),
    Field("rss_bytes", SIZE, "rss_bytes", attrgetter("bytes"), help="resident memory"),
    *(Field(each.name, SIZE, each.name, _of_usage(each.name), help=each.help) for each in USAGE[1:]),
    Field("reserved_bytes", SIZE, "reserved_bytes", help="address space"),
    Field("items", COUNT, "items", help="stacks, arenas, blocks or mappings"),
)
SLOPE: Sequence[Field[Slope]] = (
    Field("kind", help="of `rows`, or rss, cgroup, direct"),
    Field("bytes_per_s", COUNT, value=lambda slope: round(slope.bytes_per_s)),
    Field(
        "full_in_s",
        COUNT,
        value=lambda slope: _whole(slope.full_in_s),
        help="until its limit; null: no steady growth, or no limit",
    ),
)
GROWTH: Sequence[Field[Line]] = (
    Field(
        "bytes_per_s", COUNT, "bytes_per_s", lambda line: _whole(line.slope and line.slope.bytes_per_s),
        help="growth, with -w",
    ),
    Field(
        "full_in_s", COUNT, "full_in_s", lambda line: _whole(line.slope and line.slope.full_in_s),
        help="with -w: until its limit at this growth; null: it does not grow steadily, or has no limit",
    ),
)  # fmt: skip
DETAILS: Field[Line] = Field("details", TEXT, "details", help="for people", shrinks=30, rank=1)
SAMPLED_AT: Field[Line] = Field("at_s", NUMBER, "at_s", lambda line: round(line.at_s, 1))
# The columns of a table: what is zero or the same is left empty.
_KIND: Field[Line] = Field("kind", TEXT, "memory", show=title)
_RESIDENT: Field[Line] = Field("bytes", Kind(SIZE.schema, or_dash(size), right=True), "resident")
TABLE: Sequence[Field[Line]] = (_KIND, _RESIDENT, DETAILS)
WATCHED: Sequence[Field[Line]] = (
    _KIND,
    _RESIDENT,
    Field("per_min", NUMBER, "per min", lambda line: line.slope and line.slope.bytes_per_s * 60, show=_per_min, right=True),
    Field("full", NUMBER, "full in", lambda line: line.slope and line.slope.full_in_s, show=_blank(duration), right=True),
    DETAILS,
)  # fmt: skip
PART: Sequence[Field[Part]] = (
    Field("kind", TEXT, "kind"),
    *(Field(each.name, SIZE, each.name, attrgetter(f"usage.{each.name}"), help=each.help) for each in USAGE),
    Field("deleted", FLAG, "deleted", help="the file has been deleted and holds its memory until it is unmapped"),
    Field("name", TEXT, "name"),
)
PARTS_TABLE: Sequence[Field[Part]] = (
    Field("kind", TEXT, "memory", show=title),
    Field("rss", SIZE, "resident", attrgetter("usage.rss_bytes")),
    Field("pss", SIZE, "PSS", attrgetter("usage.pss_bytes")),
    Field("swap", _AMOUNT, "swap", attrgetter("usage.swap_bytes"), rank=1),
    Field("name", TEXT, "name", shrinks=24, value=lambda part: part.name + (" (deleted)" if part.deleted else "")),
)


def _level(name: str, heading: str, rank: int, help: str, kind: Kind = SIZE) -> Field[MemoryGroup]:  # noqa: A002
    """A column; on a narrow terminal those with the highest rank are left out."""
    return Field(name, kind, heading, help=help, show=or_dash(kind.show) if kind.show else None, rank=rank)


_PATH: Field[MemoryGroup] = Field("path", TEXT, "cgroup", shrinks=12)
LEVEL: Sequence[Field[MemoryGroup]] = (
    _level("limit_bytes", "limit", 0, "null: no limit"),
    _level("usage_bytes", "current", 0, "all that counts against the limit, page cache too"),
    _level("peak_bytes", "peak", 2, "the highest current"),
    _level("high_bytes", "high", 4, "v2: above it processes are slowed down"),
    _level("pinned_bytes", "pinned", 7, "what counts at the moment of a kill: all that cannot be reclaimed"),
    _level("cache_bytes", "cache", 1, "page cache, which the kernel reclaims before it kills"),
    _level("anon_bytes", "anon", 6, "memory of processes that is not of a file"),
    _level("shmem_bytes", "shmem", 3, "tmpfs, /dev/shm and memfd: only swap can take it away"),
    _level("kernel_bytes", "kernel", 2, "slab that cannot be reclaimed, stacks, page tables, sockets"),
    _level("swap_bytes", "swap", 5, "swapped out"),
    _level("swap_limit_bytes", "swap limit", 8, "null: no limit"),
    _level("oom_kills", "OOM kills", 1, "processes that the kernel killed in it", TOTAL),
)
LEVEL_TABLE = (_PATH, *LEVEL)
LEVEL_TEXT = (*LEVEL, _PATH)  # a name may have blanks: it comes last
LEVEL_DOCUMENT: Sequence[Field[MemoryGroup]] = (
    _PATH,
    Field("version", ID, help="1 or 2"),
    *LEVEL,
    Field("group_kill", FLAG, help="memory.oom.group: all its processes are killed together"),
    Field("kills_disabled", FLAG, help="v1's oom_kill_disable: processes stop instead"),
    Field("swaps", FLAG, help="false: swappiness is 0"),
    Field("slab_unknown", FLAG, help="v1: how much of the kernel memory can be reclaimed is unknown"),
)
MEMBER: Sequence[Field[Member]] = (
    Field("pid", ID, "pid"),
    Field("anon_bytes", SIZE, "anon", help="memory that is not of a file", show=or_dash(size)),
    Field("shmem_bytes", SIZE, "shmem", help="shared memory that it maps, and maybe others too", show=or_dash(size)),
    Field("swap_bytes", SIZE, "swap", show=or_dash(size)),
    Field("page_table_bytes", SIZE, "page tables", show=or_dash(size)),
    Field("command", TEXT, "command"),
)
UNHELD: Sequence[Field[Unheld]] = (
    Field("bytes", SIZE),
    Field("age_s", NUMBER, value=lambda file: None if file.age_s is None else round(file.age_s, 1)),
    Field("path"),
)
HUGE_LIMIT: Sequence[Field[HugeLimit]] = (
    Field("path", help="of the cgroup"),
    Field("page_size"),
    Field("limit_bytes", SIZE, help="null: no limit"),
    Field("usage_bytes", SIZE),
)
MALLOC: Sequence[Field[Malloc]] = (
    Field("name", help="glibc, musl, jemalloc, …"),
    Field("arenas", COUNT, help="of glibc"),
    Field("arena_limit", COUNT, help="MALLOC_ARENA_MAX or 8 x CPUs"),
    Field("system_bytes", SIZE, help="taken from the kernel by its arenas"),
    Field("free_bytes", SIZE, help="free inside the arenas, and not given back"),
    Field("top_bytes", SIZE, help="of the free bytes: at the end of an arena, where malloc_trim gives them back"),
    Field("resident_free_bytes", SIZE, help="of the free bytes: still in memory"),
    Field("mmapped_bytes", SIZE, help="in blocks with a mapping of their own"),
    Field("mmapped_blocks", COUNT, help="blocks with a mapping of their own"),
    Field("unknown", help="why the others are null"),
    Field("incomplete", help="why more may be free"),
    Field("runtime", help="Go, V8 or CPython, whose heap is beside malloc's"),
)
JVM: Sequence[Field[JvmMemory]] = (
    Field("main", help="main class or jar"),
    Field("release"),
    Field("collector"),
    Field("heap_used_bytes", SIZE),
    Field("heap_committed_bytes", SIZE),
    Field("heap_max_bytes", SIZE, help="-Xmx in force"),
    Field("heap_touched", FLAG, help="-XX:+AlwaysPreTouch: the committed heap is resident from the start"),
    Field("metaspace_used_bytes", SIZE),
    Field("metaspace_committed_bytes", SIZE),
    Field("metaspace_max_bytes", SIZE, help="null: no limit, or without vmStructs unknown"),
    Field("class_space_max_bytes", SIZE),
    Field("code_reserved_bytes", SIZE, help="ReservedCodeCacheSize"),
    Field("direct_bytes", SIZE, help="direct ByteBuffers, as java.nio.Bits counts them"),
    Field("direct_max_bytes", SIZE, help="MaxDirectMemorySize, or the heap's limit"),
    Field("mapped_buffer_bytes", SIZE, help="mapped ByteBuffers"),
    Field("threads", COUNT),
    Field("stack_bytes", SIZE, help="of a new thread (-Xss)"),
    Field("class_loaders", COUNT),
    Field("sources", list_of(TEXT), help="vmStructs, hsperfdata, attach"),
    Field("missing", list_of(TEXT), help="what stayed unknown, and why"),
)
MACHINE: Sequence[Field[HostMemory]] = (
    Field("meminfo", map_of(SIZE), value=lambda host: dict(host.meminfo), help="in bytes, by the kernel's names"),
    Field("overcommit", ID, help="vm.overcommit_memory"),
    Field("oom_score", ID, help="of the process, 0 to 2000"),
    Field("oom_score_adj", ID),
)
_GROWTHS: Sequence[Field[Growth]] = (
    Field("kind"),
    Field("bytes", SIZE, help="null: without a limit"),
    Field("limit", help="what limits it"),
)
HEADROOM: Sequence[Field[Headroom]] = (
    Field(
        "cgroup",
        value=lambda it: it.level and it.level.path,
        help="whose limit comes first; null: the machine's memory",
    ),
    Field("left_bytes", SIZE, help="until the kernel kills"),
    Field("heap_growth_bytes", SIZE, help="what the heap may still become resident"),
    Field("can_be_killed", FLAG, help="the heap alone does not fit"),
    Field("fix_heap_bytes", SIZE, help="an -Xmx that fits"),
    Field("fix_limit_bytes", SIZE, help="a limit that fits"),
    Field("growths", records(_GROWTHS), help="what else can grow"),
    Field("heap_resident_bytes", SIZE, help="of the heap, each page once"),
    Field("unsure_bytes", SIZE, help="v1: so much more may be left, if this kernel memory can be reclaimed"),
    Field("swap_left_bytes", SIZE, help="what may move to swap before the kernel kills"),
    Field(
        "others",
        list_of(TEXT),
        value=lambda it: [level.path for level in it.others],
        help="other cgroups without room for the heap",
    ),
    Field(
        "throttled_in",
        value=lambda it: it.throttled_in and it.throttled_in.path,
        help="whose memory.high is reached first",
    ),
    Field("throttle_left_bytes", SIZE, help="until then"),
    Field("commit_left_bytes", SIZE, help="with vm.overcommit_memory=2: what can still be committed"),
    Field("allocations_fail", FLAG, help="the heap does not fit below the commit limit"),
)
SUSPECT: Sequence[Field[Suspect]] = (
    Field("code"),
    Field("bytes", SIZE, help="what it holds"),
    Field("summary"),
    Field("evidence"),
    Field("fix"),
    Field("next"),
)
SAMPLE: Sequence[Field[Facts]] = (
    Field("at_s", NUMBER, value=lambda facts: round(facts.at_s, 3)),
    Field("rss_bytes", SIZE, value=attrgetter("total.rss_bytes")),
    Field(
        "rows",
        map_of(SIZE),
        value=lambda facts: {row.kind: row.usage.rss_bytes for row in facts.rows},
        help="resident bytes by kind",
    ),
)
PROCESS: Sequence[Field[Process]] = (
    Field("pid", ID),
    Field("command"),
    Field("uid", ID),
    Field("user"),
)
