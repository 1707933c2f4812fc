"""The samples of a JVM in a capture: as many as it was asked for, each at its own moment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.errors import NotSupported
from opskit.proc.recorded.replies import HISTOGRAM, THREADS
from opskit.quantities import plural

if TYPE_CHECKING:
    from opskit.host import Host

_STEP_S = 1e-6  # any step of a capture's clock goes to the next moment at least
_WHAT = {THREADS: "thread dump", HISTOGRAM: "class histogram"}


def recorded_samples(host: Host, pid: int, name: str, wanted: int | None) -> int:
    """How many replies of this name a capture has, at most `wanted`; at least 1: reading that one says why there is none."""
    found = 0 if host.fs.replies is None else len(host.fs.replies.all_of(pid, name))
    return max(1, found if wanted is None else min(found, wanted))


def go_to_reply(host: Host, pid: int, name: str, *, next_one: bool) -> None:
    """Go on to the moment of a reply; `next_one`: behind the one of now."""
    replies = host.fs.replies
    if replies is None or not replies.all_of(pid, name):
        return
    if next_one:
        host.step(_STEP_S)
    while not replies.is_new(pid, name):
        host.step(_STEP_S)


def taken_s(host: Host, pid: int, name: str) -> float:
    """When the reply of now was taken, in seconds since the epoch."""
    return host.now().timestamp() if host.fs.replies is None else host.fs.replies.taken_s(pid, name)


def refuse_watch(host: Host, pid: int, name: str) -> None:
    """Raise NotSupported for -w on a capture, which has an end."""
    if host.fs.replies is not None:
        found = len(host.fs.replies.all_of(pid, name))
        raise NotSupported(
            f"-w/--watch: the capture has {plural(found, _WHAT[name])} of {pid}; leave -w out to see all of them"
        )
