"""Heat maps: cells, colours, tooltips, names; the same data give the same bytes; large machines stay small files."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import irqresults
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opskit.render.pictures.heatmap import Column, HeatMap, color, draw
from opskit.render.report import About
from opskit.render.views.irqs import picture

SVG = "{http://www.w3.org/2000/svg}"


def drawn(result, looks=0):
    about = About("web1", "2026-01-02T03:04:05Z", "1", "opskit irqs")
    return picture.draw(about, result, irqresults.moments(result, looks) if looks else [])


def root_of(svg):
    return ET.fromstring(svg)  # noqa: S314  (made here)


def tooltips(svg):
    return [each.text for each in root_of(svg).iter(f"{SVG}title")][1:]


def cells(svg):
    """The filled rectangles of the grid: those with a tooltip."""
    return [group.find(f"{SVG}rect").attrib for group in root_of(svg).iter(f"{SVG}g")]


def lightness(shade):
    red, green, blue = (int(shade[at : at + 2], 16) for at in (1, 3, 5))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_golden(golden):
    """A flood on one CPU of two; then over five looks."""
    golden("irqs-flood.svg", drawn(irqresults.flood()))
    golden("irqs-watched.svg", drawn(irqresults.flood(), 5))


def test_a_cell_for_each_cpu_and_kind():
    """With its figure in it and as a tooltip; the highest shares are the darkest."""
    svg = drawn(irqresults.flood())
    said = tooltips(svg)
    assert len(said) == 2 * 9
    assert "CPU 0, softirq: 39 %" in said
    assert "CPU 0, NET_RX/s: 13,271" in said
    shown = ["".join(each.itertext()) for each in root_of(svg).iter(f"{SVG}text")]
    assert shown.count("39 %") == 1
    assert "1 thread is pinned here" in shown
    shades = dict(zip(said, (cell["fill"] for cell in cells(svg))))
    assert (
        lightness(shades["CPU 0, softirq: 39 %"])
        < lightness(shades["CPU 1, softirq: 1.8 %"])
        < lightness(shades["CPU 1, irq: 0 %"])
    )


@given(st.floats(min_value=0, max_value=1), st.floats(min_value=0, max_value=1))
def test_more_is_darker(one, other):
    """In grey too: the order of two shares is the order of their lightness."""
    low, high = sorted((one, other))
    assert lightness(color(high)) <= lightness(color(low))


@pytest.mark.parametrize("share", [-1.0, 0.0, 1.0, 2.0, 1e300])
def test_shares_out_of_range(share):
    """They are clamped: a colour always."""
    assert re.fullmatch("#[0-9a-f]{6}", color(share))


def test_unknown_is_not_zero():
    """It has a colour of its own, and is named."""
    assert color(None) not in {color(each / 100) for each in range(101)}
    assert "CPU 0, drops/s: -" in tooltips(drawn(irqresults.sparse()))


def test_a_row_over_time():
    """Neighbours of the same colour are one cell; a look in which a CPU was offline is unknown."""
    looks = [[0.0, 0.5], [0.0, 0.5], [0.0, None], [1.0, 0.5]]
    svg = draw(HeatMap("t", [], ["CPU 0", "CPU 1"], "m", times_s=[2.0, 4.0, 6.0, 8.0], looks=looks))
    assert tooltips(svg) == [
        "CPU 0: 0 % after 2.0 s", "CPU 0: 100 % after 8.0 s", "CPU 1: 50 % after 2.0 s", "CPU 1: unknown after 6.0 s",
        "CPU 1: 50 % after 8.0 s",
    ]  # fmt: skip
    widths = [float(cell["width"]) for cell in cells(svg)]
    assert widths[0] == pytest.approx(3 * widths[1], rel=0.01)


@pytest.mark.parametrize("looks", [1, 2, 239, 240, 241, 999])
def test_a_peak_is_never_merged_away(looks):
    """However many looks there are, the one that was busy shows."""
    shares = [[0.0, 0.0] for _ in range(looks)]
    shares[looks // 2] = [0.0, 1.0]
    svg = draw(HeatMap("t", [], ["CPU 0", "CPU 1"], "m", times_s=[2.0 * at + 2 for at in range(looks)], looks=shares))
    assert sum("CPU 1: 100 %" in said for said in tooltips(svg)) == 1
    assert color(1.0) in {cell["fill"] for cell in cells(svg)}


@pytest.mark.parametrize("cpus", [1, 64, 192, 2048])
def test_machines_of_any_size(cpus):
    """The file stays below 10 MB, and its rows are at least 4 px high."""
    result = irqresults.large(max(cpus, 96))
    result = result._replace(rows=result.rows[:cpus])
    for svg in (drawn(result), drawn(result, 30)):
        assert len(svg) < 10_000_000
        assert min(float(cell["height"]) for cell in cells(svg)) >= 4


def test_the_same_data_give_the_same_bytes():
    """No clock, no random id."""
    assert drawn(irqresults.large(), 20) == drawn(irqresults.large(), 20)


def test_names_are_text():
    """Of hosts, interfaces, causes: no markup, no control characters."""
    svg = drawn(irqresults.hostile()._replace(victims=()))
    root_of(svg)
    assert "\x1b" not in svg
    assert "<b>" not in svg
    assert "evil" in svg


def test_nothing_to_draw():
    """No CPU: a picture with its title."""
    for empty in (
        HeatMap("t", ["n"], [], "m", columns=[Column("a", [], [])]),
        HeatMap("t", ["n"], [], "m", times_s=[0.0], looks=[[]]),
    ):
        assert "<title" in draw(empty)
