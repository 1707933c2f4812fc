"""The values of interrupts, interfaces, pinned threads, irqbalance and commands: columns of the tables, keys of the JSON object, metrics."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any

from opskit.quantities import percent
from opskit.records import NamedTuple
from opskit.render.cells import rate, rate_field, share_field
from opskit.render.fields import COUNT, FLAG, ID, NUMBER, TEXT, Field, list_of, map_of, records
from opskit.render.report import Block
from opskit.render.views.irqs.fields import cpus_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from opskit.analysis.irqs.result import Command, Result
    from opskit.collect.irqs.facts import Balancer, Facts, Interface, Interrupt, Pinned, Queue


def _cpu_list(name: str) -> Callable[[Any], list[int] | None]:
    read = attrgetter(name)

    def value(row: Any) -> list[int] | None:
        cpus = read(row)
        return None if cpus is None else sorted(cpus)

    return value


def _cpus_column(name: str, title: str, *, rank: int = 0) -> Field[Any]:
    """A column of `0-3,8`, for a key of JSON that is a list."""
    read = attrgetter(name)
    return Field(
        f"{name.rpartition('.')[2]}_text",
        TEXT,
        title,
        lambda row: cpus_text(read(row)),
        json=False,
        shrinks=8,
        rank=rank,
    )


def by_cpu_text(by_cpu: Mapping[int, float]) -> str:
    """`0` or `0-3` for the CPUs that got some, the busiest one named first where it has most: `3 (97 %)`."""
    total = sum(by_cpu.values())
    if not total:
        return "-"
    cpu, most = max(by_cpu.items(), key=lambda item: (item[1], -item[0]))
    return cpus_text([cpu]) if most == total else f"{cpu} ({percent(most / total)})"


INTERRUPT: Sequence[Field[Interrupt]] = (
    Field("number", ID, help="null: the architecture's own (LOC, RES, …)"),
    Field("name", TEXT, "irq"),
    Field("devices", TEXT, "devices", shrinks=14, help="as the kernel names them"),
    rate_field("rate_per_s", "per s", "rate"),
    Field("by_cpu_per_s", map_of(NUMBER), value=lambda row: {str(cpu): rate(per_s) for cpu, per_s in sorted(row.by_cpu.items()) if per_s}, help="by CPU, without zeros"),
    Field("on", TEXT, "on CPU", lambda row: by_cpu_text(row.by_cpu), json=False),
    Field("affinity", list_of(ID), value=_cpu_list("affinity"), help="smp_affinity: what is allowed"),
    Field("effective", list_of(ID), value=_cpu_list("effective"), help="effective_affinity: what is used"),
    _cpus_column("effective", "effective", rank=1),
    _cpus_column("affinity", "allowed", rank=2),
    Field("interface", TEXT, "interface", shrinks=8, rank=3, help="the network interface that it belongs to"),
    Field("node", ID, "node", rank=5, help="NUMA node of the device"),
    Field("managed", FLAG, "managed", show=lambda is_so: "-" if is_so is None else "yes" if is_so else "no", rank=4, help="the kernel spreads it: its affinity cannot be set; null: unknown"),
)  # fmt: skip
QUEUE: Sequence[Field[Queue]] = (
    Field("kind", help="rx or tx"),
    Field("number", ID),
    Field("cpus", list_of(ID), value=_cpu_list("cpus"), help="of RPS (rx) or XPS (tx); empty: off"),
    Field("flows", COUNT, help="rps_flow_cnt: RFS"),
)


def _queues(kind: str) -> Callable[[Interface], int]:
    return lambda row: sum(queue.kind == kind for queue in row.queues)


def _steering(kind: str) -> Callable[[Interface], str]:
    """The CPUs that all queues of a kind name."""
    return lambda row: cpus_text(cpu for queue in row.queues if queue.kind == kind for cpu in queue.cpus)


INTERFACE: Sequence[Field[Interface]] = (
    Field("name", TEXT, "interface", shrinks=10),
    Field("driver", TEXT, "driver", shrinks=8, rank=3),
    Field(
        "namespace",
        TEXT,
        "network namespace",
        lambda row: row.space and (row.space.name or f"of {row.space.pid}"),
        shrinks=12,
        rank=5,
        help="null: ours; `of PID` where it has no name",
    ),
    rate_field("packets_per_s", "packets/s", "packets", help="received"),
    rate_field("dropped_per_s", "drops/s", "dropped", help="received and dropped"),
    Field("is_virtual", FLAG, help="not of a device"),
    Field("rx_queues", COUNT, "rx queues", _queues("rx"), json=False),
    Field("tx_queues", COUNT, "tx queues", _queues("tx"), json=False, rank=4),
    Field("rps", TEXT, "RPS", _steering("rx"), json=False, shrinks=8),
    Field("xps", TEXT, "XPS", _steering("tx"), json=False, shrinks=8, rank=2),
    Field("node", ID, "node", rank=1, help="NUMA node of the device"),
    Field("queues", records(QUEUE), value=lambda row: [*row.queues]),
)


class Placed(NamedTuple):
    """A pinned thread, and the NUMA nodes of the CPUs that it may use."""

    thread: Pinned
    nodes: tuple[int, ...]


def placed(facts: Facts, threads: Sequence[Pinned]) -> list[Placed]:
    """The threads with their nodes."""
    nodes = {cpu.use.cpu: cpu.node for cpu in facts.cpus if cpu.node is not None}
    return [Placed(each, tuple(sorted({nodes[cpu] for cpu in each.allowed if cpu in nodes}))) for each in threads]


PINNED: Sequence[Field[Placed]] = (
    Field("pid", ID, "pid", attrgetter("thread.process.pid")),
    Field("start_ticks", ID, value=attrgetter("thread.process.start_ticks")),
    Field("command", TEXT, "process", attrgetter("thread.process.command"), shrinks=12),
    Field("tid", ID, "tid", attrgetter("thread.tid"), rank=2),
    Field("name", TEXT, "thread", attrgetter("thread.name"), shrinks=12, rank=1),
    Field("allowed", list_of(ID), value=_cpu_list("thread.allowed"), help="CPUs that it may run on"),
    _cpus_column("thread.allowed", "CPUs"),
    Field("nodes", list_of(ID), value=lambda row: [*row.nodes], help="NUMA nodes of these CPUs"),
    Field("nodes_text", TEXT, "node", lambda row: cpus_text(row.nodes), json=False, rank=3),
    Field("cpuset", list_of(ID), value=_cpu_list("thread.cpuset"), help="what its cpuset cgroup allows"),
    Field("is_idle_class", FLAG, value=attrgetter("thread.is_idle_class"), help="it only takes what others leave: SCHED_IDLE, or nice 19"),
    share_field("running", "running", "thread.running", help="0 to 1 of a CPU; with interrupts that came meanwhile"),
    share_field("lost", "waiting", "thread.lost", help="0 to 1 of the window: ready, without a CPU"),
)  # fmt: skip
BALANCER: Sequence[Field[Balancer]] = (
    Field("pid", ID),
    Field("banned", list_of(ID), value=_cpu_list("banned"), help="CPUs that it leaves alone; null: unknown"),
    Field("banned_irqs", list_of(ID), value=_cpu_list("banned_irqs"), help="interrupts that it leaves alone"),
    Field("one_shot", FLAG, help="it moves nothing later"),
    Field("ignores_isolation", FLAG, help="its environment bans CPUs, so it does not look at isolcpus and nohz_full"),
)
COMMAND: Sequence[Field[Command]] = (
    Field("why", TEXT, "why"),
    Field("line", TEXT, "command", help="to type as root"),
    Field("warning", TEXT, "warning", help="what would undo it, or what it costs"),
)
_TOP = 5  # interrupts


def blocks(result: Result, *, verbose: bool, top: int | None) -> Iterator[Block[Any]]:
    """The busiest interrupts of devices; `verbose`: all interrupts, the interfaces, the pinned threads. `top`: rows of each (-n)."""
    if not verbose:
        devices = [each for each in result.top if each.is_of_device and each.rate]
        if devices:
            yield _details(INTERRUPT, devices, _TOP if top is None else top, "interrupts of devices")
        return
    facts = result.facts
    threads = placed(facts, facts.pinned)
    for fields, rows, title in (
        (INTERRUPT, result.top, "interrupts"),
        (INTERFACE, facts.interfaces, "interfaces"),
        (PINNED, threads, "threads that may not use all CPUs"),
    ):
        if rows:
            yield _details(fields, rows, top, title)


def _details(fields: Sequence[Field[Any]], rows: Sequence[Any], top: int | None, title: str) -> Block[Any]:
    return Block(fields, rows[: top or None], len(rows), title, one_line=True, details=True)
