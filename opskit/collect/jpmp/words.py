"""The arguments of `opskit jpmp` for a live JVM: [PID [SAMPLES] [INTERVAL]]."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.collect.jpmp.facts import DEFAULT_SAMPLES, Schedule
from opskit.collect.targets import WhichProcess, is_pid, resolve_jvm
from opskit.errors import UsageError
from opskit.quantities import integer, seconds_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opskit.collect.jpmp.facts import DumpKind
    from opskit.host import Host


def read_words(
    host: Host,
    words: Sequence[str],
    kind: DumpKind,
    samples: int | None = None,
    interval_s: float | None = None,
    max_stop_percent: float | None = None,
) -> tuple[int, Schedule]:
    """The PID, and the schedule by words or options. Raises UsageError for bad words, NoSuchProcess and WhichProcess."""
    name, numbers = (words[0], words[1:]) if words else (None, ())
    if len(numbers) > 2:
        raise UsageError(f"jpmp: {numbers[2]!r} is an unexpected argument after PID, SAMPLES and INTERVAL")
    for given, word, option in zip((samples, interval_s), ("SAMPLES", "INTERVAL")[: len(numbers)], ("-c", "-i")):
        if given is not None:
            raise UsageError(f"jpmp: {option} and {word} exclude each other: choose one")
    if numbers:
        samples = read_samples(numbers[0], name)
    if len(numbers) > 1:
        interval_s = read_interval(numbers[1])
    # A walk of the heap, or a file written by the JVM, happens once by default.
    default = DEFAULT_SAMPLES if kind == "threads" else 1
    schedule = Schedule(default if samples is None else samples, interval_s, max_stop_percent)
    try:
        return resolve_jvm(host, name), schedule
    except WhichProcess as which:
        if name is None or " match " in str(which):
            raise
        problem = f"{name!r} is not a file, and not part of a running JVM's main class or jar"
        raise WhichProcess(problem, which.lines) from None


def read_samples(word: str, name: str | None) -> int:
    """SAMPLES. Raises UsageError."""
    samples = integer(word)
    if samples is None and name is not None and not is_pid(name):
        raise UsageError(f"jpmp: {name!r} is not a file, and {word!r} is not a number of samples")
    if samples:
        return samples
    shown = repr(word) if samples is None else word
    raise UsageError(f"jpmp: SAMPLES is {shown}; give a whole number from 1 up, such as 20")


def read_interval(word: str) -> float:
    """INTERVAL in seconds. Raises UsageError."""
    seconds = seconds_of(word)
    if seconds is None:
        raise UsageError(f"jpmp: INTERVAL is {word!r}; give seconds from 0 up, 250ms, 2s or 1m")
    return seconds
