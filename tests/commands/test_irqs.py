"""`opskit irqs` on this machine: its CPUs, a flood of datagrams, every format, pictures, watches, rights, terminals, bad usage."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from functools import partial
from xml.etree import ElementTree as ET

import promtext
import pytest
from answers import FORMATS, answer, refused
from imports import HEAVY, imported
from shells import NOBODY
from stracing import ACTS, FORKS, OPENS, traced
from terminal import on_terminal

from opskit.proc.files.cpu_times import read_online_cpus
from opskit.proc.fs import ProcFS

# A thread that sends datagrams to itself over loopback: each is a NET_RX softirq of the CPU that it runs on.
SENDS = """
import os, socket, sys, time
os.sched_setaffinity(0, {int(sys.argv[1])})
here = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
here.bind(("127.0.0.1", 0))
print(1, flush=True)
begun, sent = time.monotonic(), 0
while True:
    for _ in range(100):
        here.sendto(b"x", here.getsockname())
        here.recv(10)
    sent += 100
    time.sleep(max(0.0, begun + sent / 4000 - time.monotonic()))
"""


@pytest.fixture
def of(inprocess):
    """The JSON object of a run, valid by its schema."""
    return partial(answer, inprocess, "irqs")


@pytest.fixture(scope="module")
def sender():
    """A pinned thread with 4,000 datagrams a second; its CPU."""
    cpu = max(os.sched_getaffinity(0))
    with subprocess.Popen([sys.executable, "-c", SENDS, str(cpu)], stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"1\n"
        yield process, cpu
        process.kill()


def test_every_cpu_that_is_online(of, sender):
    """Its shares sum up to all of its time; its load is that of interrupts and softirqs. Datagrams are counted on the CPU of their sender."""
    process, cpu = sender
    document = of("-i", "0.5")
    rows = {row["cpu"]: row for row in document["cpus"]}
    assert [*rows] == read_online_cpus(ProcFS())
    for row in document["cpus"]:
        shares = [row[name] for name in ("user", "system", "softirq", "irq", "steal", "idle")]
        assert sum(shares) == pytest.approx(1, abs=0.01)
        assert row["load"] == pytest.approx(row["irq"] + row["softirq"], abs=0.001)
        assert row["cpu"] in row["siblings"]
        assert {"NET_RX", "TIMER", "SCHED"} <= row["softirqs_per_s"].keys()
    assert 0.4 < document["window_s"] < 10
    assert document["samples"] is None
    assert rows[cpu]["net_rx_per_s"] > 1500
    assert rows[cpu]["packets_per_s"] > 1500
    [pinned] = [each for each in document["pinned"] if each["pid"] == process.pid]
    assert pinned["allowed"] == [cpu]
    assert pinned["tid"] == process.pid
    assert "lo" in [interface["name"] for interface in document["interfaces"]]


@pytest.mark.parametrize("format_", FORMATS)
def test_every_format(inprocess, sender, format_):
    """All CPUs, with the NET_RX softirqs of the sender."""
    _, cpu = sender
    done = inprocess("irqs", "-v", "-i", "0.15", "-f", format_)
    assert done.code in (0, 1), done.err
    if format_ == "prometheus":
        samples = promtext.parse(done.out)
        assert promtext.value(samples, "opskit_irqs_cpu_net_rx_per_second", cpu=cpu) > 1000
        assert 0 <= promtext.value(samples, "opskit_irqs_cpu_softirq", cpu=cpu) <= 1
    elif format_ == "csv":
        rows = [*csv.DictReader(io.StringIO(done.out))]
        assert [int(row["cpu"]) for row in rows] == read_online_cpus(ProcFS())
    elif format_ == "text":
        head, *rows = [line.split() for line in done.out.splitlines() if line[:3].strip() in ("CPU", str(cpu))]
        assert float(rows[0][head.index("NET_RX/S")]) > 1000
    elif format_ != "json":
        assert "NET_RX/s" in done.out.replace("\\", "")


def test_pictures(inprocess, tmp_path):
    """CPUs by kind; with -w over time. No matplotlib is needed."""
    once, watched = tmp_path / "once.svg", tmp_path / "watched.svg"
    assert inprocess("irqs", "-i", "0.1", "-o", once).code in (0, 1)
    assert inprocess("irqs", "-w", "-i", "0.1", "-c", "3", "-o", watched).code in (0, 1)
    cpus = len(read_online_cpus(ProcFS()))
    for path, said in ((once, "CPU time and interrupts of"), (watched, "3 looks in")):
        root = ET.parse(path)  # noqa: S314  (our own)
        texts = ["".join(each.itertext()) for each in root.iter("{http://www.w3.org/2000/svg}text")]
        assert said in texts[0]
        assert sum(text.startswith("CPU ") and text[4:].isdigit() for text in texts) == cpus


def test_a_watch_has_a_sample_of_each_look(of):
    """With the load of each CPU."""
    document = of("-w", "-i", "0.1", "-c", "3")
    assert len(document["samples"]) == 3
    dates = [sample["at_s"] for sample in document["samples"]]
    assert dates == sorted(set(dates))
    cpus = {str(row["cpu"]) for row in document["cpus"]}
    assert all(sample["loads"].keys() == cpus for sample in document["samples"])


def test_on_a_terminal_the_answer_fits_the_first_screen():
    """80 x 24; a watch redraws, and has a strip with a line for each look."""
    _, shown = on_terminal("irqs", "-i", "0.1", env={"NO_COLOR": "1"})
    lines = shown.replace("\r", "").splitlines()
    assert sum(-(-max(len(line), 1) // 80) for line in lines) <= 24, shown
    assert "NET_RX/s" in shown
    _, shown = on_terminal("irqs", "-w", "-c", "3", "-i", "0.1", env={"NO_COLOR": "1"})
    last = shown.rpartition("\x1b[H\x1b[2J")[2].replace("\r", "").splitlines()
    assert len(last) <= 24
    strip = [line for line in last if line.startswith(("now ", "-"))]
    assert len(strip) == 3, shown
    assert {len(line.split()[-1]) for line in strip} == {len(read_online_cpus(ProcFS()))}


def test_another_user(as_user, inprocess):
    """CPUs, interrupts and affinities are readable by everyone."""
    inprocess("irqs", "-i", "0.1", "-f", "json")  # nobody may not be able to import the modules
    document = json.loads(as_user(NOBODY, lambda: inprocess("irqs", "-i", "0.2", "-f", "json").out))
    assert [row["cpu"] for row in document["cpus"]] == read_online_cpus(ProcFS())
    assert document["interrupts"]


def test_nothing_is_written_sent_or_stopped():
    """As its safety table says: it ends the children that measure a CPU with softirqs, if there are any."""
    done = traced("irqs", "-w", "-c", "2", "-i", "0.1", "-v", "-f", "text", calls=(*OPENS, *ACTS, *FORKS))
    assert done.code in (0, 1), done.err
    ends = [call for call in done.of("kill") if "SIGKILL" in call]
    assert len(ends) == len(done.of(*FORKS))
    assert [call for call in done.acting() if call not in (*ends, *done.of(*FORKS))] == []


def test_imports():
    """Text needs no heavy module, no JSON object and no picture."""
    modules = imported("irqs", "-i", "0.1", "-f", "text")
    assert not modules & (HEAVY - {"ctypes"})
    assert not modules & {
        "opskit.render.views.irqs.document",
        "opskit.render.views.irqs.picture",
        "opskit.render.views.irqs.jitter",
    }


BAD = {
    ("-c", "3"): "opskit: -c/--count goes with -w/--watch: add --watch",
    ("-i", "0"): "opskit irqs: Invalid value for '-i' / '--interval': '0' is not a duration",
    ("17",): "opskit irqs: Got unexpected extra argument (17)",
    ("-n", "-1"): "opskit irqs: Invalid value for '-n' / '--top': -1 is not in the range",
    ("-o", "/tmp/x.png"): "opskit: -o /tmp/x.png: unknown suffix '.png'; known are .txt",
}


@pytest.mark.parametrize("words", BAD, ids=" ".join)
def test_bad_usage(inprocess, words):
    """Exit code 2, and a line that says what to type."""
    refused(inprocess("irqs", *words), BAD[words])
