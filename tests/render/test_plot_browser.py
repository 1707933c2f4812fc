"""Charts in a real browser, with its own fonts: no text lies over another one, and none outside the picture."""

from __future__ import annotations

import pytest
from browser import over_each_other

pytest.importorskip("matplotlib", reason="the extra `plot` is not installed")

from opskit.render.pictures.chart import BarChart, DotsChart, Line, LineChart
from opskit.render.pictures.plot import draw
from opskit.render.report import About, Report

ABOUT = About("web1", "2026-01-02T03:04:05Z", "1", "opskit x", {"log": "/var/log/app/gc.log", "jdk": "17"})
SMALL = [(10 + 1.7 * number, 0.0005 * (1 + number % 19)) for number in range(120)]
NOTE = "123 safepoints stopped the application for 6.3 s, 20 % of the time (51 ms on average, at most 1.9 s). " * 2


def dots(*stops, clock="uptime", small=SMALL):
    """A timeline with these long stops (at_s, stopped_s), each of which is to be named."""
    groups = [Line("G1CollectForAllocation", small), Line("G1CollectFull", list(stops))]
    labels = [(at, long, f"G1CollectFull {long:.1f} s") for at, long in sorted(stops, key=lambda stop: -stop[1])]
    return DotsChart(
        "Stops of the application",
        groups,
        Line("TTSP", [(at, y / 9) for at, y in small]),
        labels,
        clock,
        "stopped",
        NOTE,
    )


CHARTS = {
    "stops close to each other": dots((100.0, 1.9), (101.2, 1.85), (102.1, 1.95)),
    "a little apart": dots(*((20 + 9 * number, 1 + number / 100) for number in range(20))),
    "at both edges": dots((11.0, 1.9), (12.0, 0.4), (211.0, 1.9), (212.0, 1.0)),
    "on top of each other": dots(*((100.0, 1.9) for _ in range(9))),
    "above each other": dots(*((100.0, 10.0 ** (number / 4)) for number in range(8))),
    "a single one": dots((100.0, 1.9), small=[]),
    "all nearly the same": dots(*((100.0 + number, 1.9 + number / 1000) for number in range(9)), small=[]),
    "a clock": dots((1_700_000_000.0, 1.9), (1_700_000_030.0, 1.8), clock="utc", small=[]),
    "numbers": dots((3, 1.9), (4, 1.8), clock="number", small=[]),
    "bars": BarChart(
        "What grew, and what shrank",
        [(f"com.example.application.service.Entry{number}", (10 - number) << 20) for number in range(20)], note=NOTE,
    ),
    "one bar": BarChart("What grew", [("byte[]", 5)]),
    "lines": LineChart(
        "What keeps growing",
        [Line(f"com.example.Entry{number}", [(at, number * at * 1e6) for at in range(9)]) for number in range(10)], note=NOTE,
    ),
    "a line of hours": LineChart("t", [Line("x", [(0, 0), (90_000, 3)])], unit="count"),
}  # fmt: skip


def test_overlaps_are_found():
    """The check can fail."""
    assert over_each_other([("a", 0, 0, 10, 10), ("b", 5, 5, 20, 20), ("c", 30, 0, 40, 10)]) == [("a", "b")]


@pytest.mark.parametrize("chart", CHARTS.values(), ids=CHARTS)
def test_no_text_lies_over_another(browser, tmp_path, chart):
    """Labels, ticks, titles and legend; all of them are inside the picture, and none is raw mathematics."""
    path = tmp_path / "chart.svg"
    path.write_bytes(draw(Report(ABOUT, chart=lambda: chart), "svg"))
    browser.open(path)
    boxes = browser.texts()
    assert len(boxes) > 5
    assert over_each_other(boxes) == []
    width = browser.run("return document.documentElement.getBoundingClientRect().width")
    assert [text for text, left, _, right, _ in boxes if left < 0 or right > width] == []
    assert not [text for text, *_ in boxes if "$" in text]


def test_the_longest_stops_are_named(browser, tmp_path):
    """Close ones together, with their number."""
    path = tmp_path / "chart.svg"
    path.write_bytes(draw(Report(ABOUT, chart=lambda: CHARTS["stops close to each other"]), "svg"))
    browser.open(path)
    texts = [text for text, *_ in browser.texts()]
    assert "3 stops, longest: G1CollectFull 1.9 s" in texts
