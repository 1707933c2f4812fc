"""Whether opskit could attach to a JVM, found out from outside: nothing is sent, connected or made.

A yes can still be wrong (an orphaned socket, a JVM that never reaches a safepoint): `opskit hsperf-check PID --probe` tries it.
"""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING

from opskit.errors import AttachError
from opskit.jvm.attach import target as targets
from opskit.jvm.discover import HOTSPOT, OPENJ9, Jvm
from opskit.proc.fs import optional
from opskit.proc.rights import missing, read_rights
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from opskit.proc.files.status import Status
    from opskit.proc.fs import ProcFS


class Attachable(NamedTuple):
    """`code` is a word for a column: `yes`, or why not; `why` the sentence for it."""

    code: str
    why: str | None = None


YES = Attachable("yes")
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
        return Attachable("disabled", str(AttachError("disabled", target.who)))
    return _by_socket(fs, target, status, our_ids[0])


def _by_socket(fs: ProcFS, target: targets.AttachTarget, status: Status, our_euid: int) -> Attachable:
    try:
        tmp = fs.inside(target.pid, "/tmp")
    except OSError as error:
        foreign = target.jvm.ns_pid != target.pid or not targets.shares_our_mounts(fs, target.pid)
        if isinstance(error, PermissionError) and foreign:
            return _denied(fs, target, f"/proc/{target.pid}/root/tmp")
        tmp = f"{fs.root}/tmp"
    found = optional(fs.file_id_at, f"{tmp}/{target.socket_name}")
    if found is not None:
        if not stat.S_ISSOCK(found.mode):
            why = f"/tmp/{target.socket_name} is not a socket: find out who made it, and remove it"
            return Attachable("no-socket", why)
        if not fs.is_writable(f"{tmp}/{target.socket_name}"):
            return _denied(fs, target, f"/tmp/{target.socket_name}", "CAP_DAC_OVERRIDE")
        return YES
    if not targets.remakes(target.java_major) and targets.has_listener(fs, target.pid):
        return Attachable("needs-restart", str(targets.needs_restart(target)))
    ignores = targets.ignores_sigquit(status)
    if ignores or not targets.catches_sigquit(status):
        how = "ignores SIGQUIT" if ignores else "has no handler for SIGQUIT (-Xrs, or it is starting)"
        return Attachable("no-signal", f"it has no attach listener, and {how}")
    if target.jvm.libjvm is None:
        return _denied(fs, target, f"/proc/{target.pid}/maps")
    ours = read_rights()
    if our_euid == 0 and target.euid != 0 and ours is not None and missing(ours.effective, _TO_START_ITS_LISTENER):
        return _denied(fs, target, "the start of its listener", _TO_START_ITS_LISTENER)
    if not fs.is_writable(tmp):
        return Attachable("read-only-tmp", "its /tmp is not writable: the listener could not make its socket")
    return YES


def _denied(fs: ProcFS, target: targets.AttachTarget, what: str, capabilities: str = "CAP_SYS_PTRACE") -> Attachable:
    return Attachable("denied", f"permission denied for {what}: {targets.why_denied(fs, target.pid, capabilities)}")
