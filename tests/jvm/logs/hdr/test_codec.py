"""Histograms of every version, written by the encoder of the tests: their counts, and what is refused before it is unpacked."""

from __future__ import annotations

import pytest
from hdrlogs import histogram, leb128
from hypothesis import given, settings
from hypothesis import strategies as st

from opskit.analysis.hdr.cells import Cells, Space
from opskit.jvm.logs.hdr.codec import BadHistogram, cells_of, parse_payload
from opskit.jvm.logs.hdr.counts import counts_of

WIDE = 1 << 62
SPARSE = st.lists(st.tuples(st.integers(0, 900), st.one_of(st.integers(0, 70), st.integers(0, 1 << 40))), max_size=40)


def decoded(payload):
    """Cell -> count."""
    cells = Cells(Space())
    cells.add(counts_of(parse_payload(payload)))
    return {cell: count for run in cells.runs() for cell, count in zip(*run)}


def dense(steps):
    """Counts at growing cells."""
    counts = []
    for zeros, count in steps:
        counts += [0] * zeros + [count]
    return counts


def used(counts, offset=0, cells=0):
    """The same by cell."""
    return {(cell + offset) % cells if offset else cell: count for cell, count in enumerate(counts) if count}


@settings(max_examples=60, deadline=None)
@given(SPARSE, st.sampled_from([3, 4, 5]), st.booleans())
def test_v2(steps, digits, compressed):
    """Counts of one to six bytes, runs of zeros, few and very many cells, plain and compressed."""
    counts = dense(steps)
    assert decoded(histogram(counts, digits=digits, highest=WIDE, compressed=compressed)) == used(counts)


@settings(max_examples=40, deadline=None)
@given(SPARSE, st.sampled_from([0, 1]), st.sampled_from([2, 4, 8]), st.booleans())
def test_v0_and_v1(steps, version, word, compressed):
    """Counts of 2, 4 and 8 bytes."""
    counts = [count & (1 << 8 * word - 1) - 1 for count in dense(steps)]
    payload = histogram(counts, version=version, word=word, highest=WIDE, compressed=compressed)
    assert decoded(payload) == used(counts)


@given(st.lists(st.integers(0, 300), min_size=1, max_size=200), st.integers(-40_000, 40_000))
@settings(max_examples=30, deadline=None)
def test_index_offset(counts, offset):
    """V1 has its counts as they stood in memory, so that the offset moves them; V2 has them by value, whatever the offset says."""
    cells = cells_of(3, 1, 3_600_000_000_000)
    assert decoded(histogram(counts, version=1, offset=offset)) == used(counts, offset % cells, cells)
    assert decoded(histogram(counts, offset=offset)) == used(counts)


@given(st.integers(0, (1 << 62) - 1))
def test_one_count(count):
    """Every length of a count, at the cell after a run of zeros."""
    assert decoded(histogram(leb128(-7) + leb128(count), highest=WIDE)) == ({7: count} if count else {})


def test_many_intervals_add_up():
    """Fields of 16 bits never overflow, though each histogram has them full."""
    cells = Cells(Space())
    small, medium = ([number] * 300 for number in (63, 8191))
    for counts in [small] * 1100 + [medium] * 20 + [[1 << 40] * 2]:
        cells.add(counts_of(parse_payload(histogram(counts))))
    counts = {cell: count for run in cells.runs() for cell, count in zip(*run)}
    assert counts == {cell: 63 * 1100 + 8191 * 20 + (1 << 40) * (cell < 2) for cell in range(300)}


@pytest.mark.parametrize(
    ("payload", "why"),
    [
        (b"????", "not base64"),
        (b"HISTFAAA!BBB", "not base64"),
        (histogram([1])[:-3], "base64 of the histogram is incomplete"),
        (histogram([1, 5] * 30)[:-8], "incomplete: "),
        (histogram([1], compressed=False)[:20], "header of the histogram is incomplete"),
        (b"AAAA", "the histogram is incomplete"),
        (b"AAAAAAAAAAAAAAAA", "unknown cookie 00000000"),
        (histogram([1], digits=6), "6 is not a number of digits"),
        (histogram([1], digits=-1), "-1 is not a number of digits"),
        (histogram([1], lowest=0), "0 to 3600000000000 is not a range"),
        (histogram([1], lowest=1000, highest=1500), "1000 to 1500 is not a range"),
        (histogram([1], digits=5, lowest=1 << 60, highest=(1 << 63) - 1), "do not fit a lowest value"),
        (histogram([1], length=-5), "-5 bytes of counts do not fit"),
        (histogram([1], length=50), "1 of 50 bytes"),
        (histogram([1], length=1 << 30), "1,073,741,824 bytes of counts do not fit"),
        (histogram(b"\0" * (17 << 20), digits=5, highest=WIDE), "unpacks to 17,825,792 bytes; at most 16 MiB"),
        (histogram([-1], version=1), "a negative count"),
        (histogram([-1], version=0, word=2), "a negative count"),
        (histogram([1] * 40_000, version=1), "do not fit"),
        (histogram(leb128(-34_000) + leb128(1)), "counts of 34,001 cells; its range has 33,792"),
        (histogram(leb128(-(1 << 40))), "1,099,511,627,776 cells"),
        (histogram(b"\xff" * 5), "last count of the histogram is incomplete"),
        (histogram(b"\x80"), "last count of the histogram is incomplete"),
        (histogram([(1 << 62) + 5] * 2, version=1), "more than 2^63"),
        (histogram([1], span=1), "range of the decimal values is impossible"),
        (histogram([1], span=2, ratio=float("nan")), "range of the decimal values is impossible"),
        (histogram([1], span=4, ratio=1e308), "range of the decimal values is impossible"),
        (histogram([1], span=1 << 60), "range of the decimal values is impossible"),
    ],
)
def test_refused(payload, why):
    """Each says what is wrong; nothing is unpacked beyond what the header allows."""
    with pytest.raises(BadHistogram, match=why.replace("^", r"\^")):
        counts_of(parse_payload(payload))


def test_a_compressed_stream_that_ends_early():
    """The beginning of a compressed histogram is not taken for a whole one."""
    import base64
    import struct

    whole = base64.b64decode(histogram(list(range(500))))
    cut = whole[:4] + struct.pack(">i", len(whole) - 108) + whole[8:-100]
    with pytest.raises(BadHistogram, match=r"incomplete: [0-9]+ of [0-9]+ bytes of counts"):
        parse_payload(base64.b64encode(cut))
    broken = whole[:30] + b"\xff\xff\xff\xff" + whole[34:]
    with pytest.raises(BadHistogram, match=r"damaged|header"):
        parse_payload(base64.b64encode(broken))
