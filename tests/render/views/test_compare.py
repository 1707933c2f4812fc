"""What `opskit compare` shows of histograms."""

from __future__ import annotations

from comparing import sides

from opskit.analysis.compare.judge import judge
from opskit.analysis.jmap_diff.compare import Growth
from opskit.render.formats import table, text
from opskit.render.report import About
from opskit.render.views import compare as view


def test_classes_have_the_names_of_the_language():
    """`[B` is `byte[]` for people."""
    about = About("web-1", "2026-11-24T01:00:00Z", "0.1.0", "opskit compare x y")
    report = view.report(about, judge(sides()), grown=[Growth("[B", 900, 14_400, 800, 12_800)])
    assert "histogram   byte[]: +12.5 KiB, +800 instances" in text.render(report)
    assert "byte[]" in table.render(report, width=80, color=False)
