"""Open files: processes near their limit, and all of the machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.analysis.doctor.seen import Gap, Outcome
from opskit.analysis.fds.host import judge_quick
from opskit.collect.fds.quick import collect_quick
from opskit.quantities import plural

if TYPE_CHECKING:
    from opskit.checks.look import Look


def check(look: Look) -> Outcome:
    """Judge the counts. Which descriptors they are is not read."""
    facts = collect_quick(look.host, look.pids)
    gaps = []
    if facts.denied:
        what = f"open files of {plural(facts.denied, 'process', 'processes')}"
        gaps.append(Gap("fds", what, "permission denied: run as root"))
    return Outcome(judge_quick(facts), [plural(facts.processes, "process", "processes")], gaps)
