"""Heat maps in a real browser, with its own fonts: no text lies over another one, and none outside the picture."""

from __future__ import annotations

import irqresults
import pytest
from browser import check_layout

from opskit.render.pictures.heatmap import HeatMap, draw
from opskit.render.report import About
from opskit.render.views.irqs import picture

LONG = "interrupts of a network card whose name is as long as the kernel permits it to be " * 3


def drawn(result, looks=0):
    about = About("web1", "2026-01-02T03:04:05Z", "1", "opskit irqs")
    return picture.draw(about, result, irqresults.moments(result, looks) if looks else [])


PICTURES = {
    **{name: drawn(getattr(irqresults, name)()) for name in ("flood", "healthy", "large", "sparse", "hostile")},
    **{f"{name} over time": drawn(getattr(irqresults, name)(), 40) for name in ("flood", "large")},
    "two looks": drawn(irqresults.flood(), 2),
    "long names": draw(
        HeatMap(LONG, [LONG], [LONG, "b"], "share", times_s=[0.0, 9e5], looks=[[0.1, 0.2]] * 2, marks={0: LONG, 1: LONG})
    ),
    "a day": draw(HeatMap("t", [], ["CPU 0"], "m", times_s=[at * 120.0 for at in range(720)], looks=[[0.5]] * 720)),
}  # fmt: skip


@pytest.mark.parametrize("name", PICTURES)
def test_no_text_lies_over_another(browser, tmp_path, name):
    """Names of rows and columns, numbers, marks, ticks and legend; all of them are inside the picture, numbers in their cells."""
    path = tmp_path / "irqs.svg"
    path.write_text(PICTURES[name], encoding="utf-8")
    check_layout(browser, path)
