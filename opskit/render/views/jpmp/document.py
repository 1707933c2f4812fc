"""The JSON object of `opskit jpmp`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opskit.records import NamedTuple
from opskit.render.fields import COUNT, NUMBER, TEXT, Field, Kind, list_of, object_schema, records, to_object
from opskit.render.views.jpmp import sentences
from opskit.render.views.jpmp.locks import DEADLOCK, LOCK
from opskit.render.views.jpmp.stacks import STACK, WAITS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from opskit.analysis.jpmp.judge import Locks, Profile, Weighing
    from opskit.collect.jpmp.facts import Facts, Sampled
    from opskit.jvm.profiles import WeightedStack


class Shown(NamedTuple):
    """What a JSON document is made of. `rows`: the stacks that -n leaves; None with --locks, as `locks` without it."""

    facts: Facts
    how: Weighing | None = None
    profile: Profile | None = None
    rows: Sequence[WeightedStack] | None = None
    locks: Locks | None = None
    top: int | None = None


def _of_live(name: str, kind: Kind, value: Callable[[Sampled], object], text: str = "") -> Field[Shown]:
    """A value of a live run: null for files."""
    return Field(
        name, kind, value=lambda shown: None if shown.facts.live is None else value(shown.facts.live), help=text
    )


def _rounded(value: float | None, digits: int = 3) -> float | None:
    return value and round(value, digits)


_DEADLOCKS = Kind(
    {"type": "array", "items": {"anyOf": [{"type": "array", "items": object_schema(WAITS)}, object_schema(DEADLOCK)]}},
    dump=lambda found: [to_object(DEADLOCK, one) if hasattr(one, "links") else [to_object(WAITS, link) for link in one] for one in found],
)  # fmt: skip
_SAMPLE: Sequence[Field[Any]] = (
    Field("at_s", NUMBER, value=lambda sample: round(sample[0], 3), help="seconds since the run began"),
    Field("stopped_ms", NUMBER, value=lambda sample: round(sample[1], 3)),
)

DOCUMENT: Sequence[Field[Shown]] = (
    Field("stacks", records(STACK), value=lambda shown: shown.rows),
    Field("weight", value=lambda shown: shown.how and ("cpu_ms" if shown.how.on_cpu else "samples")),
    Field("sample_count", COUNT, value=lambda shown: len(shown.facts.dumps) or None, help="the number of dumps"),
    Field("threads", COUNT, value=lambda shown: shown.profile and sentences.threads(shown.facts)),
    Field("cpu_ms", NUMBER, value=lambda shown: shown.profile and _rounded(shown.profile.cpu_ms)),
    Field("locks", records(LOCK), value=lambda shown: shown.locks and shown.locks.contention.locks[: shown.top or None]),
    Field("deadlocks", _DEADLOCKS, value=lambda shown: shown.profile.deadlocks if shown.profile else shown.locks and shown.locks.contention.deadlocks),
    Field("dialects", list_of(TEXT), value=lambda shown: sentences.dialects(shown.facts)),
    _of_live("samples", records(_SAMPLE), lambda live: list(zip(live.times_s, live.stops_ms)), "of a live run"),
    _of_live("interval_s", NUMBER, lambda live: _rounded(live.mean_interval_s, 4)),
    _of_live("duration_s", NUMBER, lambda live: _rounded(live.elapsed_s)),
    _of_live("late_samples", COUNT, lambda live: live.late),
    _of_live("stopped_ms", NUMBER, lambda live: _rounded(live.stopped_ms)),
    _of_live("stopped_percent", NUMBER, lambda live: _rounded(live.stopped_percent)),
    _of_live("stopped_by", TEXT, lambda live: "wall time" if live.stops_are_bounds else "hsperfdata"),
    _of_live("throttled_percent", NUMBER, lambda live: _rounded(live.throttled_percent)),
    _of_live("ended", TEXT, lambda live: live.ended, "interrupted, exited, long stop or failed; null: as planned"),
)  # fmt: skip
