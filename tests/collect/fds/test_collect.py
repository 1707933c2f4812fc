"""The file descriptors of real processes by kind and place; processes that end, that are others', that are copies."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from ownmounts import own_mounts
from trees import Link

from opskit.collect.fds import groups as grouping
from opskit.collect.fds.collect import Collector
from opskit.collect.fds.facts import Request
from opskit.errors import NoSuchProcess, NotPermitted, NotSupported
from opskit.host import Host
from opskit.proc.fs import ProcFS

KINDS = """
import os, select, socket, sys, tempfile, time
kept = []
os.set_inheritable(1, True)
listener = socket.create_server(("127.0.0.1", 0)); port = listener.getsockname()[1]
for number in range(9):
    client = socket.create_connection(("127.0.0.1", port)); accepted, _ = listener.accept()
    kept += [client, accepted]
    if number < 4: accepted.close()
kept += [*socket.socketpair(), socket.socket(), select.epoll()]
for _ in range(3): kept.append(os.pipe())
os.memfd_create("pool"); os.eventfd(0)
where = sys.argv[1]
for number in range(6): kept.append(open(f"{where}/log.{number}", "w"))
os.unlink(f"{where}/log.5")
kept.append(open(f"{where}/odd (deleted)", "w"))
os.mkfifo(f"{where}/fifo"); os.open(f"{where}/fifo", os.O_RDWR)
os.mkdir(f"{where}/sub"); os.open(f"{where}/sub", os.O_RDONLY)
os.open("/dev/null", os.O_RDONLY); os.open("/proc/self/stat", os.O_RDONLY); os.open("/proc/1/stat", os.O_RDONLY)
print(port, flush=True)
time.sleep(600)
"""


def look(pid, fs=None, **ask):
    return Collector(Host(fs or ProcFS()), Request(pid, **ask)).look()


def counts(facts):
    """{(kind, detail): fds}."""
    return {(group.kind, group.detail): group.fds for group in facts.groups}


@pytest.mark.skipif(not hasattr(os, "eventfd"), reason="Python 3.9 has no eventfd")
def test_every_kind_in_its_place(spawn, tmp_path):
    """Connections by state and peer, files by directory, the rest by kind; all fds are in one group each."""
    before = time.time()
    process = spawn(KINDS, tmp_path, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    facts = look(process.pid)
    port = process.line
    assert counts(facts) == {
        ("tcp", f"LISTEN on 127.0.0.1:{port}"): 1,
        ("tcp", f"CLOSE_WAIT to 127.0.0.1:{port}"): 4,
        ("tcp", f"ESTAB to 127.0.0.1:{port}"): 5,
        ("tcp", f"ESTAB from 127.0.0.1 to port {port}"): 5,
        ("tcp", "neither connected nor bound, or of another network namespace"): 1,
        ("unix", "stream"): 2,
        ("epoll", ""): 1,
        ("eventfd", ""): 1,
        ("pipe", ""): 7,
        ("memfd", "pool"): 1,
        ("file", str(tmp_path)): 6,
        ("deleted", str(tmp_path)): 1,
        ("fifo", f"{tmp_path}/fifo"): 1,
        ("directory", f"{tmp_path}/sub"): 1,
        ("device", "/dev/null"): 3,
        ("file", "/proc/PID"): 2,
    }
    assert facts.fds == len(os.listdir(f"/proc/{process.pid}/fd")) == sum(group.fds for group in facts.groups)
    assert facts.open.taken == facts.fds
    assert (facts.missing, facts.is_jvm) == ((), False)
    by_key = {(group.kind, group.detail): group for group in facts.groups}
    listener = by_key["tcp", f"LISTEN on 127.0.0.1:{port}"]
    assert listener.example == os.readlink(f"/proc/{process.pid}/fd/{listener.lowest}")
    pipes = by_key["pipe", ""]
    assert [pipes.lowest, pipes.highest] == [
        min(of_kind := [fd for fd in fds_of(process.pid) if "pipe:" in os.readlink(f"/proc/{process.pid}/fd/{fd}")]),
        max(of_kind),
    ]
    memfd = by_key["memfd", "pool"]
    assert before - 1 < memfd.oldest_s == memfd.newest_s < time.time()
    assert before - 1 < by_key["file", str(tmp_path)].oldest_s < time.time()
    assert by_key["file", "/proc/PID"].oldest_s is None


def fds_of(pid):
    return [int(fd) for fd in os.listdir(f"/proc/{pid}/fd")]


def test_files_that_are_older_than_the_process_have_no_age(spawn):
    """When /etc/passwd was made says nothing about when it was opened."""
    process = spawn("import os, time\nos.open('/etc/passwd', 0)\nprint()\ntime.sleep(600)")
    [passwd] = [group for group in look(process.pid).groups if group.detail == "/etc"]
    assert (passwd.oldest_s, passwd.newest_s) == (None, None)


PIPES = """
import os, time
for _ in range(3000): os.pipe()
time.sleep(1.2)
last = os.pipe(); os.write(last[1], b'x'); os.read(last[0], 1)
print(time.time(), flush=True); time.sleep(600)
"""


def test_the_oldest_and_newest_of_many_pipes(spawn):
    """Numbers go up in blocks: few of them are looked at. Before Linux 6.15 a pipe does not tell."""
    process = spawn(PIPES)
    [pipes] = [group for group in look(process.pid).groups if group.kind == "pipe"]
    if tuple(int(word) for word in os.uname().release.split("-")[0].split(".")[:2]) < (6, 15):
        assert (pipes.oldest_s, pipes.newest_s) == (None, None)
        return
    made = [os.stat(f"/proc/{process.pid}/fd/{fd}").st_ctime for fd in fds_of(process.pid) if fd > 2]
    assert pipes.newest_s == pytest.approx(max(made), abs=1e-3)
    assert pipes.newest_s - min(made) > 1.1
    assert pipes.oldest_s <= min(made)
    assert abs(pipes.newest_s - float(process.line)) < 0.5


MANY_FILES = """
import os, sys, time
for number in range(300): os.open(f"{sys.argv[1]}/{number:03}", os.O_CREAT | os.O_WRONLY)
if "fifo" in sys.argv: os.mkfifo(f"{sys.argv[1]}/zz"); [os.open(f"{sys.argv[1]}/zz", os.O_RDWR) for _ in range(20)]
if "linked" in sys.argv: [(os.link(f"{sys.argv[1]}/{n:03}", f"{sys.argv[1]}/still{n}"), os.unlink(f"{sys.argv[1]}/{n:03}")) for n in range(5, 300)]
for number in range(5): os.unlink(f"{sys.argv[1]}/{number:03}")
print(); time.sleep(600)
"""


def test_a_directory_with_many_open_files(spawn, tmp_path):
    """Some are looked at. All of them are where one of these is not what its name says: a FIFO, or a file with another name left."""
    process = spawn(MANY_FILES, tmp_path)
    found = counts(look(process.pid))
    assert (found["file", str(tmp_path)], found["deleted", str(tmp_path)]) == (295, 5)
    mixed = tmp_path / "mixed"
    mixed.mkdir()
    process = spawn(MANY_FILES, mixed, "fifo")
    found = counts(look(process.pid))
    assert (found["file", str(mixed)], found["deleted", str(mixed)]) == (295, 5)
    assert found["fifo", f"{mixed}/zz"] == 20
    linked = tmp_path / "linked"
    linked.mkdir()
    process = spawn(MANY_FILES, linked, "linked")
    found = counts(look(process.pid))
    assert (found["file", str(linked)], found["deleted", str(linked)]) == (295, 5)


def test_more_files_than_are_looked_at(monkeypatch, spawn, tmp_path):
    """Their names tell their kinds, and the answer says why nobody looked."""
    monkeypatch.setattr(grouping, "_MOST_LOOKED_AT", 50)
    facts = look(spawn(MANY_FILES, tmp_path).pid)
    assert counts(facts)["deleted", str(tmp_path)] == 5
    [line] = [line for line in facts.missing if "open file" in line]
    assert line.startswith("not looked at, since there are too many: ")
    assert not [line for line in facts.missing if "may hang" in line]


ASKED = """
from opskit.collect.fds.collect import Collector
from opskit.collect.fds.facts import Request
from opskit.host import Host
facts = Collector(Host.at(None, None), Request({pid})).look()
for group in facts.groups: print(group.kind, group.detail, group.oldest_s, group.newest_s)
print(facts.missing)
"""


CHROOTED = (
    """
import os, subprocess, sys, time
empty = f"{sys.argv[1]}/empty"
os.mkdir(empty)
subprocess.run(["mount", "-t", "tmpfs", "none", empty], check=True)
asked = os.fork()
if not asked:
    os.open(f"{sys.argv[1]}/x", os.O_CREAT | os.O_WRONLY)
    os.chroot(empty)
    os.mkdir("/ready")
    time.sleep(600)
while not os.path.exists(f"{empty}/ready"): time.sleep(0.01)
try:
    sys.path.insert(0, sys.argv[2])
"""
    + "".join(f"    {line}\n" for line in ASKED.replace("{pid}", "asked").splitlines())
    + """
finally: os.kill(asked, 9)
"""
)


def test_a_process_after_chroot(root_only, tmp_path):
    """What it opened before is on mounts that its own mountinfo leaves out; ours has them."""
    done = subprocess.run(
        [sys.executable, "-c", CHROOTED, tmp_path, Path(__file__).parents[3]],
        capture_output=True, text=True, timeout=20, check=True, preexec_fn=unshare_mounts,
    )  # fmt: skip
    assert f"file {tmp_path} " in done.stdout
    assert "not looked at" not in done.stdout


def test_a_detached_mount_is_not_looked_at(root_only, tmp_path):
    """It may be a network file system whose server is gone: the path tells the kind, and the answer says so."""
    code = f"import os, time; os.open('{tmp_path}/m/x', os.O_CREAT | os.O_WRONLY); os.close(1); os.close(2); time.sleep(60)"
    script = f'mkdir {tmp_path}/m; mount -t tmpfs none {tmp_path}/m; {sys.executable} -c "{code}" & while ! test -e {tmp_path}/m/x; do sleep 0.05; done; umount -l {tmp_path}/m; echo $! >{tmp_path}/pid'
    with own_mounts(script):
        pid = int((tmp_path / "pid").read_text())
        try:
            facts = look(pid)
            assert any("not looked at" in line and "1 fd " in line for line in facts.missing), facts
            assert [group.detail for group in facts.groups if group.example.endswith("/x")] == ["/"]
        finally:
            os.kill(pid, 9)


SILENT = """
import os, subprocess, sys, time
sys.path.insert(0, sys.argv[2])
from silentfuse import SilentFuse
there = f"{sys.argv[1]}/remote"
os.mkdir(there)
try: remote = SilentFuse(there)
except OSError: print("none"); sys.exit()
beside = os.open(f"{sys.argv[1]}/local", os.O_CREAT | os.O_RDWR), os.open(there, os.O_RDONLY)
held = os.open(f"{there}/file", os.O_CREAT | os.O_RDWR)
os.close(os.dup(held))  # it learns that there is no flush(), for which the end of this process would wait
remote.silent.set()
print(held); time.sleep(600)
"""


def test_a_file_server_that_does_not_answer_is_not_asked(root_only, spawn, tmp_path):
    """Neither what a file is, nor when it was made: both would wait for ever. Its mount point is in a directory with local files."""
    process = spawn(SILENT, tmp_path, Path(__file__).parents[2] / "support", preexec_fn=unshare_mounts)
    if process.line == "none":
        pytest.skip("cannot mount a FUSE file system")
    code = f"import sys; sys.path.insert(0, {str(Path(__file__).parents[3])!r})\n" + ASKED.format(pid=process.pid)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=20, check=True)
    assert "2 fds on network file systems or detached mounts" in done.stdout
    assert f"file {tmp_path}/remote None None" in done.stdout.splitlines()


def unshare_mounts():
    """In a child: a private mount namespace, which ends with it."""
    from opskit.proc.kernel.syscalls import enter_private_mounts

    enter_private_mounts()


def test_clients_beyond_the_largest_share_a_group(monkeypatch, spawn):
    """A port has groups for few hosts, and these stay the same for all looks."""
    monkeypatch.setattr(grouping, "_MOST_CLIENTS", 2)
    code = """
import socket, sys, time
listener = socket.create_server(("", 0)); port = listener.getsockname()[1]; kept = []
def connect(host, times):
    for _ in range(times):
        client = socket.socket(); client.bind((host, 0)); client.connect(("127.0.0.1", port)); client_end, _ = listener.accept()
        kept.extend((client, client_end))
connect("127.0.0.5", 3); connect("127.0.0.6", 2); connect("127.0.0.7", 1); connect("127.0.0.8", 1)
print(port, flush=True); sys.stdin.readline()
connect("127.0.0.9", 20); print(flush=True); time.sleep(600)
"""
    process = spawn(code, stdin=subprocess.PIPE)
    collector = Collector(Host(ProcFS()), Request(process.pid), True)

    def inbound():
        found = counts(collector.look())
        return {detail.split()[2]: fds for (_, detail), fds in found.items() if detail.startswith("ESTAB from")}

    assert inbound() == {"127.0.0.5": 3, "127.0.0.6": 2, "other": 2}
    process.stdin.write("\n")
    process.stdin.flush()
    process.stdout.readline()
    assert inbound() == {"127.0.0.5": 3, "127.0.0.6": 2, "other": 22}


def test_a_bounded_number_of_groups(monkeypatch, spawn, tmp_path):
    """The largest keep their names, the others are together by kind; nothing is lost."""
    monkeypatch.setattr(grouping, "_MOST_GROUPS", 4)
    code = """
import os, sys, time
for number in range(40):
    os.mkdir(f"{sys.argv[1]}/{number}")
    for each in range(2 if number == 30 else 1): os.open(f"{sys.argv[1]}/{number}/{each}", os.O_CREAT | os.O_WRONLY)
print(); time.sleep(600)
"""
    process = spawn(code, tmp_path, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    facts = look(process.pid)
    assert facts.fds == 44
    found = counts(facts)
    assert found["file", f"{tmp_path}/30"] == 2
    assert sum(fds for (kind, _), fds in found.items() if kind == "file") == 41
    assert found["file", "elsewhere"] >= 36


def test_a_process_in_its_own_network_namespace(root_only):
    """Its sockets are those of its namespace."""
    code = "import socket, time; s = socket.create_server(('127.0.0.1', 0)); c = socket.create_connection(s.getsockname()); print(s.getsockname()[1], flush=True); time.sleep(600)"
    process = subprocess.Popen(
        ["unshare", "-n", "sh", "-c", f'ip link set lo up; exec {sys.executable} -c "{code}"'],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        port = process.stdout.readline().strip()
        if not port:
            pytest.skip("cannot make a network namespace")
        assert counts(look(process.pid))["tcp", f"ESTAB to 127.0.0.1:{port}"] == 1
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def test_processes_that_cannot_be_asked(spawn, as_user):
    """No such process, a thread, a zombie, another user's, one that ends under a watch."""
    with pytest.raises(NoSuchProcess):
        look(2**22 + 1)
    process = spawn(
        "import threading, time\nthreading.Thread(target=time.sleep, args=(600,)).start()\nprint(threading.get_native_id())\ntime.sleep(600)"
    )
    thread = next(int(tid) for tid in os.listdir(f"/proc/{process.pid}/task") if tid != str(process.pid))
    with pytest.raises(NotSupported, match=f"is a thread of process {process.pid}: give {process.pid}"):
        look(thread)
    zombie = spawn(
        "import os, sys, time\nchild = os.fork()\nif not child: os._exit(0)\ntime.sleep(0.2)\nprint(child)\ntime.sleep(600)"
    )
    with pytest.raises(NoSuchProcess, match="zombie"):
        look(int(zombie.line))
    with pytest.raises(NotPermitted, match=f"cannot read the file descriptors of {process.pid} "):
        as_user(65534, lambda: look(process.pid))
    collector = Collector(Host(ProcFS()), Request(process.pid), True)
    assert collector.look().at_s >= 0
    process.kill()
    process.wait()
    with pytest.raises(NoSuchProcess):
        collector.look()


def test_an_unprivileged_user_sees_its_own(as_user):
    """All that is asked of its own process is open to it."""
    found = as_user(65534, lambda: counts(look(os.getpid())))
    assert found["pipe", ""] >= 1


def test_a_process_whose_main_thread_has_exited(spawn):
    """The table is a thread's, and the answer says so."""
    code = """
import ctypes, os, threading, time
def stay():
    time.sleep(0.3); print(threading.get_native_id(), flush=True); time.sleep(600)
os.memfd_create("left")
threading.Thread(target=stay).start()
ctypes.CDLL(None).pthread_exit(None)
"""
    process = spawn(code)
    facts = look(process.pid)
    assert counts(facts)["memfd", "left"] == 1
    assert facts.missing == (f"the main thread has exited: these are the file descriptors of thread {process.line}",)


def test_a_copy(tree):
    """By paths alone; sockets by the copied files, of one that is not there nothing is known. Numbers in their order."""
    tcp = (
        "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
        "   0: 0100007F:C000 0900000A:01BB 08 00000000:00000000 00:00000000 00000000  1000        0 81 1 0 100\n"
    )
    root = tree(
        {
            "proc/loadavg": "0 0 0 1/2 3\n", "proc/7/status": "Name:\tx\nTgid:\t7\nUid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\n",
            "proc/7/stat": "7 (x) S 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 100 0 0 0\n", "proc/7/net/tcp": tcp,
            "proc/7/fd/10": Link("socket:[81]"), "proc/7/fd/9": Link("socket:[82]"), "proc/7/fd/0": Link("/dev/null"),
            "proc/7/fd/2": Link("/var/log/x (deleted)"), "proc/7/fd/1": Link("/var/log/y"), "proc/7/fd/3": Link("pipe:[4]"),
            "proc/8/status": "Name:\ty\nTgid:\t8\nUid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\n",
            "proc/8/stat": "8 (y) S 1 8 8 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 100 0 0 0\n",
        }
    )  # fmt: skip
    host = Host.at(str(root), None)
    facts = Collector(host, Request(7)).look()
    assert counts(facts) == {
        ("tcp", "CLOSE_WAIT to 10.0.0.9:443"): 1, ("socket", ""): 1, ("device", "/dev/null"): 1, ("deleted", "/var/log"): 1,
        ("file", "/var/log"): 1, ("pipe", ""): 1,
    }  # fmt: skip
    assert facts.open is None
    assert facts.missing == (
        "the kinds of 3 fds on files are told by their paths: a copy has no file types",
        "the states and peers of 1 socket are unknown",
    )
    with pytest.raises(NotSupported, match="not in this copy"):
        Collector(host, Request(8)).look()
