"""Weigh the samples of a CPU profile by each thread's CPU time; its methods, and how sure their shares are. Pure.

The kernel counts the CPU time of a thread exactly, samples only estimate it. So the samples of a thread share its CPU time.
A thread that no sample met has its CPU time explained by those of its pool, which do the same; not where threads are shown.
"""

from __future__ import annotations

import re
from collections import Counter
from math import sqrt
from typing import TYPE_CHECKING

from opskit.analysis.jpmp.frame_marks import JAVA_KINDS, LABEL
from opskit.analysis.jpmp.frames import frame_name, pool_of, vm_frame
from opskit.jvm.profiles import WeightedStack
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from opskit.analysis.jpmp.stacks import Naming, Root
    from opskit.collect.cpu_profile import CpuProfile, StackKey
    from opskit.proc.unwind.cursor import Frame

FEWEST = 10  # samples of a row that is ranked
NOT_SAMPLED, NO_FRAMES = "[not sampled]", "[unknown]"
_ENDED = "threads that have ended"
_LEAST_MS, _LEAST_SHARE = 20.0, 0.01  # of the process's CPU time that no thread has: less is rounding
_Z = 1.96  # of the normal distribution: 95 %
# Threads of the VM; the kernel cuts names to 15 bytes.
_OF_THE_VM = re.compile(
    r"(?:Par)?GC Thread#|G1 (?:Main|Conc|Refine|Service|Young|Parallel)|[ZX](?:Worker|Driver|Director|Stat|Unmapper|Uncommitter)"
    r"|Shenandoah|CMS |Concurrent Mark|C[12] Compiler|JVMCI|VM (?:Thread|Periodic|Op)|Sweeper thread|Monitor Deflat|Service Thread"
    r"|StringDedup|Common-Cleaner\Z"
)


class Share(NamedTuple):
    """A part of the CPU time, and the interval that has the true one with a probability of 95 %."""

    part: float
    low: float
    high: float

    @property
    def plus_minus(self) -> float:
        """Half of the interval's width."""
        return (self.high - self.low) / 2


class Method(NamedTuple):
    """A method or function: CPU ms in itself and with its callees, samples of both, and the pools of its threads (of both).

    `height`: the fewest frames between it and a leaf.
    """

    name: str
    kind: str
    self_ms: float
    total_ms: float
    self_samples: int
    total_samples: int
    self_pools: Mapping[str, int]
    total_pools: Mapping[str, int]
    height: int


class _Group:
    """The samples of one stack."""

    __slots__ = ("cpu_ms", "kinds", "names", "samples")

    def __init__(self) -> None:
        self.cpu_ms, self.samples = 0.0, 0
        self.kinds: dict[tuple[str, ...], int] = {}
        self.names: dict[tuple[int, str | None], str] = {}


def weigh(profile: CpuProfile, naming: Naming, root: Root | None = None) -> list[WeightedStack]:
    """The stacks, equal ones of all threads as one, and the CPU time of threads that no sample met."""
    weigher = _Weigher(profile, naming, root)
    for key, count in profile.stacks.items():
        weigher.add(key, count)
    weigher.add_unsampled()
    return weigher.stacks()


class _Weigher:
    def __init__(self, profile: CpuProfile, naming: Naming, root: Root | None) -> None:
        self.profile, self._naming, self._root = profile, naming, root
        met: Counter[int] = Counter()
        for key, count in profile.stacks.items():
            met[key.tid] += count
        self._each_ms = {tid: self._ms_of(tid, count) for tid, count in met.items()}
        self._groups: dict[tuple[tuple[str, ...], str | None], _Group] = {}
        self._written: dict[Frame, str] = {}
        self._names = {tid: full_name(thread.name) or f"thread {tid}" for tid, thread in profile.threads.items()}
        self._like: frozenset[int] = frozenset()
        if root != "thread":
            self._like = unsampled_alike(profile, met)
            for tid, factor in _factors(profile, met, self._like).items():
                self._each_ms[tid] *= factor

    def _ms_of(self, tid: int, samples: int) -> float:
        """CPU ms that each sample of the thread stands for."""
        thread = self.profile.threads.get(tid)
        cpu_ms = None if thread is None else thread.cpu_ms
        return cpu_ms / samples if cpu_ms else 1000 / self.profile.hz

    def add(self, key: StackKey, count: int) -> None:
        """Samples of a stack."""
        names, kinds = [*map(self._write, key.frames)], [frame.kind for frame in key.frames]
        if not names:
            names, kinds = [NO_FRAMES], [LABEL]  # type: ignore[list-item]
        name = self._names.get(key.tid) or f"thread {key.tid}"
        own = name if key.virtual is None else _virtual_name(key.virtual)
        if self._root is None:
            roots = [vm_frame(name)] if not JAVA_KINDS.intersection(kinds) and is_of_vm(name) else []
        else:  # a virtual thread stands above its carrier
            roots = [each if self._root == "thread" else pool_of(each) for each in dict.fromkeys((own, name))]
        group = self._group((*names, *roots), None if key.virtual is None else pool_of(name))
        every = (*kinds, *(LABEL for _ in roots))
        group.kinds[every] = group.kinds.get(every, 0) + count
        group.samples += count
        group.cpu_ms += count * self._each_ms[key.tid]
        group.names[key.tid, key.virtual] = own

    def add_unsampled(self) -> None:
        """Threads with CPU time and no sample, those of the VM by name; threads that ended before they were seen."""
        profile, known_ms = self.profile, sum(group.cpu_ms for group in self._groups.values())
        for tid, thread in profile.threads.items():
            if tid in self._each_ms or tid in self._like or not thread.cpu_ms:
                continue
            name = self._names[tid]
            self._unsampled(tid, name, vm_frame(name) if is_of_vm(name) else NOT_SAMPLED, thread.cpu_ms)
            known_ms += thread.cpu_ms
        rest_ms = (profile.cpu_ms or 0.0) - known_ms
        if rest_ms > max(_LEAST_MS, _LEAST_SHARE * (profile.cpu_ms or 0.0)):
            self._unsampled(0, _ENDED, NOT_SAMPLED, rest_ms)

    def _unsampled(self, tid: int, name: str, frame: str, cpu_ms: float) -> None:
        roots = () if self._root is None else (name if self._root == "thread" else pool_of(name),)
        group = self._group((frame, *roots), None)
        group.kinds.setdefault((LABEL,) * (1 + len(roots)), 0)
        group.cpu_ms += cpu_ms
        group.names[tid, None] = name

    def _group(self, frames: tuple[str, ...], container: str | None) -> _Group:
        key = frames, container
        return self._groups.get(key) or self._groups.setdefault(key, _Group())

    def _write(self, frame: Frame) -> str:
        written = self._written.get(frame)
        if written is None:
            written = self._written[frame] = written_name(frame, self._naming)
        return written

    def stacks(self) -> list[WeightedStack]:
        """What was added."""
        return [
            WeightedStack(
                frames,
                samples=group.samples,
                cpu_ms=group.cpu_ms,
                threads=len(group.names),
                pools=dict(Counter(map(pool_of, group.names.values())).most_common()),
                container=container,
                kinds=_common(group.kinds),
            )
            for (frames, container), group in self._groups.items()
        ]


def _common(kinds: Mapping[tuple[str, ...], int]) -> tuple[str, ...]:
    """The kind that most samples have, for each frame."""
    if len(kinds) == 1:
        return next(iter(kinds))
    columns: list[Counter[str]] = [Counter() for _ in next(iter(kinds))]
    for each, count in kinds.items():
        for column, kind in zip(columns, each):
            column[kind] += count
    return tuple(max(column, key=lambda kind: (column[kind], kind)) for column in columns)


def written_name(frame: Frame, naming: Naming) -> str:
    """The frame's name, with `lines` its place: `Shop.serve(Shop.java:41)`. Symbols of native code stay as they are."""
    if frame.kind not in JAVA_KINDS:
        return frame.name
    name = frame_name(frame.name, full=naming.full)
    if not naming.lines or (frame.source is None and frame.line is None):
        return name
    place = frame.source or "Unknown Source"
    return f"{name}({place}:{frame.line})" if frame.line is not None else f"{name}({place})"


def _virtual_name(virtual: str) -> str:
    return f"virtual thread {virtual}" if virtual.startswith("#") else virtual


def is_of_vm(thread: str) -> bool:
    """Whether the name is that of a thread of the VM: garbage collection, compilers, the VM thread."""
    return _OF_THE_VM.match(thread) is not None


def full_name(thread: str) -> str:
    """The name of a thread of the VM that the kernel has cut: `C2 CompilerThre` is `C2 CompilerThread`."""
    cut = (
        "C1 CompilerThread",
        "C2 CompilerThread",
        "VM Periodic Task Thread",
        "Monitor Deflation Thread",
        "Sweeper thread",
    )
    return next((name for name in cut if len(thread) == 15 and name.startswith(thread)), thread)


def share(part_ms: float, whole_ms: float, samples: int) -> Share:
    """A share with its Wilson interval. `samples`: of the whole."""
    part = min(part_ms / whole_ms, 1.0) if whole_ms > 0 else 0.0
    if not samples:
        return Share(part, 0.0, 1.0)
    square = _Z * _Z
    middle = (part + square / (2 * samples)) / (1 + square / samples)
    width = _Z * sqrt(part * (1 - part) / samples + square / (4 * samples * samples)) / (1 + square / samples)
    return Share(part, max(0.0, min(middle - width, part)), min(1.0, max(middle + width, part)))


def methods(stacks: Iterable[WeightedStack]) -> list[Method]:
    """The methods by CPU time in themselves, most first; a recursive one counts once in a stack. Labels are no methods."""
    found: dict[str, list[float]] = {}
    kinds: dict[str, Counter[str]] = {}
    pools: dict[str, tuple[Counter[str], Counter[str]]] = {}
    for stack in stacks:
        cpu_ms, met = stack.cpu_ms or 0.0, set()
        for place, name in enumerate(stack.frames):
            kind = stack.kinds[place] if stack.kinds else ""
            if kind == LABEL or name in met:
                continue
            met.add(name)
            sums = found.get(name) or found.setdefault(name, [0.0, 0.0, 0, 0, place])
            of = pools.get(name) or pools.setdefault(name, (Counter(), Counter()))
            kinds.setdefault(name, Counter())[kind] += stack.samples
            sums[1] += cpu_ms
            sums[3] += stack.samples
            sums[4] = min(sums[4], place)
            of[1].update(stack.pools)
            if not place:
                sums[0] += cpu_ms
                sums[2] += stack.samples
                of[0].update(stack.pools)
    made = [
        Method(
            name, kinds[name].most_common(1)[0][0], sums[0], sums[1], round(sums[2]), round(sums[3]), *pools[name], round(sums[4])
        )
        for name, sums in found.items()
    ]  # fmt: skip
    return sorted(made, key=lambda method: (-method.self_ms, -method.total_ms, method.name))


def ranked(found: Sequence[Method], by: str) -> tuple[list[Method], list[Method]]:
    """The methods with enough samples, most CPU time first, and the others. `by`: "self" or "total"."""
    of = sorted(found, key=lambda method: (-getattr(method, f"{by}_ms"), -method.height, method.name))
    met = [method for method in of if getattr(method, f"{by}_samples")]
    return (
        [method for method in met if getattr(method, f"{by}_samples") >= FEWEST],
        [method for method in met if getattr(method, f"{by}_samples") < FEWEST],
    )


def certain(shares: Sequence[Share]) -> int:
    """How many of the first rows are in their true order: each is above all that follow, with their intervals apart."""
    for number, (one, other) in enumerate(zip(shares, shares[1:])):
        if other.high > one.low:
            return number
    return len(shares)


def unsampled_alike(profile: CpuProfile, sampled: Mapping[int, int]) -> frozenset[int]:
    """Threads with CPU time and no sample, of pools of which other threads have samples, by TID."""
    pools = {pool_of(full_name(profile.threads[tid].name)) for tid in sampled if tid in profile.threads}
    return frozenset(
        tid
        for tid, thread in profile.threads.items()
        if thread.cpu_ms and tid not in sampled and pool_of(full_name(thread.name)) in pools
    )


def _factors(profile: CpuProfile, sampled: Mapping[int, int], alike: frozenset[int]) -> dict[int, float]:
    """By how much the samples of each thread count for more, so that they explain the others of its pool too."""
    threads = profile.threads
    sums: dict[str, list[float]] = {}
    for tid in (*(tid for tid in sampled if tid in threads), *alike):
        both = sums.setdefault(pool_of(full_name(threads[tid].name)), [0.0, 0.0])
        both[tid in alike] += threads[tid].cpu_ms or 1000 * sampled.get(tid, 0) / profile.hz
    factors = {pool: (own + others) / own for pool, (own, others) in sums.items() if others and own}
    named = ((tid, pool_of(full_name(threads[tid].name))) for tid in sampled if tid in threads)
    return {tid: factors[pool] for tid, pool in named if pool in factors}


def explained_ms(profile: CpuProfile) -> float | None:
    """CPU time that samples with a stack explain, in ms; None where the CPU time is unknown."""
    if profile.cpu_ms is None:
        return None
    with_frames: Counter[int] = Counter()
    every: Counter[int] = Counter()
    for key, count in profile.stacks.items():
        every[key.tid] += count
        with_frames[key.tid] += count if key.frames else 0
    spent = sum(profile.threads[tid].cpu_ms or 0.0 for tid in unsampled_alike(profile, every))
    for tid, count in every.items():
        thread = profile.threads.get(tid)
        cpu_ms = thread.cpu_ms if thread is not None and thread.cpu_ms else 1000 * count / profile.hz
        spent += cpu_ms * with_frames[tid] / count
    return min(spent, profile.cpu_ms)
