"""Judge network interfaces: links, errors, drops, utilisation; UDP receive buffers and the tables of neighbours. Pure.

Frames of protocols that nobody handles count as dropped on each healthy machine, and virtual interfaces have no carrier while nobody uses
them: neither is a finding.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit import shell
from opskit.analysis.finding import HOST, Entity, Finding, most_severe_first
from opskit.quantities import agreeing, percent, plural

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opskit.analysis.finding import Severity
    from opskit.collect.host.network import Facts, Link, Table
    from opskit.proc.files.net_dev import NetDev

_SOME, _FEW, _MANY, _FEW_SHARE = 0.001, 3, 10, 0.01  # of the frames; frames in the window
_DROPPED, _MOST_DROPPED = 0.05, 100  # of the packets; packets
_WIRELESS = 0.05  # of the frames: some are always sent again
_PAST, _PAST_LEAST = 0.0001, 100  # since boot
_SATURATED = 0.9  # of the line rate
_SLOW_MBIT = 100  # every port of the last twenty years can do more, with a sound cable
_LOST, _FEWEST_LOST = 0.01, 10  # datagrams
_NEARLY = 0.9


def judge(facts: Facts) -> list[Finding]:
    """The findings, the most severe first."""
    found = [finding for link in facts.links for finding in _of_link(facts, link)]
    wireless = {link.name for link in facts.links if link.is_wireless}
    physical = {link.name for link in facts.links if link.is_physical}
    for name, added in facts.added.items():
        found += _counted(facts, name, added, is_wireless=name in wireless)
    found += [
        finding for name in facts.before if name in physical for finding in _past(facts, name, facts.before[name])
    ]
    found += _udp(facts)
    found += [finding for table in facts.tables for finding in _neighbours(facts, table)]
    return most_severe_first(found)


def _entity(name: str) -> Entity:
    return Entity("device", name, inside=HOST)


def _look(name: str) -> str:
    return shell.command("ip", "-s", "-s", "link", "show", "dev", name)


def _of_link(facts: Facts, link: Link) -> Iterator[Finding]:
    name, flaps = link.name, facts.flaps.get(link.name, 0)
    is_member = link.master and not _is_spare(facts, link)
    is_needed = (link.is_physical and (link.has_address or is_member)) or link.has_gateway
    if link.is_up and link.has_carrier is False and is_needed:
        why = (
            "the default route leads through it" if link.has_gateway else "it has addresses" if link.has_address
            else "it is part of a bond or bridge"
        )  # fmt: skip
        yield Finding(
            "network-link-down", "warning", _entity(name), f"the link of {name} is down (no carrier), although {why}",
            f"/sys/class/net/{name}/carrier is 0; {link.changes or 0:,} changes since boot", next=_look(name),
        )  # fmt: skip
    elif flaps > 1:
        yield Finding(
            "link-flapping", "warning", _entity(name),
            f"the link of {name} went down and up within {facts.window_s:.1f} s: {plural(flaps, 'change')} of the carrier",
            f"/sys/class/net/{name}/carrier_changes", next=_look(name), window_s=facts.window_s,
        )  # fmt: skip
    if link.has_carrier and link.is_physical and not link.is_wireless:
        yield from _negotiated(link)


def _is_spare(facts: Facts, link: Link) -> bool:
    """Whether it is a free port of a switch: a port of a bridge of which another has a cable."""
    return link.bridge is not None and any(
        each.bridge == link.bridge and each.has_carrier for each in facts.links if each.is_physical
    )


def _negotiated(link: Link) -> Iterator[Finding]:
    name, speed = link.name, link.speed_mbit
    if link.duplex == "half" and speed is not None:
        yield Finding(
            "network-half-duplex", "warning", _entity(name),
            f"{name} runs half duplex at {speed} Mbit/s: collisions and late frames, as after failed autonegotiation",
            f"/sys/class/net/{name}/duplex", next=shell.command("ethtool", name),
        )  # fmt: skip
    elif speed is not None and speed <= _SLOW_MBIT:
        yield Finding(
            "network-link-slow", "note", _entity(name),
            f"{name} runs at {speed} Mbit/s: a damaged cable or an old switch, if it can do more",
            f"/sys/class/net/{name}/speed", next=shell.command("ethtool", name),
        )  # fmt: skip


def _is_much(number: int, total: int, least_share: float) -> bool:
    share = number / total if total else 0.0
    return share >= least_share and (number >= _MANY or (number >= _FEW and share >= _FEW_SHARE))


def _counted(facts: Facts, name: str, added: NetDev, *, is_wireless: bool) -> Iterator[Finding]:
    """Errors and drops of the window."""
    least = _WIRELESS if is_wireless else _SOME
    received, sent = added.received + added.errors, added.sent + added.sent_errors
    wrong = []
    if _is_much(added.errors, received, least):
        kinds = [
            (added.frame, "damaged frames"),
            (added.fifo, "overruns of the device's buffer"),
        ]
        parts = [f"{number:,} {words}" for number, words in kinds if number]
        wrong.append(f"{percent(added.errors / received)} of the received ({', '.join(parts) or 'errors'})")
    if _is_much(added.sent_errors, sent, least):
        lost = f"{added.carrier:,} carrier lost" if added.carrier else "errors"
        wrong.append(f"{percent(added.sent_errors / sent)} of the sent ({lost})")
    if wrong:
        number = added.errors + added.sent_errors
        yield Finding(
            "network-errors", "warning", _entity(name),
            f"{name} had {plural(number, 'error')} in {facts.window_s:.1f} s: {' and '.join(wrong)} frames",
            "/proc/net/dev", next=shell.command("ethtool", "-S", name),
            share=max(added.errors / max(received, 1), added.sent_errors / max(sent, 1)), window_s=facts.window_s,
        )  # fmt: skip
    for number, total, verb in ((added.dropped, added.received, "received"), (added.sent_dropped, added.sent, "sent")):
        share = number / (total + number) if number else 0.0
        if number >= _MOST_DROPPED and share >= _DROPPED:
            yield Finding(
                "network-drops", "warning", _entity(name),
                f"{name} dropped {plural(number, 'packet')} in {facts.window_s:.1f} s: {percent(share)} of those to be {verb}",
                "/proc/net/dev", next=_look(name), share=share, window_s=facts.window_s,
            )  # fmt: skip
    yield from _utilised(facts, name, added)


def _utilised(facts: Facts, name: str, added: NetDev) -> Iterator[Finding]:
    """Near the line rate: work as it should be, unless packets are dropped for it."""
    speed = next((link.speed_mbit for link in facts.links if link.name == name and link.is_physical), None)
    if speed is None or not facts.window_s:
        return
    for moved, dropped, verb in (
        (added.received_bytes, added.dropped, "receives"),
        (added.sent_bytes, added.sent_dropped, "sends"),
    ):
        share = moved * 8 / (facts.window_s * speed * 1e6)
        if share >= _SATURATED:
            severity: Severity = "warning" if dropped >= _MOST_DROPPED else "note"
            lost = f", and dropped {plural(dropped, 'packet')}" if dropped >= _MOST_DROPPED else ""
            yield Finding(
                "network-saturated", severity, _entity(name),
                f"{name} {verb} at {percent(min(share, 1.0))} of its line rate of {speed:,} Mbit/s{lost}",
                "/proc/net/dev, speed", next=shell.command("opskit", "tcp", "-v"), share=min(share, 1.0), window_s=facts.window_s,
            )  # fmt: skip


def _past(facts: Facts, name: str, before: NetDev) -> Iterator[Finding]:
    """A note about errors since boot, where the window has none."""
    number, total = before.errors + before.sent_errors, before.received + before.sent
    now = facts.added.get(name)
    if number >= max(_PAST_LEAST, _PAST * total) and not (now and (now.errors or now.sent_errors)):
        yield Finding(
            "network-errors-counted", "note", _entity(name),
            f"{name} counted {plural(number, 'error')} since boot, in {percent(min(1.0, number / max(total, 1)))} of its packets",
            "/proc/net/dev", next=shell.command("ethtool", "-S", name),
        )  # fmt: skip


def _udp(facts: Facts) -> Iterator[Finding]:
    received, lost = facts.udp or (0, 0)
    if lost < _FEWEST_LOST or lost < _LOST * (received + lost):
        return
    share = lost / (received + lost)
    yield Finding(
        "udp-receive-buffer-full", "warning", HOST,
        f"{plural(lost, 'UDP datagram')} {agreeing(lost, 'was', 'were')} lost in {facts.window_s:.1f} s, {percent(share)} of all: the receive "
        "buffer of a socket is full, since its program does not read in time",
        "/proc/net/snmp: Udp RcvbufErrors", next=shell.command("ss", "-uamp"), share=share, window_s=facts.window_s,
    )  # fmt: skip


def _neighbours(facts: Facts, table: Table) -> Iterator[Finding]:
    limit = table.limit
    share = table.entries / limit if limit else 0.0
    if not table.refused and share < _NEARLY:
        return
    kind = "ARP" if table.family == "ipv4" else "NDP"
    name = f"net.{table.family}.neigh.default.gc_thresh3"
    full = bool(table.refused)
    if full:
        said = f"the {kind} table is full: {plural(table.refused or 0, 'new entry', 'new entries')} refused in {facts.window_s:.1f} s"
    else:
        said = f"the {kind} table is nearly full: {table.entries:,} of {limit or 0:,} entries"
    yield Finding(
        "neighbour-table-full" if full else "neighbour-table-nearly-full", "error" if full else "warning", HOST,
        f"{said}; new hosts of the network cannot be reached" if full else said,
        f"{name} is {limit if limit is not None else 'unknown'}, {table.entries:,} entries",
        fix=shell.command("sysctl", "-w", f"{name}={2 * (limit or 1024)}"),
        next=shell.command("ip", "-4" if table.family == "ipv4" else "-6", "neigh", "show"),
        share=min(1.0, share), window_s=facts.window_s if full else None,
    )  # fmt: skip
