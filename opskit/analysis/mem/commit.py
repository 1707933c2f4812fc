"""The commit limit of the machine: with vm.overcommit_memory=2 allocations fail at it, though memory is free. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit import shell
from opskit.analysis.finding import HOST, Finding
from opskit.quantities import size

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_STRICT = 2
_LITTLE_SHARE, _LITTLE_BYTES = 0.03, 1 << 30  # less than both is left


def judge_commit(meminfo: Mapping[str, int], overcommit: int | None) -> Iterator[Finding]:
    """A finding where little is left. `overcommit`: vm.overcommit_memory; in other modes the limit is not enforced."""
    limit, used = meminfo.get("CommitLimit"), meminfo.get("Committed_AS")
    if overcommit != _STRICT or not limit or used is None:
        return
    left = max(0, limit - used)
    if left < min(limit * _LITTLE_SHARE, _LITTLE_BYTES):
        yield Finding(
            "memory-commit-limit", "warning", HOST,
            f"{size(left)} of the commit limit of {size(limit)} is left: allocations fail then (Cannot allocate memory)",
            "vm.overcommit_memory is 2; CommitLimit and Committed_AS of /proc/meminfo",
            next=shell.command("grep", "-i", "commit", "/proc/meminfo"), share=min(1.0, used / limit),
        )  # fmt: skip
