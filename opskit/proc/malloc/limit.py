"""How many arenas glibc's malloc makes (malloc/arena.c, arena_get2)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from opskit.quantities import hexadecimal, integer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opskit.proc.files.status import Status

ARENAS_PER_CPU = 8


def arena_limit(
    options: Mapping[str, str], status: Status, online_cpus: int | None, glibc: tuple[int, int] | None
) -> int:
    """With the main one: 8 x CPUs, unless the process was started with one of malloc's environment variables in `options`."""
    tunable = re.search(r"glibc\.malloc\.arena_max=([0-9]{1,20})", options.get("GLIBC_TUNABLES", ""))
    given = integer(tunable[1] if tunable else options.get("MALLOC_ARENA_MAX", ""))
    if given:
        return given
    allowed = status.fields.get("Cpus_allowed", "").split(",")  # words of 32 bits, hundreds on large machines
    masks = [hexadecimal(word) for word in allowed]
    by_affinity = None if None in masks else sum(bin(mask or 0).count("1") for mask in masks)
    by_machine = online_cpus or by_affinity or 1
    # glibc 2.34 to 2.36 counted the CPUs that the process may run on; all others those that are online.
    counts_affinity = glibc is not None and (2, 34) <= glibc <= (2, 36)
    cpus = min(by_machine, by_affinity) if counts_affinity and by_affinity else by_machine
    # The limit is looked at for the first time when there are nine.
    return max(ARENAS_PER_CPU * cpus, ARENAS_PER_CPU + 1)
