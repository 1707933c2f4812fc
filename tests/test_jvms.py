"""The JVMs and the Java program of the other tests."""

from __future__ import annotations

import re
import shutil
import struct
import subprocess

import jvms
import psutil
import pytest


def test_the_workload_runs_on_every_version(workload, jvm_version):
    """Every mode starts its threads on 11, 17, 21 and 25, and the program ends with its input."""
    modes = ["sleep=2", "park=2", "socket=2", "wait=2", "blocked=2", "lock=2", "nasty", "burn=2:1", "deadlock"]
    modes += ["retain=10", "lambda=2", "leak=100000", "cache=100", "allocate=100000", "gc=1000"]
    modes += ["virtual=2", "virtualburn=1"] if jvm_version >= 21 else []
    running = workload(*modes, version=jvm_version)
    assert psutil.Process(running.pid).num_threads() > 25
    running.process.stdin.close()
    running.process.wait(60)
    assert running.process.returncode == 0


def test_a_wrapped_jvm_is_found_by_its_own_pid(workload):
    """`pid` is java's, not the wrapper's."""
    running = workload("sleep=1", wrapper=("nice", "sh", "-c", '"$@"; true', "sh"))
    assert running.pid != running.process.pid
    assert psutil.Process(running.pid).exe().endswith("/java")


def test_stop_kills_what_was_started(workload):
    """stop() kills the wrapper and java."""
    running = workload(wrapper=("sh", "-c", '"$@"; true', "sh"))
    running.stop()
    assert running.has_ended()


def test_source_and_class_belong_together(tmp_path):
    """The committed classes match the source: byte for byte with the same javac, otherwise in content."""
    javac = shutil.which("javac")
    if javac is None:
        pytest.skip("needs javac")
    version = int(re.search(r"javac (\d+)", _run(javac, "-version"))[1])
    names = sorted({file.stem.partition("$")[0] for file in jvms.CLASSES.iterdir()})
    sources = [jvms.SOURCE.with_name(f"{name}.java") for name in names]
    _run(javac, "--release", "8", "-Xlint:-options", "-g", "-d", tmp_path, *sources)
    made = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    kept = {file.name: file.read_bytes() for file in jvms.CLASSES.iterdir()}
    assert made.keys() == kept.keys()
    for name, content in made.items():
        if version == 17:
            assert content == kept[name], name
        assert _constants(content) == _constants(kept[name]), name


def _run(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout + done.stderr


def _constants(content):
    """Names, texts and numbers of a class file's constant pool, sorted: javac versions differ only in their order."""
    sizes = {3: 4, 4: 4, 5: 8, 6: 8, 7: 2, 8: 2, 9: 4, 10: 4, 11: 4, 12: 4, 15: 3, 16: 2, 18: 4}
    (count,) = struct.unpack_from(">H", content, 8)
    at, index, found = 10, 1, []
    while index < count:
        tag = content[at]
        size = 2 + struct.unpack_from(">H", content, at + 1)[0] if tag == 1 else sizes[tag]
        if tag in (1, 3, 4, 5, 6):
            found.append((tag, content[at + 1 : at + 1 + size]))
        at += 1 + size
        index += 2 if tag in (5, 6) else 1
    return sorted(found)
