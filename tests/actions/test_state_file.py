"""A state file: who may be its reader and writer, what it may be, one run at a time."""

from __future__ import annotations

import fcntl
import os

import pytest

from opskit.actions.state_file import StateFile
from opskit.errors import BadInput, CannotWrite, NotPermitted, TargetTimeout
from opskit.host import Host
from opskit.proc.fs import ProcFS

OPTION = "--since-file"


@pytest.fixture
def host():
    """A machine whose clock moves when it sleeps."""
    one = Host(ProcFS())
    passed = [0.0]
    one.monotonic = lambda: passed[0]
    one.sleep = lambda seconds: passed.__setitem__(0, passed[0] + seconds)
    return one


def test_the_first_run_and_the_next(tmp_path, host):
    """Nothing is there; then what was written, with mode 0600, and no temporary file."""
    path = tmp_path / "state.json"
    first = StateFile(str(path), OPTION, host, 1)
    assert first.text is None
    first.write('{"a": 1}\n')
    first.close()
    assert (path.stat().st_mode & 0o777, os.listdir(tmp_path)) == (0o600, ["state.json"])
    second = StateFile(str(path), OPTION, host, 1)
    assert second.text == '{"a": 1}\n'
    second.write("{}\n")
    second.close()
    assert path.read_text() == "{}\n"


@pytest.mark.parametrize("kind", ["link", "dangling", "fifo", "directory", "device"])
def test_what_is_no_regular_file_is_refused(tmp_path, host, kind):
    """At once, without reading or waiting, and nothing is changed."""
    path = tmp_path / "state.json"
    (tmp_path / "other").write_text("{}")
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "directory":
        path.mkdir()
    elif kind in ("link", "dangling"):
        path.symlink_to(tmp_path / ("other" if kind == "link" else "nothing"))
    with pytest.raises(BadInput, match=r"it is (a symbolic link|not a regular file)"):
        StateFile("/dev/null" if kind == "device" else str(path), OPTION, host, 1)
    assert (tmp_path / "other").read_text() == "{}"
    assert not (tmp_path / "nothing").exists()


def test_places_that_cannot_be_written(tmp_path, host):
    """Before any work is done; the message names the option."""
    with pytest.raises(CannotWrite, match=r"there is no directory .*; choose another place with --since-file"):
        StateFile(str(tmp_path / "no" / "state.json"), OPTION, host, 1)


def test_a_file_of_another_user(root_only, tmp_path, host):
    """It could hide a problem from us."""
    path = tmp_path / "state.json"
    path.write_text("{}")
    os.chown(path, 65534, 65534)
    with pytest.raises(NotPermitted, match="belongs to uid 65534; name a file of your own"):
        StateFile(str(path), OPTION, host, 1)


def test_a_very_large_file(tmp_path, host):
    """It is not read as a whole."""
    path = tmp_path / "state.json"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(BadInput, match="it is too large"):
        StateFile(str(path), OPTION, host, 1)


def test_another_run_has_it(tmp_path, host):
    """It is waited for; then one line says so."""
    path = tmp_path / "state.json"
    path.write_text("{}")
    with path.open() as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(TargetTimeout, match="another run of opskit has used it for 2 s; try again"):
            StateFile(str(path), OPTION, host, 2)
        assert host.monotonic() >= 2
    StateFile(str(path), OPTION, host, 1).close()


def test_after_waiting_the_new_file_is_read(tmp_path, host):
    """The other run has replaced the file that was waited for."""
    path = tmp_path / "state.json"
    path.write_text("old")
    other = StateFile(str(path), OPTION, host, 1)
    sleep = host.sleep

    def meanwhile(seconds):
        sleep(seconds)
        if path.read_text() == "old":
            other.write("new")
            other.close()

    host.sleep = meanwhile
    mine = StateFile(str(path), OPTION, host, 5)
    assert mine.text == "new"
    mine.close()
