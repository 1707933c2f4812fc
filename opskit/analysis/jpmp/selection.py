"""Choose, merge and order weighted stacks. Pure."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from opskit.analysis.jpmp.frames import short
from opskit.records import NamedTuple

if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Hashable, Iterable

    from opskit.jvm.profiles import WeightedStack


class Selection(NamedTuple):
    """Which stacks are wanted. `idle` False drops stacks that wait for work; `depth` keeps that many frames."""

    states: frozenset[str] = frozenset()
    include: tuple[re.Pattern[str], ...] = ()
    exclude: tuple[re.Pattern[str], ...] = ()
    idle: bool = True
    depth: int | None = None


def select(stacks: Iterable[WeightedStack], selection: Selection) -> list[WeightedStack]:
    """Keep the wanted stacks; merge those that are equal up to the wanted depth."""
    wanted = [stack for stack in stacks if _is_wanted(stack, selection)]
    if selection.depth is not None:
        wanted = [stack._replace(frames=stack.frames[: selection.depth]) for stack in wanted]
    return merge(wanted, lambda stack: (stack.frames, stack.state, stack.idle, stack.container))


def _is_wanted(stack: WeightedStack, selection: Selection) -> bool:
    if selection.states and stack.state not in selection.states:
        return False
    if stack.idle and not selection.idle and not stack.deadlocked:
        return False
    if selection.include and not _matches(stack, selection.include):
        return False
    return not (selection.exclude and _matches(stack, selection.exclude))


def _matches(stack: WeightedStack, patterns: Iterable[re.Pattern[str]]) -> bool:
    """Whether a frame matches, by its name in the dump or in the output."""
    return any(pattern.search(frame) or pattern.search(short(frame)) for pattern in patterns for frame in stack.frames)


def merge(stacks: Iterable[WeightedStack], key: Callable[[WeightedStack], Hashable]) -> list[WeightedStack]:
    """Add up the stacks of the same key; the first of them gives frames and state."""
    merged: dict[Hashable, WeightedStack] = {}
    for stack in stacks:
        at = key(stack)
        other = merged.get(at)
        merged[at] = stack if other is None else _sum(other, stack)
    return list(merged.values())


def _sum(one: WeightedStack, other: WeightedStack) -> WeightedStack:
    pools = Counter(one.pools)
    pools.update(other.pools)
    return one._replace(
        samples=one.samples + other.samples,
        cpu_ms=None if one.cpu_ms is None and other.cpu_ms is None else (one.cpu_ms or 0) + (other.cpu_ms or 0),
        threads=None if one.threads is None and other.threads is None else (one.threads or 0) + (other.threads or 0),
        pools=dict(pools),
        deadlocked=one.deadlocked or other.deadlocked,
    )


def weight_of(stack: WeightedStack, *, on_cpu: bool) -> float:
    """The weight: CPU ms or samples."""
    return (stack.cpu_ms or 0) if on_cpu else stack.samples


def lines_by_weight(
    stacks: Iterable[WeightedStack], write: Callable[[WeightedStack], str], *, on_cpu: bool
) -> list[tuple[int, str]]:
    """(weight, stack as text), heaviest first, ties by bytes. Stacks without frames or weight are left out."""
    totals: dict[str, float] = {}
    for stack in stacks:
        if stack.frames:
            text = write(stack)
            totals[text] = totals.get(text, 0) + weight_of(stack, on_cpu=on_cpu)
    rows = [(round(weight), text) for text, weight in totals.items() if round(weight) > 0]
    rows.sort(key=lambda row: (-row[0], row[1].encode("utf-8", "surrogateescape")))
    return rows


def hottest_first(stacks: Iterable[WeightedStack]) -> list[WeightedStack]:
    """Deadlocked stacks, then by CPU time, then by samples; idle stacks last."""
    return sorted(
        stacks,
        key=lambda stack: (not stack.deadlocked, stack.idle, -round(stack.cpu_ms or 0), -stack.samples, stack.frames),
    )


def heaviest_first(stacks: Iterable[WeightedStack], on_cpu: bool) -> list[WeightedStack]:
    """Order by CPU time or by samples."""
    return sorted(stacks, key=lambda stack: (-weight_of(stack, on_cpu=on_cpu), stack.frames, stack.state or ""))
