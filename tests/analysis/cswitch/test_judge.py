"""What takes the CPU from threads: each cause, the healthy machine that comes close to it, and any facts at all."""

from __future__ import annotations

import cswitchfacts as made
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opskit.analysis.cswitch.judge import judge
from opskit.collect.cpu_use import CpuUse
from opskit.collect.cswitch.facts import CpuLoad, Handoff, ProcessWaits, Quota

IDLE_NEIGHBOUR = (made.BUSY_CPUS[0], made.IDLE_CPUS[1])
FIRST = frozenset({0})
PINNED = made.burner(0, 0.6, allowed=FIRST)


def of(**more):
    return judge(made.facts(**more))


@pytest.mark.parametrize(
    "name", ["starved", "throttled", "flooded", "healthy", "still", "unknown", "host", "quiet_host"]
)
def test_the_answers_that_are_shown(name):
    """The sentences of the views' examples are those of the program."""
    example = getattr(made, name)()
    result = judge(example.facts)
    assert result.verdict == example.verdict
    assert [row.why for row in result.rows] == [row.why for row in example.rows]
    assert [row.why for row in result.processes] == [row.why for row in example.processes]


@pytest.mark.parametrize(
    ("name", "codes"),
    [
        ("starved", {("jvm-cpu-wait", "warning")}),
        ("throttled", {("cpu-throttled", "warning")}),
        ("flooded", {("irq-pinned-thread", "warning")}),
        ("healthy", set()),
        ("host", {("runnable-above-cpus", "note")}),
        ("quiet_host", set()),
        ("unknown", set()),
    ],
)
def test_findings(name, codes):
    """Each cause has its code; a machine that batch work uses up has a note."""
    assert {(each.code, each.severity) for each in judge(getattr(made, name)().facts).findings} == codes


def test_threads_of_others_are_counted():
    """One thread against seven of another process: eight on two CPUs, and whose they are."""
    others = (ProcessWaits(made.SHELL._replace(pid=99, command="ffmpeg"), 1.7, 5.3, 800.0, 7, None),)
    result = of(threads=(made.burner(0, 0.75),), processes=others)
    assert result.verdict[0] == (
        "order-book-burner-0 waits 75 % of the time for a CPU: 8 runnable threads on 2 CPUs, 7 of other processes (most of 99, ffmpeg)."
    )
    assert result.next == "opskit cswitch"


def test_pinned_to_a_busy_cpu():
    """The CPU to pin to is named; not an isolated one, nor one outside the cpuset."""
    result = of(threads=(PINNED,), cpus=IDLE_NEIGHBOUR)
    [finding] = result.findings
    assert result.verdict[0].endswith("it is pinned to CPU 0, which is busy, while CPU 1 is idle.")
    assert (finding.code, finding.fix) == ("thread-pinned-to-busy-cpu", "taskset -pc 1 4250")
    assert finding.entity.kind == "thread"
    for more in ({"isolated": frozenset({1})}, {"cpuset": FIRST}):
        assert [row.why for row in of(threads=(PINNED,), cpus=IDLE_NEIGHBOUR, **more).rows] == ["outnumbered"]


def test_a_wait_while_cpus_are_idle_has_no_cause():
    """Bursts, and what the scheduler places badly, are said as numbers."""
    result = of(threads=(made.burner(0, 0.4),), cpus=made.IDLE_CPUS)
    assert not result.findings
    assert result.rows[0].why == ""
    assert "in bursts: its 2 CPUs are idle 98 % of the time" in result.verdict[0]


@pytest.mark.parametrize("modest", [{"nice": 19}, {"policy": 5}])
def test_what_asked_for_the_rest_is_no_warning(modest):
    """Threads with nice 19 and SCHED_IDLE wait by design: a note for them alone, and others come first."""
    alone = of(threads=(made.burner(0, 0.9, **modest),))
    assert [each.severity for each in alone.findings] == ["note"]
    beside = of(threads=(made.burner(0, 0.9, **modest), made.burner(1, 0.01)))
    assert not beside.findings
    assert "order-book-burner-1" in beside.verdict[0]


def test_two_on_each_cpu_are_no_warning():
    """As a build does on a healthy machine: half of the time is said, without a finding."""
    result = of(threads=tuple(made.burner(number, 0.5) for number in range(4)))
    assert not result.findings
    assert result.verdict[0] == "order-book-burner-0 waits 50 % of the time for a CPU: 4 runnable threads on 2 CPUs."


def test_softirqs_of_ones_own_packets_are_no_loss():
    """A server over loopback receives in softirqs what it sends itself: its system time is longer."""
    cpu = CpuLoad(CpuUse(0, 0.2, 0.5, 0.0, 0.3, 0.0, 0.0), 90_000.0)
    server = made.burner(0, 0.01, allowed=FIRST, running=0.98)
    assert of(threads=(server,), cpus=(cpu, made.IDLE_CPUS[1])).rows[0].why == ""
    free = made.burner(0, 0.002, running=0.998)
    assert of(threads=(free,), cpus=made.FLOODED_CPUS).rows[0].why == "", "it may use the other CPU"


def test_only_threads_of_its_cpus_are_counted():
    """Others count where they run: all of the time on its CPU, half of it where they may use two, not at all elsewhere."""
    thread = made.burner(0, 0.9, allowed=FIRST)
    others = [
        ProcessWaits(made.SHELL._replace(pid=pid), 0.5, 1.5, 90.0, 2, made.burner(1, 0.75, allowed=allowed))
        for pid, allowed in ((91, FIRST), (92, made.BOTH), (93, frozenset({1})))
    ]
    said = of(threads=(thread,), processes=tuple(others)).verdict[0]
    assert "4 runnable threads on 1 CPU, 3 of other processes (most of 91, bash)" in said


def test_processes_of_one_job_are_no_warning():
    """A compile with -j8 uses all of a healthy machine: each of its processes waits for the others."""
    one = made.BOOK._replace(command="cc1", threads=1)
    others = tuple(ProcessWaits(one._replace(pid=pid), 0.25, 0.75, 60.0, 1, None) for pid in range(4300, 4307))
    job = {"process": one, "threads": (made.burner(0, 0.75),), "is_jvm": False}
    assert [(each.code, each.severity) for each in of(**job, processes=others).findings] == [("jvm-cpu-wait", "note")]
    java = {**job, "process": one._replace(command="java"), "is_jvm": True}
    servers = tuple(each._replace(process=each.process._replace(command="java")) for each in others)
    assert of(**java, processes=servers).findings[0].severity == "warning", "other JVMs are other programs"
    own = tuple(made.burner(number, 0.75, tid=number) for number in range(8))
    assert of(**job | {"threads": own}, processes=others[:1]).findings[0].severity == "warning", "its own threads"
    foreign = tuple(each._replace(process=each.process._replace(command="ffmpeg")) for each in others)
    assert of(**job, processes=foreign).findings[0].severity == "warning"


def test_a_quota_on_a_busy_machine():
    """Where others use the CPUs too, a cgroup is throttled late in each period: in all of them it gets no more than its quota."""
    own, other = Quota("/app", 0.5, 20, 19, 0.12), Quota("/batch", 1.0, 20, 20, 0.9)
    threads = (made.burner(0, 0.87, throttled=0.12, throttled_by="/app"),)
    result = of(threads=threads, quotas=(own, other))
    assert result.verdict[0].endswith("its cgroup /app has used up its quota of 0.5 CPUs in 95 % of the periods.")
    assert [each.code for each in result.findings] == ["cpu-throttled"]
    seldom = of(threads=threads, quotas=(own._replace(throttled_periods=4), other))
    assert seldom.rows[0].why == "outnumbered"


def test_steal():
    """What the hypervisor takes is in no thread's counters."""
    stolen = tuple(CpuLoad(CpuUse(number, 0.7, 0.02, 0.0, 0.0, 0.28, 0.0)) for number in (0, 1))
    result = of(threads=(made.burner(0, 0.05),), cpus=stolen)
    assert [each.code for each in result.findings] == ["cpu-stolen"]
    assert "losing 28 % of its 2 CPUs to the hypervisor" in result.verdict[0]
    sleeper = of(threads=(made.SLEEPER,), cpus=stolen)
    assert not sleeper.findings, "it lost nothing that it wanted"


def test_softirqs_beside_other_threads():
    """What takes more of the CPU is named; ksoftirqd, for which a thread waits, does the work of softirqs."""
    starved = made.burner(0, 0.97, allowed=FIRST)
    crowded = of(threads=(starved,), cpus=made.FLOODED_CPUS)
    assert crowded.rows[0].why == "pinned", "another thread has the CPU"
    kernel = made.SHELL._replace(pid=14, command="ksoftirqd/0", ppid=2)
    half = made.burner(0, 0.5, allowed=FIRST)
    for process, why in ((kernel, "softirqs"), (kernel._replace(ppid=4242), "pinned")):
        beside = (ProcessWaits(process, 0.45, 0.0, 90.0, 1, None),)
        assert of(threads=(half,), cpus=made.FLOODED_CPUS, processes=beside).rows[0].why == why


def test_each_cause_has_its_finding():
    """A thread that loses its CPU unseen, beside one whose wait is no finding: the answer is about the warning."""
    spin = made.flooded().facts.threads[0]
    other = made.burner(1, 0.5, allowed=frozenset({1}))
    busy = (made.FLOODED_CPUS[0], made.BUSY_CPUS[1])
    result = of(threads=(other, spin), cpus=busy)
    assert [row.why for row in result.rows] == ["outnumbered", "softirqs"]
    assert [each.code for each in result.findings] == ["irq-pinned-thread"]
    assert result.verdict[0].startswith("spin (7525) is losing 39 % of CPU 0 to softirqs")
    starved = of(threads=(other._replace(running=0.1, waiting=0.9), spin), cpus=busy)
    assert {each.code for each in starved.findings} == {"irq-pinned-thread", "jvm-cpu-wait"}


def _of_machine(*workers, **more):
    """The answer about the machine, of processes with one thread each."""
    waits = [
        ProcessWaits(made.SHELL._replace(pid=one.tid, command=one.name), one.running, one.waiting, one.slices, 1, one)
        for one in workers
    ]
    return judge(made.host(processes=tuple(waits), **more).facts)


def test_each_cause_has_its_finding_on_the_machine():
    """Batch work that waits most hides no process that loses its CPU to softirqs; without waits, that one is the answer."""
    spin = made.flooded().facts.threads[0]
    batch = made.burner(1, 0.75, allowed=frozenset({1}))
    crowded = _of_machine(batch, spin, cpus=(made.FLOODED_CPUS[0], made.BUSY_CPUS[1]))
    assert [each.code for each in crowded.findings] == ["irq-pinned-thread", "runnable-above-cpus"]
    assert crowded.verdict[0] == "7525 (spin) is losing 39 % of CPU 0 to softirqs."
    alone = _of_machine(spin, cpus=made.FLOODED_CPUS, runnable=1.0)
    assert len(alone.verdict) == 1
    assert alone.verdict[0] == "7525 (spin) is losing 39 % of CPU 0 to softirqs."
    pool = spin._replace(tid=7530, name="pool-1")
    waits = (ProcessWaits(made.SHELL._replace(pid=7525, command="app"), 1.0, 0.0, 9.0, 2, pool),)
    of_app = judge(made.host(processes=waits, cpus=made.FLOODED_CPUS).facts)
    assert of_app.verdict[0] == "pool-1 of 7525 (app) is losing 39 % of CPU 0 to softirqs."


def test_a_kernel_thread_that_nobody_can_move():
    """ksoftirqd/0 waits behind a program on its CPU: no command could pin it elsewhere."""
    kernel = made.burner(0, 0.6, name="ksoftirqd/0", java_name=None, allowed=FIRST, is_bound=True)
    assert [row.why for row in _of_machine(kernel, cpus=IDLE_NEIGHBOUR).processes] == ["outnumbered"]


@pytest.mark.parametrize("is_measured", [True, False])
def test_where_the_share_of_softirqs_comes_from(is_measured):
    """A thread beside it, or the clock ticks."""
    facts = made.flooded().facts
    cpus = (facts.cpus[0]._replace(is_measured=is_measured), *facts.cpus[1:])
    [finding] = judge(facts._replace(cpus=cpus)).findings
    assert finding.evidence.startswith("a thread that spun on CPU 0" if is_measured else "/proc/stat: CPU 0, idle")


def _pair(**more):
    threads = tuple(
        made.SLEEPER._replace(tid=tid, name=f"side-{tid}", voluntary=7_600.0, running=0.4) for tid in (11, 12)
    )
    return {
        "threads": threads,
        "cpus": made.IDLE_CPUS,
        "handoffs": (Handoff(11, 12, 48, 4, 2, "futex")._replace(**more),),
    }


def test_ping_pong():
    """A note with the sum of both; the row says it."""
    result = of(**_pair())
    said = "lock ping-pong: side-11 and side-12 wake each other 15,200 times a second by a lock or a condition."
    assert said in result.verdict
    assert [(each.code, each.severity) for each in result.findings] == [("thread-ping-pong", "note")]
    assert {row.why for row in result.rows} == {"ping-pong"}


@pytest.mark.parametrize(("call", "end"), [("read", " by read()."), (None, ".")])
def test_ping_pong_without_a_lock(call, end):
    """The call is named that both sleep in, where it is known."""
    said = f"ping-pong: side-11 and side-12 wake each other 15,200 times a second{end}"
    assert said in of(**_pair(call=call)).verdict


@pytest.mark.parametrize(("changes", "found"), [
    ({}, True),
    ({"switches": 400_000.0}, False),  # others may have got the CPU
    ({"switches": None}, False),
    ({"call": "read"}, False),  # written to by another process, perhaps
    ({"producer": 0.9}, False),
    ({"asleep": 4}, True),
    ({"asleep": 8}, False),
])  # fmt: skip
def test_a_pair_that_looks_awake(changes, found):
    """Where the woken one preempts its waker, both want the CPU in most looks: the machine's switches are theirs."""
    pair = _pair(awake=37, asleep=changes.get("asleep", 0), call=changes.get("call", "futex"))
    first, second = (
        each._replace(voluntary=rate, involuntary=61_000.0, running=0.4, waiting=0.25, allowed=made.BOTH)
        for each, rate in zip(pair["threads"], (75_000.0, 82_000.0))
    )
    producer = made.burner(0, 0.0, running=changes.get("producer", 0.01))
    whole = {"threads": (first, second, producer), "switches": changes.get("switches", 283_000.0)}
    codes = [each.code for each in of(**pair | whole).findings]
    assert ("thread-ping-pong" in codes) is found


def test_a_pair_on_one_cpu_is_not_starved():
    """Each waits a moment for the one that woke it: to move one away would make both slower. No look finds them asleep."""
    pair = _pair(awake=48, asleep=0, call=None)
    threads = tuple(
        each._replace(voluntary=110_000.0, slices=180_000.0, running=0.5, waiting=0.26, allowed=FIRST)
        for each in pair["threads"]
    )
    result = of(**pair | {"threads": threads, "cpus": IDLE_NEIGHBOUR})
    assert [(each.code, each.severity) for each in result.findings] == [("thread-ping-pong", "note")]
    assert (
        "26 % of the time (side-11), 1.4 us each time, 180,000 times a second: for the thread that wakes it."
        in result.verdict[0]
    )
    slow = tuple(each._replace(slices=300.0, voluntary=110.0) for each in threads)
    assert of(**pair | {"threads": slow, "cpus": IDLE_NEIGHBOUR}).findings[0].code == "thread-pinned-to-busy-cpu"


@pytest.mark.parametrize("more", [{"asleep": 30}, {"awake": 30}, {"looks": 4}])
def test_threads_that_only_switch_often_are_no_pair(more):
    """Two that sleep and run at the same times wake nobody in turn."""
    assert not of(**_pair(**more)).findings


def test_rates_that_differ_are_no_pair():
    """One that switches twice as often is woken by others too."""
    facts = _pair()
    first, second = facts["threads"]
    assert not of(**facts | {"threads": (first, second._replace(voluntary=3_800.0))}).findings


def test_a_burst_in_a_watch_is_a_note():
    """A warning holds in half of the looks of a watch."""
    bad, good = made.starved().facts, made.healthy().facts
    assert [each.severity for each in judge(bad, [good, good, good, bad]).findings] == ["note"]
    assert [each.severity for each in judge(bad, [good, bad, bad, bad]).findings] == ["warning"]
    assert [each.severity for each in judge(bad, [bad]).findings] == ["warning"]


SHARES = st.floats(0, 1)
CPUS = st.lists(st.tuples(SHARES, SHARES, SHARES, SHARES, SHARES, SHARES), max_size=4)
THREADS = st.lists(
    st.tuples(
        SHARES, st.none() | SHARES, st.frozensets(st.integers(0, 5), max_size=3), st.sampled_from([0, 5]), SHARES
    ),
    max_size=5,
)


@given(CPUS, THREADS, st.none() | SHARES, st.booleans())
def test_any_facts(cpus, threads, runnable, is_machine):
    """No exception; one sentence at least; rows in order, and none is lost."""
    loads = tuple(CpuLoad(CpuUse(number, *shares)) for number, shares in enumerate(cpus))
    all_ = tuple(
        made.burner(number, 0.0)._replace(
            tid=number, running=running, waiting=waiting, allowed=allowed, policy=policy, throttled=throttled
        )
        for number, (running, waiting, allowed, policy, throttled) in enumerate(threads)
    )
    waits = tuple(ProcessWaits(made.SHELL._replace(pid=one.tid), one.running, one.waiting, 1.0, 1, one) for one in all_)
    facts = made.facts(
        threads=() if is_machine else all_, processes=waits if is_machine else (), cpus=loads, runnable=runnable
    )
    result = judge(facts._replace(process=None) if is_machine else facts)
    assert all(sentence.endswith(".") for sentence in result.verdict)
    assert result.verdict
    rows = [row.waits.worst for row in result.processes] if is_machine else [row.thread for row in result.rows]
    assert sorted(rows) == sorted(all_)
    assert [-(row.waiting or 0) for row in rows] == sorted(-(row.waiting or 0) for row in rows)
