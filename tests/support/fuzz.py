"""Damaged input for every parser.

    python tests/support/fuzz.py N [--target NAME] [--seed SEED] [--jobs JOBS]

N inputs are spread evenly over the targets of tests/support/fuzztargets.py. An input is made of real samples and pieces of the
format; target, seed and number determine it. A parser may return, or raise an error of the project. Anything else, and more
than 2 s of CPU for one input, is a failure. It is printed with target, seed, number and the input, shortened as far as it
still fails.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import re
import signal
import sys
import time
import traceback
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

sys.path.append(str(Path(__file__).resolve().parents[2]))  # opskit, if it is not installed

from fuzztargets import TARGETS, every_line_of, refusals

if TYPE_CHECKING:
    from collections.abc import Iterator

LONGEST_S = 2.0
LONGEST_BYTES = 64 << 10
RUN_BYTES = 256 << 10
_BATCH = 500
_MOST_TOKENS = 600
_MOST_LINES = 40
_SHOWN_BYTES = 600
_SHRINK_S = 20.0

NUMBERS = tuple(
    number.encode()
    for number in (
        "0", "-0", "1", "-1", "00", "007", "+5", "1_000", " 7", "4294967296", "2147483648", "9223372036854775807",
        "9223372036854775808", "18446744073709551615", "18446744073709551616", "9" * 19, "9" * 20, "9" * 21, "9" * 40,
        "9" * 310, "9" * 400, "9" * 4301, "1" + "0" * 5000, "²", "1²", "٣", "௧௨", "½", "1e999", "1e5", "-1e999", "NaN", "nan",
        "inf", "Infinity", "0x", "0x10", "0x" + "f" * 40, "ff", "1.", ".5", "1.5", "1,5", "1.5.5", "0.0000001", "9" * 310 + ".5",
        "0." + "0" * 330 + "1", "1" * 25 + "," + "1" * 25, "99999-99-99T99:99:99", "0000-00-00T00:00:00",
        "0001-01-01T00:00:00+2359", "9999-12-31T23:59:59.999-2359", "9999-12-31T23:59", "1e", "0b1", "0o7",
    )
)  # fmt: skip
PIECES = (
    b"\n", b"\n\n", b"\r\n", b"\r", b"\t", b" ", b"\0", b"\x1b[0m", b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xef\xbb\xbf",
    b"\xff\xfe", b"\xc2\x85", b"\xe2\x80\xa8", b"\x0b", b"\x0c", b"\x1c", b'"', b"'", b"\\", b"(", b")", b"[", b"]", b"{",
    b"}", b"<", b">", b":", b";", b",", b".", b"-", b"- ", b"--", b"/", b"@", b"#", b"=", b"*", b"%", b"$", b"_", b"+", b"|",
    b"\\ud800", b"\\u0000", b"{}", b"[]", b'""', b"null", b"true", b"at ",
)  # fmt: skip
_TOKEN = re.compile(rb"\w+|[ \t]+|\W")
_DIGITS = re.compile(rb"[0-9]+")
_UNITS = (b"0", b"9", b"a", b"f", b" ", b"\t", b"\n", b'"', b"(", b"[", b"{", b"<", b".", b":", b";", b"/", b"-", b"a.", b"a ", b"1 ", b"1:", b"[[{", b"\n\n", b" \n")  # fmt: skip
# What is repeated to make a run: one of each class of characters, pairs that make many short words or lines, nesting.
RUN_UNITS = (
    *(b"%c" % character for character in b"019aAfxS_ \t\n\r\0.,:;'\"()[]{}<>-+*=/@#$%&|\\"), "²".encode(), "٣".encode(), b"\xff",
    *(b"- ", b"at ", b"a ", b"1 ", b"1\n", b"a\n", b"a:", b"1:", b"1.", b"1-", b"-1", b"1,", b"a.", b"a/", b"a;", b"0x", b"0x1 a "),
    *(b'" ', b'"\n', b'\n"', b'"a" ', b" (", b") ", b"()", b"<>", b"[]", b"[ ", b"] ", b"[1]", b'{"', b"[{", b'{"a":', b'":', b'",'),
    *(b" \n", b"\n\n", b"\n\n ", b"\r\n", b"\r\r\n", b"\x1b[m", b"\x1b[1;", b"a=", b"a=b ", b"-Da= ", b"\\u", b'\\"', b"\0a", b"a\0"),
)  # fmt: skip
_LINE_ENDS = b"\r\n", b"\r", b"\0", b"\xc2\x85", b" \n", b"\n\n", b"\x0b"


class TooLong(BaseException):
    """An input took too long. No parser catches it."""


class Failure(NamedTuple):
    """An input that a parser failed on. `where`: the exception's type and the line of opskit that raised it."""

    target: str
    seed: int
    number: int
    where: str
    what: str
    data: bytes


class Count(NamedTuple):
    """Counts of the inputs of one target; `slowest_s` in seconds of CPU."""

    inputs: int = 0
    accepted: int = 0
    refused: int = 0
    slowest_s: float = 0.0
    slowest: int = 0


class Maker:
    """Maker of the inputs of one target."""

    def __init__(self, name: str, seed: int) -> None:
        self._key = f"{name}/{seed}"
        target = TARGETS[name]
        self._samples = target.samples or (b"",)
        tokens = dict.fromkeys(target.words)
        for sample in self._samples:
            tokens.update(dict.fromkeys(_TOKEN.findall(sample)[:_MOST_TOKENS]))
        self._tokens = (*tokens, *PIECES)

    def make(self, number: int) -> bytes:
        """The input with this number; the first ones are the samples themselves."""
        if number < len(self._samples):
            return self._samples[number]
        chance = random.Random(f"{self._key}/{number}")  # noqa: S311
        kind = chance.random()
        if kind < 0.8:
            data = chance.choice(self._samples)
            for _ in range(chance.choice((1, 1, 1, 2, 3, 6))):
                data = self._damage(data, chance)
        else:
            data = b"".join(self._piece(chance) for _ in range(chance.choice((1, 2, 4, 8, 20, 60))))
        return data[:LONGEST_BYTES]

    def _piece(self, chance: random.Random) -> bytes:
        kind = chance.random()
        if kind < 0.7:
            return chance.choice(self._tokens)
        if kind < 0.9:
            return chance.choice(NUMBERS)
        if kind < 0.97:
            return chance.choice(_UNITS) * int(2 ** (chance.random() * 9))
        return chance.randbytes(chance.randrange(1, 9))

    def _damage(self, data: bytes, chance: random.Random) -> bytes:
        at = chance.randrange(len(data) + 1)
        end = min(len(data), at + int(2 ** (chance.random() * 9)))
        kind = chance.randrange(11)
        if kind == 0:
            return data[:at] + data[end:]
        if kind == 1:
            return data[:end] + data[at:end] * chance.choice((1, 2, 20)) + data[end:]
        if kind in (2, 3):
            return data[:at] + self._piece(chance) + data[at:]
        if kind in (4, 5):
            runs = list(_DIGITS.finditer(data, at)) or list(_DIGITS.finditer(data))
            if runs:
                found = runs[0]
                return data[: found.start()] + chance.choice(NUMBERS) + data[found.end() :]
        if kind == 6:
            return data[:at] + self._piece(chance) + data[end:]
        if kind == 7:
            return data[:at]
        if kind == 8:
            lines = data.split(b"\n")
            one, other = chance.randrange(len(lines)), chance.randrange(len(lines))
            lines[one], lines[other] = lines[other], lines[one] * chance.choice((0, 1, 1))
            return b"\n".join(lines)
        if kind == 9:
            other = chance.choice(self._samples)
            return data[:at] + other[chance.randrange(len(other) + 1) :]
        return data.replace(b"\n", chance.choice(_LINE_ENDS)) if chance.random() < 0.5 else data[at:]


def runs(name: str, size: int = RUN_BYTES, size_of_lines: int = RUN_BYTES) -> Iterator[tuple[bytes, bytes]]:
    """Yield (what is repeated, the input): runs of that size alone, and inside a real sample.

    Repeated are characters of each class, and pieces of the format and lines of the samples, whole and cut in two.
    """
    target = TARGETS[name]
    lines = every_line_of(target.samples)
    pieces = dict.fromkeys(target.words)
    for line in lines[:: max(1, len(lines) // _MOST_LINES)]:
        pieces.update(dict.fromkeys((line + b"\n", line[: len(line) // 2], line[len(line) // 2 :])))
    pieces.pop(b"", None)
    for units, length in ((RUN_UNITS, size), (pieces, size_of_lines)):
        for unit in units:
            run = unit * (length // len(unit))
            chance = random.Random(f"{name}/{unit!r}")  # noqa: S311
            sample = chance.choice(target.samples or (b"",))
            at = chance.randrange(len(sample) + 1)
            yield unit, run
            yield unit, sample[:at] + run + sample[at:]


@contextlib.contextmanager
def guarded() -> Iterator[None]:
    """Raise TooLong where the block uses more of the CPU; a long call into C is noticed at its end."""
    seconds = LONGEST_S

    def too_long(*_: object) -> None:
        raise TooLong(f"more than {seconds:g} s of CPU")

    before = signal.signal(signal.SIGVTALRM, too_long)
    begun = time.process_time()
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
        if time.process_time() - begun > seconds:
            raise TooLong(f"{time.process_time() - begun:.1f} s of CPU")
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def trial(name: str, data: bytes) -> tuple[str, str] | None:
    """(where, what) of an input that fails; None if it is accepted; "" as where if it is refused."""
    try:
        with guarded():
            TARGETS[name].run(data)
    except refusals():
        return "", ""
    except (Exception, TooLong) as error:
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "opskit" in frame.filename]
        last = frames[-1] if frames else traceback.extract_tb(error.__traceback__)[-1]
        place = f"{last.filename.rpartition('opskit/')[2]}:{last.lineno} {last.name}"
        if isinstance(error, TooLong):  # its place is random
            place = f"{frames[0].filename.rpartition('opskit/')[2]}" if frames else "?"
        return f"{type(error).__name__} at {place}", str(error)[:200]
    return None


def fuzz(name: str, seed: int, begin: int, end: int) -> tuple[str, Count, list[Failure]]:
    """Try the inputs from `begin` up to `end`; return one failure of each kind."""
    maker = Maker(name, seed)
    accepted = refused = slowest = 0
    slowest_s = 0.0
    failures: dict[str, Failure] = {}
    for number in range(begin, end):
        data = maker.make(number)
        begun = time.process_time()
        found = trial(name, data)
        spent = time.process_time() - begun
        if spent > slowest_s:
            slowest_s, slowest = spent, number
        if found is None:
            accepted += 1
        elif not found[0]:
            refused += 1
        elif found[0] not in failures:
            failures[found[0]] = Failure(name, seed, number, *found, data)
    return name, Count(end - begin, accepted, refused, slowest_s, slowest), list(failures.values())


def shrunk(failure: Failure) -> bytes:
    """A shorter input that fails at the same place."""
    data, size = failure.data, len(failure.data) // 2
    until = time.monotonic() + _SHRINK_S
    while size and time.monotonic() < until:
        at = 0
        while at < len(data) and time.monotonic() < until:
            shorter = data[:at] + data[at + size :]
            found = trial(failure.target, shorter)
            if found is not None and found[0] == failure.where:
                data = shorter
            else:
                at += size
        size //= 2
    return data


def told(failure: Failure) -> str:
    """Format a failure."""
    data = shrunk(failure)
    shown = repr(data) if len(data) <= _SHOWN_BYTES else f"{data[:_SHOWN_BYTES]!r}… ({len(data)} bytes)"
    return (
        f"{failure.target} (seed {failure.seed}, number {failure.number}): {failure.where}: {failure.what}\n    {shown}"
    )


def _work(task: tuple[str, int, int, int]) -> tuple[str, Count, list[Failure]]:
    return fuzz(*task)


def _sum(one: Count, other: Count) -> Count:
    slower = max(one, other, key=lambda count: count.slowest_s)
    return Count(
        one.inputs + other.inputs,
        one.accepted + other.accepted,
        one.refused + other.refused,
        slower.slowest_s,
        slower.slowest,
    )


def main() -> int:
    """Print the counts and failures of each target; exit code 1 if there is a failure."""
    parser = argparse.ArgumentParser(description="Damaged input for every parser.")
    parser.add_argument("inputs", type=int, metavar="N", help="how many inputs, over all targets")
    parser.add_argument(
        "--target", action="append", metavar="NAME", help="only this one; repeatable, * as in file names"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    asked = parser.parse_args()
    from fnmatch import fnmatchcase

    names = [name for name in TARGETS if not asked.target or any(fnmatchcase(name, each) for each in asked.target)]
    if not names:
        parser.error(f"no such target; there are: {', '.join(TARGETS)}")
    each = -(-asked.inputs // len(names))
    tasks = [(name, asked.seed, at, min(at + _BATCH, each)) for at in range(0, each, _BATCH) for name in names]
    counts = dict.fromkeys(names, Count())
    failures: dict[tuple[str, str], Failure] = {}
    with get_context("fork").Pool(asked.jobs) as pool:
        for name, count, found in pool.imap_unordered(_work, tasks):
            counts[name] = _sum(counts[name], count)
            for failure in found:
                if (name, failure.where) not in failures:
                    failures[name, failure.where] = failure
                    print(told(failure), flush=True)
        pool.close()  # leaving the block would kill the workers before they remove their files
        pool.join()
    print(f"{'parser':<32}{'inputs':>10}{'accepted':>10}{'refused':>10}{'failed':>8}{'slowest ms':>12}")
    total = Count()
    for name, count in counts.items():
        total = _sum(total, count)
        print(_row(name, count))
    print(_row("all", total))
    print(f"{len(failures)} kinds of failure; seed {asked.seed}")
    return 1 if failures else 0


def _row(name: str, count: Count) -> str:
    failed = count.inputs - count.accepted - count.refused
    return (
        f"{name:<32}{count.inputs:>10}{count.accepted:>10}{count.refused:>10}{failed:>8}{count.slowest_s * 1e3:>12.1f}"
    )


if __name__ == "__main__":
    sys.exit(main())
