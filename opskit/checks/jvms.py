"""JVMs over a short window: GC pauses, quotas, memory limits, those that are stopped, stuck or were killed meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.analysis.doctor.seen import Gap, Outcome
from opskit.analysis.jvm_window import judge
from opskit.checks.gaps import no_rates, why_denied
from opskit.collect.jvm_window import Request, collect
from opskit.quantities import plural

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opskit.checks.look import Look
    from opskit.collect.jvm_window import Facts


def check(look: Look) -> Outcome:
    """Judge what two readings of each JVM show."""
    facts = collect(look.host, Request(look.pids, look.window_s))
    known = len(facts.pairs)
    return Outcome(judge(facts), [plural(known, "JVM")] if known or not look.pids else (), [*_gaps(look, facts)])


def _gaps(look: Look, facts: Facts) -> Iterator[Gap]:
    if facts.denied:
        yield Gap(
            "jvms",
            f"whether {plural(facts.denied, 'process is a JVM', 'processes are JVMs')}",
            why_denied(look.host.fs),
        )
    if facts.closed:
        yield Gap("jvms", f"GC of {plural(facts.closed, 'JVM')}", why_denied(look.host.fs))
    if facts.without:
        yield Gap("jvms", f"GC of {plural(facts.without, 'JVM')}", "without hsperfdata counters")
    if facts.pairs and not facts.window_s:
        yield from no_rates(look.host.fs, "jvms", f"GC and throttling of {plural(len(facts.pairs), 'JVM')}")
    if facts.left_out:
        yield Gap("jvms", plural(facts.left_out, "more JVM"), "too many for a short window: name them")
    if facts.unlike:
        yield Gap("jvms", f"deadlocks of {plural(facts.unlike, 'JVM')}", "libjvm does not describe its monitors")
    if facts.crowded:
        yield Gap("jvms", f"deadlocks of {plural(facts.crowded, 'JVM')}", "there are too many threads")
    if facts.unwatched:
        yield Gap(
            "jvms", f"deadlocks of {plural(facts.unwatched, 'more JVM')}", "too many for a short window: name them"
        )
    if facts.unread:
        yield Gap("jvms", f"deadlocks of {plural(facts.unread, 'JVM')}", why_denied(look.host.fs))
    if facts.pairs and not look.ask:
        yield Gap(
            "java-threads",
            f"thread pools and java.util.concurrent locks of {plural(len(facts.pairs), 'JVM')}",
            "it needs --ask",
        )
