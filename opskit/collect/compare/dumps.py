"""The thread dumps and histograms of two captures, as jpmp --diff and jmap-diff take them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.collect.jmap_diff import Facts as HistogramFacts
from opskit.collect.jmap_diff import Sample
from opskit.collect.jpmp.collect import Facts as DumpFacts
from opskit.errors import NotSupported
from opskit.jvm.dumps.dialects import DumpReader
from opskit.jvm.dumps.histogram_reader import parse_histograms

if TYPE_CHECKING:
    from opskit.collect.compare.facts import JvmFacts

_HOW = "capture with --ask --what threads on both sides"


def thread_dumps(bad: JvmFacts, good: JvmFacts, names: tuple[str, str]) -> DumpFacts:
    """The dumps of BAD, with those of GOOD before. Raises NotSupported where one side has none, and BadInput."""
    found = []
    for jvm, name in zip((bad, good), names):
        if not jvm.dumps:
            raise NotSupported(f"{name} holds no thread dump of {jvm.main} ({jvm.pid}): {_HOW}")
        reader = DumpReader("threads")
        dumps = [dump for data in jvm.dumps for dump in reader.read(data, name)]
        found.append(DumpFacts(dumps, files=(name,)))
    return found[0]._replace(before=found[1])


def histograms(bad: JvmFacts, good: JvmFacts, names: tuple[str, str]) -> HistogramFacts | None:
    """Both histograms, that of GOOD first; None where a side has none. Raises BadInput."""
    if bad.histogram is None or good.histogram is None:
        return None
    pairs = ((good.histogram, names[1]), (bad.histogram, names[0]))
    found = [parse_histograms(data.decode("utf-8", "replace"), name) for data, name in pairs]
    return HistogramFacts([Sample(each[-1]) for each in found])
