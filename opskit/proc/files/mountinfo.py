r"""/proc/PID/mountinfo (Documentation/filesystems/proc.rst, 3.5): a line a mount, `-` ends the optional fields.

36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue
22 1 0:21 / /proc rw,relatime - proc proc rw,hidepid=invisible
"""

from __future__ import annotations

import re

from opskit.errors import BadInput
from opskit.proc.lines import lines_of
from opskit.quantities import integer
from opskit.records import NamedTuple

# Remote and FUSE file systems: a stat there may wait for ever for a server that is gone.
REMOTE = ("nfs", "cifs", "smb", "fuse", "ceph", "9p", "afs", "glusterfs", "lustre", "gpfs", "beegfs", "orangefs", "ocfs2", "virtiofs")  # fmt: skip
_ESCAPED = {"\\040": " ", "\\011": "\t", "\\012": "\n", "\\134": "\\", "\\043": "#"}  # fs/proc_namespace.c, mangle()
_OCTAL = re.compile("|".join(map(re.escape, _ESCAPED)))


class Mount(NamedTuple):
    """One mount. `root` is the part of the file system that is mounted; `options` joins the mount's and the super block's.

    `device`: `major:minor` of the super block. `source`: what was mounted, `/dev/sda1` or any other word. `super_options`: of all mounts of it.
    """

    mount_id: int
    root: str
    mount_point: str
    options: tuple[str, ...]
    fs_type: str
    device: str = ""
    source: str = ""
    super_options: tuple[str, ...] = ()

    @property
    def own_options(self) -> tuple[str, ...]:
        """The options of this mount alone."""
        return self.options[: len(self.options) - len(self.super_options)]


def unescape(word: str) -> str:
    r"""A path as the kernel and fstab write it: `\040` is a blank."""
    return _OCTAL.sub(lambda match: _ESCAPED[match[0]], word) if "\\" in word else word


def parse_mountinfo(text: str) -> list[Mount]:
    """The mounts, in the file's order (a later one on the same point hides the earlier). Raises BadInput."""
    mounts = []
    for number, line in enumerate(lines_of(text), 1):
        before, dash, after = line.partition(" - ")
        left, right = before.split(" "), after.split(" ")
        mount_id = integer(left[0])
        if not dash or len(left) < 6 or len(right) < 2 or mount_id is None or integer(left[1]) is None:
            raise BadInput("mountinfo", "not a mount line", number, line)
        shared = tuple(right[2].split(",")) if len(right) > 2 else ()
        options = (*left[5].split(","), *shared)
        mounts.append(
            Mount(
                mount_id, unescape(left[3]), unescape(left[4]), options, right[0], left[2], unescape(right[1]), shared
            )
        )
    return mounts


def parse_remote_mount_points(text: str) -> list[str]:
    """The mount points of remote and FUSE file systems. Raises BadInput."""
    remote = (line for line in lines_of(text) if line.partition(" - ")[2].startswith(REMOTE))
    return [mount.mount_point for mount in parse_mountinfo("\n".join(remote))]
