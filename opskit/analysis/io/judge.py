"""Judge how a process, or the machine, reads and writes. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opskit.analysis.io.result import Result
    from opskit.collect.io.facts import Facts


def judge(facts: Facts) -> Result:
    """The answer, the rows behind it, and findings."""
    if facts.process is None:
        from opskit.analysis.io.host import judge_host

        return judge_host(facts)
    from opskit.analysis.io.process import judge_process

    return judge_process(facts)
