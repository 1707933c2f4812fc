"""/proc/PID/limits."""

from __future__ import annotations

import resource

import pytest

from opskit.errors import BadInput
from opskit.proc.files.limits import UNLIMITED, Rlimit, parse_limits
from opskit.proc.fs import ProcFS

HEADING = "Limit                     Soft Limit           Hard Limit           Units     \n"
STACK = "Max stack size            8388608              unlimited            bytes     \n"


def test_values_by_the_names_of_setrlimit():
    """A limit without a unit, and one that is newer than this program."""
    text = (
        HEADING
        + STACK
        + "Max nice priority         0                    0                    \nMax of 2040               1    1    x\n"
    )
    assert parse_limits(text) == {"RLIMIT_STACK": Rlimit(8 << 20, UNLIMITED), "RLIMIT_NICE": Rlimit(0, 0)}


@pytest.mark.parametrize(
    "text", ["", HEADING, STACK[:40] + "\n", STACK.replace("8388608", "lots   "), STACK.replace("8388608", "-1     ")]
)
def test_other_text_is_refused(text):
    """Empty, cut short, or not a number."""
    with pytest.raises(BadInput):
        parse_limits(text)


def test_this_process():
    """Each limit that Python knows has the value that getrlimit(2) returns."""
    found = ProcFS().load(parse_limits, "self", "limits")
    assert len(found) == 16
    for name, limit in found.items():
        if hasattr(resource, name):
            both = [
                UNLIMITED if value == resource.RLIM_INFINITY else value
                for value in resource.getrlimit(getattr(resource, name))
            ]
            assert [limit.soft, limit.hard] == both, name
