"""Messages of sock_diag: of every kernel's length, mixed, cut off, and not the kernel's."""

from __future__ import annotations

import struct

import pytest
from diagmessages import PLACES, message, tcp_info
from hypothesis import given
from hypothesis import strategies as st

from opskit.proc.inet_diag import (
    NEVER_MS,
    Reader,
    as_end,
    as_row,
    key_of,
    parse_destination,
    parse_info,
    parse_memory,
    parse_socket,
)
from opskit.proc.tcp_sockets import TcpInfo, address_text

VALUES = {name: number + 1 for number, name in enumerate(PLACES)}
# What Linux of these versions appended to struct tcp_info, and its size since.
SIZES = {
    "3.14": (104, []),
    "4.1": (136, ["bytes_acked", "bytes_received"]),
    "4.2": (144, ["segs_out", "segs_in"]),
    "4.6": (160, ["notsent_bytes", "min_rtt_us", "data_segs_in", "data_segs_out"]),
    "4.9": (168, ["delivery_rate"]),
    "4.10": (192, ["busy_us", "rwnd_limited_us", "sndbuf_limited_us"]),
    "4.19": (224, ["bytes_sent", "bytes_retrans", "dsack_dups"]),
    "5.4": (232, ["rcv_ooopack", "snd_wnd"]),
    "6.18": (280, []),
}


@pytest.mark.parametrize("version", SIZES)
def test_the_fields_that_a_kernel_has(version):
    """Later fields are unknown, never 0; what still later kernels append is skipped."""
    size = SIZES[version][0]
    known = {name for name, (place, _) in PLACES.items() if place < 104}
    for other, (least, names) in SIZES.items():
        if least <= size:
            known.update(names)
        assert other in SIZES
    assert parse_info(tcp_info(size, **VALUES)) == TcpInfo(
        **{name: VALUES[name] if name in known else None for name in TcpInfo._fields}
    )


def test_what_is_no_tcp_info():
    """Shorter than any kernel's; a round-trip time that was not measured yet."""
    assert parse_info(b"") is None
    assert parse_info(bytes(103)) is None
    assert parse_info(tcp_info(min_rtt_us=NEVER_MS)).min_rtt_us is None


def test_a_socket():
    """Addresses, ports, queues, owner, timer and cookie; the buffers, which old kernels tell without drops."""
    memory = struct.pack("=9I", 100, 131072, 200, 16384, 300, 400, 500, 600, 7)
    found = parse_socket(
        message(
            "[2001:db8::1]:8080", "[2001:db8::7]:5432", state=8, timer=1, expires=90, retransmits=2, interface=3, cookie=5,
            receive=11, send=22, uid=1000, inode=77, before=[(8, b"\x01")], info=tcp_info(rtt_us=40_000), memory=memory,
        )
    )  # fmt: skip
    assert address_text(found.local, found.local_port) == "[2001:db8::1]:8080"
    assert address_text(found.peer, found.peer_port) == "[2001:db8::7]:5432"
    assert (found.family, found.state, found.recv_queue, found.send_queue) == (10, 8, 11, 22)
    assert (found.uid, found.inode, found.timer, found.expires_ms, found.retransmits) == (1000, 77, 1, 90, 2)
    assert (found.interface, found.cookie, found.info.rtt_us) == (3, (5).to_bytes(8, "little"), 40_000)
    assert found.memory == (100, 131072, 400, 16384, 7)
    assert parse_memory(memory[:32]).drops is None
    assert parse_memory(memory[:31]) is None
    mapped = parse_socket(message("[::ffff:10.0.0.1]:1", "[::ffff:10.0.0.7]:2"))
    assert (mapped.family, address_text(mapped.peer, mapped.peer_port)) == (10, "10.0.0.7:2")
    assert mapped.info is None
    assert mapped.memory is None


def test_rows_of_a_chunk():
    """The same rows of messages of one length, of several, and of a chunk that ends within one."""
    info = tcp_info(280, last_data_sent_ms=3, last_data_recv_ms=4, last_ack_recv_ms=5)
    some = [message(cookie=number, inode=number, receive=number, info=info) for number in range(1, 9)]
    short = message(state=6, cookie=99, inode=0)
    reader = Reader()
    found = list(reader.rows(b"".join(some)))
    assert [start for start, _ in found] == [len(some[0]) * number for number in range(8)]
    assert [row[5] for _, row in found] == [row[8] for _, row in found] == list(range(1, 9))
    assert {row[9:] for _, row in found} == {(3, 4, 5)}
    mixed = list(reader.rows(b"".join([*some[:2], short, *some[2:]])))
    assert [row for _, row in mixed if row[1] == 1] == [row for _, row in found]
    assert [row[9:] for _, row in mixed if row[1] == 6] == [(NEVER_MS,) * 3]
    assert [start for start, _ in mixed][2:4] == [2 * len(some[0]), 2 * len(some[0]) + len(short)]
    assert [row for _, row in reader.rows(b"".join(some)[:-1])] == [row for _, row in found[:-1]]
    assert list(reader.rows(b"")) == list(reader.rows(short[:80])) == []


def test_the_place_of_tcp_info_may_differ():
    """Two kinds of messages of one length, with struct tcp_info in different places."""
    info = tcp_info(last_data_sent_ms=3, last_data_recv_ms=4, last_ack_recv_ms=5)
    first = message(cookie=1, before=[(8, bytes(4))], info=info)
    second = message(cookie=2, info=info + bytes(8))
    assert len(first) == len(second)
    for order in ([first, second], [second, first], [first, first, second]):
        assert {row[9:] for _, row in Reader().rows(b"".join(order))} == {(3, 4, 5)}


def test_a_look():
    """What changes from look to look; without snd_wnd before Linux 5.4, none without struct tcp_info."""
    values = {
        "unacked": 1,
        "last_data_sent_ms": 2,
        "last_data_recv_ms": 3,
        "rcv_ssthresh": 4,
        "rtt_us": 5,
        "snd_wnd": 6,
    }
    reader = Reader()
    assert reader.look(message(receive=8, send=9, info=tcp_info(280, **values))) == (8, 9, 1, 2, 3, 4, 5, 6)
    assert reader.look(message(receive=8, send=9, info=tcp_info(224, **values))) == (8, 9, 1, 2, 3, 4, 5, None)
    assert reader.look(message()) is None
    assert reader.look(b"") is None
    assert reader.look(message(info=tcp_info())[:-4]) is None


@pytest.mark.parametrize("peer", ["10.0.0.7:5432", "[2001:db8::7]:5432", "[::ffff:10.0.0.7]:5432"])
def test_a_record_gives_the_row_and_the_end_of_its_message(peer):
    """So that sockets of /proc/net/tcp are sorted in the same way."""
    local = "127.0.0.1:80" if "[" not in peer else "[::ffff:127.0.0.1]:80" if "ffff" in peer else "[::1]:80"
    sent = message(local, peer, receive=1, send=2, uid=3, inode=4, state=8)
    row, record = next(iter(Reader().rows(sent)))[1], parse_socket(sent)
    assert as_row(record) == (*row[:4], as_row(record)[4], *row[5:])
    end = next(iter(Reader().ends(sent)))
    assert as_end(record) == end
    assert parse_destination(end[0], end[3]) == (record.local, record.peer, 5432, 0)


def test_the_key_is_what_a_request_needs():
    """The family, ports, addresses, interface and cookie."""
    sent = message(cookie=0x0102030405060708, interface=9)
    assert key_of(sent, 0) == sent[16:17] + sent[20:68]
    assert key_of(b"1234" + sent, 4) == key_of(sent, 0)


@given(st.binary(max_size=700), st.integers(0, 600), st.booleans())
def test_damaged_messages(noise, at, is_whole):
    """Any bytes give rows or none, and a record or none of each."""
    sent = message(info=tcp_info(), before=[(8, b"\x01")])
    data = sent + sent[: at % len(sent)] + noise + sent if is_whole else noise
    reader = Reader()
    for start, row in reader.rows(data):
        assert len(row) == 12
        assert parse_socket(data, start).state == row[1]
        reader.look(data[start:])
    assert all(len(end) == 5 for end in reader.ends(data))
