"""The agent of `opskit jmx --agent`, built where a checkout has none or an older one; and MBeans to read, with a JMX client beside them."""

from __future__ import annotations

import importlib.util
import time
from pathlib import Path

import jvms
import maven
import pytest

import opskit

ROOT = Path(__file__).resolve().parents[2]
JAR = Path(opskit.__file__).parent / "jvm" / "agent" / "opskit-jmx.jar"
FAST = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")  # of a JVM that starts, answers and ends
SOURCE = ROOT / "tests" / "java" / "AppBeans.java"


def builder():
    """hatch_build.py as a module."""
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def require_jar() -> None:
    """Build it if it is missing or out of date; skip without a javac."""
    sources = (JAR.with_name("OpskitJmx.java"), ROOT / "hatch_build.py")
    with jvms.locked("opskit-jmx"):
        if JAR.exists() and all(JAR.stat().st_mtime >= each.stat().st_mtime for each in sources):
            return
        problem = builder().build(ROOT, JAR)
    if problem is not None:
        pytest.skip(problem)


def start(version: int = 17, *options: str, **popen):
    """A JVM with the MBeans of AppBeans.java; the caller stops it."""
    program = maven.classes(SOURCE, release=11)
    return jvms.run([jvms.java(version), "-Xmx128m", *FAST, *options, "-cp", program, "AppBeans"], **popen)


def told(workload, line: str, end: str) -> list[str]:
    """The lines that the program answers, the last one of which begins with `end`."""
    before = len(workload.lines)
    workload.process.stdin.write(line.encode() + b"\n")
    workload.process.stdin.flush()
    workload.wait_for_line(end, time.monotonic() + jvms.START_S)
    return workload.lines[before:]


def client_values(workload, pattern: str) -> dict[str, str]:
    """`NAME tab PATH` -> value, as a JMX client in the JVM reads them; texts begin with an apostrophe."""
    lines = told(workload, f"values {pattern}", "END")[:-1]
    return {f"{name}\t{path}": value for name, path, value in (line.split("\t", 2) for line in lines if "\t" in line)}


def values_of(beans) -> dict[str, object]:
    """The same of beans that opskit read: `THROWS` where there is an error."""
    found = {}
    for bean in beans:
        for each in bean.attributes:
            at = f"{bean.name}\t{each.name}"
            _add_leaves(found, at, "THROWS" if each.error else each.value)
    return found


def _add_leaves(found, at, value):
    if isinstance(value, (dict, list)):
        for key, each in value.items() if isinstance(value, dict) else enumerate(value):
            _add_leaves(found, f"{at}.{key}", each)
    else:
        found[_escaped(at)] = value


def is_same(ours, printed: str) -> bool:
    """Whether a value is what the client printed."""
    if ours is None or isinstance(ours, bool):
        return printed == {None: "null", True: "true", False: "false"}[ours]
    if isinstance(ours, float):
        return (
            printed == {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}.get(str(ours)) or float(printed) == ours
        )
    return printed in (str(ours), f"'{_escaped(str(ours))}")


def _escaped(text: str) -> str:
    units = text.encode("utf-16-be", "surrogatepass")
    characters = [units[at] << 8 | units[at + 1] for at in range(0, len(units), 2)]
    return "".join(
        chr(each) if each == 9 or (32 <= each < 127 and each != 92) else f"\\u{each:04x}" for each in characters
    )
