"""Percentile curves and panels: the axis of nines, round values in the right unit, lines that differ without colour."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from opskit.render.pictures.chart import Curve, CurvesChart, Panel, PanelsChart
from opskit.render.pictures.curves import nine, number_text
from opskit.render.report import About, Report

pytest.importorskip("matplotlib", reason="the extra `plot` is not installed")

from opskit.render.pictures.plot import draw

ABOUT = About("box", "2026-01-02T03:04:05Z", "1", "opskit hdr x", {"log": "x.hdr"})
STEPS = [(1.0, 90e3), (2.0, 200e3), (10.0, 400e3), (100.0, 700e3), (1000.0, 900e3), (2000.0, 50e6)]


def texts(chart, format_="svg"):
    """All texts of the picture."""
    root = ET.fromstring(draw(Report(ABOUT, chart=lambda: chart), format_))  # noqa: S314  (our own)
    return {"".join(node.itertext()) for node in root.iter("{http://www.w3.org/2000/svg}text")}


def test_the_axis_has_the_nines_and_the_values_their_unit():
    """From 0 % up to the number of values; a wide range is logarithmic."""
    found = texts(CurvesChart("Percentiles", [Curve("READ", STEPS)], 1e-9, "latency"))
    assert {"0 %", "50 %", "90 %", "99 %", "99.9 %", "READ", "100 us", "1 ms", "10 ms"} <= found
    assert "99.9999 %" not in found


def test_values_without_a_unit_are_plain_numbers():
    """From 0 up where the range is narrow."""
    found = texts(CurvesChart("Percentiles", [Curve("READ", STEPS[:-1])], None, "value"))
    assert {"0", "200,000", "800,000"} <= found


def test_many_curves_differ_without_colour():
    """Any two of twelve differ in their dashes or markers."""
    chart = CurvesChart("Percentiles", [Curve(f"t{at}", STEPS) for at in range(12)], None, "value")
    data = draw(Report(ABOUT, chart=lambda: chart), "svg").decode()
    assert len({part.split('"')[0] for part in data.split('xlink:href="#m')[1:]}) >= 12


def test_panels_have_a_title_each_and_one_legend():
    """And the date; a line that is interrupted is drawn all the same."""
    times = (1.7e9, 1.7e9 + 10, 1.7e9 + 20)
    lines = [("max", [*zip(times, (5.0, None, 7.0))]), ("p50", [*zip(times, (1.0, None, 2.0))])]
    panels = [Panel("READ", lines), Panel("WRITE", lines)]
    found = texts(PanelsChart("Percentiles of every 10 s", panels, 1e-3, "utc", "latency", "note", 10.0))
    assert {"READ", "WRITE", "max", "p50", "note", "UTC, 2023-11-14"} <= {text.strip() for text in found}


@pytest.mark.parametrize("chart", [CurvesChart("t", [], None, "v"), PanelsChart("t", [], None, "utc", "v")])
def test_nothing_to_draw_is_a_picture(chart):
    """Without values there are axes alone."""
    assert draw(Report(ABOUT, chart=lambda: chart), "png").startswith(b"\x89PNG\r\n")


def test_names_of_nines_and_of_values():
    """As they are spoken."""
    assert [*map(nine, range(6))] == ["0 %", "90 %", "99 %", "99.9 %", "99.99 %", "99.999 %"]
    assert [number_text(value, 1e-9) for value in (0, 20, 500e3, 2e6, 30e9, 300e9)] == [
        "0",
        "20 ns",
        "500 us",
        "2 ms",
        "30 s",
        "5 min",
    ]
    assert number_text(1_500_000, None) == "1,500,000"
