"""/etc/fstab."""

from __future__ import annotations

from opskit.proc.config.fstab import Entry, parse_fstab


def test_lines_comments_and_damaged_lines():
    """Escaped blanks; swap and lines that are cut have no mount point; the last line of a mount point counts."""
    text = "# x\nUUID=1 / ext4 errors=remount-ro 0 1\n/dev/sdb1 /a\\040b/ xfs\nUUID=2 none swap sw 0 0\n/dev/x\nUUID=3 / ext4 ro\n"
    first, second = parse_fstab(text)
    assert first == Entry("UUID=3", "/", "ext4", ("ro",))
    assert second == Entry("/dev/sdb1", "/a b", "xfs", ())
