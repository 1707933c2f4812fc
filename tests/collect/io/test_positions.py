"""Positions of files of this process."""

from __future__ import annotations

import os
import socket
import subprocess

import pytest

from opskit.collect.io import positions as module
from opskit.collect.io.positions import Positions, device_name
from opskit.host import Host
from opskit.proc.fs import ProcFS

PLENTY = (1e9, 1e9)


@pytest.fixture
def opened(tmp_path):
    """Open a file with 10,000 bytes."""
    fds = []

    def open_(name, flags):
        path = tmp_path / name
        if not path.exists():
            path.write_bytes(b"x" * 10_000)
        fds.append(os.open(path, flags))
        return fds[-1]

    yield open_
    for fd in fds:
        os.close(fd)


def follow(most=1000):
    return Positions(Host(ProcFS()), os.getpid(), most)


def moved(positions):
    """What these tests opened: children of earlier ones may still write to the files in which pytest keeps the output."""
    return {
        fd: far for fd, far in positions.look().items() if not os.readlink(f"/proc/self/fd/{fd}").endswith(" (deleted)")
    }


def files(positions, seen=(), most_bytes=PLENTY):
    return {file.fd: file for file in positions.files(2.0, most_bytes, dict(seen), 100)}


def test_what_moves(opened, tmp_path):
    """A second, forward; with where it is and how it was opened. What does not move is left out, as is pread."""
    moving, still = opened("a", os.O_RDONLY), opened("b", os.O_RDONLY)
    positions = follow()
    os.read(moving, 3000)
    os.pread(still, 3000, 0)
    positions.choose()
    assert moved(positions) == {moving: 3000}
    os.read(moving, 500)
    assert moved(positions) == {moving: 500}
    positions.choose(ends=True)
    found = files(positions)
    assert still not in found
    file = found[moving]
    assert (file.path, file.kind, file.moved_bytes, file.flags & 3) == (
        str(tmp_path / "a"),
        "file",
        1750.0,
        os.O_RDONLY,
    )
    assert os.path.ismount(file.mount_point)
    assert tmp_path.is_relative_to(file.mount_point)
    assert file.device
    assert file.size_bytes == 10_000


def test_a_seek_back_is_no_read(opened):
    """What is read after it counts."""
    fd = opened("a", os.O_RDONLY)
    positions = follow()
    os.read(fd, 4000)
    positions.choose()
    assert moved(positions) == {fd: 4000}
    os.lseek(fd, 0, os.SEEK_SET)
    assert moved(positions) == {fd: -1}
    assert moved(positions) == {fd: 0}
    os.read(fd, 100)
    positions.choose(ends=True)
    assert files(positions)[fd].moved_bytes == 2050.0


def test_a_position_that_was_set(opened):
    """It moved further than was read: how far is unknown, that it moved is known."""
    fd, written = opened("a", os.O_RDONLY), opened("b", os.O_WRONLY)
    positions = follow()
    os.lseek(fd, 9000, os.SEEK_SET)
    os.lseek(written, 5000, os.SEEK_SET)
    positions.choose(ends=True)
    found = files(positions, most_bytes=(100.0, 8000.0))
    assert found[fd].moved_bytes is None
    assert found[written].moved_bytes == 2500.0


def test_a_file_that_is_opened_in_the_window(opened):
    """It began at 0; one that appends began somewhere."""
    positions = follow()
    fd, log = opened("a", os.O_RDONLY), opened("b", os.O_WRONLY | os.O_APPEND)
    os.read(fd, 1000)
    os.write(log, b"x" * 10)
    positions.choose()
    os.write(log, b"x" * 30)
    positions.choose(ends=True)
    found = files(positions)
    assert (found[fd].moved_bytes, found[log].moved_bytes) == (500.0, 15.0)


def test_a_number_that_is_another_file_now(opened, tmp_path):
    """What it moved as the first one does not belong to the second."""
    fd = opened("a", os.O_RDONLY)
    positions = follow()
    os.read(fd, 1000)
    positions.choose()
    os.dup2(opened("b", os.O_RDONLY), fd)
    os.read(fd, 5000)
    positions.choose(ends=True)
    positions.begin()
    os.read(fd, 400)
    positions.choose(ends=True)
    file = files(positions)[fd]
    assert (file.path, file.moved_bytes) == (str(tmp_path / "b"), 200.0)


def test_a_file_that_is_closed_at_the_end(opened, tmp_path):
    """A program that opens its file again and again has it open most of the time."""
    fd = opened("a", os.O_RDONLY)
    copy = os.dup(fd)
    positions = follow()
    os.read(copy, 1000)
    positions.choose()
    os.close(copy)
    positions.choose(ends=True)
    assert files(positions)[copy].path == str(tmp_path / "a")


def test_what_threads_were_seen_on(opened):
    """Also what has no position: sockets and pipes; a number that is closed is left out."""
    ours, theirs = socket.socketpair()
    receive, send = os.pipe()
    deleted = opened("a", os.O_RDONLY)
    os.unlink(os.readlink(f"/proc/self/fd/{deleted}"))
    null = os.open("/dev/null", os.O_WRONLY)
    try:
        seen = {ours.fileno(): {7}, receive: {7, 8}, deleted: {7}, null: {7}, 1 << 20: {7}}
        found = files(follow(), seen)
        kinds = {fd: (file.kind, file.moved_bytes, file.threads) for fd, file in found.items()}
        assert kinds == {
            ours.fileno(): ("socket", None, (7,)), receive: ("pipe", None, (7, 8)), deleted: ("deleted", None, (7,)),
            null: ("device", None, (7,)),
        }  # fmt: skip
    finally:
        ours.close()
        theirs.close()
        for fd in (receive, send, null):
            os.close(fd)


def test_more_fds_than_are_read(opened):
    """The lowest numbers are, and how many are not is told."""
    last = opened("a", os.O_RDONLY)
    positions = follow(most=2)
    assert positions.left_out >= 1
    os.read(last, 100)
    positions.choose()
    assert last not in files(positions)


def test_the_other_open_files(opened, tmp_path):
    """What has not moved, with how it was opened; unknown where an fd has come or gone in the window, and where they are many."""
    moving, still = opened("a", os.O_RDONLY), opened("b", os.O_WRONLY)
    script = "exec 9</dev/null; echo opened; read -r again"
    with subprocess.Popen(
        ["sh", "-c", f"read -r first; {script}"],
        pass_fds=(moving, still),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as child:
        positions = Positions(Host(ProcFS()), child.pid, 1000)
        os.read(moving, 10)  # the child has the same open file
        positions.choose(ends=True)
        others = {file.fd: file for file in positions.unmoved({moving})}
        positions.begin()
        child.stdin.write(b"\n")
        child.stdin.flush()
        child.stdout.readline()
        positions.choose(ends=True)
        later = positions.unmoved(())
        child.communicate(b"\n")
    assert moving not in others
    assert (others[still].path, others[still].flags & 3, others[still].moved_bytes) == (
        str(tmp_path / "b"),
        os.O_WRONLY,
        None,
    )
    assert later is None


def test_names_of_devices(tree):
    """By the file of the kernel; what is no pair of numbers leads nowhere."""
    root = tree(
        {
            "sys/dev/block/8:1/uevent": "MAJOR=8\nMINOR=1\nDEVNAME=sda1\nDEVTYPE=partition\n",
            "x/uevent": "DEVNAME=evil\n",
        }
    )
    fs = ProcFS(f"{root}/proc", str(root))
    assert [device_name(fs, each) for each in ("8:1", "0:42", "", "8:1/..", "../../x:1")] == [
        "sda1",
        None,
        None,
        None,
        None,
    ]


def test_a_process_that_has_ended():
    """It has no fds."""
    positions = Positions(Host(ProcFS()), (1 << 31) - 2, 10)
    positions.choose()
    assert (positions.look(), positions.files(1.0, PLENTY, {3: {7}}, 9)) == ({}, ())


def test_many_files_are_read_again_at_the_end_only(opened, monkeypatch):
    """But for some. What was opened meanwhile is followed all the same."""
    monkeypatch.setattr(module, "_MOST_AGAIN", 0)
    moving = opened("a", os.O_RDONLY)
    positions = follow()
    new = opened("b", os.O_RDONLY)
    os.read(moving, 3000)
    os.read(new, 1000)
    positions.choose()
    assert moved(positions) == {new: 1000}
    positions.choose(ends=True)
    assert {fd: file.moved_bytes for fd, file in files(positions).items()} == {moving: 1500.0, new: 500.0}
