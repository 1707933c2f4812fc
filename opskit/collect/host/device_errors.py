"""Read what the kernel counts of errors of block devices and file systems, RAID arrays, and devices that are offline, twice in a window.

/sys/block/sda/device/{state,ioerr_cnt,iotmo_cnt}                       SCSI: running; 0x1f; 0x0 (Documentation/ABI/stable/sysfs-block-device)
/sys/class/nvme/nvme0/state                                             live, dead, resetting, connecting
/sys/block/md0/md/{array_state,degraded,level,raid_disks,sync_action}   Documentation/admin-guide/md.rst
/sys/fs/ext4/sda1/{errors_count,last_error_time,last_error_func}        Documentation/ABI/testing/sysfs-fs-ext4
/sys/fs/btrfs/UUID/devinfo/1/{error_stats,missing}                      write_errs 0, read_errs 0, …
/proc/spl/kstat/zfs/tank/state                                          ONLINE, DEGRADED, FAULTED, SUSPENDED
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.proc.block_devices import device_chain, mounts_by_device, read_block_device
from opskit.proc.fs import optional
from opskit.proc.lines import lines_of
from opskit.quantities import hexadecimal, integer
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from opskit.host import Host
    from opskit.proc.fs import ProcFS

_LONGEST = 80  # of a word of the kernel
_MOST = 4096
_CLOCK_SLACK_S = 60.0
_MAPPED = (
    "loop",
    "dm-",
    "zram",
    "ram",
    "md",
    "nbd",
    "sr",
    "fd",
)  # without counters of their own, or with errors by nature


class Scsi(NamedTuple):
    """A SCSI or SATA disk. Failed commands, of which many are commands that it does not support, and commands that timed out."""

    name: str
    state: str | None
    failed: int | None
    timed_out: int | None
    mounts: tuple[str, ...] = ()


class Nvme(NamedTuple):
    """A controller."""

    name: str
    state: str


class Array(NamedTuple):
    """An md array, a ZFS pool or a btrfs with missing devices. `degraded`: members that are missing or faulty; None: not counted.

    `members`: all that it should have. `faulty`: names of members. `action`: idle, recover, resync, check; `done`: share of it.
    `is_container`: of arrays with metadata of the firmware (IMSM, DDF): it is never started itself.
    """

    name: str
    kind: str
    state: str | None
    degraded: int | None = None
    members: int | None = None
    faulty: tuple[str, ...] = ()
    action: str | None = None
    done: float | None = None
    mismatches: int | None = None
    is_container: bool = False


class Ext4(NamedTuple):
    """A mounted ext4 with errors. `last_s`: since the epoch; `ago_s` None: unknown, or a copy. `chain`: its device, and what that is on."""

    name: str
    chain: tuple[str, ...]
    errors: int
    ago_s: float | None
    where: str | None = None


class Btrfs(NamedTuple):
    """The error counters of one device of a btrfs, which is known by label or UUID. `chain`: that device, where it is the only one."""

    name: str
    device: str
    counters: Mapping[str, int]
    chain: tuple[str, ...] = ()


class Counted(NamedTuple):
    """One reading."""

    scsi: Mapping[str, Scsi]
    nvme: Mapping[str, Nvme]
    ext4: Mapping[str, Ext4]
    btrfs: Mapping[tuple[str, str], Btrfs]


class DeviceFacts(NamedTuple):
    """`before` and `after` the window; `window_s` 0: one reading."""

    before: Counted
    after: Counted
    arrays: tuple[Array, ...]
    window_s: float
    disks: int = 0
    file_systems: int = 0


def collect_device_errors(host: Host, window_s: float) -> DeviceFacts:
    """Read, wait and read again."""
    begun_s = host.monotonic()
    before = after = _read(host)
    if window_s:
        host.sleep(window_s)
        after = _read(host)
    fs = host.fs
    disks = [name for name in fs.names_root("sys", "block") if not name.startswith(_MAPPED)]
    systems = len(after.ext4) + len({name for name, _ in after.btrfs})
    elapsed_s = host.monotonic() - begun_s if window_s else 0.0
    return DeviceFacts(before, after, tuple(_arrays(fs)), elapsed_s, len(disks), systems)


def _read(host: Host) -> Counted:
    fs = host.fs
    return Counted(
        {each.name: each for each in _scsi(fs)},
        {each.name: each for each in _nvme(fs)},
        {each.name: each for each in _ext4(host)},
        {(each.name, each.device): each for each in _btrfs(fs)},
    )


def _scsi(fs: ProcFS) -> Iterator[Scsi]:
    for name in fs.names_root("sys", "block")[:_MOST]:
        place = "sys", "block", name, "device"
        if name.startswith(_MAPPED) or not fs.root_exists(*place, "ioerr_cnt"):
            continue
        if _number(fs, "sys", "block", name, "removable") and not _number(fs, "sys", "block", name, "size"):
            continue  # a card reader without a card fails each time it is asked for one
        state = _word(fs, *place, "state")
        mounts: tuple[str, ...] = ()
        if state != "running":
            mounts = tuple(mounts_by_device(fs, [read_block_device(fs, name)]).get(name, ()))
        failed, late = (_hexadecimal(_word(fs, *place, file)) for file in ("ioerr_cnt", "iotmo_cnt"))
        yield Scsi(name, state, failed, late, mounts)


def _nvme(fs: ProcFS) -> Iterator[Nvme]:
    for name in fs.names_root("sys", "class", "nvme")[:_MOST]:
        state = _word(fs, "sys", "class", "nvme", name, "state")
        if state is not None:
            yield Nvme(name, state)


def _ext4(host: Host) -> Iterator[Ext4]:
    fs = host.fs
    for name in fs.names_root("sys", "fs", "ext4")[:_MOST]:
        place = "sys", "fs", "ext4", name
        errors = _number(fs, *place, "errors_count")
        if errors is None:
            continue
        last_s = _number(fs, *place, "last_error_time") if errors else None
        ago_s = host.now().timestamp() - last_s if last_s and fs.is_live else None
        if ago_s is not None and ago_s < -_CLOCK_SLACK_S:  # the clock was wrong then, or is now
            ago_s = None
        yield Ext4(
            name,
            device_chain(fs, name),
            errors,
            None if ago_s is None else max(0.0, ago_s),
            _word(fs, *place, "last_error_func") if errors else None,
        )


def _btrfs(fs: ProcFS) -> Iterator[Btrfs]:
    for uuid in fs.names_root("sys", "fs", "btrfs")[:_MOST]:
        place = "sys", "fs", "btrfs", uuid
        devices = fs.names_root(*place, "devices")
        chain = device_chain(fs, devices[0]) if len(devices) == 1 else ()
        for device in fs.names_root(*place, "devinfo"):
            text = fs.maybe_root(str, *place, "devinfo", device, "error_stats")
            if text is not None:
                yield Btrfs(_word(fs, *place, "label") or uuid, device, parse_error_stats(text), chain)


def parse_error_stats(text: str) -> dict[str, int]:
    """The counters of one device of a btrfs: `write_errs 0`."""
    pairs = (line.split(None, 2) for line in lines_of(text))
    known = ((words[0], integer(words[1])) for words in pairs if len(words) == 2)
    return {name: number for name, number in known if number is not None}


def _arrays(fs: ProcFS) -> Iterator[Array]:
    for name in fs.names_root("sys", "block"):
        if name.startswith("md") and fs.root_exists("sys", "block", name, "md"):
            yield _md(fs, name)
    for uuid in fs.names_root("sys", "fs", "btrfs"):
        place = "sys", "fs", "btrfs", uuid
        devices = fs.names_root(*place, "devinfo")
        missing = sum(_number(fs, *place, "devinfo", device, "missing") or 0 for device in devices)
        if missing:
            yield Array(_word(fs, *place, "label") or uuid, "btrfs", None, missing, len(devices))
    for pool in sorted(optional(fs.names_at, fs.path("spl", "kstat", "zfs"), _MOST, default=[])):
        state = fs.maybe(str.strip, "spl", "kstat", "zfs", pool, "state")
        if state:
            yield Array(pool, "zfs", state[:_LONGEST])


def _md(fs: ProcFS, name: str) -> Array:
    place = "sys", "block", name, "md"
    members = [each for each in fs.names_root(*place) if each.startswith("dev-")]
    faulty = [each[4:] for each in members if "faulty" in (_word(fs, *place, each, "state") or "").split(",")]
    numbers = [integer(word.strip()) for word in (_word(fs, *place, "sync_completed") or "").split("/")]
    done = numbers[0] / numbers[1] if len(numbers) == 2 and numbers[0] is not None and numbers[1] else None
    return Array(
        name, _word(fs, *place, "level") or "md", _word(fs, *place, "array_state"), _number(fs, *place, "degraded"),
        integer((_word(fs, *place, "raid_disks") or "").split(" ")[0]), tuple(faulty), _word(fs, *place, "sync_action"), done,
        _number(fs, *place, "mismatch_cnt"), _is_container(_word(fs, *place, "metadata_version")),
    )  # fmt: skip


def _is_container(metadata: str | None) -> bool:
    """`external:imsm`; an array in it has `external:/md127/0`, or `-` for the `/` while it is read-only."""
    kind, colon, name = (metadata or "").partition(":")
    return bool(colon) and kind == "external" and not name.startswith(("/", "-"))


def _word(fs: ProcFS, *parts: str) -> str | None:
    text = fs.maybe_root(str.strip, *parts)
    return text[:_LONGEST] if text else None


def _number(fs: ProcFS, *parts: str) -> int | None:
    return integer(_word(fs, *parts) or "")


def _hexadecimal(text: str | None) -> int | None:
    return None if text is None else hexadecimal(text.removeprefix("0x"))
