r"""The container, pod or systemd unit of a process, by its cgroups' paths.

/system.slice/app.service
/user.slice/user-1000.slice/session-3.scope
/docker/3f2a…                                                      64 hexadecimal digits
/system.slice/docker-3f2a….scope
/kubepods/burstable/pod6a1c2b9e-0d0f-4f35-9d6b-3d1f0e5a7c11/3f2a…
/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod6a1c2b9e_0d0f_….slice/cri-containerd-3f2a….scope
/system.slice/containerd.service/kubepods-burstable-pod6a1c….slice:cri-containerd:3f2a…
/machine.slice/libpod-3f2a….scope/container
/machine.slice/machine-web\x2d1.scope                              systemd-nspawn
/lxc.payload.web1
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from opskit.quantities import hexadecimal
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from opskit.proc.cgroup.tree import Membership

_RUNTIMES = {"libpod": "podman", "crio": "cri-o", "cri-containerd": "containerd", "machine": "systemd-nspawn"}
# Compiled where a process is in a cgroup at all.
_SCOPE = r"([a-z][a-z-]*?)-([0-9a-f]{64})(?:\.scope)?"
_POD = r"(?:^|[-/])pod([0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12}|[0-9a-f]{32})(?=$|\.slice)"
_ID = r"[0-9a-f]{64}|[0-9a-f]{32}-[0-9]+"  # the second: a task of ECS
_SHORT_ID = 12


class CgroupOwner(NamedTuple):
    """What a process belongs to. `container` is an id (with LXC and nspawn a name), `runtime` is what made it.

    `unit` is the systemd unit, inside the container if there is one. `path` is the cgroup that names them.
    """

    path: str
    container: str | None = None
    runtime: str | None = None
    pod: str | None = None
    unit: str | None = None

    @property
    def label(self) -> str:
        """Short form: `app.service`, `docker:3f2a9c81d0e4`, `pod:6a1c…-7c11/3f2a9c81d0e4`, or the cgroup's own name."""
        container = self.container or ""
        container = container[:_SHORT_ID] if re.fullmatch(_ID, container) else container
        if self.pod:
            return f"pod:{self.pod}" + (f"/{container}" if container else "")
        if container:
            return f"{self.runtime or 'container'}:{container}"
        return self.unit or self.path.rpartition("/")[2]


def owner_of(memberships: list[Membership]) -> CgroupOwner | None:
    """The owner by a process's cgroups; None at the root of all of them, as in a cgroup namespace of its own."""
    paths = sorted({member.path for member in memberships if member.path != "/"}, key=lambda path: (-len(path), path))
    owners = [_read(path) for path in paths]
    contained = (owner for owner in owners if owner.container or owner.pod)
    return next(contained, None) or next((owner for owner in owners if owner.unit), owners[0] if owners else None)


def unit_of(memberships: list[Membership]) -> str | None:
    """The owner's label; None at the root."""
    owner = owner_of(memberships)
    return owner.label if owner else None


def _read(path: str) -> CgroupOwner:
    container = runtime = pod = unit = None
    parent = ""
    for part in filter(None, path.split("/")):
        if found_pod := re.search(_POD, part.split(":")[0]):
            pod, unit = found_pod[1].replace("_", "-"), None
        if found_container := _container(part, parent):
            (container, runtime), unit = found_container, None
        elif part.endswith((".service", ".scope")) and part != "init.scope":
            unit = _unescaped(part)
        parent = part
    return CgroupOwner(path, container, runtime, pod, unit)


def _container(part: str, parent: str) -> tuple[str, str | None] | None:
    if scope := re.fullmatch(_SCOPE, part):
        return scope[2], _RUNTIMES.get(scope[1], scope[1])
    if re.fullmatch(_ID, part):
        return part, parent if parent in ("docker", "containerd", "ecs", "podman") else None
    words = part.split(":")
    if len(words) == 3 and re.fullmatch(_ID, words[2]):
        return words[2], _RUNTIMES.get(words[1], words[1])
    if part.startswith("machine-") and part.endswith(".scope"):
        return _unescaped(part[len("machine-") : -len(".scope")]), "systemd-nspawn"
    if part.startswith("lxc.payload.") or parent in ("lxc", "lxc.payload"):
        return part.removeprefix("lxc.payload."), "lxc"
    return None


def _unescaped(name: str) -> str:
    return re.sub(r"\\x([0-9a-f]{2})", lambda match: chr(hexadecimal(match[1]) or 0xFFFD), name)
