"""Weighted stacks on a terminal: a line with the weight, the state and the threads; below it the stack, one frame a line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.analysis.jpmp.frames import short
from opskit.analysis.jpmp.libraries import is_jdk
from opskit.quantities import listed, plural
from opskit.render.report import Listing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opskit.jvm.profiles import WeightedStack

_MOST_FRAMES = 12
_LEAST_ROWS = 2
_SHOWN_NAMES = 3
_SKIPPED = 2  # frames next to the leaf; a line that stands for fewer saves none


def stack_listing(
    stacks: Sequence[WeightedStack], *, on_cpu: bool, full_names: bool, whole: bool, rooted: bool
) -> Listing:
    """Shares are of all `stacks`. `whole`: show all frames. `rooted`: the root frame is the name of the threads."""
    samples = sum(stack.samples for stack in stacks)
    known = [stack.cpu_ms for stack in stacks if stack.cpu_ms is not None]
    cpu_ms = sum(known)

    def lines(stack: WeightedStack, detail: int, _: int | None) -> list[str]:
        weights = [f"{plural(stack.samples, 'sample')} ({share_of(stack.samples, samples)})"]
        if stack.cpu_ms is not None and (on_cpu or round(stack.cpu_ms)):
            used = f"{stack.cpu_ms:,.0f} ms of CPU" + (f" ({share_of(stack.cpu_ms, cpu_ms)})" if cpu_ms else "")
            weights.insert(0 if on_cpu else 1, used)
        state = "DEADLOCK" if stack.deadlocked else stack.state
        names = stack.frames[-1] if rooted and stack.frames else whose(stack)
        head = "  ".join(filter(None, (", ".join(weights), state, names)))
        frames = stack.frames[:-1] if rooted else stack.frames
        shown = [*(frames if full_names else map(short, frames))]
        return [head, *(f"  {frame}" for frame in (shown if whole else chosen(frames, shown, detail)))]

    return Listing(lines, _MOST_FRAMES, _LEAST_ROWS)


def share_of(part: float | None, total: float) -> str:
    """`56.5 %`; empty where it is unknown."""
    return f"{100 * part / total:.1f} %" if part is not None and total else ""


def whose(stack: WeightedStack) -> str:
    """`http-nio-8080-exec-* (35)`: the threads, by the names of their pools, and where virtual threads run."""
    pools = [f"{name} ({count})" if name and count > 1 else name or str(count) for name, count in stack.pools.items()]
    return " in ".join(filter(None, (listed(pools, _SHOWN_NAMES), stack.container)))


def chosen(frames: Sequence[str], shown: Sequence[str], most: int) -> list[str]:
    """At most so many lines: the leaf, then the frames from the first one outside of the JDK on, which say more."""
    if len(shown) <= max(most, 1):
        return [*shown]
    outside = next((place for place, frame in enumerate(frames) if not is_jdk(frame)), 0)
    skips = outside > _SKIPPED
    first = outside if skips else 1
    last = first + max(0, most - 2 - skips)
    return [
        shown[0],
        *([f"… {plural(first - 1, 'frame')} of the JDK"] if skips else ()),
        *shown[first:last],
        f"… {plural(len(shown) - last, 'more frame')}; --depth {len(shown)} shows all",
    ][: max(most, 1)]
