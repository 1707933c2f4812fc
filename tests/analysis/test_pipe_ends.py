"""What a pipe's ends mean where some processes could not be read."""

from __future__ import annotations

from opskit.analysis.pipes.uses import hidden_processes


def test_the_processes_that_may_hold_an_end_are_named():
    """By PID where they are few."""
    assert hidden_processes([4711]) == "4711 could not be read"
    assert hidden_processes([1, 2]) == "1, 2 could not be read"
    assert hidden_processes(range(1000)) == "1,000 processes could not be read"
