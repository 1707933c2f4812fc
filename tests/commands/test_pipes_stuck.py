"""`opskit pipes --fill` on real full pipes: which are a hang, and which wait for a user, a disk or a network."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time

import pytest
from nextsteps import try_next

from opskit.analysis.finding import is_failure
from opskit.analysis.pipes.judge import judge
from opskit.collect import pipe_blocks
from opskit.collect.pipes import Collector, Request
from opskit.host import Host
from opskit.proc.fs import ProcFS

# A writer that fills the pipe whose inode is printed, for the code that follows: `r` is the read end.
WRITER = """
import os, subprocess, sys, time
r, w = os.pipe()
writer = subprocess.Popen([sys.executable, "-c", "import os, sys\\nwhile True: os.write(int(sys.argv[1]), b'x' * 4096)", str(w)], pass_fds=[w])
os.close(w)
print(os.stat(r).st_ino, writer.pid, flush=True)
"""


@pytest.fixture(autouse=True)
def brief(monkeypatch):
    """Blocked processes move as little in 0.4 s as in a second; tests/commands/test_pipes.py looks for a whole one."""
    monkeypatch.setattr(pipe_blocks, "_SETTLE_S", (0.1, 0.3))


class Machine:
    """The findings of the last look at all pipes. A look takes a second, and serves every process that was staged before it."""

    def __init__(self):
        self._found = {}

    def look(self, *, fifos=False):
        """Look again."""
        ask = Request(processes=True, ends=True, fill=True, fifos=fifos)
        self._found = {each.entity.name: each for each in judge(Collector(Host(ProcFS()), ask).look()).findings}

    def finding(self, subject, until):
        """The one about a pipe with these words in its summary; None: it is not there yet."""
        found = self._found.get(subject)
        return found if found is not None and until in found.summary else None


MACHINE = Machine()


def settled(subject, until=" blocked, ", *, fifos=False):
    """The finding about a pipe, when its summary has these words: processes need a moment to block."""
    for _ in range(30):
        found = MACHINE.finding(subject, until)
        if found is not None:
            return found
        MACHINE.look(fifos=fifos)
    raise AssertionError(f"{subject} has no finding with {until!r}")


def about(process, until=" blocked, "):
    """(the finding about its pipe, its writer's pid)."""
    inode, writer = process.line.split()
    return settled(f"pipe:[{inode}]", until), int(writer)


OTHERWISE_BUSY = [
    ("import socket; a, b = socket.socketpair(); os.read(a.fileno(), 1)", "reads socket:["),
    ("import select, socket; a, b = socket.socketpair(); select.select([a], [], [], 600)", "sleeps in "),
    ("subprocess.call(['sleep', '600'], pass_fds=[])", "waits for child "),
    ("while True: time.sleep(0.01)", "is active"),
    ("while True: pass", "is active"),
]
NEVER_READING = [
    "time.sleep(600)",
    "import select; select.select([], [], [], 600)",
    "import select; select.poll().poll()",
    "import signal; signal.pause()",
    "import threading; threading.Event().wait()",
]
SLOW = "while True: os.read(r, 4096); time.sleep(0.01)"
BURNS = "while True: pass"  # it is staged by its own test: the others should not share the CPU with it


@pytest.fixture(scope="module")
def staged():
    """All readers that do not read, each with its full pipe, by their code: they are started together, and seen by the same look."""
    waiting = [
        *NEVER_READING,
        *(code for code, _ in OTHERWISE_BUSY if code != BURNS),
        SLOW,
        *(code for code, _ in NO_DEADLOCK.values()),
    ]
    codes = {code: WRITER + code for code in waiting} | {code: started(code) for code in WAITING.values()}
    processes = {}
    try:
        for name, code in codes.items():
            processes[name] = subprocess.Popen(
                [sys.executable, "-u", "-c", code], stdout=subprocess.PIPE, text=True, start_new_session=True
            )
        for process in processes.values():
            process.line = process.stdout.readline().rstrip("\n")
        yield processes
    finally:
        for process in processes.values():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            process.stdout.close()


@pytest.mark.parametrize(("reader", "activity"), OTHERWISE_BUSY)
def test_a_reader_that_does_something_else_is_a_note(staged, spawn, reader, activity):
    """It may read again by itself, as a pager does when the user types: the note says what it does meanwhile."""
    process = staged.get(reader) or spawn(WRITER + reader)
    found, writer = about(process, f"{process.pid} {activity}")
    assert (found.code, found.severity) == ("pipe-full-writer-blocked", "note")
    assert found.summary.startswith(f"full: writer {writer} (")
    assert f"reader {process.pid} (" in found.summary
    assert f") is not draining; {process.pid} {activity}" in found.summary


@pytest.mark.parametrize("reader", NEVER_READING)
def test_a_reader_that_waits_for_no_input_is_a_warning(inprocess, staged, reader):
    """No user, disk or network can make it read: exit code 1, and what it sleeps in."""
    process = staged[reader]
    found, writer = about(process, f"; {process.pid} sleeps in ")
    assert (found.code, found.severity, found.fix) == ("pipe-full-writer-blocked", "warning", None)
    assert inprocess("pipes", writer, "--fill", "--ends", "-f", "json").code == 1


def test_a_pager_that_waits_for_the_user_is_a_note(spawn):
    """A person who reads a page in less, which reads keys from its terminal: exit code 0."""
    code = """
import os, pty, subprocess, sys, time
pid, terminal = pty.fork()
if pid == 0:
    os.environ["TERM"] = "xterm"
    os.execlp("sh", "sh", "-c", "yes | less")
os.read(terminal, 1000)
print(pid, flush=True)
while True: os.read(terminal, 1000)
"""
    process = spawn(code)
    try:
        children = f"/proc/{process.line}/task/{process.line}/children"
        for _ in range(100):
            with open(children, encoding="ascii") as file:
                pids = file.read().split()
            names = [os.path.basename(os.readlink(f"/proc/{pid}/exe")) for pid in pids]
            if "less" in names:
                break
            time.sleep(0.1)
        else:
            pytest.skip("needs less")
        inode = os.readlink(f"/proc/{pids[names.index('less')]}/fd/0")
        found = settled(inode, "reads /dev/pts/")
        assert found.severity == "note"
        assert "(less) is not draining; " in found.summary
    finally:
        os.killpg(int(process.line), signal.SIGKILL)


def test_a_stopped_reader_is_a_warning(inprocess, spawn):
    """Nothing but SIGCONT makes it read, also where it was stopped in a read: exit code 1, and the command that sends it."""
    process = spawn(WRITER + "while True: os.read(r, 1)")
    os.kill(process.pid, signal.SIGSTOP)
    found, writer = about(process, "stopped")
    assert (found.code, found.severity, found.fix) == (
        "pipe-full-writer-blocked",
        "warning",
        f"kill -CONT {process.pid}",
    )
    assert ", stopped by a signal) is not draining" in found.summary
    assert found.waits_for.id == process.pid
    done = inprocess("pipes", writer, "--fill", "--ends", "-f", "json")
    document = json.loads(done.out)
    [full] = [each for each in document["findings"] if each["subject"] == found.entity.name]
    assert full["class"] == "stuck"
    inside = full["entity"].pop("inside")
    assert full["entity"] == {"kind": "pipe", "id": found.entity.name, "start_ticks": None}
    assert (inside["kind"], inside["id"], inside["start_ticks"] > 0) == ("process", str(writer), True)
    assert found.next == f"opskit pipes {writer} --ends --fill"
    closer = try_next([full], "pipe-full-writer-blocked")
    assert closer == f"ps -o pid,ppid,lstart,args -p {writer}"  # it does not advise itself
    assert done.code == 1
    text = inprocess("pipes", writer, "--fill", "--ends", "-f", "text")
    assert f"warning pipe-full-writer-blocked ({found.entity.name}): full: writer {writer}" in text.err
    assert "warning" not in text.out
    # Without the other processes the reader is not known to be the only one.
    assert inprocess("pipes", writer, "--fill", "-f", "json").code == 0


def test_a_suspended_job_is_a_note(spawn):
    """Ctrl-Z stops the writer as well."""
    process = spawn(WRITER + "time.sleep(600)")
    about(process)  # the pipe is full
    os.killpg(process.pid, signal.SIGSTOP)
    found, _ = about(process, "stopped")
    assert found.severity == "note"
    assert found.summary.count("stopped by a signal") == 2


def test_a_slow_reader_is_a_note(staged):
    """It drains, however slowly."""
    found, _ = about(staged[SLOW], "slowly")
    assert found.severity == "note"
    assert found.summary.endswith(") drains more slowly than that")


RING = """
import os, sys, time
count, maker_stays = int(sys.argv[1]), len(sys.argv) > 2
pipes = [os.pipe() for _ in range(count)]
names = [os.fstat(r).st_ino for r, _ in pipes]
ends = {fd for pair in pipes for fd in pair}
def child(reads, writes):
    pid = os.fork()
    if pid == 0:
        for fd in ends - {reads, writes}: os.close(fd)
        os.write(ready, b"x")
        while True: os.write(writes, b"x" * 65536)
    return pid
closed, ready = os.pipe()
pids = [child(pipes[at][0], pipes[(at + 1) % count][1]) for at in range(count)]
if not maker_stays:  # until then this process could drain them
    for fd in ends: os.close(fd)
for _ in pids: os.read(closed, 1)  # each has closed its copies
print(*names, *pids, flush=True); time.sleep(600)
"""


def ring(spawn, count, *arguments):
    """The finding about processes that each write to the next one's pipe, with the names of the pipes and the PIDs."""
    process = spawn(RING, count, *arguments)
    numbers = process.line.split()
    names, pids = [f"pipe:[{inode}]" for inode in numbers[:count]], numbers[count:]
    for _ in range(50):
        result = judge(Collector(Host(ProcFS()), Request(processes=True, ends=True, fill=True)).look())
        found = [each for each in result.findings if each.entity.name in names]
        # A pipe that fills up during the look is named, but not as full.
        said = found[0].summary if [each.code for each in found] == ["pipe-deadlock"] else ""
        if all(f"full {name}" in said for name in names):
            break
    [one] = found
    verdicts = {pipe.name: pipe.verdict for pipe in result.pipes}
    assert all(verdicts[name].startswith("deadlock; full: writer ") for name in names)
    return one, names, pids, result, process


@pytest.mark.parametrize("count", [2, 3])
def test_processes_blocked_on_each_others_pipes_are_a_deadlock(inprocess, spawn, root_only, count):
    """Each writes before it reads: one finding names every pipe, who is blocked on it and who should read it."""
    found, names, pids, result, _ = ring(spawn, count)
    assert found.severity == ("warning" if result.facts.scan.denied else "error")
    assert "; every process that could drain them is blocked itself" in found.summary
    for at, name in enumerate(names):
        writer, reader = pids[at - 1], pids[at]
        assert f"writer {writer} (" in found.summary
        assert f") is blocked on full {name}, which {reader} (" in found.summary
    assert try_next([found], "pipe-deadlock") == f"opskit pipes {' '.join(sorted(pids, key=int))} --ends --fill"
    assert found.fix.startswith(f"kill {min(map(int, pids))} ends it")
    assert inprocess("pipes", pids[0], "--fill", "--ends", "-f", "json").code == 1


def test_a_deadlock_beside_a_process_that_keeps_its_copies(spawn):
    """The process that made the pipes holds their read ends too: it is named, and the deadlock is a warning."""
    found, _, _, _, maker = ring(spawn, 2, "stays")
    assert found.severity == "warning"
    assert found.summary.startswith(f"deadlock unless {maker.pid} (")
    assert "every other process that could drain them is blocked itself" in found.summary


WAITING = {
    "a parent that waits for its child before it reads": "writer.wait()",
    "a parent that waits for any child": "os.wait()",
    "a reader of stderr to its end before stdout": """
child = subprocess.Popen(["yes"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
print(os.fstat(child.stdout.fileno()).st_ino, flush=True)
child.stderr.read()
""",
    "a process that fills a pipe of its own": """
r, w = os.pipe()
print(os.fstat(r).st_ino, flush=True)
os.write(w, b"x" * 70000)
""",
}


@pytest.mark.parametrize("code", WAITING.values(), ids=WAITING)
def test_a_reader_that_waits_for_its_writer_is_a_deadlock(staged, code):
    """It reads only after the writer has ended or written elsewhere, which the writer never does."""
    process = staged[code]
    found = settled(f"pipe:[{process.line.split()[0]}]", "deadlock")
    assert (found.code, is_failure([found])) == ("pipe-deadlock", True)
    assert "every process that could drain it is blocked itself" in found.summary


def started(code):
    """The whole program of one of them."""
    return (WRITER if "print" not in code else "import os, subprocess\n") + code


NO_DEADLOCK = {
    "it also waits for a child that will end": ("subprocess.Popen(['sleep', '600']); os.wait()", "warning"),
    "another thread is free": (
        "import threading; threading.Thread(target=time.sleep, args=(600,)).start(); writer.wait()", "warning",
    ),
    "its own signal handler may write": ("a, b = os.pipe(); os.read(a, 1)", "note"),
}  # fmt: skip


@pytest.mark.parametrize(("code", "severity"), NO_DEADLOCK.values(), ids=NO_DEADLOCK)
def test_a_wait_that_may_end_is_no_deadlock(staged, code, severity):
    """Only what no process outside can end is one."""
    found, _ = about(staged[code], "not draining")
    assert (found.code, found.severity) == ("pipe-full-writer-blocked", severity)


def test_a_writer_to_a_full_fifo_is_blocked(spawn, tmp_path):
    """The link of a FIFO's fd is its path."""
    path = tmp_path / "fifo"
    os.mkfifo(path)
    code = "import os, sys, time\nfd = os.open(sys.argv[1], os.O_RDWR)\nprint(flush=True)\n"
    reader, writer = spawn(code + "time.sleep(600)", path), spawn(code + "os.write(fd, b'x' * 70000)", path)
    found = settled(f"fifo:[{path.stat().st_ino}]", fifos=True)
    assert f"writer {writer.pid} (" in found.summary
    assert f"reader {reader.pid} (" in found.summary


def test_a_splice_that_waits_for_its_input_is_not_blocked(spawn):
    """`pv` waits for more in splice() while its output holds some bytes: that pipe is not full."""
    code = """
import ctypes, os
(a, b), (r, w) = os.pipe(), os.pipe()
os.write(w, b"hello")
print(os.fstat(r).st_ino, flush=True)
ctypes.CDLL(None).splice(a, None, w, None, ctypes.c_size_t(65536), 0)
"""
    process = spawn(code)
    with open(f"/proc/{process.pid}/syscall", encoding="ascii") as file:
        for _ in range(100):
            if file.read().split()[0] in ("275", "76"):
                break
            file.seek(0)
            time.sleep(0.02)
    result = judge(Collector(Host(ProcFS()), Request((process.pid,), processes=True, ends=True, fill=True)).look())
    assert [pipe.verdict for pipe in result.pipes if str(pipe.inode) == process.line] == [None]
