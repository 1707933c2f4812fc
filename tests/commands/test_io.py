"""`opskit io`: the machine and a process from hand-made facts in every format, and real processes."""

from __future__ import annotations

import json
import os
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import iofacts
import pytest
from stracing import OPENS, traced

from opskit.analysis.io.judge import judge
from opskit.render.formats import csv, markdown, prometheus, table, text
from opskit.render.formats import json as as_json
from opskit.render.report import About
from opskit.render.shown import Shown
from opskit.render.views.io import report as view
from opskit.render.views.io.document import complete

ABOUT = About("HOST", "T", "V", "opskit io")
READER = "import os, sys\nfd = os.open(sys.argv[1], 0)\nprint(fd, flush=True)\nwhile True:\n    os.read(fd, 1) or os.lseek(fd, 0, 0)\n"
SHELL = "import os, sys, time\nprint('ready', flush=True)\nwhile True:\n    os.system('head -c 2000000 /dev/zero > /dev/null')\n"


RENDER = {"table": lambda it: table.render(it, 100, 40), "text": text.render, "markdown": markdown.render,
          "json": as_json.render, "csv": csv.render, "prom": prometheus.render}  # fmt: skip


def report(text_form=False, facts=iofacts.BUSY, *, on_screen=False):
    """The report with its JSON object and metrics."""
    result = judge(facts)
    target = view.target(result)
    about = ABOUT if target is None else ABOUT._replace(target=target, command_line="opskit io 4242 --ask")
    return complete(view.report(about, result, Shown(text=text_form, asked=facts.asked, on_screen=on_screen)), result)


@pytest.mark.parametrize("form", RENDER)
def test_the_machine_in_every_format(golden, form):
    """Processes, devices, findings, what could not be read."""
    golden(f"io-host.{form}", RENDER[form](report(form == "text")))


@pytest.mark.parametrize("form", RENDER)
def test_a_process_in_every_format(golden, form):
    """Threads with their files and Java stacks, findings, the files, the cgroup."""
    golden(f"io-process.{form}", RENDER[form](report(form == "text", iofacts.PROCESS)))


@pytest.mark.parametrize(("facts", "rows", "wanted"), [
    (iofacts.BUSY, ("4500", "4242"), "next: opskit io 4500"),
    (iofacts.PROCESS, ("report", "log-writer"), "next: cat /proc/4242/task/4252/stack"),
], ids=["machine", "process"])  # fmt: skip
def test_the_first_screen(facts, rows, wanted):
    """On 80 x 24 the answer, the next command, the findings and the first rows are visible."""
    shown = table.render(report(facts=facts, on_screen=True), 80, 24, screen=True).splitlines()
    assert sum(-(-len(line) // 80) for line in shown) < 24
    answer = judge(facts).findings[0].summary
    assert shown[1] == f"{answer}."
    assert wanted in shown
    assert all(any(line.startswith(row) for line in shown) for row in rows)


def test_a_reader_of_single_bytes(inprocess, spawn, tmp_path):
    """The machine names it, and what to type; the process's own look proves the file."""
    lines = tmp_path / "lines.txt"
    lines.write_bytes(b"x" * (32 << 20))
    reader = spawn(READER, lines)
    machine = json.loads(inprocess("io", "-i", "0.5", "-f", "json").out)
    row = next(each for each in machine["processes"] if each["pid"] == reader.pid)
    assert 0.9 < row["bytes_per_read"] < 1.1
    own = json.loads(inprocess("io", reader.pid, "-i", "0.5", "-f", "json").out)
    assert own["threads"][0]["path"] == str(lines)
    assert [finding["code"] for finding in own["findings"]] == ["io-tiny-reads"]


def test_children_that_ended_are_no_reads_of_their_parent(inprocess, spawn):
    """The kernel adds them to the parent; they are shown apart."""
    shell = spawn(SHELL)
    found = json.loads(inprocess("io", "-i", "0.7", "-f", "json").out)
    row = next(each for each in found["processes"] if each["pid"] == shell.pid)
    assert row["read_bytes_per_s"] < 1000 < row["children"][0]["read_bytes_per_s"]


def test_opskit_is_not_in_its_own_answer(inprocess):
    """What it reads itself is no answer."""
    found = json.loads(inprocess("io", "-i", "0.1", "-f", "json").out)
    assert os.getpid() not in [each["pid"] for each in found["processes"]]


def test_what_it_reads_writes_and_sends(spawn, tmp_path):
    """The files of its safety table, and nothing is written or sent."""
    page = (Path(__file__).parents[2] / "docs" / "commands" / "io.md").read_text(encoding="utf-8")
    named = {name for part in re.findall(r"/proc/PID/\{(.*?)\}", page) for name in part.split(",")}
    (tmp_path / "lines").write_bytes(b"x" * 4096)
    reader = spawn(READER, tmp_path / "lines")
    with ThreadPoolExecutor() as pool:
        runs = [*pool.map(lambda words: traced("io", *words, "-i", "0.2", "-f", "text"), ((), (reader.pid,)))]
    for run in runs:
        assert run.code in (0, 1), run.err
        assert run.acting() == []
        opened = "\n".join(run.of(*OPENS))
        files = set(re.findall(r'"/proc/\d+/(?:task/\d+/)?(\w+)', opened)) - {"task"}
        assert {"io", "stat"} < files <= named


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--ask",), "--ask goes with a process"),
        (("1", "-u", "root"), "goes without a process"),
        (("-c", "2"), "-w"),
        (("0",), "not a PID"),
    ],
)
def test_words_that_do_not_fit(inprocess, words, message):
    """Exit code 2, with what to type."""
    done = inprocess("io", *words)
    assert (done.code, message in done.err) == (2, True), done.err
