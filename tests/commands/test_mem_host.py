"""`opskit mem` without a process, and `--files`: captured machines in every format, this machine with staged memory."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from nextsteps import try_next
from ownmounts import own_mounts
from terminal import on_terminal
from trees import steady

from opskit.analysis.mem import machine

MIB = 1 << 20
STATUS = (
    "Name:\tx\nState:\tS\nVmRSS:\t{0} kB\nRssAnon:\t{1} kB\nRssFile:\t{2} kB\nRssShmem:\t{3} kB\nVmSwap:\t{4} kB\nVmPTE:\t40 kB\n"
    "HugetlbPages:\t{5} kB\nThreads:\t9\nUid:\t0 0 0 0\n"
)


def process(pid, comm, anonymous, file=0, shmem=0, swap=0, hugetlb=0, pss=None, cgroup="0::/\n"):
    """The files of a process in a capture, sizes in KiB; `pss` of its anonymous memory."""
    files = {
        f"proc/{pid}/status": STATUS.format(anonymous + file + shmem, anonymous, file, shmem, swap, hugetlb),
        f"proc/{pid}/comm": f"{comm}\n",
        f"proc/{pid}/cgroup": cgroup,
    }
    if pss is not None:
        files[f"proc/{pid}/smaps_rollup"] = (
            f"0-1 ---p 00000000 00:00 0 [rollup]\nPss: {pss + file + shmem} kB\nPss_Anon: {pss} kB\nPss_File: {file} kB\nPss_Shmem: {shmem} kB\n"
        )
    return files


KUBE = "0::/kubepods/burstable/pod6a1c2b9e-0d0f-4f35-9d6b-3d1f0e5a7c11/" + "3f" * 32 + "\n"
# A database server, short of memory: huge pages for a database that was configured away, a tmpfs full of exports.
SERVER = {
    "proc/sys/kernel/hostname": "db7\n",
    "proc/meminfo": (
        "MemTotal: 33554432 kB\nMemFree: 524288 kB\nMemAvailable: 1048576 kB\nBuffers: 65536 kB\nCached: 7340032 kB\nSwapCached: 0 kB\n"
        "Active(anon): 9000000 kB\nInactive(anon): 100000 kB\nActive(file): 500000 kB\nInactive(file): 565568 kB\nSwapTotal: 2097152 kB\n"
        "SwapFree: 1048576 kB\nAnonPages: 12582912 kB\nShmem: 6291456 kB\nKReclaimable: 307200 kB\nSlab: 512000 kB\nSReclaimable: 307200 kB\n"
        "SUnreclaim: 204800 kB\nKernelStack: 20480 kB\nPageTables: 102400 kB\nSecPageTables: 0 kB\nVmallocUsed: 61440 kB\nPercpu: 10240 kB\n"
        "HardwareCorrupted: 0 kB\nHugePages_Total: 4096\nHugePages_Free: 4096\nHugePages_Rsvd: 0\nHugePages_Surp: 0\nHugepagesize: 2048 kB\n"
        "Hugetlb: 8388608 kB\n"
    ),
    "proc/zoneinfo": "Node 0, zone   Normal\n    cpu: 0\n              count: 1000\n    cpu: 1\n              count: 500\n",
    "proc/vmstat": "nr_free_pages 131072\nnr_slab_reclaimable 76800\nballoon_inflate 300000\nballoon_deflate 50000\n",
    "proc/sysvipc/shm": (
        "key shmid perms size cpid lpid nattch uid gid cuid cgid atime dtime ctime rss swap\n"
        "0 3 600 1073741824 55 60 0 70 70 70 70 1 2 3 1073741824 0\n0 4 600 2147483648 501 501 4 26 26 26 26 1 2 3 2147483648 0\n"
    ),
    "sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages": "4096\n",
    "sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages": "4096\n",
    "sys/block/zram0/mm_stat": "1073741824 268435456 301989888 0 301989888 0 0 0 0\n",
    **process(501, "postgres", 500000, 20000, 2000000, 9000, pss=300000, cgroup="0::/system.slice/postgresql.service\n"),
    **process(502, "postgres", 400000, 10000, 1000000, pss=200000, cgroup="0::/system.slice/postgresql.service\n"),
    **process(700, "java", 9000000, 30000, pss=8900000, cgroup=KUBE),
    **process(800, "we\x1bi\u202erd [x](y)", 200000, 1000),
}  # fmt: skip


def document(opskit, *arguments):
    done = opskit("mem", *arguments, "-f", "json")
    assert done.code in (0, 1), done.err
    return json.loads(done.out)


@pytest.mark.parametrize("format_", ["text", "table", "json", "markdown", "prometheus"])
def test_a_server_in_every_format(inprocess, tree, golden, format_):
    """Who holds its memory, by use and by process; huge pages, segments; what a copy does not say."""
    done = inprocess("mem", "--root", tree(SERVER), "-f", format_)
    assert done.code == 1
    golden(f"mem-host.{format_}", steady(done.out))


def test_the_object_of_the_server(inprocess, tree):
    """The uses sum to MemTotal; memory is short, and what holds much of it is named."""
    found = document(inprocess, "--root", tree(SERVER))
    assert sum(use["bytes"] for use in found["uses"]) == found["total_bytes"] == 32 << 30
    assert [finding["code"] for finding in found["findings"]] == [
        "memory-short",
        "huge-pages-unused",
        "tmpfs-large",
        "memory-unaccounted",
        "tmpfs-large",
    ]
    assert found["findings"][1]["fix"] == "sysctl vm.nr_hugepages=0"
    assert found["findings"][0]["next"] == "opskit mem 700"


def test_a_screen():
    """On 80 x 24 characters the verdict and the next command come first, and no table is wider."""
    code, shown = on_terminal("mem", "--no-color")
    lines = [line.rstrip("\r") for line in shown.split("\n")]
    assert code in (0, 1)
    assert "are available." in lines[1]
    assert any(line.startswith("Next: ") for line in lines[2:8])
    table = lines.index("memory by use")
    assert all(len(line) <= 80 for line in lines[table:] if not line.startswith("for "))


def test_findings_come_before_tables(tree):
    """Where they leave no room for the details, these are named instead."""
    _, shown = on_terminal("mem", "--no-color", "--root", tree(SERVER))
    left_out = "processes by command and cgroup, tmpfs and shared memory, huge pages"
    assert f"… {left_out}: -n 10" in [line.rstrip("\r") for line in shown.split("\n")]
    _, shown = on_terminal("mem", "--no-color", "-n", "10", "--root", tree(SERVER))
    assert all(title in shown for title in left_out.split(", "))


@pytest.fixture
def low(monkeypatch):
    """What is large is a MiB, and memory is short on any machine: nobody fills a whole one for a test."""
    monkeypatch.setattr(machine, "LARGE_SHARE", 0.0)
    monkeypatch.setattr(machine, "LARGE_BYTES", 1 * MIB)
    monkeypatch.setattr(machine, "SHORT_SHARE", 1.0)
    monkeypatch.setattr(machine, "SHORT_BYTES", 1 << 60)


@pytest.fixture
def tmpfs(root_only, tmp_path):
    """A tmpfs in a mount namespace of its own, with 24 MiB in a file and 5 MiB in a deleted one that is open."""
    script = (
        f"mount -t tmpfs none {tmp_path}; head -c {24 * MIB} /dev/zero > {tmp_path}/export.csv; exec 5>{tmp_path}/gone\n"
        f"head -c {5 * MIB} /dev/zero >&5; rm {tmp_path}/gone"
    )
    with own_mounts(script) as pid:
        yield tmp_path, pid


def test_the_next_commands_of_the_machine(inprocess, low, tmpfs):
    """Each is typed on the machine that printed it."""
    place, pid = tmpfs
    findings = document(inprocess)["findings"]
    large = next(one for one in findings if str(place) in one["summary"])
    assert large["summary"].startswith(f"tmpfs {place} (in the mount namespace of {pid}) holds 29.0 MiB")
    assert try_next([large], "tmpfs-large") == "opskit mem --files"
    assert try_next(findings, "memory-short").startswith("opskit ")
    assert try_next(findings, "memory-unaccounted")


def test_the_next_command_of_files(inprocess, low, tmpfs):
    """A deleted file of a tmpfs, and the process that has it open."""
    place, pid = tmpfs
    found = document(inprocess, "--files")
    deleted = next(file for file in found["files"] if file["path"] == f"{place}/gone")
    assert (deleted["deleted"], deleted["resident_bytes"], deleted["unheld"]) == (True, 5 * MIB, False)
    assert [(one["pid"], one["fds"], one["mapped"]) for one in deleted["holders"]] == [(pid, 1, False)]
    assert next(file for file in found["files"] if file["path"] == f"{place}/export.csv")["holders"] == []
    assert try_next(found["findings"], "deleted-files-in-memory").startswith("opskit mem ")
    of_it = document(inprocess, str(pid), "--files")
    assert [file["path"] for file in of_it["files"] if file["mount"] == str(place)] == [f"{place}/gone"]


def test_what_a_dead_process_left(inprocess):
    """It is named, with how to remove it; afterwards it is gone from the list."""
    path = Path(f"/dev/shm/opskit-test-{os.getpid()}")
    try:
        subprocess.run(["sh", "-c", f"head -c {20 * MIB} /dev/zero > {path}"], check=True)
        lines = inprocess("mem", "--files", "-f", "text").out.splitlines()
        row = next(line for line in lines if f"  {path}  " in line)
        assert row.split()[0] == str(20 * MIB)
        assert row.endswith(("no process", "unknown"))
    finally:
        path.unlink()
    assert str(path) not in inprocess("mem", "--files", "-f", "text").out


def test_dentry_is_innocent(inprocess, tree):
    """On the same machine `opskit dentry` names who holds the memory, advises nothing, and points to `opskit mem`."""
    files = {**SERVER, "proc/sys/fs/dentry-state": "100000\t90000\t45\t0\t80000\t0\n"}
    done = inprocess("dentry", "--root", tree(files), "-f", "json")
    found = json.loads(done.out)
    assert found["verdict"][-1] == (
        "The most memory is held by anonymous memory of processes with 12.0 GiB (38 % of RAM), "
        "then reserved huge pages with 8.0 GiB (25 % of RAM): opskit mem"
    )
    assert found["ways"] == []
    assert "--drop" not in done.out


def test_huge_pages_of_this_machine(inprocess, root_only):
    """Pages that nobody uses are named, with the command that gives them back, and that is what it does."""
    if os.environ.get("OPSKIT_TEST_HOST") != "1":
        pytest.skip("changes the host: set OPSKIT_TEST_HOST=1")
    setting = Path("/proc/sys/vm/nr_hugepages")
    before = setting.read_text()
    try:
        setting.write_text("64\n")
        found = document(inprocess)
        [pool] = found["huge_pages"]
        assert (pool["page_bytes"], pool["pages"], pool["unused"]) == (2 * MIB, 64, 64)
        use = next(use for use in found["uses"] if use["kind"] == "huge-pages")
        assert (use["bytes"], use["next"]) == (128 * MIB, "sysctl vm.nr_hugepages=0")
        subprocess.run(["sh", "-c", use["next"]], check=True, stdout=subprocess.DEVNULL)
        assert document(inprocess)["huge_pages"] == []
    finally:
        setting.write_text(before)


def test_a_picture_is_of_a_process(inprocess, tmp_path):
    """The machine has none."""
    done = inprocess("mem", "-o", tmp_path / "mem.svg")
    assert (done.code, "a picture is drawn of a process" in done.err) == (2, True)


def test_files_of_a_copy(inprocess, tree):
    """Exit 2 with the reason."""
    done = inprocess("mem", "--files", "--root", tree(SERVER))
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert "is a copy, which has no files in memory" in done.err
