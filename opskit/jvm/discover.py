"""Finds the JVMs of a machine, and the hsperfdata file of each.

On a machine with hundreds of processes most are told apart by one stat: a JVM always has several threads. Of the others
/proc/PID/maps tells: a JVM maps libjvm, or at least its own hsperfdata file. That is also the only way to know whose file
/tmp/hsperfdata_USER/PID is: it may be left over from an earlier process of that pid, or belong to a JVM in a container
that shares /tmp and has the same pid inside.

Where maps may not be read (another user's process), its command line and its threads' names tell.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from opskit import shell
from opskit.errors import BadInput, NoSuchProcess, NotAJvm, NotPermitted, NotSupported, OpskitError
from opskit.jvm.launch import is_java_launcher, last_flag, main_of_command, main_of_words, parse_words
from opskit.jvm.mapped_files import Mapping, parse_jvm_maps
from opskit.jvm.native_image import is_native_image
from opskit.jvm.perfdata.hsperfdata import PerfData, parse_hsperfdata
from opskit.proc.files.boot_time import parse_boot_time, parse_uptime
from opskit.proc.files.mountinfo import parse_remote_mount_points
from opskit.proc.files.stat import parse_stat
from opskit.proc.files.status import Status, parse_status
from opskit.proc.files.uid_map import parse_id_map
from opskit.proc.fs import DENIED, GONE, FileId, ProcFS
from opskit.proc.process import command_name
from opskit.proc.rights import as_owner_or_root

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HOTSPOT: Literal["HotSpot"] = "HotSpot"
OPENJ9: Literal["OpenJ9"] = "OpenJ9"
NATIVE_IMAGE: Literal["native image"] = "native image"
Kind = Literal["HotSpot", "OpenJ9", "native image"]

_LARGEST_FILE_BYTES = 16 << 20  # -XX:PerfDataMemorySize is 32 KiB unless somebody sets it
_CLOCK_SLACK_MS = 2_000  # btime is in whole seconds
_YOUNG_S = 5.0
_FIRST_THREADS = 64  # HotSpot starts its own before the application's
_READY_TRIES, _READY_PAUSE_S = 40, 0.05


class Jvm(NamedTuple):
    """One JVM. `ns_pid` is its pid in its own pid namespace, `uid` its effective user.

    `main` is the main class, module or jar, as it was started; the program's name where none is known.
    `libjvm` is the library's path in the JVM's mount namespace. `perf` None: `no_perf` says why there are no counters.
    """

    pid: int
    ns_pid: int
    kind: Kind
    uid: int
    start_ticks: int | None
    main: str
    libjvm: str | None = None
    perf: PerfData | None = None
    no_perf: OpskitError | None = None


class Survey(NamedTuple):
    """One look over all processes: the JVMs in the order of pids; the pids that were looked at, hidden by the rights, gone."""

    jvms: list[Jvm]
    scanned: list[int]
    denied: list[int]
    vanished: list[int]


def find_jvms(fs: ProcFS, clock_ticks: int = 100) -> list[Jvm]:
    """Every JVM that can be seen, in the order of pids. `clock_ticks`: a second of the machine's has so many."""
    return survey(fs, clock_ticks).jvms


def survey(fs: ProcFS, clock_ticks: int = 100) -> Survey:
    """Every JVM, and how much of the machine could be seen; a process that vanishes meanwhile is normal."""
    finder = _Finder(fs, clock_ticks)
    result = Survey([], [], [], [])
    for pid in fs.pids():
        try:
            jvm = finder.look(pid)
        except GONE:
            (result.vanished if fs.is_live else result.denied).append(pid)
        except (DENIED, BadInput):
            result.denied.append(pid)
        else:
            result.scanned.append(pid)
            if jvm is not None:
                result.jvms.append(jvm)
    return result


def check_told(fs: ProcFS, found: Survey) -> None:
    """Raise NotSupported where a copy tells of no process whether it is a JVM."""
    if not fs.is_live and found.denied and not found.scanned:
        raise NotSupported(
            f"{fs.proc} is a copy without maps: it cannot tell which processes are JVMs; copy maps, cmdline, status, stat and "
            "task/*/comm of each, and /tmp/hsperfdata_*"
        )


def find_jvm(fs: ProcFS, pid: int, clock_ticks: int = 100) -> Jvm:
    """The JVM with this pid, of whatever kind. Raises NoSuchProcess, NotPermitted; NotAJvm, which says what it is instead."""
    if not fs.exists(pid):
        raise NoSuchProcess(pid, "opskit jvms lists the JVMs")
    try:
        status = fs.load(parse_status, pid, "status")
        name = status.fields.get("Name", "?")
        process = status.fields.get("Tgid", str(pid))
        if process != str(pid):
            raise NotAJvm(f"{pid} ({name}) is a thread of process {process}: give {process} instead")
        if status.fields.get("State", "").startswith(("Z", "X")):
            raise NotAJvm(f"{pid} ({name}) is a zombie: it has ended, and its parent has not asked how")
        jvm = _Finder(fs, clock_ticks).look(pid, thorough=True)
        if jvm is None and fs.load(parse_stat, pid, "stat").is_exiting:
            raise NoSuchProcess(pid, "it ended just now")
    except GONE as gone:
        if not fs.is_live:
            raise NotSupported(f"{gone.filename} is not in this copy: nothing tells whether {pid} is a JVM") from None
        raise NoSuchProcess(pid, "it ended just now") from None
    except DENIED:
        if not fs.is_live:
            raise NotSupported(
                f"{fs.path(pid, 'maps')} is not in this copy, or not whole: nothing tells whether {pid} is a JVM"
            ) from None
        raise NotPermitted(
            f"{pid} does not let itself be looked into, and has no JVM's name: nothing tells whether it is one; "
            f"{as_owner_or_root(fs, 'CAP_SYS_PTRACE', pid, status.effective_uid)}"
        ) from None
    if jvm is None:
        raise NotAJvm(
            f"{pid} ({name}) is no JVM: neither libjvm nor an hsperfdata file is mapped; opskit jvms lists the JVMs"
        )
    return jvm


def read_perfdata(fs: ProcFS, pid: int, sleep: Callable[[float], None] | None = None) -> PerfData:
    """The counters of a JVM, now. With `sleep` (seconds) it waits up to 2 s for a JVM that is just starting.

    Raises NoSuchProcess, NotAJvm, and where a JVM has no counters: NotPermitted (another user's), NotSupported (why).
    """
    tries = _READY_TRIES if sleep else 1
    while True:
        jvm = find_jvm(fs, pid)
        if jvm.perf is not None:
            return jvm.perf
        tries -= 1
        if sleep is None or not tries or not isinstance(jvm.no_perf, (_NotReady, BadInput)):
            raise jvm.no_perf or NotSupported(f"{pid} shares no counters")
        sleep(_READY_PAUSE_S)


class _NotReady(NotSupported):
    """The JVM has not made its counters yet."""


class _Finder:
    """Remembers, over a run, what is the same for many processes."""

    def __init__(self, fs: ProcFS, clock_ticks: int) -> None:
        self.fs, self.clock_ticks = fs, clock_ticks
        self._native: dict[tuple[int, int], bool] = {}  # an executable -> whether it is a native image
        self._remote: dict[bytes, list[str]] = {}  # a mount namespace -> where other machines' files are

    def look(self, pid: int, *, thorough: bool = False) -> Jvm | None:
        """The process as a JVM; None where it is none. `thorough` looks at those with a single thread, too.

        Raises GONE and DENIED.
        """
        if not thorough and self.fs.is_live and self.fs.thread_count(pid) < 2:
            return None
        try:
            maps = self.fs.load(parse_jvm_maps, pid, "maps")
        except DENIED:
            return self._without_maps(pid)
        except GONE:
            if self.fs.is_live:
                raise
            return self._without_maps(pid)
        if not (maps.is_jvm or self.fs.is_live or self.fs.read(pid, "maps")):  # as tar copies it
            stat = self.fs.load(parse_stat, pid, "stat")
            return None if stat.is_kernel_thread or stat.state in ("Z", "X") else self._without_maps(pid)
        native = not (maps.libjvm or maps.openj9) and self._is_native_image(pid)
        if not (native or maps.is_jvm):
            return None
        status = self.fs.load(parse_status, pid, "status")
        if maps.openj9:
            reason = NotSupported(f"{pid} is an OpenJ9 JVM: it shares no hsperfdata counters, as HotSpot does")
            return self._jvm(pid, status, OPENJ9, maps.openj9.path, reason)
        perf = self._mapped_file(pid, status, maps.hsperfdata)
        if not native:
            return self._jvm(pid, status, HOTSPOT, maps.libjvm.path if maps.libjvm else None, perf)
        if not isinstance(perf, PerfData):
            perf = NotSupported(
                f"{pid} is a GraalVM native image, no JVM: it shares counters only if it was built with "
                "--enable-monitoring=jvmstat"
            )
        return self._jvm(pid, status, NATIVE_IMAGE, None, perf)

    def _mapped_file(self, pid: int, status: Status, mapping: Mapping | None) -> PerfData | OpskitError:
        """The counters of the file that the process maps, or why there are none."""
        if mapping is None:
            return self._why_none(pid, status)
        named = []
        if not mapping.deleted:
            for file, data, path in self._files_at(pid, mapping.path):
                if file.inode == mapping.inode:
                    return _parsed(pid, data, path)
                named.append((data, path))
        try:  # deleted by a cleaner of /tmp, or on a file system whose inode numbers are others in maps
            path = self.fs.path(pid, "map_files", mapping.addresses)
            return _parsed(pid, self.fs.read_path(path, _LARGEST_FILE_BYTES), f"{mapping.path} of {pid}")
        except OSError:  # only root may, and only where the kernel has it
            pass
        for data, path in named:
            perf = _parsed(pid, data, path)
            if not isinstance(perf, PerfData) or self._began_after_start(pid, perf):
                return perf
        if not self.fs.is_live:
            return NotSupported(f"{pid} shares counters in {mapping.path}, which this copy does not hold")
        gone = "was deleted (by a cleaner of /tmp?)" if mapping.deleted else "is not there for us"
        return NotSupported(f"{pid} shares counters in {mapping.path}, which {gone}; root can read it all the same")

    def _files_at(self, pid: int, path: str) -> Iterator[tuple[FileId, bytes, str]]:
        """The file of that path in the process's own mount namespace, then in ours."""
        directory, _, name = path.rpartition("/")
        for place in ("its own", "ours"):
            try:
                at = self.fs.inside(pid, directory) if place == "its own" else f"{self.fs.root}{directory}"
                file, data = self.fs.read_untrusted(at, name, _LARGEST_FILE_BYTES)
            except OSError:  # not there, not ours to read, or no file that a JVM has made
                continue
            yield file, data, f"{at}/{name}"

    def _without_maps(self, pid: int) -> Jvm | None:
        """What can be said of a process that does not let itself be looked into. Raises DENIED where it is nothing."""
        status = self.fs.load(parse_status, pid, "status")
        if not is_java_launcher(self._words(pid, "cmdline")) and not self._has_vm_thread(pid):
            raise PermissionError
        perf = self._own_file(pid, status)
        if perf is None:
            owner = status.effective_uid
            if not self.fs.is_live:
                lacking = NotSupported(f"{pid} is a JVM, whose counters this copy does not hold")
                return self._jvm(pid, status, HOTSPOT, None, lacking)
            reason = NotPermitted(
                f"{pid} is a JVM of uid {owner}, whose counters only that user and root may read; "
                f"{as_owner_or_root(self.fs, 'CAP_SYS_PTRACE CAP_DAC_READ_SEARCH', pid, owner)}"
            )
            return self._jvm(pid, status, HOTSPOT, None, reason)
        return self._jvm(pid, status, HOTSPOT, None, perf)

    def _own_file(self, pid: int, status: Status) -> PerfData | None:
        """A file in our /tmp that is surely the process's: of its owner, and begun after it. The newest of several users'."""
        name = str((status.ns_pids or (pid,))[-1])
        tmp = f"{self.fs.root}/tmp"
        found = []
        try:
            users = [user for user in self.fs.names_at(tmp) if user.startswith("hsperfdata_")]
        except OSError:
            users = []
        for user in users:
            try:
                file, data = self.fs.read_untrusted(f"{tmp}/{user}", name, _LARGEST_FILE_BYTES)
            except OSError:
                continue
            if file.uid == status.effective_uid or not self.fs.is_live:  # a copy may be anybody's
                found.append((file.ctime_ns, data, f"{tmp}/{user}/{name}"))
        if not found:
            return None
        _, data, path = max(found)
        perf = _parsed(pid, data, path)
        return perf if isinstance(perf, PerfData) and self._began_after_start(pid, perf) else None

    def _jvm(self, pid: int, status: Status, kind: Kind, libjvm: str | None, perf: PerfData | OpskitError) -> Jvm:
        start = self.fs.load(parse_stat, pid, "stat").start_ticks
        counters, reason = (perf, None) if isinstance(perf, PerfData) else (None, perf)
        main = main_of_command(counters.text("sun.rt.javaCommand") or "") if counters else None
        if main is None:
            words = self._words(pid, "cmdline")
            main = main_of_words(words) if is_java_launcher(words) else None
        return Jvm(
            pid, (status.ns_pids or (pid,))[-1], kind, status.effective_uid, start, main or command_name(self.fs, pid),
            libjvm, counters, reason,
        )  # fmt: skip

    def _words(self, pid: int, name: str) -> list[str]:
        """Of cmdline or environ; none where the rights do not suffice, or a copy lacks it. Raises GONE."""
        try:
            return self.fs.load(parse_words, pid, name)
        except DENIED:
            return []
        except GONE:
            if self.fs.is_live:
                raise
            return []

    def _has_vm_thread(self, pid: int) -> bool:
        """Whether one of the first threads has the name that HotSpot gives (JDK 9 and later). Names are open to all."""
        try:
            tids = self.fs.tids(pid)
        except GONE:
            if self.fs.is_live:
                raise
            return False
        for tid in tids[:_FIRST_THREADS]:
            try:
                if self.fs.read(pid, "task", tid, "comm") == b"VM Thread\n":
                    return True
            except (*GONE, DENIED):
                continue
        return False

    def _began_after_start(self, pid: int, perf: PerfData) -> bool:
        """Whether these counters began after the process did: those of an earlier process of this pid did not."""
        began_ms = perf.number("sun.rt.createVmBeginTime")
        if not began_ms:
            return False
        try:
            boot_s = self.fs.load(parse_boot_time, "stat")
        except (*GONE, BadInput):
            return False
        start_ticks = self.fs.load(parse_stat, pid, "stat").start_ticks
        return began_ms >= boot_s * 1000 + start_ticks * 1000 // self.clock_ticks - _CLOCK_SLACK_MS

    def _is_native_image(self, pid: int) -> bool:
        """By its executable; one that lies on another machine is not touched: that may hang."""
        try:
            if self._is_remote(pid):
                return False
            exe = self.fs.file_id(pid, "exe")
            key = (exe.device, exe.inode)
            if key not in self._native:
                path = self.fs.path(pid, "exe")
                self._native[key] = is_native_image(lambda offset, size: self.fs.read_at(path, offset, size))
        except OSError:
            return False
        return self._native[key]

    def _is_remote(self, pid: int) -> bool:
        try:
            namespace = self.fs.link(pid, "ns", "mnt")
        except OSError:
            namespace = b""
        if namespace not in self._remote:
            try:
                self._remote[namespace] = self.fs.load(parse_remote_mount_points, pid, "mountinfo")
            except (OSError, BadInput):
                self._remote[namespace] = []
        points = self._remote[namespace]
        exe = self.fs.link(pid, "exe").decode("utf-8", "surrogateescape") if points else ""
        return any(exe.startswith(point.rstrip("/") + "/") for point in points)

    def _why_none(self, pid: int, status: Status) -> OpskitError:
        words, environment = self._words(pid, "cmdline"), self._words(pid, "environ")
        for name, bad in (("UsePerfData", "-"), ("PerfDisableSharedMem", "+")):
            if last_flag(words, environment, name) == f"-XX:{bad}{name}":
                return NotSupported(f"{pid} was started with -XX:{bad}{name}: it shares no counters")
        uid = status.effective_uid
        if not self._has_passwd_entry(pid, uid):
            return NotSupported(
                f"{pid} shares no counters: HotSpot makes no hsperfdata file for a user without a name, "
                f"and uid {uid} has no passwd entry where it runs"
            )
        if self._is_young(pid):
            return _NotReady(f"{pid} is just starting: it has not shared its counters yet")
        return NotSupported(
            f"{pid} shares no counters: no hsperfdata file is mapped, and its command line does not say why; "
            f"{shell.command('opskit', 'hsperf-check', pid)} looks further"
        )

    def _is_young(self, pid: int) -> bool:
        start_s = self.fs.load(parse_stat, pid, "stat").start_ticks / self.clock_ticks
        try:
            return self.fs.load(parse_uptime, "uptime") - start_s < _YOUNG_S
        except (*GONE, BadInput):  # a captured tree without it
            return False

    def _has_passwd_entry(self, pid: int, uid: int) -> bool:
        """Whether the user has a name where the process runs; yes where that cannot be read."""
        try:
            inner = self.fs.load(parse_id_map, pid, "uid_map").inner(uid)
            lines = self.fs.read_inside(pid, "/etc/passwd", _LARGEST_FILE_BYTES).split(b"\n")
        except (OSError, BadInput):
            return True
        return inner is None or any(line.split(b":")[2:3] == [b"%d" % inner] for line in lines)


def _parsed(pid: int, data: bytes, source: str) -> PerfData | OpskitError:
    try:
        perf = parse_hsperfdata(data, source)
    except BadInput as error:
        return error
    return perf if perf.accessible else _NotReady(f"{pid} is just starting: {source} is not complete yet")
