"""Profile a JVM by frame pointers, with the names that it writes to a perf map."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opskit.collect.cpu_profile import CpuProfile
    from opskit.host import Host


def profile_by_perf_map(host: Host, pid: int, hz: float, duration_s: float) -> CpuProfile:
    """Sample for `duration_s` or until Ctrl-C; `missing` says that interpreted methods are not seen.

    Raises NotPermitted, NotSupported (no frame pointers, JDK before 17), NotAJvm, NoSuchProcess, AttachError.
    """
    raise NotImplementedError
