"""The records of a thread dump, the same for every dialect."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

STATES = ("RUNNABLE", "BLOCKED", "WAITING", "TIMED_WAITING", "NEW", "TERMINATED")

Detail = Literal["stacks", "threads", "locks"]


class Stack:
    """A thread's stack. A parser gives one object for equal stacks, so that they are counted by identity.

    `frames`: leaf first, each as the dump has it: `java.lang.Thread.run(java.base@17.0.15/Thread.java:840)`.
    `state`: a java.lang.Thread.State; None where the dump has none. `role`: "carrier" for a platform thread that
    carries a virtual one, "mounted" for that virtual thread, None for the others.
    """

    __slots__ = ("frames", "role", "state")

    def __init__(self, frames: tuple[str, ...], state: str | None = None, role: str | None = None) -> None:
        self.frames, self.state, self.role = frames, state, role


class Lock(NamedTuple):
    """A line about a lock. `depth` counts the frames above its frame; None: an ownable synchronizer.

    `action` is HotSpot's term: `locked`, `waiting to lock`, `waiting on`, `parking to wait for`, … `owner` is the
    holder's name or its `#22`. `address`, `class_name` and `owner` are None where the line does not have them.
    """

    action: str
    address: str | None
    class_name: str | None
    depth: int | None
    owner: str | None = None


class Thread(NamedTuple):
    """One thread of one dump. Values that were not asked for, or are not in the dump, are None.

    `native_id` is the kernel's thread id in the JVM's own pid namespace; of a mounted virtual thread, its carrier's.
    `java_id` is the `#22`. `cpu_ms`: since the thread's start. `container`: the executor or scope of a virtual thread.
    `mount_id`: the Java id of the virtual thread that a carrier carries, or of the carrier that a virtual one is mounted on.
    """

    stack: Stack
    name: str | None = None
    native_id: int | None = None
    java_id: int | None = None
    daemon: bool | None = None
    cpu_ms: float | None = None
    elapsed_s: float | None = None
    locks: tuple[Lock, ...] = ()
    virtual: bool | None = None
    container: str | None = None
    mount_id: int | None = None


class Waits(NamedTuple):
    """One link of a deadlock: the thread, the lock it waits for, the lock's holder (None: unknown); whether with a timeout."""

    thread: str
    lock_class: str | None
    address: str | None
    owner: str | None
    timed: bool = False


class ThreadDump(NamedTuple):
    """One dump. `cut_off`: its end is missing; `threads` has whole stacks only.

    `time` and `version` are the dump's own text. `deadlocks`: those that the JVM itself reports, a tuple of links each.
    `lists_owners`: it has the owner of each java.util.concurrent lock (`jstack -l`).
    """

    dialect: str
    threads: Sequence[Thread]
    time: str | None = None
    version: str | None = None
    deadlocks: tuple[tuple[Waits, ...], ...] = ()
    cut_off: bool = False
    lists_owners: bool = False


class StackTable:
    """One Stack object for equal stacks, and one string for equal frames."""

    __slots__ = ("_frames", "_stacks")

    def __init__(self) -> None:
        self._stacks: dict[tuple[tuple[str, ...], str | None, str | None], Stack] = {}
        self._frames: dict[str, str] = {}

    def stack(self, frames: Sequence[str], state: str | None, role: str | None = None) -> Stack:
        """The stack with these frames, leaf first."""
        found = self._stacks.get((tuple(frames), state, role))
        if found is None:
            own = self._frames.setdefault
            key = (tuple([own(frame, frame) for frame in frames]), state, role)
            found = self._stacks[key] = Stack(*key)
        return found


def state_by_frame(frames: Sequence[str]) -> str | None:
    """The state of a thread that does not run, by its leaf frame; None without frames.

    For dialects that call each of them "waiting". One whose leaf does not wait is blocked at a monitor.
    """
    if not frames:
        return None
    leaf = frames[0].partition("(")[0]
    if leaf.endswith(("java.lang.Thread.sleep", "java.lang.Thread.sleep0", "java.lang.Thread.sleepImpl")):
        return "TIMED_WAITING"
    if leaf.endswith(("java.lang.Object.wait", "java.lang.Object.wait0", "Unsafe.park", "java.lang.Thread.parkImpl")):
        return "WAITING"
    return "BLOCKED"


def timed_if_asleep(state: str | None, frames: Sequence[str]) -> str | None:
    """The state; TIMED_WAITING for a sleeping thread, which some dialects call waiting."""
    return "TIMED_WAITING" if state == "WAITING" and state_by_frame(frames) == "TIMED_WAITING" else state
