"""Start a few threads in a child that has taken on a process's limits and user.

The child has no capabilities, one file descriptor and no core dump, and ends within a second: by itself, by a timer, or
killed. What it proves holds for the process because the kernel counts both in the same way.
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import resource
import select
import signal
import struct
from typing import TYPE_CHECKING

from opskit.analysis.limits.probe import ProbeResult
from opskit.errors import BugInChild, NotPermitted
from opskit.interrupts import Guard, Interruptible
from opskit.proc.files.limits import UNLIMITED
from opskit.proc.kernel.children import close_from
from opskit.proc.rights import how_to_be_allowed

if TYPE_CHECKING:
    from opskit.analysis.limits.probe import ProbePlan
    from opskit.host import Host
    from opskit.proc.files.limits import Rlimit

_LIFE_S = 0.9
_ANSWER = struct.Struct("=ii16s")
_BUG = "bug"  # where the name of the failed call would be
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_NAME, _PR_SET_NO_NEW_PRIVS = 1, 4, 15, 38
_CAPABILITY_VERSION_3 = 0x20080522
_MAP_STACK = 0x20000
_ESSENTIAL = ("RLIMIT_STACK", "RLIMIT_NPROC")

_libc = ctypes.CDLL(None, use_errno=True)


def run_probe(host: Host, plan: ProbePlan) -> ProbeResult:
    """Carry out the plan. Raises NotPermitted where we may not become the process's user or enter its cgroup."""
    host.prove_own(plan.pid)
    me = os.geteuid()
    if me not in (0, plan.uid) or (plan.cgroup_procs and me != 0):
        raise _not_permitted(host, plan, " in its cgroup" if plan.cgroup_procs else "")
    begun = host.monotonic()
    with Guard():
        reading, writing = os.pipe()
        try:
            child = os.fork()
        except OSError as error:  # what we came to prove, before we began
            os.close(reading)
            os.close(writing)
            return ProbeResult(plan.threads, 0, "fork", errno.errorcode.get(error.errno or 0), host.monotonic() - begun)
        if child == 0:
            _run_in_child(plan, writing, become=me == 0)
        os.close(writing)
        try:
            with Interruptible():
                ready, _, _ = select.select([reading], [], [], 1.0)
                answer = os.read(reading, _ANSWER.size) if ready else b""
        finally:
            os.close(reading)
            os.kill(child, signal.SIGKILL)  # not yet waited for: the pid is the child's
            os.waitpid(child, 0)
    took = host.monotonic() - begun
    if len(answer) != _ANSWER.size:
        return ProbeResult(plan.threads, 0, "timeout", None, took)
    started, code, call = _ANSWER.unpack(answer)
    name = call.rstrip(b"\0").decode()
    if name == _BUG:
        raise BugInChild("unexpected exception in the probe's child process")
    if name == "setup:user":
        raise _not_permitted(host, plan, f": {os.strerror(code)}")
    return ProbeResult(plan.threads, started, name or None, errno.errorcode.get(code) if name else None, took)


def _not_permitted(host: Host, plan: ProbePlan, why: str) -> NotPermitted:
    words = ("opskit", "limits", plan.pid, "--probe")
    advice = how_to_be_allowed(host.fs, "CAP_SETUID CAP_SETGID", *words, pid=plan.pid)
    return NotPermitted(f"--probe has to act as user {host.user_name(plan.uid)}{why}; {advice}")


def _run_in_child(plan: ProbePlan, pipe: int, *, become: bool) -> None:
    """Run the probe in the child; never return."""
    try:
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, _LIFE_S)
        _libc.prctl(_PR_SET_NAME, b"opskit-probe", 0, 0, 0)
        started, code, call = _prepared(plan, become=become) or (0, 0, "")
        os.closerange(0, pipe)
        close_from(pipe + 1)
        if not call:
            started, code, call = _start(plan)
        os.write(pipe, _ANSWER.pack(started, code, call.encode()[:16]))
    except BaseException:
        os.write(pipe, _ANSWER.pack(0, 0, _BUG.encode()))
        raise
    finally:
        os._exit(0)  # takes the threads along


def _prepared(plan: ProbePlan, *, become: bool) -> tuple[int, int, str] | None:
    """Take on cgroup, limits and user; None, or (0, errno, `setup:STEP`) of the step that failed."""
    step = "cgroup"
    try:
        if plan.cgroup_procs:
            with open(plan.cgroup_procs, "w", encoding="ascii") as file:
                file.write(str(os.getpid()))
        for name, room in plan.rooms.items():
            step = name
            _lower(name, room)
        for name, limit in plan.limits.items():
            step = name
            _take_on(name, limit)
        step = "user"
        if become:
            os.setgroups(plan.groups)
            os.setresgid(plan.gid, plan.gid, plan.gid)
            os.setresuid(plan.uid, plan.uid, plan.uid)
        step = "capabilities"
        _drop_capabilities()
    except (OSError, ValueError) as error:
        return 0, getattr(error, "errno", None) or errno.EPERM, f"setup:{step.removeprefix('RLIMIT_')}"
    return None


def _lower(name: str, room: int) -> None:
    """Set a limit to so many bytes above our own VmSize or VmData."""
    with open("/proc/self/statm", encoding="ascii") as file:
        pages = file.read().split()
    soft = int(pages[0 if name == "RLIMIT_AS" else 5]) * mmap.PAGESIZE + room
    number = getattr(resource, name)
    hard = resource.getrlimit(number)[1]
    resource.setrlimit(number, (soft if hard == resource.RLIM_INFINITY else min(soft, hard), hard))


def _take_on(name: str, limit: Rlimit) -> None:
    """Set a limit as the process has it; of those that do not decide about threads, as far as we may."""
    number = getattr(resource, name, None)
    if number is None:
        return
    soft, hard = (resource.RLIM_INFINITY if value == UNLIMITED else int(value) for value in (limit.soft, limit.hard))
    try:
        resource.setrlimit(number, (soft, hard))
    except ValueError:  # our own hard limit is lower
        try:
            resource.setrlimit(number, (soft, resource.getrlimit(number)[1]))
        except ValueError:
            if name in _ESSENTIAL:
                raise


def _drop_capabilities() -> None:
    header = struct.pack("=Ii", _CAPABILITY_VERSION_3, 0)
    if _libc.capset(header, bytes(24)) != 0:
        raise OSError(ctypes.get_errno(), "capset")
    _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    _libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def _start(plan: ProbePlan) -> tuple[int, int, str]:
    """Start the threads, which do nothing but wait; (how many started, errno, the call that failed or "")."""
    attributes = ctypes.create_string_buffer(128)
    _libc.pthread_attr_init(attributes)
    _libc.pthread_attr_setstacksize(attributes, ctypes.c_size_t(plan.stack_bytes))
    _libc.pthread_attr_setguardsize(attributes, ctypes.c_size_t(plan.guard_bytes))
    thread = ctypes.c_ulong()
    for started in range(plan.threads):
        code = _libc.pthread_create(ctypes.byref(thread), attributes, _libc.pause, None)
        if code:
            return (started, *_failed_call(plan, code))
    return plan.threads, 0, ""


def _failed_call(plan: ProbePlan, code: int) -> tuple[int, str]:
    """(errno, name) of the call that failed, by repeating the first two: pthread_create returns EAGAIN for all of them."""
    size = plan.stack_bytes + plan.guard_bytes
    _libc.mmap.restype = ctypes.c_void_p
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_STACK
    at = _libc.mmap(None, ctypes.c_size_t(size), 0, flags, -1, ctypes.c_long(0))
    if at is None or at == ctypes.c_void_p(-1).value:
        return ctypes.get_errno(), "mmap"
    usable = ctypes.c_void_p(at + plan.guard_bytes)
    if _libc.mprotect(usable, ctypes.c_size_t(plan.stack_bytes), mmap.PROT_READ | mmap.PROT_WRITE) != 0:
        return ctypes.get_errno(), "mprotect"
    return code, "clone"
