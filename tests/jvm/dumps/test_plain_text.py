"""Dumps as people save and paste them become the lines that the JVM wrote."""

from __future__ import annotations

import json

import pytest

from opskit.jvm.dumps.dialects import DumpReader
from opskit.jvm.dumps.plain_text import is_binary, plain_text

CLEAN = (
    "2026-11-21 11:04:04\n"
    "Full thread dump OpenJDK 64-Bit Server VM (17.0.15+6 mixed mode):\n"
    "\n"
    '"main" #1 prio=5 os_prio=0 tid=0x00007f00 nid=0x1f4b runnable\n'
    "   java.lang.Thread.State: RUNNABLE\n"
    "\tat com.example.Main.main(Main.java:10)\n"
    "\n"
    "JNI global refs: 26, weak refs: 0\n"
)
FRAGMENT = CLEAN.partition("\n\n")[2]


def prefixed(prefixes, text=CLEAN, strip=False):
    lines = text.splitlines()
    out = [prefixes[n % len(prefixes)] + line for n, line in enumerate(lines)]
    return "".join((line.rstrip() if strip else line) + "\n" for line in out).encode()


@pytest.mark.parametrize("text", [CLEAN, FRAGMENT], ids=["dump", "fragment"])
@pytest.mark.parametrize("strip", [False, True], ids=["blanks", "stripped"])
@pytest.mark.parametrize(
    "prefixes",
    [
        ["app-1  | "],
        ["\x1b[36mapp-1  |\x1b[0m "],
        ["2026-11-21T11:04:04.123456789Z ", "2026-11-21T11:04:05.023456789Z "],
        ["2026-11-21T11:04:04.123456789Z stdout F ", "2026-11-21T11:04:05.1Z stdout F "],
        ["Nov  9 23:59:59 host-7 java[4242]: ", "Nov 10 00:00:00 host-7 java[4242]: "],
        ["06:20:19  ", "06:20:20  "],
        ["> "],
        ["    "],
        ["[2026-11-21 11:04:04,123] INFO  [main] - ", "[2026-11-21 11:04:04,124] INFO  [main] - "],
    ],
)
def test_prefixes_go(prefixes, strip, text):
    """docker, compose, Kubernetes, syslog, Jenkins, mail, indentation, a logger: also where blank ends were trimmed."""
    assert plain_text(prefixed(prefixes, text, strip)).decode() == text


def test_a_clean_dump_stays_the_same_bytes():
    """Nothing is copied where nothing has to be changed."""
    data = CLEAN.encode()
    assert plain_text(data) is data


def test_another_containers_lines_keep_their_prefix():
    """app-2 logs in between: those lines do not belong to the dump."""
    mixed = prefixed(["app-1  | "]).replace(b"app-1  | \tat", b'app-2  | "x" tid=0x1 GET /\napp-1  | \tat')
    assert plain_text(mixed).decode() == CLEAN.replace("\tat", 'app-2  | "x" tid=0x1 GET /\n\tat')


def test_two_containers_that_log_into_one_file_are_told_apart():
    """Their dumps are interleaved line by line; each comes out whole."""
    other = CLEAN.replace("main", "other")
    lines = zip(prefixed(["app-1  | "]).splitlines(True), prefixed(["app-2  | "], other).splitlines(True))
    assert plain_text(b"".join(line for pair in lines for line in pair)).decode() == CLEAN + other
    mixed = prefixed(["app-2  | "], other) + b"app-3  | noise\n" + CLEAN.encode()
    assert plain_text(mixed).decode() == other + "app-3  | noise\n" + CLEAN


def test_a_logger_may_prefix_the_first_line_alone():
    """The dump is one message of many lines: only its first line has the logger's prefix."""
    body = CLEAN.partition("\n")[2]
    message = f"2026-11-21 11:04:04,123 INFO  [exec-1] - {body}2026-11-21 11:04:05,123 INFO  [exec-2] - {body}"
    assert plain_text(message.encode()).decode() == message
    assert len(DumpReader().read(message.encode(), "x")) == 2


@pytest.mark.parametrize("prefix", ["", "2026-11-21T11:04:04.123Z stdout F "])
def test_a_log_with_the_newest_line_first_is_turned_round(prefix):
    """As log viewers show and export it."""
    lines = [prefix + line for line in CLEAN.splitlines()]
    assert plain_text("\n".join(reversed(lines)).encode()).decode().rstrip("\n") == CLEAN.rstrip("\n")


def test_syslogs_tabs():
    """Rsyslog writes a tab as #011."""
    assert plain_text(prefixed(["Nov 21 11:04:04 h java[1]: "]).replace(b"\t", b"#011")).decode() == CLEAN


def test_dockers_own_files():
    """One JSON object a line; a line that is cut off at the end is left out."""
    lines = [json.dumps({"log": line + "\n", "stream": "stdout", "time": "x"}) for line in CLEAN.splitlines()]
    assert plain_text("\n".join([*lines, '{"log":"half']).encode()).decode() == CLEAN


@pytest.mark.parametrize("key", ["message", "MESSAGE", "msg", "textPayload"])
def test_logs_of_one_json_object_a_line(key):
    """Logstash, journald, cloud loggers; lines between them that are not JSON are the JVM's own."""
    lines = [json.dumps({"level": "INFO", key: line}) for line in CLEAN.splitlines()]
    assert plain_text("\n".join(lines).encode()).decode() == CLEAN
    bytewise = [json.dumps({key: list(line.encode())}) for line in CLEAN.splitlines()]
    assert plain_text("\n".join(bytewise).encode()).decode() == CLEAN
    started = json.dumps({"level": "INFO", key: "started"}) + "\n"
    assert CLEAN in plain_text((started + CLEAN).encode()).decode()


@pytest.mark.parametrize("ending", ["\r\n", "\r", "\r\r\n"])
def test_other_systems_line_ends(ending):
    """Windows, and Windows twice."""
    assert plain_text(CLEAN.replace("\n", ending).encode()).decode() == CLEAN


@pytest.mark.parametrize(
    "data",
    [
        CLEAN.encode("utf-16"),
        CLEAN.encode("utf-16-le"),
        CLEAN.encode("utf-16-be"),
        b"\xfe\xff" + CLEAN.encode("utf-16-be"),
        CLEAN[:100].encode("utf-16") + CLEAN[100:].encode("utf-16"),
        CLEAN.encode("utf-8-sig"),
    ],
    ids=["bom", "le", "be", "be-bom", "appended", "utf-8-bom"],
)
def test_encodings(data):
    """PowerShell's redirections, with and without a mark, also appended to one another."""
    assert plain_text(data).decode() == CLEAN
    assert plain_text(data[:-1]).decode().rstrip("\n") == CLEAN.rstrip("\n")
    assert not is_binary(data)


def test_legacy_bytes_stay():
    """A name in Latin 1 or Shift JIS does not make parsing fail."""
    data = CLEAN.replace("main", "gr\xfcn").encode("latin-1")
    assert plain_text(data) == data


def test_binary():
    """NUL bytes that are not UTF-16 make a binary."""
    assert is_binary(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0")
    assert not is_binary(b"")
