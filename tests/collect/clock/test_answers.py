"""What clients of time daemons print: real output, and what they print without a daemon."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest

from opskit.collect.clock.answers import parse_rv, parse_timesync, parse_tracking

TRACKING = """\
Reference ID    : 0A000001 (10.0.0.1)
Stratum         : 3
Ref time (UTC)  : Mon Nov 23 09:51:11 2026
System time     : 3.000088215 seconds slow of NTP time
Last offset     : -0.000009555 seconds
RMS offset      : 0.000030878 seconds
Frequency       : 10.029 ppm fast
Residual freq   : -2.126 ppm
Skew            : 98.194 ppm
Root delay      : 0.000250294 seconds
Root dispersion : 0.000072615 seconds
Update interval : 0.3 seconds
Leap status     : Normal
"""
LOST = """\
Reference ID    : 00000000 ()
Stratum         : 0
Ref time (UTC)  : Thu Jan 01 00:00:00 1970
System time     : 0.000000000 seconds fast of NTP time
Root delay      : 1.000000000 seconds
Root dispersion : 1.000000000 seconds
Leap status     : Not synchronised
"""
RV = """\
associd=0 status=0615 leap_none, sync_ntp, 1 event, clock_sync,
version="ntpd 4.2.8p15@1.3728-o Wed Sep 23 11:46:38 UTC 2020 (1)",
processor="x86_64", system="Linux/5.10.0-8-amd64", leap=00, stratum=3,
precision=-24, rootdelay=13.607, rootdisp=25.400, refid=10.0.0.1,
reftime=e4d3a3a1.7a1dc1a0  Thu, Sep  2 2021 12:12:01.477,
clock=e4d3a4f0.4bd2a0cf  Thu, Sep  2 2021 12:17:36.296, peer=43181, tc=6,
mintc=3, offset=-0.123456, frequency=+11.123, sys_jitter=0.034012
"""
INIT = """\
associd=0 status=c016 leap_alarm, sync_unspec, 1 event, restart,
leap=11, stratum=16, precision=-24, rootdelay=0.0, rootdisp=0.18, refid=INIT,
reftime=00000000.00000000 2036-02-07T06:28:16.000Z, tc=0, peer=0, offset=0.0,
frequency=0.0, sys_jitter=0.0, clk_jitter=6e-05,
clock=eeae92eb.68c7d06b 2026-11-23T10:24:43.409Z, processor="x86_64",
system="Linux/6.18.44-fc-v657", version="ntpd ntpsec-1.2.2", clk_wander=0.0,
mintc=0
"""  # of ntpsec 1.2.2
TIMESYNC = """\
LinkNTPServers=
SystemNTPServers=
FallbackNTPServers=0.debian.pool.ntp.org 1.debian.pool.ntp.org
ServerName=0.debian.pool.ntp.org
ServerAddress=162.159.200.1
RootDistanceMaxUSec=5s
PollIntervalMinUSec=32s
PollIntervalMaxUSec=34min 8s
PollIntervalUSec=1min 4s
NTPMessage={ Leap=0, Version=4, Mode=4, Stratum=3, Precision=-25, RootDelay=8.544ms, RootDispersion=274us, Reference=A2F01C2, OriginateTimestamp=Mon 2026-11-23 09:50:00 UTC, Ignored=no, PacketCount=12, Jitter=1.234ms }
Frequency=-1234567
"""


def test_chronyc_tracking():
    """Slow of NTP time: that much has to be added. The error is half of the root delay and the dispersion."""
    found = parse_tracking(TRACKING)
    assert (found.is_synchronised, found.reference, found.stratum) == (True, "10.0.0.1", 3)
    assert (found.offset_s, found.error_s) == (3.000088215, pytest.approx(0.000250294 / 2 + 0.000072615))
    updated_s = datetime(2026, 11, 23, 9, 51, 11, tzinfo=timezone.utc).timestamp()
    timed = parse_tracking(TRACKING, updated_s + 7200)
    assert (found.age_s, timed.age_s, timed.interval_s) == (None, 7200.0, 0.3)
    for date in ("Mon Nvo 23 09:51:11 2026", "Mon Feb 30 09:51:11 2026", "soon"):
        assert parse_tracking(TRACKING.replace("Mon Nov 23 09:51:11 2026", date), updated_s).age_s is None
    fast = parse_tracking(TRACKING.replace("slow of", "fast of"))
    assert fast.offset_s == -3.000088215


def test_chronyc_without_a_server():
    """It is not synchronised, and has no offset."""
    found = parse_tracking(LOST, 1.8e9)
    assert found.age_s is None
    assert (found.is_synchronised, found.reference, found.offset_s, found.error_s) == (False, None, None, None)


def test_chronyc_that_follows_itself():
    """The directive `local`: leap status Normal, and yet no server."""
    found = parse_tracking(TRACKING.replace("0A000001 (10.0.0.1)", "7F7F0101 ()"))
    assert (found.is_synchronised, found.is_local, found.reference) == (False, True, "its own clock")


def test_ntpq():
    """In milliseconds; a positive offset has to be added."""
    found = parse_rv(RV)
    assert (found.is_synchronised, found.reference, found.stratum) == (True, "10.0.0.1", 3)
    assert (found.offset_s, found.error_s) == (pytest.approx(-0.000123456), pytest.approx(0.0136070 / 2 + 0.0254))
    assert (found.age_s, found.interval_s) == (0xE4D3A4F0 - 0xE4D3A3A1, 64.0)
    assert parse_rv(RV.replace("reftime=e4", "reftime=e5")).age_s == 0.0


@pytest.mark.parametrize(
    ("one", "other"), [("leap=00", "leap=11"), ("stratum=3", "stratum=16"), ("10.0.0.1", "127.127.1.0")]
)
def test_ntpq_without_a_server(one, other):
    """Leap 11, stratum 16, or the local clock driver."""
    found = parse_rv(RV.replace(one, other))
    assert (found.is_synchronised, found.offset_s, found.is_local) == (False, None, "127" in other)


def test_timedatectl():
    """The last packet that was taken; it does not tell an offset."""
    found = parse_timesync(TIMESYNC)
    assert (found.is_synchronised, found.reference, found.stratum, found.offset_s) == (True, "162.159.200.1", 3, None)
    assert found.error_s == pytest.approx(0.008544 / 2 + 0.000274)


def test_ntpq_of_a_daemon_that_was_just_started():
    """Its reference id is a code, not a server."""
    found = parse_rv(INIT)
    assert (found.is_synchronised, found.reference, found.stratum, found.offset_s) == (False, None, 16, None)


@pytest.mark.parametrize("cut", ["NTPMessage", "Ignored=no", "Leap=0, "])
def test_timedatectl_without_a_packet(cut):
    """None was taken yet."""
    text = TIMESYNC.replace("Leap=0, ", "Leap=3, ") if cut == "Leap=0, " else TIMESYNC.replace(cut, "X")
    assert parse_timesync(text).is_synchronised is False


@pytest.mark.parametrize("parse", [parse_tracking, parse_rv, parse_timesync])
@pytest.mark.parametrize("text", [
    "", "506 Cannot talk to daemon\n", "ntpq: read: Connection refused\n", "Failed to connect to bus: Host is down\n", "Leap status\n", "=\n:",
    "leap=\n", "x" * 50_000,
])  # fmt: skip
def test_no_answer(parse, text):
    """None: the line is shown as the reason."""
    assert parse(text) is None
