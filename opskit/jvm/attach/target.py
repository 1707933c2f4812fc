"""What is known of a JVM before anything is sent to it, and what it was doing when it did not answer. Reads /proc only.

SIGQUIT starts HotSpot's attach listener (os/posix/attachListener_posix.cpp), prints a thread dump where there is no
trigger file, and kills whoever does not catch it. So everything that can go wrong is found out before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from opskit import shell
from opskit.errors import (
    AttachDisabled,
    AttachNeedsRestart,
    AttachNoSignal,
    AttachNotHotSpot,
    AttachOtherUser,
    AttachStopped,
    BadInput,
    NoSuchProcess,
    NotPermitted,
)
from opskit.jvm.discover import HOTSPOT, OPENJ9, Jvm, find_jvm
from opskit.jvm.launch import last_flag, parse_words
from opskit.jvm.release import jdk_release
from opskit.proc import rights
from opskit.proc.cgroup.limits import frozen_by
from opskit.proc.cgroup.tree import ancestry
from opskit.proc.files.boot_time import parse_uptime
from opskit.proc.files.stat import parse_stat
from opskit.proc.files.status import Status, parse_status
from opskit.proc.fs import DENIED, GONE, FileId, ProcFS
from opskit.quantities import integer

if TYPE_CHECKING:
    from collections.abc import Mapping

_SIGQUIT_BIT = 1 << 2
_LISTENER = "Attach Listener"
_REMAKES_SOCKET = 14  # JDK-8225690; 11.0.9 was seen not to
_STARTING_S = 30.0
_BUSY_SHARE = 0.05  # on a crowded machine the thread that holds up all others may get no more


class AttachTarget(NamedTuple):
    """A HotSpot JVM that may be asked. `ns_pid` is its pid in its own namespace, which its files in /tmp are named after.

    `euid`, `egid` and `groups` are as seen from here. `java_major` None: neither its counters nor its JDK's release file
    say it.
    """

    jvm: Jvm
    euid: int
    egid: int
    groups: tuple[int, ...]
    java_major: int | None

    @property
    def pid(self) -> int:
        """Its pid here."""
        return self.jvm.pid

    @property
    def ns_pid(self) -> int:
        """Its pid where it runs."""
        return self.jvm.ns_pid

    @property
    def socket_name(self) -> str:
        """The socket's name in its /tmp."""
        return f".java_pid{self.ns_pid}"

    @property
    def trigger_name(self) -> str:
        """The trigger's name, in its working directory or its /tmp."""
        return f".attach_pid{self.ns_pid}"


def read_target(fs: ProcFS, pid: int, our_euid: int) -> AttachTarget:
    """Prove that a process is a HotSpot JVM that we may ask. Raises NoSuchProcess, NotAJvm, NotPermitted and AttachError."""
    if not fs.is_own():
        raise NotPermitted(f"{fs.proc} is another pid namespace; {pid} there is not {pid} here. Nothing was sent.")
    try:
        return target_of(fs, find_jvm(fs, pid), our_euid)
    except GONE:
        raise NoSuchProcess(pid, "opskit jvms lists the JVMs") from None


def target_of(fs: ProcFS, jvm: Jvm, our_euid: int) -> AttachTarget:
    """The same for a JVM that was found. Raises GONE, AttachOtherUser, AttachNotHotSpot."""
    pid = jvm.pid
    status = fs.load(parse_status, pid, "status")
    owner = status.effective_uid
    if our_euid not in (0, owner):
        raise AttachOtherUser(
            f"{pid} ({jvm.main}) belongs to uid {owner}: only that user and root may attach; "
            f"{rights.as_owner_or_root(fs, 'CAP_SETUID CAP_SETGID', pid, owner)}"
        )
    if jvm.kind == OPENJ9:
        raise AttachNotHotSpot(
            f"{pid} ({jvm.main}) is an OpenJ9 JVM: its attach protocol is another one; "
            f"use the jcmd of its own JDK: {shell.command('jcmd', pid, 'Thread.print')}"
        )
    if jvm.kind != HOTSPOT:
        raise AttachNotHotSpot(
            f"{pid} ({jvm.main}) is a GraalVM native image, no JVM: nothing listens for attaching; "
            f"{shell.command('perf', 'record', '-g', '-p', pid)} works"
        )
    return AttachTarget(jvm, owner, status.effective_gid, status.groups, major_of_jvm(fs, jvm))


def check_same(fs: ProcFS, target: AttachTarget, *, frozen: bool = True) -> None:
    """Raise NoSuchProcess where the JVM has ended (its pid may have gone to another process), AttachStopped where it stands still.

    `frozen` False leaves its cgroups out, which are most of the work: for a JVM that answered a moment ago.
    """
    try:
        stat = fs.load(parse_stat, target.pid, "stat")
    except GONE:
        raise NoSuchProcess(target.pid, "it has ended") from None
    if stat.start_ticks != target.jvm.start_ticks or stat.state in "ZX":
        raise NoSuchProcess(target.pid, "the JVM has ended")
    stopped = why_stopped(fs, target.pid, stat.state, frozen=frozen)
    if stopped is not None:
        raise AttachStopped(stopped)


def why_stopped(fs: ProcFS, pid: int, state: str, *, frozen: bool = True) -> str | None:
    """Why a process in this state (of its stat file) answers nobody: stopped, traced, frozen; None: it does not stand still."""
    if state == "T":
        go_on = shell.command("kill", "-CONT", pid)
        return f"{pid} is stopped by a signal (state T): it answers nobody; go on with it: {go_on}"
    if state == "t":
        return f"{pid} is stopped by a debugger or tracer (state t; TracerPid in /proc/{pid}/status): it answers nobody"
    path = _frozen_cgroup(fs, pid) if frozen else None
    if path is not None:
        return f"{pid} is frozen with its cgroup {path} (a paused container?): it answers nobody; unpause it"
    return None


def _frozen_cgroup(fs: ProcFS, pid: int) -> str | None:
    """The cgroup that is frozen with all in it: v1 has a controller for it, in v2 every cgroup can be."""
    for controller in ("freezer", "pids", "memory"):
        try:
            cgroups = ancestry(fs, pid, controller)
        except (*GONE, DENIED, BadInput):
            return None
        if cgroups:
            return frozen_by(fs, cgroups.levels)
    return None


def why_disabled(fs: ProcFS, target: AttachTarget) -> AttachDisabled | None:
    """Whether it was started with -XX:+DisableAttachMechanism: by its counters, else by its command line."""
    flags = target.jvm.perf.text("sun.rt.jvmCapabilities") if target.jvm.perf else None
    if flags is None:
        words, environment = command_words(fs, target.pid)
        flags = "0" if last_flag(words, environment, "DisableAttachMechanism") == "-XX:+DisableAttachMechanism" else "1"
    if not flags.startswith("0"):
        return None
    return AttachDisabled(
        f"{target.pid} ({target.jvm.main}) was started with -XX:+DisableAttachMechanism: nobody can attach; "
        "start it without that option"
    )


def is_reduced_signals(fs: ProcFS, target: AttachTarget) -> bool:
    """Whether it was started with -Xrs (ReduceSignalUsage): then its listener starts with it, and SIGQUIT kills."""
    return reduced_signals(*command_words(fs, target.pid))


def reduced_signals(words: list[str], environment: list[str]) -> bool:
    """The same of a command line and an environment."""
    if last_flag(words, environment, "ReduceSignalUsage") == "-XX:+ReduceSignalUsage":
        return True
    options = [option for entry in environment if "OPTIONS=" in entry for option in entry.partition("=")[2].split()]
    return "-Xrs" in words or "-Xrs" in options


def command_words(fs: ProcFS, pid: int) -> tuple[list[str], list[str]]:
    """The words of its command line, and of its environment; empty where the rights do not suffice."""
    found: list[list[str]] = []
    for name in ("cmdline", "environ"):
        try:
            found.append(fs.load(parse_words, pid, name))
        except (*GONE, DENIED):  # whoever goes on sees that it has ended; a copy may lack them
            found.append([])
    return found[0], found[1]


def may_write(directory: FileId, uid: int, gids: tuple[int, ...]) -> bool:
    """Whether the modes let a user make a file in a directory; access lists are not looked at."""
    if uid == 0:
        return True
    shift = 6 if directory.uid == uid else 3 if directory.gid in gids else 0
    return directory.mode >> shift & 0o3 == 0o3


def has_listener(fs: ProcFS, pid: int) -> bool:
    """Whether HotSpot's listener thread is there, by its name."""
    for tid in fs.tids(pid):
        try:
            if fs.load(_line, pid, "task", tid, "comm") == _LISTENER:
                return True
        except (*GONE, DENIED):
            continue
    return False


def remakes(java_major: int | None) -> bool:
    """Whether a JVM of this version whose socket was deleted makes another one when it is asked to; unknown is no."""
    return java_major is not None and java_major >= _REMAKES_SOCKET


def needs_restart(target: AttachTarget, path: str) -> AttachNeedsRestart:
    """The verdict over a listener that has lost its socket for good."""
    java = f"JDK {target.java_major}" if target.java_major else "this JDK"
    return AttachNeedsRestart(
        f"{target.pid} ({target.jvm.main}) has its attach listener, but {path} was deleted, and {java} does not make it "
        "again: only a restart of the JVM helps. No signal was sent"
    )


def why_no_signal(fs: ProcFS, target: AttachTarget, clock_ticks: int) -> tuple[str, bool] | None:
    """Why SIGQUIT must not be sent, and whether that may pass (the JVM is starting). None: it may be sent.

    Raises GONE.
    """
    status = fs.load(parse_status, target.pid, "status")
    if target.jvm.libjvm is None:
        return f"libjvm cannot be seen in /proc/{target.pid}/maps, so it is not proven to be a JVM", False
    if ignores_sigquit(status):
        return "it ignores SIGQUIT", False
    if catches_sigquit(status):
        return None
    young = is_starting(fs, target, clock_ticks)
    return "it has no handler for SIGQUIT" + (" yet: it is starting" if young else ", which would kill it"), young


def is_starting(fs: ProcFS, target: AttachTarget, clock_ticks: int) -> bool:
    """Whether it is so young that it may not be ready yet. Raises GONE."""
    started_s = fs.load(parse_stat, target.pid, "stat").start_ticks / clock_ticks
    return fs.load(parse_uptime, "uptime") - started_s < _STARTING_S


def catches_sigquit(status: Status) -> bool:
    """Whether a handler of the process's own is in place: without one SIGQUIT kills."""
    return _has(status, "SigCgt")


def ignores_sigquit(status: Status) -> bool:
    """Whether SIGQUIT does nothing to the process."""
    return _has(status, "SigIgn")


def _has(status: Status, key: str) -> bool:
    mask = status.mask(key)
    return mask is not None and bool(mask & _SIGQUIT_BIT)


def no_signal(target: AttachTarget, why: str) -> AttachNoSignal:
    """The error for it."""
    return AttachNoSignal(
        f"{target.pid} ({target.jvm.main}) has no attach listener, and cannot be made to start one: {why}. No signal was sent"
    )


def major_of_jvm(fs: ProcFS, jvm: Jvm) -> int | None:
    """Its Java version, by its counters or its JDK's release file; None where neither says it."""
    spec = jvm.perf.text("java.property.java.vm.specification.version") if jvm.perf else None
    return major_of(spec or jdk_release(fs, jvm).get("JAVA_VERSION", ""))


def major_of(version: str) -> int | None:
    """8 for `1.8.0_402`, 17 for `17.0.15` or `17-ea`; None for what is no version."""
    first, _, rest = version.removeprefix("1.").partition(".")
    first = first.partition("-")[0].partition("_")[0]
    return integer(first) if first != "1" or not rest else None


def thread_times(fs: ProcFS, pid: int) -> dict[int, tuple[str, int]]:
    """By tid: (comm, CPU ticks) of every thread; empty where the process is gone."""
    times: dict[int, tuple[str, int]] = {}
    try:
        tids = fs.tids(pid)
    except GONE:
        return times
    for tid in tids:
        try:
            stat = fs.load(parse_stat, pid, "task", tid, "stat")
        except (*GONE, DENIED, BadInput):
            continue
        times[tid] = (stat.comm, stat.user_ticks + stat.system_ticks)
    return times


def burning(
    before: Mapping[int, tuple[str, int]], after: Mapping[int, tuple[str, int]], elapsed_ticks: float
) -> tuple[int, str, float] | None:
    """(tid, comm, share of one CPU) of the thread that used most CPU in between; None where none used a twentieth."""
    shares = [(ticks - before.get(tid, (comm, 0))[1], tid, comm) for tid, (comm, ticks) in after.items()]
    if not shares or elapsed_ticks <= 0:
        return None
    ticks, tid, comm = max(shares)
    share = ticks / elapsed_ticks
    return (tid, comm, min(share, 1.0)) if share >= _BUSY_SHARE else None


def meanwhile(found: tuple[int, str, float] | None) -> str:
    """What a JVM that did not answer was doing, and what to do about it."""
    if found is None:
        return (
            "none of its threads used much CPU meanwhile: it may be waiting for memory, for its disk or to be scheduled "
            "(opskit jvms shows throttling); a longer --timeout may do"
        )
    tid, comm, share = found
    said = f'thread "{comm}" (tid {tid}) used {share:.0%} of a CPU meanwhile'
    if comm.startswith(("GC Thread", "G1 ", "ZWorker", "ZDriver", "ZWorkerYoung", "ZWorkerOld", "Shenandoah", "ParGC")):
        return f"{said}: the JVM is busy with its garbage collection"
    if comm == "VM Thread":
        return f"{said}: the JVM is inside a long VM operation"
    return (
        f"{said}: if that is a loop without a safepoint poll, the JVM can answer nobody until it ends; "
        f"{shell.command('perf', 'record', '-g', '-t', tid)} shows where it is"
    )


def shares_our_mounts(fs: ProcFS, pid: int) -> bool:
    """Whether a process has the mounts and the root directory that we have, so that our /tmp is its /tmp. No rights are needed."""
    try:
        return fs.read(pid, "mountinfo") == fs.read("self", "mountinfo")
    except (*GONE, DENIED):
        return False


def why_denied(fs: ProcFS, target: AttachTarget | int, capabilities: str = "CAP_SYS_PTRACE") -> str:
    """What may have refused us where file modes do not, and what to do: `capabilities` are those that root needs for it."""
    pid = target if isinstance(target, int) else target.pid
    seen = []
    try:
        ours = fs.load(parse_status, "self", "status").mask("CapEff") or 0
        theirs = fs.load(parse_status, pid, "status").mask("CapPrm") or 0
    except (*GONE, DENIED):
        ours = theirs = 0
    names = [name.lower() for name in rights.names_of(theirs & ~ours)]
    if names:
        shown = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
        seen.append(f"it has capabilities that we have not ({shown})")
    return "; ".join([*seen, rights.how_to_be_allowed(fs, capabilities, *rights.ANY_COMMAND, pid=pid)])


def _line(text: str) -> str:
    return text.removesuffix("\n")
