"""What a thread in state D waits for, by the kernel's function where it sleeps (wchan). Names of Linux 3.10 to 6.18."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.records import NamedTuple

if TYPE_CHECKING:
    from opskit.analysis.finding import Severity

FUSE, REMOTE, DEVICE, JOURNAL, DIRTY, FLUSH, MEMORY, LOCK, FROZEN, CHILD = (
    "fuse", "remote", "device", "journal", "dirty", "flush", "memory", "lock", "frozen", "child",
)  # fmt: skip
_HUNG_S = 10.0  # of one sleep


class Wait(NamedTuple):
    """A kind of wait, and what it is in words. `is_storage`: it ends when a device or a server answers."""

    kind: str
    words: str
    is_storage: bool


_FUSE = Wait(FUSE, "waits for a FUSE server", is_storage=True)
_NFS = Wait(REMOTE, "waits for an NFS server", is_storage=True)
_SERVER = Wait(REMOTE, "waits for a file server", is_storage=True)
_DEVICE = Wait(DEVICE, "waits for a block device", is_storage=True)
_QUEUE = Wait(DEVICE, "waits for room in a device's queue", is_storage=True)
_JOURNAL = Wait(JOURNAL, "waits for the file system's journal", is_storage=True)
_FILE_SYSTEM = Wait(JOURNAL, "waits in the file system", is_storage=True)
_DIRTY = Wait(DIRTY, "is slowed down: too many dirty pages", is_storage=True)
_FLUSH = Wait(FLUSH, "waits until dirty pages are stored", is_storage=True)
_MEMORY = Wait(MEMORY, "waits for memory to be freed", is_storage=False)
_HIGH = Wait(MEMORY, "is slowed down by memory.high of its cgroup", is_storage=False)
_LOCK = Wait(LOCK, "waits for a lock in the kernel", is_storage=False)
_FROZEN = Wait(FROZEN, "is frozen by its cgroup", is_storage=False)
_CHILD = Wait(CHILD, "waits for its vfork child to exec", is_storage=False)
_DUMP = Wait(CHILD, "waits for its core dump", is_storage=False)

# The first that a name begins with.
_PREFIXES = (
    ("request_wait_answer", _FUSE), ("fuse_", _FUSE),
    ("rpc_", _NFS), ("__rpc_", _NFS), ("nfs", _NFS), ("_nfs", _NFS),
    *((name, _SERVER) for name in ("cifs_", "smb2_", "smb_", "wait_for_response", "compound_send_recv", "p9_", "v9fs_", "ceph_", "afs_", "netfs_", "ocfs2_", "gfs2_", "dlm_")),
    *((name, _QUEUE) for name in ("blk_mq_get_tag", "rq_qos_wait", "wbt_wait", "get_request", "blk_queue_enter", "__bio_queue_enter", "blk_mq_freeze_queue", "md_write_start", "md_handle_request")),
    ("balance_dirty_pages", _DIRTY),
    *((name, _JOURNAL) for name in ("jbd2_", "do_get_write_access", "start_this_handle", "wait_transaction_locked", "xfs_log_", "xlog_", "xfs_ail_push", "btrfs_wait_ordered", "btrfs_sync_log", "wait_current_trans", "wait_log_commit")),
    *((name, _FILE_SYSTEM) for name in ("ext4_", "xfs_", "btrfs_", "f2fs_", "zil_", "txg_", "cv_wait")),
    *((name, _FLUSH) for name in ("wb_wait_for_completion", "sync_inodes_sb", "writeback_sb_inodes", "inode_sleep_on_writeback")),
    *((name, _DEVICE) for name in (
        "folio_wait_", "wait_on_page_", "__lock_page", "__folio_lock", "filemap_", "wait_on_buffer", "__wait_on_buffer", "__lock_buffer", "__bread",
        "blkdev_", "__blkdev_", "submit_bio_wait", "blk_", "bio_", "iomap_", "__iomap_", "do_blockdev_direct_IO", "dio_", "read_extent_buffer", "swap_", "io_schedule",
        "bit_wait_io", "sg_io", "scsi_", "nvme_", "mmc_", "loop_", "dm_", "md_", "raid", "read_swap", "do_swap_page", "do_read_cache",
    )),
    *((name, _HIGH) for name in ("mem_cgroup_handle_over_high", "__mem_cgroup_handle_over_high")),
    *((name, _MEMORY) for name in ("throttle_direct_reclaim", "shrink_", "try_to_free", "try_charge", "congestion_wait", "wait_iff_congested", "reclaim_throttle", "mem_cgroup_", "__alloc_pages")),
    *((name, _LOCK) for name in ("rwsem_", "call_rwsem_", "__down", "down_", "__mutex", "mutex_", "percpu_", "__percpu_", "synchronize_", "__synchronize_", "rcu_", "wait_rcu", "__wait_rcu")),
    *((name, _FROZEN) for name in ("__refrigerator", "refrigerator")),
    *((name, _CHILD) for name in ("kernel_clone", "_do_fork", "do_fork", "wait_for_vfork_done")),
    *((name, _DUMP) for name in ("coredump_", "do_coredump", "do_exit", "exit_mm")),
)  # fmt: skip


_WAIT_FOR_LOCKS = (
    "fcntl",
    "flock",
)  # of a FUSE server too, whose answer comes when another program gives back the lock


def severity_of(where: str | None, call: str | None, for_s: float, *, stores: bool) -> Severity:
    """How bad it is to wait there for so long: a note where no device or server has to answer.

    `call`: the system call; None: unknown. `stores`: the kernel stores dirty pages: sync(1) waits for all of them in one sleep.
    """
    wait = wait_of(where)
    if wait is None or not wait.is_storage or call in _WAIT_FOR_LOCKS or (stores and wait.kind == FLUSH):
        return "note"
    return "error" if for_s >= _HUNG_S else "warning"


def wait_of(where: str | None) -> Wait | None:
    """The wait at this function; None: not one of those known."""
    return next((wait for prefix, wait in _PREFIXES if where and where.startswith(prefix)), None)
