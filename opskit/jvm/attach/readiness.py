"""Whether opskit could attach to a JVM, found out from outside: nothing is sent, nothing is connected, nothing is made.

A yes can still turn out wrong (an orphaned socket, a JVM that never reaches a safepoint): `opskit hsperf-check PID --probe`
tries it.
"""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING, NamedTuple

from opskit import shell
from opskit.errors import AttachError, AttachOtherUser
from opskit.jvm.attach.target import (
    AttachTarget,
    catches_sigquit,
    has_listener,
    ignores_sigquit,
    needs_restart,
    remakes,
    shares_our_mounts,
    target_of,
    why_denied,
    why_disabled,
)
from opskit.jvm.discover import HOTSPOT, OPENJ9, Jvm
from opskit.proc.rights import missing, read_rights

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
    """The answer for a JVM. `state` is of its stat, `frozen_by` the cgroup that is frozen, `our_ids` euid and egid.

    Raises GONE where it vanishes meanwhile.
    """
    if jvm.kind != HOTSPOT:
        return Attachable("openj9" if jvm.kind == OPENJ9 else "native-image", str(jvm.no_perf or jvm.kind))
    try:
        target = target_of(fs, jvm, our_ids[0])
    except AttachOtherUser as error:
        return Attachable("other-user", str(error))
    except AttachError as error:
        return Attachable("no", str(error))
    if our_ids[0] != 0 and our_ids[1] != target.egid:
        return Attachable("other-group", f"it runs with gid {target.egid}, we with {our_ids[1]}: it would refuse us")
    if state in "Tt":
        return Attachable(
            "stopped", f"it is stopped (state {state}): it answers nobody; {shell.command('kill', '-CONT', jvm.pid)}"
        )
    if frozen_by is not None:
        return Attachable("frozen", f"its cgroup {frozen_by} is frozen (a paused container?)")
    disabled = why_disabled(fs, target)
    if disabled is not None:
        return Attachable("disabled", str(disabled))
    return _by_socket(fs, target, status, our_ids[0])


def _by_socket(fs: ProcFS, target: AttachTarget, status: Status, our_euid: int) -> Attachable:
    try:
        tmp = fs.inside(target.pid, "/tmp")
    except OSError as error:
        foreign = target.ns_pid != target.pid or not shares_our_mounts(fs, target.pid)
        if isinstance(error, PermissionError) and foreign:
            return _denied(fs, target, f"/proc/{target.pid}/root/tmp")
        tmp = f"{fs.root}/tmp"
    try:
        found = fs.file_id_at(f"{tmp}/{target.socket_name}")
    except OSError:
        found = None
    if found is not None:
        if stat.S_ISSOCK(found.mode):
            if not fs.is_writable(f"{tmp}/{target.socket_name}"):
                return _denied(fs, target, f"/tmp/{target.socket_name}", "CAP_DAC_OVERRIDE")
            return YES
        return Attachable("no-socket", f"/tmp/{target.socket_name} is no socket: somebody put it there")
    if not remakes(target.java_major) and has_listener(fs, target.pid):
        return Attachable("needs-restart", str(needs_restart(target, f"/tmp/{target.socket_name}")))
    if ignores_sigquit(status) or not catches_sigquit(status):
        how = "ignores SIGQUIT" if ignores_sigquit(status) else "has no handler for SIGQUIT (-Xrs, or just starting)"
        return Attachable("no-signal", f"it has no attach listener, and {how}")
    if target.jvm.libjvm is None:
        return _denied(fs, target, f"/proc/{target.pid}/maps")
    ours = read_rights()
    if our_euid == 0 and target.euid != 0 and ours is not None and missing(ours.effective, _TO_START_ITS_LISTENER):
        return _denied(fs, target, "what starts its listener", _TO_START_ITS_LISTENER)
    if not fs.is_writable(tmp):
        return Attachable("read-only-tmp", "its /tmp cannot be written to: the listener could not make its socket")
    return YES


def _denied(fs: ProcFS, target: AttachTarget, what: str, capabilities: str = "CAP_SYS_PTRACE") -> Attachable:
    return Attachable("denied", f"the kernel does not let us use {what}: {why_denied(fs, target, capabilities)}")
