"""Application MBeans by a Jolokia that already runs: read-only requests over HTTP. It is never started by us."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opskit.collect.jmx.facts import Bean, Request
    from opskit.host import Host


class JolokiaRead(NamedTuple):
    """What it answered. `url`: without user and password. `missing`: sentences on what was left out and why."""

    url: str
    version: str | None  # of Jolokia
    beans: Sequence[Bean]
    missing: Sequence[str] = ()


def read_jolokia(host: Host, ask: Request, *, timeout_s: float = 10.0) -> JolokiaRead:
    """The MBeans of `ask.patterns` by the Jolokia at `ask.jolokia`; "" discovers that of `ask.pid` (`ask.ask`: may start the listener).

    Raises UsageError, BadInput, NotPermitted, NotSupported and TargetTimeout, and as AttachClient does where it discovers.
    """
    raise NotImplementedError
