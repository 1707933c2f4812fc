"""Which devices fail: errors that were counted in the window, or that have a recent time; arrays without redundancy; devices offline. Pure.

A healthy SCSI disk counts many failed commands: those that it does not support. Counters since boot alone say nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit import shell
from opskit.analysis.finding import Entity, Finding, device_entity, most_severe_first
from opskit.quantities import duration, listed, percent, plural

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opskit.analysis.finding import Severity
    from opskit.collect.host.device_errors import Array, Btrfs, DeviceFacts, Ext4, Scsi

_LATELY_S = 24 * 3600.0
_FEW = 3  # failed commands in a window: a monitor's question that the disk does not support
_OFFLINE, _BLOCKED = ("offline", "transport-offline"), ("blocked", "transport-blocked")
_NVME_LOST = ("dead",)
_NVME_WAITING = ("resetting", "connecting")
_MANY_MIRRORS = 4  # appliances make mirrors with a slot for each disk that may come
_PARITY = ("raid4", "raid5", "raid6")
_TOLERATES = {"raid4": 1, "raid5": 1, "raid6": 2, "raid10": 1}
_ZFS_HEALTHY = "ONLINE"
_KERNEL_LOG = shell.command("dmesg", "--level", "emerg,alert,crit,err,warn")


def judge_devices(facts: DeviceFacts) -> list[Finding]:
    """The findings of one window."""
    return most_severe_first(
        [*_scsi(facts), *_nvme(facts), *_arrays(facts), *_ext4(facts), *_btrfs(facts)],
    )


def looked_at(facts: DeviceFacts) -> list[str]:
    """What was looked at, in words."""
    arrays = [plural(len(facts.arrays), "array")] if facts.arrays else []
    systems = [f"error counters of {plural(facts.file_systems, 'file system')}"] if facts.file_systems else []
    return [plural(facts.disks, "disk"), *arrays, *systems]


def _device(name: str) -> Entity:
    return device_entity((name,))


def _scsi(facts: DeviceFacts) -> Iterator[Finding]:
    for name, now in facts.after.scsi.items():
        then = facts.before.scsi.get(name, now)
        if now.state in _OFFLINE or (now.state in _BLOCKED and then.state in _BLOCKED and facts.window_s):
            used = f", and is mounted on {listed(now.mounts, 2)}" if now.mounts else ""
            yield Finding(
                "device-offline", "error" if now.mounts else "warning", _device(name),
                f"{name} is {now.state}: requests to it fail or wait{used}", f"/sys/block/{name}/device/state", next=_KERNEL_LOG,
            )  # fmt: skip
        yield from _commands(name, then, now, facts.window_s)


def _commands(name: str, then: Scsi, now: Scsi, window_s: float) -> Iterator[Finding]:
    failed, late = _added(then.failed, now.failed), _added(then.timed_out, now.timed_out)
    if not failed and not late:
        return
    severity: Severity = "warning" if late or failed >= _FEW else "note"
    words = [f"{plural(late, 'command')} timed out"] if late else []
    words += [f"{plural(failed, 'command')} failed"] if failed else []
    yield Finding(
        "storage-error", severity, _device(name), f"{name}: {' and '.join(words)} in {duration(window_s)}",
        f"/sys/block/{name}/device: iotmo_cnt, ioerr_cnt",
        next=shell.command("smartctl", "-H", "-A", "-l", "error", f"/dev/{name}"), window_s=window_s,
    )  # fmt: skip


def _added(then: int | None, now: int | None) -> int:
    return 0 if then is None or now is None else max(0, now - then)


def _nvme(facts: DeviceFacts) -> Iterator[Finding]:
    for name, now in facts.after.nvme.items():
        then = facts.before.nvme.get(name, now)
        waits = now.state in _NVME_WAITING and then.state in _NVME_WAITING and facts.window_s
        if now.state in _NVME_LOST or waits:
            yield Finding(
                "device-offline", "error" if now.state in _NVME_LOST else "warning", _device(name),
                f"NVMe controller {name} is {now.state}: requests to it fail or wait", f"/sys/class/nvme/{name}/state", next=_KERNEL_LOG,
            )  # fmt: skip


def _arrays(facts: DeviceFacts) -> Iterator[Finding]:
    for array in facts.arrays:
        if array.kind == "zfs":
            yield from _pool(array)
        elif array.kind == "btrfs":
            yield Finding(
                "raid-degraded", "error", _device(array.name),
                f"btrfs {array.name} lacks {array.degraded} of {plural(array.members or 0, 'device')}",
                "/sys/fs/btrfs/*/devinfo/*/missing", next=shell.command("btrfs", "filesystem", "show"),
            )  # fmt: skip
        else:
            yield from _md(array)


def _pool(array: Array) -> Iterator[Finding]:
    if array.state != _ZFS_HEALTHY:
        severity: Severity = "warning" if array.state == "DEGRADED" else "error"
        yield Finding(
            "raid-degraded", severity, _device(array.name), f"ZFS pool {array.name} is {array.state}",
            f"/proc/spl/kstat/zfs/{array.name}/state", next=shell.command("zpool", "status", *shell.operands(array.name)),
        )  # fmt: skip


def _md(array: Array) -> Iterator[Finding]:
    next_ = shell.command("mdadm", "--detail", f"/dev/{array.name}")
    place = f"/sys/block/{array.name}/md"
    if array.state == "broken":
        yield Finding(
            "raid-degraded", "error", _device(array.name), f"{array.name} ({array.kind}) is broken: a member is gone, and its data with it",
            f"{place}/array_state", next=next_,
        )  # fmt: skip
    elif array.state == "inactive" and not array.is_container:
        yield Finding(
            "raid-degraded", "error", _device(array.name), f"{array.name} is not started (inactive), as where too few of its members are found: nothing on it can be read",
            f"{place}/array_state", next=next_,
        )  # fmt: skip
    elif array.degraded:
        members = array.members or 0
        named = f" ({listed(array.faulty, 3)})" if array.faulty else ""
        yield Finding(
            "raid-degraded", _severity(array), _device(array.name),
            f"{array.name} ({array.kind}) lacks {array.degraded} of {plural(members, 'member')}{named}{_rebuild(array)}",
            f"{place}/degraded {array.degraded}, array_state {array.state or 'unknown'}", next=next_,
        )  # fmt: skip
    elif array.mismatches and array.kind in _PARITY and array.action in (None, "idle"):
        yield Finding(
            "raid-degraded", "note", _device(array.name),
            f"the last check of {array.name} ({array.kind}) found {array.mismatches:,} sectors whose parity differs",
            f"{place}/mismatch_cnt", next=next_,
        )  # fmt: skip


def _severity(array: Array) -> Severity:
    """An error where the next failure loses data, unless a rebuild runs."""
    lost, members = array.degraded or 0, array.members or 0
    left = members - lost
    if array.kind == "raid1":
        if members > _MANY_MIRRORS and left >= 2:
            return "note"
        is_last = left <= 1
    else:
        is_last = lost >= _TOLERATES.get(array.kind, 1)
    return "error" if is_last and array.action not in ("recover", "resync") else "warning"


def _rebuild(array: Array) -> str:
    if array.action not in ("recover", "resync"):
        return ", and no rebuild runs"
    return f"; a rebuild runs{'' if array.done is None else f', {percent(array.done)} done'}"


def _ext4(facts: DeviceFacts) -> Iterator[Finding]:
    for name, now in facts.after.ext4.items():
        if now.errors:
            then = facts.before.ext4.get(name)
            yield _ext4_finding(now, 0 if then is None else now.errors - then.errors)


def _ext4_finding(now: Ext4, added: int) -> Finding:
    is_recent = added > 0 or (now.ago_s is not None and now.ago_s <= _LATELY_S)
    when = "when is unknown" if now.ago_s is None else f"the last {duration(now.ago_s)} ago"
    return Finding(
        "filesystem-error", "error" if is_recent else "note", device_entity(now.chain),
        f"ext4 on {now.name} has found {plural(now.errors, 'error')} in itself, {when}; fsck is needed",
        f"/sys/fs/ext4/{now.name}/errors_count{f', in {now.where}' if now.where else ''}", next=_KERNEL_LOG,
    )  # fmt: skip


def _btrfs(facts: DeviceFacts) -> Iterator[Finding]:
    for key, now in facts.after.btrfs.items():
        counted = {name: number for name, number in now.counters.items() if number}
        if counted:
            then = facts.before.btrfs.get(key, now)
            yield _btrfs_finding(now, sum(counted.values()) - sum(then.counters.values()))


def _btrfs_finding(now: Btrfs, added: int) -> Finding:
    counted = [f"{number:,} {name}" for name, number in now.counters.items() if number]
    total = sum(now.counters.values())
    when = f"{added:,} of them in the window" if added > 0 else "when is unknown"
    return Finding(
        "filesystem-error", "error" if added > 0 else "note", device_entity(now.chain or (now.name,)),
        f"device {now.device} of btrfs {now.name} has {plural(total, 'error')}, {when}",
        f"/sys/fs/btrfs/*/devinfo/{now.device}/error_stats: {', '.join(counted)}",
        next=shell.command("btrfs", "filesystem", "show"),
    )  # fmt: skip
