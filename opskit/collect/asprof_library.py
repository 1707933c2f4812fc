"""Find the library of an async-profiler, and check whether a JVM can load it, before anything is sent to the JVM."""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING

from opskit.errors import AttachError, BadInput, NotSupported, UsageError
from opskit.jvm.attach.target import command_words, is_disabled
from opskit.jvm.launch import last_flag
from opskit.proc.elf.dynamic import glibc_versions, libc_of, symbols
from opskit.proc.elf.file import DYNAMIC, LOAD, elf_of
from opskit.proc.files.maps import parse_maps
from opskit.proc.fs import ProcFS, optional
from opskit.proc.memory import read_memory
from opskit.quantities import hexadecimal, listed
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from opskit.jvm.attach.target import AttachTarget
    from opskit.proc.elf.file import ElfFile

OPTION, VARIABLE = "--asprof", "OPSKIT_ASPROF"
NAMES = ("libasyncProfiler.so", "libasync-profiler.so")
_PROGRAMS = ("asprof", "profiler.sh")
_BELOW = ("lib", "build/lib", "build", "", "../lib")
_USUAL_PARENTS = ("/opt", "/usr/local", "/usr/local/share", "/usr/share")
_USUAL_LIBRARIES = ("/usr/local/lib", "/usr/lib", "/usr/lib64")
_LARGEST_BYTES = 64 << 20  # version 4.0 has half a megabyte
_MARK = b"async-profiler"
_MOST_NAMED = 3
_OLDEST_JDK = 8
_MAPPING = re.compile(
    r"([0-9a-f]{1,16})-([0-9a-f]{1,16}) \S+ \S+ \S+ \S+ *(/.*/libasync-?[pP]rofiler[^/]*\.so)( \(deleted\))?"
)
_VERSION = re.compile(rb"(?<=\0)[0-9]{1,2}\.[0-9]{1,2}(?:\.[0-9]{1,3})?(?=\0)")
_NEWEST_JDKS = (([4, 5], 27), ([4, 1], 26), ([4, 0], 25), ([3, 0], 22), ([2, 0], 20))
_COMPARED_BYTES = 1 << 16


class Library(NamedTuple):
    """A library that was read and is an async-profiler for this kind of machine.

    `has_ctimer`: it can sample by timers of threads. `version`: None where it does not name exactly one.
    """

    path: str
    data: bytes
    has_ctimer: bool
    version: str | None = None


def find_library(given: str | None, environment: Mapping[str, str]) -> str:
    """The path of the library: of --asprof PATH, else of OPSKIT_ASPROF, else of an asprof on PATH or in the usual places.

    A path is that of the library, of the asprof program, or of the directory of an installation. Raises UsageError where there is none.
    """
    ours = ProcFS()
    for source, path in ((OPTION, given), (VARIABLE, environment.get(VARIABLE))):
        if path:
            found = next(_libraries_of(ours, path), None)
            if found is None:
                raise UsageError(f"{source} {path}: {_why_none(ours, path)}")
            return found
    named = (f"{place}/{name}" for place in environment.get("PATH", "").split(":") if place for name in _PROGRAMS)
    found = next((library for path in (*named, *_usual(ours)) for library in _libraries_of(ours, path)), None)
    if found is None:
        places = "not on PATH, in /opt, /usr/local or /usr/lib"
        raise UsageError(f"no async-profiler found ({places}); name its directory: {OPTION} /path/to/async-profiler")
    return found


def _usual(fs: ProcFS) -> Iterator[str]:
    for parent in _USUAL_PARENTS:
        names = sorted(optional(fs.names_at, parent, default=[]), reverse=True)  # the newest version first
        yield from (f"{parent}/{name}" for name in names if name.startswith("async-profiler"))
    yield from (f"{place}/{name}" for place in _USUAL_LIBRARIES for name in NAMES)


def _libraries_of(fs: ProcFS, path: str) -> Iterator[str]:
    """The library at a path, next to a program or in an installation."""
    real = posixpath.realpath(path)
    if optional(fs.names_at, real) is not None:
        places = [f"{real}/{below}" for below in _BELOW]
    elif posixpath.basename(real) in _PROGRAMS:
        places = [f"{posixpath.dirname(real)}/{below}" for below in _BELOW]
    else:
        if optional(fs.file_id_at, real) is not None:
            yield real
        return
    for place in places:
        for name in NAMES:
            library = posixpath.realpath(f"{place}/{name}")
            if optional(fs.file_id_at, library) is not None:
                yield library


def _why_none(fs: ProcFS, path: str) -> str:
    if optional(fs.file_id_at, posixpath.realpath(path)) is None:
        return "no such file or directory"
    return f"no {NAMES[0]} below it"


def read_library(path: str) -> Library:
    """Read a library. Raises BadInput for what is no async-profiler, and for a file that cannot be read."""
    try:
        _, data = ProcFS().read_untrusted(posixpath.dirname(path) or ".", posixpath.basename(path), _LARGEST_BYTES)
    except OSError as error:
        raise BadInput(path, error.strerror or "cannot be read") from None
    image = elf_of(data)
    if image is None:
        raise BadInput(path, "is not an ELF shared library of a 64-bit little-endian machine")
    if (
        image.segment(DYNAMIC) is None
        or _MARK not in data.lower()
        or not symbols(image, defined=True) & {b"Agent_OnAttach"}
    ):
        raise BadInput(path, "is not async-profiler's library: it has no Agent_OnAttach, or does not name itself")
    versions = set(_VERSION.findall(data))
    return Library(path, data, b"ctimer\0" in data, versions.pop().decode() if len(versions) == 1 else None)


def newest_jdk(version: str | None) -> int | None:
    """The newest JDK that a version was made for, by its CHANGELOG.md; None: unknown, or newer than that list."""
    numbers = [int(part) for part in version.split(".")[:2]] if version else []  # a number: matched by _VERSION
    if not numbers or numbers > _NEWEST_JDKS[0][0]:
        return None
    return next((jdk for first, jdk in _NEWEST_JDKS if numbers >= first), _NEWEST_JDKS[-1][1])


def check_fits(fs: ProcFS, target: AttachTarget, library: Library) -> None:
    """Raise NotSupported or AttachError where the JVM cannot load the library, or refuses to."""
    if target.java_major is not None and target.java_major < _OLDEST_JDK:
        raise NotSupported(f"{target.who} is JDK {target.java_major}: async-profiler needs JDK {_OLDEST_JDK} or later")
    newest = newest_jdk(library.version)
    if newest is not None and (target.java_major or 0) > newest:
        raise NotSupported(
            f"{target.who} is JDK {target.java_major}, and async-profiler {library.version} ({library.path}) was made for JDK {newest} "
            "and earlier: it could crash the JVM; use a newer async-profiler, or --sampler unwind"
        )
    if is_disabled(fs, target.jvm):
        raise AttachError("disabled", target.who)
    if last_flag(*command_words(fs, target.pid), "EnableDynamicAgentLoading") == "-XX:-EnableDynamicAgentLoading":
        raise NotSupported(
            f"{target.who} was started with -XX:-EnableDynamicAgentLoading and loads no library of a client; "
            "--sampler unwind needs none"
        )
    image = elf_of(library.data)
    if image is not None:
        _check_machine(fs, target, library, image)
        _check_libc(fs, target, library, image)


def _check_machine(fs: ProcFS, target: AttachTarget, library: Library, image: ElfFile) -> None:
    """By the JVM's own program: a 32-bit JVM may run on a 64-bit machine."""
    head = optional(fs.read_at, fs.path(target.pid, "exe"), 0, 64, default=b"")
    program = elf_of(head)
    if head and (program is None or program.machine != image.machine):
        theirs = "another kind of machine" if program is None else _machine(program.machine)
        raise NotSupported(f"{library.path} is for {_machine(image.machine)}, and {target.who} for {theirs}")


def _machine(number: int) -> str:
    return {62: "x86-64", 183: "aarch64", 21: "ppc64", 243: "riscv64", 258: "loongarch64"}.get(
        number, f"ELF machine {number}"
    )


def _check_libc(fs: ProcFS, target: AttachTarget, library: Library, image: ElfFile) -> None:
    """A library for musl needs musl; one for glibc loads in musl where musl has all symbols that it needs (3.0 and later)."""
    space = fs.maybe(parse_maps, target.pid, "maps")
    wanted = libc_of(image)
    if space is None or space.libc is None or wanted is None:
        return
    runs = f"{target.who} runs with {'musl' if space.musl else 'glibc'} ({space.libc})"
    if wanted == "musl" and not space.musl:
        raise NotSupported(f"{library.path} was built for musl, and {runs}; use the build for glibc")
    libc = elf_of(optional(fs.read_inside, target.pid, space.libc, _LARGEST_BYTES, default=b""))
    if libc is None or wanted == "musl":
        return
    if space.musl:
        # Libraries of the JDK and libdl's part of musl are in ld-musl too; C++ is linked statically.
        lacking = sorted(name for name in symbols(image, defined=False) - symbols(libc, defined=True))
        if lacking:
            shown = listed([name.decode("latin-1") for name in lacking], _MOST_NAMED)
            raise NotSupported(
                f"{library.path} was built for glibc, and {runs}, which lacks {shown}; use a build for musl"
            )
    elif lacking := sorted(glibc_versions(image) - glibc_versions(libc), key=_by_number):
        raise NotSupported(f"{library.path} needs {lacking[-1].decode()} or later, and {runs}, which is older")


class Mapped(NamedTuple):
    """A library of that name that a process has mapped: `begin` and the sum of its mappings, in bytes."""

    path: str
    deleted: bool
    begin: int
    size_bytes: int


def mapped_libraries(fs: ProcFS, pid: int) -> list[Mapped]:
    """The async-profilers that a process has loaded, each by its path in the process's mount namespace."""
    found: dict[str, Mapped] = {}
    root = optional(fs.link, pid, "root", default=b"/").decode("utf-8", "surrogateescape").rstrip("/")  # of a chroot
    for line in fs.maybe(str, pid, "maps", default="").split("\n"):
        match = _MAPPING.fullmatch(line)
        if match:
            begin, end = (hexadecimal(match[number]) or 0 for number in (1, 2))
            path = match[3].removeprefix(root) if match[3].startswith(f"{root}/") else match[3]
            known = found.get(path) or Mapped(path, bool(match[4]), begin, 0)
            found[path] = known._replace(size_bytes=known.size_bytes + end - begin)
    return list(found.values())


def is_same(fs: ProcFS, pid: int, mapped: Mapped, library: Library) -> bool:
    """Whether a mapped library is this one, by its first segment, which has its build id and symbols and never changes."""
    image = elf_of(library.data)
    first = image.segment(LOAD) if image is not None else None
    if first is None or first.offset:
        return False
    wanted = library.data[: min(first.size, _COMPARED_BYTES)]
    return read_memory(fs, pid, mapped.begin, len(wanted)) == wanted


def _by_number(version: bytes) -> list[int]:
    return [int(part) for part in re.findall(rb"[0-9]+", version)]  # a number: matched by _VERSION
