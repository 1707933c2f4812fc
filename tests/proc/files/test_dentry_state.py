"""/proc/sys/fs/dentry-state."""

from __future__ import annotations

import pytest

from opskit.errors import BadInput
from opskit.proc.files.dentry_state import DentryState, parse_dentry_state


@pytest.mark.parametrize(
    ("text", "release", "negative"),
    [
        ("432690\t430030\t45\t0\t12319\t0\n", "6.18.44", 12319),
        ("432690\t430030\t45\t0\t0\t0\n", "6.18.44", 0),
        ("432690\t430030\t45\t0\t0\t0\n", "5.0.0-rc3", 0),
        ("432690\t430030\t45\t0\t0\t0\n", "4.18.0-477.el8", None),
        ("432690\t430030\t45\t0\t77\t0\n", "4.18.0-477.el8", 77),
        ("432690\t430030\t45\t0\t0\t0\n", "2.6.32-5-amd64", None),
        ("432690\t430030\t45\t0\t0\t0\n", None, None),
        ("432690\t430030\t45\t0\t0\t0\n", "weird", None),
    ],
)
def test_a_zero_that_was_not_counted_is_unknown(text, release, negative):
    """Kernels before 5.0 write 0 for the negative ones: unknown, unless their vendor counts them."""
    assert parse_dentry_state(text, release) == DentryState(432690, 430030, negative)


@pytest.mark.parametrize("text", ["", "1 2 3\n", "1 2 3 4 5 six\n", "1 2 3 4 5 6 7\n"])
def test_another_form_is_refused(text):
    """Text that is not six numbers."""
    with pytest.raises(BadInput, match="dentry-state"):
        parse_dentry_state(text, "6.1")


def test_a_count_that_ran_below_zero_is_none_of_them():
    """The kernel sums them up without a lock."""
    assert parse_dentry_state("-5\t-3\t45\t0\t-2\t0\n", "6.1") == DentryState(0, 0, 0)
