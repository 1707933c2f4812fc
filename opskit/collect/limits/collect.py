"""Read everything that decides whether a process can start one more thread."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from opskit import shell
from opskit.collect.limits.facts import Ancestor, LimitSources, Request, ThreadLimitFacts
from opskit.collect.limits.fillers import read_fillers
from opskit.collect.limits.program import cpu_count, read_program
from opskit.errors import BadInput, NoSuchProcess, NotPermitted, NotSupported, UsageError
from opskit.proc.cgroup.limits import cgroup_limits
from opskit.proc.cgroup.tree import parse_cgroup
from opskit.proc.config.pam_limits import account_of, pam_limits
from opskit.proc.config.setting import sysctl_settings
from opskit.proc.config.systemd_units import manager_settings, owner_of_path, unit_of_path, unit_settings
from opskit.proc.fd_directory import FD_WRITABLE
from opskit.proc.files.fd import parse_fdinfo
from opskit.proc.files.limits import is_nearly_full, parse_limits
from opskit.proc.files.loadavg import parse_loadavg
from opskit.proc.files.maps import locks_new_mappings, parse_maps
from opskit.proc.files.meminfo import parse_meminfo
from opskit.proc.files.stat import parse_stat
from opskit.proc.files.status import Status, parse_status
from opskit.proc.files.sysctl import read_sysctl
from opskit.proc.files.uid_map import parse_id_map
from opskit.proc.fs import DENIED, GONE, ProcFS, Refused, optional
from opskit.proc.namespaces import INITIAL, in_initial, namespace
from opskit.proc.open_files import open_files, raise_limit
from opskit.proc.process import command_name
from opskit.proc.release import kernel_release
from opskit.proc.rights import how_to_be_allowed
from opskit.proc.task_counts import TaskCounts, read_task_counts
from opskit.proc.thread_names import thread_names
from opskit.proc.visibility import PERMISSION_DENIED, why_unread
from opskit.quantities import agreeing, integer, plural

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from opskit.host import Host
    from opskit.proc.cgroup.tree import Membership

T = TypeVar("T")
_ENDED = ("Z", "X")  # a zombie keeps its pid until its parent has waited for it
_MOST_ANCESTORS = 64
_SYSCTLS = (
    *("kernel.threads-max", "kernel.pid_max", "vm.max_map_count", "vm.overcommit_memory", "vm.admin_reserve_kbytes"),
    *("vm.user_reserve_kbytes", "fs.nr_open"),
)


def request_for(host: Host, pid: int | None, *, uses: bool) -> Request:
    """A Request for a living process. Raises UsageError, NoSuchProcess, and NotSupported for kernel threads."""
    if pid is None:
        # A copy's `self` is the process that copied it.
        own = integer(optional(host.fs.link, "self", default=b"")) if host.fs.is_live else None
        if own is None:
            raise UsageError(f"{host.fs.proc} has no process of ours: name a PID")
        return Request(host.process(own), uses, is_opskit=True)
    if not host.fs.exists(pid):
        raise NoSuchProcess(pid, "it may have ended; ps -e lists what runs")
    stat = host.fs.maybe(parse_stat, pid, "stat", strict=True)
    if stat is not None and stat.is_kernel_thread:
        raise NotSupported(f"{pid} ({stat.comm}) is a kernel thread: these limits do not apply to it")
    if stat is not None and stat.state in _ENDED:
        others = [tid for tid in optional(host.fs.tids, pid, default=[]) if tid != pid]
        if others:
            ended = f"the first thread of {pid} ({stat.comm}) has ended and {plural(len(others), 'other')} {agreeing(len(others), 'runs', 'run')} on"
            raise NotSupported(f"{ended}; name one of them: {shell.command('opskit', 'limits', others[0])}")
        raise NoSuchProcess(pid, f"it has ended; its parent {stat.ppid} has not waited for it (a zombie)")
    return Request(host.process(pid), uses)


class Collector:
    """Samples of one process. It keeps what seccomp filters answered, which is asked once."""

    def __init__(self, host: Host, ask: Request) -> None:
        self.host, self.ask = host, ask
        self._begun_s = host.monotonic()
        self._clone3_answers: dict[str, str | None] = {}  # by the number of filters

    def look(self) -> ThreadLimitFacts:
        """Read everything once. Raises NoSuchProcess, NotPermitted, NotSupported and BadInput."""
        host, pid = self.host, self.ask.process.pid
        try:
            facts = self._read()
            now = host.process(pid)
        except GONE as error:
            if not host.fs.is_live:
                raise NotSupported(f"{error.filename} is not in this copy: the limits of {pid} are unknown") from None
            raise NoSuchProcess(pid, "it ended while it was looked at") from None
        except Refused as error:
            raise NotSupported(f"{error.filename} was not read: {error.strerror}") from None
        except DENIED as error:
            raise NotPermitted(f"{error.filename}: permission denied; {_advice(host.fs, pid)}") from None
        if now.start_ticks != self.ask.process.start_ticks or now.state in _ENDED:
            raise NoSuchProcess(pid, "it ended while it was looked at")
        return facts

    def _clone3(self, status: Status) -> str | None:
        """The filters' answer to the start of a thread; asked once, since filters can only be added."""
        count = status.fields.get("Seccomp_filters", "?")
        if count not in self._clone3_answers:
            self._clone3_answers[count] = _filter_answer(self.host, self.ask, status)
        return self._clone3_answers[count]

    def _read(self) -> ThreadLimitFacts:
        host, ask = self.host, self.ask
        fs, pid = host.fs, ask.process.pid
        reader = _Reader(fs, pid)
        status = fs.load(parse_status, pid, "status")
        space = reader.load(parse_maps, "maps")
        tasks = read_task_counts(fs)
        user_namespace, release = namespace(fs, pid, "user"), kernel_release(fs)
        load = fs.maybe(parse_loadavg, "loadavg")
        memberships = tuple(reader.load(parse_cgroup, "cgroup") or ())
        limits, pids = reader.load(parse_limits, "limits") or {}, cgroup_limits(fs, pid, "pids")
        user_threads = _user_threads(fs, tasks, status, user_namespace, release)
        sysctl = {name: value for name in _SYSCTLS if (value := read_sysctl(fs, *name.split("."))) is not None}
        total = load and load.tasks
        nproc = limits["RLIMIT_NPROC"].soft if "RLIMIT_NPROC" in limits else None
        counted = (
            ("RLIMIT_NPROC", nproc, user_threads, status.real_uid),
            ("kernel.threads-max", sysctl.get("kernel.threads-max"), total, None),
            ("kernel.pid_max", sysctl.get("kernel.pid_max"), total, None),
        )
        files, kinds, more_files = self._open_files(reader, status)
        return ThreadLimitFacts(
            ask=ask,
            at_s=host.monotonic() - self._begun_s,
            page_bytes=host.page_bytes,
            status=status,
            limits=limits,
            space=space,
            locks_new=bool(status.bytes_of("VmLck")) and reader.load(locks_new_mappings, "smaps"),
            program=read_program(fs, pid, space),
            user_namespace=user_namespace,
            reader_user_namespace=namespace(fs, "self", "user"),
            namespace_owner=_namespace_owner(host, pid, user_namespace),
            clone3=self._clone3(status),
            shows_all_pids=_shows_all_pids(fs),
            tasks=tasks,
            user_threads=user_threads,
            pids=pids,
            memory=cgroup_limits(fs, pid, "memory"),
            memberships=memberships,
            ancestors=tuple(_ancestors(fs, status)),
            meminfo=reader.read("meminfo", fs.load, parse_meminfo, "meminfo") or {},
            sysctl=sysctl,
            total_tasks=total,
            last_pid=load and load.last_pid,
            open_files=files,
            open_kinds=kinds,
            raise_files=more_files,
            thread_names=thread_names(fs, pid),
            fillers=read_fillers(fs, tasks, pids, counted),
            online_cpus=fs.maybe_root(cpu_count, "sys/devices/system/cpu/online"),
            release=release,
            unreadable=reader.unreadable,
            advice=_advice(fs, pid) if PERMISSION_DENIED in reader.unreadable.values() else None,
            sources=_read_sources(fs, status, memberships, ask.process.user or ""),
            cpu_s=_cpu_s(host, pid) if ask.uses else None,
            farthest_write_bytes=_farthest_write_bytes(fs, pid) if ask.uses else None,
        )

    def _open_files(self, reader: _Reader, status: Status) -> tuple[int | None, Mapping[str, int], str | None]:
        """How many, and where they are nearly used up: of which kinds, and the command that raises the limit."""
        fs, pid = self.host.fs, self.ask.process.pid
        counted, found = reader.read("fd", fs.fd_count, pid), optional(open_files, fs, pid)
        if counted is None or found is None:
            return counted, {}, None
        if not is_nearly_full(found.limit.soft, found.taken):
            return found.taken, {}, None
        kinds = Counter(_kind(target) for target in optional(fs.fd_targets, pid, default=[]))
        more, lacking = raise_limit(fs, pid, status, found.limit)
        return found.taken, dict(kinds.most_common()), more and more + lacking


def _kind(target: bytes) -> str:
    """`socket`, `pipe`, `eventpoll`, …; `file` for a path."""
    if target.startswith(b"/"):
        return "file"
    return target.removeprefix(b"anon_inode:").strip(b"[]").partition(b":")[0].decode("utf-8", "surrogateescape")


def collect(host: Host, ask: Request) -> ThreadLimitFacts:
    """Read everything once, without a terminal."""
    return Collector(host, ask).look()


def _advice(fs: ProcFS, pid: int) -> str:
    return how_to_be_allowed(fs, "CAP_SYS_PTRACE", "opskit", "limits", pid, pid=pid)


class _Reader:
    def __init__(self, fs: ProcFS, pid: int) -> None:
        self.fs, self.pid = fs, pid
        self.unreadable: dict[str, str] = {}

    def load(self, parse: Callable[[str], T], name: str) -> T | None:
        return self.read(name, self.fs.load, parse, self.pid, name)

    def read(self, name: str, call: Callable[..., T], *arguments: object) -> T | None:
        try:
            return call(*arguments)
        except GONE:
            if not self.fs.exists(self.pid):
                raise
            self.unreadable[name] = "not in this proc tree"
        except (DENIED, NotADirectoryError, BadInput) as error:
            self.unreadable[name] = why_unread(error)
        return None


def _shows_all_pids(fs: ProcFS) -> bool | None:
    """Whether the tree shows all processes of the machine: its first process is in the initial pid namespace."""
    initial = in_initial(fs, "pid", 1)
    return in_initial(fs, "pid") if initial is None else initial


def _user_threads(
    fs: ProcFS, tasks: TaskCounts, status: Status, user_namespace: bytes | None, release: tuple[int, int] | None
) -> int | None:
    """The threads that RLIMIT_NPROC counts; None for the uid that stands for all those that are not mapped here."""
    uid = status.real_uid
    map_ = fs.maybe(parse_id_map, "self", "uid_map")
    if map_ is not None and not any(first <= uid < first + count for first, _, count in map_.ranges):
        return None
    # Since Linux 5.14 processes are counted by namespace and user, before by user alone.
    return tasks.of_user(fs, uid, user_namespace if release is None or release >= (5, 14) else None)


def _ancestors(fs: ProcFS, status: Status) -> list[Ancestor]:
    found: list[Ancestor] = []
    parent = status.parent_pid
    while parent and len(found) < _MOST_ANCESTORS:
        limits, above = fs.maybe(parse_limits, parent, "limits"), fs.maybe(parse_status, parent, "status")
        if limits is None:
            break
        found.append(Ancestor(parent, command_name(fs, parent), limits))
        parent = above.parent_pid if above else None
    return found


def _namespace_owner(host: Host, pid: int, user_namespace: bytes | None) -> int | None:
    if user_namespace in (None, INITIAL["user"]) or not host.is_own:
        return None
    from opskit.proc.kernel.syscalls import user_namespace_owner

    return optional(host.fs.calls.ask, user_namespace_owner, host.fs.path(pid, "ns", "user"))


def _filter_answer(host: Host, ask: Request, status: Status) -> str | None:
    is_filtered = status.fields.get("Seccomp") == "2" and (status.threads or 1) <= 1
    if not is_filtered or not ask.traces or not host.is_own:
        return None
    from opskit.proc.kernel.seccomp import filter_answer, own_answer
    from opskit.proc.kernel.syscalls import can_start_a_thread, clone3_errno, seccomp_filters

    pid, ask_kernel = ask.process.pid, host.fs.calls.ask
    answer = None if ask.is_opskit else filter_answer(host.fs, pid, host.machine, partial(ask_kernel, seccomp_filters))
    if answer is None and (ask.is_opskit or _is_filtered_as_we_are(host.fs, pid, status)):
        answer = optional(lambda: own_answer(ask_kernel(clone3_errno), partial(ask_kernel, can_start_a_thread)))
    return answer


def _is_filtered_as_we_are(fs: ProcFS, pid: int, status: Status) -> bool:
    """Whether it runs in our own container under as many filters as we do: then they are the container's."""
    ours, theirs = (namespace(fs, each, "pid") for each in ("self", pid))
    filters = fs.load(parse_status, "self", "status").fields.get("Seccomp_filters", "0")
    return ours is not None and ours == theirs and filters == status.fields.get("Seccomp_filters") != "0"


def _cpu_s(host: Host, pid: int) -> float | None:
    stat = host.fs.maybe(parse_stat, pid, "stat")
    return stat and (stat.user_ticks + stat.system_ticks) / host.clock_ticks


def _farthest_write_bytes(fs: ProcFS, pid: int) -> int | None:
    """The farthest position of a file open for writing, by fdinfo, which never waits for a hung mount."""
    links = optional(lambda: fs.fd_links(pid, wanted=(b"/",)))
    if links is None:
        return None
    farthest = 0
    for fd, target, mode in links:
        if mode & FD_WRITABLE and not target.startswith((b"/dev/", b"/proc/", b"/sys/")):
            info = fs.maybe(parse_fdinfo, pid, "fdinfo", fd.decode()) or {}
            farthest = max(farthest, integer(info.get("pos", "0")) or 0)
    return farthest


def _read_sources(fs: ProcFS, status: Status, memberships: Sequence[Membership], user: str) -> LimitSources:
    """Read the files. One that cannot be read is named in `pam.unread`; missing ones set nothing."""
    account = account_of(fs, user, status.real_uid, status.real_gid, status.groups)
    paths = sorted({member.path for member in memberships}, key=lambda path: (-len(path), path))
    owner = next((owner for path in paths if (owner := owner_of_path(path))), None)
    return LimitSources(
        user,
        pam_limits(fs, account),
        owner and owner.unit,
        {unit: unit_settings(fs, unit) for path in paths for unit in _units_on(path)},
        manager_settings(fs),
        sysctl_settings(fs),
        owner is not None and owner.manager_uid is not None,
    )


def _units_on(path: str) -> list[str]:
    parts = path.split("/")
    found = (unit_of_path("/".join(parts[:count])) for count in range(2, len(parts) + 1))
    return [unit for unit in dict.fromkeys(found) if unit]
