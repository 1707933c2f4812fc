r"""Spring Boot actuator's /threaddump (before Boot 2: /dump), the JSON of java.lang.management.ThreadInfo; HTTP headers may precede.

    HTTP/1.1 200
    Content-Type: application/json

    {"threads":[{"threadName":"Finalizer","threadId":3,"lockName":"java.lang.ref.ReferenceQueue$Lock@2f407ecb",
      "lockOwnerId":-1,"lockOwnerName":null,"daemon":true,"threadState":"WAITING",
      "stackTrace":[{"className":"java.lang.Object","methodName":"wait","fileName":"Object.java","lineNumber":-2,
        "nativeMethod":true,"moduleName":"java.base","moduleVersion":"17","classLoaderName":null}],
      "lockedMonitors":[{"className":"java.lang.Object","identityHashCode":1,"lockedStackDepth":3}],
      "lockedSynchronizers":[]}]}

Source: Spring Boot's ThreadDumpEndpoint, and the JavaDoc of java.lang.management.ThreadInfo.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from opskit.jvm.dumps.dump_to_file import as_id, as_list, as_word, json_decoder
from opskit.jvm.dumps.thread_dump import STATES, Lock, StackTable, Thread, ThreadDump
from opskit.jvm.progress import onwards

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opskit.jvm.dumps.thread_dump import Detail

NAME = "actuator JSON"
# A thread's keys: some writers sort them, so that any may be the first.
_KEY = r"(?:blocked|in|lock|stack|thread|waited)[A-Z]\w*|daemon|priority|suspended"
_START = re.compile(rf'(?:\{{\s*"threads"\s*:\s*)?\[\s*\{{\s*"(?:{_KEY})"\s*:'.encode())

_ENTRY = re.compile(rf'\{{\s*"(?:{_KEY})"\s*:')
_TIME = re.compile(rb"(?m)^Date: ([^\r\n]+)")


class ActuatorParser:
    """Parses actuator's JSON; equal stacks stay one object from dump to dump."""

    def __init__(self, detail: Detail = "stacks") -> None:
        self._locks = detail == "locks"
        self._table = StackTable()

    @staticmethod
    def starts(text: bytes) -> list[int]:
        """Where its dumps begin."""
        return [match.start() for match in _START.finditer(text)] if b'"threadName"' in text else []

    def parse(self, text: bytes) -> list[ThreadDump]:
        """The dumps in the text; of one that was cut off, the threads that are whole."""
        starts = [match.start() for match in _START.finditer(text)]
        heads = [0, *starts[1:]]
        return [
            self._dump(text[head:start], text[start:end].decode("utf-8", "surrogateescape"))
            for head, start, end in zip(heads, starts, [*starts[1:], len(text)])
        ]

    def _dump(self, head: bytes, text: str) -> ThreadDump:
        decoder = json_decoder()
        entries: list[Any] = []
        cut_off = False
        try:
            document, _ = decoder.raw_decode(text)
            entries = as_list(document["threads"] if isinstance(document, dict) else document)
        except (ValueError, RecursionError):
            cut_off = True
            at = 0
            while match := _ENTRY.search(text, at):
                try:
                    entry, end = decoder.raw_decode(text, match.start())
                except (ValueError, RecursionError):
                    break
                at = onwards(match.start(), end)
                entries.append(entry)
        time = _TIME.search(head)
        threads = [self._thread(entry) for entry in entries if isinstance(entry, dict) and "threadName" in entry]
        return ThreadDump(NAME, threads, time[1].decode("ascii", "replace") if time else None, cut_off=cut_off)

    def _thread(self, entry: dict[str, Any]) -> Thread:
        frames = [_frame(frame) for frame in as_list(entry.get("stackTrace")) if isinstance(frame, dict)]
        state = entry.get("threadState")
        daemon = entry.get("daemon")
        return Thread(
            self._table.stack(frames, state if state in STATES else None),
            as_word(entry["threadName"]),
            None,
            as_id(entry.get("threadId")),
            daemon if isinstance(daemon, bool) else None,
            None,
            None,
            tuple(_locks(entry)) if self._locks else (),
        )


def _frame(frame: dict[str, Any]) -> str:
    """As HotSpot writes it: `java.lang.Object.wait(java.base@17/Native Method)`."""
    line = frame.get("lineNumber")
    file = as_word(frame.get("fileName"))
    if frame.get("nativeMethod") or line == -2:
        place = "Native Method"
    elif file:
        place = f"{file}:{line}" if isinstance(line, int) and line >= 0 else file
    else:
        place = "Unknown Source"
    module, version = as_word(frame.get("moduleName")), as_word(frame.get("moduleVersion"))
    origin = f"{module}@{version}/" if module and version else f"{module}/" if module else ""
    return f"{as_word(frame.get('className'))}.{as_word(frame.get('methodName'))}({origin}{place})"


def _locks(entry: dict[str, Any]) -> Iterator[Lock]:
    wanted, _, code = (as_word(entry.get("lockName")) or "").rpartition("@")
    if wanted:
        owner = entry.get("lockOwnerName")
        state = entry.get("threadState")
        trace = as_list(entry.get("stackTrace"))
        leaf = trace[0].get("methodName") if trace and isinstance(trace[0], dict) else None
        action = "waiting to lock" if state == "BLOCKED" else "parking to wait for" if leaf == "park" else "waiting on"
        yield Lock(action, code, wanted, 0, owner if isinstance(owner, str) else None)
    for key in ("lockedMonitors", "lockedSynchronizers"):
        for held in as_list(entry.get(key)):
            if isinstance(held, dict) and isinstance(held.get("identityHashCode"), int):
                depth = held.get("lockedStackDepth")
                code = f"{held['identityHashCode'] & 0xFFFFFFFF:x}"
                yield Lock("locked", code, as_word(held.get("className")), depth if isinstance(depth, int) else None)
