"""The files by which tools reach JVMs, and leftovers of ended JVMs. No socket is connected to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.analysis.doctor.seen import Gap, Outcome
from opskit.analysis.hsperf_check.alone import alone
from opskit.analysis.hsperf_check.judge import judge
from opskit.checks.gaps import why_denied
from opskit.collect.hsperf_check import Request, collect
from opskit.quantities import plural

if TYPE_CHECKING:
    from opskit.checks.look import Look


def check(look: Look) -> Outcome:
    """Judge what the files and the lists of unix sockets show. Whether a client is answered is for `--probe`."""
    facts = collect(look.host, Request(look.pids, quick=True))
    number = len(facts.around)
    gaps = (
        [Gap("hsperf-check", f"attach files of {plural(len(facts.notes), 'JVM')}", why_denied(look.host.fs))]
        if facts.notes
        else []
    )
    if number and facts.is_copy:
        gaps = [Gap("hsperf-check", f"attach sockets of {plural(number, 'JVM')}", "a copy has no sockets")]
    return Outcome(
        alone(judge(facts)), [f"attach files of {plural(number, 'JVM')}"] if number or not look.pids else (), gaps
    )
