"""Drop the kernel's caches: sync, then write to /proc/sys/vm/drop_caches.

Documentation/admin-guide/sysctl/vm.rst, fs/drop_caches.c. 4, which is never written, mutes the log line until the next boot.
"""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

from opskit import shell
from opskit.actions.child import run_in_child
from opskit.analysis.dentry.drop import Dropped
from opskit.errors import NotPermitted, NotSupported, TargetTimeout
from opskit.proc.fs import ProcFS
from opskit.proc.namespaces import container_evidence
from opskit.proc.rights import how_to_be_allowed

if TYPE_CHECKING:
    from opskit.host import Host

LEVELS = {"pagecache": 1, "dentries": 2, "all": 3}
NOTHING = "Nothing was changed."
_DROP_TIMEOUT_S = 600.0  # a second or two per million entries is usual


def check_may_drop(host: Host, level: str, *, in_container: bool) -> None:
    """Raise NotPermitted or NotSupported, with the command that would work, unless we may drop this machine's caches."""
    host.prove_here("--drop")
    if not host.is_own:
        where = f"{host.fs.proc} is another machine or pid namespace"
        raise NotPermitted(f"{where}, --drop is for this one only. {NOTHING}")
    evidence = container_evidence(host.fs)
    if evidence is not None and not in_container:
        raise NotPermitted(
            f"this is a container ({evidence}), and a drop affects the whole host. {NOTHING} "
            "To reclaim this container's own caches: echo 512M > /sys/fs/cgroup/memory.reclaim (cgroup v2, Linux 5.19 "
            "and later); to drop those of the host: add --in-container"
        )
    path = control_file(host)
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CLOEXEC))
    except OSError as error:
        raise _refused(error, path, level, in_a_container=evidence is not None) from None


def control_file(host: Host) -> str:
    """The path of the file that drops."""
    return host.fs.path("sys", "vm", "drop_caches")


def sync_and_drop(host: Host, level: str, sync_timeout_s: float) -> Dropped:
    """Write out dirty data, then drop a level of LEVELS. Ctrl-C ends either. Raises NotPermitted, TargetTimeout."""
    done = Dropped(level, LEVELS[level], control_file(host), sync_timeout_s)
    begun = host.monotonic()
    try:
        done = done._replace(synced=sync(host, sync_timeout_s), sync_s=host.monotonic() - begun)
    except KeyboardInterrupt:
        return done._replace(interrupted=True)
    begun = host.monotonic()
    try:
        drop(host, level)
    except KeyboardInterrupt:
        done = done._replace(interrupted=True)
    return done._replace(drop_s=host.monotonic() - begun)


def sync(host: Host, timeout_s: float) -> bool:
    """Write out dirty data, which a drop would leave; False where that takes longer: it goes on in the background."""
    return run_in_child(host, os.sync, timeout_s) == 0


def drop(host: Host, level: str) -> None:
    """Drop a level of LEVELS. Raises NotPermitted if the write is refused, TargetTimeout if it does not return."""
    path = control_file(host)

    def write() -> None:
        fd = os.open(path, os.O_WRONLY)
        os.write(fd, b"%d\n" % LEVELS[level])

    code = run_in_child(host, write, _DROP_TIMEOUT_S)
    if code is None:
        raise TargetTimeout(
            f"the kernel has not come back from the drop in {_DROP_TIMEOUT_S:.0f} s (a hung mount?): it goes on in the "
            "background, and may have dropped a part; opskit dentry shows how much there is now"
        )
    if code:
        raise _refused(OSError(code, os.strerror(code)), path, level, in_a_container=False)


def _refused(error: OSError, path: str, level: str, *, in_a_container: bool) -> NotPermitted | NotSupported:
    if error.errno == errno.ENOENT:
        return NotSupported(f"this kernel has no {path}. {NOTHING}")
    words = ("opskit", "dentry", "--drop", level)
    denied, read_only = error.errno in (errno.EACCES, errno.EPERM), error.errno == errno.EROFS
    verb, why, remedy = "cannot be written", f"{error.strerror}{' (usual in a container)' * read_only}", ""
    if read_only or (in_a_container and denied):
        remedy = f" Run it on the host itself, as root: {shell.command('sudo', *words)}"
    elif denied:
        verb = f"must not be written by {'root' if os.geteuid() == 0 else f'uid {os.geteuid()}'}"
        advice = how_to_be_allowed(ProcFS(), "", *words)  # the machine's root owns it
        remedy = f" {advice[0].upper()}{advice[1:]}"
    return NotPermitted(f"{path} {verb}: {why}. {NOTHING}{remedy}")
