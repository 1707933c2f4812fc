"""The range of local ports, and lists of reserved ones."""

from __future__ import annotations

import pytest

from opskit.errors import BadInput
from opskit.proc.files.local_ports import parse_port_range, parse_ports


def test_ranges_and_lists():
    """As the kernel writes them."""
    assert parse_port_range("32768\t60999\n") == (32768, 60999)
    assert parse_ports("8080,9148-9150\n") == {8080, 9148, 9149, 9150}
    assert parse_ports("\n") == frozenset()


@pytest.mark.parametrize("text", ["", "5", "6 5", "1 65536", "-1 5", "1 2 3", "a b"])
def test_no_range(text):
    """Anything else is refused."""
    with pytest.raises(BadInput, match="ip_local_port_range"):
        parse_port_range(text)


@pytest.mark.parametrize("text", ["x", "5-4", "1-65536", "1,,2", "0-65535,0-65535", "1-2-3"])
def test_no_list(text):
    """Also one that is not in ascending order, which could name the same ports again and again."""
    with pytest.raises(BadInput, match="ip_local_reserved_ports"):
        parse_ports(text)
