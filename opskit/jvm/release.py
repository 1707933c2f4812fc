"""The `release` file of the JDK that a JVM runs on: its version, where there are no counters to say it."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

from opskit.errors import BadInput
from opskit.jvm.launch import parse_release

if TYPE_CHECKING:
    from opskit.jvm.discover import Jvm
    from opskit.proc.fs import ProcFS


def jdk_release(fs: ProcFS, jvm: Jvm) -> dict[str, str]:
    """JAVA_VERSION, IMPLEMENTOR, …; empty where the file is not there or must not be read."""
    if jvm.libjvm is None:
        return {}
    home = posixpath.dirname(posixpath.dirname(posixpath.dirname(jvm.libjvm)))
    # JDK 8 has its library in jre/lib/amd64/server, and the file beside jre.
    for place in (home, posixpath.dirname(home), posixpath.dirname(posixpath.dirname(home))):
        try:
            return parse_release(fs.read_path(fs.inside(jvm.pid, f"{place}/release")).decode("utf-8", "replace"))
        except (OSError, BadInput):
            continue
    return {}
