"""The values of threads, files, processes and devices."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any

from opskit.analysis.io.waits import wait_of
from opskit.quantities import duration, percent, size, whole
from opskit.render.cells import rate, rate_at, rounded, rounded_at
from opskit.render.fields import FLAG, ID, NUMBER, SECONDS, SHARE, TEXT, Field, list_of, records
from opskit.render.views.java_stack import where_in_java

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from opskit.analysis.io.result import DeviceRow, ProcessRow, Row
    from opskit.collect.io.facts import File, Rates, Seen, Stalled, StalledThread


def _number(value: float | None) -> str:
    return "" if value is None else whole(value)


def _size(value: float | None) -> str:
    return "" if value is None else "0" if value < 1 else size(value)


def _mean(value: float | None) -> str:
    return "" if value is None else size(value) if value >= 1024 else f"{value:,.1f} B"


def _share(value: float | None) -> str:
    return "" if not value else percent(value)


def _time(value: float | None) -> str:
    return "" if value is None else duration(value)


# Name, title, help, form, rank of a column.
_RATES: Sequence[tuple[str, str, str, Callable[[Any], str], int]] = (
    ("reads", "reads/s", "read calls a second: files, pipes, sockets", _number, 0),
    ("bytes_per_read", "B/read", "mean size of a read; null: none", _mean, 0),
    ("writes", "writes/s", "write calls a second", _number, 0),
    ("bytes_per_write", "B/write", "mean size of a write; null: none", _mean, 6),
    ("read_bytes", "read/s", "bytes a second that read calls returned", _size, 2),
    ("written_bytes", "written/s", "bytes a second that were given to write calls", _size, 2),
    ("disk_read_bytes", "from disk/s", "bytes a second fetched from storage", _size, 4),
    ("disk_written_bytes", "to disk/s", "bytes a second made dirty for storage", _size, 4),
    ("cancelled_bytes", "", "bytes a second made dirty, then deleted before they were written", _size, 0),
)
_RENAMED = {"reads": "reads_per_s", "writes": "writes_per_s"}


def rates_fields(of: Callable[[Any], Rates | None] = lambda row: row) -> Iterator[Field[Any]]:
    """The rates that a row has; null: unknown."""
    for name, title, words, show, rank in _RATES:

        def value(row: Any, name: str = name) -> float | None:
            rates = of(row)
            return None if rates is None else rate(getattr(rates, name))

        mean = name.startswith("bytes_per_")
        key = name if mean else _RENAMED.get(name, f"{name}_per_s")
        yield Field(key, NUMBER, title, value, help=words, show=show, right=True, rank=rank)


RATES = [*rates_fields()]
SEEN: Sequence[Field[Seen]] = (
    Field("call", help="the system call; running: on a CPU, or waiting for one"),
    Field("fd", ID),
    Field("looks", ID),
    Field("length", ID, help="the most bytes that it asked for"),
)
STALLED: Sequence[Field[Stalled]] = (
    Field("where", help="wchan; null: unreadable"),
    Field("meaning", value=lambda it: (wait := wait_of(it.where)) and wait.words),
    Field("looks", ID),
)
STALLED_THREAD: Sequence[Field[StalledThread]] = (
    Field("tid", ID),
    Field("name"),
    Field("where", help="wchan; null: unreadable"),
    Field("meaning", value=lambda it: (wait := wait_of(it.where)) and wait.words),
    Field("call", help="the system call; null: unknown"),
    Field("for_s", NUMBER, value=lambda it: rounded(it.for_s), help="known to be in this one sleep"),
)


def _file(row: Row) -> str:
    return "" if row.file is None else f"fd {row.file.fd} {row.file.path}"


def call_words(row: Row) -> str:
    """`read(fd 4) 93 of 100, running 7`."""
    seen = sorted(row.thread.seen, key=lambda each: -each.looks)[:3]
    return ", ".join(f"{each.call}{'' if each.fd is None else f'(fd {each.fd})'} {each.looks}" for each in seen)


def _in_d(row: Row) -> float | None:
    thread = row.thread
    return sum(each.looks for each in thread.stalled) / thread.looks if thread.looks else None


_OF_THREAD = [*rates_fields(attrgetter("thread.rates"))]
_TID: Field[Row] = Field("tid", ID, "tid", attrgetter("thread.tid"), rank=5)
_NAME: Field[Row] = Field("name", TEXT, "thread", attrgetter("thread.name"), shrinks=12)
_WHY: Field[Any] = Field("why", TEXT, "why", help="what is unusual about it, in words; empty: nothing", shrinks=14)
_IN_D: Field[Row] = Field(
    "in_d", SHARE, "in D", lambda row: rounded(_in_d(row)), show=_share, rank=7,
    help="share of the looks that found it in state D",
)  # fmt: skip
_PATH: Field[Row] = Field("file", TEXT, "file", _file, json=False, shrinks=14, rank=3)
_CALLS: Field[Row] = Field("calls", TEXT, "seen in", call_words, json=False, shrinks=12, rank=8)
_JAVA: Field[Row] = Field(
    "stack", TEXT, "in Java", lambda row: where_in_java(row.thread.frames), json=False, shrinks=16, rank=1
)


def thread_columns(*, text: bool, verbose: bool, java: bool) -> list[Field[Row]]:
    """The columns of threads; those that may hold blanks last."""
    last = [_PATH, *([_JAVA] if java else []), *([_CALLS] if verbose else []), _WHY]
    return [_TID, *_OF_THREAD, _IN_D, _NAME, *last] if text else [_NAME, *_OF_THREAD, _IN_D, _TID, *last]


FILE: Sequence[Field[File]] = (
    Field("fd", ID, "fd"),
    Field("kind", TEXT, "kind", rank=2),
    Field(
        "moved_bytes_per_s", NUMBER, "moved/s", rate_at("moved_bytes"), show=_size, right=True,
        help="by which its position moved forward; null: it has none, or was set",
    ),
    Field("device", TEXT, "on", help="the device or kind of its file system", rank=1),
    Field("mount_point", help="of its file system"),
    Field("flags", ID, help="of open(2)"),
    Field("threads", list_of(ID), value=lambda it: [*it.threads]),
    Field("path", TEXT, "file", shrinks=20),
)  # fmt: skip
THREAD: Sequence[Field[Row]] = (
    _TID,
    _NAME,
    *_OF_THREAD,
    _IN_D,
    Field("looks", ID, value=attrgetter("thread.looks"), help="how often it was looked at"),
    Field("seen", records(SEEN), value=lambda row: [*row.thread.seen]),
    Field("stalled", records(STALLED), value=lambda row: [*row.thread.stalled]),
    Field("fd", ID, value=lambda row: row.file and row.file.fd, help="of the file that it reads or writes"),
    Field("path", value=lambda row: row.file and row.file.path),
    Field("frames", list_of(TEXT), value=lambda row: [*row.thread.frames], help="its Java stack, innermost first; with --ask"),
    Field("user_share", SHARE, value=attrgetter("thread.user"), help="of the window on a CPU in user mode"),
    Field("system_share", SHARE, value=attrgetter("thread.system"), help="the same in the kernel"),
    Field("storage_wait_share", SHARE, value=attrgetter("thread.block_wait"), help="of the window; null: not counted"),
    Field("major_faults_per_s", NUMBER, value=rate_at("thread.major_faults")),
    Field("asleep_s", NUMBER, value=rounded_at("thread.asleep_s"), help="of a thread in state D in all looks"),
    Field("started", FLAG, value=attrgetter("thread.started"), help="within the window"),
    _WHY,
)  # fmt: skip

# The machine

_OF_PROCESS = [*rates_fields(attrgetter("process.rates"))]
_PID: Field[ProcessRow] = Field("pid", ID, "pid", attrgetter("process.process.pid"))
_START: Field[ProcessRow] = Field(
    "start_ticks", ID, value=attrgetter("process.process.start_ticks"), help="clock ticks since boot"
)
_COMMAND: Field[ProcessRow] = Field("command", TEXT, "command", attrgetter("process.process.command"), shrinks=10)
_UID: Field[ProcessRow] = Field("uid", ID, value=attrgetter("process.process.uid"))
_USER: Field[ProcessRow] = Field("user", TEXT, "user", attrgetter("process.process.user"), rank=7)
_PROCESS_D: Field[ProcessRow] = Field(
    "in_d", SHARE, "in D", rounded_at("process.in_d"), show=_share, rank=5,
    help="share of the looks with a thread in state D",
)  # fmt: skip
PROCESS_COLUMNS = (_PID, *_OF_PROCESS, _PROCESS_D, _USER, _COMMAND, _WHY)
PROCESS: Sequence[Field[ProcessRow]] = (
    _PID, _START, _COMMAND, _UID, _USER, *_OF_PROCESS, _PROCESS_D,
    Field("stalled", records(STALLED_THREAD), value=lambda row: [*row.process.stalled], help="in state D at the last look"),
    Field(
        "children", records(RATES), value=lambda row: [row.process.children] if row.process.children is not None else [],
        help="of children that it reaped in the window; one or none",
    ),
    Field("is_kernel_thread", FLAG, value=attrgetter("process.is_kernel_thread")),
    _WHY,
)  # fmt: skip


def _of_device(name: str, key: str, kind: Any, title: str = "", words: str = "", **more: Any) -> Field[DeviceRow]:
    read = attrgetter(f"device.{name}")

    def value(row: DeviceRow) -> object:
        found = read(row)
        if isinstance(found, float):
            return rate(found) if key.endswith("_per_s") else rounded(found, 6)
        return [*found] if isinstance(found, tuple) else found

    return Field(key, kind, title, value, help=words, **more)


_DEVICE = (
    _of_device("name", "name", TEXT, "device"),
    _of_device("busy", "busy", SHARE, "busy", "share of the window with a request", show=lambda it: percent(it)),
    _of_device("queue", "queue", NUMBER, "queue", "requests at a time", show=lambda it: f"{it:,.1f}"),
    _of_device("reads", "reads_per_s", NUMBER, "reads/s", show=_number, right=True),
    _of_device("read_await_s", "read_await_s", SECONDS, "r_await", "mean time of a read; null: none", show=_time),
    _of_device("writes", "writes_per_s", NUMBER, "writes/s", show=_number, right=True),
    _of_device("write_await_s", "write_await_s", SECONDS, "w_await", "mean time of a write; null: none", show=_time),
    _of_device("read_bytes", "read_bytes_per_s", NUMBER, "read/s", show=_size, right=True, rank=2),
    _of_device("written_bytes", "written_bytes_per_s", NUMBER, "written/s", show=_size, right=True, rank=2),
    _of_device("flushes", "flushes_per_s", NUMBER, "flushes/s", show=_number, right=True, rank=5),
    _of_device("flush_await_s", "flush_await_s", SECONDS, "f_await", "mean time of a flush; null: none", show=_time, rank=5),
    _of_device("discards", "discards_per_s", NUMBER),
    _of_device("in_flight", "in_flight", ID, "in flight", "requests at the end of the window", rank=4),
    _of_device("scheduler", "scheduler", TEXT, "scheduler", rank=6),
    _of_device("write_cache", "write_cache", TEXT, "write cache", "write back: a flush makes writes durable", rank=7),
    _of_device("is_rotating", "is_rotating", FLAG, words="a hard disk, as it says; virtual disks often do"),
)  # fmt: skip


def _what(row: DeviceRow) -> str:
    device = row.device
    parts = (
        " ".join(device.mounts[:2]),
        device.model or "",
        f"on {' '.join(device.stacked_on)}" if device.stacked_on else "",
    )
    return ", ".join(part for part in parts if part)


DEVICE_COLUMNS = (*_DEVICE, Field("what", TEXT, "mounted at", _what, json=False, shrinks=10, rank=3), _WHY)
DEVICE = (
    *_DEVICE,
    _of_device(
        "model", "model", TEXT, words="its model, a dm device's name, an md device's level, a loop device's file"
    ),
    _of_device("stacked_on", "stacked_on", list_of(TEXT), words="the devices below it"),
    _of_device("mounts", "mounts", list_of(TEXT)),
    _WHY,
)
