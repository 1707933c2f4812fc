"""Judge the safepoints of a log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.analysis.finding import Entity, Finding
from opskit.analysis.safepoints.advice import Jdk, advise, verdict
from opskit.analysis.safepoints.stops import text_of
from opskit.errors import BadInput
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opskit.analysis.safepoints.sums import Summary
    from opskit.collect.safepoints.logs import Facts


class Result(NamedTuple):
    """A log's sums and what they mean. `late_threads`: how often a SafepointTimeout named each."""

    facts: Facts
    summary: Summary
    jdk: Jdk
    late_threads: Mapping[str, int]
    verdict: str
    findings: list[Finding]


def judge(facts: Facts, summary: Summary) -> Result:
    """Raise BadInput for a window in which nothing lies, and for minutes of a log without stamps."""
    _check(facts, summary)
    log = facts.log
    jdk = Jdk(log.jdk, log.jdk) if log.jdk is not None else Jdk(*(log.jdk_range or ()))
    late = {text_of(name): count for name, count in log.late_threads.items()}
    entity = Entity("file", " ".join(facts.names))
    found = advise(entity, summary.totals, jdk, summary.operations, summary.worst, late)
    return Result(facts, summary, jdk, late, verdict(summary.totals, summary.operations, log.timeouts), found)


def _check(facts: Facts, summary: Summary) -> None:
    name = facts.names[0] if len(facts.names) == 1 else f"{len(facts.names)} logs"
    if summary.undated and not summary.totals.safepoints:
        advice = "give an uptime (90s, 5m) where the log has uptimes, a date where it has dates"
        raise BadInput(name, f"its lines have no stamps that --since and --until could be compared with; {advice}")
    if summary.outside and not summary.totals.safepoints:
        raise BadInput(name, f"none of its {summary.outside:,} safepoints lies between --since and --until")
    unstamped = summary.first.local_s is None and summary.first.uptime_s is None
    if summary.minutes is not None and facts.safepoints and unstamped:
        options = (
            "JDK 6 to 8 write them with -XX:+PrintGCDateStamps, JDK 9 and later with -Xlog:safepoint:FILE:time,uptime"
        )
        raise BadInput(name, f"its lines have no stamps, so there are no minutes; {options}")
