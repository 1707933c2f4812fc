"""Samples of a process: the records of the kernel, read from real programs and from damaged bytes."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import hashlib
import itertools
import os
import resource
import signal
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from forked import in_child
from hypothesis import given
from hypothesis import strategies as st
from users import reserved_user

from opskit.proc.files.cpu_times import read_online_cpus
from opskit.proc.files.kallsyms import KernelSymbols
from opskit.proc.files.sysctl import read_sysctl
from opskit.proc.fs import ProcFS
from opskit.proc.kernel import perf_event as perf
from opskit.proc.kernel.cpu_samples import LARGEST_STACK_BYTES, STACK_BYTES, CpuSampler, read_sample
from opskit.proc.kernel.sample_events import CpuRing, ring_pages
from opskit.proc.unwind.cursor import PC, R10, R12, R13, R14, R15, RAX, RBP, RBX, REGISTERS, RSP

# On one worker with the other tests that set or depend on perf's sysctls.
pytestmark = pytest.mark.xdist_group("kernel")

FS = ProcFS()
# N threads that hash, outside of Python's lock; `+` on standard input starts one more.
BUSY = """
import hashlib, sys, threading
data = bytes(1 << 20)
def burn():
    while True:
        hashlib.sha256(data).digest()
for _ in range(int(sys.argv[1])):
    threading.Thread(target=burn, daemon=True).start()
print("ready")
while sys.stdin.read(1) == "+":
    thread = threading.Thread(target=burn, daemon=True)
    thread.start()
    print(thread.native_id)
"""
IDLE = """
import sys, threading, time
threading.stack_size(64 << 10)
for _ in range(int(sys.argv[1])):
    threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
print("ready")
time.sleep(600)
"""
KERNEL = "import os; print('ready')\nwhile True: os.getrandom(1 << 20)"

REGS = range(100, 109)  # BX BP SP IP R10 R12-R15


def body(*, kernel=(), abi=2, stack=b"", used=None, number=None):
    """A sample as the kernel writes it."""
    parts = struct.pack("=QIIQ", 0x1234, 42, 43, 7_000_000_000)
    parts += b"" if number is None else struct.pack("=Q", number)
    parts += struct.pack(f"=Q{len(kernel)}Q", len(kernel), *kernel) + struct.pack("=Q", abi)
    parts += struct.pack("=9Q", *REGS) if abi else b""
    parts += struct.pack("=Q", len(stack)) + stack
    return parts + (struct.pack("=Q", len(stack) if used is None else used) if stack else b"")


def taken(data, **options):
    return read_sample(data, 0, len(data), in_kernel=False, **options)


def test_registers_go_by_their_dwarf_numbers():
    """The nine that are sampled; the others are unknown."""
    sample = taken(body(stack=bytes(range(16))))
    known = dict(zip((RBX, RBP, RSP, PC, R10, R12, R13, R14, R15), REGS))
    assert [*sample.registers] == [known.get(number) for number in range(REGISTERS)]
    assert sample.registers[RAX] is None
    assert (sample.tid, sample.time_ns, sample.stack) == (43, 7_000_000_000, bytes(range(16)))


def test_only_the_used_part_of_the_stack_is_kept():
    """The kernel reserves the whole size, and says how much of it could be copied."""
    assert taken(body(stack=bytes(range(64)), used=24)).stack == bytes(range(24))
    assert taken(body(stack=bytes(64), used=1 << 40)).stack == bytes(64)
    assert taken(body(stack=bytes(64), used=0)).stack == b""


def test_the_kernels_frames_without_markers():
    """PERF_CONTEXT_KERNEL and its like are no addresses."""
    frames = (0xFFFFFFFF81000010, 0xFFFFFFFF81000020)
    assert taken(body(kernel=((1 << 64) - 128, *frames))).kernel == frames
    assert taken(body(kernel=((1 << 64) - 512, *frames[:1], (1 << 64) - 128)), id_bytes=0).kernel == frames[:1]


def test_without_user_registers_there_is_no_stack():
    """A kernel thread has none; those of 32-bit code are not ours to unwind."""
    assert taken(body(abi=0)).registers == ()
    assert taken(body(abi=1)).registers == ()
    assert taken(body(number=9), id_bytes=8).registers[PC] == REGS[3]


@given(st.integers(0, 200), st.binary(max_size=24), st.integers(0, 150), st.sampled_from([0, 8]))
def test_damaged_records_are_none_or_a_sample(cut, noise, at, id_bytes):
    """Cut short or overwritten: never an exception, never more bytes than there are."""
    data = bytearray(body(kernel=(1, 2, 3), stack=bytes(32), number=5 if id_bytes else None))
    data[at : at + len(noise)] = noise
    data = bytes(data[: max(len(data) - cut, 0)])
    sample = taken(data, id_bytes=id_bytes)
    assert sample is None or len(sample.stack) + 8 * len(sample.kernel) <= len(data)


def test_a_damaged_size_is_no_sample():
    """A call chain or a stack that is longer than its record."""
    whole = body(kernel=(1, 2), stack=bytes(32))
    assert taken(whole) is not None
    assert taken(whole[:24] + struct.pack("=Q", 1 << 60) + whole[32:]) is None
    assert taken(whole[:-1]) is None
    assert taken(b"") is None


@pytest.mark.parametrize("cpus", [1, 2, 16, 64, 256, 4096])
@pytest.mark.parametrize("stack_bytes", [STACK_BYTES, LARGEST_STACK_BYTES])
def test_rings_hold_some_pauses_within_a_bound(cpus, stack_bytes):
    """A power of two; twice what a busy CPU writes between two drains; little in all where there are many CPUs."""
    pages = ring_pages(99, stack_bytes, cpus, 4096)
    assert pages & (pages - 1) == 0
    assert pages * 4096 >= 3 * stack_bytes
    assert cpus > 16 or pages * 4096 >= 2 * 99 * stack_bytes * 0.2
    assert pages * 4096 * cpus <= max(256 << 20, cpus * 8 * stack_bytes)


@pytest.fixture
def sampler(root_only):
    """A function that samples a process, in every scope."""
    opened = []

    def start(pid, hz=99, *arguments, **options):
        try:
            opened.append(CpuSampler(FS, pid, hz, *arguments, **options))
        except PermissionError as error:
            pytest.skip(f"no perf events here: {error}")
        return opened[-1]

    yield start
    for each in opened:
        each.close()


def drained(sampler, seconds, enough=0):
    """What is sampled in so many seconds, and until there are enough samples: a busy machine takes longer, a minute at most."""
    found, begun = [], time.monotonic()
    while (passed := time.monotonic() - begun) < seconds or (len(found) < enough and passed < 60):
        time.sleep(sampler.pause_s)
        found += sampler.drain()
    sampler.stop()
    return found + sampler.drain()


def cpu_s(pid):
    user, system = FS.read(pid, "stat").rpartition(b")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


@pytest.mark.parametrize("scope", ["cpus", "threads"])
def test_samples_stand_for_the_cpu_time(sampler, spawn, scope):
    """Each for 1/hz seconds, with the registers and the stack of user code; none of other processes."""
    process = spawn(BUSY, 2, stdin=subprocess.PIPE)
    taking = sampler(process.pid, 499, scope=scope)
    before = cpu_s(process.pid)
    found = drained(taking, 0.6)
    used = cpu_s(process.pid) - before
    assert taking.scope == scope
    assert taking.lost == 0
    assert abs(len(found) / 499 - used) < 0.2 * used + 0.05
    tids = set(FS.tids(process.pid))
    assert {each.tid for each in found} <= tids
    assert all(len(each.registers) == REGISTERS for each in found)
    assert all(each.stack for each in found if not each.in_kernel)
    assert abs(found[-1].time_ns / 1e9 - time.monotonic()) < 5


def test_the_kernels_frames(sampler, spawn):
    """They are named by kallsyms, the system call's entry last."""
    process = spawn(KERNEL)
    found = [each for each in drained(sampler(process.pid, 499), 0.3, 60) if each.in_kernel]
    assert len(found) > 20
    symbols = FS.load(KernelSymbols, "kallsyms")
    names = {symbols.name(pc) for each in found for pc in each.kernel}
    assert any(name and "getrandom" in name for name in names)
    assert all(each.registers[PC] < 1 << 47 for each in found)


def test_an_idle_process_has_no_samples(sampler, spawn):
    """And an ended one has no scope of threads."""
    process = spawn(IDLE, 1)
    assert drained(sampler(process.pid), 0.3) == []
    process.kill()
    process.wait()
    with pytest.raises(ProcessLookupError):
        CpuSampler(FS, process.pid, 99, scope="threads")


def test_a_thousand_threads_cost_few_fds(sampler, spawn):
    """As root: two per CPU, whatever the number of threads."""
    process = spawn(IDLE, 1000)
    before = len(os.listdir("/proc/self/fd"))
    taking = sampler(process.pid)
    fds = len(os.listdir("/proc/self/fd")) - before
    assert taking.scope == "cpus"
    assert fds == taking.fds <= 2 * len(read_online_cpus(FS))
    taking.close()
    assert len(os.listdir("/proc/self/fd")) == before


def test_new_threads_are_sampled(sampler, spawn):
    """Those that were started after the events were opened inherit them."""
    process = spawn(BUSY, 0, stdin=subprocess.PIPE)
    for scope in ("cpus", "threads"):
        taking = sampler(process.pid, 199, scope=scope)
        process.stdin.write("+")
        process.stdin.flush()
        tid = int(process.stdout.readline())
        assert {each.tid for each in drained(taking, 0.2, 60)} >= {tid}


def test_a_thread_is_counted_once_where_it_was_listed_and_inherits(sampler, spawn):
    """Threads that start while events are opened."""
    process = spawn(BUSY, 0, stdin=subprocess.PIPE)

    class Late(ProcFS):
        """Starts a busy thread after the first list of threads."""

        lists, born = 0, 0

        def tids(self, pid):
            self.lists += 1
            if self.lists == 2:
                process.stdin.write("+")
                process.stdin.flush()
                Late.born = int(process.stdout.readline())
            return super().tids(pid)

    taking = CpuSampler(Late(), process.pid, 499, scope="threads")
    assert taking.fds == 3 * len(
        read_online_cpus(FS)
    )  # the thread that was born has its own, beside those it inherited
    before = cpu_s(process.pid)
    found = drained(taking, 0.6)
    used = cpu_s(process.pid) - before
    taking.close()
    assert {each.tid for each in found} == {Late.born}
    assert len(found) / 499 < 1.3 * used + 0.05


def test_another_program_of_the_same_process(sampler, spawn):
    """An exec is noted; so is the name."""
    code = "import os, sys, time; print('ready'); sys.stdin.read(1); os.execvp('sleep', ['sleep', '600'])"
    process = spawn(code, stdin=subprocess.PIPE)
    taking = sampler(process.pid)
    process.stdin.write("x")
    process.stdin.close()
    deadline = time.monotonic() + 10
    while not taking.execs and time.monotonic() < deadline:
        drained_now = taking.drain()
        assert all(each.tid == process.pid for each in drained_now)
        time.sleep(0.05)
    assert taking.execs == 1
    assert taking.names[process.pid] == "sleep"
    process.stdin = None


def test_lost_samples_are_counted(sampler, spawn):
    """As many as another sampler, with room for them, took meanwhile. The next drain comes sooner."""
    process = spawn(BUSY, 2, stdin=subprocess.PIPE)
    for tid in FS.tids(process.pid):
        os.sched_setaffinity(tid, {min(os.sched_getaffinity(0))})  # one ring has them all
    # Rings with samples of this process only: whatever else runs here, none of the lost ones is another's.
    taking = sampler(process.pid, scope="threads")
    whole = sampler(process.pid, 2000, 64, scope="threads")
    for each in (whole, taking):
        each.stop()
        each.drain()
    pause_s = taking.pause_s
    for fd in (fd for ring in taking._events.rings.values() for fd in ring.fds):
        perf.set_period(fd, 500_000)  # its rings are made for 99 Hz
    for each in (whole, taking):
        each._events.control(perf.ENABLE)
    wanted, deadline = [], time.monotonic() + 60
    while len(wanted) < 1500 and time.monotonic() < deadline:
        time.sleep(whole.pause_s)
        wanted += whole.drain()
    found = taking.drain()
    assert taking.pause_s < pause_s
    first = len(found)
    while len(found) == first and time.monotonic() < deadline:  # with the next sample the kernel says what is lost
        time.sleep(0.01)
        found += taking.drain()
    for each in (whole, taking):
        each.stop()
    wanted += whole.drain()
    found += taking.drain()
    assert taking.lost > 0
    assert abs(len(found) + taking.lost - len(wanted) - whole.lost) < 0.1 * len(wanted)


class Records:
    """A ring with these records."""

    fill = 0.0

    def __init__(self, *records):
        self.records = records

    def waiting(self):
        return ((kind, 0, data, 0, len(data)) for kind, data in self.records)


def test_of_lost_samples_the_process_has_its_share(sampler, spawn):
    """By the samples of the same ring; all of them where it has no samples of others. Damaged samples are lost, too."""
    process = spawn(IDLE, 1)
    taking = sampler(process.pid)

    def lost(ours, others, dropped, damaged=0):
        mine = (perf.RECORD_SAMPLE, struct.pack("=QII", 1, process.pid, process.pid) + body()[16:])
        foreign = perf.RECORD_SAMPLE, body()
        torn = perf.RECORD_SAMPLE, mine[1][:40]
        drop = perf.RECORD_LOST, struct.pack("=QQ", 7, dropped)
        each = CpuRing(-1, Records(*[mine] * ours, *[foreign] * others, *[torn] * damaged, drop))
        taking._lost = 0.0
        taking._drain(each, [])
        return taking.lost

    assert lost(3, 1, 1000) == 750
    assert lost(3, 0, 1000) == 1000
    assert lost(0, 5, 1000) == 0
    assert lost(1, 2, 100) == 34
    assert lost(2, 0, 10, damaged=3) == 13


def test_cpus_that_come_online_are_sampled(sampler, spawn):
    """And those that go offline are left."""
    process = spawn(BUSY, 2, stdin=subprocess.PIPE)
    cpus = read_online_cpus(FS)
    if len(cpus) < 2:
        pytest.skip("needs two CPUs")

    class Some(ProcFS):
        online, allowed = str(cpus[0]), str(cpus[0])

        def read_path(self, path, limit_bytes=1 << 20):
            if path.endswith("/cpu/online"):
                return self.online.encode()
            if path == f"/proc/{process.pid}/status":
                return f"Cpus_allowed_list:\t{self.allowed}\n".encode()
            return super().read_path(path, limit_bytes)

    fs = Some()
    with CpuSampler(fs, process.pid, 99) as taking:
        rings = taking._events.rings
        assert [*rings] == cpus[:1]
        fs.online = f"{cpus[0]}-{cpus[1]}"
        taking.follow_cpus()
        assert [*rings] == cpus[:2]
        time.sleep(0.5)
        assert taking.drain()
        assert all(each.ring._meta[0] for each in rings.values())
        fs.online = str(cpus[1])
        fs.allowed = str(cpus[1])
        taking.follow_cpus()
        assert [*rings] == cpus[1:2]
    # A container may be shown fewer CPUs than its processes run on; what does not exist is left out.
    fs.online, fs.allowed = str(cpus[0]), f"{cpus[0]}-{cpus[1]},4000"
    with CpuSampler(fs, process.pid, 99) as taking:
        assert [*taking._events.rings] == cpus[:2]

    def with_fds_for_one_cpu():
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit_with_free_fds(1),) * 2)  # and the one of listing them
        try:
            with CpuSampler(fs, process.pid, 99) as taking:
                return [*taking._events.rings]
        except OSError as error:
            return errno.errorcode[error.errno]

    assert in_child(with_fds_for_one_cpu) == "EMFILE"


@pytest.mark.parametrize(
    ("paranoid", "scope", "kernel_seen"),
    [(-1, "cpus", True), (0, "cpus", True), (1, "threads", True), (2, "threads", False)],
)
def test_the_scopes_of_a_user(as_user, paranoid, scope, kernel_seen):
    """By kernel.perf_event_paranoid."""
    if os.environ.get("OPSKIT_TEST_HOST") != "1":
        pytest.skip("changes the host: set OPSKIT_TEST_HOST=1")
    setting = Path("/proc/sys/kernel/perf_event_paranoid")
    before = setting.read_text()

    def work(pid):
        with CpuSampler(FS, pid, 199) as taking:
            return taking.scope, taking.kernel_seen, len(drained(taking, 0.2, 4)) > 3

    try:
        setting.write_text(str(paranoid))
        assert owned(as_user, work, busy=2) == (scope, kernel_seen, True)
    finally:
        setting.write_text(before)


def test_a_larger_copy_of_the_stack(sampler, spawn):
    """After reopening; what was sampled before is not lost."""
    # list(map()) takes the C stack at every level, which Python's own calls do not.
    code = "print('ready')\ndef down(n):\n  if n: return list(map(down, [n - 1]))\n  while True: sum(map(abs, range(999)))\ndown(300)"
    process = spawn(code)
    taking = sampler(process.pid, 199)
    begun, deadline = cpu_s(process.pid), time.monotonic() + 60
    while cpu_s(process.pid) < begun + 0.1 and time.monotonic() < deadline:
        time.sleep(0.05)
    first = taking.reopen(LARGEST_STACK_BYTES)
    assert first
    assert max(len(each.stack) for each in first) <= STACK_BYTES
    assert taking.stack_bytes == LARGEST_STACK_BYTES
    found = drained(taking, 0.2, 5)
    assert STACK_BYTES < max(len(each.stack) for each in found) <= LARGEST_STACK_BYTES
    assert taking.lost == 0


@contextlib.contextmanager
def program_of(user, busy, idle):
    """A forked process of the user with so many threads, since another user may not be able to run this Python."""
    receive, send = os.pipe()
    child = os.fork()
    if not child:
        os.setgroups([])
        os.setresgid(*[user.pw_gid] * 3)
        os.setresuid(*[user.pw_uid] * 3)
        ctypes.CDLL(None).prctl(4, 1)  # PR_SET_DUMPABLE, as after an ordinary login
        threading.stack_size(64 << 10)
        data = bytes(1 << 20)
        for _ in range(busy):
            threading.Thread(target=lambda: [hashlib.sha256(data) for _ in iter(int, 1)], daemon=True).start()
        for _ in range(idle):
            threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
        os.write(send, b"+")
        signal.pause()
    os.read(receive, 1)
    try:
        yield child
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(receive)
        os.close(send)


def owned(as_user, work, busy=0, idle=0):
    """Call `work(pid)` as the user who owns a process with so many threads."""
    with reserved_user() as user:
        if user is None:
            pytest.skip("no system user is free")
        with program_of(user, busy, idle) as pid:
            return as_user(user.pw_uid, lambda: work(pid), gid=user.pw_gid)


def test_the_owner_samples_without_rights(as_user):
    """Events of the threads, without the kernel's frames where perf_event_paranoid is 2, in the memory that users may lock."""
    paranoid = read_sysctl(FS, "kernel", "perf_event_paranoid")
    if paranoid not in (1, 2):
        pytest.skip(f"kernel.perf_event_paranoid is {paranoid}")

    def work(pid):
        with CpuSampler(FS, pid, 199) as taking:
            found = drained(taking, 0.3, 21)
            return taking.scope, taking.kernel_seen, len(found), any(each.in_kernel for each in found), taking.lost

    scope, kernel_seen, count, in_kernel, lost = owned(as_user, work, busy=2)
    assert (scope, kernel_seen, in_kernel, lost) == ("threads", paranoid < 2, paranoid < 2 and in_kernel, 0)
    assert count > 20


def test_rings_fit_into_the_memory_that_users_may_lock(as_user):
    """kernel.perf_event_mlock_kb for each CPU of a user, where RLIMIT_MEMLOCK gives nothing more."""

    def work(pid):
        resource.setrlimit(resource.RLIMIT_MEMLOCK, (0, 0))
        with CpuSampler(FS, pid, 999, LARGEST_STACK_BYTES, scope="threads") as taking:
            return [each.ring.size_bytes for each in taking._events.rings.values()], taking.pause_s

    sizes, pause_s = owned(as_user, work, busy=1)
    limit = (read_sysctl(FS, "kernel", "perf_event_mlock_kb") or 0) << 10
    assert sum(sizes) <= limit * len(sizes)
    assert pause_s < 0.2


def limit_with_free_fds(free):
    """A limit of open files below which so many are free; a worker of the test run may have many open."""
    opened = {int(name) for name in os.listdir("/proc/self/fd")}
    return next(itertools.islice((fd for fd in itertools.count() if fd not in opened), free, None))


def test_too_few_fds_are_an_error(as_user):
    """EMFILE, after the soft limit was raised as far as it goes; every fd is closed again."""

    def work(pid):
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit_with_free_fds(20),) * 2)
        before = len(os.listdir("/proc/self/fd"))
        with pytest.raises(OSError, match="Too many open files") as raised:
            CpuSampler(FS, pid, 99)
        return raised.value.errno, len(os.listdir("/proc/self/fd")) - before

    assert owned(as_user, work, idle=60) == (errno.EMFILE, 0)


def test_the_soft_limit_of_files_is_raised_meanwhile(as_user):
    """Two fds per thread on two CPUs are more than a login's 1,024."""

    def work(pid):
        limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft := limit_with_free_fds(20), limits[1]))
        with CpuSampler(FS, pid, 99) as taking:
            fds = taking.fds
        return fds, resource.getrlimit(resource.RLIMIT_NOFILE)[0] - soft

    fds, changed = owned(as_user, work, idle=100)
    assert fds == 102 * len(read_online_cpus(FS))
    assert changed == 0


def test_another_user_may_not(as_user, spawn):
    """EACCES, as the kernel says it."""
    process = spawn(BUSY, 1, stdin=subprocess.PIPE)
    if (read_sysctl(FS, "kernel", "perf_event_paranoid") or 0) < 1:
        pytest.skip("everyone may sample here")
    with pytest.raises(PermissionError), reserved_user() as user:
        as_user(user.pw_uid, lambda: CpuSampler(FS, process.pid, 99).close())


def with_capability(bit, user, work):
    """The text of `work()` as a user with one capability."""

    def limited():
        libc = ctypes.CDLL(None, use_errno=True)
        libc.prctl(8, 1, 0, 0, 0)  # PR_SET_KEEPCAPS
        os.setgroups([])
        os.setresgid(*[user.pw_gid] * 3)
        os.setresuid(*[user.pw_uid] * 3)
        both = 1 << bit & 0xFFFFFFFF, 1 << bit >> 32
        sets = struct.pack("=6I", both[0], both[0], 0, both[1], both[1], 0)
        header = struct.pack("=Ii", 0x20080522, 0)  # _LINUX_CAPABILITY_VERSION_3
        return "capset" if libc.capset(header, sets) else work()

    return in_child(limited)


def test_cap_perfmon_is_enough_for_events_of_every_cpu(root_only, spawn):
    """Of any user's process."""
    process = spawn(BUSY, 1, stdin=subprocess.PIPE)

    def work():
        with CpuSampler(FS, process.pid, 499) as taking:
            return taking.scope, taking.kernel_seen, len(drained(taking, 0.1, 6)) > 5

    with reserved_user() as user:
        if user is None:
            pytest.skip("no system user is free")
        assert with_capability(38, user, work) == "('cpus', True, True)"


def test_threads_that_end_unsampled_are_forgotten(sampler, spawn):
    """So that a program that starts many threads does not fill our memory."""
    code = (
        "import ctypes, threading; print('ready'); name = ctypes.CDLL(None).prctl\n"
        "while True:\n"
        "  thread = threading.Thread(target=name, args=(15, b'short')); thread.start(); thread.join()"
    )
    process = spawn(code)
    taking = sampler(process.pid)
    ended = last = 0
    names = set()  # those of the threads that have just begun: at times there is none
    deadline = time.monotonic() + 30
    while ended - last < 50 and time.monotonic() < deadline:
        time.sleep(0.05)
        taking.drain()
        last = len(taking._ended)
        ended += last
        names |= set(taking.names.values())
    taking.drain()
    assert ended - last >= 50
    assert len(taking.names) < ended
    assert names == {"short"}


def test_throttled_samples_are_counted_as_lost(sampler, spawn):
    """kernel.perf_event_max_sample_rate ends a faster clock until the next tick."""
    if os.environ.get("OPSKIT_TEST_HOST") != "1":
        pytest.skip("changes the host: set OPSKIT_TEST_HOST=1")
    setting = Path("/proc/sys/kernel/perf_event_max_sample_rate")
    before = setting.read_text()
    process = spawn(BUSY, 1, stdin=subprocess.PIPE)
    try:
        setting.write_text("250")
        taking = sampler(process.pid, 9999)
        used = cpu_s(process.pid)
        found = drained(taking, 1.0)
        used = cpu_s(process.pid) - used
    finally:
        setting.write_text(before)
    assert taking.lost > len(found)
    assert abs(len(found) + taking.lost - 9999 * used) < 0.5 * 9999 * used


def test_the_attr_has_the_kernels_layout():
    """The attr has the size that its own field says, and its user part where the kernel's header has it."""
    attr = perf.Attr(perf.SOFTWARE, perf.CPU_CLOCK, registers=0x1C0, stack_bytes=4096, clock=perf.MONOTONIC).pack()
    assert struct.unpack_from("=QIi", attr, 80) == (0x1C0, 4096, 1)
    assert len(attr) == struct.unpack_from("=I", attr, 4)[0]
    assert sys.byteorder == "little"
