"""Files in directories that others may write to: links, FIFOs, sizes; another process's root."""

from __future__ import annotations

import errno
import os

import pytest

from opskit.proc.fs import ProcFS


@pytest.fixture
def fs(tmp_path):
    return ProcFS(f"{tmp_path}/proc", str(tmp_path))


def test_links_in_a_container_stay_in_it(fs, tmp_path):
    """An absolute link starts at the container's root, not at ours; `..` ends there."""
    root = tmp_path / "proc/7/root"
    (root / "var/tmp").mkdir(parents=True)
    (root / "tmp").symlink_to("/var/tmp")
    assert fs.inside(7, "/tmp/x") == f"{root}/var/tmp/x"
    (root / "var/up").symlink_to("../../../../etc")
    assert fs.inside(7, "/var/up/passwd") == f"{root}/etc/passwd"
    (root / "var/near").symlink_to("./tmp")
    assert fs.inside(7, "var/near") == f"{root}/var/tmp"
    assert fs.inside(7, "/not/there") == f"{root}/not/there"


def test_a_circle_of_links_ends(fs, tmp_path):
    root = tmp_path / "proc/7/root"
    root.mkdir(parents=True)
    (root / "a").symlink_to("b")
    (root / "b").symlink_to("/a")
    with pytest.raises(OSError, match="symbolic links") as caught:
        fs.inside(7, "/a")
    assert caught.value.errno == errno.ELOOP


def test_a_root_that_is_not_there(fs, tmp_path):
    with pytest.raises(FileNotFoundError):
        fs.inside(7, "/tmp")


def test_only_a_regular_file_of_a_real_directory_is_read(fs, tmp_path):
    """No link is followed, neither of the directory nor of the file; a FIFO does not hang it."""
    place = tmp_path / "dir"
    place.mkdir()
    (place / "file").write_bytes(b"content")
    found, data = fs.read_untrusted(str(place), "file", 100)
    assert (data, found.size_bytes, found.uid) == (b"content", 7, os.getuid())
    (place / "link").symlink_to("file")
    (tmp_path / "other").symlink_to(place)
    os.mkfifo(place / "fifo")
    for directory, name, number in (
        (place, "link", errno.ELOOP),
        (tmp_path / "other", "file", errno.ENOTDIR),
        (place, "fifo", errno.EINVAL),
        (place, "absent", errno.ENOENT),
    ):
        with pytest.raises(OSError) as caught:
            fs.read_untrusted(str(directory), name, 100)
        assert caught.value.errno == number
    with pytest.raises(OSError, match="too large"):
        fs.read_untrusted(str(place), "file", 6)


def test_threads_are_counted_by_one_stat(fs, tmp_path):
    for pid, threads in ((7, 3), (8, 1)):
        for tid in range(threads):
            (tmp_path / f"proc/{pid}/task/{pid + tid}").mkdir(parents=True)
    assert fs.thread_count(7) == 3
    assert fs.thread_count(8) == 1
    assert ProcFS().thread_count(os.getpid()) >= 1
