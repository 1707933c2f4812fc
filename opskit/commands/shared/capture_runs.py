"""Captures of `opskit capture`: one now, one when a condition holds, or each time it begins to hold."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from opskit.commands.shared.capturing import Wanted, make_tape
from opskit.commands.shared.output import exit_code
from opskit.commands.shared.progress import Progress
from opskit.errors import UsageError
from opskit.host import scheduled_first
from opskit.quantities import plural
from opskit.records import NamedTuple
from opskit.render.views import capture as view

if TYPE_CHECKING:
    from collections.abc import Callable

    from opskit.analysis.capture.result import Captured
    from opskit.checks.run import Request
    from opskit.collect.capture.condition import Condition, Looked
    from opskit.commands.shared.run import Run
    from opskit.host import Host
    from opskit.proc.recorded.tape import Tape


class Keeping(NamedTuple):
    """Where files go. `keep`: so many files of the series; None: one file of this very name."""

    path: str
    keep: int | None

    @classmethod
    def at(cls, path: str | None, keep: int | None, host: Host) -> Keeping:
        """The place of -o and --keep. Raises UsageError, CannotWrite."""
        from opskit.actions import outfile
        from opskit.actions.keep_last import ENDINGS, with_time

        if path is None:
            name = "".join(letter if letter.isalnum() or letter in "-._" else "-" for letter in host.name).strip(".-")
            path = f"{name or 'host'}.tar.gz"
            path = path if keep else with_time(path, host.now().strftime("%Y%m%dT%H%M%SZ"))
        elif path == "-" or not path.endswith(ENDINGS):
            raise UsageError(f"-o {path}: a capture is a .tar.gz file; give a name such as incident.tar.gz")
        outfile.check(path if keep is None else with_time(path, "check"))
        return cls(path, keep)

    def save(self, host: Host, make: Callable[[], tuple[Tape, Captured]]) -> Captured:
        """Make a capture, write its file, and remove what is not kept."""
        from opskit.actions.capture_file import save_capture
        from opskit.actions.keep_last import keep_last, with_time

        path = self.path if self.keep is None else with_time(self.path, host.now().strftime("%Y%m%dT%H%M%SZ"))
        tape, captured = make()
        save_capture(tape, path)
        removed = () if self.keep is None else tuple(keep_last(self.path, self.keep))
        return captured._replace(path=path, size_bytes=os.stat(path).st_size, removed=removed)


def capture_once(run: Run, wanted: Wanted, place: Keeping, condition: str | None = None) -> int:
    """Make one, and show what it holds."""
    group = click.get_current_context().find_root().command
    # A machine whose CPUs are overloaded is captured, too: before somebody restarts what overloads them.
    with scheduled_first(), Progress(run.host, "Ctrl-C writes nothing", long_s=0.0) as progress:
        captured = place.save(run.host, lambda: make_tape(run.host, group, wanted, progress.expect))  # type: ignore[arg-type]
    report = view.report(run.about(view.target(wanted.words)), captured._replace(condition=condition))
    run.out.emit(report)
    return exit_code(report)


def capture_when(run: Run, wanted: Wanted, place: Keeping, text: str) -> int:
    """Wait until the condition holds, and capture then; with --keep again each time it begins to hold, until Ctrl-C."""
    from opskit.collect.capture.condition import parse_condition

    condition = parse_condition(text)
    run.host.prove_moving("--when")
    look, every_s = _watch(run, wanted, condition)
    first_s = 0.0 if condition.code else every_s  # a share needs two readings
    while True:
        _wait(run, condition, look, first_s, every_s, holds=True)
        code = capture_once(run, wanted, place, condition.text)
        if place.keep is None:
            return code
        _wait(run, condition, look, every_s, every_s, holds=False)
        first_s = every_s


def _wait(
    run: Run, condition: Condition, look: Callable[[], Looked], first_s: float, every_s: float, *, holds: bool
) -> None:
    """Look until it holds or, the other way round, holds no longer. `first_s`: until the first look."""
    with Progress(run.host, "Ctrl-C ends it") as line:
        run.host.sleep(first_s)
        while True:
            seen = look()
            if seen.holds == holds:
                return
            what = "waiting for" if holds else "waiting for the end of"
            line.say(f"{what} {condition.text}: {seen.said}")
            run.host.sleep(every_s)


def _watch(run: Run, wanted: Wanted, condition: Condition) -> tuple[Callable[[], Looked], float]:
    """What looks, and how often."""
    from opskit.collect.capture.condition import FINDING_EVERY_S, watcher

    if condition.code is None:
        return watcher(run.host, condition, wanted.pids), max(1.0, wanted.interval_s)
    from opskit.collect.capture.condition import Looked

    request = _request(wanted, condition)

    def look() -> Looked:
        from opskit.checks.run import run_checks

        seen = run_checks(run.host, request)
        codes = {finding.code for each in seen.checked for finding in each.outcome.findings}
        return Looked(condition.code in codes, plural(len(codes), "finding"))

    return look, max(FINDING_EVERY_S, wanted.interval_s)


def _request(wanted: Wanted, condition: Condition) -> Request:
    from opskit.checks.run import Request

    return Request(checks=condition.checks, words=tuple(map(str, wanted.pids)))
