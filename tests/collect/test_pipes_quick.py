"""The quick look at pipes: what is stuck, and pipelines whose readers take their time."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from opskit.analysis.pipes.quick import judge_quick
from opskit.checks.look import Look
from opskit.checks.pipes import check
from opskit.collect.pipes_quick import Held, QuickFacts, collect_quick
from opskit.host import Host

WRITES = "import os\nwhile True: os.write(1, b'x' * 4096)"
READS_SLOWLY = "import os, time\nwhile True: os.read(0, 65536); time.sleep(0.2)"
READS = "import os\nos.read(0, 1)"
WAITS = f"import subprocess, sys\nsubprocess.Popen([sys.executable, '-c', {WRITES!r}], stdout=subprocess.PIPE).wait()"


class Stage:
    """Processes that sleep in pipes, by what they show."""

    def __init__(self):
        self.pids = {}
        self.processes = []

    def start(self, name, program, **streams):
        """Run it."""
        process = subprocess.Popen([sys.executable, "-c", program], **streams)
        self.processes.append(process)
        self.pids[name] = process.pid
        return process

    def pipeline(self, name, writer, reader):
        """Start both, one with its output to the other's input."""
        first = self.start(f"{name} writer", writer, stdout=subprocess.PIPE)
        self.start(f"{name} reader", reader, stdin=first.stdout)
        first.stdout.close()

    def end(self):
        """Kill all of them, and their children."""
        for process in self.processes:
            for pid in [*children(process.pid), process.pid]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            process.wait()


def children(pid):
    """Of a process with one thread."""
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def wchan(pid):
    """What the main thread sleeps in."""
    return Path(f"/proc/{pid}/wchan").read_text()


@pytest.fixture(scope="module")
def staged(tmp_path_factory):
    """All of them, looked at once: the findings by PID."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    stage = Stage()
    fifo = tmp_path_factory.mktemp("fifo") / "f"
    os.mkfifo(fifo)
    try:
        stage.pipeline("stuck", WRITES, "import time\ntime.sleep(100)")
        stage.pipeline("slow", WRITES, READS_SLOWLY)
        stage.pipeline("quiet", "import sys\nsys.stdin.read()", READS)
        stage.start("deadlock", WAITS)
        stage.start("opens", f"open({str(fifo)!r}, 'w')")
        pager, terminal = os.forkpty()
        if pager == 0:
            os.execvp(  # noqa: S606
                "sh", ["sh", "-c", f'{sys.executable} -c "{WRITES}" | {sys.executable} -c \'open("/dev/tty").read()\'']
            )
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline and not (
            "write" in wchan(stage.pids["stuck writer"]) and "write" in "".join(map(wchan, children(stage.pids["deadlock"])))
            and "wait_for_partner" in wchan(stage.pids["opens"])
            and "nanosleep" in wchan(stage.pids["slow reader"])
        ):  # fmt: skip
            time.sleep(0.02)
        outcome = check(Look(Host.at(None, None)))
        yield stage, pager, outcome
    finally:
        stage.end()
        os.close(terminal)
        os.kill(pager, signal.SIGHUP)
        os.waitpid(pager, 0)


def of(outcome, *pids):
    """The findings about these processes: code, severity."""
    chosen = []
    for finding in outcome.findings:
        entity, named = finding.entity, set()
        while entity is not None:
            named.add(entity.id)
            entity = entity.inside
        if named & set(pids):
            chosen.append(finding)
    return chosen


def test_a_full_pipe_that_nobody_reads(staged):
    """Nothing was ever read from it: a warning at once. The writer is what the pipe is inside of."""
    stage, _, outcome = staged
    [one] = of(outcome, stage.pids["stuck writer"])
    assert (one.code, one.severity, one.entity.kind) == ("pipe-full-writer-blocked", "warning", "pipe")
    assert one.entity.inside.start_ticks
    assert one.summary.startswith(f"{one.entity.id} is full: writer {stage.pids['stuck writer']} (")


def test_a_parent_that_waits_for_its_blocked_child(staged):
    """A deadlock by waitpid()."""
    stage, _, outcome = staged
    [one] = of(outcome, *children(stage.pids["deadlock"]))
    assert (one.code, one.severity) in {("pipe-deadlock", "error"), ("pipe-deadlock", "warning")}


def test_an_open_of_a_fifo(staged):
    """Nobody has it open for reading."""
    stage, _, outcome = staged
    assert [(each.code, each.severity) for each in of(outcome, stage.pids["opens"])] == [
        ("fifo-open-blocked", "warning")
    ]


def test_healthy_pipelines(staged):
    """A reader that paces itself, one that waits for a quiet writer, a pager that waits for its user: no warning."""
    stage, pager, outcome = staged
    names = ("slow writer", "slow reader", "quiet writer", "quiet reader")
    found = of(outcome, *(stage.pids[name] for name in names), pager, *children(pager))
    assert [each.code for each in found if each.severity != "note"] == []


def test_of_one_process(staged):
    """The pipes of the others are left out."""
    stage, _, _ = staged
    outcome = check(Look(Host.at(None, None), (stage.pids["stuck reader"],)))
    assert [each.code for each in outcome.findings] == ["pipe-full-writer-blocked"]


def test_how_long_a_writer_waits(staged):
    """Where it has written more than a pipe holds, the time without a byte read decides."""
    stage, _, _ = staged
    quick = collect_quick(Host.at(None, None), (stage.pids["stuck writer"],), 0.2)
    [(key, held)] = quick.held.items()
    assert 0 < held.written_bytes <= 65536
    assert held.blocked_s is None or held.blocked_s > 0

    def severity(written, blocked_s):
        facts = QuickFacts(quick.threads, 0, True, quick.facts, {key: Held(written, blocked_s)})
        return [each.severity for each in judge_quick(facts)]

    assert severity(1 << 20, 1.0) == ["note"]
    assert severity(1 << 20, None) == ["note"]
    assert severity(1 << 20, 30.0) == ["warning"]
    assert severity(65536, None) == ["warning"]
