"""Which file systems are full, or nearly, by bytes and by inodes: one threshold for all commands. Pure.

A share alone is wrong for large disks (1 % of 20 TB is 200 GB), and bytes alone for small ones (/boot): both must be short.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit import shell
from opskit.analysis.finding import HOST, Entity, Finding
from opskit.quantities import percent, size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opskit.analysis.finding import Severity
    from opskit.collect.fds.facts import FileSystem

_FULL_SHARE, _FULL_BYTES, _FULL_INODES = 0.01, 1 << 30, 10_000  # less than the share and the number are free
_NOTHING_SHARE, _NOTHING_BYTES, _NOTHING_INODES = 0.001, 64 << 20, 100
_NEARLY_SHARE, _NEARLY_BYTES, _NEARLY_INODES = 0.05, 10 << 30, 100_000
_SORTED = (shell.Syntax("|"), "sort", "-n", shell.Syntax("|"), "tail")


def fullness(system: FileSystem) -> Iterator[Finding]:
    """What is used up of it."""
    if is_full(system):
        yield Finding(
            "disk-full", _severity(system.free_bytes, system.size_bytes, _NOTHING_BYTES), entity_of(system),
            f"{system.mount} is full: {_free_words(system)}",
            f"statvfs of {system.mount}{_reserved_words(system)}",
            next=_largest(system), share=_used(system.free_bytes, system.size_bytes),
        )  # fmt: skip
    elif has_no_inodes(system):
        yield Finding(
            "disk-inodes-used-up", _severity(system.free_inodes, system.inodes, _NOTHING_INODES), entity_of(system),
            f"{system.mount} has no room for files: {system.free_inodes or 0:,} of {system.inodes or 0:,} inodes are free, "
            f"and {size(system.free_bytes)} of space ({system.type})",
            f"statvfs of {system.mount}",
            next=_largest(system, inodes=True), share=_used(system.free_inodes, system.inodes),
        )  # fmt: skip


def near_fullness(system: FileSystem) -> Iterator[Finding]:
    """What is nearly used up. How fast it grows is not known from one look."""
    if is_full(system) or has_no_inodes(system):
        return
    if _is_used_up(system.free_bytes, system.size_bytes, _NEARLY_SHARE, _NEARLY_BYTES):
        share = _used(system.free_bytes, system.size_bytes)
        yield Finding(
            "disk-nearly-full", "warning", entity_of(system),
            f"{system.mount} is {percent(share or 0.0)} full: {_free_words(system)}",
            f"statvfs of {system.mount}{_reserved_words(system)}", next=_largest(system), share=share,
        )  # fmt: skip
    elif _is_used_up(system.free_inodes, system.inodes, _NEARLY_SHARE, _NEARLY_INODES):
        share = _used(system.free_inodes, system.inodes)
        yield Finding(
            "disk-nearly-full", "warning", entity_of(system),
            f"{percent(share or 0.0)} of the inodes of {system.mount} are used: {system.free_inodes or 0:,} of {system.inodes or 0:,} are free",
            f"statvfs of {system.mount}", next=_largest(system, inodes=True), share=share,
        )  # fmt: skip


def entity_of(system: FileSystem) -> Entity:
    """It, by its mount point."""
    return Entity("file", system.mount or None, inside=HOST)


def is_full(system: FileSystem) -> bool:
    """Whether users can write next to nothing there."""
    return _is_used_up(system.free_bytes, system.size_bytes, _FULL_SHARE, _FULL_BYTES)


def has_no_inodes(system: FileSystem) -> bool:
    """Whether next to no file can be made. Where space makes the inodes (XFS), a full disk has none either."""
    return _is_used_up(system.free_inodes, system.inodes, _FULL_SHARE, _FULL_INODES) and not is_full(system)


def _is_used_up(free: int | None, total: int | None, share: float, few: int) -> bool:
    return bool(total) and total is not None and free is not None and free < min(total * share, few)


def _severity(free: int | None, total: int | None, few: int) -> Severity:
    return "error" if _is_used_up(free, total, _NOTHING_SHARE, few) else "warning"


def _used(free: int | None, total: int | None) -> float | None:
    return 1 - free / total if total and free is not None else None


def _free_words(system: FileSystem) -> str:
    return f"{size(system.free_bytes)} of {size(system.size_bytes)} ({system.type}) are free for users"


def _reserved_words(system: FileSystem) -> str:
    return f"; {size(system.reserved_bytes)} more are reserved for root" if system.reserved_bytes else ""


def _largest(system: FileSystem, *, inodes: bool = False) -> str:
    what = ("--inodes", "-xd1") if inodes else ("-xd1",)
    return shell.command("du", *what, *shell.operands(system.mount), *_SORTED)
