"""Read OOM kills: of the running kernel, of files that the user names, or of another root's logs."""

from __future__ import annotations

import posixpath
import re
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING

from opskit import shell
from opskit.collect.kernel_log import Left, counted_kills, left_counters, read_ring
from opskit.collect.oom_counters import counted_in_cgroups, crash_logs
from opskit.errors import BadInput
from opskit.proc.cgroup.owner import CgroupOwner, owner_of
from opskit.proc.cgroup.tree import Membership
from opskit.proc.files.boot_time import parse_uptime
from opskit.proc.fs import GONE, optional
from opskit.proc.namespaces import in_initial
from opskit.proc.oom.lines import When
from opskit.proc.oom.log import BINARY_JOURNAL, OomLog, read_log
from opskit.proc.rights import how_to_be_allowed
from opskit.proc.user_files import CHUNK_BYTES, GZIP, gunzip, open_files
from opskit.proc.visibility import why_unread
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from opskit.collect.oom_counters import Counted, CrashLog
    from opskit.host import Host
    from opskit.proc.oom.records import Kill
    from opskit.proc.oom.signs import Sign

_LOGS = (("var", "log"), r"(?:kern\.log|messages|syslog)(?:[.-]\d{1,8}){0,2}(?:\.gz)?")
# Only of another root: their stamps are uptimes of any boot, and this machine's own boot is in the ring.
_LOGS_OF_COPIES = (
    (("var", "log"), r"dmesg(?:\.\d{1,8})?(?:\.gz)?"),
    (("sos_commands", "kernel"), r"dmesg(?:_-T)?"),
    (("sos_commands", "logs"), r"journalctl_--no-pager[\w.-]{0,80}"),
)
_MOST_FILES, _MOST_BYTES = 24, 256 << 20
_MOST_TEXT_BYTES = 1 << 30  # unpacked
_MOST_JVMS = 20  # whose leftover counters are looked for
_LAST_S = 253_402_200_000  # the year 9999
_RING = "the kernel's log"
_OOMD = "systemd-oomd.service"


class Request(NamedTuple):
    """The logs to read, `-` is standard input; none: this machine's own."""

    names: Sequence[str] = ()


class Source(NamedTuple):
    """A log that was read: its name, its lines, and the stamps of its first and last line."""

    name: str
    lines: int
    first: When
    last: When


class Known(NamedTuple):
    """A kill, and what this machine adds. `ago_s` None: a copy has no now, or the time is unknown."""

    kill: Kill
    source: str
    ago_s: float | None = None
    owner: CgroupOwner | None = None
    user: str | None = None
    left: Left | None = None


class Facts(NamedTuple):
    """What was read. `is_live`: of this machine, now. `unread`: (source, why).

    `counted`: kills since boot by the kernel's counter, None where there is none; `cgroups`: by cgroup, where logs lack kills.
    `covers_s`: how far back the logs reach; None: unknown. `more`: kills above the most that are kept. `end`: now, or the
    last stamp of the logs. `journal`, `oomd`: the commands that read the journal, and in it what systemd-oomd killed.
    """

    kills: Sequence[Known]
    signs: Sequence[Sign]
    sources: Sequence[Source]
    is_live: bool
    end: When
    unread: Sequence[tuple[str, str]] = ()
    counted: int | None = None
    cgroups: Sequence[Counted] = ()
    crashes: Sequence[CrashLog] = ()
    uptime_s: float | None = None
    covers_s: float | None = None
    is_whole: bool = False
    other_pids: bool = False
    journal: str | None = None
    more: int = 0
    oomd: str | None = None


def collect(host: Host, ask: Request) -> Facts:
    """Read what is asked for. Raises BadInput and NotPermitted for a file that the user named."""
    if ask.names:
        return _of_files(host, ask.names)
    return _of_machine(host) if host.is_own else _of_copy(host)


def _of_files(host: Host, names: Sequence[str]) -> Facts:
    logs = []
    now_s = host.now().timestamp()
    for file in open_files(names, "oom"):
        if file.head.startswith(BINARY_JOURNAL):
            raise BadInput(file.name, f"is a binary journal; read it with: {_journal_advice(file.name)}")
        logs.append((file.name, read_log(file.chunks(), now_s=now_s)))
    return _of_logs(logs)


def _journal_advice(name: str) -> str:
    option = ("-D", name) if name.endswith("journal") and not name.endswith(".journal") else ("--file", name)
    return _from_journal(*option)


def _of_logs(logs: Sequence[tuple[str, OomLog]]) -> Facts:
    kills = [Known(kill, name, owner=_owner(kill)) for name, log in logs for kill in log.kills]
    return Facts(
        _without_copies(kills),
        [sign for _, log in logs for sign in log.signs],
        [_source(name, log) for name, log in logs],
        is_live=False,
        end=_last([log.last for _, log in logs]),
        more=sum(log.more for _, log in logs),
    )


def _of_copy(host: Host) -> Facts:
    """The logs below another root. A copy has no now."""
    logs, unread = _read_logs(host, host.now().timestamp())
    facts = _of_logs(logs)
    counted = counted_kills(host)
    cgroups = () if counted == 0 or facts.kills else counted_in_cgroups(host.fs)
    journal = _journal(host)
    return facts._replace(unread=unread, counted=counted, cgroups=cgroups, journal=journal)


def _of_machine(host: Host) -> Facts:
    uptime_s, now = host.fs.maybe(parse_uptime, "uptime"), host.now()
    end = _moment(now.timestamp(), host.monotonic())  # the kernel's log has no time in which the machine was suspended
    counted, unread, logs = counted_kills(host), [], []
    is_whole, own_pids = False, in_initial(host.fs, "pid") is not False
    try:
        ring = read_ring(host)
    except OSError as error:
        unread.append((_RING, _why_no_ring(host, error)))
    else:
        is_whole = bool(ring.is_whole)
        logs.append((_RING, ring.log))
    if not is_whole and (counted is None or sum(len(log.kills) for _, log in logs) < counted):
        more, denied = _read_logs(host, now.timestamp())
        logs, unread = [*logs, *more], [*unread, *denied]
    kills = _without_copies([_dated(host, kill, name, end) for name, log in logs for kill in log.kills])
    begins = [_ago_s(_on_host(log.first, end), end) for _, log in logs]
    this_boot = [each for each in kills if each.ago_s is None or uptime_s is None or each.ago_s <= uptime_s]
    is_short = counted is None or len(this_boot) < counted
    facts = Facts(
        kills,
        [sign._replace(when=_on_host(sign.when, end)) for _, log in logs for sign in log.signs],
        [_source(name, log) for name, log in logs],
        is_live=True,
        end=end,
        unread=unread,
        counted=counted,
        cgroups=counted_in_cgroups(host.fs) if counted != 0 and is_short and not is_whole else (),
        crashes=crash_logs(host),
        uptime_s=uptime_s,
        covers_s=uptime_s if is_whole else max((each for each in begins if each is not None), default=None),
        is_whole=is_whole,
        other_pids=not own_pids,
        journal=_journal(host) if is_short and not is_whole else None,
        more=sum(log.more for _, log in logs),
        oomd=_journal_of_oomd(host),
    )
    return facts._replace(kills=_with_counters(host, facts.kills, end)) if own_pids else facts


def _why_no_ring(host: Host, error: OSError) -> str:
    if isinstance(error, PermissionError):
        return f"{why_unread(error)}; {how_to_be_allowed(host.fs, 'CAP_SYSLOG')}, or give its text to: opskit oom -"
    return str(error.strerror)


def _source(name: str, log: OomLog) -> Source:
    return Source(name, log.lines, log.first, log.last)


def _owner(kill: Kill) -> CgroupOwner | None:
    """The unit or container of the victim, by its cgroup's path."""
    path = kill.task_cgroup or kill.cgroup
    return owner_of([Membership(0, (), path)]) if path else None


def _dated(host: Host, kill: Kill, source: str, end: When) -> Known:
    kill = kill._replace(when=_on_host(kill.when, end))
    user = None if kill.uid is None else host.user_name(kill.uid)
    return Known(kill, source, _ago_s(kill.when, end), _owner(kill), user)


def _with_counters(host: Host, kills: Sequence[Known], end: When) -> list[Known]:
    """The last kills of JVMs with the counters that these have left."""
    wanted = [each for each in kills if each.kill.pid and each.kill.name == "java" and each.ago_s is not None]
    left: dict[Known, Left | None] = {
        each: left_counters(host, each.kill.pid or 0, (end.time_s or 0.0) - (each.ago_s or 0.0), each.kill.uid)
        for each in wanted[-_MOST_JVMS:]
    }
    return [each._replace(left=left.get(each)) for each in kills]


def _moment(time_s: float, uptime_s: float | None) -> When:
    """A moment of this machine on all of its clocks."""
    local = datetime.fromtimestamp(time_s).astimezone()
    offset = local.utcoffset()
    local_s = time_s + (offset.total_seconds() if offset is not None else 0.0)
    return When(time_s, uptime_s, local_s, local.strftime("%Y-%m-%dT%H:%M:%S%z"))


def _on_host(when: When, end: When) -> When:
    """A stamp of this machine's logs on all clocks that can be derived."""
    ago_s = _ago_s(when, end)
    if ago_s is None or end.time_s is None:
        return when
    if not 0 <= end.time_s - ago_s < _LAST_S:  # clocks that no machine has: of a capture that was changed
        return when
    uptime_s = when.uptime_s if when.uptime_s is not None or end.uptime_s is None else end.uptime_s - ago_s
    found = _moment(end.time_s - ago_s, uptime_s if uptime_s is None or uptime_s >= 0 else None)
    return found._replace(text=when.text if when.time_s is not None or when.local_s is not None else found.text)


def _ago_s(when: When, end: When) -> float | None:
    """By dates first: an uptime in a file may be of an earlier boot."""
    for then, now in ((when.time_s, end.time_s), (when.local_s, end.local_s), (when.uptime_s, end.uptime_s)):
        if then is not None and now is not None:
            return max(0.0, now - then)
    return None


def _last(stamps: Sequence[When]) -> When:
    dated = [each for each in stamps if each.local_s is not None]
    return max(dated or list(stamps), key=lambda each: (each.local_s or 0.0, each.uptime_s or 0.0), default=When())


def _without_copies(kills: Sequence[Known]) -> list[Known]:
    """Each kill once, where several logs have it, in the order of time as far as that is known."""
    found: dict[tuple[object, ...], Known] = {}
    for each in kills:
        kill = each.kill
        key = (kill.pid, kill.name, kill.total_vm_bytes, kill.anon_bytes, kill.file_bytes)
        known = kill.pid is not None and kill.total_vm_bytes is not None
        before = found.get(key) if known else None
        if before is None or before.source == each.source:
            found[key if before is None and known else (*key, len(found))] = each
        elif before.kill.is_cut and not kill.is_cut:
            found[key] = each
    rows = list(found.values())
    for clock in ("local_s", "uptime_s"):
        if all(getattr(each.kill.when, clock) is not None for each in rows):
            return sorted(rows, key=lambda each: getattr(each.kill.when, clock))
    return rows


def _log_files(host: Host) -> Iterator[str]:
    """The kernel's messages in /var/log, also rotated, and those of an sos report; paths from the root."""
    for folder, pattern in (_LOGS,) if host.is_own else (_LOGS, *_LOGS_OF_COPIES):
        for name in host.fs.names_root(*folder):
            if re.fullmatch(pattern, name):
                yield posixpath.join("/", *folder, name)


def _read_logs(host: Host, now_s: float) -> tuple[list[tuple[str, OomLog]], list[tuple[str, str]]]:
    """The logs of this root; and what of them could not be read."""
    logs, unread, left, budget = [], [], _MOST_BYTES, _Budget(_MOST_TEXT_BYTES)
    for path in islice(_log_files(host), _MOST_FILES):
        place = f"{host.fs.root}{path}"
        try:
            size_bytes = host.fs.file_id_at(place).size_bytes
            if size_bytes > left:
                advice = shell.command("opskit", "oom", place)
                unread.append((path, f"more than {_MOST_BYTES >> 20} MiB of logs; name it: {advice}"))
                continue
            left -= size_bytes
            logs.append((path, read_log(budget.spend(_chunks(host, place)), host.page_bytes, now_s)))
        except GONE:
            continue
        except (OSError, EOFError) as error:
            unread.append((path, why_unread(error) if isinstance(error, PermissionError) else str(error)))
    return logs, unread


class _Budget:
    """How much text is still read: a small gzip file may hold any amount."""

    def __init__(self, most_bytes: int) -> None:
        self._left = most_bytes

    def spend(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        """The chunks. Raises EOFError where they are too many."""
        for chunk in chunks:
            self._left -= len(chunk)
            if self._left < 0:
                raise EOFError(f"more than {_MOST_TEXT_BYTES >> 30} GiB of unpacked logs")
            yield chunk


def _chunks(host: Host, path: str) -> Iterator[bytes]:
    """The text of a log, unpacked. Raises OSError, EOFError for damaged gzip data."""
    import zlib

    file = host.fs.hold_regular(path)
    try:
        raw = _parts(file.read_at)
        first = next(raw, b"")
        if not first.startswith(GZIP):
            yield first
            yield from raw
            return
        try:
            yield from gunzip(first, raw)
        except zlib.error as error:
            raise EOFError(f"damaged gzip data ({error})") from None
    finally:
        file.close()


def _parts(read_at: Callable[[int, int], bytes]) -> Iterator[bytes]:
    offset = 0
    while offset <= _MOST_BYTES and (part := read_at(offset, CHUNK_BYTES)):
        yield part
        offset += len(part)


def _journal(host: Host) -> str | None:
    """The command that reads the journal of this root, which is binary; None where there is none."""
    root, fs = host.fs.root, host.fs
    where = next((part for part in ("var", "run") if optional(fs.root_directories, part, "log", "journal")), None)
    if where is None:
        return None
    return _journal_advice(f"{root}/{where}/log/journal") if root else _from_journal("-k")


def _from_journal(*select: str) -> str:
    return shell.command("journalctl", *select, "-o", "json", "--no-pager", shell.Syntax("|"), "opskit", "oom", "-")


def _journal_of_oomd(host: Host) -> str | None:
    """The command for the log of systemd-oomd, which the kernel's log lacks; None where it does not run."""
    runs = _OOMD in host.fs.names_root("sys", "fs", "cgroup", "system.slice")
    return _from_journal("-u", "systemd-oomd") if runs else None
