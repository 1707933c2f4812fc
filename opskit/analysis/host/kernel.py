"""Judge the kernel's messages of the last 24 h, and its taints. What is older is a note. Pure.

Kills for memory are those of `opskit oom`. Overheating CPUs are counted by the check `thermal`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.analysis.finding import HOST, Entity, Finding, device_entity, most_severe_first
from opskit.escape import printable
from opskit.proc import kernel_messages as kinds
from opskit.proc.files.tainted import BAD_PAGE, DIED, MACHINE_CHECK, SOFT_LOCKUP, TAINTS
from opskit.quantities import duration, listed
from opskit.records import NamedTuple
from opskit.shell import command

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opskit.analysis.finding import Severity
    from opskit.collect.host.kernel import Facts, Told

DAY_S = 86_400.0
_MOST_SUBJECTS, _LONGEST_TEXT = 8, 80
_REPEATED = 3  # ends of one program by SIGSEGV
_MANY_CORRECTED = 100  # memory errors a day: a module that fails
_FLAPS, _FLAPS_S = 5, 3600.0
_REMOVABLE = ("sr", "fd")  # an empty drive, a scratched disc
_LOG = ("dmesg", "-T", "--level", "emerg,alert,crit,err,warn")
_ALL = ("dmesg", "-T")


class _Kind(NamedTuple):
    """How messages of these kinds are told. `words`: a clause, `{}` is their subject; `by_subject`: a finding for each, of this entity."""

    kinds: tuple[str, ...]
    code: str
    severity: Severity
    words: str
    by_subject: str | None = None
    next_: tuple[str, ...] = _LOG
    shows_text: bool = False


_KINDS = (
    _Kind((kinds.OOPS,), "kernel-oops", "error", "the kernel hit a bug and may be damaged: plan a restart", shows_text=True),
    _Kind((kinds.UNCORRECTED,), "hardware-error", "error", "the hardware reported an error that it could not correct", shows_text=True),
    _Kind((kinds.NMI,), "hardware-error", "warning", "the hardware raised an NMI that nothing explains", shows_text=True),
    _Kind((kinds.LOCKUP,), "kernel-lockup", "warning", "a CPU was stuck in the kernel", shows_text=True),
    _Kind((kinds.STALL,), "kernel-lockup", "warning", "a CPU made no progress in the kernel (RCU stall)", shows_text=True),
    _Kind((kinds.HUNG_TASK,), "kernel-task-hung", "warning", "{} was blocked in the kernel for minutes", "task", ("opskit", "io")),
    _Kind((kinds.IO_ERROR,), "storage-error", "error", "I/O error on {}", "device"),
    _Kind((kinds.THIN_FULL,), "storage-error", "error", "a thin pool has no space left: writes to its volumes wait or fail", next_=("lvs", "-a"), shows_text=True),
    _Kind((kinds.FILE_SYSTEM,), "filesystem-error", "error", "the file system on {} reported an error", "device", shows_text=True),
    _Kind((kinds.SERVER_SILENT,), "file-server-silent", "warning", "the file server {} did not answer", "host", _ALL),
    _Kind((kinds.CONNTRACK,), "conntrack-nearly-full", "warning", "packets were dropped: the table of tracked connections (nf_conntrack) was full", next_=("opskit", "tcp", "-v")),
    _Kind((kinds.TCP_MEMORY,), "tcp-memory-pressure", "warning", "TCP ran out of memory or had too many orphaned sockets", next_=("opskit", "tcp", "-v"), shows_text=True),
    _Kind((kinds.NEIGHBOURS,), "neighbour-table-nearly-full", "warning", "the neighbour table {} was full: gc_thresh3 is too small", "host", ("ip", "-s", "neigh")),
    _Kind((kinds.FILE_MAX,), "file-max-nearly-used", "warning", "no file could be opened: fs.file-max was reached", next_=("opskit", "fds")),
    _Kind((kinds.FORK_REJECTED,), "threads-nearly-none-left", "warning", "no thread could start in {}: its pids.max was reached", "cgroup", ("opskit", "limits")),
    _Kind((kinds.SEND_TIMEOUT,), "network-errors", "warning", "{} could not send for seconds (transmit queue timed out)", "device"),
    _Kind((kinds.LINK_DOWN,), "link-flapping", "warning", "the link of {} went down", "device", _ALL),
    _Kind((kinds.CORRECTED,), "hardware-error", "note", "the hardware corrected errors (ECC memory, caches)", shows_text=True),
    _Kind((kinds.PCIE_CORRECTED,), "hardware-error", "note", "the PCIe bus corrected errors", shows_text=True),
    _Kind((kinds.SYN_FLOOD,), "tcp-syn-queue-full", "note", "the SYN queue of port {} was full", "host", ("opskit", "tcp", "--listen")),
    _Kind((kinds.ALLOCATION,), "kernel-warning", "note", "an allocation of memory in the kernel failed", shows_text=True, next_=("opskit", "mem")),
    _Kind((kinds.CLOCKSOURCE,), "kernel-warning", "note", "the clocksource {} was marked as unstable", "host", ("opskit", "clock")),
    _Kind((kinds.WARNING,), "kernel-warning", "note", "the kernel printed a warning", shows_text=True),
    _Kind((kinds.SEGFAULT,), "program-crashes", "note", "{} was ended by an invalid memory access", "host", _ALL),
)  # fmt: skip


def judge(facts: Facts) -> list[Finding]:
    """The findings, the most severe first."""
    found = [finding for kind in _KINDS for finding in _of_kind(kind, _chosen(kind, facts.told))]
    return most_severe_first([*found, *_tainted(facts, found)])


def _chosen(kind: _Kind, told: Sequence[Told]) -> dict[str | None, list[Told]]:
    """The messages of a kind, by their subject or together; those about a server that has answered since are left out."""
    answered = {
        each.message.subject: each.ago_s or 0.0 for each in told if each.message.kind == kinds.SERVER_ANSWERS
    }  # the last one wins
    groups: dict[str | None, list[Told]] = {}
    for each in told:
        message = each.message
        if message.kind not in kind.kinds:
            continue
        if message.kind == kinds.SERVER_SILENT and answered.get(message.subject, DAY_S * 1e6) <= (each.ago_s or 0.0):
            continue
        groups.setdefault(message.subject if kind.by_subject else None, []).append(each)
    return groups


def _of_kind(kind: _Kind, groups: dict[str | None, list[Told]]) -> Iterator[Finding]:
    ranked = sorted(groups.items(), key=lambda item: (_last_s(item[1]), -len(item[1])))
    for subject, told in ranked[:_MOST_SUBJECTS]:
        if (finding := _finding(kind, subject, told, len(ranked))) is not None:
            yield finding


def _finding(kind: _Kind, subject: str | None, told: Sequence[Told], subjects: int) -> Finding | None:
    """Of one subject; None where it happened too seldom to tell."""
    recent = [each for each in told if each.ago_s is not None and each.ago_s <= DAY_S]
    counted = recent or told
    if kind.code == "program-crashes" and len(counted) < _REPEATED:
        return None
    if kind.code == "link-flapping" and not _flaps(recent):
        return None
    severity = _severity(kind, subject, recent)
    last = min(counted, key=lambda each: DAY_S * 1e6 if each.ago_s is None else each.ago_s)
    name = printable(subject or "unknown")
    text = printable(last.message.text[:_LONGEST_TEXT])
    what = kind.words.replace("{}", name)
    said = f"{what}: `{text}`" if kind.shows_text else what
    more = f"; {subjects - _MOST_SUBJECTS:,} more" if subjects > _MOST_SUBJECTS else ""
    return Finding(
        kind.code, severity, _entity(kind, subject, last), f"{said}, {_times(counted)}", f"the kernel's log: {text}{more}",
        next=command(*kind.next_),
    )  # fmt: skip


def _severity(kind: _Kind, subject: str | None, recent: Sequence[Told]) -> Severity:
    ours = [each for each in recent if each.is_ours]
    if not ours:
        return "note"
    if kind.kinds == (kinds.CORRECTED,) and len(ours) >= _MANY_CORRECTED:
        return "warning"
    if kind.code == "storage-error" and (subject or "").startswith(_REMOVABLE):
        return "note"
    return kind.severity


def _flaps(recent: Sequence[Told]) -> bool:
    """Whether it went down so often within an hour: a suspend, a restart of the other end are one or two times."""
    times = sorted(each.ago_s or 0.0 for each in recent)
    return any(times[at + _FLAPS - 1] - times[at] <= _FLAPS_S for at in range(len(times) - _FLAPS + 1))


def _entity(kind: _Kind, subject: str | None, last: Told) -> Entity:
    if kind.by_subject == "device" and subject:
        return device_entity(last.chain or (subject,))
    if kind.by_subject == "cgroup" and subject:
        return Entity("cgroup", subject)
    if last.start_ticks is not None:
        return Entity("process", last.message.pid, last.start_ticks)
    return HOST


def _last_s(told: Sequence[Told]) -> float:
    return min((each.ago_s for each in told if each.ago_s is not None), default=DAY_S * 1e6)


def _times(told: Sequence[Told]) -> str:
    """`312 times, last 4 min 5 s ago`."""
    last_s = _last_s(told)
    when = "at an unknown time" if last_s >= DAY_S * 1e6 else f"{duration(last_s)} ago"
    return when if len(told) == 1 else f"{len(told):,} times, last {when}"


# What a bit proves that the log may have lost, and the code that tells it with its time.
_JUDGED = {MACHINE_CHECK: "hardware-error", BAD_PAGE: "kernel-oops", DIED: "kernel-oops", SOFT_LOCKUP: "kernel-lockup"}


def _tainted(facts: Facts, found: Sequence[Finding]) -> Iterator[Finding]:
    """A taint has no time: it counts where the machine was started within 24 h and its log does not tell the same."""
    if not facts.taints:
        return
    told = {finding.code for finding in found}
    bad = [bit for bit in facts.taints if bit in _JUDGED]
    untold = [bit for bit in bad if _JUDGED[bit] not in told]
    is_young = facts.uptime_s is not None and facts.uptime_s <= DAY_S
    words = [
        TAINTS[bit][1] if bit in TAINTS else f"unknown (bit {bit})" for bit in (*bad, *(set(facts.taints) - set(bad)))
    ]
    letters = "".join(TAINTS[bit][0] for bit in facts.taints if bit in TAINTS)
    yield Finding(
        "kernel-tainted", "warning" if untold and is_young else "note", HOST, f"the kernel is tainted ({letters}): {listed(words, 3, '; ')}",
        f"/proc/sys/kernel/tainted: bits {', '.join(map(str, facts.taints))}", next=command(*_LOG),
    )  # fmt: skip
