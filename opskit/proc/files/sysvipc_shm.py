"""/proc/sysvipc/shm (proc_sysvipc_shm(5), ipc/shm.c): the System V shared memory of the reader's IPC namespace.

key shmid perms      size  cpid  lpid nattch   uid   gid  cuid  cgid      atime dtime      ctime       rss swap
  0     1   600 104857600  4242  4242      1  1000  1000  1000  1000 1700000000     0 1700000000 104857600    0
"""

from __future__ import annotations

from opskit.errors import BadInput
from opskit.proc.lines import lines_of
from opskit.quantities import integer, integers
from opskit.records import NamedTuple


class Segment(NamedTuple):
    """One segment. `rss_bytes` is in memory, or None before Linux 2.6.34; huge pages (SHM_HUGETLB) count there too. `attached`: mappings.

    `creator_pid` may have ended; `uid` owns it. `changed_s`: when it was made or its rights were changed (ctime), since 1970.
    """

    shmid: int
    size_bytes: int
    creator_pid: int
    attached: int
    uid: int
    rss_bytes: int | None
    swap_bytes: int | None
    changed_s: int | None = None


def parse_sysvipc_shm(text: str) -> list[Segment]:
    """The segments in the file's order. Raises BadInput."""
    lines = lines_of(text)
    heads = next(iter(lines), "").split()
    found = []
    for number, line in enumerate(lines[1:], 2):
        row = dict(zip(heads, line.split()))
        values = integers(row.get(name, "") for name in ("shmid", "size", "cpid", "nattch", "uid"))
        if values is None:
            raise BadInput("sysvipc/shm", "not a line of numbers as its head names them", number, line)
        shmid, size, creator, attached, uid = values
        rest = (integer(row.get(name, "")) for name in ("rss", "swap", "ctime"))
        found.append(Segment(shmid, size, creator, attached, uid, *rest))
    return found
