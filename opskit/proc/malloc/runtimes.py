"""Which allocator and which language's runtime a program has: by its libraries, or linked into it by its symbols and sections."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.proc.elf.file import open_elf
from opskit.proc.files.maps import is_glibc, is_musl, other_malloc
from opskit.proc.fs import optional
from opskit.proc.mapped_files import paths_of
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opskit.proc.elf.file import ElfFile
    from opskit.proc.files.smaps import Region
    from opskit.proc.fs import ProcFS

_MOST_NAMES_BYTES = 16 << 20
# What an allocator exports that replaces malloc: the C interface of each.
_ALLOCATOR_NAMES = {
    "jemalloc": (b"mallctl", b"je_mallctl", b"_rjem_mallctl", b"_rjem_je_mallctl"),
    "tcmalloc": (b"tc_malloc", b"TCMallocInternalMalloc", b"tcmalloc_hooks"),
    "mimalloc": (b"mi_malloc", b"mi_heap_malloc"),
}
_RUNTIME_NAMES = {"CPython": (b"Py_BytesMain", b"Py_Main"), "V8": (b"_ZN2v87Isolate3NewERKNS0_12CreateParamsE",)}
_GO_SECTIONS = frozenset((".go.buildinfo", ".gopclntab", ".data.rel.ro.gopclntab", ".note.go.buildid"))
_LIBRARIES = {"CPython": "libpython", "V8": "libnode"}


class Runtime(NamedTuple):
    """The C library's or another allocator, and the runtime of a language with a heap of its own; None: not recognised."""

    allocator: str | None
    language: str | None


def read_runtime(fs: ProcFS, pid: int, regions: Sequence[Region]) -> Runtime:
    """Recognise them. A library's name counts before what is linked into the program."""
    names = {region.name for region in regions if region.name.startswith("/")}
    mapped = next((found for name in names if (found := other_malloc(name))), None)
    is_jvm = any(name.endswith("/libjvm.so") for name in names)  # its launcher has nothing of interest
    image = None if is_jvm else _program(fs, pid, regions)
    strings = _strings(image)
    language = _language(image, strings, names)
    linked = None if language == "CPython" else _named(strings, _ALLOCATOR_NAMES)  # its mimalloc is for its own objects
    libc = "glibc" if any(map(is_glibc, names)) else "musl" if any(map(is_musl, names)) else None
    return Runtime(mapped or linked or libc or ("Go" if language == "Go" else None), language)


def glibc_of(regions: Sequence[Region]) -> str | None:
    """The path of the glibc that is mapped; None: there is none."""
    names = dict.fromkeys(region.name for region in regions if region.name.startswith("/"))
    return next(filter(is_glibc, names), None)


def _program(fs: ProcFS, pid: int, regions: Sequence[Region]) -> ElfFile | None:
    """The file that the process executes."""
    path = optional(fs.link, pid, "exe", default=b"").decode("utf-8", "surrogateescape").removesuffix(" (deleted)")
    mapped = next((region for region in regions if path and region.name == path), None)
    images = (open_elf(fs, each) for each in (paths_of(fs, pid, mapped) if mapped is not None else ()))
    return next((image for image in images if image is not None), None)


def _language(image: ElfFile | None, strings: bytes, names: set[str]) -> str | None:
    if image is not None and any(section.name in _GO_SECTIONS for section in image.sections):
        return "Go"
    by_library = (language for language, library in _LIBRARIES.items() if any(f"/{library}" in name for name in names))
    return _named(strings, _RUNTIME_NAMES) or next(by_library, None)


def _strings(image: ElfFile | None) -> bytes:
    """The names of symbols, exported and (where it was not stripped) local ones."""
    sections = image.sections if image is not None else ()
    wanted = [each for each in sections if each.name in (".dynstr", ".strtab")]
    return b"".join(image.content(each, _MOST_NAMES_BYTES) for each in wanted) if image is not None else b""


def _named(strings: bytes, names: dict[str, tuple[bytes, ...]]) -> str | None:
    """Whose names are among the strings."""
    return next((what for what, each in names.items() if any(b"\0%b\0" % name in strings for name in each)), None)
