"""Where interrupts may go and where they go: /proc/irq/N (Documentation/core-api/irq/irq-affinity.rst, kernel/irq/proc.c).

smp_affinity_list -> 0-3              what was asked for
effective_affinity_list -> 2          the CPU that gets it (Linux 4.13): most controllers deliver to one
node -> 0                             of the device; -1: none
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.proc.files.cpu_times import parse_cpu_list
from opskit.proc.fs import optional
from opskit.quantities import signed
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from opskit.proc.fs import ProcFS

_WRITABLE = 0o200
_MODES_TELL = (6, 11)  # since then smp_affinity of a managed interrupt is read-only
_NOBODY: frozenset[int] = frozenset()


class IrqAffinity(NamedTuple):
    """One interrupt. Empty sets, None: unknown. `managed`: the kernel spreads it, and refuses other CPUs."""

    allowed: frozenset[int] = _NOBODY
    effective: frozenset[int] = _NOBODY
    node: int | None = None
    managed: bool | None = None


def read_affinity(fs: ProcFS, number: int, release: tuple[int, int] | None) -> IrqAffinity:
    """The affinity of an interrupt. `release`: of the kernel (None: unknown)."""
    base = ("irq", number)
    node = fs.maybe(lambda text: signed(text.strip()), *base, "node")
    allowed, effective = (fs.maybe(parse_cpu_list, *base, f"{each}_affinity_list") for each in ("smp", "effective"))
    managed = _is_managed(fs, number, release)
    return IrqAffinity(allowed or _NOBODY, effective or _NOBODY, None if node is None or node < 0 else node, managed)


def _is_managed(fs: ProcFS, number: int, release: tuple[int, int] | None) -> bool | None:
    """By the mode of its file; a copy has modes of its own."""
    found = optional(fs.file_id_at, fs.path("irq", number, "smp_affinity")) if fs.is_live else None
    if found is None:
        return None
    if not found.mode & _WRITABLE:
        return True
    return False if release is not None and release >= _MODES_TELL else None
