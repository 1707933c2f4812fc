"""What the findings about a network namespace share: changes of its counters, and words. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.analysis.finding import HOST, Entity
from opskit.quantities import duration

if TYPE_CHECKING:
    from opskit.collect.tcp.facts import Facts, Owner
    from opskit.collect.tcp.host_facts import HostFacts


def change(host: HostFacts, name: str) -> int:
    """How much a counter grew in the window; 0 where it is unknown, or was reset."""
    return max(0, host.last.get(name, 0) - host.first.get(name, 0))


def changes(host: HostFacts, *names: str) -> str:
    """`TcpExt.ListenOverflows +21, TcpExt.ListenDrops +21`: those that grew."""
    grown = [(name, change(host, name)) for name in names]
    return ", ".join(f"{name} +{number:,}" for name, number in grown if number)


def who(owner: Owner | None) -> str:
    """`java (4242)`; a socket without a process that we see has an unknown one."""
    return "an unknown process" if owner is None else f"{owner.command} ({owner.pid})"


def of_process(owner: Owner | None, inside: Entity | None = None) -> Entity:
    """The process, or the host where it is unknown."""
    return HOST if owner is None else Entity("process", owner.pid, owner.start_ticks, inside)


def in_window(facts: Facts) -> str:
    """`in 2.0 s`."""
    return f"in {duration(facts.window_s)}"
