"""async-profiler 4.0 from Maven Central, for the tests."""

from __future__ import annotations

import os
import platform
import zipfile
from pathlib import Path

import maven
import pytest
from jvms import cache, locked

ARTIFACT = "tools.profiler:async-profiler:4.0"
_FOLDERS = {"x86_64": "linux-x64", "aarch64": "linux-arm64"}


def library() -> str:
    """The path of its library for this machine, unpacked once beside the tests' JVMs, readable by every user."""
    folder = _FOLDERS.get(platform.machine())
    if folder is None:
        pytest.skip("async-profiler has no library for this machine")
    archive = maven.jars(ARTIFACT)
    place = cache() / f"{Path(archive).stem}-{folder}"
    with locked(place.name):
        if not place.exists():
            beside = place.with_suffix(".part")
            (beside / "lib").mkdir(parents=True)
            with zipfile.ZipFile(archive) as jar:
                (beside / "lib" / "libasyncProfiler.so").write_bytes(jar.read(f"{folder}/libasyncProfiler.so"))
            os.rename(beside, place)
    return str(place / "lib" / "libasyncProfiler.so")
