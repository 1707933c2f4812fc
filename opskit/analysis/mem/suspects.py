"""What holds the memory outside of the Java heap, the most important first. Pure.

Each suspect is weighed by what it holds above the share that a healthy process of its kind has. Memory that the kernel reclaims
before it kills (page cache, mapped files) comes after all that it cannot reclaim.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit import shell
from opskit.analysis.mem.headroom import MIB, rss_of, untouched_heap_bytes, usage_of
from opskit.analysis.mem.result import Suspect
from opskit.collect.mem.facts import unmapped_shmem_bytes
from opskit.proc.ranges import KINDS
from opskit.quantities import integers, percent, plural, size
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from opskit.collect.mem.facts import Facts, Unheld
    from opskit.proc.cgroup.memory import MemoryGroup

# Of a JVM without a leak: compilers, symbol tables and remembered sets are malloced; it has some 30 threads and 20 MiB of classes.
_USUAL_OF_JVM = {
    "malloc": 32 * MIB, "thread-stacks": 8 * MIB, "direct": 16 * MIB, "metaspace": 96 * MIB, "code-cache": 96 * MIB,
    "arenas": 24 * MIB, "mapped-files": 32 * MIB, "anonymous": 32 * MIB,
}  # fmt: skip
_USUAL = {"thread-stacks": 4 * MIB, "mapped-files": 8 * MIB, "arenas": 8 * MIB}
_LEAST, _LEAST_OF_RSS = 4 * MIB, 0.02  # less than either above the usual is not listed
_LOADER_BYTES = 18 << 10  # malloced for each class loader (JDK 17 and 25); its metaspace is a third of that
_MANY_LOADERS = 1000
_OF_LOADERS = 4  # bytes of malloc for one of metaspace
_WASTE_BYTES, _WASTE = 200 * MIB, 0.25  # free inside arenas, of RSS
_FEW_ARENAS = 2
_UNMAPPED_BYTES = MIB
_OF_LIMIT = 0.1  # page cache that every program has


class _Weighed(NamedTuple):
    suspect: Suspect
    above: float  # bytes above what is usual
    goes_first: bool = False  # reclaimed before the kernel kills


def suspects(facts: Facts, level: MemoryGroup | None, growing: Mapping[str, float] = {}) -> list[Suspect]:
    """The suspects, ranked. `level`: the cgroup whose limit is nearest; `growing`: bytes a second of the rows that grow steadily."""
    found = [weighed for check in _CHECKS for weighed in check(facts)]
    found += _of_cgroup(facts, level) if level is not None else ()
    least = max(_LEAST, _LEAST_OF_RSS * facts.total.rss_bytes)
    kept = [each for each in found if each.above >= least or _grows(each, growing)]
    kept.sort(key=lambda each: (each.goes_first, -_grows(each, growing), -each.above))
    return [each.suspect for each in kept]


# The rows of -w that show the growth of a suspect.
_GROWTH = {
    "memory-in-direct-buffers": ("direct",),
    "memory-in-thread-stacks": ("thread-stacks",),
    "memory-in-class-loaders": ("metaspace", "class-space"),
    "memory-in-metaspace": ("metaspace", "class-space"),
    "memory-in-malloc": ("malloc-arenas", "malloc-mmapped", "runtime-heap"),
    "memory-in-code-cache": ("code-cache",),
    "memory-in-shared-memory": ("shared-memory",),
    "memory-in-anonymous-mappings": ("unnamed", "named"),
}


def _grows(each: _Weighed, growing: Mapping[str, float]) -> float:
    rate = sum(growing.get(kind, 0.0) for kind in _GROWTH.get(each.suspect.code, ()))
    if (
        each.suspect.code == "memory-in-malloc"
    ):  # direct buffers are malloced too, and so is most of what a class loader takes
        others = growing.get("direct", 0.0) + _OF_LOADERS * growing.get("metaspace", 0.0)
        return rate - others if rate - others > rate / 4 else 0.0
    return rate


def _usual(facts: Facts, what: str) -> int:
    return (_USUAL if facts.jvm is None else _USUAL_OF_JVM).get(what, 0)


def _above(facts: Facts, what: str, count: int) -> int:
    return count - _usual(facts, what)


def _next_histograms(facts: Facts) -> str:
    return shell.command("opskit", "jmap-diff", facts.process.pid, "--live", "-c", 5)


def direct_resident_bytes(facts: Facts) -> int:
    """Direct buffers are zeroed when they are made, so that all of them are in memory, as long as malloc has that much."""
    return min(facts.jvm.direct_bytes or 0 if facts.jvm is not None else 0, _malloc_rss(facts))


def _malloc_rss(facts: Facts) -> int:
    return rss_of(facts, "malloc-arenas", "malloc-mmapped", *_by_elimination(facts))


def _by_elimination(facts: Facts) -> tuple[str, ...]:
    """The rows that have what nothing else explains: malloc's, where the allocator does not tell, and no language's runtime is there."""
    malloc = facts.malloc
    if malloc is None or malloc.unknown is None or malloc.runtime or facts.is_heap_hidden:
        return ()
    return "runtime-heap", "unnamed"


def _free_bytes(facts: Facts) -> int:
    """Free inside of the arenas, and in memory: whole free pages, and what is free beside used chunks of a page."""
    malloc, rss = facts.malloc, rss_of(facts, "malloc-arenas")
    if malloc is None or malloc.free_bytes is None:
        return 0
    absent = max(0, (malloc.system_bytes or 0) - rss)  # pages that were trimmed, or never touched
    return min(rss, max(malloc.resident_free_bytes or 0, malloc.free_bytes - absent))


def _loaders(facts: Facts) -> int:
    return facts.jvm.class_loaders or 0 if facts.jvm is not None else 0


def _malloc(facts: Facts) -> Iterator[_Weighed]:
    """Malloc that is no direct buffer: zlib, JNI, class loaders."""
    direct, free, loaders = direct_resident_bytes(facts), _free_bytes(facts), _loaders(facts)
    used = max(0, _malloc_rss(facts) - direct - free)
    of_loaders = min(used, loaders * _LOADER_BYTES) if loaders >= _MANY_LOADERS else 0
    classes = rss_of(facts, "metaspace", "class-space")
    if of_loaders > used / 3:
        summary = (
            f"{plural(loaders, 'class loader')} hold {size(classes)} of metaspace and about {size(of_loaders)} of malloc; a loader that is "
            "not freed keeps all its classes"
        )
        above = of_loaders + max(0, classes - _usual(facts, "metaspace"))
        evidence = f"ClassLoaderDataGraph; {size(used)} malloced without direct buffers"
        yield _Weighed(
            Suspect("memory-in-class-loaders", of_loaders + classes, summary, evidence, next=_next_histograms(facts)),
            above,
        )
        used -= of_loaders
    how = (
        "by elimination: the structures of its allocator are unknown"
        if _by_elimination(facts)
        else "glibc's arenas and mmapped blocks"
    )
    held = size(used)
    if facts.malloc is not None and facts.malloc.incomplete is not None:
        held = f"at most {held}"  # more may be free
    if facts.jvm is None:
        summary, next_ = f"{held} is allocated by malloc", None
    else:
        besides = f", besides {size(direct)} of direct buffers" if direct >= MIB else ""
        summary = (
            f"{held} is allocated by malloc outside of the heap{besides}: Deflater or Inflater that are not closed, JNI libraries, "
            "class loaders, the JVM's own structures"
        )
        next_ = _next_histograms(facts)
    yield _Weighed(Suspect("memory-in-malloc", used, summary, how, next=next_), _above(facts, "malloc", used))


def _arenas(facts: Facts) -> Iterator[_Weighed]:
    """Free memory inside of glibc's arenas: freed, and not given back."""
    malloc, free = facts.malloc, _free_bytes(facts)
    if malloc is None or not free:
        return
    arenas = f" in {plural(malloc.arenas, 'arena')}" if malloc.arenas else ""
    # Fewer arenas help only where there are more.
    is_many = malloc.arenas is None or malloc.arenas > _FEW_ARENAS
    advice = f"set MALLOC_ARENA_MAX={_FEW_ARENAS}, or use jemalloc" if is_many else "use jemalloc, or malloc_trim(3)"
    summary = f"{size(free)} is free inside of malloc's arenas{arenas} and not given back to the kernel (fragmentation): {advice}"
    evidence = f"malloc_state of each arena: {size(free)} free of {size(malloc.system_bytes)}"
    fix = shell.command("env", f"MALLOC_ARENA_MAX={_FEW_ARENAS}", *_restart(facts)) if is_many else None
    yield _Weighed(
        Suspect("memory-in-arenas", free, summary, evidence, fix=fix, next=trim_command(facts)),
        _above(facts, "arenas", free),
    )


def _restart(facts: Facts) -> tuple[object, ...]:
    return facts.process.command, shell.Syntax("…")


def trim_command(facts: Facts) -> str | None:
    """What gives back the free memory of a JVM's arenas without a restart; None: it does not know this command."""
    release = facts.jvm.release if facts.jvm is not None else None
    numbers = integers((release or "").partition("+")[0].split(".")[:3]) or [0]
    known = numbers[0] >= 21 or (numbers[0] == 17 and numbers[2:] >= [9])
    return shell.command("jcmd", facts.process.pid, "System.trim_native_heap") if known else None


def _stacks(facts: Facts) -> Iterator[_Weighed]:
    row = next((row for row in facts.rows if row.kind == "thread-stacks"), None)
    if row is None:
        return
    usage, pid = row.usage, facts.process.pid
    threads = (facts.jvm.threads if facts.jvm is not None else None) or facts.process.threads or 0
    each = f", {size(usage.rss_bytes / threads)} each" if threads else ""
    huge = f"; {size(usage.huge_bytes)} of it in transparent huge pages" if usage.huge_bytes else ""
    next_ = shell.command("opskit", "jpmp", pid) if facts.jvm is not None else shell.command("opskit", "limits", pid)
    yield _Weighed(
        Suspect(
            "memory-in-thread-stacks", usage.rss_bytes, f"{plural(threads, 'thread')} hold {size(usage.rss_bytes)} of stacks{each}{huge}",
            "stack pointers of /proc/PID/task/*/syscall, and smaps", next=next_,
        ),
        _above(facts, "thread-stacks", usage.rss_bytes - usage.huge_bytes),
    )  # fmt: skip


def _direct(facts: Facts) -> Iterator[_Weighed]:
    jvm = facts.jvm
    if jvm is None or not jvm.direct_bytes:
        return
    of = f" of {size(jvm.direct_max_bytes)}" if jvm.direct_max_bytes else ""
    summary = f"direct buffers hold {size(jvm.direct_bytes)}{of}; -XX:MaxDirectMemorySize limits them"
    suspect = Suspect(
        "memory-in-direct-buffers", jvm.direct_bytes, summary, "java.nio.Bits", next=_next_histograms(facts)
    )
    yield _Weighed(suspect, _above(facts, "direct", jvm.direct_bytes))


def _metaspace(facts: Facts) -> Iterator[_Weighed]:
    used = rss_of(facts, "metaspace", "class-space")
    loaders = f" for {plural(_loaders(facts), 'class loader')}" if _loaders(facts) else ""
    limit = facts.jvm.metaspace_max_bytes if facts.jvm is not None else None
    ends = "no -XX:MaxMetaspaceSize limits it" if limit is None else f"-XX:MaxMetaspaceSize is {size(limit)}"
    suspect = Suspect(
        "memory-in-metaspace", used, f"metaspace holds {size(used)}{loaders}; {ends}", "the JVM's nodes of metaspace, and pagemap",
        next=_next_histograms(facts),
    )  # fmt: skip
    yield _Weighed(suspect, _above(facts, "metaspace", used) if facts.jvm is not None else 0)


def _code_cache(facts: Facts) -> Iterator[_Weighed]:
    used = rss_of(facts, "code-cache")
    of = f" of {size(facts.jvm.code_reserved_bytes)}" if facts.jvm is not None and facts.jvm.code_reserved_bytes else ""
    summary = f"compiled code holds {size(used)}{of}; -XX:ReservedCodeCacheSize limits it"
    suspect = Suspect("memory-in-code-cache", used, summary, "the bounds of the code heaps, and pagemap")
    yield _Weighed(suspect, _above(facts, "code-cache", used) if facts.jvm is not None else 0)


def _huge_pages(facts: Facts) -> Iterator[_Weighed]:
    """Transparent huge pages make memory resident that was never used: a stack of 40 KiB becomes 2 MiB."""
    parts = [(row.usage.huge_bytes, KINDS.get(row.kind, row.kind)) for row in facts.rows if row.usage.huge_bytes]
    if parts:
        most, where = max(parts)
        total = sum(part for part, _ in parts)
        summary = f"{size(total)} is in transparent huge pages, {size(most)} of it in {where}: memory that was never used may be resident too"
        evidence, setting = "AnonHugePages of smaps", "/sys/kernel/mm/transparent_hugepage/enabled"
        stacks = usage_of(facts, "thread-stacks")
        of_stacks = stacks.huge_bytes if stacks is not None else 0
        # Of a heap they are mostly wanted; of stacks never.
        suspect = Suspect("memory-in-huge-pages", total, summary, evidence, next=shell.command("cat", setting))
        yield _Weighed(suspect, of_stacks or total, goes_first=of_stacks < total / 2 and facts.jvm is not None)
    if reserved := facts.total.hugetlb_bytes:
        limits = [limit for limit in facts.huge_limits if limit.limit_bytes is not None]
        ends = (
            f"; {limits[0].path} limits them to {size(limits[0].limit_bytes)} of {limits[0].page_size} pages"
            if limits
            else ""
        )
        summary = f"{size(reserved)} is in reserved huge pages, which are in neither RSS nor the memory cgroup{ends}"
        suspect = Suspect(
            "memory-in-reserved-huge-pages", reserved, summary, "Private_Hugetlb and Shared_Hugetlb of smaps"
        )
        yield _Weighed(suspect, reserved)


def _files(facts: Facts) -> Iterator[_Weighed]:
    next_ = shell.command("opskit", "mem", "--files")
    mapped, shared = rss_of(facts, "mapped-files"), usage_of(facts, "shared-memory")
    largest = _largest(facts, "mapped-files")
    summary = f"mapped files hold {size(mapped)}{largest}; the kernel reclaims it before it kills"
    suspect = Suspect("memory-in-mapped-files", mapped, summary, "smaps")
    yield _Weighed(suspect, _above(facts, "mapped-files", mapped), goes_first=True)
    if shared is not None:
        summary = f"shared memory holds {size(shared.rss_bytes)}{_largest(facts, 'shared-memory')}; only swap can take it away"
        yield _Weighed(
            Suspect("memory-in-shared-memory", shared.rss_bytes, summary, "smaps", next=next_), shared.rss_bytes
        )


def _largest(facts: Facts, kind: str) -> str:
    parts = [part for part in facts.parts if part.kind == kind]
    largest = max(parts, key=lambda part: part.usage.rss_bytes, default=None)
    if largest is None or not largest.name:
        return ""
    deleted = " (deleted)" if largest.deleted else ""
    return f", {size(largest.usage.rss_bytes)} of it {largest.name}{deleted}"


def _anonymous(facts: Facts) -> Iterator[_Weighed]:
    """Memory of no known use, and of a language's runtime."""
    if facts.is_heap_hidden:
        return
    for kind, code, what in (
        ("runtime-heap", "memory-in-anonymous-mappings", "the heap of its language's runtime or allocator"),
        ("unnamed", "memory-in-anonymous-mappings", "anonymous mappings of no known use"),
        ("named", "memory-in-anonymous-mappings", "named anonymous mappings"),
    ):
        usage = usage_of(facts, kind)
        if usage is not None and kind not in _by_elimination(facts):
            used, malloc = usage.rss_bytes, facts.malloc
            name = (
                f" ({malloc.runtime or malloc.name})"
                if kind == "runtime-heap" and malloc and (malloc.runtime or malloc.name)
                else ""
            )
            above = _above(facts, "anonymous", used) - usage.huge_bytes
            yield _Weighed(
                Suspect(code, used, f"{size(used)} is in {what}{name}{_largest(facts, kind)}", "smaps"), above
            )


def _dead(unheld: Sequence[Unheld], unmapped: int, what: str, evidence: str) -> Suspect:
    """The largest of the files that nobody holds, and what removes it."""
    first, rest = unheld[0], unheld[1:]
    name = f"System V segment {first.inode}" if first.kind == "sysv" else first.path
    others = f" and {plural(len(rest), 'other file')}" if rest else ""
    summary = f"{what}: {name} ({size(first.bytes)}){others} {'are' if rest else 'is'} open in no process, and stay{'' if rest else 's'} until removed"
    remove = (
        ("ipcrm", "-m", first.inode)
        if first.kind == "sysv"
        else ("rm", *shell.operands(first.reached_at or first.path))
    )
    return Suspect(
        "memory-of-dead-process",
        unmapped,
        summary,
        evidence,
        shell.command(*remove),
        shell.command("opskit", "mem", "--files"),
    )


def _of_cgroup(facts: Facts, level: MemoryGroup) -> Iterator[_Weighed]:
    """What counts against the limit, or is only shown beside it, and is not this process's."""
    next_ = shell.command("opskit", "mem", "--files")
    unmapped = (unmapped_shmem_bytes(level, facts.members, facts.members_unread) or 0) - untouched_heap_bytes(facts)
    if unmapped >= _UNMAPPED_BYTES:
        what = f"{size(unmapped)} of shared memory is charged to {level.path} and mapped by none of its processes"
        evidence = f"shmem of {level.path}, RssShmem of {plural(len(facts.members), 'process', 'processes')}"
        left = [file for file in facts.unheld if file.is_left_behind]
        if sum(file.bytes for file in left) >= unmapped / 2:
            yield _Weighed(_dead(left, unmapped, what, evidence), unmapped)
        else:
            such = f", such as {facts.unheld[0].path} ({size(facts.unheld[0].bytes)})" if facts.unheld else ""
            summary = f"{what}: files of a tmpfs (/dev/shm, /tmp, /run) or memfds{such}"
            yield _Weighed(Suspect("memory-in-tmpfs", unmapped, summary, evidence, next=next_), unmapped)
    others = [member for member in facts.members if member.pid != facts.process.pid]
    if held := sum((member.anon_bytes or 0) for member in others):
        first = others[0]
        who = f"{first.command} ({first.pid})" if len(others) == 1 else f"{len(others):,} other processes"
        most = "" if len(others) == 1 else f", {size(first.anon_bytes)} of it {first.command} ({first.pid})"
        summary = f"{size(held)} of the limit of {level.path} is held by {who}{most}"
        next_ = shell.command("opskit", "mem", first.pid)
        yield _Weighed(
            Suspect("memory-in-other-processes", held, summary, "RssAnon of its processes", next=next_), held
        )
    if cache := level.cache_bytes:
        summary = f"{size(cache)} of the use of {level.path} is page cache, which the kernel reclaims before it kills"
        yield _Weighed(
            Suspect("memory-in-page-cache", cache, summary, "inactive_file and active_file of memory.stat"),
            cache - _OF_LIMIT * (level.limit_bytes or 0),
            goes_first=True,
        )


def is_waste(facts: Facts) -> bool:
    """Whether free memory in arenas is so much that it is a finding without any growth."""
    free = _free_bytes(facts)
    return free >= _WASTE_BYTES and free >= _WASTE * facts.total.rss_bytes


def waste_share(facts: Facts) -> str:
    """Its share of RSS."""
    return percent(_free_bytes(facts) / max(1, facts.total.rss_bytes))


_CHECKS: tuple[Callable[[Facts], Iterator[_Weighed]], ...] = (
    _direct, _malloc, _arenas, _stacks, _metaspace, _code_cache, _huge_pages, _files, _anonymous,
)  # fmt: skip
