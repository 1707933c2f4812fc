"""The machine that opskit reads: its proc tree, user names, clock. Tests pass another one."""

from __future__ import annotations

import os
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, TypeVar

from opskit.errors import NotPermitted, NotSupported
from opskit.proc.files.sysctl import read_sysctl
from opskit.proc.fs import ProcFS, optional
from opskit.proc.kernel import names
from opskit.proc.process import Process, read_process
from opskit.quantities import integer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

N = TypeVar("N")
T = TypeVar("T")
_FIRST = -20  # of nice values


def _utc_now() -> datetime:
    from datetime import datetime, timezone

    return datetime.now(timezone.utc)


class Host:
    """A machine: its files, users and clocks. Times are in seconds; `own_cpu_s`: of our thread; `clock_ticks`: ticks per second in the kernel's files."""

    is_recorded = False  # a capture: its clock stands still but in `sleep`, and no process is here
    capture = ""  # its file
    samples, sample_gap_s = 0, 0.0  # of all counters, and the time between them

    def __init__(self, fs: ProcFS) -> None:
        self.fs = fs
        self.now: Callable[[], datetime] = _utc_now
        self.monotonic: Callable[[], float] = time.monotonic
        self.sleep: Callable[[float], None] = time.sleep
        self.own_cpu_s: Callable[[], float] = time.thread_time
        self.page_bytes = os.sysconf("SC_PAGE_SIZE")
        self.clock_ticks = os.sysconf("SC_CLK_TCK")
        self.machine = os.uname().machine
        self._users: dict[int, str] = {}

    @classmethod
    def at(cls, root: str | None, proc: str | None) -> Host:
        """The host of --root and --proc (or HOST_PROC); this machine without them. Raises BadInput."""
        proc = proc or (None if root else os.environ.get("HOST_PROC"))
        root = (root or "").rstrip("/")
        if not root and (proc or "/proc").rstrip("/") == "/proc":
            return cls(ProcFS())
        from opskit.proc.treefs import TreeFS

        fs = TreeFS(proc or f"{root}/proc", root)
        fs.check()
        return cls(fs)

    @property
    def is_own(self) -> bool:
        """Whether the tree is this machine's, in our PID namespace."""
        return self.fs.is_own()

    @property
    def is_root(self) -> bool:
        """Whether opskit runs as uid 0."""
        return os.geteuid() == 0

    @property
    def our_ids(self) -> tuple[int, int]:
        """The effective uid and gid of opskit."""
        return os.geteuid(), os.getegid()

    def step(self, seconds: float) -> None:
        """Sleep before one of many looks in a window. A capture's clock always goes on: no sample is looked at twice."""
        self.sleep(seconds)

    def pause(self, seconds: float) -> None:
        """Wait between two looks that must show the same. Unlike `sleep` it never ends a capture."""
        self.sleep(seconds)

    @property
    def moment(self) -> object:
        """Where the clock of a capture stands, for `looking_back`."""
        return None

    @contextmanager
    def looking_back(self, moment: object) -> Iterator[None]:  # noqa: ARG002
        """In a capture all is as it was at that moment of this thread's window: who was busy is known at its end."""
        yield

    @property
    def is_here(self) -> bool:
        """Whether something can be done to its processes: as is_own, and not a capture."""
        return self.is_own and not self.is_recorded

    def end_at(self, until_s: float) -> float:
        """When a window ends that is to end then, of `monotonic`. In a capture: at the later sample that is nearest to it.

        Raises NoMoreSamples.
        """
        return until_s

    def end_of(self, window_s: float) -> float:
        """When a window of so many seconds ends that begins now, as `end_at` has it."""
        return self.end_at(self.monotonic() + window_s)

    def can_look_after(self, pause_s: float) -> bool:  # noqa: ARG002
        """Whether a second look after such a short pause is possible. In a capture: where its samples are about so close."""
        return True

    def prove_own(self, pid: int | None = None) -> None:
        """Raise NotPermitted unless acting on a PID of this tree acts on that process."""
        if not self.is_own:
            there = "PIDs there are not PIDs here" if pid is None else f"{pid} there is not {pid} here"
            what = "another PID namespace" if self.fs.is_live else "a copy"
            raise NotPermitted(f"{self.fs.proc} is {what}; {there}. Nothing was sent.")

    @property
    def can_ask(self) -> bool:
        """Whether a JVM of this tree can be asked: it is our own, or a capture has its replies."""
        return self.is_own

    def prove_asking(self, pid: int | None = None) -> None:
        """Raise NotPermitted unless a JVM of this tree can be asked."""
        if not self.can_ask:
            self.prove_own(pid)

    def prove_here(self, asked_for: str) -> None:
        """Raise NotSupported for a capture. `asked_for` names what only a running machine can do."""

    def prove_moving(self, asked_for: str) -> None:
        """Raise NotSupported for a copy. `asked_for` names the option that needs rates."""
        if not self.fs.is_live:
            raise NotSupported(f"{asked_for}: {self.fs.proc} is a copy, which has no rates")

    @property
    def name(self) -> str:
        """The host name that the machine's kernel reports."""
        name = self.fs.maybe(str.strip, "sys", "kernel", "hostname")
        if name is None and self.is_own:
            name = optional(self.fs.calls.ask, names.node_name)
        return "unknown" if name is None else name

    @property
    def _uses_nss(self) -> bool:
        return self.fs.has_our_root and self.fs.uses_nss

    def user_name(self, uid: int) -> str:
        """The user's name, or the number as text."""
        if uid not in self._users:
            self._users[uid] = self._look_up(uid)
        return self._users[uid]

    def _look_up(self, uid: int) -> str:
        name = self._by_nss(names.user_by_uid, uid) if self._uses_nss else None
        return self._name_in("passwd", uid) if name is None else name

    def group_name(self, gid: int) -> str:
        """The group's name, or the number as text."""
        name = self._by_nss(names.group_by_gid, gid) if self._uses_nss else None
        return self._name_in("group", gid) if name is None else name

    def _by_nss(self, question: Callable[[N], T | None], what: N) -> T | None:
        return optional(self.fs.calls.ask, question, what)

    def uid_of(self, user: str) -> int | None:
        """The uid of a user's name, or of a number as text; None: no such user."""
        if (number := integer(user)) is not None:
            return number
        uid = next((uid for name, uid in self._ids("passwd") if name == user), None)
        return self._by_nss(names.uid_by_name, user) if uid is None and self._uses_nss else uid

    def _name_in(self, file: str, number: int) -> str:
        return next((name for name, each in self._ids(file) if each == number), str(number))

    def _ids(self, file: str) -> list[tuple[str, int]]:
        fields = (line.split(":") for line in self.fs.maybe_root(str.splitlines, "etc", file, default=[]))
        numbered = ((words[0], integer(words[2])) for words in fields if len(words) > 2)
        return [(name, number) for name, number in numbered if number is not None]

    def process(self, pid: int) -> Process:
        """The identity of a process, with its owner's name."""
        return read_process(self.fs, pid, self.user_name)

    def sysctl(self, *parts: str) -> int | None:
        """A number of /proc/sys; None where it cannot be read."""
        return read_sysctl(self.fs, *parts)


@contextmanager
def scheduled_first() -> Iterator[None]:
    """Run before threads of default priority, where our rights allow it: what is sampled may keep every CPU busy."""
    nice = os.getpriority(os.PRIO_PROCESS, 0)
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, _FIRST)
    try:
        yield
    finally:
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, 0, nice)


def be_killed_first() -> None:
    """Have the OOM killer choose opskit before the application. A process may raise its own score without rights."""
    with suppress(OSError):
        fd = os.open("/proc/self/oom_score_adj", os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(fd, b"1000")
        finally:
            os.close(fd)
