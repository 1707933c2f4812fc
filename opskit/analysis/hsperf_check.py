"""What is wrong around a JVM's hsperfdata and attach socket, which client that stops, and how to repair it. Pure.

Two files, two stories: /tmp/hsperfdata_USER/PID is what jps, jstat and monitors read; /tmp/.java_pidPID is what jstack, jmap
and jcmd connect to, and the one whose owner, group and modes `well-known file is not secure` is about
(src/jdk.attach/linux/native/libattach/VirtualMachineImpl.c, checkPermissions):

    uid != ours or gid != ours or mode & 066    JDK 8, for everybody
    the same, but root may differ in uid, gid   JDK 11 and later

The JVM for its part takes only clients with its own euid and egid; later ones also root.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from opskit.analysis.finding import Finding, Severity
from opskit.jvm.attach.target import may_write, remakes
from opskit.shell import Syntax, command

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from opskit.jvm.attach.files import Entry, Socket, Surroundings, Way
    from opskit.jvm.attach.leftovers import Leftover
    from opskit.proc.fs import FileId

NOT_SECURE = "`well-known file is not secure`"
_CLIENT_MODE = 0o066
_OTHERS_MAY_WRITE = 0o022
_TRIGGER_STAYS_S = 15.0  # a client waits for the listener 10 s at most by default
Proof = Literal["peer", "mapped", "dead", "old"]
_HIDDEN = "hidden"  # its /tmp is closed to us: neither works nor refused


@dataclass(frozen=True)
class Names:
    """How users and groups are called."""

    user: Callable[[int], str]
    group: Callable[[int], str]

    def of_user(self, uid: int) -> str:
        """`app (1001)`."""
        return _named(self.user(uid), uid)

    def of_group(self, gid: int) -> str:
        """`app (1001)`."""
        return _named(self.group(gid), gid)


def _named(name: str, number: int) -> str:
    return name if name == str(number) else f"{name} ({number})"


@dataclass(frozen=True)
class ClientVerdict:
    """Whether a client could attach. None: not to be told with our rights. `why` where it could not."""

    client: str
    works: bool | None
    why: str | None = None

    @property
    def line(self) -> str:
        """`jstack of JDK 8 as root: refused, …`."""
        result = {True: "works", False: "refused", None: "unknown"}[self.works]
        return f"{self.client}: {result}" + (f", {self.why}" if self.why else "")


@dataclass(frozen=True)
class Repair:
    """One thing to do to one file, which must still be the same (device, inode) then.

    `way` and `names` lead to the file, `path` shows it. `owner`, `group`, `mode`: what to set, None: leave; of a directory's
    mode bits are only taken away. `remove`: unlink it. `change` says that in words. `proof`: what is proven again right before:
    "peer" (the listener is `pid`, which runs as `euid`), "mapped" (so does `pid`, and maps the file), "dead" (nobody listens,
    holds or maps it), "old" (a trigger). `command` is what to type for it: no command of a shell is as careful.
    `refused`: why it is not done, where it is not.
    """

    code: str
    pid: int
    path: str
    way: Way | None
    names: tuple[str, ...]
    device: int
    inode: int
    change: str
    command: str
    proof: Proof
    euid: int | None = None
    owner: int | None = None
    group: int | None = None
    mode: int | None = None
    remove: bool = False
    refused: str | None = None


@dataclass(frozen=True)
class Checked:
    """One JVM: who could attach, what deviates, what can be repaired."""

    around: Surroundings
    clients: tuple[ClientVerdict, ...]
    findings: tuple[Finding, ...]
    repairs: tuple[Repair, ...]


class _Check:
    """Gathers findings and repairs of one subject. Removed is only from where everything is visible (`initial_namespace`)."""

    def __init__(self, names: Names, pid: int, euid: int | None = None, *, initial_namespace: bool) -> None:
        self.names, self.pid, self.euid = names, pid, euid
        self.by_pid = True
        self.blind = (
            None if initial_namespace else "from within a container not every process is visible: run it on the host"
        )
        self.findings: list[Finding] = []
        self.repairs: list[Repair] = []

    def found(self, finding: Finding) -> None:
        self.findings.append(finding)

    def repair(
        self,
        code: str,
        entry: Entry,
        proof: Proof,
        doubt: str | None = None,
        *,
        owner: int | None = None,
        group: int | None = None,
        mode: int | None = None,
    ) -> str:
        """Plan a repair, a removal where nothing is set, and give what the finding says about it. `doubt`: why not to do it."""
        remove = owner is group is mode is None
        way = entry.way
        if way is None:
            doubt = f"the root directory of {self.pid} cannot be entered"
        doubt = (self.blind if remove else None) or (way.refused if way else None) or doubt
        if remove:
            change = "remove"
        elif owner is not None:
            change = f"owner {self.names.of_user(owner)}"
        elif group is not None:
            change = f"group {self.names.of_group(group)}"
        else:
            change = f"mode {mode:04o}"
        file, line = entry.file, self.fix_command()
        self.repairs.append(
            Repair(
                code, self.pid, entry.path, way, entry.names, file.device, file.inode, change, line, proof, self.euid,
                owner, group, mode, remove, doubt,
            )
        )  # fmt: skip
        return line if doubt is None else f"not repaired by --fix: {doubt}"

    def fix_command(self) -> str:
        """What to type to have it repaired: a shell's chown or rm would follow whatever another user puts at a path."""
        return command("opskit", "hsperf-check", *([self.pid] if self.by_pid else []), "--fix")


def check(
    around: Surroundings,
    names: Names,
    now_s: float,
    holder: Callable[[FileId], int | None],
    page_bytes: int,
    *,
    initial_namespace: bool,
) -> Checked:
    """Judge one JVM. `now_s`: the wall clock; `holder`: which pid maps an hsperfdata file."""
    out = _Check(names, around.pid, around.euid, initial_namespace=initial_namespace)
    if around.stopped:
        out.found(
            Finding(
                "attach-stopped",
                "error",
                str(around.pid),
                f"{around.pid} {around.stopped.why}: it cannot answer a client",
                f"/proc/{around.pid}/stat",
                around.stopped.resume,
            )
        )
    _check_flags(out, around)
    _check_tmp(out, around)
    _check_socket(out, around)
    _check_triggers(out, around, now_s)
    _check_counters(out, around, holder, page_bytes)
    return Checked(around, tuple(clients(around, names)), tuple(out.findings), tuple(out.repairs))


def _check_flags(out: _Check, around: Surroundings) -> None:
    pid = str(around.pid)
    if around.disabled:
        out.found(
            Finding(
                "attach-disabled",
                "note",
                pid,
                "started with -XX:+DisableAttachMechanism: jstack, jmap and jcmd cannot attach",
                "sun.rt.jvmCapabilities, or the command line",
            )
        )
    if around.reduced:
        out.found(
            Finding(
                "attach-xrs",
                "note",
                pid,
                "started with -Xrs: its socket is there from the start, and SIGQUIT kills it; never kill -3",
                "the command line; SigCgt of /proc/PID/status has no SIGQUIT",
            )
        )
    if around.perf_flag:
        out.found(
            Finding(
                "hsperf-off",
                "note",
                pid,
                f"started with {around.perf_flag}: jps and jstat do not see it",
                "the command line",
            )
        )
    elif not around.named:
        out.found(
            Finding(
                "hsperf-nameless",
                "note",
                pid,
                f"uid {around.euid} has no passwd entry where it runs: HotSpot makes no hsperfdata, so jps and jstat do not see it",
                "/etc/passwd of the JVM's own root",
                "give the uid a name in the image's /etc/passwd",
            )
        )


def _check_tmp(out: _Check, around: Surroundings) -> None:
    tmp = around.tmp
    if tmp is None:
        return
    entry, where = tmp.entry, tmp.entry.path
    seen = f"{where}: {out.names.of_user(entry.file.uid)}:{out.names.of_group(entry.file.gid)} mode {entry.mode:04o}"
    blocks: Severity = "warning" if around.socket is not None else "error"
    if tmp.space.read_only:
        out.found(
            Finding("tmp-read-only", blocks, where, "is mounted read-only where the JVM runs: it cannot make its attach socket",
                    f"statvfs of {where}", "mount a writable /tmp there (emptyDir, tmpfs)")
        )  # fmt: skip
    elif tmp.space.free_inodes == 0 or tmp.space.free_bytes == 0:
        what = "inode" if tmp.space.free_inodes == 0 else "block"
        out.found(
            Finding("tmp-full", blocks, where, f"is full (no {what} is left): no socket, no trigger, no hsperfdata can be made there",
                    f"statvfs of {where}", command("df", "-h", where, Syntax("&&"), "df", "-i", where))
        )  # fmt: skip
    if not may_write(entry.file, around.euid, (around.egid, *around.groups)):
        user = out.names.of_user(around.euid)
        out.found(
            Finding("tmp-closed", blocks, where, f"does not let {user} make files: no attach socket, no hsperfdata", seen,
                    _mode_of_tmp(around, "1777"))
        )  # fmt: skip
    elif entry.mode & 0o002 and not entry.mode & 0o1000:
        out.found(
            Finding("tmp-not-sticky", "warning", where, "is not sticky: anybody may delete or replace sockets and hsperfdata of others",
                    seen, _mode_of_tmp(around, "1777"))
        )  # fmt: skip
    if entry.mode & 0o2000:
        out.found(
            Finding("tmp-setgid", "warning", where,
                    "has the setgid bit: sockets of JDK 8 get its group instead of the JVM's, and jstack calls them not secure",
                    seen, _mode_of_tmp(around, "g-s"))
        )  # fmt: skip
    if not tmp.shared:
        out.found(
            Finding("tmp-private", "note", where,
                    "is not our /tmp (a container, or systemd's PrivateTmp): tools of JDK 8 look in the wrong one, jps sees nothing",
                    f"device and inode of {where} differ from /tmp's")
        )  # fmt: skip


def _mode_of_tmp(around: Surroundings, mode: str) -> str:
    """How to mend a /tmp. One below /proc/PID/root is in the hands of who made that root: a link there leads anywhere."""
    tmp = around.tmp
    if tmp is not None and tmp.entry.path == tmp.entry.inside:
        return command("chmod", mode, tmp.entry.path)
    return f"mode {mode} for /tmp in the image, pod or unit that {around.pid} runs in"


def _check_socket(out: _Check, around: Surroundings) -> None:
    socket = around.socket
    if socket is None:
        if around.listener and around.tmp is not None and not around.stopped:
            _deleted_socket(out, around)
        return
    entry = socket.entry
    path, pid = entry.path, around.pid
    if entry.kind != "socket":
        out.found(
            Finding("attach-not-a-socket", "error", path,
                    f"is a {entry.kind} of {out.names.of_user(entry.file.uid)}, in the place of the attach socket: nobody can attach",
                    _seen(out, entry), "find out who made it, then remove it")
        )  # fmt: skip
        return
    if socket.alive is False:
        lives = "while its listener has lost its name" if around.listener else "and hides that there is no listener yet"
        fix = out.repair("attach-socket-orphaned", entry, "dead")
        out.found(
            Finding("attach-socket-orphaned", "error", path, f"nobody listens on it, {lives}: clients get `Connection refused`",
                    f"connect: ECONNREFUSED; {_seen(out, entry)}", fix)
        )  # fmt: skip
        return
    if socket.peer is not None and socket.peer != pid:
        who = f"process {socket.peer}" if socket.peer else "a process that is not visible from here"
        out.found(
            Finding("attach-socket-foreign", "error", path,
                    f"belongs to {who}, not to {pid}: two JVMs with the inner pid {around.jvm.ns_pid} share this /tmp",
                    "SO_PEERCRED after connect", "give each container a /tmp of its own")
        )  # fmt: skip
        return
    _check_socket_file(out, around, socket)


def _deleted_socket(out: _Check, around: Surroundings) -> None:
    path = f"{around.tmp.entry.path if around.tmp else ''}/.java_pid{around.jvm.ns_pid}"
    if remakes(around.java_major):
        out.found(
            Finding("attach-socket-deleted", "warning", path,
                    "was deleted (by a cleaner of /tmp?); the JVM makes it again when a client next asks",
                    f"{around.pid} has a thread Attach Listener, the file is not there",
                    command("opskit", "hsperf-check", around.pid, "--probe"))
        )  # fmt: skip
        return
    java = f"JDK {around.java_major}" if around.java_major else "this JDK"
    out.found(
        Finding("attach-socket-lost", "error", path,
                f"was deleted (by a cleaner of /tmp?), and {java} does not make it again: nobody can attach before a restart",
                f"{around.pid} has a thread Attach Listener, the file is not there",
                "restart the JVM; keep cleaners off: a line `x /tmp/.java_pid*` in /etc/tmpfiles.d/jvm.conf")
    )  # fmt: skip


def _check_socket_file(out: _Check, around: Surroundings, socket: Socket) -> None:
    entry, names = socket.entry, out.names
    path, file = entry.path, entry.file
    ours = None if socket.peer == around.pid else "its listener could not be asked who it is"
    if file.uid != around.euid:
        fix = out.repair("attach-socket-owner", entry, "peer", ours, owner=around.euid)
        out.found(
            Finding("attach-socket-owner", "error", path,
                    f"the owner of {path} is {names.of_user(file.uid)}, the JVM runs as {names.of_user(around.euid)}: {NOT_SECURE}",
                    _seen(out, entry), fix)
        )  # fmt: skip
    if file.gid != around.egid:
        fix = out.repair("attach-socket-group", entry, "peer", ours, group=around.egid)
        out.found(
            Finding("attach-socket-group", "error", path,
                    f"the group of {path} is {names.of_group(file.gid)}, the JVM runs with group {names.of_group(around.egid)}: {NOT_SECURE}",
                    _seen(out, entry), fix)
        )  # fmt: skip
    if entry.mode != 0o600:
        bad = entry.mode & _CLIENT_MODE
        deaf = entry.mode & 0o600 != 0o600
        summary = (
            f"mode {entry.mode:04o} lets others read or write it: {NOT_SECURE}"
            if bad
            else f"mode {entry.mode:04o} keeps its own user out"
            if deaf
            else f"mode {entry.mode:04o} instead of 0600; clients do not mind"
        )
        fix = out.repair("attach-socket-mode", entry, "peer", ours, mode=0o600)
        severity: Severity = "error" if bad or deaf else "warning"
        out.found(Finding("attach-socket-mode", severity, path, summary, _seen(out, entry), fix))


def _seen(out: _Check, entry: Entry) -> str:
    file = entry.file
    return (
        f"{entry.kind} {out.names.of_user(file.uid)}:{out.names.of_group(file.gid)} mode {entry.mode:04o} "
        f"links {file.links} inode {file.inode}"
    )


def _check_triggers(out: _Check, around: Surroundings, now_s: float) -> None:
    for trigger in around.triggers:
        entry, file = trigger.entry, trigger.entry.file
        takes_root = around.java_major is None or around.java_major > 8
        if file.uid != around.euid and not (file.uid == 0 and takes_root):
            in_cwd = trigger.in_cwd
            stops = around.listener is False
            effect = (
                "while it is there, no client can start the listener"
                if in_cwd
                else "the JVM does not take it as a trigger"
            )
            fix = out.repair("attach-trigger-owner", entry, "old", _not_a_trigger(entry))
            out.found(
                Finding("attach-trigger-owner", "error" if in_cwd and stops else "warning", entry.path,
                        f"belongs to {out.names.of_user(file.uid)}, the JVM runs as {out.names.of_user(around.euid)}: {effect}",
                        _seen(out, entry), fix)
            )  # fmt: skip
        elif now_s - file.ctime_ns / 1e9 > _TRIGGER_STAYS_S:
            fix = out.repair("attach-trigger-left", entry, "old", _not_a_trigger(entry))
            out.found(
                Finding("attach-trigger-left", "warning", entry.path,
                        f"was left behind by a client that was killed, {now_s - file.ctime_ns / 1e9:.0f} s ago: a kill -3 would start "
                        "the listener instead of printing a dump", _seen(out, entry), fix)
            )  # fmt: skip


def _not_a_trigger(entry: Entry) -> str | None:
    if entry.kind == "plain file" and entry.file.size_bytes == 0 and entry.file.links == 1:
        return None
    return f"it is no empty plain file with one link, as a trigger is ({entry.kind}, {entry.file.size_bytes} bytes)"


def _check_counters(out: _Check, around: Surroundings, holder: Callable[[FileId], int | None], page_bytes: int) -> None:
    counters = around.counters
    if counters is None or around.tmp is None or around.perf_flag or not around.named:
        return
    directory, entry, mapping = counters.directory, counters.entry, counters.mapping
    own = counters.is_own
    doubt = _doubt(around) if own else f"no file in it is mapped by {around.pid}"
    if directory is not None:
        _check_directory(out, around, directory, doubt or open_to_others(directory.file, around.euid))
    if own and entry is not None:
        _check_file(out, around, entry, page_bytes, doubt or open_to_others(entry.file, around.euid))
        return
    where = entry.path if entry else f"{around.tmp.entry.path}/hsperfdata_…/{around.jvm.ns_pid}"
    if entry is not None:
        other = holder(entry.file)
        if other is not None and other != around.pid:
            out.found(
                Finding("hsperf-file-foreign", "warning", where,
                        f"belongs to {other}, which has the same inner pid {around.jvm.ns_pid} and shares this /tmp: jps and jstat "
                        f"take its counters for those of {around.pid}", f"/proc/{other}/map_files has inode {entry.file.inode}",
                        "give each container a /tmp of its own")
            )  # fmt: skip
            return
        why = "is not the file that the JVM has: it has " + (
            "another one" if mapping else "none, and keeps its counters to itself"
        )
        out.found(
            Finding(
                "hsperf-file-stale",
                "warning",
                where,
                why,
                _seen(out, entry),
                "restart the JVM to have its counters shared",
            )
        )
        return
    if mapping is not None:
        out.found(
            Finding("hsperf-file-deleted", "warning", mapping.path,
                    "was deleted while the JVM runs (by a cleaner of /tmp, or a JVM that started in a container with this /tmp?): jps and jstat "
                    "do not see it until it is restarted",
                    f"/proc/{around.pid}/maps: {mapping.path} (deleted)",
                    "keep cleaners off: a line `x /tmp/hsperfdata_*` in /etc/tmpfiles.d/jvm.conf")
        )  # fmt: skip
    elif not (around.jvm.no_perf and "starting" in str(around.jvm.no_perf)):
        because = (
            "its directory was not secure when it started" if _insecure(around, directory) else "nothing here says why"
        )
        out.found(
            Finding("hsperf-file-missing", "warning", where, f"is not there: jps and jstat do not see the JVM; {because}",
                    f"/proc/{around.pid}/maps has no hsperfdata", "repair the directory, then restart the JVM")
        )  # fmt: skip


def _doubt(around: Surroundings) -> str | None:
    """Why the counters' file and directory are not surely the JVM's to own; None where they are."""
    counters = around.counters
    if counters is None or counters.mapped is None:
        return f"/proc/{around.pid}/map_files, which tells what it maps, cannot be read: run as root (CAP_SYS_ADMIN) on the host"
    if around.user is None:
        return f"uid {around.euid} has no name where {around.pid} runs"
    if counters.directory is not None and counters.directory.names != (f"hsperfdata_{around.user}",):
        return f"it is not in hsperfdata_{around.user}, the directory of the user that {around.pid} runs as"
    return None


def open_to_others(file: FileId, euid: int) -> str | None:
    """Why mapping a file, or having one in a directory, does not make it a user's: it is another's, and open to more than that one.

    What only its owner can write to is mapped by a user who was its owner.
    """
    if file.uid == euid or not file.mode & _OTHERS_MAY_WRITE:
        return None
    return f"it belongs to uid {file.uid} and others may write to it: nothing proves that it was uid {euid}'s"


def _insecure(around: Surroundings, directory: Entry | None) -> bool:
    return directory is not None and (
        directory.kind != "directory" or directory.file.uid != around.euid or bool(directory.mode & _OTHERS_MAY_WRITE)
    )


def _check_directory(out: _Check, around: Surroundings, entry: Entry, doubt: str | None) -> None:
    path = entry.path
    if entry.kind != "directory":
        out.found(
            Finding("hsperf-dir-symlink", "warning", path, f"is a {entry.kind}, no directory: JVMs and jps do not use it",
                    _seen(out, entry), "find out who made it, then remove it: the next JVM makes its directory")
        )  # fmt: skip
        return
    if entry.file.uid != around.euid:
        fix = out.repair("hsperf-dir-owner", entry, "mapped", doubt, owner=around.euid)
        out.found(
            Finding("hsperf-dir-owner", "warning", path,
                    f"belongs to {out.names.of_user(entry.file.uid)}, the JVM runs as {out.names.of_user(around.euid)}: a JVM that "
                    "starts keeps its counters to itself, and jps does not see it", _seen(out, entry), fix)
        )  # fmt: skip
    if entry.mode & _OTHERS_MAY_WRITE:
        mode = entry.mode & ~_OTHERS_MAY_WRITE
        fix = out.repair("hsperf-dir-mode", entry, "mapped", doubt, mode=mode)
        out.found(
            Finding("hsperf-dir-mode", "warning", path,
                    f"mode {entry.mode:04o} lets others write to it: a JVM that starts keeps its counters to itself, and jps does not "
                    "see it", _seen(out, entry), fix)
        )  # fmt: skip


def _check_file(out: _Check, around: Surroundings, entry: Entry, page_bytes: int, doubt: str | None) -> None:
    names, file, path = out.names, entry.file, entry.path
    doubt = doubt if file.links == 1 else f"it has {file.links} links"
    if file.uid != around.euid:
        fix = out.repair("hsperf-file-owner", entry, "mapped", doubt, owner=around.euid)
        out.found(
            Finding("hsperf-file-owner", "warning", path,
                    f"belongs to {names.of_user(file.uid)}, the JVM runs as {names.of_user(around.euid)}: its own user's jps and "
                    "jstat cannot read it", _seen(out, entry), fix)
        )  # fmt: skip
    if file.gid != around.egid:
        fix = out.repair("hsperf-file-group", entry, "mapped", doubt, group=around.egid)
        out.found(
            Finding("hsperf-file-group", "warning", path,
                    f"has the group {names.of_group(file.gid)}, the JVM runs with {names.of_group(around.egid)}; with mode 0600 "
                    "nothing goes by it", _seen(out, entry), fix)
        )  # fmt: skip
    if entry.mode != 0o600:
        fix = out.repair("hsperf-file-mode", entry, "mapped", doubt, mode=0o600)
        risk = (
            "others can read or change its counters and command line"
            if entry.mode & 0o066
            else "its own user cannot read it"
        )
        out.found(
            Finding(
                "hsperf-file-mode",
                "warning",
                path,
                f"mode {entry.mode:04o} instead of 0600: {risk}",
                _seen(out, entry),
                fix,
            )
        )
    if file.links != 1:
        out.found(
            Finding("hsperf-file-links", "warning", path, f"has {file.links} links: jps and jstat refuse it as not secure",
                    _seen(out, entry), command("find", path.rpartition("/")[0].rpartition("/")[0], "-xdev", "-inum", file.inode))
        )  # fmt: skip
    if file.size_bytes == 0 or file.size_bytes % page_bytes:
        out.found(
            Finding("hsperf-file-size", "warning", path,
                    f"has {file.size_bytes} bytes, no whole number of pages: somebody cut it; reading it may kill the JVM (SIGBUS)",
                    _seen(out, entry), "restart the JVM")
        )  # fmt: skip


# Which client could attach


def clients(around: Surroundings, names: Names) -> Iterable[ClientVerdict]:
    """What jstack of each kind, and opskit, would meet now."""
    user = names.user(around.euid)
    yield _verdict("jstack of JDK 8 as root", _refusal(around, names, uid=0, gid=0, old=True))
    yield _verdict("jstack of JDK 11+ as root", _refusal(around, names, uid=0, gid=0, old=False))
    if around.euid != 0:
        yield _verdict(f"jstack as {user}", _refusal(around, names, uid=around.euid, gid=around.egid, old=False))
    yield _verdict("opskit as root", _opskit_refusal(around))


def _verdict(client: str, refusal: str | None) -> ClientVerdict:
    if refusal == _HIDDEN:
        return ClientVerdict(client, None, "its /tmp cannot be looked into from here")
    return ClientVerdict(client, refusal is None, refusal)


def _refusal(around: Surroundings, names: Names, *, uid: int, gid: int, old: bool) -> str | None:
    """Why the JDK's client is refused; None where it is not. `old`: JDK 8's, which makes no exception for root."""
    if around.disabled:
        return "started with -XX:+DisableAttachMechanism"
    if around.stopped:
        return "it is stopped: the client hangs"
    if around.tmp is None:
        return _HIDDEN
    if old and not around.tmp.shared:
        return "it looks in its own /tmp, not in the JVM's"
    if old and around.jvm.ns_pid != around.pid:
        return f"it looks for .java_pid{around.pid}; the JVM, {around.jvm.ns_pid} in its own pid namespace, makes .java_pid{around.jvm.ns_pid}"
    if around.socket is None:
        refusal = _no_listener(around, old=old)
        if refusal is None and uid != around.euid and (old or around.java_major == 8):
            return f"{NOT_SECURE}: the socket will belong to {names.of_user(around.euid)}, and JDK 8 makes no exception for root"
        return refusal
    broken = _broken(around)
    if broken is not None:
        return broken
    entry = around.socket.entry
    exempt = uid == 0 and not old
    reasons = []
    if entry.file.uid != uid and not exempt:
        whose = f"the client as {names.of_user(uid)}" if entry.file.uid == around.euid else _runs_as(around, names)
        reasons.append(f"the owner of {entry.path} is {names.of_user(entry.file.uid)}, {whose}")
    if (entry.file.gid != gid or (reasons and entry.file.gid != around.egid)) and not exempt:
        whose = (
            f"the client has {names.of_group(gid)}"
            if entry.file.gid == around.egid
            else f"the JVM runs with group {names.of_group(around.egid)}"
        )
        reasons.append(f"the group of {entry.path} is {names.of_group(entry.file.gid)}, {whose}")
    if reasons:
        return f"{NOT_SECURE}: {'; '.join(reasons)}"
    if entry.mode & _CLIENT_MODE:
        return f"{NOT_SECURE}: {entry.path} has mode {entry.mode:04o}, others may read or write it"
    if uid != 0 and entry.file.uid == uid and entry.mode & 0o200 == 0:
        return f"Permission denied: {entry.path} has mode {entry.mode:04o}"
    if around.java_major == 8 and (uid, gid) != (around.euid, around.egid):
        return f"a JVM of JDK 8 takes only clients that run as it does: {names.of_user(around.euid)}"
    return None


def _runs_as(around: Surroundings, names: Names) -> str:
    return f"the JVM runs as {names.of_user(around.euid)}"


def _broken(around: Surroundings) -> str | None:
    """What is wrong with the socket for every client of the JDK."""
    socket = around.socket
    if socket is None:
        return None
    path = socket.entry.path
    if socket.entry.kind != "socket":
        return f"{path} is a {socket.entry.kind}, no socket"
    if socket.alive is False:
        return f"Connection refused: nobody listens on {path}"
    if socket.peer is not None and socket.peer != around.pid:
        return f"{path} is not its own: it would talk to process {socket.peer or 'unseen'} instead"
    return None


def _no_listener(around: Surroundings, *, old: bool) -> str | None:
    """Why the listener could not be started; None where it could."""
    if around.reduced:
        return (
            "never try: it sends SIGQUIT, which kills a JVM started with -Xrs"
            if old
            else "its socket was deleted; -Xrs makes no other"
        )
    if around.listener and not remakes(around.java_major):
        return "its socket was deleted, and it makes no other one before a restart"
    tmp = around.tmp
    if tmp is not None:
        if tmp.space.read_only:
            return f"{tmp.entry.path} is read-only: no socket can be made"
        if tmp.space.free_inodes == 0:
            return f"{tmp.entry.path} is full: no socket can be made"
        if not may_write(tmp.entry.file, around.euid, (around.egid, *around.groups)):
            return f"{tmp.entry.path} does not let the JVM make its socket"
    takes_root = around.java_major is None or around.java_major > 8
    for trigger in around.triggers:
        owner = trigger.entry.file.uid
        if trigger.in_cwd and owner != around.euid and not (owner == 0 and takes_root):
            return f"{trigger.entry.path} belongs to somebody else: no listener is started while it is there"
    return None


def _opskit_refusal(around: Surroundings) -> str | None:
    if around.disabled:
        return "started with -XX:+DisableAttachMechanism"
    if around.stopped:
        return "it is stopped"
    if around.tmp is None:
        return _HIDDEN
    if around.socket is None:
        return _no_listener(around, old=False)
    if around.socket.alive is False and around.socket.entry.kind == "socket" and not around.listener:
        return _no_listener(around, old=False)  # an orphan: the JVM's own socket takes its place
    return _broken(around)


# Leftovers


def check_leftovers(
    leftovers: Sequence[Leftover], names: Names, now_s: float, *, initial_namespace: bool
) -> tuple[list[Finding], list[Repair]]:
    """Judge the files of JVMs that have ended. Removed is only what is proven dead, from where everything is visible."""
    out = _Check(names, 0, initial_namespace=initial_namespace)
    gone: Severity = "warning" if initial_namespace else "note"
    ended = "which has ended" if initial_namespace else "which has ended, or runs where it cannot be seen from here"
    killed = "it was killed; the next JVM of that user cleans it up"
    for left in leftovers:
        out.pid, out.by_pid = left.pid, left.by_pid
        entry, path = left.entry, left.entry.path
        if left.kind == "socket":
            what = "nobody listens on it" if entry.kind == "socket" else f"a {entry.kind}, no socket"
            refused = None if entry.kind == "socket" else f"it is a {entry.kind}"
            fix = out.repair("attach-socket-leftover", entry, "dead", refused)
            out.found(
                Finding("attach-socket-leftover", "warning", path, f"{what}: left by process {left.pid}, which is no JVM now; a new "
                        "process of that pid would be taken for one that listens", _seen(out, entry), fix)
            )  # fmt: skip
        elif left.kind == "trigger":
            if now_s - entry.file.ctime_ns / 1e9 <= _TRIGGER_STAYS_S:
                continue
            fix = out.repair("attach-trigger-leftover", entry, "old", _not_a_trigger(entry))
            out.found(
                Finding("attach-trigger-leftover", gone, path,
                        f"the trigger of a client for process {left.pid}, {ended}", _seen(out, entry), fix)
            )  # fmt: skip
        else:
            odd = (
                None
                if entry.kind == "plain file" and entry.file.links == 1
                else f"it is a {entry.kind} with {entry.file.links} links"
            )
            doubt = None if left.locked is False and left.mapped is False else "not every process could be looked into"
            fix = out.repair("hsperf-leftover", entry, "dead", odd or doubt)
            out.found(
                Finding("hsperf-leftover", gone, path,
                        f"the counters of process {left.pid}, {ended}{f': {killed}' if initial_namespace else ''}",
                        _seen(out, entry), fix)
            )  # fmt: skip
    return out.findings, out.repairs


def once(findings: Iterable[Finding]) -> list[Finding]:
    """Each finding once: two JVMs that share a /tmp have what is wrong with it in common."""
    return list(dict.fromkeys(findings))
