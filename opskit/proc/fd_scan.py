"""One pass over the fd tables of processes: PROC/PID/fd, and PROC/PID/task/TID/fd of threads with a table of their own.

The main thread of a process may have exited and left its table behind; a thread after unshare(CLONE_FILES) has its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from opskit.errors import BadInput
from opskit.proc.fs import DENIED, GONE, optional

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from opskit.proc.fs import ProcFS

    # From (PID, the TID whose table it is, the directory that has `fd` and `fdinfo`) to what is wanted of the table, and
    # whether it has any fd. Raises OSError, BadInput.
    TableReader = Callable[[int, "int | None", "tuple[object, ...]"], "tuple[T | None, bool]"]

T = TypeVar("T")


class FdScan(Generic[T]):
    """What was found in the tables, and the PIDs that were read, denied, and that vanished meanwhile.

    `garbled`: the errors of links in a copy, whose processes count as denied. `any_fd`: some process has an fd; a copy may
    have none.
    """

    def __init__(self) -> None:  # a dataclass costs every run a millisecond: nothing else imports them
        self.tables: list[T] = []
        self.any_fd = False
        self.garbled: list[BadInput] = []
        self.scanned: list[int] = []
        self.denied: list[int] = []
        self.vanished: list[int] = []


class FdScanner(Generic[T]):
    """Reads tables with `read`. `threads`: also those of threads; without it only where the main thread has none.

    `same_fd_table`: whether two threads share one (kcmp(2)); None: what their tables hold is compared.
    """

    def __init__(
        self, fs: ProcFS, read: TableReader[T], *, threads: bool = False,
        same_fd_table: Callable[[int, int], bool] | None = None,
    ) -> None:  # fmt: skip
        self.fs, self.read, self.threads, self.same_fd_table = fs, read, threads, same_fd_table

    def scan(self, pids: Iterable[int], into: FdScan[T]) -> None:
        """Add the tables of these processes."""
        for pid in pids:
            try:
                found, any_fd = self._process(pid)
            except (*GONE, NotADirectoryError):
                # Nothing vanishes from a copy: there it was not copied.
                (into.vanished if self.fs.is_live else into.denied).append(pid)
            except OSError:  # no rights; a copy on a disk that gives errors
                into.denied.append(pid)
            except BadInput as error:
                into.garbled.append(error)
                into.denied.append(pid)
            else:
                into.scanned.append(pid)
                into.tables += found
                into.any_fd = into.any_fd or any_fd

    def _process(self, pid: int) -> tuple[list[T], bool]:
        first, any_fd = self.read(pid, None, (pid,))
        tables = [] if first is None else [first]
        if any_fd and not self.threads:
            return tables, True
        # No fd at all: a kernel thread, a zombie, or a process whose main thread has exited and left its table behind.
        for tid in self._tables_of_threads(pid, leader_has_table=any_fd):
            try:
                own, has_any = self.read(pid, tid, (pid, "task", tid))
            except OSError:  # the thread ended
                continue
            any_fd = any_fd or has_any
            if own is not None:
                tables.append(own)
        return tables, any_fd

    def _tables_of_threads(self, pid: int, *, leader_has_table: bool) -> list[int]:
        """One thread for each fd table that is not the leader's."""
        known = [pid] if leader_has_table else []
        for tid in optional(self.fs.tids, pid, default=[]):  # a copy may have none
            if tid != pid and not any(self._shared(pid, other, tid) for other in known):
                known.append(tid)
        return known[leader_has_table:]

    def _shared(self, pid: int, one: int, other: int) -> bool:
        if self.same_fd_table is not None:
            try:
                return self.same_fd_table(one, other)
            except OSError:  # no kcmp in this kernel, or no right to use it: compare what the tables hold
                pass
        try:
            first, second = (sorted(self.fs.fd_links(pid, "task", tid)) for tid in (one, other))
        except (*GONE, DENIED):
            return True
        return first == second
