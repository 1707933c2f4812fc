"""/proc/PID/uid_map."""

from __future__ import annotations

import pytest

from opskit.errors import BadInput
from opskit.proc.files.uid_map import IdMap, parse_id_map
from opskit.proc.fs import ProcFS


def test_an_id_of_ours_inside():
    """Root of a rootless container is an ordinary user outside."""
    found = parse_id_map("         0       1000          1\n         1     100000      65536\n")
    assert found == IdMap(((0, 1000, 1), (1, 100000, 65536)))
    assert [found.inner(outer) for outer in (1000, 100000, 165535, 165536, 0)] == [0, 1, 65536, None, None]


@pytest.mark.parametrize("text", ["0 0\n", "0 0 0 0\n", "0 x 1\n", "-1 0 1\n"])
def test_other_text_is_refused(text):
    """Three numbers a line."""
    with pytest.raises(BadInput):
        parse_id_map(text)


def test_this_process():
    """Uid 0 exists in each user namespace that has a map."""
    assert ProcFS().load(parse_id_map, "self", "uid_map").ranges
