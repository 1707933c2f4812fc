"""The values of CPUs: columns of the tables, keys of the JSON object, metrics."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING

from opskit.quantities import number_ranges
from opskit.render.cells import rate, rate_at, rate_text, rounded_at, share_field
from opskit.render.fields import FLAG, ID, NUMBER, SHARE, TEXT, Field, list_of, map_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from opskit.analysis.irqs.result import Row

IPI, TIMER = "IPI", "LOC"


def cpus_text(cpus: Iterable[int]) -> str:
    """`0-3,8`; `-` where there is none."""
    return number_ranges(cpus) or "-"


def _softirq(name: str) -> Callable[[Row], float | None]:
    return lambda row: rate(row.cpu.softirqs.get(name))


def _share_field(name: str, title: str, *, rank: int = 0, said: str = "") -> Field[Row]:
    return share_field(name, title, f"cpu.use.{name}", rank=rank, help=said)


def _rate_field(
    name: str, title: str, value: Callable[[Row], float | None], *, rank: int = 0, said: str = ""
) -> Field[Row]:
    return Field(f"{name}_per_s", NUMBER, title, value, show=rate_text, rank=rank, help=said)


CPU: Field[Row] = Field("cpu", ID, "CPU", attrgetter("cpu.use.cpu"))
CAUSE: Field[Row] = Field(
    "cause", TEXT, "cause", shrinks=16, rank=1, help="what most of its interrupts and softirqs are"
)
SHARES: Sequence[Field[Row]] = (
    _share_field("user", "user", said="0 to 1, with nice and guests; so the next ones"),
    _share_field("system", "sys"),
    _share_field("softirq", "softirq"),
    _share_field("irq", "irq", rank=3),
    _share_field("steal", "steal", rank=4, said="the hypervisor ran something else"),
)
IDLE = _share_field("idle", "idle", rank=5, said="also waiting for disks")
NET_RX = _rate_field("net_rx", "NET_RX/s", _softirq("NET_RX"), said="network softirqs")
IPIS = _rate_field("ipis", "IPI/s", rate_at("cpu.ipis"), said="rescheduling and function calls by other CPUs")
DROPS = _rate_field(
    "drops", "drops/s", rate_at("cpu.drops"), said="packets dropped since its backlog was full; null: unknown"
)
MORE: Sequence[Field[Row]] = (
    _rate_field("interrupts", "irqs/s", rate_at("cpu.interrupts"), rank=2, said="of devices"),
    _rate_field("local_timer", "timer/s", rate_at("cpu.local_timer"), rank=9, said="its own timer (LOC)"),
    _rate_field("packets", "packets/s", rate_at("cpu.processed"), rank=7, said="processed by its softirqs"),
    _rate_field(
        "squeezes",
        "squeezed/s",
        rate_at("cpu.squeezes"),
        rank=6,
        said="packets were left when its softirq budget was used up",
    ),
    _rate_field(
        "steered",
        "steered/s",
        rate_at("cpu.steered"),
        rank=8,
        said="how often another CPU woke it for packets that RPS or RFS gave it",
    ),
)
LOAD: Field[Row] = Field("load", SHARE, "load", rounded_at("load", 4), json=True, help="irq and softirq together")
NODE: Field[Row] = Field(
    "node", ID, "node", attrgetter("cpu.node"), rank=10, help="NUMA node; null: unknown, or there is one"
)
SATURATED: Field[Row] = Field("is_saturated", FLAG, value=attrgetter("is_saturated"))
SOFTIRQS: Field[Row] = Field(
    "softirqs_per_s", map_of(NUMBER), value=lambda row: {name: rate(per_s) for name, per_s in row.cpu.softirqs.items()}, help="by name"
)  # fmt: skip
SIBLINGS: Field[Row] = Field(
    "siblings", list_of(ID), value=lambda row: sorted(row.cpu.siblings), help="SMT threads of its core"
)

TABLE: Sequence[Field[Row]] = (CPU, *SHARES, MORE[0], NET_RX, IPIS, DROPS, NODE, CAUSE)
TEXT_TABLE: Sequence[Field[Row]] = (CPU, *SHARES, IDLE, NET_RX, IPIS, DROPS, *MORE, NODE, CAUSE)
METRICS: Sequence[Field[Row]] = (CPU, *SHARES, IDLE, LOAD, NET_RX, IPIS, DROPS, *MORE)
ROW: Sequence[Field[Row]] = (*METRICS, SOFTIRQS, NODE, SIBLINGS, CAUSE, SATURATED)
