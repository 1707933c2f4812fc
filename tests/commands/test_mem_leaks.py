"""Memory that leaks or is wasted for real, in JVMs, native programs and cgroups: `opskit mem PID` names it first."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from pathlib import Path

import cgroups
import holders
import pytest

pytestmark = pytest.mark.xdist_group("JVMs by PID")
MIB = holders.MIB
# What is held -> the modes of the program, JDKs, the first suspect, and its MiB where they are known.
JVMS = {
    "direct buffers": (("direct=80",), (11, 25), "memory-in-direct-buffers", 80),
    "small direct buffers": (("small=80",), (17, 21), "memory-in-direct-buffers", 80),
    "Deflaters": (("deflaters=300",), (11, 25), "memory-in-malloc", None),
    "threads": (("threads=300",), (17, 21), "memory-in-thread-stacks", None),
    "class loaders": (("loaders=4000",), (11, 25), "memory-in-class-loaders", None),
    "classes": (("classes=8000",), (17, 21), "memory-in-metaspace", None),
    "fragmentation": (("fragments=16",), (17, 25), "memory-in-arenas", None),
}
# The same of native programs, with a tolerance in %.
NATIVE = {
    "arenas": (("arenas=8:8",), "memory-in-malloc", 64, 4),
    "fragmentation": (("fragments=8:8",), "memory-in-arenas", 56, 4),
    "large blocks": (("blocks=60:1",), "memory-in-malloc", 60, 1),
    "threads": (("threads=200:256",), "memory-in-thread-stacks", 51, 8),
    "huge pages on stacks": (("hugestacks=30",), "memory-in-huge-pages", 60, 0),
    "anonymous": (("anon=60",), "memory-in-anonymous-mappings", 60, 1),
    "huge pages": (("huge=60",), "memory-in-huge-pages", 60, 0),
    "memfd": (("memfd=60",), "memory-in-shared-memory", 60, 0),
    "SysV segment": (("sysv=60",), "memory-in-shared-memory", 60, 0),
}


@pytest.fixture
def first_suspect(inprocess):
    """Run `opskit mem PID`: a function that returns the first suspect, and the whole JSON object."""

    def look(pid, *options):
        done = inprocess("mem", pid, *options, "-f", "json")
        assert done.code in (0, 1), done.err
        found = json.loads(done.out)
        return found["suspects"][0], found

    return look


@pytest.mark.parametrize(("leak", "version"), [(leak, version) for leak in JVMS for version in JVMS[leak][1]])
def test_leaks_outside_of_the_heap(first_suspect, leak, version):
    """Each is the first suspect; direct buffers to the byte."""
    modes, _, code, size = JVMS[leak]
    with holders.java(*modes, version=version, options=("-Xmx128m",)) as held:
        suspect, found = first_suspect(held.pid)
        assert suspect["code"] == code, found["suspects"]
        assert size is None or suspect["bytes"] == size * MIB


@pytest.mark.parametrize("what", NATIVE)
def test_memory_of_native_programs(first_suspect, what):
    """Each is the first suspect, with its size."""
    modes, code, size, percent = NATIVE[what]
    if code == "memory-in-huge-pages" and "[never]" in _read("/sys/kernel/mm/transparent_hugepage/enabled"):
        pytest.skip("needs transparent huge pages")
    with holders.native(*modes) as held:
        suspect, found = first_suspect(held.pid)
        assert suspect["code"] == code, found["suspects"]
        assert suspect["bytes"] == pytest.approx(size * MIB, rel=percent / 100)


@pytest.mark.parametrize("version", [17, 25])
def test_a_mapped_file(first_suspect, tmp_path, version):
    """It is named, with all that is in memory of it."""
    with open(tmp_path / "index.bin", "wb") as file:
        file.truncate(80 * MIB)
    with holders.java(f"mapped={tmp_path}/index.bin", version=version) as held:
        suspect, found = first_suspect(held.pid)
        assert suspect["code"] == "memory-in-mapped-files", found["suspects"]
        assert suspect["bytes"] >= 80 * MIB
        assert f"{tmp_path}/index.bin" in suspect["summary"]


@pytest.mark.parametrize("where", ["C", "17"])
def test_a_program_that_leaks_nothing(first_suspect, inprocess, where):
    """No finding, and of a JVM no suspect either."""
    with holders.native("anon=2") if where == "C" else holders.java("heap=20", version=int(where)) as held:
        found = json.loads(inprocess("mem", held.pid, "-f", "json").out)
        assert [one for one in found["findings"] if one["severity"] != "note"] == []
        assert found["suspects"] == [], found["suspects"]


@pytest.fixture
def limited(root_only):
    """The directory of a new memory cgroup with a limit of 200 MiB."""
    with cgroups.new_cgroup("memory", f"opskit-test-{os.getpid()}", "memory.max memory.limit_in_bytes") as place:
        limit = next(place / name for name in ("memory.max", "memory.limit_in_bytes") if (place / name).exists())
        limit.write_text(str(200 * MIB))
        yield place


@contextlib.contextmanager
def shared_file(place):
    """The name of a file in /dev/shm of 60 MiB, made in this cgroup by a process that has ended."""
    file = Path(f"/dev/shm/opskit-test-{os.getpid()}")
    try:
        with holders.native(f"shm=60:{file.name}", cgroup=place):
            pass
        yield file
    finally:
        file.unlink()


def test_a_shared_memory_file_of_a_dead_process(first_suspect, limited):
    """It stays charged to the cgroup; the fix removes it."""
    with shared_file(limited) as file, holders.native("anon=10", cgroup=limited) as held:
        suspect, found = first_suspect(held.pid)
        assert suspect["code"] == "memory-of-dead-process", found["suspects"]
        assert suspect["bytes"] == pytest.approx(60 * MIB, rel=0.02)
        assert suspect["fix"] == f"rm {file}"


def test_a_shared_memory_file_that_is_held(first_suspect, limited):
    """The process that maps it is told so, and no file of a dead process is seen."""
    name = f"opskit-test-{os.getpid()}"
    try:
        with holders.native(f"shm=60:{name}", cgroup=limited) as held:
            suspect, found = first_suspect(held.pid)
            assert suspect["code"] == "memory-in-shared-memory", found["suspects"]
            assert suspect["bytes"] == 60 * MIB
            assert f"/dev/shm/{name}" in suspect["summary"]
            assert not [one for one in found["suspects"] if one["code"] == "memory-of-dead-process"]
    finally:
        Path(f"/dev/shm/{name}").unlink()


def test_page_cache_of_a_cgroup(first_suspect, limited, disk):
    """It is named, as what the kernel reclaims first: no finding says that the cgroup is full."""
    with open(disk / "large", "wb") as file:
        file.truncate(250 * MIB)
    read = 'echo $$ > "$0/cgroup.procs" && cat "$1" > /dev/null'
    with holders.native("anon=2", cgroup=limited) as held:
        subprocess.run(["sh", "-c", read, limited, disk / "large"], check=True)
        suspect, found = first_suspect(held.pid)
        assert suspect["code"] == "memory-in-page-cache", found["suspects"]
        assert suspect["bytes"] > 150 * MIB
        assert [one for one in found["findings"] if one["severity"] != "note"] == []


def _read(path):
    try:
        return Path(path).read_text()
    except OSError:
        return "[never]"
