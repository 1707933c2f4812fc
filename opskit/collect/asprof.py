"""What an async-profiler that the user has recorded inside a JVM: the request and the facts of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from opskit.records import NamedTuple

if TYPE_CHECKING:
    from opskit.collect.cpu_profile import CpuProfile

# What is sampled. ctimer: CPU time, by a timer of each thread; cpu: by perf events where the JVM may use them, with kernel
# frames; wall: all threads, running or not; alloc: bytes allocated; lock: nanoseconds waited for monitors and locks.
Event = Literal["ctimer", "cpu", "wall", "alloc", "lock"]
EVENTS: tuple[Event, ...] = ("ctimer", "cpu", "wall", "alloc", "lock")
Unit = Literal["samples", "bytes", "ns"]
UNITS: dict[Event, Unit] = {"ctimer": "samples", "cpu": "samples", "wall": "samples", "alloc": "bytes", "lock": "ns"}


class AsprofRequest(NamedTuple):
    """A run. `library`: of find_library(); `hz`: of ctimer, cpu and wall."""

    pid: int
    library: str
    event: Event = "ctimer"
    hz: float = 99.0
    duration_s: float = 10.0


class AsprofProfile(NamedTuple):
    """The facts of a run. `profile.stacks` are weighed in `unit`, the root frame is not the thread.

    `event`: what ran, which is `cpu` where the library has no ctimer. `version` None: the library does not name it. `stays`: sentences about
    what remains in the JVM until it ends. `notes`: what the profiler itself warned of.
    """

    profile: CpuProfile
    event: Event
    unit: Unit
    library: str
    version: str | None
    stays: tuple[str, ...]
    notes: tuple[str, ...] = ()
