"""Read network interfaces over a window: what they counted, the state of their links; UDP buffers and the tables of neighbours."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.proc.files.neighbour_stat import parse_neighbours
from opskit.proc.files.net_dev import NetDev, parse_net_dev
from opskit.proc.files.routes import parse_global_addresses, parse_routes
from opskit.proc.files.snmp import parse_counters
from opskit.quantities import hexadecimal, integer, signed
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opskit.host import Host
    from opskit.proc.files.neighbour_stat import Neighbours

_UDP = ("Udp.InDatagrams", "Udp.RcvbufErrors")
_TABLES = {"ipv4": "arp_cache", "ipv6": "ndisc_cache"}
_UP = 0x1  # include/uapi/linux/if.h, IFF_UP
_MOST_LINKS = 256
_CLASS = ("sys", "class", "net")
_UPPER = "upper_"


class Link(NamedTuple):
    """An interface that has a device, or a route to a gateway. `is_up`: switched on. `has_carrier` None: it is off, or unknown.

    `changes`: of the carrier since boot. `speed_mbit`, `duplex` None: unknown, as of most virtual devices. `has_address`: or a route.
    `bridge`: that it is a port of.
    """

    name: str
    is_physical: bool
    is_wireless: bool
    is_up: bool
    has_carrier: bool | None
    changes: int | None
    speed_mbit: int | None
    duplex: str | None
    has_address: bool
    has_gateway: bool
    master: bool
    bridge: str | None = None


class Table(NamedTuple):
    """A table of neighbours: entries at the end, the limit (gc_thresh3), and how often a new one was refused in the window."""

    family: str
    entries: int
    limit: int | None
    refused: int | None


class Facts(NamedTuple):
    """The network namespace of opskit. `added`: by interface what it counted in the window. `before`: until then.

    `flaps`: changes of the carrier in the window, by interface. `udp`: datagrams received in the window, and lost at full receive buffers.
    """

    window_s: float
    interfaces: int
    links: tuple[Link, ...]
    before: Mapping[str, NetDev]
    added: Mapping[str, NetDev]
    flaps: Mapping[str, int]
    tables: tuple[Table, ...]
    udp: tuple[int, int] | None


def collect(host: Host, window_s: float) -> Facts:
    """Read the counters, wait, and read them again; of a copy once."""
    fs = host.fs
    place: tuple[object, ...] = ("thread-self", "net") if host.is_own else (1, "net") if fs.is_live else ("net",)
    begun_s = host.monotonic()
    before, udp, tables = _counters(host, place)
    links = _links(host, place, before) if host.is_own or not fs.is_live else ()
    if not window_s:
        known = tuple(_table(host, family, None, now) for family, now in tables.items())
        return Facts(0.0, len(before), links, before, {}, {}, known, None)
    host.sleep(max(0.0, begun_s + window_s - host.monotonic()))
    now, udp_now, tables_now = _counters(host, place)
    later = {link.name: _changes(host, link.name) for link in links}
    flaps = {link.name: max(0, (later[link.name] or 0) - link.changes) for link in links if link.changes is not None}
    carriers = tuple(link._replace(has_carrier=_carrier(host, link.name)) for link in links)
    return Facts(
        host.monotonic() - begun_s, len(now), carriers, before,
        {name: each.since(before[name]) for name, each in now.items() if name in before}, flaps,
        tuple(_table(host, family, tables.get(family), each) for family, each in tables_now.items()),
        None if udp is None or udp_now is None else (udp_now[0] - udp[0], udp_now[1] - udp[1]),
    )  # fmt: skip


def _counters(
    host: Host, place: tuple[object, ...]
) -> tuple[dict[str, NetDev], tuple[int, int] | None, dict[str, Neighbours]]:
    fs = host.fs
    found = fs.maybe(lambda text: parse_counters(text, _UDP), *place, "snmp", default={})
    udp = (found[_UDP[0]], found[_UDP[1]]) if len(found) == len(_UDP) else None
    tables = {family: fs.maybe(parse_neighbours, *place, "stat", name) for family, name in _TABLES.items()}
    known = {family: each for family, each in tables.items() if each is not None}
    return fs.maybe(parse_net_dev, *place, "dev", default={}), udp, known


def _table(host: Host, family: str, before: Neighbours | None, now: Neighbours) -> Table:
    known = before is not None and before.refused is not None and now.refused is not None
    refused = (now.refused or 0) - (before.refused or 0) if known and before is not None else None
    return Table(family, now.entries, host.sysctl("net", family, "neigh", "default", "gc_thresh3"), refused)


def _links(host: Host, place: tuple[object, ...], known: Mapping[str, NetDev]) -> tuple[Link, ...]:
    fs = host.fs
    routes = fs.maybe(parse_routes, *place, "route", default={})
    addresses = fs.maybe(parse_global_addresses, *place, "if_inet6", default=set())
    found: list[Link] = []
    for name in known:
        is_physical = "/" not in name and fs.root_exists(*_CLASS, name, "device")
        if (is_physical or routes.get(name)) and len(found) < _MOST_LINKS:
            found.append(_link(host, name, routes, addresses, is_physical=is_physical))
    return tuple(found)


def _link(host: Host, name: str, routes: Mapping[str, bool], addresses: set[str], *, is_physical: bool) -> Link:
    fs = host.fs
    speed = signed(_text(host, name, "speed") or "")
    duplex = _text(host, name, "duplex")
    return Link(
        name, is_physical, fs.root_exists(*_CLASS, name, "phy80211") or fs.root_exists(*_CLASS, name, "wireless"),
        bool((hexadecimal(_text(host, name, "flags") or "") or 0) & _UP), _carrier(host, name), _changes(host, name),
        speed if speed is not None and speed > 0 else None, duplex if duplex in ("half", "full") else None,
        name in routes or name in addresses, routes.get(name, False), fs.root_exists(*_CLASS, name, "master"), _bridge(host, name),
    )  # fmt: skip


def _bridge(host: Host, name: str) -> str | None:
    fs = host.fs
    if not fs.root_exists(*_CLASS, name, "brport"):
        return None
    above = (each for each in fs.names_root(*_CLASS, name) if each.startswith(_UPPER))
    return next((each[len(_UPPER) :] for each in above), None)


def _text(host: Host, name: str, file: str) -> str | None:
    return host.fs.maybe_root(str.strip, *_CLASS, name, file)


def _carrier(host: Host, name: str) -> bool | None:
    return {"1": True, "0": False}.get(_text(host, name, "carrier") or "")


def _changes(host: Host, name: str) -> int | None:
    return integer(_text(host, name, "carrier_changes") or "")
