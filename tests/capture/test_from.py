"""`opskit --from CAPTURE`: where the option may stand, what excludes it, what a capture cannot answer, and where a watch ends."""

from __future__ import annotations

import errno
import json
import os

import click
import inprocess
import pytest
from jvmtree import LIBJVM, PROGRAM, Tree
from taping import recorded, tape_of
from terminal import on_terminal
from untouched import heard

from opskit import cli
from opskit.actions.capture_file import save_capture
from opskit.catalog import COMMANDS
from opskit.commands.shared.machine import option_values, without_capture
from opskit.commands.shared.only_live import only_live
from opskit.host import Host
from opskit.proc.recorded.calls import given
from opskit.proc.recorded.fs import TapeFS
from opskit.proc.recorded.tape import FILE, Failure, Mark, Tape
from opskit.recorded_host import RecordedHost

JVM = 40
STAT = "cpu  {0} 0 0 1000 0 0 0 0 0 0\ncpu0 {0} 0 0 1000 0 0 0 0 0 0\nctxt {0}\nbtime 1700000000\nprocesses 9\n"


@pytest.fixture(scope="module")
def tape(tmp_path_factory):
    """A machine with a JVM and two other processes."""
    root = tmp_path_factory.mktemp("machine")
    tree = Tree(root)
    tree.process(JVM, maps=PROGRAM + LIBJVM + tree.perf(str(JVM)))
    tree.process(60, ("producer",), threads=2)
    tree.process(1, ("init",), threads=1)
    tree.write("proc/meminfo", "MemTotal: 8000000 kB\nMemFree: 100000 kB\nMemAvailable: 7000000 kB\n")
    tree.write("proc/sys/kernel/hostname", "captured\n")
    return recorded(Host.at(str(root), None), (60,))[0]


@pytest.fixture(scope="module")
def capture(tape, tmp_path_factory):
    """The file of a capture of a copy."""
    path = tmp_path_factory.mktemp("captures") / "x.tar.gz"
    save_capture(tape, str(path))
    return str(path)


@pytest.fixture(scope="module")
def samples(tape, tmp_path_factory):
    """The files of captures of one, two and four samples, a second apart, of the same machine as if it were live."""
    directory, made = tmp_path_factory.mktemp("samples"), {}
    for number in (1, 2, 4):
        marks = tuple(Mark(1_700_009_000.0 + each, 9000.0 + each) for each in range(number))
        live = Tape(tape.origin._replace(is_live=True), marks)
        for kind in tape.answers:
            live.answers[kind] = [dict(tape.answers[kind][0])]
        for mark in range(number):
            live.keep(FILE, f"{tape.origin.proc}/stat", STAT.format(100 * mark).encode(), mark)
        path = directory / f"{number}.tar.gz"
        save_capture(live, str(path))
        made[number] = str(path)
    return made


def test_it_stands_before_or_after_the_command(capture):
    """Both ways give the same, as does `=`; the JSON names the command as it is typed on the machine itself."""
    runs = [
        inprocess.run("--from", capture, "jvms", "-f", "json"),
        inprocess.run("jvms", "--from", capture, "-f", "json"),
        inprocess.run("jvms", "-f", "json", f"--from={capture}"),
        inprocess.run("--from", capture, "jvms", "-f", "json", "--from", capture),
    ]
    assert {run.code for run in runs} == {0}
    assert len({run.out for run in runs}) == len({run.err for run in runs}) == 1
    found = json.loads(runs[0].out)
    assert found["host"] == "captured"
    assert found["command_line" if "command_line" in found else "command"].endswith(" jvms -f json")


@pytest.mark.parametrize("words", [("--from", "{}", "producer"), ("producer", "--from", "{}"), ("60", "--from={}")])
def test_a_process_of_the_capture_is_a_word(capture, words):
    """`opskit WORD` looks for it in the capture, not on this machine."""
    run = inprocess.run(*(word.format(capture) for word in words))
    assert run.code == 0
    assert "60 (producer)" in run.out


def test_a_process_that_is_not_in_the_capture_is_no_word(capture):
    """Not even one that runs here."""
    run = inprocess.run(str(os.getpid()), "--from", capture)
    assert run.code == 2
    assert f"no such command or process '{os.getpid()}'" in run.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("jvms", "--root", "/x"), "opskit: --from and --root exclude each other: choose one\n"),
        (("jvms", "--proc", "/proc"), "opskit: --from and --proc exclude each other: choose one\n"),
        (("jvms", "--from", "/other"), "opskit: --from is given twice: {} and /other; give one capture\n"),
        (("jvms", "--from="), "opskit: --from names no file; give the file of a capture\n"),
        (("--from", "/other", "jvms"), "opskit: --from is given twice: {} and /other; give one capture\n"),
    ],
)
def test_it_is_given_once_and_alone(capture, words, message):
    """One clear line and exit code 2."""
    run = inprocess.run("--from", capture, *words)
    assert run.code == 2
    assert sorted(message.format(capture)) == sorted(run.err) or run.err == message.format(capture)


@pytest.mark.parametrize("name", ["none.tar.gz", ""])
def test_a_file_that_is_no_capture(tmp_path, name):
    """One line with its path."""
    run = inprocess.run("jvms", "--from", f"{tmp_path}/{name}")
    assert (run.code, run.out) == (2, "")
    assert run.err.count("\n") == 1
    assert str(tmp_path) in run.err


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOENT])
def test_a_recorded_error_is_not_one_of_the_output(capture, monkeypatch, number):
    """A recorded error that no command expects is told as what it is, in one line."""
    monkeypatch.setattr(TapeFS, "pids", lambda _: given(Failure(number, "no such luck"), "int"))
    run = inprocess.run("jvms", "--from", capture)
    assert run == (2, "", "opskit: the capture cannot answer: a question: no such luck\n")


def _arguments(parameter):
    return (
        []
        if parameter.is_flag
        else ["1" if not isinstance(parameter.type, click.Choice) else parameter.type.choices[0]]
    )


REFUSED = [
    (entry.name, parameter) for entry in COMMANDS for parameter in only_live(entry.name) if parameter
]  # fmt: skip


@pytest.mark.parametrize(("name", "parameter"), REFUSED, ids=lambda each: each)
def test_what_needs_the_machine_itself_is_refused(capture, name, parameter):
    """One line that says what the option does, names the file, and says what to do instead."""
    command = cli.group.get_command(click.Context(cli.group), name)
    option = next(each for each in command.params if each.name == parameter)
    more = ["--locks"] if parameter == "synchronizers" else ["--on-cpu"] if parameter == "asprof" else []
    target = [] if name in ("irqs", "dentry", "clock") else ["1"] if parameter != "bench" else []
    run = inprocess.run(name, *target, option.opts[-1], *_arguments(option), *more, "--from", capture)
    assert (run.code, run.out) == (2, "")
    assert run.err.count("\n") == 1
    assert capture in run.err
    assert "is a capture; run it on that machine, without --from" in run.err


@pytest.mark.parametrize("words", [("capture",), ("profile", "1")])
def test_commands_that_read_no_capture(capture, words):
    """They say what to type."""
    run = inprocess.run(*words, "--from", capture)
    assert (run.code, run.out) == (2, "")
    assert f"opskit: {words[0]} " in run.err
    assert f"{capture} is a capture; " in run.err


@pytest.mark.parametrize(
    ("words", "blocks"),
    [
        (("-w",), [1, 2, 4]),
        (("-w", "-i", "100ms"), [1, 2, 4]),
        (("-w", "-i", "2s"), [1, 2, 3]),
        (("-w", "-i", "1h"), [1, 2, 2]),
        (("-w", "-c", "1"), [1, 1, 1]),
        (("-w", "-c", "9"), [1, 2, 4]),
    ],
)
def test_a_watch_shows_the_samples_and_ends(samples, words, blocks):
    """A block a sample, and no error where they end; with one sample there is nothing to watch."""
    for number, expected in zip((2, 4), blocks[1:]):
        run = inprocess.run("mem", *words, "-f", "table", "--from", samples[number])
        assert run.code == 0, run.err
        assert run.out.count("Memory is not short") == expected
    run = inprocess.run("mem", *words, "--from", samples[1])
    assert (run.code, run.out) == (2, "")
    assert f"the capture {samples[1]} has 1 sample: rates need two; capture with -c 2" in run.err


def test_one_sample_lacks_rates_alone(samples):
    """All else is known of a machine that was live: no check takes the capture for a copy."""
    run = inprocess.run("doctor", "--from", samples[1], "-f", "json")
    why = {gap["check"]: gap["reason"] for gap in json.loads(run.out)["unchecked"]}
    assert {why[check] for check in ("cswitch", "irqs", "io", "processes")} == {"one sample has no rates"}
    assert not [reason for reason in why.values() if "copy" in reason]


def test_a_copy_has_no_rates(capture):
    """As with --root, and the message names the file."""
    run = inprocess.run("mem", "-w", "--from", capture)
    assert run.code == 2
    assert f"-w/--watch: {capture} is a capture of a copy, which has no rates" in run.err


def test_a_replay_touches_nothing_here(samples):
    """No file of this machine's /proc or /sys is opened, no socket, no process, no signal."""
    for line in ("jvms", "doctor", "mem -w", "pipes", "limits 60", "fds", "40"):
        inprocess.run(*line.split(), "--from", samples[2])  # what it imports
        with heard() as done:
            inprocess.run(*line.split(), "--from", samples[2])
        assert done == [], line


def test_a_command_line_as_on_the_machine():
    """Without the capture, and what follows `--` as it is."""
    assert without_capture(["--from", "x", "jvms", "--from=y", "-w", "--", "--from", "z"]) == [
        "jvms",
        "-w",
        "--",
        "--from",
        "z",
    ]
    assert without_capture(["jvms", "--from"]) == ["jvms"]
    assert option_values(["a", "--root", "r", "--from=c", "--", "--proc", "p"], "--root", "--proc", "--from") == [
        "r",
        None,
        "c",
    ]


def test_files_complete_it():
    """The shell completes the names of files."""
    for parameters in (cli.group.params, cli.group.get_command(click.Context(cli.group), "jvms").params):
        option = next(each for each in parameters if each.name == "captures")
        assert [each.type for each in option.shell_complete(click.Context(cli.group), "x")] == ["file"]


def test_a_terminal_is_told_what_it_shows(samples):
    """One line on stderr where that is a terminal: the machine, when, and how many samples. Elsewhere nothing."""
    code, out = on_terminal("jvms", "--from", samples[2])
    assert code == 0
    assert "capture of captured, 2023-11-15T00:43:20Z, 2 samples, 1.0 s apart" in out
    assert "capture of" not in inprocess.run("jvms", "--from", samples[2]).err


def test_a_host_can_be_given(tape):
    """The outermost context's `obj` is the machine that all commands read."""
    assert tape_of(Host.at(None, None)).marks
    with cli.group.make_context("opskit", ["jvms"], obj=RecordedHost(tape)) as context:
        assert cli.group.invoke(context) == 0
