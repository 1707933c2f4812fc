"""How much of each rlimit is used, and what is wrong with a process's limits, as findings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit import shell
from opskit.analysis.finding import Entity, Finding, Severity, most_severe_first
from opskit.proc.files.limits import UNLIMITED
from opskit.quantities import integer, percent, plural, short_size
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from opskit.analysis.limits.limit import Headroom, Limit
    from opskit.collect.limits.facts import ThreadLimitFacts

_NEARLY = 0.8


class LimitUse(NamedTuple):
    """One soft rlimit and its use, in `unit`; `share` is 0 to 1, None where one of them is unknown or unlimited."""

    name: str
    what: str
    unit: str
    value: float | None
    in_use: float | None
    share: float | None
    source: str

    @property
    def nearly(self) -> bool:
        """Whether more than 80 % are used."""
        return self.share is not None and self.share > _NEARLY


def _of_status(key: str) -> Callable[[ThreadLimitFacts], int | None]:
    return lambda facts: facts.status.bytes_of(key)


def _pending_signals(facts: ThreadLimitFacts) -> int | None:
    return integer(facts.status.fields.get("SigQ", "").partition("/")[0])


_USES: tuple[tuple[str, str, str, Callable[[ThreadLimitFacts], float | None], str], ...] = (
    ("RLIMIT_NOFILE", "open files", "files", lambda it: it.open_files, "fd"),
    ("RLIMIT_MEMLOCK", "locked memory", "bytes", _of_status("VmLck"), "status, VmLck"),
    ("RLIMIT_SIGPENDING", "pending signals", "signals", _pending_signals, "status, SigQ"),
    ("RLIMIT_NPROC", "processes", "threads", lambda it: it.user_threads, "all threads of its real uid"),
    ("RLIMIT_AS", "address space", "bytes", _of_status("VmSize"), "status, VmSize"),
    ("RLIMIT_DATA", "data", "bytes", _of_status("VmData"), "status, VmData"),
    ("RLIMIT_STACK", "main thread's stack", "bytes", _of_status("VmStk"), "status, VmStk"),
    ("RLIMIT_FSIZE", "file size", "bytes", lambda it: it.farthest_write_bytes, "fdinfo, farthest write position"),
    ("RLIMIT_CPU", "cpu time", "seconds", lambda it: it.cpu_s, "stat"),
    ("RLIMIT_CORE", "core", "bytes", lambda _: None, "limits"),
)


def limit_uses(facts: ThreadLimitFacts) -> list[LimitUse]:
    """Every rlimit that has a use to be compared with, the fullest first."""
    found = []
    for name, what, unit, use, source in _USES:
        value, used, share = facts.soft(name), use(facts), None
        if value is not None and value != UNLIMITED and used is not None:
            share = used / value if value else (1.0 if used else 0.0)
        found.append(LimitUse(name, what, unit, value, used, share, source))
    return sorted(found, key=lambda use: -(use.share or 0.0))


def limit_findings(facts: ThreadLimitFacts, found: Headroom, uses: Sequence[LimitUse]) -> list[Finding]:
    """Nothing left, nearly nothing left, and the other limits that are over 80 %; the most severe first."""
    findings = [_run_out(facts, found, found.binding)] if found.binding and found.has_run_out else []
    code, entity, closer = "rlimit-nearly-used", _entity(facts, None), _look(facts, "--all", "-w")
    exempt = {limit.name for limit in found.limits if limit.state == "exempt"}
    for use in uses:
        if use.nearly and use.name not in exempt:
            summary = f"{percent(use.share)} of {use.name} ({use.what}) is used"
            evidence = f"{use.in_use:.0f} of {use.value:.0f} {use.unit}, from {use.source}"
            findings.append(Finding(code, "warning", entity, summary, evidence, None, closer, use.share))
    return most_severe_first(findings)


def _run_out(facts: ThreadLimitFacts, found: Headroom, binding: Limit) -> Finding:
    severity: Severity = "error"
    is_stack = binding.name == "RLIMIT_STACK"
    evidence = f"{binding.in_use} of {binding.value} {binding.unit} in use, from {binding.source}"
    if is_stack:
        evidence = f"a stack of {short_size(found.stack.bytes)}: {found.stack.origin}, {binding.source}"
    closer = _look(facts, "--probe", *(("--in-cgroup",) if binding.name == "pids.max" else ()))
    if binding.threads_left:
        code, severity, closer = "threads-nearly-none-left", "warning", _look(facts, "-w")
        more = f"{'at most ' if found.is_at_most else ''}{plural(binding.threads_left, 'more thread')}"
        summary = f"{more} can start until {'the address space' if is_stack else binding.full_name} is used up"
    elif binding.name == "seccomp":
        code, summary = "seccomp-refuses-threads", "a seccomp filter refuses clone3(): no thread can start"
        evidence = binding.note or binding.source
    elif is_stack:
        code = "stack-above-ram"
        summary = "one thread's stack is larger than RAM and swap, or than the free address space"
    else:
        code, summary = "threads-none-left", f"no thread can start: {binding.full_name} is used up"
    share = 1 - (binding.left_share or 0.0) if binding.threads_left else 1.0
    return Finding(code, severity, _entity(facts, binding.cgroup), summary, evidence, binding.fix, closer, share)


def _look(facts: ThreadLimitFacts, *options: str) -> str:
    return shell.command("opskit", "limits", *(() if facts.ask.is_opskit else (facts.pid,)), *options)


def _entity(facts: ThreadLimitFacts, cgroup: str | None) -> Entity:
    """The process in the cgroup whose limit it is, or in the deepest one that it is in."""
    paths = [member.path for member in facts.memberships if member.path != "/"]
    path = cgroup or max(paths, key=lambda each: (len(each), each), default=None)
    return Entity("process", facts.pid, facts.ask.process.start_ticks, Entity("cgroup", path) if path else None)
