"""Commands that are run for what they read: a capture is made so."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opskit.analysis.finding import Finding
    from opskit.host import Host


class Unseen:
    """As `obj` of the root context: commands run on this host, show nothing, and add what they find to `findings`."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.findings: list[Finding] = []
