"""How a process was started and by which C library: what sizes its threads' stacks and malloc arenas."""

from __future__ import annotations

import re
from itertools import takewhile
from typing import TYPE_CHECKING

from opskit.errors import OpskitError
from opskit.jvm.launch import parse_words
from opskit.proc.fs import optional
from opskit.quantities import integers
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from opskit.proc.files.maps import AddressSpace
    from opskit.proc.fs import ProcFS

_GLIBC_VERSION = re.compile(rb"GNU C Library[^\n]{0,80}? version ([0-9]{1,4})\.([0-9]{1,4})")
_GLIBC_BYTES = 64 << 20  # 2 MB, some 20 with debug symbols
_JAVA_VARIABLES = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")
_MALLOC_VARIABLES = ("MALLOC_ARENA_MAX", "GLIBC_TUNABLES")


class Program(NamedTuple):
    """The version of glibc, the options of a JVM in its own order (the last of a kind counts), and malloc's variables."""

    glibc: tuple[int, int] | None
    java_options: tuple[str, ...]
    malloc_options: dict[str, str]


def read_program(fs: ProcFS, pid: int, space: AddressSpace | None) -> Program:
    """What can be read; the rest is empty."""
    environ = dict(pair.split("=", 1) for pair in fs.maybe(parse_words, pid, "environ", default=[]) if "=" in pair)
    options = _shared_java_options(fs, pid) if space and space.jvm else None
    return Program(
        glibc_version(fs, pid, space.glibc) if space and space.glibc else None,
        _java_options(fs.maybe(parse_words, pid, "cmdline", default=[]), environ) if options is None else options,
        {name: environ[name] for name in _MALLOC_VARIABLES if name in environ},
    )


def _java_options(words: list[str], environ: dict[str, str]) -> tuple[str, ...]:
    tool, launcher, late = (environ.get(name, "").split() for name in _JAVA_VARIABLES)
    own = takewhile(lambda word: word.startswith("-"), words[1:])  # up to the main class
    return (*tool, *launcher, *own, *late)


def _shared_java_options(fs: ProcFS, pid: int) -> tuple[str, ...] | None:
    """The options in hsperfdata, with those of argument files, which no command line shows."""
    from opskit.jvm.discover import read_perfdata

    try:
        return tuple((read_perfdata(fs, pid).text("java.rt.vmArgs") or "").split()) or None
    except OpskitError:
        return None


def glibc_version(fs: ProcFS, pid: int, path: str) -> tuple[int, int] | None:
    """The version in the library itself, which may be any file that the process has mapped under such a name."""
    return optional(  # a capture has it of some processes
        fs.calls.work_out, fs, "glibc_version", "tuple[int, int] | None", (pid, path),
        lambda machine: _read_version(machine, pid, path),
    )  # fmt: skip


def _read_version(fs: ProcFS, pid: int, path: str) -> tuple[int, int] | None:
    directory, _, name = path.rpartition("/")
    data = optional(fs.read_inside, pid, path, _GLIBC_BYTES, default=b"")
    match = _GLIBC_VERSION.search(data)
    if match is None:
        _, data = optional(fs.read_untrusted, fs.root + directory, name, _GLIBC_BYTES, default=(None, b""))
        match = _GLIBC_VERSION.search(data)
    return _version(match.groups()) if match else None


def _version(groups: Iterable[str | bytes]) -> tuple[int, int] | None:
    numbers = integers(groups)
    return (numbers[0], numbers[1]) if numbers else None


def cpu_count(text: str) -> int | None:
    """How many CPUs a list such as `0-3,8` names; None for other text."""
    ranges = [integers(part.split("-")) or (1, 0) for part in text.strip().split(",")]
    if any(len(each) > 2 or each[-1] < each[0] for each in ranges):
        return None
    return sum(each[-1] - each[0] + 1 for each in ranges)
