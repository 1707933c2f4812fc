"""The quick look at interrupts: the same verdicts, and threads that are read only where a CPU spends time on interrupts."""

from __future__ import annotations

import pytest
from irqtrees import SECONDS, Machine

from opskit.analysis.irqs.judge import judge
from opskit.checks.irqs import check
from opskit.checks.look import Look
from opskit.collect.irqs.collect import Collector
from opskit.collect.irqs.quick import QuickCollector
from opskit.host import Host

PINNED = 4300


def server(share):
    """Four CPUs; a card's interrupt takes a part of CPU 2, to which a thread is pinned that wants all of it."""
    machine = Machine(range(4))
    machine.interface("eth0", "virtio_net", 90_000, ["0"], [300])
    machine.interrupt(300, "PCI-MSI 1-edge", "eth0-rx-0", {2: 40_000})
    machine.shares[2] = 1 - share, 0.0, 0.0, share
    machine.softirqs["NET_RX"] = {2: 40_000}
    machine.softnet[2] = 90_000, 0, 0, 0
    machine.process(PINNED, "spin", "2", 0.98)
    return machine


@pytest.mark.parametrize("share", [0.02, 0.4, 0.93])
def test_the_verdicts_are_those_of_the_command(tree, share):
    """A pinned thread, or a CPU without time for anything else."""
    host = server(share).host(tree)
    full = judge(Collector(host, SECONDS).look()).findings
    quick = judge(QuickCollector(host, SECONDS).look()).findings
    assert [each[:4] for each in quick] == [each[:4] for each in full]
    assert bool(quick) == (share > 0.1)


@pytest.mark.parametrize(("share", "pinned"), [(0.02, []), (0.4, [PINNED])])
def test_threads_are_not_read_on_a_calm_machine(tree, share, pinned):
    """The pinned thread is not looked for."""
    assert [each.tid for each in QuickCollector(server(share).host(tree), SECONDS).look().pinned] == pinned


def test_asked_about_a_process_it_speaks_of_that_alone(tree):
    """The thread that is pinned there; of another process nothing."""
    host = server(0.4).host(tree)
    [found] = check(Look(host, (PINNED,), SECONDS)).findings
    assert (found.code, found.entity.id) == ("irq-pinned-thread", PINNED)
    assert check(Look(host, (1,), SECONDS)).findings == ()


def test_what_was_looked_at_and_what_is_missing(tree):
    """Files that cannot be read are gaps; so are the rates of a copy."""
    machine = server(0.4)
    host = machine.host(tree)
    outcome = check(Look(host, (), SECONDS))
    assert (outcome.looked_at, outcome.gaps) == (("4 CPUs", "1 interrupt"), [])
    (tree({}) / "proc/softirqs").unlink()
    host.sleep = lambda _: None
    gaps = check(Look(host, (), SECONDS)).gaps
    assert [(gap.what, gap.reason) for gap in gaps] == [("the kinds of softirqs", "/proc/softirqs cannot be read")]
    (tree({}) / "proc/meminfo").write_text("MemTotal: 1 kB\n")
    assert check(Look(Host.at(str(tree({})), None), (), 0.0)).gaps[0].what == "rates of interrupts"
