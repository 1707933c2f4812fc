"""Whole machines in the kernel's formats, read and judged: NUMA nodes, several queues, offline CPUs, arm64, irqbalance, isolated CPUs, managed interrupts."""

from __future__ import annotations

import pytest
from irqtrees import OLD_FIELDS, SECONDS, Machine
from shellwords import check_syntax

from opskit.analysis.irqs.judge import judge
from opskit.collect.irqs.collect import Collector

NODES = {0: [*range(16), *range(32, 48)], 1: [*range(16, 32), *range(48, 64)]}
CARD = range(300, 308)


@pytest.fixture
def answer(tree):
    """What opskit reads and says of a machine; its commands are valid shell."""

    def look(machine):
        result = judge(Collector(machine.host(tree), SECONDS).look())
        for command in result.commands:
            check_syntax(command.line)
        return result

    return look


def codes(result):
    return {(finding.code, finding.severity) for finding in result.findings}


def lines(result):
    return [command.line for command in result.commands]


def server(queues=8, node=1, managed=False, release="6.12.9"):
    """64 CPUs in two nodes; a card on node 1, whose first queue's interrupt takes all of CPU 20."""
    machine = Machine(range(64), release=release)
    machine.place(NODES, 32)
    machine.interface("ens1f0np0", "mlx5_core", 600_000, ["0"] * queues, CARD[:queues], node=node)
    for at, number in enumerate(CARD[:queues]):
        rates = {20: 60_000} if not at else {20 + at: 400}
        device = f"mlx5_comp{at}@pci:0000:81:00.0"
        machine.interrupt(number, "PCI-MSIX-0000:81:00.0   1-edge", device, rates, node=node, managed=managed)
    machine.interrupts["LOC"] = dict.fromkeys(range(64), 250), "Local timer interrupts"
    machine.shares[20] = 0.01, 0.01, 0.06, 0.9
    machine.softirqs["NET_RX"] = {20: 60_000, 21: 400}
    machine.softnet[20] = 590_000, 0, 3000, 0
    return machine


def test_one_queue_of_a_card_takes_a_cpu(answer):
    """The interrupt is named by the card's device; it goes to an idle CPU of the card's node."""
    result = answer(server())
    assert codes(result) == {("irq-cpu-saturated", "warning")}
    assert result.verdict[0].startswith(
        "CPU 20 spends 96 % on interrupts and network softirqs (60,000 NET_RX/s, irq 300 (mlx5_comp0@pci:0000:81:00.0) 60,000/s)"
    )
    assert lines(result) == ["echo 16 > /proc/irq/300/smp_affinity_list"]
    [row] = [row for row in result.rows if row.is_saturated]
    assert (row.cpu.use.cpu, row.cpu.node, row.cpu.siblings) == (20, 1, {20, 52})
    assert (row.cpu.processed, row.cpu.squeezes, row.cpu.local_timer) == (590_000, 3000, 250)
    first = result.top[0]
    assert (first.number, first.interface, first.node, first.managed) == (300, "ens1f0np0", 1, False)
    assert (len(first.affinity), first.effective) == (64, {20})


def test_a_card_with_one_queue_is_steered_by_a_mask_of_two_words(answer):
    """All CPUs of its node but the busy one: 16-31 without 20, 48-63."""
    result = answer(server(queues=1))
    assert lines(result)[1:] == ["echo ffff0000,ffef0000 > /sys/class/net/ens1f0np0/queues/rx-0/rps_cpus"]


def test_interrupts_on_the_other_node(answer):
    """A note says that the card is on node 0; the command brings it there."""
    result = answer(server(node=0))
    assert codes(result) == {("irq-cpu-saturated", "warning"), ("irq-far-node", "note")}
    assert lines(result) == ["echo 0 > /proc/irq/300/smp_affinity_list"]


def test_queues_that_are_spread_are_healthy(answer):
    """600,000 packets a second on eight CPUs, each 30 % busy with them."""
    machine = server()
    for at, number in enumerate(CARD):
        text = machine.interrupts[str(number)][1]
        machine.interrupts[str(number)] = {20 + at: 9000}, text
        machine.shares[20 + at] = 0.2, 0.1, 0.01, 0.3
        machine.softnet[20 + at] = 75_000, 0, 10, 0
    machine.softirqs["NET_RX"] = dict.fromkeys(range(20, 28), 9000)
    result = answer(machine)
    assert (result.findings, result.commands) == ((), ())
    assert result.verdict[0].startswith("No CPU is saturated by interrupts: CPU 20 spends 3")


@pytest.mark.parametrize(("release", "managed"), [("6.12.9", True), ("5.10.0-32-amd64", None)])
def test_managed_interrupts(answer, release, managed):
    """Where the kernel shows that it spreads them, no command moves one; an older one shows it nowhere, and the command warns of it."""
    result = answer(server(managed=managed is True, release=release))
    assert {each.managed for each in result.top if each.number} == {managed}
    assert ("irq-cpu-saturated", "warning") in codes(result)
    moves = [command for command in result.commands if "smp_affinity" in command.line]
    assert [bool(each.warning and "Input/output error" in each.warning) for each in moves] == [True] * (not managed)


def steered(fields, isolated=""):
    """CPUs 2 and 3 of eight are offline; RPS of eth0 gives all to CPU 1, where a thread is pinned, from the interrupt on CPU 0."""
    machine = Machine([0, 1, 4, 5, 6, 7], range(8))
    machine.fields = fields
    machine.interface("eth0", "e1000e", 40_000, ["02"], [27])
    machine.interrupt(27, "PCI-MSI-0000:81:00.0   0-edge", "eth0", {0: 9000})
    machine.interrupts["RES"] = {1: 7000}, "Rescheduling interrupts"
    machine.interrupts["CAL"] = {1: 12_000}, "Function call interrupts"
    machine.softirqs["NET_RX"] = {0: 9000, 1: 12_500, 3: 1}
    machine.softnet = {0: (1, 0, 0, 0), 1: (40_000, 5, 60, 12_400)}
    machine.shares = {0: (0.0, 0.0, 0.02, 0.05), 1: (0.57, 0.01, 0.0, 0.42), 4: (0.6, 0.3, 0, 0)}
    machine.process(7525, "spin", "1", 0.99)
    machine.process(40, "logger", "0-1,4-7", 0.3)
    if isolated:
        machine.isolate(isolated)
    return machine


def test_offline_cpus(answer):
    """The columns of /proc/interrupts, /proc/softirqs and softnet_stat belong to different sets of CPUs."""
    result = answer(steered(15))
    assert result.verdict == (
        "CPU 1 spends 42 % on network softirqs (12,500 NET_RX/s, all steered by RPS of eth0); 7525 (spin) is pinned to it",
    )
    rows = {row.cpu.use.cpu: row.cpu for row in result.rows}
    assert sorted(rows) == [0, 1, 4, 5, 6, 7]
    assert (rows[1].steered, rows[1].drops, rows[1].ipis) == (12_400, 5, 19_000)
    assert [(thread.tid, thread.allowed, round(thread.running, 2)) for thread in result.victims] == [(7525, {1}, 0.99)]
    assert lines(result) == ["taskset -cp 5 7525", "echo e1 > /sys/class/net/eth0/queues/rx-0/rps_cpus"]


def test_softnet_stat_of_an_old_kernel(answer):
    """Nine fields, without the CPU and what was steered: the packets are those of the CPUs in order, and the cause is not guessed."""
    machine = steered(OLD_FIELDS)
    machine.net = "proc/self/net"
    result = answer(machine)
    rows = {row.cpu.use.cpu: row.cpu for row in result.rows}
    assert (rows[1].processed, rows[1].drops, rows[1].steered) == (40_000, 5, None)
    assert rows[4].processed == 0
    assert not any("RPS" in said for said in result.verdict)


def test_nothing_goes_to_isolated_cpus(answer):
    """Neither packets nor a thread that has no isolated CPU."""
    result = answer(steered(15, isolated="5-7"))
    assert result.facts.isolated == result.facts.tickless == {5, 6, 7}
    assert lines(result)[0] == "taskset -cp 0 7525"
    assert [line.split()[1] for line in lines(result) if "rps_cpus" in line] == ["1"]  # CPU 4 is busy


def balanced(**environ):
    """CPUs 4-7 are isolated; irqbalance runs; one interrupt takes CPU 1, another one comes on isolated CPU 6."""
    machine = Machine(range(8))
    machine.isolate("4-7")
    machine.interface("eth0", "igb", 80_000, ["00"], [64], node=-1)
    machine.interrupt(64, "PCI-MSI-0000:81:00.0   0-edge", "eth0-TxRx-0", {1: 30_000})
    machine.interrupt(70, "PCI-MSI-0000:02:00.0   0-edge", "xhci_hcd", {6: 300})
    machine.softirqs["NET_RX"] = {1: 30_000}
    machine.softnet[1] = 80_000, 0, 0, 0
    machine.shares[1] = 0.0, 0.01, 0.05, 0.92
    machine.process(812, "irqbalance", "0-3", 0.0, ["/usr/sbin/irqbalance", "--foreground"], **environ)
    return machine


def test_irqbalance_that_looks_at_isolated_cpus(answer):
    """It leaves them alone; it undoes what is typed, which a warning says."""
    result = answer(balanced())
    assert (result.facts.balancer.pid, result.facts.balancer.banned) == (812, {4, 5, 6, 7})
    assert codes(result) == {("irq-cpu-saturated", "warning"), ("irq-on-isolated-cpu", "note")}
    [isolated] = [each for each in result.findings if each.code == "irq-on-isolated-cpu"]
    assert "CPU 6 gets interrupts of devices: irq 70 (xhci_hcd) 300/s" in isolated.summary
    [move] = [command for command in result.commands if "smp_affinity" in command.line]
    assert move.line == "echo 0 > /proc/irq/64/smp_affinity_list"
    assert "irqbalance (812) moves it again within 10 s" in move.warning
    assert [line.split()[1] for line in lines(result) if "rps_cpus" in line] == ["d"]


@pytest.mark.parametrize(
    ("environ", "banned", "is_told"),
    [
        ({"IRQBALANCE_BANNED_CPUS": "00000000,00000003"}, {0, 1}, True),
        ({"IRQBALANCE_BANNED_CPULIST": "0,4-6"}, {0, 4, 5, 6}, True),
        ({"IRQBALANCE_BANNED_CPULIST": "4-7"}, {4, 5, 6, 7}, False),
        ({"IRQBALANCE_BANNED_CPUS": ""}, set(), True),
    ],
)
def test_irqbalance_with_banned_cpus(answer, environ, banned, is_told):
    """What its environment says replaces isolcpus; a note where an isolated CPU is not among them."""
    result = answer(balanced(**environ))
    assert result.facts.balancer.banned == banned
    assert (("irqbalance-ignores-isolated", "note") in codes(result)) == is_told


def test_a_process_that_only_has_the_name_of_irqbalance(answer):
    """Root alone can move interrupts: a process of another user is none, whatever its PID and its environment."""
    machine = balanced()
    machine.process(400, "irqbalance", "0-3", uid=1000, IRQBALANCE_BANNED_CPUS="")
    assert answer(machine).facts.balancer.pid == 812


def test_drops_are_not_mended_by_moving_a_thread(answer):
    """Their fix spreads the packets; the pinned thread's one moves it."""
    machine = steered(15)
    machine.softnet[1] = 40_000, 4000, 60, 12_400
    fixes = {finding.code: finding.fix for finding in answer(machine).findings}
    assert fixes["irq-pinned-thread"].startswith("taskset ")
    assert fixes["irq-backlog-drops"] == "echo e1 > /sys/class/net/eth0/queues/rx-0/rps_cpus"


def test_arm64(answer):
    """The timer has a number like a device's; IPIs have names of their own; the card's interrupt is found by its name."""
    machine = Machine(range(4))
    machine.interface("eth0", "hns3", 50_000, ["0"])
    machine.interrupt(11, "   GICv3  27 Level ", "arch_timer", dict.fromkeys(range(4), 250))
    machine.interrupt(44, "ITS-MSI 524288 Edge ", "eth0-TxRx-0", {2: 20_000})
    machine.interrupts["IPI0"] = {1: 900}, "Rescheduling interrupts"
    machine.interrupts["IPI1"] = {1: 100}, "Function call interrupts"
    machine.softirqs["NET_RX"] = {2: 20_000}
    machine.softnet[2] = 50_000, 0, 0, 0
    machine.shares[2] = 0.0, 0.02, 0.0, 0.95
    result = answer(machine)
    rows = {row.cpu.use.cpu: row.cpu for row in result.rows}
    assert [rows[cpu].local_timer for cpu in range(4)] == [250] * 4
    assert [rows[cpu].interrupts for cpu in range(4)] == [0, 0, 20_000, 0]
    assert [rows[cpu].ipis for cpu in range(4)] == [0, 1000, 0, 0]
    assert result.verdict[0].startswith(
        "CPU 2 spends 95 % on network softirqs (20,000 NET_RX/s, irq 44 (eth0-TxRx-0) 20,000/s), and has no time left"
    )
    assert lines(result) == [
        "echo 0 > /proc/irq/44/smp_affinity_list",
        "echo b > /sys/class/net/eth0/queues/rx-0/rps_cpus",
    ]


def test_a_healthy_machine_with_timers_and_disks(answer):
    """Timers, an NVMe disk with a queue a CPU, a card at 20,000 packets a second."""
    machine = Machine(range(8))
    machine.interface("eth0", "virtio_net", 20_000, ["0"], [30])
    machine.interrupt(30, "PCI-MSIX-0000:00:03.0   1-edge", "virtio1-input.0", {3: 9000})
    for cpu in range(8):
        machine.interrupt(
            40 + cpu, "PCI-MSIX-0000:01:00.0   1-edge", f"nvme0q{cpu + 1}", {cpu: 8000}, [cpu], managed=True
        )
        machine.shares[cpu] = 0.3, 0.25, 0.02, 0.06
    machine.interrupts["LOC"] = dict.fromkeys(range(8), 1000), "Local timer interrupts"
    machine.softirqs = {kind: dict.fromkeys(range(8), 900) for kind in ("TIMER", "SCHED", "RCU", "BLOCK")}
    machine.softirqs["NET_RX"] = {3: 9000}
    machine.softnet[3] = 20_000, 0, 0, 0
    machine.process(91, "db-writer", "3", 0.6)
    result = answer(machine)
    assert (result.findings, result.commands) == ((), ())
