"""Processes that hold memory of a known kind and size: tests/java/MemoryHolder.java and tests/native/holder.c, which say what there is."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import jvms
import nativeprograms

if TYPE_CHECKING:
    from collections.abc import Iterator

MIB = 1 << 20
_IN_CGROUP = ("sh", "-c", 'echo $$ > "$0" && exec "$@"')
_SOURCE = "holder.c"


@contextlib.contextmanager
def java(
    *modes: str,
    version: int = 17,
    options: tuple[str, ...] = ("-Xmx128m",),
    binary: str | None = None,
    cgroup: object = None,
) -> Iterator[jvms.Workload]:
    """A JVM with tests/java/MemoryHolder.java, in this directory of a memory cgroup."""
    command = [*_enter(cgroup), binary or jvms.java(version), *options, "-cp", jvms.classes(), "MemoryHolder", *modes]
    with _running(jvms.run(command, ready=False)) as held:
        yield held


@contextlib.contextmanager
def native(*modes: str, cgroup: object = None, env: dict[str, str] | None = None) -> Iterator[jvms.Workload]:
    """A process of tests/native/holder.c, in this directory of a memory cgroup."""
    command = [*_enter(cgroup), str(_program()), *modes]
    with _running(jvms.run(command, ready=False, env={**os.environ, **(env or {})})) as held:
        yield held


@contextlib.contextmanager
def _running(held: jvms.Workload) -> Iterator[jvms.Workload]:
    try:
        held.wait_for_line("READY", time.monotonic() + jvms.START_S)
        yield held
    finally:
        held.stop()


def _enter(cgroup: object) -> tuple[str, ...]:
    return (*_IN_CGROUP, f"{cgroup}/cgroup.procs") if cgroup else ()


def _program() -> Path:
    """The compiled program, in the cache directory of the tests."""
    content = (nativeprograms.SOURCES / _SOURCE).read_bytes()
    place = jvms.cache() / f"holder-{hashlib.sha256(content).hexdigest()[:16]}"
    with jvms.locked("holder"):
        if not place.exists():
            with tempfile.TemporaryDirectory(dir=jvms.cache()) as beside:
                os.rename(nativeprograms.build(_SOURCE, Path(beside) / "holder", "-O1", "-g"), place)
    return place


def grow(held: jvms.Workload, what: str) -> bool:
    """Have it hold one MiB more, of the kind with this letter; False where it was killed instead."""
    try:
        held.process.stdin.write(what.encode())
        held.process.stdin.flush()
        os.set_blocking(held.process.stdout.fileno(), True)
        line = held.process.stdout.readline()
    except BrokenPipeError:
        return False
    return line.startswith(b"GREW")


def buffers(held: jvms.Workload) -> tuple[int, int]:
    """The bytes of (direct, mapped) buffers that the JVM's own MXBeans count."""
    held.process.stdin.write(b"?")
    held.process.stdin.flush()
    held.wait_for_line("BUFFERS", time.monotonic() + jvms.START_S)
    _, direct, mapped = held.lines[-1].split()
    return int(direct), int(mapped)


def malloc_info(text: str) -> dict[str, int]:
    """Sum up what malloc_info writes: bytes `system` of all arenas, `free` inside them, in `mmap` blocks, and the number of `arenas`."""
    sums = text.rpartition("</heap>")[2]
    sizes = {kind: int(size) for kind, size in re.findall(r'<total type="(\w+)" count="\d+" size="(\d+)"/>', sums)}
    system = re.search(r'<system type="current" size="(\d+)"/>', sums)
    return {
        "system": int(system[1]),
        "free": sizes.get("fast", 0) + sizes["rest"],  # glibc 2.43 has no fast bins
        "mmap": sizes["mmap"],
        "arenas": text.count("<heap "),
    }
