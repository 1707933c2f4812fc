"""The jar of the agent: small, one class, the same bytes from each build; a build without a javac succeeds and says so."""

from __future__ import annotations

import os
import shutil
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import agentjar
import pytest

JDKS = Path("/usr/lib/jvm")


def javacs():
    found = [path for path in [shutil.which("javac"), *map(str, sorted(JDKS.glob("*/bin/javac")))] if path]
    return list({os.path.realpath(path): path for path in found}.values())


def test_two_builds_give_the_same_jar(tmp_path):
    """By each JDK: at most 4 KiB, a manifest and one class for JDK 8 and later, fixed dates. The first build may be that of the checkout."""
    if not javacs():
        pytest.skip("no javac is installed")
    agentjar.require_jar()
    builder = agentjar.builder()
    source = agentjar.ROOT / builder.SOURCE
    jars = [tmp_path / f"{number}.jar" for number in range(len(javacs()))]
    with ThreadPoolExecutor(2) as pool:
        for path, class_file in zip(jars, pool.map(lambda javac: builder.compile_agent(javac, source), javacs())):
            builder.write_jar(path, class_file)
    if jars[0].read_bytes() != agentjar.JAR.read_bytes():  # of another javac
        builder.write_jar(again := tmp_path / "again.jar", builder.compile_agent(javacs()[0], source))
        assert jars[0].read_bytes() == again.read_bytes()
        again.unlink()
    for path in jars:
        assert path.stat().st_size <= 4096
        with zipfile.ZipFile(path) as jar:
            assert jar.namelist() == ["META-INF/MANIFEST.MF", "OpskitJmx.class"]
            assert {each.date_time for each in jar.infolist()} == {(1980, 1, 1, 0, 0, 0)}
            assert b"\nAgent-Class: OpskitJmx\n" in jar.read("META-INF/MANIFEST.MF")
            assert jar.read("OpskitJmx.class")[:8] == b"\xca\xfe\xba\xbe\x00\x00\x00\x34"
    assert sorted(tmp_path.iterdir()) == jars


def test_a_build_without_a_javac_says_so(tmp_path, monkeypatch):
    """It is no error."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    assert "no javac" in agentjar.builder().build(agentjar.ROOT, tmp_path / "x.jar")


def test_a_javac_that_fails_is_told(tmp_path, monkeypatch):
    """With what it said; nothing is left."""
    broken = tmp_path / "javac"
    broken.write_text("#!/bin/sh\necho release version 8 not supported >&2\nexit 2\n")
    broken.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    assert "release version 8 not supported" in agentjar.builder().build(agentjar.ROOT, tmp_path / "x.jar")
    assert [each.name for each in tmp_path.iterdir()] == ["javac"]
