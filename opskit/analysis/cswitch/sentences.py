"""What is said about threads that wait for a CPU: the sentences of the answer and of the findings, and the command to type next. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit import shell
from opskit.analysis.cswitch.causes import (
    OUTNUMBERED,
    PINNED,
    SOFTIRQS,
    STEAL,
    THROTTLED,
    allowed_loads,
    free_cpus,
    mean,
    quota_above,
    takes_what_is_left,
    usable,
    waits_shortly,
)
from opskit.quantities import agreeing, duration, number_ranges, percent, plural

if TYPE_CHECKING:
    from opskit.analysis.cswitch.causes import Pair
    from opskit.analysis.cswitch.result import ProcessRow, Row
    from opskit.collect.cswitch.facts import Facts, ProcessWaits, Thread
    from opskit.proc.process import Process

_OTHERS = 0.5  # CPUs that other processes want: less is not worth a word
_BUSY = 0.1  # idle share of CPUs that have no time left


class Words:
    """Says what is in some Facts."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.process = "" if facts.process is None else f"{facts.process.pid} ({facts.process.command})"

    def name(self, thread: Thread) -> str:
        """The Java name in full, or the kernel's."""
        return thread.java_name or thread.name

    def thread(self, row: Row, of: Process | None = None) -> str:
        """What a thread suffers from: a sentence."""
        return f"{self.summary(row, of)}."

    def summary(self, row: Row, of: Process | None = None) -> str:
        """The same without its full stop."""
        thread = row.thread
        who = self.name(thread) if of is None else self._of_process(thread, of)
        if row.why == SOFTIRQS:
            [load] = allowed_loads(self.facts, thread)
            what = "softirqs" if load.use.softirq >= load.use.irq else "interrupts"
            taken = percent(load.use.softirq + load.use.irq)
            tid = f" ({thread.tid})" if of is None else ""
            return f"{who}{tid} is losing {taken} of CPU {load.use.cpu} to {what}"
        if row.why == STEAL:
            loads = allowed_loads(self.facts, thread)
            taken = percent(mean(load.use.steal for load in loads))
            return f"{who} is losing {taken} of its {plural(len(loads), 'CPU')} to the hypervisor, which runs other machines on them"
        waits = f"{who} waits {percent(thread.waiting or 0.0)} of the time for a CPU"
        return f"{waits}: {self._reason(row)}" if row.why else waits

    def _of_process(self, thread: Thread, of: Process) -> str:
        """`8594 (spinner)`; a thread that is not the main one by its name: `worker of 8594 (spinner)`."""
        whole = f"{of.pid} ({of.command})"
        return whole if thread.tid == of.pid else f"{self.name(thread)} of {whole}"

    def _reason(self, row: Row) -> str:
        thread = row.thread
        if row.why == THROTTLED:
            return self._throttled(thread)
        if row.why == PINNED:
            free = free_cpus(self.facts, thread)
            busy = number_ranges(thread.allowed)
            return (
                f"it is pinned to {agreeing(len(thread.allowed), 'CPU')} {busy}, which {'is' if len(thread.allowed) == 1 else 'are'} busy, "
                f"while {agreeing(len(free), 'CPU')} {number_ranges(free)} {'is' if len(free) == 1 else 'are'} idle"
            )
        return self._outnumbered(thread)

    def _throttled(self, thread: Thread) -> str:
        quota = quota_above(self.facts, thread)
        if quota is None:
            return "the CPU quota of its cgroup is used up"
        cpus = f"{quota.cpus:g} {agreeing(1 if quota.cpus == 1 else 2, 'CPU')}"
        often = f"{percent(thread.throttled)} of the time"
        if thread.throttled < (thread.waiting or 0.0) / 2:  # others use the CPUs too
            often = f"in {percent(quota.throttled_periods / max(quota.periods, 1))} of the periods"
        return f"its cgroup {quota.path} has used up its quota of {cpus} {often}"

    def _outnumbered(self, thread: Thread) -> str:
        """How many threads want the CPUs that it may use, and how many of those are of other processes."""
        facts = self.facts
        cpus = len(allowed_loads(facts, thread))
        own = self.own_demand(thread)
        others = self.demand_of_others(thread)
        total = max(round(own + others), cpus + 1)
        said = f"{total} runnable threads on {plural(cpus, 'CPU')}"
        if others < _OTHERS:
            return said
        first = max(facts.processes, key=lambda waits: self._on_its_cpus(waits, thread)).process
        return f"{said}, {min(max(round(others), 1), total)} of other processes (most of {first.pid}, {first.command})"

    def own_demand(self, thread: Thread) -> float:
        """How many threads of its process ran or wanted to on the CPUs that it may use, on average."""
        allowed = frozenset(load.use.cpu for load in allowed_loads(self.facts, thread))
        return sum(
            each.running + (each.waiting or 0.0)
            for each in self.facts.threads
            if not each.allowed or each.allowed & allowed
        )

    def demand_of_others(self, thread: Thread) -> float:
        """The same of other processes. One whose CPUs are partly others is there for a part of its time."""
        return sum(self._on_its_cpus(waits, thread) for waits in self.facts.processes)

    def _on_its_cpus(self, waits: ProcessWaits, thread: Thread) -> float:
        its = frozenset(load.use.cpu for load in allowed_loads(self.facts, thread))
        theirs = (waits.worst.allowed if waits.worst is not None else None) or usable(self.facts)
        demand = waits.running + (waits.waiting or 0.0)
        return demand * len(theirs & its) / len(theirs) if theirs else demand

    def is_of_a_job(self, thread: Thread) -> bool:
        """Whether mostly processes of its own program use the CPUs: a compile with -j8, whose work takes what there is.

        Each JVM is called java, whatever it does.
        """
        own = self.facts.process
        if own is None or self.facts.is_jvm:
            return False
        name = own.command, own.uid
        alike = sum(
            self._on_its_cpus(waits, thread)
            for waits in self.facts.processes
            if (waits.process.command, waits.process.uid) == name
        )
        return alike > max(self.demand_of_others(thread), self.own_demand(thread), 1.0) / 2

    def no_cause(self, thread: Thread) -> str:
        """Why a wait that is not short has no cause, as far as is known: what stands behind the sentence."""
        loads = allowed_loads(self.facts, thread)
        if takes_what_is_left(thread):
            return ": it asked for no more than what others leave (nice 19 or SCHED_IDLE)"
        idle = mean(load.use.idle for load in loads)
        if loads and idle > _BUSY:
            return f", in bursts: its {plural(len(loads), 'CPU')} {'is' if len(loads) == 1 else 'are'} idle {percent(idle)} of the time"
        if waits_shortly(thread):
            often = f"{thread.slices or 0.0:,.0f} times a second"
            return f", {duration(thread.average_wait_s)} each time, {often}: for the thread that wakes it"
        return ""

    def pair(self, pair: Pair) -> str:
        """Two threads that wake each other."""
        kind, by = ("lock ping-pong", " by a lock or a condition") if pair.is_lock else ("ping-pong", "")
        if pair.call is not None and not pair.is_lock:
            by = f" by {pair.call}()"
        first, second = self.name(pair.first), self.name(pair.second)
        return f"{kind}: {first} and {second} wake each other {pair.switches:,.0f} times a second{by}."

    def waits_most(self, row: ProcessRow) -> str:
        """The process of the machine whose threads wait longest: a sentence."""
        facts, waits = self.facts, row.waits
        who = f"{waits.process.command} ({waits.process.pid}) waits most"
        said = f"{who}: {waits.waiting or 0.0:.1f} of its threads at a time"
        if row.why in (THROTTLED, PINNED) and waits.worst is not None:
            return f"{said}: {self._reason_of_worst(row)}."
        cpus = plural(len(facts.cpus), "CPU")
        if facts.runnable is None:
            return f"{said}, on {cpus}."
        shown = f"{facts.runnable:.1f}"
        return f"{said}, {shown} runnable {agreeing(1 if shown == '1.0' else 2, 'task')} on {cpus}."

    def _reason_of_worst(self, row: ProcessRow) -> str:
        from opskit.analysis.cswitch.result import Row

        return self._reason(Row(row.waits.worst, row.why)) if row.waits.worst is not None else ""

    def look_at(self, process: Process) -> str:
        """The command line for one process."""
        return shell.command("opskit", "cswitch", process.pid)

    def next_of(self, row: Row) -> str | None:
        """The closer look at what takes the CPU from a thread of the process."""
        facts = self.facts
        if facts.process is None:
            return None
        pid = facts.process.pid
        if row.why == SOFTIRQS:
            return shell.command("opskit", "irqs")
        if row.why == THROTTLED:
            return (
                shell.command("opskit", "jvms", pid, "-w")
                if facts.is_jvm
                else shell.command("opskit", "cswitch", pid, "-w")
            )
        if row.why == OUTNUMBERED and self.own_demand(row.thread) >= self.demand_of_others(row.thread):
            return shell.command("opskit", "profile", pid)
        if row.why in (OUTNUMBERED, PINNED):
            return shell.command("opskit", "cswitch")
        return None
