"""The facts of both sides of `opskit compare`."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from opskit.collect.compare.counters import jvm_counters, machine_counters
from opskit.collect.compare.facts import NO_RATES, Known, Machine
from opskit.collect.compare.jvms import jvm_facts
from opskit.collect.compare.machine import machine_facts
from opskit.collect.compare.rates import jvm_rates, machine_rates
from opskit.collect.sos.report import SosHost, sos_jvms
from opskit.jvm.discover import find_jvms
from opskit.proc.fs import DENIED, GONE
from opskit.proc.recorded.replies import HISTOGRAM, THREADS

if TYPE_CHECKING:
    from opskit.collect.compare.facts import Fact, JvmFacts
    from opskit.host import Host

_MOST_JVMS = 150
_LOOKS = 4  # at the counters of a live machine


def collect_side(host: Host, label: str, kind: str, window_s: float) -> Machine:
    """What is compared of a machine. `window_s`: of the rates of a live one; a capture has its samples."""
    jvms = sos_jvms(host) if isinstance(host, SosHost) else find_jvms(host.fs, host.clock_ticks)[:_MOST_JVMS]
    known = machine_facts(host)
    configured: list[JvmFacts] = []
    for jvm in jvms:
        with suppress(*GONE, DENIED):
            configured.append(jvm_facts(host, jvm))
    looks = [machine_counters(host)]
    by_pid = {jvm.pid: [jvm_counters(host, jvm)] for jvm in jvms}
    for pause_s in _pauses(host, window_s):
        host.sleep(pause_s)
        looks.append(machine_counters(host))
        for jvm in jvms:
            by_pid[jvm.pid].append(jvm_counters(host, jvm))
    measured = [*machine_rates(looks)]
    sides: list[JvmFacts] = []
    for facts in configured:
        seen = [each for each in by_pid[facts.pid] if each is not None]
        sides.append(_with_replies(host, facts)._replace(known=_with(facts.known, [*jvm_rates(seen)] if seen else [])))
    passed_s = looks[-1].at_s - looks[0].at_s
    if passed_s <= 0:
        known = known._replace(missing=(*known.missing, ("rates and shares", NO_RATES)))
    return Machine(
        label, kind, host.name, _time_of(host), len(looks), passed_s, _with(known, measured),
        tuple(sides), (host.name,),
    )  # fmt: skip


def _with_replies(host: Host, facts: JvmFacts) -> JvmFacts:
    """The thread dumps and the last histogram that the JVM gave when the capture was made."""
    replies = host.fs.replies
    if replies is None:
        return facts
    dumps = tuple(replies.all_of(facts.pid, THREADS))
    histograms = replies.all_of(facts.pid, HISTOGRAM)
    return facts._replace(dumps=dumps, histogram=histograms[-1] if histograms else None)


def _time_of(host: Host) -> str | None:
    return None if isinstance(host, SosHost) else host.now().strftime("%Y-%m-%dT%H:%M:%SZ")


def _with(known: Known, facts: list[Fact]) -> Known:
    return known._replace(facts={**known.facts, **{fact.key: fact for fact in facts}})


def _pauses(host: Host, window_s: float) -> list[float]:
    """How long to wait between looks: through all samples of a capture; none in a copy."""
    if not host.fs.is_live:
        return []
    if host.is_recorded:
        marks = host.tape.marks  # type: ignore[attr-defined]
        return [max(after.monotonic_s - before.monotonic_s, 1e-3) for before, after in zip(marks, marks[1:])]
    return [window_s / _LOOKS] * _LOOKS
