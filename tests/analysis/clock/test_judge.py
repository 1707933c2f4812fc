"""What is concluded: healthy machines first, then each thing that may be wrong."""

from __future__ import annotations

import pytest
from clockfacts import BAD, BARE, CHRONYD, GOOD, HEALTHY, LOST, TRACKING, server, view

from opskit.analysis.clock.judge import judge
from opskit.collect.clock.facts import Daemon, Rate, Rtc, Source, Step
from opskit.proc.files.timens_offsets import TimeOffsets
from opskit.proc.kernel.adjtimex import DELETE, INSERT, UNSYNCHRONISED
from opskit.proc.kernel.clock_reads import ReadCost
from opskit.proc.zones import Zone

NTPD = Daemon("ntpd", 500, 5000, may_set=True, age_s=86400.0, shares_network=True)


def codes(result):
    return [(each.severity, each.code) for each in result.findings]


def with_kernel(facts=HEALTHY, **changed):
    return facts._replace(kernel=facts.kernel._replace(**changed))


HEALTHY_MACHINES = {
    "chronyd": (HEALTHY, [TRACKING]),
    "chronyd that does not tell the kernel (no rtcsync)": (HEALTHY._replace(kernel=BAD), [TRACKING]),
    "chronyd that cannot be asked": (HEALTHY, [TRACKING._replace(is_synchronised=None, problem="chronyc is not installed")]),
    "a container, whose host has the daemon": (HEALTHY._replace(daemons=(), sees_all=False, container="its pid namespace"), []),
    "ptp": (HEALTHY._replace(daemons=(Daemon("phc2sys", 7, 1, True, 90.0, True), Daemon("ptp4l", 8, 1, True, 90.0, True)), is_virtual=True), []),
    "ptp, beside a chronyd that only serves the time": (
        HEALTHY._replace(daemons=(CHRONYD, Daemon("phc2sys", 7, 1, True, 90.0, True))), [LOST._replace(is_local=True)],
    ),
    "chronyd in a container without rights beside that of the host": (
        HEALTHY._replace(daemons=(CHRONYD, CHRONYD._replace(pid=9, may_set=False))), [TRACKING],
    ),
    "a polling interval of 17 minutes": (with_kernel(most_error_s=0.6), [TRACKING]),
    "a slow link": (HEALTHY._replace(server=server(0.2, delay_s=0.5)), [TRACKING]),
    "a server far from its reference": (HEALTHY._replace(server=server(0.3, root_dispersion_s=0.4)), [TRACKING]),
    "an offset of 100 ms": (HEALTHY._replace(server=server(-0.1)), [TRACKING]),
    "an RTC that drifts by seconds": (HEALTHY._replace(rtc=Rtc("rtc0", 12.0, "UTC")), [TRACKING]),
    "an RTC in local time that says so": (HEALTHY._replace(rtc=Rtc("rtc0", 7200.4, "LOCAL")), [TRACKING]),
    "a process in UTC": (HEALTHY._replace(view=view()), [TRACKING]),
    "a Java process with a zone of its own database": (
        HEALTHY._replace(view=view(Zone("TZ", "Europe/Berlin", 0.0, is_missing=True), is_java=True)), [TRACKING],
    ),
    "a time namespace without offsets": (HEALTHY._replace(view=view(offsets=TimeOffsets(0, 0))), [TRACKING]),
    "a rate of an ordinary crystal": (HEALTHY._replace(rate=Rate(-85.0, 60.0), watched_s=60.0), [TRACKING]),
    "a slow machine: both calls cost": (HEALTHY._replace(source=Source("tsc", ("tsc",), ReadCost(900.0, 2500.0))), [TRACKING]),
}  # fmt: skip


@pytest.mark.parametrize("name", HEALTHY_MACHINES)
def test_a_healthy_machine_has_no_finding(name):
    """And at most three lines."""
    result = judge(*HEALTHY_MACHINES[name])
    assert result.findings == ()
    assert len(result.verdict) <= 3
    assert result.sync.state == "synchronised"


def test_a_container_whose_host_has_lost_its_daemon():
    """The kernel is the host's: its error has grown for hours."""
    facts = with_kernel(HEALTHY._replace(daemons=(), sees_all=False, container="its pid namespace"), most_error_s=5.6)
    result = judge(facts)
    assert (result.sync.state, codes(result)) == ("stale", [("note", "clock-unsynchronised")])
    assert result.verdict[0].endswith("about 3 h 6 min: time daemons outside of this container cannot be seen.")
    assert judge(with_kernel(facts, most_error_s=3.0)).findings == ()


def test_a_daemon_counts_more_than_no_kernel():
    """A sandbox forbids adjtimex(2)."""
    result = judge(HEALTHY._replace(kernel=None, kernel_problem="adjtimex(2): Operation not permitted"), [LOST])
    assert (result.sync.state, codes(result)) == ("unsynchronised", [("warning", "clock-daemon-unsynchronised")])


def test_the_verdict_of_a_healthy_machine():
    """Who keeps it right, and how right it is."""
    assert judge(HEALTHY, [TRACKING]).verdict == [
        "The clock is synchronised by chronyd (412), which follows 10.0.0.1, at most 4.2 ms off."
    ]


@pytest.mark.parametrize(
    ("offset_s", "words"),
    [
        (25200.123001, "7 h behind 10.0.0.1: matches a timezone offset"),
        (-7200.0, "2 h ahead of 10.0.0.1: matches a timezone offset"),
        (20700.2, "5 h 45 min behind 10.0.0.1: matches a timezone offset"),
        (-50400 + 41, "14 h ahead of 10.0.0.1: matches a timezone offset"),
        (3600 - 0.5, "1 h behind 10.0.0.1: matches a timezone offset"),
    ],
)
def test_an_offset_of_a_time_zone(offset_s, words):
    """A multiple of 15 minutes."""
    result = judge(HEALTHY._replace(server=server(offset_s)), [TRACKING])
    assert result.verdict[0].startswith(f"The clock is {words} ({offset_s:+.6f} s to add, ")
    assert codes(result) == [("warning", "clock-timezone-offset")]


@pytest.mark.parametrize(("offset_s", "words"), [
    (3.2, "3.2 s behind"), (-0.5, "500 ms ahead of"), (3600 + 61, "1 h 1 min behind"), (900 + 11, "15 min 11 s behind"), (15 * 3600, "15 h behind"),
    (-86400 * 365, "365 days ahead of"), (450, "7 min 30 s behind"),
])  # fmt: skip
def test_another_offset(offset_s, words):
    """It matches no time zone."""
    result = judge(HEALTHY._replace(server=server(offset_s)), [TRACKING])
    assert result.verdict[0].startswith(f"The clock is {words} 10.0.0.1 (")
    assert codes(result) == [("warning", "clock-offset")]


def test_a_clock_that_agrees():
    """Within the error of the measurement."""
    assert judge(HEALTHY._replace(server=server(0.0005)), [TRACKING]).verdict[0] == (
        "The clock agrees with 10.0.0.1: the offset is +0.000500 s, right within 1.1 ms."
    )


@pytest.mark.parametrize(
    ("given", "words"),
    [({"leap": 3}, "leap indicator 3"), ({"stratum": 16}, "stratum 16"), ({"root_dispersion_s": 20.0}, "20 s or more")],
)
def test_a_server_that_is_not_synchronised_proves_nothing(given, words):
    """A note, whatever its offset."""
    result = judge(HEALTHY._replace(server=server(25200.0, **given)), [TRACKING])
    assert codes(result) == [("note", "clock-server-unsynchronised")]
    assert words in result.findings[0].summary
    assert result.verdict[0].startswith("The offset to 10.0.0.1 is unknown: ")
    assert result.is_answered


def test_no_answer_of_the_server():
    """The question is not answered; the rest is."""
    result = judge(HEALTHY._replace(server=server(problem="no reply within 1 s")), [TRACKING])
    assert (result.findings, result.is_answered) == ((), False)
    assert result.verdict[0] == "The offset to 10.0.0.1 is unknown: no reply within 1 s."
    assert list(result.notes) == ["10.0.0.1: no reply within 1 s"]


@pytest.mark.parametrize(
    ("facts", "severity", "words"),
    [
        (BARE, "warning", "no time daemon runs"),
        (BARE._replace(is_virtual=True), "note", "the hypervisor may set it"),
        (BARE._replace(is_virtual=None), "note", "no time daemon runs"),
        (BARE._replace(sees_all=False), "note", "of other users (hidepid) cannot be seen"),
        (
            BARE._replace(sees_all=False, container="its pid namespace"),
            "note",
            "outside of this container cannot be seen",
        ),
        (BARE._replace(container="its pid namespace"), "note", "no time daemon runs"),
        (BARE._replace(daemons=(Daemon("vmtoolsd", 9, 1, True, 9.0, True),)), "note", "vmtoolsd (9) may set the clock"),
    ],
)
def test_nobody_synchronises_the_clock(facts, severity, words):
    """A warning only on a machine of its own where everything is visible."""
    result = judge(facts)
    assert codes(result) == [(severity, "clock-unsynchronised")]
    assert words in result.findings[0].summary
    assert result.sync.state == "unsynchronised"


def test_a_daemon_that_has_ended():
    """The kernel still believes that it is synchronised; its error has grown since."""
    result = judge(with_kernel(HEALTHY._replace(daemons=()), most_error_s=5.4))
    assert (result.sync.state, codes(result)) == ("stale", [("warning", "clock-unsynchronised")])
    assert result.verdict == [
        "The clock was synchronised, but nothing has corrected it for about 3 h 0 min: no time daemon runs."
    ]


@pytest.mark.parametrize(
    ("age_s", "answer", "severity"),
    [
        (86400.0, LOST, "warning"),
        (30.0, LOST, "note"),
        (None, LOST, "note"),
        (86400.0, LOST._replace(is_local=True, reference="its own clock"), "note"),
    ],
)
def test_a_daemon_without_a_server(age_s, answer, severity):
    """A warning when it had the time to find one."""
    for kernel in (GOOD, BAD):
        result = judge(HEALTHY._replace(kernel=kernel, daemons=(CHRONYD._replace(age_s=age_s),)), [answer])
        assert codes(result) == [(severity, "clock-daemon-unsynchronised")]
        assert result.findings[0].next == "chronyc -n sources"
        assert result.sync.state == "unsynchronised"


TIMESYNCD = TRACKING._replace(daemon="systemd-timesyncd", tool=("timedatectl", "show-timesync"), pid=600, offset_s=None)


@pytest.mark.parametrize(
    ("kernel", "answer"),
    [
        (GOOD, TRACKING._replace(age_s=5 * 3600.0, interval_s=1024.0)),
        (GOOD._replace(most_error_s=9.0), TIMESYNCD),
        (GOOD._replace(status=UNSYNCHRONISED, state="TIME_ERROR", most_error_s=9.0), TIMESYNCD),
    ],
)
def test_a_daemon_that_has_lost_its_server(kernel, answer):
    """It goes on saying that it is synchronised."""
    result = judge(HEALTHY._replace(kernel=kernel), [answer])
    assert codes(result) == [("warning", "clock-daemon-unsynchronised")]
    assert result.sync.state == "stale"
    whom, age = f"{answer.daemon} ({answer.pid})", "5 h 0 min"
    assert result.verdict == [
        f"The clock was synchronised, but {whom}, which follows 10.0.0.1, has heard from no server for about {age}."
    ]


@pytest.mark.parametrize(
    ("kernel", "answer"),
    [
        (GOOD, TRACKING._replace(age_s=2100.0, interval_s=1030.0)),
        (GOOD, TRACKING._replace(age_s=20 * 3600.0, interval_s=4 * 3600.0)),  # a long polling interval
        (BAD, TIMESYNCD),  # somebody has set the clock: the kernel forgets its errors
        (GOOD._replace(most_error_s=1.0), TIMESYNCD),
    ],
)
def test_a_daemon_that_asks_seldom(kernel, answer):
    """It is synchronised."""
    result = judge(HEALTHY._replace(kernel=kernel), [answer])
    assert (result.sync.state, result.findings) == ("synchronised", ())


def test_a_daemon_that_says_how_wrong_the_clock_is():
    """It slews an offset of seconds, or of a time zone."""
    result = judge(HEALTHY, [TRACKING._replace(offset_s=3.0)])
    assert codes(result) == [("warning", "clock-offset")]
    assert result.verdict == ["The clock is 3.0 s behind the time of chronyd (412), which follows 10.0.0.1."]
    result = judge(HEALTHY, [TRACKING._replace(offset_s=-3600.2)])
    assert codes(result) == [("warning", "clock-timezone-offset")]
    assert result.verdict[0].endswith(
        "1 h ahead of the time of chronyd (412), which follows 10.0.0.1: matches a timezone offset."
    )


def test_a_daemon_that_cannot_be_asked():
    """The kernel was not told: unknown, no finding."""
    answer = TRACKING._replace(is_synchronised=None, offset_s=None, problem="chronyc: 506 Cannot talk to daemon")
    result = judge(HEALTHY._replace(kernel=BAD), [answer])
    assert (result.sync.state, result.findings) == ("unknown", ())
    assert list(result.notes) == ["chronyd was not asked: chronyc: 506 Cannot talk to daemon"]


def test_two_daemons():
    """Of different kinds, both with the right to set the clock."""
    result = judge(HEALTHY._replace(daemons=(CHRONYD, NTPD)), [TRACKING])
    assert codes(result) == [("warning", "clock-two-daemons")]
    assert result.findings[0].next == "ps -fp 412,500"
    assert judge(HEALTHY._replace(daemons=(CHRONYD, CHRONYD._replace(pid=413))), [TRACKING]).findings == ()
    assert judge(HEALTHY._replace(daemons=(CHRONYD, NTPD._replace(may_set=None))), [TRACKING]).findings == ()


def test_a_daemon_without_the_right():
    """A note where no other daemon runs."""
    result = judge(BARE._replace(daemons=(CHRONYD._replace(may_set=False),), is_virtual=True))
    assert codes(result) == [("note", "clock-unsynchronised"), ("note", "clock-daemon-powerless")]


def test_no_adjtimex():
    """A sandbox forbids it."""
    result = judge(HEALTHY._replace(kernel=None, kernel_problem="adjtimex(2): Operation not permitted"))
    assert (result.sync.state, result.findings) == ("unknown", ())
    assert result.verdict == ["Whether the clock is synchronised is unknown: adjtimex(2): Operation not permitted."]


@pytest.mark.parametrize(
    ("source", "cost", "expected", "fix"),
    [
        ("hpet", (1200.0, 180.0), [("warning", "clock-source-slow")], True),
        ("acpi_pm", (150.0, 180.0), [("warning", "clock-source-slow")], True),
        ("tsc", (190.0, 180.0), [("note", "clock-source-slow")], False),
        ("hpet", (30.0, 180.0), [], False),  # it is measured, not guessed
    ],
)
def test_a_slow_clocksource(source, cost, expected, fix):
    """Above 0.6 of a system call."""
    result = judge(HEALTHY._replace(source=Source(source, ("tsc", source), ReadCost(*cost))), [TRACKING])
    assert codes(result) == expected
    if fix:
        assert result.findings[0].fix == "echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource"


def test_a_slow_clocksource_without_another():
    """No command would help."""
    assert judge(HEALTHY._replace(source=Source("hpet", ("hpet",), ReadCost(900.0, 90.0)))).findings[0].fix is None


@pytest.mark.parametrize(
    ("rtc", "severity", "words"),
    [
        (Rtc("rtc0", 7200.3, "UTC"), "warning", "2 h ahead of the system clock: it keeps local time (UTC+2), not UTC"),
        (Rtc("rtc0", -25200.3, "UTC"), "warning", "7 h behind the system clock: matches a timezone offset"),
        (Rtc("rtc0", 7200.3, None), "note", "2 h ahead of the system clock"),
        (Rtc("rtc0", 300.0, "UTC"), "note", "5 min ahead of the system clock;"),
        (Rtc("rtc0", -(86400.0 * 9000), "LOCAL"), "note", "9,000 days behind"),
    ],
)
def test_the_hardware_clock(rtc, severity, words):
    """A warning where /etc/adjtime says otherwise."""
    facts = HEALTHY._replace(rtc=rtc, zone=Zone("/etc/localtime", "Europe/Berlin", 7200.0))
    result = judge(facts, [TRACKING])
    assert codes(result) == [(severity, "clock-rtc-offset")]
    assert words in result.findings[0].summary
    assert codes(judge(facts._replace(container="x"), [TRACKING])) == [("note", "clock-rtc-offset")]


def test_steps():
    """All of the watch stay a finding; the last one is told."""
    steps = [Step(1.0, 0.01, "T1"), Step(2.0, -25200.0, "T2")]
    result = judge(HEALTHY._replace(steps=steps, watched_s=4.0), [TRACKING])
    assert codes(result) == [("warning", "clock-stepped")]
    assert result.verdict[0] == "The clock was set back by 7 h at T2, 2 steps so far."
    assert "matches a timezone offset" in result.findings[0].summary
    assert result.findings[0].window_s == 4.0
    result = judge(HEALTHY._replace(steps=steps, older_steps=98, watched_s=4.0), [TRACKING])
    assert result.verdict[0].endswith(", 100 steps so far.")
    assert "the clock was set 100 times" in result.findings[0].summary


def test_a_leap_second_is_no_fault():
    """Announced, and inserted while watched."""
    for status, word in ((INSERT, "inserted"), (DELETE, "deleted")):
        result = judge(with_kernel(status=0x2001 | status), [TRACKING])
        assert codes(result) == [("note", "clock-leap-second")]
        assert word in result.findings[0].summary
    result = judge(HEALTHY._replace(steps=[Step(1.0, -1.0, "T", in_leap_second=True)], watched_s=2.0), [TRACKING])
    assert codes(result) == [("note", "clock-leap-second")]
    assert result.verdict[0] == "A leap second was inserted at T."


def test_the_rate():
    """Slewed, and at the kernel's limit; measured where it was."""
    assert codes(judge(with_kernel(rate_ppm=-500.0), [TRACKING])) == [("note", "clock-rate")]
    assert "43" in judge(with_kernel(rate_ppm=-500.0), [TRACKING]).findings[0].summary  # seconds a day
    slewing = judge(
        with_kernel(HEALTHY._replace(rate=Rate(83333.0, 20.0), watched_s=20.0), rate_ppm=83333.0), [TRACKING]
    )
    assert codes(slewing) == [("note", "clock-rate")]
    assert "83,333 ppm faster" in slewing.findings[0].summary


def test_a_process_under_libfaketime():
    """The shift of FAKETIME, where it is one."""
    lie = view(faked_by="/usr/lib/faketime/libfaketime.so.1", fake="-7h")
    result = judge(HEALTHY._replace(view=lie), [TRACKING])
    assert codes(result) == [("warning", "clock-faked")]
    assert result.verdict[0] == (
        "4242 (orders) does not see the machine's clock: libfaketime sets its clock 7 h behind (FAKETIME=-7h); its local time is UTC, "
        "as the machine has it."
    )
    assert result.findings[0].entity.id == 4242
    for fake, words in (
        (None, "libfaketime is loaded;"),
        ("@2020-12-24", "libfaketime is loaded (FAKETIME=@2020-12-24);"),
    ):
        assert words in judge(HEALTHY._replace(view=lie._replace(fake=fake))).verdict[0]
    assert judge(HEALTHY._replace(view=view(fake="-7h")), [TRACKING]).findings == ()  # the variable alone does nothing


def test_zones_of_a_process():
    """Another one, one that does not exist, an unknown one."""
    result = judge(HEALTHY._replace(view=view(Zone("TZ", "America/Los_Angeles", -28800.0))), [TRACKING])
    assert codes(result) == [("note", "clock-zone-differs")]
    assert "8 h behind the machine's: UTC-8, not UTC" in result.findings[0].summary
    result = judge(HEALTHY._replace(view=view(Zone("TZ", "Europe/Berln", 0.0, is_missing=True))), [TRACKING])
    assert codes(result) == [("note", "clock-zone-missing")]
    result = judge(HEALTHY._replace(view=view(None, problems=("permission denied",))), [TRACKING])
    assert (result.findings, list(result.notes)) == ((), ["permission denied"])
    assert (
        result.verdict[0]
        == "What 4242 (orders) takes for the time is unknown: its time zone and libraries cannot be read."
    )


def test_a_zone_that_only_java_knows():
    """Its offset is unknown; it is no misspelt name."""
    zone = Zone("-Duser.timezone", "PST", None, is_missing=True)
    result = judge(HEALTHY._replace(view=view(zone, is_java=True)), [TRACKING])
    assert result.findings == ()
    assert result.verdict[0].endswith("; the offset of its time zone (-Duser.timezone=PST) is unknown.")


def test_a_time_namespace():
    """Its date is the machine's."""
    result = judge(HEALTHY._replace(view=view(offsets=TimeOffsets(86400.0, -10.0))), [TRACKING])
    assert codes(result) == [("note", "clock-time-namespace")]
    assert "monotonic clock is 24 h 0 min ahead and its boot time clock is 10.0 s behind" in result.findings[0].summary


def test_opskit_under_libfaketime():
    """No verdict: all that it reads is false."""
    steps = [Step(1.0, 25200.0, "T")]
    result = judge(
        BARE._replace(faked_by="/x/libfaketime.so.1", server=server(25200.0), steps=steps, watched_s=2.0), [TRACKING]
    )
    assert result.findings == ()
    assert (result.is_answered, result.skew, result.is_slow_source, len(result.verdict)) == (False, None, None, 1)
    assert result.verdict[0].endswith("run env -u LD_PRELOAD opskit clock.")
