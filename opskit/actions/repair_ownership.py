"""Repair what hsperf-check found: owners, groups and modes of a JVM's own files; remove files that are proven stale.

Other users can write to /tmp: a file may be swapped between look and repair, and the right owner on a planted socket
makes jstack trust it. So each file is held (proof.py), must still be the one that was looked at (device, inode, one link), is
proven again to be the JVM's or stale, and is changed through that fd (/proc/self/fd/N), never by its name.
"""

from __future__ import annotations

import os
import stat
from contextlib import ExitStack
from typing import TYPE_CHECKING

from opskit.actions import proof
from opskit.actions.proof import Held, Unproven
from opskit.analysis.hsperf_check.repairs import Outcome
from opskit.proc.rights import how_to_be_allowed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from opskit.analysis.hsperf_check.repairs import Repair
    from opskit.host import Host


def carry_out(host: Host, repairs: Iterable[Repair]) -> Iterator[Outcome]:
    """Do each repair, in order. Raises NotPermitted before the first one where the PIDs are another namespace's."""
    host.prove_own()
    for repair in repairs:
        with ExitStack() as fds:
            try:
                held = proof.hold(host, repair, fds)
            except FileNotFoundError:
                yield Outcome(repair, "failed", "gone", "gone", "it no longer exists")
            except Unproven as unproven:
                yield Outcome(repair, "failed", "?", "?", str(unproven))
            except PermissionError as error:
                advice = how_to_be_allowed(host.fs, "CAP_SYS_PTRACE", "opskit", "hsperf-check", repair.pid, "--fix")
                yield Outcome(repair, "failed", "?", "?", f"{error.strerror}; {advice}")
            except OSError as error:
                yield Outcome(repair, "failed", "?", "?", f"a directory on its path has changed: {error.strerror}")
            else:
                yield _change(host, repair, held, fds)


def _change(host: Host, repair: Repair, held: Held, fds: ExitStack) -> Outcome:
    found = held.stat()
    before = _shown(found)
    problem = _not_the_same(repair, found)
    if problem is not None:
        return Outcome(repair, "failed", before, before, problem)
    try:
        if repair.proof == "peer":
            proof.check_peer(held, repair)
        elif repair.proof == "mapped":
            proof.check_mapped(held, repair, fds)
        elif repair.proof == "dead":
            proof.check_dead(host, held)
        if repair.remove:
            now = os.lstat(held.name, dir_fd=held.directory)
            if not os.path.samestat(now, found):
                return Outcome(repair, "failed", before, before, "it was replaced just now")
            os.unlink(held.name, dir_fd=held.directory)
            return Outcome(repair, "done", before, "gone")
        if repair.owner is not None or repair.group is not None:
            os.chown(held.path, *(-1 if value is None else value for value in (repair.owner, repair.group)))
        if repair.mode is not None:
            keep = stat.S_IMODE(held.stat().st_mode) if stat.S_ISDIR(found.st_mode) else 0o7777
            os.chmod(held.path, repair.mode & keep)
    except Unproven as unproven:
        return Outcome(repair, "failed", before, before, str(unproven))
    except OSError as error:
        advice = how_to_be_allowed(host.fs, "CAP_CHOWN CAP_FOWNER", "opskit", "hsperf-check", repair.pid, "--fix")
        return Outcome(repair, "failed", before, _shown(held.stat()), f"{error.strerror}; {advice}")
    return Outcome(repair, "done", before, _shown(held.stat()))


def _shown(found: os.stat_result) -> str:
    return f"{found.st_uid}:{found.st_gid} mode {stat.S_IMODE(found.st_mode):04o}"


def _not_the_same(repair: Repair, found: os.stat_result) -> str | None:
    if (found.st_dev, found.st_ino) != (repair.device, repair.inode):
        return "it is not the file that was looked at any more"
    if found.st_nlink != 1 and not stat.S_ISDIR(found.st_mode):
        return f"it has {found.st_nlink} links"
    mapped = stat.S_ISDIR if repair.code.startswith("hsperf-dir") else stat.S_ISREG
    right = {"peer": stat.S_ISSOCK, "old": stat.S_ISREG, "mapped": mapped}.get(repair.proof)
    if right is not None and not right(found.st_mode):
        return "it has another file type than it should have"
    if repair.proof == "old" and found.st_size:
        return "it is not empty, as a trigger is"
    return None
