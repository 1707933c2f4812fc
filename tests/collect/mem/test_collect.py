"""One look at real processes: all kinds of memory, missing rights, ends, copies."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time

import pytest

from opskit.collect.mem.collect import Collector, collect, exact_s
from opskit.collect.mem.facts import Request
from opskit.errors import NoSuchProcess, NotSupported
from opskit.host import Host
from opskit.proc.files.stat import parse_stat
from opskit.proc.fs import ProcFS
from tests.support import lesser, nativeprograms

MIB = 1 << 20


@pytest.fixture(scope="module")
def mappings(tmp_path_factory):
    """A process with so many MiB of each kind, and where its files are."""
    place = tmp_path_factory.mktemp("mappings")
    program = nativeprograms.build("mappings.c", place / "mappings")
    words = [program, place / "live", place / "deleted", f"/opskit-test-{os.getpid()}"]
    process = subprocess.Popen(list(map(str, words)), stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "READY\n"
    while ProcFS().load(parse_stat, process.pid, "stat").state != "S":  # it still maps pages on its way to sleep
        time.sleep(0.01)
    yield process.pid, place
    process.kill()
    process.wait()
    process.stdout.close()


def look(pid, **options):
    """One look at this machine's process."""
    return collect(Host(ProcFS()), Request(pid, **options))


def mib(facts):
    """Resident MiB by kind, rounded."""
    return {row.kind: row.usage.rss_bytes / MIB for row in facts.rows}


def test_each_kind_of_memory(mappings):
    """A file, a deleted file, shared memory in four forms, .bss, huge pages that the kernel made; the sum is that of smaps."""
    pid, place = mappings
    facts = look(pid)
    found = mib(facts)
    assert found["mapped-files"] == pytest.approx(11, abs=1)
    assert found["shared-memory"] == pytest.approx(7 + 2 + 4 + 1, abs=0.1)  # the memfd's hole is not resident
    assert found["libraries"] == pytest.approx(20, abs=2.5)  # its .bss
    named = found.get("named", 0)  # kernels without CONFIG_ANON_VMA_NAME have no names
    assert found["unnamed"] + named == pytest.approx(9 + 4, abs=0.5)
    parts = {(part.name, part.deleted): round(part.usage.rss_bytes / MIB) for part in facts.parts}
    assert parts[str(place / "deleted"), True] == 6
    assert parts[str(place / "live"), False] == 5
    assert parts["/memfd:sparse", True] == 2
    smaps = ProcFS().read(pid, "smaps").decode()
    assert sum(row.usage.rss_bytes for row in facts.rows) == facts.total.rss_bytes
    assert facts.total.rss_bytes == 1024 * sum(int(kib) for kib in re.findall(r"^Rss: +(\d+) kB", smaps, re.MULTILINE))
    if huge := 1024 * sum(int(kib) for kib in re.findall(r"^AnonHugePages: +(\d+)", smaps, re.MULTILINE)):
        assert sum(row.usage.huge_bytes for row in facts.rows) == facts.total.huge_bytes == huge


def test_nothing_grows_by_looking(mappings):
    """A hole of a memfd and pages that nobody touched stay so."""
    pid, _ = mappings
    collector = Collector(Host(ProcFS()), Request(pid))
    first = collector.look()
    again = [collector.look() for _ in range(3)]
    assert {each.total._replace(pss_bytes=0) for each in again} == {first.total._replace(pss_bytes=0)}
    assert again[-1].at_s > first.at_s > 0


def test_what_is_beside_the_rows(mappings):
    """The machine, the page tables, the age; glibc's malloc, and no JVM."""
    facts = look(mappings[0])
    assert facts.process.command == "mappings"
    assert facts.page_table_bytes > 0
    assert 0 <= facts.age_s < 600
    assert facts.host.meminfo["MemTotal"] > facts.total.rss_bytes
    assert (facts.malloc.name, facts.jvm, facts.why_sums_only, facts.missing) == ("glibc", None, None, ())
    assert facts.malloc.arena_limit >= 8


def test_rows_of_our_own_process():
    """A Python: its heap is beside malloc's, and its threads have stacks."""
    facts = look(os.getpid())
    assert facts.malloc.runtime == "CPython"
    assert mib(facts)["runtime-heap"] > 1
    assert {"thread-stacks", "malloc-arenas", "libraries"} <= {*mib(facts)}


@pytest.mark.parametrize("version", [17, 25])
def test_a_jvm(workload, version):
    """Its own rows beside those of any process, next to nothing without a name, and malloc's arenas are read."""
    jvm = workload("sleep=20", version=version, options=("-Xmx64m", "-Xms64m", "-XX:+AlwaysPreTouch"))
    facts = look(jvm.pid)
    found = mib(facts)
    assert found["java-heap"] == pytest.approx(64, rel=0.005)
    assert {"metaspace", "code-cache", "gc", "thread-stacks", "malloc-arenas", "libraries"} <= {*found}
    assert found.get("unnamed", 0) <= 0.03 * facts.total.rss_bytes / MIB
    assert sum(row.usage.rss_bytes for row in facts.rows) == facts.total.rss_bytes
    stacks = next(row for row in facts.rows if row.kind == "thread-stacks")
    assert stacks.items == len(ProcFS().tids(jvm.pid))
    assert (facts.malloc.name, facts.malloc.incomplete) == ("glibc", None)
    assert facts.malloc.free_bytes < facts.malloc.system_bytes
    assert facts.jvm.heap_max_bytes == 64 * MIB


def test_a_zombie_and_a_kernel_thread():
    """They have no memory, and the message says what they are."""
    child = subprocess.Popen(["true"])
    deadline = time.monotonic() + 10
    while ProcFS().read(child.pid, "stat").rpartition(b")")[2].split()[0] != b"Z" and time.monotonic() < deadline:
        time.sleep(0.01)
    with pytest.raises(NotSupported, match=r"is a zombie: .* its parent \d+ has not reaped it"):
        look(child.pid)
    child.wait()
    with pytest.raises(NoSuchProcess):
        look(child.pid)


def test_a_kernel_thread(tree):
    """As /proc has it: no VmRSS, and its flags say it."""
    status = "Name:\tkthreadd\nUid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\nThreads:\t1\n"
    stat = f"2 (kthreadd) S 0 0 0 0 -1 {0x00200000 | 0x40} " + "0 " * 12 + "1 " + "0 " * 30
    root = tree(
        {"proc/2/status": status, "proc/2/stat": stat, "proc/2/comm": "kthreadd\n", "proc/meminfo": "MemTotal: 1 kB\n"}
    )
    with pytest.raises(NotSupported, match=r"2 \(kthreadd\) is a kernel thread, which has no memory of its own"):
        collect(Host.at(str(root), None), Request(2))


def test_it_ends_between_two_looks():
    """The next look says that it has ended."""
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    collector = Collector(Host(ProcFS()), Request(child.pid))
    deadline = time.monotonic() + 10
    while not collector.look().rows and time.monotonic() < deadline:
        time.sleep(0.05)
    child.kill()
    child.wait()
    with pytest.raises(NoSuchProcess, match="it has ended"):
        collector.look()


def test_it_starts_another_program():
    """A watch goes on with the new program: its memory is another, and so is its allocator."""
    code = "import os\nprint('READY', flush=True)\ninput()\nos.execvp('sleep', ['sleep', '60'])"
    child = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        child.stdout.readline()
        collector = Collector(Host(ProcFS()), Request(child.pid))
        assert collector.look().malloc.runtime == "CPython"
        child.stdin.write("\n")
        child.stdin.flush()
        deadline = time.monotonic() + 10
        facts = collector.look()
        while (facts.process.command, facts.malloc.arenas) != ("sleep", 1) and time.monotonic() < deadline:
            time.sleep(0.05)  # it still loads its libraries
            facts = collector.look()
        assert (facts.malloc.runtime, facts.malloc.arenas) == (None, 1)
    finally:
        child.kill()
        child.communicate()


def test_it_starts_itself_anew():
    """Also without address space randomization, where its addresses stay the same, a watch reads the new memory."""
    code = 'echo READY; read x; exec sh -c "echo READY; read x"'
    child = subprocess.Popen(
        ["setarch", "-R", "sh", "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        collector = Collector(Host(ProcFS()), Request(child.pid))
        for _ in range(2):
            if child.stdout.readline() != "READY\n":
                pytest.skip("setarch may not turn randomization off here")
            assert collector.look().malloc.arenas == 1
            child.stdin.write("\n")
            child.stdin.flush()
    finally:
        child.kill()
        child.communicate()


def test_without_rights(mappings, root_only):
    """Another user's process: the sums of its status, and which command would tell more."""
    pid, _ = mappings
    facts = lesser.call(lambda: look(pid), uid=65534)
    assert facts.rows == ()
    assert facts.why_sums_only == "its mappings cannot be read: Permission denied"
    assert facts.total.rss_bytes > 30 * MIB
    assert facts.total.pss_bytes is None
    (missing,) = facts.missing
    assert missing.startswith("memory by kinds: run as root: sudo opskit mem ") or "CAP_SYS_PTRACE" in missing


STATUS = "Name:\tjava\nState:\tS (sleeping)\nUid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\nThreads:\t1\nVmRSS:\t{kib} kB\nRssAnon:\t9 kB\nVmPTE:\t8 kB\n"
STAT = "42 (java) S 1 42 42 0 -1 0 " + "0 " * 12 + "5 " + "0 " * 30
SMAPS = "7f1200000000-7f1200021000 rw-p 00000000 00:00 0 [heap]\nSize: 132 kB\nRss: 16 kB\nPss: 16 kB\nVmFlags: rd\n"
SMAPS += "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 [vsyscall]\nSize: 4 kB\nRss: 0 kB\nPss: 0 kB\nVmFlags: rd\n"


def copied(tree, kib=16, **files):
    """A copy of a process's files without its memory."""
    common = {"status": STATUS.format(kib=kib), "stat": STAT, "comm": "java\n", "maps": ""}
    every = {f"proc/42/{name}": text for name, text in {**common, **files}.items()}
    return Host.at(str(tree({**every, "proc/meminfo": "MemTotal: 99 kB\n"})), None)


def test_a_copy(tree):
    """As far as the files are there: mappings without pagemap, or the sums alone."""
    facts = collect(copied(tree, smaps=SMAPS), Request(42))
    assert [(row.kind, row.usage.rss_bytes) for row in facts.rows if row.usage.rss_bytes] == [("malloc-arenas", 16384)]
    assert facts.host.meminfo == {"MemTotal": 99 * 1024}


def test_a_copy_without_smaps(tree):
    """The sums of its status."""
    facts = collect(copied(tree), Request(42))
    assert (facts.rows, facts.total.rss_bytes, facts.total.anonymous_bytes, facts.page_table_bytes) == (
        (),
        16384,
        9216,
        8192,
    )
    assert facts.why_sums_only.endswith("/proc/42/smaps is not in this proc tree")


@pytest.mark.parametrize("text", ["garbage\n", SMAPS[:150], SMAPS.replace("16 kB", "many kB")])
def test_a_damaged_copy(tree, text):
    """The sums, and what is wrong with the file."""
    facts = collect(copied(tree, smaps=text), Request(42))
    assert facts.rows == ()
    assert "42/smaps" in facts.why_sums_only


def test_a_large_process_is_summed(tree):
    """Above 32 GiB the mappings are read only if it is asked for, and it says how long that takes."""
    rollup = "1000-2000 ---p 00000000 00:00 0 [rollup]\nRss: 52428800 kB\nPss: 52428800 kB\n"
    host = copied(tree, kib=50 << 20, smaps=SMAPS, smaps_rollup=rollup)
    facts = collect(host, Request(42))
    assert (facts.rows, facts.total.rss_bytes) == ((), 50 << 30)
    assert facts.why_sums_only == "50.0 GiB are resident: reading each mapping takes about 2.1 s of CPU time (--exact)"
    assert exact_s(host, 42) == pytest.approx(2.15)
    assert collect(host, Request(42, exact=True)).rows


def test_the_time_of_a_small_process(tree):
    """Its mappings are read anyway, and each free block of malloc; one that has ended takes none."""
    assert exact_s(copied(tree), 42) == pytest.approx(0.15, abs=0.01)
    assert exact_s(copied(tree), 43) is None


def test_a_process_of_32_bits(tree):
    """Its addresses end at 4 GiB: kinds by names, and nothing is looked for in its memory."""
    text = SMAPS.replace("7f1200000000-7f1200021000", "09000000-09021000").partition("ffffffffff")[0]
    facts = collect(copied(tree, smaps=text), Request(42))
    assert facts.malloc is None
    assert mib(facts) == {"malloc-arenas": 16 / 1024}
