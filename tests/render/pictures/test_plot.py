"""Pictures: the names are readable, the units binary, growth and shrinkage differ without colour."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from opskit.render.pictures.chart import BarChart, Line, LineChart
from opskit.render.report import About, Report

pytest.importorskip("matplotlib", reason="the extra `plot` is not installed")

from opskit.render.pictures.plot import draw

MIB = 1024 * 1024
ABOUT = About("box", "2026-01-02T03:04:05Z", "1", "opskit x", {"pid": 7})
BARS = BarChart("What grew", [("byte[]", 820.3 * MIB), ("a.<b>X</b>&$Y$", 32 * MIB), ("int[]", -200 * MIB)])
LINES = LineChart("What keeps growing", [Line("a.B$C$D", [(0, 0), (30, 5 * MIB), (60, 11 * MIB)])])


def svg(chart):
    """The picture's bytes and its texts."""
    data = draw(Report(ABOUT, chart=lambda: chart), "svg")
    root = ET.fromstring(data)  # noqa: S314  (our own)
    texts = ["".join(node.itertext()) for node in root.iter("{http://www.w3.org/2000/svg}text")]
    return data, texts


def test_bars_name_each_row_and_its_signed_size():
    """Each name is whole and not read as mathematics; each value has its sign and a binary unit."""
    data, texts = svg(BARS)
    assert {"byte[]", "a.<b>X</b>&$Y$", "int[]"} <= set(texts)
    assert {"+820 MiB", "+32.0 MiB", "\N{MINUS SIGN}200 MiB"} <= set(texts)
    assert b"<b>X" not in data


def test_shrinkage_is_hatched_and_growth_is_not():
    """Told apart on paper, too."""
    assert b"<pattern" in svg(BARS)[0]
    assert b"<pattern" not in svg(BarChart("t", [("byte[]", 5 * MIB)]))[0]


def test_lines_have_round_units_and_a_legend():
    """The axis is in MiB, the time in seconds; a class name keeps its dollars."""
    texts = svg(LINES)[1]
    assert "a.B$C$D" in texts
    assert {"0 MiB", "2 MiB", "10 MiB", "seconds since the first"} <= set(texts)


def test_the_same_chart_gives_the_same_bytes():
    """No date and no random ids: a picture can be compared with the last one."""
    assert svg(BARS)[0] == svg(BARS)[0]


@pytest.mark.parametrize("chart", [BARS, LINES, BarChart("none", []), LineChart("none", [Line("x", [(0, 0), (0, 0)])])])
def test_png(chart):
    """A PNG of a size that can be read, also where there is nothing to draw."""
    data = draw(Report(ABOUT, chart=lambda: chart), "png")
    assert data.startswith(b"\x89PNG\r\n")
    assert 800 < int.from_bytes(data[16:20], "big") < 2000


def test_a_very_long_name_loses_its_middle():
    """Both ends tell most."""
    texts = svg(BarChart("t", [("com.acme." + "x" * 200 + "$Entry", 1)]))[1]
    [name] = [text for text in texts if text.startswith("com.acme")]
    assert "…" in name
    assert name.endswith("$Entry")
    assert len(name) < 70
