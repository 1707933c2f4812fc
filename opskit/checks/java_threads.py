"""One thread dump of the JVMs that are named, or of those that others found stuck or slow: deadlocks, locks, pools. With --ask only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.analysis.doctor.seen import Gap, Outcome
from opskit.quantities import plural

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opskit.checks.look import Look
    from opskit.collect.one_dump import Facts


def check(look: Look) -> Outcome:
    """Judge one dump of each. Nothing is sent without `ask`."""
    pids = look.pids or look.suspects
    if not look.ask or not pids:
        return Outcome()
    from opskit.collect.one_dump import Dumps, Request

    dumps = Dumps(look.host, Request(pids, look.until_s))
    from opskit.analysis.java_threads import judge  # while they answer

    facts = dumps.wait()
    asked = {each.jvm.pid: each.paused_s for each in facts.asked if each.dump is not None}
    looked_at = [f"a thread dump of {plural(len(asked), 'JVM')}"] if asked else ()
    return Outcome(judge(facts), looked_at, [*_gaps(facts)], asked)


def _gaps(facts: Facts) -> Iterator[Gap]:
    for each in facts.asked:
        if each.dump is None:
            yield Gap("java-threads", f"deadlocks and locks of {each.jvm.pid} ({each.jvm.main})", each.why_none or "?")
    if facts.left_out:
        yield Gap(
            "java-threads",
            f"deadlocks and locks of {plural(facts.left_out, 'more JVM')}",
            "too many at once: name them",
        )
    if facts.denied:
        what = plural(facts.denied, "process", "processes")
        yield Gap("java-threads", f"deadlocks and locks of {what}", "permission denied: whether it is a JVM is unknown")
