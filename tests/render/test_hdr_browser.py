"""Pictures of latency logs in a real browser: no text lies over another one, and none outside the picture."""

from __future__ import annotations

import pytest
from browser import over_each_other
from hdrseries import latencies, series, side

pytest.importorskip("matplotlib", reason="the extra `plot` is not installed")

from opskit.analysis.hdr.judge import judge
from opskit.render.pictures.plot import draw
from opskit.render.report import About
from opskit.render.views.hdr.report import Shown, report

HOSTILE = [
    "../x",
    "a/b",
    "",
    "$x^2$ <b>&\x1b[31m",
    "x" * 300,
    "_hidden",
    "日本語",
    *(f"tag-{number}" for number in range(5)),
]


def many(**more):
    """Twelve series with hostile names."""
    return [series(latencies(600, at, 100_000 * (1 + at), 300), tag, **more) for at, tag in enumerate(HOSTILE)]


def compared():
    old = [
        series(latencies(600, 9), "READ", files=("old.hdr",)),
        series(latencies(600, 8), "WRITE", files=("old.hdr",)),
    ]
    return judge(side(series(latencies(600, 1), "READ"), series(latencies(600, 2), "WRITE")), side(*old), "ns")


CURVES = {
    "twelve curves": (judge(side(*many()), unit="us"), False),
    "one value": (judge(side(series([1_234_567]))), False),
    "a comparison": (compared(), False),
    "six panels": (judge(side(*many(by_s=6.0)[:6], by_s=6.0), unit="us"), True),
    "one panel, one period": (judge(side(series([5] * 9, by_s=60.0, dated=False, begin_s=0.0), by_s=60.0)), True),
}


@pytest.mark.parametrize("name", CURVES)
def test_no_text_lies_over_another(browser, tmp_path, name):
    """Ticks, titles of panels, legend; all of them are inside the picture, and none is raw mathematics."""
    result, over_time = CURVES[name]
    path = tmp_path / "chart.svg"
    about = About("web1", "2026-01-02T03:04:05Z", "1", "opskit hdr x", {"log": "/var/log/app/throttle.hdr"})
    path.write_bytes(draw(report(about, result, Shown(over_time=over_time)), "svg"))
    browser.open(path)
    boxes = browser.texts()
    assert len(boxes) > 8
    assert over_each_other(boxes) == []
    width = browser.run("return document.documentElement.getBoundingClientRect().width")
    assert [text for text, left, _, right, _ in boxes if left < 0 or right > width] == []
    if name in ("twelve curves", "six panels"):
        texts = {text.strip() for text, *_ in boxes}
        assert {"../x", "(empty tag)", "$x^2$ <b>&\\x1b[31m", "_hidden"} <= texts
