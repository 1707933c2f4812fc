"""`opskit pipes` on real processes that wait in open() of a FIFO, or for an end of file that cannot come."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time

import pytest
from nextsteps import try_next
from terminal import on_terminal

from opskit.analysis.finding import is_failure
from opskit.analysis.pipes.judge import judge
from opskit.collect.pipes import Collector, Request
from opskit.host import Host
from opskit.proc.fifo_opens import OpenCall, parse_open
from opskit.proc.fs import ProcFS
from opskit.proc.pipe_waits import parse_poll

pytestmark = pytest.mark.usefixtures("root_only")

MISSING, OPEN = "pipe-end-of-file-missing", "fifo-open-blocked"
# A bash script, as a program of its own session, and the PIDs of that session by name.
BASH = """
import subprocess, sys
process = subprocess.Popen(["bash", "-c", sys.argv[1], "x", *sys.argv[2:]], stdin=-3, stdout=-3)
print(process.pid, flush=True)
process.wait()
import time; time.sleep(600)
"""


@pytest.fixture
def bash(spawn):
    """Run a script; give a function that waits for the process of this name in its session."""

    def run(script, *arguments):
        holder = spawn(BASH, script, *arguments)

        def find(name):
            for _ in range(200):
                for entry in filter(str.isdigit, os.listdir("/proc")):
                    try:
                        with open(f"/proc/{entry}/stat", encoding="utf-8", errors="replace") as file:
                            head, _, rest = file.read().rpartition(")")
                    except (FileNotFoundError, ProcessLookupError):
                        continue
                    if head.partition("(")[2] == name and int(rest.split()[3]) == holder.pid:
                        return int(entry)
                time.sleep(0.05)
            raise AssertionError(f"no {name}")

        return find

    return run


def settled(*pids, tries=20):
    """What is said of each process, by PID; processes need a moment to block."""
    for _ in range(tries):
        ask = Request(processes=True, ends=True, fill=True, fifos=True)
        result = judge(Collector(Host(ProcFS()), ask).look())
        found = {each.entity.id: each for each in result.findings if each.entity.id in pids}
        if len(found) == len(pids):
            break
        time.sleep(0.1)
    return found, result


def ended(pid):
    """Whether a process has ended."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


# A script, its reader, and the evidence against the sleep that holds the write end.
QUIET = "it has written nothing so far and sleeps"
MISSING_ENDS = {
    "a child in the background of a pipeline": (
        "(sleep 600 & echo started) | cat", "cat", f"{QUIET}; it outlived the process that started it",
    ),
    "a child in the background of a command substitution": (
        "x=$(sleep 600 & echo started); exit", "bash", f"{QUIET}; it outlived the process that started it",
    ),
    "a sibling that inherited a pipe": ("exec 3> >(cat); sleep 600 & exec 3>&-; wait", "cat", f"{QUIET}; inherited as fd 3"),
    "a sibling that inherited a FIFO": (
        'mkfifo "$1"; cat "$1" & exec 3> "$1"; sleep 600 & exec 3>&-; wait', "cat", f"{QUIET}; inherited as fd 3",
    ),
}  # fmt: skip
ITSELF = """
import os
r, w = os.pipe()
if os.fork() == 0:
    os.write(w, b"answer"); os._exit(0)
print(flush=True)
while os.read(r, 100): pass
"""


# It polls both pipes, as subprocess.run(capture_output=True) does.
POLLS = """
import subprocess
child = subprocess.Popen(["sh", "-c", "sleep 600 & echo $!"], stdout=-1, stderr=-1)
print(child.stdout.readline().decode(), end="", flush=True)
child.communicate()
"""


def test_ends_of_file_that_cannot_come(inprocess, bash, spawn, tmp_path):
    """The sentence, the evidence, what to end, how to avoid it; the reader goes on when that is done."""
    finds = {name: bash(script, tmp_path / "fifo") for name, (script, *_) in MISSING_ENDS.items()}
    pids = {name: (find("sleep"), find(MISSING_ENDS[name][1])) for name, find in finds.items()}
    itself = spawn(ITSELF).pid
    polls = spawn(POLLS)
    found, result = settled(itself, polls.pid, *(reader for _, reader in pids.values()))
    for name, (sleep, pid) in pids.items():
        said, (_, reader, evidence) = found[pid], MISSING_ENDS[name]
        assert (said.code, said.severity) == (MISSING, "warning"), name
        sentence = f"{reader} waits for end of file, which cannot come while sleep[{sleep}] holds the write end"
        assert said.summary == sentence
        assert said.evidence == evidence
        assert said.fix.startswith(f"kill {sleep} ends the wait; to avoid it, start it with ")
        assert said.next == f"ps -o pid,ppid,lstart,args -p {sleep}"
        assert said.summary in [pipe.verdict for pipe in result.pipes]
    assert (found[itself].code, found[itself].severity) == (MISSING, "warning")
    assert found[itself].summary.endswith(
        " waits for end of file, which cannot come while it holds the write end itself"
    )
    assert (found[polls.pid].code, found[polls.pid].severity) == (MISSING, "warning")
    assert f", which cannot come while sleep[{polls.line}] holds the write end" in found[polls.pid].summary
    sleep, pid = next(iter(pids.values()))
    closer = try_next([found[pid]], "pipe-end-of-file-missing")
    shown = subprocess.run(shlex.split(closer), capture_output=True, text=True, check=True).stdout
    assert "sleep 600" in shown
    hint = f"cat[{pid}] waits for data from pipe:["
    assert hint in inprocess("pipes", pid).err
    done = inprocess("pipes", pid, "--ends", "--fill", "-f", "text")
    assert done.code == 1
    assert hint not in done.err
    assert f"warning {MISSING} ({pid}): {found[pid].summary}" in done.err
    os.kill(sleep, signal.SIGKILL)
    for _ in range(200):
        if ended(pid):
            break
        time.sleep(0.05)
    assert ended(pid)


CYCLE = """
import os, time
one, other = os.pipe(), os.pipe()
def child(reads, writes):
    pid = os.fork()
    if pid == 0:
        for fd in {*one, *other} - {reads, writes}: os.close(fd)
        os.read(reads, 1); os.write(writes, b"x")
    return pid
pids = child(one[0], other[1]), child(other[0], one[1])
for fd in (*one, *other): os.close(fd)
print(*pids, flush=True); time.sleep(600)
"""


def test_two_processes_that_wait_for_each_others_data(spawn):
    """Both read first."""
    first, second = map(int, spawn(CYCLE).line.split())
    by_pid = settled(first)[0]
    found = by_pid[first]
    assert second not in by_pid  # the same deadlock
    assert (found.code, found.severity) == ("pipe-deadlock", "warning")
    assert f"[{first}] waits for data from " in found.summary
    assert f"[{second}], which waits for " in found.summary


# A script and its reader.
HEALTHY = {
    "a loop that writes now and then": ("while true; do date; sleep 600; done | cat", "cat"),
    "a writer that writes later": ("(sleep 600; echo done) | cat", "cat"),
    "a shell that holds the input of its coprocess": ("coproc cat; sleep 600", "cat"),
    "a FIFO for commands that is open for reading and writing": ('mkfifo "$1"; exec 3<> "$1"; read line <&3', "bash"),
    "a log that is quiet": ('touch "$1"; tail -f "$1" | grep x', "grep"),
    "a copy of the output to a process": ("tail -f /dev/null | tee >(grep y) | cut -c 1", "grep"),
}


def test_readers_whose_writers_may_write_are_no_finding(bash, tmp_path):
    """What they wait for may come: nothing is said. `sleep N | cat` keeps an input open on purpose: a note."""
    pids = [bash(script, tmp_path / str(at))(reader) for at, (script, reader) in enumerate(HEALTHY.values())]
    quiet = bash("sleep 600 | cat")
    note = quiet("cat")
    found = settled(note)[0][note]
    assert (found.code, found.severity, found.fix) == (MISSING, "note", None)
    assert f"sleep[{quiet('sleep')}] holds the write end" in found.summary
    assert not is_failure([found])
    assert settled(*pids, tries=1)[0] == {}


OPENS = {
    "open": "os.open('fifo', os.O_{0})",
    "openat": "os.open('fifo', os.O_{0}, dir_fd=os.open('.', os.O_RDONLY))",
    "an absolute path": "os.open(os.getcwd() + '/fifo', os.O_{0})",
}


def test_processes_that_are_blocked_in_open_of_a_fifo(inprocess, spawn, tmp_path):
    """The FIFO's path, who waits, what to do. A reader may wait for commands: that is a note."""
    python = os.path.basename(os.path.realpath(sys.executable))
    code = "import os, sys\nos.chdir(sys.argv[1])\nprint(flush=True)\n"
    waiting = {}
    for at, (call, (mode, side, other)) in enumerate(
        (call, sides)
        for call in OPENS.values()
        for sides in (("WRONLY", "writer", "reading"), ("RDONLY", "reader", "writing"))
    ):
        place = tmp_path / str(at)
        place.mkdir()
        os.mkfifo(place / "fifo")
        waiting[spawn(code + call.format(mode), place).pid] = (place / "fifo", side, other)
    found, _ = settled(*waiting)
    for pid, (path, side, other) in waiting.items():
        said = found[pid]
        assert (said.code, said.severity) == (OPEN, "warning" if side == "writer" else "note")
        try_next([said], "fifo-open-blocked")
        assert said.summary == (
            f"{side} {python}[{pid}] is blocked in open() of the FIFO {path}: no process has it open for {other}"
        )
        if side == "writer":
            assert said.fix == f"start the program that reads it; or end the writer: kill {pid}"
    writer, reader = list(waiting)[:2]
    done = inprocess("pipes", writer, "-f", "json")
    assert (json.loads(done.out)["findings"][0]["summary"], done.code) == (found[writer].summary, 1)
    done = inprocess("pipes", reader)
    assert done.code == 0
    assert found[reader].summary in done.err


def test_on_a_terminal_the_verdict_is_on_the_first_screen(spawn, tmp_path):
    """80 x 24: the sentence, what to do and the next command; a name with an escape sequence is escaped."""
    fifo = tmp_path / "a\x1b[1mb"
    os.mkfifo(fifo)
    process = spawn("import os, sys\nprint(flush=True)\nos.open(sys.argv[1], os.O_WRONLY)", fifo)
    settled(process.pid)
    code, shown = on_terminal("pipes", str(process.pid))
    assert code == 1
    assert "\x1b[1mb" not in shown
    rows = sum(max(1, -(-len(line) // 80)) for line in shown.splitlines())
    assert rows < 24
    assert "a\\x1b[1mb: no process has it open for reading" in shown


@pytest.mark.parametrize(
    ("machine", "text", "expected"),
    [
        ("x86_64", "7 0x7ffc10 0x2 0xffffffff 0x0 0x0 0x0 0x7ffc 0x7f98", (0x7FFC10, 2)),
        ("x86_64", "7 0x7ffc10 0x2 0x3e8 0x0 0x0 0x0 0x7ffc 0x7f98", None),
        ("x86_64", "7 0x7ffc10 0x0 0xffffffff 0x0 0x0 0x0 0x7ffc 0x7f98", None),
        ("x86_64", "7 0x7ffc10 0x999 0xffffffff 0x0 0x0 0x0 0x7ffc 0x7f98", None),
        ("x86_64", "271 0x7ffc10 0x1 0x0 0x0 0x8 0x0 0x7ffc 0x7f98", (0x7FFC10, 1)),
        ("x86_64", "73 0x7ffc10 0x1 0x0 0x0 0x8 0x0 0x7ffc 0x7f98", None),
        ("aarch64", "73 0x7ffc10 0x1 0x0 0x0 0x8 0x0 0x7ffc 0x7f98", (0x7FFC10, 1)),
        ("aarch64", "7 0x7ffc10 0x1 0xffffffff 0x0 0x8 0x0 0x7ffc 0x7f98", None),
        ("x86_64", "running", None),
        ("x86_64", "7", None),
    ],
)
def test_a_poll_without_a_timeout(machine, text, expected):
    """The address and the length of its array."""
    assert parse_poll(text, machine) == expected


@pytest.mark.parametrize(
    ("machine", "text", "expected"),
    [
        ("x86_64", "257 0xffffff9c 0x5575 0x241 0x1b6 0x0 0x1 0x7ffc 0x7f98", OpenCall(None, 0x5575, 0x241, how=False)),
        ("x86_64", "257 0x5 0x5575 0x1 0x1b6 0x0 0x1 0x7ffc 0x7f98", OpenCall(5, 0x5575, 1, how=False)),
        ("x86_64", "2 0x5575 0x1 0x1b6 0x0 0x1 0x0 0x7ffc 0x7f98", OpenCall(None, 0x5575, 1, how=False)),
        ("x86_64", "85 0x5575 0x1b6 0x0 0x0 0x1 0x0 0x7ffc 0x7f98", OpenCall(None, 0x5575, 1, how=False)),
        ("x86_64", "437 0xffffff9c 0x5575 0x99 0x18 0x0 0x0 0x7ffc 0x7f98", OpenCall(None, 0x5575, 0x99, how=True)),
        ("aarch64", "56 0xffffffffffffff9c 0x5575 0x1 0x0 0x0 0x0 0x7ffc 0x7f98", OpenCall(None, 0x5575, 1, how=False)),
        ("aarch64", "2 0x5575 0x1 0x1b6 0x0 0x1 0x0 0x7ffc 0x7f98", None),
        ("x86_64", "0 0x5 0x5575 0x1 0x1b6 0x0 0x1 0x7ffc 0x7f98", None),
        ("x86_64", "running", None),
        ("x86_64", "", None),
        ("x86_64", "257 0xffffff9c zzz 0x241 0x1b6 0x0 0x1 0x7ffc 0x7f98", None),
    ],
)
def test_the_arguments_of_an_open_call(machine, text, expected):
    """Of each call that opens, on both kinds of system call tables."""
    assert parse_open(text, machine) == expected
