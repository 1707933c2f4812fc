"""/proc/meminfo (Documentation/filesystems/proc.rst): `Key:   number kB`.

MemTotal:       24609996 kB
MemAvailable:   23855624 kB
SReclaimable:     123456 kB
"""

from __future__ import annotations

from opskit.errors import BadInput
from opskit.quantities import integer


def parse_meminfo(text: str) -> dict[str, int]:
    """Bytes by key (HugePages_* are counts, and stay so). Raises BadInput at a line that is not of this form, or is cut short."""
    values = {}
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        if line.split()[:1] == ["total:"]:  # Linux 2.4 begins with a table of its own
            continue
        key, colon, rest = line.partition(":")
        words = rest.split()
        value = integer(words[0]) if words else None
        if not colon or value is None:
            raise BadInput("meminfo", "not `Key: number kB`", number, line)
        in_kib = words[1:] == ["kB"]
        if number == len(lines) and not (in_kib or text.endswith("\n") or key.startswith("HugePages_")):
            raise BadInput("meminfo", "cut short: the last line has no end", number, line)
        values[key] = value * (1024 if in_kib else 1)
    return values
