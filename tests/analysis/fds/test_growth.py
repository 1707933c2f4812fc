"""What grows, how steadily, and when the limit is reached."""

from __future__ import annotations

import pytest

from opskit.analysis.fds.growth import group_growth, kept, total_growth
from opskit.analysis.fds.judge import judge
from opskit.collect.fds.facts import Facts, Group
from opskit.proc.files.limits import UNLIMITED, Rlimit
from opskit.proc.open_files import OpenFiles
from opskit.proc.process import Process

PROCESS = Process(4242, "orders", 1000, "app", 1, 77, "S", 40)
CLOSE_WAIT = ("tcp", "CLOSE_WAIT to 10.0.0.9:443")


def facts(at_s, counts, *, limit=1024, is_jvm=False):
    """A look with these counts by kind and detail."""
    groups = tuple(Group(*key, fds, 3, 3 + fds, "socket:[1]") for key, fds in counts.items() if fds)
    used = sum(counts.values())
    soft = UNLIMITED if limit is None else limit
    return Facts(
        PROCESS, OpenFiles(used, Rlimit(soft, soft)), groups, at_s, 1e9 + at_s, used, is_jvm, raise_limit="prlimit …"
    )


def looks(*counts, every_s=2.0, **options):
    """Looks with these counts of CLOSE_WAIT, beside 20 files."""
    return [
        facts(number * every_s, {CLOSE_WAIT: each, ("file", "/srv"): 20}, **options)
        for number, each in enumerate(counts)
    ]


def judged(samples):
    return judge(samples[-1], samples)


def test_the_group_that_grows():
    """First and last count, the pace of the line through all, the time to the limit."""
    [growth] = group_growth(looks(12, 32, 52, 72, 90))
    assert (growth.group.detail, growth.first, growth.last, growth.is_steady) == (CLOSE_WAIT[1], 12, 90, True)
    assert growth.per_min == pytest.approx(588)
    assert growth.full_s == pytest.approx((1024 - 110) / 9.8)
    total = total_growth(looks(12, 32, 52, 72, 90))
    assert (total.group, total.first, total.last) == (None, 32, 110)
    assert total.full_s == growth.full_s


def test_no_growth_without_two_looks():
    assert group_growth(looks(5)) == group_growth([]) == []
    assert total_growth(looks(5)) is None
    assert total_growth([]) is None


def test_no_time_to_a_limit_that_is_none_or_unknown_or_not_approached():
    assert total_growth(looks(1, 2, 3, limit=None)).full_s is None
    assert total_growth([each._replace(open=None) for each in looks(1, 2, 3)]).full_s is None
    assert total_growth(looks(3, 2, 1)).full_s is None
    assert total_growth(looks(3, 9, 3)).full_s is None
    assert total_growth(looks(1, 2, 3, limit=23)).full_s == 0


def test_steady_growth_comes_first_then_the_fastest():
    """A burst that is faster than a leak does not hide it. A group that is new grew from 0."""
    samples = [
        facts(
            number,
            {
                ("eventfd", ""): number,
                ("file", "/a"): 0 if number < 3 else 500,
                ("epoll", ""): 7,
                ("pipe", ""): 9 - number,
            },
        )
        for number in range(6)
    ]
    found = group_growth(samples)
    assert [(each.group.kind, each.first, each.last, each.is_steady) for each in found] == [
        ("eventfd", 0, 5, True), ("file", 0, 500, False),
    ]  # fmt: skip


def test_growth_that_slows_down_is_not_steady():
    """A server that gets its connections: more in each look, and fewer each time."""
    steady = {True: [0, 8, 16, 22, 28, 34, 40], False: [0, 30, 45, 52, 55, 57, 58]}
    for expected, counts in steady.items():
        [growth] = group_growth(looks(*counts))
        assert growth.is_steady is expected
        assert [finding.code for finding in judged(looks(*counts)).findings] == ["fds-keep-growing"] * expected


def test_a_long_watch_keeps_its_ends():
    """At most 720 looks; their growth is that of all."""
    samples = []
    for number in range(3000):
        samples = kept([*samples, facts(number, {CLOSE_WAIT: number + 1}, limit=10_000)])
        assert len(samples) <= 720
    assert (samples[0].at_s, samples[-1].at_s) == (0, 2999)
    [growth] = group_growth(samples)
    assert (growth.first, growth.last, growth.is_steady) == (1, 3000, True)
    assert growth.per_min == pytest.approx(60)


def test_a_leak_of_connections_is_a_warning():
    """The peer has closed them; the finding has the numbers, the limit and what to look at next."""
    [finding] = judged(looks(12, 32, 52, 72, 90)).findings
    assert (finding.code, finding.severity, finding.entity.id, finding.entity.start_ticks) == (
        "fds-keep-growing", "warning", 4242, 77,
    )  # fmt: skip
    assert "CLOSE_WAIT to 10.0.0.9:443 grew from 12 to 90" in finding.summary
    assert "limit reached in 93.3 s at this pace" in finding.summary
    assert (finding.next, finding.window_s) == ("opskit tcp 4242", 8.0)
    [finding] = judged(looks(12, 32, 52, 72, 90, limit=1 << 20)).findings
    assert finding.severity == "warning"
    [finding] = judged(looks(12, 32, 52, 72, 90, limit=None, is_jvm=True)).findings
    assert "limit" not in finding.summary
    assert finding.next == "opskit fds 4242 --ask"


def test_a_server_that_gets_its_connections_is_no_warning():
    """Far from its limit it may be at work; near it, it is a warning."""
    key = ("tcp", "ESTAB from 10.0.0.5 to port 8080")
    slow = [facts(number * 2, {key: 10 + number}, limit=65536) for number in range(6)]
    assert [finding.severity for finding in judged(slow).findings] == ["note"]
    fast = [facts(number * 2, {key: 10 + number}, limit=100) for number in range(6)]
    assert [finding.severity for finding in judged(fast).findings] == ["warning"]


def test_work_that_comes_and_goes_is_no_finding():
    """Also CLOSE_WAIT in passing, and a burst."""
    assert judged(looks(3, 7, 2, 9, 4, 8, 3)).findings == ()
    assert judged(looks(0, 50, 50, 50, 50, 50)).findings == ()
    assert judged(looks(5, 5, 5, 5, 5, 5)).findings == ()


def test_all_together_where_no_group_does():
    """Each of many places grows by one: the process does."""
    samples = [facts(number, {("file", f"/{each}"): 1 for each in range(number + 5)}) for number in range(7)]
    [finding] = judged(samples).findings
    assert "all file descriptors grew from 5 to 11" in finding.summary
    assert finding.next == "ls -l /proc/4242/fd"


def test_headroom():
    """More than 80 % of the limit; none left is an error. What they are is the evidence. A sandbox's limit of 1 is meant."""
    [finding] = judge(facts(0, {CLOSE_WAIT: 900, ("file", "/srv"): 20, ("epoll", ""): 3, ("pipe", ""): 1})).findings
    assert (finding.code, finding.severity, finding.fix) == ("rlimit-nearly-used", "warning", "prlimit …")
    assert (
        finding.summary
        == "orders (4242): 100 more files can be opened, 924 of 1,024 open files are used (RLIMIT_NOFILE)"
    )
    assert finding.evidence.startswith("900 CLOSE_WAIT to 10.0.0.9:443, 20 file /srv, 3 epoll, … 1 more; /proc/4242/fd")
    assert finding.share == pytest.approx(924 / 1024)
    [finding] = judge(facts(0, {CLOSE_WAIT: 1024})).findings
    assert (finding.severity, finding.share) == ("error", 1.0)
    assert "no file descriptor left" in finding.summary
    assert judge(facts(0, {CLOSE_WAIT: 819})).findings == ()
    assert judge(facts(0, {CLOSE_WAIT: 1}, limit=1)).findings == ()
    assert judge(facts(0, {CLOSE_WAIT: 5000}, limit=None)).findings == ()
