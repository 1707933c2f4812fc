"""Make a capture: samples of all counters, then every command on the recorded machine, then what questions about one process need."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.analysis.capture.result import Captured
from opskit.collect.capture.origin import origin_of
from opskit.collect.capture.sample import Sampler
from opskit.collect.capture.sweep import sweep
from opskit.commands.shared.every_command import Ran, run_every_command
from opskit.commands.shared.in_thread import in_thread
from opskit.errors import NotSupported
from opskit.jvm.discover import find_jvms
from opskit.proc.patient_reads import PatientReads
from opskit.proc.recorded.tape import FILE, Failure, Mark, Tape
from opskit.recorded_host import RecordedHost
from opskit.records import NamedTuple
from opskit.redact import noting

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    import click

    from opskit.analysis.capture.redact import Hidden
    from opskit.host import Host


class Wanted(NamedTuple):
    """What to capture. `pids`: the processes that are asked about, by `words`; `what`: what JVMs are asked for, nothing without --ask."""

    words: tuple[str, ...] = ()
    pids: tuple[int, ...] = ()
    samples: int = 2
    interval_s: float = 1.0
    what: tuple[str, ...] = ()
    redacts: bool = True


def make_tape(
    host: Host, group: click.Group, ask: Wanted, progress: Callable[[str, float], None] = lambda _what, _left_s: None
) -> tuple[Tape, Captured]:
    """The tape of a machine, and what is on it; the file is not written yet. `progress`: what is done, the seconds left.

    Raises NotSupported for several samples of a copy.
    """
    if ask.samples > 1 and not host.fs.is_live:
        raise NotSupported(f"-c {ask.samples}: {host.fs.proc} is a copy, which does not change; leave -c out")
    now = Mark(host.now().timestamp(), host.monotonic())
    tape = Tape(origin_of(host, ask.words, asked=bool(ask.what)), (now,) * ask.samples)
    recorded = RecordedHost(tape, host.fs)  # for the samples: what is asked of it now is on the tape
    jvms = find_jvms(recorded.fs, host.clock_ticks)
    asked = [jvm for jvm in jvms if not ask.pids or jvm.pid in ask.pids]
    pids = tuple(dict.fromkeys((*ask.pids, *(jvm.pid for jvm in jvms))))

    def before_sample(number: int) -> None:
        progress(f"sample {number} of {ask.samples}", (ask.samples - number) * ask.interval_s + 1.0)

    def record() -> tuple[Ran, int]:
        Sampler(host, recorded, pids).take(ask.interval_s, before_sample)
        again = RecordedHost(tape, host.fs)  # at the moments of the samples
        ran = run_every_command(group, again, ask.pids, progress=lambda line: progress(f"running {line}", 1.0))
        progress("reading every process", 0.5)
        processes = sweep(again)
        for each in (recorded, again):
            each.fs.end_recording()
        return ran, processes

    notes: Sequence[str] = ()
    if ask.what:  # before the samples: rates are without its pauses, and samples have the listeners that it starts
        from opskit.collect.capture.replies import ask_jvms

        notes = ask_jvms(host, tape, asked, ask.what, ask.interval_s, lambda what: progress(what, 1.0))
    with noting() as secrets:
        ran, processes = in_thread(record)
    hidden = _redacted(tape, secrets) if ask.redacts else None
    first, last = tape.marks[0], tape.marks[-1]
    return tape, Captured(
        "", 0, processes, len(jvms), len(tape.marks), last.monotonic_s - first.monotonic_s, hidden,
        _unread(tape), tuple(ran.without), tuple(notes), tuple(ran.findings), is_root=host.is_root, hanging=_hanging(host),
    )  # fmt: skip


def _redacted(tape: Tape, secrets: Collection[str]) -> Hidden:
    from opskit.analysis.capture.redact import redact

    return redact(tape, secrets)


def _unread(tape: Tape) -> tuple[tuple[str, int], ...]:
    """Processes that could not be read for missing rights: why, and how many."""
    denied = {
        path.rsplit("/", 2)[1]
        for path, answer in tape.answers[FILE][0].items()
        if isinstance(answer, Failure) and answer.errno in (1, 13) and path.endswith(("/maps", "/environ"))
    }
    return (("permission denied", len(denied)),) if denied else ()


def _hanging(host: Host) -> tuple[str, ...]:
    """Files that were left out."""
    return tuple(host.fs.kept.hung) if isinstance(host.fs.kept, PatientReads) else ()
