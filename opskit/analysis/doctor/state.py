"""What a run of doctor leaves for the next one, and what has changed since. Pure.

A state outlives the processes that it is about. So a finding is known here by its code and by names: of the process, its cgroup, a file.
A service that was restarted and has the same problem is the same; a second process of that name with it makes it worse.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from opskit import catalog
from opskit.analysis.doctor.flat import label, listed
from opskit.analysis.doctor.places import chain
from opskit.analysis.doctor.watched import key_of
from opskit.errors import BadInput
from opskit.quantities import twelve_digits
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from opskit.analysis.doctor.result import Result
    from opskit.analysis.doctor.seen import Place
    from opskit.analysis.doctor.watched import Key
    from opskit.analysis.finding import Entity, Finding

FORMAT = 1
_MARK = "opskit_doctor_state"
_END_OF_TIME_S = 253_402_300_800  # the year 10000
_WORSE = 0.1  # so much more of a share is worse
_SEVERITIES = ("note", "warning", "error")
_IDS = re.compile(r"[0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12}|[0-9a-f]{12,64}")  # of containers and pods
_NUMBERED = ("thread", "pipe", "socket", "lock", "pool")  # within a process: their ids do not outlive it


class Kept(NamedTuple):
    """Findings of one code about what has one name. `total`: how many; `share`: the largest. `checks`: that gave them."""

    code: str
    key: str
    severity: str
    subject: str
    summary: str
    since_s: float
    total: int = 1
    share: float | None = None
    checks: tuple[str, ...] = ()
    is_listed: bool = True  # as a problem; else it was an effect of one

    @property
    def class_(self) -> str:
        """Its class; empty where this opskit has no such code."""
        return catalog.FINDINGS.get(self.code, ("", ()))[0]


class State(NamedTuple):
    """The content of a state file. `words`: the targets that were asked about."""

    host: str
    words: tuple[str, ...]
    at_s: float
    kept: tuple[Kept, ...]


class Changes(NamedTuple):
    """Since the last run. `since_s` None: there was none, and all is new. `stand`: problems that have not changed."""

    since_s: float | None
    new: tuple[Finding, ...]
    worse: tuple[Finding, ...]
    gone: tuple[Kept, ...]
    stand: int
    state: State


def compare(result: Result, before: State | None, host: str, words: Sequence[str]) -> Changes:
    """What has changed, and the state for the next run. What was not checked this time is kept as it was."""
    seen = result.seen
    old = {(each.code, each.key): each for each in before.kept} if before is not None else {}
    now = _kept(result, old)
    ran = {each.name for each in seen.checked}
    gone = {name for name, each in old.items() if name not in now and ran.issuperset(each.checks)}
    new, worse = [], []
    known: set[tuple[str, str]] = set()
    on_list = [*listed(result.problems)]
    for finding in on_list:
        name = finding.code, lasting_key(finding.entity, seen.places)
        then = old.get(name)
        if then is None or not then.is_listed:
            new.append(finding)
        elif name not in known and _is_worse(now[name], then):
            worse.append(finding)
        elif name not in known:  # as it was last reported, so that slow growth is noticed, too
            now[name] = now[name]._replace(share=then.share, severity=then.severity, total=then.total)
        known.add(name)
    missing = {name: each for name, each in old.items() if name not in now and name not in gone}
    state = State(host, tuple(words), seen.at_s, (*now.values(), *missing.values()))
    return Changes(
        None if before is None else before.at_s, tuple(new), tuple(worse),
        tuple(old[name] for name in old if name in gone and old[name].is_listed),
        len(on_list) - len(new) - len(worse), state,
    )  # fmt: skip


def _kept(result: Result, old: Mapping[tuple[str, str], Kept]) -> dict[tuple[str, str], Kept]:
    seen = result.seen
    on_list = {key_of(each) for each in listed(result.problems)}
    by_check: dict[Key, set[str]] = {}
    for check in seen.checked:
        for each in check.outcome.findings:
            by_check.setdefault(key_of(each), set()).add(check.name)
    kept: dict[tuple[str, str], Kept] = {}
    for finding in result.findings:
        if finding.severity == "note":
            continue
        key = key_of(finding)
        name = finding.code, lasting_key(finding.entity, seen.places)
        since_s = old[name].since_s if name in old else seen.at_s
        was_listed = name in old and old[name].is_listed
        one = Kept(
            *name, finding.severity, label(finding.entity, seen.places), finding.summary, since_s, 1, finding.share,
            tuple(sorted(by_check.get(key, ()))), was_listed or key in on_list,
        )  # fmt: skip
        kept[name] = _together(kept[name], one) if name in kept else one
    return kept


def _together(first: Kept, other: Kept) -> Kept:
    shares = [each.share for each in (first, other) if each.share is not None]
    return first._replace(
        severity=max(first.severity, other.severity, key=_SEVERITIES.index), total=first.total + other.total,
        share=max(shares, default=None), checks=tuple(sorted({*first.checks, *other.checks})),
        is_listed=first.is_listed or other.is_listed,
    )  # fmt: skip


def _is_worse(now: Kept, then: Kept) -> bool:
    if now.total > then.total or _SEVERITIES.index(now.severity) > _SEVERITIES.index(then.severity):
        return True
    return now.share is not None and then.share is not None and now.share >= then.share + _WORSE


def lasting_key(entity: Entity, places: Mapping[int, Place]) -> str:
    """A name that a restart of the process, its container or the machine does not change: `thread in process java`."""
    parts = []
    for each in chain(entity):
        inside = [around.kind for around in chain(each)][1:]
        if each.kind == "process":
            place = places.get(each.id) if isinstance(each.id, int) else None
            parts.append(f"process {place.name}" if place is not None else "process")
        elif each.id is None or (each.kind in _NUMBERED and "process" in inside):
            parts.append(each.kind)
        else:
            parts.append(f"{each.kind} {_IDS.sub('*', str(each.id))}")
        if each.kind == "process":
            break  # its cgroup may change from run to run
    return " in ".join(parts)


def dump_state(state: State) -> str:
    """The text of a state file."""
    kept = [dict(zip(Kept._fields, each)) for each in state.kept]
    content = {_MARK: FORMAT, "host": state.host, "words": state.words, "at_s": state.at_s, "findings": kept}
    return json.dumps(twelve_digits(content), indent=1) + "\n"


def parse_state(text: str, source: str) -> State:
    """The state in a file. Raises BadInput for a damaged or foreign one, and for one of a newer opskit."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        raise _bad(source, "it is not a state file of opskit doctor, or it is damaged") from None
    if not isinstance(content, dict) or not _is(content.get(_MARK), int):
        raise _bad(source, "it is not a state file of opskit doctor")
    number = content[_MARK]
    if number > FORMAT:
        raise _bad(source, f"a newer opskit wrote it (format {number:.0f}; this one knows {FORMAT})")
    host, words, at_s, found = (content.get(name) for name in ("host", "words", "at_s", "findings"))
    if not (_is(host, str) and _all_are(words, str) and _is_time(at_s) and isinstance(found, list)):
        raise _bad(source, "it is damaged")
    kept = [each for each in map(_kept_of, found) if each is not None]
    if len(kept) < len(found):
        raise _bad(source, "it is damaged")
    return State(str(host), tuple(words or ()), at_s or 0, tuple(kept))


def _bad(source: str, why: str) -> BadInput:
    return BadInput(source, f"{why}; it was left as it is: name another file, or remove it")


_TYPES: Mapping[str, type] = {
    "code": str, "key": str, "severity": str, "subject": str, "summary": str, "total": int, "is_listed": bool,
}  # fmt: skip


def _kept_of(value: Any) -> Kept | None:
    if not isinstance(value, dict) or value.keys() != set(Kept._fields):
        return None
    share, checks = value["share"], value["checks"]
    is_whole = (
        all(_is(value[name], type_) for name, type_ in _TYPES.items())
        and _is_time(value["since_s"])
        and value["severity"] in _SEVERITIES
        and (share is None or _is(share, float))
        and _all_are(checks, str)
    )
    return Kept(**{**value, "checks": tuple(checks)}) if is_whole else None


def _is(value: object, type_: type) -> bool:
    """Whether a value of JSON has a type. A number may be whole; it is no bool, and neither infinite nor huge."""
    if type_ is float or type_ is int:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return False
        return (type_ is float or isinstance(value, int)) and abs(value) < 1e12
    return isinstance(value, type_)


def _all_are(values: object, type_: type) -> bool:
    return isinstance(values, list) and all(_is(each, type_) for each in values)


def _is_time(value: Any) -> bool:
    """Whether it is a time that a calendar has."""
    return _is(value, float) and 0 <= value < _END_OF_TIME_S


def check_scope(state: State, host: str, words: Iterable[str], source: str) -> None:
    """Raise BadInput where the state is of another host or of other targets: everything would be new and gone."""
    if state.host != host:
        raise _bad(source, f"it is the state of {state.host!r}, and this is {host!r}")
    if state.words != tuple(words):
        of, asked = (" ".join(each) or "the whole machine" for each in (state.words, words))
        raise _bad(source, f"it is the state of {of!r}, and {asked!r} was asked for")
