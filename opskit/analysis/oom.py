"""Which OOM kills count, how old they are, and what is wrong. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit import shell
from opskit.analysis.finding import HOST, Entity, Finding, most_severe_first
from opskit.proc.oom import signs as kinds
from opskit.proc.oom.records import CHOSEN, KILLED, NONE, PANIC, UNFINISHED
from opskit.quantities import duration, plural, short_size
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opskit.analysis.finding import Severity
    from opskit.analysis.moments import Moment
    from opskit.collect.oom import Facts, Known
    from opskit.proc.oom.lines import When
    from opskit.proc.oom.records import Kill
    from opskit.proc.oom.signs import Sign

LATELY_S = 24 * 3600.0
_VICTIMS = (KILLED, CHOSEN)
_AT_LIMIT = 0.98
_UNCOUNTED = 0.1  # of what was charged
_MOST_FINDINGS = 3


class Span(NamedTuple):
    """--since and --until: dates, or how long before the end: now, or the last line of the logs."""

    since: Moment | None = None
    until: Moment | None = None

    @property
    def is_empty(self) -> bool:
        """Whether --since is after --until."""
        if self.since is None or self.until is None or self.since.clock != self.until.clock:
            return False
        later_s = self.since.at_s - self.until.at_s
        return later_s < 0 if self.since.clock == "uptime" else later_s > 0  # a duration is how long ago

    def holds(self, when: When, end: When) -> bool | None:
        """Whether a moment counts; None where it cannot be compared."""
        for moment, is_lower in ((self.since, True), (self.until, False)):
            if moment is None:
                continue
            after_s = _after_s(when, end, moment)
            if after_s is None:
                return None
            if after_s < 0 if is_lower else after_s > 0:
                return False
        return True


def _after_s(when: When, end: When, moment: Moment) -> float | None:
    """Seconds from a moment of the user's to a stamp."""
    if moment.clock != "uptime":
        at_s = when.time_s if moment.clock == "utc" else when.local_s
        return None if at_s is None else at_s - moment.at_s
    for at_s, end_s in ((when.time_s, end.time_s), (when.local_s, end.local_s), (when.uptime_s, end.uptime_s)):
        if at_s is not None and end_s is not None:
            return moment.at_s - (end_s - at_s)
    return None


class Result(NamedTuple):
    """The kills in the order of time, those that did not end in one, and what was found.

    `left_out`: kills outside of --since and --until; `undated`: kills whose time cannot be compared with them, which count.
    """

    facts: Facts
    kills: Sequence[Known]
    others: Sequence[Known]
    signs: Sequence[Sign]
    left_out: int
    undated: int
    findings: Sequence[Finding]


def judge(facts: Facts, span: Span | None = None) -> Result:
    """Select the kills, and make the findings about them."""
    span = span or Span()
    held = [(each, span.holds(each.kill.when, facts.end)) for each in facts.kills]
    kept = [each for each, holds in held if holds is not False]
    kills = [each for each in kept if each.kill.outcome in _VICTIMS]
    others = [each for each in kept if each.kill.outcome not in _VICTIMS]
    signs = [sign for sign in facts.signs if span.holds(sign.when, facts.end) is not False]
    facts = facts._replace(
        crashes=[each for each in facts.crashes if span.holds(_before(facts.end, each.ago_s), facts.end) is not False]
    )
    undated = sum(holds is None for _, holds in held)
    findings = [
        *_killed(kills),
        *_others(others),
        *_signs(facts, signs, kills),
        *_crashes(facts),
        *(() if _covers(facts, span) else _counted(facts)),
    ]
    return Result(facts, kills, others, signs, len(held) - len(kept), undated, most_severe_first(findings))


def _before(end: When, ago_s: float | None) -> When:
    """The moment so long before the end, on each clock; one without any where it is unknown."""
    time_s, uptime_s, local_s = (None if at_s is None or ago_s is None else at_s - ago_s for at_s in end[:3])
    return end._replace(time_s=time_s, uptime_s=uptime_s, local_s=local_s)


def _covers(facts: Facts, span: Span) -> bool:
    """Whether the logs of this machine reach back to --since: kills that they lack were before it."""
    return (
        span.since is not None
        and facts.covers_s is not None
        and span._replace(until=None).holds(_before(facts.end, facts.covers_s), facts.end) is False
    )


def is_old(ago_s: float | None) -> bool:
    """Whether it was more than 24 hours ago, as far as that is known."""
    return ago_s is not None and ago_s > LATELY_S


def outside_heap_bytes(known: Known) -> int | None:
    """What of the victim's memory was surely outside of the Java heap; None without counters, or where it is not sure."""
    heap, kill = known.left and known.left.heap, known.kill
    if heap is None or kill.anon_bytes is None:
        return None
    outside = kill.anon_bytes + (kill.shmem_bytes or 0) - heap.committed_bytes  # ZGC's heap is shared memory
    return outside if outside > 0 else None


def uncounted_bytes(kill: Kill) -> int | None:
    """What was charged to the cgroup and is in none of its statistics, which the kernel updates late; None where it is little."""
    held, memory = kill.held, kill.memory
    if held is None or memory is None:
        return None
    rest = memory.usage_bytes - sum(
        part or 0 for part in (held.anon_bytes, held.shmem_bytes, held.cache_bytes, held.kernel_bytes)
    )
    return rest if rest > memory.usage_bytes * _UNCOUNTED else None


def limit_of(known: Known) -> tuple[str, int] | None:
    """(which limit, bytes) of the cgroup that was reached; None where the log does not show it."""
    kill = known.kill
    both = kill.swap if kill.kernel is not None else None  # v2 has a limit of swap alone, which kills nobody
    full = [
        (name, usage.limit_bytes)
        for name, usage in (("limit", kill.memory), ("memory+swap limit", both), ("kernel memory limit", kill.kernel))
        if usage is not None and usage.limit_bytes is not None and usage.usage_bytes >= usage.limit_bytes * _AT_LIMIT
    ]  # fmt: skip
    if not full and kill.memory is not None and kill.memory.limit_bytes is not None:
        return "limit", kill.memory.limit_bytes
    return full[0] if full else None


def _killed(kills: Sequence[Known]) -> Iterator[Finding]:
    """A finding for each program and what was full, the last kill first."""
    groups: dict[tuple[str | None, str | None, str], list[Known]] = {}
    for each in reversed(kills):
        groups.setdefault((each.kill.scope, each.kill.cgroup, each.kill.name), []).append(each)
    for alike in list(groups.values())[:_MOST_FINDINGS]:
        yield _killed_alike(alike)
    if len(groups) > _MOST_FINDINGS:
        rest = list(groups.values())[_MOST_FINDINGS:]
        severity: Severity = "note" if all(is_old(each[0].ago_s) for each in rest) else "error"
        count = sum(map(len, rest))
        summary = f"{plural(count, 'more process was', 'more processes were')} killed; -n 0 lists all"
        yield Finding("oom-killed", severity, HOST, summary, "the same logs")


def label_of(known: Known) -> str | None:
    """The unit, container or pod of the victim; None where its cgroup's path names none."""
    owner = known.owner
    return owner.label if owner and (owner.unit or owner.container or owner.pod) else None


def _killed_alike(alike: Sequence[Known]) -> Finding:
    """The finding for kills of one program by what was full, the last one first."""
    last = alike[0]
    kill, limit = last.kill, limit_of(last)
    cgroup, name = kill.cgroup, kill.name
    label = label_of(last)
    owner = f" ({label})" if label and not (cgroup or "").endswith(label) else ""
    times = f"{name}{owner} was {'killed' if kill.outcome == KILLED else 'chosen to be killed'}"
    if len(alike) > 1:
        times = f"{plural(len(alike), 'process', 'processes')} named {name}{owner} were killed"
    evidence = [f"{last.source} names {'it' if len(alike) == 1 else 'them'}"]
    evidence += [f"limit {short_size(limit[1])}"] if limit else []
    evidence += [f"last {duration(last.ago_s)} ago"] if last.ago_s is not None else []
    return Finding(
        "oom-killed",
        "note" if is_old(last.ago_s) else "error",
        Entity("process", kill.pid, inside=Entity("cgroup", kill.task_cgroup or cgroup) if kill.by_cgroup else HOST),
        f"{times} {f'at the memory limit of {cgroup}' if kill.by_cgroup and cgroup else _cause(last)}",
        "; ".join(evidence),
        next=shell.command("opskit", "mem"),
    )


def _cause(known: Known) -> str:
    scope = known.kill.scope
    if known.kill.manual:
        return "by the OOM killer, which was called by sysrq"
    return {
        "host": "because the whole host was out of memory",
        "cgroup": "at the memory limit of its cgroup",
        "cpuset": "because the memory nodes of its cpuset were full",
        "mempolicy": "because the memory nodes of its memory policy were full",
    }.get(scope or "", "by the OOM killer")


def _others(others: Sequence[Known]) -> Iterator[Finding]:
    texts = {
        PANIC: "the kernel panicked when it was out of memory, and killed no process",
        NONE: "memory ran out, and no process could be killed",
        UNFINISHED: "the OOM killer was called; the log ends before it names a victim",
    }
    for outcome, text in texts.items():
        those = [each for each in others if each.kill.outcome == outcome]
        if those:
            last = those[-1]
            severity: Severity = "note" if is_old(last.ago_s) else "error"
            entity = Entity("cgroup", last.kill.cgroup) if last.kill.cgroup else HOST
            invoker = f"; {last.kill.invoker} asked for memory" if last.kill.invoker else ""
            times = f", {plural(len(those), 'time')}" if len(those) > 1 else ""
            yield Finding("oom-no-victim", severity, entity, f"{text}{times}", f"{last.source}{invoker}",
                          next=shell.command("opskit", "mem"))  # fmt: skip


_SIGNS: dict[str, tuple[str, Severity, str]] = {
    kinds.OOMD: ("oom-killed-by-daemon", "error", "systemd-oomd killed {who}: that is not the kernel's OOM killer"),
    kinds.EARLYOOM: ("oom-killed-by-daemon", "error", "earlyoom killed {who}: that is not the kernel's OOM killer"),
    kinds.UNIT: ("oom-reported", "error", "systemd reports an OOM kill in {who}"),
    kinds.CONTAINER: ("oom-reported", "error", "a container runtime or kubelet reports an OOM kill of {who}"),
    kinds.SIGKILL: ("exit-137", "note", "{who} ended by SIGKILL (exit status 137): an OOM kill, a kill -9, or a stop that took too long"),
    kinds.NATIVE: ("jvm-native-memory-refused", "warning", "a JVM got no native memory and ended itself: no OOM kill"),
    kinds.HEAP: (
        "java-heap-exhausted", "note",
        "a JVM ended itself after an OutOfMemoryError (-XX:+ExitOnOutOfMemoryError): its heap was full, no OOM kill",
    ),
}  # fmt: skip
_UNNAMED = {kinds.CONTAINER: "a container", kinds.SIGKILL: "a process"}


def _signs(facts: Facts, signs: Sequence[Sign], kills: Sequence[Known]) -> Iterator[Finding]:
    """What user space tells, except what the kernel's own report says better."""
    units = {each.owner.unit for each in kills if each.owner}
    for kind, (code, severity, text) in _SIGNS.items():
        those = [
            sign
            for sign in signs
            if sign.kind == kind and not (kind in (kinds.UNIT, kinds.SIGKILL) and sign.who in units)
        ]
        if not those:
            continue
        last, names = those[-1], list(dict.fromkeys(sign.who for sign in those if sign.who))
        who = _listed(names) or _UNNAMED.get(kind, "a process")
        ago_s = None if not facts.is_live or last.when.time_s is None else (facts.end.time_s or 0.0) - last.when.time_s
        known = severity if not is_old(ago_s) else "note"
        if kind == kinds.CONTAINER and kills:
            known = "note"
        times = sum(sign.times for sign in those)
        counted = f"{plural(times, 'line')}, the last: " if times > 1 else ""
        at = f"{last.when.text}: " if last.when.text else ""
        entity = Entity("process", names[0]) if names else HOST
        yield Finding(
            code, known, entity, text.format(who=who), f"{counted}{at}{last.text}", next=_next_of(kind, last.who)
        )


def _next_of(kind: str, who: str) -> str | None:
    if kind == kinds.HEAP:
        return None
    if kind in (kinds.UNIT, kinds.SIGKILL) and who and "." in who:
        return shell.command("systemctl", "status", *shell.operands(who))
    return shell.command("opskit", "mem")


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _crashes(facts: Facts) -> Iterator[Finding]:
    """A finding for each of the last ones, and one for the others."""
    crashes = sorted(facts.crashes, key=lambda each: each.ago_s or 0.0)
    if rest := crashes[_MOST_FINDINGS:]:
        severity: Severity = "note" if all(is_old(each.ago_s) for each in rest) else "warning"
        summary = f"{plural(len(rest), 'more JVM')} got no native memory and ended: no OOM kill"
        yield Finding(
            "jvm-native-memory-refused", severity, HOST, summary, f"{rest[0].path} and older ones; -f json lists them"
        )
    for crash in crashes[:_MOST_FINDINGS]:
        ago = "" if crash.ago_s is None else f", written {duration(crash.ago_s)} ago"
        yield Finding(
            "jvm-native-memory-refused", "note" if is_old(crash.ago_s) else "warning", Entity("file", crash.path),
            "a JVM got no native memory and ended itself: no OOM kill", f"{crash.line}{ago}",
            next=shell.command("opskit", "crash", *shell.operands(crash.path)),
        )  # fmt: skip


def _counted(facts: Facts) -> Iterator[Finding]:
    """Kills that the counters show and no log: recent ones where the machine, or what the logs lack, is younger than a day."""
    missing = missing_kills(facts)
    if not missing:
        return
    first = facts.cgroups[0] if facts.cgroups else None
    is_recent = not facts.kills and facts.is_live and facts.uptime_s is not None and facts.uptime_s <= LATELY_S
    covered = "" if facts.covers_s is None else f"; the logs begin {duration(facts.covers_s)} ago"
    named = "" if facts.kills else ", ".join(f"{each.path} {each.kills:,}" for each in facts.cgroups[:3])
    since = "boot" if facts.counted is not None else "the cgroup's creation"
    evidence = "; ".join(filter(None, (
        None if facts.counted is None else f"oom_kill {facts.counted:,} of /proc/vmstat",
        f"oom_kill of the cgroups: {named}" if named else None,
    )))  # fmt: skip
    yield Finding(
        "oom-counted", "warning" if is_recent else "note", Entity("cgroup", first.path) if first and not facts.kills else HOST,
        f"{plural(missing, 'OOM kill')} since {since} {'is' if missing == 1 else 'are'} in no log that could be read; when is unknown",
        f"{evidence}{covered}", next=facts.journal or shell.command("opskit", "mem"),
    )  # fmt: skip


def missing_kills(facts: Facts) -> int:
    """How many kills the counters show beyond those in the logs."""
    if facts.is_whole:
        return 0
    uptime_s = facts.uptime_s if facts.is_live and facts.uptime_s is not None else float("inf")
    logged = sum(each.kill.outcome in _VICTIMS and (each.ago_s or 0.0) <= uptime_s for each in facts.kills)
    counted = facts.counted if facts.counted is not None else sum(each.kills for each in facts.cgroups)
    return max(0, counted - logged)
