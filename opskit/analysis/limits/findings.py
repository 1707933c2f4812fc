"""What is wrong with a process's limits, as findings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit import shell
from opskit.analysis.finding import Entity, Finding, most_severe_first
from opskit.quantities import percent, plural, short_size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opskit.analysis.limits.limit import Headroom, Limit
    from opskit.analysis.limits.use import LimitUse
    from opskit.collect.limits.facts import ThreadLimitFacts


def limit_findings(facts: ThreadLimitFacts, found: Headroom, uses: Sequence[LimitUse]) -> list[Finding]:
    """Nothing left, nearly nothing left, and the other limits that are over 80 %; the most severe first."""
    findings = [_run_out(facts, found, found.binding)] if found.binding and found.has_run_out else []
    for use in uses:
        if use.nearly:
            summary = f"{percent(use.share)} of {use.name} ({use.what}) is used"
            evidence = f"{use.in_use:.0f} of {use.value:.0f} {use.unit}, from {use.source}"
            closer = _look(facts, "--all", "-w")
            findings.append(
                Finding(
                    "rlimit-nearly-used",
                    "warning",
                    _entity(facts, None),
                    summary,
                    evidence,
                    next=closer,
                    share=use.share,
                )
            )
    return most_severe_first(findings)


def _run_out(facts: ThreadLimitFacts, found: Headroom, binding: Limit) -> Finding:
    entity = _entity(facts, binding.cgroup)
    evidence = f"{binding.in_use} of {binding.value} {binding.unit} in use, from {binding.source}"
    closer = _look(facts, "--probe", *(("--in-cgroup",) if binding.name == "pids.max" else ()))
    if binding.threads_left:
        at_most = "at most " if found.is_at_most else ""
        summary = (
            f"{at_most}{plural(binding.threads_left, 'more thread')} can start until {binding.full_name} is used up"
        )
        return Finding(
            "threads-nearly-none-left", "warning", entity, summary, evidence, binding.fix, _look(facts, "-w"),
            share=1 - (binding.left_share or 0.0),
        )  # fmt: skip
    if binding.name == "seccomp":
        code, summary = "seccomp-refuses-threads", "a seccomp filter refuses clone3(): no thread can start"
        evidence = binding.note or binding.source
    elif binding.name == "RLIMIT_STACK":
        code, summary = "stack-above-ram", "one thread's stack is larger than RAM and swap, or than the address space"
        evidence = f"a stack of {short_size(found.stack.bytes)}: {found.stack.origin}, {binding.source}"
    else:
        code, summary = "threads-none-left", f"no thread can start: {binding.full_name} is used up"
    return Finding(code, "error", entity, summary, evidence, binding.fix, closer, share=1.0)


def _look(facts: ThreadLimitFacts, *options: str) -> str:
    return shell.command("opskit", "limits", *(() if facts.ask.is_opskit else (facts.pid,)), *options)


def _entity(facts: ThreadLimitFacts, cgroup: str | None) -> Entity:
    """The process in the cgroup whose limit it is, or in the deepest one that it is in."""
    paths = [member.path for member in facts.memberships if member.path != "/"]
    path = cgroup or max(paths, key=lambda each: (len(each), each), default=None)
    return Entity("process", facts.pid, facts.ask.process.start_ticks, Entity("cgroup", path) if path else None)
