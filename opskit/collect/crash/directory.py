"""The crash reports in one directory, which may be hostile: only regular files are opened, links are not followed, reads are bounded."""

from __future__ import annotations

import errno
import posixpath
import re
import stat
import zlib
from typing import TYPE_CHECKING

from opskit.collect.crash.cores import Around, core_of, is_core_name
from opskit.collect.crash.facts import Read, Unread
from opskit.errors import BadInput
from opskit.jvm.logs.crashes.report import MARKS, parse_all
from opskit.proc.file_id import kind_of
from opskit.proc.fs import optional
from opskit.proc.user_files import GZIP, gunzip
from opskit.quantities import plural
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from opskit.jvm.logs.crashes.record import CrashReport
    from opskit.proc.file_id import FileId
    from opskit.proc.fs import ProcFS

LARGEST_BYTES = 64 << 20  # a report of 65,530 mappings has 3 MiB; unpacked, too
MOST_REPORTS = 500  # of a directory, the newest
_MOST_NAMES = 200_000
# hs_err_pid42.log, hs_err_pid42.log.1.gz, hs_err_pid42.log-20260131, java_error_in_IDEA_42.log, javacore.20240131.120000.42.0001.txt
_REPORT = re.compile(
    r"(?:hs_err|java_error)[^/]{0,200}?\.(?:log|txt)(?:[.-][0-9]{1,10})?(?:\.gz)?|javacore[^/]{0,200}?\.txt(?:\.gz)?"
)
_WHY = {errno.ELOOP: "a symbolic link, which is not followed here; name the file itself", errno.EACCES: "permission denied",
        errno.EFBIG: f"larger than {LARGEST_BYTES >> 20} MiB", errno.ENOTDIR: "not a directory"}  # fmt: skip
_MOST_SNIFFED, _SNIFFED_BYTES, _MOST_DIRECTORIES = 2000, 256, 500
_LONG, _KEPT = 4 << 20, 1 << 16  # of a program's output before a report
_BEGINNINGS = (
    b"#\n# A fatal error ",
    b"#\n# There is insufficient memory for the Java",
    b"#\r\n# A fatal error ",
    b"#\n# An unexpected error ",
)


class Listing(NamedTuple):
    """A directory's reports, as paths that are shown, newest first, and its core files, whose names alone are known."""

    reports: Sequence[tuple[str, FileId]]
    cores: Sequence[tuple[str, FileId]] = ()
    unread: Sequence[Unread] = ()


def is_report_name(name: str) -> bool:
    """Whether a file has the usual name of a crash report."""
    return _REPORT.fullmatch(name) is not None


def list_directory(fs: ProcFS, directory: str, named: re.Pattern[str] | None = None, *, sniff: bool = False) -> Listing:
    """The names that reports and core files have, and reports whose names match `named`. Raises OSError where it cannot be listed.

    `sniff`: also logs and texts with other names that begin as a report does.
    """
    listed = fs.names_at(f"{directory}/.", _MOST_NAMES)
    names = {name for name in listed if is_report_name(name) or is_core_name(name)}
    others: list[str] = []
    if named is not None:  # a JVM's option, which may name any file
        others = sorted(name for name in names.symmetric_difference(listed) if named.fullmatch(name))
    elif sniff:
        others = sorted(name for name in names.symmetric_difference(listed) if name.endswith((".log", ".txt")))
    names.update(name for name in others[:_MOST_SNIFFED] if _begins_as_report(fs, directory, name))
    found: list[tuple[str, FileId]] = []
    cores: list[tuple[str, FileId]] = []
    unread = []
    if len(others) > _MOST_SNIFFED:
        unread.append(
            Unread(directory, f"of {len(others):,} files with other names only {_MOST_SNIFFED:,} were looked into")
        )
    for name in sorted(names):
        is_core = is_core_name(name)
        try:
            file = fs.file_id_at(f"{directory}/{name}")
        except OSError as error:
            unread += [] if is_core else [Unread(f"{directory}/{name}", why_not_read(error))]
            continue
        if stat.S_ISREG(file.mode):
            (cores if is_core else found).append((name, file))
        elif not is_core:
            unread.append(Unread(f"{directory}/{name}", _why_of(file)))
    found.sort(key=lambda each: -each[1].mtime_ns)
    return Listing(found, cores, unread)


def subdirectories(fs: ProcFS, directory: str) -> list[str]:
    """The directories in a directory, links left out; at most so many as are looked into."""
    names = sorted(optional(fs.names_at, f"{directory}/.", _MOST_NAMES, default=[]))
    found = []
    for name in names:
        file = optional(fs.file_id_at, f"{directory}/{name}")
        if file is not None and stat.S_ISDIR(file.mode):
            found.append(f"{directory}/{name}")
            if len(found) == _MOST_DIRECTORIES:
                break
    return found


def _begins_as_report(fs: ProcFS, directory: str, name: str) -> bool:
    try:
        file = fs.hold_regular(f"{directory}/{name}")
        try:
            return file.read_at(0, _SNIFFED_BYTES).startswith(_BEGINNINGS)
        finally:
            file.close()
    except OSError:
        return False


def _why_of(file: FileId) -> str:
    return _WHY[errno.ELOOP] if stat.S_ISLNK(file.mode) else f"a {kind_of(file.mode)}, not a regular file"


def read_listed(
    fs: ProcFS, directory: str, listing: Listing, machine: ProcFS, roots: Sequence[str], core_pattern: str | None
) -> tuple[list[Read], list[Unread]]:
    """The reports of a listing. `machine`, `roots`, `core_pattern`: where their core files may be."""
    reads: list[Read] = []
    unread = list(listing.unread)
    around = Around(fs, directory, machine, roots, core_pattern)
    for name, file in listing.reports[:MOST_REPORTS]:
        path = f"{directory}/{name}"
        try:
            _, data = fs.read_untrusted(f"{directory}/.", name, LARGEST_BYTES)
            reads += reads_of(unpacked(data, path), path, file.mtime_ns / 1e9, around)
        except OSError as error:
            unread.append(Unread(path, why_not_read(error)))
        except BadInput as error:
            unread.append(Unread(path, error.problem))
    older = len(listing.reports) - MOST_REPORTS
    if older > 0:
        was = "was" if older == 1 else "were"
        unread.append(
            Unread(directory, f"{plural(older, 'older report')} {was} not read, only the newest {MOST_REPORTS}")
        )
    return reads, unread


def reads_of(data: bytes | bytearray, name: str, written_s: float | None, around: Around | None) -> list[Read]:
    """Every report in a file, with its core and replay file. Raises BadInput, which says what it is instead."""
    found = []
    for report in parse_all(data, name):
        core = None if around is None else core_of(report, around, written_s)
        replay = None
        if around is not None and report.pid is not None:
            path = f"{around.beside}/replay_pid{report.pid}.log"
            replay = path if _is_regular(optional(around.fs.file_id_at, path)) else None
        at_s = report.at_s if report.is_in_output else None  # a program's output is written on after the crash
        found.append(Read(name, report, core, written_s if at_s is None else at_s, replay))
    return found


def without_headers(reads: Iterable[Read]) -> list[Read]:
    """Without the headers that JVMs printed to a log, where their whole reports were read too."""
    found = list(reads)
    whole = [read for read in found if read.report.thread is not None]
    crashes = {_crash(read.report) for read in whole}
    names = {posixpath.basename(read.name) for read in whole}
    return [read for read in found if read.report.thread is not None or not _is_of(read.report, crashes, names)]


def _is_of(header: CrashReport, crashes: set[tuple[object, ...]], names: set[str]) -> bool:
    """Whether a header is of one of the reports: it says where the JVM has saved it, and one of a refused memory no PID."""
    saved = posixpath.basename(header.report_file or "")
    return (saved in names) if saved else _crash(header) in crashes


def _crash(report: CrashReport) -> tuple[object, ...]:
    event = report.event
    return report.pid, event.kind, event.name, event.pc, event.source, event.bytes_refused


def _is_regular(file: FileId | None) -> bool:
    return file is not None and stat.S_ISREG(file.mode)


def why_not_read(error: OSError) -> str:
    """A short reason."""
    why = str(error.strerror or error)
    if error.errno == errno.ENOENT and why.startswith("No such file"):
        return "does not exist"
    return _WHY.get(error.errno or 0, why)


def unpacked(data: bytes, name: str) -> bytes | bytearray:
    """A file's text, unpacked where it is gzip; of a truncated or damaged one what can be read. Raises BadInput."""
    return joined(_gunzipped(data), name, LARGEST_BYTES) if data.startswith(GZIP) else data


def _gunzipped(data: bytes) -> Iterable[bytes]:
    try:
        yield from gunzip(data, iter(()))
    except (EOFError, zlib.error):
        return


def joined(chunks: Iterable[bytes], name: str, most_bytes: int) -> bytearray:
    """All chunks; of a long text before the first report only its beginning and end. Raises BadInput above the limit."""
    found, left, has_report = bytearray(), most_bytes, False
    for chunk in chunks:
        found += chunk
        left -= len(chunk)
        if not has_report and len(found) > _LONG:
            has_report = any(mark in found for mark in MARKS)
            if not has_report:
                found[_KEPT:-_KEPT] = b"\n"
        if left < 0:
            problem = f"more than {most_bytes >> 20} MiB, the most that is read of a crash report; give the part from `# A fatal error` on"
            raise BadInput(name, problem)
    return found
