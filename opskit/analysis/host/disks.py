"""Which local file systems are full, nearly full, or turned read-only. Pure.

Images that are full by their nature (squashfs, ISO 9660, container layers) are read-only, and left out by that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit import shell
from opskit.analysis.file_space import entity_of, fullness, near_fullness
from opskit.analysis.finding import Entity, Finding, device_entity, most_severe_first
from opskit.quantities import plural

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opskit.analysis.finding import Severity
    from opskit.collect.host.file_systems import ReadOnly, SpaceFacts

# Types that are never written to.
_IMAGES = ("squashfs", "iso9660", "udf", "erofs", "cramfs", "romfs", "composefs", "overlay")
_KERNEL_LOG = ("dmesg", "--level", "emerg,alert,crit,err,warn")
_ON_ERROR = "errors=remount-ro"


def judge_disks(facts: SpaceFacts, *, of_processes: bool = False) -> list[Finding]:
    """The findings. `of_processes`: only what these processes write to."""
    found: list[Finding] = []
    for system in facts.systems:
        writer = facts.writers.get(system.device)
        if of_processes and writer is None:
            continue
        each = [*fullness(system), *near_fullness(system)]
        if writer is not None:
            process = Entity("process", writer.pid, writer.start_ticks)
            each = [finding._replace(entity=entity_of(system)._replace(inside=process)) for finding in each]
        found += each
    if not of_processes:
        for read_only in facts.read_only:
            found += _read_only(read_only)
    return most_severe_first(found)


def looked_at(facts: SpaceFacts) -> list[str]:
    """What was looked at, in words."""
    remote = f", without {plural(facts.remote, 'network file system')}" if facts.remote else ""
    return [f"{plural(len(facts.systems), 'file system')}{remote}"]


def _read_only(each: ReadOnly) -> Iterator[Finding]:
    mount, verdict = each.mount, _verdict(each)
    if verdict is None:
        return
    severity, why = verdict
    yield Finding(
        "file-system-read-only", severity, Entity("file", mount.mount_point, inside=device_entity(each.chain)),
        f"{mount.mount_point} ({mount.fs_type} on {mount.source}) is read-only: {why}",
        f"/proc/self/mountinfo: the file system is {each.emergency or 'ro'}, its mount {'rw' if each.mounted_rw else 'ro'}",
        next=shell.command(*_KERNEL_LOG),
    )  # fmt: skip


def _verdict(each: ReadOnly) -> tuple[Severity, str] | None:
    """How bad it is, and why it is so; None: it is meant to be read-only."""
    mount, entry = each.mount, each.entry
    if mount.fs_type in _IMAGES:
        return None
    if each.emergency is not None:
        return "error", f"the kernel stopped writing to it after an error ({each.emergency})"
    if each.mounted_rw:
        return "error", "it was mounted writable; the kernel made it read-only after an error, or it was remounted"
    if entry is not None and entry.fs_type in (mount.fs_type, "auto") and not {"ro", "noauto"} & {*entry.options}:
        return "warning", "/etc/fstab mounts it writable"
    if _ON_ERROR in mount.super_options:
        return "note", f"it is mounted so; with {_ON_ERROR} an error does that, too"
    return None
