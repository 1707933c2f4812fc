"""Find the JVMs of a machine, and the hsperfdata file of each.

One stat excludes most processes: a JVM has several threads. Others are identified by /proc/PID/maps: a JVM maps libjvm, or at
least its own hsperfdata file. Only maps show whose file /tmp/hsperfdata_USER/PID is: it may be a leftover of an earlier
process with that PID, or belong to a JVM in a container that shares /tmp and has the same PID inside.

Where maps are unreadable (another user's process), the command line and the names of threads decide.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeVar

from opskit import shell
from opskit.errors import BadInput, NoSuchProcess, NotAJvm, NotPermitted, NotSupported, OpskitError
from opskit.jvm.launch import last_flag, main_of_command, main_of_words, parse_words
from opskit.jvm.mapped_files import parse_jvm_maps
from opskit.jvm.native_image import is_native_image
from opskit.jvm.perfdata.hsperfdata import PerfData, parse_hsperfdata
from opskit.proc.files.boot_time import age_s, parse_boot_time, parse_uptime, started_s
from opskit.proc.files.mountinfo import parse_remote_mount_points
from opskit.proc.files.stat import parse_stat
from opskit.proc.files.status import Status, parse_status
from opskit.proc.files.uid_map import parse_id_map
from opskit.proc.fs import DENIED, GONE, ProcFS, optional
from opskit.proc.kernel.names import user_by_uid
from opskit.proc.process import command_name
from opskit.proc.rights import as_owner_or_root
from opskit.proc.thread_names import thread_name
from opskit.records import NamedTuple
from opskit.words import is_java_launcher

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from opskit.proc.file_id import FileId
    from opskit.proc.files.maps import Mapping

T = TypeVar("T")
HOTSPOT: Literal["HotSpot"] = "HotSpot"
OPENJ9: Literal["OpenJ9"] = "OpenJ9"
NATIVE_IMAGE: Literal["native image"] = "native image"
Kind = Literal["HotSpot", "OpenJ9", "native image"]

_LARGEST_FILE_BYTES = 16 << 20  # -XX:PerfDataMemorySize is 32 KiB by default
_CLOCK_SLACK_S = 2.0  # btime is in whole seconds
_YOUNG_S = 5.0
_FIRST_THREADS = 64  # HotSpot starts its own threads first
_READY_TRIES, _READY_PAUSE_S = 40, 0.05


class Jvm(NamedTuple):
    """One JVM."""

    pid: int
    ns_pid: int  # in its own PID namespace
    kind: Kind
    uid: int  # effective
    start_ticks: int | None
    main: str  # the main class, module or jar, or else the program's name
    libjvm: str | None = None  # the library's path in the JVM's mount namespace
    perf: PerfData | None = None
    no_perf: OpskitError | None = None  # why there are no counters


class Survey(NamedTuple):
    """All JVMs, in the order of PIDs; the PIDs of all processes that were read, denied by missing rights, or ended."""

    jvms: list[Jvm]
    scanned: list[int]
    denied: list[int]
    vanished: list[int]


def find_jvms(fs: ProcFS, clock_ticks: int = 100) -> list[Jvm]:
    """Every visible JVM, in the order of PIDs. `clock_ticks` of the machine are a second."""
    return survey(fs, clock_ticks).jvms


def survey(fs: ProcFS, clock_ticks: int = 100) -> Survey:
    """Every visible JVM, and how many processes could be read. Processes may end meanwhile."""
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


def check_identifiable(fs: ProcFS, found: Survey) -> None:
    """Raise NotSupported for a copy in which no process can be identified."""
    if not fs.is_live and found.denied and not found.scanned:
        raise NotSupported(
            f"{fs.proc} is a copy without maps, in which JVMs cannot be identified; copy maps, cmdline, status, stat and "
            "task/*/comm of each process, and /tmp/hsperfdata_*"
        )


def find_jvm(fs: ProcFS, pid: int, clock_ticks: int = 100) -> Jvm:
    """The JVM with this PID, of any kind. Raises NoSuchProcess, NotPermitted, NotSupported; NotAJvm, which says what it is."""
    if not fs.exists(pid):
        raise NoSuchProcess(pid, "opskit jvms lists the JVMs")
    try:
        status = fs.load(parse_status, pid, "status")
        name = status.fields.get("Name", "?")
        process = status.fields.get("Tgid", str(pid))
        if process != str(pid):
            raise NotAJvm(f"{pid} ({name}) is a thread of process {process}: give {process} instead")
        if status.fields.get("State", "").startswith(("Z", "X")):
            has_others, others = (status.threads or 1) > 1, "its first thread has ended, and its other threads run on"
            why = others if has_others else "it has ended, and its parent has not reaped it"
            raise NotAJvm(f"{pid} ({name}) is a zombie: {why}")
        jvm = _Finder(fs, clock_ticks).look(pid, thorough=True)
        if jvm is None and fs.load(parse_stat, pid, "stat").is_exiting:
            raise NoSuchProcess(pid, "it ended just now")
    except GONE as gone:
        if not fs.is_live:
            raise NotSupported(f"{gone.filename} is not in this copy: whether {pid} is a JVM is unknown") from None
        raise NoSuchProcess(pid, "it ended just now") from None
    except DENIED:
        raise _unknown(fs, pid) from None
    if jvm is None:
        why = "it maps neither libjvm nor an hsperfdata file"
        raise NotAJvm(f"{pid} ({name}) is not a JVM: {why}; opskit jvms lists the JVMs")
    return jvm


def _unknown(fs: ProcFS, pid: int) -> OpskitError:
    """The error for a process that nothing identifies as a JVM, and whose maps (with hidepid=1 all files) are closed to us."""
    maps, unknown = fs.path(pid, "maps"), "is a JVM is unknown"
    if not fs.is_live:
        return NotSupported(f"{maps} is missing or incomplete in this copy: whether {pid} {unknown}")
    directory = optional(fs.file_id, pid)
    if directory is None:
        return NoSuchProcess(pid, "it ended just now")
    why = f"permission denied, and {pid} ({command_name(fs, pid)}) has no JVM's name"
    return NotPermitted(
        f"{maps}: {why}: whether it {unknown}; {as_owner_or_root(fs, 'CAP_SYS_PTRACE', pid, directory.uid)}"
    )


def read_perfdata(fs: ProcFS, pid: int, sleep: Callable[[float], None] | None = None) -> PerfData:
    """The counters of a JVM. With `sleep` it waits up to 2 s for a JVM that is just starting.

    Raises NoSuchProcess, NotAJvm; for a JVM without counters NotPermitted (another user's) or NotSupported (with the reason).
    """
    tries = _READY_TRIES if sleep else 1
    while True:
        jvm = find_jvm(fs, pid)
        if jvm.perf is not None:
            return jvm.perf
        tries -= 1
        if sleep is None or not tries or not isinstance(jvm.no_perf, (NotReady, BadInput)):
            raise jvm.no_perf or NotSupported(f"{pid} shares no counters")
        sleep(_READY_PAUSE_S)


class Nameless(NotSupported):
    """The JVM's user has no passwd entry where it runs."""


class NotReady(NotSupported):
    """The JVM has not made its counters yet."""


class _Finder:
    def __init__(self, fs: ProcFS, clock_ticks: int) -> None:
        self.fs, self.clock_ticks = fs, clock_ticks
        self._native: dict[tuple[int, int], bool] = {}  # an executable -> whether it is a native image
        self._remote: dict[bytes, list[str]] = {}  # a mount namespace -> where other machines' files are

    def look(self, pid: int, *, thorough: bool = False) -> Jvm | None:
        """The process as a JVM; None: it is not one. `thorough` includes those with a single thread. Raises GONE and DENIED."""
        if not thorough and self.fs.is_live and self.fs.thread_count(pid) < 2:
            return None
        maps = self._unless_denied(self.fs.load, parse_jvm_maps, pid, "maps")
        if maps is None:
            return self._without_maps(pid)
        if not (maps.is_jvm or self.fs.is_live or self.fs.read(pid, "maps")):  # as tar copies it
            stat = self.fs.load(parse_stat, pid, "stat")
            return None if stat.is_kernel_thread or stat.state in ("Z", "X") else self._without_maps(pid)
        native = not (maps.libjvm or maps.openj9) and self._is_native_image(pid)
        if not (native or maps.is_jvm):
            return None
        status = self.fs.load(parse_status, pid, "status")
        if maps.openj9:
            reason = NotSupported(f"{pid} is an OpenJ9 JVM: only HotSpot shares hsperfdata counters")
            return self._jvm(pid, status, OPENJ9, maps.openj9.path, reason)
        perf = self._mapped_file(pid, status, maps.hsperfdata)
        if not native:
            return self._jvm(pid, status, HOTSPOT, maps.libjvm.path if maps.libjvm else None, perf)
        if not isinstance(perf, PerfData):
            why = "it shares counters only if it was built with --enable-monitoring=jvmstat"
            perf = NotSupported(f"{pid} is a GraalVM native image, not a JVM: {why}")
        return self._jvm(pid, status, NATIVE_IMAGE, None, perf)

    def _unless_denied(self, read: Callable[..., T], *arguments: object) -> T | None:
        """read(*arguments); None for missing rights, or a file that a copy lacks. Raises GONE on a live machine."""
        try:
            return read(*arguments)
        except (DENIED, *GONE) as error:
            if self.fs.is_live and isinstance(error, GONE):
                raise
            return None

    def _mapped_file(self, pid: int, status: Status, mapping: Mapping | None) -> PerfData | OpskitError:
        if mapping is None:
            return self._why_none(pid, status)
        named = []
        if not mapping.deleted:
            for file, data, path in self._files_at(pid, mapping.path):
                if file.inode == mapping.inode:
                    return _parsed(pid, data, path)
                named.append((data, path))
        # A deleted file, or a file system with other inode numbers in maps. Only root may read map_files.
        mapped = optional(self.fs.read_path, self.fs.path(pid, "map_files", mapping.addresses), _LARGEST_FILE_BYTES)
        if mapped is not None:
            return _parsed(pid, mapped, f"{mapping.path} of {pid}")
        for data, path in named:
            perf = _parsed(pid, data, path)
            if not isinstance(perf, PerfData) or self._began_after_start(pid, perf):
                return perf
        if not self.fs.is_live:
            return NotSupported(f"{pid} shares counters in {mapping.path}, which is not in this copy")
        gone = "was deleted (by a cleaner of /tmp?)" if mapping.deleted else "opskit cannot open"
        return NotSupported(f"{pid} shares counters in {mapping.path}, which {gone}; root can still read it")

    def _files_at(self, pid: int, path: str) -> Iterator[tuple[FileId, bytes, str]]:
        """The file of that path in the process's mount namespace, then in ours."""
        directory, _, name = path.rpartition("/")
        for at in (optional(self.fs.inside, pid, directory), f"{self.fs.root}{directory}"):
            found = at and optional(self.fs.read_untrusted, at, name, _LARGEST_FILE_BYTES)
            if found:
                yield *found, f"{at}/{name}"

    def _without_maps(self, pid: int) -> Jvm | None:
        """A JVM whose maps are unreadable. Raises DENIED where nothing identifies it as one."""
        status = self.fs.load(parse_status, pid, "status")
        if not is_java_launcher(self._words(pid, "cmdline")) and not self._has_vm_thread(pid):
            raise PermissionError
        perf: PerfData | OpskitError | None = self._own_file(pid, status)
        if perf is None and not self.fs.is_live:
            perf = NotSupported(f"{pid} is a JVM, whose counters are not in this copy")
        elif perf is None:
            uid = status.effective_uid
            advice = as_owner_or_root(self.fs, "CAP_SYS_PTRACE CAP_DAC_READ_SEARCH", pid, uid)
            perf = NotPermitted(
                f"{pid} is a JVM of uid {uid}, whose counters only that user and root may read; {advice}"
            )
        return self._jvm(pid, status, HOTSPOT, None, perf)

    def _own_file(self, pid: int, status: Status) -> PerfData | None:
        """The file in our /tmp that has the process's owner and began after it; the newest one of several users' directories."""
        name = str((status.ns_pids or (pid,))[-1])
        found = []
        for user in [name for name in self.fs.names_root("tmp") if name.startswith("hsperfdata_")]:
            at = f"{self.fs.root}/tmp/{user}"
            file, data = optional(self.fs.read_untrusted, at, name, _LARGEST_FILE_BYTES, default=(None, b""))
            # The files of a copy may have any owner.
            if file is not None and (file.uid == status.effective_uid or not self.fs.is_live):
                found.append((file.ctime_ns, data, f"{at}/{name}"))
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
        return self._unless_denied(self.fs.load, parse_words, pid, name) or []

    def _has_vm_thread(self, pid: int) -> bool:
        """Whether one of the first threads has HotSpot's name (JDK 9 and later), which everyone may read."""
        tids = self._unless_denied(self.fs.tids, pid) or []
        return any(thread_name(self.fs, pid, tid) == "VM Thread" for tid in tids[:_FIRST_THREADS])

    def _began_after_start(self, pid: int, perf: PerfData) -> bool:
        """Whether the counters began after the process: those of an earlier process with this PID did not."""
        began_ms = perf.number("sun.rt.createVmBeginTime")
        ticks = self.fs.load(parse_stat, pid, "stat").start_ticks
        start_s = started_s(self.fs.maybe(parse_boot_time, "stat"), ticks, self.clock_ticks)
        return bool(began_ms) and start_s is not None and (began_ms or 0) / 1000 >= start_s - _CLOCK_SLACK_S

    def _is_native_image(self, pid: int) -> bool:
        """By its executable, unless that is on a network file system, where a read may hang."""
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
        namespace = optional(self.fs.link, pid, "ns", "mnt", default=b"")
        if namespace not in self._remote:
            self._remote[namespace] = self.fs.maybe(parse_remote_mount_points, pid, "mountinfo", default=[])
        points = self._remote[namespace]
        exe = self.fs.link(pid, "exe").decode("utf-8", "surrogateescape") if points else ""
        return any(exe.startswith(point.rstrip("/") + "/") for point in points)

    def _why_none(self, pid: int, status: Status) -> OpskitError:
        words, environment = self._words(pid, "cmdline"), self._words(pid, "environ")
        for name, bad in (("UsePerfData", "-"), ("PerfDisableSharedMem", "+")):
            if last_flag(words, environment, name) == f"-XX:{bad}{name}":
                return NotSupported(f"{pid} was started with -XX:{bad}{name}: it shares no counters")
        uid = status.effective_uid
        if user_inside(self.fs, pid, uid) == "":
            why = "HotSpot makes no hsperfdata file for a user without a name"
            return Nameless(f"{pid} shares no counters: uid {uid} has no passwd entry where it runs, and {why}")
        if self._is_young(pid):
            return NotReady(f"{pid} is just starting: it has not shared its counters yet")
        why = "it maps no hsperfdata file, and its command line shows no reason"
        check = shell.command("opskit", "hsperf-check", pid)
        return NotSupported(f"{pid} shares no counters: {why}; {check} looks further")

    def _is_young(self, pid: int) -> bool:
        ticks = self.fs.load(parse_stat, pid, "stat").start_ticks
        age = age_s(self.fs.maybe(parse_uptime, "uptime"), ticks, self.clock_ticks)
        return age is not None and age < _YOUNG_S


def user_inside(fs: ProcFS, pid: int, uid: int) -> str | None:
    """The name of a uid of ours where a process runs; "" if it has none there, None if that is unknown."""
    id_map = fs.maybe(parse_id_map, pid, "uid_map")
    inner = id_map and id_map.inner(uid)
    try:
        directory, _, name = fs.inside(pid, "/etc/passwd").rpartition("/")
        theirs, passwd = fs.read_untrusted(directory, name, _LARGEST_FILE_BYTES)
        is_ours = fs.has_our_root and theirs[:2] == fs.file_id_at("/etc/passwd")[:2]
    except OSError:
        return None
    if inner is None:
        return None
    if is_ours and fs.uses_nss:  # HotSpot asks getpwuid_r() too, which also finds users of LDAP
        known: str | None = optional(fs.calls.ask, user_by_uid, inner)
        if known is not None:
            return known
    users = (line.split(b":") for line in passwd.split(b"\n"))
    return next((user[0].decode("utf-8", "surrogateescape") for user in users if user[2:3] == [b"%d" % inner]), "")


def _parsed(pid: int, data: bytes, source: str) -> PerfData | OpskitError:
    try:
        perf = parse_hsperfdata(data, source)
    except BadInput as error:
        return error
    return perf if perf.accessible else NotReady(f"{pid} is just starting: {source} is not complete yet")
