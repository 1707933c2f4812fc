"""hsperfdata: real files of every collector, both byte orders; BadInput for all other data."""

from __future__ import annotations

import struct
from pathlib import Path

import hsperf
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opskit.errors import BadInput
from opskit.jvm.perfdata.hsperfdata import Unit, parse_hsperfdata

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "hsperfdata"
CAPTURES = sorted(path for path in FIXTURES.iterdir() if path.suffix != ".md")
REAL = (FIXTURES / "jdk17-g1").read_bytes()


def names(data, order):
    """The names by a second implementation, which uses the lengths alone."""
    offset, count = struct.unpack_from(order + "ii", data, 24)
    for _ in range(count):
        length, name_at = struct.unpack_from(order + "ii", data, offset)
        yield data[offset + name_at :].split(b"\0", 1)[0].decode()
        offset += length


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.name)
def test_a_real_file_gives_every_counter_it_has(path):
    data = path.read_bytes()
    perf = parse_hsperfdata(data, path.name)
    assert perf.accessible
    assert list(perf.counters) == list(names(data, "<"))
    assert perf.get("sun.rt.javaCommand") == "T 16"
    assert perf.text("java.property.java.version").startswith(path.name[3:5])


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.name)
def test_those_that_are_wanted_are_what_they_are_among_all(path):
    wanted = frozenset((b"sun.rt.safepointTime", b"sun.os.hrt.frequency", b"no.such.name"))
    every = parse_hsperfdata(path.read_bytes(), path.name).counters
    found = parse_hsperfdata(path.read_bytes(), path.name, wanted).counters
    assert found == {name: every[name] for name in ("sun.os.hrt.frequency", "sun.rt.safepointTime")}


def test_values_have_their_types_and_units():
    perf = parse_hsperfdata(REAL, "jdk17-g1")
    threads = perf.counters["java.threads.live"]
    assert isinstance(threads.value, int)
    safepoints = perf.counters["sun.rt.safepointTime"]
    assert (safepoints.unit, threads.unit) == (Unit.TICKS, Unit.NONE)
    assert perf.ticks_s("sun.rt.safepointTime") == safepoints.value / perf.get("sun.os.hrt.frequency")
    assert perf.ticks_s("java.threads.live") is None
    assert perf.ticks_s("no.such.name") is None
    assert perf.get("no.such.name") is None
    assert perf.number("sun.rt.javaCommand") is None
    assert perf.text("java.threads.live") is None


@pytest.mark.parametrize("order", ["<", ">"])
def test_both_byte_orders_say_the_same(order):
    counters = {
        "a.number": -(2**63),
        "b.ticks": (3_000_000, hsperf.TICKS),
        "sun.os.hrt.frequency": (1_000_000, hsperf.HERTZ),
        "c.text": "ünï\udcff",
        "d.empty": "",
    }
    perf = parse_hsperfdata(hsperf.build(counters, order), "built")
    assert {name: perf.get(name) for name in counters} == {
        "a.number": -(2**63),
        "b.ticks": 3_000_000,
        "sun.os.hrt.frequency": 1_000_000,
        "c.text": "ünï\udcff",
        "d.empty": "",
    }
    assert perf.ticks_s("b.ticks") == 3.0


@pytest.mark.parametrize("frequency", [0, -5])
def test_without_a_frequency_ticks_are_unknown(frequency):
    perf = parse_hsperfdata(hsperf.build({"t": (5, hsperf.TICKS), "sun.os.hrt.frequency": frequency}), "built")
    assert perf.ticks_s("t") is None
    assert parse_hsperfdata(hsperf.build({"t": (5, hsperf.TICKS)}), "built").ticks_s("t") is None


def test_until_it_is_accessible_nothing_is_believed():
    perf = parse_hsperfdata(hsperf.build({"a": 1}, accessible=0), "built")
    assert not perf.accessible
    assert perf.counters == {}


def test_other_types_are_left_out_and_an_entry_of_no_length_ends_the_list():
    data = bytearray(hsperf.build({"first": 1, "second": 2, "third": 3}, size=0))
    second = 32 + len(hsperf.entry("first", 1))
    data[second + 12] = ord("I")
    assert list(parse_hsperfdata(bytes(data), "built").counters) == ["first", "third"]
    struct.pack_into("<i", data, second, 0)
    assert list(parse_hsperfdata(bytes(data), "built").counters) == ["first"]


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "0 bytes"),
        (b"\xca\xfe\xc0\xc0", "4 bytes"),
        (b"#!/bin/sh\n".ljust(64), "does not begin with"),
        (b"\xca\xfe\xc0\xc0\x07".ljust(64, b"\0"), "byte order"),
        (hsperf.build({}, version=(1, 0)), "version is not 2"),
        (hsperf.build({"a": 1})[:70].ljust(72, b"\0")[:60], "does not fit"),
    ],
)
def test_what_is_no_hsperfdata_file_is_named(data, problem):
    with pytest.raises(BadInput, match=problem) as caught:
        parse_hsperfdata(data, "/tmp/hsperfdata_app/4242")
    assert str(caught.value).startswith("/tmp/hsperfdata_app/4242: ")


def parsed(data):
    """BadInput, or a value of the right types; anything else fails the test."""
    try:
        perf = parse_hsperfdata(data, "bytes")
    except BadInput:
        return
    for name, counter in perf.counters.items():
        assert isinstance(name, str)
        assert isinstance(counter.value, (int, str))
        perf.ticks_s(name)


@given(st.binary(max_size=400))
def test_random_bytes(data):
    parsed(data)


@given(st.binary(max_size=400))
def test_random_bytes_behind_a_good_prologue(data):
    parsed(REAL[:32] + data)


@given(
    st.sampled_from(CAPTURES),
    st.lists(st.tuples(st.integers(0, 1 << 14), st.integers(0, 255)), min_size=1, max_size=12),
    st.integers(0, 1 << 15),
)
def test_mutated_and_cut_off_real_files(path, changes, length):
    data = bytearray(path.read_bytes()[:length])
    for at, byte in changes:
        if data:
            data[at % len(data)] = byte
    parsed(bytes(data))


@given(
    st.integers(-(2**31), 2**31 - 1), st.integers(-(2**31), 2**31 - 1), st.integers(-(2**31), 2**31 - 1),
    st.integers(-(2**31), 2**31 - 1), st.sampled_from(b"JBIZ"),
)  # fmt: skip
def test_no_offset_leads_out_of_the_file(length, name_at, vector, value_at, kind):
    data = bytearray(hsperf.build({"first": 1, "second": "text"}, size=0))
    struct.pack_into("<iiiBBBBi", data, 32, length, name_at, vector, kind, 0, 1, 1, value_at)
    parsed(bytes(data))


@given(
    st.dictionaries(
        st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1),
        st.one_of(st.integers(-(2**63), 2**63 - 1), st.text(st.characters(codec="utf-8", exclude_characters="\0"))),
        max_size=8,
    ),
    st.sampled_from("<>"),
)
def test_what_was_written_is_read(counters, order):
    perf = parse_hsperfdata(hsperf.build(counters, order), "built")
    assert {name: perf.get(name) for name in perf.counters} == counters
