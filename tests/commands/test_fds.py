"""opskit fds on real processes: kinds and places, leaks, limits, deleted files, rights, formats, and every bad usage."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from functools import partial

import promtext
import pytest
from answers import FORMATS, answer, no_thread, no_zombie, refused, valid
from imports import HEAVY, imported
from nextsteps import try_next
from shells import NOBODY
from stracing import traced
from terminal import on_terminal

# One of each kind: `prints the port of its TCP connection`.
KINDS = """
import ctypes, os, select, socket, sys, tempfile
libc = ctypes.CDLL(None)
server = socket.create_server(("127.0.0.1", 0))
port = server.getsockname()[1]
client = socket.create_connection(("127.0.0.1", port)); accepted = server.accept()[0]
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
pair = socket.socketpair()
netlink = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
event, watch, timer = libc.eventfd(0, 0), libc.inotify_init(), libc.timerfd_create(1, 0)
epoll, memory, pipe = select.epoll(), os.memfd_create("held"), os.pipe()
logs = [open(f"{sys.argv[1]}/{name}.log", "w") for name in "abc"]
gone = open(f"{sys.argv[1]}/gone.log", "w"); os.unlink(gone.name)
folder, zero = os.open(sys.argv[1], os.O_RDONLY), open("/dev/zero")
print(port, flush=True)
sys.stdin.read()
"""
# Connections whose peer has closed, and which the process keeps: 12 at first, then 20 a second.
CLOSE_WAIT = """
import resource, socket, sys, time
resource.setrlimit(resource.RLIMIT_NOFILE, (400, 400))
server = socket.create_server(("127.0.0.1", 0), backlog=512)
kept = []
def leak():
    kept.append(socket.create_connection(server.getsockname()))
    server.accept()[0].close()
for _ in range(12): leak()
print(server.getsockname()[1], flush=True)
sys.stdin.readline()
while len(kept) < 300: time.sleep(0.05); leak()
"""
DELETED = """
import os, sys
mode = os.O_WRONLY | os.O_CREAT | (os.O_APPEND if sys.argv[2] == "append" else 0)
fd = os.open(sys.argv[1], mode, 0o600)
os.write(fd, b"x" * (8 << 20)); os.fsync(fd); os.unlink(sys.argv[1])
print(fd, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def of(inprocess):
    """The JSON object of a run, valid by its schema."""
    return partial(answer, inprocess, "fds")


@pytest.fixture
def holder(spawn, tmp_path):
    """A process with a descriptor of each kind."""
    return spawn(KINDS, tmp_path, stdin=subprocess.PIPE)


def test_each_kind_and_place(holder, of, tmp_path):
    """Every descriptor is in one group; sockets have their state and peer, files their directory."""
    document = of(holder.pid)
    names = os.listdir(f"/proc/{holder.pid}/fd")
    assert document["fd_count"] == len(names) == sum(group["fds"] for group in document["groups"])
    assert document["open_files"]["taken"] == len(names)
    counts = Counter()
    for group in document["groups"]:
        counts[group["kind"]] += group["fds"]
    links = [os.readlink(f"/proc/{holder.pid}/fd/{name}") for name in names]
    assert counts["pipe"] == sum(link.startswith("pipe:") for link in links)
    # pytest's own captured stderr, which the process inherits, is a deleted file too.
    assert counts["deleted"] == sum(link.endswith(" (deleted)") and not link.startswith("/memfd:") for link in links)
    for kind, number in {
        "tcp": 3, "udp": 1, "unix": 2, "netlink": 1, "eventfd": 1, "epoll": 1, "inotify": 1, "timerfd": 1, "memfd": 1,
        "directory": 1, "file": 3, "device": 1,
    }.items():  # fmt: skip
        assert counts[kind] == number, (kind, document["groups"])
    groups = {(group["kind"], group["detail"]): group for group in document["groups"]}
    assert groups["file", str(tmp_path)]["fds"] == 3
    assert groups["tcp", f"ESTAB to 127.0.0.1:{holder.line}"]["fds"] == 1
    assert groups["memfd", "held"]["fds"] == 1
    assert document["is_jvm"] is False
    assert document["nearest"] is None


def test_close_wait_that_grows_is_named_with_the_time_left(inprocess, of, spawn):
    """The group that grows first, from how many to how many, and when RLIMIT_NOFILE is reached."""
    leaking = spawn(CLOSE_WAIT, stdin=subprocess.PIPE)
    leaking.stdin.write("\n")
    leaking.stdin.flush()
    document = of(leaking.pid, "-w", "-i", "0.2", "-c", "9", codes=(1,))
    leading = document["growth"][0]
    assert leading["kind"] == "tcp"
    assert leading["detail"] == f"CLOSE_WAIT to 127.0.0.1:{leaking.line}"
    assert leading["last"] - leading["first"] > 15
    assert leading["fds_per_min"] == pytest.approx(1200, rel=0.3)
    assert document["total_growth"]["limit_in_s"] == pytest.approx(
        document["open_files"]["left"] / (document["total_growth"]["fds_per_min"] / 60), rel=0.1, abs=1
    )
    said = " ".join(document["verdict"])
    assert f"CLOSE_WAIT to 127.0.0.1:{leaking.line} grew from {leading['first']} to {leading['last']}" in said
    assert "limit reached in " in said
    try_next(document["findings"], "fds-keep-growing")
    table = inprocess("fds", leaking.pid, "-w", "-i", "0.1", "-c", "2", "-f", "text").out
    assert "FIRST" in table


def test_a_busy_process_without_a_leak_is_no_finding(of, spawn):
    """Connections and files that come and go."""
    code = """
import socket, threading, time
server = socket.create_server(("127.0.0.1", 0), backlog=128)
print(1, flush=True)
number = 0
while True:
    number += 1
    some = [socket.create_connection(server.getsockname()) for _ in range(20 + number % 7)]
    others = [server.accept()[0] for _ in some]
    files = [open("/proc/self/status") for _ in range(number % 11)]
    time.sleep(0.03)
    for each in (*some, *others, *files): each.close()
"""
    busy = spawn(code)
    document = of(busy.pid, "-w", "-i", "0.1", "-c", "7", codes=(0,))
    assert document["findings"] == []


@pytest.mark.parametrize("format_", FORMATS)
def test_every_format_of_a_real_process(inprocess, holder, format_):
    """The same figures in each."""
    done = inprocess("fds", holder.pid, "-f", format_)
    assert done.code == 0, done
    count = len(os.listdir(f"/proc/{holder.pid}/fd"))
    if format_ == "prometheus":
        samples = promtext.parse(done.out)
        assert promtext.value(samples, "opskit_fds_taken", pid=holder.pid) == count
        assert sum(value for (name, _), value in samples.items() if name == "opskit_fds_group_fds") == count
    elif format_ == "csv":
        head, *rows = done.out.splitlines()
        assert head.startswith("fds,share,kind,")
        assert sum(int(row.split(",")[0]) for row in rows) == count
    elif format_ != "json":
        assert f"{holder.pid} (python" in done.out
        assert "eventfd" in done.out


@pytest.mark.parametrize("options", [(), ("--deleted",)], ids=" ".join)
@pytest.mark.parametrize("format_", FORMATS)
def test_the_machine_and_its_deleted_files_in_every_format(inprocess, options, format_):
    """Without a process, and with --deleted; both in the same schema and as metrics."""
    done = inprocess("fds", *options, "-f", format_)
    assert done.code in (0, 1), done.err
    if format_ == "json":
        document = valid("fds", done.out)
        assert document["groups"] is None
        assert document["file_systems" if options else "nearest"]
    elif format_ == "prometheus":
        assert promtext.parse(done.out)
    else:
        assert done.out


def test_the_process_nearest_to_its_limit_comes_first(of, spawn):
    """More than 80 % of RLIMIT_NOFILE: a finding, which names the command for a closer look."""
    code = "import os, resource, sys\nresource.setrlimit(resource.RLIMIT_NOFILE, (64, 128))\nkept = [os.open('/', 0) for _ in range(60)]\nprint(1, flush=True)\nsys.stdin.read()"
    near = spawn(code, stdin=subprocess.PIPE)
    document = of(codes=(1,))
    row = next(row for row in document["nearest"] if row["pid"] == near.pid)
    assert (row["taken"], row["soft_limit"], row["hard_limit"], row["left"]) == (63, 64, 128, 1)
    [finding] = [each for each in document["findings"] if each["subject"] == str(near.pid)]
    assert finding["code"] == "rlimit-nearly-used"
    try_next([finding], "rlimit-nearly-used")
    of_process = of(near.pid, codes=(1,))
    assert (
        of_process["verdict"][0] == f"{near.pid} ({row['command']}): 63 of 64 file descriptors (RLIMIT_NOFILE), 1 left."
    )


def test_a_deleted_log_is_found_with_its_holder(of, inprocess, spawn, tmp_path):
    """By blocks, with holder, fd and path; of one process with its PID, and not of another one."""
    path = tmp_path / "app.log"
    held = spawn(DELETED, path, "append", stdin=subprocess.PIPE)
    document = of("--deleted")
    [row] = [row for row in document["deleted_files"] if row["path"] == str(path)]
    assert row["bytes"] >= 8 << 20
    [by] = row["holders"]
    assert (by["pid"], by["fds"], by["appending_fd"]) == (held.pid, [int(held.line)], int(held.line))
    # Its stderr may be a deleted file of pytest's, which this process has too.
    paths = [{each["path"] for each in of(pid, "--deleted")["deleted_files"]} for pid in (held.pid, os.getpid())]
    assert str(path) in paths[0] - paths[1]
    assert len(paths[0]) <= 2
    text = inprocess("fds", "--deleted", held.pid, "-f", "text").out
    assert f"{held.pid} (python" in text
    assert str(path) in text


def test_truncating_is_advised_only_where_the_file_is_appended_to(inprocess, spawn, tmp_path):
    """Without O_APPEND the next write would leave a hole: the holder is restarted."""
    for mode in ("append", "write"):
        held = spawn(DELETED, tmp_path / f"{mode}.log", mode, stdin=subprocess.PIPE)
        done = inprocess("fds", "--deleted", held.pid, "-f", "text")
        out = done.out + done.err
        assert (f"truncate -s 0 /proc/{held.pid}/fd/{held.line}" in out) is (mode == "append")
        assert re.search(rf"Restart \S+ \({held.pid}\)", out)
        assert ("content is lost" in out) is (mode == "append")


def test_on_a_terminal_the_answer_fits_the_first_screen(holder):
    """80 x 24: verdict first."""
    for words in ((str(holder.pid),), (), ("--deleted",)):
        _, shown = on_terminal("fds", *words, env={"NO_COLOR": "1"})
        lines = shown.replace("\r", "").splitlines()
        assert sum(-(-max(len(line), 1) // 80) for line in lines) <= 24, shown
    _, shown = on_terminal("fds", str(holder.pid), "-w", "-c", "2", "-i", "0.1", env={"NO_COLOR": "1"})
    assert f"{holder.pid} (python" in shown


def test_the_java_stack_of_a_descriptor(of, workload):
    """--ask names the Java thread that waits on a socket, and where; without it nothing is sent."""
    jvm = workload("socket=1")
    waiting = [thread for group in of(jvm.pid, "--ask")["groups"] for thread in group["threads"]]
    assert any(any("Socket" in frame for frame in thread["frames"]) for thread in waiting), waiting
    assert all(not thread["frames"] for group in of(jvm.pid)["groups"] for thread in group["threads"])


def test_a_name_finds_the_process(of, tmp_path):
    """The name of its program, which no other process has."""
    program = tmp_path / f"held-{os.getpid()}"
    shutil.copy(shutil.which("sleep"), program)
    process = subprocess.Popen([program, "60"])
    try:
        assert of(program.name)["process"]["pid"] == process.pid
    finally:
        process.kill()
        process.wait()


def test_another_users_process(as_nobody, as_user, inprocess, holder):
    """One line says what is lacking; of one's own process everything is seen."""
    done = as_nobody("fds", holder.pid, "--deleted")
    assert (done.returncode, done.stdout) == (2, "")
    assert f"opskit: cannot read the file descriptors of {holder.pid} (" in done.stderr
    assert re.search("sudo|CAP_SYS_PTRACE", done.stderr)
    for words in ((os.getpid(),), (), ("--deleted",)):
        inprocess("fds", *words, "-f", "json")  # nobody may not be able to import the modules
    refused = as_user(NOBODY, lambda: tuple(inprocess("fds", holder.pid)))
    assert (refused[0], refused[2]) == (2, done.stderr)
    with subprocess.Popen(["sleep", "60"], user=NOBODY, group=NOBODY, extra_groups=[]) as own:
        try:
            document = json.loads(as_user(NOBODY, lambda: inprocess("fds", own.pid, "-f", "json").out))
        finally:
            own.kill()
    assert document["fd_count"] >= 3
    for words in ((), ("--deleted",)):
        document = json.loads(as_user(NOBODY, lambda words=words: inprocess("fds", *words, "-f", "json").out))
        assert document["complete" if not words else "all_processes_read"] is False
        assert document["notes"]


def test_nothing_is_written_sent_or_stopped(holder):
    """As its safety table says."""
    for words in (("fds", holder.pid), ("fds",), ("fds", "--deleted")):
        done = traced(*words, "-f", "text")
        assert done.code in (0, 1), done.err
        assert done.acting() == [], words


def test_imports(holder):
    """Text needs no heavy module; a process does not need the machine's and the deleted files' modules."""
    modules = imported("fds", holder.pid, "-f", "text")
    assert not modules & (HEAVY - {"ctypes", "socket"})
    assert not modules & {"opskit.collect.fds.host", "opskit.collect.fds.deleted", "opskit.render.views.fds.document"}


def test_a_watch_ends_with_its_process(inprocess, spawn):
    """One line says so; what was seen is shown."""
    short = spawn("import time; print(1, flush=True); time.sleep(0.5)")
    done = inprocess("fds", short.pid, "-w", "-i", "0.1", "-c", "60", "-f", "json")
    assert done.code in (0, 1)
    assert f"opskit: no process {short.pid}" in done.err
    assert json.loads(done.out)["groups"]


def test_interrupted(holder):
    """Ctrl-C ends a watch with what there is so far: exit code 130, and whole JSON."""
    running = subprocess.Popen(
        [sys.executable, "-m", "opskit", "fds", str(holder.pid), "-w", "-i", "0.1", "-f", "json"],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    time.sleep(1.0)
    running.send_signal(signal.SIGINT)
    out, _ = running.communicate(timeout=30)
    assert running.returncode == 130
    assert json.loads(out)["process"]["pid"] == holder.pid


def test_a_csv_file_of_a_watch_has_one_table(inprocess, holder, tmp_path):
    """That of the last look, with the growth."""
    path = tmp_path / "fds.csv"
    assert inprocess("fds", holder.pid, "-w", "-i", "0.1", "-c", "3", "-o", path).code == 0
    lines = path.read_text().splitlines()
    assert [line for line in lines if line.startswith("fds,")] == lines[:1]
    assert "" not in lines


def test_a_thread_a_zombie_and_nobody(inprocess, spawn):
    """Each has one line and exit code 2."""
    no_thread(inprocess, "fds", spawn)
    no_zombie(inprocess, "fds", "opskit: no process {pid}: it is a zombie: ")


BAD = {
    ("--ask",): "opskit: --ask goes with a process and without --deleted: opskit fds PID",
    ("1", "--deleted", "--ask"): "opskit: --ask goes with a process and without --deleted: opskit fds PID",
    ("1", "-c", "3"): "opskit: -c/--count goes with -w/--watch: add --watch",
    ("1", "-i", "3"): "opskit: -i/--interval goes with -w/--watch: add --watch",
    ("0",): "opskit: '0' is not a PID",
    ("-5",): "opskit: fds: -5… is negative",
    ("1", "2"): "opskit fds: Got unexpected extra argument (2)",
    ("no-such-program",): "opskit: fds: 'no-such-program' is not a PID",
    ("1", "-o", "/tmp/x.png"): "opskit: -o /tmp/x.png: unknown suffix '.png'; known are .txt",
}


@pytest.mark.parametrize("words", BAD, ids=" ".join)
def test_bad_usage(inprocess, words):
    """Exit code 2, and a line that says what to type."""
    refused(inprocess("fds", *words), BAD[words])
