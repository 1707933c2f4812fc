"""Logs are read and judged without a command line."""

from __future__ import annotations

import gzip
import io

import pytest

from opskit.analysis.distribution import Scratch
from opskit.analysis.moments import moment_of
from opskit.analysis.safepoints.logs import judge
from opskit.analysis.safepoints.sums import Sums, Window
from opskit.collect.safepoints.logs import Request, collect
from opskit.errors import BadInput

STOPPED = "{}: Total time for which application threads were stopped: 0.5000000 seconds, Stopping threads took: 0.1000000 seconds\n"


def test_logs_come_in_the_order_of_time_and_are_judged(tmp_path):
    """Two files, the later one named first, the other one gzipped, one without a safepoint."""
    later, earlier, other = (str(tmp_path / name) for name in ("a", "b.gz", "c"))
    (tmp_path / "a").write_text(STOPPED.format("9.000"))
    (tmp_path / "b.gz").write_bytes(gzip.compress(STOPPED.format("4.000").encode()))
    sums = Sums(Scratch(io.BytesIO))
    facts = collect(Request([later, earlier]), sums.add)
    assert (facts.names, facts.sorted, facts.safepoints, facts.lines) == ([earlier, later], True, 2, 2)
    result = judge(facts, sums.summary())
    assert result.jdk.name == "8"
    assert result.summary.totals.elapsed_s == pytest.approx(5.5)
    assert result.findings == []
    (tmp_path / "c").write_text("10.000: hello\n")
    assert collect(Request([later, other]), lambda _: None).without == [other]
    with pytest.raises(BadInput, match="no safepoint in 1 line; JDK 6 to 8"):
        collect(Request([other]), lambda _: None)


def test_a_window_in_which_nothing_lies_is_an_error(tmp_path):
    """With the number that lies outside."""
    (tmp_path / "a").write_text(STOPPED.format("9.000"))
    sums = Sums(Scratch(io.BytesIO), Window(moment_of("100h")))
    facts = collect(Request([str(tmp_path / "a")]), sums.add)
    with pytest.raises(BadInput, match="none of its 1 safepoints lies between --since and --until"):
        judge(facts, sums.summary())


def test_an_interrupted_log_counts_as_far_as_it_was_read(tmp_path):
    """Ctrl-C after the first batch; before that, nothing is known."""
    (tmp_path / "a").write_text(STOPPED.format("9.000"))
    (tmp_path / "b").write_text("hello\n")

    def interrupt(_batch):
        raise KeyboardInterrupt

    facts = collect(Request([str(tmp_path / "a")]), interrupt)
    assert (facts.interrupted, facts.safepoints) == (True, 1)
    with pytest.raises(KeyboardInterrupt):
        collect(Request([str(tmp_path / "b")]), interrupt)
