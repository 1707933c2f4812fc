"""The files by which tools read a JVM or attach to it: its /tmp, hsperfdata, socket and triggers. Reads only.

/tmp/hsperfdata_app/4242   its counters (perfMemory_posix.cpp)
/tmp/.java_pid4242         its attach socket (attachListener_posix.cpp)
CWD/.attach_pid4242        a client's trigger file, there while the listener starts
"""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING, Literal

from opskit.jvm.attach import target as targets
from opskit.jvm.attach.descriptors import Shortage, shortage
from opskit.jvm.attach.listener import listener_at
from opskit.jvm.attach.printed_dump import PrintedDump, printed_dump
from opskit.jvm.discover import Nameless, user_inside
from opskit.jvm.launch import last_flag
from opskit.jvm.mapped_files import parse_jvm_maps
from opskit.jvm.perfdata.holders import Holders, mapped_file
from opskit.proc.file_id import FileId, kind_of
from opskit.proc.files.stat import parse_stat
from opskit.proc.files.status import parse_status
from opskit.proc.fs import GONE, ProcFS, optional
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from opskit.jvm.attach.listening import ListeningSockets
    from opskit.jvm.discover import Jvm
    from opskit.proc.file_space import Space
    from opskit.proc.files.maps import Mapping


class Location(NamedTuple):
    """How a directory is reached: from the root or working directory of a process, through `steps`, none of them a link.

    `pid` None: from our own root. `start_ticks` identifies the process. `refused`: why nothing is changed there.
    """

    pid: int | None
    start_ticks: int | None
    start: Literal["root", "cwd"]
    steps: tuple[str, ...]
    refused: str | None = None


class Entry(NamedTuple):
    """A file: `path` as shown here, `inside` as it is called where the JVM runs.

    `location` leads to the /tmp or the working directory, `names` from there to the file. Without a location nothing is changed.
    """

    path: str
    inside: str
    file: FileId
    location: Location | None = None
    names: tuple[str, ...] = ()

    @property
    def mode(self) -> int:
        """Its permission bits."""
        return stat.S_IMODE(self.file.mode)

    @property
    def kind(self) -> str:
        """Its file type in words."""
        return kind_of(self.file.mode)


class Socket(NamedTuple):
    """What is at an attach socket's path. `alive`: whether a process listens, None: unknown. `peer`: its PID, 0 if not visible."""

    entry: Entry
    alive: bool | None
    peer: int | None


class Trigger(NamedTuple):
    """A client's trigger file. The JVM looks into its working directory first, and into its /tmp only if nothing is there."""

    entry: Entry
    in_cwd: bool


class Tmp(NamedTuple):
    """A /tmp. `shared`: it is ours."""

    entry: Entry
    space: Space
    shared: bool

    @property
    def key(self) -> tuple[int, int]:
        """Its device and inode."""
        return self.entry.file.device, self.entry.file.inode


class Counters(NamedTuple):
    """A JVM's hsperfdata. `mapping` is the file that it maps; `directory` and `entry` are what is at the name.

    `mapped` is the mapped file's identity; None where /proc/PID/map_files may not be read. The inode number in `mapping` proves
    nothing: other file systems use the same numbers. `holder`: the process that maps the file at the name, where it is another.
    """

    mapping: Mapping | None
    directory: Entry | None
    entry: Entry | None
    mapped: FileId | None = None
    holder: int | None = None

    @property
    def is_own(self) -> bool:
        """Whether the file at the name is the mapped one; by the number alone where no more is known."""
        if self.mapping is None or self.entry is None:
            return False
        file = self.entry.file
        return file.inode == self.mapping.inode if self.mapped is None else _same_file(file, self.mapped)


class Surroundings(NamedTuple):
    """Everything seen around one JVM. None: unknown with our rights.

    `groups`: supplementary. `disabled`, `reduced`: started with -XX:+DisableAttachMechanism, -Xrs. `perf_flag`: the option that
    switches hsperfdata off. `named`: its user has a passwd entry where it runs. `user`: that name, part of the directory's name.
    `shortage`: of file descriptors, None: it has enough. `printed`: the dump after `kill -3`, None: it prints none.
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
    stopped: targets.Stopped | None
    named: bool
    user: str | None = None
    shortage: Shortage | None = None
    printed: PrintedDump | None = None

    @property
    def pid(self) -> int:
        """Its PID in our namespace."""
        return self.jvm.pid


class FileFinder:
    """Looks at the files around JVMs. `user_name`: the name of a uid, or its number as text.

    `listening`: what listens, by which it connects to no socket; then it also reads the maps of no other process.
    """

    def __init__(self, fs: ProcFS, user_name: Callable[[int], str], listening: ListeningSockets | None = None) -> None:
        self.fs, self.user_name, self.listening = fs, user_name, listening
        self.ours = f"{fs.root}/tmp"
        self.holders = Holders(fs, scans=listening is None)
        self._is_own = fs.is_own()

    def look(self, jvm: Jvm) -> Surroundings:
        """Everything around one JVM. Raises GONE where it has ended."""
        fs, pid = self.fs, jvm.pid
        status = fs.load(parse_status, pid, "status")
        state = fs.load(parse_stat, pid, "stat").state
        words, environment = targets.command_words(fs, pid)
        # A copy has its own inodes, owners and times, and no sockets: its /tmp is not the machine's.
        tmp = self.tmp_of(jvm) if fs.is_live else None
        listener, name = self._has_listener(pid), f".java_pid{jvm.ns_pid}"
        listens = bool(listener and tmp and self.entry_in(tmp.entry, name))
        lacking = shortage(fs, pid, listens=listens) if self._is_own else None
        flags = ("-XX:-UsePerfData", "-XX:+PerfDisableSharedMem")
        switched = (flag for flag in flags if last_flag(words, environment, flag[5:]) == flag)
        return Surroundings(
            jvm=jvm,
            euid=status.effective_uid,
            egid=status.effective_gid,
            groups=status.groups,
            java_major=targets.major_of_jvm(fs, jvm),
            tmp=tmp,
            # Without a descriptor for the next client, accept(2) fails, and the listener ends: such a JVM is left alone.
            socket=None if tmp is None else self.socket(tmp.entry, name, jvm, connects=lacking is None),
            listener=listener,
            triggers=tuple(self._triggers(jvm, tmp)) if fs.is_live else (),
            counters=self._counters(jvm, tmp, status.effective_uid),
            disabled=targets.is_disabled(fs, jvm),
            reduced=targets.reduced_signals(words, environment),
            perf_flag=next(switched, None),
            stopped=targets.why_stopped(fs, pid, state),
            named=not isinstance(jvm.no_perf, Nameless),
            user=self._user_where_it_runs(jvm.pid, status.effective_uid, tmp),
            shortage=lacking,
            printed=printed_dump(fs, jvm) if self._is_own else None,
        )

    def _has_listener(self, pid: int) -> bool | None:
        try:
            return targets.has_listener(self.fs, pid)
        except GONE:
            if self.fs.is_live:
                raise
            return None

    def _entry(
        self, path: str, inside: str, location: Location | None = None, names: tuple[str, ...] = ()
    ) -> Entry | None:
        file = optional(self.fs.file_id_at, path)
        return None if file is None else Entry(path, inside, file, location, names)

    def entry_in(self, directory: Entry, *names: str) -> Entry | None:
        """A file in a /tmp or a working directory; None where there is none."""
        name = "/".join(names)
        return self._entry(
            f"{directory.path}/{name}", f"{directory.inside.rstrip('/')}/{name}", directory.location, names
        )

    def socket(self, tmp: Entry, name: str, jvm: Jvm | None = None, *, connects: bool = True) -> Socket | None:
        """The socket at a name; None where nothing is there. `jvm`: whose it should be; None: one that has ended.

        Without `listening`, and unless told not to, connects to it and closes; nothing is sent.
        """
        entry = self.entry_in(tmp, name)
        if entry is None or entry.kind != "socket":
            return entry and Socket(entry, False, None)
        if self.listening is not None:
            alive, peer = self.listening.of_jvm(jvm, name) if jvm else (self.listening.is_anywhere(name), None)
            return Socket(entry, alive, peer)
        if not (self._is_own and connects):
            return Socket(entry, None, None)
        return Socket(entry, *optional(self.fs.calls.ask, listener_at, entry.path, default=(None, None)))

    def _location(self, jvm: Jvm, start: Literal["root", "cwd"], path: str) -> Location:
        """The location of a path below PROC/PID/root or PROC/PID/cwd."""
        steps = path[len(self.fs.path(jvm.pid, start)) :].split("/")[1:]
        return Location(jvm.pid, jvm.start_ticks, start, tuple(steps), self._why_not_there(jvm.pid))

    def _why_not_there(self, pid: int) -> str | None:
        """Why a process's files are not ours to change: in a user namespace of its own it chooses what is mounted where."""
        ours, theirs = (optional(self.fs.link, who, "ns", "user") for who in ("self", pid))
        if ours is not None and theirs is None:  # ours is None in another machine's tree
            return f"the user namespace of {pid} cannot be read"
        return None if ours in (None, theirs) else f"{pid} runs in another user namespace: run opskit inside of it"

    def tmp_of(self, jvm: Jvm) -> Tmp | None:
        """Its own /tmp; ours where its mount namespace is closed to us, but it runs in our PID namespace."""
        try:
            path = self.fs.inside(jvm.pid, "/tmp")
        except OSError:
            return self._tmp_at(self.ours, None) if targets.has_our_tmp(self.fs, jvm) else None
        return self._tmp_at(path, self._location(jvm, "root", path))

    def our_tmp(self) -> Tmp | None:
        """The /tmp that we have."""
        return self._tmp_at(self.ours, Location(None, None, "root", tuple(self.ours.split("/")[1:])))

    def _tmp_at(self, path: str, location: Location | None) -> Tmp | None:
        entry, ours = self._entry(path, "/tmp", location), self._entry(self.ours, "/tmp")
        space = optional(self.fs.space_at, path)
        if entry is None or space is None:
            return None
        shared = ours is not None and _same_file(ours.file, entry.file)
        return Tmp(Entry(self.ours, "/tmp", entry.file, location) if shared else entry, space, shared)

    def _user_where_it_runs(self, pid: int, euid: int, tmp: Tmp | None) -> str | None:
        """Its user's name: by our passwd file where it has our /tmp, else by its own."""
        if tmp is None or not tmp.shared:
            return user_inside(self.fs, pid, euid) or None
        name = self.user_name(euid)
        return None if name == str(euid) else name

    def _triggers(self, jvm: Jvm, tmp: Tmp | None) -> Iterator[Trigger]:
        cwd, link = None, optional(self.fs.link, jvm.pid, "cwd")
        if link is not None:
            path = self.fs.path(jvm.pid, "cwd")
            cwd = self._entry(path, link.decode("utf-8", "surrogateescape"), self._location(jvm, "cwd", path))
        first = self.entry_in(cwd, f".attach_pid{jvm.ns_pid}") if cwd is not None else None
        if first is not None:
            yield Trigger(first, in_cwd=True)
        second = self.entry_in(tmp.entry, f".attach_pid{jvm.ns_pid}") if tmp is not None else None
        if second is not None and (first is None or not _same_file(first.file, second.file)):
            yield Trigger(second, in_cwd=False)

    def _counters(self, jvm: Jvm, tmp: Tmp | None, euid: int) -> Counters | None:
        maps = self.fs.maybe(parse_jvm_maps, jvm.pid, "maps", strict=True)
        if maps is None:
            return None
        mapping = maps.hsperfdata
        mapped = None if mapping is None else mapped_file(self.fs, jvm.pid, mapping)
        if tmp is None:
            return Counters(mapping, None, None, mapped)
        user = mapping.path.rpartition("/")[0].rpartition("/")[2] if mapping is not None else ""
        if not user.startswith("hsperfdata_"):
            user = f"hsperfdata_{self.user_name(euid)}"
        directory, entry = self.entry_in(tmp.entry, user), self.entry_in(tmp.entry, user, str(jvm.ns_pid))
        found = Counters(mapping, directory, entry, mapped)
        if entry is None or found.is_own:
            return found
        return found._replace(holder=self.holders.holder(entry.file))


def _same_file(one: FileId, other: FileId) -> bool:
    return (one.device, one.inode) == (other.device, other.inode)
