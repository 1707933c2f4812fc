"""Every command takes the same words for a process: a PID, or a part of a JVM's main class or jar, with the same errors."""

from __future__ import annotations

import shutil

import jvms
import pytest

COMMANDS = {
    "pipes": (), "fds": (), "tcp": ("-i", "0.2"), "cswitch": ("-i", "0.2"), "io": ("-i", "0.2"), "jvms": (), "limits": (), "hsperf-check": (), "jpmp": ("1",), "safepoints": ("-c", "1", "-i", "0.1"),
    "profile": ("--duration", "100ms"), "jmap-diff": ("-c", "2", "-i", "0.1", "--yes"), "jmx": (),
}  # fmt: skip


@pytest.fixture(scope="module")
def jar(tmp_path_factory):
    """A running JVM whose jar has a name that no other JVM has."""
    import zipfile

    place = tmp_path_factory.mktemp("jar") / "TargetWords-3.jar"
    with zipfile.ZipFile(place, "w") as archive:
        archive.writestr("META-INF/MANIFEST.MF", "Main-Class: Workload\n")
        for file in jvms.CLASSES.iterdir():
            archive.write(file, file.name)
    running = jvms.run([jvms.java(17), "-Xmx64m", "-jar", str(place), "sleep=1"])
    yield running
    running.stop()
    shutil.rmtree(place.parent)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_part_of_the_jars_name(inprocess, jar, command):
    """In any case of its letters; the result is that of its PID."""
    done = inprocess(command, "targetwords", *COMMANDS[command], "-f", "json")
    assert done.code in (0, 1), done.err
    assert str(jar.pid) in done.out


@pytest.mark.parametrize("command", COMMANDS)
def test_a_word_that_names_nothing(inprocess, jar, command):
    """One line with the word, before anything is done."""
    done = inprocess(command, "NoSuchTarget", *COMMANDS[command])
    assert (done.code, done.out) == (2, "")
    assert "'NoSuchTarget' is not a PID" in done.err
    assert "a part of a running JVM's main class or jar" in done.err
