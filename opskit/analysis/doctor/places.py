"""What contains what: a thread in its process, a process in its cgroups, a cgroup in those above it, all in the host. Pure."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING, Optional, Union

from opskit.analysis.finding import HOST

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from opskit.analysis.doctor.seen import Place
    from opskit.analysis.finding import Entity

# Kind, id, and the PID of the process where the id says nothing without it: a lock, a path in a container.
Key = tuple[str, Union[int, str, None], Optional[int]]
_OF_PROCESS = ("lock", "pool", "socket", "file")
# A peer that does not answer holds up the threads of a pool: both are of the process.
_BESIDE = ("lock", "pool", "socket")
# What the host as a whole suffers from may be one of these.
_OF_HOST = ("device", "file", "socket")
_HOST_KEY: Key = ("host", None, None)


def chain(entity: Entity) -> Iterator[Entity]:
    """An entity, and what it is inside of."""
    inside: Entity | None = entity
    while inside is not None:
        yield inside
        inside = inside.inside


def pid_of(entity: Entity) -> int | None:
    """The process that it is, or is inside of."""
    pids = (each.id for each in chain(entity) if each.kind == "process")
    return next((pid for pid in pids if isinstance(pid, int)), None)


def key_of(entity: Entity) -> Key:
    """What makes two entities the same one. A start time that only one of two findings has does not tell them apart."""
    return entity.kind, entity.id, pid_of(entity) if entity.kind in _OF_PROCESS else None


def scopes(entity: Entity) -> tuple[Key, ...]:
    """For what a finding about an entity can be the cause: for what it contains; a socket also for a pool of its process."""
    pid = pid_of(entity)
    beside: tuple[Key, ...] = (("beside", None, pid),) if entity.kind in _BESIDE and pid is not None else ()
    of_host: tuple[Key, ...] = (("part", None, None),) if entity.kind in _OF_HOST else ()
    return (key_of(entity), *beside, *of_host)


def containers(entity: Entity, places: Mapping[int, Place]) -> Iterator[Key]:
    """The entity itself and all that contain it, the nearest first. The host comes last, and does not contain what is a cgroup's own."""
    yield key_of(entity)
    paths, pid = _cgroups(entity, places), pid_of(entity)
    if entity.kind in _BESIDE and pid is not None:
        yield "beside", None, pid
    if entity == HOST:
        yield "part", None, None
    if entity.kind == "file" and isinstance(entity.id, str):
        yield from _directories(entity.id, pid, paths)
    yield from (key_of(each) for each in chain(entity) if each is not entity and each.kind not in ("cgroup", "host"))
    groups = {part for path in paths for part in _above(path)} - {"/"}
    if entity.kind == "cgroup":
        yield from (("cgroup", path, None) for path in sorted(groups - {str(entity.id)}, key=_longest))
    else:
        yield from (("cgroup", path, None) for path in sorted(groups, key=_longest))
        if entity != HOST:
            yield _HOST_KEY


def _directories(path: str, pid: int | None, cgroups: Sequence[str]) -> Iterator[Key]:
    """Those above a path, as its process and as the machine have them: the same outside of containers."""
    from opskit.analysis.limits.origin import container_of

    owners = (pid, None) if pid is not None and not any(map(container_of, cgroups)) else (pid,)
    for above in _above(path):
        yield from (("file", above, owner) for owner in owners if above != path or owner != pid)


def is_in(cgroup: Entity, place: Place) -> bool:
    """Whether a process is in a cgroup or below it."""
    return any(cgroup.id in _above(path) for path in place.cgroups)


def _cgroups(entity: Entity, places: Mapping[int, Place]) -> tuple[str, ...]:
    """The paths of the cgroups that it is in: those that the finding names, and those of its process."""
    named = [each.id for each in chain(entity) if each.kind == "cgroup" and isinstance(each.id, str)]
    pid = pid_of(entity)
    place = None if pid is None else places.get(pid)
    return tuple(dict.fromkeys([*named, *(place.cgroups if place is not None else ())]))


def _above(path: str) -> list[str]:
    """`/a/b`, `/a`, `/`."""
    found = [path]
    while path.startswith("/") and path != posixpath.dirname(path):
        path = posixpath.dirname(path)
        found.append(path)
    return found


def _longest(path: str) -> tuple[int, str]:
    return -path.count("/"), path
