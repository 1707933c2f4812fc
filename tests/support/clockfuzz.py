"""What tests/support/fuzz.py feeds to the parsers of `opskit clock`."""

from __future__ import annotations

from datetime import datetime, timezone

import ntpserver

from opskit.analysis.clock.judge import judge
from opskit.collect.clock import answers
from opskit.collect.clock.server import parse_server
from opskit.proc import fake_time, sntp
from opskit.proc.config.adjtime import parse_rtc_zone
from opskit.proc.files.timens_offsets import parse_timens_offsets
from opskit.proc.files.tzif import parse_zone_file
from opskit.proc.zone_rule import offset_by_rule

NOW_S = datetime(2026, 7, 1, tzinfo=timezone.utc).timestamp()
COOKIE = 7
REPLY = ntpserver.reply(sntp.request(COOKIE))
TZIF = (b"TZif2" + bytes(15) + b"\0\0\0\0" * 3 + b"\0\0\0\1\0\0\0\1\0\0\0\4") + b"\0\0\0\1\0" + b"\0\0\x0e\x10\0\0CET\0"
TZIF += TZIF[:44] + bytes(8) + b"\0" + b"\0\0\x0e\x10\0\0CET\0" + b"\nCET-1CEST,M3.5.0,M10.5.0/3\n"
TRACKING = b"Reference ID    : 0A000001 (10.0.0.1)\nStratum         : 3\nRef time (UTC)  : Mon Nov 23 09:51:11 2026\nUpdate interval : 0.3 seconds\nSystem time     : 3.0 seconds slow of NTP time\nRoot delay : 0.1 seconds\nRoot dispersion : 0.1 seconds\nLeap status     : Normal\n"
RV = b"associd=0 status=0615, leap=00, stratum=3, rootdelay=13.6, rootdisp=25.4, refid=10.0.0.1, offset=-0.1, tc=6, reftime=e4d3a3a1.7a, clock=e4d3a4f0.4b\n"
TIMESYNC = (
    b"ServerName=x\nNTPMessage={ Leap=0, Stratum=3, RootDelay=8.5ms, RootDispersion=274us, Ignored=no }\nFrequency=1\n"
)
MAPS = b"7f2a5ca48000-7f2a5ca58000 r-xp 00004000 fe:00 918 /usr/lib/faketime/libfaketime.so.1\n"


def zone(data: bytes) -> object:
    """A file, and its rule."""
    found = parse_zone_file(data)
    return found.offset_at(NOW_S), offset_by_rule(found.rule, NOW_S)


def exchange(data: bytes) -> object:
    """A packet, and what is said of it."""
    reply = sntp.parse_reply(data, COOKIE)
    if reply is None:
        return None
    from clockfacts import HEALTHY, server

    from opskit.proc.kernel.sntp import Exchange

    offset, delay = sntp.offset_s(round(NOW_S * 1e9), 1_000_000, reply)
    found = server()._replace(exchange=Exchange("10.0.0.1", offset, delay, reply, 1))
    return judge(HEALTHY._replace(server=found)).verdict


BYTES = {"sntp reply": (exchange, REPLY), "zone file": (zone, TZIF)}
TEXT = {
    "chronyc tracking": (lambda text: answers.parse_tracking(text, NOW_S), TRACKING),
    "ntpq rv": (answers.parse_rv, RV),
    "timedatectl show-timesync": (answers.parse_timesync, TIMESYNC),
    "zone rule": (lambda text: offset_by_rule(text, NOW_S), b"CET-1CEST,M3.5.0,M10.5.0/3"),
    "timens offsets": (parse_timens_offsets, b"monotonic           0         0\nboottime      -864000         0\n"),
    "adjtime": (parse_rtc_zone, b"0.0 0 0.0\n0\nUTC\n"),
    "faketime maps": (fake_time.library_in, MAPS),
    "faketime shift": (fake_time.shift_s, b"-7h x10"),
    "option server": (parse_server, b"[2001:db8::1]:123"),
}
