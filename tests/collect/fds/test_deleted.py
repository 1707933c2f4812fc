"""Deleted files that are held, full file systems, and memory that nobody holds, on this machine: each case in a mount namespace of its own."""

from __future__ import annotations

import ctypes
import os
import pickle
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from lesser import call
from ownmounts import own_mounts

from opskit.analysis.fds.deleted import judge_deleted
from opskit.collect.fds.deleted import collect_deleted
from opskit.errors import NotSupported
from opskit.host import Host

MIB = 1 << 20
IPC_RMID = 0
NOBODY = 65534
ROOT = Path(__file__).resolve().parents[3]
PRELUDE = """
import mmap, os, pickle, socket, subprocess, sys
from opskit.analysis.fds.deleted import judge_deleted
from opskit.collect.fds.deleted import collect_deleted
from opskit.host import Host

def put(path, size, flags=os.O_RDWR):
    fd = os.open(path, flags | os.O_CREAT, 0o600)
    try:
        for _ in range(size >> 16):
            os.write(fd, bytes(1 << 16))
    except OSError:
        pass
    return fd

def gone(path, size, flags=os.O_RDWR):
    fd = put(path, size, flags)
    os.unlink(path)
    return fd

def answer(*extra):
    sys.stdout.buffer.write(pickle.dumps((judge_deleted(collect_deleted(Host.at(None, None))), *extra)))
    sys.stdout.flush()
    os._exit(0)

os.chdir(sys.argv[1])
"""


@pytest.fixture
def staged(root_only, tmp_path):
    """A function: mount by these shell commands in tmp_path, in a new mount namespace, run the code there, return what it answers."""

    def run(mounts, code):
        script = f'mount -t tmpfs none {tmp_path}; cd {tmp_path}; {mounts}\nexec "$0" -c "$1" {tmp_path}'
        done = subprocess.run(
            ["unshare", "-m", "sh", "-ec", script, sys.executable, PRELUDE + code],
            capture_output=True, timeout=60, check=False,
            env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT}/tests/support"},
        )  # fmt: skip
        if done.returncode and (b"unshare" in done.stderr or b"mount:" in done.stderr):
            pytest.skip(f"cannot mount here: {done.stderr!r}")
        assert not done.returncode, done.stderr.decode()
        return pickle.loads(done.stdout)  # noqa: S301  (our own child wrote it)

    return run


def system_at(facts, mount):
    [found] = [system for system in facts.systems if system.mount == str(mount)]
    return found


def codes_of(result, mount):
    return {finding.code: finding for finding in result.findings if finding.entity.id == str(mount)}


EXT4 = "truncate -s 32M image; mkfs.ext4 -q -m 0 image; mkdir disk; mount -o loop image disk;"


def test_a_disk_that_a_deleted_log_fills(staged, tmp_path):
    """The log with its blocks, holder and fd; the disk is full because of it; the printed command gives the space back."""
    result, blocks, log, again = staged(EXT4, """
log = gone("disk/app.log", 64 << 20, os.O_WRONLY | os.O_APPEND)
before = judge_deleted(collect_deleted(Host.at(None, None)))
[finding] = [each for each in before.findings if each.code == "deleted-files-held" and each.entity.id.endswith("/disk")]
command = finding.summary.rpartition("then: ")[2]
blocks = os.fstat(log).st_blocks * 512
assert command == f"truncate -s 0 /proc/{os.getpid()}/fd/{log}", finding
subprocess.run(command, shell=True, check=True)
sys.stdout.buffer.write(pickle.dumps((before, blocks, log, judge_deleted(collect_deleted(Host.at(None, None))))))
sys.stdout.flush()
os._exit(0)
""")  # fmt: skip
    disk = system_at(result.facts, tmp_path / "disk")
    [file] = disk.files
    assert (file.path, file.bytes, file.is_regular) == (f"{tmp_path}/disk/app.log", blocks, True)
    assert blocks > 20 * MIB
    [holder] = file.holders
    assert (holder.fds, holder.mapped, holder.appending_fd) == ((log,), False, log)
    assert disk.type == "ext4"
    assert disk.free_bytes < disk.size_bytes / 100
    found = codes_of(result, tmp_path / "disk")
    assert {code: each.severity for code, each in found.items()} == {
        "disk-full": "error",
        "deleted-files-held": "warning",
    }
    assert "Restart" in found["deleted-files-held"].summary
    after = system_at(again.facts, tmp_path / "disk")
    assert after.free_bytes > 20 * MIB
    assert not codes_of(again, tmp_path / "disk")


def test_what_is_no_advice_to_truncate(staged, tmp_path):
    """A writer that does not append, one that reads too, a mapping, a second fd that does: restart them; a name that ends in ` (deleted)` is none."""
    result, = staged("", """
plain = gone("plain", 1 << 20, os.O_WRONLY)
both = gone("both", 2 << 20, os.O_RDWR | os.O_APPEND)
mapped = gone("mapped", 3 << 20)
memory = mmap.mmap(mapped, 3 << 20)
os.close(mapped)
twice = gone("twice", 4 << 20, os.O_WRONLY | os.O_APPEND)
os.dup2(twice, 77)
mixed = gone("mixed", 6 << 20, os.O_WRONLY | os.O_APPEND)
reader = os.open(f"/proc/self/fd/{mixed}", os.O_RDONLY)
holes = gone("holes", 7 << 20, os.O_WRONLY | os.O_APPEND)
writer = os.open(f"/proc/self/fd/{holes}", os.O_WRONLY)
named = put("stays (deleted)", 5 << 20)
sparse = os.open("sparse", os.O_RDWR | os.O_CREAT)
os.truncate(sparse, 1 << 40)
os.unlink("sparse")
answer()
""")  # fmt: skip
    files = {Path(file.path).name: file for file in system_at(result.facts, tmp_path).files}
    assert {name: file.bytes // MIB for name, file in files.items()} == {
        "plain": 1, "both": 2, "mapped": 3, "twice": 4, "mixed": 6, "holes": 7, "sparse": 0,
    }  # fmt: skip
    assert files["sparse"].size_bytes == 1 << 40
    appending = {name: file.holders[0].appending_fd is not None for name, file in files.items()}
    assert [name for name, is_so in appending.items() if is_so] == ["twice"]
    assert files["twice"].holders[0].fds[-1] == 77
    assert (files["mapped"].holders[0].mapped, len(files["mapped"].holders[0].fds)) == (True, 1)  # the mapping's own


def test_no_inodes_left(staged, tmp_path):
    """A tmpfs and an ext4 without inodes and with space; one that is full of data has a finding about its space alone."""
    result, = staged(
        "mkdir few full; mount -t tmpfs -o nr_inodes=20,size=1m none few; mount -t tmpfs -o size=1m none full;"
        "truncate -s 16M image; mkfs.ext4 -q -N 64 image; mkdir disk; mount -o loop image disk;",
        """
for place in ("few", "disk"):
    try:
        for number in range(200):
            open(f"{place}/{number}", "w").close()
    except OSError:
        pass
put("full/data", 2 << 20)
answer()
""",
    )  # fmt: skip
    for mount, expected in {"few": "disk-inodes-used-up", "disk": "disk-inodes-used-up", "full": "disk-full"}.items():
        assert {*codes_of(result, tmp_path / mount)} == {expected}
    assert system_at(result.facts, tmp_path / "few").free_inodes == 0


def test_healthy_file_systems(staged, tmp_path):
    """Full and read-only, nearly full of what is meant, libraries that were replaced: no warning."""
    result, = staged(
        "mkdir image busy; mount -t tmpfs -o size=2m none image; head -c 3M /dev/zero > image/data || true; mount -o remount,ro image;"
        "mount -t tmpfs -o size=20m none busy;",
        """
put("busy/data", 15 << 20)
library = gone("busy/library.so", 1 << 18)
answer()
""",
    )  # fmt: skip
    assert not codes_of(result, tmp_path / "image")
    assert not [system for system in result.facts.systems if system.mount == f"{tmp_path}/image"]
    assert not codes_of(result, tmp_path / "busy")


OVERLAY = (
    EXT4
    + "mkdir lower disk/upper disk/work top; mount -t overlay none -o lowerdir=lower,upperdir=$PWD/disk/upper,workdir=$PWD/disk/work top;"
)


def test_an_overlay_takes_the_space_of_its_disk(staged, tmp_path):
    """A file of a container, open and mapped, is one file of the disk that the overlay writes to."""
    result, = staged(OVERLAY, """
fd = gone("top/inside", 4 << 20)
memory = mmap.mmap(fd, 4 << 20)
answer()
""")  # fmt: skip
    [file] = system_at(result.facts, tmp_path / "disk").files
    assert (file.bytes, file.path) == (4 * MIB, f"{tmp_path}/top/inside")
    [holder] = file.holders
    assert holder.mapped
    assert holder.fds
    assert not [system for system in result.facts.systems if system.type == "overlay"]


def test_what_is_not_looked_at(staged, tmp_path):
    """A file on a server that does not answer, also when it was unmounted: counted, and nothing hangs."""
    result, pid = staged("mkdir remote away;", """
from silentfuse import SilentFuse
remote, away = SilentFuse(f"{sys.argv[1]}/remote"), SilentFuse(f"{sys.argv[1]}/away")
held = remote.deleted_file(), away.deleted_file()
subprocess.run(["umount", "-l", f"{sys.argv[1]}/away"], check=True)
remote.silent.set(), away.silent.set()
answer(os.getpid())
""")  # fmt: skip
    assert result.facts.skipped_remote == 1
    assert "not looked at, since a stat may hang: 1 fd on network file systems" in result.facts.missing
    assert [line for line in result.facts.missing if line.startswith("not looked at: 1 fd on detached mounts, ")]
    assert pid not in {
        holder.process.pid for system in result.facts.systems for file in system.files for holder in file.holders
    }


def test_a_root_in_memory(staged):
    """Where `/` is a tmpfs, each path may be in it: a file of a server that does not answer, unmounted, is not looked at either."""
    files, detached = staged("mkdir away;", """
from silentfuse import SilentFuse
from opskit.proc.fs import ProcFS
from opskit.proc.memory_files import FileScanner
from opskit.proc.tmpfs_mounts import TmpfsMount, TmpfsMounts
away = SilentFuse("away")
fd = os.open("away/file", os.O_RDWR | os.O_CREAT, 0o600)
os.close(os.dup(fd))
subprocess.run(["umount", "-l", "away"], check=True)
away.silent.set()
there = put("there", 1 << 16)
root = TmpfsMount(os.fstat(there).st_dev, "tmpfs", "/", None, 1, 1)
scanner = FileScanner(ProcFS(), TmpfsMounts((root,), ()), 1000)
found = [file.path for file in scanner.scan(os.getpid()) if file.path.startswith((f"{sys.argv[1]}/", "/file"))]
sys.stdout.buffer.write(pickle.dumps((found, scanner.detached)))
sys.stdout.flush()
os._exit(0)
""")  # fmt: skip
    assert [Path(path).name for path in files] == ["there"]
    assert detached == 1


def test_in_flight(staged, tmp_path):
    """A file whose fd was sent over a socket and not received is in no process's table: its socket's holder is named."""
    result, pid = staged("", """
one, other = socket.socketpair()
fd = gone("sent", 1 << 20)
socket.send_fds(one, [b"x"], [fd, fd])
os.close(fd)
server = socket.socket(socket.AF_UNIX)
server.bind("listening")
server.listen()
client = socket.socket(socket.AF_UNIX)
client.connect("listening")
third = gone("third", 1 << 20)
socket.send_fds(client, [b"x"], [third])
os.close(third)
answer(os.getpid())
""")  # fmt: skip
    assert dict(result.facts.in_flight)[pid] == 3
    assert not system_at(result.facts, tmp_path).files


def test_another_root(staged, tmp_path):
    """With --root the file systems are those of the machine's processes, `/` included."""
    result, device, space = staged("mkdir root; mount --bind / root; mount -t proc proc root/proc;", """
held = gone("/var/tmp/opskit-held", 1 << 20)
found = collect_deleted(Host.at(f"{sys.argv[1]}/root", None))
sys.stdout.buffer.write(pickle.dumps((judge_deleted(found), os.fstat(held).st_dev, os.statvfs("/").f_blocks)))
sys.stdout.flush()
os._exit(0)
""")  # fmt: skip
    [(system, file)] = [
        (system, file)
        for system in result.facts.systems
        for file in system.files
        if file.path == "/var/tmp/opskit-held"
    ]
    assert (system.device, file.bytes) == (device, MIB)
    if os.stat("/").st_dev == device:
        # Where PID 1 is guarded from root, as a process sees it.
        assert re.fullmatch(rf"/|{tmp_path}/root/proc/\d+/root/", system.mount)
        assert bool(system.size_bytes) == bool(space)


def test_held_by_the_kernel(staged, tmp_path):
    """The deleted file behind a loop device has no process; it is named."""
    (result,) = staged(EXT4 + "rm image;", "answer()")
    assert [
        line
        for line in result.facts.missing
        if f"holds a deleted file, whose blocks cannot be read: {tmp_path}/image" in line
    ]


def test_a_file_system_of_another_mount_namespace(root_only, tmp_path):
    """What only a container has mounted is judged like ours, by a path that leads there from here; a tmpfs too, also without deleted files."""
    script = (
        "mount -t tmpfs -o size=8m none /mnt; exec 7>>/mnt/log; rm /mnt/log; head -c 7900K /dev/zero >&7;"
        f"cd {tmp_path}; mkdir full empty; mount -t tmpfs -o size=1m none full; mount -t tmpfs -o size=1m none empty; head -c 1M /dev/zero >full/data;"
        f"{EXT4} exec 8>>disk/log; rm disk/log; head -c 20M /dev/zero >&8"
    )
    with own_mounts(script) as pid:
        result = judge_deleted(collect_deleted(Host.at(None, None)))
    root = f"/proc/{pid}/root"
    [file] = system_at(result.facts, f"{root}/mnt").files
    assert file.path == "/mnt/log"
    assert file.bytes > 7 * MIB
    assert file.holders[0].appending_fd == 7
    assert {*codes_of(result, f"{root}/mnt")} == {"deleted-files-held"}
    assert {*codes_of(result, f"{root}{tmp_path}/full")} == {"disk-full"}
    assert f"{root}{tmp_path}/empty" not in {system.mount for system in result.facts.systems}
    [log] = system_at(result.facts, f"{root}{tmp_path}/disk").files
    assert log.bytes >= 20 * MIB


@pytest.fixture
def left():
    """A System V segment and a file of /dev/shm, 17 MiB each, that nobody holds."""
    if not os.access("/dev/shm", os.W_OK):
        pytest.skip("needs /dev/shm")
    libc = ctypes.CDLL(None)
    libc.shmat.restype = ctypes.c_void_p
    shmid = libc.shmget(0, 17 * MIB, 0o1600)
    place = libc.shmat(shmid, None, 0)
    ctypes.memset(place, 1, 17 * MIB)
    libc.shmdt(ctypes.c_void_p(place))
    path = Path(f"/dev/shm/opskit-test-{os.getpid()}")
    path.write_bytes(bytes(17 * MIB))
    yield shmid, path
    path.unlink(missing_ok=True)
    libc.shmctl(shmid, IPC_RMID, None)


def test_memory_that_nobody_holds(root_only, initial_pid_namespace, left):
    """The segment and the file, with the commands that remove them; neither while somebody has it open."""
    shmid, path = left
    result = judge_deleted(collect_deleted(Host.at(None, None)))
    found = {one.name: (one.kind, one.bytes, one.remove) for one in result.facts.unattached}
    assert found[str(shmid)] == ("sysv", 17 * MIB, f"ipcrm -m {shmid}")
    assert found[str(path)] == ("shm", 17 * MIB, f"rm {path}")
    [finding] = [each for each in result.findings if each.code == "shared-memory-unheld"]
    assert finding.severity == "note"
    with path.open():
        held = collect_deleted(Host.at(None, None))
    assert str(path) not in {one.name for one in held.unattached}


def test_without_rights(root_only):
    """Other users' processes are not read, which is said; one's own are, with the sizes of what they have open."""
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o777)  # noqa: S103  (another user writes there)
        path = f"{directory}/open"

        def look():
            fd = os.open(path, os.O_RDWR | os.O_CREAT)
            os.write(fd, bytes(MIB))
            os.unlink(path)
            return os.getpid(), collect_deleted(Host.at(None, None))

        pid, facts = call(look, uid=NOBODY)
    assert not facts.complete
    assert any("processes could not be read" in line for line in facts.missing)
    [file] = [file for system in facts.systems for file in system.files if file.path == path]
    assert (file.bytes, [holder.process.pid for holder in file.holders]) == (MIB, [pid])


def test_a_copy_has_no_open_files(tmp_path):
    """The files behind the links are another machine's."""
    (tmp_path / "1").mkdir()
    with pytest.raises(NotSupported, match="is a copy"):
        collect_deleted(Host.at(None, str(tmp_path)))
