"""The command that a suspect of `opskit mem PID` names is typed where it was named."""

from __future__ import annotations

import json
import os
from pathlib import Path

import cgroups
import holders
import pytest
from nextsteps import try_next

pytestmark = pytest.mark.xdist_group("JVMs by PID")
MIB = holders.MIB
JVMS = {
    "deflaters=300": lambda found: try_next(found, "memory-in-malloc"),
    "threads=300": lambda found: try_next(found, "memory-in-thread-stacks"),
    "loaders=3000": lambda found: try_next(found, "memory-in-class-loaders"),
    "classes=8000": lambda found: try_next(found, "memory-in-metaspace"),
    "fragments=16": lambda found: try_next(found, "memory-in-arenas"),
}
NATIVE = {
    "huge=60": lambda found: try_next(found, "memory-in-huge-pages"),
    "memfd=60": lambda found: try_next(found, "memory-in-shared-memory"),
}


@pytest.fixture
def suspects(inprocess):
    """What `opskit mem PID` suspects."""
    return lambda pid: json.loads(inprocess("mem", pid, "-f", "json").out)["suspects"]


@pytest.mark.parametrize("mode", JVMS)
def test_of_a_jvm(suspects, mode):
    with holders.java(mode, version=21) as held:
        JVMS[mode](suspects(held.pid))


@pytest.mark.parametrize("mode", NATIVE)
def test_of_a_native_program(suspects, mode):
    with holders.native(mode) as held:
        NATIVE[mode](suspects(held.pid))


def test_of_shared_memory_that_nobody_maps(suspects, root_only):
    """Of a process that has ended, whose file the fix removes; written by one that goes on: a file of a tmpfs."""
    name = Path(f"/dev/shm/opskit-test-next-{os.getpid()}")
    with cgroups.new_cgroup("memory", f"opskit-test-next-{os.getpid()}", "memory.max memory.limit_in_bytes") as place:
        limit = next(place / each for each in ("memory.max", "memory.limit_in_bytes") if (place / each).exists())
        limit.write_text(str(200 * MIB))
        try:
            with holders.native(f"shm=40:{name.name}", cgroup=place):
                pass
            with holders.native("anon=2", cgroup=place) as held:
                found = suspects(held.pid)
                assert found[0]["fix"] == f"rm {name}"
                try_next(found, "memory-of-dead-process")
                with open(name, "rb"):  # now it is held
                    found = suspects(held.pid)
                    assert found[0]["code"] == "memory-in-tmpfs"
                    try_next(found, "memory-in-tmpfs")
        finally:
            name.unlink()
