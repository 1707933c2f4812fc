"""Whether the clock is synchronised: the kernel's status, the daemons that may set it, and what they say. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit import shell
from opskit.analysis.clock.offsets import LARGE_S, amount, offset_finding, side, zone_in
from opskit.analysis.clock.result import Sync
from opskit.analysis.finding import HOST, Entity, Finding
from opskit.quantities import duration

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opskit.analysis.clock.result import State
    from opskit.analysis.finding import Severity
    from opskit.collect.clock.answers import Answer
    from opskit.collect.clock.facts import Daemon, Facts
    from opskit.proc.kernel.adjtimex import KernelClock

_GROWS = 500e-6  # of maxerror: seconds a second (kernel/time/ntp.c, MAXFREQ)
_STALE_S = 3600.0  # a daemon that polls once in 17 minutes (NTP's maxpoll 10) lets it grow to half a second
_SILENT_S, _SILENT_POLLS = 3 * 3600.0, 8  # the longest usual interval of a daemon is 35 minutes
_YOUNG_S = 900.0  # a daemon that has just been started needs some minutes
_STEERING = frozenset({"chronyd", "ntpd", "systemd-timesyncd"})
_LISTS = {
    "chronyd": ("chronyc", "-n", "sources"),
    "ntpd": ("ntpq", "-pn"),
    "systemd-timesyncd": ("timedatectl", "timesync-status"),
}


def sync_of(facts: Facts, answers: Sequence[Answer]) -> Sync:
    """The state of the clock."""
    kernel = facts.kernel
    good = min(
        (answer for answer in answers if answer.is_synchronised), key=lambda it: silent_s(it, kernel), default=None
    )
    if good is not None:
        error_s = None if good.error_s is None else good.error_s + abs(good.offset_s or 0.0)
        silence_s = silent_s(good, kernel)
        state: State = "stale" if silence_s else "synchronised"
        return Sync(state, by(good), _said(good), error_s, good.offset_s, silence_s or None, is_said=True)
    flags = facts.kernel_problem or "adjtimex(2) does not tell"
    if kernel is not None:
        flags = f"adjtimex: {kernel.state}, status {' '.join(kernel.flags) or '0'}"
    able = [daemon for daemon in facts.daemons if daemon.may_set]
    bad = next((answer for answer in answers if answer.is_synchronised is False), None)
    if bad is not None:
        able = [daemon for daemon in able if daemon.pid != bad.pid]
    if bad is not None and not (able and kernel is not None and kernel.is_synchronised):
        whom = by(bad) if bad.reference else f"{by(bad)} follows no server"
        return Sync("unsynchronised", whom, f"{_said(bad)}; {flags}", is_said=True)
    if kernel is None:
        return Sync("unknown", None, flags)
    names = ", ".join(f"{daemon.name} ({daemon.pid})" for daemon in able)
    if not kernel.is_synchronised:
        if any(daemon.name in _STEERING for daemon in able):
            return Sync("unknown", names, flags)  # chronyd without rtcsync never tells the kernel
        return Sync("unsynchronised", names or None, flags)
    stale_s = kernel.most_error_s / _GROWS
    if not able and stale_s > (_STALE_S if facts.sees_all else _SILENT_S):
        return Sync(
            "stale", None, f"{flags}, maxerror {duration(kernel.most_error_s)}", kernel.most_error_s, None, stale_s
        )
    return Sync("synchronised", names or None, flags, kernel.most_error_s)


def silent_s(answer: Answer, kernel: KernelClock | None) -> float:
    """How long a daemon that says that it is synchronised has heard from no server; 0: not long.

    chronyd and ntpd keep saying so for days. systemd-timesyncd sets the kernel's maxerror to 0 at each answer of its server.
    """
    age_s = answer.age_s
    if answer.daemon == "systemd-timesyncd" and kernel is not None and not kernel.is_cleared:
        age_s = kernel.most_error_s / _GROWS
    return 0.0 if age_s is None or age_s < max(_SILENT_S, _SILENT_POLLS * (answer.interval_s or 0.0)) else age_s


def by(answer: Answer) -> str:
    """`chronyd (412), which follows 10.0.0.1`."""
    name = answer.daemon if answer.pid is None else f"{answer.daemon} ({answer.pid})"
    return f"{name}, which follows {answer.reference}" if answer.reference else name


def _said(answer: Answer) -> str:
    words = [
        "synchronised" if answer.is_synchronised else "not synchronised",
        *([f"stratum {answer.stratum}"] if answer.stratum is not None else ()),
        *([f"offset {answer.offset_s:+.6f} s"] if answer.offset_s is not None else ()),
        *([f"last time of a server {duration(answer.age_s)} ago"] if (answer.age_s or 0.0) >= _SILENT_S else ()),
    ]
    return f"{shell.command(*answer.tool[:1])}: {', '.join(words)}"


def sentence(facts: Facts, sync: Sync) -> str:
    """The state of the clock as a sentence."""
    near = "" if sync.error_s is None else f", at most {amount(sync.error_s)} off"
    if sync.offset_s is not None and abs(sync.offset_s) > LARGE_S:
        like = ": matches a timezone offset" if zone_in(sync.offset_s) else ""
        return f"The clock is {amount(sync.offset_s)} {side(sync.offset_s)} the time of {sync.by}{like}."
    if sync.state == "synchronised":
        whom = f" by {sync.by}" if sync.by else "" if facts.sees_all else f" by a daemon {_unseen(facts)}"
        return f"The clock is synchronised{whom}{near}."
    if sync.state == "stale" and sync.by is not None:
        return (
            f"The clock was synchronised, but {sync.by}, has heard from no server for about {duration(sync.stale_s)}."
        )
    if sync.state == "stale":
        return f"The clock was synchronised, but nothing has corrected it for about {duration(sync.stale_s)}: {_nobody(facts)}."
    if sync.state == "unknown":
        return f"Whether the clock is synchronised is unknown: {_why_unknown(facts, sync)}."
    if sync.by is not None:
        return f"The clock is not synchronised: {sync.by}{'' if sync.is_said else ' may set it, and has not said that it is right'}."
    return f"The clock is not synchronised: {_nobody(facts)}."


def _nobody(facts: Facts) -> str:
    return "no time daemon runs" if facts.sees_all else f"time daemons {_unseen(facts)} cannot be seen"


def _unseen(facts: Facts) -> str:
    return "of other users (hidepid)" if facts.container is None else "outside of this container"


def _why_unknown(facts: Facts, sync: Sync) -> str:
    if facts.kernel is None:
        return sync.why
    return f"{sync.by} runs but could not be asked, and the kernel was not told"


def findings(facts: Facts, sync: Sync, answers: Sequence[Answer]) -> Iterator[Finding]:
    """Of the daemons and the kernel's status."""
    if sync.state == "stale" and sync.by is not None:
        silent = next(answer for answer in answers if by(answer) == sync.by)
        yield Finding(
            "clock-daemon-unsynchronised", "warning", HOST,
            f"{silent.daemon} runs, and has heard from no server for about {duration(sync.stale_s)}", sync.why,
            next=shell.command(*_LISTS[silent.daemon]),
        )  # fmt: skip
    elif sync.state in ("unsynchronised", "stale"):
        bad = next((answer for answer in answers if answer.is_synchronised is False), None)
        yield _of_nobody(facts, sync) if bad is None else _of_daemon(facts, sync, bad)
    for answer in answers:
        if answer.offset_s is not None:
            more = ": it is being corrected slowly, or not at all"
            whom, closer = f"the time of {by(answer)}", shell.command(*_LISTS[answer.daemon])
            found = offset_finding(answer.offset_s, answer.error_s or 0.0, whom, _said(answer), more, closer)
            if found is not None:
                yield found
    setters = _setters(facts)
    if len(setters) > 1:
        named = " and ".join(f"{daemon.name} ({daemon.pid})" for daemon in setters)
        yield Finding(
            "clock-two-daemons", "warning", HOST,
            f"{len(setters)} time daemons set the same clock: {named}; each undoes the corrections of the other",
            "each has CAP_SYS_TIME (/proc/PID/status)",
            next=shell.command("ps", "-fp", ",".join(str(daemon.pid) for daemon in setters)),
        )  # fmt: skip
    for daemon in facts.daemons:
        if daemon.may_set is False and daemon.name in _STEERING and not setters:
            yield Finding(
                "clock-daemon-powerless", "note", Entity("process", daemon.pid, daemon.start_ticks),
                f"{daemon.name} ({daemon.pid}) cannot set the clock", "it lacks CAP_SYS_TIME over the machine (/proc/PID/status)",
            )  # fmt: skip


def _setters(facts: Facts) -> list[Daemon]:
    """One of each kind."""
    able = [daemon for daemon in facts.daemons if daemon.may_set and daemon.name in _STEERING]
    return [*{daemon.name: daemon for daemon in reversed(able)}.values()][::-1]


def _of_nobody(facts: Facts, sync: Sync) -> Finding:
    """A machine of its own drifts; a guest may get its time from the hypervisor, and a container from its host."""
    is_proven = facts.sees_all and facts.container is None and facts.is_virtual is False and sync.by is None
    severity: Severity = "warning" if is_proven else "note"
    if sync.by is not None:
        who = f"{sync.by} may set the clock, and nothing says that it does"
    else:
        who = _nobody(facts) + ("; the hypervisor may set it" if facts.sees_all and facts.is_virtual else "")
    was = "" if sync.stale_s is None else f" any more: last corrected about {duration(sync.stale_s)} ago"
    asked = None if facts.server else shell.command("opskit", "clock", "--server", shell.Syntax("SERVER"))
    return Finding(
        "clock-unsynchronised", severity, HOST, f"the clock is not synchronised{was}: {who}", sync.why, next=asked
    )


def _of_daemon(facts: Facts, sync: Sync, answer: Answer) -> Finding:
    daemon = next((each for each in facts.daemons if each.pid == answer.pid), None)
    is_young = daemon is None or daemon.age_s is None or daemon.age_s < _YOUNG_S
    summary = f"{answer.daemon} runs, and is not synchronised with any server"
    if answer.is_local:
        summary = f"{answer.daemon} runs, and follows only its own clock"
    elif is_young and daemon is not None and daemon.age_s is not None:
        summary += f" yet: it was started {duration(daemon.age_s)} ago"
    return Finding(
        "clock-daemon-unsynchronised", "note" if is_young or answer.is_local else "warning", HOST, summary, sync.why,
        next=shell.command(*_LISTS[answer.daemon]),
    )  # fmt: skip
