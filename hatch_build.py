"""Build the agent of `opskit jmx --agent` into opskit/jvm/agent: by a build of the wheel, or by `python hatch_build.py`.

Needs a javac of JDK 9 or later, of JAVA_HOME or on PATH. The jar depends on the source and the javac alone: no dates, no paths, a fixed order. Without a
javac a wheel is built without it, and `opskit jmx --agent` then says how to get it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # run as a program
    BuildHookInterface = object  # type: ignore[assignment,misc]

SOURCE = Path("opskit", "jvm", "agent", "OpskitJmx.java")
JAR = SOURCE.with_name("opskit-jmx.jar")
LARGEST_BYTES = 4096
_MANIFEST = b"Manifest-Version: 1.0\nAgent-Class: OpskitJmx\n\n"
_FIRST_DATE = (1980, 1, 1, 0, 0, 0)
_COMPILE_S = 300
_FAST = ("-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC")


def find_javac() -> str | None:
    """The javac of JAVA_HOME, or on PATH."""
    home = os.environ.get("JAVA_HOME")
    return (home and shutil.which("javac", path=os.path.join(home, "bin"))) or shutil.which("javac")


def compile_agent(javac: str, source: Path) -> bytes:
    """The class file, for JDK 8 and later. Raises RuntimeError with what the javac said."""
    with tempfile.TemporaryDirectory() as place:
        command = [
            javac,
            *_FAST,
            "--release",
            "8",
            "-g:none",
            "-nowarn",
            "-Xlint:-options",
            "-encoding",
            "UTF-8",
            "-d",
            place,
            str(source),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_COMPILE_S)
        files = sorted(Path(place).rglob("*"))
        if done.returncode or len(files) != 1:
            raise RuntimeError(
                f"{javac} --release 8: {(done.stderr or done.stdout).strip()[-500:] or f'{len(files)} files'}"
            )
        return files[0].read_bytes()


def write_jar(path: Path, class_file: bytes) -> None:
    """Write the jar: always the same bytes for the same class file. Raises RuntimeError where it is too large."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with zipfile.ZipFile(beside, "w") as jar:
            for name, data, how in (
                ("META-INF/MANIFEST.MF", _MANIFEST, zipfile.ZIP_STORED),
                ("OpskitJmx.class", class_file, zipfile.ZIP_DEFLATED),
            ):
                entry = zipfile.ZipInfo(name, _FIRST_DATE)
                entry.create_system, entry.external_attr = 3, 0o644 << 16
                jar.writestr(entry, data, how, 9)
        if (size := beside.stat().st_size) > LARGEST_BYTES:
            raise RuntimeError(f"the agent's jar has {size} bytes, and at most {LARGEST_BYTES} are allowed")
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)


def build(root: Path, jar: Path | None = None) -> str | None:
    """Build it in a checkout, or as `jar`; why not, or None."""
    javac = find_javac()
    if javac is None:
        return "no javac in JAVA_HOME or on PATH: `opskit jmx --agent` needs one at build time"
    try:
        write_jar(jar or root / JAR, compile_agent(javac, root / SOURCE))
    except (RuntimeError, OSError, subprocess.SubprocessError) as error:
        return str(error)
    return None


class AgentJarHook(BuildHookInterface):  # type: ignore[misc,type-arg]
    """Builds the jar before a wheel, also an editable one, and adds it."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build; without a javac say so, and go on."""
        del version
        if self.target_name != "wheel":
            return
        root = Path(self.root)
        problem = build(root)
        if problem is not None:
            self.app.display_warning(f"opskit: built without the agent of `opskit jmx --agent`: {problem}")
            (root / JAR).unlink(missing_ok=True)
        else:
            build_data["artifacts"].append(f"/{JAR.as_posix()}")


if __name__ == "__main__":
    sys.exit(build(Path(__file__).resolve().parent))
