"""Open files: processes near their limit, and all of the machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.analysis.doctor.seen import Outcome
from opskit.checks.gaps import denied
from opskit.collect.fds.quick import collect_quick
from opskit.proc.files.limits import is_nearly_full
from opskit.quantities import plural

if TYPE_CHECKING:
    from opskit.analysis.finding import Finding
    from opskit.checks.look import Look
    from opskit.collect.fds.quick import QuickFacts


def check(look: Look) -> Outcome:
    """Judge the counts. Which descriptors they are is not read."""
    facts = collect_quick(look.host, look.pids)
    gaps = denied(look.host.fs, "fds", "open files", facts.denied)
    return Outcome(_judge(facts), [plural(facts.processes, "process", "processes")], gaps)


def _judge(facts: QuickFacts) -> list[Finding]:
    """Most machines have nothing to judge: then the rules are not imported."""
    used, limit = facts.file_nr or (0, None)
    if not facts.nearest and not is_nearly_full(limit, used):
        return []
    from opskit.analysis.fds.host import judge_quick

    return judge_quick(facts)
