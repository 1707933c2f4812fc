"""Repair what hsperf-check found: owners, groups and modes of a JVM's own files; remove what is proven dead.

/tmp is a hostile place: between the look and the deed a file may have been swapped, and the right owner on a planted
socket makes jstack trust it. So each file is opened O_PATH|O_NOFOLLOW, must still be the one that was looked at (device,
inode, one link), is proven once more to be the JVM's or to be dead, and is then changed through that very handle
(/proc/self/fd/N), never by its name.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING

from opskit.jvm.attach import listener_at
from opskit.jvm.attachfiles import FileFinder
from opskit.jvm.maps import parse_jvm_maps
from opskit.proc.fs import DENIED, GONE
from opskit.proc.rights import how_to_be_allowed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from opskit.analysis.hsperf_check import Repair
    from opskit.host import Host


@dataclass(frozen=True, slots=True)
class Done:
    """What became of one repair. `problem` None: it was done. `before` and `after`: `uid:gid mode`, or `gone`."""

    repair: Repair
    before: str
    after: str
    problem: str | None = None


def carry_out(host: Host, repairs: Iterable[Repair]) -> Iterator[Done]:
    """Do each repair, in order. Raises NotPermitted, before anything is touched, where the pids are another namespace's."""
    host.prove_own()
    for repair in repairs:
        yield _carry_out(host, repair)


def _carry_out(host: Host, repair: Repair) -> Done:
    directory, _, name = repair.path.rpartition("/")
    try:
        # The last directory may be a link only where it is the kernel's own: /proc/PID/cwd.
        follow = 0 if directory == f"{host.fs.proc}/{repair.pid}/cwd" else os.O_NOFOLLOW
        at = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC | follow)
    except OSError as error:
        return Done(repair, "?", "?", f"{directory}: {error.strerror}")
    try:
        handle = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=at)
    except FileNotFoundError:
        return Done(repair, "gone", "gone", "it is not there any more")
    except OSError as error:
        return Done(repair, "?", "?", error.strerror)
    else:
        try:
            return _change(host, repair, at, name, handle)
        finally:
            os.close(handle)
    finally:
        os.close(at)


def _change(host: Host, repair: Repair, at: int, name: str, handle: int) -> Done:
    found = os.fstat(handle)
    before = _shown(found)
    problem = _not_the_same(repair, found) or _unproven(host, repair, handle)
    if problem is not None:
        return Done(repair, before, before, problem)
    try:
        if repair.remove:
            now = os.lstat(name, dir_fd=at)
            if (now.st_dev, now.st_ino) != (found.st_dev, found.st_ino):
                return Done(repair, before, before, "somebody replaced it just now")
            os.unlink(name, dir_fd=at)
            return Done(repair, before, "gone")
        path = f"/proc/self/fd/{handle}"
        if repair.owner is not None or repair.group is not None:
            os.chown(path, -1 if repair.owner is None else repair.owner, -1 if repair.group is None else repair.group)
        if repair.mode is not None:
            os.chmod(path, repair.mode)
    except OSError as error:
        return Done(repair, before, _shown(os.fstat(handle)), f"{error.strerror}; {_to_change_it(host, repair)}")
    return Done(repair, before, _shown(os.fstat(handle)))


def _to_change_it(host: Host, repair: Repair) -> str:
    return how_to_be_allowed(host.fs, "CAP_CHOWN CAP_FOWNER", "opskit", "hsperf-check", repair.pid, "--fix")


def _shown(found: os.stat_result) -> str:
    return f"{found.st_uid}:{found.st_gid} mode {stat.S_IMODE(found.st_mode):04o}"


def _not_the_same(repair: Repair, found: os.stat_result) -> str | None:
    if (found.st_dev, found.st_ino) != (repair.device, repair.inode):
        return "it is not the file that was looked at any more"
    if found.st_nlink != 1 and not stat.S_ISDIR(found.st_mode):
        return f"it has {found.st_nlink} links"
    kinds = {"peer": stat.S_ISSOCK, "old": stat.S_ISREG}
    right = kinds.get(repair.proof)
    if repair.proof == "mapped":
        right = stat.S_ISDIR if repair.code.startswith("hsperf-dir") else stat.S_ISREG
    if right is not None and not right(found.st_mode):
        return "it is of another kind than it should be"
    if repair.proof == "old" and found.st_size:
        return "it is not empty, as a trigger is"
    return None


def _unproven(host: Host, repair: Repair, handle: int) -> str | None:
    """Why the file is not proven to be the JVM's own, or dead; None where it is."""
    path = f"/proc/self/fd/{handle}"
    if repair.proof == "peer":
        alive, peer = listener_at(path)
        return None if alive and peer == repair.pid else f"its listener is not {repair.pid}"
    if repair.proof == "mapped":
        return _not_mapped(host, repair)
    if repair.proof == "dead":
        if stat.S_ISSOCK(os.fstat(handle).st_mode):
            alive, _ = listener_at(path)
            return None if alive is False else "somebody listens on it"
        finder = FileFinder(host.fs, listener_at, host.user_name)
        if finder.is_locked(repair.inode) is not False:
            return "somebody holds a lock on it, or locks cannot be seen"
        if finder.is_mapped(repair.inode) is not False:
            return "a process maps it, or not every process could be looked into"
    return None


def _not_mapped(host: Host, repair: Repair) -> str | None:
    try:
        mapping = host.fs.load(parse_jvm_maps, repair.pid, "maps").hsperfdata
    except (*GONE, DENIED):
        return f"the maps of {repair.pid} cannot be read"
    if mapping is None or mapping.deleted:
        return f"{repair.pid} maps no hsperfdata file"
    if not repair.code.startswith("hsperf-dir"):
        return None if mapping.inode == repair.inode else f"{repair.pid} maps another file"
    try:
        inside = host.fs.file_id_at(f"{repair.path}/{mapping.path.rpartition('/')[2]}")
    except OSError:
        inside = None
    return (
        None
        if inside is not None and inside.inode == mapping.inode
        else f"the file that {repair.pid} maps is not in it"
    )
