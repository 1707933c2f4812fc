"""What jpmp shows, wherever it came from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opskit.analysis.stacks import WeightedStack
    from opskit.errors import OpskitError
    from opskit.jvm.dumps.thread_dump import ThreadDump


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


class Gathered:
    """Dumps, and stacks that somebody weighed before. CPU readings (of a live run) are by native id, in ms.

    `times_s`: when each dump was taken, in seconds on any one clock. `head` and `said` make up the footer; `data` goes into
    the JSON. `error`: what ended a run that has gathered something. `before`: what a picture compares it with.
    """

    def __init__(self) -> None:
        self.dumps: list[ThreadDump] = []
        self.times_s: list[float | None] = []
        self.stacks: list[WeightedStack] = []
        self.cpu_before: Mapping[int, float] | None = None
        self.cpu_after: Mapping[int, float] | None = None
        self.natives: Mapping[int, str] | None = None
        self.head = ""
        self.said: list[str] = []
        self.data: dict[str, Any] = dict.fromkeys(LIVE_KEYS)
        self.target: Mapping[str, object] | None = None
        self.live = False
        self.error: OpskitError | None = None
        self.before: Gathered | None = None
