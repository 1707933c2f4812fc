"""/proc/PID/mountinfo."""

from __future__ import annotations

import pytest

from opskit.errors import BadInput
from opskit.proc.files.mountinfo import Mount, parse_mountinfo, parse_remote_mount_points
from opskit.proc.fs import ProcFS


def test_a_line_with_and_without_optional_fields():
    """The mount's options and the super block's; escaped blanks, tabs, newlines and backslashes."""
    text = (
        r"36 35 98:0 /mnt1 /a\040b\011c\012d\134e rw,noatime master:1 shared:2 - ext3 /dev/root rw,errors=continue"
        "\n22 1 0:21 / /proc rw - proc proc rw,hidepid=invisible\n"
    )
    first, second = parse_mountinfo(text)
    options = ("rw", "noatime", "rw", "errors=continue")
    assert first == Mount(36, "/mnt1", "/a b\tc\nd\\e", options, "ext3", "98:0", "/dev/root", options[2:])
    assert (first.own_options, second.own_options) == (options[:2], ("rw",))
    assert (second.fs_type, second.options[-1]) == ("proc", "hidepid=invisible")


@pytest.mark.parametrize(
    "line", ["x", "36 35 98:0 / /mnt rw ext3 /dev/root rw", "a 35 98:0 / /mnt rw - ext3 /dev/root rw"]
)
def test_other_text_is_refused(line):
    """With the line's number."""
    with pytest.raises(BadInput, match="mountinfo:1"):
        parse_mountinfo(line + "\n")


def test_where_a_stat_may_wait_for_a_server():
    """NFS, FUSE and their like."""
    text = "1 0 0:1 / / rw - ext4 /dev/vda rw\n2 1 0:2 / /net rw - nfs4 host:/x rw\n3 1 0:3 / /f rw - fuse.sshfs a rw\n"
    assert parse_remote_mount_points(text) == ["/net", "/f"]


def test_this_process():
    """It has a root."""
    assert "/" in [mount.mount_point for mount in ProcFS().load(parse_mountinfo, "self", "mountinfo")]
