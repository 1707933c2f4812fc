"""HotSpot's compressed numbers (code/compressedStream, utilities/unsigned5): 1 to 5 bytes, base 64, the low part first.

A byte below the limit ends a number. JDK 20 and later exclude the byte 0, so that each byte counts one more.
"""

from __future__ import annotations

from opskit.records import NamedTuple

_MOST_BYTES = 5


class Coding(NamedTuple):
    """`excess`: what is taken off each byte; `low`: a smaller rest ends the number."""

    excess: int
    low: int

    def read(self, data: bytes, at: int) -> tuple[int, int]:
        """The unsigned number there, of 32 bits, and where the next one begins. Raises IndexError at the data's end."""
        excess, low = self
        total = 0
        for place in range(_MOST_BYTES):
            part = data[at + place] - excess
            total += part << (6 * place)
            if part < low:
                break
        return total & 0xFFFFFFFF, at + place + 1

    def read_signed(self, data: bytes, at: int) -> tuple[int, int]:
        """As `read`, of a number whose lowest bit is its sign."""
        value, after = self.read(data, at)
        return (value >> 1) ^ -(value & 1), after


class Codings:
    """The codings that a JVM may use, the likelier one first. Data that make sense by one alone are a vote for it."""

    def __init__(self) -> None:
        self._votes = {Coding(1, 191): 0, Coding(0, 192): 0}
        self.ordered = tuple(self._votes)

    def vote(self, coding: Coding) -> None:
        """Count data that only this coding makes sense of."""
        self._votes[coding] += 1
        self.ordered = tuple(sorted(self._votes, key=self._votes.__getitem__, reverse=True))
