"""smaps: mappings and their sums."""

from __future__ import annotations

from pathlib import Path

import pytest

from opskit.errors import BadInput
from opskit.proc.files.smaps import Usage, parse_smaps, parse_smaps_rollup

RSS = "Size: 132 kB\nRss: {rss} kB\nPss: {rss} kB\nAnonHugePages: {huge} kB\nShmemPmdMapped: 0 kB\nSwap: {swap} kB\nVmFlags: rd wr mr\n"


def mapping(head, rss=0, huge=0, swap=0):
    """One mapping as the kernel writes it."""
    return f"{head}\n" + RSS.format(rss=rss, huge=huge, swap=swap)


def test_mappings():
    """Addresses, names and sizes; a deleted file's name is its own, and may have blanks."""
    heap, file = parse_smaps(
        mapping("7f1200000000-7f1200021000 rw-p 00000000 00:00 0 ", 16, swap=8)
        + mapping("7f2b60210000-7f2b60218000 r--s 00001000 fe:00 1310                       /tmp/a b (deleted)", 4, 2)
    )
    assert (heap.start, heap.end, heap.permissions, heap.name) == (0x7F1200000000, 0x7F1200021000, "rw-p", "")
    assert heap.usage == Usage(rss_bytes=16384, pss_bytes=16384, swap_bytes=8192)
    assert (file.name, file.deleted, file.inode, file.offset) == ("/tmp/a b", True, 1310, 0x1000)
    assert file.usage.huge_bytes == 2048


def test_keys_of_one_field_are_added():
    """Huge pages of files and of shared memory are both in huge_bytes; reserved ones are counted beside RSS."""
    text = "1000-2000 rw-s 00000000 00:0f 4 /dev/hugepages/x\nRss: 0 kB\nShmemPmdMapped: 4 kB\nFilePmdMapped: 2 kB\n"
    (found,) = parse_smaps(text + "Shared_Hugetlb: 2048 kB\nPrivate_Hugetlb: 1024 kB\n")
    assert (found.usage.huge_bytes, found.usage.hugetlb_bytes, found.usage.rss_bytes) == (6144, 3145728, 0)


def test_no_memory():
    """A kernel thread has no mappings."""
    assert parse_smaps("") == []


def test_a_mapping_that_grows_while_it_is_read():
    """The kernel goes on behind its old end, finds it again, and writes it once more: the later one counts."""
    line = "{}-{} rw-p 00000000 00:00 0".format
    text = mapping(line(1000, 2000), 4) + mapping(line(3000, 4000), 4) + mapping(line(3000, 5000), 12)
    assert [(each.start, each.end, each.usage.rss_bytes) for each in parse_smaps(text)] == [
        (0x1000, 0x2000, 4096), (0x3000, 0x5000, 12288),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "not a mapping\n",
        "Rss: 4 kB\n",
        "1000-2000 rw-p 00000000 00:00 0\nRss: four kB\n",
        "1000-2000 rw-p 00000000 00:00 0\nRss: 4\n",
        mapping("1000-2000 rw-p 00000000 00:00 0") + "2000-3000 rw-p 00000000 00:00 0\nSize: 4 kB\n",  # cut short
        mapping("1000-2000 rw-p 00000000 00:00 0") + mapping("2000-3000 rw-p 00000000 00:00 0").replace("Rss", "Res"),
        mapping("2000-1000 rw-p 00000000 00:00 0"),
        mapping("2000-3000 rw-p 00000000 00:00 0") + mapping("1000-2000 rw-p 00000000 00:00 0"),
        mapping("1000-3000 rw-p 00000000 00:00 0") + mapping("1000-3000 rw-p 00000000 00:00 0"),
        mapping("1000-2000 rw-p 00000000 00:00 0") + mapping("x000-3000 rw-p 00000000 00:00 0"),
    ],
)
def test_bad_input(text):
    """What is damaged has no sum."""
    with pytest.raises(BadInput):
        parse_smaps(text)


def test_rollup():
    """The sums of all mappings."""
    text = "55f0c8a00000-7ffd3c201000 ---p 00000000 00:00 0    [rollup]\n" + RSS.format(rss=16, huge=4, swap=0)
    assert parse_smaps_rollup(text) == Usage(rss_bytes=16384, pss_bytes=16384, huge_bytes=4096)
    with pytest.raises(BadInput):
        parse_smaps_rollup("Rss: many kB\n")


def test_our_own():
    """The kernel's own file: the mappings sum to what the rollup says, but for pages that come and go."""
    found = parse_smaps(Path("/proc/self/smaps").read_text())
    rollup = parse_smaps_rollup(Path("/proc/self/smaps_rollup").read_text())
    assert sum(region.usage.rss_bytes for region in found) == pytest.approx(rollup.rss_bytes, rel=0.05)
    assert any(region.name == "[stack]" for region in found)
