"""The counts of a histogram's cells.

A histogram of many cells, most of them with small counts, becomes one large integer: a field of 16 bits for each cell, the first in the
lowest bits. So those of a thousand intervals are added by a thousand additions. Others come as blocks.
"""

from __future__ import annotations

import re
import sys
from array import array
from functools import lru_cache
from typing import TYPE_CHECKING

from opskit.jvm.logs.hdr.codec import BadHistogram
from opskit.jvm.logs.hdr.record import Counts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opskit.jvm.logs.hdr.record import Payload

FIELD_BYTES = 2
FIELD_BITS = 8 * FIELD_BYTES
FIELD_MOST = (1 << FIELD_BITS) - 1
_MOST_PACKED = 1 << 17  # cells, in 256 KiB
_MOST_PACKED_BYTES = 1 << 16  # of a body, before it is known how many cells it stands for
_PIECE_BYTES = 1 << 15
_MANY = 64
_MOST_TOTAL = (1 << 63) - 1
_SMALL, _MEDIUM = 63, 8191  # the largest counts of one and of two bytes
_LONG = re.compile(rb"([\x80-\xff]{1,7}[\x00-\x7f]|[\x80-\xff]{8}[\x00-\xff])")  # a number of two to nine bytes
_MORE = bytes(128) + b"\1" * 128  # 1: more bytes of the number follow
_STEPS = bytes(byte + 1 >> 1 if byte & 1 else 1 for byte in range(128)) + bytes(128)  # how many cells a byte stands for
_COUNTS = bytes(0 if byte & 1 else byte >> 1 for byte in range(128)) + bytes(128)
_FIELDS = [bytes(byte + 1) if byte & 1 else (byte >> 1).to_bytes(FIELD_BYTES, "little") for byte in range(128)]
_CODES = {2: "h", 4: "i", 8: "q"}


def counts_of(payload: Payload) -> Counts:
    """Decode the counts. Raises BadHistogram."""
    if payload.word:
        return _packed_words(payload) or _words(payload)
    return _packed_runs(payload) or _runs(payload)


def fields_of(data: bytes) -> array[int]:
    """Fields of 16 bits as numbers."""
    fields = array("H")
    fields.frombytes(data)
    if sys.byteorder == "big":
        fields.byteswap()
    return fields


def _packed(fields: bytes | bytearray, field: int) -> Counts:
    packed = int.from_bytes(fields, "little")
    return Counts(packed, field, (), field * (len(fields) // FIELD_BYTES), (packed.bit_length() - 1) // FIELD_BITS)


def _packed_runs(payload: Payload) -> Counts | None:
    """None where there are too many cells or a count is too large for this."""
    body = payload.body
    if len(body) > _MOST_PACKED_BYTES:
        return None
    field, span = _SMALL, 0
    out: list[bytes] = []
    more, view = body.translate(_MORE), memoryview(body)
    end, begin = 0, more.find(1)
    while begin >= 0:
        _small_counts(view[end:begin], out)
        last = more.find(0, begin)
        if not 0 < last - begin < 8:
            return None  # nine bytes, or the end is missing
        number = _number(body[begin : last + 1])
        if number & 1:
            span += number + 1 >> 1
            if span > _MOST_PACKED:
                return None
            out.append(bytes(number + 1))
        elif number <= 2 * _MEDIUM:
            field = _MEDIUM
            out.append((number >> 1).to_bytes(FIELD_BYTES, "little"))
        else:
            return None
        end = last + 1
        begin = more.find(1, end)
    _small_counts(view[end:], out)
    fields = b"".join(out)
    _check_span(len(fields) // FIELD_BYTES, payload)
    return _packed(fields, field) if len(fields) <= FIELD_BYTES * _MOST_PACKED else None


def _small_counts(piece: memoryview, out: list[bytes]) -> None:
    """Add the fields of numbers of one byte each; two at a time where there are many."""
    if len(piece) >= _MANY:
        pairs = piece[: len(piece) & ~1].cast("H")
        piece = piece[len(piece) & ~1 :]
        out.extend(map(_fields_of_two().__getitem__, pairs))
    out.extend(map(_FIELDS.__getitem__, piece))


@lru_cache(maxsize=1)
def _fields_of_two() -> list[bytes]:
    """By two bytes as the machine reads them."""
    both = [(two & 0xFF, two >> 8) for two in range(0x7F80)]
    if sys.byteorder == "big":
        both = [(second, first) for first, second in both]
    return [b"" if (first | second) & 0x80 else _FIELDS[first] + _FIELDS[second] for first, second in both]


def _number(piece: bytes) -> int:
    """A number of LEB128, of which a ninth byte has eight bits: twice a count, or one less than twice a number of zeros."""
    number = 0
    for place, byte in enumerate(piece):
        number |= (byte & 0x7F if place < 8 else byte) << 7 * place
    return number


def _check_span(span: int, payload: Payload) -> None:
    if span > payload.cells:
        raise BadHistogram(f"the histogram has counts of {span:,} cells; its range has {payload.cells:,}")


def _check_total(total: int) -> None:
    if total > _MOST_TOTAL:
        raise BadHistogram("the counts of the histogram add up to more than 2^63")


class _Runs:
    """The blocks of a body of V2; gone through piece by piece, because it may have millions of cells."""

    def __init__(self, body: bytes) -> None:
        self._body = body

    def pieces(self) -> Iterator[tuple[int, bytes, int | None]]:
        """Where the piece begins, its bytes that are a number each; or none, and a number of several bytes."""
        body, cell, end = self._body, 0, 0
        for found in _LONG.finditer(body):
            for piece in self._small(end, found.start()):
                yield cell, piece, None
                cell += sum(piece.translate(_STEPS))
            number = _number(found[0])
            yield cell, b"", number
            cell += number + 1 >> 1 if number & 1 else 1
            end = found.end()
        for piece in self._small(end, len(body)):
            if not piece.isascii():
                raise BadHistogram("the last count of the histogram is incomplete")
            yield cell, piece, None
            cell += sum(piece.translate(_STEPS))
        yield cell, b"", None

    def _small(self, begin: int, end: int) -> Iterator[bytes]:
        for place in range(begin, end, _PIECE_BYTES):
            yield self._body[place : min(place + _PIECE_BYTES, end)]

    def __iter__(self) -> Iterator[tuple[int, Sequence[int]]]:
        for cell, piece, number in self.pieces():
            if number is None:
                if piece:
                    yield cell, fields_of(b"".join(map(_FIELDS.__getitem__, piece)))
            elif not number & 1:
                yield cell, (number >> 1,)


def _runs(payload: Payload) -> Counts:
    blocks, total, top = _Runs(payload.body), 0, -1
    for cell, piece, number in blocks.pieces():
        _check_span(cell, payload)
        if number is not None:
            if not number & 1 and number:
                total, top = total + (number >> 1), cell
        elif counts := piece.translate(_COUNTS).rstrip(b"\0"):
            total += sum(counts)
            top = cell + sum(piece[: len(counts) - 1].translate(_STEPS))
    _check_total(total)
    return Counts(0, 0, blocks, total, top)


def _packed_words(payload: Payload) -> Counts | None:
    word, body = payload.word, payload.body
    length = len(body) // word
    if payload.offset or length > _MOST_PACKED:
        return None
    body = body[: length * word]
    if any(body[place::word].strip(b"\0") for place in range(word - 2)):
        return None
    high, low = body[word - 2 :: word], body[word - 1 :: word]
    field = max(high, default=0) << 8 | 0xFF
    if field > _MEDIUM:
        return None
    fields = bytearray(FIELD_BYTES * length)
    fields[::2], fields[1::2] = low, high
    return _packed(fields, field)


def _words(payload: Payload) -> Counts:
    counts = array(_CODES[payload.word])
    counts.frombytes(payload.body[: len(payload.body) // payload.word * payload.word])
    if sys.byteorder == "little":
        counts.byteswap()
    if min(counts, default=0) < 0:
        raise BadHistogram("the histogram has a negative count")
    total = sum(counts)
    _check_total(total)
    wrap = payload.cells - payload.offset
    blocks = [(0, counts[wrap:]), (payload.offset, counts[:wrap])] if payload.offset else [(0, counts)]
    tops = (cell + place for cell, block in blocks for place, count in enumerate(block) if count)
    return Counts(0, 0, blocks, total, max(tops, default=-1))
