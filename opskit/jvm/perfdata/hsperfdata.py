r"""/tmp/hsperfdata_USER/PID: the counters that a HotSpot JVM shares with all who may read the file (perfMemory.hpp).

A prologue of 32 bytes, in the byte order of the machine that wrote it but for the magic, which is the same everywhere:

    ca fe c0 c0            magic
    01                     byte order: 0 big, 1 little
    02 00                  version 2.0
    01                     accessible: the JVM has made its counters
    f8 59 00 00            bytes used      00 00 00 00              bytes that did not fit
    e1 64 bb 0f 00 00 ..   time stamp of the last change to the list, in ticks
    20 00 00 00            offset of the first entry
    f6 00 00 00            number of entries

An entry: a header of 20 bytes, then its name (ends with NUL) and its value, somewhere within the entry's length:

    length, offset of the name, vector length (i32 each; a scalar has the vector length 0)
    type, flags, unit, variability (u8 each)   offset of the value (i32)

HotSpot makes scalars of type J (an i64) and vectors of type B (text, ends with NUL); other types are left out.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import TYPE_CHECKING

from opskit.errors import BadInput
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

MAGIC = b"\xca\xfe\xc0\xc0"
_PROLOGUE_BYTES = 32
_ENTRY_BYTES = 20
_ORDERS = {0: ">", 1: "<"}
_LONG, _BYTE = ord("J"), ord("B")
Unit = IntEnum("Unit", "NONE BYTES TICKS EVENTS STRING HERTZ")  # PerfData::Units, numbered from 1
_UNITS = {unit.value: unit for unit in Unit}


class Counter(NamedTuple):
    """One entry. `unit` is None for a number that HotSpot does not use."""

    value: int | str
    unit: Unit | None


class PerfData(NamedTuple):
    """The counters of one JVM at one moment. `accessible` False: the JVM is still making its counters, none are given."""

    source: str
    accessible: bool
    counters: dict[str, Counter]

    def get(self, name: str) -> int | str | None:
        """The raw value; None where the JVM lacks that counter."""
        counter = self.counters.get(name)
        return None if counter is None else counter.value

    def number(self, name: str) -> int | None:
        """The value of a numeric counter; None where it is missing or holds text."""
        value = self.get(name)
        return value if isinstance(value, int) else None

    def text(self, name: str) -> str | None:
        """The value of a text counter; None where it is missing or holds a number."""
        value = self.get(name)
        return value if isinstance(value, str) else None

    def ticks_s(self, name: str) -> float | None:
        """A counter of ticks in seconds; None where it or the length of a tick is missing."""
        counter = self.counters.get(name)
        frequency = self.number("sun.os.hrt.frequency")
        if counter is None or counter.unit is not Unit.TICKS or not isinstance(counter.value, int):
            return None
        return counter.value / frequency if frequency is not None and frequency > 0 else None


def parse_hsperfdata(data: bytes, source: str, wanted: frozenset[bytes] | None = None) -> PerfData:
    """Parse a whole file, or only the `wanted` counters, in a third of the time. `source` is its name in errors. Raises BadInput."""
    if len(data) < _PROLOGUE_BYTES:
        raise BadInput(source, f"not hsperfdata: {len(data)} bytes, and the prologue alone has {_PROLOGUE_BYTES}")
    if data[:4] != MAGIC:
        raise BadInput(source, "not hsperfdata: it does not begin with ca fe c0 c0", found=data[:4].hex(" "))
    order = _ORDERS.get(data[4])
    if order is None:
        raise BadInput(source, "invalid byte order: not 0 (big) or 1 (little)", found=str(data[4]))
    major, minor, accessible = data[5], data[6], data[7]
    if major != 2:
        raise BadInput(source, "hsperfdata version is not 2, which JDK 5 and later write", found=f"{major}.{minor}")
    offset, count = struct.unpack_from(order + "ii", data, 24)
    # Entries may be incomplete before the JVM sets `accessible`.
    counters = _entries(data, source, order, offset, count, wanted) if accessible else {}
    return PerfData(source, accessible != 0, counters)


def _entries(
    data: bytes, source: str, order: str, offset: int, count: int, wanted: frozenset[bytes] | None
) -> dict[str, Counter]:
    header = struct.Struct(order + "iiiBxBxi").unpack_from
    long = struct.Struct(order + "q").unpack_from
    size = len(data)
    counters: dict[str, Counter] = {}
    if offset < _PROLOGUE_BYTES:
        raise BadInput(source, "the first entry lies within the prologue", found=str(offset))
    for _ in range(count):
        if offset + _ENTRY_BYTES > size:
            break  # the list ends with the memory: what did not fit is counted in overflow
        length, name_at, vector, kind, unit, value_at = header(data, offset)
        if length == 0:
            break
        end = offset + length
        if length < _ENTRY_BYTES or end > size:
            raise BadInput(source, f"the entry at byte {offset} does not fit: {length} bytes of {size - offset}")
        if not (_ENTRY_BYTES <= name_at < length and _ENTRY_BYTES <= value_at < length):
            raise BadInput(source, f"the entry at byte {offset} points outside of itself: {name_at}, {value_at}")
        name_end = data.find(0, offset + name_at, end)
        if name_end < 0:
            raise BadInput(source, f"the name of the entry at byte {offset} has no end")
        if wanted is not None and data[offset + name_at : name_end] not in wanted:
            offset = end
            continue
        at = offset + value_at
        value: int | str | None = None
        if kind == _LONG and vector == 0:
            if at + 8 > end:
                raise BadInput(source, f"the number of the entry at byte {offset} is cut off")
            (value,) = long(data, at)
        elif kind == _BYTE and vector > 0:
            if at + vector > end:
                raise BadInput(source, f"the text of the entry at byte {offset} is cut off: {vector} bytes")
            value = _text(data[at : at + vector].partition(b"\0")[0])
        if value is not None:
            counters[_text(data[offset + name_at : name_end])] = Counter(value, _UNITS.get(unit))
        offset = end
    return counters


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def text_places(data: bytes) -> Iterator[tuple[str, int, int]]:
    """(name, offset, length without NUL) of each text, as far as the entries can be read: where a text can be replaced."""
    order = _ORDERS.get(data[4]) if len(data) >= _PROLOGUE_BYTES and data[:4] == MAGIC else None
    if order is None:
        return
    offset, count = struct.unpack_from(order + "ii", data, 24)
    header = struct.Struct(order + "iiiBxBxi").unpack_from
    for _ in range(count):
        if not _PROLOGUE_BYTES <= offset <= len(data) - _ENTRY_BYTES:
            return
        length, name_at, vector, kind, _, value_at = header(data, offset)
        end = min(offset + length, len(data))
        if length < _ENTRY_BYTES:
            return
        if kind == _BYTE and vector > 0 and name_at >= _ENTRY_BYTES <= value_at < length:
            at = offset + value_at
            last = data.find(0, at, min(at + vector, end))
            name_end = data.find(0, offset + name_at, end)
            if name_end >= 0:
                size = (min(at + vector, end) if last < 0 else last) - at
                yield _text(data[offset + name_at : name_end]), at, size
        offset += length
