"""Names chosen by another user do not change what a printed command does: cgroups, processes, files, captured trees."""

from __future__ import annotations

import contextlib
import gzip
import html.parser
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import iofacts
import irqresults
import pytest
from dentrytrees import TODAY
from eachof import each_of
from hypothesis import given, settings
from hypothesis import strategies as st
from limitcases import pids_root
from markdown_it import MarkdownIt
from shellwords import HOSTILE, argv_of, check_syntax
from terminal import on_terminal
from trees import Link

from opskit.analysis.dentry.usage import CgroupShare
from opskit.analysis.io.judge import judge as judge_io
from opskit.analysis.irqs.judge import judge as judge_irqs
from opskit.analysis.limits import fix as limit_fix
from opskit.analysis.limits.limit import Limit
from opskit.collect.irqs.facts import Space
from opskit.proc import user_files
from opskit.proc.cgroup.slab import CgroupSlab
from opskit.proc.cgroup.tree import parse_cgroup
from opskit.proc.config.systemd_units import owner_of_path
from opskit.render.formats import csv, markdown, prometheus, table, text
from opskit.render.formats import json as as_json
from opskit.render.report import About, Block, Report
from opskit.render.shown import Shown as AllRows
from opskit.render.views.io import report as io
from opskit.render.views.io.document import complete as complete_io
from opskit.render.views.limits import LIMIT

NAMES = st.binary(min_size=1, max_size=40).map(
    lambda data: data.replace(b"\0", b"'").rstrip(b"\n").decode("utf-8", "surrogateescape") or "$"
)
FILE_NAMES = HOSTILE
CGROUP_NAMES = [name for name in FILE_NAMES if "\n" not in name]
LOG_NAMES = [name for name in FILE_NAMES if name != "-"]
ID = "0123456789ab" + "c" * 52


def safe_to_show(text):
    """Whether the text has no control characters except newlines."""
    return all(line.isprintable() for line in text.split("\n"))


class Shown(html.parser.HTMLParser):
    """The text of an HTML page."""

    def __init__(self, page):
        super().__init__()
        self.text = ""
        self.feed(page)

    def handle_data(self, data):
        self.text += data


def as_rendered(markdown):
    """The text of a rendered Markdown document."""
    return Shown(MarkdownIt("gfm-like", {"linkify": False}).render(markdown)).text


# cgroups


@contextlib.contextmanager
def process_in_cgroups(*names):
    """Make nested cgroups of these names, each with a limit of 30, and a process in the last; yield (folders, PID)."""
    folders = [os.path.join(pids_root(), f"opskit-test-{os.getpid()}")]
    folders += [os.path.join(folders[0], *names[:count]) for count in range(1, len(names) + 1)]
    process = subprocess.Popen(["sleep", "600"])
    made = []
    try:
        for folder in folders:
            os.mkdir(folder)
            made.append(folder)
            with open(f"{folder}/pids.max", "w") as file:
                file.write("30")
        with open(f"{folders[-1]}/cgroup.procs", "w") as file:
            file.write(str(process.pid))
        yield folders, process.pid
    finally:
        process.kill()
        process.wait()
        for folder in reversed(made):
            os.rmdir(folder)


@pytest.fixture
def pids_controller(root_only):
    if pids_root() is None or not os.access(pids_root() / "release_agent", os.F_OK):
        pytest.skip("needs the pids controller of cgroup v1, where any cgroup may have processes and children")


def test_real_cgroups_of_any_name(inprocess, pids_controller, tmp_path):
    """The fix is `echo N > FILE` with exactly that file: as root it raises that limit, and does nothing else."""
    with process_in_cgroups(*CGROUP_NAMES) as (folders, pid):
        document = json.loads(inprocess("limits", pid, "-f", "json").out)
        fixes = [row["fix"] for row in document["limits"] if row["name"] == "pids.max" and row["value"] == 30]
        assert len(fixes) == len(folders)
        shown = {form: inprocess("limits", pid, "-v", "-f", form).out for form in ("text", "table", "markdown")}
        assert all(map(safe_to_show, shown.values()))
        rendered = as_rendered(shown["markdown"])
        for fix in fixes:
            assert fix in shown["text"]
            assert fix in shown["table"]
            assert fix in rendered
            typed = subprocess.run(["sh", "-c", fix.encode()], cwd=tmp_path, capture_output=True, check=True)
            assert not typed.stderr
        assert sorted(map(tuple, map(argv_of, fixes))) == sorted(
            ("echo", "64", ">", f"{each}/pids.max") for each in folders
        )
        assert {Path(f"{folder}/pids.max").read_text() for folder in folders} == {"64\n"}
        assert not list(tmp_path.iterdir())


def test_on_a_terminal_a_command_is_one_line(pids_controller):
    """On a narrow screen too: a line that is copied in two pieces would be two commands."""
    with process_in_cgroups("x" * 60 + " ; touch pwn ; " + "y" * 60) as (folders, pid):
        _, shown = on_terminal("limits", str(pid), "-v", columns=40, env={"NO_COLOR": "1"})
    assert any(line.endswith(f": echo 64 > '{folders[-1]}/pids.max'") for line in shown.splitlines())


def cgroup_tree(path, file="pids", **more):
    """A tree whose process 4242 is in this v2 cgroup, which has a limit of 30 threads (or bytes)."""
    folder = "sys/fs/cgroup" + path
    limits = "Limit                     Soft Limit           Hard Limit           Units     \n" + "".join(
        f"{'Max ' + name:<25} {'unlimited':<20} {'unlimited':<20} \n"
        for name in ("processes", "stack size", "open files")
    )
    return {
        "proc/meminfo": "MemTotal: 25165824 kB\nSwapTotal: 0 kB\n",
        "proc/loadavg": "0.20 0.18 0.12 1/400 5000\n",
        "proc/sys/kernel/osrelease": "6.1.0-18-amd64\n",
        "proc/1/mountinfo": "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n",
        "proc/1/status": "Name:\tinit\nUid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\n",
        "proc/4242/status": "Name:\tapp\nUid:\t1001\t1001\t1001\t1001\nGid:\t1\t1\t1\t1\nThreads:\t1\nPPid:\t1\n",
        "proc/4242/stat": "4242 (app) S 1 4242 4242 0 -1 0 0 0 0 0 310 45 0 0 20 0 1 0 8675309 0 0\n",
        "proc/4242/comm": "app\n",
        "proc/4242/limits": limits,
        "proc/4242/cgroup": f"0::{path}\n".encode("utf-8", "surrogateescape"),
        "proc/4242/ns/user": Link("user:[4026531837]"),
        "sys/fs/cgroup/cgroup.controllers": "cpu memory pids\n",
        f"{folder}/cgroup.type": "domain\n",
        f"{folder}/cgroup.procs": "4242\n",
        f"{folder}/{file}.max": "30\n",
        f"{folder}/{file}.current": "29\n",
        **more,
    }


def fix_of(inprocess, root, name="pids.max"):
    document = json.loads(inprocess("limits", 4242, "--root", root, "-f", "json").out)
    return next(row["fix"] for row in document["limits"] if row["name"] == name)


@pytest.mark.parametrize("controller", ["pids", "memory"])
def test_captured_cgroups_of_any_name(inprocess, tree, controller):
    """pids.max and memory.max of v2, by `echo`."""
    paths = ["/" + "/".join(CGROUP_NAMES[:count]) for count in range(1, len(CGROUP_NAMES) + 1)]
    files = cgroup_tree(paths[-1], controller)
    for path in paths:
        files[f"sys/fs/cgroup{path}/cgroup.type"] = "domain\n"
        files[f"sys/fs/cgroup{path}/{controller}.max"] = "30\n"
        files[f"sys/fs/cgroup{path}/{controller}.current"] = "29\n"
    document = json.loads(inprocess("limits", 4242, "--root", tree(files), "-f", "json").out)
    fixes = {row["cgroup"]: argv_of(row["fix"]) for row in document["limits"] if row["name"] == f"{controller}.max"}
    assert fixes == {path: ["echo", "64", ">", f"/sys/fs/cgroup{path}/{controller}.max"] for path in paths}


def test_giving_back_the_slabs_of_cgroups_of_any_name(inprocess, tree):
    """`opskit dentry`: the fix in every format that shows it."""
    pod = {path: text for path, text in TODAY.items() if "/pod1/" in path}
    files = {path.replace("/pod1/", f"/{name}/"): text for name in FILE_NAMES for path, text in pod.items()}
    root = tree({path: text for path, text in TODAY.items() if path not in pod} | files)
    document = json.loads(inprocess("dentry", "--root", root, "-f", "json").out)
    fixes = [finding["fix"] for finding in document["findings"] if finding["code"] == "dentry-cgroup"]
    expected = [["echo", "3145728000", ">", f"/sys/fs/cgroup/kubepods/{name}/memory.reclaim"] for name in FILE_NAMES]
    assert sorted(map(argv_of, fixes)) == sorted(expected)
    text = inprocess("dentry", "--root", root, "-f", "text")
    table = inprocess("dentry", "--root", root, "-f", "table").out
    markdown = inprocess("dentry", "--root", root, "-f", "markdown").out
    assert all(map(safe_to_show, (text.out, text.err, table, markdown)))
    rendered = as_rendered(markdown)
    for fix in fixes:
        assert fix in text.out
        assert fix in table
        assert fix in rendered


# systemd's units and containers


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/system.slice/a\\x2db.service", ["systemctl", "set-property", "a\\x2db.service", "TasksMax=64"]),
        ("/system.slice/-x.service", ["systemctl", "set-property", "--", "-x.service", "TasksMax=64"]),
        ("/-.slice", ["systemctl", "set-property", "--", "-.slice", "TasksMax=64"]),
        ("/system.slice/a@b:c.service", ["systemctl", "set-property", "a@b:c.service", "TasksMax=64"]),
        ("/system.slice/_cgroup.scope", ["systemctl", "set-property", "cgroup.scope", "TasksMax=64"]),
        ("/docker/" + ID, ["docker", "update", "--pids-limit", "64", "0123456789ab"]),
        (f"/system.slice/docker-{ID}.scope", ["docker", "update", "--pids-limit", "64", "0123456789ab"]),
        (
            "/user.slice/user-7.slice/user@7.service/app.slice/-x.service",
            ["sudo", "-u", "#7", "XDG_RUNTIME_DIR=/run/user/7", "systemctl", "--user", "set-property", "--", "-x.service", "TasksMax=64"],
        ),
    ],
)  # fmt: skip
def test_the_command_for_a_unit_or_container(inprocess, tree, path, expected):
    """Backslashes and leading dashes belong to systemd's names."""
    assert argv_of(fix_of(inprocess, tree(cgroup_tree(path)))) == expected


@pytest.mark.parametrize(
    "path",
    [
        "/system.slice/x;touch pwn;.service",
        "/system.slice/$(touch pwn).service",
        "/system.slice/a b.service",
        "/system.slice/app.service/ssh.service",  # delegated: the service may call it what it likes
        "/user.slice/user-7.slice/session-3.scope/ssh.service",
        f"/user.slice/user-7.slice/user@7.service/app.slice/x.service/docker-{ID}.scope",
        f"/system.slice/app.service/docker-{ID}.scope",
        f"/docker/{ID}/system.slice/ssh.service",  # the container's own systemd
        f"/alice/{ID}",
        f"/docker/{ID}\x0b",
    ],
)
def test_a_cgroup_called_like_somebody_elses_unit_or_container(inprocess, tree, path):
    """A user who may make cgroups in a part of the tree cannot redirect a fix to another unit or container."""
    assert argv_of(fix_of(inprocess, tree(cgroup_tree(path)))) == ["echo", "64", ">", f"/sys/fs/cgroup{path}/pids.max"]


def test_no_name_forges_a_line_of_the_kernels(inprocess, tree):
    r"""Cgroups' names may hold \v, \f, U+0085 and U+2028, which end a line for Python and not for the kernel."""
    for character in "\v\f\r\x1c\x85\u2028":
        path = f"/a{character}8:pids:/system.slice"
        assert [member.path for member in parse_cgroup(f"0::{path}\n")] == [path]
    path = "/a\v0::/system.slice/ssh.service"
    assert argv_of(fix_of(inprocess, tree(cgroup_tree(path))))[-1] == f"/sys/fs/cgroup{path}/pids.max"


UNIT = {"proc/4242/limits": "Limit                     Soft Limit           Hard Limit           Units     \n"
        "Max processes             0                    0                    processes \n"
        "Max stack size            17592186044416       unlimited            bytes     \n"}  # fmt: skip


@pytest.mark.parametrize("unit", ["a\\x2db.service", "-x.service", "app.service"])
def test_the_units_file_is_edited_by_its_name(inprocess, tree, unit):
    """`systemctl edit UNIT` in the sentences for rlimits."""
    root = tree(cgroup_tree(f"/system.slice/{unit}", **UNIT))
    dashes = ["--"] if unit.startswith("-") else []
    now, edit = re.fullmatch(
        r"(.*) \(now\); (.*): \[Service\] LimitNPROC=64 \(for good\)", fix_of(inprocess, root, "RLIMIT_NPROC")
    ).groups()
    assert argv_of(now) == ["prlimit", "--pid", "4242", "--nproc=64:64"]
    assert argv_of(edit) == ["systemctl", "edit", *dashes, unit]
    edit, restart = re.fullmatch(
        r"(.*): \[Service\] LimitSTACK=8M; then (.*)", fix_of(inprocess, root, "RLIMIT_STACK")
    ).groups()
    assert argv_of(edit) == ["systemctl", "edit", *dashes, unit]
    assert argv_of(restart) == ["systemctl", "restart", *dashes, unit]


@pytest.mark.parametrize("user", ["$(touch pwn)", "`touch pwn`", "a b", "* - nproc 5", "1002", "@web", "%x", "\x1b[2J"])
def test_a_line_for_limits_conf_names_such_a_user_by_number(inprocess, tree, user):
    """`:1001` is the user 1001 alone; a strange name would be another domain, or a command between the backticks."""
    session = cgroup_tree("/user.slice/user-1001.slice/session-3.scope", **UNIT)
    root = tree({**session, "etc/passwd": f"{user}:x:1001:1001::/:/bin/sh\n"})
    assert "/etc/security/limits.conf: `:1001 - nproc 64`" in fix_of(inprocess, root, "RLIMIT_NPROC")


# Files that the user names


def cut_gzip():
    line = b"Total time for which application threads were stopped: 0.5 seconds, Stopping threads took: 0.1 seconds\n"
    return gzip.compress(line * 5000)[:-20]


def written(folder, name, content):
    with open(os.path.join(os.fsencode(folder), os.fsencode(name)), "wb") as file:
        file.write(content)


@pytest.mark.parametrize("name", LOG_NAMES, ids=ascii)
def test_logs_of_any_name(inprocess, tmp_path, name):
    """The printed pipeline reads exactly that file, and does nothing else."""
    kinds = ((cut_gzip(), ["zcat"]), (b"\xfd7zXZ\0" + b"x" * 50, ["xzcat"]), (b"PK\x03\x04x", ["unzip", "-p"]))
    for content, tool in kinds if name.startswith("-") else kinds[:1]:
        written(tmp_path, name, content)
        done = inprocess("safepoints", "--", name, cwd=tmp_path)
        assert done.code == 2
        assert safe_to_show(done.err)
        [line] = done.err.splitlines()
        advice = line[line.rindex(f": {tool[0]} ") + 2 :]
        words = argv_of(advice)
        file = [f"./{name}"] if tool[0] == "unzip" and name[0] == "-" else ["--", name] if name[0] == "-" else [name]
        assert [word for word in words if word != "2>/dev/null"] == [*tool, *file, "|", "opskit", "safepoints", "-"]
        if tool == ["zcat"]:
            script = f"opskit() {{ cat; }}\n{advice}".encode()
            typed = subprocess.run(["sh", "-c", script], cwd=tmp_path, capture_output=True, check=True)
            assert typed.stdout.startswith(b"Total time for which")
        assert os.listdir(os.fsencode(tmp_path)) == [os.fsencode(name)]


def test_compressed_input_of_no_name(inprocess):
    """Standard input has no file name."""
    done = inprocess("safepoints", "-", stdin="BZh91AY")
    assert done.err == "opskit: standard input: is compressed; unpack it: … | bzcat | opskit safepoints -\n"


@pytest.mark.parametrize("name", LOG_NAMES[::4], ids=ascii)
def test_a_directory_of_any_name_instead_of_logs(inprocess, tmp_path, name):
    """The pattern names the logs in that directory."""
    os.mkdir(os.path.join(os.fsencode(tmp_path), os.fsencode(name)))
    written(tmp_path, f"{name}/gc.log.1", b"")
    done = inprocess("safepoints", "--", name, cwd=tmp_path)
    [line] = done.err.splitlines()
    pattern = line.rpartition("name the files in it: ")[2]
    check_syntax(f"x {pattern}")
    script = f"printf '%s\\0' {pattern}".encode()
    shown = subprocess.run(["sh", "-c", script], cwd=tmp_path, capture_output=True, check=True)
    place = f"./{name}" if name[0] == "-" else name
    assert shown.stdout == os.fsencode(f"{place}/gc.log.1") + b"\0"


def test_the_command_line_of_a_report_can_be_typed_again(inprocess, tmp_path):
    """JSON and Markdown have it quoted."""
    for name in LOG_NAMES:
        written(tmp_path, name, b"Total time for which application threads were stopped: 0.5 seconds\n" * 3)
    words = ["safepoints", "-f", "json", "--", *LOG_NAMES]
    done = inprocess(*words, cwd=tmp_path)
    assert argv_of(json.loads(done.out)["command_line"]) == ["opskit", *words]
    words[2] = "markdown"
    shown = inprocess(*words, cwd=tmp_path).out
    assert safe_to_show(shown)
    line = next(line for line in shown.splitlines() if line.startswith("    $ "))
    assert argv_of(line[6:]) == ["opskit", *words]


# Processes

PROCESS_NAMES = ["a;touch pwn", "$(touch p)", "\x1b[31mred", "a\nb", "\udcff\udcfe", "[red]x", "|a|`b`", "a\vb"]
NAMED = """
import os, sys, time
os.prctl = __import__("ctypes").CDLL(None).prctl
os.prctl(15, os.fsencode(sys.argv[1]), 0, 0, 0)
print(flush=True)
pipes = []
while True:
    pipes.append(os.pipe())
    time.sleep(0.2)
"""


@contextlib.contextmanager
def programs(folder, source, *arguments):
    """Start a copy of a program under each name."""
    started = []
    try:
        for name in PROCESS_NAMES:
            path = os.path.join(os.fsencode(folder), os.fsencode(name))
            shutil.copy(source, path)
            started.append(subprocess.Popen([path, *arguments]))
        yield started
    finally:
        for process in started:
            process.kill()
            process.wait()


def test_processes_of_any_name(inprocess, tmp_path):
    """The name of a program is shown escaped."""
    with programs(tmp_path, "/bin/sleep", "600") as sleepers:
        for sleeper in sleepers:
            for form in ("text", "table", "markdown"):
                done = inprocess("limits", sleeper.pid, "-f", form)
                assert safe_to_show(done.out + done.err)
            os.kill(sleeper.pid, signal.SIGSTOP)
            done = inprocess("jpmp", sleeper.pid)
            assert safe_to_show(done.out + done.err)


def test_pipes_gained_by_processes_of_any_name(inprocess, spawn, tmp_path):
    """`pipes -w` escapes the names of processes and programs; commands name the PID."""
    gainers = [spawn(NAMED, name) for name in PROCESS_NAMES]
    with programs(tmp_path, "/bin/bash", "-c", "while :; do exec {fd}<> <(:); sleep 0.2; done") as shells:
        pids = [process.pid for process in (*gainers, *shells)]
        done = inprocess("pipes", *pids, "-w", "-i", "1", "-c", "3", "-f", "text")
    assert safe_to_show(done.out + done.err)
    typed = set(re.findall(r"see them with: (.*)", done.out))
    assert sorted(map(argv_of, typed)) == sorted(["opskit", "pipes", str(pid), "--ends"] for pid in pids)


HOLDS = """
import ctypes, os, socket, sys
folder, name = os.fsencode(sys.argv[1]), os.fsencode(sys.argv[2])
ctypes.CDLL(None).prctl(15, name, 0, 0, 0)
fds = []
for kind in (b"kept", b"gone"):
    place = os.path.join(folder, kind + name)
    os.mkdir(place)
    fds.append(os.open(os.path.join(place, name), os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600))
    os.write(fds[-1], b"x" * (9 << 20))
    os.fsync(fds[-1])
os.unlink(os.path.join(folder, b"gone" + name, name))
ctypes.CDLL(None).memfd_create(name, 0)
listening = socket.socket(socket.AF_UNIX)
listening.bind(b"\\0opskit-test" + name)
listening.listen()
server = socket.create_server(("127.0.0.1", 0))
kept = socket.create_connection(server.getsockname())
server.accept()[0].close()
print(fds[-1], flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("name", PROCESS_NAMES)
def test_descriptors_of_any_name(inprocess, spawn, tmp_path, name):
    """Processes, directories, deleted files, memfds and sockets: escaped in every format; commands name the PID and the fd."""
    holder = spawn(HOLDS, tmp_path, name, stdin=subprocess.PIPE)
    for words in (("fds", holder.pid, "-v"), ("fds", holder.pid, "--deleted"), ("tcp", holder.pid, "-i", "0.05", "-v")):
        for form in ("text", "table", "markdown", "csv", "prometheus"):
            done = inprocess(*words, "-f", form)
            assert done.code in (0, 1), done.err
            assert safe_to_show(done.out + done.err), words
        document = json.loads(inprocess(*words, "-f", "json").out)
        for finding in document["findings"]:
            for line in filter(None, (finding["fix"], finding["next"])):
                check_syntax(line)
                assert "pwn" not in argv_of(line)
    held = json.loads(inprocess("fds", holder.pid, "--deleted", "-f", "json").out)["deleted_files"]
    path = next(row["path"] for row in held if row["place"] != "memory")
    assert path == f"{tmp_path}/gone{name}/{name}"
    done = inprocess("fds", holder.pid, "--deleted", "-f", "text")
    assert re.search(rf"truncate -s 0 /proc/{holder.pid}/fd/{holder.line}\b", done.out + done.err), done


MOVES = """
import ctypes, os, sys, threading, time
def move():
    ctypes.CDLL(None).prctl(15, os.fsencode(sys.argv[1]), 0, 0, 0)
    while True: time.sleep(0.005)
threading.Thread(target=move, daemon=True).start()
print(1, flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("name", PROCESS_NAMES)
def test_threads_of_any_name(inprocess, spawn, name):
    """The names of threads that run: escaped in every format, the kernel's 15 bytes in JSON; commands name PIDs and CPUs."""
    mover = spawn(MOVES, name, stdin=subprocess.PIPE)
    for form in ("text", "table", "markdown", "csv", "prometheus"):
        done = inprocess("cswitch", mover.pid, "-v", "-i", "0.1", "-f", form)
        assert done.code in (0, 1), done.err
        assert safe_to_show(done.out + done.err), form
    document = json.loads(inprocess("cswitch", mover.pid, "-i", "0.3", "-f", "json").out)
    shown = os.fsencode(name)[:15].decode("utf-8", "surrogateescape")
    assert shown in [thread["kernel_name"] for thread in document["threads"]]
    for line in filter(None, (document["next"], *(each["next"] for each in document["findings"]))):
        check_syntax(line)
        assert "pwn" not in argv_of(line)


READS = """
import ctypes, os, sys, threading, time
def read(name, fds):
    ctypes.CDLL(None).prctl(15, os.fsencode(name), 0, 0, 0)
    while True:
        for fd in fds: os.read(fd, 1)
        time.sleep(0.002)
fds = []
for name in sys.argv[2].split("/"):
    place = os.path.join(sys.argv[1], name or "empty")
    with open(place, "w") as file: file.write("x" * 99999)
    fds.append(os.open(place, 0))
names = sys.argv[3].split("/")
for at, name in enumerate(names): threading.Thread(target=read, args=(name, fds[at :: len(names)]), daemon=True).start()
ctypes.CDLL(None).prctl(15, os.fsencode(names[0]), 0, 0, 0)
print(1, flush=True)
sys.stdin.read()
"""


def test_files_that_are_read_of_any_name(inprocess, spawn, tmp_path):
    """Threads and files: escaped in every format, whole in JSON; commands name the PID."""
    reader = spawn(READS, tmp_path, "/".join(FILE_NAMES), "/".join(PROCESS_NAMES), stdin=subprocess.PIPE)
    for form in ("text", "table", "markdown", "csv", "prometheus"):
        done = inprocess("io", reader.pid, "-v", "-i", "0.05", "-f", form)
        assert done.code in (0, 1), done.err
        assert safe_to_show(done.out + done.err), form
    document = json.loads(inprocess("io", reader.pid, "-i", "0.2", "-f", "json").out)
    assert {file["path"] for file in document["files"]} >= {f"{tmp_path}/{name}" for name in FILE_NAMES}
    shown = {os.fsencode(name)[:15].decode("utf-8", "surrogateescape") for name in PROCESS_NAMES}
    assert shown <= {thread["name"] for thread in document["threads"]}


KNOWN_NEXT = {
    None,
    "opskit io 4500",
    "opskit io 4242",
    "cat /proc/4242/task/4252/stack",
    "opskit profile 4242",
    "opskit mem 4242",
}


@pytest.mark.parametrize("name", FILE_NAMES, ids=ascii)
def test_stuck_threads_devices_and_cgroups_of_any_name(name):
    """In each format of `opskit io`: escaped, and no command has another word for it."""
    for facts in (iofacts.PROCESS, iofacts.BUSY):
        renamed = iofacts.renamed(facts, name)
        result = judge_io(renamed)
        report = complete_io(io.report(About("HOST", "T", "V", "opskit io"), result, AllRows(verbose=True)), result)
        for form in (text, table, markdown, csv, prometheus):
            assert safe_to_show(form.render(report)), form
        assert json.loads(as_json.render(report))["findings"]
        # Only one of them has a name of somebody else.
        others = {finding.next for finding in result.findings} - KNOWN_NEXT
        assert [argv_of(line) for line in others] == [["smartctl", "-H", "-A", f"/dev/sd{name}"]] * len(
            renamed.processes[:1]
        )


def test_shared_memory_of_any_name(inprocess):
    """The command that removes a file of /dev/shm that nobody holds names exactly that file."""
    places = [f"/dev/shm/opskit-test-{os.getpid()}-{name}" for name in FILE_NAMES]
    try:
        for place in places:
            with open(os.fsencode(place), "wb") as file:
                file.write(b"x" * 4096)
        document = json.loads(inprocess("fds", "--deleted", "-f", "json").out)
        shown = [inprocess("fds", "--deleted", "-n", "0", "-f", form).out for form in ("text", "table", "markdown")]
    finally:
        for place in places:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(os.fsencode(place))
    rows = [row for row in document["unattached"] if f"opskit-test-{os.getpid()}-" in row["name"]]
    if not rows and not document["all_processes_read"]:
        pytest.skip("not every process can be read: nothing is known to be held by nobody")
    assert sorted(map(argv_of, (row["remove"] for row in rows))) == sorted(["rm", place] for place in places)
    assert all(map(safe_to_show, shown))
    assert all(row["remove"] in text for text in shown[:2] for row in rows)


# Any name at all


@settings(max_examples=60, deadline=None)
@given(NAMES)
def test_random_names_in_each_builder(name):
    """Cgroups, units and files: a shell reads the same words."""
    share = CgroupShare(CgroupSlab(name, f"/x/{name}", None, None, None, None, reclaims=True), 5, None)
    assert argv_of(share.reclaim_command) == ["echo", "5", ">", f"/x/{name}/memory.reclaim"]
    for limit in ("pids.max", "memory.max", "memory.limit_in_bytes"):
        row = Limit(limit, "", 30, 0, f"/sys/fs/cgroup/{name}/{limit}", f"/{name}")
        assert argv_of(limit_fix.written(row, 7)) == ["echo", "7", ">", f"/sys/fs/cgroup/{name}/{limit}"]
        command = limit_fix.set_property(row.cgroup, "TasksMax=7")
        assert (command is None) == (owner_of_path(f"/{name}") is None)
    if name != "-":
        operands = ["--", name] if name.startswith("-") else [name]
        shown = user_files._Source(name, "safepoints").through("zcat")
        assert argv_of(shown) == ["zcat", *operands, "|", "opskit", "safepoints", "-"]


def test_off_a_terminal_no_row_of_a_table_is_broken():
    """The longest possible path, with all bytes escaped, stays on one line with its command."""
    limit = Limit("pids.max", "", 30, 0, "/sys/fs/cgroup/" + "\x01" * 4080, "/x")
    row = limit._replace(fix=limit_fix.written(limit, 64))
    block = Block(LIMIT, [row], 1)
    shown = table.render(Report(About("host", "now", "1", "opskit"), blocks=[block]))
    assert sum(row.fix in line for line in shown.splitlines()) == 1


# Of at most 15 bytes, without blanks, slashes and colons.
INTERFACE_NAMES = ["';id>pwn;'", "$(id>pwn)", "`id`", "\x1b[31mred", "[red]x|<b>", "-rf", "\udcff\udcfe"]
RENAMES = """
import json, os, socket, subprocess, sys, threading
import inprocess
def send():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as here:
        while not ended.wait(0.002):
            here.sendto(b"x", ("127.0.0.1", 9))
subprocess.run(["mount", "-t", "sysfs", "sysfs", "/sys"], check=True)
now = "lo"
for name in sys.argv[1:]:
    for change in (["down"], ["name", name], ["up"]):
        subprocess.run(["ip", "link", "set", "dev", now, *change], check=True)
        now = name if change[0] == "name" else now
    ended = threading.Event()
    sender = threading.Thread(target=send)
    sender.start()
    for form in ("table", "prometheus", "json"):
        done = inprocess.run("irqs", "-v", "-i", "0.1", "-f", form)
        print(json.dumps([name, form, done.code, done.out, done.err]))
    ended.set()
    sender.join()
"""


def test_network_interfaces_of_any_name(root_only, tmp_path):
    """Every name that the kernel takes: escaped in every format, whole in JSON; the loopback device of a namespace of their own."""
    support = Path(__file__).resolve().parent / "support"
    done = subprocess.run(
        ["unshare", "-n", "-m", sys.executable, "-c", RENAMES, *INTERFACE_NAMES], capture_output=True, text=True, cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": f"{support}:{support.parents[1]}"}, check=False,
    )  # fmt: skip
    if "mount" in done.stderr or "unshare" in done.stderr:
        pytest.skip(f"cannot make a namespace: {done.stderr[-200:]}")
    assert done.returncode == 0, done.stderr
    runs = [json.loads(line) for line in done.stdout.splitlines()]
    assert [run[0] for run in runs[::3]] == INTERFACE_NAMES
    for name, form, code, out, err in runs:
        assert code in (0, 1), err
        assert safe_to_show(out + err), (name, form)
        if form == "json":
            assert name in [interface["name"] for interface in json.loads(out)["interfaces"]]
    assert not os.listdir(tmp_path)


@each_of("name", FILE_NAMES)
def test_commands_for_interfaces_of_any_name(name):
    """The queue's file is one word, also inside of `sh -c`; threads are named by their numbers."""
    result = irqresults.flood()
    space = Space(name, 4242)
    for found in (
        irqresults.INTERFACES[1]._replace(name=name, space=None),
        irqresults.INTERFACES[1]._replace(name=name, space=space),
    ):
        known = result.facts._replace(interfaces=(found,), pinned=(irqresults.SPIN._replace(name=name),))
        judged = judge_irqs(known)
        assert judged.commands
        lines = [command.line for command in judged.commands]
        for line in filter(
            None, [*lines, *(each for finding in judged.findings for each in (finding.fix, finding.next))]
        ):
            check_syntax(line)
            words = argv_of(line)
            inner = argv_of(words[-1]) if words[0] == "ip" else words
            assert "pwn" not in [*words, *inner]
            if inner[0] == "echo":
                assert inner[2:] == [">", f"/sys/class/net/{name}/queues/rx-0/rps_cpus"]
        assert any("taskset" in line for line in lines)
