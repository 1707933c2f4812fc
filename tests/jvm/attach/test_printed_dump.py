"""Where the thread dump after `kill -3` appears, and how it is read: real JVMs with real standard outputs."""

from __future__ import annotations

import json
import os
import pty
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import jvms as real
import pytest
from cgroups import new_cgroup
from jvmtree import LIBJVM, Tree
from nextsteps import try_next

from opskit.jvm.attach.printed_dump import instead, printed_dump
from opskit.jvm.attach.target import catches_sigquit
from opskit.jvm.discover import find_jvm
from opskit.proc.files.status import parse_status
from opskit.proc.fs import ProcFS

pytestmark = pytest.mark.xdist_group("JVMs by PID")
ROOT = Path(__file__).resolve().parents[3]
DISABLED = ("-Xmx64m", "-XX:+DisableAttachMechanism")
ID = "3f2a9c81d0e4" + "0123456789abcdef" * 3 + "0123"


@pytest.fixture
def started():
    """Start a JVM with this standard output, and wait until it catches SIGQUIT; all are killed at the end."""
    running = []

    def start(out, *options, version=17, **how):
        command = [real.java(version), *(options or DISABLED), "-cp", real.classes(), "Workload", "sleep=1"]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=out, **how)
        running.append(process)
        fs, deadline = ProcFS(), time.monotonic() + real.START_S
        while time.monotonic() < deadline:
            status = fs.maybe(parse_status, process.pid, "status")
            threads = [fs.maybe(str, process.pid, "task", tid, "comm") for tid in fs.tids(process.pid)]
            if "sleep-0\n" in threads and status and (catches_sigquit(status) or "-Xrs" in options):
                break
            time.sleep(0.02)
        return process

    yield start
    for process in running:
        process.kill()
        process.wait()
        process.stdin.close()
        for left in (Path(f"/tmp/.java_pid{process.pid}"), *Path("/tmp").glob(f"hsperfdata_*/{process.pid}")):
            left.unlink(missing_ok=True)


def dump_of(process):
    return printed_dump(ProcFS(), find_jvm(ProcFS(), process.pid))


def typed(line):
    """Run a line of shell as the user would, with this opskit."""
    path = f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}"
    env = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)}
    return subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=False, env=env)


@pytest.mark.parametrize("mode", ["w", "a"])
def test_a_file_is_named_with_the_offset_and_read(started, tmp_path, mode, inprocess):
    """Only what comes after the offset is the new dump; `opskit jpmp FILE` reads the file. Nothing was printed before."""
    log = tmp_path / "app $(touch x).log"
    log.write_text("an old line\n" * 100 * (mode == "a"))
    with log.open(mode) as out:
        process = started(out)
    while not log.read_text().endswith("READY\n"):
        time.sleep(0.01)
    size = log.stat().st_size
    found = dump_of(process)
    assert found.where == f"its stdout, {log}, after byte {size:,}"
    for words in (("jpmp", process.pid, "1"), ("jvms", process.pid, "-f", "text"), ("hsperf-check", process.pid)):
        done = inprocess(*words)
        said = " ".join((done.out + done.err).split())
        assert f"`kill -3 {process.pid}` prints a thread dump to {found.where}; `{found.read}` reads it" in said, words
    assert log.stat().st_size == size
    found_by_check = json.loads(inprocess("hsperf-check", process.pid, "-f", "json").out)["findings"]
    assert try_next(found_by_check, "attach-disabled") == found.whole
    assert b"Full thread dump" in log.read_bytes()[size:]
    assert "Workload.sleepForever" in typed(found.read).stdout
    log.rename(tmp_path / "app.log.1")  # as logrotate does
    found = dump_of(process)
    assert f"{tmp_path}/app.log.1, after byte" in found.where
    assert "Workload.sleepForever" in typed(found.whole).stdout
    (tmp_path / "app.log.1").unlink()
    assert f"app.log.1 (deleted), here /proc/{process.pid}/fd/1, after byte" in dump_of(process).where
    assert "Workload.sleepForever" in typed(dump_of(process).whole).stdout


def test_a_pipe_a_terminal_and_what_loses_it(started):
    """A pipe is never read, its reader is; what /dev/null or a closed fd would lose is not advised, but the JDK's debugger is."""
    piped = started(subprocess.PIPE)
    assert dump_of(piped).where == f"its stdout, a pipe; `opskit pipes {piped.pid} --ends` shows its reader"
    assert dump_of(piped).read is None
    lost = started(subprocess.DEVNULL)
    assert dump_of(lost).lost
    lines = instead(ProcFS(), find_jvm(ProcFS(), lost.pid), 17)
    assert lines[0] == f"`kill -3 {lost.pid}` would print a thread dump to its stdout, /dev/null: it would be lost"
    assert f"jhsdb jstack --pid {lost.pid} | opskit jpmp -" in lines[1]
    leader, follower = pty.openpty()
    shown = started(follower)
    assert dump_of(shown).where == f"its stdout, the terminal {os.ttyname(follower)}"
    closed = started(None, preexec_fn=lambda: os.close(1))
    assert dump_of(closed).where.startswith("its stdout, ")
    piped.send_signal(signal.SIGQUIT)  # as advised
    assert b"Full thread dump" in b"".join(piped.stdout.readline() for _ in range(4))
    piped.stdout.close()
    os.close(leader)
    os.close(follower)


def test_a_socket_of_a_unit(started, root_only):
    """The journal has it, and nothing is taken from the socket."""
    unit = f"opskit-test-{os.getpid()}.service"
    ours, theirs = socket.socketpair()
    with ours, theirs, new_cgroup("pids", unit) as place:
        process = started(theirs.fileno())
        (place / "cgroup.procs").write_text(str(process.pid))
        found = dump_of(process)
        process.kill()
        process.wait()
    assert found.where == "its stdout, a socket, which goes to its log"
    assert found.read == f"journalctl -u {unit} -o cat --since -1min | opskit jpmp -"


def test_reduced_signals_are_never_sent_one(started, inprocess):
    """-Xrs: kill -3 would kill the JVM. With its socket gone, only the JDK's debugger reads it."""
    process = started(subprocess.DEVNULL, "-Xmx64m", "-Xrs")
    assert dump_of(process) is None
    os.unlink(f"/tmp/.java_pid{process.pid}")
    done = inprocess("jpmp", process.pid, "1")
    assert done.code == 2
    assert "kill -3" not in done.err
    assert f"jhsdb jstack --pid {process.pid} | opskit jpmp -" in done.err
    assert process.poll() is None


@pytest.mark.parametrize(
    ("cgroup", "command"),
    [
        ("/system.slice/app.service", "journalctl -u app.service -o cat --since -1min | opskit jpmp -"),
        (
            "/user.slice/user-7.slice/user@7.service/app.slice/a.service",
            "journalctl --user -u a.service -o cat --since -1min | opskit jpmp -",
        ),
        (f"/docker/{ID}", f"docker logs --since 1m {ID} 2>&1 | opskit jpmp -"),
        (f"/machine.slice/libpod-{ID}.scope", f"podman logs --since 1m {ID} 2>&1 | opskit jpmp -"),
        (
            f"/kubepods/burstable/pod6a1c2b9e-0d0f-4f35-9d6b-3d1f0e5a7c11/{ID}",
            "kubectl logs --since=1m app-7c9d | opskit jpmp -",
        ),
        ("/user.slice/user-7.slice/session-3.scope", None),
    ],
)
def test_the_log_of_each_kind_of_owner(tmp_path, cgroup, command):
    """Named by the cgroup; of a pod by its host name."""
    tree = Tree(tmp_path)
    tree.process(4242, maps=LIBJVM, environ="HOSTNAME=app-7c9d\0")
    status = tree.root / "proc/4242/status"
    status.write_text(status.read_text() + "SigCgt:\t2000000181005ccf\n")
    tree.write("proc/4242/cgroup", f"0::{cgroup}\n")
    (tree.root / "proc/4242/fd").mkdir()
    (tree.root / "proc/4242/fd/1").symlink_to("pipe:[4711]")
    assert printed_dump(tree.fs, find_jvm(tree.fs, 4242)).read == command
