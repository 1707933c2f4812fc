"""Recursion takes one line, whatever its depth."""

from __future__ import annotations

from opskit.analysis.jpmp.recursion import fold, folded
from opskit.jvm.profiles import WeightedStack


def test_equal_frames_and_cycles_are_folded():
    """One frame: its number. A cycle: its frames once. Twice is kept."""
    assert folded([WeightedStack(("a", *["b"] * 183, "c"), "RUNNABLE", 1)])[0].frames == ("a", "b x183", "c")
    cycle = folded([WeightedStack(("x", *["a", "b"] * 61, "c", "c"), "RUNNABLE", 1)])[0].frames
    assert cycle == ("x", "a", "b", "(2 frames above x61)", "c", "c")
    assert folded([WeightedStack((), None, 3)])[0].frames == ()


def test_depths_of_one_recursion_are_added_up():
    """The samples of all depths are one row, which names the least and the greatest."""
    stacks = [WeightedStack(("a", *["b"] * depth, "c"), "RUNNABLE", 2) for depth in (7, 183, 20)]
    (one,) = folded([*stacks])
    assert (one.frames, one.samples) == (("a", "b x7 to x183", "c"), 6)


def test_folding_takes_linear_time():
    """A stack as deep as the JVM prints."""
    parts, counts = fold(["a", "b", "c"] * 20_000)
    assert (parts, counts) == (((("a", "b", "c"), True),), (20_000,))
