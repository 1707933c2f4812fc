"""What a look at a process's limits found, as findings. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.analysis.finding import Finding, most_severe_first

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opskit.analysis.limit_use import LimitUse
    from opskit.analysis.limits import Limit, Verdict


def limit_findings(pid: int, verdict: Verdict, uses: Sequence[LimitUse]) -> list[Finding]:
    """Nothing left, nearly nothing left, and the other limits that are over 80 %; the most severe first."""
    found = []
    binding = verdict.binding
    if binding is not None and verdict.has_run_out:
        found.append(_ran_out(pid, verdict, binding))
    found += [
        Finding(
            "rlimit-nearly-used",
            "warning",
            str(pid),
            f"{use.what}: {use.share or 0:.0%} of {use.name} are used",
            f"{use.in_use:.0f} of {use.value:.0f} {use.unit}, from {use.source}",
        )
        for use in uses
        if use.nearly
    ]
    return most_severe_first(found)


def _ran_out(pid: int, verdict: Verdict, binding: Limit) -> Finding:
    evidence = f"{binding.in_use} of {binding.value} {binding.unit} in use, from {binding.source}"
    if binding.name == "RLIMIT_STACK" and not binding.threads_left:
        summary = f"each thread needs a stack of {verdict.stack.bytes} bytes, more than the kernel grants at once"
        evidence = f"{binding.source}: {verdict.stack.origin}"
        return Finding("stack-above-ram", "error", str(pid), summary, evidence, binding.fix)
    if binding.name == "seccomp":
        summary, evidence = "a seccomp filter refuses clone3(): no thread can start", binding.note or binding.source
        return Finding("seccomp-refuses-threads", "error", str(pid), summary, evidence, binding.fix)
    if not binding.threads_left:
        summary = f"no thread can start: {binding.full_name} is used up"
        return Finding("threads-none-left", "error", str(pid), summary, evidence, binding.fix)
    at_most = "at most " if verdict.is_at_most else ""
    summary = f"{at_most}{binding.threads_left} more threads can start until {binding.full_name} is used up"
    return Finding("threads-nearly-none-left", "warning", str(pid), summary, evidence, binding.fix)
