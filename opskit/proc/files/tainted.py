"""/proc/sys/kernel/tainted (Documentation/admin-guide/tainted-kernels.rst): a mask of what has happened to the kernel since boot.

4608        bits 9 and 12: a warning, and a module from outside of the kernel's tree
"""

from __future__ import annotations

from opskit.errors import BadInput
from opskit.quantities import integer

# Bit: its letter in an oops, and what it means. Since Linux 6.15 there are 20.
TAINTS = {
    0: ("P", "a proprietary module was loaded"),
    1: ("F", "a module was loaded by force"),
    2: ("S", "the CPU or firmware is used out of its specification"),
    3: ("R", "a module was unloaded by force"),
    4: ("M", "a CPU reported a machine check: its hardware failed"),
    5: ("B", "a page of memory was found in a bad state"),
    6: ("U", "a program asked for the taint"),
    7: ("D", "the kernel has died once (oops or BUG)"),
    8: ("A", "an ACPI table was overridden"),
    9: ("W", "the kernel has printed a warning"),
    10: ("C", "a staging driver was loaded"),
    11: ("I", "a bug of the firmware was worked around"),
    12: ("O", "a module from outside of the kernel's tree was loaded"),
    13: ("E", "an unsigned module was loaded"),
    14: ("L", "a soft lockup has occurred"),
    15: ("K", "the kernel was patched live"),
    16: ("X", "the distribution set its own taint"),
    17: ("T", "the kernel was built with a randomised layout of structures"),
    18: ("N", "a test of the kernel was run"),
    19: ("J", "a program changed the device's firmware state (fwctl)"),
}
MACHINE_CHECK, BAD_PAGE, DIED, SOFT_LOCKUP = 4, 5, 7, 14


def parse_tainted(text: str) -> tuple[int, ...]:
    """The bits that are set. Raises BadInput."""
    mask = integer(text.strip())
    if mask is None:
        raise BadInput("tainted", "not a number", found=text)
    return tuple(bit for bit in range(64) if mask >> bit & 1)
