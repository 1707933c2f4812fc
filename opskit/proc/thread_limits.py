"""Everything that decides whether a process can start one more thread, read in one go. It judges nothing."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from opskit.errors import BadInput
from opskit.proc.cgroup.tree import Ancestry, ancestry, parse_cgroup
from opskit.proc.files.fd import parse_fdinfo
from opskit.proc.files.limits import UNLIMITED, Rlimit, parse_limits
from opskit.proc.files.maps import AddressSpace, locks_new_mappings, parse_maps
from opskit.proc.files.meminfo import parse_meminfo
from opskit.proc.files.status import Status, parse_status
from opskit.proc.files.sysctl import read_sysctl
from opskit.proc.files.uid_map import parse_id_map
from opskit.proc.fs import DENIED, FD_WRITABLE, GONE, ProcFS, Refused
from opskit.proc.task_counts import Population, population, user_namespace
from opskit.proc.visibility import parse_total_tasks
from opskit.quantities import integer, integers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from opskit.proc.cgroup.tree import Level, Membership

T = TypeVar("T")

PERMISSION_DENIED = "permission denied"
INIT_USER_NAMESPACE = b"user:[4026531837]"  # include/linux/proc_ns.h
INIT_PID_NAMESPACE = b"pid:[4026531836]"
_GLIBC_VERSION = re.compile(rb"GNU C Library[^\n]{0,80}? version ([0-9]{1,4})\.([0-9]{1,4})")
_GLIBC_BYTES = 64 << 20  # 2 MB, some 20 with what is for debuggers
_JAVA_VARIABLES = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")
_MALLOC_VARIABLES = ("MALLOC_ARENA_MAX", "GLIBC_TUNABLES")
_NOT_THERE = (*GONE, DENIED, NotADirectoryError)


@dataclass(frozen=True)
class CgroupLevel:
    """A cgroup with a limit file: its path, the file, and its numbers (threads, or bytes).

    `limit` is UNLIMITED for `max`; None where it cannot be read. `reclaimable_bytes` of a memory cgroup is page cache
    that goes before anything is refused.
    """

    path: str
    file: str
    limit: float | None
    current: int | None
    reclaimable_bytes: int = 0


@dataclass(frozen=True)
class CgroupLimits:
    """A controller's levels from the process up; the machine's root has no limit and is left out.

    `unknown` says why the levels, or those above the last one, cannot be seen.
    """

    levels: tuple[CgroupLevel, ...]
    unknown: str | None


@dataclass(frozen=True)
class Ancestor:
    """A process on the way up to init, and its rlimits."""

    pid: int
    command: str
    limits: dict[str, Rlimit]


@dataclass(frozen=True)
class Situation:
    """What was read. None: it could not be; `unreadable` says why, by the name of the file.

    `shows_all_pids`: whether the tree is of the machine's first pid namespace. `user_threads` are those that
    RLIMIT_NPROC counts; None where the uid has no name in our user namespace, where all such look alike. `glibc` is its version. `java_options` and `malloc_options` are what the process was started
    with. `locks_new`: new mappings are locked. `ancestors` go from the parent up.
    """

    pid: int
    status: Status
    limits: dict[str, Rlimit]
    space: AddressSpace | None
    locks_new: bool | None
    glibc: tuple[int, int] | None
    java_options: tuple[str, ...]
    malloc_options: dict[str, str]
    user_namespace: bytes | None
    reader_user_namespace: bytes | None
    shows_all_pids: bool | None
    population: Population
    user_threads: int | None
    pids: CgroupLimits
    memory: CgroupLimits
    memberships: tuple[Membership, ...]
    ancestors: tuple[Ancestor, ...]
    meminfo: dict[str, int]
    threads_max: int | None
    pid_max: int | None
    max_map_count: int | None
    overcommit: int | None
    admin_reserve_bytes: int
    user_reserve_bytes: int
    nr_open: int | None
    total_tasks: int | None
    last_pid: int | None
    open_files: int | None
    online_cpus: int | None
    release: tuple[int, int] | None
    unreadable: dict[str, str]


def read_situation(fs: ProcFS, pid: int, command_name: Callable[[ProcFS, int], str]) -> Situation:
    """Read everything about a process. Raises GONE where it is not there (any more), BadInput where it is garbled."""
    reader = _Reader(fs, pid)
    status = fs.load(parse_status, pid, "status")
    space = reader.load("maps", parse_maps, pid, "maps")
    everyone = population(fs)
    namespace = user_namespace(fs, pid)
    release = _release(fs)
    # Since Linux 5.14 processes are counted by namespace and user, before by user alone.
    counted_in = namespace if release is None or release >= (5, 14) else None
    environ = _environ(fs, pid)
    loadavg = reader.load("loadavg", str.split, "loadavg") or []
    return Situation(
        pid=pid,
        status=status,
        limits=reader.load("limits", parse_limits, pid, "limits") or {},
        space=space,
        locks_new=reader.load("smaps", locks_new_mappings, pid, "smaps") if status.bytes_of("VmLck") else False,
        glibc=_glibc_version(fs, pid, space.glibc) if space and space.glibc else None,
        java_options=_java_options(fs, pid, environ),
        malloc_options={name: environ[name] for name in _MALLOC_VARIABLES if name in environ},
        user_namespace=namespace,
        reader_user_namespace=user_namespace(fs, "self"),
        shows_all_pids=_shows_all_pids(fs),
        population=everyone,
        user_threads=None if _is_unmapped(fs, status.real_uid) else everyone.of_user(fs, status.real_uid, counted_in),
        pids=_cgroup_limits(fs, pid, "pids", _pids_level),
        memory=_cgroup_limits(fs, pid, "memory", _memory_level),
        memberships=tuple(reader.load("cgroup", parse_cgroup, pid, "cgroup") or ()),
        ancestors=tuple(_ancestors(fs, status, command_name)),
        meminfo=reader.load("meminfo", parse_meminfo, "meminfo") or {},
        threads_max=read_sysctl(fs, "kernel", "threads-max"),
        pid_max=read_sysctl(fs, "kernel", "pid_max"),
        max_map_count=read_sysctl(fs, "vm", "max_map_count"),
        overcommit=read_sysctl(fs, "vm", "overcommit_memory"),
        admin_reserve_bytes=(read_sysctl(fs, "vm", "admin_reserve_kbytes") or 0) * 1024,
        user_reserve_bytes=(read_sysctl(fs, "vm", "user_reserve_kbytes") or 0) * 1024,
        nr_open=read_sysctl(fs, "fs", "nr_open"),
        total_tasks=_total_tasks(loadavg),
        last_pid=integer(loadavg[4]) if len(loadavg) > 4 else None,
        open_files=reader.open_files(),
        online_cpus=_online_cpus(fs),
        release=release,
        unreadable=reader.unreadable,
    )


class _Reader:
    """Reads what may be missing or forbidden, and remembers why it could not."""

    def __init__(self, fs: ProcFS, pid: int) -> None:
        self.fs, self.pid = fs, pid
        self.unreadable: dict[str, str] = {}

    def load(self, name: str, parse: Callable[[str], T], *parts: object) -> T | None:
        try:
            return self.fs.load(parse, *parts)
        except GONE:
            if not self.fs.exists(self.pid):
                raise
            self.unreadable[name] = "not in this proc tree"
        except (DENIED, NotADirectoryError, BadInput) as error:
            self.unreadable[name] = _reason(error)
        return None

    def open_files(self) -> int | None:
        try:
            return self.fs.fd_count(self.pid)
        except _NOT_THERE as error:
            self.unreadable["fd"] = _reason(error) if isinstance(error, DENIED) else "not in this proc tree"
            return None


def _reason(error: Exception) -> str:
    if isinstance(error, Refused):
        return str(error.strerror)
    return PERMISSION_DENIED if isinstance(error, DENIED) else str(error)


def _total_tasks(words: list[str]) -> int | None:
    try:
        return parse_total_tasks(" ".join(words))
    except BadInput:
        return None


def _environ(fs: ProcFS, pid: int) -> dict[str, str]:
    try:
        pairs = fs.load(lambda text: text.split("\0"), pid, "environ")
    except _NOT_THERE:
        return {}
    return dict(pair.split("=", 1) for pair in pairs if "=" in pair)


def _java_options(fs: ProcFS, pid: int, environ: dict[str, str]) -> tuple[str, ...]:
    """The options in the order in which the JVM takes them; the last of a kind counts."""
    try:
        words = fs.load(lambda text: text.split("\0"), pid, "cmdline")
    except _NOT_THERE:
        words = []
    tool, launcher, late = (environ.get(name, "").split() for name in _JAVA_VARIABLES)
    own = []
    for word in words[1:]:
        if not word.startswith("-"):
            break  # the main class; what follows are its own words
        own.append(word)
    return (*tool, *launcher, *own, *late)


def _glibc_version(fs: ProcFS, pid: int, path: str) -> tuple[int, int] | None:
    """By the library itself, which may be any file that the process has mapped under such a name."""
    directory, _, name = path.rpartition("/")
    for own in (True, False):
        try:
            if own:
                data = fs.read_inside(pid, path, _GLIBC_BYTES)
            else:
                data = fs.read_untrusted(fs.root + directory, name, _GLIBC_BYTES)[1]
        except OSError:
            continue
        match = _GLIBC_VERSION.search(data)
        if match:
            return _version(match.groups())
    return None


def _version(groups: Iterable[str | bytes]) -> tuple[int, int] | None:
    numbers = integers(groups)
    return (numbers[0], numbers[1]) if numbers else None


def _shows_all_pids(fs: ProcFS) -> bool | None:
    """Whether this proc tree shows all processes of the machine. None: it cannot be told."""
    try:
        # The first process of a tree of the initial namespace is in that namespace.
        return fs.link(1, "ns", "pid") == INIT_PID_NAMESPACE
    except OSError:
        pass
    try:
        return fs.link("self", "ns", "pid") == INIT_PID_NAMESPACE
    except OSError:
        return None


def _is_unmapped(fs: ProcFS, uid: int) -> bool:
    """Whether a uid is what the kernel shows for all those that our user namespace does not map."""
    try:
        ranges = fs.load(parse_id_map, "self", "uid_map").ranges
    except (*_NOT_THERE, BadInput):
        return False
    return not any(first <= uid < first + count for first, _, count in ranges)


def _cgroup_limits(
    fs: ProcFS, pid: int, controller: str, level_of: Callable[[ProcFS, Level], CgroupLevel | None]
) -> CgroupLimits:
    try:
        found: Ancestry | None = ancestry(fs, pid, controller)
    except GONE:
        return CgroupLimits((), "this tree does not say which cgroups the process is in")
    except (DENIED, BadInput) as error:
        return CgroupLimits((), _reason(error))
    if found is None:
        return CgroupLimits((), f"the {controller} controller's cgroups are not to be seen from here")
    levels = tuple(filter(None, (level_of(fs, level) for level in found.levels)))
    above = None if found.complete else f"unknown above {found.levels[-1].path}, the root of the cgroup namespace"
    return CgroupLimits(levels, above)


def _pids_level(fs: ProcFS, level: Level) -> CgroupLevel | None:
    text = level.load(fs, "pids.max")
    if text is None:  # the root, or a v2 level where the controller is not switched on
        return None
    return CgroupLevel(level.path, f"{level.directory}/pids.max", _limit(text), level.number(fs, "pids.current"))


_NO_LIMIT_V1 = 1 << 62  # an unset memory.limit_in_bytes is the largest multiple of the page size


def _memory_level(fs: ProcFS, level: Level) -> CgroupLevel | None:
    name, used = (
        ("memory.limit_in_bytes", "memory.usage_in_bytes") if level.version == 1 else ("memory.max", "memory.current")
    )
    text = level.load(fs, name)
    if text is None:
        return None
    limit = _limit(text)
    if limit is not None and limit >= _NO_LIMIT_V1:
        limit = UNLIMITED
    table = level.table(fs, "memory.stat") if limit not in (None, UNLIMITED) else {}
    prefix = "total_" if level.version == 1 else ""
    cache = sum(table.get(f"{prefix}{name}", 0) for name in ("inactive_file", "active_file"))
    return CgroupLevel(
        level.path,
        f"{level.directory}/{name}",
        limit,
        level.number(fs, used),
        cache + table.get("slab_reclaimable", 0),
    )


def _limit(text: str) -> float | None:
    return UNLIMITED if text == "max" else integer(text)


def _ancestors(fs: ProcFS, status: Status, command_name: Callable[[ProcFS, int], str]) -> list[Ancestor]:
    found: list[Ancestor] = []
    parent = status.parent_pid
    while parent and len(found) < 64:
        try:
            limits = fs.load(parse_limits, parent, "limits")
            found.append(Ancestor(parent, command_name(fs, parent), limits))
            parent = fs.load(parse_status, parent, "status").parent_pid
        except (*_NOT_THERE, BadInput):
            break
    return found


def _online_cpus(fs: ProcFS) -> int | None:
    try:
        return fs.load_root(_cpu_count, "sys/devices/system/cpu/online")
    except _NOT_THERE:
        return None


def _cpu_count(text: str) -> int | None:
    """How many CPUs a list such as `0-3,8` names; None for what is no such list."""
    count = 0
    for part in text.strip().split(","):
        numbers = integers(part.split("-"))
        if numbers is None or len(numbers) > 2 or numbers[-1] < numbers[0]:
            return None
        count += numbers[-1] - numbers[0] + 1
    return count


def _release(fs: ProcFS) -> tuple[int, int] | None:
    try:
        match = fs.load(lambda text: re.match(r"([0-9]+)\.([0-9]+)", text), "sys", "kernel", "osrelease")
    except _NOT_THERE:
        return None
    return _version(match.groups()) if match else None


def largest_written_bytes(fs: ProcFS, pid: int) -> int | None:
    """The farthest position at which a process has a file open for writing; None where its fds cannot be read.

    The position is in fdinfo: no file is touched, so that no hung mount is waited for.
    """
    try:
        links = fs.fd_links(pid, wanted=(b"/",))
    except _NOT_THERE:
        return None
    farthest = 0
    for fd, target, mode in links:
        if not mode & FD_WRITABLE or target.startswith((b"/dev/", b"/proc/", b"/sys/")):
            continue
        try:
            position = fs.load(parse_fdinfo, pid, "fdinfo", fd.decode()).get("pos", "0")
        except (*_NOT_THERE, BadInput):
            continue
        farthest = max(farthest, integer(position) or 0)
    return farthest
