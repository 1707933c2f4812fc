"""`opskit compare`: why one machine or JVM is slower than another."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from opskit.commands.shared.declare import command
from opskit.commands.shared.options import TOP, option
from opskit.errors import UsageError

if TYPE_CHECKING:
    from opskit.analysis.compare.result import Result
    from opskit.analysis.jmap_diff.compare import Growth
    from opskit.commands.shared.run import Run
    from opskit.render.report import Report

_MOST_WORDS = 2


@command("compare", formats=("table", "text", "json", "markdown", "csv", "svg"), options=(TOP,), plotted=False)
@click.argument("bad", metavar="BAD", type=click.Path())
@click.argument("good", metavar="GOOD", type=click.Path())
@option("--jvm", "words", metavar="WORD", multiple=True,
        help="Compare the JVM whose PID, main class or command line has WORD; twice: of BAD, then of GOOD.")  # fmt: skip
def compare(run: Run, bad: str, good: str, words: tuple[str, ...]) -> int:
    """Show what differs between two captures, sos reports or this machine (`live`): symptoms first, then their causes."""
    from opskit.analysis.compare.judge import judge
    from opskit.collect.compare.sides import collect
    from opskit.render.views import compare as view

    if len(words) > _MOST_WORDS:
        raise UsageError(f"--jvm is given {len(words)} times; give it once, or once for BAD and once for GOOD")
    if bad == good == "-":
        raise UsageError("- is standard input, and can be read only once")

    def show(result: Result) -> Report:
        if run.format == "svg":
            return _picture(run, result)
        return view.report(run.about(), result, run.top, _grown(result))

    return run.show(lambda: judge(collect(bad, good, run.host, run.progress), words), show, fit_height=run.top is None)


def _names(result: Result) -> tuple[str, str]:
    return result.facts.bad.label, result.facts.good.label


def _grown(result: Result) -> list[Growth]:
    """The classes that BAD's heap has more of, or fewer, in the first pair with histograms."""
    from opskit.collect.compare.dumps import histograms

    for pair in result.pairs:
        if pair.bad.histogram is not None and pair.good.histogram is not None:
            from opskit.analysis.compare.significance import is_grown
            from opskit.analysis.jmap_diff.judge import judge
            from opskit.analysis.jmap_diff.names import Choice

            facts = histograms(pair.bad, pair.good, _names(result))
            found = None if facts is None else judge(facts, Choice())
            return [] if found is None else [each for each in found.first(None) if is_grown(each, found.found.total)]
    return []


def _picture(run: Run, result: Result) -> Report:
    """The differential flame graph of the thread dumps. Raises NotSupported where a capture has none."""
    from opskit.analysis.jpmp.judge import Weighing, judge
    from opskit.collect.compare.dumps import thread_dumps
    from opskit.render.views import compare as view
    from opskit.render.views.jpmp.report import View, profile_report

    with_dumps = [pair for pair in result.pairs if pair.bad.dumps and pair.good.dumps]
    if not result.pairs:
        raise UsageError("-o x.svg draws two JVMs, and none are compared; choose one with --jvm WORD")
    pair = (with_dumps or result.pairs)[0]
    facts, how = thread_dumps(pair.bad, pair.good, _names(result)), Weighing()
    drawn = profile_report(run.about(), facts, how, judge(facts, how), View("svg", has_options=False))
    return drawn._replace(exit_code=view.exit_code(result, _grown(result)))
