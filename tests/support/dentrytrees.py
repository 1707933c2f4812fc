"""Captured trees for `opskit dentry`: machines from Linux 2.4 to today.

Written by hand in the format of each kernel. POST is the machine of the weblog post "Linux's dentry_cache takes all available
memory" (2010): 24 GiB of RAM, 12 GB of dentries, and a kernel without a count of negative dentries and without MemAvailable.
"""

from __future__ import annotations

from trees import Link

from opskit.collect.dentry import Facts
from opskit.proc.files.slabinfo import Slab

HEAD_2 = (
    "# name            <active_objs> <num_objs> <objsize> <objperslab> <pagesperslab> : tunables <batchcount> <limit> "
    "<sharedfactor> : slabdata <active_slabs> <num_slabs> <sharedavail>\n"
)


def line_2(name, active, objects, size, per_slab, pages):
    """A line of slabinfo 2.x."""
    slabs = -(-objects // per_slab)
    return (
        f"{name:<17} {active:6d} {objects:6d} {size:6d} {per_slab:4d} {pages:4d} : tunables    0    0    0 "
        f": slabdata {slabs:6d} {slabs:6d}      0\n"
    )


POST = {
    "proc/sys/kernel/hostname": "hbase42\n",
    "proc/sys/kernel/osrelease": "2.6.28-15-server\n",
    "proc/sys/fs/dentry-state": "61879000\t61400000\t45\t0\t0\t0\n",
    "proc/sys/vm/vfs_cache_pressure": "100\n",
    "proc/meminfo": (
        "MemTotal:     25165824 kB\nMemFree:        131072 kB\nBuffers:         20480 kB\nCached:         524288 kB\n"
        "Slab:         12902400 kB\nSReclaimable: 12800000 kB\nSUnreclaim:     102400 kB\n"
    ),
    "proc/vmstat": "nr_slab_reclaimable 3200000\nnr_slab_unreclaimable 25600\npgfault 1234\n",
    "proc/slabinfo": "slabinfo - version: 2.1\n"
    + HEAD_2
    + line_2("nfs_inode_cache", 10, 11, 1056, 3, 1)
    + line_2("ext3_inode_cache", 310000, 310005, 776, 5, 1)
    + line_2("inode_cache", 5000, 5005, 560, 7, 1)
    + line_2("dentry", 61879000, 61880000, 192, 20, 1)
    + line_2("size-64", 30000, 30031, 64, 59, 1),
}

OLD = {  # Linux 2.4: slabinfo 1.1, a meminfo with a table on top, no vmstat
    "proc/sys/kernel/hostname": "skunk\n",
    "proc/sys/kernel/osrelease": "2.4.20\n",
    "proc/sys/fs/dentry-state": "5469\t4000\t45\t0\t0\t0\n",
    "proc/meminfo": (
        "        total:    used:    free:  shared: buffers:  cached:\n"
        "Mem:  130813952 126767104  4046848        0  1245184 34848768\nSwap: 268419072 268419072        0\n"
        "MemTotal:       127748 kB\nMemFree:          3952 kB\nBuffers:          1216 kB\nCached:          34024 kB\n"
    ),
    "proc/slabinfo": (
        "slabinfo - version: 1.1 (SMP)\n"
        "kmem_cache            64     64    244    4    4    1 :  252  126\n"
        "dnotify cache          0      0     20    0    0    1 :  252  126\n"
        "inode_cache         7005  14792    480 1598 1849    1 :  252  126\n"
        "dentry_cache        5469   5880    128  183  196    1 :  252  126\n"
    ),
}

MERGED = {  # SLUB has put the dentries in with others of their size: slabinfo has only the name that came first
    "proc/sys/kernel/hostname": "merged\n",
    "proc/sys/kernel/osrelease": "4.9.0-19-amd64\n",
    "proc/sys/fs/dentry-state": "100000\t90000\t45\t0\t0\t0\n",
    "proc/meminfo": (
        "MemTotal:        2097152 kB\nMemAvailable:    1048576 kB\nMemFree:     1048576 kB\nBuffers: 0 kB\nCached: 0 kB\n"
        "SReclaimable:      65536 kB\nSUnreclaim:        8192 kB\n"
    ),
    "proc/slabinfo": "slabinfo - version: 2.1\n"
    + HEAD_2
    + line_2("ext4_xattr", 101000, 102900, 192, 21, 1)
    + line_2("ext4_inode_cache", 1000, 1080, 1064, 15, 4)
    + line_2("filp", 500, 512, 256, 16, 1),
    "sys/kernel/slab/dentry": Link(":at-0000192"),
    "sys/kernel/slab/ext4_xattr": Link(":at-0000192"),
    "sys/kernel/slab/:at-0000192/objs_per_slab": "21\n",
    "sys/kernel/slab/filp/objs_per_slab": "16\n",
}

V2 = "sys/fs/cgroup"
TODAY = {  # cgroup v2; a container near its limit, full of negative entries; 16 KiB pages
    "proc/sys/kernel/hostname": "node7\n",
    "proc/sys/kernel/osrelease": "6.12.9\n",
    "proc/sys/fs/dentry-state": "20000000\t19900000\t45\t0\t19400000\t0\n",
    "proc/sys/fs/dentry-negative": "0\n",
    "proc/sys/vm/vfs_cache_pressure": "50\n",
    "proc/meminfo": (
        "MemTotal:       16777216 kB\nMemAvailable:   12000000 kB\nMemFree:     8000000 kB\nBuffers: 1024 kB\n"
        "Cached:          1048576 kB\nSReclaimable:    4000000 kB\nSUnreclaim:      100000 kB\n"
    ),
    "proc/vmstat": "nr_slab_reclaimable 250000\nnr_slab_unreclaimable 6250\ndrop_pagecache 0\ndrop_slab 31\n",
    "proc/slabinfo": "slabinfo - version: 2.1\n"
    + HEAD_2
    + line_2("xfs_inode", 100000, 100016, 1024, 16, 1)
    + line_2("lsm_inode_cache", 120000, 120320, 32, 512, 1)
    + line_2("dentry", 20000000, 20000085, 192, 85, 1)
    + line_2("shmem_inode_cache", 4000, 4011, 752, 21, 1)
    + line_2("kmalloc-512", 9000, 9024, 512, 32, 1),
    "proc/1/mountinfo": "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n",
    f"{V2}/cgroup.controllers": "cpu memory pids\n",
    f"{V2}/kubepods/memory.stat": "slab_reclaimable 3221225472\nslab_unreclaimable 1\n",
    f"{V2}/kubepods/memory.current": "4294967296\n",
    f"{V2}/kubepods/memory.max": "max\n",
    f"{V2}/kubepods/pod1/memory.stat": "slab_reclaimable 3145728000\nslab_unreclaimable 1\n",
    f"{V2}/kubepods/pod1/memory.current": "3758096384\n",
    f"{V2}/kubepods/pod1/memory.max": "4294967296\n",
    f"{V2}/kubepods/pod1/memory.reclaim": "",
    f"{V2}/system.slice/memory.stat": "slab_reclaimable 104857600\nslab_unreclaimable 1\n",
    f"{V2}/system.slice/memory.current": "209715200\n",
    f"{V2}/system.slice/memory.max": "max\n",
}


def facts_of(state=None, caches=(), **meminfo):
    """Facts of a machine with 16 GiB of RAM and 4 KiB pages; `caches`: (name, objects, pages) each."""
    slabs = tuple(Slab(name, count, count, 192, pages, 1) for name, count, pages in caches) or None
    return Facts(state, slabs, {"MemTotal": 16 << 30, **meminfo}, 4096)
