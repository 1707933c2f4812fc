"""Saved histograms are read into facts, without a command."""

from __future__ import annotations

import pytest
from histotext import text

from opskit.collect.jmap_diff import collect
from opskit.errors import BadInput


def test_files_in_their_order(tmp_path):
    """All histograms of all files; none of them paused a JVM."""
    paths = []
    for name, sizes in (("a", (16, 32)), ("b", (48,))):
        path = tmp_path / name
        path.write_text("".join(text([("a.B", 1, size)]) for size in sizes))
        paths.append(str(path))
    facts = collect(paths)
    assert [sample.histogram.rows["a.B"][1] for sample in facts.samples] == [16, 32, 48]
    assert [sample.pause_s for sample in facts.samples] == [None] * 3
    assert (facts.jvm, facts.saved, facts.error) == (None, None, None)
    with pytest.raises(BadInput, match="a single histogram"):
        collect(paths[1:])
