r"""`jcmd PID Thread.dump_to_file`, plain and JSON, JDK 21 to 25: the only dump that has every virtual thread.

Plain: the pid, the time, the version, then the threads; up to 24 without state and locks:

    64933                                                  16916
    2025-04-22T07:47:09.198298561Z                         2026-11-21T11:42:58.613909546Z
    24+36                                                  25.0.2+10-LTS

    #22 "" virtual                                         #27 "vd1" virtual BLOCKED 2026-11-21T11:42:58.679664547Z
          java.base/java.lang.VirtualThread.run(…)             at V.lambda$main$2(V.java:7)
                                                               - locked <java.lang.Object@b0d6be9>
                                                               - waiting to lock <java.lang.Object@9b6068a>

JSON: numbers are text, `virtual` is there only where it is true (from 24 on), `state`, `parkBlocker`, `blockedOn`,
`waitingOn`, `monitorsOwned` and `carrier` come with 25:

    {"threadDump": {"processId": "16916", "time": "…", "runtimeVersion": "25.0.2+10-LTS", "threadContainers": [
      {"container": "<root>", "parent": null, "owner": null, "threads": [
        {"tid": "27", "virtual": true, "name": "vd1", "state": "BLOCKED", "blockedOn": "java.lang.Object@9b6068a",
         "stack": ["V.lambda$main$2(V.java:7)"], "monitorsOwned": [{"depth": 0, "locks": ["java.lang.Object@b0d6be9"]}]}]}]}}

Source: src/java.base/share/classes/jdk/internal/vm/ThreadDumper.java.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from opskit.jvm.dumps.text import blocks
from opskit.jvm.dumps.thread_dump import STATES, Lock, StackTable, Thread, ThreadDump
from opskit.jvm.progress import onwards
from opskit.quantities import integer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from json import JSONDecoder

    from opskit.jvm.dumps.thread_dump import Detail, Stack

PLAIN_NAME = "Thread.dump_to_file"
JSON_NAME = "Thread.dump_to_file JSON"
_PLAIN_START = re.compile(rb"(?m)^\d+\n\d{4}-\d\d-\d\dT[\d:.]+Z\n\d[^\n]*\n(?=\n|\Z)")
_PLAIN_THREAD = re.compile(rb'(?m)^#\d+ "[^\n]*"(?: virtual)?[^"\n]*\n\s+(?:at )?[\w.$/]+\(')
_JSON_KEY, _JSON_BLANKS = b'"threadDump"', 200
_JSON_COLON = re.compile(rb"\s*:")

_HEADER = re.compile(r'(?m)^#([0-9]+) "(.*)"( virtual)?(?: ([A-Z_]+))?(?: \d{4}-\d\d-\d\dT[\d:.]+Z)?$')
_LOCK = re.compile(r"\s+- ([a-z][a-z ]*?) <(.+?)@([0-9a-f]+)>(?:, owner #(\d+))?")
_LOCK_NAME = re.compile(r"(.+)@([0-9a-f]+)$")


def json_decoder() -> JSONDecoder:
    """A decoder that takes raw control characters in text, as some writers leave them."""
    from json import JSONDecoder

    return JSONDecoder(strict=False)


class PlainParser:
    """Parses the plain form; equal stacks stay one object from dump to dump."""

    def __init__(self, detail: Detail = "stacks") -> None:
        self._locks = detail == "locks"
        self._table = StackTable()

    @staticmethod
    def starts(text: bytes) -> list[int]:
        """Where its dumps begin."""
        return [match.start() for match in _PLAIN_START.finditer(text)] if b"\n\n#" in text else []

    @staticmethod
    def recognises(text: bytes) -> bool:
        """Whether there is a thread in a text whose head was not saved."""
        return _PLAIN_THREAD.search(text) is not None

    def parse(self, text: bytes) -> list[ThreadDump]:
        """The dumps in the text."""
        starts = [match.start() for match in _PLAIN_START.finditer(text)] or [0]
        ends = [*starts[1:], len(text)]
        return [self._dump(text[a:b]) for a, b in zip(starts, ends)]

    def _dump(self, data: bytes) -> ThreadDump:
        text = data.decode("utf-8", "surrogateescape")
        is_fragment = _PLAIN_START.match(data) is None
        time, version = (None, None) if is_fragment else text.split("\n", 3)[1:3]
        threads = []
        torn = False
        for header, block, _ in blocks(_HEADER, text):
            # Each thread ends with a blank line; without it, it may have lost frames.
            stack, blank_line, _ = block.partition("\n\n")
            if blank_line or is_fragment:
                threads.append(self._thread(header, stack))
            else:
                torn = True
        return ThreadDump(PLAIN_NAME, threads, time, version, (), cut_off=torn)

    def _thread(self, header: re.Match[str], block: str) -> Thread:
        frames: list[str] = []
        locks: list[Lock] = []
        for line in block.split("\n"):
            words = line.strip()
            if not words:
                continue
            if words.startswith("- "):
                if self._locks and (match := _LOCK.match(line)):
                    locks.append(
                        Lock(
                            match[1], match[3], match[2], max(len(frames) - 1, 0), f"#{match[4]}" if match[4] else None
                        )
                    )
            else:
                frames.append(words.removeprefix("at "))
        state = header[4] if header[4] in STATES else None
        stack = self._table.stack(frames, state)
        return Thread(stack, header[2], None, integer(header[1]), None, None, None, tuple(locks), bool(header[3]))


class JsonParser:
    """Parses the JSON form; equal stacks stay one object from dump to dump."""

    def __init__(self, detail: Detail = "stacks") -> None:
        self._locks = detail == "locks"
        self._table = StackTable()
        self._known: dict[tuple[object, ...], Stack] = {}

    @staticmethod
    def starts(text: bytes) -> list[int]:
        """Where its dumps begin."""
        found, at = [], text.find(_JSON_KEY)
        while at >= 0:  # such files are large: no expression goes through all of it
            brace = text.rfind(b"{", max(0, at - _JSON_BLANKS), at)
            if brace >= 0 and not text[brace + 1 : at].strip() and _JSON_COLON.match(text, at + len(_JSON_KEY)):
                found.append(brace)
            at = text.find(_JSON_KEY, at + len(_JSON_KEY))
        return found

    def parse(self, text: bytes) -> list[ThreadDump]:
        """The dumps in the text; of one that was cut off, the threads that are whole."""
        starts = self.starts(text)
        return [
            self._read(text[a:b].decode("utf-8", "surrogateescape")) for a, b in zip(starts, [*starts[1:], len(text)])
        ]

    def _read(self, words: str) -> ThreadDump:
        try:
            document, _ = json_decoder().raw_decode(words)
        except (ValueError, RecursionError):
            return self._salvaged(words)
        return self._dump(document["threadDump"])

    def _dump(self, document: Any) -> ThreadDump:
        if not isinstance(document, dict) or not isinstance(document.get("threadContainers"), list):
            return ThreadDump(JSON_NAME, [], cut_off=False)
        threads = [
            self._thread(entry, name)
            for container in document["threadContainers"]
            if isinstance(container, dict)
            for name in (as_word(container.get("container")),)
            for entry in as_list(container.get("threads"))
            if _is_thread(entry)
        ]
        return ThreadDump(JSON_NAME, threads, as_word(document.get("time")), as_word(document.get("runtimeVersion")))

    def _salvaged(self, words: str) -> ThreadDump:
        """The whole threads of a text that stops in the middle."""
        entries = list(_whole_entries(words))
        threads = [self._thread(entry, container) for entry, container in entries if _is_thread(entry)]
        time, version = (re.search(rf'"{key}"\s*:\s*"([^"]*)"', words) for key in ("time", "runtimeVersion"))
        return ThreadDump(JSON_NAME, threads, time[1] if time else None, version[1] if version else None, cut_off=True)

    def _thread(self, entry: dict[str, Any], container: str | None) -> Thread:
        state = entry.get("state")
        stack = self._stack(entry["stack"], state)
        virtual = entry.get("virtual")
        tid = entry.get("tid")
        return Thread(
            stack,
            as_word(entry.get("name")),
            None,
            as_id(tid),
            None,
            None,
            None,
            tuple(_locks(entry)) if self._locks else (),
            bool(virtual) if virtual is not None else _looks_virtual(stack.frames, state),
            container,
        )

    def _stack(self, frames: list[object], state: object) -> Stack:
        """The stack of an entry; of a hundred thousand, most stand where another one stands."""
        try:
            key = (*frames, state)
            found = self._known.get(key)
        except TypeError:  # what is no frame
            key, found = (), None
        if found is None:
            words = [frame for frame in frames if isinstance(frame, str)]
            found = self._table.stack(words, state if isinstance(state, str) and state in STATES else None)
            if key:
                self._known[key] = found
        return found


def _is_thread(entry: object) -> bool:
    return isinstance(entry, dict) and isinstance(entry.get("stack"), list)


def as_list(value: object) -> list[Any]:
    """A list of a JSON document; empty for anything else that stands in its place."""
    return value if isinstance(value, list) else []


def as_id(value: object) -> int | None:
    """A thread's id in a JSON document, which has it as a number or as text."""
    return integer(str(value)) if isinstance(value, (str, int)) else None


def as_word(value: object) -> str | None:
    """Text or a whole number as text; None for anything else."""
    if isinstance(value, (str, int)) and not isinstance(value, bool):
        return str(value)
    return None


def _looks_virtual(frames: tuple[str, ...], state: object) -> bool | None:
    """JDK 21 to 23 do not say it: a virtual thread's stack has grown from VirtualThread.run. 25 says what is true."""
    if state is not None:
        return False
    return frames[-1].startswith("java.base/java.lang.VirtualThread.run(") if frames else None


def _locks(entry: dict[str, Any]) -> Iterator[Lock]:
    blocker = entry.get("parkBlocker")
    wanted = (
        ("waiting to lock", entry.get("blockedOn")),
        ("waiting on", entry.get("waitingOn")),
        ("parking to wait for", blocker.get("object") if isinstance(blocker, dict) else None),
    )
    owner = as_word(blocker.get("owner")) if isinstance(blocker, dict) else None
    for action, name in wanted:
        if isinstance(name, str) and (match := _LOCK_NAME.match(name)):
            yield Lock(action, match[2], match[1], 0, f"#{owner}" if owner and action.startswith("parking") else None)
    for owned in as_list(entry.get("monitorsOwned")):
        if not isinstance(owned, dict):
            continue
        for name in as_list(owned.get("locks")):
            if isinstance(name, str) and (match := _LOCK_NAME.match(name)):
                depth = owned.get("depth")
                yield Lock("locked", match[2], match[1], depth if isinstance(depth, int) else None)


_ENTRY = re.compile(r'\{\s*"tid"\s*:|"container"\s*:\s*"((?:[^"\\]|\\.)*)"')


def _whole_entries(words: str) -> Iterator[tuple[Any, str | None]]:
    decoder = json_decoder()
    container = None
    at = 0
    while match := _ENTRY.search(words, at):
        at = match.end()
        if match[1] is not None:
            container = match[1].replace("\\/", "/")
            continue
        try:
            entry, end = decoder.raw_decode(words, match.start())
        except (ValueError, RecursionError):
            return
        at = onwards(match.start(), end)
        yield entry, container
