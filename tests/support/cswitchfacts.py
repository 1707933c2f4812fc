"""Facts about threads that want a CPU, and what is concluded: a JVM that starves, one that is throttled, the machine, healthy ones."""

from __future__ import annotations

from opskit.analysis.cswitch.result import ProcessRow, Result, Row
from opskit.analysis.finding import HOST, Entity, Finding
from opskit.collect.cpu_use import CpuUse
from opskit.collect.cswitch.facts import CpuLoad, Facts, ProcessWaits, Quota, Thread
from opskit.proc.process import Process

BOOK = Process(4242, "java", 1001, "app", 1, 8675309, "R", 57)
SHELL = Process(77, "bash", 1000, "ann", 1, 700, "S", 1)
BOTH = frozenset({0, 1})
BUSY_CPUS = (
    CpuLoad(CpuUse(0, 0.95, 0.04, 0.0, 0.005, 0.0, 0.005), 12.0),
    CpuLoad(CpuUse(1, 0.96, 0.03, 0.0, 0.0, 0.0, 0.01), 3.0),
)
IDLE_CPUS = (
    CpuLoad(CpuUse(0, 0.02, 0.01, 0.0, 0.0, 0.0, 0.97), 5.0),
    CpuLoad(CpuUse(1, 0.01, 0.01, 0.0, 0.0, 0.0, 0.98), 0.0),
)
# A UDP flood that RPS steers to CPU 0, where a spinner is pinned.
FLOODED_CPUS = (
    CpuLoad(CpuUse(0, 0.6, 0.01, 0.0, 0.39, 0.0, 0.0), 13_271.0, ((7525, 7525, "spin", 0.98),)),
    CpuLoad(CpuUse(1, 0.05, 0.25, 0.0, 0.02, 0.0, 0.68), 210.0),
)


def burner(number: int, waiting: float, **more) -> Thread:
    """One of the threads that match orders: it runs whenever it gets a CPU."""
    return Thread(
        4250 + number, "order-book-burn", 1 - waiting, waiting, 66.5, 2.0, 64.5, 12.25, 0.0, BOTH, number % 2,
        java_name=f"order-book-burner-{number}",
    )._replace(**more)  # fmt: skip


BURNERS = tuple(burner(number, 0.82 - number / 100) for number in range(8))
SLEEPER = Thread(4260, "GC Thread#0", 0.01, 0.001, 20.0, 19.5, 0.5, 0.0, 0.0, BOTH, 1)
QUOTA = Quota("/kubepods/pod7/app", 1.5, 20, 18, 0.61)


def facts(**more) -> Facts:
    """A JVM with eight busy threads on two CPUs."""
    return Facts(
        BOOK, 2.0, (*BURNERS, SLEEPER), (), BUSY_CPUS, (), 8.5, 612.0, 0.97, frozenset(), True, (), 57,
        pressure_of="cgroup",
    )._replace(**more)  # fmt: skip


def result(facts: Facts, *verdict: str, findings=(), next_=None, why="") -> Result:
    """What is concluded of them, in the words given."""
    rows = tuple(Row(thread, why if (thread.waiting or 0) > 0.2 else "") for thread in facts.threads)
    processes = tuple(ProcessRow(waits, why if (waits.waiting or 0) > 0.5 else "") for waits in facts.processes)
    return Result(facts, verdict, rows, processes, findings, next_)


def judged(facts: Facts) -> Result:
    """What the program concludes of them."""
    from opskit.analysis.cswitch.judge import judge

    return judge(facts, [facts])


def starved(**more) -> Result:
    """Eight threads, two CPUs."""
    summary = "order-book-burner-0 waits 82 % of the time for a CPU: 8 runnable threads on 2 CPUs"
    finding = Finding(
        "jvm-cpu-wait", "warning", Entity("process", 4242, 8675309), summary, "schedstat: 12.3 s waiting, 3.7 s on a CPU in 2.0 s",
        next="opskit profile 4242", share=0.82, window_s=2.0,
    )  # fmt: skip
    return result(facts(**more), f"{summary}.", findings=(finding,), why="outnumbered")


def throttled() -> Result:
    """The CPUs are idle, and its quota is used up."""
    threads = tuple(burner(number, 0.6, throttled=0.55, throttled_by=QUOTA.path) for number in range(4))
    seen = facts(threads=threads, cpus=IDLE_CPUS, quotas=(QUOTA,), runnable=4.0, pressure=0.6)
    said = "order-book-burner-0 waits 60 % of the time for a CPU: its cgroup /kubepods/pod7/app has used up its quota of 1.5 CPUs 55 % of the time."
    return result(seen, said, why="throttled", next_="opskit jvms 4242 -w")


def flooded() -> Result:
    """A spinner that loses its CPU to softirqs, which its own counters do not show."""
    spin = Thread(7525, "spin", 0.998, 0.002, 12.0, 0.0, 12.0, 0.0, 0.0, frozenset({0}), 0)
    seen = facts(process=BOOK._replace(pid=7525, command="spin", threads=1), threads=(spin,), cpus=FLOODED_CPUS, runnable=1.2,
                 pressure=None, is_jvm=False, all_threads=1)  # fmt: skip
    made = result(seen, "spin (7525) is losing 39 % of CPU 0 to softirqs.", next_="opskit irqs")
    return made._replace(rows=(Row(spin, "softirqs"),))


def healthy() -> Result:
    """A JVM that gets every CPU it wants."""
    threads = (burner(0, 0.004, running=0.4), SLEEPER)
    seen = facts(threads=threads, cpus=IDLE_CPUS, runnable=0.4, pressure=0.0)
    return result(seen, "4242 (java): no thread waits for a CPU: at most 0.4 % of the time (order-book-burner-0).")


def still() -> Result:
    """A shell that waits for its user."""
    seen = facts(process=SHELL, threads=(), cpus=IDLE_CPUS, runnable=0.0, is_jvm=False, all_threads=1)
    return result(seen, "77 (bash): its thread neither ran nor waited for a CPU in 2.0 s.")


def unknown() -> Result:
    """A kernel without schedstats and PSI, and a process that may not be read."""
    thread = Thread(77, "bash", 0.25, None, None, None, None, None)
    missing = ("how long threads wait is unknown: this kernel has no schedstat",)
    seen = facts(process=SHELL, threads=(thread,), cpus=(), runnable=None, switches=None, pressure=None, is_jvm=False,
                 missing=missing, all_threads=1)  # fmt: skip
    return result(seen, "77 (bash): how long its threads wait for a CPU is unknown.")


WAITS = (
    ProcessWaits(BOOK, 1.6, 6.3, 550.0, 9, BURNERS[0], 40.0, 510.0),
    ProcessWaits(Process(901, "node", 1000, "ann", 1, 4100, "R", 11), 0.31, 0.22, 800.0, 4, SLEEPER._replace(tid=905, name="libuv-worker"), 700.0, 100.0),
    ProcessWaits(SHELL, 0.0, 0.0, 1.5, 1, None, 1.5, 0.0),
)  # fmt: skip


def host(**more) -> Result:
    """A machine with one process that wants more than there is."""
    seen = facts(
        process=None, pressure_of="machine", threads=(), processes=WAITS, is_jvm=False, all_threads=412
    )._replace(**more)
    finding = Finding(
        "runnable-above-cpus",
        "note",
        HOST,
        "8.5 tasks want to run on 2 CPUs",
        "/proc/loadavg",
        next="opskit cswitch 4242",
    )
    said = "java (4242) waits most: 6.3 of its threads at a time, 8.5 runnable tasks on 2 CPUs."
    return result(seen, said, findings=(finding,), why="outnumbered")


def quiet_host() -> Result:
    """A machine where nobody waits."""
    waits = (WAITS[2], ProcessWaits(BOOK, 0.02, 0.001, 40.0, 3, SLEEPER, 39.0, 1.0))
    seen = facts(
        process=None,
        pressure_of="machine",
        threads=(),
        processes=waits,
        cpus=IDLE_CPUS,
        runnable=0.1,
        pressure=0.0,
        is_jvm=False,
    )
    return result(seen, "No process waits for a CPU: the most is 0.1 % (4242, java).")
