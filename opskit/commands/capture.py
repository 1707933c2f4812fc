"""`opskit capture`: save what every command reads, so that it can be asked later."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from opskit.commands.shared.declare import command
from opskit.commands.shared.options import OUTPUT, SAMPLING, Duration, option
from opskit.errors import NotSupported

if TYPE_CHECKING:
    from opskit.commands.shared.run import Run

_CONTENT = "Content"


@command("capture", formats=("table", "text", "json", "markdown"), needs={"what": "ask"}, to_file=False)
@click.argument("words", metavar="[PID|NAME]...", nargs=-1)
@option("-o", "--output", "path", type=click.Path(), metavar="FILE", group=OUTPUT,
        help="Write to FILE (default: HOST-TIME.tar.gz here).")  # fmt: skip
@option("-c", "--count", "samples", type=click.IntRange(1, 1000), metavar="COUNT", group=SAMPLING,
        help="Take COUNT samples of all counters (2).")  # fmt: skip
@option("-i", "--interval", "interval_s", type=Duration(), default="1s", group=SAMPLING,
        help="Time between samples (1s); with --when: also between looks.")  # fmt: skip
@option("--when", metavar="EXPR", group=SAMPLING,
        help="Wait until EXPR holds: 'cpu>80', 'stopped>20', 'heap>90', 'psi.memory>10', 'finding=CODE'.")  # fmt: skip
@option("--keep", type=click.IntRange(1, 1000), metavar="N", group=SAMPLING,
        help="Add the time to the name, and keep the last N files; with --when: capture each time it holds.")  # fmt: skip
@option("--ask", is_flag=True, group=_CONTENT, help="Ask JVMs as well, which pauses each for a moment; see --what.")
@option("--what", metavar="threads,histogram,flags,info", group=_CONTENT,
        help="What to ask JVMs for (threads,flags,info; histogram walks the heap).")  # fmt: skip
@option("--no-redact", is_flag=True, group=_CONTENT, help="Keep secrets in command lines, environments, properties.")
def capture(
    run: Run,
    words: tuple[str, ...],
    path: str | None,
    samples: int | None,
    interval_s: float,
    when: str | None,
    keep: int | None,
    ask: bool,
    what: str | None,
    no_redact: bool,
) -> int:
    """Save what every command reads to a file: later `opskit --from FILE COMMAND` shows what it would have shown."""
    from opskit.collect.capture.replies import parse_what
    from opskit.collect.given_pids import GivenPids
    from opskit.collect.targets import resolve_process
    from opskit.commands.shared.capture_runs import Keeping, capture_once, capture_when
    from opskit.commands.shared.capturing import Wanted
    from opskit.proc.blocked import Suspects
    from opskit.proc.patient_reads import PatientReads

    if run.host.is_recorded:
        raise NotSupported("capture: this is a capture already; copy the file")
    if run.host.fs.is_live:
        run.host.fs.kept = PatientReads(Suspects())
    pids = tuple(dict.fromkeys(resolve_process(run.host, word, "capture") for word in words))
    GivenPids(run.host, pids, "capture")  # they exist
    wanted = Wanted(
        words, pids, samples or (2 if run.host.fs.is_live else 1), interval_s, parse_what(what) if ask else (), not no_redact
    )  # fmt: skip
    if no_redact:
        click.echo("opskit: with --no-redact the file holds secrets of all processes in plain text", err=True)
    place = Keeping.at(path, keep, run.host)
    return capture_once(run, wanted, place) if when is None else capture_when(run, wanted, place, when)
