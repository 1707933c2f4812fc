"""Decode the histograms of HdrHistogram logs: base64 of a header, mostly compressed by zlib, and the counts of cells.

    cookie  what follows (big-endian)
    …301    V1: int bytes of counts, int index offset, int digits, long lowest, long highest, double ratio; counts of 2, 4 or 8 bytes
    …303    V2: the same header; counts in ZigZag LEB128, a negative one is a run of zeros
    …308    V0: int digits, long lowest, long highest, long total; counts of 2, 4 or 8 bytes
    …302 …304 …309      int length, then the same compressed (V1, V2, V0)
    0c72124e, -4f       DoubleHistogram: int digits, long highest to lowest; then one of the above (-4c, -4d: of V1)

Source: AbstractHistogram.java and DoubleHistogram.java of http://hdrhistogram.org
"""

from __future__ import annotations

import math
import zlib
from binascii import a2b_base64
from functools import lru_cache
from struct import Struct
from typing import TYPE_CHECKING

from opskit.jvm.logs.hdr.record import Layout, Payload

if TYPE_CHECKING:
    from collections.abc import Callable

MOST_BYTES = 16 << 20  # of an unpacked histogram
MOST_DIGITS = 5
_BASE = 0x1C849300
_COMPRESSED = {0x02: 0x01, 0x04: 0x03, 0x09: 0x08}
_VERSIONS = {0x01: 1, 0x03: 2, 0x08: 0}
_WORDS = (2, 4, 8)
_COUNT_BYTES = 9  # the most that a count takes in V2
_INTS = Struct(">iI")
_HEADER, _OLD_HEADER, _DOUBLE_HEADER = Struct(">iiiiqqd"), Struct(">iiqqq"), Struct(">iiq")
_DOUBLES = frozenset((0x0C72124C, 0x0C72124D, 0x0C72124E, 0x0C72124F))
_BASE64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_LARGEST = (1 << 63) - 1
_MOST_EXPONENT = 960  # of the ratio of decimal values: beyond it sums would overflow


class BadHistogram(Exception):  # noqa: N818  (it ends a line, not the command)
    """Why a histogram cannot be used: "its base64 is incomplete"."""


def parse_payload(text: bytes) -> Payload:
    """The histogram of a log line. Raises BadHistogram."""
    data = _from_base64(text)
    if len(data) < _INTS.size:
        raise BadHistogram("the histogram is incomplete")
    cookie, _ = _INTS.unpack_from(data)
    if cookie not in _DOUBLES:
        return _parse(data)
    if len(data) < _DOUBLE_HEADER.size + _INTS.size:
        raise BadHistogram("the histogram is incomplete")
    _, _, span = _DOUBLE_HEADER.unpack_from(data)
    return _parse(data[_DOUBLE_HEADER.size :], span)


def _from_base64(text: bytes) -> bytes:
    if text.rstrip(b"=").translate(None, _BASE64):
        raise BadHistogram("the histogram is not base64")
    if len(text) % 4:
        raise BadHistogram("the base64 of the histogram is incomplete")
    try:
        return a2b_base64(text)
    except ValueError:
        raise BadHistogram("the histogram is not base64") from None


def _parse(data: bytes, span: int | None = None) -> Payload:
    cookie, length = _INTS.unpack_from(data)
    kind = _kind(cookie)
    if kind in _VERSIONS:
        return _payload(cookie, data[: _HEADER.size], lambda most: data[:most], span)
    if kind not in _COMPRESSED:
        raise BadHistogram(f"the data is not a histogram: unknown cookie {cookie & 0xFFFFFFFF:08x}")
    packed = data[_INTS.size : _INTS.size + length]
    if len(packed) < length:
        raise BadHistogram(f"the histogram is incomplete: {len(packed):,} of {length:,} compressed bytes")
    stream = zlib.decompressobj()
    head = _unpacked(stream, packed, _HEADER.size)
    inner = _INTS.unpack_from(head)[0] if len(head) >= _INTS.size else 0
    if _kind(inner) != _COMPRESSED[kind]:
        raise BadHistogram("the header within the compressed data is not a histogram's")
    return _payload(inner, head, lambda most: head + _unpacked(stream, stream.unconsumed_tail, most - len(head)), span)


def _kind(cookie: int) -> int | None:
    """What the cookie says besides the size of a word; None: it is not a histogram's."""
    return cookie & 0x0F if cookie & ~0xFF == _BASE else None


def _unpacked(stream: zlib._Decompress, packed: bytes, most: int) -> bytes:
    try:
        return stream.decompress(packed, most) if most > 0 else b""
    except zlib.error:
        raise BadHistogram("the compressed data of the histogram is damaged") from None


def _payload(cookie: int, head: bytes, read: Callable[[int], bytes], span: int | None) -> Payload:
    """`read` gives so many bytes from the beginning, header included, or fewer where there are no more."""
    kind = cookie & 0x0F
    version, word = _VERSIONS[kind], 0 if kind == 0x03 else cookie >> 4 & 0x0F
    header = _OLD_HEADER if version == 0 else _HEADER
    if len(head) < header.size:
        raise BadHistogram("the header of the histogram is incomplete")
    if word not in _WORDS and version < 2:
        raise BadHistogram(f"counts of {word} bytes are unknown")
    length, offset, ratio = None, 0, 1.0
    if version == 0:
        _, digits, lowest, highest, _ = header.unpack_from(head)
    else:
        _, length, offset, digits, lowest, highest, ratio = header.unpack_from(head)
    cells = cells_of(digits, lowest, highest)
    fits = 0 < ratio < math.inf and abs(math.frexp(ratio)[1]) <= _MOST_EXPONENT
    if span is not None and not (fits and 1 < span < (1 << 61) // 10**digits):
        raise BadHistogram(
            f"the range of the decimal values is impossible: highest to lowest {span}, steps of {ratio:g}"
        )
    body = _body(read, header.size, length, cells * (word or _COUNT_BYTES))
    layout = Layout(digits, lowest, True, math.frexp(ratio)[0]) if span is not None else Layout(digits, lowest)
    # V2 writes the counts in the order of their values, whatever its offset; V1 as they stood in memory.
    place = offset % cells if version == 1 else 0
    return Payload(layout, version, word, cells, body, place, ratio if span is not None else 1.0, span or 2)


def _body(read: Callable[[int], bytes], begin: int, length: int | None, most: int) -> bytes:
    """The bytes of counts, `length` of them or all (None). `most`: as many as all cells take."""
    if length is not None and not 0 <= length <= most:
        raise BadHistogram(f"{length:,} bytes of counts do not fit the cells of the histogram: at most {most:,}")
    end = begin + (min(most, MOST_BYTES) if length is None else length)
    if end - begin > MOST_BYTES:
        raise BadHistogram(f"the histogram unpacks to {end - begin:,} bytes; at most {MOST_BYTES >> 20} MiB are read")
    data = read(end)
    if length is not None and len(data) < end:
        raise BadHistogram(f"the histogram is incomplete: {max(len(data) - begin, 0):,} of {length:,} bytes of counts")
    return data[begin:]


@lru_cache(maxsize=256)
def cells_of(digits: int, lowest: int, highest: int) -> int:
    """How many cells there are. Raises BadHistogram for a range that HdrHistogram refuses, too."""
    if not 0 <= digits <= MOST_DIGITS:
        raise BadHistogram(f"{digits} is not a number of digits from 0 to {MOST_DIGITS}")
    if lowest < 1 or highest < 2 * lowest:
        raise BadHistogram(f"{lowest} to {highest} is not a range of values")
    unit, half = unit_of(lowest), half_of(digits)
    if unit + half + 1 > 62:
        raise BadHistogram(f"{digits} digits do not fit a lowest value of {lowest}")
    buckets, limit = 1, 2 << half + unit
    while limit <= highest:
        buckets += 1
        if limit > _LARGEST // 2:
            break
        limit <<= 1
    return buckets + 1 << half


def half_of(digits: int) -> int:
    """The binary logarithm of half of the cells of the first power of two: 10 for 3 digits."""
    return max(math.ceil(math.log(2 * 10**digits) / math.log(2)), 1) - 1


def unit_of(lowest: int) -> int:
    """The binary logarithm of a cell's least width."""
    return math.floor(math.log(lowest) / math.log(2))
