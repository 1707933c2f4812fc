"""Which CPUs lose their time to interrupts: floods, saturated CPUs, drops, isolated CPUs, far nodes, irqbalance; and what is no finding."""

from __future__ import annotations

import irqresults
import pytest
from nextsteps import try_next
from shellwords import check_syntax

from opskit.analysis.irqs.judge import judge
from opskit.collect.irqs.facts import Balancer


def facts_of(*rows, **changes):
    """A look at these CPUs, without pinned threads."""
    return irqresults.facts(rows, **changes)


def codes(result):
    return {(finding.code, finding.severity) for finding in result.findings}


def test_packets_that_rps_gives_to_the_cpu_of_a_pinned_thread():
    """The share, the cause, the thread; the commands move either."""
    result = judge(irqresults.flood().facts)
    assert result.verdict[0] == (
        "CPU 0 spends 39 % on network softirqs (13,271 NET_RX/s, all steered by RPS of veth1); 7525 (spin) is pinned to it"
    )
    assert ("irq-pinned-thread", "warning") in codes(result)
    assert result.victims == (irqresults.SPIN,)
    assert [row.is_saturated for row in result.rows] == [True, False]
    assert result.commands[0].line == "taskset -cp 1 7525"
    assert any("rps_cpus" in command.line for command in result.commands)
    for command in result.commands:
        check_syntax(command.line)


def test_softirqs_of_its_own_threads_are_their_work():
    """A busy web server over loopback: no finding, however much it is."""
    lo = irqresults.INTERFACES[1]._replace(name="lo", packets=250_000.0, queues=(), space=None)
    busy = irqresults.row(
        0, None, {"NET_RX": 120_000.0}, more={"processed": 250_000.0}, user=0.3, system=0.3, softirq=0.39
    )
    pinned = irqresults.SPIN._replace(running=0.99)
    result = judge(facts_of(busy, irqresults.row(1), interfaces=(lo,), interrupts=(), pinned=(pinned,)))
    assert result.findings == ()
    assert result.verdict[0].startswith("No CPU is saturated by interrupts: CPU 0 spends 39 % on network softirqs")


@pytest.mark.parametrize(
    "changes",
    [
        {"is_idle_class": True},  # it only takes what others leave
        {"allowed": frozenset({0, 1})},  # it can go to the other CPU
        {"running": 0.01, "lost": 0.0},  # an agent that polls
        {"allowed": frozenset({1})},
    ],
)
def test_threads_that_lose_nothing(changes):
    """They are no victims."""
    facts = irqresults.flood().facts
    pinned = irqresults.SPIN._replace(**changes)
    quiet = tuple(cpu._replace(drops=0.0) for cpu in facts.cpus)
    assert judge(facts._replace(pinned=(pinned,), cpus=quiet)).findings == ()


def test_a_cpu_with_time_left_is_a_note():
    """30 % softirqs beside a pinned thread, and 40 % idle: nothing is lost."""
    row = irqresults.row(
        0, None, {"NET_RX": 9000.0}, more={"processed": 20_000.0, "steered": 9000.0}, user=0.25, softirq=0.35
    )
    result = judge(facts_of(row, irqresults.row(1), pinned=(irqresults.SPIN._replace(running=0.25),)))
    assert {severity for _, severity in codes(result)} <= {"note"}
    assert result.verdict[0].startswith("No CPU is saturated")


def test_a_cpu_that_has_time_for_nothing_else():
    """97 % of one CPU of 192, by one queue of a network card; it drops packets."""
    result = judge(irqresults.large().facts)
    assert ("irq-cpu-saturated", "warning") in codes(result)
    assert "CPU 77 spends 97 % on interrupts and network softirqs" in result.verdict[0]
    assert [row.cpu.use.cpu for row in result.rows if row.is_saturated] == [77]
    assert ("irq-backlog-drops", "note") in codes(result)  # 90 of 1.9 million
    try_next(result.findings, "irq-cpu-saturated")


def test_drops_of_a_cpu_with_idle_time():
    """A burst: a longer backlog helps; the fix doubles it."""
    row = irqresults.row(0, None, {"NET_RX": 900.0}, more={"processed": 9000.0, "drops": 400.0}, user=0.2, softirq=0.05)
    result = judge(facts_of(row, irqresults.row(1), max_backlog=1000))
    [finding] = [each for each in result.findings if each.code == "irq-backlog-drops"]
    assert (finding.severity, finding.fix) == ("warning", "sysctl -w net.core.netdev_max_backlog=2000")
    try_next(result.findings, "irq-backlog-drops")
    one = row._replace(cpu=row.cpu._replace(drops=0.5))
    [finding] = judge(facts_of(one, irqresults.row(1), max_backlog=1000)).findings
    assert finding.summary == "CPU 0 drops 1 packet in 2.0 s: its backlog (1,000 packets) is full"
    assert finding.severity == "note"


def test_devices_that_interrupt_an_isolated_cpu():
    """Ten a second and more; its own timer is none."""
    rows = irqresults.healthy().rows
    result = judge(facts_of(*rows, isolated=frozenset({0})))
    assert ("irq-on-isolated-cpu", "note") in codes(result)
    try_next(result.findings, "irq-on-isolated-cpu")
    assert judge(facts_of(*rows, isolated=frozenset({1}))).findings == ()
    steered = rows[1]._replace(cpu=rows[1].cpu._replace(steered=300.0))
    [finding] = judge(facts_of(rows[0], steered, isolated=frozenset({1}), interrupts=())).findings
    assert finding.summary == "isolated CPU 1 gets packets: RPS 300/s"


def test_a_card_whose_interrupts_are_handled_on_another_node():
    """From 1,000 a second on."""
    rows = [row._replace(cpu=row.cpu._replace(node=at)) for at, row in enumerate(irqresults.healthy().rows)]
    far = irqresults.INTERRUPTS[0]._replace(by_cpu={0: 3.0, 1: 5000.0}, node=0)
    result = judge(facts_of(*rows, interrupts=(far,)))
    assert ("irq-far-node", "note") in codes(result)
    try_next(result.findings, "irq-far-node")
    near = far._replace(by_cpu={0: 5000.0})
    assert judge(facts_of(*rows, interrupts=(near,))).findings == ()


def test_irqbalance_that_does_not_look_at_isolcpus():
    """Its environment has a list of its own, which lacks an isolated CPU."""
    rows = irqresults.healthy().rows
    told = Balancer(812, frozenset(), ignores_isolation=True)
    result = judge(facts_of(*rows, balancer=told, isolated=frozenset({1})))
    assert ("irqbalance-ignores-isolated", "note") in codes(result)
    try_next(result.findings, "irqbalance-ignores-isolated")
    for balancer in (
        told._replace(banned=frozenset({1})),
        told._replace(ignores_isolation=False),
        told._replace(banned=None),
    ):
        assert judge(facts_of(*rows, balancer=balancer, isolated=frozenset({1}))).findings == ()


def test_irqbalance_would_undo_an_affinity():
    """The warning beside the command says so; not where it runs once."""
    row = irqresults.row(0, None, {"NET_RX": 9000.0}, more={"processed": 20_000.0}, user=0.6, softirq=0.38)
    queue = irqresults.INTERRUPTS[0]._replace(by_cpu={0: 8800.0})
    card = irqresults.INTERFACES[0]._replace(packets=20_000.0)
    facts = facts_of(row, irqresults.row(1), pinned=(irqresults.SPIN,), interrupts=(queue,), interfaces=(card,))
    for balancer, warns in ((Balancer(812), True), (None, False), (Balancer(812, one_shot=True), False)):
        moves = [each for each in judge(facts._replace(balancer=balancer)).commands if "smp_affinity" in each.line]
        assert moves
        assert [bool(each.warning and "irqbalance" in each.warning) for each in moves] == [warns] * len(moves), moves


def test_a_quiet_machine():
    """One sentence, no finding."""
    result = judge(irqresults.healthy().facts)
    assert (len(result.verdict), result.findings, result.commands) == (1, (), ())
    assert judge(facts_of()).verdict[0].startswith("No clock tick was counted on any CPU")


def test_softirqs_of_the_sender_are_no_reason_to_stay():
    """The CPU that sends spends 40 % on softirqs of its own: the packets are still better there than beside the pinned thread."""
    facts = irqresults.flood().facts
    victim, sender = facts.cpus
    load = {"user": 0.2, "system": 0.4, "softirq": 0.4, "idle": 0.0}
    sender = sender._replace(
        use=sender.use._replace(**load), softirqs={"NET_RX": 47_000.0}, processed=0.0, steered=0.0, drops=0.0
    )
    flooded = victim._replace(use=victim.use._replace(user=0.24, system=0.0, softirq=0.76, idle=0.0), drops=0.0)
    for interfaces in (facts.interfaces, ()):  # without root, those of other network namespaces are unknown
        result = judge(facts._replace(cpus=(flooded, sender), interfaces=interfaces, interrupts=()))
        assert codes(result) == {("irq-pinned-thread", "warning")}
        assert [row.is_saturated for row in result.rows] == [True, False]
        assert result.commands[0].warning == "CPU 1 is busy too: 0 % idle"


def test_one_sentence_for_a_saturated_cpu_with_a_pinned_thread():
    """95 % softirqs: the thread's finding says it."""
    facts = irqresults.flood().facts
    flooded = facts.cpus[0]._replace(
        use=facts.cpus[0].use._replace(user=0.05, system=0.0, softirq=0.95, idle=0.0), drops=0.0, is_measured=True
    )
    result = judge(facts._replace(cpus=(flooded, facts.cpus[1])))
    assert len(result.verdict) == 1
    [finding] = result.findings
    assert finding.code == "irq-pinned-thread"
    assert "a thread that spun on CPU 0 for moments lost 95 % of its time" in finding.evidence


def test_a_pinned_thread_that_hardly_gets_the_cpu():
    """It runs for 3 % of the time and waits for the rest: it is a victim too."""
    facts = irqresults.flood().facts
    starved = irqresults.SPIN._replace(running=0.03, lost=0.96)
    result = judge(facts._replace(pinned=(starved,)))
    assert ("irq-pinned-thread", "warning") in codes(result)
    assert result.victims == (starved,)


@pytest.mark.parametrize(("window_s", "accounts", "measured", "warns"), [
    (0.02, False, False, False), (0.02, True, False, True), (0.02, False, True, True), (0.2, False, False, True),
])  # fmt: skip
def test_a_few_clock_ticks_prove_nothing(window_s, accounts, measured, warns):
    """Two ticks of two: chance, unless the kernel or a thread there measures the time."""
    facts = irqresults.flood().facts
    flooded = facts.cpus[0]._replace(
        use=facts.cpus[0].use._replace(user=0.0, system=0.0, softirq=1.0, idle=0.0), drops=0.0, is_measured=measured
    )
    for pinned in (facts.pinned, ()):
        result = judge(
            facts._replace(window_s=window_s, accounts_irqs=accounts, cpus=(flooded, facts.cpus[1]), pinned=pinned)
        )
        assert bool(result.findings) == warns
