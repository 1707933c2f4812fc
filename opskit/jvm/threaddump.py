"""What a thread dump says, whichever JVM wrote it: the records that every dialect's parser gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

STATES = ("RUNNABLE", "BLOCKED", "WAITING", "TIMED_WAITING", "NEW", "TERMINATED")


@dataclass(frozen=True, slots=True, eq=False)
class Stack:
    """Where a thread is. A parser gives one object for equal stacks, so that they are counted by identity.

    `frames`: leaf first, each as the dump has it: `java.lang.Thread.run(java.base@17.0.15/Thread.java:840)`.
    `state`: a java.lang.Thread.State, None where the dump does not say. `role`: "carrier" for a platform thread that
    carries a virtual one, "mounted" for the virtual thread that it carries, None for every other.
    """

    frames: tuple[str, ...]
    state: str | None = None
    role: str | None = None


class Lock(NamedTuple):
    """A line about a lock. `depth` counts the frames above the one it belongs to; None: an ownable synchronizer.

    `action` is the dump's own word: `locked`, `waiting to lock`, `waiting on`, `parking to wait for`, … `address` and
    `class_name` are None where the dump leaves them out.
    """

    action: str
    address: str | None
    class_name: str | None
    depth: int | None


class Thread(NamedTuple):
    """One thread of one dump. What was not asked for, or is not said, is None.

    `native_id` is the thread's id in the kernel, as the JVM's own pid namespace counts; of a mounted virtual thread its
    carrier's. `java_id` is the `#22` (a mounted virtual thread's own). `cpu_ms`: since the thread's start.
    """

    stack: Stack
    name: str | None = None
    native_id: int | None = None
    java_id: int | None = None
    daemon: bool | None = None
    cpu_ms: float | None = None
    elapsed_s: float | None = None
    locks: tuple[Lock, ...] = ()


class Waits(NamedTuple):
    """One link of a deadlock: who waits for what, held by whom (None: the dump does not know)."""

    thread: str
    lock_class: str | None
    address: str | None
    owner: str | None


@dataclass(frozen=True, slots=True)
class ThreadDump:
    """One dump. `cut_off`: it ends before its end; a stack that was cut in two is not among `threads`.

    `time` and `version` are the dump's own words. `deadlocks`: those the JVM itself reports, a tuple of links each.
    """

    dialect: str
    threads: Sequence[Thread]
    time: str | None = None
    version: str | None = None
    deadlocks: tuple[tuple[Waits, ...], ...] = ()
    cut_off: bool = False
