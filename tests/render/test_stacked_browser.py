"""Pictures of memory in a real browser, with its own fonts: no text lies over another one, and none outside the picture."""

from __future__ import annotations

import memfacts
import pytest
from browser import check_layout
from memfacts import MIB

from opskit.render.pictures.stacked import Area, Bar, Layer, Stacked, draw
from opskit.render.report import About
from opskit.render.views.mem import picture, report

NAME = "/kubepods/burstable/pod6a1c2b9e-0d0f-4f35-9d6b-3d1f0e5a7c11/" + "3f2a9c81d0e4" * 5
_SPACE = 3  # px on both sides
MANY = [Layer(f"kind number {number}", "#0072b2", (number + 1) << 18, "note " * 40) for number in range(30)]


def drawn(result):
    about = About("web1", "2026-01-02T03:04:05Z", "1", "opskit mem 4242", report.target(result))
    return picture.draw(about, result)


PICTURES = {
    **{name: drawn(getattr(memfacts, name)()) for name in ("orders", "healthy", "native", "sums_only", "watched")},
    "hours": drawn(memfacts.watched(40, 900.0)),
    "one sample": drawn(memfacts.watched(2)),
    "a tiny part and a far limit": draw(
        Stacked("t", [], [("limit 64 GiB", 64 << 30)], [Bar("a", [Layer("x", "#000000", 1)]), Bar("b", [])])
    ),
    "a limit at the left": draw(Stacked("t", [], [("limit 1 MiB", MIB)], [Bar("a", [Layer("x", "#000000", 900 * MIB)])])),
    "long names": draw(Stacked(NAME, [NAME * 4], [("limit 6 MiB", 6 * MIB)], [Bar(NAME, MANY), Bar(NAME, MANY)])),
    "small parts": draw(
        Stacked("t", [], bars=[Bar("a", [Layer("x", "#000000", 500 * MIB), Layer("other anonymous memory", "#000000", 16 << 10, "n")])])
    ),
    "nothing": draw(Stacked("t", [], bars=[Bar("a", [])])),
    "no growth": draw(Stacked("t", [], times_s=[0, 1], areas=[Area("x", "#000000", [0, 0])], lines=[("l", [None, 5])])),
}  # fmt: skip


@pytest.mark.parametrize("name", PICTURES)
def test_no_text_lies_over_another(browser, tmp_path, name):
    """Labels of parts, of limits, ticks and legend, with a space between them; all of them are inside the picture."""
    path = tmp_path / "mem.svg"
    path.write_text(PICTURES[name], encoding="utf-8")
    check_layout(browser, path, _SPACE)
