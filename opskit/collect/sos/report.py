"""An sos report as a machine."""

from __future__ import annotations

from opskit.host import Host


def is_sos(word: str) -> bool:
    return False


def sos_host(word: str) -> Host:
    raise NotImplementedError
