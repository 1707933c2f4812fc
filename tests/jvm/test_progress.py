"""A reader that makes no progress ends with an error, not in a loop."""

from __future__ import annotations

import pytest

from opskit.jvm.dumps import histogram_reader
from opskit.jvm.dumps.histogram import Table
from opskit.jvm.dumps.histogram_rows import RowReader
from opskit.jvm.progress import onwards


def test_only_forwards():
    """The next position is after the last one; otherwise AssertionError."""
    assert onwards(3, 4) == 4
    for after in (3, 2, -1):
        with pytest.raises(AssertionError, match="made no progress at 3"):
            onwards(3, after)


def test_a_table_reader_that_reads_nothing(monkeypatch):
    """A reader of histograms that consumes nothing ends at once."""
    nothing = Table({}, {}, None, None, (), 0)
    monkeypatch.setattr(RowReader, "read", lambda *_: nothing)
    with pytest.raises(AssertionError):
        histogram_reader.parse_histograms("1: 1 16 a.B\n", "x")
