"""What jpmp shows, wherever it came from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opskit.analysis.stacks import WeightedStack
    from opskit.errors import OpskitError
    from opskit.jvm.threaddump import ThreadDump


# What JSON tells of a live run; null for saved dumps.
LIVE_KEYS = (
    "interval_s",
    "duration_s",
    "late_samples",
    "stopped_ms",
    "stopped_percent",
    "stopped_by",
    "throttled_percent",
    "ended",
)


@dataclass(eq=False, repr=False)  # what is not used is not made, at every start
class Gathered:
    """Dumps, and stacks that somebody weighed before. CPU readings (of a live run) are by native id, in ms.

    `times_s`: when each dump was taken, in seconds on any one clock. `head` and `said` make up the footer; `data` goes into
    the JSON. `error`: what ended a run that has gathered something. `before`: what a picture compares it with.
    """

    dumps: list[ThreadDump] = field(default_factory=list)
    times_s: list[float | None] = field(default_factory=list)
    stacks: list[WeightedStack] = field(default_factory=list)
    cpu_before: Mapping[int, float] | None = None
    cpu_after: Mapping[int, float] | None = None
    natives: Mapping[int, str] | None = None
    head: str = ""
    said: list[str] = field(default_factory=list)
    data: dict[str, Any] = field(default_factory=lambda: dict.fromkeys(LIVE_KEYS))
    target: Mapping[str, object] | None = None
    live: bool = False
    error: OpskitError | None = None
    before: Gathered | None = None
