"""Where the stacks of a process's threads are: by the stack pointers of those that sleep, the others by their shape.

A thread's stack is a mapping of its own above a guard: pages without access, made by the C library or by the JVM. With glibc 2.42 on
Linux 6.13 the guard is inside the mapping (MADV_GUARD_INSTALL), and the kernel merges stacks that are neighbours to one: there glibc's
list of threads tells their bounds.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from typing import TYPE_CHECKING

from opskit.proc.files.maps import HEAP_BYTES
from opskit.proc.files.syscall import parse_stack_pointer
from opskit.proc.fs import optional
from opskit.proc.pthreads import posix_threads
from opskit.proc.ranges import Range

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from opskit.proc.files.smaps import Region
    from opskit.proc.fs import ProcFS
    from opskit.proc.memory import Memory

_KIND = "thread-stacks"
_FEW, _LISTED = 16, 0.9  # threads that are asked first; the part of all that glibc's list must have
_MOST_ASKED = 1000  # threads; the stacks of the others have the same shape
_GUARD_AT_MOST = 64 << 10
_LARGEST_UNGUARDED = 16 << 20
_MOST_SIZES = 8
_MOST_UNUSED, _LEAST_BYTES, _MIB = 64, 64 << 10, 1 << 20
_LEAST_USED, _USED_AT_MOST = 1 << 10, 256 << 10  # of a stack: the C library keeps what it knows of the thread there
_SAME_BYTES = 16 << 10  # stacks of one size differ by their guards


def thread_stacks(fs: ProcFS, pid: int, regions: Sequence[Region], memory: Memory | None = None) -> list[Range]:
    """The stacks, in order: those of threads, and those that the C library keeps for the next ones. `[stack]` is the main thread's.

    `memory`, where it may be read, has no absent pages: glibc's list of threads tells the bounds of stacks without a guard.
    """
    tids = optional(fs.tids, pid, default=[])
    pointers = _pointers(fs, pid, tids[:_FEW])
    threads = {each.address: each for each in posix_threads(memory, pointers[1:])} if memory is not None else {}
    if len(threads) >= _LISTED * (len(tids) - 1):
        pointers = [*pointers[:1], *threads]  # a descriptor is in its stack, too
    else:
        pointers += _pointers(fs, pid, tids[_FEW:_MOST_ASKED])
    found = stacks_at(regions, pointers)
    places = _unguarded(regions, threads)
    exact = [Range(threads[address].start, threads[address].end, _KIND) for address in places]
    known = {regions[at].start for at in places.values()}
    return sorted([*exact, *(each for each in found if each.start not in known)])


def _pointers(fs: ProcFS, pid: int, tids: Sequence[int]) -> list[int]:
    """The stack pointers of those that sleep."""
    read = [fs.maybe(parse_stack_pointer, pid, "task", tid, "syscall") for tid in tids]
    return [each for each in read if each is not None]


def _unguarded(regions: Sequence[Region], addresses: Iterable[int]) -> dict[int, int]:
    """The addresses in anonymous mappings without a guard below, and the places of these mappings."""
    starts = [region.start for region in regions]
    places = ((address, bisect_right(starts, address) - 1) for address in addresses)
    return {
        address: at
        for address, at in places
        if at >= 0 and address < regions[at].end and _is_anonymous(regions[at]) and not _has_guard(regions, at)
    }


def stacks_at(regions: Sequence[Region], pointers: Sequence[int]) -> list[Range]:
    """The stacks by these stack pointers, and what has the same size and a guard below."""
    starts = [region.start for region in regions]
    inside: dict[int, list[int]] = {}  # mapping -> stack pointers
    for pointer in pointers:
        at = bisect_right(starts, pointer) - 1
        if at >= 0 and pointer < regions[at].end:
            inside.setdefault(at, []).append(pointer)
    # Several in one mapping are a row of stacks, or stacks that a runtime keeps in its heap, as Go does.
    rows = [at for at, those in inside.items() if _is_row(regions[at], those)]
    highest = {at: those[0] for at, those in inside.items() if len(those) == 1 and _may_be_stack(regions, at)}
    # Without a stack pointer (no rights to ask for one) the most frequent size of guarded mappings is that of stacks.
    shaped = highest or [at for at in range(len(regions)) if _has_small_guard(regions, at)]
    sizes = Counter(_bytes(regions[at]) for at in shaped).most_common(_MOST_SIZES if highest else 1)
    found = {*highest, *rows}
    for at, region in enumerate(regions):
        if _has_small_guard(regions, at) and any(abs(_bytes(region) - size) <= _SAME_BYTES for size, _ in sizes):
            found.add(at)
    usual = sizes[0][0] if sizes else 0
    stacks = [Range(each.start, each.end, _KIND) for each in regions if each.name == "[stack]"]
    for at in sorted(found):
        region = regions[at]
        # A mapping behind it may have been merged with it.
        is_merged = _bytes(region) > usual + _SAME_BYTES and _has_guard(regions, at)
        is_usual = is_merged and at not in rows and highest.get(at, 0) < region.start + usual
        stacks.append(Range(region.start, region.start + usual if is_usual else region.end, _KIND))
    return sorted(stacks)


def _is_row(region: Region, pointers: Sequence[int]) -> bool:
    """Whether a mapping is divided in equal parts of which each stack pointer is near the end of another; some are of ended threads."""
    if len(pointers) < 2 or not _is_anonymous(region):
        return False
    depths = [region.end - pointer for pointer in pointers]
    for count in range(len(pointers), len(pointers) + _MOST_UNUSED):
        each, rest = divmod(_bytes(region), count)
        is_usual = each >= _LEAST_BYTES and (not each % _MIB or not each & (each - 1))
        used = range(_LEAST_USED, min(_USED_AT_MOST, each // 8))
        if rest or not is_usual or len({depth // each for depth in depths}) < len(depths):
            continue
        if all(depth % each in used for depth in depths):
            return True
    return False


def _may_be_stack(regions: Sequence[Region], at: int) -> bool:
    region = regions[at]
    # Go's heap, which has its stacks, and malloc's arenas begin at such addresses.
    if not _is_anonymous(region) or region.start % HEAP_BYTES == 0:
        return False
    return _has_guard(regions, at) or _bytes(region) <= _LARGEST_UNGUARDED


def _has_guard(regions: Sequence[Region], at: int) -> bool:
    below = regions[at - 1] if at else None
    return below is not None and below.end == regions[at].start and below.permissions == "---p"


def _has_small_guard(regions: Sequence[Region], at: int) -> bool:
    """Whether its guard is one of a stack, and it could be one."""
    region = regions[at]
    if not _is_anonymous(region) or region.start % HEAP_BYTES == 0 or not _has_guard(regions, at):
        return False
    return _bytes(regions[at - 1]) <= _GUARD_AT_MOST


def _is_anonymous(region: Region) -> bool:
    return region.permissions in ("rw-p", "rwxp") and not region.name


def _bytes(region: Region) -> int:
    return region.end - region.start
