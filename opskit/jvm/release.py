"""The `release` file of a JVM's JDK: its version, for a JVM without counters."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

from opskit.jvm.launch import parse_release
from opskit.proc.fs import optional

if TYPE_CHECKING:
    from opskit.jvm.discover import Jvm
    from opskit.proc.fs import ProcFS


_MOST_BYTES = 1 << 20  # a JDK's has a dozen lines; a container's may have any size


def jdk_release(fs: ProcFS, jvm: Jvm) -> dict[str, str]:
    """JAVA_VERSION, IMPLEMENTOR, …; empty where the file is unreadable."""
    if jvm.libjvm is None:
        return {}
    home = posixpath.dirname(posixpath.dirname(posixpath.dirname(jvm.libjvm)))
    # JDK 8 has its library in jre/lib/amd64/server, and the file next to jre.
    for place in (home, posixpath.dirname(home), posixpath.dirname(posixpath.dirname(home))):
        data = optional(fs.read_inside, jvm.pid, f"{place}/release", _MOST_BYTES)
        fields = data and optional(parse_release, data.decode("utf-8", "replace"))
        if fields:
            return fields
    return {}
