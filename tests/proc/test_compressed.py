"""zram and the ZFS ARC."""

from __future__ import annotations

from opskit.proc.compressed import Arc, read_arc, read_zram_bytes
from opskit.proc.treefs import TreeFS

ARC = "13 1 0x01 123 33456 1234 5678\nname                            type data\nhits  4    99\nc_min 4 1073741824\nsize                            4    17179869184\nc  4 5\n"


def test_both(tree):
    """What the devices take, not what they store; the ARC's size."""
    root = tree(
        {
            "proc/meminfo": "MemTotal: 1 kB\n",
            "proc/spl/kstat/zfs/arcstats": ARC,
            "sys/block/zram0/mm_stat": "104857600 31457280 33554432        0 33554432        0        0        0        0\n",
            "sys/block/zram1/mm_stat": "1 2 4096 0 0\n",
            "sys/block/zram2/mm_stat": "1 2\n",
            "sys/block/sda/mm_stat": "9 9 9 9\n",
        }
    )
    fs = TreeFS(f"{root}/proc", str(root))
    assert (read_zram_bytes(fs), read_arc(fs)) == (33554432 + 4096, Arc(17179869184, 1073741824))


def test_neither(tree):
    """No zram is 0, no ZFS is unknown."""
    root = tree({"proc/meminfo": "MemTotal: 1 kB\n"})
    fs = TreeFS(f"{root}/proc", str(root))
    assert (read_zram_bytes(fs), read_arc(fs)) == (0, None)
