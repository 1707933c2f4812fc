"""The code of a process by address: its files, also deleted and replaced ones, the vdso, generated code."""

from __future__ import annotations

import os
import shutil
import subprocess
import time

import nativeprograms
import psutil
import pytest

from opskit.proc.files.maps import parse_code_mappings
from opskit.proc.fs import ProcFS
from opskit.proc.memory import ProcessMemory
from opskit.proc.unwind.modules import Modules

FS = ProcFS()


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """An unstripped C program."""
    return nativeprograms.build("stacks.c", tmp_path_factory.mktemp("modules") / "stacks", "-O2", "-Wl,--build-id")


def address_of(program, pid, name):
    """Where a function is in a running position-independent program."""
    symbols = {line.split()[-1]: line.split()[0] for line in nativeprograms.run("nm", program).splitlines()}
    with open(f"/proc/{pid}/maps") as maps:
        begin = int(next(line for line in maps if f"/{program.name}" in line).split("-")[0], 16)
    return begin + int(symbols[name], 16)


class Opened(Modules):
    """The modules of a process, with its memory."""

    def __init__(self, pid, fs=FS):
        super().__init__(fs, pid, ProcessMemory(fs, pid))


class NoMapFiles(ProcFS):
    """A ProcFS without the right to open map_files, as for a user without capabilities."""

    def hold_regular(self, path):
        if "/map_files/" in path:
            raise PermissionError(1, "Operation not permitted", path)
        return super().hold_regular(path)


@pytest.mark.parametrize("files", [FS, NoMapFiles()], ids=["map_files", "path"])
def test_functions_of_the_program_libc_and_the_vdso(program, files):
    """Names, rules and labels."""
    with nativeprograms.running(program) as pid:
        modules = Opened(pid, files)
        at = address_of(program, pid, "spin")
        assert modules.name(at) == "spin"
        assert modules.find(at).label == "[stacks]"
        assert modules.find(at).rule(at) is not None
        mapped = parse_code_mappings(FS.load(str, pid, "maps"))
        vdso = next(each for each in mapped if each.path == "[vdso]")
        libc = next(each for each in mapped if "/libc" in each.path)
        names = {modules.name(each) for each in range(vdso.start, vdso.end, 16)}
        assert "__vdso_clock_gettime" in names
        assert "[vdso]" in names
        assert any(modules.find(vdso.start).rule(each) for each in range(vdso.start, vdso.end, 16))
        assert modules.name(libc.end - 1).startswith("[libc")
        assert modules.name(0x1000) == "[unknown]"
        assert modules.find(0x1000) is None


@pytest.mark.parametrize("files", [FS, NoMapFiles()], ids=["map_files", "memory"])
@pytest.mark.parametrize("how", ["deleted", "replaced"])
def test_a_program_whose_file_is_gone_is_still_read(program, tmp_path, files, how):
    """By map_files that very file; else its image in memory has rules, and only the dynamic symbols."""
    copy = tmp_path / "stacks"
    shutil.copy(program, copy)
    with nativeprograms.running(copy) as pid:
        copy.unlink()
        if how == "replaced":
            shutil.copy(nativeprograms.tool("ls"), copy)
        at = address_of(program, pid, "spin")
        modules = Opened(pid, files)
        assert modules.find(at).rule(at) is not None
        assert modules.name(at) == ("spin" if files is FS else "[stacks]")


def test_another_file_at_the_path_is_not_taken_for_the_mapped_one(tmp_path):
    """A file that a mount hides is not deleted: the one at its path has another build id, and the image in memory is read."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    library, other = tmp_path / "libstacks.so", tmp_path / "other.so"
    for target, level in ((library, "-O2"), (other, "-O0")):
        nativeprograms.build("stacks.c", target, "-shared", "-fPIC", "-Wl,--build-id", level)
    code = (
        f"import ctypes, subprocess, sys, time\nctypes.CDLL({str(library)!r}); print(1, flush=True); sys.stdin.readline()\n"
        f"subprocess.run(['mount', '--bind', {str(other)!r}, {str(library)!r}], check=True); print(2, flush=True); time.sleep(60)"
    )
    command = ["unshare", "--mount", shutil.which("python3"), "-c", code]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        process.stdout.readline()
        at = address_of(library, process.pid, "sorting")
        modules = Opened(process.pid, NoMapFiles())
        before = modules.name(at), modules.find(at).rule(at + 4)
        process.stdin.write("\n")
        process.stdin.flush()
        process.stdout.readline()
        modules = Opened(process.pid, NoMapFiles())
        assert not modules.find(at).mapping.deleted
        assert (modules.name(at), modules.find(at).rule(at + 4)) == before
        assert before[0] == "sorting"
        assert before[1] is not None
    finally:
        process.kill()
        process.wait()


def test_a_library_that_is_loaded_later_is_found_after_forget():
    """The mappings are read again at most once until then."""
    code = "import sys, ctypes, time\nprint(1, flush=True); sys.stdin.readline(); ctypes.CDLL('libm.so.6'); import _json; print(2, flush=True); time.sleep(60)"
    process = subprocess.Popen(
        [shutil.which("python3"), "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        process.stdout.readline()
        modules = Opened(process.pid)
        before = {each.path for each in parse_code_mappings(FS.load(str, process.pid, "maps"))}
        assert modules.name(0x1000) == "[unknown]"
        process.stdin.write("\n")
        process.stdin.flush()
        process.stdout.readline()
        later = [each for each in parse_code_mappings(FS.load(str, process.pid, "maps")) if each.path not in before]
        if not later:
            pytest.skip("this Python had everything loaded")
        generation = modules.generation
        assert modules.find(later[0].start) is None
        modules.forget()
        assert modules.find(later[0].start).label == f"[{later[0].path.rpartition('/')[2]}]"
        assert modules.generation == generation + 1
    finally:
        process.kill()
        process.wait()


def test_generated_code_gets_the_names_of_a_perf_map_that_grows(tmp_path):
    """In the mount namespace of the process, and with its own PID there; read again when it has changed."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    code = (
        "import mmap, ctypes, os, sys, time\n"
        "m = mmap.mmap(-1, 65536, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)\n"
        "at = ctypes.addressof(ctypes.c_char.from_buffer(m))\n"
        "path = f'/tmp/perf-{os.getpid()}.map'\n"
        "open(path, 'w').write(f'{at:x} 10 first\\nnonsense\\n{at + 16:x} 10 second one\\n')\n"
        "print(at, os.getpid(), flush=True); sys.stdin.readline()\n"
        "open(path, 'a').write(f'{at:x} 8 newer\\n{at + 32:x} zz bad\\n0x{at + 64:x} 0x10 hex\\n')\n"
        "print(2, flush=True); time.sleep(60)\n"
    )
    inside = tmp_path / "tmp"
    inside.mkdir()
    command = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c"]
    script = f'mount --bind {inside} /tmp && exec "$0" -c "$1"'
    process = subprocess.Popen(
        [*command, script, shutil.which("python3"), code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )  # fmt: skip
    try:
        at, inner = map(int, process.stdout.readline().split())
        (pid,) = (each.pid for each in psutil.Process(process.pid).children(recursive=True))
        assert inner != pid
        modules = Opened(pid)
        assert [modules.name(at + each) for each in (0, 15, 16, 31, 32)] == ["first", "first", "second one", "second one", "[unknown]"]  # fmt: skip
        process.stdin.write("\n")
        process.stdin.flush()
        process.stdout.readline()
        assert modules.name(at) == "first"
        names = modules.names
        modules.forget()
        assert [modules.name(at + each) for each in (0, 64, 79, 80)] == ["newer", "hex", "hex", "[unknown]"]
        assert modules.names == names + 1
    finally:
        process.kill()
        process.wait()


def test_a_library_in_a_container_is_read_in_its_own_mount_namespace(program, tmp_path):
    """A path that exists only there."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    script = 'mount -t tmpfs none "$0" && cp "$1" "$0/stacks" && exec "$0/stacks"'
    with nativeprograms.running("unshare", "--mount", "sh", "-c", script, hidden, program, settle_s=0.5) as pid:
        deadline = time.monotonic() + 20
        while not FS.load(str, pid, "maps").count("/hidden/stacks") and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not (hidden / "stacks").exists()
        assert Opened(pid, NoMapFiles()).name(address_of(program, pid, "spin")) == "spin"


class CountsMaps(ProcFS):
    """Counts how often the mappings are read."""

    count = 0

    def read_path(self, path, *limit):
        self.count += path.endswith("/maps")
        return super().read_path(path, *limit)


def test_mappings_are_read_less_often_where_nothing_is_new():
    """A pc in no mapping: once per drain at first, then after up to eight drains."""
    files = CountsMaps()
    modules = Opened(os.getpid(), files)
    for _ in range(100):
        modules.forget()
        for pc in (0x1000, 0x2000, 0x1000):
            assert modules.find(pc) is None
    assert 10 < files.count < 25
