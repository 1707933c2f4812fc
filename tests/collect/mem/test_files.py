"""Files in memory and who holds them, on this machine."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from cgroups import new_cgroup
from ownmounts import own_mounts

from opskit.analysis.mem.files import judge_files, left_behind, remove_command
from opskit.collect.mem import files as collecting
from opskit.collect.mem.files import collect_files
from opskit.collect.mem.segments import creator_of
from opskit.errors import NoSuchProcess, NotPermitted, NotSupported
from opskit.host import Host
from opskit.proc import tmpfs_walk
from opskit.proc.files.sysvipc_shm import parse_sysvipc_shm
from opskit.proc.memory_files import DELETED, HUGE_PAGES, MEMFD, SHARED_ANONYMOUS, SYSV, TMPFS

MIB = 1 << 20
_IPC_RMID, _SHM_RDONLY = 0, 0o10000
libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p
libc.shmat.argtypes = (ctypes.c_int, ctypes.c_void_p, ctypes.c_int)

# A process that holds one file of each kind; it prints the path of its directory on a disk.
HOLDER = """
import mmap, os, sys, tempfile, time
disk, name, segment = sys.argv[1], sys.argv[2], int(sys.argv[3])
def filled(file, mib, mapped):
    file.write(bytes(mib << 20)); file.flush()
    return file, mapped and mmap.mmap(file.fileno(), mib << 20)
held = [filled(open(f"/dev/shm/{name}", "w+b"), 3, True)]
held.append(filled(open(f"/dev/shm/{name}-gone", "w+b"), 2, False)); os.unlink(f"/dev/shm/{name}-gone")
held.append(filled(os.fdopen(os.memfd_create("pool of it"), "w+b"), 4, False))
held.append(filled(open(f"{disk}/mapped", "w+b"), 5, True)); os.unlink(f"{disk}/mapped"); held[-1][0].close()
held.append(filled(open(f"{disk}/open", "w+b"), 6, False)); os.unlink(f"{disk}/open")
held.append(open(f"{disk}/stays (deleted)", "w+b"))
shared = mmap.mmap(-1, 7 << 20); shared.write(bytes(7 << 20))
import ctypes
libc = ctypes.CDLL(None); libc.shmat.restype = ctypes.c_void_p
place = libc.shmat(segment, None, 0); ctypes.memset(place, 1, 8 << 20)
print("ready"); time.sleep(60)
"""


@pytest.fixture
def segment():
    """A function that makes a System V segment; it is removed at the end."""
    made = []

    def make(size):
        made.append(libc.shmget(0, size, 0o1600))
        assert made[-1] >= 0
        return made[-1]

    yield make
    for each in made:
        libc.shmctl(each, _IPC_RMID, None)


@pytest.fixture
def shm():
    """A name in /dev/shm; what begins with it is removed at the end."""
    if not os.access("/dev/shm", os.W_OK):
        pytest.skip("needs /dev/shm")
    name = f"opskit-test-{os.getpid()}"
    yield name
    for path in Path("/dev/shm").glob(f"{name}*"):
        path.unlink()


def collected(*pids):
    return collect_files(Host.at(None, None), pids)


def of(facts, path):
    [found] = [file for file in facts.files if file.path == path]
    return found


@pytest.fixture
def holder(root_only, spawn, tmp_path, shm, segment):
    """The process, its segment, and a file that a dead process has left in /dev/shm."""
    subprocess.run(["sh", "-c", f"head -c {9 * MIB} /dev/zero > /dev/shm/{shm}-dead"], check=True)
    shmid = segment(8 * MIB)
    return spawn(HOLDER, tmp_path, shm, shmid), shmid


def test_each_kind_with_its_size_and_holder(holder, shm, tmp_path):
    """What a process has mapped or open: tmpfs, memfd, deleted on tmpfs and on a disk, shared with children, System V."""
    process, _ = holder
    found = {
        (file.kind, file.path, file.deleted): (
            file.resident_bytes,
            [(one.pid, one.mapped, one.fds) for one in file.holders],
        )
        for file in collected(process.pid).files
        if not file.path.startswith("/tmp/#")  # what pytest captures its output in
    }
    pid = process.pid
    cached = found.pop((DELETED, f"{tmp_path}/mapped", True))
    assert cached[1] == [(pid, True, 1)]  # the mapping's own
    cached_open = found.pop((DELETED, f"{tmp_path}/open", True))
    assert cached_open[1] == [(pid, False, 1)]
    assert (cached[0], cached_open[0]) in ((5 * MIB, 6 * MIB), (None, None))  # before Linux 6.5
    assert found == {
        (TMPFS, f"/dev/shm/{shm}", False): (3 * MIB, [(pid, True, 2)]),
        (TMPFS, f"/dev/shm/{shm}-gone", True): (2 * MIB, [(pid, False, 1)]),
        (MEMFD, "/memfd:pool of it", True): (4 * MIB, [(pid, False, 1)]),
        (SHARED_ANONYMOUS, "/dev/zero", True): (7 * MIB, [(pid, True, 0)]),
        (SYSV, "/SYSV00000000", True): (8 * MIB, [(pid, True, 0)]),
    }


def test_all_processes(holder, shm, tmp_path):
    """The same among all others, and the file that nobody holds: it is the one that is left behind."""
    process, shmid = holder
    facts = collected()
    dead = of(facts, f"/dev/shm/{shm}-dead")
    assert (dead.kind, dead.resident_bytes, dead.holders, dead.mount, dead.user) == (
        TMPFS,
        9 * MIB,
        (),
        "/dev/shm",
        "root",
    )
    alive = of(facts, f"/dev/shm/{shm}")
    assert [holder.pid for holder in alive.holders] == [process.pid]
    attached = next(file for file in facts.files if file.inode == shmid and file.path.startswith("/SYSV"))
    assert (attached.creator_pid, attached.attached, attached.size_bytes) == (os.getpid(), 1, 8 * MIB)
    assert of(facts, f"{tmp_path}/open").disk_bytes == 6 * MIB
    assert not [file for file in facts.files if "stays" in file.path]
    rows = [row for row in judge_files(facts).rows if left_behind(row)]
    assert [row.file for row in rows if shm in row.name] == [dead]
    assert attached not in [row.file for row in rows]


def test_a_segment_that_nobody_has_mapped(root_only, segment):
    """Its creator, who lives; no process holds it, and ipcrm removes it."""
    shmid = segment(2 * MIB)
    place = libc.shmat(shmid, None, 0)
    ctypes.memset(place, 1, 2 * MIB)
    libc.shmdt(ctypes.c_void_p(place))
    facts = collected()
    found = next(file for file in facts.files if file.inode == shmid and file.path == "/SYSV")
    assert (found.resident_bytes, found.attached, found.creator_pid, found.uid) == (2 * MIB, 0, os.getpid(), 0)
    assert found.creator.startswith("python")
    row = next(row for row in judge_files(facts).rows if row.file is found)
    assert (row.unheld, left_behind(row), remove_command(row)) == (True, True, f"ipcrm -m {shmid}")


def test_the_pid_of_a_creator_that_has_ended(root_only, segment):
    """Another process may have it by now: it started after the segment was made."""
    shmid = segment(1 * MIB)
    host = Host.at(None, None)
    [made] = [one for one in host.fs.load(parse_sysvipc_shm, "sysvipc", "shm") if one.shmid == shmid]
    assert creator_of(host, made).startswith("python")
    assert creator_of(host, made._replace(changed_s=made.changed_s - 1_000_000)) is None
    assert creator_of(host, made._replace(creator_pid=1 << 30)) is None


def test_a_segment_of_another_ipc_namespace(root_only, segment):
    """Each namespace counts its segments from 0: one of a container is not the one of that number here."""
    code = (
        "import ctypes, time; libc = ctypes.CDLL(None); libc.shmat.restype = ctypes.c_void_p; made = libc.shmget(0, 5 << 20, 0o1600)\n"
        "ctypes.memset(libc.shmat(made, None, 0), 1, 5 << 20); print(made, flush=True); time.sleep(60)"
    )
    process = subprocess.Popen(["unshare", "-i", sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    try:
        theirs = process.stdout.readline()
        if not theirs:
            pytest.skip("cannot make an IPC namespace")
        mine = segment(2 * MIB)
        found = [
            file for file in collected().files if file.path.startswith("/SYSV") and file.inode in (int(theirs), mine)
        ]
        by_size = {file.size_bytes: file for file in found}
        other, own = by_size[5 * MIB], by_size[2 * MIB]
        assert ([one.pid for one in other.holders], other.creator_pid, other.resident_bytes) == (
            [process.pid],
            None,
            5 * MIB,
        )
        assert (own.holders, own.creator_pid, own.attached) == ((), os.getpid(), 0)
        assert other.device != own.device
        assert judge_files(collected()).rows
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def test_ramfs(root_only, tmp_path):
    """It counts no blocks: the size of a file is what it holds."""
    script = f"mount -t ramfs none {tmp_path} && head -c {2 * MIB} /dev/zero > {tmp_path}/x"
    with own_mounts(script):
        assert of(collected(), f"{tmp_path}/x").resident_bytes == 2 * MIB


@pytest.fixture
def swap(root_only):
    """Swap on a compressed block device, for the time of a test. Or skip."""
    if os.environ.get("OPSKIT_TEST_HOST") != "1":
        pytest.skip("changes the host: set OPSKIT_TEST_HOST=1")
    device = Path("/sys/block/zram0")
    if not (device / "disksize").exists() or (device / "disksize").read_text() != "0\n":
        pytest.skip("needs an unused zram device")
    (device / "disksize").write_text("256M")
    try:
        for command in ("mkswap", "swapon"):
            subprocess.run([command, "/dev/zram0"], check=True, capture_output=True)
        yield
    finally:
        subprocess.run(["swapoff", "/dev/zram0"], check=False)
        (device / "reset").write_text("1")


def test_swapped_pages(swap, shm):
    """What of a file is in memory and what in swap, although statvfs and stat count both as one."""
    path = Path(f"/dev/shm/{shm}-swapped")
    with new_cgroup("memory", f"opskit-test-{os.getpid()}", "memory.force_empty memory.limit_in_bytes") as group:
        (group / "memory.limit_in_bytes").write_text(str(64 * MIB))
        subprocess.run(
            ["sh", "-c", f"echo $$ > {group}/cgroup.procs; head -c {30 * MIB} /dev/urandom > {path}"], check=True
        )
        (group / "memory.limit_in_bytes").write_text(str(20 * MIB))  # pushes the rest out
        found = of(collected(), str(path))
        assert found.resident_bytes + found.swapped_bytes == 30 * MIB
        assert found.resident_bytes < 20 * MIB
        path.unlink()


def test_a_loop_device_holds_its_file(root_only, shm):
    """No process has the file open, and it is in use: it is not left behind."""
    if os.environ.get("OPSKIT_TEST_HOST") != "1":
        pytest.skip("changes the host: set OPSKIT_TEST_HOST=1")
    path = Path(f"/dev/shm/{shm}-image")
    path.write_bytes(bytes(20 * MIB))
    done = subprocess.run(["losetup", "-f", "--show", path], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"cannot attach a loop device: {done.stderr}")
    device = done.stdout.strip()
    try:
        facts = collected()
        found = of(facts, str(path))
        assert [(one.pid, one.command) for one in found.holders] == [(None, Path(device).name)]
        assert not any(left_behind(row) for row in judge_files(facts).rows if row.file is found)
    finally:
        subprocess.run(["losetup", "-d", device], check=True)


def test_a_process_that_cannot_be_read(as_user, spawn):
    """Asked for by its PID, it is an error, not an empty list; so is one that has ended."""
    process = spawn("import time; print('ready'); time.sleep(60)")

    def look():
        with pytest.raises(NotPermitted, match=f"cannot read the mappings of {process.pid} .*permission denied; "):
            collected(process.pid)
        return True

    assert as_user(65534, look)
    process.kill()
    process.wait()
    with pytest.raises(NoSuchProcess):
        collected(process.pid)


def test_hostile_names(root_only, spawn, shm):
    """A newline in a name is one character of it, mapped or not."""
    name = f"{shm}-a\nb\x1b[31m\\012"
    spawn(
        "import mmap, sys, time; f = open(sys.argv[1], 'w+b'); f.write(bytes(1 << 20)); f.flush()\n"
        "m = mmap.mmap(f.fileno(), 1 << 20); f.close(); print('ready'); time.sleep(60)",
        f"/dev/shm/{name}",
    )
    facts = collected()
    assert of(facts, f"/dev/shm/{name}").holders[0].mapped
    [verdict, *_] = [line for line in judge_files(facts).verdict if line]
    assert "\x1b" not in verdict


def test_another_mount_namespace(root_only, tmp_path):
    """A tmpfs that only another process sees: its file, where that is, and the command that removes it from here."""
    mount = f"mount -t tmpfs none {tmp_path} && mkdir {tmp_path}/shm && mount -t tmpfs none {tmp_path}/shm"
    script = f"{mount} && head -c {3 * MIB} /dev/zero > {tmp_path}/shm/x && head -c 100000 /dev/zero > {tmp_path}/y"
    with own_mounts(script) as pid:
        facts = collected()
        found = of(facts, f"{tmp_path}/shm/x")
        assert (found.kind, found.resident_bytes, found.holders) == (TMPFS, 3 * MIB, ())
        assert (found.mount, found.mount_pid) == (f"{tmp_path}/shm", pid)
        assert of(facts, f"{tmp_path}/y").mount == str(tmp_path)
        row = next(row for row in judge_files(facts).rows if row.file is found)
        command = remove_command(row)
        assert command == f"rm /proc/{pid}/root{tmp_path}/shm/x"
        # In a container /proc/PID is another process than in the tree of its host.
        elsewhere = collect_files(Host.at("/proc/self/root", None))
        row = next(
            row
            for row in judge_files(elsewhere).rows
            if row.file.inode == found.inode and row.file.device == found.device
        )
        assert remove_command(row) == f"rm /proc/self/root/proc/{pid}/root{tmp_path}/shm/x"
        subprocess.run(command.split(), check=True)
        assert not [file for file in collected().files if file.path == f"{tmp_path}/shm/x"]


def test_a_tmpfs_below_another_mount(root_only, tmp_path):
    """Its files cannot be listed: it is said, and nothing of the upper one is taken for its own."""
    script = f"for i in 1 2; do mount -t tmpfs none {tmp_path}; head -c 50000 /dev/zero > {tmp_path}/f$i; done"
    with own_mounts(script):
        facts = collected()
        assert of(facts, f"{tmp_path}/f2").resident_bytes
        assert not [file for file in facts.files if file.path == f"{tmp_path}/f1"]
        assert any("files below other mounts cannot be listed" in note for note in facts.missing)


def test_a_full_directory_is_cut(root_only, shm, monkeypatch):
    """More files than are looked at: the answer says so."""
    for number in range(40):
        Path(f"/dev/shm/{shm}-{number}").write_bytes(b"x")
    assert not any("were looked at" in note for note in collected().missing)
    monkeypatch.setattr(tmpfs_walk, "_MOST_ENTRIES", 30)
    facts = collected()
    assert any(
        note.startswith("only 30 files and directories of tmpfs mounts were looked at") for note in facts.missing
    )
    assert len([file for file in facts.files if shm in file.path]) <= 30
    monkeypatch.setattr(collecting, "_MOST_FDS", 0)
    assert any("only 0 open files were looked at" in note for note in collected().missing)


def test_another_user(as_user, holder, shm):
    """Without rights over all processes nobody is known to hold nothing; its own memory is read by its pages."""
    import mmap

    shared = mmap.mmap(-1, 3 * MIB)

    def look():
        ctypes.CDLL(None).prctl(4, 1)  # PR_SET_DUMPABLE: after setuid /proc/self is closed to its own user
        shared.write(bytes(3 * MIB))
        facts = collected()
        rows = judge_files(facts).rows
        own = [row.file for row in rows if row.file.kind == SHARED_ANONYMOUS]
        return (
            facts.complete,
            [row.unheld for row in rows if row.file.path == f"/dev/shm/{shm}-dead"],
            [(file.resident_bytes, file.size_bytes) for file in own if file.holders[0].pid == os.getpid()],
        )

    assert as_user(65534, look) == (False, [None], [(3 * MIB, None)])


def test_huge_pages(root_only, spawn):
    """A memfd of reserved huge pages is no shared memory."""
    if os.environ.get("OPSKIT_TEST_HOST") != "1":
        pytest.skip("changes the host: set OPSKIT_TEST_HOST=1")
    pages = Path("/proc/sys/vm/nr_hugepages")
    before = pages.read_text()
    pages.write_text("8")
    try:
        process = spawn(
            "import mmap, os, time; f = os.memfd_create('h', os.MFD_HUGETLB); os.ftruncate(f, 4 << 20)\n"
            "m = mmap.mmap(f, 4 << 20); m[0] = m[2 << 20] = 1; print('ready'); time.sleep(60)"
        )
        found = of(collected(process.pid), "/memfd:h")
        assert (found.kind, found.resident_bytes, found.holders[0].mapped) == (HUGE_PAGES, 4 * MIB, True)
    finally:
        pages.write_text(before)


def test_a_copy_has_no_files(tree):
    """Exit 2, not an empty list."""
    root = tree({"proc/meminfo": "MemTotal: 1 kB\n", "proc/1/maps": ""})
    with pytest.raises(NotSupported, match="is a copy"):
        collect_files(Host.at(str(root), None))


def test_a_directory_that_is_closed_to_us(as_nobody, shm):
    """What it holds is not listed, and the answer says so."""
    closed = Path(f"/dev/shm/{shm}-closed")
    closed.mkdir(mode=0o700)
    try:
        (closed / "large").write_bytes(bytes(MIB))
        done = as_nobody("mem", "--files")
    finally:
        shutil.rmtree(closed)
    assert f"{shm}-closed/large" not in done.stdout
    assert "directories of tmpfs mounts that cannot be listed: " in done.stderr
    assert "No files take memory" not in done.stdout
