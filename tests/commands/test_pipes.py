"""`opskit pipes` on real processes, on captured trees, and on bad input."""

from __future__ import annotations

import json
import os
import re
import resource
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from datetime import datetime, timezone
from pathlib import Path

import psutil
import pytest
from shells import CONTAINER_ROOT
from stracing import traced
from terminal import on_terminal
from trees import Link, steady

from opskit.collect.pipes import Collector, Request
from opskit.errors import NoSuchProcess
from opskit.host import Host
from opskit.proc.fs import ProcFS

NOBODY = 65534
IDLE = "import time; time.sleep(600)"


def rows(text):
    """{name of the pipe: count} of the text form."""
    return {line[8:]: int(line[:7]) for line in text.splitlines() if re.match(r" *\d+ (pipe|fifo):", line)}


def found(inprocess, *arguments):
    """The JSON document."""
    done = inprocess("pipes", *arguments, "-f", "json")
    assert done.code == (1 if any(each["severity"] != "note" for each in json.loads(done.out)["findings"]) else 0), (
        done.err
    )
    return json.loads(done.out)


def inodes(process):
    """The pipes' inodes that a spawned process printed."""
    return [int(word) for word in process.line.split()]


HOLD = """
import os, sys, time
pairs = [os.pipe() for _ in range(int(sys.argv[1]))]
print(*(os.stat(r).st_ino for r, _ in pairs), flush=True)
time.sleep(600)
"""


def test_text_is_what_find_sort_uniq_prints(opskit, spawn):
    """The rows of a process are exactly those of find | sort | uniq -c; the last line is the total."""
    holder = spawn(HOLD, 30)
    find = f"find /proc/{holder.pid}/fd -lname 'pipe:*' -printf '%l\\n' | sort | uniq -c"
    theirs = subprocess.run(["bash", "-c", find], capture_output=True, text=True, check=True).stdout.splitlines()
    done = opskit("pipes", holder.pid)
    *ours, total = done.out.splitlines()
    assert sorted(ours) == sorted(theirs)
    counts = [int(line[:7]) for line in ours]
    assert counts == sorted(counts, reverse=True)
    assert total == f"{len(ours)} pipes using {sum(counts)} fds"
    assert opskit("pipes").out.splitlines()[-1].endswith(" fds")


def test_a_whole_machine_has_the_pipes_that_find_sees(inprocess, spawn):
    """Over all processes: every pipe of a process that stays is counted as find counts it."""
    held = inodes(spawn(HOLD, 20)) + inodes(spawn(HOLD, 5))
    find = "find /proc/[0-9]*/fd -lname 'pipe:*' -printf '%l\\n' 2>/dev/null | sort | uniq -c"
    theirs = subprocess.run(["bash", "-c", find], capture_output=True, text=True, check=False).stdout
    ours = rows(inprocess("pipes").out)
    for inode in held:
        assert ours[f"pipe:[{inode}]"] == 2
        assert f"      2 pipe:[{inode}]" in theirs.splitlines()


def test_by_process_names_the_exe_and_counts_most_first(inprocess, spawn):
    """`pipe:[N] name=fds`: a pipe shared by python (3 fds) and sleep (1 fd)."""
    code = """
import os, subprocess, time
r, w = os.pipe(); os.dup(r)
child = subprocess.Popen(["sleep", "600"], pass_fds=[w])
print(os.stat(r).st_ino, flush=True); time.sleep(600)
"""
    holder = spawn(code)
    exe = os.path.basename(os.readlink(f"/proc/{holder.pid}/exe"))
    sleep = os.path.basename(os.path.realpath(shutil.which("sleep")))
    lines = inprocess("pipes", "--by-process").out.splitlines()
    assert f"pipe:[{holder.line}] {exe}=3 {sleep}=1" in lines
    assert re.fullmatch(r"\d+ pipes using \d+ fds", lines[-1])


SHARED = """
import os, sys, time
r, w = os.pipe()
for _ in range(30):
    if os.fork() == 0: time.sleep(600)
print(os.stat(r).st_ino, flush=True); time.sleep(600)
"""


@pytest.mark.parametrize("format_", ["text", "table", "markdown"])
def test_five_holders_of_a_pipe_are_named(inprocess, spawn, format_):
    """The rest is a number, and -n 0 shows them; JSON has all."""
    holder = spawn(SHARED)
    name = f"pipe:[{holder.line}]"
    shown = {}
    for top in ((), ("-n", "0")):
        out = inprocess("pipes", holder.pid, "--ends", "-f", format_, *top).out.replace("\\", "")
        [line] = [line for line in out.splitlines() if name in line and "class" not in line.partition(name)[0]]
        shown[top] = line
    exe = os.path.basename(os.readlink(f"/proc/{holder.pid}/exe"))
    assert shown[()].count(f"{exe}[") == 5 + 5
    assert shown[()].count("… 26 more (-n 0)") == 2
    assert shown["-n", "0"].count(f"{exe}[") == 31 + 31
    assert "more" not in shown["-n", "0"]
    document = json.loads(inprocess("pipes", holder.pid, "--ends", "-f", "json").out)
    assert [len(pipe["processes"]) for pipe in document["pipes"] if str(pipe["inode"]) == holder.line] == [31]


def test_five_commands_of_a_pipe_are_named(inprocess, tree):
    """--by-process: the same rule, in the short text and beside the ends."""
    names = [f"worker{number}" for number in range(8)]
    files = {"proc/loadavg": "0.1 0.1 0.1 1/489 999\n"}
    for pid, name in enumerate(names, 10):
        files |= {f"proc/{pid}/comm": f"{name}\n", f"proc/{pid}/fd/0": Link("pipe:[7]")}
    root = tree(files)
    five = " ".join(f"{name}=1" for name in names[:5])
    for options in ([], ["--ends"]):
        line = inprocess("pipes", "--by-process", "--root", root, *options).out.splitlines()[0]
        assert line.startswith(f"pipe:[7] {five} … 3 more (-n 0)"), options
        line = inprocess("pipes", "--by-process", "--root", root, "-n", "0", *options).out.splitlines()[0]
        assert line.startswith(f"pipe:[7] {' '.join(f'{name}=1' for name in names)}"), options


def test_top_and_sort(inprocess, spawn):
    """-n cuts the rows, never the total; --sort inode is numeric."""
    holder = spawn(HOLD, 12)
    full = inprocess("pipes", holder.pid).out.splitlines()
    cut = inprocess("pipes", holder.pid, "-n", "3").out.splitlines()
    assert cut == [*full[:3], full[-1]]
    assert inprocess("pipes", holder.pid, "-n", "0").out.splitlines() == full
    numbers = [int(name[6:-1]) for name in rows(inprocess("pipes", holder.pid, "--sort", "inode").out)]
    assert numbers == sorted(numbers)


def test_fifty_pipes_of_a_hundred_threads_are_fifty(inprocess, spawn):
    """Threads share the table: nothing is counted a hundred times."""
    code = """
import os, threading, time
pairs = [os.pipe() for _ in range(50)]
for _ in range(100): threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
print(*(os.stat(r).st_ino for r, _ in pairs), flush=True); time.sleep(600)
"""
    holder = spawn(code)
    for extra in ([], ["--threads"]):
        ours = rows(inprocess("pipes", holder.pid, *extra).out)
        assert {ours[f"pipe:[{inode}]"] for inode in inodes(holder)} == {2}
        assert sum(f"pipe:[{inode}]" in ours for inode in inodes(holder)) == 50


def test_a_process_whose_main_thread_has_exited_still_shows_its_pipes(inprocess, spawn):
    """/proc/PID/fd is empty then; the table lives on in the threads."""
    code = """
import ctypes, os, threading, time
pairs = [os.pipe() for _ in range(7)]
def stay():
    time.sleep(0.3); print(*(os.stat(r).st_ino for r, _ in pairs), flush=True); time.sleep(600)
threading.Thread(target=stay).start()
ctypes.CDLL(None).pthread_exit(None)
"""
    holder = spawn(code)
    assert os.listdir(f"/proc/{holder.pid}/fd") == []
    ours = rows(inprocess("pipes").out)
    assert {ours.get(f"pipe:[{inode}]") for inode in inodes(holder)} == {2}
    ends = found(inprocess, holder.pid, "--ends", "--fill")["pipes"]
    assert {pipe["inode"] for pipe in ends} >= set(inodes(holder))
    assert {pipe["class"] for pipe in ends if pipe["inode"] in inodes(holder)} == {"self"}


def test_a_thread_with_a_table_of_its_own(inprocess, spawn, root_only):
    """unshare(CLONE_FILES): only --threads looks there."""
    code = """
import ctypes, os, threading, time
def stay():
    assert ctypes.CDLL(None).unshare(0x400) == 0
    r, w = os.pipe()
    print(os.stat(r).st_ino, flush=True); time.sleep(600)
threading.Thread(target=stay).start()
time.sleep(600)
"""
    holder = spawn(code)
    name = f"pipe:[{holder.line}]"
    assert name not in rows(inprocess("pipes", holder.pid).out)
    assert rows(inprocess("pipes", holder.pid, "--threads").out)[name] == 2
    [pipe] = [
        p
        for p in found(inprocess, holder.pid, "--threads", "--ends", "--fill")["pipes"]
        if str(p["inode"]) == holder.line
    ]
    assert pipe["class"] == "self"


def test_a_fifo_with_a_pipes_inode_number_is_no_peer(inprocess, root_only, tmp_path):
    """Device and inode distinguish them: a FIFO on a file system of its own has the inode number of a pipe."""
    reading, writing = os.pipe()
    inode = os.fstat(reading).st_ino
    fifo = _fifo_with_inode(inode, tmp_path)
    fd = os.open(fifo, os.O_RDWR)
    try:
        assert os.fstat(fd).st_ino == inode
        pipes = {
            (pipe["kind"], pipe["inode"]): pipe for pipe in found(inprocess, os.getpid(), "--fifos", "--ends")["pipes"]
        }
        assert pipes["pipe", inode]["fds"] == 2
        assert pipes["fifo", inode]["fds"] == 1
        assert pipes["fifo", inode]["path"] == str(fifo)
        assert pipes["fifo", inode]["device"] == os.fstat(fd).st_dev
        assert rows(inprocess("pipes", os.getpid()).out)[f"pipe:[{inode}]"] == 2
    finally:
        for number in (fd, reading, writing):
            os.close(number)
        subprocess.run(["umount", fifo.parent], check=True)


def _fifo_with_inode(inode, folder):
    """A FIFO of that inode number on a sparse ext4 image, which is mounted; unmount its folder afterwards."""
    if not shutil.which("debugfs"):
        pytest.skip("needs the Debian package e2fsprogs")
    image, mounted = folder / "image", folder / "mounted"
    mounted.mkdir()
    with image.open("wb") as file:
        file.truncate(max(1 << 30, inode * 8192))
    subprocess.run(
        ["mke2fs", "-q", "-F", "-t", "ext4", "-O", "^has_journal,^resize_inode", "-E", "lazy_itable_init=1,nodiscard",
         "-I", "128", "-N", str(inode + 1000), image], check=True, capture_output=True,
    )  # fmt: skip
    edits = f"seti <{inode}>\nsif <{inode}> mode 010644\nsif <{inode}> links_count 1\nln <{inode}> fifo\n"
    subprocess.run(["debugfs", "-w", "-f", "-", image], input=edits.encode(), check=True, capture_output=True)
    subprocess.run(["mount", "-o", "loop", image, mounted], check=True)
    return mounted / "fifo"


def test_names_neither_break_nor_colour_anything(inprocess, tmp_path):
    """An exe whose name has spaces, parentheses, a newline and an escape code: one line, no control character."""
    name = "ev il) (x\n\x1b[31m[bold]"
    exe = tmp_path / name
    shutil.copy(shutil.which("sleep"), exe)
    reading, writing = os.pipe()
    inode = os.fstat(reading).st_ino
    process = subprocess.Popen([exe, "600"], pass_fds=[writing])
    try:
        for format_ in ("text", "table", "markdown"):
            out = inprocess("pipes", "--by-process", "--ends", "-f", format_).out
            assert "\x1b" not in out
            [line] = [line for line in out.splitlines() if str(inode) in line]
            assert "ev il) (x\\n\\x1b" in line.replace("\\\\", "\\").replace("\\[", "[")
        [pipe] = [pipe for pipe in found(inprocess)["pipes"] if pipe["inode"] == inode]
        assert name in [process["command"] for process in pipe["processes"]]
    finally:
        process.kill()
        process.wait()
        os.close(reading)
        os.close(writing)


def test_processes_that_vanish_mid_scan(inprocess):
    """A storm of short processes: never an error, and those that vanished are counted."""
    storm = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import os\nwhile True:\n  p = os.fork()\n  if p == 0: os.pipe(); os._exit(0)\n  os.waitpid(p, 0)",
        ]
    )
    try:
        for extra in ([], ["--by-process"], ["--ends", "--fill"], ["--fifos"]):
            for _ in range(4):
                done = inprocess("pipes", *extra)
                assert done.code == 0 or "--fill" in extra, done.err  # other tests may fill pipes
                assert re.fullmatch(r"\d+ pipes( and \d+ fifos?)? using \d+ fds", done.out.splitlines()[-1])
    finally:
        storm.kill()
        storm.wait()


def test_a_user_who_sees_only_some_gets_their_number(as_nobody):
    """The coverage line goes to stderr in text, into the object in JSON."""
    done = as_nobody("pipes", "-f", "text")
    assert done.returncode == 0
    assert re.search(r"^\d+ of \d+ processes could not be read; run as root to see them$", done.stderr, re.MULTILINE)
    document = json.loads(as_nobody("pipes", "-f", "json").stdout)
    assert document["processes_denied"] > 0
    assert any("could not be read" in note for note in document["notes"])


def test_a_pid_of_another_user_is_refused_with_the_command_that_works(as_nobody, spawn):
    """Exit 2: what was asked for by its pid must be answered for."""
    holder = spawn(HOLD, 1)
    done = as_nobody("pipes", holder.pid)
    assert done.returncode == 2
    assert f"sudo opskit pipes {holder.pid}" in done.stderr
    assert "user root" in done.stderr
    assert done.stdout == ""


HIDDEN = "mount -t proc -o hidepid=2 p /proc && exec "


def with_hidepid(*words, script=HIDDEN):
    return subprocess.run(
        ["unshare", "-m", "sh", "-c", f"{script}{shlex.join(words)}"], capture_output=True, text=True, check=False
    )


def test_hidepid_hides_nothing_from_root(root_only):
    """Root is not sent to run as root."""
    done = with_hidepid(sys.executable, "-m", "opskit", "pipes")
    assert "pipes using" in done.stdout
    assert "hidepid" not in done.stderr
    done = with_hidepid(sys.executable, "-m", "opskit", "pipes", "999999999")
    assert "it may have ended; opskit pipes without a PID shows all" in done.stderr


@pytest.mark.parametrize(("option", "ids"), [("2", ("--regid", "1", "--clear-groups")), ("4", ())])
def test_hidepid_hides_processes_from_root_without_ptrace_rights(root_only, option, ids):
    """It asks for a group or for CAP_SYS_PTRACE, not for uid 0: hidden processes are counted as hidden, not as ended."""
    process = subprocess.Popen(["sleep", "600"], user=NOBODY, group=NOBODY, extra_groups=[])
    script = HIDDEN.replace("hidepid=2", f"hidepid={option}")
    shell = (*CONTAINER_ROOT, *ids, sys.executable, "-m", "opskit", "pipes")
    try:
        done = with_hidepid(*shell, script=script)
        if "mount:" in done.stderr:
            pytest.skip(f"this kernel has no hidepid={option}")
        assert re.search(r"\(hidepid\): [\d,]+ tasks run in all; root lacks CAP_SYS_PTRACE", done.stderr)
        done = with_hidepid(*shell, str(process.pid), script=script)
        assert (done.returncode, done.stdout) == (2, "")
        assert "is another user's and hidden (hidepid); root lacks CAP_SYS_PTRACE here" in done.stderr
    finally:
        process.kill()
        process.wait()


def test_hidepid_hides_nothing_from_its_group(root_only):
    """Which is root's, unless the mount names another one."""
    done = with_hidepid(*CONTAINER_ROOT, sys.executable, "-m", "opskit", "pipes")
    assert "could not be read; root lacks CAP_SYS_PTRACE here" in done.stderr
    assert "hidepid" not in done.stderr


def test_a_pid_that_may_be_hidden_is_not_said_to_have_ended(as_user):
    """With hidepid another user's process looks like none at all."""
    with tempfile.TemporaryDirectory() as directory:
        Path(directory).chmod(0o755)  # for nobody
        fs = ProcFS(f"{directory}/proc")
        host = Host(fs)
        os.makedirs(f"{fs.proc}/self")
        with open(f"{fs.proc}/self/mountinfo", "w", encoding="utf-8") as file:
            file.write(f"20 1 0:5 / {fs.proc} rw - proc proc rw,hidepid=invisible\n")

        def ask():
            with pytest.raises(NoSuchProcess, match=r"hidden \(hidepid\); run as root: sudo opskit pipes 42"):
                Collector(host, Request((42,)))

        as_user(NOBODY, ask)
        with pytest.raises(NoSuchProcess, match="it may have ended; opskit pipes without a PID shows all"):
            Collector(host, Request((42,)))


def test_fill_without_the_right_is_unknown_with_the_reason(as_nobody):
    """A process of nobody's that nobody may not attach to: the fill is unknown, and why."""
    code = (
        "import ctypes, os, time\nr, w = os.pipe()\nctypes.CDLL(None).prctl(4, 0)\nprint(flush=True)\ntime.sleep(600)"
    )
    process = subprocess.Popen(["python3", "-c", code], stdout=subprocess.PIPE, user=NOBODY, group=NOBODY, extra_groups=[], cwd="/",
                               executable=shutil.which("python3", path="/usr/bin") or sys.executable)  # fmt: skip
    try:
        if not process.stdout.readline():
            pytest.skip("no Python that nobody may run")
        done = as_nobody("pipes", process.pid, "--fill", "-f", "json")
        # undumpable: even its fds are hidden from its own user
        assert done.returncode == 2
        assert "permission denied" in done.stderr
    finally:
        process.kill()
        process.communicate()


def test_ends_classes(inprocess, spawn):
    """self, parent-child, cross-process and one-sided, each with the fds of either direction."""
    code = """
import os, subprocess, time
own = os.pipe()
family = os.pipe()
subprocess.Popen(["sleep", "600"], pass_fds=[family[0]]); os.close(family[0])
siblings = os.pipe()
inode_of_siblings = os.stat(siblings[0]).st_ino
subprocess.Popen(["sleep", "600"], pass_fds=[siblings[0]])
subprocess.Popen(["sleep", "600"], pass_fds=[siblings[1]])
os.close(siblings[0]); os.close(siblings[1])
no_writer = os.pipe(); os.close(no_writer[1])
no_reader = os.pipe(); os.close(no_reader[0])
print(os.stat(own[0]).st_ino, os.stat(family[1]).st_ino, inode_of_siblings, os.stat(no_writer[0]).st_ino,
      os.stat(no_reader[1]).st_ino, flush=True)
time.sleep(600)
"""
    holder = spawn(code)
    own, family, siblings, no_writer, no_reader = inodes(holder)
    pipes = {pipe["inode"]: pipe for pipe in found(inprocess, "--ends")["pipes"]}
    assert [pipes[n]["class"] for n in (own, family, siblings, no_writer, no_reader)] == [
        "self", "parent-child", "cross-process", "one-sided", "one-sided",
    ]  # fmt: skip
    [use] = pipes[own]["processes"]
    assert (use["pid"], use["fds"], use["read_fds"], use["write_fds"]) == (holder.pid, 2, 1, 1)
    assert {(use["read_fds"], use["write_fds"]) for use in pipes[siblings]["processes"]} == {(1, 0), (0, 1)}
    assert "end of file" in pipes[no_writer]["meaning"]
    assert "EPIPE" in pipes[no_reader]["meaning"]
    text = inprocess("pipes", holder.pid, "--ends").out
    assert re.search(
        rf"^ +2 pipe:\[{own}\] class=self read=\S+\[{holder.pid}\]:1 write=\S+\[{holder.pid}\]:1$", text, re.MULTILINE
    )


def test_a_table_begins_with_the_pipes_that_have_a_verdict(inprocess, spawn):
    """A full pipe of two fds comes before an empty one of five."""
    code = """
import os, time
full, empty = os.pipe(), os.pipe()
for _ in range(3):
    os.dup(empty[0])
os.write(full[1], bytes(65536))
print(os.stat(full[0]).st_ino, os.stat(empty[0]).st_ino, flush=True); time.sleep(600)
"""
    holder = spawn(code)
    full, empty = inodes(holder)
    lines = inprocess("pipes", holder.pid, "--ends", "--fill", "-f", "table").out.splitlines()
    order = [line.split()[1] for line in lines if re.match(r" *\d+ +pipe:", line)]
    assert order.index(f"pipe:[{full}]") < order.index(f"pipe:[{empty}]")


def test_pids_limit_the_counts_and_ends_names_the_other_side(inprocess, spawn):
    """Rows and counts cover the asked process; with --ends its peers are named all the same."""
    code = """
import os, subprocess, time
r, w = os.pipe()
child = subprocess.Popen(["sleep", "600"], pass_fds=[r]); os.close(r)
print(os.stat(w).st_ino, child.pid, flush=True); time.sleep(600)
"""
    holder = spawn(code)
    inode, child = inodes(holder)
    assert rows(inprocess("pipes", holder.pid).out)[f"pipe:[{inode}]"] == 1
    [pipe] = [pipe for pipe in found(inprocess, holder.pid, "--ends")["pipes"] if pipe["inode"] == inode]
    assert pipe["fds"] == 1
    assert {use["pid"] for use in pipe["processes"]} == {holder.pid, child}
    [alone] = [pipe for pipe in found(inprocess, holder.pid)["pipes"] if pipe["inode"] == inode]
    assert [use["pid"] for use in alone["processes"]] == [holder.pid]
    assert alone["class"] is None
    assert alone["processes"][0]["read_fds"] is None


def test_a_write_end_in_flight_is_looked_for_before_anything_is_orphaned(inprocess):
    """A write end in a socket's queue (SCM_RIGHTS) and in no fd table is reported as in flight."""
    left, right = socket.socketpair()
    reading, writing = os.pipe()
    inode = os.fstat(reading).st_ino
    socket.send_fds(left, [b"x"], [writing])
    os.close(writing)
    try:
        [pipe] = [pipe for pipe in found(inprocess, "--ends")["pipes"] if pipe["inode"] == inode]
        assert pipe["class"] == "one-sided"
        assert "in flight" in pipe["meaning"]
        assert f"sockets of {os.getpid()}" in pipe["meaning"]
    finally:
        os.close(reading)
        left.close()
        right.close()


def test_fill_and_the_verdict_on_a_full_pipe(inprocess, spawn):
    """64 KiB queued of 64 KiB, the writer asleep in write(), the reader not reading."""
    code = """
import os, subprocess, sys, time
r, w = os.pipe()
reader = subprocess.Popen(["sleep", "600"], pass_fds=[r])
writer = subprocess.Popen([sys.executable, "-c", "import os, sys\\nwhile True: os.write(int(sys.argv[1]), b'x' * 4096)", str(w)], pass_fds=[w])
inode = os.stat(r).st_ino
half = os.pipe(); os.write(half[1], b"y" * 1000)
os.close(r); os.close(w)
print(inode, reader.pid, writer.pid, os.stat(half[0]).st_ino, flush=True); time.sleep(600)
"""
    holder = spawn(code)
    inode, reader, writer, half = inodes(holder)
    for _ in range(100):
        pipes = {pipe["inode"]: pipe for pipe in found(inprocess, "--fill")["pipes"]}
        if pipes[inode]["verdict"]:
            break
        time.sleep(0.1)
    assert (pipes[inode]["queued_bytes"], pipes[inode]["capacity_bytes"]) == (65536, 65536)
    python = os.path.basename(os.readlink(f"/proc/{writer}/exe"))
    sleep = os.path.basename(os.readlink(f"/proc/{reader}/exe"))
    said = f"full: writer {writer} ({python}) is blocked, reader {reader} ({sleep}) is not draining"
    assert pipes[inode]["verdict"] == said
    assert (pipes[half]["queued_bytes"], pipes[half]["capacity_bytes"], pipes[half]["verdict"]) == (1000, 65536, None)


READERS = """
import os, sys, time
def pair(read):
    r, w = os.pipe()
    inode = os.stat(r).st_ino
    reader = os.fork()
    if reader == 0:
        os.close(w)
        while True: read(r)
    writer = os.fork()
    if writer == 0:
        os.close(r)
        while True: os.write(w, b"x" * 65536)
    os.close(r); os.close(w)
    return inode, reader, writer
def slowly(r): os.read(r, 4096); time.sleep(0.01)
def elsewhere(r, file=os.open("/etc/passwd", os.O_RDONLY)): os.pread(file, 100, 0); time.sleep(0.01)
print(*pair(slowly), *pair(elsewhere), flush=True); time.sleep(600)
"""


def test_a_slow_reader_differs_from_one_that_reads_elsewhere(inprocess, spawn):
    """What counts is what is taken out of this very pipe, not what the process reads."""
    slow, slow_reader, _, idle, idle_reader, _ = inodes(spawn(READERS))
    for _ in range(50):
        pipes = {pipe["inode"]: pipe["verdict"] or "" for pipe in found(inprocess, "--fill")["pipes"]}
        if "slowly" in pipes[slow] and "not draining" in pipes[idle]:
            break
    assert re.fullmatch(rf"full: .* is blocked, reader {slow_reader} \(.*\) drains more slowly than that", pipes[slow])
    assert re.fullmatch(rf"full: .* is blocked, reader {idle_reader} \(.*\) is not draining", pipes[idle])


def test_a_side_that_was_not_looked_at_is_named(inprocess, spawn):
    """With a PID the other side is looked at only with --ends: without, the verdict says so."""
    *_, inode, reader, writer = inodes(spawn(READERS))
    verdicts = {}
    for pid, *options in ((writer,), (reader,), (writer, "--ends"), (reader, "--ends")):
        for _ in range(50):
            [pipe] = [pipe for pipe in found(inprocess, pid, "--fill", *options)["pipes"] if pipe["inode"] == inode]
            if pipe["verdict"]:
                break
        verdicts[(pid, *options)] = pipe["verdict"]
    assert verdicts[(writer,)].endswith("is blocked; who should read was not looked at: add --ends")
    assert verdicts[(reader,)] == "full: whether a writer is blocked was not looked at: add --ends"
    assert verdicts[writer, "--ends"] == verdicts[reader, "--ends"]
    assert verdicts[reader, "--ends"].endswith("is not draining")


def test_fill_leaves_no_trace(inprocess, spawn):
    """Looking adds no reader for longer than the look: the writer still gets its EPIPE afterwards."""
    code = """
import os, signal, time
signal.signal(signal.SIGPIPE, signal.SIG_IGN)
r, w = os.pipe(); os.close(r)
print(os.stat(w).st_ino, flush=True)
input()
try: os.write(w, b"x")
except BrokenPipeError: print("EPIPE", flush=True)
time.sleep(600)
"""
    holder = spawn(code, stdin=subprocess.PIPE)
    assert inprocess("pipes", "--fill", holder.pid).code == 0
    holder.stdin.write("\n")
    holder.stdin.flush()
    assert holder.stdout.readline() == "EPIPE\n"
    holder.stdin.close()


def test_fifos_are_added_with_their_path(inprocess, spawn, tmp_path):
    """Only with --fifos, keyed by device and inode, counted apart in the total."""
    path = tmp_path / "a fifo"
    os.mkfifo(path)
    holder = spawn(
        "import os, sys, time\nfd = os.open(sys.argv[1], os.O_RDWR)\nprint(flush=True)\ntime.sleep(600)", path
    )
    assert "fifo" not in inprocess("pipes", holder.pid).out
    done = inprocess("pipes", holder.pid, "--fifos")
    assert f"      1 fifo:[{path.stat().st_ino}] {path}" in done.out.splitlines()
    assert done.out.splitlines()[-1].endswith("and 1 fifo using 2 fds")
    [fifo] = [pipe for pipe in found(inprocess, holder.pid, "--fifos")["pipes"] if pipe["kind"] == "fifo"]
    assert (fifo["path"], fifo["device"], fifo["inode"]) == (str(path), path.stat().st_dev, path.stat().st_ino)


def test_by_user_sees_the_soft_limit(inprocess, root_only):
    """A user past fs.pipe-user-pages-soft gets 8 KiB pipes; the sum of the capacities shows it."""
    with open("/proc/sys/fs/pipe-user-pages-soft", encoding="ascii") as file:
        soft = int(file.read())
    if not 0 < soft <= 16384:
        pytest.skip(f"pipe-user-pages-soft is {soft} here")
    uid = 65533
    code = (
        "import os, time\np = [os.pipe() for _ in range("
        + str(soft // 16 + 8)
        + ")]\nprint(flush=True)\ntime.sleep(600)"
    )
    python = shutil.which("python3", path="/usr/bin") or sys.executable
    process = subprocess.Popen([python, "-c", code], stdout=subprocess.PIPE, user=uid, group=uid, extra_groups=[], cwd="/",
                               preexec_fn=_many_fds)  # fmt: skip  # noqa: PLW1509
    try:
        if not process.stdout.readline():
            pytest.skip("no Python that another user may run")
        users = {user["uid"]: user for user in found(inprocess, "--by-user")["users"]}
        assert users[uid]["pipes"] == soft // 16 + 8
        assert users[uid]["new_pipes_shrunk"] == "yes"
        assert users[0]["new_pipes_shrunk"] == "exempt"
        assert users[uid]["soft_limit_bytes"] == soft * os.sysconf("SC_PAGE_SIZE")
        assert soft * 4096 <= users[uid]["capacity_bytes"] <= soft * 4096 + 8 * 8192
        text = inprocess("pipes", "--by-user", "-u", uid).out.splitlines()
        assert text[0].split() == ["USER", "PIPES", "FDS", "CAPACITY_BYTES", "SOFT_LIMIT_BYTES", "NEW_PIPES_SHRUNK"]
        assert text[1].split()[0] == str(uid)
    finally:
        process.kill()
        process.communicate()


def _many_fds():
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)


def test_user_filter(inprocess, spawn, root_only):
    """-u by name and by uid; a user that does not exist is exit 2."""
    holder = spawn(HOLD, 3)
    by_name, by_uid = found(inprocess, "-u", "root"), found(inprocess, "-u", "0")
    for document in (by_name, by_uid):
        assert set(inodes(holder)) <= {pipe["inode"] for pipe in document["pipes"]}
        users = {use["user"] for pipe in document["pipes"] for use in pipe["processes"]}
        assert users - {None} == {"root"}  # None: it ended meanwhile
    assert found(inprocess, "-u", "64321")["pipe_count"] == 0
    done = inprocess("pipes", "-u", "no-such-user")
    assert done.code == 2
    assert "no-such-user" in done.err


LEAK = """
import os, time
kept = []
print(flush=True)
while True: kept.append(os.pipe()); time.sleep(0.02)
"""


def test_watch_names_the_process_that_gains_pipes(inprocess, spawn):
    """With pid, start time and a slope a minute; the process that only holds pipes is not named."""
    leak, calm = spawn(LEAK), spawn(HOLD, 10)
    document = found(inprocess, "-w", "-i", "300ms", "-c", "4")
    gains = {gain["pid"]: gain for gain in document["gains"]}
    assert calm.pid not in gains
    gain = gains[leak.pid]
    assert gain["pipes_last"] > gain["pipes_first"]
    assert gain["pipes_per_min"] > 0
    with open(f"/proc/{leak.pid}/stat", encoding="ascii") as file:
        assert gain["start_ticks"] == int(file.read().rpartition(")")[2].split()[19])
    started = datetime.strptime(gain["started_utc"], "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=timezone.utc).timestamp()
    assert started == pytest.approx(psutil.Process(leak.pid).create_time(), abs=2)
    assert len(document["samples"]) == 4
    assert document["samples"][0]["at_s"] < document["samples"][-1]["at_s"]


def test_watch_in_text_is_a_block_a_sample(inprocess, spawn):
    """Each block ends with its total; gains follow it."""
    leak = spawn(LEAK)
    done = inprocess("pipes", "-w", "-i", "0.3", "-c", "3", leak.pid)
    assert done.code == 0
    assert len(re.findall(r"^\d+ pipes? using \d+ fds?$", done.out, re.MULTILINE)) == 3
    assert re.search(
        rf"^{leak.pid} \(\S+\) gains pipes: \d+ -> \d+, \+\d+\.\d a minute; started 20\S+Z; ", done.out, re.MULTILINE
    )


def test_a_zombie_has_ended(inprocess):
    """Its fds are closed, and its fd directory is denied even to its own user, whom sudo would not help."""
    process = subprocess.Popen(["true"])
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    done = inprocess("pipes", process.pid)
    process.wait()
    assert (done.code, done.out) == (2, "")
    assert f"it is a zombie: it has ended, and its parent {os.getpid()} has not reaped it" in done.err


def test_a_watch_goes_on_with_those_that_have_not_ended(spawn):
    """Also when one of two ends in the middle of a scan."""
    one, other = spawn(HOLD, 1), spawn(HOLD, 2)

    class Vanishing(ProcFS):
        def fd_targets(self, *parts):
            if parts == (one.pid,):
                raise ProcessLookupError
            return super().fd_targets(*parts)

    found = Collector(Host(Vanishing()), Request((one.pid, other.pid)), watch=True).look()
    assert [holder.pid for holder in found.scan.holders] == [other.pid]
    with pytest.raises(NoSuchProcess, match="it ended during the scan"):
        Collector(Host(Vanishing()), Request((one.pid,)), watch=True).look()


def test_a_dumb_terminal_gets_no_escape_codes(spawn):
    """A shell in an editor: block below block."""
    holder = spawn(HOLD, 2)
    code, out = on_terminal("pipes", str(holder.pid), "-w", "-i", "0.1", "-c", "2", env={"TERM": "dumb"})
    assert code == 0
    assert out.count("pipes using") == 2
    assert "\x1b" not in out


def test_watch_ends_with_its_target(inprocess, spawn):
    """A process that ends: what was gathered stays, a line on stderr, exit 0."""
    short = spawn("import os, time\np = os.pipe()\nprint(flush=True)\ntime.sleep(1.5)")
    done = inprocess("pipes", "-w", "-i", "0.2", "-c", "1000", short.pid)
    assert done.code == 0
    assert f"no process {short.pid}" in done.err
    assert "pipes using" in done.out


def test_ctrl_c_prints_what_was_gathered_and_exits_130():
    """JSON, which is written at the end, is written then."""
    process = subprocess.Popen(
        [sys.executable, "-m", "opskit", "pipes", "-w", "-i", "0.1", "-f", "json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    time.sleep(2)
    process.send_signal(2)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert json.loads(out)["samples"]
    assert "Traceback" not in err


def captured(tree):
    """A captured machine: apache writes to rotatelogs; a process without exe and fdinfo, whose comm has a newline."""
    files = {
        "proc/sys/kernel/hostname": "web1\n",
        "proc/loadavg": "0.1 0.1 0.1 1/489 999\n",
        "etc/passwd": "root:x:0:0::/:/bin/sh\nwww:x:33:33::/:/bin/sh\n",
    }
    for pid, name, ppid, targets in (
        (10, "/usr/sbin/apache2", 1, ["pipe:[4194986549]"] * 3 + ["pipe:[77]", "/dev/null", "socket:[5]"]),
        (11, "/usr/sbin/rotatelogs", 10, ["pipe:[4194986549]"]),
        (12, None, 1, ["pipe:[77]"]),
    ):
        comm = name.rpartition("/")[2] if name else "a) b\n\x1b[1m"
        files |= {
            f"proc/{pid}/comm": comm[:15] + "\n",
            f"proc/{pid}/stat": f"{pid} ({comm[:15]}) S {ppid} 1 1 0 -1 0 0 0 0 0 1 2 0 0 20 0 1 0 {pid}00 0 0\n",
            f"proc/{pid}/status": "Name:\tx\nUid:\t33\t33\t33\t33\nGid:\t33\t33\t33\t33\n",
        } | {f"proc/{pid}/fd/{fd}": Link(target) for fd, target in enumerate(targets)}
        if name:
            files[f"proc/{pid}/exe"] = Link(name)
            flags = "0100001" if pid == 10 else "0100000"
            files |= {f"proc/{pid}/fdinfo/{fd}": f"pos:\t0\nflags:\t{flags}\n" for fd in range(len(targets))}
    return tree(files)


@pytest.mark.parametrize("format_", ["text", "table", "json", "markdown"])
def test_a_captured_tree_in_every_format(inprocess, tree, golden, format_):
    """Whole outputs of --root on another machine's tree."""
    root = captured(tree)
    done = inprocess("pipes", "--ends", "--by-process", "--root", root, "-f", format_)
    assert done.code == 0
    golden(f"pipes-captured.{format_}", steady(done.out))


def test_a_captured_tree_by_proc_and_by_environment(opskit, tree):
    """--proc before or after the command, and HOST_PROC, mean the same."""
    proc = captured(tree) / "proc"
    expected = "      4 pipe:[4194986549]\n      2 pipe:[77]\n2 pipes using 6 fds\n"
    assert opskit("pipes", "--proc", proc, "-f", "text").out == expected
    assert opskit("--proc", proc, "pipes", "-f", "text").out == expected
    assert opskit("pipes", "-f", "text", env={"HOST_PROC": str(proc)}).out == expected
    by_process = opskit("pipes", "--proc", proc, "--by-process").out.splitlines()
    assert by_process == [
        "pipe:[4194986549] apache2=3 rotatelogs=1",
        "pipe:[77] a) b\\n\\x1b[1m=1 apache2=1",
        "2 pipes using 6 fds",
    ]


def test_fill_of_a_captured_tree_is_refused(inprocess, tree):
    """Pids there are not pids here: nothing is reached into."""
    done = inprocess("pipes", "--fill", "--proc", captured(tree) / "proc")
    assert done.code == 2
    assert "another machine or PID namespace" in done.err


def test_by_user_of_a_captured_tree_reaches_into_nobody(inprocess, tree, spawn):
    """A process here that has a captured one's pid is left alone: capacities there are unknown."""
    here = spawn("import os, time; os.pipe(); print(flush=True); time.sleep(600)")
    root = tree(
        {
            "proc/loadavg": "0.1 0.1 0.1 1/489 999\n",
            "proc/sys/fs/pipe-user-pages-soft": "16384\n",
            f"proc/{here.pid}/status": "Name:\tx\nUid:\t33\t33\t33\t33\n",
            f"proc/{here.pid}/comm": "x\n",
            **{f"proc/{here.pid}/fd/{fd}": Link("pipe:[77]") for fd in range(10)},
        }
    )
    [user] = json.loads(inprocess("pipes", "--by-user", "--root", root, "-f", "json").out)["users"]
    assert (user["pipes"], user["fds"], user["capacity_bytes"], user["new_pipes_shrunk"]) == (1, 10, None, "unknown")


def test_a_path_in_a_captured_tree_is_not_looked_up_here(inprocess, tree, tmp_path):
    """A FIFO of this machine has nothing to do with a captured path of the same name."""
    os.mkfifo(tmp_path / "queue")
    files = {"proc/loadavg": "0.1 0.1 0.1 1/489 999\n", "proc/50/comm": "x\n"}
    files |= {"proc/50/fd/3": Link(str(tmp_path / "queue")), "proc/50/fdinfo/3": "pos:\t0\nflags:\t02\nmnt_id:\t25\n"}
    files |= {
        "proc/50/ns/mnt": Link("mnt:[1]"),
        "proc/50/mountinfo": "25 1 8:1 / / rw - ext4 /dev/sda1 rw\n",
        "proc/50/fd/4": Link("pipe:[7]"),
    }
    done = inprocess("pipes", "--fifos", "--root", tree(files))
    assert done.out == "      1 pipe:[7]\n1 pipe using 1 fd\n"
    assert done.err == "FIFOs among 1 fd on files are unknown: a copy has no file types\n"


def test_a_tree_that_was_copied_half(inprocess, tree):
    """No task directories, an fd that is no link, a file in the place of a process, empty files: the rest counts."""
    files = {
        "proc/loadavg": "0.1 0.1 0.1 1/489 999\n",
        "proc/10/fd/0": Link("pipe:[1]"),
        "proc/10/fd/1": "what was behind it\n",
        "proc/10/fd/2": Link("pipe:[1]"),
        "proc/11": "",
        "proc/12/fd": "",
        **{f"proc/13/{name}": "" for name in ("stat", "status", "comm", "fdinfo/0")},
        "proc/13/fd/0": Link("pipe:[1]"),
    }
    root = tree(files)
    for options in ([], ["--threads"], ["--ends", "--threads", "--fifos"], ["--by-user"]):
        assert "1 pipe using 3 fds" in inprocess("pipes", "--root", root, *options).out, options
    assert inprocess("pipes", "--root", root, "--by-process").out.startswith("pipe:[1] ?=3\n")


def test_a_link_that_is_garbled_is_said(inprocess, tree):
    """No number is made of it."""
    done = inprocess("pipes", "--root", tree({"proc/loadavg": "", "proc/10/fd/0": Link("pipe:[x]")}))
    assert (done.code, done.out) == (2, "")
    assert done.err == "opskit: fd: a link that is no pipe:[INODE]: 'pipe:[x]'\n"


def test_a_garbled_link_of_a_thread_costs_only_its_process(inprocess, tree):
    """As one of a process does; the other processes count."""
    files = {"proc/loadavg": "", "proc/9/fd/0": Link("pipe:[1]")}
    files |= {f"proc/10/{path}fd/0": Link("pipe:[2]") for path in ("", "task/10/")}
    files |= {"proc/10/task/11/fd/0": Link("pipe:[x]")}
    done = inprocess("pipes", "--threads", "--root", tree(files))
    assert done.out.endswith("1 pipe using 1 fd\n")
    assert "links that no kernel writes: fd: a link that is no pipe:[INODE]: 'pipe:[x]'" in done.err


def test_an_fd_on_a_path_longer_than_the_kernel_tells(inprocess, spawn, tmp_path):
    """readlink() fails with ENAMETOOLONG; the pipes of the process are listed all the same, for every user."""
    holder = spawn(
        "import os, sys, time\n"
        "os.chdir(sys.argv[1])\n"
        "for _ in range(30):\n"
        "    os.mkdir('d' * 200); os.chdir('d' * 200)\n"
        "deep = open('x', 'w'); os.pipe()\n"
        "print(flush=True); time.sleep(600)",
        tmp_path,
    )
    with pytest.raises(OSError, match="too long"):
        [os.readlink(f"/proc/{holder.pid}/fd/{fd}") for fd in os.listdir(f"/proc/{holder.pid}/fd")]
    for options in ([], ["--ends"], ["--fifos"], ["--fill", "--threads"]):
        assert inprocess("pipes", holder.pid, *options).out.splitlines()[-1] == "2 pipes using 3 fds", options
    subprocess.run(["rm", "-r", tmp_path / ("d" * 200)], check=True)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["999999999"], "no process 999999999"),
        (["x1"], "'x1' is not a PID"),
        (["0"], "'0' is not a PID"),
        (["-c", "3"], "-c/--count goes with -w"),
        (["-i", "3"], "-i/--interval goes with -w"),
        (["-w", "-i", "0"], "'0' is not a duration"),
        (["-w", "-i", "soon"], "'soon' is not a duration"),
        (["-w", "-c", "0"], "0 is not in the range"),
        (["-n", "-1"], "-1 is not in the range"),
        (["--by-user", "--by-process"], "exclude each other"),
        (["-o", "json"], "did you mean -f json?"),
        (["-o", "/no/such/directory/x.json"], "/no/such/directory"),
        (["-o", "/"], "it is a directory"),
        (["-o", "x.exe"], "unknown suffix '.exe'"),
        (["-f", "svg"], "'svg' is not one of"),
        (["--proc", "/usr"], "/usr: no proc tree"),
        (["--proc", "/no/such/tree"], "/no/such/tree: no proc tree"),
        (["--root", "/usr"], "/usr/proc: no proc tree"),
    ],
)
def test_bad_input_is_one_clear_line_and_exit_2(inprocess, arguments, said):
    """The place, what was found, what to do; nothing on stdout."""
    done = inprocess("pipes", *arguments)
    assert done.code == 2
    assert said in done.err
    assert done.out == ""


def test_an_unwritable_output_is_found_before_the_work(as_nobody, tmp_path):
    """No permission: exit 2, and nothing is left there."""
    done = as_nobody("pipes", "-o", "/opskit-test.json")
    assert done.returncode == 2
    assert "cannot write /opskit-test.json" in done.stderr
    assert not os.path.exists("/opskit-test.json")


def test_output_takes_its_format_from_the_suffix_and_is_whole(inprocess, tmp_path):
    """x.json is JSON, x.md is Markdown; the file's mode stays; no leftovers beside it."""
    target = tmp_path / "x.json"
    target.write_text("old")
    target.chmod(0o640)
    done = inprocess("pipes", "-o", target)
    assert (done.code, done.out) == (0, "")
    assert json.loads(target.read_text())["pipe_count"] > 0
    assert target.stat().st_mode & 0o777 == 0o640
    inprocess("pipes", "-o", tmp_path / "x.md")
    assert "| fds | pipe |" in (tmp_path / "x.md").read_text()
    inprocess("pipes", "-f", "json", "-o", tmp_path / "y.txt")
    json.loads((tmp_path / "y.txt").read_text())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.json", "x.md", "y.txt"]
    assert json.loads(inprocess("pipes", "-f", "json", "-o", "-").out)


def test_it_only_reads(spawn):
    """The page's safety table against strace: no file is opened for writing, no process is signalled."""
    spawn(HOLD, 3)
    done = traced("pipes", "--ends", "--fifos", "--threads")
    assert done.code in (0, 1)  # 1: some process of this machine is blocked
    assert done.acting() == []
