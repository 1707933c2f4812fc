"""Numbers in foreign text, in the forms that the kernel and HotSpot write; and formatted for text and JSON."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opskit.quantities import (
    decimal,
    duration,
    hexadecimal,
    integer,
    integers,
    listed,
    number_list,
    number_ranges,
    percent,
    signed,
    twelve_digits,
)

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


def test_what_is_left_of_rounding_is_not_told():
    """In floats wherever they stand; nothing else is touched."""
    noisy = {"sum": 0.1 + 0.2, "rows": [{"at": 0.0025662980000000016, "name": "x", "n": 10**17}, None, True]}
    assert twelve_digits(noisy) == {"sum": 0.3, "rows": [{"at": 0.002566298, "name": "x", "n": 10**17}, None, True]}


@given(st.floats(allow_nan=False, allow_infinity=False, allow_subnormal=False))
def test_the_value_stays(value):
    """JSON floats have 12 significant digits."""
    assert twelve_digits(value) == pytest.approx(value, rel=1e-11)


@pytest.mark.parametrize(
    ("share", "shown"),
    [(None, "unknown"), (0.0, "0 %"), (0.0001, "under 0.1 %"), (0.003, "0.3 %"), (0.49, "49 %"), (0.994, "99 %"),
     (0.9951, "99.5 %"), (0.99999, "99.9 %"), (1.0, "100 %"), (1.2, "120 %")],
)  # fmt: skip
def test_shares(share, shown):
    """0 % means none and 100 % means all, never a rounded share."""
    assert percent(share) == shown


def test_a_long_list_names_the_first_and_counts_the_rest():
    """With thousands separators, and what shows all."""
    names = [str(number) for number in range(1008)]
    assert listed(names, 5, see="-n 0") == "0, 1, 2, 3, 4, … 1,003 more (-n 0)"
    assert listed(names[:6], 5, " ") == "0 1 2 3 4 … 1 more"
    assert listed(names[:5], 5, see="-n 0") == "0, 1, 2, 3, 4"


@pytest.mark.parametrize(
    ("numbers", "text"), [((), ""), ((3,), "3"), ((1, 0, 2, 8, 9, 17), "0-2,8-9,17"), ((5, 5), "5")]
)
def test_lists_as_the_kernel_writes_them(numbers, text):
    """CPUs in Cpus_allowed_list, smp_affinity_list."""
    assert number_ranges(numbers) == text


@given(st.frozensets(st.integers(min_value=0, max_value=8191), min_size=1))
def test_a_list_of_numbers_comes_back(numbers):
    """Every set of CPUs."""
    assert number_list(number_ranges(numbers), 8192) == numbers


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0.9997, "1.0 s"), (0.9991, "999 ms"), (0.9997e-3, "1.0 ms"), (85e-6, "85 us"), (3.2, "3.2 s")],
)
def test_a_duration_is_never_a_thousand_of_a_unit(seconds, shown):
    """It is rounded to one of the next unit."""
    assert duration(seconds) == shown
