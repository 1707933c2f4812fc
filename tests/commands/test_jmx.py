"""`opskit jmx` on real JVMs: its lines, formats and patterns, a watch, a terminal, what it does to the JVM."""

from __future__ import annotations

import json
import os
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import agentjar
import jvms
import promtext
import pytest
from rich.cells import cell_len
from stracing import OPENS, traced
from terminal import on_terminal

from opskit.actions import load_agent
from opskit.commands.shared.heading import about
from opskit.host import Host

MEMORY = "java.lang:type=Memory"
VERSIONS = (17, 25)
OPTIONS = ("-Xmx64m", "-XX:+UseG1GC", "-Dshop.password=hunter2")


@pytest.fixture(scope="module")
def running():
    """A JVM of each version, side by side."""
    with ThreadPoolExecutor() as pool:
        started = [
            pool.submit(jvms.start, "sleep=2", "allocate=2000000", version=each, options=OPTIONS) for each in VERSIONS
        ]
        made = [each.result() for each in started]
    yield dict(zip(VERSIONS, made))
    for each in made:
        each.stop()


@pytest.fixture(params=VERSIONS, ids=str)
def pid(request, running):
    """The PID of the JVM of this version."""
    return running[request.param].pid


def test_the_line_of_a_script(inprocess, pid):
    """ObjectName, attribute, value."""
    done = inprocess("jmx", pid, f"{MEMORY} HeapMemoryUsage.used")
    assert (done.code, done.err) == (0, "")
    assert re.fullmatch(r"java\.lang:type=Memory HeapMemoryUsage\.used [0-9]+\n", done.out)


def test_all_formats_say_the_same(inprocess, pid):
    """What does not change: the maximum of the heap, the pools, the collectors' names, texts."""
    out = {form: inprocess("jmx", pid, "-f", form) for form in ("text", "json", "csv", "prometheus", "markdown")}
    assert {form: done.code for form, done in out.items()} == dict.fromkeys(out, 0), out
    beans = json.loads(out["json"].out)["beans"]
    pools = {name for name in beans if name.startswith("java.lang:type=MemoryPool,")}
    assert {f"java.lang:type=MemoryPool,name={each}" for each in ("G1 Eden Space", "G1 Old Gen", "Metaspace")} < pools
    most = beans[MEMORY]["HeapMemoryUsage"]["max"]
    assert most == 64 << 20
    assert f"{MEMORY} HeapMemoryUsage.max {most}\n" in out["text"].out
    assert f"{MEMORY},HeapMemoryUsage.max,{most}," in out["csv"].out
    assert promtext.value(promtext.parse(out["prometheus"].out), "jvm_memory_max_bytes", area="heap") == most
    lines = {line.rpartition(" ")[0] for line in out["text"].out.splitlines()}
    assert {f"{name} Usage.used" for name in pools} < lines
    assert not any("hunter2" in done.out + done.err for done in out.values())
    assert f'"{pid}"' not in out["prometheus"].out


def test_patterns(inprocess, pid):
    """In any order of the properties; what means nothing is named, and the exit code is 2."""
    some = inprocess("jmx", pid, "*:name=G1*,type=MemoryPool Usage.used", "-f", "json")
    assert {*json.loads(some.out)["beans"]} == {
        f"java.lang:type=MemoryPool,name=G1 {each}" for each in ("Eden Space", "Old Gen", "Survivor Space")
    }
    missed = inprocess("jmx", pid, "java.lang:type=Memry", f"{MEMORY} HeapMemoryUsage.usd", f"{MEMORY} *.max")
    assert missed.code == 2
    assert "no MBean matches 'java.lang:type=Memry'; near: java.lang:type=Memory\n" in missed.err
    assert f"{MEMORY} has no attribute 'HeapMemoryUsage.usd'; near: HeapMemoryUsage" in missed.err
    assert [line.split()[:2] for line in missed.out.splitlines()] == [
        [MEMORY, "HeapMemoryUsage.max"], [MEMORY, "NonHeapMemoryUsage.max"],
    ]  # fmt: skip
    foreign = inprocess("jmx", pid, "kafka.server:*")
    assert (foreign.code, foreign.out) == (2, "")
    assert f"opskit jmx {pid} --agent 'kafka.server:*'" in foreign.err


def test_a_watch_has_changes_per_second(inprocess, pid):
    """As the last word, from the second sample on."""
    done = inprocess("jmx", pid, "java.lang:type=Runtime", MEMORY, "-w", "-i", "200ms", "-c", "2")
    first, second = ([*block.splitlines()] for block in done.out.split("\n\n"))
    assert {line.rpartition(" ")[2] for line in first} == {"-"}
    [uptime] = [line.split() for line in second if " Uptime " in line]
    assert 500 < float(uptime[-1]) < 2000
    assert "java.lang:type=Runtime VmName OpenJDK 64-Bit Server VM -" in second
    assert any(line.startswith(f"{MEMORY} HeapMemoryUsage.max {64 << 20} +0") for line in second)


def test_the_first_screen(running):
    """On 80 x 24: three sentences, pools, and what to type; a watch draws it again."""
    pid = running[25].pid
    code, shown = on_terminal("jmx", str(pid), env={"NO_COLOR": "1"})
    lines = shown.replace("\r", "").splitlines()
    assert code == 0
    assert sum(max(1, -(-cell_len(line) // 80)) for line in lines) < 24
    assert lines[1].startswith("Heap ")
    assert any(line.startswith("G1 Eden Space") for line in lines)
    assert lines[-1].startswith(f"next: opskit jmx {pid} -v; ")
    code, shown = on_terminal("jmx", str(pid), "-w", "-i", "200ms", "-c", "2", env={"NO_COLOR": "1"})
    frames = shown.replace("\r", "").split("\x1b[H\x1b[2J")[1:]
    assert len(frames) == 2
    assert "growth/s" in frames[1]
    assert all(sum(max(1, -(-cell_len(line) // 80)) for line in frame.split("\n")) <= 24 for frame in frames)


def test_what_it_reads_writes_and_sends(running):
    """The files of its safety table; nothing is written, and no signal is sent."""
    page = (Path(__file__).parents[2] / "docs" / "commands" / "jmx.md").read_text(encoding="utf-8")
    named = {name for part in re.findall(r"/proc/PID/\{(.*?)\}", page) for name in part.split(",")}
    run = traced("jmx", running[17].pid, "-f", "text")
    assert run.code == 0, run.err
    assert run.acting() == []
    opened = "\n".join(run.of(*OPENS))
    assert (
        set(re.findall(rf'"/proc/{running[17].pid}/(?:task/\d+/)?(\w+)', opened)) - {"task", "root", "exe", "ns"}
        <= named
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("1", "2"), "two targets, '1' and '2'"),
        (("java.lang:type=Memory", "1", "HeapMemoryUsage"), "an attribute is a part of its pattern"),
        (("http://127.0.0.1:8778/jolokia",), "as --jolokia URL"),
        (("1", "--yes"), "--yes goes with --agent"),
        (("1", "--agent", "--jolokia", "auto"), "exclude each other"),
        (("1", "--agent", "-i", "1"), "--agent without -w has no interval"),
        (("NoSuchJvm",), "NoSuchJvm"),
        (("1", " : " * 2000), "not a pattern"),
        (("http://ops:hunter2@h/jolokia",), "'http://ops:…@h/jolokia' is no pattern"),
        (("--jolokia", "", "java.lang:*"), "--jolokia: no URL"),
        (("--jolokia", "http://h", "--ask"), "--ask goes with a JVM"),
    ],
)
def test_words_that_do_not_fit(inprocess, words, message):
    """Exit code 2, with what to type, and without a password."""
    done = inprocess("jmx", *words)
    assert (done.code, message in done.err, "hunter2" in done.err) == (2, True, False), done.err


def test_no_password_is_in_the_head_of_a_report(monkeypatch):
    """Which shows the command line."""
    monkeypatch.setattr(
        "sys.argv", ["opskit", "jmx", "--jolokia", "http://ops:hunter2@h/jolokia", "a:type=Token,key=x"]
    )
    shown = "opskit jmx --jolokia 'http://ops:…@h/jolokia' a:type=Token,key=x"
    assert about(Host.at(None, None)).command_line == shown


def test_of_a_copy_nothing_is_asked(inprocess, tmp_path):
    """The listener, the agent and a discovery act on a process, which is not there."""
    (tmp_path / "proc" / "7").mkdir(parents=True)
    (tmp_path / "proc" / "7" / "status").write_text("Name:\tjava\n")
    for words in (("--ask",), ("--agent", "--yes", "a:*"), ("--jolokia", "auto")):
        done = inprocess("jmx", "7", *words, "--root", tmp_path)
        assert (done.code, "Nothing was sent" in done.err) == (2, True), done.err


def test_the_agent_is_loaded_only_once_it_is_agreed_to(inprocess, running, monkeypatch):
    """Without --yes it says what stays: off a terminal that is all, on a terminal it asks. With --yes it reads.

    A newer opskit notices the class of an older one.
    """
    agentjar.require_jar()
    pid = running[17].pid
    words = ("jmx", pid, "--agent", f"{MEMORY} Verbose")
    refused = inprocess(*words)
    assert (refused.code, refused.out) == (2, "")
    assert refused.err.startswith("opskit: nothing was loaded: ")
    assert refused.err.endswith(f"add --yes to load it: opskit jmx {pid} --agent --yes '{MEMORY} Verbose'\n")
    code, shown = on_terminal(*map(str, words), question="Type yes", answer=b"no\n", columns=500)
    assert (code, "MiB of resident memory" in shown, "nothing was loaded" in shown) == (2, True, True), shown
    assert "instrument" not in Path(f"/proc/{pid}/maps").read_text(encoding="utf-8")
    read = inprocess(*words, "--yes")
    assert (read.code, read.out) == (0, f"{MEMORY} Verbose false\n"), read.err
    assert "stay" in read.err
    assert "instrument" in Path(f"/proc/{pid}/maps").read_text(encoding="utf-8")
    monkeypatch.setattr(load_agent.protocol, "PROTOCOL", 2)
    newer = inprocess(*words, "--yes")
    assert (newer.code, "another opskit (protocol 1, this one speaks 2)" in newer.err) == (2, True), newer.err
    assert not list(Path("/tmp").glob(f".opskit-{os.getpid()}-*"))


def test_no_jolokia(inprocess, running):
    """Neither in the JVM nor at that URL: exit code 2, with what to do."""
    found = inprocess("jmx", running[25].pid, "--jolokia", "auto", "*:*")
    assert (found.code, "opskit: " in found.err) == (2, True), found.err
    refused = inprocess("jmx", "--jolokia", "http://127.0.0.1:1/jolokia")
    assert (refused.code, "connection refused" in refused.err) == (2, True), refused.err
