"""--peer: addresses, networks and ports of both families; each bad input has its reason."""

from __future__ import annotations

from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opskit.collect.tcp.peer import parse_peer
from opskit.errors import UsageError

PEERS = {
    "10.0.0.7": ("10.0.0.7", 32, None),
    "10.0.0.7:5432": ("10.0.0.7", 32, 5432),
    "10.0.0.0/8": ("10.0.0.0", 8, None),
    "10.1.2.3/8:443": ("10.0.0.0", 8, 443),
    "0.0.0.0/0:65535": ("0.0.0.0", 0, 65535),  # noqa: S104  (a network)
    "2001:db8::7": ("2001:db8::7", 128, None),
    "[2001:db8::7]": ("2001:db8::7", 128, None),
    "[2001:db8::7]:5432": ("2001:db8::7", 128, 5432),
    "2001:db8:1::/32": ("2001:db8::", 32, None),
    "[2001:db8::]/32:443": ("2001:db8::", 32, 443),
    "[2001:db8::/32]:443": ("2001:db8::", 32, 443),
    "::1": ("::1", 128, None),
    "::ffff:10.0.0.7": ("10.0.0.7", 32, None),
    "[::ffff:10.0.0.7]:80": ("10.0.0.7", 32, 80),
    "::ffff:10.0.0.0/104": ("10.0.0.0", 8, None),
    "::/0": ("::", 0, None),
}
BAD = {
    "": "the address is missing",
    ":80": "the address is missing",
    "[]:80": "the address is missing",
    "db.example.com": "'db.example.com' is not an IP address or network (names are not looked up)",
    "localhost:80": "'localhost' is not an IP address",
    "10.0.0.256": "is not an IP address",
    "10.0.0": "is not an IP address",
    "10.0.0.7/33": "is not an IP address",
    "10.0.0.7/": "is not an IP address",
    "10.0.0.7/255.0.0.0": "is not an IP address",
    "10.0.0.7:": "'' is not a port",
    "10.0.0.7:0": "'0' is not a port: a port is a number from 1 to 65535",
    "10.0.0.7:65536": "'65536' is not a port",
    "10.0.0.7:-1": "'-1' is not a port",
    "10.0.0.7:http": "'http' is not a port",
    "10.0.0.7:²": "is not a port",
    "[10.0.0.7": "is not an IP address",
    "[::1]x:5": "is not an IP address",
    "1:2:3": "is not an IP address",
    "fe80::1%eth0": "without its interface",
    "10.0.0.7\n": "is not an IP address",
    "x" * 5000: "is not an IP address",
}


@pytest.mark.parametrize("word", PEERS)
def test_peers(word):
    """An IPv4-mapped address is the IPv4 address that it stands for."""
    host, prefix, port = PEERS[word]
    assert parse_peer(word) == (ip_address(host).packed, prefix, port)


@pytest.mark.parametrize("word", BAD, ids=lambda word: repr(word[:20]))
def test_bad_peers(word):
    """The word, the reason, and what to write."""
    with pytest.raises(UsageError) as caught:
        parse_peer(word)
    assert str(caught.value).startswith(f"--peer {word[:80]}: ")
    assert BAD[word] in str(caught.value)
    assert len(str(caught.value)) < 300


@given(st.ip_addresses(), st.one_of(st.none(), st.integers(1, 65535)))
def test_every_address_as_it_is_printed(address, port):
    """What tcp prints can be given to --peer."""
    from opskit.proc.tcp_sockets import address_text, host_text

    mapped = getattr(address, "ipv4_mapped", None)
    expected = (mapped or address).packed
    word = host_text(address.packed) if port is None else address_text(address.packed, port)
    assert parse_peer(word) == (expected, 8 * len(expected), port)


@given(st.text(max_size=60))
def test_any_text(word):
    """A peer or a UsageError."""
    try:
        packed, prefix, port = parse_peer(word)
    except UsageError:
        return
    assert len(packed) in (4, 16)
    assert 0 <= prefix <= 8 * len(packed)
    assert port is None or 0 < port < 65536
