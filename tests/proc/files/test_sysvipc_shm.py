"""/proc/sysvipc/shm."""

from __future__ import annotations

import pytest

from opskit.errors import BadInput
from opskit.proc.files.sysvipc_shm import Segment, parse_sysvipc_shm

HEAD = "       key      shmid perms       size  cpid  lpid nattch   uid   gid  cuid  cgid      atime      dtime      ctime        rss       swap\n"
ROW = "         0          7  1600 104857600  4242  4300      2  1000  1000  1001  1001 1700000000          0 1700000000  104853504       4096\n"


def test_a_segment():
    """Its size, creator, mappings, owner, memory and swap, by the head's names."""
    assert parse_sysvipc_shm(HEAD + ROW) == [Segment(7, 104857600, 4242, 2, 1000, 104853504, 4096, 1700000000)]
    assert parse_sysvipc_shm(HEAD) == parse_sysvipc_shm("") == []


def test_a_kernel_without_rss():
    """Linux before 2.6.34: unknown, not 0."""
    old = [line.rsplit(None, 2)[0] + "\n" for line in (HEAD, ROW)]
    [found] = parse_sysvipc_shm("".join(old))
    assert (found.rss_bytes, found.swap_bytes, found.size_bytes) == (None, None, 104857600)


@pytest.mark.parametrize("row", ["x\n", "1 2 3\n", ROW.replace("104857600", "²"), ROW.replace("4242", "-4242")])
def test_what_is_no_segment(row):
    """A line that the head does not describe is an error with its number."""
    with pytest.raises(BadInput, match="2"):
        parse_sysvipc_shm(HEAD + row)
