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

from opskit.jvm.dumps.dialect import Dialect, as_id, as_list, as_word, decode, decoded, whole_objects
from opskit.jvm.dumps.thread_dump import STATES, Lock, Thread, ThreadDump

if TYPE_CHECKING:
    from collections.abc import Iterator

# A thread's keys: some writers sort them, so that any may be the first.
_KEY = r"(?:blocked|in|lock|stack|thread|waited)[A-Z]\w*|daemon|priority|suspended"
_ENTRY = re.compile(rf'\{{\s*"(?:{_KEY})"\s*:')
_TIME = re.compile(rb"(?m)^Date: ([^\r\n]+)")


class ActuatorParser(Dialect):
    """Parser of actuator's JSON."""

    NAME = "actuator JSON"
    HINTS = (b'"threadName"',)
    START = re.compile(rf'(?:\{{\s*"threads"\s*:\s*)?\[\s*\{{\s*"(?:{_KEY})"\s*:'.encode())

    def parse(self, text: bytes) -> list[ThreadDump]:
        """The dumps in the text; the HTTP headers before the first one have its time."""
        dumps = super().parse(text)
        if (start := self.START.search(text)) and (time := _TIME.search(text[: start.start()])):
            dumps[0] = dumps[0]._replace(time=time[1].decode("ascii", "replace"))
        return dumps

    def dump(self, data: bytes) -> ThreadDump:
        """One dump; of one that was cut off, the threads that are whole."""
        text = decoded(data)
        document = decode(text)
        if document is None:
            entries = [entry for entry, _ in whole_objects(_ENTRY, text)]
        else:
            entries = as_list(document["threads"] if isinstance(document, dict) else document)
        threads = [self._thread(entry) for entry in entries if isinstance(entry, dict) and "threadName" in entry]
        return ThreadDump(self.NAME, threads, cut_off=document is None)

    def _thread(self, entry: dict[str, Any]) -> Thread:
        frames = [_frame(frame) for frame in as_list(entry.get("stackTrace")) if isinstance(frame, dict)]
        state, daemon = entry.get("threadState"), entry.get("daemon")
        return Thread(
            self.table.stack(frames, state if state in STATES else None),
            as_word(entry["threadName"]),
            java_id=as_id(entry.get("threadId")),
            daemon=daemon if isinstance(daemon, bool) else None,
            locks=tuple(_locks(entry)) if self.with_locks else (),
        )


def _frame(frame: dict[str, Any]) -> str:
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
