"""Tables of the kernel with a column for each CPU, below the heading `CPU0 CPU1 …`: interrupts, softirqs."""

from __future__ import annotations

from opskit.errors import BadInput
from opskit.proc.lines import lines_of
from opskit.quantities import integers

_MOST_CPUS = 1 << 16


def split_columns(what: str, text: str) -> tuple[tuple[int, ...], dict[str, str]]:
    """The CPUs of the columns, and what follows the name of each line. Raises BadInput for another heading."""
    heading, *lines = lines_of(text) or [""]
    cpus = integers(word[3:] if word.startswith("CPU") else "" for word in heading.split())
    if not cpus or len(cpus) > _MOST_CPUS:
        raise BadInput(what, "the first line does not name the CPUs", 1, heading)
    parts = (line.partition(":") for line in lines)
    return tuple(cpus), {name.strip(): rest for name, colon, rest in parts if colon}
