"""Numbers in foreign text: only the forms that the kernel and HotSpot write."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opskit.quantities import decimal, hexadecimal, integer, integers, signed

NO_NUMBERS = [
    "",
    " 1",
    "1 ",
    "+1",
    "1_000",
    "²",
    "٣",
    "1" * 21,
    "1" * 5000,
    "0x1",
    "1e9",
    "inf",
    "nan",
    "--1",
    "-",
    "\n1",
]


@pytest.mark.parametrize("text", NO_NUMBERS)
def test_what_python_takes_and_no_kernel_writes(text):
    """None, and no exception, for other text."""
    assert integer(text) is None
    assert signed(text) is None
    assert integers(["1", text]) is None
    if text.isascii():
        assert integer(text.encode()) is None
    if text not in ("0x1", "1e9", "1" * 21):
        assert hexadecimal(text) is None
    assert decimal(text) is None


@given(st.integers(min_value=0, max_value=2**64 - 1))
def test_every_64_bit_number_comes_back(number):
    """Every value of a kernel counter."""
    assert integer(str(number)) == integer(str(number).encode()) == number
    assert signed(f"-{number}") == signed(b"-%d" % number) == -number
    assert hexadecimal(hex(number)) == hexadecimal(f"{number:x}") == number
    assert integers([str(number), "0"]) == [number, 0]


def test_fractions():
    """Point and comma; never an exponent, never infinite."""
    assert decimal("1.5") == decimal("1,5") == 1.5
    assert decimal("7") == 7
    for text in ("1e999", "1.", ".5", "1.2.3", "-1", "1" * 400):
        assert decimal(text) is None
