"""Containers, pods and units by the paths of cgroups, as Docker, containerd, CRI-O, podman, LXC and systemd write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opskit.proc.cgroup.owner import CgroupOwner, owner_of
from opskit.proc.cgroup.tree import Membership

ID = "3f2a9c81d0e4" + "0123456789abcdef" * 3 + "0123"
POD = "6a1c2b9e-0d0f-4f35-9d6b-3d1f0e5a7c11"
POD_ = POD.replace("-", "_")


@pytest.mark.parametrize(
    ("path", "label", "container", "runtime", "pod", "unit"),
    [
        ("/system.slice/app.service", "app.service", None, None, None, "app.service"),
        ("/user.slice/user-1000.slice/session-3.scope", "session-3.scope", None, None, None, "session-3.scope"),
        (
            "/user.slice/user-1000.slice/user@1000.service/app.slice/ide.service", "ide.service", None, None, None, "ide.service",
        ),
        (r"/system.slice/web\x2dapp.service", "web-app.service", None, None, None, "web-app.service"),
        (f"/docker/{ID}", "docker:3f2a9c81d0e4", ID, "docker", None, None),
        (f"/system.slice/docker-{ID}.scope", "docker:3f2a9c81d0e4", ID, "docker", None, None),
        (f"/docker/{ID}/system.slice/app.service", "docker:3f2a9c81d0e4", ID, "docker", None, "app.service"),
        (f"/docker/{ID}/init.scope", "docker:3f2a9c81d0e4", ID, "docker", None, None),
        (f"/kubepods/burstable/pod{POD}/{ID}", f"pod:{POD}/3f2a9c81d0e4", ID, None, POD, None),
        (
            f"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{POD_}.slice/cri-containerd-{ID}.scope",
            f"pod:{POD}/3f2a9c81d0e4", ID, "containerd", POD, None,
        ),
        (
            f"/kubepods.slice/kubepods-pod{POD_}.slice/crio-{ID}.scope/container", f"pod:{POD}/3f2a9c81d0e4", ID, "cri-o", POD, None,
        ),
        (
            f"/system.slice/containerd.service/kubepods-besteffort-pod{POD_}.slice:cri-containerd:{ID}",
            f"pod:{POD}/3f2a9c81d0e4", ID, "containerd", POD, None,
        ),
        (f"/kubepods/besteffort/pod{'ab' * 16}/{ID}", f"pod:{'ab' * 16}/3f2a9c81d0e4", ID, None, "ab" * 16, None),
        (f"/machine.slice/libpod-{ID}.scope/container", "podman:3f2a9c81d0e4", ID, "podman", None, None),
        (f"/libpod_parent/libpod-{ID}", "podman:3f2a9c81d0e4", ID, "podman", None, None),
        (f"/ecs/{'ab' * 16}/{ID}", "container:3f2a9c81d0e4", ID, None, None, None),
        (r"/machine.slice/machine-web\x2d1.scope", "systemd-nspawn:web-1", "web-1", "systemd-nspawn", None, None),
        ("/lxc.payload.web1/system.slice/x.service", "lxc:web1", "web1", "lxc", None, "x.service"),
        ("/lxc/web1", "lxc:web1", "web1", "lxc", None, None),
        ("/batch/jobs/job-17", "job-17", None, None, None, None),
        ("/system.slice/podman.service", "podman.service", None, None, None, "podman.service"),
        ("/system.slice/libpod-cleanup.service", "libpod-cleanup.service", None, None, None, "libpod-cleanup.service"),
    ],
)  # fmt: skip
def test_the_owner_by_a_path(path, label, container, runtime, pod, unit):
    place = owner_of([Membership(0, (), path)])
    assert place == CgroupOwner(path, container, runtime, pod, unit)
    assert place.label == label


def test_of_several_hierarchies_the_telling_one_counts():
    """On v1 a process may be in a container's cgroups for some controllers, and in systemd's unit for others."""
    members = [
        Membership(9, ("name=systemd",), "/system.slice/very-long-named-docker-wrapper.service"),
        Membership(4, ("memory",), f"/docker/{ID}"),
        Membership(0, (), "/"),
    ]
    assert owner_of(members).container == ID
    assert owner_of(members[:1]).unit == "very-long-named-docker-wrapper.service"


def test_the_root_has_no_owner():
    assert owner_of([Membership(0, (), "/"), Membership(3, ("cpu",), "/")]) is None
    assert owner_of([]) is None


@given(st.text(max_size=200))
def test_any_path_gives_a_place(text):
    place = owner_of([Membership(0, (), "/" + text)])
    assert place is None or isinstance(place.label, str)
