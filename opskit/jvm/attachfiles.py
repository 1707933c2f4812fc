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
from typing import TYPE_CHECKING

from opskit.errors import BadInput
from opskit.jvm.attachtarget import (
    command_words,
    has_listener,
    major_of_jvm,
    reduced_signals,
    shares_our_mounts,
    why_stopped,
)
from opskit.jvm.launch import last_flag
from opskit.jvm.maps import Mapping, parse_jvm_maps
from opskit.proc.fs import DENIED, GONE, FileId, ProcFS, Space
from opskit.proc.stat import parse_stat
from opskit.proc.status import parse_status

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from opskit.jvm.discover import Jvm

_NAMES = re.compile(r"\.(java|attach)_pid(\d{1,9})")
_INITIAL_PID_NAMESPACE = b"pid:[4026531836]"  # include/linux/proc_ns.h, PROC_PID_INIT_INO
_LOCK = re.compile(r"^\d+: FLOCK +\S+ +\S+ +-?\d+ [0-9a-f]+:[0-9a-f]+:(\d+) ", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Entry:
    """A file at a place: `path` as it is reached from here. `inside` is its name where the JVM runs."""

    path: str
    inside: str
    file: FileId

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


@dataclass(frozen=True, slots=True)
class Socket:
    """An attach socket's place. `alive` False: nobody listens; None: not to be found out. `peer`: who does, 0 if unseen."""

    entry: Entry
    alive: bool | None
    peer: int | None


@dataclass(frozen=True, slots=True)
class Trigger:
    """A client's trigger file. The JVM looks into its working directory first, and into its /tmp only if nothing is there."""

    entry: Entry
    in_cwd: bool


@dataclass(frozen=True, slots=True)
class Tmp:
    """A /tmp. `shared`: it is the one that we have."""

    entry: Entry
    space: Space
    shared: bool


@dataclass(frozen=True, slots=True)
class Counters:
    """A JVM's hsperfdata. `mapping` is the file that it really has; `directory` and `entry` what lies at the name."""

    mapping: Mapping | None
    directory: Entry | None
    entry: Entry | None


@dataclass(frozen=True, slots=True)
class Surroundings:
    """All that was seen of one JVM. None: not to be found out with our rights.

    `disabled`, `reduced`: started with -XX:+DisableAttachMechanism, -Xrs. `perf_flag`: the option that switches the counters
    off. `stopped`: why it answers nobody now. `groups` are its supplementary ones.
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

    @property
    def pid(self) -> int:
        """Its pid here."""
        return self.jvm.pid


@dataclass(frozen=True, slots=True)
class Leftover:
    """A file of a JVM that is not there any more. `pid` as its name says. `alive` and `peer` for a socket.

    `locked`: somebody holds an flock on it; `mapped`: a process maps it; None: not all processes could be looked into.
    """

    pid: int
    kind: str
    entry: Entry
    tmp: str
    alive: bool | None = None
    peer: int | None = None
    locked: bool | None = None
    mapped: bool | None = None


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
        self._mapped: dict[int, int] | None = None
        self._hidden = False

    def look(self, jvm: Jvm) -> Surroundings:
        """Everything around one JVM. Raises GONE where it has ended."""
        fs, pid = self.fs, jvm.pid
        status = fs.load(parse_status, pid, "status")
        state = fs.load(parse_stat, pid, "stat").state
        words, environment = command_words(fs, pid)
        capable = jvm.perf.text("sun.rt.jvmCapabilities") if jvm.perf else None
        off = last_flag(words, environment, "DisableAttachMechanism") == "-XX:+DisableAttachMechanism"
        tmp = self._tmp(jvm)
        flags = (("UsePerfData", "-"), ("PerfDisableSharedMem", "+"))
        switched = (
            f"-XX:{bad}{name}" for name, bad in flags if last_flag(words, environment, name) == f"-XX:{bad}{name}"
        )
        return Surroundings(
            jvm=jvm,
            euid=status.effective_uid,
            egid=status.effective_gid,
            groups=tuple(int(word) for word in status.fields.get("Groups", "").split()),
            java_major=major_of_jvm(fs, jvm),
            tmp=tmp,
            socket=None if tmp is None else self._socket(tmp.entry, f".java_pid{jvm.ns_pid}"),
            listener=has_listener(fs, pid),
            triggers=tuple(self._triggers(jvm, tmp)),
            counters=self._counters(jvm, tmp, status.effective_uid),
            disabled=capable.startswith("0") if capable else off,
            reduced=reduced_signals(words, environment),
            perf_flag=next(switched, None),
            stopped=why_stopped(fs, pid, state),
            named=not (jvm.no_perf and "without a name" in str(jvm.no_perf)),
        )

    def _entry(self, path: str, inside: str) -> Entry | None:
        try:
            return Entry(path, inside, self.fs.file_id_at(path))
        except OSError:
            return None

    def _tmp(self, jvm: Jvm) -> Tmp | None:
        """Its own /tmp; ours where its mount namespace is closed to us, but it runs in our pid namespace."""
        try:
            path = self.fs.inside(jvm.pid, "/tmp")
        except OSError as error:
            closed = isinstance(error, PermissionError) and not shares_our_mounts(self.fs, jvm.pid)
            if closed or jvm.ns_pid != jvm.pid:
                return None
            path = self.ours
        return self._tmp_at(path)

    def _tmp_at(self, path: str) -> Tmp | None:
        entry, ours = self._entry(path, "/tmp"), self._entry(self.ours, "/tmp")
        if entry is None:
            return None
        shared = ours is not None and (ours.file.device, ours.file.inode) == (entry.file.device, entry.file.inode)
        if shared:  # the short name is the one to type
            entry = Entry(self.ours, "/tmp", entry.file)
        try:
            return Tmp(entry, self.fs.space_at(path), shared)
        except OSError:
            return None

    def _socket(self, tmp: Entry, name: str) -> Socket | None:
        entry = self._entry(f"{tmp.path}/{name}", f"/tmp/{name}")
        if entry is None:
            return None
        alive, peer = self.listener(entry.path) if entry.kind == "socket" else (False, None)
        return Socket(entry, alive, peer)

    def _triggers(self, jvm: Jvm, tmp: Tmp | None) -> Iterable[Trigger]:
        name = f".attach_pid{jvm.ns_pid}"
        places = []
        try:
            places.append(
                (self.fs.path(jvm.pid, "cwd"), self.fs.link(jvm.pid, "cwd").decode("utf-8", "surrogateescape"))
            )
        except OSError:
            pass
        if tmp is not None:
            places.append((tmp.entry.path, "/tmp"))
        seen = set()
        for path, inside in places:
            entry = self._entry(f"{path}/{name}", f"{inside.rstrip('/')}/{name}")
            if entry is not None and (entry.file.device, entry.file.inode) not in seen:
                seen.add((entry.file.device, entry.file.inode))
                yield Trigger(entry, in_cwd=(path, inside) == places[0] and len(places) == 1 + (tmp is not None))

    def _counters(self, jvm: Jvm, tmp: Tmp | None, euid: int) -> Counters | None:
        try:
            mapping = self.fs.load(parse_jvm_maps, jvm.pid, "maps").hsperfdata
        except (*GONE, DENIED):
            return None
        if tmp is None:
            return Counters(mapping, None, None)
        if mapping is not None:
            user = mapping.path.rpartition("/")[0].rpartition("/")[2]
        else:
            user = f"hsperfdata_{self.user_name(euid)}"
        directory = self._entry(f"{tmp.entry.path}/{user}", f"/tmp/{user}")
        name = f"{user}/{jvm.ns_pid}"
        return Counters(mapping, directory, self._entry(f"{tmp.entry.path}/{name}", f"/tmp/{name}"))

    def leftovers(
        self, around: list[Surroundings], jvms: Iterable[Jvm], alive: set[int], wanted: Sequence[int] | None = None
    ) -> list[Leftover]:
        """The files of JVMs that are not there any more, in our /tmp and in those of `around`.

        `jvms`: all that there are, each of which has its files in its own /tmp under its inner pid; `alive`: the pids that
        processes have, in any namespace seen from here; `wanted`: only what is named after these pids is looked at.
        """
        tmps: dict[tuple[int, int], Entry] = {}
        for tmp in [self._tmp_at(self.ours), *(each.tmp for each in around)]:
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
            if match and wanted is not None and int(match[2]) not in wanted:
                continue
            if match and match[1] == "java" and int(match[2]) not in jvms:
                socket = self._socket(tmp, name)
                if socket is not None and socket.alive is False:
                    yield Leftover(int(match[2]), "socket", socket.entry, tmp.path, socket.alive)
            elif match and match[1] == "attach" and int(match[2]) not in alive:
                entry = self._entry(f"{tmp.path}/{name}", f"/tmp/{name}")
                if entry is not None:
                    yield Leftover(int(match[2]), "trigger", entry, tmp.path)
            elif name.startswith("hsperfdata_"):
                yield from self._left_counters(tmp, name, jvms, alive, wanted)

    def _left_counters(
        self, tmp: Entry, user: str, jvms: set[int], alive: set[int], wanted: Sequence[int] | None
    ) -> Iterable[Leftover]:
        try:
            directory = self.fs.file_id_at(f"{tmp.path}/{user}")
            names = self.fs.names_at(f"{tmp.path}/{user}") if stat.S_ISDIR(directory.mode) else []
        except OSError:
            return
        for name in sorted(names):
            if not (name.isascii() and name.isdigit()) or int(name) in jvms:
                continue
            if wanted is not None and int(name) not in wanted:
                continue
            entry = self._entry(f"{tmp.path}/{user}/{name}", f"/tmp/{user}/{name}")
            if entry is None:
                continue
            locked, mapped = self.is_locked(entry.file.inode), self.is_mapped(entry.file.inode)
            if mapped or locked or (mapped is None and int(name) in alive):
                continue
            yield Leftover(int(name), "hsperfdata", entry, tmp.path, locked=locked, mapped=mapped)

    def is_locked(self, inode: int) -> bool | None:
        """Whether somebody holds an flock on a file of this inode, whatever the device. None: not to be found out."""
        if self._locks is None:
            try:
                self._locks = {int(match[1]) for match in _LOCK.finditer(self.fs.load(str, "locks"))}
            except (*GONE, DENIED):
                return None
        return inode in self._locks

    def is_mapped(self, inode: int) -> bool | None:
        """Whether any process maps an hsperfdata file of this inode. None: some could not be looked into."""
        return True if inode in self._holders() else None if self._hidden else False

    def holder(self, inode: int) -> int | None:
        """A process that maps an hsperfdata file of this inode; None where none is seen."""
        return self._holders().get(inode)

    def _holders(self) -> dict[int, int]:
        if self._mapped is None:
            self._mapped = {}
            for pid in self.fs.pids():
                try:
                    mapping = self.fs.load(parse_jvm_maps, pid, "maps").hsperfdata
                except GONE:
                    continue
                except DENIED:
                    self._hidden = True
                    continue
                if mapping is not None:
                    self._mapped[mapping.inode] = pid
        return self._mapped


def _identity(tmp: Tmp) -> tuple[int, int]:
    return tmp.entry.file.device, tmp.entry.file.inode


def sees_everything(fs: ProcFS) -> bool:
    """Whether we are in the initial pid namespace, where no process is hidden behind another one."""
    try:
        return fs.link("self", "ns", "pid") == _INITIAL_PID_NAMESPACE
    except OSError:
        return False


def inner_pids(fs: ProcFS) -> set[int]:
    """Every pid that a living process has in any namespace that is seen from here."""
    pids: set[int] = set()
    for pid in fs.pids():
        try:
            pids.update(fs.load(parse_status, pid, "status").ns_pids or (pid,))
        except (*GONE, DENIED, BadInput):
            pids.add(pid)
    return pids
