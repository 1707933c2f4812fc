"""Every command starts and does its work on this Python: `tox -e smoke-py39,smoke-py313` runs this file alone."""

from __future__ import annotations

import json
import os
from pathlib import Path

import jvmtree
import pytest

from opskit.catalog import CHECKS, COMMANDS

FIXTURES = Path(__file__).resolve().parent / "fixtures"
HISTOGRAM = "num     #instances         #bytes  class name\n   1:             5            {}  a.B\nTotal             5            {}\n"
RUNS = {
    "doctor": (os.getpid(), "--only", "fds,limits", "--all", "-v"),
    "capture": ("--root", "JVM", "-o", "x.tar.gz"),
    "compare": ("x.tar.gz", "x.tar.gz"),
    "pipes": ("--ends", "--fill"),
    "limits": (os.getpid(), "--all"),
    "fds": (os.getpid(), "-v"),
    "io": (os.getpid(), "-i", "0.2", "-v"),
    "irqs": ("-i", "0.2", "-v"),
    "tcp": (os.getpid(), "-i", "0.2"),
    "clock": (os.getpid(),),
    "cswitch": (os.getpid(), "-i", "0.2", "-v"),
    "dentry": (),
    "mem": (os.getpid(), "-v"),
    "oom": (),
    "jvms": (),
    "hsperf-check": (),
    "attach-check": (),
    "jpmp": (FIXTURES / "thread-dumps" / "jdk25-dump-to-file.json", "--idle"),
    "profile": (FIXTURES / "thread-dumps" / "jdk25-dump-to-file.json", "--idle"),
    "jmap-diff": ("BEFORE", "AFTER"),
    "crash": (FIXTURES / "crashes" / "jdk17-unsafe.log", "-v"),
    "hdr": (FIXTURES / "hdr" / "throttle.hdr", "--by", "4s"),
    "jmx": (7, "--root", "JVM"),
    "safepoints": (FIXTURES / "safepoint-logs" / "jdk17-timeout.log",),
}


def machine_with_a_jvm(root):
    """A copy of a machine's files, with those of a JVM, PID 7."""
    root.mkdir()
    tree = jvmtree.Tree(root)
    counters = tree.write("tmp/hsperfdata_app/7", (FIXTURES / "hsperfdata" / "jdk17-g1").read_bytes())
    mapped = f"7f0000002000-7f000000a000 rw-s 00000000 08:01 {counters.stat().st_ino} /tmp/hsperfdata_app/7\n"
    tree.process(7, maps=jvmtree.PROGRAM + jvmtree.LIBJVM + mapped)


@pytest.mark.parametrize("name", [entry.name for entry in COMMANDS])
def test_each_command_runs(opskit, inprocess, tmp_path, name):
    """Its help in a process, and one real run in text, table, JSON and Markdown; exit code 1: a finding about this machine."""
    assert opskit(name, "--help").code == 0
    for file, size in (("BEFORE", 100), ("AFTER", 200)):
        (tmp_path / file).write_text(HISTOGRAM.format(size, size))
    if {"JVM", "x.tar.gz"}.intersection(RUNS[name]):
        machine_with_a_jvm(tmp_path / "JVM")
    if name == "compare":
        assert inprocess("capture", "--root", tmp_path / "JVM", "-o", tmp_path / "x.tar.gz").code == 0
    words = [tmp_path / word if word in ("BEFORE", "AFTER", "JVM", "x.tar.gz") else word for word in RUNS[name]]
    for form in ("text", "table", "json", "markdown"):
        done = inprocess(name, *words, "-f", form)
        assert done.code in (0, 1), done
        assert done.out.strip(), form
        if form == "json":
            assert json.loads(done.out)["host"]


def test_every_check_of_doctor_runs(inprocess):
    """None ends by a bug, which doctor names without failing."""
    done = inprocess("doctor", "--deadline", "20s", "-f", "json")
    assert done.code in (0, 1), done
    document = json.loads(done.out)
    assert [gap for gap in document["unchecked"] if "a bug in opskit" in gap["reason"]] == []
    named = {each["check"] for each in (*document["checked"], *document["unchecked"])}
    assert named | {"java-threads"} == CHECKS.keys()  # which is named where a JVM runs


@pytest.mark.parametrize("suffix", ["svg", "png"])
def test_charts_are_drawn(inprocess, tmp_path, suffix):
    """With the extra `plot`."""
    pytest.importorskip("matplotlib")
    path = tmp_path / f"x.{suffix}"
    assert inprocess("dentry", "-o", path).code in (0, 1)
    assert path.stat().st_size > 1000
