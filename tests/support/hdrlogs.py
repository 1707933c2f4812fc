"""Write HdrHistogram logs: an encoder of V0, V1, V2 and DoubleHistogram, plain and compressed, also of impossible headers."""

from __future__ import annotations

import base64
import struct
import zlib

BEGIN_S = 1_700_000_000.127
_COOKIES = {0: (0x1C849308, 0x1C849309), 1: (0x1C849301, 0x1C849302), 2: (0x1C849303, 0x1C849304)}
_CODES = {2: "h", 4: "i", 8: "q"}


def leb128(number: int) -> bytes:
    """A signed number as V2 writes it: ZigZag, seven bits a byte, a ninth byte has eight."""
    rest = (number << 1 ^ number >> 63) & (1 << 64) - 1
    written = bytearray()
    while rest > 0x7F and len(written) < 8:
        written.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes([*written, rest])


def runs(counts: list[int]) -> bytes:
    """Counts as V2 writes them: several zeros are one negative number."""
    written, zeros = bytearray(), 0
    for count in [*counts, None]:
        if count == 0:
            zeros += 1
            continue
        if zeros:
            written += leb128(-zeros) if zeros > 1 else leb128(0)
            zeros = 0
        if count is not None:
            written += leb128(count)
    return bytes(written)


def histogram(
    counts: list[int] | bytes,
    version: int = 2,
    digits: int = 3,
    lowest: int = 1,
    highest: int = 3_600_000_000_000,
    word: int = 8,
    offset: int = 0,
    ratio: float = 1.0,
    span: int | None = None,
    length: int | None = None,
    compressed: bool = True,
) -> bytes:
    """The base64 of a histogram. `counts` as bytes: the body as it is; `span`: of a DoubleHistogram; `length`: what the header says."""
    plain, packed = _COOKIES[version]
    size = 0x10 if version == 2 else word << 4
    if isinstance(counts, bytes):
        body = counts
    else:
        body = runs(counts) if version == 2 else struct.pack(f">{len(counts)}{_CODES[word]}", *counts)
    if version == 0:
        total = 0 if isinstance(counts, bytes) else sum(counts)
        data = struct.pack(">iiqqq", plain | size, digits, lowest, highest, total & (1 << 63) - 1) + body
    else:
        length = len(body) if length is None else length
        data = struct.pack(">iiiiqqd", plain | size, length, offset, digits, lowest, highest, ratio) + body
    if compressed:
        inner = zlib.compress(data)
        data = struct.pack(">ii", packed | size, len(inner)) + inner
    if span is not None:
        data = struct.pack(">iiq", 0x0C72124F if compressed else 0x0C72124E, digits, span) + data
    return base64.b64encode(data)


def line(payload: bytes, at_s: float = 0.0, length_s: float = 1.0, most: float = 0.0, tag: str | None = None) -> bytes:
    """A line of a log."""
    named = b"" if tag is None else b"Tag=" + tag.encode("utf-8", "surrogateescape") + b","
    return named + b"%.3f,%.3f,%.3f," % (at_s, length_s, most) + payload + b"\n"


def header(start_s: float | None = BEGIN_S, base_s: float | None = None) -> bytes:
    """The lines before the first interval."""
    lines = [b"#[Histogram log format version 1.3]"]
    if start_s is not None:
        lines.append(b"#[StartTime: %.3f (seconds since epoch), Tue Nov 14 22:13:20 UTC 2023]" % start_s)
    if base_s is not None:
        lines.append(b"#[BaseTime: %.3f (seconds since epoch)]" % base_s)
    lines.append(b'"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"')
    return b"\n".join(lines) + b"\n"
