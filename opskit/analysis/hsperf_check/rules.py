"""The findings of hsperf-check as tables: condition, severity, text and repair. Pure.

`{s.…}` in a text is an attribute of the Subject. The owner, group and mode of the socket are what the JDK's client checks
(src/jdk.attach/linux/native/libattach/VirtualMachineImpl.c); those of hsperfdata are what HotSpot, jps and jstat check.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from opskit.analysis.finding import Entity
from opskit.analysis.hsperf_check.repairs import OTHERS_MAY_WRITE
from opskit.jvm.attach.target import TRIGGER_STAYS_S, accepts_root_trigger, may_write, names_threads, remakes
from opskit.jvm.discover import NotReady
from opskit.records import NamedTuple
from opskit.shell import Syntax, command

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Union

    from opskit.analysis.finding import Severity
    from opskit.analysis.hsperf_check.repairs import Change, Proof
    from opskit.collect.hsperf_check import Facts
    from opskit.jvm.attach.files import Counters, Entry, Socket, Surroundings, Tmp
    from opskit.jvm.attach.leftovers import Leftover

    Text = Union[str, Callable[["Subject"], Union[str, None]]]

CLIENT_MODE = 0o066  # the bits that make a client refuse a socket
NOT_SECURE = "`well-known file is not secure`"
_STAT = "{s.seen}"
_CLEANER = "exclude it from cleaners of /tmp: add a line `x /tmp/%s*` to /etc/tmpfiles.d/jvm.conf"
_SHARED_TMP = "give each container its own /tmp"
_NO_THREAD_BUT = "{s.pid} has a thread Attach Listener, and the file does not exist"


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
        listed = f"/proc/{pid}/net/unix"
        self.dead = f"{listed} has no such listening socket" if case.ask.quick else "connect: ECONNREFUSED"
        self.alive = f"{listed} has it" if case.ask.quick else "connect succeeds"
        # A rule only uses the parts that its subjects have.
        self.entry, self.jvm = cast("Entry", entry), cast("Surroundings", around)
        if around is not None:
            self.tmp, self.socket = cast("Tmp", around.tmp), cast("Socket", around.socket)
            self.counters = cast("Counters", around.counters)
            self.user = named(case.user_name(around.euid), around.euid)
            self.jvm_group = named(case.group_name(around.egid), around.egid)
            self.java = f"JDK {around.java_major}" if around.java_major else "this JDK"
            self.printed = f"; {around.printed.sentence}" if around.printed else ""
        if entry is not None:
            self.file = file = entry.file
            self.kind, self.mode = entry.kind, f"{entry.mode:04o}"
            self.owner = named(case.user_name(file.uid), file.uid)
            self.group = named(case.group_name(file.gid), file.gid)
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


class Rule(NamedTuple):
    """One kind of deviation. `when`: whether a subject has it; `repair`: the proof, and what --fix changes.

    `fix` and `next` are functions of the subject where they are commands, which opskit.shell makes.
    """

    code: str
    severity: Severity | Callable[[Subject], Severity]
    when: Callable[[Subject], object]
    summary: Text
    evidence: str = _STAT
    fix: Text = lambda _: None
    next: Text = lambda _: None
    repair: tuple[Proof, Change] | None = None


def _blocking(s: Subject) -> Severity:
    """What keeps a JVM from making its socket is only a warning once the socket is there."""
    return "error" if s.jvm.socket is None else "warning"


def _asked_by_signal(s: Subject) -> str | None:
    """The command for a thread dump without attaching."""
    printed = s.jvm.printed
    return None if printed is None or printed.lost else printed.whole or printed.kill


# The JVM itself

JVM = (
    Rule("attach-stopped", "error", lambda s: s.jvm.stopped, "{s.pid} {s.jvm.stopped.why}: it cannot answer a client",
         "/proc/{s.pid}/stat", lambda s: s.jvm.stopped and s.jvm.stopped.resume),
    Rule("attach-no-descriptor", "error", lambda s: s.jvm.shortage and not s.jvm.disabled,
         "{s.jvm.shortage.why}: it cannot answer a client{s.printed}", "size of /proc/{s.pid}/fd, Max open files of /proc/{s.pid}/limits",
         lambda s: s.jvm.shortage and s.jvm.shortage.raise_it, lambda s: command("opskit", "fds", s.pid)),
    Rule("attach-disabled", "note", lambda s: s.jvm.disabled,
         "started with -XX:+DisableAttachMechanism: jstack, jmap and jcmd cannot attach{s.printed}",
         "sun.rt.jvmCapabilities, or the command line", next=_asked_by_signal),
    Rule("attach-xrs", "note", lambda s: s.jvm.reduced,
         "started with -Xrs: its socket is there from the start, and SIGQUIT (kill -3) kills it",
         "the command line; SigCgt of /proc/{s.pid}/status lacks SIGQUIT"),
    Rule("hsperf-off", "note", lambda s: s.jvm.perf_flag, "started with {s.jvm.perf_flag}: jps and jstat do not list it",
         "the command line"),
    Rule("hsperf-nameless", "note", lambda s: not (s.jvm.named or s.jvm.perf_flag),
         "uid {s.jvm.euid} has no passwd entry where it runs: HotSpot makes no hsperfdata, so jps and jstat do not list it",
         "/etc/passwd of the JVM's own root", "add the uid with a name to the image's /etc/passwd"),
)  # fmt: skip


# Its /tmp


def _is_full(s: Subject) -> bool:
    return not s.tmp.space.read_only and (s.tmp.space.free_inodes == 0 or s.tmp.space.free_bytes == 0)


def _may_use_tmp(s: Subject) -> bool:
    return may_write(s.file, s.jvm.euid, (s.jvm.egid, *s.jvm.groups))


def _set_mode(mode: str) -> Callable[[Subject], str]:
    """How to repair a /tmp. One below /proc/PID/root is under the control of whoever made that root: no command for it."""

    def fix(s: Subject) -> str:
        if s.path == s.entry.inside:
            return command("chmod", mode, s.path)
        return f"mode {mode} for /tmp in the image, pod or unit that {s.pid} runs in"

    return fix


TMP = (
    Rule("tmp-read-only", _blocking, lambda s: s.tmp.space.read_only,
         "mounted read-only where the JVM runs: it cannot create its attach socket", "statvfs of {s.path}",
         "mount a writable /tmp there (emptyDir, tmpfs)"),
    Rule("tmp-full", _blocking, _is_full,
         lambda s: f"no free {'inode' if s.tmp.space.free_inodes == 0 else 'block'}: no socket, trigger file or hsperfdata "
         "can be created", "statvfs of {s.path}",
         next=lambda s: command("df", "-h", s.path, Syntax("&&"), "df", "-i", s.path)),
    Rule("tmp-closed", _blocking, lambda s: not _may_use_tmp(s),
         "{s.user} may not create files in it: no attach socket, no hsperfdata", fix=_set_mode("1777")),
    Rule("tmp-not-sticky", "warning", lambda s: _may_use_tmp(s) and s.entry.mode & 0o1002 == 0o002,
         "not sticky: every user may delete or replace the sockets and hsperfdata of others", fix=_set_mode("1777")),
    Rule("tmp-setgid", "warning", lambda s: s.entry.mode & 0o2000,
         "setgid bit: sockets of JDK 8 get its group instead of the JVM's, and jstack calls them not secure",
         fix=_set_mode("g-s")),
    Rule("tmp-private", "note", lambda s: not s.tmp.shared,
         "not our /tmp (a container, or systemd's PrivateTmp): tools of JDK 8 look in the wrong one, and jps lists no JVM of it",
         "device and inode of {s.path} differ from /tmp's"),
)  # fmt: skip


# Its attach socket


def _is_ours(s: Subject) -> bool:
    """Whether the JVM may be who listens: its owner, group and mode count."""
    return s.kind == "socket" and s.socket.alive is not False and s.socket.peer in (None, s.pid)


def lost_listener(around: Surroundings) -> bool:
    """Whether a JVM still has the socket of a listener whose thread has ended."""
    alive = around.socket is not None and bool(around.socket.alive) and around.socket.peer == around.pid
    return alive and around.listener is False and names_threads(around.java_major)


def _orphaned(s: Subject) -> str:
    lives = "the socket of the JVM's listener has no name any more" if s.jvm.listener else "the JVM has no listener yet"
    return f"no process listens on it, and {lives}: clients get `Connection refused`"


def _foreign(s: Subject) -> str:
    who = f"process {s.socket.peer}" if s.socket.peer else "a process that is not visible from here"
    return f"belongs to {who}, not to {s.pid}: two JVMs with PID {s.jvm.jvm.ns_pid} in their containers share this /tmp"


def _socket_mode(s: Subject) -> str:
    if s.entry.mode & CLIENT_MODE:
        return f"mode {s.mode} lets others read or write it: {NOT_SECURE}"
    if s.entry.mode & 0o600 != 0o600:
        return f"mode {s.mode} locks out its own user"
    return f"mode {s.mode} instead of 0600; clients accept it"


SOCKET = (
    Rule("attach-not-a-socket", "error", lambda s: s.kind != "socket",
         "a {s.kind} of {s.owner} is in the place of the attach socket: no client can attach",
         fix="find out who made it, then remove it"),
    Rule("attach-socket-orphaned", "error", lambda s: s.kind == "socket" and s.socket.alive is False, _orphaned,
         "{s.dead}; {s.seen}", repair=("dead", "remove")),
    Rule("attach-listener-ended", "error", lambda s: lost_listener(s.jvm),
         lambda s: "the JVM has it open, but its listener has ended (it had no free file descriptor?): clients wait for an answer "
         + ("until opskit starts it again" if remakes(s.jvm.java_major) else f"in vain, and {s.java} does not start it again"),
         "{s.alive}; {s.pid} has no thread Attach Listener",
         lambda s: command("opskit", "hsperf-check", s.pid, "--probe") if remakes(s.jvm.java_major) else "restart the JVM"),
    Rule("attach-socket-foreign", "error", lambda s: s.kind == "socket" and s.socket.peer not in (None, s.pid), _foreign,
         "SO_PEERCRED after connect", _SHARED_TMP,
         lambda s: command("opskit", "hsperf-check", s.socket.peer) if s.socket.peer else None),
    Rule("attach-socket-owner", "error", lambda s: _is_ours(s) and s.file.uid != s.jvm.euid,
         f"the owner of {{s.path}} is {{s.owner}}, the JVM runs as {{s.user}}: {NOT_SECURE}", repair=("peer", "owner")),
    Rule("attach-socket-group", "error", lambda s: _is_ours(s) and s.file.gid != s.jvm.egid,
         f"the group of {{s.path}} is {{s.group}}, the JVM runs with group {{s.jvm_group}}: {NOT_SECURE}",
         repair=("peer", "group")),
    Rule("attach-socket-mode", lambda s: "error" if s.entry.mode & CLIENT_MODE or s.entry.mode & 0o600 != 0o600 else "warning",
         lambda s: _is_ours(s) and s.entry.mode != 0o600, _socket_mode, repair=("peer", "mode")),
)  # fmt: skip
DELETED_SOCKET = (
    Rule("attach-socket-deleted", "warning", lambda s: remakes(s.jvm.java_major),
         "deleted (by a cleaner of /tmp?); the JVM makes it again when a client next asks", _NO_THREAD_BUT,
         lambda s: command("opskit", "hsperf-check", s.pid, "--probe")),
    Rule("attach-socket-lost", "error", lambda s: not remakes(s.jvm.java_major),
         "deleted (by a cleaner of /tmp?), and {s.java} does not make it again: no client can attach before a restart",
         _NO_THREAD_BUT, f"restart the JVM; {_CLEANER % '.java_pid'}"),
)  # fmt: skip


# Trigger files


def takes_trigger_of(around: Surroundings, uid: int) -> bool:
    """Whether the JVM takes a trigger file of this owner."""
    return uid == around.euid or (uid == 0 and accepts_root_trigger(around.java_major) is not False)


TRIGGER = (
    Rule("attach-trigger-owner", lambda s: "error" if s.in_cwd and s.jvm.listener is False else "warning",
         lambda s: not takes_trigger_of(s.jvm, s.file.uid),
         lambda s: f"belongs to {s.owner}, the JVM runs as {s.user}: "
         + ("no client can start the listener while it is there" if s.in_cwd else "the JVM does not accept it as a trigger"),
         repair=("old", "remove")),
    Rule("attach-trigger-left", "warning", lambda s: takes_trigger_of(s.jvm, s.file.uid) and s.age_s > TRIGGER_STAYS_S,
         "left behind by a client that was killed, {s.age_s:.0f} s ago: kill -3 would start the listener instead of printing a "
         "thread dump", repair=("old", "remove")),
)  # fmt: skip


# hsperfdata

_KEEPS = "a JVM that starts shares no hsperfdata, and jps does not list it"


DIRECTORY = (
    Rule("hsperf-dir-symlink", "warning", lambda s: s.kind != "directory", "a {s.kind}, not a directory: JVMs and jps do not use it",
         fix="find out who made it, then remove it: the next JVM makes its directory"),
    Rule("hsperf-dir-owner", "warning", lambda s: s.kind == "directory" and s.file.uid != s.jvm.euid,
         f"belongs to {{s.owner}}, the JVM runs as {{s.user}}: {_KEEPS}", repair=("mapped", "owner")),
    Rule("hsperf-dir-mode", "warning", lambda s: s.kind == "directory" and s.entry.mode & OTHERS_MAY_WRITE,
         f"mode {{s.mode}} lets others write to it: {_KEEPS}", repair=("mapped", "mode")),
)  # fmt: skip
COUNTERS = (
    Rule("hsperf-file-owner", "warning", lambda s: s.file.uid != s.jvm.euid,
         "belongs to {s.owner}, the JVM runs as {s.user}: jps and jstat of that user cannot read it", repair=("mapped", "owner")),
    Rule("hsperf-file-group", "warning", lambda s: s.file.gid != s.jvm.egid,
         "has the group {s.group}, the JVM runs with {s.jvm_group}; with mode 0600 the group has no effect",
         repair=("mapped", "group")),
    Rule("hsperf-file-mode", "warning", lambda s: s.entry.mode != 0o600,
         lambda s: f"mode {s.mode} instead of 0600: " + ("others can read or change its counters and command line"
         if s.entry.mode & CLIENT_MODE else "its own user cannot read it"), repair=("mapped", "mode")),
    Rule("hsperf-file-links", "warning", lambda s: s.file.links != 1,
         "has {s.file.links} links: jps and jstat refuse it as not secure",
         next=lambda s: command("find", s.path.rpartition("/")[0].rpartition("/")[0], "-xdev", "-inum", s.file.inode)),
    Rule("hsperf-file-size", "warning", lambda s: s.file.size_bytes == 0 or s.file.size_bytes % s.case.page_bytes,
         "has {s.file.size_bytes} bytes, not a whole number of pages: it was truncated; reading it may kill the JVM (SIGBUS)",
         fix="restart the JVM"),
)  # fmt: skip


def _stale(s: Subject) -> str:
    return "not the JVM's file: it has " + ("another one" if s.counters.mapping else "none, and shares no hsperfdata")


OTHERS_COUNTERS = (
    Rule("hsperf-file-foreign", "warning", lambda s: s.counters.holder not in (None, s.pid),
         "belongs to {s.counters.holder}, which has the same PID {s.jvm.jvm.ns_pid} in its container and shares this /tmp: jps and "
         "jstat take its counters for those of {s.pid}", "/proc/{s.counters.holder}/map_files has inode {s.file.inode}", _SHARED_TMP,
         lambda s: command("opskit", "hsperf-check", s.counters.holder)),
    Rule("hsperf-file-stale", "note", lambda s: s.counters.holder in (None, s.pid), _stale,
         fix="restart the JVM to have its counters shared"),
)  # fmt: skip


def _closed_directory(s: Subject) -> bool:
    """Whether the mode of its directory keeps the JVM's own user from creating a file there. Root's rights are above modes."""
    directory = s.counters.directory
    return directory is not None and _is_safe(s) and s.jvm.euid != 0 and directory.mode & 0o700 != 0o700


def _is_safe(s: Subject) -> bool:
    directory = s.counters.directory
    return directory is None or (
        directory.kind == "directory" and directory.file.uid == s.jvm.euid and not directory.mode & OTHERS_MAY_WRITE
    )


def _missing(s: Subject) -> str:
    directory = s.counters.directory
    why = "the cause is not visible any more (a full /tmp, or a directory that was not secure when it started)"
    if not _is_safe(s):
        why = "its directory was not secure when it started"
    elif directory is not None and _closed_directory(s):
        why = f"mode {directory.mode:04o} of {directory.path} locks out {s.user}, who needs rwx to create a file there"
    return f"does not exist: jps and jstat do not list the JVM; {why}"


def _mend_directory(s: Subject) -> str:
    directory = s.counters.directory
    if directory is None or not _closed_directory(s):
        return "repair the directory, then restart the JVM"
    if directory.path != directory.inside:
        return f"mode 0755 for {directory.inside} in the image or pod that {s.pid} runs in, then restart the JVM"
    # With its own rights a link leads nowhere else.
    chmod = command("sudo", "-u", f"#{s.jvm.euid}", "chmod", "u+rwx", directory.path)
    return f"{chmod}; then restart the JVM"


NO_COUNTERS = (
    Rule("hsperf-file-deleted", "warning", lambda s: s.counters.mapping,
         "deleted while the JVM runs (by a cleaner of /tmp, or a JVM that started in a container with this /tmp?): jps and jstat "
         "do not list it before a restart", "/proc/{s.pid}/maps: {s.path} (deleted)", _CLEANER % "hsperfdata_"),
    Rule("hsperf-file-missing", "warning", lambda s: not s.counters.mapping and not isinstance(s.jvm.jvm.no_perf, NotReady),
         _missing, "/proc/{s.pid}/maps has no hsperfdata", _mend_directory),
)  # fmt: skip


# Leftovers of ended JVMs. Only the initial PID namespace shows for certain that they have ended.


def _ended(s: Subject) -> str:
    return "which has ended" if s.case.sees_all else "which has ended, or runs where it cannot be seen from here"


def _leaves(kind: str) -> Callable[[Subject], bool]:
    return lambda s: s.left is not None and s.left.kind == kind


LEFTOVER = (
    Rule("attach-socket-leftover", "note", _leaves("socket"),
         lambda s: ("no process listens on it" if s.kind == "socket" else f"a {s.kind}, not a socket") + f": left by process {s.pid}, "
         "which is not a JVM now; a new JVM with this PID would seem to listen already", repair=("dead", "remove")),
    Rule("attach-trigger-leftover", "note", lambda s: _leaves("trigger")(s) and s.age_s > TRIGGER_STAYS_S,
         lambda s: f"the trigger of a client for process {s.pid}, {_ended(s)}", repair=("old", "remove")),
    Rule("hsperf-leftover", "note", _leaves("hsperfdata"),
         lambda s: f"the counters of process {s.pid}, {_ended(s)}"
         + (": it was killed; the next JVM of that user removes them" if s.case.sees_all else ""), repair=("dead", "remove")),
)  # fmt: skip
