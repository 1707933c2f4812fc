"""When a cgroup is near its memory limit: one threshold for all commands. Pure."""

from __future__ import annotations

_NEAR, _NEAR_BYTES = (
    0.9,
    1 << 30,
)  # of the limit is used by what cannot be reclaimed; more than this left is room enough


def is_near_limit(pinned_bytes: int, limit_bytes: int) -> bool:
    """Whether the kernel is about to kill. `pinned_bytes`: what cannot be reclaimed."""
    return pinned_bytes >= max(_NEAR * limit_bytes, limit_bytes - _NEAR_BYTES)
