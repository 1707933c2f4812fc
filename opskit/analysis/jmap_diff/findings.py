"""The findings of jmap-diff: what leaks, and the space that it fills. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit import shell
from opskit.analysis.finding import Entity, Finding, most_severe_first
from opskit.analysis.jmap_diff.spaces import objects_of, sentence
from opskit.analysis.jmap_diff.trend import growth_of
from opskit.jvm.dumps.class_names import to_readable
from opskit.quantities import duration, plural, size

if TYPE_CHECKING:
    from opskit.analysis.jmap_diff.compare import Comparison
    from opskit.analysis.jmap_diff.evidence import Evidence
    from opskit.analysis.jmap_diff.judge import Result
    from opskit.analysis.jmap_diff.spaces import Forecast, Growing
    from opskit.analysis.jmap_diff.trend import Trend
    from opskit.collect.jmap_diff import Facts, Target
    from opskit.jvm.dumps.histogram import Histogram

_MOST = 3  # classes; one where another space fills up as well: its objects are in the heap too
_CODES = {
    "metaspace": "metaspace-keeps-growing",
    "direct": "direct-memory-keeps-growing",
    "zlib": "zlib-memory-keeps-growing",
}


def findings(result: Result) -> list[Finding]:
    """All of them, the most severe first; a space that fills up before the classes in it."""
    facts, found, leaks = result.facts, result.found, result.leaks
    made = [_space(facts, facts.jvm, one, found) for one in result.spaces if facts.jvm is not None]
    if result.heap is not None and result.heap.is_nearly_full and facts.jvm is not None:
        made.append(_full(facts, facts.jvm, result.heap))
    alike = [one for one in leaks if one.steps_grown >= leaks[0].steps_grown][: 1 if made else _MOST]
    last = result.used[-1][0]
    return most_severe_first([*made, *(_class(facts, last, found, one, result.proof) for one in alike)])


def _space(facts: Facts, jvm: Target, one: Growing, found: Comparison) -> Finding:
    if one.kind == "metaspace":
        closer = shell.command("jcmd", jvm.pid, "VM.classloader_stats")
    else:
        closer = shell.command("jcmd", jvm.pid, "GC.heap_dump", "FILE")
    return Finding(
        _CODES[one.kind],
        "warning",
        Entity("process", jvm.pid, jvm.start_ticks),
        f"{objects_of(one)}; {sentence(one.forecast)}",
        _evidence(found),
        next=None if facts.has_ended else closer,
        share=one.forecast.share,
        window_s=found.times_s[-1] if found.times_s else None,
    )


def _full(facts: Facts, jvm: Target, heap: Forecast) -> Finding:
    return Finding(
        "heap-nearly-full",
        "warning",
        Entity("process", jvm.pid, jvm.start_ticks),
        f"the heap is nearly full: {size(heap.used_bytes)} of {size(heap.ceiling_bytes)} in use after collections",
        "the Total of the last histogram",
        next=None if facts.has_ended else shell.command("jcmd", jvm.pid, "GC.heap_dump", "FILE"),
        share=heap.share,
    )


def _class(facts: Facts, last: Histogram, found: Comparison, one: Trend, proof: Evidence) -> Finding:
    jvm = facts.jvm
    closer = None
    if not facts.has_ended and not proof.proves:
        closer = shell.command("opskit", "jmap-diff", jvm.pid if jvm else "PID", "--live", "-c", 5)
    elif not facts.has_ended and jvm:
        closer = shell.command("jcmd", jvm.pid, "GC.heap_dump", "FILE")
    grew = "keeps growing" if proof.proves else "grew, and may be garbage"
    return Finding(
        "class-keeps-growing",
        "warning" if proof.proves else "note",
        Entity("process", jvm.pid, jvm.start_ticks) if jvm else Entity("file", last.source),
        f"{to_readable(one.name)} {grew}: {growth_of(one)}, {size(one.bytes[-1])} by now",
        _evidence(found),
        next=closer,
        share=one.bytes[-1] / max(found.everything.bytes, 1),
        window_s=found.times_s[-1] if found.times_s else None,
    )


def _evidence(found: Comparison) -> str:
    number = plural(len(found.trend[0].bytes), "histogram") if found.trend else "histograms"
    return f"{number} in {duration(found.times_s[-1])}" if found.times_s else number
