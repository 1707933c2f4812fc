"""What the kernel tells of its own health: its taints, and its messages about errors. Nothing is run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.collect.kernel_log import OF_A_COPY, kernel_log, why_denied
from opskit.proc.block_devices import device_chain
from opskit.proc.files.boot_time import parse_uptime
from opskit.proc.files.mountinfo import parse_mountinfo
from opskit.proc.files.stat import parse_stat
from opskit.proc.files.tainted import parse_tainted
from opskit.proc.fs import DENIED, optional
from opskit.proc.kernel_messages import (
    CONNTRACK,
    FILE_SYSTEM,
    FORK_REJECTED,
    HUNG_TASK,
    IO_ERROR,
    NEEDLES,
    RESUMED,
    first_stamp_s,
    read_message,
    read_ring,
)
from opskit.proc.namespaces import in_initial, namespace
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opskit.host import Host
    from opskit.proc.files.mountinfo import Mount
    from opskit.proc.kernel_messages import Message

RING, LOG_FILE = "the kernel's log", "/var/log/kern.log"
_TAIL_BYTES = 1 << 20  # of a log file
_BOOTS_S = 60.0  # the first messages are written when the syslog daemon runs
_SLEPT_S = 30.0  # the clocks of suspend differ by less where the machine was never suspended
_MOST_PLACES = 200


class Told(NamedTuple):
    """A message. `ago_s` None: unknown; of a machine that was suspended since, the longest that it can be.

    `start_ticks`: of its process, which still runs. `is_ours` False: it is about another network namespace, about a cgroup, mount or disk that is
    gone, or about a path of a multipath device.
    `chain`: the device that it is about, and what that is on.
    """

    message: Message
    ago_s: float | None
    start_ticks: int | None = None
    is_ours: bool = True
    chain: tuple[str, ...] = ()


class Facts(NamedTuple):
    """`taints`: the bits; None: unknown. `source`: the log that was read; None: none could be, and `problem` says why.

    `covers_s`: how far back the log reaches; None: unknown.
    """

    taints: Sequence[int] | None
    uptime_s: float | None
    told: Sequence[Told] = ()
    source: str | None = None
    problem: str | None = None
    covers_s: float | None = None


def collect(host: Host) -> Facts:
    """Read the machine's; of a copy the taints only."""
    fs = host.fs
    facts = Facts(fs.maybe(parse_tainted, "sys", "kernel", "tainted"), fs.maybe(parse_uptime, "uptime"))
    if not fs.is_live:
        return facts._replace(problem=OF_A_COPY)
    if not host.is_own:
        return facts._replace(problem="it belongs to another PID namespace")
    try:
        messages, covers_s = _read_ring(host, facts.uptime_s)
    except OSError as error:
        found = optional(_read_file, host, facts.uptime_s)
        if found is None:
            denied = isinstance(error, DENIED)
            return facts._replace(problem=why_denied(fs) if denied else str(error.strerror))
        messages, source, covers_s = found, LOG_FILE, None
    else:
        source = RING
    return facts._replace(told=tuple(_placed(host, messages)), source=source, covers_s=covers_s)


def _read_ring(host: Host, uptime_s: float | None) -> tuple[list[tuple[Message, float | None]], float | None]:
    """The messages, and how long ago; how far back the log reaches. Raises OSError."""
    log = kernel_log(host)
    if log.is_whole is None and log.text:
        # From syslog(2), where the name of a process may forge a line.
        raise PermissionError
    now_s = host.monotonic()
    messages = read_ring(log.text)
    # The stamps leave out suspend: a message from before the last one is older by up to all of it.
    slept_s = max(0.0, (uptime_s or now_s) - now_s)
    slept_s = slept_s if slept_s > _SLEPT_S else 0.0
    resumed_s = max((each.at_s or 0.0 for each in messages if each.kind == RESUMED), default=0.0)
    aged: list[tuple[Message, float | None]] = []
    for each in messages:
        at_s = each.at_s or 0.0
        aged.append((each, max(0.0, now_s - at_s) + (slept_s if at_s < resumed_s else 0.0)))
    first = first_stamp_s(log.text)
    covers_s = uptime_s if log.is_whole else None if first is None else now_s - first
    return aged, covers_s


def _read_file(host: Host, uptime_s: float | None) -> list[tuple[Message, float | None]]:
    """The end of the log file in which syslog daemons keep the facility `kern` alone, which no program can write to. Raises OSError.

    What is from before the last boot is left out, as the ring does not have it.
    """
    from datetime import datetime

    from opskit.proc.oom.lines import read_line, when_of

    file = host.fs.hold_regular(f"{host.fs.root}{LOG_FILE}")
    try:
        size = host.fs.file_id_at(f"{host.fs.root}{LOG_FILE}").size_bytes
        data = file.read_at(max(0, size - _TAIL_BYTES), _TAIL_BYTES)
    finally:
        file.close()
    now_s = host.now().timestamp()
    offset = datetime.fromtimestamp(now_s).astimezone().utcoffset()
    local_s = now_s + (offset.total_seconds() if offset is not None else 0.0)
    found: list[tuple[Message, float | None]] = []
    for text in data.decode("utf-8", "surrogateescape").split("\n")[1 if size > _TAIL_BYTES else 0 :]:
        if not any(needle in text for needle in NEEDLES):
            continue
        line = read_line(text)
        message = read_message(line.text) if line.program == "kernel" else None
        if message is not None:
            when = when_of(line.date, line.uptime, now_s)
            ago_s = now_s - when.time_s if when.time_s is not None else None
            if ago_s is None and when.local_s is not None:
                ago_s = local_s - when.local_s
            if ago_s is None or uptime_s is None or ago_s <= uptime_s + _BOOTS_S:
                found.append((message, None if ago_s is None else max(0.0, ago_s)))
    return found


def _placed(host: Host, messages: Sequence[tuple[Message, float | None]]) -> Iterator[Told]:
    """The messages with what is known of their places now."""
    fs, places = host.fs, _Places(host)
    initial = in_initial(fs, "pid")
    for message, ago_s in messages:
        ticks = None
        if message.kind == HUNG_TASK and initial and message.pid is not None:
            stat = fs.maybe(parse_stat, message.pid, "stat")
            ticks = stat.start_ticks if stat is not None and stat.comm == message.subject else None
        yield Told(message, ago_s, ticks, places.has(message), places.chain(message))


class _Places:
    """Whether what a message is about is still there."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._known: dict[tuple[str, str], bool] = {}
        self._chains: dict[str, tuple[str, ...]] = {}
        self._mounts: list[Mount] | None = None

    def has(self, message: Message) -> bool:
        """Our network namespace, a cgroup, a mounted file system, a device. The first ones of very many are looked at."""
        look = {CONNTRACK: self._net, FORK_REJECTED: self._cgroup, FILE_SYSTEM: self._mounted, IO_ERROR: self._device}
        subject = message.subject
        if subject is None or message.kind not in look:
            return True
        key = message.kind, subject
        if key not in self._known:
            self._known[key] = len(self._known) < _MOST_PLACES and look[message.kind](subject)
        return self._known[key] and not (_is_counted(message.text) and self._is_clean(subject))

    def chain(self, message: Message) -> tuple[str, ...]:
        """The device, and what it is on; of very many devices without that."""
        subject = message.subject
        if subject is None or message.kind not in (FILE_SYSTEM, IO_ERROR):
            return ()
        if subject not in self._chains:
            self._chains[subject] = (
                device_chain(self._host.fs, subject) if len(self._chains) < _MOST_PLACES else (subject,)
            )
        return self._chains[subject]

    def _net(self, number: str) -> bool:
        links = [namespace(self._host.fs, pid, "net") for pid in ("self", 1)]
        return any(link == f"net:[{number}]".encode() for link in links)

    def _cgroup(self, path: str) -> bool:
        if ".." in path.split("/"):
            return False
        tops = (("pids",), (), ("unified",))
        return any(self._host.fs.root_exists("sys", "fs", "cgroup", *top, path.lstrip("/")) for top in tops)

    def _mounted(self, device: str) -> bool:
        """Whether it is mounted, as far as we or PID 1 see."""
        fs = self._host.fs
        if self._mounts is None:
            self._mounts = [
                each for pid in ("self", 1) for each in fs.maybe(parse_mountinfo, pid, "mountinfo", default=[])
            ]
        number = fs.maybe_root(str.strip, "sys", "class", "block", device.replace("/", "!"), "dev")
        return any(each.device == number or each.source.removeprefix("/dev/") == device for each in self._mounts)

    def _is_clean(self, device: str) -> bool:
        """Whether the ext4 there has counted no error: it was repaired, or the device has another file system by now."""
        key = "clean", device
        if key not in self._known:
            count = self._host.fs.maybe_root(str.strip, "sys", "fs", "ext4", device, "errors_count")
            self._known[key] = count == "0"
        return self._known[key]

    def _device(self, device: str) -> bool:
        """Whether it is there: a disk that was pulled out is not. A loop device stays after its file system is gone."""
        if device.startswith("loop"):
            return self._mounted(device)
        if any(name.startswith("mpath-") for name in self._maps_on(device)):
            return False  # multipath tries another path; one that is lost is offline
        is_disk = not device.startswith("ata") and "/" not in device
        return not is_disk or self._host.fs.root_exists("sys", "class", "block", device) or _is_controller(device)

    def _maps_on(self, device: str) -> list[str]:
        """The names that device mapper has for what is on a disk: `mpath-3600…`, `LVM-…`."""
        fs = self._host.fs
        holders = fs.names_root("sys", "block", device, "holders") if "/" not in device else []
        return [fs.maybe_root(str.strip, "sys", "block", each, "dm", "uuid", default="") for each in holders]


def _is_counted(text: str) -> bool:
    """Whether ext4 counts what it says there as an error."""
    return text.startswith("EXT4-fs error ") or text.endswith(": Remounting filesystem read-only")


def _is_controller(device: str) -> bool:
    return device.startswith("nvme") and device[4:].isdigit()
