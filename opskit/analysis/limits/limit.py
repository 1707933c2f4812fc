"""One limit on threads, and all of them together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from opskit.proc.files.limits import UNLIMITED
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from opskit.analysis.limits.thread_stack import Stack

State = Literal["counts", "unlimited", "exempt", "unknown"]
UNREAD = "it could not be read"
_NEARLY_NONE = 0.1  # of the binding limit's value
_FEW_THREADS = 100  # bytes are used by more than threads: a full heap may leave room for thousands


class Limit(NamedTuple):
    """One limit. `value` and `in_use` are in `unit` ("bytes", "threads", "maps", "pids", ""); value may be UNLIMITED.

    `state`: "counts" (threads_left is a number), "unlimited", "exempt" or "unknown" (`note` says why). `cgroup` is set
    for a cgroup's limit. `left_share` is the part of the value that is left, 0 to 1. With `threads_left_max`,
    `threads_left` is the lowest and that the highest estimate. `at_most`: uses that are not visible from here count too.
    `reason` is a short form of why it is unknown, where a file could not be read.
    """

    name: str
    unit: str
    value: float | None
    in_use: int | None
    source: str
    cgroup: str | None = None
    threads_left: int | None = None
    state: State = "unknown"
    note: str | None = UNREAD
    left_share: float | None = None
    threads_left_max: int | None = None
    set_by: str | None = None
    fix: str | None = None
    at_most: bool = False
    reason: str | None = None

    @property
    def full_name(self) -> str:
        """The name with the cgroup that it is of."""
        return f"{self.name} of {self.cgroup}" if self.cgroup else self.name

    @property
    def room(self) -> int | None:
        """What is left of the value, in its unit; None where the value or the use is unknown, or without a limit."""
        known = self.value not in (None, UNLIMITED) and self.in_use is not None
        return max(0, int(self.value or 0) - (self.in_use or 0)) if known else None

    def counts(self, threads_left: int, room: float, note: str | None = None, *, at_most: bool = False) -> Limit:
        """The limit with this headroom: threads, and what is left of its value."""
        share = max(0.0, room) / self.value if self.value else 0.0
        return self._replace(state="counts", threads_left=threads_left, left_share=share, note=note, at_most=at_most)

    def free(self, note: str | None = None, state: State = "unlimited") -> Limit:
        """The limit as one that stops no thread."""
        return self._replace(state=state, note=note)

    def unknown(self, note: str, reason: str | None = None) -> Limit:
        """The limit with an unknown headroom."""
        return self._replace(state="unknown", note=note, reason=reason, threads_left=None, left_share=None)


class Headroom(NamedTuple):
    """All limits, the one that binds first. `binding` is None where all are unknown, or none counts."""

    limits: tuple[Limit, ...]
    stack: Stack

    @property
    def binding(self) -> Limit | None:
        """The limit that stops the next thread first."""
        return self.limits[0] if self.limits and self.limits[0].state == "counts" else None

    @property
    def threads_left(self) -> int | None:
        """How many more threads can start."""
        return self.binding and self.binding.threads_left

    @property
    def unknown(self) -> tuple[Limit, ...]:
        """The limits with an unknown headroom."""
        return tuple(limit for limit in self.limits if limit.state == "unknown")

    @property
    def is_at_most(self) -> bool:
        """Whether fewer threads than `threads_left` may start: a part of the use, or another limit, is unknown."""
        return bool(self.binding and self.binding.threads_left and (self.binding.at_most or self.unknown))

    @property
    def has_run_out(self) -> bool:
        """Whether nothing is left, or less than a tenth of the binding limit's value (of bytes: and of 100 threads)."""
        at = self.binding
        if at is None or not at.threads_left:
            return at is not None
        return (at.left_share or 0.0) < _NEARLY_NONE and (at.unit != "bytes" or at.threads_left < _FEW_THREADS)
