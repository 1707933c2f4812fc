"""Who runs how many threads: what RLIMIT_NPROC and kernel.pid_max count (kernel/fork.c, kernel/pid.c)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from opskit.errors import BadInput
from opskit.proc.files.status import parse_status
from opskit.proc.fs import DENIED, GONE, ProcFS
from opskit.proc.namespaces import in_first_pid_namespace
from opskit.proc.visibility import hides_processes, is_mounted_with_hidepid, parse_total_tasks

if TYPE_CHECKING:
    from collections.abc import Iterable

RESERVED_PIDS = 300  # include/linux/pid.h: once the pids have wrapped, those below are not given out again


@dataclass(frozen=True)
class Member:
    """One process: its real uid, its threads, and how many of these have an id of RESERVED_PIDS or more."""

    pid: int
    uid: int
    threads: int
    high_ids: int


@dataclass(frozen=True)
class Population:
    """All processes that this proc tree shows. `hidden`: there are more, left out by hidepid or not copied."""

    members: tuple[Member, ...]
    hidden: bool

    @property
    def threads(self) -> int:
        """All threads that are to be seen."""
        return sum(member.threads for member in self.members)

    @property
    def high_ids(self) -> int:
        """Threads whose id comes from the part of the pids that is given out again and again."""
        return sum(member.high_ids for member in self.members)

    def of_user(self, fs: ProcFS, uid: int, namespace: bytes | None) -> int:
        """Threads of a real uid, of this user namespace alone; None: of all.

        A process whose namespace must not be read counts as being in it.
        """
        return sum(
            member.threads
            for member in self.members
            if member.uid == uid and (namespace is None or user_namespace(fs, member.pid) in (None, namespace))
        )


def population(fs: ProcFS) -> Population:
    """Look at every process once; those that vanish meanwhile are left out."""
    hidden = hides_processes(fs) if fs.is_own() else is_mounted_with_hidepid(fs)
    members = tuple(_members(fs, fs.pids()))
    return Population(members, hidden or _is_copied_in_part(fs, members))


def _is_copied_in_part(fs: ProcFS, members: tuple[Member, ...]) -> bool:
    """Whether a copy holds fewer threads than the machine had. Of a pid namespace's own tree loadavg does not tell."""
    if fs.is_live or not in_first_pid_namespace(fs, 1):
        return False
    try:
        return fs.load(parse_total_tasks, "loadavg") > sum(member.threads for member in members)
    except (*GONE, DENIED, BadInput):
        return True


def _members(fs: ProcFS, pids: Iterable[int]) -> Iterable[Member]:
    for pid in pids:
        try:
            status = fs.load(parse_status, pid, "status")
            threads = status.threads or 1
            yield Member(pid, status.real_uid, threads, _high_ids(fs, pid, threads))
        except (*GONE, DENIED, BadInput):
            continue


def _high_ids(fs: ProcFS, pid: int, threads: int) -> int:
    if pid >= RESERVED_PIDS:
        return threads
    if threads == 1:
        return 0
    try:
        return sum(tid >= RESERVED_PIDS for tid in fs.tids(pid))
    except (*GONE, DENIED):
        return threads


def user_namespace(fs: ProcFS, pid: int | str) -> bytes | None:
    """`user:[4026531837]`; None where it must not be read."""
    try:
        return fs.link(pid, "ns", "user")
    except OSError:
        return None
