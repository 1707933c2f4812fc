"""Readers that cannot stand still: each step of a loop over foreign text ends behind the place where it began."""

from __future__ import annotations


def onwards(before: int, after: int) -> int:
    """`after`, where a reader goes on. Raises AssertionError where that is not behind `before`: the reader would never end."""
    if after <= before:
        raise AssertionError(f"a reader stands still at {before}")
    return after
