"""Proof that a loop over foreign text ends: each step must consume input."""

from __future__ import annotations


def onwards(before: int, after: int) -> int:
    """`after`, the next position. Raises AssertionError unless it is behind `before`: the loop would never end."""
    if after <= before:
        raise AssertionError(f"a reader made no progress at {before}")
    return after
