"""HotSpot's compressed numbers."""

from __future__ import annotations

import pytest

from opskit.jvm.memory.unsigned5 import Coding, Codings

NEW, OLD = Coding(1, 191), Coding(0, 192)


def write(value, coding):
    """As UNSIGNED5::write_uint does it."""
    found = []
    for _ in range(4):
        if value < coding.low:
            break
        value -= coding.low
        found.append(coding.low + (value & 63) + coding.excess)
        value >>= 6
    return bytes((*found, value + coding.excess))


@pytest.mark.parametrize("coding", [NEW, OLD])
@pytest.mark.parametrize("value", [0, 1, 190, 191, 192, 255, 256, 12479, 12480, 1 << 20, (1 << 32) - 1])
def test_what_was_written_is_read(coding, value):
    """Of 1 to 5 bytes, with the place of the next number."""
    data = write(value, coding)
    assert coding.read(data + b"\x07", 0) == (value, len(data))


def test_signed_numbers():
    """The lowest bit is the sign."""
    assert [NEW.read_signed(write(value, NEW), 0)[0] for value in (0, 1, 2, 3, 4)] == [0, -1, 1, -2, 2]


def test_the_end_of_the_data():
    """A number that is cut off is no number."""
    with pytest.raises(IndexError):
        OLD.read(b"\xff\xff", 0)
    with pytest.raises(IndexError):
        OLD.read(b"", 0)


def test_votes():
    """The coding that alone made sense of most data comes first."""
    codings = Codings()
    assert set(codings.ordered) == {NEW, OLD}
    codings.vote(OLD)
    assert codings.ordered == (OLD, NEW)
    codings.vote(NEW)
    codings.vote(NEW)
    assert codings.ordered == (NEW, OLD)
