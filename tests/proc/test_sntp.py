"""Packets of SNTP: requests, replies, forged and damaged ones, offsets over eras."""

from __future__ import annotations

import ntpserver
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opskit.proc.sntp import PACKET_BYTES, Reply, offset_s, parse_reply, request, timestamp

COOKIE = 0x1122334455667788
ASKED = request(COOKIE)
NOW_NS = 1_795_349_811_925_646_618


def test_a_request_has_a_random_number_and_nothing_of_ours():
    """Version 4, client; all fields but the transmit timestamp are zero."""
    assert len(ASKED) == PACKET_BYTES
    assert (ASKED[0], ASKED[1:40], ASKED[40:]) == (0x23, bytes(39), COOKIE.to_bytes(8, "big"))


def test_a_reply():
    """Its fields; what follows the 48 bytes (a MAC, extensions) is left out."""
    data = ntpserver.reply(ASKED, leap=1, stratum=3, root_delay_s=0.5, root_dispersion_s=0.25)
    for end in (b"", b"x" * 20):
        found = parse_reply(data + end, COOKIE)
        assert (found.leap, found.stratum, found.root_delay_s, found.root_dispersion_s) == (1, 3, 0.5, 0.25)
        assert (found.refusal, found.why_unusable) == (None, None)


@pytest.mark.parametrize("data", [
    b"", ntpserver.reply(ASKED)[:47],
    ntpserver.reply(ASKED, origin=bytes(8)),
    ntpserver.reply(ASKED, origin=(COOKIE + 1).to_bytes(8, "big")),
    ASKED,  # sent back as it was
    ntpserver.reply(ASKED, mode=5), ntpserver.reply(ASKED, mode=3),
    ntpserver.reply(ASKED)[:32] + bytes(16),
], ids=["empty", "short", "no origin", "another origin", "sent back", "broadcast", "client", "no timestamps"])  # fmt: skip
def test_what_is_no_reply_to_our_request(data):
    """Short, forged, of another mode, without timestamps."""
    assert parse_reply(data, COOKIE) is None


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ({"leap": 3}, "leap indicator 3"),
        ({"stratum": 16}, "stratum 16"),
        ({"stratum": 255}, "stratum 255"),
        ({"root_dispersion_s": 16.0}, "16 s or more"),
        ({"root_delay_s": 40.0}, "20 s or more"),
    ],
)
def test_a_server_that_is_not_synchronised(how, why):
    """It says so itself."""
    assert why in parse_reply(ntpserver.reply(ASKED, **how), COOKIE).why_unusable


@pytest.mark.parametrize("code", [b"RATE", b"DENY", b"RSTR", b"\xff\xfe\0\0"])
def test_a_kiss_of_death(code):
    """Stratum 0: the reference id is a code."""
    found = parse_reply(ntpserver.reply(ASKED, stratum=0, reference=code), COOKIE)
    assert found.refusal == code.rstrip(b"\0").decode("ascii", "replace")


@given(
    st.integers(0, 2**62),
    st.integers(-(2**30), 2**30),
    st.integers(0, 10**9),
    st.integers(0, 10**9),
    st.integers(0, 10**8),
)
def test_the_offset_is_right_within_half_of_the_asymmetry(now_ns, offset, forth_ns, back_ns, within_ns):
    """Of any time and offset within 34 years, also where a timestamp wraps (2036)."""
    received = timestamp(now_ns + forth_ns + offset * 10**9)
    sent = timestamp(now_ns + forth_ns + within_ns + offset * 10**9)
    reply = Reply(0, 2, 0.0, 0.0, b"", received, sent)
    found_s, delay_s = offset_s(now_ns, forth_ns + within_ns + back_ns, reply)
    assert abs(found_s - offset) <= abs(forth_ns - back_ns) / 2e9 + 2e-7
    assert delay_s == pytest.approx((forth_ns + back_ns) / 1e9, abs=1e-6)


def test_a_timestamp_wraps_in_2036():
    """The first second of the next era is 0."""
    era_ns = ((1 << 32) - ntpserver.UNIX_S) * 10**9
    assert timestamp(era_ns) == 0
    assert timestamp(era_ns - 10**9) >> 32 == 2**32 - 1
    assert timestamp(NOW_NS).to_bytes(8, "big") == ntpserver.stamp(NOW_NS)
