"""The JSON object of `opskit irqs`, its metrics and its CSV file."""

from __future__ import annotations

from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from opskit.records import NamedTuple
from opskit.render.cells import rate_at, rounded_at
from opskit.render.fields import FLAG, ID, NUMBER, TEXT, Field, list_of, map_of, of_part, record, records, sheet
from opskit.render.report import Metrics
from opskit.render.views.irqs.details import BALANCER, COMMAND, INTERFACE, INTERRUPT, PINNED, placed
from opskit.render.views.irqs.fields import METRICS, ROW, SATURATED
from opskit.render.views.irqs.jitter import FIELD as JITTER

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opskit.analysis.irqs.jitter import Result as JitterResult
    from opskit.analysis.irqs.moments import Moment
    from opskit.analysis.irqs.result import Result
    from opskit.render.report import Report


class Interrupts(NamedTuple):
    """What is shown, and what a watch has seen so far."""

    result: Result
    moments: Sequence[Moment] = ()


class Answer(NamedTuple):
    """What was asked for: interrupts, or with --jitter what the hiccup meter saw. The other one is None."""

    interrupts: Interrupts | None = None
    jitter: JitterResult | None = None


class _OnCpu(NamedTuple):
    """A metric of one CPU."""

    cpu: int
    name: str
    rate: float
    devices: str | None = None


MOMENT: Sequence[Field[Moment]] = (
    Field("at_s", NUMBER, value=rounded_at("at_s"), help="when its window ended, since the watch began"),
    Field(
        "loads", map_of(NUMBER), value=lambda it: {str(cpu): round(load, 4) for cpu, load in it.loads.items()},
        help="irq and softirq time of each CPU, 0 to 1",
    ),
    Field("drops_per_s", NUMBER, value=rate_at("drops"), help="packets, of all CPUs"),
)  # fmt: skip


def _facts(name: str) -> Any:
    return attrgetter(f"result.facts.{name}")


def _cpus(name: str) -> Any:
    read = _facts(name)
    return lambda it: sorted(read(it))


_INTERRUPTS: Sequence[Field[Interrupts]] = (
    Field("window_s", NUMBER, value=rounded_at("result.facts.window_s")),
    Field("cpus", records(ROW), value=lambda it: [*it.result.rows], help="by number; rates are a second over the window"),
    Field("interrupts", records(INTERRUPT), value=lambda it: [*it.result.top], help="by rate"),
    Field("interfaces", records(INTERFACE), value=lambda it: [*it.result.facts.interfaces], help="of our network namespace; of others those whose packets RPS steers"),
    Field("pinned", records(PINNED), value=lambda it: placed(it.result.facts, it.result.facts.pinned), help="threads that may not use all CPUs"),
    Field("victims", records(PINNED), value=lambda it: placed(it.result.facts, it.result.victims), help="pinned to a saturated CPU"),
    Field("commands", records(COMMAND), value=lambda it: [*it.result.commands]),
    Field("irqbalance", record(BALANCER), value=_facts("balancer"), help="null: it does not run"),
    Field("isolated", list_of(ID), value=_cpus("isolated"), help="isolcpus"),
    Field("tickless", list_of(ID), value=_cpus("tickless"), help="nohz_full"),
    Field("default_affinity", list_of(ID), value=_cpus("default_affinity"), help="/proc/irq/default_smp_affinity"),
    Field("accounts_irqs", FLAG, value=_facts("accounts_irqs"), help="irq and softirq time is measured, not sampled by clock ticks; null: unknown"),
    Field("missing", list_of(TEXT), value=lambda it: [*it.result.facts.missing], help="what could not be read"),
    Field("samples", records(MOMENT), value=lambda it: [*it.moments] or None, help="with -w, the oldest first"),
)  # fmt: skip
DOCUMENT: Sequence[Field[Answer]] = (*of_part("interrupts", _INTERRUPTS), JITTER)
_ON_CPU: Sequence[Field[_OnCpu]] = (Field("cpu", ID), Field("name"), Field("devices"))
_SOFTIRQ = (*_ON_CPU, Field("softirqs_per_s", NUMBER, value=rate_at("rate"), help="by CPU and name"))
_INTERRUPT = (
    *_ON_CPU,
    Field("interrupts_per_s", NUMBER, value=rate_at("rate"), help="by CPU, number and devices"),
)
_INTERFACE = [
    field for field in INTERFACE if field.name in ("name", "driver", "namespace", "packets_per_s", "dropped_per_s")
]
_PINNED = [field for field in PINNED if field.name in ("pid", "command", "tid", "name", "running", "lost")]
_SHEET = [field for field in ROW if field.kind.schema.get("type") not in ("object", "array")]


def metrics(result: Result) -> Iterator[Metrics]:
    """CPUs, their softirqs and interrupts (those that occurred), interfaces, pinned threads."""
    softirqs = [
        _OnCpu(row.cpu.use.cpu, name, rate) for row in result.rows for name, rate in sorted(row.cpu.softirqs.items())
    ]
    interrupts = [
        _OnCpu(cpu, each.name, rate, each.devices or None)
        for each in result.top
        for cpu, rate in sorted(each.by_cpu.items())
        if rate
    ]
    yield Metrics("opskit_irqs_cpu", (*METRICS, SATURATED), result.rows)
    yield Metrics("opskit_irqs", _SOFTIRQ, softirqs)
    yield Metrics("opskit_irqs", _INTERRUPT, interrupts)
    yield Metrics("opskit_irqs_interface", _INTERFACE, result.facts.interfaces)
    yield Metrics("opskit_irqs_pinned", _PINNED, placed(result.facts, result.facts.pinned))


def complete(report: Report, result: Result, moments: Sequence[Moment] = ()) -> Report:
    """The report with its JSON object, metrics and CSV file."""
    return report._replace(
        document=(DOCUMENT, Answer(Interrupts(result, moments))),
        metrics=partial(metrics, result),
        sheet=lambda: sheet(_SHEET, result.rows),
    )


def complete_jitter(report: Report, result: JitterResult) -> Report:
    """The same of --jitter."""
    return report._replace(document=(DOCUMENT, Answer(jitter=result)))
