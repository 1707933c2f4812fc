"""What a capture holds, for its report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.records import NamedTuple

if TYPE_CHECKING:
    from opskit.analysis.capture.redact import Hidden
    from opskit.analysis.finding import Finding


class Captured(NamedTuple):
    """A file that was written. `hidden` None: nothing was redacted. `unread`: files that could not be read, by reason.

    `without`: (command line, why it gave nothing); `notes`: JVMs that were not asked, and why. `seen`: what doctor found.
    `is_root`: root made it. `hanging`: files that were left out, since reading them hangs.
    """

    path: str
    size_bytes: int
    processes: int
    jvms: int
    samples: int
    span_s: float
    hidden: Hidden | None
    unread: tuple[tuple[str, int], ...] = ()
    without: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()
    seen: tuple[Finding, ...] = ()
    condition: str | None = None
    removed: tuple[str, ...] = ()
    is_root: bool = False
    hanging: tuple[str, ...] = ()
