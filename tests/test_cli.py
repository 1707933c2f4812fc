"""The command line: help, version, suggestions, exit codes, start-up."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys

import click
import pytest
from imports import HEAVY, imported
from terminal import on_terminal

from opskit import __version__
from opskit.catalog import COMMANDS, SYMPTOMS
from opskit.cli import group


def test_help_lists_every_command_by_group_and_ends_with_symptoms(inprocess):
    """`opskit --help` and `-h`: each command with one line, the groups, the symptoms last."""
    done = inprocess("--help")
    assert done.code == 0
    assert done == inprocess("-h")
    for entry in COMMANDS:
        assert entry.hidden or any(line.split()[:1] == [entry.name] for line in done.out.splitlines()), entry.name
        assert f"{entry.group}:" in done.out
        assert entry.hidden or any(line.endswith(entry.help) for line in done.out.splitlines()), "more than one line"
    for symptom, words in SYMPTOMS:
        line = next(line for line in done.out.splitlines() if line.startswith(f"  {symptom}:  "))
        assert line.endswith(f"  {words}"), "more than one line"
    assert done.out.rstrip().splitlines()[-1].endswith(SYMPTOMS[-1][1])


def test_in_this_process_the_answer_is_that_of_a_process(opskit, inprocess):
    """The tests' own fixture: exit code, stdout and stderr, with standard input that is longer than a pipe holds."""
    dump = "Full thread dump x\n\n" + '"a" #1 prio=5 tid=0x1 nid=0x1 runnable\n\tat a.B.c(B.java:1)\n\n' * 20_000
    for words in (
        (),
        ("--version",),
        ("pipes", "-h"),
        ("pipes", "--nope"),
        ("nosuch",),
        ("jpmp", "-"),
        ("jpmp", "/nope"),
    ):
        assert inprocess(*words, stdin=dump) == opskit(*words, stdin=dump)


def test_help_imports_nothing_heavier_than_click():
    """The help starts fast on an overloaded machine."""
    assert not imported("--help") & {*HEAVY, "difflib"}
    opskits = subprocess.run(
        [sys.executable, "-c", "import sys, opskit.cli; print(*[m for m in sys.modules if m.startswith('opskit')])"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert sorted(opskits) == ["opskit", "opskit.catalog", "opskit.cli", "opskit.errors", "opskit.interrupts"]


def test_pipes_in_text_imports_nothing_heavy():
    """Unused modules are not imported."""
    assert not imported("pipes", "-f", "text") & HEAVY


def test_dentry_in_text_imports_nothing_heavy():
    """Only --culprit imports the tracer, ctypes and JSON."""
    assert not imported("dentry", "-f", "text") & HEAVY


@pytest.mark.parametrize("entry", COMMANDS, ids=lambda entry: entry.name)
def test_every_command_has_help(inprocess, entry):
    """-h is --help."""
    done = inprocess(entry.name, "-h")
    assert done.code == 0
    assert "--help" in done.out
    assert done.out == inprocess(entry.name, "--help").out


def test_version(inprocess):
    """`opskit --version` prints the version."""
    assert inprocess("--version") == (0, f"opskit {__version__}\n", "")


@pytest.mark.parametrize(("typed", "meant"), [("pipe", "pipes"), ("pips", "pipes"), ("PIPES", "pipes")])
def test_a_mistyped_command_suggests_the_nearest(inprocess, typed, meant):
    """Exit 2, and the name that was probably meant."""
    done = inprocess(typed)
    assert done.code == 2
    assert f"did you mean {meant!r}" in done.err
    assert done.out == ""


def test_a_command_far_from_all_suggests_nothing(inprocess):
    """No suggestion without similarity."""
    done = inprocess("qqqqqqqq")
    assert done.code == 2
    assert "did you mean" not in done.err


def test_unknown_option_is_one_clear_line_and_exit_2(inprocess):
    """Usage errors go to stderr."""
    done = inprocess("pipes", "--no-such-thing")
    assert done.code == 2
    assert "--no-such-thing" in done.err
    assert done.out == ""


def test_a_closed_pipe_ends_quietly():
    """`opskit … | head` prints no complaint."""
    reading, writing = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-m", "opskit", "pipes"], stdout=writing, stderr=subprocess.PIPE, text=True
    )
    os.close(reading)
    os.close(writing)
    _, err = process.communicate(timeout=60)
    assert "Broken pipe" not in err
    assert "Traceback" not in err
    assert process.returncode == 0


def test_a_full_disk_behind_stdout_is_said():
    """/dev/full: one line, exit 2."""
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run(
            [sys.executable, "-m", "opskit", "pipes"], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 2
    assert "No space left" in done.stderr
    assert "Traceback" not in done.stderr


def test_no_word_at_all_shows_the_help_as_it_is(inprocess):
    """Exit code 2, and the help on stderr."""
    done = inprocess()
    assert done.code == 2
    assert done.out == ""
    assert done.err == inprocess("--help").out


@pytest.mark.parametrize("closed", ["1", "2"])
def test_a_closed_stream_is_no_crash(closed):
    """Closed stdout, as in a daemon: one line and exit code 2, but a file is written. Closed stderr: the exit code only."""
    python = f"{sys.executable} -m opskit"
    for words, code in (("pipes nosuch", 2), ("pipes", 2 if closed == "1" else 0), ("pipes -o /dev/null", 0)):
        done = subprocess.run(
            ["sh", "-c", f"{python} {words} {closed}>&-"], capture_output=True, text=True, check=False
        )
        assert done.returncode == code, words
        assert "Traceback" not in done.stderr
        assert done.stderr.startswith("opskit") is (closed == "1" and code == 2), words


def test_a_stderr_that_takes_nothing_does_not_change_the_exit_code():
    """Stderr is full, or its reader is gone."""
    reading, writing = os.pipe()
    os.close(reading)
    with open("/dev/full", "w", encoding="utf-8") as full:
        for stderr in (full, writing):
            done = subprocess.run(
                [sys.executable, "-m", "opskit", "pipes", "nosuch"], stdout=subprocess.PIPE, stderr=stderr, check=False
            )
            assert done.returncode == 2
    os.close(writing)


def test_stdout_by_its_name_is_not_replaced(tmp_path):
    """`-o /dev/stdout >> log` appends, as `-o -` does."""
    log = tmp_path / "log"
    command = f"echo before > {log}; {sys.executable} -m opskit pipes -n 1 -o /dev/stdout >> {log}; echo after >> {log}"
    subprocess.run(["sh", "-c", command], stderr=subprocess.DEVNULL, check=True)
    lines = log.read_text().splitlines()
    assert (lines[0], lines[-1]) == ("before", "after")
    assert "pipes using" in lines[-2]


def test_the_default_is_a_table_on_a_terminal_that_fits_it():
    """A coloured table that fits the screen and counts the rows left out; the terminal wraps the sentences."""
    holder = subprocess.Popen(
        [sys.executable, "-c", "import os\nfor _ in range(60): os.pipe()\nprint(flush=True); input()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        holder.stdout.readline()
        shown = on_terminal("pipes", rows=24, columns=60)[1]
        plain = on_terminal("pipes", rows=24, columns=60, env={"NO_COLOR": "1"})[1]
        every = on_terminal("pipes", "-n", "0", rows=24, columns=60)[1]
    finally:
        holder.kill()
        holder.communicate()
    assert "\x1b[" in shown
    assert "\x1b[" not in plain
    assert "more; -n 0 shows all" in plain
    assert "more; -n 0" not in every
    lines = plain.splitlines()
    assert sum(math.ceil(len(line) / 60) for line in lines) <= 24
    assert max(len(line) for line in lines[1 : next(n for n, line in enumerate(lines) if " more; " in line)]) <= 60


@pytest.mark.parametrize("command", ["pipes", "jvms", "hsperf-check"])
def test_without_proc(root_only, command):
    """An error, not a list of nothing."""
    words = ("unshare", "-m", "sh", "-c", 'umount -l /proc && exec "$@"', "sh", sys.executable, "-m", "opskit", command)
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "/proc lists no process: it is not mounted here; mount -t proc proc /proc" in done.stderr


def test_no_color_is_honoured_as_an_option_too():
    """--no-color, before or after the command."""
    assert "\x1b[" not in on_terminal("--no-color", "pipes")[1]
    assert "\x1b[" not in on_terminal("pipes", "--no-color")[1]


@pytest.mark.parametrize(
    ("words", "number", "completed"), [("opskit pi", 1, "plain,pipes\n"), ("opskit no-such-command -", 2, "")]
)
def test_completion(words, number, completed):
    """Click's completion protocol works with the lazy group; behind an unknown command it prints nothing."""
    done = subprocess.run(
        [sys.executable, "-c", "from opskit.cli import main; main()"],
        env={**os.environ, "_OPSKIT_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(number)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (completed in done.stdout, done.stderr) == (True, "")


@pytest.mark.parametrize(("command", "name"), [("compare", "bad"), ("compare", "good"), ("capture", "path")])
def test_names_of_captures_are_completed(command, name):
    """The shell completes them as files."""
    context = click.Context(group)
    parameter = next(each for each in group.get_command(context, command).params if each.name == name)
    assert [each.type for each in parameter.shell_complete(context, "x")] == ["file"]


def test_it_goes_first_when_memory_runs_out():
    """Its own oom_score_adj is 1000, so that the application survives it."""
    code = (
        "from opskit import cli; cli.run(['pipes', '-o', '/dev/null', '-f', 'json']);"
        "print(open('/proc/self/oom_score_adj').read())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "1000"


def test_json_begins_with_where_when_and_on_what(inprocess):
    """The schema's version, host, UTC time, version, command line and target come first."""
    document = json.loads(inprocess("pipes", "-f", "json").out)
    assert list(document)[:6] == ["schema", "host", "time_utc", "version", "command_line", "target"]
    assert document["version"] == __version__
    assert document["host"] == os.uname().nodename


def test_a_parent_that_ignores_its_children_does_not_make_us_ignore_ours(root_only):
    """An ignored SIGCHLD survives exec: opskit still gets the exit status of its children."""
    process = subprocess.Popen(["sleep", "600"], user=65534, group=65534, extra_groups=[])
    try:
        done = subprocess.run(
            [sys.executable, "-m", "opskit", "limits", str(process.pid), "--probe", "--yes"],
            capture_output=True, text=True, check=False, cwd="/",
            preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN),
        )  # fmt: skip
    finally:
        process.kill()
        process.wait()
    assert (done.returncode, done.stderr.count("\n")) == (0, 1), done.stderr
    assert "really started" in done.stdout
