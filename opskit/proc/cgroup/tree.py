"""The cgroups of a process, v1, v2 or both (cgroups(7), Documentation/admin-guide/cgroup-v2.rst).

/proc/PID/cgroup, a line a hierarchy; `0::` is v2:

    9:name=systemd:/system.slice/app.service
    8:pids:/system.slice/app.service
    1:cpu,cpuacct:/
    0::/system.slice/app.service
"""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

from opskit.errors import BadInput
from opskit.proc.files.mountinfo import Mount, parse_mountinfo
from opskit.proc.fs import DENIED, GONE, ProcFS, optional
from opskit.proc.lines import lines_of
from opskit.proc.visibility import why_unread
from opskit.quantities import integer, signed
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

_LONGEST_PATH = 4096  # PATH_MAX
MOST_CGROUPS = 20_000
_DEEPEST_ROOT = 32  # a namespace's root deeper below a mount is not searched for


class Membership(NamedTuple):
    """One hierarchy of /proc/PID/cgroup. `controllers` is empty for v2."""

    hierarchy: int
    controllers: tuple[str, ...]
    path: str


class Level(NamedTuple):
    """One cgroup: its `path` as the kernel names it, the `directory` of its files, and the `version`, 1 or 2."""

    path: str
    directory: str
    version: int

    def load(self, fs: ProcFS, name: str) -> str | None:
        """A file of this cgroup, stripped; None where it cannot be read."""
        return fs.maybe_root(str.strip, self.directory.lstrip("/"), name)

    def number(self, fs: ProcFS, name: str) -> int | None:
        """A file that holds one number; None for `max`, for anything else, and where there is none."""
        return signed(self.load(fs, name) or "")

    def has(self, fs: ProcFS, name: str) -> bool:
        """Whether the cgroup has this file, readable or not."""
        return fs.root_exists(self.directory.lstrip("/"), name)

    def children(self, fs: ProcFS) -> list[Level]:
        """The cgroups right below, by name; none where they are gone, hidden, or nested deeper than a path may be long."""
        names = optional(fs.root_directories, self.directory.lstrip("/"), default=[])
        join = posixpath.join
        return [Level(join(self.path, name), join(self.directory, name), self.version) for name in names]

    def with_those_below(self, fs: ProcFS) -> Iterator[Level]:
        """This cgroup and all that are nested in it, no more than a machine may have."""
        waiting = [self]
        for _ in range(MOST_CGROUPS):
            if not waiting:
                return
            level = waiting.pop()
            yield level
            waiting += level.children(fs)

    def pids(self, fs: ProcFS) -> list[int]:
        """The processes in this cgroup, without those below it and those of other PID namespaces."""
        words = (self.load(fs, "cgroup.procs") or "").split()
        return [pid for word in words if (pid := integer(word))]  # 0: of another PID namespace

    def table(self, fs: ProcFS, name: str) -> dict[str, int]:
        """A file of `key number` lines (cpu.stat, memory.stat, pids.events); empty where there is none."""
        pairs = (line.split() for line in lines_of(self.load(fs, name) or ""))
        values = ((words[0], integer(words[1])) for words in pairs if len(words) == 2)
        return {key: value for key, value in values if value is not None}


class Ancestry(NamedTuple):
    """A controller's cgroups from the process's own up. `complete`: to the machine's root, not a namespace's."""

    levels: tuple[Level, ...]
    complete: bool


def parse_cgroup(text: str) -> list[Membership]:
    """The lines of /proc/PID/cgroup. Raises BadInput."""
    found = []
    for number, line in enumerate(lines_of(text), 1):
        hierarchy, colon, rest = line.partition(":")
        controllers, second, path = rest.partition(":")
        index = integer(hierarchy)
        if not colon or not second or index is None or not path.startswith("/") or len(path) > _LONGEST_PATH:
            raise BadInput("cgroup", "not `number:controllers:path`", number, line)
        found.append(Membership(index, tuple(filter(None, controllers.split(","))), path))
    return found


def ancestry(fs: ProcFS, pid: int | str, controller: str) -> Ancestry | None:
    """The cgroups whose `controller` (pids, memory, cpu, …) holds this process; None where they are not visible.

    "" is no controller: v2's own, which has pressure even if v1 has all the controllers.
    A v1 hierarchy of that controller comes before v2, as in the kernel: a controller is in one of them only.
    Raises GONE where the process is gone.
    """
    found = levels_of(fs, fs.load(parse_cgroup, pid, "cgroup"), controller, cgroup_mounts(fs, pid), pid)
    return Ancestry(found, is_machine_root(fs, found[-1])) if found else None


def visible_levels(fs: ProcFS, pid: int | str, controller: str) -> tuple[tuple[Level, ...], str | None]:
    """The same cgroups, and why some or all of them are unknown; None: all are known. Raises nothing."""
    try:
        found = ancestry(fs, pid, controller)
    except GONE:
        return (), f"/proc/{pid}/cgroup is not in this proc tree"
    except (DENIED, BadInput) as error:
        return (), why_unread(error)
    if found is None:
        return (), f"the cgroups of the {controller} controller are not visible from here"
    top = found.levels[-1].path
    return found.levels, None if found.complete else f"unknown above {top}, the root of the cgroup namespace"


def levels_of(
    fs: ProcFS, memberships: list[Membership], controller: str, mounts: list[Mount], pid: int | str | None = None
) -> tuple[Level, ...] | None:
    """The same for memberships and mounts that were read; `pid` finds it in a mount from outside our namespace."""
    for member in memberships:
        if controller in member.controllers:
            points = [m for m in mounts if m.fs_type == "cgroup" and controller in m.options]
            return _first_that_shows(fs, points, member.path, 1, pid)
    for member in memberships:
        if member.hierarchy == 0 and not member.controllers:
            points = [m for m in mounts if m.fs_type == "cgroup2"]
            found = _first_that_shows(fs, points, member.path, 2, pid)
            return found if found and (not controller or _has_controller(fs, found[-1], controller)) else None
    return None


def cgroup_mounts(fs: ProcFS, pid: int | str) -> list[Mount]:
    """The mounts of cgroups for the reader of this tree: opskit's own; of another root its init's, or that process's."""
    readers = ("1", "self", pid) if fs.root else ("self", "1", pid)
    return next(filter(None, (fs.maybe(_parse_cgroup_mounts, reader, "mountinfo") for reader in readers)), [])


def _parse_cgroup_mounts(text: str) -> list[Mount]:
    # A host of containers has thousands of mounts, a dozen of them are cgroups.
    mounts = parse_mountinfo("\n".join(line for line in lines_of(text) if " - cgroup" in line))
    return [mount for mount in mounts if mount.fs_type in ("cgroup", "cgroup2")]


def _first_that_shows(
    fs: ProcFS, mounts: list[Mount], path: str, version: int, pid: int | str | None
) -> tuple[Level, ...] | None:
    return next((found for mount in mounts if (found := _walk(fs, mount, path, version, pid))), None)


def _has_controller(fs: ProcFS, level: Level, controller: str) -> bool:
    return controller in (level.load(fs, "cgroup.controllers") or "").split()


def _walk(fs: ProcFS, mount: Mount, path: str, version: int, pid: int | str | None) -> tuple[Level, ...] | None:
    # A mount's root is a part of the tree in a container (/docker/0123), or above our cgroup namespace (/../..) where the
    # host's mount is visible inside.
    top = mount.root.rstrip("/")
    below: str | None = None
    if path == mount.root or path.startswith(f"{top}/"):
        below = path[len(top) :].rstrip("/")
    elif top.startswith("/..") and top.count("..") <= _DEEPEST_ROOT and pid is not None:
        below = _find(fs, mount.mount_point, top.count(".."), path.rstrip("/"), pid)
    if below is None or "/.." in below:  # outside what the mount shows
        return None
    above = "" if top.startswith("/..") else top
    levels = tuple(Level(above + at or "/", mount.mount_point + at, version) for at in _upwards(below))
    exists = levels[0].has(fs, "cgroup.procs") or fs.names_root(levels[0].directory.lstrip("/"))
    return levels if exists else None


def _find(fs: ProcFS, directory: str, depth: int, path: str, pid: int | str, below: str = "") -> str | None:
    """Find our namespace's root, `depth` levels below a mount under an unknown name: it has the process in `path`."""
    if depth == 0:
        procs = Level(path, directory + below + path, 1).load(fs, "cgroup.procs")
        return below + path if procs is not None and str(pid) in procs.split() else None
    names = fs.names_root((directory + below).lstrip("/"))
    found = (_find(fs, directory, depth - 1, path, pid, f"{below}/{name}") for name in names)
    return next((each for each in found if each is not None), None)


def controller_root(fs: ProcFS, controller: str) -> Level | None:
    """The topmost visible cgroup of a controller: the machine's root, or a container's own; None: not mounted."""
    mounts = cgroup_mounts(fs, "1")
    for mount in mounts:
        if mount.fs_type == "cgroup" and controller in mount.options:
            return Level(mount.root, mount.mount_point, 1)
    top = next((Level(mount.root, mount.mount_point, 2) for mount in mounts if mount.fs_type == "cgroup2"), None)
    return top if top and _has_controller(fs, top, controller) else None


def is_machine_root(fs: ProcFS, level: Level) -> bool:
    """Whether a cgroup is the root of the machine's tree, not of a container's."""
    if level.version == 1:
        return level.load(fs, "release_agent") is not None  # only the true root of a v1 hierarchy has it
    return level.load(fs, "cgroup.type") is None  # every v2 cgroup but the true root has it


def is_at_or_below(path: str, top: str) -> bool:
    """Whether a path is that of a cgroup or of one nested in it."""
    return f"{path.rstrip('/')}/".startswith(f"{top.rstrip('/')}/")


def _upwards(below: str) -> Iterator[str]:
    """`/a/b`, `/a`, and "" for the mount point itself."""
    while below:
        yield below
        below = below.rpartition("/")[0]
    yield ""
