"""The interface of file systems: optional reads, and the primitives on which all other methods are built."""

from __future__ import annotations

import ast
import errno
import inspect
import os
from pathlib import Path

import pytest

from opskit.errors import BadInput
from opskit.proc.files.boot_time import parse_uptime
from opskit.proc.fs import ProcFS, optional
from opskit.proc.treefs import TreeFS


@pytest.fixture(params=["this machine's", "a copy's"])
def fs(request, tmp_path):
    """A small tree, read by either class."""
    (tmp_path / "proc/7").mkdir(parents=True)
    (tmp_path / "etc").mkdir()
    (tmp_path / "proc/uptime").write_text("12.5 99.0\n")
    (tmp_path / "proc/7/uptime").write_text("twelve\n")
    (tmp_path / "proc/7/self").symlink_to("self")
    (tmp_path / "etc/release").write_text("12 0\n")
    kind = ProcFS if request.param == "this machine's" else TreeFS
    return kind(f"{tmp_path}/proc", str(tmp_path))


def test_a_readable_file_is_parsed(fs):
    assert fs.maybe(parse_uptime, "uptime") == 12.5
    assert fs.maybe(parse_uptime, "uptime", default=0.0, strict=True) == 12.5
    assert fs.maybe_root(parse_uptime, "etc", "release") == 12.0


@pytest.mark.parametrize("name", ["absent", "uptime/below", "7", "7/self", "x" * 300])
def test_a_file_that_cannot_be_read_gives_the_default(fs, name):
    """A missing file, a directory, a loop of links, a name that is too long: the default, with `strict` too."""
    assert fs.maybe(parse_uptime, name) is None
    assert fs.maybe(parse_uptime, name, default=1.0, strict=True) == 1.0
    assert fs.maybe_root(parse_uptime, "proc", name) is None
    assert fs.maybe_root(parse_uptime, "proc", name, default=1.0, strict=True) == 1.0


@pytest.mark.parametrize("error", [errno.ENOENT, errno.ESRCH, errno.EACCES, errno.EPERM, errno.EIO, errno.EOPNOTSUPP])
def test_each_error_of_the_kernel_gives_the_default(fs, monkeypatch, error):
    """A process that ended, missing rights, a broken disk, a kernel without the feature."""

    def fail(*_):
        raise OSError(error, os.strerror(error))

    monkeypatch.setattr(fs, "read_path", fail)
    assert fs.maybe(str, "uptime", default="none") == "none"
    assert fs.maybe_root(str, "etc", "release") is None
    assert optional(fs.read, "uptime", default=b"") == b""


def test_a_malformed_file_gives_the_default_or_its_error(fs):
    assert fs.maybe(parse_uptime, 7, "uptime") is None
    assert fs.maybe(parse_uptime, 7, "uptime", default=2.0) == 2.0
    with pytest.raises(BadInput, match=r"/proc/7/uptime: .*'twelve"):
        fs.maybe(parse_uptime, 7, "uptime", strict=True)
    with pytest.raises(BadInput, match=r"/proc/7/uptime: .*'twelve"):
        fs.maybe_root(parse_uptime, "proc", 7, "uptime", default=2.0, strict=True)


def test_any_call_may_be_optional(fs):
    """For links, listings and other functions; errors other than OSError and BadInput are raised."""
    assert optional(fs.link, 7, "self") == b"self"
    assert optional(fs.link, 7, "cwd") is None
    assert optional(fs.tids, 7, default=[]) == []
    assert optional(fs.load, parse_uptime, 7, "uptime") is None
    with pytest.raises(ZeroDivisionError):
        optional(lambda: 1 // 0)


PRIMITIVES = {
    "read_path", "read_at", "hold", "hold_regular", "read_untrusted", "names_at", "file_id_at",
    "is_writable", "space_at", "_exists", "_stat", "_readlink", "_scan", "_of_fds",
}  # fmt: skip
LOOKS = {"open", "stat", "lstat", "listdir", "scandir", "readlink", "access", "statvfs", "pread", "read", "lexists"}


def test_only_the_primitives_look_at_files():
    """A file system that overrides them (another tree, a recording) sees everything that is read."""
    source = Path(inspect.getfile(ProcFS)).read_text()
    (cls,) = (node for node in ast.parse(source).body if isinstance(node, ast.ClassDef) and node.name == "ProcFS")
    looking = {
        method.name
        for method in cls.body
        if isinstance(method, ast.FunctionDef)
        for node in ast.walk(method)
        if isinstance(node, ast.Attribute) and node.attr in LOOKS and "os" in ast.unparse(node.value).split(".")
    }
    assert looking - PRIMITIVES == {"is_own"}  # it compares the tree with our own /proc
    assert {name for name in PRIMITIVES if not hasattr(ProcFS, name)} == set()


class Recording(ProcFS):
    """Notes the path of each primitive that is called."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.seen = []


def _noting(name):
    def method(self, *arguments, **options):
        self.seen.append((name, arguments[0]))
        return getattr(ProcFS, name)(self, *arguments, **options)

    return method


for _name in PRIMITIVES - {"_of_fds"}:
    setattr(Recording, _name, _noting(_name))


def test_a_recording_file_system_is_one_class(tmp_path):
    """Every file that a command reads goes through the primitives."""
    (tmp_path / "proc/7/root/etc").mkdir(parents=True)
    (tmp_path / "proc/7/task/7").mkdir(parents=True)
    (tmp_path / "proc/7/root/etc/passwd").write_text("app:x:5:5::/:/bin/sh\n")
    fs = Recording(f"{tmp_path}/proc", str(tmp_path))
    assert fs.pids() == [7]
    assert fs.tids(7) == [7]
    assert fs.thread_count(7) >= 1
    assert fs.maybe(str, 7, "comm") is None
    assert fs.read_inside(7, "/etc/passwd", 100).startswith(b"app")
    assert not fs.root_exists("etc")
    seen = {(name, path.removeprefix(str(tmp_path))) for name, path in fs.seen}
    assert seen >= {
        ("names_at", "/proc"),
        ("names_at", "/proc/7/task"),
        ("read_path", "/proc/7/comm"),
        ("_readlink", "/proc/7/root/etc"),
        ("read_untrusted", "/proc/7/root/etc"),
        ("_exists", "/etc"),
    }


def test_only_the_kernels_links_are_followed_to_a_regular_file(tmp_path):
    """Those in PROC/PID/map_files, not one in a directory of that name that a program has made."""
    fs = ProcFS()
    file, link = tmp_path / "map_files/file", tmp_path / "map_files/link"
    file.parent.mkdir()
    file.write_text("content")
    link.symlink_to(file)
    for path in (str(link), fs.inside(os.getpid(), str(tmp_path)) + "/map_files/link"):
        with pytest.raises(OSError, match="symbolic links"):
            fs.hold_regular(path)
    held = fs.hold_regular(str(file))
    assert held.read_at(3, 9) == b"tent"
    held.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        held.read_at(0, 1)
    if os.geteuid() == 0:
        mapped = sorted(os.listdir("/proc/self/map_files"))[0]
        fs.hold_regular(f"/proc/{os.getpid()}/map_files/{mapped}").close()
