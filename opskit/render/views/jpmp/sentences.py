"""Stacks as lines for awk and flame graph tools; sentences about deadlocks, and about what sampling cost the JVM."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit import shell
from opskit.analysis.jpmp.frames import short
from opskit.analysis.jpmp.idle import returns_often
from opskit.analysis.jpmp.load import cpu_use, cpu_waits, vm_thread_share
from opskit.analysis.jpmp.stacks import thread_count
from opskit.collect.jpmp.collect import DEFAULT_MAX_STOP_PERCENT
from opskit.escape import printable
from opskit.quantities import duration, listed, percent, plural, size

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from opskit.analysis.finding import Finding
    from opskit.analysis.jpmp.stacks import Weight
    from opskit.collect.heap_size import HeapSize
    from opskit.collect.jpmp.collect import Facts, Sampled
    from opskit.collect.jpmp.load import Load
    from opskit.jvm.dumps.thread_dump import Waits
    from opskit.jvm.profiles import WeightedStack

_MOST_POOLS = 3
_WORTH_SAYING_S = 0.05  # would be printed as 0.0 s
SEEN_AT_RETURNS = "seen too often: threads stop at its return"
_SAFEPOINTS = "Running threads are sampled at safepoints: the hot line may be nearby."


def heap_walk_line(pid: int, heap: HeapSize, pause_s: float | None) -> str:
    """What --synchronizers costs the JVM."""
    known = f"{heap.what} {size(heap.bytes)}"
    if pause_s is not None and pause_s >= _WORTH_SAYING_S:
        known += f": the pause may take about {pause_s:.1f} s"
    cost = "the size of its used heap is unknown" if pause_s is None else known
    return f"--synchronizers walks the heap of {pid}, which pauses the JVM; {cost}"


def target(facts: Facts) -> Mapping[str, object]:
    """The head of the report: the files, or the JVM."""
    if (cpu := facts.cpu) is not None:
        return {"pid": cpu.pid, "main": cpu.name, "unit": facts.unit}
    if (live := facts.live) is None:
        return {"files": " ".join(facts.files)}
    return {"pid": live.pid, "main": live.main, "jdk": live.dumps[0].version, "unit": live.unit}


def name(facts: Facts) -> str:
    """The title of a profile: the files, or the JVM by main class and PID."""
    if facts.cpu is not None:
        return f"{facts.cpu.name or 'process'} {facts.cpu.pid}"
    return " ".join(facts.files) if facts.live is None else f"{facts.live.main or 'JVM'} {facts.live.pid}"


def asides(facts: Facts) -> Iterator[str]:
    """What went wrong while reading."""
    for cut in facts.cut_off:
        place = f"dump {cut.number} of {cut.dumps}" if cut.dumps > 1 else "the dump"
        yield f"{cut.source}: {place} is cut off: {plural(cut.whole_stacks, 'whole stack')}, the rest is missing"
    if facts.cpu is not None and facts.cpu.ended == "exited":
        yield f"the process {facts.cpu.pid} ended after {duration(facts.cpu.elapsed_s)}"
    live = facts.live
    if live is not None and live.ended == "exited":
        yield f"the JVM {live.pid} ended after {plural(len(live.dumps), 'sample')} of {live.schedule.samples}"


def dialects(facts: Facts) -> list[str]:
    """The formats of the dumps."""
    return list(dict.fromkeys(dump.dialect for dump in facts.dumps))


def taken_line(facts: Facts, *, running: bool = True, verbose: bool = False) -> str:
    """`20 samples, 115 threads; sampling paused the JVM for …. Running threads are sampled …` (if they are shown)."""
    head = plural(len(facts.dumps) or len(facts.files), "sample" if facts.live else "dump" if facts.dumps else "file")
    count = thread_count(facts.dumps)
    parts = [f"{head}, {plural(count, 'thread')}" if count else head]
    parts += [] if facts.live is None else [*_of_run(facts.live), *(_details(facts.live) if verbose else ())]
    parts += [f"read as {', '.join(dialects(facts))}"] if facts.dumps and facts.live is None else []
    return f"{'; '.join(parts)}. {_SAFEPOINTS}" if running else "; ".join(parts)


def queue_line(load: Load) -> Iterator[str]:
    """How long threads waited for a CPU."""
    use = cpu_use(load)
    if use.waited_s is not None:
        yield f"threads waited {duration(use.waited_s)} for a CPU, beside {duration(use.ran_s)} on one (schedstat)"


def flame_graph(facts: Facts) -> list[str]:
    """The command that draws the process, where it would draw what is shown."""
    if facts.process is None or not facts.counts_cpu:
        return []
    return [f"as a flame graph: {shell.command('opskit', 'profile', facts.process[0], '-o', 'profile.svg')}"]


def by_dumps(facts: Facts, by: Weight, *, wall: bool) -> list[str]:
    """What thread dumps can say about time; nothing where only samples are shown."""
    if facts.live is None:
        return []
    if by == "off_cpu_ms":
        return [
            "time off the CPUs: that of each thread by schedstat, shared over its samples in thread dumps that wait"
        ]
    if by == "samples":
        return ["elapsed time by thread dumps: shares are right to some points"] if wall else []
    why = "" if facts.fallback is None else f": {facts.fallback}"
    return [f"--on-cpu by thread dumps{why}; methods may be off by tens of points, threads are exact"]


def of_load(facts: Facts, findings: Sequence[Finding], by: Weight = "samples") -> Iterator[str]:
    """How long threads wait for a CPU, where no finding says it, and what may be garbage collection."""
    live = facts.live
    if live is None or live.load is None:
        return
    if share := vm_thread_share(live.load):
        yield (
            f"the VM Thread uses {percent(share)} of the CPU: with the Serial collector this is garbage collection, "
            "which is unknown without hsperfdata"
        )
    waits = cpu_waits(live.load, live.pid)
    if waits is not None and all(finding.code not in ("jvm-cpu-wait", "cpu-throttled") for finding in findings):
        yield f"{waits.summary}; next: {waits.closer}" if waits.closer else waits.summary
    elif by != "samples":
        yield from queue_line(live.load)


def hottest(stacks: Sequence[WeightedStack]) -> str | None:
    """`Workload.work uses about 97 % of the CPU time (11,600 ms) in burn-*`; None where no CPU time is known.

    About: a dump shows where threads stop, not where they run.
    """
    weights: dict[str, float] = {}
    for stack in stacks:
        if stack.frames:
            weights[stack.frames[0]] = weights.get(stack.frames[0], 0.0) + (stack.cpu_ms or 0.0)
    total = sum(stack.cpu_ms or 0.0 for stack in stacks)
    if not round(total):
        return None
    frame = max(weights, key=lambda name: weights[name], default="")
    if not round(weights.get(frame, 0.0)):
        return None
    pools = dict.fromkeys(pool for stack in stacks if stack.frames[:1] == (frame,) for pool in stack.pools)
    where = f" in {listed([*pools], _MOST_POOLS)}" if pools else ""
    too_often = f"; it is {SEEN_AT_RETURNS}" if returns_often(frame) else ""
    part = percent(weights[frame] / total)
    return f"{short(frame)} uses about {part} of the CPU time ({weights[frame]:,.0f} ms){where}{too_often}"


def longest_wait(stacks: Sequence[WeightedStack]) -> str | None:
    """`Socket.read keeps threads off the CPUs most: 2,807 ms (42 %) in http-*`; of threads that do not wait for work."""
    busy = [stack for stack in stacks if stack.frames and not stack.idle]
    total = sum(stack.off_cpu_ms or 0.0 for stack in busy)
    if not round(total):
        return None
    weights: dict[str, float] = {}
    for stack in busy:
        weights[stack.frames[0]] = weights.get(stack.frames[0], 0.0) + (stack.off_cpu_ms or 0.0)
    frame = max(weights, key=lambda name: weights[name])
    pools = dict.fromkeys(pool for stack in busy if stack.frames[0] == frame for pool in stack.pools)
    where = f" in {listed([*pools], _MOST_POOLS)}" if pools else ""
    return f"{short(frame)} keeps threads off the CPUs most: {weights[frame]:,.0f} ms ({percent(weights[frame] / total)}){where}"


def no_stacks(
    stacks: Sequence[WeightedStack], selected: Sequence[WeightedStack], *, by: Weight, sampled: bool = False
) -> str:
    """Why the table has no rows. `stacks`: all; `selected`: those that the options leave in, with the idle ones."""
    if not stacks:
        return "no sample was taken" if sampled else "the dumps contain no thread"
    if not selected:
        return f"none of {plural(len(stacks), 'stack')} is left by --state, --include and --exclude"
    if by == "off_cpu_ms":
        return f"no thread was off the CPUs for as long as 1 ms ({plural(len(selected), 'stack')})"
    if by == "cpu_ms":
        return f"no thread used CPU time ({plural(len(selected), 'stack')}); without --on-cpu they are shown by samples"
    return f"none of {plural(len(selected), 'stack')} has a frame: the threads are the JVM's own"


def _of_run(live: Sampled) -> Iterator[str]:
    """What it cost the JVM, and what makes the numbers uncertain."""
    most = "at most " if live.stops_are_bounds else ""
    stopped_ms = live.stopped_ms
    if stopped_ms is None:
        yield f"the capture has {plural(len(live.dumps), 'thread dump')} of it"
    else:
        yield f"sampling paused the JVM for {most}{duration(stopped_ms / 1000)}"
    if live.throttled_percent:
        yield f"throttled by its CPU quota in {percent(live.throttled_percent / 100)} of the periods"
    limit = live.schedule.max_stop_percent or DEFAULT_MAX_STOP_PERCENT
    stopped = live.stopped_percent
    if stopped is not None and stopped_ms is not None and stopped > limit and not live.stretched:
        longer_s = stopped_ms / len(live.dumps) / 10 / limit * 1.05
        yield f"the pauses are more than {limit:g} % of the run (--max-stop): give an INTERVAL of {longer_s:.2g} s or more"
    if live.ended == "long stop":
        goes_on = shell.command("opskit", "jpmp", live.pid, live.schedule.samples, "--max-stop", f"{limit:g}")
        yield f"ended after the first sample, which paused the JVM for {most}{live.stops_ms[0]:.0f} ms; to continue: {goes_on}"
    if live.ended == "deadlock":
        goes_on = shell.command("opskit", "jpmp", live.pid, live.schedule.samples, "--on-cpu")
        yield f"ended after the first sample, which proves a deadlock; the CPU use of other threads: {goes_on}"
    if cut_off := sum(dump.cut_off for dump in live.dumps):
        yield f"{plural(cut_off, 'sample')} cut off: the JVM did not write all of its threads"
    if live.kind == "threads":
        yield from _hidden_virtual_threads(live)


def _details(live: Sampled) -> Iterator[str]:
    """How the pauses were measured, and what became of the schedule."""
    if live.replayed:
        return
    stopped, source = live.stopped_percent, "the dumps' wall time" if live.stops_are_bounds else "hsperfdata"
    yield f"pauses by {source}" if stopped is None else f"pauses by {source}: {percent(stopped / 100)} of the run"
    if live.late:
        yield f"{plural(live.late, 'sample')} came late: a dump takes longer than the interval"
    if live.stretched:
        limit = live.schedule.max_stop_percent or DEFAULT_MAX_STOP_PERCENT
        yield (
            f"interval stretched from {live.interval_s:g} s to {live.mean_interval_s or 0:.2g} s "
            f"(--max-stop {limit:g} %; -i sets a fixed one)"
        )


def _hidden_virtual_threads(live: Sampled) -> Iterator[str]:
    """JDK 21 and 22 print the stack of a carrier, and not that of the virtual thread that it runs."""
    threads = live.dumps[-1].threads
    carriers = sum(thread.stack.role == "carrier" for thread in threads)
    if carriers and not any(thread.stack.role == "mounted" for thread in threads):
        shows = shell.command("opskit", "jpmp", live.pid, "--virtual")
        run = "virtual thread runs whose stack" if carriers == 1 else "virtual threads run whose stacks"
        yield f"{carriers} {run} this JDK's dump leaves out: {shows} shows {'it' if carriers == 1 else 'them'}"


def leaf_first(stack: WeightedStack, *, full: bool = False) -> str:
    """`j.lang.Thread.sleep,com.example.Cache.expire`: with a leading `java` shortened to `j`, unless `full`."""
    return printable(",".join(stack.frames if full else map(short, stack.frames)))


def root_first(stack: WeightedStack) -> str:
    """Collapsed, for flame graph tools: `com.example.Cache.expire;java.lang.Thread.sleep`."""
    return printable(";".join(frame.replace(";", ":") for frame in reversed(stack.frames)))


def weighed_lines(rows: Iterable[tuple[int, str]], *, folded: bool) -> Iterator[str]:
    """As `uniq -c`: the weight in 7 columns, a space, the stack; `folded`: the stack, a space, the weight."""
    return (f"{text} {weight}" if folded else f"{weight:7d} {text}" for weight, text in rows)


def reported_deadlock(links: Sequence[Waits]) -> str:
    """The sentence about one deadlock that the JVM reports."""
    owners = (None if link.owner is None else f'"{link.owner}"' for link in links)
    return deadlock([(f'"{link.thread}"', link.lock_class or "a lock", owner) for link, owner in zip(links, owners)])


def deadlock(waits: Sequence[tuple[str, str, str | None]], which: str = "") -> str:
    """`deadlock of 2 threads: A waits for LOCK held by B; …`, for (thread, lock, owner)."""
    said = (f"{thread} waits for {lock} held by {owner or 'an unknown owner'}" for thread, lock, owner in waits)
    return f"deadlock of {plural(len(waits), 'thread')}{which}: {'; '.join(said)}"


def virtual_unknown(facts: Facts, unseen: str) -> str:
    """Why the waits of virtual threads are unknown, and the command that tells them."""
    shows = "jcmd PID Thread.dump_to_file -format=json FILE writes them"
    if facts.live is not None and not facts.live.replayed:
        shows = f"{shell.command('opskit', 'jpmp', facts.live.pid, '--locks', '--virtual')} shows them"
    return f"the waits of virtual threads are unknown: {unseen}; {shows}"


def no_waits(facts: Facts, *, known: bool, unseen: str | None) -> str:
    """The verdict where no thread waits for a lock, as far as the dumps tell. `unseen`: why they lack virtual threads."""
    if unseen is not None:
        return f"no platform thread waits for a lock; {virtual_unknown(facts, unseen)}"
    if known or (facts.live is not None and facts.live.kind != "virtual"):
        return "no thread waits for a lock"
    names = ", ".join(sorted(dialects(facts)))
    if any(thread.virtual for dump in facts.dumps for thread in dump.threads):
        both = "" if facts.live is None else f": {shell.command('opskit', 'jpmp', facts.live.pid, '--locks')} has them"
        return f"no virtual thread waits for a java.util.concurrent lock; {names} of this JDK has no monitors{both}"
    return f"lock waits are unknown: these dumps ({names}) contain no lock information"
