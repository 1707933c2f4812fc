"""How a network namespace is shown: its sockets by state, segments sent again, ports used, limits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.analysis.tcp.network import sent_again
from opskit.proc.tcp_sockets import address_text
from opskit.quantities import agreeing, duration, percent, plural
from opskit.render.fields import COUNT, ID, NUMBER, TEXT, Field, list_of, map_of, record, records
from opskit.render.views.tcp.fields import host_name, state_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opskit.collect.tcp.facts import Facts, Space
    from opskit.collect.tcp.host_facts import Destination, HostFacts


def _states(states: dict[int, int]) -> dict[str, int]:
    """By the name of the state, the most first."""
    ordered = sorted(states.items(), key=lambda item: (-item[1], item[0]))
    return {state_name(state): number for state, number in ordered if number}


def changes(host: HostFacts) -> dict[str, int]:
    """How much each counter rose in the window."""
    return {name: last - host.first[name] for name, last in host.last.items() if name in host.first}


DESTINATION: Sequence[Field[Destination]] = (
    Field("local", value=lambda it: host_name(it.local)),
    Field("peer", value=lambda it: host_name(it.peer)),
    Field("port", ID),
    Field("used", COUNT, "ports used", help="of the local port range"),
    Field("to", TEXT, "to", lambda it: address_text(it.peer, it.port), json=False, shrinks=15),
    Field("from", TEXT, "from", lambda it: host_name(it.local), json=False, shrinks=10),
    Field("states", map_of(COUNT), value=lambda it: _states(dict(it.states))),
    Field("by_state", TEXT, "states", lambda it: _counted(dict(it.states)), json=False, shrinks=12),
)  # fmt: skip
LIMITS: Sequence[Field[HostFacts]] = (
    Field("first_port", COUNT, value=lambda it: it.ports and it.ports[0], help="net.ipv4.ip_local_port_range; so the next one"),
    Field("last_port", COUNT, value=lambda it: it.ports and it.ports[1]),
    Field("reserved_ports", COUNT, value=lambda it: it.ports and it.ports[2], help="of that range: reserved, or listened on"),
    Field("ports_used", COUNT, help="of the others, by a socket to any peer"),
    Field("max_orphans", COUNT, help="net.ipv4.tcp_max_orphans"),
    Field("max_time_wait", COUNT, help="net.ipv4.tcp_max_tw_buckets"),
    Field("conntrack_entries", COUNT, value=lambda it: it.conntrack and it.conntrack[0]),
    Field("conntrack_limit", COUNT, value=lambda it: it.conntrack and it.conntrack[1]),
)  # fmt: skip
HOST: Sequence[Field[HostFacts]] = (
    Field("counters", map_of(COUNT), value=lambda it: dict(it.last), help="since boot, by the names of /proc/net/snmp and netstat"),
    Field("changes", map_of(COUNT), value=changes, help="of the counters in the window"),
    Field("sockstat", map_of(COUNT), value=lambda it: dict(it.sockstat), help="/proc/net/sockstat; TCP.mem in pages"),
    Field("destinations", records(DESTINATION), value=lambda it: [*it.destinations], help="those with the most ports used"),
    Field("tcp_mem_pages", list_of(COUNT), value=lambda it: it.tcp_mem_pages and [*it.tcp_mem_pages], help="net.ipv4.tcp_mem: low, pressure, high"),
    *LIMITS,
    Field("sysctls", map_of(TEXT), value=lambda it: dict(it.sysctls)),
    Field("uptime_s", NUMBER, help="of the machine"),
)  # fmt: skip
SPACE: Sequence[Field[Space]] = (
    Field("namespace", help="the network namespace"),
    Field("source", help="sock_diag; or proc: /proc/PID/net, which has less"),
    Field("states", map_of(COUNT), value=lambda it: _states(dict(it.states)), help="how many sockets"),
    Field("host", record(HOST)),
)


def _counted(states: dict[int, int]) -> str:
    """`312 ESTAB, 28 TIME-WAIT`."""
    return ", ".join(f"{number:,} {name}" for name, number in _states(states).items())


def summary(facts: Facts) -> Iterator[str]:
    """A line for each network namespace: its sockets, and what was sent again in the window."""
    for space in facts.spaces:
        name = f"{space.namespace}: " if len(facts.spaces) > 1 and space.namespace else ""
        yield name + "; ".join(["sockets: " + (_counted(dict(space.states)) or "none"), *_segments(space.host, facts)])


def _segments(host: HostFacts, facts: Facts) -> Iterator[str]:
    if facts.is_still or "Tcp.RetransSegs" not in host.last:
        return
    again, sent = sent_again(host)
    share = f" ({percent(again / sent)})" if again else ""
    if sent:
        yield f"{again:,} of {plural(sent, 'data segment')} sent again{share} in {duration(facts.window_s)}"


def limits(facts: Facts) -> Iterator[str]:
    """A line for each network namespace: what is used of its limits."""
    for space in facts.spaces:
        name = f"{space.namespace}: " if len(facts.spaces) > 1 and space.namespace else ""
        said = [*_used(space.host)]
        if said:
            yield f"{name}limits: {'; '.join(said)}"


def _used(host: HostFacts) -> Iterator[str]:
    if host.ports is not None and host.ports_used is not None:
        first, last, taken = host.ports
        yield f"{host.ports_used:,} of {last - first + 1 - taken:,} local ports used"
    if host.conntrack is not None:
        yield f"conntrack {host.conntrack[0]:,} of {host.conntrack[1]:,}"
    for what, number, most in (
        ("orphans", host.sockstat.get("TCP.orphan"), host.max_orphans),
        ("TIME-WAIT", host.sockstat.get("TCP.tw"), host.max_time_wait),
        ("TCP memory", host.sockstat.get("TCP.mem"), host.tcp_mem_pages and host.tcp_mem_pages[2]),
    ):
        if number is not None and most is not None:
            yield f"{what} {number:,} of {most:,}{' pages' if what == 'TCP memory' else ''}"


def elsewhere(facts: Facts) -> Iterator[str]:
    """Where else processes have connections: their network namespaces are not looked at."""
    if not facts.elsewhere:
        return
    from opskit import shell

    processes = sum(number for _, number in facts.elsewhere)
    spaces = f"{len(facts.elsewhere):,} other network {agreeing(len(facts.elsewhere), 'namespace')}"
    pid = facts.elsewhere[0][0]
    yield f"{plural(processes, 'process with sockets', 'processes with sockets')} in {spaces} {'is' if processes == 1 else 'are'} not shown: {shell.command('opskit', 'tcp', pid)}"
