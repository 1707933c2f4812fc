"""Network interfaces with their queues: of our network namespace, and of others where RPS steers packets to a CPU that is looked for.

sysfs shows the interfaces of the namespace that it was mounted in. Another one's is mounted at no path while this thread is in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.collect.irqs.facts import Interface, Queue, Space
from opskit.proc.files.net_dev import parse_net_dev
from opskit.proc.fs import DENIED, ProcFS, optional
from opskit.proc.held_file import HeldFile
from opskit.proc.namespaces import namespace
from opskit.proc.net_queues import is_virtual, network_links, read_device, read_queues
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from opskit.host import Host
    from opskit.proc.files.net_dev import NetDev
    from opskit.proc.net_queues import NetQueue
    from opskit.proc.network import Network

_MOST_INTERFACES, _MOST_SPACES = 64, 256  # the busiest ones; a machine with containers may have thousands
_RANKING_S = 0.1
_NAMED = ("run", "netns")


class OurInterface(NamedTuple):
    """An interface of our namespace, and the interrupts of its device."""

    interface: Interface
    irqs: frozenset[int]


def our_interfaces(
    fs: ProcFS, before: Mapping[str, NetDev], after: Mapping[str, NetDev], elapsed_s: float
) -> list[OurInterface]:
    """The interfaces that have a device, and others that received packets, the busiest first."""
    links = network_links(fs)
    rates = _rates(before, after, elapsed_s)
    wanted = [name for name in rates if rates[name][0] or (name in links and not is_virtual(links[name]))]
    wanted.sort(key=lambda name: -rates[name][0])
    found = []
    for name in wanted[:_MOST_INTERFACES]:
        device = read_device(fs, name)
        packets, dropped = rates[name]
        virtual = name not in links or is_virtual(links[name])
        queues = tuple(Queue(*queue) for queue in device.queues)
        found.append(
            OurInterface(Interface(name, packets, queues, device.driver, device.node, virtual, dropped), device.irqs)
        )
    return found


def _rates(
    before: Mapping[str, NetDev], after: Mapping[str, NetDev], elapsed_s: float
) -> dict[str, tuple[float, float]]:
    """Packets received and dropped a second; 0 for an interface that is new, or was made again."""
    found = {}
    for name, now in after.items():
        then = before.get(name, now)
        found[name] = (
            max(0, now.received - then.received) / elapsed_s,
            max(0, now.dropped - then.dropped) / elapsed_s,
        )
    return found


class _Place(NamedTuple):
    """Another network namespace, held open."""

    space: Space
    held: Network


def other_interfaces(host: Host, cpus: frozenset[int]) -> tuple[tuple[Interface, ...], tuple[str, ...]]:
    """The interfaces of other network namespaces whose RPS names one of these CPUs, the busiest first; what is missing."""
    if not host.is_own:
        return (), ()
    places: list[_Place] = []
    is_denied = not host.is_root
    try:
        for space, path in _spaces(host):
            try:
                places.append(_Place(space, host.fs.calls.network(path)))
            except DENIED:
                is_denied = True
            except OSError:  # it is gone
                continue
        found = _with_rates(host, places, cpus)
    finally:
        for place in places:
            place.held.close()
    return found, () if found or not is_denied else (_unknown(host),)


def _unknown(host: Host) -> str:
    from opskit.proc.rights import how_to_be_allowed

    advice = how_to_be_allowed(host.fs, "CAP_SYS_ADMIN", "opskit", "irqs")
    return f"RPS of interfaces in other network namespaces is unknown: permission denied; {advice}"


def _with_rates(host: Host, places: Sequence[_Place], cpus: frozenset[int]) -> tuple[Interface, ...]:
    """The interfaces that steer packets there. Their packets are counted for a moment, which only ranks them."""
    steering = [(place, interface) for place in places for interface in _steering(place, cpus)]
    if not steering:
        return ()
    first, begun_s = {place.space: _counters(host.fs, place) for place, _ in steering}, host.monotonic()
    host.pause(_RANKING_S)
    elapsed_s = max(host.monotonic() - begun_s, 1e-6)
    rates = {place.space: _rates(first[place.space], _counters(host.fs, place), elapsed_s) for place, _ in steering}
    found = []
    for place, interface in steering:
        packets, dropped = rates[place.space].get(interface.name, (0.0, 0.0))
        found.append(interface._replace(packets=packets, dropped=dropped))
    return tuple(sorted(found, key=lambda interface: -interface.packets)[:_MOST_INTERFACES])


def _spaces(host: Host) -> Iterator[tuple[Space, str]]:
    """Each other namespace with the file to enter it by: those of `ip netns` first, then those of processes."""
    fs = host.fs
    ours = namespace(fs, "thread-self", "net")
    seen = {ours}
    for name in fs.names_root(*_NAMED):
        path = "/".join((fs.root, *_NAMED, name))
        file = optional(fs.file_id_at, path)
        key = None if file is None else b"net:[%d]" % file.inode
        if key is not None and key not in seen and len(seen) <= _MOST_SPACES:
            seen.add(key)
            yield Space(name), path
    for pid in fs.pids():
        key = namespace(fs, pid, "net")
        if key is not None and key not in seen and len(seen) <= _MOST_SPACES:
            seen.add(key)
            yield Space(None, pid), fs.path(pid, "ns", "net")


def _counters(fs: ProcFS, place: _Place) -> dict[str, NetDev]:
    try:
        with place.held.inside():
            return place.held.fs(fs).maybe(parse_net_dev, "thread-self", "net", "dev", default={})
    except OSError:
        return {}


def _steering(place: _Place, cpus: frozenset[int]) -> list[Interface]:
    """The interfaces of a namespace with a queue whose RPS names one of these CPUs."""
    return [
        Interface(name, 0.0, tuple(Queue(*queue) for queue in queues), is_virtual=is_virtual(link), space=place.space)
        for name, link, queues in optional(place.held.ask, devices_here, default=())
        if any(queue.kind == "rx" and queue.cpus & cpus for queue in queues)
    ]


def devices_here() -> list[tuple[str, str, tuple[NetQueue, ...]]]:
    """Each interface of the network namespace that this thread is in, where its device is, and its queues. Raises OSError before Linux 5.2."""
    from opskit.proc.kernel.syscalls import mount_detached

    mounted = HeldFile(fd := mount_detached("sysfs"))
    try:
        fs = ProcFS(root=f"/proc/self/fd/{fd}")
        return [(name, link, read_queues(fs, name, ())) for name, link in network_links(fs, ()).items()]
    finally:
        mounted.close()
