"""Profile a JVM from inside, by an async-profiler that the user has."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opskit.collect.asprof import AsprofProfile, AsprofRequest
    from opskit.host import Host


def profile_by_asprof(host: Host, ask: AsprofRequest) -> AsprofProfile:
    """Load the library into the JVM, profile for `duration_s` or until Ctrl-C, read the stacks, remove the files.

    Raises NotPermitted, NotSupported, NotAJvm, NoSuchProcess, AttachError, BadInput.
    """
    raise NotImplementedError
