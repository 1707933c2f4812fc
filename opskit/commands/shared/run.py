"""What every command works with: the host, the output, the schedule of -w, the head of the report."""

from __future__ import annotations

import contextlib
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import click

from opskit.commands.shared.heading import about
from opskit.commands.shared.machine import open_machine
from opskit.commands.shared.output import Output, exit_code, progress
from opskit.commands.shared.unseen import Unseen
from opskit.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from opskit.host import Host
    from opskit.render.report import About, Report

T = TypeVar("T")
DEFAULT_INTERVAL_S = 2.0


class Run:
    """What every command works with. Options that it does not have are None, False or empty."""

    def __init__(self, host: Host, out: Output, shared: Mapping[str, Any]) -> None:
        self.host, self.out = host, out
        self.watching: bool = shared.get("watch", False)
        self.window_s: float | None = None if self.watching else shared.get("interval")
        self.has_interval = shared.get("interval") is not None
        self.interval_s: float = shared.get("interval") or host.sample_gap_s or DEFAULT_INTERVAL_S
        self.count: int | None = shared.get("count")
        self.top: int | None = shared.get("top")  # None: not given; 0: all rows
        self.uids = _uids_of(host, shared.get("user", ()))
        self.progress = progress

    @property
    def format(self) -> str:
        """`table`, `text`, `json` or another one."""
        return self.out.format

    @property
    def redraws(self) -> bool:
        """Whether one screen is drawn again and again."""
        return self.watching and self.out.is_screen

    def about(self, target: Mapping[str, object] | None = None) -> About:
        """The head of the report: where, when and on what."""
        return about(self.host, target)

    def show(
        self,
        look: Callable[[], T],
        view: Callable[[T], Report],
        *,
        fit_height: bool = False,
        sleep: Callable[[float], None] | None = None,
    ) -> int:
        """Look, show, and give the (last) exit code; with -w on the schedule. `fit_height`: no more rows than the terminal.

        `sleep`: waits between the looks of -w, and may read meanwhile.
        """
        if self.watching:
            from opskit.commands.shared.watch import run_watch

            return run_watch(self, lambda: view(look()), fit_height=fit_height, sleep=sleep)
        report = view(look())
        self.out.emit(report, fit_height=fit_height)
        return exit_code(report)


def _uids_of(host: Host, names: Sequence[str]) -> frozenset[int]:
    uids = {name: host.uid_of(name) for name in names}
    for name, uid in uids.items():
        if uid is None:
            raise UsageError(f"-u {name}: no such user; give a name of /etc/passwd or a uid")
    return frozenset(uid for uid in uids.values() if uid is not None)


def open_host(root: str | None, proc: str | None, captures: Sequence[str], *, watch: bool) -> Host:
    """The host of --root, --proc or --from, of the command or of opskit itself. Files that it refuses to read are counted at the end."""
    context = click.get_current_context()
    given = context.find_root().obj
    if isinstance(given, Unseen):
        return given.host
    host = open_machine(root, proc, captures)
    context.call_on_close(partial(_report_refused, host))
    if watch:
        host.prove_moving("-w/--watch")
    if host.is_recorded:
        from opskit.commands.shared.machine import line_about

        progress(line_about(host))
    return host


def _report_refused(host: Host) -> None:
    refused = host.fs.refused
    if not refused:
        return
    from opskit.escape import printable
    from opskit.quantities import plural

    reasons = list(refused.values())
    counted = ", ".join(f"{reasons.count(reason)} {reason}" for reason in dict.fromkeys(reasons))
    were = "was" if len(reasons) == 1 else "were"
    line = f"opskit: {plural(len(reasons), 'file')} {were} not read: {counted}; the first: {next(iter(refused))}"
    with contextlib.suppress(OSError):  # stderr is closed
        click.echo(printable(line), err=True)
