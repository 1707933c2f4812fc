"""How weighted stacks are shown: a line each for awk, collapsed for flame graphs, columns for tables, keys for JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opskit.analysis.frames import short
from opskit.escape import printable
from opskit.quantities import whole
from opskit.render.report import Column

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from opskit.analysis.stacks import WeightedStack
    from opskit.jvm.dumps.thread_dump import Waits

_SHOWN_POOLS = 3


def leaf_first(stack: WeightedStack) -> str:
    """`j.lang.Thread.sleep,com.example.Cache.expire`: a leading `java` cut to `j`."""
    return printable(",".join(map(short, stack.frames)))


def leaf_first_in_full(stack: WeightedStack) -> str:
    """The same with the names as they are."""
    return printable(",".join(stack.frames))


def root_first(stack: WeightedStack) -> str:
    """Collapsed, as flame graphs want it: `com.example.Cache.expire;java.lang.Thread.sleep`."""
    return printable(";".join(frame.replace(";", ":") for frame in reversed(stack.frames)))


def count_lines(rows: Iterable[tuple[int, str]]) -> Iterator[str]:
    """`uniq -c`: the weight in 7 columns, a space, the stack."""
    return (f"{weight:7d} {text}" for weight, text in rows)


def folded_lines(rows: Iterable[tuple[int, str]]) -> Iterator[str]:
    """The stack, a space, the weight."""
    return (f"{text} {weight}" for weight, text in rows)


def _share(part: float | None, total: float | None) -> str:
    return "" if part is None or not total else f"{100 * part / total:.1f} %"


def pools_line(pools: Mapping[str, int]) -> str:
    """`pool-1-thread-* (120), main`: whose stack it is."""
    shown = [f"{name} ({count})" if count > 1 else name for name, count in list(pools.items())[:_SHOWN_POOLS]]
    rest = len(pools) - len(shown)
    return ", ".join(shown) + (f", … {rest} more" if rest > 0 else "")


def columns(
    stacks: Sequence[WeightedStack], *, on_cpu: bool, full_names: bool, most_frames: int | None
) -> list[Column[WeightedStack]]:
    """The table's columns; shares are of all `stacks`. `most_frames`: how much of a stack a screen has room for."""
    samples = sum(stack.samples for stack in stacks)
    known = [stack.cpu_ms for stack in stacks if stack.cpu_ms is not None]
    cpu_ms = sum(known) if known else None

    def frames(stack: WeightedStack) -> tuple[str, ...]:
        shown = stack.frames if full_names else tuple(map(short, stack.frames))
        if most_frames is not None and len(shown) > most_frames + 1:
            shown = (*shown[:most_frames], f"… {len(shown) - most_frames} more frames; --depth {len(shown)} shows all")
        whose = " in ".join(filter(None, (pools_line(stack.pools), stack.container)))
        return (f"{whose}:", *shown) if whose else shown

    found: list[Column[WeightedStack]] = [
        Column("samples", lambda stack: stack.samples, whole, right=True),
        Column("share", lambda stack: _share(stack.samples, samples), right=True),
        Column("state", lambda stack: "DEADLOCK" if stack.deadlocked else stack.state or "-"),
    ]
    if cpu_ms is not None:
        found.append(Column("CPU ms", lambda stack: stack.cpu_ms, whole, right=True))
        found.append(Column("CPU share", lambda stack: _share(stack.cpu_ms, cpu_ms), right=True))
    if on_cpu:
        found = [*found[3:], *found[:3]]
    found.append(Column("stack", frames))
    return found


def stack_object(stack: WeightedStack) -> dict[str, Any]:
    """One stack for JSON; `frames` leaf first."""
    return {
        "frames": list(stack.frames),
        "samples": stack.samples,
        "cpu_ms": None if stack.cpu_ms is None else round(stack.cpu_ms, 3),
        "state": stack.state,
        "threads": stack.threads,
        "pools": dict(stack.pools),
        "container": stack.container,
        "idle": stack.idle,
        "deadlocked": stack.deadlocked,
    }


def deadlock_line(links: Sequence[Waits]) -> str:
    """The sentence about one deadlock."""
    said = (
        f'"{link.thread}" waits for {link.lock_class or "a lock"} held by '
        + (f'"{link.owner}"' if link.owner is not None else "an unknown owner")
        for link in links
    )
    return f"deadlock of {len(links)} threads: {'; '.join(said)}"


def deadlock_object(links: Sequence[Waits]) -> list[dict[str, Any]]:
    """One deadlock for JSON: its links."""
    return [link._asdict() for link in links]
