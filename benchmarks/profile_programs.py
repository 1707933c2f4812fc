"""The programs that benchmarks/profile.py profiles: real libraries from Maven Central, and loops in native code.

Each is a context manager that gives a Program: running, with READY behind it, not warmed up.
"""

from __future__ import annotations

import contextlib
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Callable, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))

import jvms
import maven
import servers

if TYPE_CHECKING:
    from collections.abc import Iterator

SOURCES = Path(__file__).resolve().parent / "java"
H2 = ("com.h2database:h2:2.2.224",)
LUCENE = ("org.apache.lucene:lucene-analysis-common:9.12.0",)
JETTY = ("org.eclipse.jetty:jetty-server:10.0.24", "org.slf4j:slf4j-nop:2.0.16")
JRUBY = ("org.jruby:jruby-complete:9.4.9.0",)
# JDKs of the machine: the tests' JVMs have no compiler.
JDKS = {17: Path("/usr/lib/jvm/java-17-openjdk-amd64"), 25: Path("/usr/lib/jvm/temurin-25-jdk-amd64")}
VERSIONS = tuple(jvms.WHEELS)
_HEAP = ("-Xmx512m", "-XX:+UseG1GC")


class Case(NamedTuple):
    """A program. `start(java, options)` runs it; `versions`: the JDKs that can.

    `leaf`, `inclusive`, `mean`: bounds in points of the largest differences, and of the mean of either.
    """

    start: Callable[[str, tuple[str, ...]], contextlib.AbstractContextManager[jvms.Workload]]
    versions: tuple[int, ...]
    leaf: float = 4
    inclusive: float = 6
    mean: float = 4


def java(name: str, version: int) -> str:
    """The path of the java that runs this program."""
    return str(JDKS[version] / "bin" / "java") if name == "javac" else jvms.java(version)


def operations(program: jvms.Workload) -> tuple[int, float]:
    """(operations since the start, seconds of the program's clock) by its own count."""
    program.process.stdin.write(b"?")
    program.process.stdin.flush()
    program.wait_for_line("OPS", time.monotonic() + jvms.START_S)
    _, done, now_ns = program.lines[-1].split()
    return int(done), int(now_ns) / 1e9


def _driver(name: str, path: str = "") -> str:
    """The class path of a program of benchmarks/java with its libraries."""
    counter = maven.classes(SOURCES / "Counter.java", release=11)
    path = f"{counter}:{path}" if path else counter
    return f"{maven.classes(SOURCES / f'{name}.java', path, release=11)}:{path}"


@contextlib.contextmanager
def _run(command: list[str]) -> Iterator[jvms.Workload]:
    with contextlib.ExitStack() as stack:
        program = jvms.run(command)
        stack.callback(program.stop)
        yield program


def _simple(name: str, artifacts: tuple[str, ...], *arguments: str) -> Callable:
    """A program of benchmarks/java with these libraries and arguments."""

    def start(binary: str, options: tuple[str, ...]) -> contextlib.AbstractContextManager[jvms.Workload]:
        path = _driver(name, maven.jars(*artifacts) if artifacts else "")
        return _run([binary, *_HEAP, *options, "-cp", path, name, *arguments])

    return start


def _placed(name: str, *arguments: str) -> Callable:
    """The same with a temporary directory as the last argument."""

    @contextlib.contextmanager
    def start(binary: str, options: tuple[str, ...]) -> Iterator[jvms.Workload]:
        place = tempfile.mkdtemp(prefix="profile-")
        try:
            with _simple(name, (), *arguments, f"{place}/file")(binary, options) as program:
                yield program
        finally:
            shutil.rmtree(place, ignore_errors=True)

    return start


def _web(mode: str) -> Callable:
    """Jetty with a load from another JVM."""

    @contextlib.contextmanager
    def start(binary: str, options: tuple[str, ...]) -> Iterator[jvms.Workload]:
        with _simple("Web", JETTY, mode)(binary, options) as server:
            port = server.lines[-1].split()[1]
            with _run(
                [jvms.java(17), "-Xmx64m", "-XX:+UseSerialGC", "-cp", _driver("Requests"), "Requests", port, "8"]
            ):
                yield server

    return start


def _kafka(binary: str, options: tuple[str, ...]) -> contextlib.AbstractContextManager[jvms.Workload]:
    return servers.kafka(*_HEAP, *options, binary=binary, throughput=40_000)


def _jruby(binary: str, options: tuple[str, ...]) -> contextlib.AbstractContextManager[jvms.Workload]:
    return _run([binary, *_HEAP, *options, "-cp", maven.jars(*JRUBY), "org.jruby.Main", str(SOURCES / "loop.rb")])


PROGRAMS = {
    "h2": Case(_simple("Database", H2, "2"), VERSIONS, 3, 4, 1.5),
    "lucene": Case(_simple("Indexing", LUCENE, "2"), VERSIONS),
    "jetty": Case(_web("pool"), VERSIONS),
    "jetty-virtual": Case(_web("virtual"), (21, 25)),
    "kafka": Case(_kafka, (11, 17, 21)),
    "jruby": Case(_jruby, VERSIONS),
    "javac": Case(_placed("Compiling", "1"), (17, 25)),
    "clock": Case(_simple("Leaves", (), "clock", "1"), VERSIONS),
    "inflate": Case(_simple("Leaves", (), "inflate", "1"), VERSIONS),
    "files": Case(_placed("Leaves", "files", "1"), VERSIONS),
    "jni": Case(_simple("Leaves", (), "jni", "1"), VERSIONS),
}
# For costs: 100 busy threads with deep stacks, and operations that all take the same time.
CROWD, STEADY = _simple("Leaves", (), "jni", "100"), _simple("Leaves", (), "spin", "1")
