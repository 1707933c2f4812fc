"""Run checks side by side in a child process until they end or the deadline comes.

A read that hangs (a dead network mount, a process whose memory is locked) hangs the child alone: it is left behind, and ends with
opskit. No signal is sent. Within the child the checks take turns; see turns.py.
"""

from __future__ import annotations

import importlib
import time
from functools import partial
from typing import TYPE_CHECKING, Any

from opskit.analysis.doctor.seen import Checked, Gap, Outcome, Place, Seen
from opskit.analysis.finding import Entity, Finding
from opskit.catalog import CHECKS
from opskit.checks.look import Look
from opskit.checks.turns import Turns
from opskit.errors import OpskitError, where_raised
from opskit.interrupts import Guard, Interruptible
from opskit.proc.cgroup.tree import parse_cgroup
from opskit.proc.files.stat import parse_stat
from opskit.proc.kept_reads import KeptReads
from opskit.proc.kernel.children import start_child, wait_for
from opskit.proc.process import command_name
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from opskit.host import Host
    from opskit.proc.kernel.children import Child, Send

_SUSPECT = ("stuck", "slow")
_LAST_S = 0.1  # of the deadline: for ranking and showing
_WINDOW, _LONGEST_S = 0.6, 1.0  # of the deadline; of a window
_PART = 100  # findings in a message


class Request(NamedTuple):
    """What to check: `words` as they were given (a PID, a name), none for the machine; the names of the checks."""

    words: tuple[str, ...] = ()
    checks: tuple[str, ...] = tuple(CHECKS)
    ask: bool = False
    deadline_s: float = 2.0


def run_checks(host: Host, ask: Request) -> Seen:
    """Run them, and return what they saw by the deadline. Raises OpskitError where no process is meant by the words."""
    begun_s = host.monotonic()
    until_s = begun_s + max(ask.deadline_s - _LAST_S, ask.deadline_s / 2)
    heard = _Heard(ask)
    with Guard():
        child = start_child(partial(_work, host, ask, until_s), patient=True)
        try:
            with Interruptible():
                heard.listen(host, child, until_s)
        finally:
            child.leave(has_ended=heard.has_ended and not heard.missing())
    return Seen(
        tuple(heard.checked), (*heard.gaps, *heard.missing()), heard.places, host.monotonic() - begun_s,
        host.now().timestamp(), heard.pids, ask.ask,
    )  # fmt: skip


class _Heard:
    """What the child has told so far."""

    def __init__(self, ask: Request) -> None:
        self.ask = ask
        self.checked: list[Checked] = []
        self.gaps: list[Gap] = [
            Gap(name, CHECKS[name].of, "it needs --ask") for name in ask.checks if CHECKS[name].ask and not ask.ask
        ]
        self.places: dict[int, Place] = {}
        self.pids: tuple[int, ...] = ()
        self.has_ended = False
        self._parts: dict[str, list[Finding]] = {}

    def listen(self, host: Host, child: Child, until_s: float) -> None:
        """Take what it sends until it ends, or a moment after the deadline."""
        while not self.has_ended and (left_s := until_s + _LAST_S / 2 - host.monotonic()) > 0:
            if wait_for([child], left_s):
                message = child.receive()
                self.has_ended = message is None or "end" in message
                self._take(message or {})

    def missing(self) -> list[Gap]:
        """The checks without an answer."""
        known = {each.name for each in self.checked} | {gap.check for gap in self.gaps}
        why = "it did not finish by the deadline" if not self.has_ended else "its process ended early"
        return [Gap(name, CHECKS[name].of, why) for name in self.ask.checks if name not in known]

    def _take(self, message: Mapping[str, Any]) -> None:
        if "error" in message:
            error = OpskitError(message["error"])
            error.lines = tuple(message["lines"])
            raise error
        if "pids" in message:
            self.pids = tuple(message["pids"])
        for pid, name, cgroups, ppid in message.get("places", ()):
            self.places[pid] = Place(pid, name, tuple(cgroups), ppid)
        if "part" in message:
            self._parts.setdefault(message["part"], []).extend(map(_finding, message["findings"]))
        if "check" in message:
            name, (looked_at, gaps, asked) = message["check"], message["rest"]
            pauses = {int(pid): pause for pid, pause in asked.items()}  # a number of ours
            outcome = Outcome(self._parts.pop(name, ()), looked_at, (), pauses)
            self.checked.append(Checked(name, outcome, message["took_s"], message["cpu_s"]))
            self.gaps += [Gap(*gap) for gap in gaps]
        if "failed" in message:
            self.gaps.append(Gap(message["failed"], CHECKS[message["failed"]].of, message["why"]))


def _finding(values: Sequence[Any]) -> Finding:
    code, severity, entity, *rest = values
    return Finding(code, severity, _entity(entity), *rest)


def _entity(values: Sequence[Any]) -> Entity:
    kind, id_, start_ticks, inside = values
    return Entity(kind, id_, start_ticks, None if inside is None else _entity(inside))


def _work(host: Host, ask: Request, until_s: float, send: Send) -> None:
    """In the child: run the checks in turns, those with a window first, and at last those whose JVMs the others choose."""
    turns = Turns()
    host.sleep = turns.sleep
    host.fs.kept = KeptReads(turns.breathe)
    try:
        pids = _resolve(host, ask.words)
    except OpskitError as error:
        send({"error": str(error), "lines": list(error.lines)})
        return
    send({"pids": pids})
    window_s = min(_LONGEST_S, _WINDOW * ask.deadline_s) if host.fs.is_live else 0.0
    look = Look(host, pids, window_s, ask.ask)
    chosen = [name for name in ask.checks if ask.ask or not CHECKS[name].ask]
    suspects: list[int] = []
    for is_last in (False, True):
        names = [name for name in chosen if CHECKS[name].last is is_last]
        for name in sorted(names, key=lambda each: -CHECKS[each].window_s):
            turns.start(partial(_check, name, look._replace(suspects=tuple(dict.fromkeys(suspects))), send, suspects))
        turns.wait(until_s)
    send({"end": True})


def _resolve(host: Host, words: tuple[str, ...]) -> tuple[int, ...]:
    if not words:
        return ()
    from opskit.collect.given_pids import GivenPids
    from opskit.collect.targets import resolve_process

    pids = tuple(dict.fromkeys(resolve_process(host, word, "doctor") for word in words))
    GivenPids(host, pids, "doctor")  # they exist
    return pids


def _check(name: str, look: Look, send: Send, suspects: list[int]) -> None:
    begun_s, begun_cpu_s = time.monotonic(), time.thread_time()
    try:
        outcome: Outcome = importlib.import_module(f"opskit.checks.{name.replace('-', '_')}").check(look)
    except (OpskitError, OSError) as error:
        send({"failed": name, "why": str(error)})
        return
    except Exception as error:  # noqa: BLE001  (a bug in one check never stops the others)
        send({"failed": name, "why": f"a bug in opskit: {where_raised(error)}"})
        return
    findings = outcome.findings
    for begin in range(0, len(findings), _PART):
        part = findings[begin : begin + _PART]
        send({"part": name, "findings": part, "places": _places(look.host, part)})
    suspects += [pid for finding in findings if finding.class_ in _SUSPECT for pid in _pids_of(finding.entity)]
    took_s, cpu_s = time.monotonic() - begun_s, time.thread_time() - begun_cpu_s
    rest = outcome.looked_at, outcome.gaps, outcome.asked
    send({"check": name, "rest": rest, "took_s": took_s, "cpu_s": cpu_s})


def _pids_of(entity: Entity | None) -> Iterable[int]:
    while entity is not None:
        if entity.kind == "process" and isinstance(entity.id, int):
            yield entity.id
        entity = entity.inside


def _places(host: Host, findings: Sequence[Finding]) -> list[Place]:
    fs = host.fs
    places = []
    for pid in dict.fromkeys(pid for finding in findings for pid in _pids_of(finding.entity)):
        paths = {each.path for each in fs.maybe(parse_cgroup, pid, "cgroup", default=())} - {"/"}
        stat = fs.maybe(parse_stat, pid, "stat")
        places.append(Place(pid, command_name(fs, pid), tuple(sorted(paths)), stat and stat.ppid))
    return places
