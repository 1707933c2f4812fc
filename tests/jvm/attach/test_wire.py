"""The bytes of the attach protocol."""

from __future__ import annotations

import pytest
from attaching import refused
from hypothesis import given
from hypothesis import strategies as st

from opskit.errors import AttachError, UsageError
from opskit.jvm.attach.wire import (
    check_histogram,
    check_thread_dump,
    decode,
    encode_v1,
    encode_v2,
    result_of,
    speaks_v2,
    split_reply,
)

DUMP = b"Full thread dump\n\nJNI global refs: 6, weak refs: 0\n\n"
WORD = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=50)


def test_version_1_always_has_three_arguments():
    """The JVM waits for five strings."""
    assert encode_v1("threaddump", ()) == b"1\0threaddump\0\0\0\0"
    assert encode_v1("jcmd", ("VM.flags -all",)) == b"1\0jcmd\0VM.flags -all\0\0\0"


def test_version_2_counts_what_follows_its_size():
    """The size includes every NUL after it; streaming=0 has the reply collected before it is sent."""
    assert encode_v2("threaddump", ("-e",)) == b"2\0" + b"26" + b"\0threaddump streaming=0\0-e\0"


@given(st.lists(WORD, max_size=3))
def test_v1_round_trip(arguments):
    """Splitting at the NULs gives the arguments."""
    words = encode_v1("jcmd", tuple(arguments)).split(b"\0")
    assert words[:2] == [b"1", b"jcmd"]
    assert [word.decode() for word in words[2:-1]] == arguments + [""] * (3 - len(arguments))


@given(st.lists(WORD, max_size=9))
def test_v2_round_trip(arguments):
    """The size is that of the rest."""
    version, size, rest = encode_v2("jcmd", tuple(arguments)).split(b"\0", 2)
    assert (version, int(size)) == (b"2", len(rest))
    assert [word.decode() for word in rest.split(b"\0")] == ["jcmd streaming=0", *arguments, ""]


@pytest.mark.parametrize(
    ("encode", "command", "arguments", "says"),
    [
        (encode_v1, "a" * 17, (), "one word of up to 16 bytes"),
        (encode_v1, "", (), "one word"),
        (encode_v2, "thread dump", (), "one word"),
        (encode_v1, "jcmd", ("x" * 1025,), "up to 1024 bytes"),
        (encode_v1, "jcmd", ("a", "b", "c", "d"), "takes up to 3 of"),
        (encode_v1, "inspectheap", ("", "x"), "an empty one may only be the last"),
        (encode_v1, "jcmd", ("a\0b",), "contains a NUL byte"),
        (encode_v2, "jcmd", ("x" * (256 << 10),), "takes up to 262144"),
    ],
)
def test_what_no_jvm_takes(encode, command, arguments, says):
    """A request that every JVM would refuse is a UsageError before anything is sent."""
    with pytest.raises(UsageError, match=says):
        encode(command, arguments)


@pytest.mark.parametrize(
    ("code", "text", "expected"),
    [
        (0, b"2 streaming\n", True),
        (0, b"2", True),
        (0, b"1", False),
        (-1, b"2", False),
        (0, b"", False),
        (0, b"x", False),
    ],
)
def test_who_speaks_version_2(code, text, expected):
    """Only a code 0 and a number from 2 up."""
    assert speaks_v2(code, text) is expected


def test_replies():
    """A code, a newline, the text; the JVM's message where it refuses."""
    assert split_reply(b"0\nabc\n", 7) == (0, b"abc\n")
    assert result_of(b"0\n", 7, "x") == b""
    with refused("command-failed", r"7 refused 'x' \(code -1\): no such thing"):
        result_of(b"-1\nno such thing\n", 7, "x")
    for cut in (b"0", b"-", b"10"):
        with refused("reply-cut"):
            split_reply(cut, 7)
    for bad in (b"101\n", b"101"):
        with refused("protocol", "101"):
            result_of(bad, 7, "x")
    with refused("protocol", "not HotSpot's protocol"):
        split_reply(b"HTTP/1.1 400 Bad Request\r\n", 7)


@given(st.binary(min_size=1))
def test_any_reply_is_a_result_or_an_error(reply):
    """Any bytes: text, or an AttachError."""
    try:
        assert isinstance(result_of(reply, 7, "x"), bytes)
    except AttachError:
        pass


@given(st.integers(0, len(DUMP) - len("s: 6, weak refs: 0\n\n") - 1))
def test_a_cut_dump_is_no_dump(size):
    """A JVM that is killed during the dump closes the stream like one that is done."""
    assert check_thread_dump(DUMP, 7) == DUMP
    with refused("reply-cut"):
        check_thread_dump(DUMP[:size], 7)


def test_a_cut_histogram_is_no_histogram():
    """The footer ends it."""
    whole = b" num ...\n   1:   2   3  [B\nTotal             2            3\n"
    assert check_histogram(whole, 7) == whole
    with refused("reply-cut"):
        check_histogram(whole[:-40], 7)


def test_names_in_the_jvms_own_utf_8():
    """HotSpot writes an emoji as two surrogates of three bytes; invalid bytes stay as surrogates."""
    assert decode("ä日".encode()) == "ä日"
    assert decode("😀".encode()) == "😀"
    assert decode(b"x\xed\xa0\xbd\xed\xb8\x80y") == "x😀y"
    assert decode(b"x\xff").encode("utf-8", "surrogateescape") == b"x\xff"


@given(st.binary())
def test_decode_takes_anything(data):
    """Any bytes are decoded without an exception."""
    assert isinstance(decode(data), str)
