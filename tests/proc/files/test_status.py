"""/proc/PID/status."""

from __future__ import annotations

import os

import pytest

from opskit.errors import BadInput
from opskit.proc.files.status import parse_status
from opskit.proc.fs import ProcFS

TEXT = (
    "Name:\tjava\nState:\tS (sleeping)\nPPid:\t7\nUid:\t1\t2\t3\t4\nGid:\t5\t6\t7\t8\nGroups:\t10 20 \n"
    "NSpid:\t4242\t1\nVmSize:\t    2048 kB\nThreads:\t31\nSigCgt:\t2000000181005ccf\n"
)


def test_every_view():
    """Numbers with their unit, ids by their place, masks as numbers."""
    status = parse_status(TEXT)
    assert (status.real_uid, status.effective_uid, status.real_gid, status.effective_gid) == (1, 2, 5, 6)
    assert (status.groups, status.ns_pids) == ((10, 20), (4242, 1))
    assert (status.threads, status.parent_pid) == (31, 7)
    assert status.bytes_of("VmSize") == 2 << 20
    assert status.mask("SigCgt") == 0x2000000181005CCF


def test_what_is_not_there_is_unknown():
    """An old kernel, or a kernel thread without memory."""
    status = parse_status("Name:\tx\n")
    assert (status.threads, status.parent_pid, status.bytes_of("VmSize"), status.mask("CapEff")) == (None,) * 4
    assert (status.groups, status.ns_pids) == ((), ())
    with pytest.raises(BadInput, match="Uid"):
        _ = status.real_uid


def test_a_newline_in_the_name():
    """The part of the name behind the newline is not a field."""
    assert parse_status("Name:\ta\nUid\nUid:\t1\t1\t1\t1\n").real_uid == 1


def test_this_process():
    """The same as the system calls return."""
    status = ProcFS().load(parse_status, "self", "status")
    assert (status.real_uid, status.effective_gid, status.parent_pid) == (os.getuid(), os.getegid(), os.getppid())
