"""/etc/fstab (fstab(5)): which file systems are mounted where, and with which options.

UUID=0a1b2c3d-…  /      ext4  errors=remount-ro  0  1
/dev/sdb1        /data  xfs   defaults,nofail    0  2
"""

from __future__ import annotations

from opskit.proc.files.mountinfo import unescape
from opskit.proc.lines import lines_of
from opskit.records import NamedTuple


class Entry(NamedTuple):
    """One line."""

    source: str
    mount_point: str
    fs_type: str
    options: tuple[str, ...]


def parse_fstab(text: str) -> list[Entry]:
    """The lines that name a mount point, the last one of each; lines that are none are passed over, as mount(8) does."""
    found: dict[str, Entry] = {}
    for line in lines_of(text):
        words = line.split(None, 4)
        if len(words) < 3 or words[0].startswith("#") or not words[1].startswith("/"):
            continue
        point = unescape(words[1])
        point = point.rstrip("/") or "/"
        options = tuple(words[3].split(",")) if len(words) > 3 else ()
        found[point] = Entry(unescape(words[0]), point, words[2], options)
    return [*found.values()]
