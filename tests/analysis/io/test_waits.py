"""What a thread in state D waits for, by wchan."""

from __future__ import annotations

import pytest

from opskit.analysis.io.waits import CHILD, DEVICE, DIRTY, FROZEN, FUSE, JOURNAL, LOCK, MEMORY, REMOTE, wait_of


@pytest.mark.parametrize(
    ("where", "kind"),
    [
        ("request_wait_answer", FUSE), ("rpc_wait_bit_killable", REMOTE), ("nfs4_handle_delegation", REMOTE),
        ("folio_wait_bit_common", DEVICE), ("wait_on_page_bit_killable", DEVICE), ("blk_mq_get_tag", DEVICE),
        ("jbd2_log_wait_commit", JOURNAL), ("xfs_log_force_seq", JOURNAL), ("balance_dirty_pages", DIRTY),
        ("throttle_direct_reclaim", MEMORY), ("__mem_cgroup_handle_over_high", MEMORY),
        ("rwsem_down_write_slowpath", LOCK), ("__refrigerator", FROZEN), ("kernel_clone", CHILD), ("do_fork", CHILD),
        ("balance_dirty_pages_ratelimited_flags", DIRTY), ("coredump_task_exit", CHILD),
    ],
)  # fmt: skip
def test_known_functions(where, kind):
    """Each by the prefix that the kernels between 3.10 and 6.18 share."""
    assert wait_of(where).kind == kind


@pytest.mark.parametrize("where", [None, "", "0", "usb_kill_urb"])
def test_others(where):
    """No kind is claimed for a function that is unknown, or unreadable."""
    assert wait_of(where) is None


def test_what_is_no_storage():
    """A frozen cgroup, a vfork and a lock are no slow device."""
    waits = [wait_of(where) for where in ("__refrigerator", "kernel_clone", "rwsem_down_read_slowpath")]
    assert not any(wait.is_storage for wait in waits)
