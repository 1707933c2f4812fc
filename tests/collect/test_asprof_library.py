"""Finding async-profiler's library, and whether a process can load it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import asyncprofiler
import pytest

from opskit.collect.asprof_library import check_fits, find_library, is_same, mapped_libraries, newest_jdk, read_library
from opskit.errors import BadInput, NotSupported, UsageError
from opskit.jvm.attach.target import AttachTarget
from opskit.jvm.discover import HOTSPOT, Jvm
from opskit.proc.fs import ProcFS

WAITING = '#include <unistd.h>\nint main(void) { write(1, "up\\n", 3); pause(); return 0; }\n'
AGENT = (
    'const char name[] = "async-profiler";\nint Agent_OnAttach(void *vm, char *options, void *rest) { return %s; }\n'
)


def target(pid):
    return AttachTarget(Jvm(pid, pid, HOTSPOT, os.geteuid(), None, "Main"), os.geteuid(), os.getegid(), (), 17)


def agent(compiler, place, result="0", before=""):
    if not shutil.which(compiler):
        pytest.skip("needs the Debian packages gcc and musl-tools")
    path = place / f"{compiler}-libasyncProfiler.so"
    command = [compiler, "-shared", "-fPIC", "-o", path, "-x", "c", "-"]
    subprocess.run(command, input=before + AGENT % result, text=True, check=True)
    return read_library(str(path))


LOADING = """
#include <dlfcn.h>
#include <stdio.h>
int main(int count, char **words) { puts(dlopen(words[1], RTLD_NOW) ? "loaded" : dlerror()); return 0; }
"""


@pytest.fixture
def musl_process(tmp_path):
    if not shutil.which("musl-gcc"):
        pytest.skip("needs the Debian package musl-tools")
    program = tmp_path / "waiting"
    subprocess.run(["musl-gcc", "-o", program, "-x", "c", "-"], input=WAITING, text=True, check=True)
    process = subprocess.Popen([program], stdout=subprocess.PIPE)
    process.stdout.readline()
    yield process.pid
    process.kill()
    process.wait()
    process.stdout.close()


def test_where_it_is_found(tmp_path):
    """An installation, its program, the library itself, a link to it; by the option, the variable, PATH."""
    library = asyncprofiler.library()
    home = tmp_path / "async-profiler-4.0"
    (home / "bin").mkdir(parents=True)
    (home / "lib").mkdir()
    (home / "bin" / "asprof").touch()
    copy = shutil.copy(library, home / "lib")
    (tmp_path / "link").symlink_to(home / "bin" / "asprof")
    (tmp_path / "asprof").symlink_to(home / "bin" / "asprof")
    for path in (home, home / "bin", home / "bin" / "asprof", tmp_path / "asprof", copy):
        assert find_library(str(path), {}) == str(copy)
    assert find_library(None, {"OPSKIT_ASPROF": str(home)}) == str(copy)
    assert find_library(str(copy), {"OPSKIT_ASPROF": "/nowhere"}) == str(copy)
    assert find_library(None, {"PATH": f"/nowhere:{home}/bin"}) == str(copy)
    assert find_library(None, {"PATH": str(tmp_path)}) == str(copy)


@pytest.mark.parametrize("given", ["/nowhere/lib.so", "/proc", "/dev"])
def test_nothing_there(given):
    """A place that was named and has none is an error, whatever else is installed."""
    with pytest.raises(UsageError, match=f"--asprof {given}"):
        find_library(given, {"OPSKIT_ASPROF": asyncprofiler.library()})


def test_nothing_anywhere(monkeypatch):
    """The error names the places and the option."""
    monkeypatch.setattr("opskit.collect.asprof_library._usual", lambda fs: iter(()))
    with pytest.raises(UsageError, match=r"no async-profiler found .*--asprof"):
        find_library(None, {"PATH": "/nowhere"})


def test_what_is_no_profiler(tmp_path):
    """A text, another library, a directory, a FIFO, a cut file: errors that name the path."""
    (tmp_path / "text").write_text("x")
    os.mkfifo(tmp_path / "fifo")
    with open(asyncprofiler.library(), "rb") as file:
        (tmp_path / "cut").write_bytes(file.read(4000))
    for path in (tmp_path / "text", tmp_path / "fifo", tmp_path / "cut", tmp_path, sys.executable, tmp_path / "none"):
        with pytest.raises(BadInput, match=str(os.path.realpath(path))):
            read_library(os.path.realpath(path))


def test_versions_without_ctimer(tmp_path):
    """They are sampled by the event cpu."""
    assert read_library(asyncprofiler.library()).has_ctimer
    assert not agent("gcc", tmp_path).has_ctimer


def test_a_library_for_musl_in_glibc(tmp_path):
    """Refused with both libraries' names; one for glibc fits."""
    fs = ProcFS()
    with pytest.raises(NotSupported, match=r"built for musl, and .*runs with glibc"):
        check_fits(fs, target(os.getpid()), agent("musl-gcc", tmp_path))
    check_fits(fs, target(os.getpid()), agent("gcc", tmp_path))
    check_fits(fs, target(os.getpid()), read_library(asyncprofiler.library()))


def test_a_library_for_glibc_in_musl(tmp_path, musl_process):
    """Refused where it needs what musl lacks; async-profiler 4.0 needs nothing of the kind."""
    fs = ProcFS()
    check_fits(fs, target(musl_process), agent("musl-gcc", tmp_path))
    check_fits(fs, target(musl_process), read_library(asyncprofiler.library()))
    needs = agent("gcc", tmp_path, "gnu_get_libc_version() != 0", "const char *gnu_get_libc_version(void);\n")
    with pytest.raises(NotSupported, match=r"built for glibc, and .*runs with musl .*lacks gnu_get_libc_version"):
        check_fits(fs, target(musl_process), needs)
    loader = tmp_path / "loading"
    subprocess.run(["musl-gcc", "-o", loader, "-x", "c", "-"], input=LOADING, text=True, check=True)
    said = [
        subprocess.run([loader, path], capture_output=True, text=True, check=True).stdout
        for path in (asyncprofiler.library(), needs.path)
    ]  # musl itself agrees
    assert said[0] == "loaded\n"
    assert "gnu_get_libc_version: symbol not found" in said[1]


def test_a_library_that_needs_a_newer_glibc(tmp_path):
    """The version is named before anything is loaded."""
    library = agent("gcc", tmp_path, "puts(options)", "int puts(const char *);\n")
    future = library._replace(data=library.data.replace(b"GLIBC_2.2.5\0", b"GLIBC_9.9.9\0"))
    assert future != library
    with pytest.raises(NotSupported, match=r"needs GLIBC_9\.9\.9 or later"):
        check_fits(ProcFS(), target(os.getpid()), future)


def test_a_library_for_another_machine(tmp_path):
    """The machines are named."""
    library = agent("gcc", tmp_path)
    other = bytearray(library.data)
    other[18:20] = (243).to_bytes(2, "little")
    with pytest.raises(NotSupported, match="is for riscv64, and "):
        check_fits(ProcFS(), target(os.getpid()), library._replace(data=bytes(other)))


def test_a_jvm_that_is_too_old():
    """JDK 7 and earlier."""
    with pytest.raises(NotSupported, match="JDK 7: async-profiler needs JDK 8"):
        check_fits(ProcFS(), target(os.getpid())._replace(java_major=7), read_library(asyncprofiler.library()))


@pytest.mark.parametrize(
    ("version", "newest"),
    [("4.5", 27), ("4.4", 26), ("4.2.1", 26), ("4.0", 25), ("3.0", 22), ("2.9", 20), ("1.8.4", 20), ("4.6", None), ("10.0", None), (None, None)],
)  # fmt: skip
def test_the_newest_jdk_of_a_version(version, newest):
    """By its own list of changes; none for versions that are newer than this one."""
    assert newest_jdk(version) == newest


def test_a_jvm_that_is_too_new():
    """An older profiler reads structures of the JVM that have changed since."""
    library = read_library(asprof := asyncprofiler.library())
    assert library.version == "4.0"
    check_fits(ProcFS(), target(os.getpid())._replace(java_major=25), library)
    with pytest.raises(NotSupported, match=f"is JDK 26, and async-profiler 4.0 .{asprof}. was made for JDK 25"):
        check_fits(ProcFS(), target(os.getpid())._replace(java_major=26), library)


@pytest.mark.parametrize("place", ["", "x\f1000-2000 r-xp 0 0:0 0  "])
def test_which_are_mapped(tmp_path, spawn, place):
    """A library that a process has loaded, deleted or not, and whether it is the same one; whatever its path looks like."""
    library = agent("gcc", tmp_path)
    (tmp_path / place).mkdir(exist_ok=True)
    path = shutil.copy(library.path, tmp_path / place / "libasyncProfiler.so")
    process = spawn(
        "import ctypes, sys; x = ctypes.CDLL(sys.argv[1]); print('up'); sys.stdin.read()", path, stdin=subprocess.PIPE
    )
    [found] = mapped_libraries(ProcFS(), process.pid)
    assert (found.path, found.deleted) == (str(path), False)
    assert is_same(ProcFS(), process.pid, found, library)
    assert not is_same(ProcFS(), process.pid, found, read_library(asyncprofiler.library()))
    os.unlink(path)
    [found] = mapped_libraries(ProcFS(), process.pid)
    assert (found.path, found.deleted) == (str(path), True)
    process.stdin.close()
