"""Masks of CPUs, as rps_cpus, xps_cpus and smp_affinity have them: hexadecimal words of 32 bits, the highest first: `000000ff,ffffffff`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.quantities import hexadecimal

if TYPE_CHECKING:
    from collections.abc import Iterable

_WORD_BITS, _WORD_DIGITS, _MOST_WORDS = 32, 8, 1 << 11


def parse_cpu_mask(text: str) -> frozenset[int] | None:
    """The CPUs of a mask; None for anything else."""
    words = text.strip().split(",")
    numbers = [
        hexadecimal(word) if len(word) <= _WORD_DIGITS and word[:2] not in ("0x", "0X") else None for word in words
    ]
    if len(words) > _MOST_WORDS or None in numbers:
        return None
    lowest_first = [number or 0 for number in reversed(numbers)]
    return frozenset(
        _WORD_BITS * at + bit
        for at, number in enumerate(lowest_first)
        for bit in range(_WORD_BITS)
        if number >> bit & 1
    )


def cpu_mask(cpus: Iterable[int]) -> str:
    """The mask without leading zeros: the kernel takes at most eight digits between commas. `0` for no CPU."""
    mask = sum(1 << cpu for cpu in set(cpus))
    digits = f"{mask:x}"
    whole = digits.rjust(-(-len(digits) // _WORD_DIGITS) * _WORD_DIGITS, "0")
    words = [whole[at : at + _WORD_DIGITS] for at in range(0, len(whole), _WORD_DIGITS)]
    return ",".join([words[0].lstrip("0") or "0", *words[1:]])
