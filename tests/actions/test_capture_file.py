"""The file of a capture: for its owner alone, completely or not at all."""

from __future__ import annotations

import os
import stat

import pytest
from captures import content, full_tape

from opskit.actions.capture_file import save_capture
from opskit.errors import CannotWrite
from opskit.proc.recorded.store import load_capture


@pytest.fixture
def lax_umask():
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.parametrize("before", [None, 0o666, 0o400], ids=["new", "readable for all", "read-only"])
def test_nobody_else_may_read_it(tmp_path, lax_umask, before):
    """Mode 0600 with any umask; a file that is replaced keeps no bits that let others read it."""
    path = tmp_path / "x.tar.gz"
    if before is not None:
        path.write_text("old")
        path.chmod(before)
    save_capture(full_tape(), str(path))
    assert stat.S_IMODE(path.stat().st_mode) == (0o600 if before is None else before & 0o600)
    assert content(load_capture(str(path))) == content(full_tape())


def test_failed_capture_leaves_the_old_file(tmp_path):
    """A tape that cannot be written, or no space: nothing is changed, and no temporary file stays."""
    path = tmp_path / "x.tar.gz"
    path.write_text("old")
    tape = full_tape()
    tape.keep("link", "/x", "text instead of bytes")
    with pytest.raises(AttributeError):
        save_capture(tape, str(path))
    assert path.read_text() == "old"
    with pytest.raises(CannotWrite):
        save_capture(full_tape(), str(tmp_path / "none" / "x"))
    assert [each.name for each in tmp_path.iterdir()] == ["x.tar.gz"]


def test_link_of_another_user_is_not_followed(tmp_path, root_only):
    """In a directory like /tmp."""
    place = tmp_path / "sticky"
    place.mkdir()
    place.chmod(0o1777)
    (place / "x").symlink_to(tmp_path / "target")
    os.lchown(place / "x", 65534, 65534)
    with pytest.raises(CannotWrite, match="is a symbolic link of uid 65534"):
        save_capture(full_tape(), str(place / "x"))
    assert not (tmp_path / "target").exists()
