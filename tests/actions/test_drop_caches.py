"""Dropping: the written number, and a write that does not return."""

from __future__ import annotations

import os

import pytest

from opskit.actions import drop_caches
from opskit.errors import NotPermitted, NotSupported, TargetTimeout
from opskit.host import Host
from opskit.proc.fs import ProcFS


@pytest.fixture
def control(tmp_path):
    """A host whose control file is a plain file."""
    path = tmp_path / "sys" / "vm" / "drop_caches"
    path.parent.mkdir(parents=True)
    path.write_text("")
    return Host(ProcFS(str(tmp_path))), path


@pytest.mark.parametrize(("level", "text"), [("pagecache", "1\n"), ("dentries", "2\n"), ("all", "3\n")])
def test_what_is_written(control, level, text):
    """1, 2 or 3, and nothing else."""
    host, path = control
    drop_caches.drop(host, level)
    assert path.read_text() == text


def test_a_kernel_that_does_not_come_back(control, monkeypatch):
    """A write that hangs (here a FIFO without a reader) is left behind after the timeout, with an error."""
    host, path = control
    path.unlink()
    os.mkfifo(path)
    monkeypatch.setattr(drop_caches, "_DROP_TIMEOUT_S", 0.3)
    with pytest.raises(TargetTimeout, match="has not come back"):
        drop_caches.drop(host, "dentries")


def test_a_refusal_at_the_write_is_told(control):
    """The file has been removed."""
    host, path = control
    path.unlink()
    with pytest.raises(NotSupported, match="Nothing was changed"):
        drop_caches.drop(host, "dentries")


def test_another_machines_tree_is_refused_before_anything_is_opened(control):
    """Not our own proc."""
    host, _ = control
    with pytest.raises(NotPermitted, match="another machine or pid namespace"):
        drop_caches.check_may_drop(host, "dentries", in_container=True)


def test_a_sync_that_ends(control):
    """True when it ended."""
    host, _ = control
    assert drop_caches.sync(host, 300)


def test_a_drop_says_what_was_done(control, monkeypatch):
    """The level, the number that was written and where, and whether sync ended in time."""
    host, path = control
    monkeypatch.setattr(drop_caches, "sync", lambda *_: False)
    done = drop_caches.sync_and_drop(host, "all", 5.0)
    assert (done.level, done.written, done.path, done.synced) == ("all", 3, str(path), False)
    assert done.drop_s is not None
    assert not done.interrupted
    assert path.read_text() == "3\n"


@pytest.mark.parametrize(("step", "dropped"), [("sync", False), ("drop", True)])
def test_ctrl_c_ends_it(control, monkeypatch, step, dropped):
    """During sync nothing is written; during the drop the kernel may have dropped a part."""
    host, path = control

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(drop_caches, step, interrupt)
    done = drop_caches.sync_and_drop(host, "dentries", 300)
    assert done.interrupted
    assert (done.drop_s is not None) is dropped
    assert path.read_text() == ""
