"""What a JVM says about its own memory, and what its addresses are used for.

Read in its memory (vmStructs), in its hsperfdata counters, and in its mappings: no attach, no safepoint, no signal. A command is
sent to its attach listener only where that runs, or where `ask` allows to start it.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Optional

from opskit.collect.mem.facts import JvmMemory
from opskit.errors import NotAJvm, NotSupported, OpskitError
from opskit.jvm.discover import HOTSPOT, find_jvm
from opskit.jvm.launch import jdk_release
from opskit.jvm.perfdata.counters import collector, gc_work, heap
from opskit.proc.files.smaps import parse_smaps
from opskit.proc.rights import as_owner_or_root
from opskit.proc.spans import overlaps

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from opskit.host import Host
    from opskit.jvm.discover import Jvm
    from opskit.jvm.dumps.heap_info import HeapInfo
    from opskit.jvm.memory.direct_memory import Buffers
    from opskit.jvm.memory.flags import FlagValue
    from opskit.jvm.memory.vmstructs import VmStructs
    from opskit.jvm.perfdata.hsperfdata import PerfData
    from opskit.proc.files.smaps import Region
    from opskit.proc.fs import ProcFS
    from opskit.proc.ranges import Range
    from opskit.proc.touched_memory import TouchedMemory

    # _InMemory in plain types.
    _Plain = tuple[
        dict[str, FlagValue],
        list[Range],
        Optional[Buffers],
        Optional[int],
        Optional[int],
        Optional[int],
        list[str],
        list[str],
    ]

_COLLECTORS = {
    "UseG1GC": "G1", "UseSerialGC": "Serial", "UseParallelGC": "Parallel", "UseZGC": "ZGC",
    "UseShenandoahGC": "Shenandoah", "UseEpsilonGC": "Epsilon", "UseConcMarkSweepGC": "CMS",
}  # fmt: skip
_SIZES = (
    "MaxHeapSize", "MaxMetaspaceSize", "CompressedClassSpaceSize", "ReservedCodeCacheSize", "MaxDirectMemorySize",
    "ThreadStackSize",
)  # fmt: skip
_FLAGS = (*_SIZES, *_COLLECTORS, "AlwaysPreTouch", "UseCompressedClassPointers", "ZGenerational")
_PLAIN = (
    "tuple[dict[str, bool | int | float | str | None], list[Range], Buffers | None, int | None, int | None, int | None, "
    "list[str], list[str]]"
)
_NO_LIMIT = 1 << 62  # the JVM writes the largest number that fits, rounded down to its alignment
_KIB = 1024
_TIMEOUT_S = 2.0


def read_jvm(
    host: Host, pid: int, regions: Sequence[Region], *, ask: bool = False
) -> tuple[JvmMemory | None, list[Range]]:
    """What is known of a JVM, and the uses of its addresses; (None, []) for any other process. `ask`: start its attach listener.

    `regions`: its mappings with their resident memory; without them there are no ranges. Raises NoSuchProcess; NotPermitted where
    it is unknown whether it is a JVM.
    """
    try:
        jvm = find_jvm(host.fs, pid, host.clock_ticks)
    except (NotAJvm, NotSupported):
        return None, []
    if jvm.kind != HOTSPOT:
        article = "an OpenJ9 JVM" if jvm.kind == "OpenJ9" else "a GraalVM native image"
        why = f"{pid} is {article}: only HotSpot's memory can be divided by use"
        return JvmMemory(jvm.main, missing=(why,)), []
    look = _Look(host, jvm, regions)
    answer = _heap_info(host, pid, look, ask=ask)
    return look.memory(answer), look.ranges if regions else []


class _Look:
    """One look at one HotSpot JVM: what was read, from where, and what was not."""

    def __init__(self, host: Host, jvm: Jvm, regions: Sequence[Region]) -> None:
        self.jvm = jvm
        self.regions = regions or host.fs.maybe(
            parse_smaps, jvm.pid, "maps", default=[]
        )  # the same lines, without usage
        counted = jvm.perf.text("java.property.java.version") if jvm.perf is not None else None
        self.release = jdk_release(host.fs, jvm).get("JAVA_VERSION") or counted
        self.sources: list[str] = []
        self.missing: list[str] = []
        if jvm.perf is not None:
            self.sources.append("hsperfdata")
        elif jvm.no_perf is not None:
            self.missing.append(str(jvm.no_perf))
        fs, pid = host.fs, self.jvm.pid
        found: _Plain = {}, [], None, None, None, None, [], []
        try:
            found = fs.calls.work_out(
                fs, "jvm_memory", _PLAIN, (pid,), lambda machine: _InMemory(machine, self.jvm, self.regions).plain
            )
        except OSError as error:  # of a capture
            self.missing.append(f"{fs.path(pid, 'mem')}: {error.strerror}")
        self.flags, self.ranges, self.buffers, self.used_bytes, self.threads, self.loaders, sources, missing = found
        self.sources, self.missing = [*sources, *self.sources], [*self.missing, *missing]

    def memory(self, answer: HeapInfo | None) -> JvmMemory:
        """The record. `answer`: of GC.heap_info, which is of now."""
        perf = self.jvm.perf
        sizes = heap(perf) if perf is not None else None
        buffers, heap_max = self.buffers, self._size("MaxHeapSize") or (sizes.max_bytes if sizes else None)
        # By its counters it is without the garbage since the last collection, before the first one with all.
        used = answer.used_bytes if answer is not None else sizes.used_bytes if sizes is not None else None
        classes = answer.metaspace_bytes if answer is not None else None
        return JvmMemory(
            main=self.jvm.main,
            release=self.release,
            collector=self._collector(perf),
            heap_used_bytes=used if used is not None else self._used_bytes(heap_max),
            heap_committed_bytes=self._heap_committed(sizes.committed_bytes if sizes else None),
            heap_max_bytes=heap_max,
            heap_touched=self.flags.get("AlwaysPreTouch") is True,
            metaspace_used_bytes=classes if classes is not None else _metaspace_used(perf),
            metaspace_committed_bytes=self._metaspace_committed(perf),
            metaspace_max_bytes=self._size("MaxMetaspaceSize"),
            class_space_max_bytes=self._class_space_max(),
            code_reserved_bytes=self._size("ReservedCodeCacheSize"),
            direct_bytes=buffers.direct_bytes if buffers else None,
            direct_max_bytes=self._direct_max(heap_max),
            mapped_buffer_bytes=buffers.mapped_bytes if buffers else None,
            threads=self.threads if self.threads is not None else _number(perf, "java.threads.live"),
            stack_bytes=(self._size("ThreadStackSize") or 0) * _KIB or None,
            class_loaders=self.loaders,
            sources=tuple(self.sources),
            missing=tuple(self.missing),
        )

    def _size(self, name: str) -> int | None:
        """The value of a flag; None: no limit, or unknown."""
        value = self.flags.get(name)
        return value if isinstance(value, int) and 0 <= value < _NO_LIMIT else None

    def _class_space_max(self) -> int | None:
        return self._size("CompressedClassSpaceSize") if self.flags.get("UseCompressedClassPointers", True) else None

    def _direct_max(self, heap_max: int | None) -> int | None:
        """The limit that the JVM has computed; else its flag, where 0 stands for the heap's limit."""
        if self.buffers is not None and self.buffers.direct_max_bytes:
            return self.buffers.direct_max_bytes
        return self._size("MaxDirectMemorySize") or (heap_max if self.flags else None)

    def _collector(self, perf: PerfData | None) -> str | None:
        found = collector(perf) if perf is not None else None
        return found or next((name for flag, name in _COLLECTORS.items() if self.flags.get(flag)), None)

    def _heap_committed(self, counted: int | None) -> int | None:
        """By the mappings, which are exact; with ZGC, which may map it several times, by its counters."""
        return counted if self.flags.get("UseZGC") else self._committed("java-heap") or counted

    def _used_bytes(self, heap_max: int | None) -> int | None:
        """In use by the collector's own objects; None where it is more than the heap can have."""
        used = self.used_bytes
        return used if used is not None and used <= (heap_max or used) else None

    def _metaspace_committed(self, perf: PerfData | None) -> int | None:
        """With the class space: by the mappings, else as of the last collection."""
        is_known = any(each.kind == "metaspace" for each in self.ranges)
        return self._committed("metaspace", "class-space") if is_known else _counter(perf, "metaspace.capacity")

    def _committed(self, *kinds: str) -> int | None:
        return committed_bytes(self.regions, [each for each in self.ranges if each.kind in kinds]) or None


class _InMemory:
    """What the memory of one JVM says."""

    def __init__(self, fs: ProcFS, jvm: Jvm, regions: Sequence[Region]) -> None:
        self.regions = regions
        self.flags: dict[str, FlagValue] = {}
        self.ranges: list[Range] = []
        self.buffers: Buffers | None = None
        self.used_bytes: int | None = None
        self.threads: int | None = None
        self.loaders: int | None = None
        self.sources: list[str] = []
        self.missing: list[str] = []
        self._read(fs, jvm)

    @property
    def plain(self) -> _Plain:
        """All of it."""
        return (
            self.flags, self.ranges, self.buffers, self.used_bytes, self.threads, self.loaders, self.sources, self.missing
        )  # fmt: skip

    def _read(self, fs: ProcFS, jvm: Jvm) -> None:
        from opskit.jvm.memory.vmstructs import read_vmstructs
        from opskit.proc.touched_memory import TouchedMemory

        pid = jvm.pid
        try:
            memory = TouchedMemory(fs, pid, self.regions)
        except PermissionError:
            advice = as_owner_or_root(fs, "CAP_SYS_PTRACE", pid, jvm.uid)
            self.missing.append(f"permission denied for {fs.path(pid, 'mem')}: {advice}")
            return
        except OSError as error:
            self.missing.append(f"{fs.path(pid, 'mem')}: {error.strerror}")
            return
        try:
            self._read_structs(read_vmstructs(fs, pid, memory), memory)
        except OpskitError as error:
            self.missing.append(str(error))
        except OSError as error:
            self.missing.append(f"{fs.path(pid, 'mem')}: {error.strerror}")
        finally:
            memory.close()

    def _read_structs(self, structs: VmStructs, memory: TouchedMemory) -> None:
        from opskit.jvm.memory.direct_memory import read_buffers
        from opskit.jvm.memory.flags import read_flags
        from opskit.jvm.memory.heap_use import HeapUse
        from opskit.jvm.memory.objects import OBJECT_FLAGS, Objects
        from opskit.jvm.memory.ranges import RANGE_FLAGS, JvmRanges

        self.flags = read_flags(structs, memory, {*_FLAGS, *RANGE_FLAGS, *OBJECT_FLAGS})
        found = JvmRanges(structs, memory, self.regions, self.flags)
        self.ranges = found.ranges
        self.threads = found.stacks or None
        if found.loaders is not None:
            self.loaders = sum(not loader.is_of_one_class for loader in found.loaders)
        with suppress(OpskitError):
            self.used_bytes = HeapUse(structs, memory).used_bytes(self.flags)
        self.missing += found.failed
        self.sources.insert(0, "vmStructs")
        try:
            boot = found.loaders[-1].address if found.loaders else 0
            self.buffers = read_buffers(Objects(structs, memory, self.flags), boot)
        except OpskitError as error:
            self.missing.append(f"direct buffers: {error}")
            return
        if self.buffers.direct_bytes is None:
            self.missing.append("direct buffers: java.nio.Bits could not be read at this moment")


def committed_bytes(regions: Sequence[Region], ranges: Iterable[Range]) -> int:
    """How much of the ranges is accessible: what HotSpot has committed; the rest is reserved."""
    parts = overlaps(regions, ((start, end) for start, end, _ in ranges))
    return sum(end - start for region, start, end in parts if region.permissions.startswith("r"))


def _heap_info(host: Host, pid: int, look: _Look, *, ask: bool) -> HeapInfo | None:
    """The JVM's answer to GC.heap_info, which needs no safepoint; None: its listener does not run, or did not answer."""
    from opskit.jvm.attach.target import seems_to_listen

    if not host.can_ask or not (ask or seems_to_listen(host.fs, look.jvm)):
        return None
    from opskit.jvm.attach.connect import client_of
    from opskit.jvm.dumps.heap_info import parse_heap_info

    try:
        answer = parse_heap_info(client_of(host.fs, pid, _TIMEOUT_S, may_start=ask).jcmd("GC.heap_info"))
    except (OpskitError, OSError) as error:
        if ask:
            look.missing.append(str(error))
        return None
    look.sources.append("attach")
    return answer


def _metaspace_used(perf: PerfData | None) -> int | None:
    """Metaspace in use at the last collection, when it is counted; None before the first."""
    if perf is None or not gc_work(perf).pauses:
        return None
    return _counter(perf, "metaspace.used")


def _counter(perf: PerfData | None, name: str) -> int | None:
    return _number(perf, f"sun.gc.{name}")


def _number(perf: PerfData | None, name: str) -> int | None:
    value = perf.number(name) if perf is not None else None
    return value if value is not None and value > 0 else None
