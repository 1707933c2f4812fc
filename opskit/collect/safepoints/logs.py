"""Read the safepoints of logs, in the order of time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.errors import BadInput
from opskit.jvm.logs.safepoints.log import SafepointLog
from opskit.jvm.logs.timestamps import first_stamp
from opskit.proc.user_files import UserFile, open_files
from opskit.quantities import plural
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from opskit.jvm.logs.safepoints.batch import Batch

_FLAGS = (
    "JDK 6 to 8 log safepoints with -XX:+PrintGCApplicationStoppedTime (their operations with "
    "-XX:+PrintSafepointStatistics -XX:PrintSafepointStatisticsCount=1), JDK 9 and later with -Xlog:safepoint"
)


class Request(NamedTuple):
    """The logs to read, as the user named them; `-` is standard input."""

    names: Sequence[str]


class Facts(NamedTuple):
    """What was read besides the safepoints. `names`: in the order of time; `sorted`: whether another one was given.

    `safepoints`: of all logs; `without`: logs that have none. `unreadable_at`: the first line that looks like a
    safepoint's but is not.
    """

    log: SafepointLog
    names: Sequence[str]
    sorted: bool
    lines: int
    safepoints: int
    without: Sequence[str]
    unreadable_at: str | None
    interrupted: bool


class Reader:
    """A reader of logs, batch by batch; it opens all of them first. Raises BadInput and NotPermitted before anything is read."""

    def __init__(self, ask: Request) -> None:
        self._named = open_files(ask.names, "safepoints")
        self._files = _in_order(self._named)
        self._log = SafepointLog()
        self._lines = self._count = 0
        self._without: list[str] = []
        self._unreadable_at: str | None = None

    def batches(self) -> Iterator[Batch]:
        """Log after log. Raises BadInput where none has a safepoint."""
        for file in self._files:
            yield from self._batches(file)
        if not self.has_any:
            raise self._nothing()

    @property
    def has_any(self) -> bool:
        """Whether something was found so far."""
        return bool(self._count or self._log.timeouts)

    def _batches(self, file: UserFile) -> Iterator[Batch]:
        log, before, unreadable = self._log, self._count, self._log.unreadable
        for batch in log.read(file.chunks()):
            self._count += len(batch)
            yield batch
        self._lines += log.lines
        if log.unreadable > unreadable and self._unreadable_at is None and log.first_unreadable:
            number, text = log.first_unreadable
            self._unreadable_at = f"{file.name}:{number}: {text.decode('utf-8', 'surrogateescape').strip()[:120]!r}"
        if self._count == before:
            self._without.append(file.name)

    def _nothing(self) -> BadInput:
        first, more = self._files[0].name, len(self._files) - 1
        unread = "" if self._unreadable_at is None else f", though one looks like it ({self._unreadable_at})"
        what = f"no safepoint in {plural(self._lines, 'line')}{unread}" if self._lines else "the file is empty"
        return BadInput(f"{first} and {more} more" if more else first, f"{what}; {_FLAGS}")

    def facts(self, *, interrupted: bool = False) -> Facts:
        """What was read so far."""
        names, given = ([file.name for file in files] for files in (self._files, self._named))
        found = (self._lines, self._count, self._without, self._unreadable_at)
        return Facts(self._log, names, names != given, *found, interrupted)


def collect(ask: Request, take: Callable[[Batch], object]) -> Facts:
    """Read all logs; each batch of safepoints is taken as it comes, and not kept. Ctrl-C ends it: what was read counts."""
    reader = Reader(ask)
    try:
        for batch in reader.batches():
            take(batch)
    except KeyboardInterrupt:  # a pipe without an end
        if not reader.has_any:
            raise
        return reader.facts(interrupted=True)
    return reader.facts()


def _in_order(files: Sequence[UserFile]) -> list[UserFile]:
    """By the date at which each begins, or by the uptime where not all have one; else as they were named."""
    for begins in zip(*(_begin(file.head) for file in files)):
        if None not in begins:
            order = sorted(range(len(files)), key=begins.__getitem__)
            return [files[index] for index in order]
    return list(files)


def _begin(head: bytes) -> tuple[float | None, float | None]:
    for batch in SafepointLog().read([head]):
        if len(batch):
            stamp = first_stamp(batch.head(0))
            if stamp.time_s is not None or stamp.uptime_s is not None:
                return stamp[:2]
    return first_stamp(head)[:2]
