"""Which unreadable processes are mentioned, and how."""

from __future__ import annotations

from opskit.proc.fs import ProcFS
from opskit.proc.visibility import coverage_lines, more_rights_show_more


def test_few_are_named_and_none_where_the_answer_cannot_be_among_them():
    """Five PIDs are a line's worth. Nothing is said of processes that have no part in the answer."""
    fs = ProcFS()
    [line] = coverage_lines(fs, 1122, [17, 4711], 0)
    assert line.startswith("2 of 1,124 processes could not be read (17, 4711); ")
    [line] = coverage_lines(fs, 1, range(6), 0)
    assert line.startswith("6 of 7 processes could not be read; ")
    assert list(coverage_lines(fs, 1122, [17], 0, may_be_meant=False)) == []
    assert list(coverage_lines(fs, 1122, [], 0)) == []


def test_root_sees_all_that_rights_can_show(root_only):
    """What it cannot read is guarded from everybody."""
    assert not more_rights_show_more(ProcFS())


def test_a_user_would_see_more_as_root(as_user):
    """Missing rights are the reason."""
    assert as_user(65534, lambda: more_rights_show_more(ProcFS()))
