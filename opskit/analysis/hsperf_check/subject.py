"""What the rules of hsperf-check look at: a JVM, or a file around it or of one that has ended; and the words for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from opskit.analysis.finding import Entity

if TYPE_CHECKING:
    from opskit.collect.hsperf_check import Facts
    from opskit.jvm.attach.files import Counters, Entry, Socket, Surroundings, Tmp
    from opskit.jvm.attach.leftovers import Leftover
    from opskit.proc.fs import FileId

T = TypeVar("T")
NOT_SECURE = "`well-known file is not secure`"


class Subject:
    """A JVM (`around`), a file (`entry`) or both. `case`: the facts. `doubt`: why --fix leaves the file alone.

    `right_mode`: what the file's mode should be. `in_cwd`: of a trigger file in the JVM's working directory. `left`: what
    a JVM left that has ended. `path`: where a file should be that is not there.
    """

    def __init__(
        self,
        case: Facts,
        pid: int,
        around: Surroundings | None = None,
        entry: Entry | None = None,
        *,
        path: str = "",
        doubt: str | None = None,
        right_mode: int = 0o600,
        in_cwd: bool = False,
        left: Leftover | None = None,
    ) -> None:
        self.case, self.pid, self.around, self.doubt, self.right_mode = case, pid, around, doubt, right_mode
        self.in_cwd, self.left, self._entry = in_cwd, left, entry
        self.path = entry.path if entry else path
        self.by_pid = left is None or left.by_pid

    # Parts that a rule of this subject knows to be there

    @property
    def jvm(self) -> Surroundings:
        """The JVM."""
        return _given(self.around)

    @property
    def entry(self) -> Entry:
        """The file and its place."""
        return _given(self._entry)

    @property
    def tmp(self) -> Tmp:
        """The JVM's /tmp."""
        return _given(self.jvm.tmp)

    @property
    def socket(self) -> Socket:
        """The JVM's socket."""
        return _given(self.jvm.socket)

    @property
    def counters(self) -> Counters:
        """The JVM's hsperfdata."""
        return _given(self.jvm.counters)

    @property
    def file(self) -> FileId:
        """What stat says of the file."""
        return self.entry.file

    @property
    def age_s(self) -> float:
        """Seconds since the file was last changed."""
        return self.case.now_s - self.file.ctime_ns / 1e9

    def entity(self, kind: str) -> Entity:
        """What a finding is about: the JVM, or the file, in the JVM where it is that JVM's alone."""
        process = None if self.around is None else Entity("process", self.pid, self.around.jvm.start_ticks)
        if kind == "process" and process is not None:
            return process
        if kind == "shared":
            return Entity("file", self.path)
        return Entity("socket" if kind == "socket" else "file", self.path, inside=process)

    # Words for sentences

    @property
    def mode(self) -> str:
        """The file's mode in octal: `0600`."""
        return f"{self.entry.mode:04o}"

    @property
    def kind(self) -> str:
        """The file's type."""
        return self.entry.kind

    @property
    def owner(self) -> str:
        """The file's owner: `app (1001)`."""
        return named(self.case.user_name(self.file.uid), self.file.uid)

    @property
    def group(self) -> str:
        """The file's group."""
        return named(self.case.group_name(self.file.gid), self.file.gid)

    @property
    def user(self) -> str:
        """The user that the JVM runs as."""
        return named(self.case.user_name(self.jvm.euid), self.jvm.euid)

    @property
    def jvm_group(self) -> str:
        """The group that the JVM runs with."""
        return named(self.case.group_name(self.jvm.egid), self.jvm.egid)

    @property
    def java(self) -> str:
        """`JDK 17`."""
        return f"JDK {self.jvm.java_major}" if self.jvm.java_major else "this JDK"

    @property
    def seen(self) -> str:
        """Evidence: what stat says."""
        return f"{self.kind} {self.owner}:{self.group} mode {self.mode} links {self.file.links} inode {self.file.inode}"


def named(name: str, number: int) -> str:
    """`app (1001)`; the number alone where it has no name."""
    return name if name == str(number) else f"{name} ({number})"


def _given(value: T | None) -> T:
    if value is None:
        raise LookupError("a rule was applied to a subject of another kind")
    return value
