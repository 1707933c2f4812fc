"""Processes under one limit each, which start threads until that fails: the real number of threads.

Used by the tests, and by docs/predicted_beside_real.py for the table on the command's page.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import inprocess

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MIB, GIB = 1 << 20, 1 << 30
# No other process has it: its threads are counted. Each worker has its own.
UID = 64123 + int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:])
# One that every user may run: the tests' own may be root's alone.
PYTHON = "/usr/bin/python3" if os.access("/usr/bin/python3", os.X_OK) else sys.executable

# Says its pid, waits for a line, starts threads until one fails, says how many started and waits again.
FILL = """
import ctypes, os, sys, threading
{prepare}
print(os.getpid(), flush=True)
sys.stdin.readline()
done, started = threading.Event(), 0
try:
    while True:
        threading.Thread(target=done.wait, daemon=True).start()
        started += 1
except (RuntimeError, MemoryError, OSError):
    pass
print(started, flush=True)
sys.stdin.readline()
os._exit(0)
"""

# As root; what comes after is under the limit of an ordinary user. MCL_CURRENT 1, MCL_FUTURE 2, MCL_ONFAULT 4.
MLOCKALL = f"""
assert ctypes.CDLL(None).mlockall({{flags}}) == 0
kept = [bytes(10_000) for _ in range(100)]
os.setgroups([])
os.setresgid({UID}, {UID}, {UID})
os.setresuid({UID}, {UID}, {UID})
"""
SMALL_STACKS = "threading.stack_size(256 << 10)"
MANY_MAPS = """
import mmap
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
count = int(open("/proc/sys/vm/max_map_count").read()) - 400
area = libc.mmap(None, ctypes.c_size_t(count * 4096), 0, 0x22, -1, 0)
for page in range(0, count, 2):
    libc.mprotect(ctypes.c_void_p(area + page * 4096), 4096, 1)
"""
SOME_ENDED_THREADS = """
barrier = threading.Barrier(10)
ended = [threading.Thread(target=barrier.wait) for _ in range(10)]
for thread in ended:
    thread.start()
for thread in ended:
    thread.join()
"""
SOME_BARE_THREADS = """
libc = ctypes.CDLL(None)
for _ in range(5):
    assert libc.pthread_create(ctypes.byref(ctypes.c_ulong()), None, libc.pause, None) == 0
"""
BARE_FILL = (
    FILL.replace(
        "threading.Thread(target=done.wait, daemon=True).start()",
        "assert libc.pthread_create(ctypes.byref(thread), None, libc.pause, None) == 0",
    )
    .replace("(RuntimeError, MemoryError, OSError)", "AssertionError")
    .replace("done, started", "thread, started")
    .replace("threading.Event(), 0", "ctypes.c_ulong(), 0")
)


@dataclass(frozen=True)
class Case:
    """One limit: the name opskit gives it, in words, and how a child comes under it.

    `before` runs in the child before its program; `around` is entered with the child's pid before it is filled.
    """

    limit: str
    words: str
    before: Callable[[], None] = lambda: None
    prepare: str = ""
    uid: int | None = None
    prefix: tuple[str, ...] = ()
    cgroup: tuple[int | None, int | None] | None = None
    stack: int | None = None
    program: str = FILL


def rlimit(name: str, soft: int) -> Callable[[], None]:
    """Sets an rlimit in the child."""
    return lambda: resource.setrlimit(getattr(resource, name), (soft, soft))


def memory_bytes() -> int:
    """RAM and swap."""
    fields = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    return sum(int(fields[name].split()[0]) * 1024 for name in ("MemTotal", "SwapTotal"))


def refuse_clone3(errno: int = 1) -> None:
    """A seccomp filter that answers clone3() with EPERM, as old container runtimes do, and lets all else pass."""
    refuse_call(435, errno)


def refuse_call(number: int, errno: int) -> None:
    """A seccomp filter that answers a system call with this errno, and lets all else pass."""

    class Instruction(ctypes.Structure):
        _fields_ = (("code", ctypes.c_ushort), ("jt", ctypes.c_ubyte), ("jf", ctypes.c_ubyte), ("k", ctypes.c_uint))

    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.POINTER(Instruction)))

    code = (Instruction * 4)(
        Instruction(0x20, 0, 0, 0),  # load the number of the system call
        Instruction(0x15, 0, 1, number),  # that call?
        Instruction(0x06, 0, 0, 0x00050000 | errno),  # SECCOMP_RET_ERRNO
        Instruction(0x06, 0, 0, 0x7FFF0000),  # SECCOMP_RET_ALLOW
    )
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.prctl(38, 1, 0, 0, 0) == 0  # PR_SET_NO_NEW_PRIVS
    assert libc.prctl(22, 2, ctypes.byref(Program(4, code)), 0, 0) == 0  # PR_SET_SECCOMP, SECCOMP_MODE_FILTER


def cases() -> list[Case]:
    """Every limit that can be reached on one machine without changing other processes."""
    ram = memory_bytes()
    hard = resource.getrlimit(resource.RLIMIT_MEMLOCK)[1]
    memlock = 2 * GIB if hard == resource.RLIM_INFINITY else hard  # without CAP_SYS_RESOURCE it cannot be raised
    return [
        Case("RLIMIT_STACK", "stacks of 16 TiB", rlimit("RLIMIT_STACK", 16 << 40)),
        Case("RLIMIT_STACK", "stacks a little above RAM + swap", rlimit("RLIMIT_STACK", ram + 64 * MIB)),
        Case("RLIMIT_STACK", "stacks a little below RAM + swap", rlimit("RLIMIT_STACK", ram // MIB * MIB - 64 * MIB)),
        *(
            Case("RLIMIT_AS", f"address space of {size} MiB", rlimit("RLIMIT_AS", size * MIB))
            for size in (300, 700, 1024, 1200, 2048, 8192)
        ),
        Case(
            "RLIMIT_AS", "address space of 1024 MiB, threads that never call malloc()", rlimit("RLIMIT_AS", GIB),
            SOME_BARE_THREADS, program=BARE_FILL,
        ),
        Case(
            "RLIMIT_AS", "address space of 1200 MiB, after ten threads that have ended", rlimit("RLIMIT_AS", 1200 * MIB),
            SOME_ENDED_THREADS,
        ),
        Case(
            "RLIMIT_AS", "address space of 600 MiB, stacks of 256 KiB", rlimit("RLIMIT_AS", 600 * MIB), SMALL_STACKS,
            stack=256 << 10,
        ),
        Case("RLIMIT_DATA", "data of 200 MiB", rlimit("RLIMIT_DATA", 200 * MIB)),
        Case("RLIMIT_DATA", "data of 1 GiB", rlimit("RLIMIT_DATA", GIB)),
        Case("RLIMIT_MEMLOCK", f"locked memory of {memlock // MIB} MiB, after mlockall(MCL_CURRENT and MCL_FUTURE)", rlimit("RLIMIT_MEMLOCK", memlock), MLOCKALL.replace("{flags}", "7")),
        Case(
            "RLIMIT_MEMLOCK", f"locked memory of {memlock // MIB} MiB, after mlockall(MCL_FUTURE), stacks of 256 KiB",
            rlimit("RLIMIT_MEMLOCK", memlock), SMALL_STACKS + MLOCKALL.replace("{flags}", "6"), stack=256 << 10,
        ),
        Case("RLIMIT_NPROC", "an unprivileged uid, nproc 40", rlimit("RLIMIT_NPROC", 40), uid=UID),
        Case(
            "RLIMIT_NPROC", "root of an unprivileged uid's user namespace, nproc 40", rlimit("RLIMIT_NPROC", 40),
            uid=UID, prefix=("unshare", "-Ur"),
        ),
        Case("pids.max", "pids.max 30 on the leaf", cgroup=(None, 30)),
        Case("pids.max", "pids.max 30 on the parent, the leaf has none", cgroup=(30, None)),
        Case("pids.max", "pids.max 30 on the parent, 100 on the leaf", cgroup=(30, 100)),
        Case("vm.max_map_count", "nearly as many mappings as vm.max_map_count", prepare=MANY_MAPS),
        Case("seccomp", "a filter that answers clone3() with EPERM", refuse_clone3),
    ]  # fmt: skip


def pids_root() -> Path | None:
    """Where a pids cgroup can be made: v1's hierarchy, or v2 with the controller switched on below its root."""
    for line in Path("/proc/mounts").read_text().splitlines():
        _, point, kind, options, *_ = line.split()
        if kind == "cgroup" and "pids" in options.split(","):
            return Path(point)
        if kind == "cgroup2" and "pids" in (Path(point) / "cgroup.subtree_control").read_text().split():
            return Path(point)
    return None


@contextlib.contextmanager
def pids_cgroup(parent_max: int | None, leaf_max: int | None) -> Iterator[Path]:
    """A cgroup and one below it; gives the leaf."""
    root = pids_root()
    assert root is not None
    parent = root / f"opskit-test-{os.getpid()}"
    leaf = parent / "leaf"
    parent.mkdir()
    try:
        if (parent / "cgroup.subtree_control").exists():
            (parent / "cgroup.subtree_control").write_text("+pids")
        leaf.mkdir()
        for folder, limit in ((parent, parent_max), (leaf, leaf_max)):
            (folder / "pids.max").write_text("max" if limit is None else str(limit))
        yield leaf
    finally:
        for folder in (leaf, parent):
            with contextlib.suppress(FileNotFoundError):
                folder.rmdir()


@contextlib.contextmanager
def child(case: Case) -> Iterator[subprocess.Popen[str]]:
    """The case's process, waiting to be filled; `.pid` is the one that starts the threads."""
    with contextlib.ExitStack() as stack:
        leaf = stack.enter_context(pids_cgroup(*case.cgroup)) if case.cgroup else None

        def before() -> None:
            if leaf is not None:
                (leaf / "cgroup.procs").write_text(str(os.getpid()))
            case.before()
            if case.uid is not None:
                os.setgroups([])
                os.setresgid(case.uid, case.uid, case.uid)
                os.setresuid(case.uid, case.uid, case.uid)

        process = subprocess.Popen(
            [*case.prefix, PYTHON, "-c", case.program.format(prepare=case.prepare)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            preexec_fn=before,  # noqa: PLW1509  (the tests have no threads)
            cwd="/",
        )
        try:
            assert int(process.stdout.readline()) == process.pid
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGKILL)
            process.wait()
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()
            process.stdout.close()


def fill(process: subprocess.Popen[str]) -> int:
    """Start threads until one fails; how many started. They stay."""
    process.stdin.write("go\n")
    process.stdin.flush()
    return int(process.stdout.readline())


def predicted(pid: int, *options: str) -> dict[str, object]:
    """The JSON object of `opskit limits PID`."""
    done = inprocess.run("limits", pid, "-f", "json", *options)
    assert done.out, done.err
    return json.loads(done.out)


def close_enough(said: int, real: int) -> bool:
    """Within 5 % or 3 threads."""
    return abs(said - real) <= max(3, 0.05 * real)
