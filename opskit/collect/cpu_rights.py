"""Why a process cannot be sampled, in one line: rights, sandboxes, the kernel, the machine; and what to do about it.

Sampling needs two permissions: perf_event_open(2), and reading /proc/PID/mem, without which no stack can be unwound.

    kernel.perf_event_paranoid  may sample without CAP_PERFMON (Documentation/admin-guide/perf-security.rst)
    -1, 0                       everyone, also the kernel's frames below 2
    1                           the owner of the process, with the kernel's frames
    2 (default)                 the owner of the process, without the kernel's frames
    3, 4 (Debian, Ubuntu)       nobody
"""

from __future__ import annotations

import errno
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal

from opskit.errors import NoSuchProcess, NotPermitted, NotSupported, OpskitError
from opskit.proc.files.stat import parse_stat
from opskit.proc.files.status import parse_status
from opskit.proc.fs import GONE, ProcFS, optional
from opskit.proc.kernel.cpu_samples import CpuSampler
from opskit.proc.kernel.sample_events import most_fds
from opskit.proc.memory import ProcessMemory
from opskit.proc.rights import ANY_COMMAND, as_owner_or_root, how_to_be_allowed, our_rights, outside_or_with
from opskit.records import NamedTuple
from opskit.shell import Syntax, command

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opskit.host import Host

Part = Literal["events", "memory"]

_MACHINE = "x86_64"
_CAPABILITIES: dict[Part, str] = {"events": "CAP_PERFMON CAP_SYS_PTRACE", "memory": "CAP_SYS_PTRACE"}
_OWNERS_LEVEL = 2  # of perf_event_paranoid: the highest at which a user may sample his own processes
_ELF_32 = b"\x7fELF\x01"


class Situation(NamedTuple):
    """What was refused with which errno (`said`: its text), and what may explain it.

    None: unknown, or this kernel has no such setting.

    `paranoid`: kernel.perf_event_paranoid. `yama`: kernel.yama.ptrace_scope. `filtered`: a seccomp filter holds for us.
    `is_owner`: our uid is that of the process. `advice`: how to get more rights.
    `mlock_kb`: kernel.perf_event_mlock_kb. `most_fds`: our hard limit of open files.
    """

    pid: int
    part: Part
    code: int
    said: str
    advice: str
    outside: str
    paranoid: int | None = None
    yama: int | None = None
    filtered: bool = False
    is_owner: bool = True
    mlock_kb: int | None = None
    most_fds: int | None = None


def refusal(now: Situation) -> OpskitError:
    """The error for a refusal, with its reason and what to do."""
    reason = _why_no_memory(now) if now.part == "memory" else _why_no_events(now)
    kind = NotPermitted if now.code in (errno.EACCES, errno.EPERM) else NotSupported
    return kind(f"cannot sample {now.pid}: {reason}")


def _why_no_events(now: Situation) -> str:
    if now.paranoid is None and now.code in (errno.ENOSYS, errno.ENOENT, errno.EPERM, errno.EACCES):
        return "this kernel has no perf events (no /proc/sys/kernel/perf_event_paranoid): CONFIG_PERF_EVENTS is off, or it is a sandbox"
    if now.code in (errno.EPERM, errno.ENOSYS):  # the kernel itself refuses with EACCES
        if now.filtered:
            unconfined = command("docker", "run", "--security-opt", "seccomp=unconfined", Syntax("…"))
            return f"a seccomp filter forbids perf_event_open (a container or sandbox); {now.outside} or {unconfined}"
        return "a security module forbids perf_event_open: its audit log has more; run opskit on the host"
    if now.code == errno.EACCES:
        return _why_no_access(now)
    return {
        errno.EMFILE: f"each thread needs a file descriptor per CPU without CAP_PERFMON, more than our limit of {now.most_fds or 0:,}; {now.advice}",
        errno.ENFILE: "the machine has no file descriptors left: see opskit limits",
        errno.ENOMEM: f"no memory may be locked for the ring buffers: kernel.perf_event_mlock_kb is {now.mlock_kb}, "
        f"RLIMIT_MEMLOCK bounds the rest; {now.advice}",
        errno.ENOENT: "this kernel or virtual machine has no cpu-clock event",
        errno.EOPNOTSUPP: "this kernel or virtual machine has no cpu-clock event",
        errno.ENODEV: "this kernel or virtual machine has no cpu-clock event",
        errno.EINVAL: "this kernel does not sample user registers and stacks; it needs Linux 4.8",
        errno.E2BIG: "this kernel does not sample user registers and stacks; it needs Linux 4.8",
    }.get(now.code, f"perf_event_open failed: {now.said}")  # fmt: skip


def _why_no_access(now: Situation) -> str:
    level = now.paranoid or 0
    if level > _OWNERS_LEVEL:
        allow = command("sudo", "sysctl", f"kernel.perf_event_paranoid={_OWNERS_LEVEL}")
        also = f", or allow it to the owners of processes: {allow}" if now.is_owner else ""
        return f"kernel.perf_event_paranoid is {level}; {now.advice}{also}"
    if not now.is_owner:
        return f"it runs as another user; {now.advice}"
    return f"permission denied; {now.advice}"


def _why_no_memory(now: Situation) -> str:
    path = f"/proc/{now.pid}/mem"
    if now.code not in (errno.EACCES, errno.EPERM):
        return f"{path} cannot be read: {now.said}"
    if now.yama == 3:
        return (
            f"{path}: permission denied: kernel.yama.ptrace_scope is 3, which holds for root too, until the next boot"
        )
    if now.is_owner and now.yama:
        allow = command("sudo", "sysctl", "kernel.yama.ptrace_scope=0")
        also = f", or allow it to the owners of processes: {allow}" if now.yama == 1 else ""
        return f"{path}: permission denied: kernel.yama.ptrace_scope is {now.yama}; {now.advice}{also}"
    if now.is_owner:
        return f"{path}: permission denied; {now.advice}"
    return f"{path}: permission denied: it runs as another user; {now.advice}"


def check_target(host: Host, pid: int) -> None:
    """Raise NotPermitted, NotSupported or NoSuchProcess where no rights would help: another machine, no such code."""
    host.prove_own(pid)
    if host.machine != _MACHINE:
        raise NotSupported(f"cannot sample {pid}: stacks are unwound on {_MACHINE} only, and this is {host.machine}")
    stat = host.fs.maybe(parse_stat, pid, "stat")
    if stat is None or (stat.state in ("Z", "X") and stat.threads <= 1):
        raise NoSuchProcess(pid, "" if stat is None else "it has ended, and its parent has not reaped it")
    if stat.is_kernel_thread:
        raise NotSupported(f"cannot sample {pid}: it is a kernel thread ({stat.comm})")
    if optional(host.fs.read_at, host.fs.path(pid, "exe"), 0, len(_ELF_32)) == _ELF_32:
        raise NotSupported(f"cannot sample {pid}: it is a 32-bit program, and stacks are unwound in 64-bit ones only")


@contextmanager
def explained(host: Host, pid: int, part: Part) -> Iterator[None]:
    """Raise the OSError of the block as NotPermitted, NotSupported or NoSuchProcess, with its reason."""
    try:
        yield
    except OSError as error:
        if isinstance(error, GONE) and not host.fs.exists(pid):
            raise NoSuchProcess(pid, "it has just ended") from error
        raise refusal(_situation(host, pid, part, error)) from error


def why_not(host: Host, pid: int) -> str | None:
    """Why a process cannot be sampled, by trying; None: it can."""
    try:
        check_target(host, pid)
        with explained(host, pid, "memory"):
            ProcessMemory(host.fs, pid).close()
        with explained(host, pid, "events"):
            CpuSampler(host.fs, pid, hz=1).close()
    except OpskitError as error:
        return str(error)
    return None


def _situation(host: Host, pid: int, part: Part, error: OSError) -> Situation:
    rights, fs = our_rights(host.fs), host.fs
    ids = fs.maybe(_ids, pid, "status")
    is_owner = ids is None or rights is None or ids[0] == rights.euid
    paranoid, yama = host.sysctl("kernel", "perf_event_paranoid"), host.sysctl("kernel", "yama", "ptrace_scope")
    owner_may = (paranoid or 0) <= _OWNERS_LEVEL and not yama
    filtered = ProcFS().maybe(_seccomp_mode, "self", "status") == "2"
    # Container runtimes forbid perf_event_open to those without CAP_PERFMON.
    capabilities = _CAPABILITIES["events" if filtered else part]
    if not is_owner and part == "memory":
        capabilities += " CAP_DAC_READ_SEARCH"  # the file has mode 0600
    advice = (
        as_owner_or_root(fs, capabilities, pid, *ids)
        if ids is not None and ids[0] and not is_owner and owner_may
        else how_to_be_allowed(fs, capabilities, *ANY_COMMAND, pid=pid)
    )
    return Situation(
        pid, part, error.errno or 0, error.strerror or str(error), advice, outside_or_with(capabilities),
        paranoid=paranoid,
        yama=yama,
        filtered=filtered,
        is_owner=is_owner,
        mlock_kb=host.sysctl("kernel", "perf_event_mlock_kb"),
        most_fds=most_fds(),
    )  # fmt: skip


def _ids(text: str) -> tuple[int, int]:
    status = parse_status(text)
    return status.effective_uid, status.effective_gid


def _seccomp_mode(text: str) -> str:
    return parse_status(text).fields.get("Seccomp", "")
