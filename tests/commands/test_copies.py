"""Every command on a copy of this machine's /proc: it neither invents, nor denies what the copy cannot tell, nor crashes."""

from __future__ import annotations

import json
import os
import shutil
import socket
import stat
import subprocess
import sys

import pytest
from copies import PROCESS_FILES, THREAD_FILES, copy_hsperfdata, copy_machine
from trees import Link

from opskit.cli import run
from opskit.proc import treefs

HOLD = "import os, time; held = [os.pipe() for _ in range(20)]; print(os.getppid(), flush=True); time.sleep(600)"
EMPTY = (*PROCESS_FILES, *THREAD_FILES, "fdinfo")


@pytest.fixture
def machine(tmp_path, workload, spawn):
    """A function that copies a JVM, a holder of pipes and these tests; gives (ROOT, the JVM's pid, the holder's pid)."""
    jvm, holder = workload("sleep=2", "gc=50"), spawn(HOLD)

    def copy(*, counters=True, **options):
        root = copy_machine(tmp_path / "copy", [os.getpid(), jvm.pid, holder.pid], **options)
        if counters:
            copy_hsperfdata(root, jvm.pid)
        return root, jvm.pid, holder.pid

    return copy


def test_what_a_whole_copy_tells(inprocess, machine):
    """Pipes, limits, dentries, JVMs with their counters: what was so when it was copied."""
    root, jvm, holder = machine()
    done = inprocess("pipes", holder, "--root", root)
    assert (done.code, done.out.splitlines()[-1], done.err) == (0, "21 pipes using 41 fds", "")
    done = inprocess("jvms", "-f", "json", "--root", root)
    [row] = json.loads(done.out)["jvms"]
    assert (row["pid"], row["main"], row["attach"]) == (jvm, "Workload", None)
    assert row["heap_used_bytes"] > 0
    assert row["user"] == "root" if os.getuid() == 0 else row["user"]
    for pid in (jvm, holder):
        found = json.loads(inprocess("limits", pid, "-f", "json", "--root", root).out)
        assert found["threads_left"] > 0
        assert found["open_files"]["in_use"] == len(os.listdir(f"{root}/proc/{pid}/fd"))
    assert inprocess("dentry", "--root", root).code == 0


def test_hsperf_check_invents_nothing_of_a_copy(inprocess, machine):
    """No socket, another inode, owner, mode and time: all that is the copy's, and not the JVM's."""
    root, jvm, _ = machine()
    counters = next((root / "tmp").glob("hsperfdata_*/*"))
    counters.chmod(0o666)
    (root / "tmp").chmod(0o700)
    shutil.copy(counters, counters.with_name("99999"))  # of a process that was not copied
    (root / "tmp" / f".attach_pid{jvm}").touch()
    for words in ((), (jvm,)):
        done = inprocess("hsperf-check", *words, "-f", "json", "--root", root)
        document = json.loads(done.out)
        assert (done.code, document["findings"]) == (0, [])
        [row] = document["jvms"]
        assert {client["works"] for client in row["clients"]} == {None}
        assert any("is a copy: sockets, owners, modes and inodes" in note for note in document["notes"])
    assert "1 JVM: nothing found in the files of this copy" in inprocess("hsperf-check", "--root", root).out
    done = inprocess("hsperf-check", 99999, "--root", root)
    assert (done.code, done.out) == (2, "")
    assert "it is not in this copy" in done.err


@pytest.mark.parametrize(
    "words",
    [
        ("pipes", "-w", "-c", "2", "-i", "10ms"),
        ("limits", "{jvm}", "-w", "-c", "2", "-i", "10ms"),
        ("fds", "{jvm}", "-w", "-c", "2", "-i", "10ms"),
        ("tcp", "-w", "-c", "2", "-i", "10ms"),
        ("tcp", "{jvm}", "-i", "10ms"),
        ("cswitch", "{jvm}"),
        ("cswitch", "-w", "-c", "2", "-i", "10ms"),
        ("cswitch", "--bench"),
        ("io",),
        ("io", "{jvm}"),
        ("irqs",),
        ("irqs", "-w", "-c", "2", "-i", "10ms"),
        ("dentry", "-w", "-c", "2", "-i", "10ms"),
        ("jvms", "-w", "-c", "2", "-i", "10ms"),
        ("jmx", "{jvm}", "-w", "-c", "2", "-i", "10ms"),
        ("jmx", "{jvm}", "-i", "10ms"),
        ("safepoints", "{jvm}", "-c", "1", "-i", "10ms"),
        ("safepoints",),
    ],
)
def test_a_copy_has_no_rates(inprocess, machine, words):
    """A counter that does not move would say "never stopped", "nothing grows"."""
    root, jvm, _ = machine()
    done = inprocess(*(word.format(jvm=jvm) for word in words), "--root", root)
    assert (done.code, done.out) == (2, "")
    assert f"{root}/proc is a copy, which has no rates" in done.err
    assert done.err.count("\n") == 1


@pytest.mark.parametrize("words", [("jpmp", "{jvm}"), ("jmap-diff", "{jvm}"), ("hsperf-check", "--probe"), ("pipes", "--fill"),
                                   ("fds", "{jvm}", "--ask"), ("cswitch", "{jvm}", "--ask"), ("io", "{jvm}", "--ask"), ("jmx", "{jvm}", "--ask"), ("jmx", "{jvm}", "--agent", "--yes", "*:*"), ("jmx", "{jvm}", "--jolokia", "auto"), ("limits", "{jvm}", "--probe", "--yes"), ("dentry", "--drop", "--yes")])  # fmt: skip
def test_nothing_acts_on_a_copy(inprocess, machine, words):
    """A pid in a copy may be anybody's here, also where the copy's `self` names us."""
    root, jvm, _ = machine()
    (root / "proc/self").symlink_to("/proc/self")
    done = inprocess(*(word.format(jvm=jvm) for word in words), "--root", root)
    assert (done.code, done.out) == (2, "")
    assert f"opskit: {root}/proc is " in done.err


def test_this_shell_is_in_no_copy(inprocess, machine):
    """The copy's `self` is who copied it."""
    root, _, _ = machine()
    (root / "proc/self").symlink_to(str(os.getpid()))
    done = inprocess("limits", "--root", root)
    assert (done.code, done.out) == (2, "")
    assert "has no process of ours: name a PID" in done.err


def test_a_copy_without_fds(inprocess, machine):
    """Nobody is said to use no pipe; the limits go on without the open files."""
    root, jvm, holder = machine(without=("fd", "fdinfo"))
    for words in ((), (holder,), ("--ends",), ("--by-user",), ("-u", "root"), ("--fifos", "--threads")):
        done = inprocess("pipes", *words, "--root", root)
        assert (done.code, done.out) == (2, ""), words
        assert "is a copy without file descriptors; copy the links" in done.err
    found = json.loads(inprocess("limits", jvm, "--all", "-f", "json", "--root", root).out)
    assert found["open_files"]["in_use"] is None
    assert inprocess("jvms", "--root", root).code == 0


def test_a_copy_with_the_fds_of_some(inprocess, machine):
    """Those without are counted, and asked for by its pid one of them is an error."""
    root, jvm, holder = machine()
    shutil.rmtree(root / f"proc/{jvm}/fd")
    done = inprocess("pipes", "--root", root)
    assert done.code == 0
    assert done.err == "1 of 3 processes could not be read; this copy does not hold their files\n"
    done = inprocess("pipes", jvm, holder, "--root", root)
    assert (done.code, done.out) == (2, "")
    assert f"proc/{jvm}/fd is not in this copy: the pipes of {jvm} are unknown" in done.err


def test_a_copy_without_maps(inprocess, machine):
    """The command line and the threads' names tell a JVM; the others are unknown, and none is said to be there only if all are."""
    root, jvm, holder = machine(without=("maps", "smaps"), counters=False)
    done = inprocess("jvms", "-f", "json", "--root", root)
    document = json.loads(done.out)
    assert [row["pid"] for row in document["jvms"]] == [jvm]
    assert document["jvms"][0]["heap_used_bytes"] is None
    assert any("2 of 3 processes could not be read" in note for note in document["notes"])
    assert "is a JVM is unknown" in inprocess("jvms", holder, "--root", root).err
    found = json.loads(inprocess("limits", holder, "-f", "json", "--root", root).out)
    [maps] = [limit for limit in found["limits"] if limit["name"] == "vm.max_map_count"]
    assert maps["state"] == "unknown"


@pytest.mark.parametrize("options", [{"empty": EMPTY}, {"without": ("maps", "cmdline", "comm", "task")}])
def test_a_copy_that_tells_of_no_process_what_it_is(inprocess, machine, options):
    """As tar copies it, with every file empty, or without what shows a JVM: exit 2, and one line."""
    root, jvm, _ = machine(**options, counters=False)
    for words in (("jvms",), ("hsperf-check",), ("jvms", jvm), ("hsperf-check", jvm)):
        done = inprocess(*words, "--root", root)
        assert (done.code, done.out) == (2, ""), words
        assert done.err.count("\n") == 1
    assert "is a copy without maps" in inprocess("jvms", "--root", root).err
    assert inprocess("pipes", "--root", root).code == 0  # links are not empty
    if "empty" in options:
        done = inprocess("limits", jvm, "--root", root)
        assert (done.code, done.out) == (2, "")
        assert f"{root}/proc/{jvm}/stat: cut short" in done.err


def test_counters_without_maps_are_found_by_what_they_say(inprocess, machine):
    """The file's owner and inode are the copy's; that it began after the process did is the JVM's."""
    root, jvm, _ = machine(without=("maps", "smaps"))
    [row] = json.loads(inprocess("jvms", "-f", "json", "--root", root).out)["jvms"]
    assert (row["pid"], row["heap_used_bytes"] is not None) == (jvm, True)


HOSTILE_TEXT = {
    "empty": "",
    "one long word": "9" * 300_000,
    "no digits": "²²² ٣٣٣ x\n" * 1000,
    "hex": "f" * 5000 + "-" + "f" * 5000 + " rw-p 0 0:0 0 /x\n",
    "negative": "-1 " * 100_000,
    "spaces": " " * 256_000,
    "newlines": "\n" * 256_000,
    "colons": "Uid:\t-1\t²\t\t\nGid:\n" + ":" * 256_000,
    "surrogates": b"\xff\xfe\xed\xa0\x80 \0\0\0" * 10_000,
    "parentheses": "1 (" + ")" * 256_000,
}


@pytest.mark.parametrize("name", sorted(HOSTILE_TEXT))
@pytest.mark.parametrize(
    "command", ["pipes", "limits", "fds", "tcp", "dentry", "jvms", "hsperf-check", "safepoints", "jmx"]
)
def test_one_process_of_garbage_among_others(inprocess, tmp_path, spawn, command, name):
    """Every file of one process holds it: the others are told, and whoever asks for that one gets one line. Never a traceback."""
    holder = spawn(HOLD)
    root = copy_machine(tmp_path / "copy", [holder.pid])
    content = HOSTILE_TEXT[name]
    data = content if isinstance(content, bytes) else content.encode()
    for file in (*PROCESS_FILES, "fdinfo/0", "task/5/stat", "task/5/status", "task/5/comm"):
        path = root / "proc/5" / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    (root / "proc/5/fd").mkdir()
    os.symlink(data[:4000].replace(b"\0", b"") or b"x", root / "proc/5/fd/0")
    (root / "proc/5/fd/1").symlink_to("pipe:[²]")
    options = ["--threads", "--ends", "--fifos"] if command == "pipes" else []
    done = inprocess(command, *options, *([holder.pid] if command == "limits" else []), "--root", root, timeout=60)
    assert done.code in (0, 2)
    if command == "pipes":
        assert (done.code, "21 pipes using 41 fds" in done.out) == (0, True)
        assert "1 of 2 processes could not be read" in done.err
    if command == "limits":
        assert done.code == 0
    if command in ("pipes", "limits", "jvms", "hsperf-check", "safepoints", "jmx"):
        asked = inprocess(command, 5, "--root", root, timeout=60)
        assert (asked.code, asked.out) == (2, "") or command == "limits"


def test_machine_files_of_garbage(inprocess, tmp_path, spawn):
    """Of the machine's own files the same: a line with the path, or unknown."""
    holder = spawn(HOLD)
    for number, content in enumerate(HOSTILE_TEXT.values()):
        root = copy_machine(tmp_path / str(number), [holder.pid])
        for directory, _, files in os.walk(root):
            if directory.startswith(f"{root}/proc/{holder.pid}"):
                continue
            for file in files:
                with open(f"{directory}/{file}", "wb") as garbled:
                    garbled.write(content if isinstance(content, bytes) else content.encode())
        for words in (
            ("pipes", "--by-user"),
            ("limits", holder.pid, "--all"),
            ("fds", holder.pid),
            ("fds",),
            ("tcp",),
            ("tcp", holder.pid),
            ("dentry",),
            ("jvms",),
            ("hsperf-check",),
        ):
            done = inprocess(*words, "--root", root, timeout=60)
            assert done.code in (0, 2), (words, done.err)


def hostile(root, tmp_path):
    """Links out of the copy, files that are none, names that are no pids."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "passwd").write_text("intruder:x:0:0::/:/bin/sh\nintruder:x:33:33::/:/bin/sh\n")
    (outside / "hostname").write_text("elsewhere\n")
    for name, target in {
        "etc/passwd": f"{outside}/passwd",
        "etc/group": "../../outside/passwd",
        "proc/sys/kernel/hostname": f"{outside}/hostname",
        "proc/9/status": "/dev/zero",
        "proc/9/root": "/",
        "proc/9/fd/0": "pipe:[9]",
        "sys/fs/cgroup": "/sys/fs/cgroup",
        "tmp/hsperfdata_root": "/tmp/hsperfdata_root",
    }.items():
        place = root / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.unlink(missing_ok=True)
        place.symlink_to(target)
    os.mkfifo(root / "proc/9/stat")
    with open(root / "proc/9/maps", "wb") as sparse:
        sparse.truncate(20 << 30)
    for name in (b"\xc2\xb2", b"007", b"\xff\n", b"4294967296"):
        os.mkdir(os.fsencode(root) + b"/proc/" + name)
    if os.getuid() == 0:
        (root / "dev").mkdir()
        os.mknod(root / "dev/zero", stat.S_IFCHR | 0o666, os.makedev(1, 5))


COMMANDS = (
    ("pipes", "--ends", "--by-process", "--fifos"), ("limits", "{pid}", "--all"), ("fds", "{pid}"), ("tcp",), ("dentry",), ("jvms",), ("hsperf-check",),
    ("jpmp", "{pid}"), ("jmap-diff", "{pid}"), ("safepoints", "{pid}"),
)  # fmt: skip


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
@pytest.mark.parametrize("way", ["openat2", "component by component"])
def test_a_hostile_copy(tmp_path, spawn, capfd, monkeypatch, words, way):
    """Nothing outside of it shows, nothing hangs, and what was refused is said in one line."""
    if way != "openat2":
        monkeypatch.setattr(
            treefs.syscalls, "open_in_root", lambda *_: (_ for _ in ()).throw(OSError(38, "no openat2"))
        )
    holder = spawn(HOLD)
    root = copy_machine(tmp_path / "copy", [holder.pid])
    hostile(root, tmp_path)
    code = run([*(word.format(pid=holder.pid) for word in words), "-f", "json", "--root", str(root)])
    out, err = capfd.readouterr()
    assert code in (0, 2)
    assert "intruder" not in out + err
    assert "elsewhere" not in out + err
    if words[0] == "pipes":
        document = json.loads(out)
        assert document["host"] == "unknown"
        assert document["pipe_count"] == 22
    if words[0] in ("jvms", "hsperf-check"):
        [line] = [line for line in err.splitlines() if "not read" in line]
        assert line.startswith("opskit: ")
        assert "1 larger than 64 MiB" in line
        assert os.getuid() or "1 a device, not a regular file" in line
        assert f"; the first: {root}/proc/9/" in line


def test_a_tree_with_a_live_proc_is_no_copy(inprocess, root_only, workload, tmp_path):
    """A host's root that is mounted in a container (--root /host): all commands work as on the host, rates too."""
    jvm = workload("sleep=1", "gc=20")
    root = tmp_path / "host"
    root.mkdir()
    mounted = f'mount --rbind / {root} && exec "$@"'

    def ran(*words):
        done = subprocess.run(
            [
                "unshare",
                "-m",
                "sh",
                "-c",
                mounted,
                "sh",
                sys.executable,
                "-m",
                "opskit",
                *map(str, words),
                "--root",
                root,
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        assert "Traceback" not in done.stderr
        assert "not read" not in done.stderr
        return done

    [row] = [row for row in json.loads(ran("jvms", "-f", "json").stdout)["jvms"] if row["pid"] == jvm.pid]
    assert row["heap_used_bytes"] > 0
    assert row["attach"] is True
    done = ran("safepoints", jvm.pid, "-c", "2", "-i", "300ms", "-f", "json")
    assert json.loads(done.stdout)["safepoints"] > 0
    done = ran("hsperf-check", jvm.pid, "-f", "json")
    assert (done.returncode, json.loads(done.stdout)["findings"]) == (0, [])
    assert "pipes using" in ran("pipes", "--ends").stdout
    assert ran("limits", jvm.pid).returncode in (0, 1)
    assert "main" in ran("jpmp", jvm.pid, "1").stdout


def test_a_socket_in_a_copy(inprocess, tmp_path, spawn):
    """A socket in the place of a file is refused like a FIFO."""
    holder = spawn(HOLD)
    root = copy_machine(tmp_path / "copy", [holder.pid])
    (root / "proc/meminfo").unlink()
    os.chdir(root / "proc")  # a socket's path is short
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("meminfo")
    os.chdir("/")
    done = inprocess("dentry", "--root", root)
    assert "1 a socket, not a regular file" in done.err


def test_a_name_that_is_an_attack_is_escaped_when_it_is_refused(inprocess, tree):
    """The first path is shown as any other name: on one line."""
    root = tree({"proc/loadavg": "", "proc/5/fd/0": Link("pipe:[1]")})
    evil = root / "a\n\x1b[31mb"
    root.joinpath("proc").rename(root / "inner")
    evil.mkdir()
    (root / "inner").rename(evil / "proc")
    os.mkfifo(evil / "proc/5/status")
    done = inprocess("pipes", "-u", "0", "--root", evil)
    assert "\x1b" not in done.err
    assert "a\\n\\x1b[31mb/proc/5/status" in done.err


def odd_file(path, kind):
    """Put what is not read in the place of a file: a sparse file of 20 GB, a FIFO, or a link to itself."""
    path.unlink(missing_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "link":
        path.symlink_to(path.name)
    else:
        path.touch()
        os.truncate(path, 20 << 30)


@pytest.mark.parametrize("kind", ["sparse", "fifo", "link"])
def test_a_file_that_is_not_read_is_no_matter_of_rights(inprocess, machine, kind):
    """A command goes on without it; its reason is the file's own, never missing rights, a security module or the output."""
    root, jvm, _ = machine()
    for name in (f"proc/{jvm}/cgroup", f"proc/{jvm}/maps", "proc/sys/fs/dentry-state", "proc/slabinfo"):
        odd_file(root / name, kind)
    why = {
        "sparse": "larger than 64 MiB",
        "fifo": "a FIFO, not a regular file",
        "link": "Too many levels of symbolic links",
    }[kind]
    for words in (("hsperf-check",), ("jvms",), ("limits", jvm, "--all"), ("dentry",)):
        done = inprocess(*words, "--root", root)
        assert done.code == 0, done.err
        assert why in done.err
        for wrong in ("cannot write", "refused although", "root only", "run as root"):
            assert wrong not in done.out + done.err
    done = inprocess("dentry", "--root", root)
    assert f"{root}/proc/slabinfo was not read: {why}\n" in done.err
