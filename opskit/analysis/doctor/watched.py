"""What came and went while doctor looked again and again. Pure.

A finding is known by its code and entity: its numbers may change. It is gone when the checks that gave it ran to their end
without it. One that comes back while it is still shown as gone stands since its first time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.analysis.doctor.flat import listed
from opskit.analysis.doctor.places import key_of as key_of_entity
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opskit.analysis.doctor.result import Result
    from opskit.analysis.finding import Finding

_MOST = 10_000  # that are remembered

Key = tuple[object, ...]  # code and entity


class Past(NamedTuple):
    """A finding over time, in seconds since the epoch. `gone_s` None: it stands. `times`: how often it came; `samples`: had it."""

    finding: Finding
    since_s: float
    last_s: float
    gone_s: float | None = None
    times: int = 1
    samples: int = 1
    was_there: bool = False  # in the first sample: it may stand for longer
    was_listed: bool = False  # as a problem; else it was an effect of one
    checks: frozenset[str] = frozenset()  # that gave it


class Watched(NamedTuple):
    """The state after a sample. `new`: came a short time ago; `gone`: went so, the last one first. `came`, `went`: since the last sample."""

    sample: int
    at_s: float
    since_s: Mapping[Key, float]
    new: frozenset[Key]
    gone: tuple[Past, ...]
    came: tuple[Finding, ...]
    went: tuple[Past, ...]
    history: tuple[Past, ...]


def key_of(finding: Finding) -> Key:
    """By what a finding is recognized."""
    return finding.code, *key_of_entity(finding.entity)


class Tracker:
    """Keeps what was found, sample by sample. `shown_s`: how long a finding is shown as new or gone."""

    def __init__(self, shown_s: float) -> None:
        self._shown_s, self._sample = shown_s, 0
        self._past: dict[Key, Past] = {}

    def update(self, result: Result) -> Watched:
        """Take the next sample."""
        self._sample += 1
        at_s = result.seen.at_s
        on_list = {key_of(finding): finding for finding in listed(result.problems)}
        present = {**{key_of(each): each for each in result.findings if each.severity != "note"}, **on_list}
        came = [finding for key, finding in present.items() if self._note(key, finding, at_s) and key in on_list]
        for key in on_list:
            self._past[key] = self._past[key]._replace(was_listed=True)
        self._trace(result)
        went = self._let_go(present, {each.name for each in result.seen.checked}, at_s)
        self._forget()
        recent = at_s - self._shown_s
        gone = [each for each in self._past.values() if each.gone_s is not None and each.gone_s > recent]
        return Watched(
            self._sample, at_s,
            {key: each.since_s for key, each in self._past.items() if each.gone_s is None},
            frozenset(key for key, each in self._past.items() if not each.was_there and each.since_s > recent),
            tuple(sorted((each for each in gone if each.was_listed), key=lambda each: -(each.gone_s or 0))),
            () if self._sample == 1 else tuple(came), tuple(went),
            tuple(each for each in self._past.values() if each.was_listed),
        )  # fmt: skip

    def _note(self, key: Key, finding: Finding, at_s: float) -> bool:
        """Remember that it is there; whether it was not there before."""
        old = self._past.get(key)
        if old is None or (old.gone_s is not None and at_s - old.gone_s > self._shown_s):
            times = 1 if old is None else old.times + 1
            samples = 1 if old is None else old.samples + 1
            self._past[key] = Past(finding, at_s, at_s, None, times, samples, was_there=self._sample == 1)
            return True
        is_back = old.gone_s is not None
        self._past[key] = old._replace(
            finding=finding, last_s=at_s, gone_s=None, times=old.times + is_back, samples=old.samples + 1
        )
        return is_back

    def _trace(self, result: Result) -> None:
        """Which checks gave them."""
        for each in result.seen.checked:
            for finding in each.outcome.findings:
                past = self._past.get(key_of(finding))
                if past is not None and each.name not in past.checks:
                    self._past[key_of(finding)] = past._replace(checks=past.checks | {each.name})

    def _let_go(self, present: Mapping[Key, Finding], ran: set[str], at_s: float) -> list[Past]:
        gone = []
        for key, past in self._past.items():
            if past.gone_s is None and key not in present and past.checks <= ran:
                gone.append(key)
        for key in gone:
            self._past[key] = self._past[key]._replace(gone_s=at_s)
        return [self._past[key] for key in gone if self._past[key].was_listed]

    def _forget(self) -> None:
        """Keep what stands, and of what is gone no more than has room."""
        gone = [key for key, past in self._past.items() if past.gone_s is not None]
        excess = max(0, len(self._past) - _MOST)
        for key in sorted(gone, key=lambda key: self._past[key].last_s)[:excess]:
            del self._past[key]
