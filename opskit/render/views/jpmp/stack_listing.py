"""Weighted stacks on a terminal: a line with the weight, the state and the threads; below it the stack, one frame a line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.analysis.jpmp.frames import short
from opskit.analysis.jpmp.idle import returns_often
from opskit.analysis.jpmp.libraries import is_jdk
from opskit.quantities import listed, plural
from opskit.render.report import Listing
from opskit.render.views.jpmp.sentences import SEEN_AT_RETURNS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opskit.analysis.jpmp.stacks import Weight
    from opskit.jvm.profiles import WeightedStack

MOST_FRAMES = 12
LEAST_ROWS = 2
_SHOWN_NAMES = 3
_SKIPPED = 2  # frames next to the leaf; a line that stands for fewer saves none


def stack_listing(
    stacks: Sequence[WeightedStack],
    *,
    by: Weight = "samples",
    counted: str = "samples",
    full_names: bool,
    whole: bool,
    rooted: bool,
) -> Listing:
    """Shares are of all `stacks`. `whole`: show all frames. `rooted`: the root frame is the name of the threads.

    `counted`: what samples count.
    """
    samples = sum(stack.samples for stack in stacks)
    cpu_ms, off_ms = (sum(getattr(stack, of) or 0.0 for stack in stacks) for of in ("cpu_ms", "off_cpu_ms"))

    def lines(stack: WeightedStack, detail: int, _: int | None) -> list[str]:
        weights = [f"{counted_words(stack.samples, counted)} ({share_of(stack.samples, samples)})"]
        if stack.cpu_ms is not None and by != "off_cpu_ms" and (by == "cpu_ms" or round(stack.cpu_ms)):
            used = f"{stack.cpu_ms:,.0f} ms of CPU" + (f" ({share_of(stack.cpu_ms, cpu_ms)})" if cpu_ms else "")
            weights.insert(0 if by == "cpu_ms" else 1, used)
        if by == "off_cpu_ms":
            weights.insert(
                0, f"{stack.off_cpu_ms or 0:,.0f} ms off CPU ({share_of(stack.off_cpu_ms, off_ms) or '0 %'})"
            )
        state = "DEADLOCK" if stack.deadlocked else stack.state
        names = stack.frames[-1] if rooted and stack.frames else whose(stack)
        head = "  ".join(filter(None, (", ".join(weights), state, names)))
        frames = stack.frames[:-1] if rooted else stack.frames
        shown = [*(frames if full_names else map(short, frames))]
        kept = shown if whole else chosen(frames, shown, detail)
        if by == "cpu_ms" and frames and returns_often(frames[0]):
            kept = [f"{kept[0]}  ({SEEN_AT_RETURNS})", *kept[1:]]
        return [head, *(f"  {frame}" for frame in kept)]

    return Listing(lines, MOST_FRAMES, LEAST_ROWS)


def counted_words(number: int, counted: str) -> str:
    """`1 sample`, `4,096 bytes`."""
    return plural(number, "sample") if counted == "samples" else f"{number:,} {counted}"


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
    if 1 + skips + len(shown) - first < most:  # nothing is left out behind them
        return [shown[0], f"… {plural(first - 1, 'frame')} of the JDK", *shown[first:]]
    last = first + max(0, most - 2 - skips)
    return [
        shown[0],
        *([f"… {plural(first - 1, 'frame')} of the JDK"] if skips else ()),
        *shown[first:last],
        f"… {plural(len(shown) - last, 'more frame')}; --depth {len(shown)} shows all",
    ][: max(most, 1)]
