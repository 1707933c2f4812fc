"""Run checks side by side in a child process until they end or the deadline comes.

A read that hangs (a dead network mount, a process whose memory is locked) hangs the child alone: it is left behind, and ends with
opskit. No signal is sent. Within the child the checks take turns; see crew.py and turns.py.
"""

from __future__ import annotations

import importlib
import signal
from contextlib import contextmanager, suppress
from math import inf
from typing import TYPE_CHECKING, Any

from opskit.analysis.doctor.seen import NOTHING_THERE, Checked, Gap, Outcome, Place, Seen
from opskit.analysis.finding import Entity, Finding
from opskit.catalog import CHECKS
from opskit.checks.crew import Crew, Request
from opskit.errors import NotSupported, TargetTimeout
from opskit.host import scheduled_first
from opskit.interrupts import Guard, Interruptible
from opskit.proc.kernel.children import start_child, wait_for
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from opskit.host import Host
    from opskit.proc.kernel.children import Child, Send

__all__ = ["Request", "preload", "run_checks"]

_LAST_S, _LEAST = 0.1, 0.75  # of the deadline: for ranking and showing; for the checks, at least
_UNASKED = "it needs --ask"
_LATE = "it did not finish by the deadline"
_left: list[_Left] = []  # by earlier rounds
_imported: list[str] = []  # what the last round imported


class _Left(NamedTuple):
    """A child that cannot end: its checks that did not finish; others that did at their second try, with the path that hangs."""

    child: Child
    unfinished: tuple[str, ...]
    hung: tuple[tuple[str, str], ...]


def preload(names: Iterable[str] = CHECKS) -> None:
    """Import what checks need, so that the rounds of a watch do not."""
    for name in (*(f"opskit.checks.{each.replace('-', '_')}" for each in names), *_imported):
        with suppress(ImportError):
            importlib.import_module(name)
    _imported.clear()


def run_checks(host: Host, ask: Request, meanwhile: Callable[[], None] = lambda: None) -> Seen:
    """Run them, and return what they saw by the deadline. Raises OpskitError where no process is meant by the words.

    `meanwhile` is called while the checks run: to import what shows their results. Call `preload` before the rounds of a watch.
    """
    begun_s = host.monotonic()
    until_s = begun_s + max(ask.deadline_s - ask.used_s - _LAST_S, _LEAST * ask.deadline_s)
    if host.is_recorded:  # nothing there hangs or takes time
        until_s = inf
        if host.fs.has_rates:
            host.end_of(ask.deadline_s)  # raises NoMoreSamples: a watch ends
    host.fs.uses_nss = ask.ask
    _left[:] = [each for each in _left if each.child.reap() is None]
    hanging = {name for each in _left for name in each.unfinished}
    heard = _Heard(ask, hanging)
    ask = ask._replace(checks=tuple(name for name in ask.checks if name not in hanging))
    try:
        _prove_live(host)
        with scheduled_first():  # a machine whose CPUs are overloaded is looked at, too
            _run_in_child(host, ask, until_s, heard, meanwhile)
    except _NoChild:
        with _restored(host):
            _crew(host, ask, until_s, heard.take).run()
        meanwhile()
    _imported[:] = heard.modules
    pids = heard.known_pids()
    order = list(CHECKS)
    checked = sorted(heard.checked, key=lambda each: order.index(each.name))
    gaps = sorted(
        (*heard.gaps, *heard.missing()), key=lambda gap: order.index(gap.check) if gap.check in CHECKS else -1
    )
    took_s = host.monotonic() - begun_s
    return Seen(tuple(checked), tuple(gaps), heard.places, took_s, host.now().timestamp(), pids, ask.ask)


def _crew(host: Host, ask: Request, until_s: float, send: Send) -> Crew:
    known = {path: name for each in _left for name, path in each.hung}
    return Crew(host, ask, until_s, send, [(name, path) for path, name in known.items()])


class _NoChild(Exception):  # noqa: N818
    """No process can be started, or none is needed."""


def _prove_live(host: Host) -> None:
    if host.is_recorded:
        raise _NoChild


def _run_in_child(host: Host, ask: Request, until_s: float, heard: _Heard, meanwhile: Callable[[], None]) -> None:
    def work(send: Send) -> None:
        _crew(host, ask, until_s, send).run()

    with Guard():
        try:
            child = start_child(work, host.fs.fds, patient=True)
        except NotSupported:
            raise _NoChild from None
        try:
            with Interruptible():
                meanwhile()
                heard.listen(host, child, until_s)
        finally:
            heard.status = child.leave(has_ended=heard.is_done and not heard.hung)
            if heard.status is None:
                _left.append(_Left(child, tuple(gap.check for gap in heard.missing()), heard.hung))


@contextmanager
def _restored(host: Host) -> Iterator[None]:
    sleep, kept = host.sleep, host.fs.kept
    try:
        yield
    finally:
        host.sleep, host.fs.kept = sleep, kept


class _Heard:
    """What the child has told so far. `is_done`: all checks have ended; `is_silent`: it has ended, by the exit `status`."""

    def __init__(self, ask: Request, hanging: set[str]) -> None:
        self.ask = ask
        self.checked: list[Checked] = []
        self.gaps: list[Gap] = [
            Gap(name, CHECKS[name].of, _UNASKED) for name in ask.checks if CHECKS[name].ask and not ask.ask
        ]
        self.gaps += [
            Gap(name, CHECKS[name].of, "it still hangs since it was last run") for name in ask.checks if name in hanging
        ]
        self.places: dict[int, Place] = {}
        self.pids: tuple[int, ...] | None = None
        self.modules: list[str] = []
        self.hung: tuple[tuple[str, str], ...] = ()
        self.has_ended = self.is_done = self.is_silent = False
        self.status: int | None = None
        self._whole = {gap.check for gap in self.gaps}  # checks of which nothing is expected
        self._parts: dict[str, list[Finding]] = {}

    def listen(self, host: Host, child: Child, until_s: float) -> None:
        """Take what it sends until it ends, or a moment after the deadline."""
        while not self.has_ended and (left_s := until_s + _LAST_S / 2 - host.monotonic()) > 0:
            if wait_for([child], left_s):
                message = child.receive()
                self.is_silent = message is None
                self.has_ended = self.is_silent
                self.take(message or {})

    def known_pids(self) -> tuple[int, ...]:
        """The processes that are asked about. Raises TargetTimeout where that did not turn out."""
        if self.pids is None and self.ask.words:
            why = _LATE if not self.is_silent else _why_ended(self.status)
            raise TargetTimeout(f"cannot tell which process is {' '.join(self.ask.words)!r}: {why}; give its PID")
        return self.pids or ()

    def missing(self) -> list[Gap]:
        """The checks without an answer."""
        known = {each.name for each in self.checked} | self._whole
        why = _LATE if not self.is_silent else _why_ended(self.status)
        return [Gap(name, CHECKS[name].of, why) for name in self.ask.checks if name not in known]

    def take(self, message: Mapping[str, Any]) -> None:
        """Take one message of a Crew."""
        if "pids" in message:
            self.pids = tuple(message["pids"])
        for pid, name, cgroups, ppid in message.get("places", ()):
            self.places[pid] = Place(pid, name, tuple(cgroups), ppid)
        if "part" in message:
            self._parts.setdefault(message["part"], []).extend(map(_finding, message["findings"]))
        if "check" in message:
            name, (looked_at, gaps, asked) = message["check"], message["rest"]
            pauses = {int(pid): pause for pid, pause in asked.items()}  # a number of ours
            outcome = Outcome(tuple(self._parts.pop(name, ())), tuple(looked_at), (), pauses)
            told = [Gap(*gap) for gap in gaps]
            if outcome.findings or outcome.looked_at:
                self.checked.append(Checked(name, outcome, message["took_s"], message["cpu_s"]))
            else:
                self._whole.add(name)
                told += [] if any(gap.check == name for gap in told) else [Gap(name, CHECKS[name].of, NOTHING_THERE)]
            if name == "jvms":  # it tells how many JVMs were not asked
                self.gaps = [gap for gap in self.gaps if (gap.check, gap.reason) != ("java-threads", _UNASKED)]
            self.gaps += [gap for gap in told if gap.check == name or gap.check in self.ask.checks]
        if "failed" in message:
            self.gaps.append(Gap(message["failed"], CHECKS[message["failed"]].of, message["why"]))
            self._whole.add(message["failed"])
        if "end" in message:
            self.has_ended, self.is_done, self.modules = True, message["end"], message["modules"]
            self.gaps += [Gap(*gap) for gap in message["gaps"]]
            self.hung = tuple((name, path) for name, path in message["hung"])


def _why_ended(status: int | None) -> str:
    if status is None or status >= 0:
        return "its process ended early"
    by = signal.Signals(-status).name if -status in set(signal.Signals) else f"signal {-status}"
    return f"its process was ended by {by}{', as the OOM killer does' if by == 'SIGKILL' else ''}"


def _finding(values: Sequence[Any]) -> Finding:
    code, severity, entity, *rest, waits_for = values
    found = Finding(code, severity, _entity(entity), *rest)
    return found if waits_for is None else found._replace(waits_for=_entity(waits_for))


def _entity(values: Sequence[Any]) -> Entity:
    kind, id_, start_ticks, inside = values
    return Entity(kind, id_, start_ticks, None if inside is None else _entity(inside))
