"""async-profiler 4.0 as the baseline: its library from Maven Central, loaded through opskit's own attach client."""

from __future__ import annotations

import contextlib
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))

import jvms
import maven

from opskit.jvm.attach.client import AttachClient
from opskit.proc.fs import ProcFS

if TYPE_CHECKING:
    from collections.abc import Iterator

ARTIFACT = "tools.profiler:async-profiler:4.0"
_MEMBER = "linux-x64/libasyncProfiler.so"
_SUCCESS = "return code: 0"


def library() -> Path:
    """The path of libasyncProfiler.so, unpacked once beside the tests' JVMs."""
    archive = maven.jars(ARTIFACT)
    place = jvms.cache() / f"{Path(archive).stem}.so"
    if not place.exists():
        with jvms.locked(place.name), zipfile.ZipFile(archive) as jar:
            beside = place.with_suffix(".part")
            beside.write_bytes(jar.read(_MEMBER))
            beside.chmod(0o755)
            beside.rename(place)
    return place


class Recording:
    """What one window of async-profiler gives: `text`, collapsed stacks with marks, after the window."""

    text = ""


@contextlib.contextmanager
def recording(pid: int, event: str = "ctimer") -> Iterator[Recording]:
    """Record a JVM's CPU time at 1 ms for as long as the context is open."""
    client = AttachClient(ProcFS(), pid, 60)
    found = Recording()
    with tempfile.TemporaryDirectory(prefix="profile-") as folder:
        file = Path(folder) / "stacks"
        _ask(client, f"start,event={event},interval=1ms,threads,ann")
        try:
            yield found
        finally:
            _ask(client, f"stop,collapsed,threads,ann,file={file}")
        found.text = file.read_text("utf-8", "replace")


def _ask(client: AttachClient, command: str) -> None:
    answer = client.execute("load", str(library()), "true", command).decode()
    if _SUCCESS not in answer and answer.strip() != "0":  # the second: of JDK 8
        raise RuntimeError(f"async-profiler: {command}: {answer.strip()}")
