"""Every cgroup of a controller, from the root down: for limits of the whole machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.proc.cgroup.tree import MOST_CGROUPS, Level, controller_root, is_machine_root, visible_levels
from opskit.proc.fs import optional

if TYPE_CHECKING:
    from collections.abc import Iterable

    from opskit.proc.fs import ProcFS

_LINKS_WITHOUT_CHILDREN = 2  # kernfs counts a link for each directory below


def all_cgroups(fs: ProcFS, controller: str) -> tuple[Level, ...]:
    """The visible cgroups of `pids`, `memory`, `cpu`, …, parents first, at most 20,000; empty where the controller is not mounted.

    The root has no limits and is left out, unless it is a container's own. v2 lists those without the controller, too.
    """
    root = controller_root(fs, controller)
    if root is None:
        return ()
    if fs.kept is None:
        return _below(fs, root)
    return fs.kept.once(("cgroups", root), lambda: _below(fs, root))


def cgroups_of(fs: ProcFS, pids: Iterable[int], controller: str) -> tuple[Level, ...]:
    """The visible cgroups of these processes and those above, each once."""
    found = {level.directory: level for pid in pids for level in visible_levels(fs, pid, controller)[0]}
    return tuple(found.values())


def _below(fs: ProcFS, root: Level) -> tuple[Level, ...]:
    found = [] if is_machine_root(fs, root) else [root]
    todo = [root]
    for level in todo:  # it grows
        if len(todo) >= MOST_CGROUPS:
            break
        if _has_children(fs, level):
            if fs.kept is not None:
                fs.kept.before_read()
            children = level.children(fs)
            todo += children
            found += children
    return tuple(found)


def _has_children(fs: ProcFS, level: Level) -> bool:
    """Whether a directory has others below, by one stat where a kernel answers; a listing has some 60 files."""
    if not fs.is_live:
        return True
    found = optional(fs.file_id_at, f"{fs.root}/{level.directory.lstrip('/')}")
    return found is None or found.links != _LINKS_WITHOUT_CHILDREN
