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

from opskit.jvm.dumps.dialect import Dialect, as_id, as_list, as_word, blocks, decode, decoded, whole_objects
from opskit.jvm.dumps.thread_dump import STATES, Lock, Thread, ThreadDump
from opskit.quantities import integer

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opskit.jvm.dumps.thread_dump import Detail, Stack

_JSON_KEY, _JSON_BLANKS = b'"threadDump"', 200
_JSON_COLON = re.compile(rb"\s*:")

_HEADER = re.compile(r'(?m)^#([0-9]+) "(.*)"( virtual)?(?: ([A-Z_]+))?(?: \d{4}-\d\d-\d\dT[\d:.]+Z)?$')
_LOCK = re.compile(r"\s+- ([a-z][a-z ]*?) <(.+?)@([0-9a-f]+)>(?:, owner #(\d+))?")
_ENTRY = re.compile(r'\{\s*"tid"\s*:|"container"\s*:\s*"((?:[^"\\]|\\.)*)"')
_MAJOR = re.compile(r"[0-9]{1,4}")
FIRST_WITHOUT_PINNING_MONITORS = 24
_CARRIES = "java.base/jdk.internal.vm.Continuation.run("
_PARKS_MOUNTED = "java.base/java.lang.VirtualThread.parkOnCarrierThread("
_WAITS = ("java.base/java.lang.Object.wait0(", "java.base/java.lang.Object.wait(")
_TOP = 4  # frames next to the leaf
_LOCK_NAME = re.compile(r"(.+)@([0-9a-f]+)$")


class PlainParser(Dialect):
    """Parser of the plain form."""

    NAME = "Thread.dump_to_file"
    HINTS = (b"\n\n#",)
    START = re.compile(rb"(?m)^\d+\n\d{4}-\d\d-\d\dT[\d:.]+Z\n\d[^\n]*\n(?=\n|\Z)")
    FRAGMENT = re.compile(rb'(?m)^#\d+ "[^\n]*"(?: virtual)?[^"\n]*\n\s+(?:at )?[\w.$/]+\(')

    def dump(self, data: bytes) -> ThreadDump:
        """One dump, or a fragment of one."""
        text = decoded(data)
        is_fragment = self.START.match(data) is None
        time, version = (None, None) if is_fragment else text.split("\n", 3)[1:3]
        threads, torn = [], False
        pins = _monitors_pin(version)
        for header, block, _ in blocks(_HEADER, text):
            # Each thread ends with a blank line; without it, it may have lost frames.
            stack, blank_line, _ = block.partition("\n\n")
            if blank_line or is_fragment:
                threads.append(self._thread(header, stack, pins=pins))
            else:
                torn = True
        return ThreadDump(self.NAME, threads, time, version, (), cut_off=torn, lists_owners=_has_owners(threads))

    def _thread(self, header: re.Match[str], block: str, *, pins: bool) -> Thread:
        frames: list[str] = []
        locks: list[Lock] = []
        for line in block.split("\n"):
            words = line.strip()
            if words.startswith("- "):
                if self.with_locks and (match := _LOCK.match(line)):
                    owner = f"#{match[4]}" if match[4] else None
                    locks.append(Lock(match[1], match[3], match[2], max(len(frames) - 1, 0), owner))
            elif words:
                frames.append(words.removeprefix("at "))
        role = _role(frames, virtual=bool(header[3]), pins=pins)
        stack = self.table.stack(frames, header[4] if header[4] in STATES else None, role)
        return Thread(stack, header[2], java_id=integer(header[1]), locks=tuple(locks), virtual=bool(header[3]))


class JsonParser(Dialect):
    """Parser of the JSON form."""

    NAME = "Thread.dump_to_file JSON"
    HINTS = (_JSON_KEY,)

    def __init__(self, detail: Detail = "stacks") -> None:
        super().__init__(detail)
        self._known: dict[tuple[object, ...], Stack] = {}
        self._pins = False

    @classmethod
    def _offsets(cls, text: bytes) -> list[int]:
        found, at = [], text.find(_JSON_KEY)
        while at >= 0:  # such files are large, and find() is faster than a regular expression
            brace = text.rfind(b"{", max(0, at - _JSON_BLANKS), at)
            if brace >= 0 and not text[brace + 1 : at].strip() and _JSON_COLON.match(text, at + len(_JSON_KEY)):
                found.append(brace)
            at = text.find(_JSON_KEY, at + len(_JSON_KEY))
        return found

    def dump(self, data: bytes) -> ThreadDump:
        """One dump; of one that was cut off, the threads that are whole."""
        text = decoded(data)
        document = decode(text)
        if document is None:
            return self._salvaged(text)
        document = document["threadDump"]
        if not isinstance(document, dict) or not isinstance(document.get("threadContainers"), list):
            return ThreadDump(self.NAME, [])
        version = as_word(document.get("runtimeVersion"))
        self._pins = _monitors_pin(version)
        threads = [
            self._thread(entry, name)
            for container in document["threadContainers"]
            if isinstance(container, dict)
            for name in (as_word(container.get("container")),)
            for entry in as_list(container.get("threads"))
            if _is_thread(entry)
        ]
        return ThreadDump(self.NAME, threads, as_word(document.get("time")), version, lists_owners=_has_owners(threads))

    def _salvaged(self, text: str) -> ThreadDump:
        time, version = (re.search(rf'"{key}"\s*:\s*"([^"]*)"', text) for key in ("time", "runtimeVersion"))
        self._pins = _monitors_pin(version and version[1])
        threads = [
            self._thread(entry, container and container.replace("\\/", "/"))
            for entry, container in whole_objects(_ENTRY, text)
            if _is_thread(entry)
        ]
        return ThreadDump(self.NAME, threads, time and time[1], version and version[1], cut_off=True)

    def _thread(self, entry: dict[str, Any], container: str | None) -> Thread:
        state, virtual, carrier = entry.get("state"), entry.get("virtual"), as_id(entry.get("carrier"))
        stack = self._stack(entry["stack"], state, virtual is True, carrier is not None)
        return Thread(
            stack,
            as_word(entry.get("name")),
            java_id=as_id(entry.get("tid")),
            locks=tuple(_locks(entry)) if self.with_locks else (),
            virtual=bool(virtual) if virtual is not None else _looks_virtual(stack.frames, state),
            container=container,
            mount_id=carrier,
        )

    def _stack(self, frames: list[object], state: object, virtual: bool, mounted: bool) -> Stack:
        try:
            key = (*frames, state, virtual, mounted, self._pins)
            found = self._known.get(key)
        except TypeError:  # an entry that is not a frame
            key, found = (), None
        if found is None:
            words = tuple(frame for frame in frames if isinstance(frame, str))
            virtual = virtual or _looks_virtual(words, state) is True
            role = "mounted" if mounted else _role(words, virtual=virtual, pins=self._pins)
            found = self.table.stack(words, state if isinstance(state, str) and state in STATES else None, role)
            if key:
                self._known[key] = found
        return found


def _has_owners(threads: Sequence[Thread]) -> bool:
    """Whether the JVM writes the owners of java.util.concurrent locks. JDK 25 does not."""
    return any(lock.owner for thread in threads for lock in thread.locks)


def _monitors_pin(version: str | None) -> bool:
    """Whether a monitor pins a virtual thread to its carrier: JDK 21 to 23."""
    major = _MAJOR.match(version or "")
    return major is not None and (integer(major[0]) or 0) < FIRST_WITHOUT_PINNING_MONITORS


def _role(frames: Sequence[str], *, virtual: bool, pins: bool) -> str | None:
    """What the frames tell: a carrier that carries a thread, or a virtual thread that waits although it is mounted."""
    if not frames:
        return None
    if not virtual:
        return "carrier" if frames[0].startswith(_CARRIES) else None
    waits = any(frame.startswith(_PARKS_MOUNTED) for frame in frames[:_TOP])
    return "mounted" if waits or (pins and frames[0].startswith(_WAITS)) else None


def _is_thread(entry: object) -> bool:
    return isinstance(entry, dict) and isinstance(entry.get("stack"), list)


def _looks_virtual(frames: tuple[str, ...], state: object) -> bool | None:
    """Whether VirtualThread.run is the first frame: JDK 21 to 23 have no mark. JDK 25 has one, and states."""
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
