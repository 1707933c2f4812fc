"""Saved profiles: collapsed stacks of any profiler, and the JSON of `opskit jpmp`. Pure.

main;com.example.Shop.serve;java.util.HashMap.get 412            root first; the last word is the count
java;[libjvm.so];java/util/HashMap.get_[j];do_syscall_64_[k] 7   marks of other profilers are kept
"""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from opskit.errors import BadInput
from opskit.quantities import decimal, integer
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

_LINE = r"(.*\S)\s+([0-9]+(?:\.[0-9]+)?)\s*"  # compiled where a profile is read
_NEGATIVE = r".*\s-[0-9]+(?:\.[0-9]+)?\s*"
_TOO_LARGE = 1 << 64
_LINES_EXAMINED = 50


class WeightedStack(NamedTuple):
    """One stack and its weight. `frames` are leaf first; the root frame may be the name of a thread or pool.

    `cpu_ms`: None if not measured. `threads`: how many different ones. `pools`: thread names without their numbers, and the
    number of threads of each. `container`: the executor or scope of virtual threads. `idle`: the threads wait for work.
    `off_cpu_ms`: time in which its threads did not run. `kinds`: of each frame; empty where the profile has none.
    """

    frames: tuple[str, ...]
    state: str | None = None
    samples: int = 0
    cpu_ms: float | None = None
    threads: int | None = None
    pools: Mapping[str, int] = MappingProxyType({})
    container: str | None = None
    idle: bool = False
    deadlocked: bool = False
    off_cpu_ms: float | None = None
    kinds: tuple[str, ...] = ()


def is_folded(text: str) -> bool:
    """Whether most of the first lines are collapsed stacks."""
    lines = [line for line in text[:100_000].split("\n")[:_LINES_EXAMINED] if line.strip()]
    fitting = sum(bool(re.fullmatch(_LINE, line) or re.fullmatch(_NEGATIVE, line)) for line in lines)
    return fitting * 2 >= len(lines) > 0 and any(";" in line for line in lines)


def parse_folded(text: str, source: str) -> list[WeightedStack]:
    """Read collapsed stacks; counts become samples, equal stacks are added up. Raises BadInput."""
    counts: dict[tuple[str, ...], float] = {}
    known: dict[str, str] = {}  # a profile has few names and many stacks: each name is kept once
    for found in re.finditer(r"[^\n]+", text):
        line = found[0]
        stack, _, word = line.rstrip().rpartition(" ")
        count: float | None = integer(word) if stack else None
        if count is None:
            if not line.strip():
                continue
            match = re.fullmatch(_LINE, line)
            count = decimal(match[2]) if match else None
            if match is None or count is None:
                problem = "a negative count" if re.fullmatch(_NEGATIVE, line) else "not `frame;frame;… count`"
                raise BadInput(source, problem, text.count("\n", 0, found.start()) + 1, line)
            stack = match[1]
        names = stack.rstrip().split(";")
        names.reverse()
        frames = tuple(map(known.setdefault, names, names))
        counts[frames] = counts.get(frames, 0) + count
    return [WeightedStack(frames, samples=round(weight)) for frames, weight in counts.items()]


def is_profile(document: Any) -> bool:
    """Whether a JSON document has the form that `opskit jpmp -f json` writes."""
    return isinstance(document, dict) and isinstance(document.get("stacks"), list)


def parse_profile(document: dict[str, Any], source: str) -> list[WeightedStack]:
    """Read the stacks of `opskit jpmp -f json`. Raises BadInput."""
    return [_stack(entry, f"{source}: stacks[{number}]") for number, entry in enumerate(document["stacks"])]


def _stack(entry: Any, where: str) -> WeightedStack:
    def check(is_valid: object, problem: str, value: object) -> None:
        if not is_valid:
            raise BadInput(where, problem, found=_shown(value))

    check(isinstance(entry, dict), "not an object", entry)
    frames, pools, state = entry.get("frames"), entry.get("pools") or {}, entry.get("state")
    weights = {name: entry.get(name) for name in ("samples", "cpu_ms", "threads", "off_cpu_ms")}
    strings = isinstance(frames, list) and all(isinstance(frame, str) for frame in frames)
    check(strings, "frames is not a list of strings", frames)
    numbers = isinstance(pools, dict) and all(isinstance(count, int) and _is_number(count) for count in pools.values())
    check(numbers, "pools is not an object of numbers", pools)
    for name, value in weights.items():
        check(value is None or _is_number(value), f"{name} is not a number >= 0", value)
    check(state is None or isinstance(state, str), "state is not a string", state)
    idle, deadlocked = (entry.get(name) is True for name in ("idle", "deadlocked"))
    kinds = entry.get("kinds") or []
    named = isinstance(kinds, list) and all(isinstance(kind, str) for kind in kinds)
    check(named and len(kinds) in (0, len(frames)), "kinds is not a list of strings, one for each frame", kinds)
    count = int(weights["samples"] or 0)  # a number
    cpu_ms, threads, off_cpu_ms = weights["cpu_ms"], weights["threads"], weights["off_cpu_ms"]
    return WeightedStack(
        tuple(frames), state, count, cpu_ms, threads, pools, None, idle, deadlocked, off_cpu_ms, tuple(kinds)
    )


def _is_number(value: Any) -> bool:
    """Whether it is a number >= 0 that fits in 64 bits: JSON also has Infinity, NaN and numbers of any length."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < _TOO_LARGE


def _shown(value: Any) -> str:
    try:
        return repr(value)
    except (RecursionError, ValueError):  # nested deeply, or a number of thousands of digits
        return type(value).__name__
