"""/proc/PID/maps (proc_pid_maps(5), fs/proc/task_mmu.c): the mappings of an address space, and the files in it.

55f0c8a00000-55f0c8a02000 r--p 00000000 fe:00 1310 /usr/bin/java
7f1200000000-7f1200021000 rw-p 00000000 00:00 0
7f1200021000-7f1204000000 ---p 00000000 00:00 0
7ffd3c1e0000-7ffd3c201000 rw-p 00000000 00:00 0 [stack]
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from opskit.errors import BadInput
from opskit.proc.lines import lines_of
from opskit.quantities import hexadecimal, integer
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

HEAP_BYTES = 64 << 20  # glibc malloc/arena.c, HEAP_MAX_SIZE: 64 MiB, and aligned to it, on 64-bit machines
_GUARD_AT_MOST = 64 << 10  # a page, of whatever size
# Compiled where they are used: most commands only look for a mapping.
_LINE = r"([0-9a-f]{1,16})-([0-9a-f]{1,16}) (\S+) \S+ \S+ \S+ *(.*)"
_GLIBC = r"libc(?:-2\.[0-9]{1,3}\.so|\.so\.6)"
_OTHER_MALLOC = r"lib(?:jemalloc|tcmalloc|mimalloc)"
_DELETED = " (deleted)"


class Mapping(NamedTuple):
    """A mapped file. `addresses` is its name below /proc/PID/map_files, which alone identifies the file.

    `inode` is no proof: other file systems have the same numbers, and device numbers in maps are not those of stat on btrfs
    and overlayfs.
    """

    addresses: str
    inode: int
    path: str
    deleted: bool


def find_mapping(text: str, part: str, accept: Callable[[str], bool]) -> Mapping | None:
    """The first mapping of a file with `part` in its path and accepted permissions (`r-xp`), without a parse."""
    at = text.find(part)
    while at >= 0:
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        words = text[text.rfind("\n", 0, at) + 1 : end].split(None, 5)
        inode = integer(words[4]) if len(words) == 6 else None
        if inode is not None and accept(words[1]):
            path = words[5]
            return Mapping(words[0], inode, path.removesuffix(_DELETED), path.endswith(_DELETED))
        at = text.find(part, end)
    return None


class AddressSpace(NamedTuple):
    """The space in which a thread's stack needs a gap.

    `maps` counts as the kernel does (without [vsyscall]). `top` is the end of the address space in bytes, `gaps` the
    free ranges (start, end) below the highest mapping, highest first. `arenas` are glibc's malloc arenas beside the
    main one. `guarded` are the sizes in bytes of what looks like a thread's stack: writable, above a guard page.
    `libc`, `jvm` and `allocator` are the paths of the libraries; None: not mapped.
    """

    maps: int
    top: int
    gaps: tuple[tuple[int, int], ...]
    arenas: int
    guarded: tuple[int, ...]
    libc: str | None
    musl: bool
    jvm: str | None
    allocator: str | None

    @property
    def glibc(self) -> str | None:
        """The path of glibc; None for musl, for static programs and for others."""
        return None if self.musl else self.libc


class CodeMapping(NamedTuple):
    """An executable mapping: addresses from `start` to below `end`, the bytes of the file from `offset` on.

    `path`: empty for anonymous memory. `first`: where the file's begin is mapped; None: nowhere below.
    """

    start: int
    end: int
    offset: int
    path: str
    deleted: bool
    first: int | None


def parse_code_mappings(text: str) -> list[CodeMapping]:
    """The executable mappings in the order of their addresses. Raises BadInput."""
    found = []
    begins: dict[str, int] = {}
    for number, line in enumerate(lines_of(text), 1):
        words = line.split(None, 5)
        path = words[5] if len(words) == 6 else ""
        is_code = len(words) > 4 and words[1][2:3] == "x"
        if not is_code and not (path and words[2] == "00000000"):
            continue
        start, end = (hexadecimal(each) for each in words[0].partition("-")[::2])
        offset = hexadecimal(words[2])
        if start is None or end is None or offset is None:
            raise BadInput("maps", "not a mapping", number, line)
        if path and not offset:
            begins[path] = start
        if is_code:
            bare = path.removesuffix(_DELETED)
            found.append(CodeMapping(start, end, offset, bare, bare != path, begins.get(path) if path else None))
    return found


def parse_maps(text: str) -> AddressSpace | None:
    """Parse the file; None where it is empty, as of a kernel thread or a zombie. Raises BadInput."""
    maps = highest = 0
    arenas: list[int] = []
    ranges: list[tuple[int, int]] = []
    guarded: list[int] = []
    names: dict[str, None] = {}
    below_stack = True
    parsed = re.compile(_LINE).fullmatch
    before = (0, 0, "", True)  # start, end, permissions, anonymous
    for number, line in enumerate(lines_of(text), 1):
        match = parsed(line)
        if match is None:
            raise BadInput("maps", "not a mapping", number, line)
        start_text, end_text, permissions, name = match.groups()
        start, end = int(start_text, 16), int(end_text, 16)  # a number: 16 hexadecimal digits at most
        if name != "[vsyscall]":
            maps += 1
            highest = end
        below_stack = below_stack and name != "[stack]"
        if below_stack:  # no room is sought above it, where [vdso] may lie
            ranges.append((start, end))
        if name.startswith("/"):
            names[name] = None
        anonymous = not name or name.startswith("[anon")
        if anonymous and before[3] and before[1] == start:
            if permissions == "---p" and before[2] == "rw-p":
                if before[0] % HEAP_BYTES == 0 and start - before[0] < HEAP_BYTES <= end - before[0]:
                    arenas.append(before[0])
            elif permissions == "rw-p" and before[2] == "---p" and start - before[0] <= _GUARD_AT_MOST:
                guarded.append(end - start)
        before = (start, end, permissions, anonymous)
    if not maps:
        return None
    libc = next((name for name in names if is_glibc(name) or is_musl(name)), None)
    top = 1 << highest.bit_length() if highest & (highest - 1) else highest
    return AddressSpace(
        maps=maps,
        top=top,
        gaps=_gaps(ranges),
        # A JVM's heap and classes look alike, but are put low; the kernel chooses high places.
        arenas=sum(at >= top // 4 for at in arenas),
        guarded=tuple(guarded),
        libc=libc,
        musl=bool(libc and is_musl(libc)),
        jvm=next((name for name in names if name.endswith("/libjvm.so")), None),
        allocator=next((name for name in names if other_malloc(name)), None),
    )


def _file(path: str) -> str:
    return path.rpartition("/")[2]


def is_glibc(path: str) -> bool:
    """Whether a library's name is that of glibc."""
    return re.fullmatch(_GLIBC, _file(path)) is not None


def other_malloc(path: str) -> str | None:
    """The allocator that a library's name says: jemalloc, tcmalloc or mimalloc."""
    found = re.match(_OTHER_MALLOC, _file(path)) if ".so" in _file(path) else None
    return found[0].removeprefix("lib") if found else None


def is_musl(path: str) -> bool:
    """Whether a library's name is that of musl."""
    name = _file(path)
    return name == "libc.so" or (name.startswith(("ld-musl-", "libc.musl-")) and name.endswith(".so.1"))


def _gaps(ranges: list[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    gaps = []
    below = 0x10000  # vm.mmap_min_addr
    for start, end in ranges:
        if start > below:
            gaps.append((below, start))
        below = max(below, end)
    return tuple(reversed(gaps))


def locks_new_mappings(smaps: str) -> bool:
    """Whether all new mappings of a process are locked: mlockall(MCL_FUTURE) is in force.

    By /proc/PID/smaps: `lo` in VmFlags of a guard page or another inaccessible mapping, or of the heap's newer part, which
    no program locks by mlock().
    """
    permissions = name = ""
    for line in lines_of(smaps):
        if line.startswith("VmFlags:"):
            if " lo" in line and (permissions == "---p" or name == "[heap]"):
                return True
        elif "-" in line.partition(" ")[0]:
            words = line.split(None, 5)
            permissions, name = words[1] if len(words) > 1 else "", words[5] if len(words) > 5 else ""
    return False
