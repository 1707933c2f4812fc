"""Compare two CPU profiles of the same window: names and marks made alike, shares by method, differences in points."""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import TYPE_CHECKING, Callable, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

LARGE = 0.05  # methods from this share on are compared
NO_JAVA = "[no Java method]"
# async-profiler's own words for a stack that it could not walk, and its library, whose signal handler opskit samples.
_FAILED = frozenset({"[unknown_Java]", "[not_walkable_Java]", "[unknown]", "[unknown_state]", "[deoptimization]", "[GC_active]", "[safepoint]"})  # fmt: skip
_PROFILER = re.compile(r"libasyncProfiler|^(CTimer|PerfEvents|Profiler|StackWalker|CpuEngine|AsyncGetCallTrace)\b")
_THREAD = re.compile(r"\[.* tid=\d+\]")
_MARK = re.compile(r"_\[([jik01])\]$")
_HIDDEN = re.compile(r"[./+](?:0x[0-9a-f]+|\d{5,})(?=[./]|$)|(?<=\$\$Lambda)\$\d+")  # JDK 11 has decimal numbers


class Frame(NamedTuple):
    """A name that both profilers write alike, and whether it is a Java method's, or the kernel's."""

    name: str
    is_java: bool = False
    is_kernel: bool = False


Profile = Counter  # of tuple[Frame, ...], root first


def parse(text: str) -> Profile[tuple[Frame, ...]]:
    """Collapsed stacks with marks. The thread at the root and what the profiler itself added are left out."""
    profile: Profile[tuple[Frame, ...]] = Counter()
    for line in text.splitlines():
        stack, _, weight = line.rpartition(" ")
        words = stack.split(";")
        if _THREAD.fullmatch(words[0]):
            del words[0]
        frames = tuple(_until_signal([frame(word) for word in words]))
        profile[frames] += int(weight)
    return profile


def _until_signal(frames: list[Frame]) -> list[Frame]:
    """The frames below the signal handler of async-profiler, when a sample is of that."""
    for at, each in enumerate(frames):
        if not each.is_java and _PROFILER.search(each.name):
            while at and not frames[at - 1].is_java and "restore_rt" in frames[at - 1].name:
                at -= 1
            return frames[:at]
    return frames


def frame(word: str) -> Frame:
    """A frame without its mark: package.Class.method, or a function without parameters, template arguments and versions."""
    mark = _MARK.search(word)
    name = word[: mark.start()] if mark else word
    if mark and mark[1] != "k":
        return Frame(_HIDDEN.sub("", name).replace("/", "."), is_java=True)
    return Frame(function(name), is_kernel=mark is not None)


def function(name: str) -> str:
    """A C or C++ function as both write it: `void A<B<C> >::d(int)` is `A::d`, `__GI_write` is `write`."""
    if name.startswith("["):
        return name
    if name.startswith("__vdso_"):
        return "[vdso]"
    depth, kept = 0, []
    for letter in re.sub(r"operator[<>()=-]+", "operator", name.split("@")[0]):
        if letter in "<(":
            depth += 1
        elif letter in ">)":
            depth = max(0, depth - 1)
        elif not depth:
            kept.append(letter)
    plain = "".join(kept).strip()
    plain = plain if plain.endswith((" stub", "stubs")) else plain.removesuffix(" const").rpartition(" ")[2]
    return re.sub(r"^_*(?:GI_+)?(?:libc_)?|(?<=[a-z])64$", "", plain) or name  # pread and __pread64 are one function


def parse_baseline(text: str) -> tuple[Profile, float]:
    """The stacks of async-profiler, and the share that it could not walk: those count as stacks without frames."""
    profile: Profile[tuple[Frame, ...]] = Counter()
    for stack, weight in parse(text).items():
        profile[() if any(each.name in _FAILED for each in stack) else stack] += weight
    return profile, profile[()] / (sum(profile.values()) or 1)


def leaf_method(stack: tuple[Frame, ...]) -> set[str]:
    """The Java method that ran, or that called the native code that ran."""
    return {next((each.name for each in reversed(stack) if each.is_java), NO_JAVA)}


def leaf_frame(stack: tuple[Frame, ...]) -> set[str]:
    """The frame that ran, or that called the kernel, whose frames not all of async-profiler's events have."""
    return {next((each.name for each in reversed(stack) if not each.is_kernel), NO_JAVA)}


def methods(stack: tuple[Frame, ...]) -> set[str]:
    """All Java methods of a stack."""
    return {each.name for each in stack if each.is_java} or {NO_JAVA}


def in_kernel(profile: Profile) -> int:
    """How many samples have a last frame in the kernel: 0 where the event does not show its frames."""
    return sum(weight for stack, weight in profile.items() if stack and stack[-1].is_kernel)


def shares(profile: Profile, of: Callable[[tuple[Frame, ...]], Iterable[str]]) -> dict[str, float]:
    """Of each name its share of all samples; a stack without frames has no name."""
    found: Counter[str] = Counter()
    for stack, weight in profile.items():
        for name in of(stack) if stack else ():
            found[name] += weight
    total = sum(profile.values()) or 1
    return {name: weight / total for name, weight in found.items()}


class Difference(NamedTuple):
    """Of the large rows. `most`, `mean`: points; `worst`: the row of `most`, with both shares.

    `lead`: of the other side's top row, by how many points it is behind our top row: 0 where both have the same.
    """

    most: float
    mean: float
    worst: str
    lead: float


def compare(ours: Mapping[str, float], theirs: Mapping[str, float]) -> Difference:
    """How far the shares are apart, over the rows that are large in either."""
    large = {name for side in (ours, theirs) for name, share in side.items() if share >= LARGE}
    apart = {name: 100 * abs(ours.get(name, 0) - theirs.get(name, 0)) for name in large}
    lead = 100 * (ours.get(top(ours), 0) - ours.get(top(theirs), 0))
    if not apart:
        return Difference(0, 0, "", lead)
    worst = max(apart, key=apart.__getitem__)
    text = f"{worst} {100 * ours.get(worst, 0):.1f} against {100 * theirs.get(worst, 0):.1f} %"
    return Difference(apart[worst], sum(apart.values()) / len(apart), text, lead)


def top(found: Mapping[str, float]) -> str:
    """The name with the largest share."""
    return max(found, key=lambda name: (found[name], name), default="")


def noise(found: Mapping[str, float], samples: int) -> float:
    """Points by which the largest row of this many samples is off at most in 95 % of all runs, by chance alone."""
    share = max(found.values(), default=0)
    return 196 * math.sqrt(share * (1 - share) / max(1, samples))
