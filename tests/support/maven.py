"""Java libraries from Maven Central, and real servers made of them, for the tests.

A set of artifacts is resolved once, by Maven, into the tests' cache directory.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from xml.sax.saxutils import escape

import pytest
from jvms import cache, locked

_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>test</groupId><artifactId>test</artifactId><version>1</version><dependencies>{}</dependencies></project>
"""
_COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"


def jars(*artifacts: str) -> str:
    """The class path of the artifacts `group:artifact:version[:classifier]` and what they need; skip if they cannot be downloaded."""
    name = f"maven-{hashlib.sha256(' '.join(artifacts).encode()).hexdigest()[:16]}"
    place = cache() / name
    with locked(name):
        if not place.exists():
            _install(artifacts, place)
    return ":".join(sorted(map(str, place.iterdir())))


def _install(artifacts: tuple[str, ...], place: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        _missing("Maven (mvn) is not installed")
    beside = Path(tempfile.mkdtemp(prefix=f".{place.name}-", dir=cache()))
    try:
        needed = (
            dict(zip(("groupId", "artifactId", "version", "classifier"), artifact.split(":"))) for artifact in artifacts
        )
        listed = "".join(
            f"<dependency>{''.join(f'<{tag}>{escape(word)}</{tag}>' for tag, word in each.items())}</dependency>"
            for each in needed
        )
        (beside / "pom.xml").write_text(_POM.format(listed))
        copy = [maven, "-q", "-B", _COPY, "-DincludeScope=runtime", f"-DoutputDirectory={beside}/jars"]
        done = subprocess.run(copy, cwd=beside, capture_output=True, text=True, check=False, timeout=600)
        if done.returncode:
            _missing(f"{' '.join(artifacts)} cannot be downloaded: {done.stdout.strip()[-300:]}")
        os.chmod(beside / "jars", 0o755)  # noqa: S103  (other users run it)
        os.rename(beside / "jars", place)
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _missing(reason: str) -> None:
    pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)


def classes(source: Path, path: str = "", release: int = 17) -> str:
    """The directory of the compiled Java program; `path`: the class path it needs, `release`: the oldest JDK that runs it. Skip if there is no javac."""
    name = f"classes-{hashlib.sha256(source.read_bytes() + f'{path} {release}'.encode()).hexdigest()[:16]}"
    place = cache() / name
    with locked(name):
        if not place.exists():
            javac = shutil.which("javac")
            if javac is None:
                _missing("javac is not installed")
            with tempfile.TemporaryDirectory(prefix=f".{name}-", dir=cache()) as beside:
                command = [javac, "--release", str(release), "-cp", path, "-d", f"{beside}/classes", str(source)]
                subprocess.run(command, check=True, capture_output=True, timeout=300)
                os.rename(f"{beside}/classes", place)
    return str(place)
