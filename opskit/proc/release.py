"""The kernel's release: /proc/sys/kernel/osrelease, `6.18.5-generic`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from opskit.quantities import integers

if TYPE_CHECKING:
    from opskit.proc.fs import ProcFS


def kernel_release(fs: ProcFS) -> tuple[int, int] | None:
    """Its first two numbers; None where they cannot be read."""
    match = fs.maybe(lambda text: re.match(r"([0-9]+)\.([0-9]+)", text), "sys", "kernel", "osrelease")
    numbers = integers(match.groups()) if match else None
    return None if numbers is None else (numbers[0], numbers[1])
