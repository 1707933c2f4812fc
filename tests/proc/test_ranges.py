"""Layers of ranges: which use of an address wins."""

from __future__ import annotations

import random

from opskit.proc.ranges import Range, layered

A, B, C = "java-heap", "thread-stacks", "malloc-arenas"


def test_an_earlier_layer_wins():
    """A later range keeps what is left of it, on both sides and between."""
    found = layered([Range(20, 30, A), Range(40, 50, A)], [Range(10, 60, B)], [Range(0, 70, C)])
    assert found == [
        Range(0, 10, C), Range(10, 20, B), Range(20, 30, A), Range(30, 40, B), Range(40, 50, A), Range(50, 60, B),
        Range(60, 70, C),
    ]  # fmt: skip


def test_a_larger_range_of_the_same_kind_extends():
    """A JVM knows less of a stack than its mapping has: one stack, not two."""
    assert layered([Range(20, 30, B)], [Range(10, 35, B)]) == [Range(10, 35, B)]
    assert layered([Range(20, 30, B)], [Range(20, 35, B)]) == [Range(20, 35, B)]


def test_neighbours_stay_two():
    """Two blocks that touch are two."""
    assert layered([Range(10, 20, C), Range(20, 30, C)]) == [Range(10, 20, C), Range(20, 30, C)]
    assert layered([Range(10, 20, C)], [Range(20, 30, C)]) == [Range(10, 20, C), Range(20, 30, C)]


def test_layers_of_any_ranges():
    """Each address has the kind of the first layer that has it, each range is in order, and none overlaps."""
    randomly = random.Random(17)  # noqa: S311
    for _ in range(300):
        layers = []
        for kind in (A, B, C):
            edges = sorted(randomly.sample(range(60), 2 * randomly.randrange(1, 6)))
            layers.append([Range(start, end, kind) for start, end in zip(edges[::2], edges[1::2])])
        found = layered(*layers)
        assert all(one.end <= other.start for one, other in zip(found, found[1:]))
        for address in range(60):
            wanted = next((each.kind for layer in layers for each in layer if each.start <= address < each.end), None)
            assert next((each.kind for each in found if each.start <= address < each.end), None) == wanted
