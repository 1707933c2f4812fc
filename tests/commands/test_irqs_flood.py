"""`opskit irqs` on a CPU that RPS gives the packets of a flood, with a thread that is pinned to it."""

from __future__ import annotations

import os
import re
import subprocess
import time

import floodstage
import pytest
from answers import answer
from nextsteps import try_next
from shellwords import check_syntax


@pytest.fixture(scope="module")
def flooded(tmp_path_factory):
    """90,000 datagrams a second or more: a fourth of a CPU."""
    with floodstage.flood(tmp_path_factory.mktemp("flood"), 90_000) as staged:
        yield staged


def look(inprocess, *words):
    """The JSON object, valid by its schema, and when it was begun and ended."""
    begin_ns = time.monotonic_ns()
    document = answer(inprocess, "irqs", *words)
    return document, begin_ns, time.monotonic_ns()


def test_the_share_of_softirqs_is_what_the_spinner_loses(inprocess, flooded):
    """Within 6 points, of the time that it has on the CPU; of five windows, since other programs' interrupts come and go."""
    flooded.restore()
    seen = []
    for _ in range(5):
        document, begin_ns, end_ns = look(inprocess, "-i", "1")
        row = next(row for row in document["cpus"] if row["cpu"] == flooded.cpu)
        loss = flooded.lost(begin_ns, end_ns)
        seen.append((row["softirq"], loss))
        if abs(row["softirq"] - loss) <= 0.06 and loss > 0.1:
            break
    else:
        raise AssertionError(seen)
    assert row["net_rx_per_s"] > 1000
    assert row["packets_per_s"] > 20_000
    assert row["is_saturated"] is True
    assert re.fullmatch(f"RPS of .*{flooded.interface}.*", row["cause"])


def test_the_verdict_and_what_to_type(inprocess, flooded):
    """The CPU, its share, what steers the packets, the thread; the commands do what they say."""
    flooded.restore()
    document, _, _ = look(inprocess, "-i", "1")
    spinner = flooded.spinner.pid
    said = document["verdict"][0]
    wanted = (  # other tests pin threads too, and stage floods
        rf"CPU {flooded.cpu} spends \d+ % on network softirqs \([\d,]+ NET_RX/s, all steered by RPS of .*{flooded.interface}.*\); "
        rf"(thread \d+ \(.+\) of )?\d+ \(.+\) (is|and \d+ more threads? are) pinned to it"
    )  # fmt: skip
    assert re.fullmatch(wanted, said), said
    [finding] = [each for each in document["findings"] if each["code"] == "irq-pinned-thread"]
    assert finding["severity"] == "warning"
    assert spinner in [each["pid"] for each in document["victims"]]
    interface = next(each for each in document["interfaces"] if each["name"] == flooded.interface)
    assert interface["namespace"] == f"of {flooded.receiver}" or interface["namespace"].startswith("of ")
    lines = [each["line"] for each in document["commands"]]
    for line in lines:
        check_syntax(line)
    [steer] = [line for line in lines if "rps_cpus" in line]
    subprocess.run(["sh", "-c", steer], check=True, capture_output=True)
    assert int(flooded.rps_cpus().replace(",", ""), 16) == 1 << flooded.other
    [move] = [line for line in lines if line.startswith("taskset ") and line.endswith(f" {spinner}")]
    subprocess.run(["sh", "-c", move], check=True, capture_output=True)
    assert os.sched_getaffinity(spinner) == {flooded.other}
    assert try_next(document["findings"], "irq-pinned-thread").startswith("opskit cswitch ")


def test_the_quick_look_of_doctor_names_the_thread(flooded):
    """Without measuring on a CPU, and without entering the namespace whose interface steers the packets."""
    from opskit.checks.irqs import check
    from opskit.checks.look import Look
    from opskit.host import Host
    from opskit.proc.fs import ProcFS

    flooded.restore()
    for _ in range(5):
        found = [each for each in check(Look(Host(ProcFS()), (), 0.6)).findings if each.code == "irq-pinned-thread"]
        if found and found[0].severity == "warning":
            break
    assert found[0].severity == "warning"
    assert f"CPU {flooded.cpu} spends" in found[0].summary
