"""What lies around a JVM for those who look at it or attach to it: its /tmp, hsperfdata, socket and triggers. Reads only.

    /tmp/hsperfdata_app/4242   its counters (perfMemory_posix.cpp)
    /tmp/.java_pid4242         its attach socket (attachListener_posix.cpp)
    CWD/.attach_pid4242        a client's trigger, there for the moments that the listener's start takes

`listener` (attach.listener_at) connects to a socket and asks the kernel who listens; nothing is sent.
"""

from __future__ import annotations

import re
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

from opskit.errors import BadInput
from opskit.jvm.attach.target import (
    command_words,
    has_listener,
    major_of_jvm,
    reduced_signals,
    shares_our_mounts,
    why_stopped,
)
from opskit.jvm.launch import last_flag
from opskit.jvm.mapped_files import Mapping, parse_jvm_maps
from opskit.proc.files.stat import parse_stat
from opskit.proc.files.status import parse_status
from opskit.proc.fs import DENIED, GONE, FileId, ProcFS, Space
from opskit.proc.namespaces import in_initial
from opskit.quantities import integer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from opskit.jvm.discover import Jvm

_NAMES = re.compile(r"\.(java|attach)_pid([1-9][0-9]{0,8})")
_PID = re.compile(r"[1-9][0-9]{0,8}")
_LOCK = re.compile(r"^[0-9]+: FLOCK +\S+ +\S+ +-?[0-9]+ [0-9a-f]+:[0-9a-f]+:([0-9]{1,20}) ", re.MULTILINE)
_LARGEST_PASSWD_BYTES = 1 << 20


class Way(NamedTuple):
    """How a directory is reached: from the root or the working directory of a process, through `steps`, none of them a link.

    `pid` None: from our own root. `start_ticks` tells the process from a later one of its pid. `refused`: why nothing is
    changed there.
    """

    pid: int | None
    start_ticks: int | None
    start: Literal["root", "cwd"]
    steps: tuple[str, ...]
    refused: str | None = None


@dataclass(frozen=True)
class Entry:
    """A file at a place: `path` as it is shown here, `inside` as it is called where the JVM runs.

    `way` leads to the /tmp or the working directory, `names` from there to the file. Without a way nothing is changed.
    """

    path: str
    inside: str
    file: FileId
    way: Way | None = None
    names: tuple[str, ...] = ()

    @property
    def mode(self) -> int:
        """Its permission bits."""
        return stat.S_IMODE(self.file.mode)

    @property
    def kind(self) -> str:
        """What it is, in words."""
        names = {
            stat.S_IFSOCK: "socket",
            stat.S_IFREG: "plain file",
            stat.S_IFLNK: "symbolic link",
            stat.S_IFDIR: "directory",
            stat.S_IFIFO: "FIFO",
        }
        return names.get(stat.S_IFMT(self.file.mode), "device")


@dataclass(frozen=True)
class Socket:
    """An attach socket's place. `alive` False: nobody listens; None: not to be found out. `peer`: who does, 0 if unseen."""

    entry: Entry
    alive: bool | None
    peer: int | None


@dataclass(frozen=True)
class Trigger:
    """A client's trigger file. The JVM looks into its working directory first, and into its /tmp only if nothing is there."""

    entry: Entry
    in_cwd: bool


@dataclass(frozen=True)
class Tmp:
    """A /tmp. `shared`: it is the one that we have."""

    entry: Entry
    space: Space
    shared: bool


@dataclass(frozen=True)
class Counters:
    """A JVM's hsperfdata. `mapping` is the file that it really has; `directory` and `entry` what lies at the name.

    `mapped` is that file's identity; None where /proc/PID/map_files may not be read. The inode number in `mapping` is no
    proof: other file systems have the same numbers.
    """

    mapping: Mapping | None
    directory: Entry | None
    entry: Entry | None
    mapped: FileId | None = None

    @property
    def is_own(self) -> bool:
        """Whether the file at the name is the one that the JVM has; by the number alone where no more is known."""
        if self.mapping is None or self.entry is None:
            return False
        if self.mapped is None:
            return self.entry.file.inode == self.mapping.inode
        return _same_file(self.entry.file, self.mapped)


@dataclass(frozen=True)
class Surroundings:
    """All that was seen of one JVM. None: not to be found out with our rights.

    `disabled`, `reduced`: started with -XX:+DisableAttachMechanism, -Xrs. `perf_flag`: the option that switches the counters
    off. `stopped`: why it answers nobody now. `groups` are its supplementary ones. `user` is its user's name where it runs,
    after which HotSpot names its directory.
    """

    jvm: Jvm
    euid: int
    egid: int
    groups: tuple[int, ...]
    java_major: int | None
    tmp: Tmp | None
    socket: Socket | None
    listener: bool | None
    triggers: tuple[Trigger, ...]
    counters: Counters | None
    disabled: bool
    reduced: bool
    perf_flag: str | None
    stopped: str | None
    named: bool
    user: str | None = None

    @property
    def pid(self) -> int:
        """Its pid here."""
        return self.jvm.pid


@dataclass(frozen=True)
class Leftover:
    """A file of a JVM that is not there any more. `pid` as its name says. `alive` and `peer` for a socket.

    `locked`: somebody holds an flock on it; `mapped`: a process maps it; None: not all processes could be looked into.
    `by_pid`: `opskit hsperf-check PID` finds it, since it lies in our /tmp and no process has the pid now.
    """

    pid: int
    kind: str
    entry: Entry
    tmp: str
    alive: bool | None = None
    peer: int | None = None
    locked: bool | None = None
    mapped: bool | None = None
    by_pid: bool = False


class FileFinder:
    """Looks around JVMs; remembers what is the same for all."""

    def __init__(
        self,
        fs: ProcFS,
        listener: Callable[[str], tuple[bool | None, int | None]],
        user_name: Callable[[int], str],
    ) -> None:
        self.fs, self.listener, self.user_name = fs, listener, user_name
        self.ours = f"{fs.root}/tmp"
        self._locks: set[int] | None = None
        self._mapped: dict[tuple[int, int], int] | None = None
        self._numbers: dict[int, int] = {}  # of the files that are mapped where map_files may not be read
        self._hidden = False

    def look(self, jvm: Jvm) -> Surroundings:
        """Everything around one JVM. Raises GONE where it has ended."""
        fs, pid = self.fs, jvm.pid
        status = fs.load(parse_status, pid, "status")
        state = fs.load(parse_stat, pid, "stat").state
        words, environment = command_words(fs, pid)
        capable = jvm.perf.text("sun.rt.jvmCapabilities") if jvm.perf else None
        off = last_flag(words, environment, "DisableAttachMechanism") == "-XX:+DisableAttachMechanism"
        # A copy has its own inodes, owners and times, and no sockets: nothing in its /tmp is the machine's.
        tmp = self._tmp(jvm) if fs.is_live else None
        flags = (("UsePerfData", "-"), ("PerfDisableSharedMem", "+"))
        switched = (
            f"-XX:{bad}{name}" for name, bad in flags if last_flag(words, environment, name) == f"-XX:{bad}{name}"
        )
        return Surroundings(
            jvm=jvm,
            euid=status.effective_uid,
            egid=status.effective_gid,
            groups=status.groups,
            java_major=major_of_jvm(fs, jvm),
            tmp=tmp,
            socket=None if tmp is None else self._socket(tmp.entry, f".java_pid{jvm.ns_pid}"),
            listener=self._has_listener(pid),
            triggers=tuple(self._triggers(jvm, tmp)) if fs.is_live else (),
            counters=self._counters(jvm, tmp, status.effective_uid),
            disabled=capable.startswith("0") if capable else off,
            reduced=reduced_signals(words, environment),
            perf_flag=next(switched, None),
            stopped=why_stopped(fs, pid, state),
            named=not (jvm.no_perf and "without a name" in str(jvm.no_perf)),
            user=self._user_where_it_runs(jvm.pid, status.effective_uid, tmp),
        )

    def _has_listener(self, pid: int) -> bool | None:
        try:
            return has_listener(self.fs, pid)
        except GONE:
            if self.fs.is_live:
                raise
            return None

    def _entry(self, path: str, inside: str, way: Way | None = None, names: tuple[str, ...] = ()) -> Entry | None:
        try:
            return Entry(path, inside, self.fs.file_id_at(path), way, names)
        except OSError:
            return None

    def _entry_in(self, directory: Entry, *names: str) -> Entry | None:
        """What lies in a /tmp or a working directory."""
        name = "/".join(names)
        return self._entry(f"{directory.path}/{name}", f"{directory.inside.rstrip('/')}/{name}", directory.way, names)

    def _way(self, jvm: Jvm, start: Literal["root", "cwd"], path: str) -> Way:
        """The way to a path below PROC/PID/root or PROC/PID/cwd."""
        steps = path[len(self.fs.path(jvm.pid, start)) :].split("/")[1:]
        return Way(jvm.pid, jvm.start_ticks, start, tuple(steps), self._why_not_there(jvm.pid))

    def _why_not_there(self, pid: int) -> str | None:
        """Why a process's files are none of ours to change: in a user namespace of its own it chooses what is mounted where."""
        try:
            ours = self.fs.link("self", "ns", "user")
        except OSError:  # another machine's tree
            return None
        try:
            if self.fs.link(pid, "ns", "user") == ours:
                return None
        except OSError:
            return f"the user namespace of {pid} cannot be read"
        return f"{pid} runs in another user namespace: run opskit inside of it"

    def _tmp(self, jvm: Jvm) -> Tmp | None:
        """Its own /tmp; ours where its mount namespace is closed to us, but it runs in our pid namespace."""
        try:
            path = self.fs.inside(jvm.pid, "/tmp")
        except OSError as error:
            closed = isinstance(error, PermissionError) and not shares_our_mounts(self.fs, jvm.pid)
            return None if closed or jvm.ns_pid != jvm.pid else self._tmp_at(self.ours, None)
        return self._tmp_at(path, self._way(jvm, "root", path))

    def _tmp_at(self, path: str, way: Way | None) -> Tmp | None:
        entry, ours = self._entry(path, "/tmp", way), self._entry(self.ours, "/tmp")
        if entry is None:
            return None
        shared = ours is not None and _same_file(ours.file, entry.file)
        if shared:  # the short name is the one to show
            entry = Entry(self.ours, "/tmp", entry.file, way)
        try:
            return Tmp(entry, self.fs.space_at(path), shared)
        except OSError:
            return None

    def _our_tmp(self) -> Tmp | None:
        return self._tmp_at(self.ours, Way(None, None, "root", tuple(self.ours.split("/")[1:])))

    def _user_where_it_runs(self, pid: int, euid: int, tmp: Tmp | None) -> str | None:
        """Its user's name: ours where it has our /tmp or our passwd file, else that in its own. Ids are those of our user namespace."""
        if tmp is not None and tmp.shared:
            return self._our_name(euid)
        try:
            directory, _, name = self.fs.inside(pid, "/etc/passwd").rpartition("/")
            theirs, content = self.fs.read_untrusted(directory, name, _LARGEST_PASSWD_BYTES)
            if _same_file(theirs, self.fs.file_id_at(f"{self.fs.root}/etc/passwd")):
                return self._our_name(euid)
        except OSError:
            return None
        users = (line.split(b":") for line in content.split(b"\n"))
        names = [words[0] for words in users if words[2:3] == [b"%d" % euid]]
        return names[0].decode("utf-8", "surrogateescape") if names else None

    def _our_name(self, uid: int) -> str | None:
        name = self.user_name(uid)
        return None if name == str(uid) else name

    def _socket(self, tmp: Entry, name: str) -> Socket | None:
        entry = self._entry_in(tmp, name)
        if entry is None:
            return None
        alive, peer = self.listener(entry.path) if entry.kind == "socket" else (False, None)
        return Socket(entry, alive, peer)

    def _triggers(self, jvm: Jvm, tmp: Tmp | None) -> Iterable[Trigger]:
        name = f".attach_pid{jvm.ns_pid}"
        cwd = None
        try:
            inside = self.fs.link(jvm.pid, "cwd").decode("utf-8", "surrogateescape")
            path = self.fs.path(jvm.pid, "cwd")
            cwd = self._entry(path, inside, self._way(jvm, "cwd", path))
        except OSError:
            pass
        seen = set()
        for place in (cwd, tmp.entry if tmp is not None else None):
            entry = self._entry_in(place, name) if place is not None else None
            if entry is not None and (entry.file.device, entry.file.inode) not in seen:
                seen.add((entry.file.device, entry.file.inode))
                yield Trigger(entry, in_cwd=place is cwd)

    def _counters(self, jvm: Jvm, tmp: Tmp | None, euid: int) -> Counters | None:
        try:
            mapping = self.fs.load(parse_jvm_maps, jvm.pid, "maps").hsperfdata
        except (*GONE, DENIED):
            return None
        mapped = None if mapping is None else self._mapped_file(jvm.pid, mapping)
        if tmp is None:
            return Counters(mapping, None, None, mapped)
        user = mapping.path.rpartition("/")[0].rpartition("/")[2] if mapping is not None else ""
        if not user.startswith("hsperfdata_"):
            user = f"hsperfdata_{self.user_name(euid)}"
        directory, entry = self._entry_in(tmp.entry, user), self._entry_in(tmp.entry, user, str(jvm.ns_pid))
        return Counters(mapping, directory, entry, mapped)

    def _mapped_file(self, pid: int, mapping: Mapping) -> FileId | None:
        """The file that a process maps, itself; None where the rights do not suffice to look (CAP_CHECKPOINT_RESTORE)."""
        try:
            return self.fs.file_id(pid, "map_files", mapping.addresses)
        except OSError:
            return None

    def leftovers(
        self, around: list[Surroundings], jvms: Iterable[Jvm], alive: set[int], wanted: Sequence[int] | None = None
    ) -> list[Leftover]:
        """The files of JVMs that are not there any more, in our /tmp and in those of `around`.

        `jvms`: all that there are, each of which has its files in its own /tmp under its inner pid; `alive`: the pids that
        processes have, in any namespace seen from here; `wanted`: only what is named after these pids is looked at.
        """
        tmps: dict[tuple[int, int], Entry] = {}
        for tmp in [self._our_tmp(), *(each.tmp for each in around)]:
            if tmp is not None:
                tmps.setdefault(_identity(tmp), tmp.entry)
        used: dict[tuple[int, int] | None, set[int]] = {}
        for jvm in jvms:
            tmp = self._tmp(jvm)
            used.setdefault(_identity(tmp) if tmp else None, set()).add(jvm.ns_pid)
        hidden = used.get(None, set())  # may be in any of them
        return [
            left
            for at, entry in tmps.items()
            for left in self._left_in(entry, used.get(at, set()) | hidden, alive, wanted)
        ]

    def _left_in(self, tmp: Entry, jvms: set[int], alive: set[int], wanted: Sequence[int] | None) -> Iterable[Leftover]:
        try:
            names = sorted(self.fs.names_at(tmp.path))
        except OSError:
            return
        for name in names:
            match = _NAMES.fullmatch(name)
            pid = integer(match[2]) if match else None
            if match and pid is not None:
                if wanted is not None and pid not in wanted:
                    continue
                by_pid = self._is_found_by(pid, tmp)
                if match[1] == "java" and pid not in jvms:
                    socket = self._socket(tmp, name)
                    if socket is not None and socket.alive is False:
                        yield Leftover(pid, "socket", socket.entry, tmp.path, socket.alive, by_pid=by_pid)
                elif match[1] == "attach" and pid not in alive:
                    entry = self._entry_in(tmp, name)
                    if entry is not None:
                        yield Leftover(pid, "trigger", entry, tmp.path, by_pid=by_pid)
            elif name.startswith("hsperfdata_"):
                yield from self._left_counters(tmp, name, jvms, alive, wanted)

    def _is_found_by(self, pid: int, tmp: Entry) -> bool:
        return tmp.path == self.ours and not self.fs.exists(pid)

    def _left_counters(
        self, tmp: Entry, user: str, jvms: set[int], alive: set[int], wanted: Sequence[int] | None
    ) -> Iterable[Leftover]:
        try:
            directory = self.fs.file_id_at(f"{tmp.path}/{user}")
            names = self.fs.names_at(f"{tmp.path}/{user}") if stat.S_ISDIR(directory.mode) else []
        except OSError:
            return
        for name in sorted(names):
            pid = integer(name) if _PID.fullmatch(name) else None
            if pid is None or pid in jvms or (wanted is not None and pid not in wanted):
                continue
            entry = self._entry_in(tmp, user, name)
            if entry is None:
                continue
            locked, mapped = self.is_locked(entry.file.inode), self.is_mapped(entry.file)
            if mapped or locked or (mapped is None and pid in alive):
                continue
            by_pid = self._is_found_by(pid, tmp)
            yield Leftover(pid, "hsperfdata", entry, tmp.path, locked=locked, mapped=mapped, by_pid=by_pid)

    def is_locked(self, inode: int) -> bool | None:
        """Whether somebody holds an flock on a file of this inode, whatever the device. None: not to be found out."""
        if self._locks is None:
            try:
                found = (integer(match[1]) for match in _LOCK.finditer(self.fs.load(str, "locks")))
                self._locks = {number for number in found if number is not None}
            except (*GONE, DENIED):
                return None
        return inode in self._locks

    def is_mapped(self, file: FileId) -> bool | None:
        """Whether any process maps this hsperfdata file. None: some could not be looked into."""
        return True if self.holder(file) is not None else None if self._hidden else False

    def holder(self, file: FileId) -> int | None:
        """A process that maps this hsperfdata file; by the number alone where map_files may not be read. None: none is seen."""
        return self._holders().get((file.device, file.inode)) or self._numbers.get(file.inode)

    def _holders(self) -> dict[tuple[int, int], int]:
        if self._mapped is None:
            self._mapped = {}
            for pid in self.fs.pids():
                try:
                    task = pid
                    maps = self.fs.load(str, pid, "maps")
                    if not maps and self._has_lost_its_leader(pid):
                        task, maps = self._maps_of_a_thread(pid)
                except GONE:
                    continue
                except DENIED:
                    self._hidden = True
                    continue
                mapping = parse_jvm_maps(maps).hsperfdata
                if mapping is None:
                    continue
                file = self._mapped_file(task, mapping)
                if file is None:
                    self._numbers[mapping.inode] = pid
                else:
                    self._mapped[file.device, file.inode] = pid
        return self._mapped

    def _has_lost_its_leader(self, pid: int) -> bool:
        """Whether its first thread has ended, and others go on: PROC/PID/maps is empty then. A kernel thread's always is."""
        status = self.fs.load(parse_status, pid, "status")
        return status.fields.get("State", "").startswith("Z") and status.threads != 1

    def _maps_of_a_thread(self, pid: int) -> tuple[int, str]:
        """A thread that has the process's memory still, and its maps. PROC/TID has all that PROC/PID has."""
        for tid in self.fs.tids(pid):
            try:
                maps = self.fs.load(str, tid, "maps")
            except GONE:
                continue
            if maps:
                return tid, maps
        raise ProcessLookupError(f"{pid} has ended")


def _same_file(one: FileId, other: FileId) -> bool:
    return (one.device, one.inode) == (other.device, other.inode)


def _identity(tmp: Tmp) -> tuple[int, int]:
    return tmp.entry.file.device, tmp.entry.file.inode


def sees_everything(fs: ProcFS) -> bool:
    """Whether we are in the initial pid namespace, where no process is hidden behind another one."""
    return in_initial(fs, "pid") is True


def inner_pids(fs: ProcFS) -> set[int]:
    """Every pid that a living process has in any namespace that is seen from here."""
    pids: set[int] = set()
    for pid in fs.pids():
        try:
            pids.update(fs.load(parse_status, pid, "status").ns_pids or (pid,))
        except (*GONE, DENIED, BadInput):
            pids.add(pid)
    return pids
