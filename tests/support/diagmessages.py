"""Messages of sock_diag as the kernel writes them, of any kernel's length."""

from __future__ import annotations

import struct
from ipaddress import ip_address

INFO_BYTES = 232
PLACES = {  # of struct tcp_info, by offset and format
    "retransmits": (2, "B"), "backoff": (4, "B"), "rto_us": (8, "I"), "snd_mss": (16, "I"), "rcv_mss": (20, "I"),
    "unacked": (24, "I"), "sacked": (28, "I"), "lost": (32, "I"), "last_data_sent_ms": (44, "I"),
    "last_data_recv_ms": (52, "I"), "last_ack_recv_ms": (56, "I"), "pmtu": (60, "I"), "rcv_ssthresh": (64, "I"),
    "rtt_us": (68, "I"), "rttvar_us": (72, "I"), "snd_cwnd": (80, "I"), "advmss": (84, "I"), "rcv_space": (96, "I"),
    "total_retrans": (100, "I"), "bytes_acked": (120, "Q"), "bytes_received": (128, "Q"), "segs_out": (136, "I"),
    "segs_in": (140, "I"), "notsent_bytes": (144, "I"), "min_rtt_us": (148, "I"), "data_segs_in": (152, "I"),
    "data_segs_out": (156, "I"), "delivery_rate": (160, "Q"), "busy_us": (168, "Q"), "rwnd_limited_us": (176, "Q"),
    "sndbuf_limited_us": (184, "Q"), "bytes_sent": (200, "Q"), "bytes_retrans": (208, "Q"), "dsack_dups": (216, "I"),
    "rcv_ooopack": (224, "I"), "snd_wnd": (228, "I"),
}  # fmt: skip


def tcp_info(size=INFO_BYTES, **values):
    """A struct tcp_info of `size` bytes; longer ones end in bytes that opskit does not know."""
    found = bytearray(max(size, INFO_BYTES))
    found[INFO_BYTES:] = b"\xaa" * (len(found) - INFO_BYTES)
    for name, value in values.items():
        place, code = PLACES[name]
        struct.pack_into(f"={code}", found, place, value)
    return bytes(found[:size])


def address(text):
    """The family of an address, and its 16 bytes."""
    packed = ip_address(text).packed
    return (2 if len(packed) == 4 else 10), packed.ljust(16, b"\0")


def message(
    local="127.0.0.1:8080", peer="10.0.0.7:5432", *, state=1, timer=0, expires=0, retransmits=0, interface=0, cookie=1,
    receive=0, send=0, uid=0, inode=7, before=(), info=None, memory=None,
):  # fmt: skip
    """One message with its header. `before`: (type, value) of attributes before struct tcp_info."""
    (family, ours), (_, theirs) = (address(each.rpartition(":")[0].strip("[]")) for each in (local, peer))
    ports = (int(each.rpartition(":")[2]).to_bytes(2, "big") for each in (local, peer))
    body = struct.pack(
        "=4B2s2s16s16sI8s",
        family,
        state,
        timer,
        retransmits,
        *ports,
        ours,
        theirs,
        interface,
        cookie.to_bytes(8, "little"),
    )
    body += struct.pack("=5I", expires, receive, send, uid, inode)
    attributes = [*before, *([(7, memory)] if memory is not None else []), *([(2, info)] if info is not None else [])]
    for kind, value in attributes:
        body += struct.pack("=HH", 4 + len(value), kind) + value + bytes(-len(value) % 4)
    return struct.pack("=IHHII", 16 + len(body), 20, 2, 1, 42) + body
