"""Numbers: parsed from foreign text, and formatted for output. The one place for sizes, durations, percentages and plurals.

Parsers return None for what is not such a number: int() and float() accept too much (`1_000`, ` 5`, `²`, `1e999`, a million digits).
Formatters return "unknown" for None, never 0.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MOST_DIGITS = 20  # 2**64 - 1 has twenty
_DECIMAL = re.compile(r"[0-9]{1,20}(?:[.,][0-9]{1,20})?")
_HEXADECIMAL = re.compile(r"(?:0[xX])?([0-9a-fA-F]{1,32})")
# Compiled where one is given.
_DURATION = r"([0-9]{1,20}(?:\.[0-9]{0,20})?|\.[0-9]{1,20})(ms|s|m|h)?"
_SIZE = r"([0-9]{1,20}(?:\.[0-9]{0,20})?|\.[0-9]{1,20})([KMGTP]?)(?:i?B)?"
_SECONDS = {"ms": 0.001, "s": 1.0, None: 1.0, "m": 60.0, "h": 3600.0}
_SIZE_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_LONGEST_S = 1e9


def integer(text: str | bytes) -> int | None:
    """A number of one to twenty ASCII digits; no sign, no blank."""
    if len(text) <= MOST_DIGITS and text.isascii() and text.isdigit():
        return int(text)
    return None


def signed(text: str | bytes) -> int | None:
    """The same with an optional minus sign."""
    if text[:1] in ("-", b"-"):
        number = integer(text[1:])
        return None if number is None else -number
    return integer(text)


def integers(words: Iterable[str | bytes]) -> list[int] | None:
    """Every word as a number; None if one of them is not a number."""
    numbers = [integer(word) for word in words]
    return None if None in numbers else numbers  # type: ignore[return-value]


def number_list(text: str, end: int) -> frozenset[int] | None:
    """The numbers below `end` of a list such as `0-3,8`, in ascending order as the kernel writes it; None for anything else."""
    numbers: set[int] = set()
    least = 0
    for part in text.strip().split(","):
        ends = integers(part.split("-", 1))
        if ends is None or not least <= ends[0] <= ends[-1] < end:
            return None
        least = ends[-1] + 1
        numbers.update(range(ends[0], least))
    return frozenset(numbers)


def number_ranges(numbers: Iterable[int]) -> str:
    """The list as the kernel writes it: `0-3,8`; empty without numbers. The inverse of number_list()."""
    ranges: list[list[int]] = []
    for number in sorted(set(numbers)):
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges)


def hexadecimal(text: str | bytes) -> int | None:
    """Up to 32 hexadecimal digits, with 0x or without."""
    found = _HEXADECIMAL.fullmatch(text if isinstance(text, str) else text.decode("latin-1"))
    return int(found[1], 16) if found else None


def decimal(text: str | bytes) -> float | None:
    """ASCII digits with an optional fraction after a point or a comma; no sign, no exponent, never infinite."""
    if isinstance(text, bytes):
        text = text.decode("latin-1")
    return float(text.replace(",", ".")) if _DECIMAL.fullmatch(text) else None


def seconds_of(text: str) -> float | None:
    """Seconds in `500ms`, `10s`, `5m`, `1h` or a plain number of seconds, at most 1e9."""
    found = re.fullmatch(_DURATION, text.strip())
    seconds = float(found[1]) * _SECONDS[found[2]] if found else None
    return None if seconds is None or seconds > _LONGEST_S else seconds


def bytes_of(text: str) -> int | None:
    """Bytes in `64K`, `10M`, `2G` (binary units) or a plain number of bytes."""
    found = re.fullmatch(_SIZE, text.strip(), re.IGNORECASE)
    return int(float(found[1]) * 1024 ** " KMGTP".index(found[2].upper() or " ")) if found else None


def plural(number: int, noun: str, nouns: str | None = None) -> str:
    """A count with its noun: `1 pipe`, `1,294 file descriptors`, `2 processes` (`nouns` if it is not noun + s)."""
    return f"{number:,} {agreeing(number, noun, nouns)}"


def agreeing(number: int, noun: str, nouns: str | None = None) -> str:
    """The noun alone, in the number that agrees."""
    return noun if number == 1 else nouns or noun + "s"


def listed(names: Sequence[str], most: int, comma: str = ", ", *, see: str = "") -> str:
    """The first of them: `main, worker-1, … 7 more`; with what shows the rest: `main, … 1,003 more (-n 0)`."""
    rest = len(names) - most
    return comma.join([*names[:most], f"… {rest:,} more{f' ({see})' if see else ''}"] if rest > 0 else names)


def size(count: float | None) -> str:
    """Bytes in binary units: 512 B, 8.0 KiB, 11.8 GiB."""
    if count is None:
        return "unknown"
    amount, power = float(count), 0
    while abs(amount) >= 1024 and power < len(_SIZE_UNITS) - 1:
        amount, power = amount / 1024, power + 1
    return f"{amount:.{0 if not power or abs(amount) >= 100 else 1}f} {_SIZE_UNITS[power]}"


def short_size(count: float | None) -> str:
    """The same without a needless decimal: 16 TiB, 23.5 GiB."""
    return size(count).replace(".0 ", " ")


def signed_size(count: float | None) -> str:
    """The same with a sign: +62.0 MiB."""
    return "unknown" if count is None else ("+" if count >= 0 else "-") + size(abs(count))


def sizes(counts: Sequence[int]) -> str:
    """Bytes that belong together, in the unit of the largest: 0.4 / 32 / 64 MiB."""
    power = min(max(max(counts).bit_length() - 1, 0) // 10, len(_SIZE_UNITS) - 1)
    amounts = (count / 1024**power for count in counts)
    return " / ".join(f"{each:.{0 if each >= 10 or not power else 1}f}" for each in amounts) + f" {_SIZE_UNITS[power]}"


def whole(count: float | None) -> str:
    """A count with thousands separators."""
    return "unknown" if count is None else f"{count:,.0f}"


def percent(share: float | None) -> str:
    """A share (0 to 1) of a whole: `49 %`, `0.3 %`, `under 0.1 %`, `99.9 %`. Only all of it is 100 %."""
    if share is None:
        return "unknown"
    number = share * 100
    if 0 < number < 0.05:
        return "under 0.1 %"
    if 99.5 <= number < 100:
        return f"{int(number * 10) / 10} %"
    return f"{number:.0f} %" if number >= 9.95 or number == 0 else f"{number:.1f} %"


_ONE = 0.9995  # of a unit: it is rounded to 1 of it, not to 1000 of the next one


def duration(seconds: float | None) -> str:
    """A time of any length: 85 us, 41 ms, 3.2 s, 1 min 27 s, 5 h 12 min, 12 days."""
    if seconds is None:
        return "unknown"
    if seconds >= 100:
        minutes, rest = divmod(round(seconds), 60)
        if minutes < 60:
            return f"{minutes} min {rest} s"
        hours = minutes // 60
        return f"{hours} h {minutes % 60} min" if hours < 72 else f"{hours // 24:,} days"
    if seconds >= _ONE:
        return f"{seconds:.1f} s"
    for unit, factor in (("ms", 1e3), ("us", 1e6)):
        if seconds * factor >= _ONE:
            return f"{seconds * factor:.{0 if seconds * factor >= 10 else 1}f} {unit}"
    return "0 s" if seconds == 0 else f"{seconds * 1e9:.0f} ns"


def short_duration(seconds: float | None) -> str:
    """A time for a narrow column: 45s, 12m3s, 5h12m, 12d5h."""
    if seconds is None:
        return "unknown"
    whole_s = int(seconds)
    for large, small, large_name, small_name in ((86400, 3600, "d", "h"), (3600, 60, "h", "m"), (60, 1, "m", "s")):
        if whole_s >= large:
            return f"{whole_s // large}{large_name}{whole_s % large // small}{small_name}"
    return f"{whole_s}s"


def plain(value: object) -> str:
    """A value for awk: no separators; "-" if it is unknown."""
    if value is None:
        return "-"
    return f"{value:g}" if isinstance(value, float) else str(value)


def twelve_digits(value: Any) -> Any:
    """A JSON value with floats of at most 12 significant digits: sums differ in the last ones between Pythons."""
    if isinstance(value, float):
        return float(f"{value:.12g}")
    if isinstance(value, dict):
        return {key: twelve_digits(item) for key, item in value.items()}
    return [twelve_digits(item) for item in value] if isinstance(value, list) else value
