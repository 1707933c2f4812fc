"""Findings about waits for a CPU: only where a thread is proven to lose time that it wanted. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit import shell
from opskit.analysis.cpu_quota import judge_quota
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
)
from opskit.analysis.finding import HOST, Entity, Finding
from opskit.proc.cgroup.limits import CpuLimit
from opskit.quantities import number_ranges, percent, plural

if TYPE_CHECKING:
    from opskit.analysis.cswitch.causes import Pair
    from opskit.analysis.cswitch.result import ProcessRow, Row
    from opskit.analysis.cswitch.sentences import Words
    from opskit.analysis.finding import Severity
    from opskit.collect.cswitch.facts import CpuLoad
    from opskit.proc.process import Process

# Of the time in which a thread wants to run. Two busy threads on one CPU wait half of it each, which is how a machine is used up.
_STARVED, _PINNED = 0.7, 0.3
_WANTS = 0.3  # of the window, running or waiting: less is a burst


def of_thread(words: Words, row: Row, process: Process, *, is_machine: bool = False) -> Finding | None:
    """What takes the CPU from a thread. A warning where it loses most of the time that it wants."""
    thread, facts = row.thread, words.facts
    waiting = thread.waiting or 0.0
    wanted = thread.running + waiting
    least = {OUTNUMBERED: _STARVED, PINNED: _PINNED, SOFTIRQS: 0.0, STEAL: 0.0}.get(row.why)
    quota = quota_above(facts, thread) if row.why == THROTTLED else None
    if quota is None and (least is None or wanted < _WANTS or waiting / wanted < least):
        return None
    entity = Entity("process", process.pid, process.start_ticks)
    of_thread = entity if thread.tid == process.pid else Entity("thread", thread.tid, inside=entity)
    is_wanted = takes_what_is_left(thread) or (row.why == OUTNUMBERED and words.is_of_a_job(thread))
    severity: Severity = "note" if is_wanted else "warning"
    closer = words.look_at(process) if is_machine else words.next_of(row)
    summary = words.summary(row, process if is_machine else None)
    code, about, share, fix = "jvm-cpu-wait", entity, waiting / wanted, None
    evidence = f"schedstat: {percent(waiting)} of {facts.window_s:.1f} s waiting, {percent(thread.running)} on a CPU"
    if quota is not None:
        limit = CpuLimit(quota.path, quota.cpus, quota.periods, quota.throttled_periods)
        who = f"{process.pid} ({process.command})"
        return judge_quota(limit, who, next_=closer, window_s=facts.window_s, is_note=is_wanted)
    if row.why == PINNED:
        code, about = "thread-pinned-to-busy-cpu", of_thread
        fix = shell.command("taskset", "-pc", number_ranges(free_cpus(facts, thread)), thread.tid)
    elif row.why == SOFTIRQS:
        [load] = allowed_loads(facts, thread)
        code, about, share = "irq-pinned-thread", of_thread, load.use.softirq + load.use.irq
        evidence = f"{_source(load)}; schedstat counts it as the thread's own time"
    elif row.why == STEAL:
        code, about = "cpu-stolen", HOST
        share = mean(load.use.steal for load in allowed_loads(facts, thread))
        evidence = f"/proc/stat: steal of {plural(len(allowed_loads(facts, thread)), 'CPU')}"
    return Finding(
        code, severity, about, summary, evidence, fix=fix, next=closer, share=round(share, 4),
        window_s=round(facts.window_s, 3),
    )  # fmt: skip


def _source(load: CpuLoad) -> str:
    """Where the share of softirqs comes from."""
    if load.is_measured:
        return f"a thread that spun on CPU {load.use.cpu} for moments lost {percent(load.use.softirq)} of its time to interrupts"
    return f"/proc/stat: CPU {load.use.cpu}, idle {percent(load.use.idle)}"


def of_pair(words: Words, pair: Pair, process: Process) -> Finding:
    """A note: it costs two switches for each piece of work, which is how some programs are made."""
    entity = Entity("process", process.pid, process.start_ticks)
    is_jvm = words.facts.is_jvm
    return Finding(
        "thread-ping-pong", "note", Entity("thread", pair.first.tid, inside=entity), words.pair(pair)[:-1],
        f"status: {pair.first.voluntary or 0:,.0f} and {pair.second.voluntary or 0:,.0f} voluntary switches/s of {pair.first.tid} and {pair.second.tid}",
        next=shell.command("opskit", "jpmp", process.pid, *(("--locks",) if pair.is_lock else ())) if is_jvm else None,
        window_s=round(words.facts.window_s, 3),
    )  # fmt: skip


def of_machine(words: Words, most: ProcessRow) -> Finding | None:
    """More tasks want to run than there are CPUs: a note, since batch work uses all of a healthy machine."""
    facts = words.facts
    if facts.runnable is None or facts.runnable <= len(facts.cpus):
        return None
    return Finding(
        "runnable-above-cpus", "note", HOST, f"{facts.runnable:.1f} tasks want to run on {plural(len(facts.cpus), 'CPU')}",
        f"/proc/loadavg over {facts.window_s:.1f} s", next=words.look_at(most.waits.process), window_s=round(facts.window_s, 3),
    )  # fmt: skip
