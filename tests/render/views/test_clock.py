"""How the clock is shown: goldens in every format, the first screen, metrics, names from the machine."""

from __future__ import annotations

import json

import promtext
import pytest
from clockfacts import BARE, HEALTHY, LOST, TRACKING, server, view
from schemafiles import keeps_to_schema

from opskit.analysis.clock.judge import judge
from opskit.collect.clock.facts import Rate, Rtc, Step
from opskit.proc.files.timens_offsets import TimeOffsets
from opskit.proc.zones import Zone
from opskit.render.formats import json as as_json
from opskit.render.formats import markdown, prometheus, table, text
from opskit.render.report import About
from opskit.render.views.clock import report as clock_view
from opskit.render.views.clock.document import complete

WRITERS = {"json": as_json, "markdown": markdown, "prometheus": prometheus, "table": table, "text": text}
LIED_TO = view(
    Zone("TZ", "America/Los_Angeles", -28800.0), faked_by="/usr/lib/faketime/libfaketime.so.1", fake="-7h", offsets=TimeOffsets(864000.0, 864000.0)
)  # fmt: skip
ANSWERS = {
    "healthy": (HEALTHY._replace(rtc=Rtc("rtc0", 0.3, "UTC")), [TRACKING]),
    "wrong": (BARE._replace(server=server(25200.123001), view=LIED_TO, rtc=Rtc("rtc0", -25200.0, "UTC")), []),
    "watched": (
        HEALTHY._replace(
            kernel=HEALTHY.kernel._replace(offset_s=0.0002, status=0x2011), watched_s=31.5, rate=Rate(-523.4, 30.0),
            steps=[Step(0.5 + number, 0.01 * (-1) ** number, f"2026-01-02T03:04:{number:02}.500000Z") for number in range(7)],
        ),
        [LOST],
    ),
    "bare": (BARE._replace(is_virtual=True), []),
    "unanswered": (HEALTHY._replace(server=server(problem="no reply within 1 s")), [TRACKING]),
}  # fmt: skip


def made(name, format_="table"):
    about = About("HOST", "2026-01-02T03:04:05Z", "VERSION", "opskit clock", {"pid": None, "server": None})
    result = judge(*ANSWERS[name])
    return complete(clock_view.report(about, result, text=format_ == "text"), result)


@pytest.mark.parametrize("format_", WRITERS)
@pytest.mark.parametrize("name", ["healthy", "wrong", "watched"])
def test_goldens(name, format_, golden):
    """A healthy machine, a wrong clock seen by a process that is lied to, a watch with steps."""
    golden(f"clock-{name}.{format_}", WRITERS[format_].render(made(name, format_)))


@pytest.mark.parametrize("name", ANSWERS)
def test_the_first_screen(name, golden):
    """On 80 x 24 verdict, findings and their next commands are visible without scrolling; a healthy answer has three lines at most."""
    out = table.render(made(name), 80, 24)
    golden(f"clock-screen-{name}.txt", out)
    head = out.partition("what  ")[0].partition("\nnote ")[0]
    assert sum(-(-max(len(line), 1) // 80) for line in head.splitlines()) <= 24
    if name == "healthy":
        assert len(head.splitlines()) <= 1 + 3
        assert len(out.splitlines()) <= 24


@pytest.mark.parametrize("name", ANSWERS)
def test_json_keeps_to_its_schema(name):
    """Unknown values are null."""
    document = json.loads(as_json.render(made(name, "json")))
    keeps_to_schema(document, "clock")
    assert document["kernel"]["is_synchronised"] == (name not in ("wrong", "bare"))


def test_metrics():
    """Of the clock, the server and the daemon; none for what is unknown."""
    samples = promtext.parse(prometheus.render(made("wrong", "prometheus")))
    assert promtext.value(samples, "opskit_clock_server_offset_seconds", name="10.0.0.1") == 25200.123001
    assert promtext.value(samples, "opskit_clock_synchronised") == 0
    assert promtext.value(samples, "opskit_finding", code="clock-timezone-offset") == 1
    samples = promtext.parse(prometheus.render(made("healthy", "prometheus")))
    assert promtext.value(samples, "opskit_clock_daemon_offset_seconds", daemon="chronyd") == 0.000021
    assert promtext.value(samples, "opskit_clock_most_error_seconds") == 0.012
    assert not any(name.startswith("opskit_clock_server") for name, _ in samples)


def test_the_exit_code():
    """2 where the server gave no answer."""
    assert [made(name).exit_code for name in ("healthy", "wrong", "unanswered")] == [None, None, 2]
