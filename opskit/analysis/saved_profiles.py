"""Profiles that somebody has written already: collapsed stacks of any profiler, and opskit's own JSON. Pure.

main;com.example.Shop.serve;java.util.HashMap.get 412            root first; the last word is the count
java;[libjvm.so];java/util/HashMap.get_[j];do_syscall_64_[k] 7   other profilers' marks stay as they are
"""

from __future__ import annotations

import re
from typing import Any

from opskit.analysis.stacks import WeightedStack
from opskit.errors import BadInput
from opskit.quantities import decimal, integer

_LINE = re.compile(r"(.*\S)\s+([0-9]+(?:\.[0-9]+)?)\s*")
_NOT_EMPTY = re.compile(r"[^\n]+")
_NEGATIVE = re.compile(r".*\s-[0-9]+(?:\.[0-9]+)?\s*")
_TOO_MANY = 1 << 64
_LOOKED_AT = 50


def is_folded(text: str) -> bool:
    """Whether the text is meant to be collapsed stacks: most of its first lines are."""
    lines = [line for line in text[:100_000].split("\n")[:_LOOKED_AT] if line.strip()]
    fitting = sum(bool(_LINE.fullmatch(line) or _NEGATIVE.fullmatch(line)) for line in lines)
    return fitting * 2 >= len(lines) > 0 and any(";" in line for line in lines)


def parse_folded(text: str, source: str) -> list[WeightedStack]:
    """The stacks with their counts as samples; the same stack twice is added up. Raises BadInput."""
    counts: dict[tuple[str, ...], float] = {}
    known: dict[str, str] = {}  # each frame's name is kept once: a profile has few names and many stacks
    for found in _NOT_EMPTY.finditer(text):
        line = found[0]
        stack, _, word = line.rstrip().rpartition(" ")
        count: float | None = integer(word) if stack else None
        if count is None:
            if not line.strip():
                continue
            match = _LINE.fullmatch(line)
            count = decimal(match[2]) if match else None
            if match is None or count is None:
                problem = "a negative count" if _NEGATIVE.fullmatch(line) else "not `frame;frame;… count`"
                raise BadInput(source, problem, text.count("\n", 0, found.start()) + 1, line)
            stack = match[1]
        names = stack.rstrip().split(";")
        names.reverse()
        frames = tuple(map(known.setdefault, names, names))
        counts[frames] = counts.get(frames, 0) + count
    return [WeightedStack(frames, samples=round(weight)) for frames, weight in counts.items()]


def is_profile(document: Any) -> bool:
    """Whether a JSON document is what `-f json` writes."""
    return isinstance(document, dict) and isinstance(document.get("stacks"), list)


def parse_profile(document: dict[str, Any], source: str) -> list[WeightedStack]:
    """The stacks of opskit's own JSON. Raises BadInput."""
    return [_stack(entry, number, source) for number, entry in enumerate(document["stacks"])]


def _stack(entry: Any, number: int, source: str) -> WeightedStack:
    where = f"{source}: stacks[{number}]"
    if not isinstance(entry, dict):
        raise BadInput(where, "no object", found=_shown(entry))
    frames, pools = entry.get("frames"), entry.get("pools") or {}
    if not isinstance(frames, list) or not all(isinstance(frame, str) for frame in frames):
        raise BadInput(where, "frames is no list of strings", found=_shown(frames))
    if not isinstance(pools, dict) or not all(isinstance(count, int) and _is_number(count) for count in pools.values()):
        raise BadInput(where, "pools is no object of numbers", found=_shown(pools))
    samples, cpu_ms, threads = entry.get("samples"), entry.get("cpu_ms"), entry.get("threads")
    for name, value in (("samples", samples), ("cpu_ms", cpu_ms), ("threads", threads)):
        if value is not None and not _is_number(value):
            raise BadInput(where, f"{name} is no number from 0 up", found=_shown(value))
    state = entry.get("state")
    if state is not None and not isinstance(state, str):
        raise BadInput(where, "state is no string", found=_shown(state))
    return WeightedStack(
        frames=tuple(frames),
        state=state,
        samples=int(samples or 0),
        cpu_ms=cpu_ms,
        threads=threads,
        pools=pools,
        idle=entry.get("idle") is True,
        deadlocked=entry.get("deadlocked") is True,
    )


def _is_number(value: Any) -> bool:
    """Whether it is a number from 0 up that fits into 64 bits: JSON has Infinity, NaN and numbers of any length too."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < _TOO_MANY


def _shown(value: Any) -> str:
    try:
        return repr(value)
    except (RecursionError, ValueError):  # nested deeply, or a number of thousands of digits
        return type(value).__name__
