"""Answers of `opskit irqs`, as the analysis gives them: a UDP flood steered to one CPU, a quiet machine, a large one, one that tells little."""

from __future__ import annotations

from datetime import datetime, timezone

from opskit.analysis.finding import Entity, Finding
from opskit.analysis.irqs.moments import Moment
from opskit.analysis.irqs.result import Command, Result, Row
from opskit.collect.cpu_use import CpuUse
from opskit.collect.irqs.facts import Balancer, Cpu, Facts, Interface, Interrupt, Pinned, Queue, Space
from opskit.collect.irqs.jitter import Facts as JitterFacts
from opskit.collect.irqs.jitter import Meter, Request, Stall
from opskit.proc.process import Process

CODE = "irq-pinned-thread"
SOFTIRQS = {"TIMER": 250.0, "NET_TX": 0.0, "NET_RX": 12.5, "BLOCK": 3.0, "TASKLET": 0.0, "SCHED": 180.25, "RCU": 90.0}
SPIN = Pinned(
    Process(7525, "spin", 0, "root", 7500, 8675309, "R", 1),
    7525,
    "spin",
    frozenset({0}),
    0.995,
    0.004,
    frozenset({0, 1}),
)
POLLER = Pinned(Process(910, "dpdk-poll", 0, "root", 1, 1200, "S", 4), 913, "poll-3", frozenset({0, 1}), 0.02)
SATURATED = "CPU 0 spends 39 % on network softirqs (13,271 NET_RX/s, all steered by RPS of veth1)"
RPS = "echo 2 > /sys/class/net/veth1/queues/rx-0/rps_cpus"


def use(cpu, **shares) -> CpuUse:
    """A CPU that idles otherwise."""
    known = {name: shares.get(name, 0.0) for name in ("user", "system", "irq", "softirq", "steal")}
    return CpuUse(cpu, **known, idle=max(0.0, 1 - sum(known.values())))


def row(cpu, cause=None, softirqs=(), saturated=False, more=(), **shares) -> Row:
    """A CPU with a little of everything. `more`: values of the record."""
    took = use(cpu, **shares)
    made = Cpu(took, {**SOFTIRQS, **dict(softirqs)}, 42.5, 118.0, 250.0, 14.0, 0.0, 0.0, 0.0, 0)._replace(**dict(more))
    return Row(made, took.irq + took.softirq, cause, saturated)


def interrupt(number, devices, by_cpu, **changes) -> Interrupt:
    """An interrupt of a device that may go to all of two CPUs."""
    made = Interrupt(number, str(number), devices, by_cpu, frozenset({0, 1}), frozenset(by_cpu), None, 0, False)
    return made._replace(**changes)


def architecture(name, what, by_cpu) -> Interrupt:
    """One without a device."""
    return Interrupt(None, name, what, by_cpu)


INTERRUPTS = (
    interrupt(25, "virtio1-input.0", {0: 40.5}, interface="eth0"),
    interrupt(26, "virtio1-output.0", {1: 2.0}, interface="eth0"),
    interrupt(9, "acpi", {}, node=None, managed=None, effective=frozenset()),
    architecture("LOC", "Local timer interrupts", {0: 250.0, 1: 250.0}),
    architecture("RES", "Rescheduling interrupts", {0: 18.0, 1: 1180.0}),
    architecture("CAL", "Function call interrupts", {0: 100.0, 1: 100.0}),
)
INTERFACES = (
    Interface("eth0", 44.5, (Queue("rx", 0, frozenset(), 0), Queue("tx", 0, frozenset({0, 1}))), "virtio_net", 0),
    Interface("veth1", 26542.0, (Queue("rx", 0, frozenset({0}), 0), Queue("tx", 0, frozenset())), "veth", None, True, 3.0, Space("web", 4242)),
)  # fmt: skip


def facts(rows, **changes) -> Facts:
    """A look of two seconds at these CPUs."""
    known = Facts(
        2.0004, tuple(each.cpu for each in rows), INTERRUPTS, INTERFACES, (), None, accounts_irqs=False,
        default_affinity=frozenset({0, 1}),
    )  # fmt: skip
    return known._replace(**changes)


def by_rate(interrupts):
    return tuple(sorted(interrupts, key=lambda each: -each.rate))


def finding(**changes) -> Finding:
    """The warning about CPU 0."""
    made = Finding(
        CODE, "warning", Entity("host", "CPU 0"),
        f"{SATURATED}; 7525 (spin) is pinned to it",
        "/proc/stat: softirq 39 %, 13,271 NET_RX/s in /proc/softirqs, 26,542 of 26,560 packets/s received by RPS",
        fix=RPS, next="opskit cswitch 7525", share=0.39, window_s=2.0,
    )  # fmt: skip
    return made._replace(**changes)


def flood(**changes) -> Result:
    """One CPU does the network's work of the other, and a spinner is pinned to it."""
    rows = (
        row(
            0, "RPS of veth1", {"NET_RX": 13271.4}, True, {"processed": 26560.0, "steered": 26542.0, "drops": 812.0, "squeezes": 41.0},
            user=0.52, system=0.04, irq=0.002, softirq=0.391, steal=0.01,
        ),
        row(1, None, {"NET_TX": 4.0}, more={"ipis": 1280.0}, user=0.12, system=0.41, softirq=0.018),
    )  # fmt: skip
    known = facts(rows, pinned=(SPIN, POLLER), balancer=Balancer(812))
    made = Result(
        known, (f"{SATURATED}; 7525 (spin) is pinned to it.",), rows, by_rate(INTERRUPTS), (SPIN,),
        (
            Command(RPS, "let CPU 1 receive what veth1 brings"),
            Command("taskset -cp 1 7525", "move spin off CPU 0", "CPU 1 is 55 % busy: both then share it"),
        ),
        (finding(),),
    )  # fmt: skip
    return made._replace(**changes)


def healthy() -> Result:
    """Nothing to say."""
    rows = (
        row(0, "irq 25 virtio1-input.0", user=0.11, system=0.03, softirq=0.006),
        row(1, user=0.06, system=0.02, softirq=0.002),
    )
    verdict = "No CPU is saturated by interrupts: at most 0.6 % of CPU 0, by irq 25 virtio1-input.0."
    return Result(facts(rows), (verdict,), rows, by_rate(INTERRUPTS), (), (), ())


def large(cpus=192) -> Result:
    """Two NUMA nodes, a network card with 64 queues: most of its packets arrive on CPU 77; half of the CPUs are idle."""
    rows = [
        row(
            cpu, None, {"NET_RX": 300.0 + cpu} if cpu < 64 else {}, more={"node": cpu % 2, "siblings": frozenset({cpu % 96, cpu % 96 + 96})},
            user=0.3 if cpu < 96 else 0.0, softirq=0.002 * (64 - cpu) / 3 if cpu < 64 else 0.0,
        )
        for cpu in range(cpus)
    ]  # fmt: skip
    rows[77] = row(
        77, "irq 214 mlx5_comp14", {"NET_RX": 412055.0}, True, {"node": 1, "processed": 1.9e6, "squeezes": 12000.0, "drops": 90.0},
        user=0.01, system=0.02, irq=0.11, softirq=0.86,
    )  # fmt: skip
    every = frozenset(range(cpus))
    interrupts = tuple(
        Interrupt(200 + queue, str(200 + queue), f"mlx5_comp{queue}@pci:0000:81:00.0",
                  {cpu: 300.0 + queue if queue != 14 else 61000.0}, every, frozenset({cpu}), "ens1f0np0", 1, True)
        for queue, cpu in ((queue, 77 if queue == 14 else queue) for queue in range(64))
    )  # fmt: skip
    known = facts(
        rows, interrupts=interrupts, balancer=Balancer(2041, frozenset({190, 191})), isolated=frozenset(range(180, 192)),
        tickless=frozenset(range(180, 192)), accounts_irqs=True, default_affinity=every,
        interfaces=(Interface("ens1f0np0", 2.1e6, tuple(Queue("rx", each, frozenset(), 0) for each in range(64)), "mlx5_core", 1),),
    )  # fmt: skip
    verdict = (
        "CPU 77 spends 97 % on interrupts and network softirqs (412,055 NET_RX/s, irq 214 mlx5_comp14 of ens1f0np0)."
    )
    advice = Command(
        "ethtool -X ens1f0np0 equal 64", "spread the flows over all queues of ens1f0np0", "resets its RSS indirection table"
    )  # fmt: skip
    return Result(known, (verdict,), tuple(rows), by_rate(interrupts), (), (advice,), (finding(
        entity=Entity("host", "CPU 77"), summary=verdict[:-1], evidence="/proc/stat, /proc/softirqs", fix=advice.line, next=None, share=0.97,
    ),))  # fmt: skip


def sparse() -> Result:
    """An old kernel, without rights: no softnet_stat, nothing about interfaces, affinities or nodes."""
    more = {"processed": None, "drops": None, "squeezes": None, "steered": None, "node": None}
    rows = tuple(row(cpu, None, more=more, user=0.2, softirq=0.01 * cpu) for cpu in range(2))
    bare = tuple(
        each._replace(affinity=frozenset(), effective=frozenset(), node=None, managed=None) for each in INTERRUPTS[:3]
    )
    said = ("/proc/net/softnet_stat: permission denied: drops are unknown",)
    known = facts(rows, interrupts=bare, interfaces=(), accounts_irqs=None, default_affinity=frozenset(), missing=said)
    verdict = "No CPU is saturated by interrupts: at most 1.0 % of CPU 1."
    return Result(known, (verdict,), rows, by_rate(bare), (), (), ())


def no_ticks() -> Result:
    """A window that is shorter than a clock tick, or /proc/stat cannot be read."""
    said = "No clock tick was counted on any CPU: what interrupts take is unknown; give a longer -i"
    return Result(facts(()), (said,), (), by_rate(INTERRUPTS), (), (), ())


def hostile() -> Result:
    """Names of interfaces, drivers, interrupts and threads that another user chose."""
    evil = "\x1b[2J'$(touch pwn);\n<b>&|evil"
    result = flood()
    bad = Pinned(Process(7525, evil, 0, evil, 1, 1, "R", 1), 7525, evil, frozenset({0}), 0.9, None)
    interrupts = (interrupt(25, evil, {0: 40.0}, interface=evil),)
    known = result.facts._replace(
        pinned=(bad,), interrupts=interrupts, interfaces=(INTERFACES[0]._replace(name=evil, driver=evil),)
    )
    rows = (result.rows[0]._replace(cause=f"RPS of {evil}"), result.rows[1])
    said = finding(summary=f"CPU 0 is saturated by {evil}", entity=Entity("host", evil))
    return result._replace(
        facts=known, rows=rows, top=interrupts, victims=(bad,), verdict=(f"CPU 0 serves {evil}.",), findings=(said,)
    )


def moments(result, number=5, interval_s=2.0) -> list[Moment]:
    """A watch in which the load of the busiest CPU rises, and CPU 1 goes offline for a look."""
    last = {each.cpu.use.cpu: each.load for each in result.rows}
    looks = [
        Moment((at + 1) * interval_s, {cpu: load * (at + 1) / number for cpu, load in last.items()}, 100.0 * at)
        for at in range(number)
    ]
    if number > 2:
        looks[1] = looks[1]._replace(loads={cpu: load for cpu, load in looks[1].loads.items() if cpu != 1})
    return looks


def meter(cpu, **changes) -> Meter:
    """Ten seconds of a CPU that is late by 30 us, with a stall of 9.8 ms."""
    late_ns = {19_000: 12, 30_100: 7000, 44_000: 2500, 66_000: 400, 310_000: 60, 1_300_000: 17, 9_850_000: 1}
    stalls = (Stall(0.009853, 4.250113), Stall(0.001302, 9.99), *(Stall(0.00031, 0.1 * each) for each in range(60)))
    return Meter(cpu, 10.0002, 0.241, late_ns, stalls, 78)._replace(**changes)


def jitter(**changes) -> JitterFacts:
    """Two CPUs, of which the second one has no long stall."""
    calm = meter(1, late_ns={18_000: 100, 31_000: 9800, 90_000: 100}, stalls=(), stall_count=0)
    began = datetime(2026, 1, 2, 3, 4, 5, 250_000, tzinfo=timezone.utc)
    return JitterFacts(Request(), began, (meter(0), calm))._replace(**changes)


def spun() -> JitterFacts:
    """The same with --spin: gaps."""
    gaps = meter(
        0,
        late_ns={5_200: 900, 18_400: 3000, 150_000: 20},
        stalls=(Stall(0.00015, 2.0),) * 20,
        stall_count=3920,
        stalled_s=0.231,
        cpu_s=9.7,
    )
    none = meter(1, late_ns={}, stalls=(), stall_count=0, stalled_s=0.0, cpu_s=9.99)
    return jitter(ask=Request(None, 10.0, spin=True), meters=(gaps, none))
