"""Trees of other machines: nothing outside of them is read, nothing hangs, and refused files are counted."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from opskit.errors import BadInput
from opskit.host import Host
from opskit.proc import resolve
from opskit.proc.fs import DENIED, GONE, ProcFS, Refused
from opskit.proc.treefs import TreeFS

ROOT = Path(__file__).resolve().parents[2]
OUTSIDE = "outside:x:33:33::/:/bin/sh\n"


@pytest.fixture(params=["openat2", "component by component"])
def resolver(request):
    """Both resolvers of paths; openat2 where the kernel has it."""
    if request.param == "openat2" and resolve.best_resolver() is resolve.walk_in_root:
        pytest.skip("no openat2 here")
    return resolve.open_in_root if request.param == "openat2" else resolve.walk_in_root


@pytest.fixture
def hostile(tmp_path):
    """A tree in tmp_path/in whose links lead to tmp_path/out and to this machine; gives its root."""
    root, out = tmp_path / "in", tmp_path / "out"
    for directory in ("etc", "tmp", "proc/1/fd", "proc/1/task/1", "proc/7", "proc/sys/kernel", "deep/a/b"):
        (root / directory).mkdir(parents=True)
    out.mkdir()
    (out / "passwd").write_text(OUTSIDE)
    (root / "proc/meminfo").write_text("MemTotal: 1 kB\n")
    (root / "etc/real").write_text("inside\n")
    (root / "deep/a/b/file").write_text("deep\n")
    links = {
        "etc/passwd": f"{out}/passwd",
        "etc/up": "../../out/passwd",
        "etc/far": "../" * 60 + str(out).lstrip("/") + "/passwd",
        "etc/absolute": "/etc/real",
        "etc/circle": "circle",
        "etc/chain0": "real",
        "etc/directory": f"{out}",
        "proc/sys/kernel/hostname": "/proc/sys/kernel/hostname",
        "proc/1/root": "/",
        "proc/1/cwd": f"{out}",
        "proc/1/exe": "/bin/sh",
        "proc/1/fd/0": "pipe:[5]",
        "proc/self": "/proc/self",
        "proc/7/status": "/dev/zero",
        "proc/7/root": "../../..",
    } | {f"etc/chain{number}": f"chain{number - 1}" for number in range(1, 60)}
    for name, target in links.items():
        (root / name).symlink_to(target)
    os.mkfifo(root / "proc/7/stat")
    with open(root / "proc/7/maps", "wb") as sparse:
        sparse.truncate(20 << 30)
    return root


@pytest.fixture
def fs(hostile, resolver):
    return TreeFS(f"{hostile}/proc", str(hostile), resolver)


def kind_of_error(call, *arguments):
    """The class of the error that it raised, or the value that it returned."""
    try:
        return call(*arguments)
    except GONE:
        return "gone"
    except DENIED as error:
        return f"denied: {error.strerror}"


def test_links_are_resolved_within_the_tree(fs, hostile):
    """An absolute link starts at DIR, `..` ends there; a chain of 40 links is followed, of 41 not."""
    read = fs.read_path
    assert read(f"{hostile}/etc/absolute") == b"inside\n"
    assert read(f"{hostile}/proc/1/root/etc/real") == b"inside\n"
    assert read(f"{hostile}/proc/7/root/etc/real") == b"inside\n"
    assert read(f"{hostile}/deep/a/../../../../../deep/a/b/file") == b"deep\n"
    assert read(f"{hostile}/etc/chain39") == b"inside\n"
    for name in ("passwd", "up", "far", "directory/passwd"):
        assert kind_of_error(read, f"{hostile}/etc/{name}") == "gone", name
    for name in ("circle", "chain40", "chain59"):
        assert kind_of_error(read, f"{hostile}/etc/{name}").startswith("denied: Too many levels"), name
    assert fs.names_root("etc", "directory") == []


def test_every_method_stays_inside(fs, hostile):
    """stat, readlink, listing, space, access, untrusted files and another process's root."""
    out = hostile.parent / "out"
    assert kind_of_error(fs.file_id, 1, "cwd") == "gone"
    assert kind_of_error(fs.file_id, 1, "exe") == "gone"
    assert kind_of_error(fs.names_at, f"{hostile}/etc/directory") == "gone"
    assert kind_of_error(fs.space_at, f"{hostile}/etc/directory") == "gone"
    assert kind_of_error(fs.file_id_at, f"{hostile}/etc/directory/passwd") == "gone"
    assert kind_of_error(fs.read_at, f"{hostile}/etc/passwd", 0, 9) == "gone"
    assert kind_of_error(fs.hold, f"{hostile}/etc/passwd") == "gone"
    assert kind_of_error(fs.hold_regular, f"{hostile}/etc/passwd") == "gone"
    held = fs.hold_regular(f"{hostile}/etc/real")
    assert held.read_at(0, 4) == fs.read_at(f"{hostile}/etc/real", 0, 4) != b""
    held.close()
    assert not fs.is_writable(f"{hostile}/etc/directory")
    assert not fs.root_exists("etc", "directory", "passwd")
    assert fs.root_exists("etc", "directory")
    assert fs.link(1, "cwd") == os.fsencode(out)
    assert fs.root_links("etc")["passwd"] == f"{out}/passwd"
    with pytest.raises(OSError, match=r"links|directory") as caught:
        fs.read_untrusted(f"{hostile}/etc", "passwd", 1 << 20)
    assert caught.value.errno == errno.ELOOP
    with pytest.raises(NotADirectoryError):
        fs.read_untrusted(f"{hostile}/etc/directory", "passwd", 1 << 20)
    assert fs.inside(1, "/etc/absolute") == f"{hostile}/proc/1/root/etc/real"
    assert kind_of_error(fs.read_inside, 1, "/etc/passwd", 1 << 20) == "gone"
    for path in (str(out), f"{out}/passwd", "/etc/passwd", "etc/passwd"):
        assert kind_of_error(fs.read_path, path) == "gone", path


def test_only_regular_files_are_opened_and_no_endless_ones(fs, hostile, root_only):
    """A FIFO, a device, a socket, a directory, a sparse file of 20 GB: refused at once, and counted."""
    os.mknod(hostile / "proc/7/zero", stat.S_IFCHR | 0o666, os.makedev(1, 5))
    begun = time.process_time()
    said = {
        name: kind_of_error(fs.read, *name.split("/"))
        for name in ("7/stat", "7/zero", "7/maps", "1/task", "7/status", "sys/kernel/hostname")
    }
    assert said == {
        "7/stat": "denied: a FIFO, not a regular file",
        "7/zero": "denied: a device, not a regular file",
        "7/maps": "denied: larger than 64 MiB",
        "1/task": "denied: a directory, not a regular file",
        "7/status": "gone",
        "sys/kernel/hostname": "denied: Too many levels of symbolic links",
    }
    assert next(iter(fs.refused.items())) == (f"{hostile}/proc/7/stat", "a FIFO, not a regular file")
    assert len(fs.refused) == 5
    assert time.process_time() - begun < 1


def test_what_is_small_on_every_machine_is_not_read_when_it_is_not(fs, hostile):
    """A status of eight million lines would take gigabytes to split; one of 65,536 groups, the most there are, is read."""
    path = hostile / "proc/1/status"
    path.unlink(missing_ok=True)
    path.write_bytes(b"Groups:\t" + b"4294967294 " * 65536)
    assert len(fs.read(1, "status")) > 700_000
    path.write_bytes(b"k1:\n" * (1 << 19))
    assert kind_of_error(fs.read, 1, "status") == "denied: larger than 1 MiB"


def test_a_fifo_is_not_even_opened(fs, hostile):
    """An opened FIFO would let a writer go on that waits for a reader."""
    writer = subprocess.Popen(
        ["sh", "-c", 'exec 3>"$1"; echo opened', "sh", hostile / "proc/7/stat"], stdout=subprocess.PIPE
    )
    try:
        for _ in range(20):
            assert kind_of_error(fs.read, 7, "stat").startswith("denied")
            with contextlib.suppress(OSError):
                fs.read_untrusted(f"{hostile}/proc/7", "stat", 100)
            time.sleep(0.01)
        assert writer.poll() is None
    finally:
        writer.kill()
        writer.communicate()


def test_names_that_are_no_pids(fs, hostile):
    """`²`, bytes that are no UTF-8, newlines, leading zeros and pids that no kernel gives are no processes."""
    for name in ("²", "٣", "00", "007", "0", "4294967296", "9" * 200, "12\n", "1_0", " 5", "-3"):
        (hostile / "proc" / name).mkdir()
    os.mkdir(os.fsencode(hostile) + b"/proc/\xff\xfe")
    (hostile / "proc/1/task/²").mkdir()
    (hostile / "proc/1/fd/²").symlink_to("pipe:[6]")
    (hostile / "proc/1/fd/x").symlink_to("pipe:[6]")
    os.symlink(b"pipe:[6]", os.fsencode(hostile) + b"/proc/1/fd/\xff")
    assert fs.pids() == [1, 7]
    assert fs.tids(1) == [1]
    assert fs.fd_targets(1) == [b"pipe:[5]"]
    assert [link[0] for link in fs.fd_links(1)] == [b"0"]
    fs.check()


def test_paths_that_no_file_can_have(fs, hostile):
    """NUL, names of a megabyte, a hundred thousand components: GONE."""
    for part in ("a\0b", "x" * 300, "y" * (1 << 20), "a/" * 100_000, "../" * 100_000, "\udcff", "meminfo/x"):
        for call in (fs.read, fs.link, fs.file_id, fs.fd_targets, fs.names_root):
            assert kind_of_error(call, part) in ("gone", []), part[:20]
        assert not fs.exists(part)


def test_a_tree_is_never_taken_for_ourselves(hostile, resolver):
    """`self` may name any PID, and ns/pid may lead to our own namespace: the tree is still not our own."""
    (hostile / "proc/self").unlink()
    (hostile / "proc/self").symlink_to(str(os.getpid()))
    (hostile / f"proc/{os.getpid()}/ns").mkdir(parents=True)
    (hostile / f"proc/{os.getpid()}/ns/pid").symlink_to("/proc/self/ns/pid")
    assert ProcFS(f"{hostile}/proc", str(hostile)).is_own()  # what the links say
    fs = TreeFS(f"{hostile}/proc", str(hostile), resolver)
    assert (fs.is_live, fs.is_own()) == (False, False)


def test_a_copied_root_is_not_that_of_another_mount_namespace(fs, hostile):
    """`root -> /` of a container's process is the container's root, which is not in the copy."""
    for pid, namespace in ((1, "mnt:[1]"), (7, "mnt:[2]")):
        (hostile / f"proc/{pid}/ns").mkdir()
        (hostile / f"proc/{pid}/ns/mnt").symlink_to(namespace)
    assert fs.inside(1, "/etc") == f"{hostile}/proc/1/root/etc"
    assert kind_of_error(fs.inside, 7, "/etc") == "gone"


def test_a_copied_proc_tree_alone_has_no_root(hostile, resolver, monkeypatch):
    """With --proc of a copy neither the users nor the /tmp of this machine belong to it."""
    fs = TreeFS(f"{hostile}/proc", "/", resolver)
    assert not fs.has_our_root
    for path in ("/etc/passwd", "/tmp", "/"):
        assert kind_of_error(fs.read_path, path) == "gone"
        assert kind_of_error(fs.names_at, path) == "gone"
    assert kind_of_error(fs.inside, 1, "/etc") == "gone"
    assert Host(fs).user_name(0) == "0"
    assert Host(fs).uid_of("root") is None


@pytest.mark.parametrize("root", ["/", "/proc/self/root"])
def test_a_mounted_root_is_live(root, resolver, spawn):
    """Its procfs is a kernel's: magic links lead where they lead here, and a pid there may be a pid here."""
    other = spawn("import os, time; r, w = os.pipe(); print(os.stat(r).st_ino, flush=True); time.sleep(600)")
    fs = TreeFS(f"{root.rstrip('/')}/proc", root, resolver)
    ours = ProcFS()
    assert fs.is_live
    assert fs.is_own()
    assert f"pipe:[{other.line}]".encode() in fs.fd_targets(other.pid)
    assert sorted(fs.fd_links(other.pid)) == sorted(ours.fd_links(other.pid))
    assert fs.thread_count(other.pid) == ours.thread_count(other.pid)
    for parts in (("exe",), ("root",), ("cwd",), ("ns", "pid"), ("fd", "1")):
        assert fs.file_id(other.pid, *parts)[:2] == ours.file_id(other.pid, *parts)[:2], parts
        assert fs.link(other.pid, *parts) == ours.link(other.pid, *parts)
    path = fs.inside(other.pid, "/etc/passwd")
    assert fs.read_path(path) == ours.read_path(ours.inside(other.pid, "/etc/passwd"))
    assert fs.read_at(fs.path(other.pid, "exe"), 0, 4) == b"\x7fELF"
    assert fs.read("self", "stat").startswith(b"%d " % os.getpid())
    assert fs.refused == {}
    other.kill()
    other.wait()
    assert kind_of_error(fs.read, other.pid, "status") == "gone"


def test_a_process_in_another_root_is_looked_into_from_there(resolver, root_only, tmp_path, spawn):
    """Links below PROC/PID/root are those of the process: an absolute one must not lead into ours."""
    inner = tmp_path / "inner"
    (inner / "etc").mkdir(parents=True)
    (inner / "etc/real").write_text("its own\n")
    (inner / "etc/link").symlink_to("/etc/real")
    (inner / "etc/out").symlink_to("/etc/hostname")
    other = spawn("import os, sys, time; os.chroot(sys.argv[1]); print(flush=True); time.sleep(600)", inner)
    fs = TreeFS("/proc/self/root/proc", "/proc/self/root", resolver)
    assert fs.read_path(fs.path(other.pid, "root/etc/link")) == b"its own\n"
    assert kind_of_error(fs.read_path, fs.path(other.pid, "root/etc/out")) == "gone"
    assert fs.read_inside(other.pid, "/etc/link", 100) == b"its own\n"


MOUNTED = """
import sys
from opskit.proc import resolve, treefs
root, resolver = sys.argv[1:]
fs = treefs.TreeFS(root + "/proc", root, getattr(resolve, resolver))
for path in ("self/root/etc/passwd", "self/fd/0", "self/exe", "self/cwd/etc", "self/stat"):
    try:
        print(path, fs.is_live, len(fs.read_path(f"{root}/mounted/{path}")) > 0)
    except OSError as error:
        print(path, fs.is_live, error.strerror)
"""


def test_a_link_of_the_kernels_is_not_followed_below_a_copy(resolver, tmp_path, root_only):
    """The magic links of a procfs that is mounted in a copy are not followed."""
    (tmp_path / "proc").mkdir()
    (tmp_path / "mounted").mkdir()
    mounted = f'mount -t proc proc {tmp_path}/mounted && exec "$@"'
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", mounted, "sh", sys.executable, "-c", MOUNTED, tmp_path, resolver.__name__],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    refused = "False Too many levels of symbolic links"
    magic = ("self/root/etc/passwd", "self/fd/0", "self/exe", "self/cwd/etc")
    assert done.stdout.splitlines() == [*(f"{path} {refused}" for path in magic), "self/stat False True"]


def test_what_is_too_large_on_a_live_machine_is_refused(tmp_path, monkeypatch):
    """A process chooses what its cmdline and environ show, and may point at gigabytes."""
    big = tmp_path / "cmdline"
    with open(big, "wb") as sparse:
        sparse.truncate(9 << 20)
    with pytest.raises(Refused, match="larger than 8 MiB"):
        ProcFS().read_path(str(big))
    big.rename(tmp_path / "maps")
    assert len(ProcFS().read_path(str(tmp_path / "maps"))) == 9 << 20
    with pytest.raises(Refused, match="larger than 8 MiB"):
        ProcFS().read_path(str(tmp_path / "maps"), 8 << 20)
    with open(tmp_path / "maps", "r+b") as sparse:
        sparse.truncate(1 << 40)
    with pytest.raises(Refused, match="larger than 256 MiB"):
        ProcFS().read_path(str(tmp_path / "maps"))


def test_a_device_in_an_untrusted_place_is_not_opened(tmp_path, root_only):
    """Opening some devices has effects, and a container's root can make any."""
    os.mknod(tmp_path / "zero", stat.S_IFCHR | 0o666, os.makedev(1, 5))
    with pytest.raises(OSError, match="not a regular file"):
        ProcFS().read_untrusted(str(tmp_path), "zero", 100)


def test_a_base_that_is_no_directory(tmp_path, resolver):
    """One clear line for --root and --proc."""
    (tmp_path / "file").write_text("")
    for proc, root in (
        (f"{tmp_path}/no/proc", f"{tmp_path}/no"),
        (f"{tmp_path}/file", "/"),
        (f"{tmp_path}/file/proc", f"{tmp_path}/file"),
    ):
        with pytest.raises(BadInput, match=r"no (proc )?tree: .*; give the directory that holds"):
            TreeFS(proc, root, resolver).check()
    (tmp_path / "proc").symlink_to("/proc")
    with pytest.raises(BadInput, match="Too many levels"):
        TreeFS(f"{tmp_path}/proc", str(tmp_path), resolver).check()
