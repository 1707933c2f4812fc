"""`opskit doctor` and its aliases on this machine: options, targets, exit codes, a watch, state files."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys

import promtext
import pytest
from imports import HEAVY, imported
from schemafiles import keeps_to_schema
from terminal import on_terminal

from opskit.catalog import CHECKS

ONE = ("--only", "dentry")  # a cheap check
FEW = ("--only", "fds")  # one of processes


@pytest.fixture(scope="module")
def named(tmp_path_factory):
    """A process whose program has a name that no other one has."""
    program = tmp_path_factory.mktemp("bin") / "doctorsleeper"
    shutil.copy(shutil.which("sleep"), program)
    process = subprocess.Popen([program, "600"])
    yield process
    process.kill()
    process.wait()


# --- targets and aliases ---


def test_a_process_that_is_no_command_goes_to_doctor(inprocess, named):
    """By PID and by name, alone or several, with options behind."""
    for words in ((named.pid,), ("doctorsleeper",), ("doctor", "doctorsleeper")):
        done = inprocess(*words, *FEW)
        assert done.code == 0, done
        assert done.out.startswith(f"no problem found in {named.pid} (doctorsleeper); checked 1 thing in ")
    done = inprocess("doctorsleeper", os.getpid(), *FEW, "-f", "json")
    assert json.loads(done.out)["target"] == {"pids": f"{named.pid}, {os.getpid()}"}


@pytest.mark.parametrize("word", ["nosuchprocess", "0", "4194305", "99999999999999999999999", "", "a b\x1b[31m", "./x"])
def test_a_word_that_is_neither_command_nor_process(inprocess, word):
    """One line, exit 2."""
    done = inprocess(word, *ONE)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("opskit: no such command or process ")
    assert "; opskit --help lists them\n" in done.err
    assert "\x1b" not in done.err


def test_a_command_wins_over_a_process_of_its_name(inprocess, tmp_path):
    """And a process wins over a command that has nearly its name."""
    for name, expected in (("pipes", "pipes using"), ("pipess", "(pipess)")):
        program = tmp_path / name
        shutil.copy(shutil.which("sleep"), program)
        process = subprocess.Popen([program, "60"])
        try:
            done = inprocess(name, *(ONE if name == "pipess" else ("-n", "1")))
        finally:
            process.kill()
            process.wait()
        assert expected in done.out + done.err


def test_several_processes_of_a_name(inprocess, named):
    """They are listed."""
    other = subprocess.Popen([named.args[0], "600"])
    try:
        for words in (("doctorsleeper",), ("doctor", "doctorsleeper")):
            done = inprocess(*words, *ONE)
            assert (done.code, done.out) == (2, "")
            assert "2 processes match 'doctorsleeper'; give the PID of one" in done.err
            assert f"{other.pid}  doctorsleeper" in done.err
    finally:
        other.kill()
        other.wait()


def test_opskit_itself_is_no_answer(opskit):
    """It may run as python3, and looks in a child, which has that name too."""
    code = "import sys, opskit.cli; sys.argv = ['opskit', 'doctortester']; opskit.cli.main()"
    program = shutil.which(sys.executable)
    done = subprocess.run(
        ["bash", "-c", 'exec -a doctortester "$@"', "bash", program, "-c", code], capture_output=True, text=True, check=False
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, ""), done


# --- checks ---


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--only", "pip"), "--only: no check is named 'pip', did you mean 'pipes'?; the checks are pipes, tcp, "),
        (("--skip", "zzzz"), "--skip: no check is named 'zzzz'; the checks are pipes, tcp, "),
        (("--only", ""), "--only: no check is named ''; the checks are "),
        (("--only", "pipes,tpc"), "--only: no check is named 'tpc', did you mean 'tcp'?; the checks are "),
        (("--only", "tcp", "--skip", "io"), "--only and --skip exclude each other: choose one"),
        (("--skip", ",".join(CHECKS)), "--skip leaves out every check: nothing is left to do"),
        (("--since-file", "x", "-w"), "-w/--watch and --since-file exclude each other: choose one"),
        (("-c", "2"), "-c/--count goes with -w/--watch: add --watch"),
        (("-i", "2s"), "-i/--interval goes with -w/--watch: add --watch"),
        (("nosuchprocess",), "doctor: 'nosuchprocess' is not a PID, a part of a running JVM's main class or jar or the name of a process; "),
        (("4194305",), "no process 4194305: it may have ended; opskit doctor without a PID shows all"),
        (("0",), "'0' is not a PID: a PID is a number from 1 to "),
        (("--since-file", "/nosuchdirectory/x"), "cannot write /nosuchdirectory/x: there is no directory /nosuchdirectory; choose another place with --since-file"),
        (("--since-file", "-"), "--since-file '-' is not a file name: "),
        (("--since-file", "x.json", "-o", "./x.json"), "-o and --since-file name the same file x.json: name two"),
        (("-o", "x.csv"), "-o x.csv: unknown suffix '.csv'"),
    ],
    ids=lambda value: " ".join(value)[:40] if isinstance(value, tuple) else "",
)  # fmt: skip
def test_bad_input_is_one_line(inprocess, words, message):
    """Exit 2, nothing on stdout, nothing looked at."""
    done = inprocess("doctor", *words)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"opskit: {message}"), done.err
    assert done.err.count("\n") == 1


@pytest.mark.parametrize("value", ["0", "-1", "x", "1d", "", "nan", "1e9"])
def test_bad_deadlines(inprocess, value):
    """A duration above 0."""
    done = inprocess("doctor", f"--deadline={value}", *ONE)
    assert (done.code, done.out) == (2, "")
    assert "is not a duration" in done.err


def test_only_and_skip(inprocess):
    """Repeatable, or separated by commas."""

    def names(*words):
        document = json.loads(inprocess("doctor", *words, "-f", "json").out)
        return {each["check"] for key in ("checked", "unchecked") for each in document[key]}

    assert names("--only", "dentry", "--only", "units") == names("--only", "dentry,units") == {"dentry", "units"}
    assert names("--skip", ",".join(set(CHECKS) - {"dentry", "units"})) == {"dentry", "units"}


def test_nothing_could_be_checked(inprocess):
    """Exit code 2, with the reason."""
    done = inprocess("doctor", "--only", "units")
    assert done.code == 2
    assert done.out.splitlines()[0].startswith("nothing was checked on ")
    assert done.out.splitlines()[1] == "with --ask: systemd units"
    done = inprocess("doctor", os.getpid(), *ONE, "-f", "json")
    assert (done.code, json.loads(done.out)["checked"]) == (2, [])
    assert "it has nothing to look at here" in json.loads(done.out)["unchecked"][0]["reason"]


# --- output ---


def test_what_it_imports():
    """A table needs no library for tables."""
    assert "rich" not in imported("doctor", *ONE, "-f", "table")
    assert "rich" not in imported("doctor", *ONE, "-f", "text")
    assert not imported("--help") & HEAVY


def test_json_and_metrics_of_a_real_run(inprocess, tmp_path):
    """The object keeps to its schema; the file for node_exporter is whole, and may be read by it."""
    document = json.loads(inprocess("doctor", *ONE, "-f", "json").out)
    keeps_to_schema(document, "doctor")
    assert [(each["check"], each["findings"] >= 0) for each in document["checked"]] == [("dentry", True)]
    path = tmp_path / "doctor.prom"
    assert inprocess("doctor", *ONE, "-o", path).code in (0, 1)
    assert promtext.value(promtext.parse(path.read_text()), "opskit_doctor_checks") == 1
    assert os.listdir(tmp_path) == ["doctor.prom"]


def test_on_a_terminal():
    """One line of a healthy machine, in bold."""
    code, out = on_terminal("doctor", *ONE, "--no-color")
    assert code == 0
    assert re.fullmatch(r"no problem found on \S+; checked 1 thing in .*", out.splitlines()[0])
    assert "\x1b[1mno problem" in on_terminal("doctor", *ONE)[1]


def test_completion_of_checks():
    """Names of checks, also where a process stands for doctor."""
    done = subprocess.run(
        [sys.executable, "-c", "from opskit.cli import main; main()"],
        env={**os.environ, "_OPSKIT_COMPLETE": "bash_complete", "COMP_WORDS": "opskit 4242 --only io,me", "COMP_CWORD": "3"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout.split() == ["plain,io,mem", "plain,io,memory-pressure"]


# --- a watch ---


def test_a_watch(inprocess):
    """JSON at the end has the history; text of a machine without changes has the first sample alone."""
    words = ("doctor", *ONE, "-w", "-i", "50ms", "-c", "3")
    document = json.loads(inprocess(*words, "-f", "json").out)
    keeps_to_schema(document, "doctor")
    assert document["history"] == []
    lines = inprocess(*words).out.splitlines()
    assert sum(line.startswith("no problem found") for line in lines) == 1
    assert sum(line.startswith("no problem found") for line in inprocess(*words, "-f", "table").out.splitlines()) == 3


def test_a_watch_redraws_one_screen():
    """With the time of the sample."""
    code, out = on_terminal("doctor", *ONE, "-w", "-i", "50ms", "-c", "2", "--no-color")
    assert code == 0
    screens = out.split("\x1b[H\x1b[2J")[1:]
    assert len(screens) == 2
    assert all(re.match(r"no problem found on \S+  \d\d:\d\d:\d\d UTC\r\n", screen) for screen in screens)


def test_ctrl_c_ends_a_watch():
    """Exit code 130, with the answer so far."""
    process = subprocess.Popen(
        [sys.executable, "-m", "opskit", "doctor", *ONE, "-w", "-i", "100ms", "-f", "table"], stdout=subprocess.PIPE, text=True
    )  # fmt: skip
    try:
        assert process.stdout.readline().startswith("no problem found")
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130


def test_the_watched_process_ends():
    """The last sample decides the exit code. A later process of that name is another one."""
    process = subprocess.Popen(["sleep", "600"])
    words = [sys.executable, "-m", "opskit", "doctor", str(process.pid), *FEW, "-w", "-i", "50ms"]
    watch = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        lines = [watch.stdout.readline() for _ in range(2)]  # the first sample is complete
        process.kill()
        process.wait()
        err = watch.communicate(timeout=60)[1]
    finally:
        process.kill()
        watch.kill()
    assert lines[0].startswith(f"no problem found in {process.pid} (sleep)")
    assert watch.returncode == 0
    assert err.splitlines()[0] == f"opskit: no process {process.pid}: it ended while it was watched"


# --- since the last run ---


def test_since_file(inprocess, named, tmp_path):
    """The first run writes it; a later one without changes prints nothing; other targets are refused."""
    path = tmp_path / "state.json"
    first = inprocess("doctor", *ONE, "--since-file", path)
    assert first.code == 0
    assert first.out.startswith("no problem found on ")
    assert path.stat().st_mode & 0o777 == 0o600
    assert inprocess("doctor", *ONE, "--since-file", path) == (0, "", "")
    assert "nothing has changed on " in inprocess("doctor", *ONE, "--since-file", path, "-f", "table").out
    content = path.read_text()
    done = inprocess("doctorsleeper", *ONE, "--since-file", path)
    assert (done.code, done.out) == (2, "")
    assert "it is the state of 'the whole machine', and 'doctorsleeper' was asked for" in done.err
    assert path.read_text() == content
    assert inprocess("doctorsleeper", *FEW, "--since-file", tmp_path / "named").code == 0
    assert json.loads((tmp_path / "named").read_text())["words"] == ["doctorsleeper"]


def test_a_damaged_state_file_is_left_alone(inprocess, tmp_path):
    """One line, exit 2."""
    path = tmp_path / "state.json"
    for content in ("", "{", '{"opskit_doctor_state": 2}', "root:x:0:0\n"):
        path.write_text(content)
        done = inprocess("doctor", *ONE, "--since-file", path)
        assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
        assert path.read_text() == content


def test_runs_at_once_with_one_state_file(tmp_path):
    """One after the other: each sees what the one before it wrote, and the file is whole."""
    path = tmp_path / "state.json"
    words = [sys.executable, "-m", "opskit", "doctor", *ONE, "--since-file", str(path), "-f", "json"]
    subprocess.run(words, capture_output=True, check=True)
    runs = [subprocess.Popen(words, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    since = {json.loads(run.communicate(timeout=60)[0])["changes"]["since_utc"] is None for run in runs}
    assert since == {False}
    assert [run.returncode for run in runs] == [0, 0, 0]
    assert json.loads(path.read_text())["opskit_doctor_state"] == 1
    assert os.listdir(tmp_path) == ["state.json"]


# --- a real fault that comes and goes ---

OPENS = """
import os, resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
print("ready", flush=True)
kept = []
for line in sys.stdin:
    if line == "open\\n":
        kept = [os.open("/dev/null", 0) for _ in range(57)]
    else:
        for each in kept: os.close(each)
    print(line, end="", flush=True)
"""


@pytest.fixture
def opener(spawn):
    """A process whose open files are nearly used up on demand."""
    process = spawn(OPENS, stdin=subprocess.PIPE)

    def do(word):
        process.stdin.write(f"{word}\n")
        process.stdin.flush()
        assert process.stdout.readline() == f"{word}\n"

    process.do = do
    return process


def test_a_fault_that_comes_and_goes(opener):
    """A watch says when, in a line each; the JSON object at its end has its times."""
    words = [sys.executable, "-m", "opskit", "doctor", str(opener.pid), *FEW, "-w", "-i", "50ms"]
    watch = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    try:
        assert watch.stdout.readline().startswith(f"no problem found in {opener.pid} (")
        opener.do("open")
        came = next(line for line in watch.stdout if " new " in line)
        opener.do("close")
        went = next(line for line in watch.stdout if " gone " in line)
    finally:
        watch.send_signal(signal.SIGINT)
        watch.communicate(timeout=60)
    assert re.match(rf"\d\d:\d\d:\d\d new soon \w+ rlimit-nearly-used \({opener.pid}\): ", came)
    assert re.match(
        rf"\d\d:\d\d:\d\d gone soon \w+ rlimit-nearly-used \({opener.pid}\): .*, since \d\d:\d\d:\d\d\n", went
    )


def test_a_fault_that_comes_and_goes_between_runs(inprocess, opener, tmp_path):
    """With a state file: nothing, new, nothing, gone, nothing; exit code 1 for what is new alone."""

    def run(*words):
        done = inprocess("doctor", opener.pid, *FEW, "--since-file", tmp_path / "state.json", *words)
        return done.code, done.out.partition(" in ")[0].partition("\n")[0]

    assert run() == (0, "no problem found")
    opener.do("open")
    assert run() == (1, "1 new")
    assert run() == (0, "")
    assert run("-f", "table") == (0, "nothing has changed")
    opener.do("close")
    assert run() == (0, "1 gone")
    assert run() == (0, "")


def test_what_could_not_be_reported_stays_new(opener, tmp_path):
    """A full disk behind stdout: the next run reports it."""
    words = [
        sys.executable,
        "-m",
        "opskit",
        "doctor",
        str(opener.pid),
        *FEW,
        "--since-file",
        str(tmp_path / "state.json"),
    ]
    opener.do("open")
    with open("/dev/full", "w", encoding="utf-8") as full:
        assert subprocess.run(words, stdout=full, stderr=subprocess.PIPE, check=False).returncode == 2
    assert os.listdir(tmp_path) == []
    assert subprocess.run(words, capture_output=True, text=True, check=False).stdout.startswith("1 problem in ")
