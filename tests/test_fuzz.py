"""No input crashes a parser or takes it long: tests/support/fuzz.py with a few thousand inputs of each kind."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import fuzz
import pytest
from fuzztargets import TARGETS, Target

INPUTS = 1000
LARGE, SMALL = 64 << 10, 16 << 10
# Of CPU for such an input. The slowest parser needs 0.35 s for it, a quadratic one many seconds.
RUN_S = 0.6


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_no_input_brings_a_parser_down(name):
    """Damaged samples, pieces of the format, hostile numbers: a result or an error of the project, within 2 s of CPU."""
    _, count, failures = fuzz.fuzz(name, 1, 0, INPUTS)
    assert not failures, "\n".join(map(fuzz.told, failures))
    assert count.inputs == count.accepted + count.refused == INPUTS


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_runs_of_anything_are_read_in_time(monkeypatch, name):
    """64 KiB of each class of characters, words and lines, alone and inside a sample."""
    monkeypatch.setattr(fuzz, "LONGEST_S", RUN_S)
    slow = [
        f"{unit[:80]!r} within {data[:80]!r}…: {found[0]}: {found[1]}"
        for unit, data in fuzz.runs(name, LARGE, SMALL)
        if (found := fuzz.trial(name, data)) is not None and found[0]
    ]
    assert not slow, "\n".join(slow)


def broken(data):
    if data.startswith(b"loop"):
        while True:
            pass
    return {b"x": 1}[data[:1]]


def test_what_fails_is_told(monkeypatch):
    """Another exception and an endless loop are failures, each reported once, with a shortened input."""
    monkeypatch.setitem(TARGETS, "broken", Target(broken, (b"xyz" * 9, b"loop" * 9)))
    monkeypatch.setattr(fuzz, "LONGEST_S", 0.05)
    _, count, failures = fuzz.fuzz("broken", 1, 0, 40)
    assert {failure.where.partition(" ")[0] for failure in failures} == {"KeyError", "TooLong"}
    assert count.inputs - count.accepted - count.refused >= len(failures)
    assert fuzz.told(failures[-1]).startswith("broken (seed 1, number ")
    assert all(len(fuzz.shrunk(failure)) < 9 for failure in failures)


def test_an_input_is_known_by_its_number():
    """The same target, seed and number make the same input, in any order; another seed makes others."""
    first, again, other = (fuzz.Maker("histogram", seed) for seed in (1, 1, 2))
    made = [first.make(number) for number in range(300)]
    assert [again.make(number) for number in reversed(range(300))] == made[::-1]
    assert [other.make(number) for number in range(300)] != made


def test_any_number_by_the_command_line():
    """`python tests/support/fuzz.py N` prints a row for each parser and the sum."""
    script = str(Path(fuzz.__file__))
    done = subprocess.run(
        [sys.executable, script, "300", "--target", "option p*", "--seed", "7", "--jobs", "2"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    rows = [line.split()[:3] for line in done.stdout.splitlines()]
    assert rows[1:4] == [["option", "pid", "150"], ["option", "percent", "150"], ["all", "300", rows[3][2]]]
    assert done.stdout.endswith("0 kinds of failure; seed 7\n")
