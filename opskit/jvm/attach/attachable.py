"""Whether opskit could attach to a JVM, by what is visible from outside: nothing is sent, connected or created."""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING

from opskit.errors import AttachError
from opskit.jvm.attach import target as targets
from opskit.jvm.attach.descriptors import shortage
from opskit.jvm.attach.printed_dump import instead
from opskit.jvm.discover import HOTSPOT, OPENJ9
from opskit.proc import rights
from opskit.proc.fs import GONE, ProcFS, optional
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from opskit.jvm.attach.target import AttachTarget
    from opskit.jvm.discover import Jvm
    from opskit.proc.files.status import Status


class Attachable(NamedTuple):
    """Whether opskit could attach, by what is visible from outside.

    `code`: a word for a column, `yes` or why not; `why`: the sentence for it. `opskit hsperf-check PID --probe` tries it.
    """

    code: str
    why: str | None = None


YES = Attachable("yes")
NO_SAFEPOINT = Attachable("no-safepoint", "its threads do not stop for a safepoint, without which it cannot answer")
_TO_START_ITS_LISTENER = "CAP_SETUID CAP_SETGID CAP_KILL"  # to make its trigger file as its user, and to signal it


def attachable(
    fs: ProcFS, jvm: Jvm, status: Status, state: str, frozen_by: str | None, our_ids: tuple[int, int]
) -> Attachable:
    """The answer for a JVM. `state`: of its stat; `frozen_by`: the frozen cgroup; `our_ids`: euid, egid. Raises GONE."""
    if jvm.kind != HOTSPOT:
        return Attachable("openj9" if jvm.kind == OPENJ9 else "native-image", str(jvm.no_perf or jvm.kind))
    try:
        target = targets.target_of(fs, jvm, our_ids[0])
    except AttachError as error:
        return Attachable("other-user" if error.reason == "other-user" else "no", str(error))
    if our_ids[0] != 0 and our_ids[1] != target.egid:
        why = f"it runs with gid {target.egid} and refuses clients with another one (ours is {our_ids[1]})"
        return Attachable("other-group", why)
    stopped = targets.why_stopped(fs, jvm.pid, state, frozen=False)
    if stopped is not None:
        return Attachable("stopped", f"it {stopped.why}; {stopped.advice}")
    if frozen_by is not None:
        return Attachable("frozen", f"its cgroup {frozen_by} is frozen (a paused container?)")
    if targets.is_disabled(fs, jvm):
        return _dead_end(fs, target, "disabled", str(AttachError("disabled", target.who)))
    return _by_socket(fs, target, status, our_ids[0])


def _by_socket(fs: ProcFS, target: AttachTarget, status: Status, our_euid: int) -> Attachable:
    """By the file in its /tmp, its listener's thread, its descriptors and its signal handlers."""
    try:
        tmp = fs.inside(target.pid, "/tmp")
    except PermissionError:
        if not targets.has_our_tmp(fs, target.jvm):
            return _no_rights(fs, target, f"/proc/{target.pid}/root/tmp")
        tmp = f"{fs.root}/tmp"
    except GONE:
        raise
    except OSError as error:
        return _dead_end(fs, target, "read-only-tmp", f"its /tmp cannot be used: {error.strerror}")
    path = f"/tmp/{target.socket_name}"
    found = optional(fs.file_id_at, f"{tmp}/{target.socket_name}")
    if found is not None and not stat.S_ISSOCK(found.mode):
        why = f"{path} is not a socket: find out who made it, and remove it"
        return _dead_end(fs, target, "no-socket", why)
    # A socket without that thread was left by an earlier process, or its listener has ended.
    listens = targets.has_listener(fs, target.pid)
    if found is not None and (listens or not targets.names_threads(target.java_major)):
        if not fs.is_writable(f"{tmp}/{target.socket_name}"):
            return _no_rights(fs, target, path, "CAP_DAC_OVERRIDE")
        return _without_descriptors(fs, target, listens=True) or YES
    ended = found is not None and _is_bound(fs, target.pid, target.socket_name)
    if not targets.remakes(target.java_major) and (listens or ended):
        return _dead_end(fs, target, "needs-restart", str(targets.needs_restart(target, ended=ended)))
    return _by_start(fs, target, status, our_euid, tmp)


def _by_start(fs: ProcFS, target: AttachTarget, status: Status, our_euid: int, tmp: str) -> Attachable:
    """By what the start of its listener needs."""
    ignores = targets.ignores_sigquit(status)
    if ignores or not targets.catches_sigquit(status):
        how = "ignores SIGQUIT" if ignores else "has no handler for SIGQUIT (-Xrs, or it is starting)"
        return _dead_end(fs, target, "no-signal", f"it has no attach listener, and {how}")
    if target.jvm.libjvm is None:
        return _no_rights(fs, target, f"/proc/{target.pid}/maps")
    ours = rights.our_rights(fs) if our_euid == 0 and target.euid != 0 else None
    if ours is not None and rights.missing(ours.effective, _TO_START_ITS_LISTENER):
        return _no_rights(fs, target, "the start of its listener", _TO_START_ITS_LISTENER)
    if not fs.is_writable(tmp):
        why = "its /tmp is not writable: the listener could not make its socket"
        return _dead_end(fs, target, "read-only-tmp", why)
    return _without_descriptors(fs, target, listens=False) or YES


def _without_descriptors(fs: ProcFS, target: AttachTarget, *, listens: bool) -> Attachable | None:
    lacking = shortage(fs, target.pid, listens=listens)
    return lacking and _dead_end(fs, target, "no-fds", lacking.sentence)


def _is_bound(fs: ProcFS, pid: int, name: str) -> bool:
    """Whether a process still has a listening socket of this name: `… 00010000 0001 01 8121 /tmp/.java_pid42.tmp`."""
    lines = fs.maybe(str.splitlines, pid, "net", "unix", default=[])
    return any(name in line and " 00010000 " in line for line in lines)


def _dead_end(fs: ProcFS, target: AttachTarget, code: str, why: str) -> Attachable:
    """No client can attach: with what gives a thread dump without it."""
    return Attachable(code, "; ".join((why, *instead(fs, target.jvm, target.java_major))))


def _no_rights(fs: ProcFS, target: AttachTarget, what: str, capabilities: str = "CAP_SYS_PTRACE") -> Attachable:
    return Attachable("denied", f"permission denied for {what}: {targets.why_denied(fs, target.pid, capabilities)}")
