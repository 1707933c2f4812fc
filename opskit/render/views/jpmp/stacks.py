"""Weighted stacks: a line each for awk, collapsed for flame graphs, fields for tables and JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opskit.analysis.jpmp.frames import short
from opskit.escape import printable
from opskit.render.fields import COUNT, FLAG, NUMBER, TEXT, Field, list_of, map_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from opskit.jvm.dumps.thread_dump import Waits
    from opskit.jvm.profiles import WeightedStack

_SHOWN_POOLS = 3

STACK: Sequence[Field[WeightedStack]] = (
    Field("frames", list_of(TEXT), value=lambda stack: list(stack.frames), help="leaf first; empty for a VM thread"),
    Field("samples", COUNT, help="how often threads were seen there"),
    Field("cpu_ms", NUMBER, value=lambda stack: None if stack.cpu_ms is None else round(stack.cpu_ms, 3)),
    Field("state", help="a java.lang.Thread.State"),
    Field("threads", COUNT, help="different threads"),
    Field("pools", map_of(COUNT), value=lambda stack: dict(stack.pools), help="thread names without numbers"),
    Field("container", help="executor or scope of virtual threads"),
    Field("idle", FLAG, help="waits for work"),
    Field("deadlocked", FLAG),
)
WAITS: Sequence[Field[Waits]] = (Field("thread"), Field("lock_class"), Field("address"), Field("owner"))


def leaf_first(stack: WeightedStack) -> str:
    """`j.lang.Thread.sleep,com.example.Cache.expire`: with a leading `java` shortened to `j`."""
    return printable(",".join(map(short, stack.frames)))


def leaf_first_in_full(stack: WeightedStack) -> str:
    """The same with full names."""
    return printable(",".join(stack.frames))


def root_first(stack: WeightedStack) -> str:
    """Collapsed, for flame graph tools: `com.example.Cache.expire;java.lang.Thread.sleep`."""
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
    """`pool-1-thread-* (120), main`: the threads of a stack."""
    shown = [f"{name} ({count})" if count > 1 else name for name, count in list(pools.items())[:_SHOWN_POOLS]]
    rest = len(pools) - len(shown)
    return ", ".join(shown) + (f", … {rest} more" if rest > 0 else "")


def columns(
    stacks: Sequence[WeightedStack], *, on_cpu: bool, full_names: bool, most_frames: int | None
) -> list[Field[Any]]:
    """The table's columns; shares are of all `stacks`. `most_frames`: the room for a stack on a terminal."""
    samples = sum(stack.samples for stack in stacks)
    known = [stack.cpu_ms for stack in stacks if stack.cpu_ms is not None]
    cpu_ms = sum(known) if known else None

    def frames(stack: WeightedStack) -> tuple[str, ...]:
        shown = stack.frames if full_names else tuple(map(short, stack.frames))
        if most_frames is not None and len(shown) > most_frames + 1:
            shown = (*shown[:most_frames], f"… {len(shown) - most_frames} more frames; --depth {len(shown)} shows all")
        whose = " in ".join(filter(None, (pools_line(stack.pools), stack.container)))
        return (f"{whose}:", *shown) if whose else shown

    by_samples: list[Field[Any]] = [
        Field("samples", COUNT, "samples"),
        Field("share", TEXT, "share", lambda stack: _share(stack.samples, samples), right=True),
        Field("state", TEXT, "state", lambda stack: "DEADLOCK" if stack.deadlocked else stack.state or "-"),
    ]
    by_cpu: list[Field[Any]] = []
    if cpu_ms is not None:
        by_cpu = [
            Field("cpu_ms", COUNT, "CPU ms"),
            Field("cpu_share", TEXT, "CPU share", lambda stack: _share(stack.cpu_ms, cpu_ms), right=True),
        ]
    weights = [*by_cpu, *by_samples] if on_cpu else [*by_samples, *by_cpu]
    return [*weights, Field("stack", TEXT, "stack", frames)]


def deadlock_line(links: Sequence[Waits]) -> str:
    """The sentence about one deadlock."""
    said = (
        f'"{link.thread}" waits for {link.lock_class or "a lock"} held by '
        + (f'"{link.owner}"' if link.owner is not None else "an unknown owner")
        for link in links
    )
    return f"deadlock of {len(links)} threads: {'; '.join(said)}"
