"""Namespaces of a process, and whether this is a container."""

from __future__ import annotations

import pytest
from trees import Link

from opskit.proc.fs import ProcFS
from opskit.proc.namespaces import container_evidence, in_initial, namespace

FIRST = {
    "proc/self/ns/pid": Link("pid:[4026531836]"),
    "proc/self/ns/user": Link("user:[4026531837]"),
    "proc/self/ns/cgroup": Link("cgroup:[4026531835]"),
}


def fs_of(root):
    return ProcFS(f"{root}/proc", str(root))


def test_the_machine_itself(tree):
    """All namespaces are the initial ones: not a container, whatever files the image contains."""
    fs = fs_of(tree(FIRST | {".dockerenv": ""}))
    assert container_evidence(fs) is None
    assert namespace(fs, "self", "user") == b"user:[4026531837]"
    assert in_initial(fs, "user")


@pytest.mark.parametrize("kind", ["pid", "user", "cgroup"])
def test_any_namespace_of_its_own_is_evidence(tree, kind):
    """The evidence names the namespace."""
    fs = fs_of(tree(FIRST | {f"proc/self/ns/{kind}": Link(f"{kind}:[4026532178]")}))
    assert f"its {kind} namespace is {kind}:[4026532178]" in container_evidence(fs)
    assert in_initial(fs, "pid") == (kind != "pid")


def test_another_root_than_pid_1(tree):
    """A container with the host's namespaces still has a root of its own."""
    fs = fs_of(tree(FIRST | {"proc/self/root/a": "", "proc/1/root/b": ""}))
    assert container_evidence(fs) == "its root directory is not that of pid 1"


def test_a_kernel_that_does_not_tell(tree):
    """Without readable namespaces there is no evidence."""
    fs = fs_of(tree({"proc/loadavg": ""}))
    assert container_evidence(fs) is None
    assert in_initial(fs, "pid") is None
