"""The core file of a crash: where the report, or kernel.core_pattern (core(5)), says that it is, and whether it is there.

# Core dump will be written. Default location: /srv/shop/core.4242
# Core dump will be written. Default location: Core dumps may be processed with "/lib/systemd/systemd-coredump %P" (or dumping to /srv/core.4242)
# Core dump will be written. Default location: Determined by the following: "/usr/share/apport/apport -p%p" (alternatively, falling back to /srv/core.4242)
# Core dump will be written. Default location: /srv/core.4242 (max size 1024 k). To ensure a full core dump, try "ulimit -c unlimited" …
# Core dump written. Default location: /srv/shop/core or core.4242      (JDK 8)
"""

from __future__ import annotations

import errno
import posixpath
import re
import stat
from typing import TYPE_CHECKING

from opskit.collect.crash.facts import Core
from opskit.proc.elf.core_notes import HEAD_BYTES, is_core, notes_at, pid_in
from opskit.proc.fs import optional
from opskit.quantities import integer
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opskit.jvm.logs.crashes.record import CrashReport
    from opskit.proc.file_id import FileId
    from opskit.proc.fs import ProcFS

_DEFAULT, _LIMITED = "Default location: ", " (max size "
_OR = re.compile(r"\((?:or dumping|alternatively, falling back) to ")
_PROGRAM = re.compile(r'(?:processed with|Determined by the following:) "([^"]*)"')
_SYSTEMD = "/var/lib/systemd/coredump"
_APPORT = "/var/crash"
_MOST_NAMES = 100_000
_LATER_S = 600.0  # a core file is written directly after the report
_NAME = re.compile(r"core(?:\.[0-9]{1,20})?|core[.-][^/]{1,200}|[^/]{1,200}\.core|vgcore\.[0-9]{1,20}")


class Around(NamedTuple):
    """Where a report lies: `beside`: its directory, in `fs`; `roots`: what stands before the paths in it, on `machine`."""

    fs: ProcFS
    beside: str
    machine: ProcFS
    roots: Sequence[str]
    core_pattern: str | None = None


def is_core_name(name: str) -> bool:
    """Whether a file has the usual name of a core file. One with this name alone may be anything."""
    return _NAME.fullmatch(name) is not None


def core_of(report: CrashReport, around: Around, written_s: float | None) -> Core | None:
    """The core file of a report, or what is known of it. None: the report does not speak of one, and none is there."""
    why = None
    for fs, path in dict.fromkeys(_candidates(report, around)):
        found = _look(fs, path)
        if isinstance(found, str):
            why = why or found
        elif found is not None:
            wrong = _why_another(fs, path, found, report.pid, written_s)
            if wrong is None:
                return Core(path, found.size_bytes, None)
            why = why or wrong
    kept = _kept_by_a_program(report, around)
    if kept or why or report.core is None:
        said = "; ".join(filter(None, (report.core, kept or why)))
        return Core(None, None, said) if said else None
    return Core(None, None, _missing(report.core, around) or report.core)


def said_paths(line: str) -> list[str]:
    """The paths in a report's line about its core file."""
    _, mark, text = line.partition(_DEFAULT)
    if not mark:
        return []
    other = _OR.search(text)
    if other:
        text = text[other.end() :].strip().removesuffix(")")
    elif _PROGRAM.search(text):
        return []
    text = text.partition(_LIMITED)[0].strip()
    first, _, second = text.partition(" or ")
    paths = [first, posixpath.join(posixpath.dirname(first), second.strip())] if second else [text]
    return [path for path in paths if path.startswith("/")]


def _candidates(report: CrashReport, around: Around) -> Iterator[tuple[ProcFS, str]]:
    paths = said_paths(report.core or "")
    for path in paths:
        for root in around.roots:
            yield around.machine, f"{root}{path}"
            for directory, pattern in by_pattern(
                path, report.pid
            ):  # HotSpot puts in the PID alone: /cores/core.%e.4242
                yield from ((around.machine, each) for each in _matching(around.machine, f"{root}{directory}", pattern))
    names = [posixpath.basename(path) for path in paths]
    if report.pid is not None:
        names.append(f"core.{report.pid}")
    for name in names:
        if name:
            yield around.fs, f"{around.beside}/{name}"
    for directory, pattern in by_pattern(around.core_pattern or "", report.pid):
        places = [(around.machine, f"{root}{directory}") for root in around.roots if directory]
        for fs, place in places or [(around.fs, around.beside)]:
            yield from ((fs, each) for each in _matching(fs, place, pattern))


def by_pattern(pattern: str, pid: int | None) -> Iterator[tuple[str, re.Pattern[str]]]:
    """(directory, or empty for the working directory; its file's names) of kernel.core_pattern."""
    directory, _, name = pattern.rpartition("/")
    if pattern.startswith("|") or "%" in directory or pid is None or "%" not in name:
        return
    parts = re.split(r"%(.)", name)
    known = {"p": str(pid), "P": str(pid), "i": r"[0-9]{1,10}", "I": r"[0-9]{1,10}", "%": "%"}
    if not {"p", "P"} & set(parts[1::2]) and not any(str(pid) in part for part in parts[::2]):
        return
    names = "".join(
        known.get(part, r"[^/]{0,255}") if place % 2 else re.escape(part) for place, part in enumerate(parts)
    )
    yield directory, re.compile(names)


def _matching(fs: ProcFS, directory: str, name: re.Pattern[str]) -> list[str]:
    listed = optional(fs.names_at, directory, _MOST_NAMES, default=[])
    return [f"{directory}/{each}" for each in sorted(listed) if name.fullmatch(each)][:8]


def _look(fs: ProcFS, path: str) -> FileId | str | None:
    """The file; a sentence that says why it is unknown; None: there is none."""
    try:
        found = fs.file_id_at(path)
    except PermissionError:
        return f"whether {path} exists is unknown: permission denied"
    except (OSError, ValueError) as error:
        return f"{path}: {error}" if getattr(error, "errno", None) == errno.EIO else None
    if not stat.S_ISREG(found.mode):
        return None
    return found if found.size_bytes else f"{path} is empty: no space was left, or a limit was reached"


def _why_another(fs: ProcFS, path: str, found: FileId, pid: int | None, written_s: float | None) -> str | None:
    """Why a file is not the core file of this crash; None: it is, by the PID in it, or as far as is readable by its time."""
    head = optional(fs.read_at, path, 0, HEAD_BYTES, default=None)
    if head is not None and not is_core(head):
        return None if head[:4] == b"\x7fELF" else f"{path} is not a core file"
    at = None if head is None else notes_at(head)
    owner = None if at is None else pid_in(optional(fs.read_at, path, at, HEAD_BYTES, default=b""))
    if owner is not None and pid is not None:
        return None if owner == pid else f"{path} is a core file of process {owner}"
    if written_s is not None and found.mtime_ns / 1e9 < written_s - _LATER_S:
        return f"{path} is older than the report"
    return None


def _kept_by_a_program(report: CrashReport, around: Around) -> str | None:
    """Where systemd-coredump or apport, to which the kernel gives core files, has kept this one."""
    said, pid = f"{report.core or ''} {around.core_pattern or ''}", report.pid
    for root in around.roots if pid is not None else ():
        if "systemd-coredump" in said:
            names = optional(around.machine.names_at, f"{root}{_SYSTEMD}", _MOST_NAMES, default=[])
            kept = [name for name in names if name.startswith("core.") and integer_at(name) == pid]
            if kept:
                return f"systemd-coredump has kept it: {root}{_SYSTEMD}/{max(kept)}"
        if "apport" in said and (path := _apport(around.machine, root, report)):
            return f"apport has kept it: {path}"
    return None


def integer_at(name: str) -> int | None:
    """The PID in `core.java.1000.BOOT_ID.PID.TIMESTAMP.zst`, of systemd-coredump."""
    parts = name.split(".")
    while parts and not parts[-1].isdigit():
        parts.pop()
    return integer(parts[-2]) if len(parts) > 4 else None


def _apport(machine: ProcFS, root: str, report: CrashReport) -> str | None:
    if report.java_home is None:
        return None
    wanted = f"{report.java_home}/bin/java".replace("/", "_") + "."
    names = optional(machine.names_at, f"{root}{_APPORT}", _MOST_NAMES, default=[])
    return next((f"{root}{_APPORT}/{name}" for name in sorted(names) if name.startswith(wanted)), None)


def _missing(line: str, around: Around) -> str | None:
    """What to say where the core file is nowhere. None: the report's own sentence says it."""
    paths = said_paths(line)
    if not paths or "isabled" in line:
        return None
    where = f"{around.roots[0] if around.roots else ''}{paths[0]}"
    program = _PROGRAM.search(line)
    if program:
        return f"the kernel gave it to {program[1][:200]}; {where} does not exist here"
    return f"{where} does not exist here: deleted, not written, or on another machine"
