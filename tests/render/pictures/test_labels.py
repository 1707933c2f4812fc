"""Places of labels: over no other label, inside the picture, whatever the dots."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from opskit.render.pictures.labels import Box, Dot, free_place, merged

OUTER = Box(0, 0, 1000, 400)
DOTS = st.lists(st.tuples(st.floats(0, 1000), st.floats(0, 400)), max_size=30)
SIZE = (120.0, 11.0)


def placed(points):
    """The boxes of all labels that have room."""
    taken = []
    for dot in merged([Dot(point, "x") for point in points], 1.5):
        found = free_place(dot, SIZE, 1.5, OUTER, taken, points)
        if found:
            taken.append(found.box)
    return taken


@given(DOTS)
def test_no_label_lies_over_another_or_outside(points):
    boxes = placed(points)
    assert all(OUTER.holds(box) for box in boxes)
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))
    assert len(boxes) > 0 or not points


def test_a_label_is_shifted_from_dots_and_labels():
    """First beside its dot; above or below where that is taken; before it at the right edge; none where there is no room."""
    dot = Dot((500.0, 200.0), "x")
    first = free_place(dot, SIZE, 1.0, OUTER, [], [dot.at])
    assert (first.after, first.up_pt) == (True, 5.0)
    second = free_place(dot, SIZE, 1.0, OUTER, [first.box], [dot.at])
    assert not second.box.overlaps(first.box)
    beside = free_place(dot, SIZE, 1.0, OUTER, [], [dot.at, (550.0, 205.0)])
    assert beside != first
    edge = free_place(Dot((990.0, 200.0), "x"), SIZE, 1.0, OUTER, [], [])
    assert not edge.after
    assert free_place(dot, SIZE, 1.0, OUTER, [OUTER], []) is None
    everywhere = [(x, y) for x in range(0, 1000, 10) for y in range(0, 400, 5)]
    assert free_place(dot, SIZE, 1.0, OUTER, [], everywhere) == first


def test_close_dots_are_one():
    """The first keeps its text."""
    dots = [Dot((100.0, 100.0), "a"), Dot((110.0, 100.0), "b"), Dot((300.0, 100.0), "c"), Dot((90.0, 90.0), "d")]
    assert [(dot.text, dot.number) for dot in merged(dots, 1.0)] == [("a", 3), ("c", 1)]
