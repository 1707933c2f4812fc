"""The mounts that a slow machine may differ in, by mount point: the file system and its options."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from opskit.collect.compare.facts import CONFIGURED, Fact
from opskit.proc.files.mountinfo import parse_mountinfo

if TYPE_CHECKING:
    from opskit.proc.files.mountinfo import Mount
    from opskit.proc.fs import ProcFS

_MOST = 500
# Mounts that the kernel, containers and sessions make: they have identities in their paths.
_LEFT_OUT = re.compile(
    r"/(?:proc/.|sys(?:/|\Z)|dev/(?:pts|mqueue|hugepages)\Z|run(?:/|\Z)|var/(?:lib/(?:docker|containers?|containerd|kubelet|cni|lxc|lxd|snapd)/|snap/)|snap/|"
    r"media/|mnt/\.|tmp/.|.*/[0-9a-f]{12,}(?:/|\Z))"
)
_PSEUDO = frozenset(("cgroup", "cgroup2", "autofs", "nsfs", "bpf", "tracefs", "debugfs", "securityfs", "configfs", "pstore", "efivarfs", "binfmt_misc", "fusectl", "rpc_pipefs", "selinuxfs", "ramfs", "squashfs"))  # fmt: skip
# Options with names of this machine, its devices or its sizes.
_OWN_OPTIONS = ("lowerdir", "upperdir", "workdir", "subvolid", "subvol", "addr", "clientaddr", "mountaddr", "inode64", "inode32", "nr_inodes", "fd", "pgrp", "uid", "gid", "userxattr", "xino", "size_hint", "seclabel", "fsid", "metacopy", "redirect_dir", "index", "uuid")  # fmt: skip


def mount_facts(fs: ProcFS, reader: object = None) -> list[Fact]:
    """The mounts as PID 1 or opskit sees them, or a process `reader`; of several on one point the last."""
    readers = (1, "self") if reader is None else (reader,)
    mounts = next((found for pid in readers if (found := fs.maybe(parse_mountinfo, pid, "mountinfo", default=[]))), [])
    by_point = {mount.mount_point: mount for mount in mounts if not _is_left_out(mount)}
    return [
        Fact(f"mount.{point}", CONFIGURED, "mounts", f"{point} (mount)", _shown(mount))
        for point, mount in list(by_point.items())[:_MOST]
    ]


def _is_left_out(mount: Mount) -> bool:
    return mount.fs_type in _PSEUDO or _LEFT_OUT.match(mount.mount_point) is not None


def _shown(mount: Mount) -> str:
    """`ext4 rw,noatime`: the options in order, without those that are this machine's own."""
    left_out = (*_OWN_OPTIONS, "size") if mount.fs_type == "devtmpfs" else _OWN_OPTIONS  # half of the memory
    options = {word for word in mount.options if word.partition("=")[0] not in left_out}
    return f"{mount.fs_type} {','.join(sorted(options))}"
