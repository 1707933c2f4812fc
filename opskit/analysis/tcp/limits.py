"""Findings about limits of a network namespace and its machine: ports, connection tracking, TCP memory, orphans, TIME_WAIT. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit import shell
from opskit.analysis.finding import HOST, Finding
from opskit.analysis.tcp.space import change, changes, in_window, who
from opskit.proc.tcp_sockets import TIME_WAIT, address_text, host_text
from opskit.quantities import listed, percent, plural, size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opskit.collect.tcp.facts import Facts, Owner, Space
    from opskit.collect.tcp.host_facts import Destination, HostFacts
    from opskit.proc.tcp_sockets import Socket

_NEARLY = 0.9
_FULL_TABLE = 0.99  # entries come and go between two packets
_MOST_PORTS_NAMED, _MOST_NAMED = 3, 3
_WIDE_FROM, _WIDE_TO = 10240, 65535
_MEMORY = (
    "TcpExt.TCPMemoryPressures",
    "TcpExt.TCPMemoryPressuresChrono",
    "TcpExt.TCPAbortOnMemory",
    "TcpExt.TCPRcvQDrop",
)


def limit_findings(facts: Facts, space: Space) -> Iterator[Finding]:
    """Of a network namespace."""
    yield from _ports(facts, space)
    yield from _conntrack(facts, space)
    yield from _time_wait(facts, space)


def machine_findings(facts: Facts) -> Iterator[Finding]:
    """Of the machine: every namespace shows the same figures."""
    for space in facts.spaces[:1]:
        yield from _memory(facts, space.host)
        yield from _orphans(facts, space.host)


def usable_ports(host: HostFacts) -> int | None:
    """How many ports of the range connect(2) tries that can be free: of an odd number it leaves out the last one."""
    if host.ports is None:
        return None
    low, high, taken = host.ports
    width = high - low + 1
    return max(1, (width & ~1 if width > 1 else width) - taken)


def reused(host: HostFacts, destination: Destination) -> int:
    """How many of its ports connect(2) may take again from TIME_WAIT, a second after the connection's end (net.ipv4.tcp_tw_reuse)."""
    mode = host.sysctls.get("net.ipv4.tcp_tw_reuse")
    is_local = destination.peer[:1] == b"\x7f" or destination.peer == b"\0" * 15 + b"\1"
    allowed = mode == "1" or (mode == "2" and is_local)
    if not allowed or host.sysctls.get("net.ipv4.tcp_timestamps") == "0":
        return 0
    return destination.states.get(TIME_WAIT, 0) - destination.young


def _ports(facts: Facts, space: Space) -> Iterator[Finding]:
    host, usable = space.host, usable_ports(space.host)
    if host.ports is None or usable is None:
        return
    scarce = [one for one in host.destinations if one.used - reused(host, one) >= usable * _NEARLY]
    for each in scarce[:_MOST_PORTS_NAMED]:
        yield _ports_of(facts, space, each, usable, others=len(scarce) - _MOST_PORTS_NAMED)
    if not scarce and host.ports_used is not None and host.ports_used >= usable:
        low, high, _ = host.ports
        yield Finding(
            "tcp-ports-nearly-exhausted", "note", HOST,
            f"each port from {low} to {high} is used by a connection: bind() to port 0 fails (EADDRINUSE), and connect() where bind() "
            "took the ports; another connect() shares them, since no destination has them all",
            f"net.ipv4.ip_local_port_range: {host.ports_used:,} of {usable:,} ports in use", share=1.0, window_s=facts.window_s,
        )  # fmt: skip


def _ports_of(facts: Facts, space: Space, each: Destination, usable: int, others: int) -> Finding:
    host = space.host
    is_full = each.used - reused(host, each) >= usable
    low, high, taken = host.ports or (0, 0, 0)
    waiting = each.states.get(TIME_WAIT, 0)
    place, owners = address_text(each.peer, each.port), _owners(facts, space, each)
    most = f", most by {listed([who(owner) for owner in owners], _MOST_NAMED)}" if owners else ""
    in_time_wait = f"; {waiting:,} of them are in TIME_WAIT" if waiting else ""
    fails = "connect() fails (EADDRNOTAVAIL)" if is_full else "when none is left, connect() fails (EADDRNOTAVAIL)"
    amount = f"all {usable:,}" if is_full else f"{each.used:,} of {usable:,}"
    evidence = [
        f"net.ipv4.ip_local_port_range {low} {high}, {plural(taken, 'port')} reserved or listened on",
        *([f"{plural(others, 'more destination')} like this"] if others > 0 else []),
    ]
    return Finding(
        "tcp-ports-exhausted" if is_full else "tcp-ports-nearly-exhausted", "error" if is_full else "warning", HOST,
        f"{amount} local ports for connections from {host_text(each.local)} to {place} are used{most}{in_time_wait}; {fails}",
        "; ".join(evidence), fix=_more_ports(host, each), next=shell.command("opskit", "tcp", "--peer", place),
        share=round(min(1.0, each.used / usable), 4), window_s=facts.window_s,
    )  # fmt: skip


def _owners(facts: Facts, space: Space, destination: Destination) -> list[Owner]:
    """The processes with connections to it, those with the most first."""
    place = next(number for number, each in enumerate(facts.spaces) if each is space)
    counts: dict[int, int] = {}
    owners: dict[int, Owner] = {}
    found = [(each.owner, 1) for each in facts.connections if each.space == place and _goes_to(each.last, destination)]
    found += [
        (each.owner, each.connections)
        for each in facts.idle
        if (each.space, each.inbound, each.host, each.port) == (place, False, destination.peer, destination.port)
    ]
    for owner, connections in found:
        if owner is not None:
            counts[owner.pid], owners[owner.pid] = counts.get(owner.pid, 0) + connections, owner
    return sorted(owners.values(), key=lambda owner: (-counts[owner.pid], owner.pid))


def _goes_to(socket: Socket, destination: Destination) -> bool:
    return (socket.local, socket.peer, socket.peer_port) == (destination.local, destination.peer, destination.port)


def _more_ports(host: HostFacts, destination: Destination) -> str | None:
    """Reuse of TIME_WAIT where it holds the most, else a wider range."""
    is_mostly_waiting = destination.states.get(TIME_WAIT, 0) * 2 >= destination.used
    is_reuse_off = host.sysctls.get("net.ipv4.tcp_tw_reuse") != "1" and not reused(host, destination)
    if is_mostly_waiting and is_reuse_off and host.sysctls.get("net.ipv4.tcp_timestamps") != "0":
        return shell.command("sysctl", "net.ipv4.tcp_tw_reuse=1")
    low, high, _ = host.ports or (0, _WIDE_TO, 0)
    if low > _WIDE_FROM or high < _WIDE_TO:
        return shell.command("sysctl", f"net.ipv4.ip_local_port_range={min(low, _WIDE_FROM)} {_WIDE_TO}")
    return None


def _conntrack(facts: Facts, space: Space) -> Iterator[Finding]:
    host = space.host
    entries, most = host.conntrack or (0, 0)
    share = entries / most if most else 0.0  # a limit of 0 is none
    if share < _NEARLY:
        return
    dropped, evicted = change(host, "Conntrack.drop"), change(host, "Conntrack.early_drop")
    is_full = share >= _FULL_TABLE or bool(dropped)
    lost = [
        *([f"{plural(dropped, 'packet')} of new connections dropped {in_window(facts)}"] if dropped else []),
        *([f"{plural(evicted, 'entry', 'entries')} evicted {in_window(facts)}"] if evicted else []),
    ]
    yield Finding(
        "conntrack-full" if is_full else "conntrack-nearly-full", "error" if is_full else "warning", HOST,
        f"the connection tracking table {'is full' if is_full else f'is {percent(share)} full'}: {entries:,} of {most:,} entries"
        + (f", {', '.join(lost)}" if lost else "") + ("; new connections are dropped" if is_full and not dropped else ""),
        "; ".join(["net.netfilter.nf_conntrack_count and nf_conntrack_max", *filter(None, [
            changes(host, "Conntrack.drop", "Conntrack.early_drop", "Conntrack.insert_failed")])]),
        fix=shell.command("sysctl", f"net.netfilter.nf_conntrack_max={most * 2}"), share=round(min(1.0, share), 4),
        window_s=facts.window_s,
    )  # fmt: skip


def _time_wait(facts: Facts, space: Space) -> Iterator[Finding]:
    host = space.host
    overflows = change(host, "TcpExt.TCPTimeWaitOverflow")
    if overflows:
        now, most = host.sockstat.get("TCP.tw"), host.max_time_wait
        limit = "" if now is None or most is None else f": {now:,} of {most:,} (net.ipv4.tcp_max_tw_buckets)"
        yield Finding(
            "tcp-time-wait-full", "note", HOST,
            f"{plural(overflows, 'connection')} ended without TIME_WAIT {in_window(facts)}, since there are too many{limit}",
            changes(host, "TcpExt.TCPTimeWaitOverflow"), window_s=facts.window_s,
            fix=None if most is None else shell.command("sysctl", f"net.ipv4.tcp_max_tw_buckets={most * 2}"),
        )  # fmt: skip


def _memory(facts: Facts, host: HostFacts) -> Iterator[Finding]:
    used, limits = host.sockstat.get("TCP.mem"), host.tcp_mem_pages
    entered, aborted = change(host, "TcpExt.TCPMemoryPressures"), change(host, "TcpExt.TCPAbortOnMemory")
    pressed_ms = change(host, "TcpExt.TCPMemoryPressuresChrono")
    is_above = used is not None and limits is not None and used >= limits[1]
    is_full = used is not None and limits is not None and used >= limits[2]
    if not (is_above or entered or pressed_ms or (aborted and not _has_too_many_orphans(host))):
        return
    page = host.page_bytes
    amount = f"{size(used * page)} of buffers" if used is not None else "the buffers"
    bounds = f"; pressure from {size(limits[1] * page)}, limit {size(limits[2] * page)}" if limits is not None else ""
    state = "above its limit" if is_full else "under memory pressure" if is_above else "was under memory pressure"
    effects = "connections get smaller windows" + (
        f", {plural(aborted, 'connection')} aborted {in_window(facts)}" if aborted else ""
    )
    holders = _largest_buffers(facts)
    yield Finding(
        "tcp-memory-pressure", "error" if is_full or aborted else "warning", HOST,
        f"TCP {'is ' if is_above else ''}{state}: {amount}{bounds}; {effects}{f'; the most: {holders}' if holders else ''}",
        "; ".join(["/proc/net/sockstat: TCP mem, net.ipv4.tcp_mem", *filter(None, [changes(host, *_MEMORY)])]),
        share=None if used is None or limits is None else round(min(1.0, used / max(limits[2], 1)), 4), window_s=facts.window_s,
    )  # fmt: skip


def _largest_buffers(facts: Facts) -> str:
    """The processes whose connections queue the most."""
    queued: dict[int, int] = {}
    owners: dict[int, Owner] = {}
    for each in facts.connections:
        amount = each.last.recv_queue + each.last.send_queue
        if each.owner is not None and amount:
            queued[each.owner.pid] = queued.get(each.owner.pid, 0) + amount
            owners[each.owner.pid] = each.owner
    largest = sorted(queued, key=lambda pid: (-queued[pid], pid))[:_MOST_NAMED]
    return ", ".join(f"{who(owners[pid])} {size(queued[pid])}" for pid in largest)


def _has_too_many_orphans(host: HostFacts) -> bool:
    orphans = host.sockstat.get("TCP.orphan")
    # A socket without progress counts up to four times (net/ipv4/tcp_timer.c, tcp_out_of_resources).
    return orphans is not None and host.max_orphans is not None and orphans * 4 > host.max_orphans


def _orphans(facts: Facts, host: HostFacts) -> Iterator[Finding]:
    orphans, most = host.sockstat.get("TCP.orphan"), host.max_orphans
    aborted = change(host, "TcpExt.TCPAbortOnMemory")
    if orphans is None or not most or not (orphans >= most * _NEARLY or (aborted and _has_too_many_orphans(host))):
        return
    effect = (
        f"; {plural(aborted, 'connection')} aborted {in_window(facts)}"
        if aborted
        else "; more are aborted with a reset"
    )
    yield Finding(
        "tcp-orphans", "warning", HOST,
        f"{plural(orphans, 'orphaned TCP socket')}, which no process has open any more, of {most:,} allowed{effect}",
        "; ".join(["/proc/net/sockstat: TCP orphan, net.ipv4.tcp_max_orphans", *filter(None, [changes(host, "TcpExt.TCPAbortOnMemory")])]),
        fix=shell.command("sysctl", f"net.ipv4.tcp_max_orphans={most * 2}"), share=round(min(1.0, orphans / most), 4),
        window_s=facts.window_s,
    )  # fmt: skip
