"""Proof that a process is a HotSpot JVM that we may attach to, before anything is sent to it. Reads /proc only.

SIGQUIT starts HotSpot's attach listener (os/posix/attachListener_posix.cpp), prints a thread dump where there is no
trigger file, and kills a process that does not catch it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit import shell
from opskit.errors import AttachError, NoSuchProcess, NotPermitted
from opskit.jvm.discover import HOTSPOT, OPENJ9, Jvm, find_jvm
from opskit.jvm.launch import jdk_release, jvm_options, last_flag, major_of, parse_words
from opskit.proc import rights
from opskit.proc.cgroup.limits import frozen_by
from opskit.proc.cgroup.tree import ancestry
from opskit.proc.files.boot_time import parse_uptime
from opskit.proc.files.stat import parse_stat
from opskit.proc.files.status import Status, parse_status
from opskit.proc.fs import GONE, ProcFS, optional
from opskit.proc.thread_names import thread_name
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from opskit.proc.file_id import FileId

DEFAULT_TIMEOUT_S = 10.0  # of an exchange with a JVM
_SIGQUIT_BIT = 1 << 2
_LISTENER = "Attach Listener"
# HotSpot starts it after AttachListener::vm_start(), which deletes the socket of a dead JVM with the same PID, or its own.
_AFTER_CLEANING = "Service Thread"
_NAMES_THREADS = 9
_REMAKES_SOCKET = 14  # JDK-8225690; 11.0.9 was seen not to
_STARTING_S = 30.0
TRIGGER_STAYS_S = 15.0  # a client waits for the listener 10 s at most by default


class AttachTarget(NamedTuple):
    """A HotSpot JVM that we may attach to. `euid`, `egid`, `groups`: in our user namespace. `java_major` None: unknown."""

    jvm: Jvm
    euid: int
    egid: int
    groups: tuple[int, ...]
    java_major: int | None

    @property
    def pid(self) -> int:
        """Its PID in our namespace."""
        return self.jvm.pid

    @property
    def who(self) -> str:
        """`4242 (app.jar)`, for messages."""
        return f"{self.jvm.pid} ({self.jvm.main})"

    @property
    def socket_name(self) -> str:
        """The socket's name in its /tmp."""
        return f".java_pid{self.jvm.ns_pid}"

    @property
    def trigger_name(self) -> str:
        """The trigger file's name, in its working directory or its /tmp."""
        return f".attach_pid{self.jvm.ns_pid}"


class Stopped(NamedTuple):
    """Why a process does not run (`is stopped …`), and what resumes it; `command`: that is a command to type."""

    why: str
    resume: str
    command: bool = False

    @property
    def advice(self) -> str:
        """What to do, for a message."""
        return f"resume it: {self.resume}" if self.command else self.resume


def read_target(fs: ProcFS, pid: int, our_euid: int) -> AttachTarget:
    """Prove that a process is a HotSpot JVM that we may attach to. Raises NoSuchProcess, NotAJvm, NotPermitted and AttachError."""
    if fs.replies is not None:
        raise NotPermitted(f"this is a capture; {pid} is not here. Nothing was sent.")
    if not fs.is_own():
        raise NotPermitted(f"{fs.proc} is another pid namespace; {pid} there is not {pid} here. Nothing was sent.")
    try:
        return target_of(fs, find_jvm(fs, pid), our_euid)
    except GONE:
        raise NoSuchProcess(pid, "opskit jvms lists the JVMs") from None


def target_of(fs: ProcFS, jvm: Jvm, our_euid: int) -> AttachTarget:
    """As read_target, for a JVM that was found. Raises GONE and AttachError (other-user, not-hotspot)."""
    pid, who = jvm.pid, f"{jvm.pid} ({jvm.main})"
    status = fs.load(parse_status, pid, "status")
    owner = status.effective_uid
    if our_euid not in (0, owner):
        advice = rights.as_owner_or_root(fs, "CAP_SETUID CAP_SETGID", pid, owner)
        raise AttachError("other-user", who, uid=owner, advice=advice)
    if jvm.kind == OPENJ9:
        advice = f"use the jcmd of its own JDK: {shell.command('jcmd', pid, 'Thread.print')}"
        raise AttachError("not-hotspot", who, kind="an OpenJ9 JVM, whose attach protocol is another one", advice=advice)
    if jvm.kind != HOTSPOT:
        advice = f"sample it with {shell.command('perf', 'record', '-g', '-p', pid)}"
        raise AttachError("not-hotspot", who, kind="a GraalVM native image without an attach listener", advice=advice)
    return AttachTarget(jvm, owner, status.effective_gid, status.groups, major_of_jvm(fs, jvm))


def check_same(fs: ProcFS, target: AttachTarget, *, frozen: bool = True) -> None:
    """Raise NoSuchProcess where the JVM has ended, even if its PID was reused, and AttachError (stopped) where it cannot run.

    `frozen` False skips the cgroups, which are most of the work.
    """
    try:
        found = fs.load(parse_stat, target.pid, "stat")
    except GONE:
        raise NoSuchProcess(target.pid, "it has ended") from None
    if found.start_ticks != target.jvm.start_ticks or found.state in "ZX":
        raise NoSuchProcess(target.pid, "the JVM has ended")
    stopped = why_stopped(fs, target.pid, found.state, frozen=frozen)
    if stopped is not None:
        raise AttachError("stopped", target.who, why=stopped.why, advice=stopped.advice)


def why_stopped(fs: ProcFS, pid: int, state: str, *, frozen: bool = True) -> Stopped | None:
    """Why a process in this state (of its stat file) cannot run: stopped, traced or frozen; None where it can."""
    if state == "T":
        return Stopped("is stopped by a signal (state T)", shell.command("kill", "-CONT", pid), command=True)
    if state == "t":
        resume = f"see TracerPid in /proc/{pid}/status, and detach that process"
        return Stopped("is stopped by a debugger or tracer (state t)", resume)
    # Version 1 has a controller that freezes; in version 2 every cgroup can be frozen.
    found = (optional(ancestry, fs, pid, controller) for controller in ("freezer", "pids", "memory") if frozen)
    cgroups = next(filter(None, found), None)
    path = frozen_by(fs, cgroups.levels) if cgroups else None
    return None if path is None else frozen_in(path)


def frozen_in(path: str) -> Stopped:
    """What is said of a process in a frozen cgroup."""
    return Stopped(f"is frozen with its cgroup {path} (a paused container?)", "unpause the container")


def is_disabled(fs: ProcFS, jvm: Jvm) -> bool:
    """Whether it was started with -XX:+DisableAttachMechanism: by its counters, else by its command line."""
    capabilities = jvm.perf.text("sun.rt.jvmCapabilities") if jvm.perf else None
    if capabilities:
        return capabilities.startswith("0")
    return last_flag(*command_words(fs, jvm.pid), "DisableAttachMechanism") == "-XX:+DisableAttachMechanism"


def reduced_signals(words: list[str], environment: list[str]) -> bool:
    """Whether a JVM was started with -Xrs (ReduceSignalUsage): its listener then starts with it, and SIGQUIT kills it."""
    flag = last_flag(words, environment, "ReduceSignalUsage")
    return flag == "-XX:+ReduceSignalUsage" or "-Xrs" in jvm_options(words, environment)


def command_words(fs: ProcFS, pid: int) -> tuple[list[str], list[str]]:
    """The words of its command line, and of its environment; empty where they cannot be read."""
    return fs.maybe(parse_words, pid, "cmdline", default=[]), fs.maybe(parse_words, pid, "environ", default=[])


def may_write(directory: FileId, uid: int, gids: Iterable[int]) -> bool:
    """Whether the mode lets a user create a file in a directory; access control lists are not considered."""
    shift = 6 if directory.uid == uid else 3 if directory.gid in gids else 0
    return uid == 0 or directory.mode >> shift & 0o3 == 0o3


def has_listener(fs: ProcFS, pid: int) -> bool:
    """Whether HotSpot's listener thread is there, by its name. Raises GONE."""
    return has_thread(fs, pid, _LISTENER)


def seems_to_listen(fs: ProcFS, jvm: Jvm) -> bool:
    """Whether its listener seems to run: by its socket, then by its thread, which takes longer to find. Nothing is sent."""
    tmp = optional(fs.inside, jvm.pid, "/tmp")
    socket = tmp and optional(fs.file_id_at, f"{tmp}/.java_pid{jvm.ns_pid}")
    return bool(socket and optional(has_listener, fs, jvm.pid))


def has_thread(fs: ProcFS, pid: int, name: str) -> bool:
    """Whether a thread has this name, of which the kernel keeps 15 bytes. Raises GONE."""
    return any(thread_name(fs, pid, tid) == name for tid in fs.tids(pid))


def remakes(java_major: int | None) -> bool:
    """Whether a JVM of this version recreates a deleted socket at the next trigger; False where the version is unknown."""
    return java_major is not None and java_major >= _REMAKES_SOCKET


def accepts_root_trigger(java_major: int | None) -> bool | None:
    """Whether a JVM of this version accepts a trigger file of root's; None where the version is unknown."""
    return None if java_major is None else java_major > 8


def needs_restart(target: AttachTarget, *, ended: bool = False) -> AttachError:
    """The error for a listener whose socket was deleted, or (`ended`) whose thread has ended, and is not recreated."""
    java, path = f"JDK {target.java_major}" if target.java_major else "this JDK", f"/tmp/{target.socket_name}"
    what = f"has ended (without a free file descriptor?), {path} is left" if ended else f"runs, but {path} was deleted"
    return AttachError("needs-restart", target.who, path=path, java=java, what=what)


def names_threads(java_major: int | None) -> bool:
    """Whether a JVM of this version gives its threads their names; False where the version is unknown."""
    return java_major is not None and java_major >= _NAMES_THREADS


def why_no_signal(fs: ProcFS, target: AttachTarget, clock_ticks: int) -> tuple[str, bool] | None:
    """Why SIGQUIT must not be sent, and whether that may pass because the JVM is starting. None: send it. Raises GONE."""
    status = fs.load(parse_status, target.pid, "status")
    if target.jvm.libjvm is None:
        return f"no libjvm is visible in /proc/{target.pid}/maps, so it is not proven to be a JVM", False
    if ignores_sigquit(status):
        return "it ignores SIGQUIT", False
    young = is_starting(fs, target, clock_ticks)
    if catches_sigquit(status):
        early = young and names_threads(target.java_major) and not has_thread(fs, target.pid, _AFTER_CLEANING)
        return ("it is starting, and would delete the socket of its own listener", True) if early else None
    return "it has no handler for SIGQUIT" + (" yet: it is starting" if young else ", which would kill it"), young


def is_starting(fs: ProcFS, target: AttachTarget, clock_ticks: int) -> bool:
    """Whether it is so young that it may not be ready yet. Raises GONE."""
    started_s = fs.load(parse_stat, target.pid, "stat").start_ticks / clock_ticks
    return fs.load(parse_uptime, "uptime") - started_s < _STARTING_S


def catches_sigquit(status: Status) -> bool:
    """Whether the process has its own handler for SIGQUIT, which otherwise kills."""
    return bool((status.mask("SigCgt") or 0) & _SIGQUIT_BIT)


def ignores_sigquit(status: Status) -> bool:
    """Whether the process ignores SIGQUIT."""
    return bool((status.mask("SigIgn") or 0) & _SIGQUIT_BIT)


def major_of_jvm(fs: ProcFS, jvm: Jvm) -> int | None:
    """Its Java version, by its counters or its JDK's release file; None where both lack it."""
    spec = jvm.perf.text("java.property.java.vm.specification.version") if jvm.perf else None
    return major_of(spec or jdk_release(fs, jvm).get("JAVA_VERSION", ""))


def has_our_tmp(fs: ProcFS, jvm: Jvm) -> bool:
    """Whether a JVM has our PIDs, mounts and root directory, so that our /tmp is its /tmp. Needs no rights."""
    theirs = optional(fs.read, jvm.pid, "mountinfo") if jvm.ns_pid == jvm.pid else None
    return theirs is not None and theirs == optional(fs.read, "self", "mountinfo")


def denied(fs: ProcFS, target: AttachTarget, what: str, capabilities: str = "CAP_SYS_PTRACE") -> AttachError:
    """The error for a refusal of the kernel; `capabilities` are those that root needs."""
    return AttachError("denied", target.who, what=what, advice=why_denied(fs, target.pid, capabilities))


def why_denied(fs: ProcFS, pid: int, capabilities: str = "CAP_SYS_PTRACE") -> str:
    """What may have refused us where file modes do not, and what to do: `capabilities` are those that root needs."""
    seen = ""
    ours = fs.maybe(lambda text: parse_status(text).mask("CapEff"), "self", "status")
    theirs = fs.maybe(lambda text: parse_status(text).mask("CapPrm"), pid, "status")
    names = [] if ours is None else [name.lower() for name in rights.names_of((theirs or 0) & ~ours)]
    if names:
        shown = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
        seen = f"it has capabilities that opskit lacks ({shown}); "
    return seen + rights.how_to_be_allowed(fs, capabilities, *rights.ANY_COMMAND, pid=pid)
