"""/proc/sys (Documentation/admin-guide/sysctl/): a number a file, such as `192000` in kernel/threads-max."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.quantities import signed

if TYPE_CHECKING:
    from opskit.proc.fs import ProcFS


def read_sysctl(fs: ProcFS, *parts: str) -> int | None:
    """A number of /proc/sys; None where it cannot be read or is none."""
    return signed(fs.maybe(str.strip, "sys", *parts, default=""))
