"""The schedule of a sampling run, what ends it, and what it is allowed to cost; with a clock that only the test moves."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from opskit.collect.jpmp.collect import Request, Schedule
from opskit.collect.jpmp.sampling import Sampler
from opskit.errors import NoSuchProcess, TargetTimeout
from opskit.host import Host
from opskit.jvm.dumps.dialects import DumpReader

DUMP = '"main" #1 prio=5 os_prio=0 cpu=7.50ms elapsed=1.00s tid=0x1 nid=0x1 runnable\n   java.lang.Thread.State: RUNNABLE\n\tat a.B.c(B.java:1)\n\n'
STAT = "7 (java) S 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 42 0 0 0 0 0 0"


class Clock:
    """Time passes only while the sampler sleeps or a dump is taken."""

    def __init__(self):
        self.now = 100.0

    def sleep(self, seconds):
        assert seconds > 0
        self.now += seconds


class Client:
    """A JVM whose dumps take as long as the test says; an exception in the list is raised instead."""

    def __init__(self, clock, durations_s, text):
        self.clock, self.durations_s, self.text = clock, list(durations_s), text
        self.pid = 7
        self.target = SimpleNamespace(pid=7, jvm=SimpleNamespace(perf=None, start_ticks=42, main="Main"))
        self.taken_at = []

    def thread_dump(self):
        self.taken_at.append(round(self.clock.now - 100, 3))
        took = self.durations_s.pop(0)
        if isinstance(took, BaseException):
            raise took
        self.clock.now += took
        return self.text.encode()


@pytest.fixture
def sampled(tree):
    """A function that runs a plan against dumps of these durations (s); gives the run, the client and what was kept."""
    root = tree({"proc/7/stat": STAT, "proc/7/status": "Name: java\nUid: 0 0 0 0\nNSpid: 7\n"})

    def run(durations_s, interval_s=None, max_stop_percent=None, *, cpu=False, text=DUMP):
        clock = Clock()
        client = Client(clock, durations_s, text)
        host = Host.at(str(root), None)
        host.monotonic, host.sleep = lambda: clock.now, clock.sleep
        kept = []
        ask = Request(pid=7, schedule=Schedule(len(durations_s), interval_s, max_stop_percent), cpu=cpu)
        sampler = Sampler(
            host,
            client,
            DumpReader("threads" if cpu else "stacks"),
            ask,
            client.thread_dump,
            lambda number, dump: kept.append((number, dump)),
        )
        return sampler.sample(), client, kept

    return run


def test_the_schedule_is_fixed(sampled):
    """Start + n x interval, however long a dump takes."""
    run, client, kept = sampled([0.002, 0.05, 0.002, 0.002], interval_s=0.25)
    assert client.taken_at == [0, 0.25, 0.5, 0.75]
    assert (len(run.dumps), run.late, run.ended) == (4, 0, None)
    assert [number for number, _ in kept] == [1, 2, 3, 4]
    assert kept[0][1] == DUMP.encode()
    assert run.mean_interval_s == pytest.approx(0.25)


def test_late_samples_are_late_not_shifted(sampled):
    """A dump that takes longer than the interval: its slots are skipped, and the lateness is counted."""
    run, client, _ = sampled([0.002, 0.7, 0.002, 0.002], interval_s=0.25)
    assert client.taken_at == [0, 0.25, 0.95, 1.0]
    assert run.late == 1


def test_the_default_interval_is_stretched_to_spare_the_jvm(sampled):
    """Stops of 20 ms at most 1 % of the time: two seconds between samples; all stops together keep to their share."""
    run, client, _ = sampled([0.02] * 5)
    assert run.stretched
    assert client.taken_at[1] == pytest.approx(4.0)
    assert client.taken_at[-1] >= 4 * 0.02 / 0.01
    assert run.stops_are_bounds
    assert run.stopped_ms == pytest.approx(100)
    assert run.stopped_percent <= 1.0


def test_a_jvm_that_hardly_stops_is_sampled_as_planned(sampled):
    """Stops of 0.5 ms in 250 ms do not stretch the interval."""
    run, client, _ = sampled([0.0005] * 4)
    assert not run.stretched
    assert client.taken_at == [0, 0.25, 0.5, 0.75]


def test_max_stop_is_the_users_choice(sampled):
    """With 20 % of the time allowed, the interval is not stretched."""
    assert not sampled([0.02] * 4, max_stop_percent=20)[0].stretched


def test_an_interval_that_was_given_is_kept(sampled):
    """It is kept with long stops too; their share of the time is reported."""
    run, client, _ = sampled([0.02] * 4, interval_s=0.1)
    assert client.taken_at == [0, 0.1, 0.2, 0.3]
    assert run.stopped_percent > 1


def test_zero_is_as_fast_as_it_goes(sampled):
    """INTERVAL 0: one dump after another."""
    run, client, _ = sampled([0.01] * 4, interval_s=0.0)
    assert client.taken_at == [0, 0.01, 0.02, 0.03]
    assert run.late == 0


def test_a_long_first_stop_ends_the_run(sampled):
    """After a stop of over 500 ms there is no second sample, unless --max-stop is given."""
    run, client, _ = sampled([0.6, 0.002, 0.002])
    assert (len(run.dumps), run.ended, client.taken_at) == (1, "long stop", [0])
    assert run.stopped_percent is None
    assert sampled([0.6])[0].ended is None
    run, client, _ = sampled([0.6, 0.002], max_stop_percent=50)
    assert (run.ended, client.taken_at) == (None, [0, 2.4])


@pytest.mark.parametrize(
    ("stop", "ended"),
    [
        (KeyboardInterrupt(), "interrupted"),
        (NoSuchProcess(7, "it has ended"), "exited"),
        (TargetTimeout("no answer within 10 s"), "failed"),
    ],
)
def test_what_was_gathered_stays(sampled, stop, ended):
    """Ctrl-C, a JVM that ends, one that stops answering."""
    run, _, kept = sampled([0.002, 0.002, stop, 0.002], interval_s=0.25)
    assert (len(run.dumps), run.ended, len(kept)) == (2, ended, 2)
    assert run.error is (None if ended == "interrupted" else stop)


def test_a_long_run_stays_small(sampled):
    """A thread that stays where it is takes one record for all samples but the last."""
    run, _, _ = sampled([0.002] * 5, interval_s=0.25, cpu=True)
    kept = [dump.threads[0] for dump in run.dumps]
    assert kept[0] is kept[1] is kept[2] is kept[3]
    assert (kept[0].cpu_ms, kept[4].cpu_ms) == (None, 7.5)
    assert {thread.name for thread in kept} == {"main"}


def test_a_sample_is_one_dump(sampled):
    """A thread's name with line breaks may contain the head of a second dump."""
    named = DUMP.replace("main", "x\nFull thread dump X (1):\n")
    run, _, _ = sampled([0.002] * 3, interval_s=0.25, text=f"Full thread dump Y (2):\n\n{DUMP}{named}{DUMP}{DUMP}")
    assert len(run.dumps) == len(run.times_s) == 3


def test_nothing_gathered_is_an_error(sampled):
    """Without any sample the error is raised."""
    with pytest.raises(TargetTimeout):
        sampled([TargetTimeout("no answer within 10 s")])
