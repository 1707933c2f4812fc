"""Answers to questions (Calls.ask) as JSON values, and back by the types that the questions are annotated with.

None, numbers and text are themselves. Bytes are text where they are printable ASCII, else {"base64": …} or, from 4 KiB,
{"deflated": …}. A tuple, a list or a named tuple is a list; a dict a list of pairs; a set of numbers is its ranges: [0, 3, 8, 8].
A JSON value comes from a stranger: what does not fit the type raises BadInput.
"""

from __future__ import annotations

import math
import re
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from opskit.errors import BadInput

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Decode = Callable[[Any], Any]

# The named tuples that answers hold. Nothing else is imported by a name.
_RECORDS = {
    "Buffers": "opskit.jvm.memory.direct_memory",
    "ClockPair": "opskit.proc.kernel.clock_reads",
    "FileId": "opskit.proc.file_id",
    "FileTimes": "opskit.proc.kernel.syscalls",
    "KernelClock": "opskit.proc.kernel.adjtimex",
    "KernelLog": "opskit.proc.kernel.kmsg",
    "Malloc": "opskit.proc.malloc.record",
    "Manageable": "opskit.jvm.memory.flags",
    "NetQueue": "opskit.proc.net_queues",
    "Range": "opskit.proc.ranges",
    "ReadCost": "opskit.proc.kernel.clock_reads",
    "Rights": "opskit.proc.rights",
}
_TOKEN = re.compile(r"[A-Za-z_]+|\.\.\.|[\[\],|]")
_PRINTABLE = re.compile(rb"[\t\n\x20-\x7e]*")
_LEAST_DEFLATED, _MOST_BYTES = 4096, 256 << 20
_LEAST, _MOST = -(1 << 63), 1 << 64
_MOST_IN_RANGES = 1 << 16


def encode(value: Any) -> Any:
    """The JSON value of an answer. Raises ValueError for what no answer may hold."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int) and _LEAST <= value < _MOST:
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    if isinstance(value, (bytes, bytearray)):
        return _of_bytes(bytes(value))
    if isinstance(value, (tuple, list)):
        return [encode(each) for each in value]
    if isinstance(value, dict):
        return [[encode(key), encode(each)] for key, each in value.items()]
    if isinstance(value, (frozenset, set)):
        is_numbers = all(type(each) is int for each in value)
        return _ranges(value) if is_numbers else sorted(map(encode, value), key=repr)
    raise ValueError(f"no answer may hold {type(value).__name__}")


def decode(value: Any, annotation: str) -> Any:
    """The answer of an annotated type, `tuple[int, int, FileId] | None`. Raises BadInput."""
    try:
        return decoder(annotation)(value)
    except _UnfitError:
        raise BadInput("the capture", f"a recorded answer is no {annotation}") from None


class _UnfitError(Exception):
    """The JSON value has another type."""


@cache
def decoder(annotation: str) -> Decode:
    """Makes a value of a type from JSON. Raises KeyError for a type that no answer may have."""
    tokens = _TOKEN.findall(annotation)[::-1]
    found = _union(tokens)
    if tokens:
        raise KeyError(annotation)
    return found


def _union(tokens: list[str]) -> Decode:
    """`A | B`, the first that fits."""
    first = _single(tokens)
    if not tokens or tokens[-1] != "|":
        return first
    tokens.pop()
    return _either(first, _union(tokens))


def _single(tokens: list[str]) -> Decode:
    """A name, with its arguments."""
    name = tokens.pop()
    inner: list[Decode] = []
    is_any_length = False
    if tokens and tokens[-1] == "[":
        while tokens.pop() != "]":
            if tokens[-1] == "...":
                is_any_length = True
                tokens.pop()
            else:
                inner.append(_union(tokens))
    if name == "tuple":
        return _tuple(inner, is_any_length=is_any_length)
    if inner:
        return _GENERIC[name](*inner)
    if name in _ALIASES:
        return decoder(_ALIASES[name])
    return _PLAIN[name] if name in _PLAIN else _record(name)


def _either(first: Decode, second: Decode) -> Decode:
    def decode_(value: Any) -> Any:
        try:
            return first(value)
        except _UnfitError:
            return second(value)

    return decode_


def _exactly(wanted: type) -> Decode:
    def decode_(value: Any) -> Any:
        if type(value) is not wanted:
            raise _UnfitError
        return value

    return decode_


def _int(value: Any) -> int:
    if type(value) is not int or not _LEAST <= value < _MOST:
        raise _UnfitError
    return value


def _float(value: Any) -> float:
    if type(value) is float and math.isfinite(value):
        return value
    return _int(value)


def _bytes(value: Any) -> bytes:
    try:
        if type(value) is str:
            return value.encode("ascii")
        if type(value) is dict and len(value) == 1:
            return _unpacked(*next(iter(value.items())))
    except ValueError:
        pass
    raise _UnfitError


def _unpacked(how: str, text: Any) -> bytes:
    import binascii
    import zlib

    if type(text) is not str or how not in ("base64", "deflated"):
        raise _UnfitError
    data = binascii.a2b_base64(text.encode("ascii"))  # its Error is a ValueError
    if how == "base64":
        return data
    try:
        engine = zlib.decompressobj()
        found = engine.decompress(data, _MOST_BYTES)
    except zlib.error:
        raise _UnfitError from None
    if engine.unconsumed_tail or not engine.eof:
        raise _UnfitError
    return found


def _of_bytes(data: bytes) -> Any:
    if _PRINTABLE.fullmatch(data):
        return data.decode("ascii")
    import binascii
    import zlib

    how, packed = ("base64", data) if len(data) < _LEAST_DEFLATED else ("deflated", zlib.compress(data, 1))
    return {how: binascii.b2a_base64(packed, newline=False).decode("ascii")}


def _ranges(numbers: frozenset[int] | set[int]) -> list[int]:
    """The first and the last of each range."""
    found: list[int] = []
    for number in sorted(numbers):
        if found and number == found[-1] + 1:
            found[-1] = number
        else:
            found += (number, number)
    return found


def _in_ranges(value: list[Any]) -> Iterator[int]:
    left = _MOST_IN_RANGES
    ends = [_int(each) for each in value]
    if len(ends) % 2:
        raise _UnfitError
    for first, last in zip(ends[::2], ends[1::2]):
        left -= last - first + 1
        if left < 0 or last < first:
            raise _UnfitError
        yield from range(first, last + 1)


def _list_of(inner: Decode) -> Decode:
    def decode_(value: Any) -> Any:
        return [inner(each) for each in _exactly(list)(value)]

    return decode_


def _tuple(inner: list[Decode], *, is_any_length: bool) -> Decode:
    if is_any_length:
        (each_,) = inner
        return lambda value: tuple([each_(each) for each in _exactly(list)(value)])
    return lambda value: tuple(_fields(value, inner, len(inner)))


def _set_of(inner: Decode) -> Decode:
    def decode_(value: Any) -> Any:
        items = _exactly(list)(value)
        try:
            return frozenset(_in_ranges(items) if inner is _int else map(inner, items))
        except TypeError:  # one that cannot be hashed
            raise _UnfitError from None

    return decode_


def _dict_of(key: Decode, each: Decode) -> Decode:
    def decode_(value: Any) -> Any:
        try:
            return dict(tuple(_fields(pair, [key, each], 2)) for pair in _exactly(list)(value))
        except TypeError:
            raise _UnfitError from None

    return decode_


def _record(name: str) -> Decode:
    """A named tuple; a capture of an older opskit lacks fields that have defaults."""
    made = getattr(import_module(_RECORDS[name]), name)
    inner = [decoder(each) for each in made.__annotations__.values()]
    least = len(inner) - len(made._field_defaults)
    return lambda value: made(*_fields(value, inner, least))


def _fields(value: Any, inner: list[Decode], least: int) -> list[Any]:
    if type(value) is not list or not least <= len(value) <= len(inner):
        raise _UnfitError
    return [each(item) for each, item in zip(inner, value)]


_ALIASES = {"FlagValue": "bool | int | float | str | None"}
_PLAIN: dict[str, Decode] = {
    "None": _exactly(type(None)), "bool": _exactly(bool), "int": _int, "float": _float, "str": _exactly(str), "bytes": _bytes,
}  # fmt: skip
_GENERIC: dict[str, Callable[..., Decode]] = {
    "list": _list_of, "frozenset": _set_of, "set": _set_of, "dict": _dict_of,
}  # fmt: skip
