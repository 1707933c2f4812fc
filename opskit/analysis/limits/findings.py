"""How much of each rlimit is used, and what is wrong with a process's limits, as findings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit import shell
from opskit.analysis.finding import Entity, Finding, Severity, most_severe_first
from opskit.proc.files.limits import UNLIMITED, is_nearly_full
from opskit.quantities import integer, percent, plural, short_size
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from opskit.analysis.limits.limit import Headroom, Limit
    from opskit.analysis.limits.probe import Probed
    from opskit.collect.limits.facts import ThreadLimitFacts

_MOST_KINDS = 2  # of open files in a sentence


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
        return is_nearly_full(self.value, None if self.in_use is None else int(self.in_use))


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
    found = [_use(facts, *row) for row in _USES]
    return sorted(found, key=lambda use: -(use.share or 0.0))


def _use(
    facts: ThreadLimitFacts,
    name: str,
    what: str,
    unit: str,
    use: Callable[[ThreadLimitFacts], float | None],
    source: str,
) -> LimitUse:
    value, used, share = facts.soft(name), use(facts), None
    if value is not None and value != UNLIMITED and used is not None:
        share = used / value if value else (1.0 if used else 0.0)
    return LimitUse(name, what, unit, value, used, share, source)


def open_files(facts: ThreadLimitFacts) -> LimitUse:
    """The use of RLIMIT_NOFILE."""
    return _use(facts, *_USES[0])


def limit_findings(facts: ThreadLimitFacts, found: Headroom, uses: Sequence[LimitUse]) -> list[Finding]:
    """Open files that are nearly used up, no or few threads left, and the other limits that are over 80 %; the most severe first."""
    files = open_files(facts)
    findings = [_files(facts, files)] if files.nearly else []
    findings += [_run_out(facts, found, found.binding)] if found.binding and found.has_run_out else []
    code, entity, closer = "rlimit-nearly-used", _entity(facts, None), _look(facts, "--all", "-w")
    exempt = {limit.name for limit in found.limits if limit.state == "exempt"}
    for use in uses:
        if use.nearly and use.name not in (*exempt, files.name):
            summary = f"{percent(use.share)} of {use.name} ({use.what}) is used"
            evidence = f"{use.in_use:.0f} of {use.value:.0f} {use.unit}, from {use.source}"
            findings.append(Finding(code, "warning", entity, summary, evidence, None, closer, use.share))
    return most_severe_first(findings)


def _files(facts: ThreadLimitFacts, use: LimitUse) -> Finding:
    """The finding about open files: none left is an error."""
    left = max(0, int(use.value or 0) - int(use.in_use or 0))
    kinds = ", ".join(plural(count, kind) for kind, count in [*facts.open_kinds.items()][:_MOST_KINDS])
    summary = f"{plural(left, 'more file')} can be opened" if left else "no file descriptor left"
    summary += f": {use.in_use:,.0f} of {use.value:,.0f} open files are used (RLIMIT_NOFILE)"
    evidence = f"{kinds}; /proc/{facts.pid}/fd" if kinds else f"/proc/{facts.pid}/fd"
    closer = None if facts.ask.is_opskit else shell.command("opskit", "fds", facts.pid)
    severity: Severity = "warning" if left else "error"
    return Finding(
        "rlimit-nearly-used", severity, _entity(facts, None), summary, evidence, facts.raise_files, closer, use.share
    )


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


def after_probe(facts: ThreadLimitFacts, findings: Sequence[Finding], probed: Probed) -> list[Finding]:
    """The findings without the advice to make the probe that was made: the watch comes next."""
    made = _look(facts, "--probe", *(("--in-cgroup",) if probed.plan.cgroup_procs else ()))
    return [each._replace(next=_look(facts, "-w")) if each.next == made else each for each in findings]


def in_watch(facts: ThreadLimitFacts, findings: Sequence[Finding]) -> list[Finding]:
    """The findings without the advice to watch: what the threads do comes next."""
    pid = facts.pid
    threads = (
        ("opskit", "jpmp", pid)
        if facts.space and facts.space.jvm
        else ("ps", "-L", "-o", "lwp,wchan:20,comm", "-p", pid)
    )
    made = (_look(facts, "-w"), _look(facts, "--all", "-w"))
    return [each._replace(next=shell.command(*threads)) if each.next in made else each for each in findings]


def _look(facts: ThreadLimitFacts, *options: str) -> str:
    return shell.command("opskit", "limits", *(() if facts.ask.is_opskit else (facts.pid,)), *options)


def _entity(facts: ThreadLimitFacts, cgroup: str | None) -> Entity:
    """The process in the cgroup whose limit it is, or in the deepest one that it is in."""
    paths = [member.path for member in facts.memberships if member.path != "/"]
    path = cgroup or max(paths, key=lambda each: (len(each), each), default=None)
    return Entity("process", facts.pid, facts.ask.process.start_ticks, Entity("cgroup", path) if path else None)
