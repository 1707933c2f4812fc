"""Rows of one line: names are shortened in their middle, columns are left out by rank."""

from __future__ import annotations

import pytest

from opskit.render.fields import Field
from opskit.render.formats.one_line import clip, fit, middle

NAME = "kubepods-burstable-pod6a1c2b9e.slice/cri-containerd-ab12"


@pytest.mark.parametrize("width", [1, 2, 5, 12, 20, len(NAME)])
def test_a_name_keeps_both_ends(width):
    """Never wider than the column; whole where it fits."""
    shown = middle(NAME, width)
    assert len(shown) == width
    assert shown == NAME if width == len(NAME) else "…" in shown
    if width >= 5:
        assert (shown[0], shown[-1]) == (NAME[0], NAME[-1])


def test_wide_characters_count_twice():
    assert middle("漢字漢字漢字", 7) == "漢字…字"
    assert clip("漢字漢字", 5) == "漢字…"
    assert clip("short", 5) == "short"


def test_columns_go_by_rank():
    """The highest rank first; rank 0 stays; spare room goes to the names."""
    columns = [
        Field("pid", title="pid", value=str),
        Field("main", title="main", value=str, shrinks=6),
        Field("cpu", title="CPU", value=str, rank=1),
        Field("user", title="user", value=str, rank=9),
    ]
    cells = [["4242", "com.example.Main", "12 %", "app"]]
    assert fit(columns, cells, 80, 3) == {0: 4, 1: 16, 2: 4, 3: 4}
    assert fit(columns, cells, 30, 3) == {0: 4, 1: 9, 2: 4, 3: 4}
    assert fit(columns, cells, 22, 3) == {0: 4, 1: 8, 2: 4}
    assert fit(columns, cells, 14, 3) == {0: 4, 1: 7}
    assert fit(columns, cells, 5, 3) == {0: 4, 1: 6}
