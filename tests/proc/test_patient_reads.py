"""Reads that hang: they are left in a thread beside, and the file counts as denied."""

from __future__ import annotations

import os

import pytest

from opskit.proc import patient_reads
from opskit.proc.fs import ProcFS
from opskit.proc.kept_reads import Hangs
from opskit.proc.patient_reads import PatientReads
from opskit.proc.recorded.tape import LSTAT, Mark, Origin, Tape
from opskit.recorded_host import RecordedHost


@pytest.fixture
def reads(monkeypatch):
    """With little patience."""
    monkeypatch.setattr(patient_reads, "_HANGS_S", 0.01)
    made = PatientReads()
    yield made
    made.close()


@pytest.fixture
def hanging(tmp_path):
    """A call that hangs in the kernel until the end of the test."""
    path = str(tmp_path / "fifo")
    os.mkfifo(path)
    yield lambda *_: os.open(path, os.O_WRONLY)
    os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK))


def test_a_read_that_hangs(reads, hanging):
    """It is not tried again, and what else there is to read answers."""
    for _ in range(2):
        with pytest.raises(Hangs, match="reading it hangs"):
            reads.ask("/nfs/file", hanging)
    assert reads.hung == ["/nfs/file"]
    assert reads.ask("/nfs/other", str, 7) == "7"
    with pytest.raises(FileNotFoundError):
        reads.ask("/nfs/other", os.stat, "/none/at/all")


def test_the_memory_of_a_process(reads, hanging):
    """Where one of its files hangs, the others would; on newer kernels maps alone does not, which proves nothing."""
    assert reads.ask("/proc/7/maps", str, 7) == "7"
    with pytest.raises(Hangs):
        reads.ask("/proc/7/cmdline", hanging)
    with pytest.raises(Hangs):
        reads.ask("/proc/7/environ", str, 7)
    assert reads.ask("/proc/7/stat", str, 7) == "7"


def test_a_capture_goes_on_without_it(reads, hanging, tmp_path):
    """And a replay counts it as a file that was not read."""
    source = ProcFS()
    source.kept, source.file_id_at = reads, hanging
    tape = Tape(Origin(), (Mark(0.0, 0.0),))
    for fs in (RecordedHost(tape, source).fs, RecordedHost(tape).fs):
        with pytest.raises(PermissionError, match="reading it hangs"):
            fs.file_id_at("/nfs/file")
        assert fs.refused == {"/nfs/file": "reading it hangs"}
    assert [*tape.answers[LSTAT][0]] == ["/nfs/file"]
