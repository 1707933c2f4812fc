"""What the rules of hsperf-check look at: a JVM, or a file around it or of one that has ended; and the words for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from opskit.analysis.finding import Entity

if TYPE_CHECKING:
    from opskit.collect.hsperf_check import Facts
    from opskit.jvm.attach.files import Counters, Entry, Socket, Surroundings, Tmp
    from opskit.jvm.attach.leftovers import Leftover

NOT_SECURE = "`well-known file is not secure`"


class Subject:
    """A JVM (`around`), a file (`entry`) or both, as attributes that the rules' texts use: `{s.owner}` is `app (1001)`.

    `case`: the facts. `doubt`: why --fix leaves the file alone. `right_mode`: what its mode should be. `in_cwd`: of a trigger
    file in the JVM's working directory. `left`: what a JVM left that has ended. `path`: where a file should be that is missing.
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
        self.in_cwd, self.left, self.by_pid = in_cwd, left, left is None or left.by_pid
        self.path = entry.path if entry else path
        # A rule only uses the parts that its subjects have.
        self.entry, self.jvm = cast("Entry", entry), cast("Surroundings", around)
        if around is not None:
            self.tmp, self.socket = cast("Tmp", around.tmp), cast("Socket", around.socket)
            self.counters = cast("Counters", around.counters)
            self.user = named(case.user_name(around.euid), around.euid)
            self.jvm_group = named(case.group_name(around.egid), around.egid)
            self.java = f"JDK {around.java_major}" if around.java_major else "this JDK"
        if entry is not None:
            self.file = file = entry.file
            self.kind, self.mode = entry.kind, f"{entry.mode:04o}"
            self.owner, self.group = (
                named(case.user_name(file.uid), file.uid),
                named(case.group_name(file.gid), file.gid),
            )
            self.seen = f"{self.kind} {self.owner}:{self.group} mode {self.mode} links {file.links} inode {file.inode}"
            self.age_s = case.now_s - file.ctime_ns / 1e9

    def entity(self, kind: str) -> Entity:
        """What a finding is about: the JVM, or the file, in the JVM where it is that JVM's alone."""
        process = None if self.around is None else Entity("process", self.pid, self.around.jvm.start_ticks)
        if kind == "process" and process is not None:
            return process
        inside = None if kind == "shared" else process
        return Entity("socket" if kind == "socket" else "file", self.path, inside=inside)


def named(name: str, number: int) -> str:
    """`app (1001)`; the number alone where it has no name."""
    return name if name == str(number) else f"{name} ({number})"
