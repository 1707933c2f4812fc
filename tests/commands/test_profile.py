"""`opskit profile`, and `opskit jpmp --on-cpu`: options that exclude each other, files, the alias."""

from __future__ import annotations

import json
import os

import pytest
from twodumps import DUMP, LATER

PID = str(os.getpid())


@pytest.mark.parametrize(("words", "message"), [
    (("jpmp", PID, "20", "0.25", "--on-cpu", "--duration", "5s"), "--duration excludes SAMPLES and INTERVAL: choose one"),
    (("jpmp", PID, "20", "--duration", "5s"), "--duration excludes SAMPLES and INTERVAL: choose one"),
    (("profile", PID, "20", "--duration", "5s"), "--duration excludes SAMPLES and INTERVAL: choose one"),
    (("jpmp", PID, "-c", "3", "--duration", "5s"), "--duration and -c/--count exclude each other: choose one"),
    (("jpmp", PID, "-i", "1", "--duration", "5s"), "--duration and -i/--interval exclude each other: choose one"),
    (("jpmp", PID, "--on-cpu", "--wall"), "--on-cpu and --wall exclude each other: choose one"),
    (("jpmp", PID, "--on-cpu", "--offcpu"), "--on-cpu and --offcpu exclude each other: choose one"),
    (("jpmp", PID, "--wall", "--offcpu"), "--wall and --offcpu exclude each other: choose one"),
    (("jpmp", PID, "--locks", "--on-cpu", "--sampler", "unwind"), "--locks reads thread dumps: --sampler unwind takes none"),
    (("jpmp", PID, "--save", "d", "--on-cpu", "--sampler", "unwind"), "--save keeps thread dumps: --sampler unwind takes none"),
    (("jpmp", PID, "--state", "RUNNABLE", "--on-cpu", "--sampler", "unwind"),
     "--state selects threads by their state in a thread dump: --sampler unwind takes none"),
    (("jpmp", PID, "--virtual", "--on-cpu"), "--virtual and --on-cpu exclude each other: choose one"),
    (("jpmp", PID, "-F", "99"), "-F/--frequency goes with --on-cpu: add --on-cpu"),
    (("jpmp", PID, "--wall", "-F", "99"), "-F/--frequency goes with --on-cpu: add --on-cpu"),
    (("jpmp", PID, "--on-cpu", "-F", "99", "--sampler", "dumps"), "-F/--frequency and --sampler dumps exclude each other"),
    (("jpmp", PID, "--on-cpu", "-F", "99", "--save", "d"), "--save keeps thread dumps: -F/--frequency has no effect on them"),
    (("jpmp", PID, "--on-cpu", "-F", "0"), "0.0 is not in the range"),
    (("jpmp", PID, "--on-cpu", "-F", "nan"), "'nan' is not a number"),
    (("jpmp", PID, "--max-stop", "nan"), "'nan' is not a number"),
    (("jpmp", PID, "--sampler", "unwind"), "--sampler unwind goes with --on-cpu: add --on-cpu"),
    (("jpmp", PID, "--on-cpu", "--sampler", "perf"), "'perf' is not one of"),
    (("jpmp", PID, "--on-cpu", "--asprof", "/x"), "--asprof goes with --sampler asprof: add --sampler asprof"),
    (("jpmp", PID, "--on-cpu", "--event", "alloc"), "--event goes with --sampler asprof: add --sampler asprof"),
    (("jpmp", PID, "--sampler", "asprof", "--wall"), "--wall weighs thread dumps (async-profiler: --event wall): --sampler asprof takes none"),
    (("profile", PID, "--sampler", "asprof", "--offcpu"), "--offcpu weighs thread dumps: --sampler asprof takes none"),
    (("jpmp", PID, "20", "--on-cpu", "-w", "-i", "1"), "-i/--interval excludes SAMPLES and INTERVAL: choose one"),
    (("profile", PID, "0"), "profile: SAMPLES is 0; give a whole number from 1 up"),
    (("profile", PID, "5", "soon"), "profile: INTERVAL is 'soon'"),
    (("jpmp", PID, "-w"), "-w/--watch goes with --on-cpu: add --on-cpu"),
    (("jpmp", PID, "-w", "--locks"), "--locks and -w/--watch exclude each other: choose one"),
    (("jpmp", PID, "--on-cpu", "-i", "0", "--sampler", "unwind"), "--sampler unwind: an interval of 0 s leaves no time to sample in"),
])  # fmt: skip
def test_options_that_exclude_each_other(inprocess, words, message):
    """One line, exit code 2, and nothing is sampled."""
    done = inprocess(*words)
    assert (done.code, done.out) == (2, "")
    assert message in done.err
    assert len(done.err.splitlines()) == 1 + ("Try:" in done.err)


@pytest.mark.parametrize(("option", "shown"), [
    (("-F", "99"), "--frequency"), (("--duration", "5s"), "--duration"), (("--sampler", "dumps"), "--sampler"), (("--wall",), "--wall"),
    (("--offcpu",), "--offcpu"), (("-w",), "--watch"), (("--asprof", "x"), "--asprof"), (("--event", "cpu"), "--event"),
])  # fmt: skip
@pytest.mark.parametrize("command", ["jpmp", "profile"])
def test_options_of_live_processes_are_refused_for_files(inprocess, tmp_path, command, option, shown):
    """They are named."""
    path = tmp_path / "x.txt"
    path.write_text(DUMP)
    done = inprocess(command, path, *option)
    assert (done.code, done.out) == (2, "")
    assert f"{shown} goes with a live JVM, not with files" in done.err


def test_of_files_it_is_jpmp(inprocess, tmp_path):
    """The same lines; --on-cpu has to be asked for, since files may not have CPU time."""
    path = tmp_path / "x.txt"
    path.write_text(DUMP + LATER)
    for options in ((), ("--on-cpu",), ("-f", "folded")):
        assert inprocess("profile", path, *options) == inprocess("jpmp", path, *options)


def test_a_file_without_a_suffix_is_a_flame_graph(inprocess, tmp_path):
    """-o of this command draws; a known suffix still chooses the format."""
    path = tmp_path / "x.txt"
    path.write_text(DUMP)
    assert inprocess("profile", path, "-o", tmp_path / "picture").code == 0
    assert "<svg " in (tmp_path / "picture").read_text(encoding="utf-8")
    assert inprocess("profile", path, "-o", tmp_path / "x.folded").code == 0
    assert "<svg" not in (tmp_path / "x.folded").read_text(encoding="utf-8")


def test_kinds_are_read_back_from_json(inprocess, tmp_path):
    """The marks of folded stacks and pictures come from them; a list of another length is an error."""
    entry = {
        "frames": ["a.B.get", "a.B.run", "memcpy"],
        "samples": 1,
        "cpu_ms": 12.0,
        "kinds": ["inlined", "compiled", "native"],
    }
    path = tmp_path / "x.json"
    path.write_text(json.dumps({"stacks": [entry]}))
    assert inprocess("jpmp", path, "--on-cpu", "-f", "folded").out == "memcpy;a.B.run_[j];a.B.get_[i] 12\n"
    assert inprocess("jpmp", path, "--on-cpu").out == "     12 a.B.get,a.B.run,memcpy\n"
    path.write_text(json.dumps({"stacks": [{**entry, "kinds": ["inlined"]}]}))
    done = inprocess("jpmp", path)
    assert (done.code, done.out) == (2, "")
    assert "stacks[0]: kinds is not a list of strings, one for each frame" in done.err
