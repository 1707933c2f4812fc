"""The peer that is meant: an address, a network, and a port."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.errors import UsageError
from opskit.quantities import integer

if TYPE_CHECKING:
    from ipaddress import IPv4Network, IPv6Network

_EXAMPLES = "10.0.0.7, 10.0.0.7:5432, 10.0.0.0/8 or [2001:db8::7]:5432"
_MAPPED_BITS = 96  # ::ffff:0:0/96


def parse_peer(word: str) -> tuple[bytes, int, int | None]:
    """The packed address of a network, its prefix length, and the port or None. IPv4-mapped ones are IPv4. Raises UsageError.

    `10.0.0.7`, `10.0.0.7:5432`, `10.0.0.0/8`, `10.0.0.0/8:443`, `2001:db8::7`, `[2001:db8::7]:5432`, `2001:db8::/32`.
    """
    host, port = _split(word)
    network = _network(host)
    if network is None:
        raise UsageError(f"--peer {word[:80]}: {_why(host)}; write {_EXAMPLES}")
    packed, prefix = network.network_address.packed, network.prefixlen
    if packed[:12] == bytes(10) + b"\xff\xff" and prefix >= _MAPPED_BITS:
        packed, prefix = packed[12:], prefix - _MAPPED_BITS
    if port is None:
        return packed, prefix, None
    number = integer(port)
    if number is None or not 0 < number < 65536:
        raise UsageError(f"--peer {word[:80]}: {port[:20]!r} is not a port: a port is a number from 1 to 65535")
    return packed, prefix, number


def _split(word: str) -> tuple[str, str | None]:
    """The address or network, and what follows its colon. Without brackets, two colons belong to an IPv6 address."""
    if word.startswith("["):
        host, bracket, rest = word[1:].partition("]")
        prefix, colon, port = rest.partition(":")
        return (host + prefix if bracket else word), (port if colon else None)
    if word.count(":") != 1:
        return word, None
    host, _, port = word.partition(":")
    return host, port


def _network(text: str) -> IPv4Network | IPv6Network | None:
    from ipaddress import ip_network

    address, slash, prefix = text.partition("/")
    if "%" in text or (slash and integer(prefix) is None):  # ip_network() takes interfaces and netmasks too
        return None
    try:
        return ip_network(f"{address}{slash}{prefix}", strict=False)
    except ValueError:
        return None


def _why(host: str) -> str:
    if not host:
        return "the address is missing"
    if "%" in host:
        return "an address is given without its interface (%…)"
    return f"{host[:80]!r} is not an IP address or network (names are not looked up)"
