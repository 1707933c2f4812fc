"""Read the intervals of HdrHistogram logs, and what a load generator printed of its histogram.

sums = Sums(Choice(merge=True)); facts = collect(Request(names), sums.add); series = sums.series()
"""

from __future__ import annotations

from heapq import merge
from typing import TYPE_CHECKING

from opskit.collect.hdr.facts import BadLine, Facts
from opskit.errors import BadInput
from opskit.jvm.logs.hdr.lines import Bad, Log, lines_of
from opskit.jvm.logs.hdr.spectrum import Printed, looks_printed
from opskit.proc.user_files import UserFile, open_files
from opskit.quantities import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from opskit.collect.hdr.facts import Request
    from opskit.jvm.logs.hdr.record import Interval
    from opskit.jvm.logs.hdr.spectrum import Spectrum

_MOST_BAD = 10
_WRITERS = (
    "HistogramLogWriter writes it, jHiccup, cassandra-stress with -log hdrfile=FILE, and wrk2 prints one with --latency"
)


class Reader:
    """A reader of logs; it opens all of them first. Raises BadInput and NotPermitted before anything is read."""

    def __init__(self, ask: Request) -> None:
        files = open_files(ask.names, "hdr")
        self._printed = {file.name for file in files if looks_printed(file.head)}
        self._files = [file._replace(head=b"") for file in files]  # of hundreds of files it would be much
        self._intervals = self._bad_lines = self._spectra = 0
        self._bad: list[BadLine] = []
        self._cut: list[str] = []
        self._readers: list[Log | Printed] = []

    def found(self) -> Iterator[Interval | Spectrum]:
        """The intervals of all logs, by time across them and in their order within each; then what was printed.

        Raises BadInput where there is nothing.
        """
        logs = [file for file in self._files if file.name not in self._printed]
        if len(logs) == 1:
            yield from self._of_log(logs[0])
        else:
            yield from merge(*map(self._of_log, logs), key=_begin)
        for file in self._files:
            if file.name in self._printed:
                yield from self._of_output(file)
        if not self.has_any:
            raise self._nothing()

    @property
    def has_any(self) -> bool:
        """Whether something was found so far."""
        return bool(self._intervals or self._spectra)

    def _of_log(self, file: UserFile) -> Iterator[Interval]:
        log = Log(file.name)
        self._readers.append(log)
        for found in log.read(file.chunks()):
            if not isinstance(found, Bad):
                self._intervals += 1
                yield found
            elif found.cut:
                self._cut.append(file.name)
            else:
                self._bad_lines += 1
                if len(self._bad) < _MOST_BAD:
                    self._bad.append(BadLine(file.name, found.number, found.why))

    def _of_output(self, file: UserFile) -> Iterator[Spectrum]:
        printed = Printed(file.name)
        self._readers.append(printed)
        for found in printed.read(lines_of(file.chunks())):
            self._spectra += 1
            yield found

    def _nothing(self) -> BadInput:
        first, more = self._files[0].name, len(self._files) - 1
        lines = sum(reader.lines for reader in self._readers)
        if self._bad:
            bad = self._bad[0]
            why = f"no histogram in {plural(lines, 'line')}; line {bad.number} of {bad.file}: {bad.why}"
        else:
            why = f"no histogram in {plural(lines, 'line')}" if lines else "the file is empty"
        return BadInput(f"{first} and {more} more" if more else first, f"{why}; {_WRITERS}")

    def facts(self, *, interrupted: bool = False) -> Facts:
        """What was read so far."""
        lines = sum(reader.lines for reader in self._readers)
        names = [file.name for file in self._files]
        return Facts(names, lines, self._intervals, self._bad_lines, self._bad, self._cut, interrupted)


def _begin(interval: Interval) -> tuple[bool, float]:
    return interval.dated, interval.begin_s


def collect(ask: Request, take: Callable[[Interval | Spectrum], object]) -> Facts:
    """Read all logs; each interval is taken as it comes, and not kept. Ctrl-C ends it: what was read counts."""
    reader = Reader(ask)
    try:
        for found in reader.found():
            take(found)
    except KeyboardInterrupt:  # a pipe without an end
        if not reader.has_any:
            raise
        return reader.facts(interrupted=True)
    return reader.facts()
