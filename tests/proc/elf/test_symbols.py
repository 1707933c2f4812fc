"""Functions by address: as nm lists them, in stripped files, and in separate files of debugging symbols."""

from __future__ import annotations

import os
import shutil

import nativeprograms
import pytest

from opskit.proc.elf.debug_files import debug_file
from opskit.proc.elf.file import elf_in_memory, open_elf
from opskit.proc.elf.symbols import Symbols, complete_source, debug_data, dynamic_source, dynamic_symbols
from opskit.proc.fs import ProcFS
from opskit.proc.memory import ProcessMemory

FS = ProcFS()


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """An unstripped C program with a build id."""
    return nativeprograms.build("stacks.c", tmp_path_factory.mktemp("c") / "stacks", "-O2", "-Wl,--build-id")


def functions(path, *options):
    """Names by address, as nm lists them."""
    found: dict[int, set[str]] = {}
    for line in nativeprograms.run("nm", "--defined-only", *options, path).splitlines():
        address, kind, name = line.split(None, 2)
        if kind in "tTwWi":
            found.setdefault(int(address, 16), set()).add(name.partition("@")[0])
    return found


def libc():
    """The path of this Python's libc."""
    with open("/proc/self/maps") as maps:
        return next((line.split()[-1] for line in maps if line.rstrip().endswith("/libc.so.6")), None)


def test_every_function_has_a_name_of_nm(program):
    """Also where several symbols share an address."""
    image = open_elf(FS, str(program))
    symbols = Symbols([complete_source(image)])
    wanted = functions(program)
    assert len(wanted) > 15
    assert [hex(at) for at in wanted if symbols.name(at) not in wanted[at]] == []
    assert symbols.name(0) is None
    assert symbols.name((1 << 64) - 1) is None


def test_the_c_library_has_the_names_of_nm_without_versions():
    """Dynamic symbols, IFUNCs among them; of several names the one with the fewest underscores."""
    path = libc()
    if path is None:
        pytest.skip("this Python has no glibc")
    symbols = Symbols([dynamic_source(open_elf(FS, path))])
    wanted = functions(path, "-D")
    assert len(wanted) > 1000
    assert [hex(at) for at in wanted if symbols.name(at) not in wanted[at]] == []
    by_name = {name: at for at, names in wanted.items() for name in names}
    assert symbols.name(by_name["__write"]) == "write"
    assert symbols.name(by_name["write"] + 1) == "write"


def test_an_address_between_functions_has_no_name(program):
    """The size ends a function: padding and stripped functions behind it are not its part."""
    stripped = shutil.copy(program, f"{program}.stripped")
    nativeprograms.run("strip", stripped)
    image = open_elf(FS, stripped)
    assert complete_source(image) is None
    names = Symbols([dynamic_source(image)])
    assert [name for at in functions(program) if (name := names.name(at)) in ("spin", "deep", "main")] == []


def test_wanted_dynamic_symbols_are_found_in_the_file_and_in_memory():
    """The addresses of nm; in memory by the dynamic segment, whose addresses the dynamic linker has changed."""
    path = libc()
    if path is None:
        pytest.skip("this Python has no glibc")
    with open("/proc/self/maps") as maps:
        begin = next(int(line.split("-")[0], 16) for line in maps if line.rstrip().endswith(path))
    wanted = frozenset((b"write", b"qsort", b"no_such_function"))
    by_name = {name: at for at, names in functions(path, "-D").items() for name in names}
    expected = {name: by_name[name] for name in ("write", "qsort")}
    assert dynamic_symbols(open_elf(FS, path), wanted) == expected
    loaded = elf_in_memory(ProcessMemory(FS, os.getpid()), begin)
    assert dynamic_symbols(loaded, wanted) == expected
    assert loaded.build_id == open_elf(FS, path).build_id


def separated(program, tmp_path, *, build_id=True):
    """A stripped copy, and its debugging symbols beside it, linked by name."""
    copy, debug = tmp_path / "program", tmp_path / "program.debug"
    shutil.copy(program, copy)
    nativeprograms.run("objcopy", "--only-keep-debug", copy, debug)
    removed = [] if build_id else ["--remove-section=.note.gnu.build-id"]
    if not build_id:
        nativeprograms.run("objcopy", *removed, debug)
    nativeprograms.run("objcopy", "--strip-all", *removed, f"--add-gnu-debuglink={debug}", copy)
    return copy, debug


@pytest.mark.parametrize("build_id", [True, False], ids=["by build id", "by checksum"])
@pytest.mark.parametrize("directory", [".", ".debug"])
def test_names_are_read_from_the_debug_file_of_a_stripped_program(program, tmp_path, build_id, directory):
    """The file that .gnu_debuglink names: beside the program, or in .debug."""
    copy, debug = separated(program, tmp_path, build_id=build_id)
    (tmp_path / directory).mkdir(exist_ok=True)
    debug.rename(tmp_path / directory / debug.name)
    image = open_elf(FS, str(copy))
    assert complete_source(image) is None
    symbols = Symbols([complete_source(debug_file(FS, os.getpid(), image, str(copy)))])
    wanted = functions(program)
    assert [hex(at) for at in wanted if symbols.name(at) not in wanted[at]] == []


@pytest.mark.parametrize("build_id", [True, False], ids=["by build id", "by checksum"])
def test_a_debug_file_of_another_build_is_refused(program, tmp_path, build_id):
    """Neither another build id nor another checksum is taken."""
    copy, debug = separated(program, tmp_path, build_id=build_id)
    other = nativeprograms.build("stacks.c", tmp_path / "other", "-O1", "-Wl,--build-id")
    removed = [] if build_id else ["--remove-section=.note.gnu.build-id"]
    nativeprograms.run("objcopy", "--only-keep-debug", *removed, other, debug)
    assert debug_file(FS, os.getpid(), open_elf(FS, str(copy)), str(copy)) is None
    debug.unlink()
    assert debug_file(FS, os.getpid(), open_elf(FS, str(copy)), str(copy)) is None
    os.mkfifo(debug)  # is not opened
    assert debug_file(FS, os.getpid(), open_elf(FS, str(copy)), str(copy)) is None


def test_local_functions_are_found_in_gnu_debugdata(program, tmp_path):
    """Fedora's and its relatives' way: a small ELF file, compressed by xz, in a section."""
    small, copy = tmp_path / "small", tmp_path / "program"
    shutil.copy(program, copy)
    nativeprograms.run("objcopy", "--only-keep-debug", copy, small)
    nativeprograms.run("xz", small)
    nativeprograms.run("objcopy", "--strip-all", f"--add-section=.gnu_debugdata={small}.xz", copy)
    image = open_elf(FS, str(copy))
    symbols = Symbols([complete_source(debug_data(image))])
    wanted = functions(program)
    assert [hex(at) for at in wanted if symbols.name(at) not in wanted[at]] == []
    assert debug_data(open_elf(FS, str(program))) is None


def test_what_is_no_elf_file_is_none(tmp_path):
    """A text, an empty file, a directory, a FIFO (which is not opened), nothing."""
    (tmp_path / "text").write_text("#!/bin/sh\n")
    (tmp_path / "empty").touch()
    os.mkfifo(tmp_path / "fifo")
    assert [open_elf(FS, str(tmp_path / name)) for name in ("text", "empty", "fifo", ".", "missing")] == [None] * 5
