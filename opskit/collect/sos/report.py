"""An sos report (a directory, or a .tar, .tar.gz, .tar.xz) as a machine of one moment: its files are where they were on it.

sosreport-web1-2026-01-02-abcdefg/
  version.txt                                sosreport: 4.5.6
  proc/ sys/ etc/                            as on the machine, where sos copies them
  sos_commands/kernel/sysctl_-a              vm.swappiness = 60
  sos_commands/process/ps_auxwwwm            a line a process, its command line last

Links and paths that lead out of an archive are left out. Nothing is unpacked to a disk.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.collect.sos.commands import files_said, kept_names
from opskit.errors import BadInput
from opskit.jvm.discover import HOTSPOT, Jvm
from opskit.jvm.launch import main_of_words, parse_words
from opskit.proc import user_files
from opskit.proc.fs import optional
from opskit.proc.recorded.tape import FILE, NAMES, Mark, Origin, Tape
from opskit.proc.treefs import TreeFS
from opskit.quantities import integer
from opskit.recorded_host import RecordedHost
from opskit.words import is_java_launcher

if TYPE_CHECKING:
    from collections.abc import Iterable

_SUFFIXES = (".tar", ".tar.gz", ".tgz", ".tar.xz", ".txz")
_MARKS = ("version.txt", "sos_commands")


class SosHost(RecordedHost):
    """The machine of an sos report."""


def is_sos(word: str) -> bool:
    """Whether a path is that of an sos report: by its name, or by what the directory or archive holds."""
    name = word.rstrip("/").rpartition("/")[2]
    if user_files.is_directory(word):
        return any(user_files.exists(f"{word.rstrip('/')}/{mark}") for mark in _MARKS)
    if not name.endswith(_SUFFIXES) or not user_files.exists(word):
        return False
    if name.startswith("sosreport") or name.endswith("xz"):
        return True
    from opskit.collect.sos.archive import first_name

    return first_name(word).startswith("sosreport")


def sos_host(path: str) -> SosHost:
    """The machine of a report. Raises BadInput."""
    if user_files.is_directory(path):
        tree = TreeFS(f"{path.rstrip('/')}/proc", path.rstrip("/"))
        tape = _tape(tree.proc, tree.root)
        commands = {}
        for name in kept_names():
            data = optional(tree.read_path, f"{tree.root}/sos_commands/{name}")
            if data is not None:
                commands[name] = data
        for file, data in files_said(commands).items():
            if optional(tree.read_path, f"{tree.root}{file}") is None:
                tape.keep(FILE, f"{tree.root}{file}", data)
        for directory, names in _directories(tape.answers[FILE][0]).items():
            if directory.startswith(tree.proc):
                there = optional(tree.names_at, directory, default=[])
                tape.keep(NAMES, directory, tuple(dict.fromkeys((*there, *names))))
        return SosHost(tape, tree, path)
    from opskit.collect.sos.archive import archive_files

    return SosHost(sos_tape(archive_files(path), path), path=path)


def sos_tape(files: Iterable[tuple[str, bytes]], path: str) -> Tape:
    """The files of a report, by their paths below its directory, on a tape. Raises BadInput for what is no report."""
    tape = _tape("/proc", "")
    commands: dict[str, bytes] = {}
    has_mark = False
    for name, data in files:
        has_mark = has_mark or name.startswith(_MARKS)
        if name.startswith("sos_commands/"):
            commands[name.partition("/")[2]] = data
        else:
            tape.keep(FILE, f"/{name}", data)
    if not has_mark:
        raise BadInput(path, "not an sos report: it has neither version.txt nor sos_commands/")
    held = tape.answers[FILE][0]
    for file, data in files_said(commands).items():
        held.setdefault(file, data)
    for directory, names in _directories(held).items():
        tape.keep(NAMES, directory, names)
    return tape


def _tape(proc: str, root: str) -> Tape:
    origin = Origin(proc=proc, root=root, is_live=False, has_our_root=False, is_own=False, uses_nss=False)
    return Tape(origin, (Mark(0.0, 0.0),))


def _directories(paths: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """The names in each directory of these files."""
    found: dict[str, dict[str, None]] = {}
    for path in paths:
        at = path
        while at:
            directory, _, name = at.rpartition("/")
            names = found.setdefault(directory or "/", {})
            if name in names:
                break
            names[name] = None
            at = directory
    return {directory: tuple(names) for directory, names in found.items()}


def sos_jvms(host: SosHost) -> list[Jvm]:
    """The JVMs by their command lines, which ps shows. Their counters are unknown."""
    jvms = []
    for pid in sorted(
        number for name in optional(host.fs.names_at, host.fs.proc, default=[]) if (number := integer(name)) is not None
    ):
        words = host.fs.maybe(parse_words, pid, "cmdline", default=[])
        if is_java_launcher(words):
            jvms.append(Jvm(pid, pid, HOTSPOT, 0, None, main_of_words(words) or words[0]))
    return jvms
