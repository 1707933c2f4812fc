"""What is said about a process's memory: whether it can be killed, what else can grow, what holds most, the limits around it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.analysis.mem.headroom import flag_size
from opskit.analysis.mem.words import fate, ways_out, who
from opskit.quantities import duration, listed, plural, short_size, size, sizes
from opskit.render.views.mem.fields import title

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opskit.analysis.mem.result import Growth, Headroom, Result, Suspect
    from opskit.collect.mem.facts import Facts, HostMemory
    from opskit.proc.cgroup.memory import MemoryGroup

_OVERCOMMIT = {0: "heuristic", 1: "always", 2: "strict"}
_MOST_SUSPECTS = 4  # by name
_S_PER_MILLION = 4  # free blocks of malloc on pages of their own (benchmarks/mem.py)


def verdict(result: Result, *, more: bool = True) -> list[str]:
    """Whether the process can be killed, with the fix; what comes before that; with `more` what else can grow."""
    lines, headroom = [_answer(result)], result.headroom
    if headroom is not None:
        lines += _before(headroom)
        if more and headroom.growths:
            lines.append(f"What else can grow: {', '.join(map(_growth, headroom.growths))}.")
    if result.facts.why_sums_only is not None:
        lines.append(f"Only the sums are known: {result.facts.why_sums_only}")
    return lines


def _answer(result: Result) -> str:
    facts, headroom = result.facts, result.headroom
    subject, held = who(facts), f"holds {size(facts.total.rss_bytes)} (RSS)"
    if headroom is None or headroom.left_bytes is None:
        why = facts.levels_unknown or "neither a limit nor the machine's memory could be read"
        return f"{subject} {held}; whether it can be killed is unknown: {why}."
    heap, leaves = _heap(headroom, facts), _leaves(headroom)
    if headroom.can_be_killed:
        return f"{subject} {fate(headroom.level)}: {f'{heap}; ' if heap else ''}{leaves}.{_fix(headroom)}"
    if heap and headroom.can_be_killed is None:
        unsure = f"{size(headroom.unsure_bytes)} more may be left, since cgroup v1 does not tell which kernel memory can be reclaimed"
        return f"{subject}: whether it can be killed is unknown: {heap}; {leaves}; {unsure}."
    if heap:
        spare = (headroom.all_left_bytes or 0) - (headroom.heap_growth_bytes or 0)
        return f"{subject} fits, with {size(spare)} for all the rest: {heap}; {leaves}."
    return f"{subject} {held}; {leaves}{'; how far the heap may grow is unknown' if facts.jvm else ''}."


def _before(headroom: Headroom) -> Iterator[str]:
    """What happens before the kernel kills."""
    if headroom.others:
        yield f"It does not fit either into {', '.join(f'cgroup {level.path}' for level in headroom.others)}."
    if headroom.throttled_in is not None:
        left, high = size(headroom.throttle_left_bytes), headroom.throttled_in
        yield f"It is slowed down before that: memory.high of cgroup {high.path} ({short_size(high.high_bytes)}) leaves {left}."
    if headroom.allocations_fail:
        yield f"Allocations fail before that: vm.overcommit_memory=2 leaves {size(headroom.commit_left_bytes)} to commit."


def _heap(headroom: Headroom, facts: Facts) -> str | None:
    """`the heap may still grow 160 MiB (95.7 of -Xmx256m resident)`."""
    grows, jvm, resident = headroom.heap_growth_bytes, facts.jvm, headroom.heap_resident_bytes
    if grows is None or jvm is None or jvm.heap_max_bytes is None:
        return None
    xmx = flag_size(jvm.heap_max_bytes)
    if grows == 0:
        return f"the heap has all of -Xmx{xmx} already"
    if resident is None:
        return f"the heap may still grow {size(grows)} (-Xmx{xmx})"
    held = size(resident)
    held = held.removesuffix(" MiB") if xmx.endswith("m") else held
    return f"the heap may still grow {size(grows)} ({held} of -Xmx{xmx} resident)"


def _leaves(headroom: Headroom) -> str:
    """`the limit leaves 102 MiB (400 MiB, cgroup /orders)`."""
    swap = f" and {size(headroom.swap_left_bytes)} of swap" if headroom.swap_left_bytes else ""
    left, level = size(headroom.left_bytes) + swap, headroom.level
    if level is None:
        return f"no limit is below the machine's memory, which leaves {left}"
    return f"the limit leaves {left} ({short_size(level.limit_bytes)}, cgroup {level.path})"


def _fix(headroom: Headroom) -> str:
    ways = ways_out(headroom)
    return f" Fix: {ways}." if ways else ""


def _growth(growth: Growth) -> str:
    """`direct buffers 214 MiB`."""
    return f"{title(growth.kind)} {'without a limit' if growth.bytes is None else size(growth.bytes)}"


def exact_line(pid: int, seconds: float) -> str:
    """What a look with --exact costs, before it is done. `seconds`: of CPU time."""
    return (
        f"--exact reads each mapping and each free block of malloc of {pid}: about {duration(seconds)} of CPU time, "
        f"and {_S_PER_MILLION} s for each million of free blocks; {pid} is not paused"
    )


def suspects(result: Result, *, all_: bool = False, on_screen: bool = False) -> Iterator[str]:
    """What holds the memory, without what a finding says already: the first in a sentence, the others by name; then the closer look.

    `on_screen`: of -w, where a finding is cut to a line, without its own command.
    """
    said = {finding.code for finding in result.findings}
    shown = [each for each in result.suspects if each.code not in said]
    for each in shown if all_ else shown[:1]:
        yield f"suspect: {each.summary}" + (f" ({each.evidence})" if all_ and each.evidence else "")
    if shown[1:] and not all_:
        yield f"further suspects (-v): {listed([f'{_held_by(each)} {size(each.bytes)}' for each in shown[1:]], _MOST_SUSPECTS)}"
    closer = [finding.next for finding in result.findings if finding.code == "memory-keeps-growing"]
    closer += [each.next for each in shown]
    following = next(filter(None, closer), None)
    if following is not None and (on_screen or not any(finding.next for finding in result.findings)):
        yield f"next: {following}"


def _held_by(suspect: Suspect) -> str:
    """`direct buffers`, `shared memory of a dead process`."""
    return suspect.code.removeprefix("memory-in-").replace("memory-of-", "shared memory of a ").replace("-", " ")


def cgroups(levels: Sequence[MemoryGroup]) -> Iterator[str]:
    """A line for each cgroup with a limit, and for the process's own: what counts, what goes first, what was killed."""
    for level in levels:
        if level is levels[0] or level.limit_bytes is not None:
            yield f"cgroup {level.path}: {', '.join(_level(level))}"


def _level(level: MemoryGroup) -> Iterator[str]:
    """Amounts of nothing are left out."""
    used = size(level.usage_bytes)
    yield f"{used}, no limit" if level.limit_bytes is None else f"{used} of {short_size(level.limit_bytes)}"
    if level.peak_bytes:
        yield f"peak {size(level.peak_bytes)}"
    if level.high_bytes is not None:
        yield f"high {short_size(level.high_bytes)}"
    if level.cache_bytes:
        yield f"page cache {size(level.cache_bytes)} goes first"
    for name, amount in (("kernel", level.kernel_bytes), ("shmem", level.shmem_bytes), ("swap", level.swap_bytes)):
        if amount:
            yield f"{name} {size(amount)}"
    if level.oom_kills:
        yield plural(level.oom_kills, "OOM kill")


def machine(host: HostMemory) -> str:
    """The machine in one line: memory, swap, overcommit, and how soon the OOM killer chooses this process."""
    known = host.meminfo
    said = []
    if "MemAvailable" in known and "MemTotal" in known:
        said.append(f"{sizes([known['MemAvailable'], known['MemTotal']]).replace('/', 'of')} available")
    swap = known.get("SwapTotal")
    if swap is not None:
        said.append(f"swap {size(known.get('SwapFree'))} of {size(swap)} free" if swap else "no swap")
    if host.overcommit is not None:
        said.append(f"overcommit {_OVERCOMMIT.get(host.overcommit, host.overcommit)}")
    if host.oom_score is not None:
        adjusted = f" (oom_score_adj {host.oom_score_adj})" if host.oom_score_adj else ""
        said.append(f"oom_score {host.oom_score}{adjusted}")
    return f"machine: {', '.join(said) or 'unknown'}"
