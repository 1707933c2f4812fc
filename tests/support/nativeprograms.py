"""Programs in C, C++ and assembler, compiled for the tests."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

SOURCES = Path(__file__).resolve().parents[1] / "native"
_COMPILERS = {".cpp": "g++"}


def tool(name: str) -> str:
    """The path of a compiler or a program of binutils; skip without it."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"needs {name}")
    return found


def run(*command: object) -> str:
    """What a command writes; it must succeed."""
    return subprocess.run(
        [tool(str(command[0])), *map(str, command[1:])], check=True, capture_output=True, text=True
    ).stdout


def build(source: str, target: Path, *options: str) -> Path:
    """Compile a file of tests/native."""
    run(_COMPILERS.get(Path(source).suffix, "gcc"), *options, "-o", target, SOURCES / source, "-lpthread")
    return target


@contextlib.contextmanager
def running(*command: object, settle_s: float = 0.3, cwd: object = "/") -> Iterator[int]:
    """The PID of a program that runs until the end of the block."""
    process = subprocess.Popen([*map(str, command)], stdout=subprocess.DEVNULL, cwd=str(cwd))
    try:
        time.sleep(settle_s)
        assert process.poll() is None, command
        yield process.pid
    finally:
        process.kill()
        process.wait()
