"""Writes hsperfdata files: the layout of perfMemory.hpp, in either byte order."""

from __future__ import annotations

import struct

TICKS, STRING, BYTES, EVENTS, HERTZ, NONE = 3, 5, 2, 4, 6, 1


def entry(name, value, unit=NONE, order="<", kind=None, vector=None):
    """One entry. An int becomes a J scalar, text a B vector."""
    name = name.encode("utf-8", "surrogateescape") + b"\0"
    if isinstance(value, int):
        kind, vector, body, align = kind or ord("J"), vector or 0, struct.pack(order + "q", value), 8
    else:
        body = value.encode("utf-8", "surrogateescape") + b"\0"
        kind, vector, unit, align = kind or ord("B"), len(body) if vector is None else vector, STRING, 1
    at = -(-(20 + len(name)) // align) * align
    length = -(-(at + len(body)) // 8) * 8
    head = struct.pack(order + "iiiBBBBi", length, 20, vector, kind, 1, unit, 1, at)
    return (head + name).ljust(at, b"\0") + body.ljust(length - at, b"\0")


def build(counters, order="<", *, accessible=1, version=(2, 0), size=32768):
    """A whole file. `counters`: name -> value, or name -> (value, unit)."""
    entries = [
        entry(name, *(value if isinstance(value, tuple) else (value,)), order=order) for name, value in counters.items()
    ]
    body = b"".join(entries)
    head = b"\xca\xfe\xc0\xc0" + bytes([order == "<", *version, accessible])
    head += struct.pack(order + "iiqii", 32 + len(body), 0, 12345, 32, len(entries))
    return (head + body).ljust(size, b"\0")
