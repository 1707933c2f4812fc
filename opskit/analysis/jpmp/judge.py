"""Judge thread dumps: weighted stacks, contended locks, deadlocks; findings and sentences about them. Pure."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING

from opskit import shell
from opskit.analysis.jpmp import stacks as weighing
from opskit.analysis.jpmp.frames import frame_name, literal
from opskit.analysis.jpmp.libraries import application_frame
from opskit.analysis.jpmp.weighing import weigh_before, weigh_facts
from opskit.errors import UsageError
from opskit.quantities import agreeing, listed, plural
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from opskit.analysis.finding import Entity, Finding
    from opskit.analysis.jpmp.cpu_samples import Method
    from opskit.analysis.jpmp.locks import ContendedLock, Contention, Deadlock, LockKey, Party
    from opskit.analysis.jpmp.pools import Overview
    from opskit.analysis.jpmp.virtual_waits import StackWaits
    from opskit.collect.cpu_profile import CpuProfile
    from opskit.collect.jpmp.collect import Facts
    from opskit.jvm.dumps.thread_dump import ThreadDump, Waits
    from opskit.jvm.profiles import WeightedStack

_ENOUGH_SAMPLES = 3  # in which a lock holds up several threads; fewer may be a moment of a busy, healthy JVM
_ENOUGH_SHARE = 0.5  # of all samples
_MOST_NAMES = 5


class Weighing(NamedTuple):
    """How to weigh stacks and which to keep. `detailed` False: the dumps were read without thread names."""

    naming: weighing.Naming = weighing.Naming()
    selection: weighing.Selection = weighing.Selection()
    root: weighing.Root | None = None
    by: weighing.Weight = "samples"
    detailed: bool = True

    @property
    def on_cpu(self) -> bool:
        """Whether stacks are weighed by CPU time."""
        return self.by == "cpu_ms"


class Profile(NamedTuple):
    """Weighted stacks: all, and those selected. `cpu_ms`: CPU time of all threads over the run. `before`: selected stacks.

    `methods`: those of the selected stacks of a CPU profile.
    """

    stacks: Sequence[WeightedStack]
    selected: Sequence[WeightedStack]
    cpu_ms: float | None
    deadlocks: Sequence[Sequence[Waits]]
    findings: Sequence[Finding]
    before: Sequence[WeightedStack] | None = None
    pools: Overview | None = None
    methods: Sequence[Method] | None = None


class Locks(NamedTuple):
    """The contended locks. `known`: whether the dumps contain lines about locks at all.

    `by_stack`: virtual threads that wait for locks which the JVM does not name. `unseen`: why waiting virtual threads are unknown.
    """

    contention: Contention
    known: bool
    findings: Sequence[Finding]
    by_stack: Sequence[StackWaits] = ()
    unseen: str | None = None
    pools: Overview | None = None


def judge(facts: Facts, how: Weighing) -> Profile:
    """Weigh the stacks and find the deadlocks that the JVM reports. Raises UsageError if CPU time is wanted but unknown."""
    before = None if facts.before is None else weighing.select(weigh_before(facts.before, how), how.selection)
    if facts.cpu is not None:
        return _of_samples(facts, facts.cpu, how)._replace(before=before)
    stacks, cpu = weigh_facts(facts, how)
    deadlocks = tuple(dict.fromkeys(deadlock for dump in facts.dumps for deadlock in dump.deadlocks))
    pools = _pools(facts)
    return Profile(
        stacks,
        weighing.select(stacks, how.selection),
        None if cpu is None else sum(cpu.values()),
        deadlocks,
        [
            *_pinned(facts),
            *(_reported_deadlock(facts, deadlock) for deadlock in deadlocks),
            *_pool_findings(facts, pools),
            *_load_findings(facts),
        ],
        before,
        pools,
    )


def _of_samples(facts: Facts, taken: CpuProfile, how: Weighing) -> Profile:
    """The stacks of a CPU profile, or of another one that async-profiler made: then only their weight is known."""
    from opskit.analysis.jpmp.cpu_samples import methods, weigh

    stacks = weigh(taken, how.naming, how.root)
    if not how.on_cpu:
        stacks = [stack._replace(cpu_ms=None) for stack in stacks if stack.samples]
    whole = weighing.select(stacks, how.selection._replace(depth=None)) if how.selection.depth else None
    selected = weighing.select(stacks, how.selection)
    found = methods(selected if whole is None else whole) if how.on_cpu else None
    return Profile(stacks, selected, taken.cpu_ms, (), _load_findings(facts), methods=found)


def _pools(facts: Facts) -> Overview | None:
    """What the threads of each pool wait for; None where the dumps were read without names."""
    from opskit.analysis.jpmp.pools import overview

    if not any(thread.name is not None for dump in facts.dumps for thread in dump.threads[:1]):
        return None
    if (live := facts.live) is None:
        return overview(facts.dumps, weighing.cpu_over_run(facts.dumps))
    cpu = weighing.cpu_over_run(facts.dumps, live.cpu_before, live.cpu_after)
    return overview(facts.dumps, cpu, live.peers, live.elapsed_s)


def _pool_findings(facts: Facts, pools: Overview | None) -> list[Finding]:
    from opskit.analysis.jpmp.exhaustion import findings_of

    return [] if pools is None else findings_of(pools, _process(facts), partial(_jpmp, facts))


def _load_findings(facts: Facts) -> list[Finding]:
    live = facts.live
    load = facts.load if live is None else live.load if len(live.dumps) >= _ENOUGH_SAMPLES else None
    if load is None:
        return []
    from opskit.analysis.jpmp.load import judge_load

    return [*judge_load(load, _process(facts), is_jvm=facts.is_jvm)]


def _pinned(facts: Facts) -> list[Finding]:
    """At most one finding: all carriers that wait with their virtual threads."""
    if not any(thread.stack.role for dump in facts.dumps[-1:] for thread in dump.threads):
        return []
    from opskit.analysis.finding import Finding
    from opskit.analysis.jpmp.carriers import FROM, pins, severity

    found = pins(facts)
    level = None if found is None else severity(found)
    if found is None or level is None:
        return []
    are = agreeing(found.pinned, "is", "are")
    by = listed([frame for frame, _ in found.by], _MOST_NAMES)
    summary = f"{found.pinned} of {plural(found.carriers, 'carrier')} {are} pinned, by {by}"
    if found.dumps_of_all == found.dumps:
        summary += ": no other virtual thread can run"
    seen = f"all carriers in {_of_dumps(found.dumps_of_all, facts)}"
    if not found.dumps_of_all:
        seen = f"{found.lasting} by the same virtual {agreeing(found.lasting, 'thread')} in all of {plural(found.dumps, 'dump')}"
    evidence = f"{seen}; {found.reason(_major(facts))}"
    closer = None
    if facts.live is not None:
        closer = _stacks_of(facts, found.by[0][0].partition(FROM)[0], virtual=True)
    share = found.pinned / found.carriers
    return [Finding("virtual-threads-pinned", level, _process(facts), summary, evidence, next=closer, share=share)]


def _major(facts: Facts) -> int | None:
    if facts.live is not None:
        return facts.live.java_major
    version = re.search(r"(?:\A|\()(?:1\.)?([0-9]{1,4})\b", facts.dumps[-1].version or "")
    return None if version is None else int(version[1])


def judge_locks(facts: Facts, naming: weighing.Naming = weighing.SHORT_NAMES) -> Locks:
    """Find contended locks and deadlocks. Raises UsageError for profiles, which have no locks."""
    from opskit.analysis.jpmp.locks import contention
    from opskit.analysis.jpmp.virtual_waits import waits_by_stack, with_virtual
    from opskit.jvm.logs.timestamps import read_stamp

    if not facts.dumps:
        raise UsageError("--locks: collapsed stacks contain no lock information; give the thread dumps themselves")
    times = [None if dump.time is None else read_stamp(dump.time).time_s for dump in facts.dumps]
    live = facts.live
    found = contention(facts.dumps, times if live is None else live.times_s, naming)
    known = any(map(_names_locks, facts.dumps))
    virtual = live.virtual if live is not None and live.virtual else facts.dumps
    if live is not None and live.virtual and all(map(_names_locks, virtual)):
        found = with_virtual(found, contention(virtual, live.virtual_times_s, naming))
    by_stack = waits_by_stack([dump for dump in virtual if not _names_locks(dump)], naming)
    findings = [*_lock_findings(facts, found), *(_waits(facts, group) for group in by_stack if is_lasting(group))]
    # A shortage of CPUs is no answer to a question about locks.
    findings += [finding for finding in _load_findings(facts) if finding.code not in ("jvm-cpu-wait", "cpu-throttled")]
    return Locks(found, known, findings, by_stack, _unseen(facts), _pools(facts))


def _names_locks(dump: ThreadDump) -> bool:
    return any(thread.locks for thread in dump.threads)


def _unseen(facts: Facts) -> str | None:
    """Why waiting virtual threads are unknown; None where the dumps have them, or there can be none."""
    from opskit.analysis.jpmp.virtual_waits import has_virtual

    live = facts.live
    if live is not None:
        return live.virtual_problem
    if any(thread.virtual for dump in facts.dumps for thread in dump.threads) or not has_virtual(facts.dumps):
        return None
    return "an ordinary thread dump has no virtual threads that wait"


def _reported_deadlock(facts: Facts, links: Sequence[Waits]) -> Finding:
    seen = sum(links in dump.deadlocks for dump in facts.dumps)
    names = [f'"{link.thread}"' for link in links]
    evidence, timed = f"reported by the JVM in {_of_dumps(seen, facts)}", any(link.timed for link in links)
    return _deadlock(facts, names, evidence, _jpmp(facts, "--locks"), timed=timed)


def _deadlock(facts: Facts, names: Sequence[str], evidence: str, closer: str | None, *, timed: bool) -> Finding:
    from opskit.analysis.finding import Finding

    until = "one of them times out" if timed else "the JVM is restarted"
    summary = f"{plural(len(names), 'thread')} wait for each other until {until}: {listed(names, _MOST_NAMES)}"
    return Finding("jvm-deadlock", "note" if timed else "error", _process(facts), summary, evidence, next=closer)


def _lock_findings(facts: Facts, found: Contention) -> list[Finding]:
    deadlocked = {link.thread[:3] for deadlock in found.deadlocks for link in deadlock.links}
    return [
        *_pinned(facts),
        *(_found_deadlock(facts, deadlock) for deadlock in found.deadlocks),
        *(_contended(facts, lock) for lock in found.locks if _is_held_up(lock, deadlocked)),
    ]


def _found_deadlock(facts: Facts, deadlock: Deadlock) -> Finding:
    parties = [link.thread for link in deadlock.links]
    names = [party_name(party) if party.virtual else f'"{party.name}"' for party in parties]
    evidence = "reported by the JVM" if deadlock.reported else "a cycle of waits, not reported by the JVM"
    save = None
    if facts.live is not None and any(party.virtual for party in parties):  # which no capture has
        save = _jpmp(facts, 3, "--virtual", "--save", f"jpmp-{facts.live.pid}")
    elif facts.live is not None:
        save = shell.command("opskit", "capture", facts.live.pid, "--ask")
    timed = any(link.thread.state == "TIMED_WAITING" for link in deadlock.links)
    return _deadlock(facts, names, evidence, save, timed=timed)


def _is_held_up(lock: ContendedLock, deadlocked: Iterable[object]) -> bool:
    """Whether one lock holds up several threads most of the time: not by a deadlock, and not in idle acceptors."""
    from opskit.analysis.jpmp.idle import waits_for_connections

    if lock.crowded_samples < max(_ENOUGH_SAMPLES, _ENOUGH_SHARE * lock.dumps) or not lock.can_be_owned:
        return False
    owners = [party for party in (lock.owner, *(link.thread for link in lock.chain)) if party is not None]
    return not (
        any(owner[:3] in deadlocked for owner in owners)
        or any(waits_for_connections(party.frames) for party in (*owners, lock.waiters[0]))
    )


def _contended(facts: Facts, lock: ContendedLock) -> Finding:
    from opskit.analysis.finding import Entity, Finding
    from opskit.analysis.jpmp.lock_owners import ASK_FOR_SYNCHRONIZERS

    closer, others = None, ""
    if lock.owner is not None and lock.owner.name:
        closer = _jpmp(facts, "--by-thread", "--include", f"^{literal(lock.owner.name)}$")
    elif lock.owner_unknown in ASK_FOR_SYNCHRONIZERS and facts.live is not None:
        closer = _jpmp(facts, "--locks", "--synchronizers")
    elif facts.live is not None and (caller := application_frame(lock.waiters[0].frames)):
        closer = _stacks_of(facts, frame_name(caller), virtual=lock.waiters[0].virtual)
        others = _others_there(facts, frame_name(caller))
    waited_s = lock.waited_at_least_s or 0.0
    waited = f"; one thread waited at least {waited_s:.1f} s" if waited_s >= 0.05 else ""
    return Finding(
        "lock-contended",
        "warning",
        Entity("lock", lock_name(lock.key), inside=_process(facts)),
        lock_line(lock).removeprefix(f"{lock_name(lock.key)} ") + others,
        f"contended in {lock.samples} of {plural(lock.dumps, 'dump')}{waited}",
        next=closer,
        share=lock.crowded_samples / lock.dumps,
        window_s=None if facts.live is None else facts.live.elapsed_s,
    )


def is_lasting(group: StackWaits) -> bool:
    """Whether several threads wait there in all of enough dumps."""
    from opskit.analysis.jpmp.locks import SEVERAL

    return group.dumps >= _ENOUGH_SAMPLES and group.lasting >= SEVERAL


def _waits(facts: Facts, group: StackWaits) -> Finding:
    from opskit.analysis.finding import Entity, Finding

    closer = None if facts.live is None else _stacks_of(facts, group.caller, virtual=True)
    entity = Entity("lock", f"{group.method} in {group.caller}", inside=_process(facts))
    evidence = f"{plural(group.lasting, 'thread')} in all of {plural(group.dumps, 'dump')}"
    return Finding("lock-contended", "warning", entity, waits_line(group, facts), evidence, next=closer)


def waits_line(group: StackWaits, facts: Facts) -> str:
    """The sentence about virtual threads that wait for a lock which the JVM does not name."""
    threads = f"{plural(len(group.waiters), 'virtual thread')} {agreeing(len(group.waiters), 'waits', 'wait')}"
    jdk = f"JDK {_major(facts) or '21 to 24'} does not record for which lock or who holds it"
    return f"{threads} in {group.method}, called by {group.caller}; {jdk}{_others_there(facts, group.caller)}"


def _others_there(facts: Facts, caller: str) -> str:
    """`; virtual thread #21 is in Cart.add too, in a call of Dao.load`: who may hold a lock that is taken there."""
    from opskit.analysis.jpmp.virtual_waits import others_in

    virtual = facts.live.virtual if facts.live is not None else ()
    others = others_in((virtual or facts.dumps)[-1], caller)
    if len(others) > 1:
        return f"; {len(others):,} other threads are in {caller} too"
    calls = ((other, other.frames[: other.frames.index(caller)][-1:]) for other in others)
    return "".join(
        f"; {party_name(other)} is in {caller} too{''.join(f', in a call of {frame}' for frame in called)}"
        for other, called in calls
    )


def _stacks_of(facts: Facts, frame: str, *, virtual: bool) -> str | None:
    """The command that shows every stack with this frame, idle or not."""
    return _jpmp(facts, *(["--virtual"] if virtual else []), "--idle", "--include", f"^{literal(frame)}$")


def _of_dumps(count: int, facts: Facts) -> str:
    return f"{count} of {plural(len(facts.dumps), 'dump')}"


def _process(facts: Facts) -> Entity:
    from opskit.analysis.finding import Entity

    if facts.process is None:
        return Entity("file", " ".join(facts.files))
    return Entity("process", *facts.process)


def _jpmp(facts: Facts, *words: object) -> str | None:
    """The command line of jpmp on the same target; None for standard input."""
    if facts.live is not None:
        return shell.command("opskit", "jpmp", facts.live.pid, *words)
    return None if "-" in facts.files else shell.command("opskit", "jpmp", *words, *shell.operands(*facts.files))


def party_name(party: Party) -> str:
    """`"pool-1-thread-3" #41`, or `virtual thread #22 "name"`."""
    number = "" if party.java_id is None else f" #{party.java_id}"
    if party.virtual:
        return f"virtual thread{number}" + (f' "{party.name}"' if party.name else "")
    return f'"{party.name}"{number}' if party.name else f"thread {party.native_id}"


def lock_name(key: LockKey) -> str:
    """`java.lang.Object@6ce3e8d10`."""
    return "@".join(key)


def lock_line(lock: ContendedLock) -> str:
    """The sentence about one lock: how many threads it holds up, its owner, and where the chain of owners ends."""
    said = f"{lock_name(lock.key)} holds up {plural(lock.held_up, 'thread')}"
    if lock.owner is None:
        readers = (lock.owner_unknown or "").startswith("held by ")
        return f"{said}; {lock.owner_unknown}" if readers else f"{said}; its owner is unknown: {lock.owner_unknown}"
    said += f"; held by {party_name(lock.owner)}"
    root = lock.owner
    for link in lock.chain:
        said += f", which waits for {lock_name(link.lock)}"
        if link.owner is None:
            return f"{said} of unknown owner"
        if link.owner == lock.owner or link.owner in (earlier.thread for earlier in lock.chain):
            return f"{said}: a deadlock"
        said += f" held by {party_name(link.owner)}"
        root = link.owner
    if root.frames:
        said += f", which is {f'{root.state} ' if root.state else ''}in {root.frames[0]}"
    return said
