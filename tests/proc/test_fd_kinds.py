"""What an fd is, by its target and mode."""

from __future__ import annotations

import stat

import pytest

from opskit.proc.fd_kinds import kind_of, path_kind, place_of, unmounted_kind_of


@pytest.mark.parametrize(
    ("target", "kind"),
    [
        (b"pipe:[5]", ("pipe", "")),
        (b"anon_inode:[eventpoll]", ("epoll", "")),
        (b"anon_inode:[eventfd]", ("eventfd", "")),
        (b"anon_inode:inotify", ("inotify", "")),
        (b"inotify", ("inotify", "")),
        (b"anon_inode:[fanotify]", ("fanotify", "")),
        (b"anon_inode:[timerfd]", ("timerfd", "")),
        (b"anon_inode:[signalfd]", ("signalfd", "")),
        (b"anon_inode:[io_uring]", ("io_uring", "")),
        (b"anon_inode:[perf_event]", ("perf_event", "")),
        (b"anon_inode:[userfaultfd]", ("userfaultfd", "")),
        (b"anon_inode:[pidfd]", ("pidfd", "")),
        (b"pidfd:[31]", ("pidfd", "")),
        (b"anon_inode:bpf-map", ("bpf", "bpf-map")),
        (b"anon_inode:bpf_link", ("bpf", "bpf_link")),
        (b"anon_inode:kvm-vcpu:3", ("anon", "kvm-vcpu")),
        (b"anon_inode:[landlock-ruleset]", ("anon", "landlock-ruleset")),
        (b"net:[4026531840]", ("anon", "namespace net")),
        (b"dma:[7]", ("anon", "dma")),
        (b"", ("unknown", "")),
        (b"\xff\x00", ("anon", "\udcff\x00")),
    ],
)
def test_kinds_of_what_has_no_path(target, kind):
    assert kind_of(target) == kind


def test_files_that_are_mounted_nowhere():
    assert unmounted_kind_of(b"/memfd:pool (deleted)") == ("memfd", "pool")
    assert unmounted_kind_of(b"/dmabuf:") == ("anon", "dmabuf")
    assert unmounted_kind_of(b"/secretmem (deleted)") == ("anon", "secretmem")
    assert unmounted_kind_of(b"/[aio] (deleted)") == ("anon", "aio")
    assert unmounted_kind_of(b"/vmlinuz") is None


def test_kinds_of_paths():
    """By mode and links; a name that ends in (deleted) is no proof. Without a look by the path."""
    assert path_kind(b"/a", stat.S_IFREG, 1) == "file"
    assert path_kind(b"/a (deleted)", stat.S_IFREG, 1) == "file"
    assert path_kind(b"/a (deleted)", stat.S_IFREG, 0) == "deleted"
    assert path_kind(b"/a", stat.S_IFDIR, 2) == "directory"
    assert path_kind(b"/a", stat.S_IFIFO, 1) == "fifo"
    assert path_kind(b"/a", stat.S_IFCHR, 1) == path_kind(b"/a", stat.S_IFBLK, 1) == "device"
    assert path_kind(b"/a (deleted)", None, 1) == "deleted"
    assert path_kind(b"/dev/pts/0", None, 1) == "device"
    assert path_kind(b"/dev/shm/cache", None, 1) == "file"
    assert path_kind(b"/devices", None, 1) == "file"


def test_places_in_proc_have_no_numbers():
    """One group for the files of all processes."""
    assert place_of(b"/proc/4242") == "/proc/PID"
    assert place_of(b"/proc/4242/task/4243/fd") == "/proc/PID/task/TID/fd"
    assert place_of(b"/proc/4242x") == "/proc/4242x"
    assert place_of(b"/proc/bus/usb/001") == "/proc/bus/usb/001"
    assert place_of(b"/srv/proc/1") == "/srv/proc/1"
    assert place_of(b"/a\xff") == "/a\udcff"
