r"""Javacores, the thread dumps of IBM's JVMs (1.3.1 to 8) and of OpenJ9 (8 to 25): a tag before every line.

    0SECTION       TITLE subcomponent dump routine
    1TIDATETIME    Date: 2024/10/02 at 12:28:23:001
    1CIJAVAVERSION JRE 21 Linux amd64-64 (build 21.0.4+7-LTS)
    1LKDEADLOCK    Deadlock detected !!!
    2LKDEADLOCKTHR  Thread "A" (0x0000000000061100)
    3LKDEADLOCKWTR    is waiting for:
    4LKDEADLOCKOBJ      java/lang/Object@0x00000000FFF3B6D0
    3LKDEADLOCKOWN    which is owned by:
    0SECTION       THREADS subcomponent dump routine
    3XMTHREADINFO      "main" J9VMThread:0x0000000000061100, omrthread_t:0x…, java/lang/Thread:0x…, state:CW, prio=5
    3XMJAVALTHREAD            (java/lang/Thread getId:0x2, isDaemon:false)
    3XMTHREADINFO1            (native thread ID:0x8D14A, native priority:0x5, …)
    3XMCPUTIME               CPU usage total: 1.264468000 secs, current category="Application"
    3XMTHREADBLOCK     Waiting on: java/util/TaskQueue@0x0000000300688FF0 Owned by: <unowned>
    4XESTACKTRACE                at java/lang/Object.wait(Native Method)
    5XESTACKTRACE                   (entered lock: java/util/TaskQueue@0x0000000300688FF0, entry count: 1)
    3XMTHREADINFO      "old" (TID:0x2BDE718, sys_thread_t:0x10DD9048, state:CW, native ID:0xCD0) prio=5
    NULL           ---------------------- END OF DUMP -------------------------------------

The tags are IBM's diagnostics guide's ("Javadump", and OpenJ9's documentation of it).
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import TYPE_CHECKING

from opskit.jvm.dumps.dialect import Dialect, decoded
from opskit.jvm.dumps.thread_dump import Lock, Thread, ThreadDump, Waits, timed_if_asleep
from opskit.quantities import decimal, hexadecimal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opskit.jvm.dumps.thread_dump import Detail

_THREADS = re.compile(rb"(?m)^(?:0SECTION +(?:THREADS|XM) |2XMFULLTHDDUMP )")
_TORN = re.compile(rb"\d[^\n]*[^)]$")
_SECTION = re.compile(rb"(?m)^0SECTION ")
_LOCKS = re.compile(rb"(?m)^1LKDEADLOCK[^\n]*")
_LINE = re.compile(r"(?m)^(3XM[A-Z]*\d?|4XESTACKTRACE|5XESTACKTRACE) +(\S.*)$")
_HEADER = re.compile(r'"(.*)" +\(?(?:J9VMThread|TID):(.*)')
_STATE = re.compile(r"\bstate:(\w+)")
_NATIVE_ID = re.compile(r"native (?:thread )?ID:(0x[0-9A-Fa-f]+)")
_JAVA_ID = re.compile(r"getId:(0x[0-9A-Fa-f]+)")
_CPU = re.compile(r"CPU usage total: ([\d.]+) secs")
_BLOCK = re.compile(r"(Blocked on|Waiting on|Parked on): (\S+?)@(0x[0-9A-Fa-f]+)(?: Owned by: (?:\"(.*)\" \(|<))?")
_ENTERED = re.compile(r"\(entered lock: (\S+?)@(0x[0-9A-Fa-f]+)")
_JIT = re.compile(r"\((?:Compiled Code|Inlined\)?[^()]*)\)")
_SLASH = re.compile(r"/(?!0x)")
_DEADLOCK_LINE = re.compile(r'(?m)^(?:2LKDEADLOCKTHR +Thread "(.*)" \(0x|4LKDEADLOCKOBJ +(\S+?)@(0x[0-9A-Fa-f]+))')
_TIME = re.compile(rb"(?m)^1TIDATETIME\w* +Date: +([^\n]+)")
_VERSION = re.compile(rb"(?m)^(?:1CIJAVAVERSION|2XMFULLTHDDUMP Full thread dump) +([^\n]+)")
_ENDS = (b"END OF DUMP", b"Javadump End section")

# R runnable, B blocked at a monitor, CW waits on a condition, P parked, Z has ended; S (suspended) is not a java.lang.Thread.State.
_STATES = {"R": "RUNNABLE", "B": "BLOCKED", "CW": "WAITING", "P": "WAITING", "Z": "TERMINATED"}
_ACTIONS = {"Blocked on": "waiting to lock", "Waiting on": "waiting on", "Parked on": "parking to wait for"}


class JavacoreParser(Dialect):
    """Parser of javacores."""

    NAME = "javacore"
    HINTS = (b"0SECTION ",)
    START = re.compile(rb"(?m)^0SECTION +TITLE ")
    FRAGMENT = re.compile(rb"(?m)^3XMTHREADINFO +\S")

    def __init__(self, detail: Detail = "stacks") -> None:
        super().__init__(detail)
        self._frames: dict[str, str] = {}

    def dump(self, text: bytes) -> ThreadDump:
        """One dump; without a section of threads, it has no threads."""
        time, version = _TIME.search(text), _VERSION.search(text)
        is_fragment = self.START.search(text) is None
        section = self.FRAGMENT.search(text) if is_fragment else _THREADS.search(text)
        threads: list[Thread] = []
        # A last line without a line feed may be incomplete.
        last = text.rfind(b"\n") + 1
        whole = text[:last] if _TORN.match(text, last) else text
        ended = whole is text if is_fragment else any(mark in text for mark in _ENDS)
        if section is not None:
            after = _SECTION.search(whole, section.end())
            body = whole[section.start() : after.start() if after else len(whole)]
            threads = list(self._threads(decoded(body), complete=ended or after is not None))
        return ThreadDump(
            self.NAME,
            threads,
            decoded(time[1]).strip() if time else None,
            decoded(version[1]).strip().rstrip(":") if version else None,
            _deadlocks(text),
            cut_off=not ended,
        )

    def _threads(self, text: str, *, complete: bool) -> Iterator[Thread]:
        open_thread: _Open | None = None
        for match in _LINE.finditer(text):
            tag, words = match[1], match[2]
            if tag == "4XESTACKTRACE":
                if open_thread is not None and words.startswith("at "):
                    open_thread.frames.append(self._frame(words[3:]))
            elif tag == "3XMTHREADINFO":
                if open_thread is not None:
                    yield self._closed(open_thread)
                header = _HEADER.match(words)
                # "Anonymous native thread": the JVM's own, or one that is not attached to Java.
                open_thread = _Open(header[1], header[2]) if header else _Open(words, "")
            elif open_thread is None:
                continue
            elif tag in ("3XMTHREADINFO1", "3XMJAVALTHREAD", "3XMCPUTIME"):
                open_thread.about.append(words)
            elif self.with_locks and tag == "3XMTHREADBLOCK":
                if block := _BLOCK.match(words):
                    action = _ACTIONS[block[1]]
                    open_thread.locks.append(Lock(action, block[3].lower(), _dotted(block[2]), 0, block[4]))
            elif self.with_locks and tag == "5XESTACKTRACE" and (entered := _ENTERED.search(words)):
                depth = len(open_thread.frames) - 1
                open_thread.locks.append(Lock("locked", entered[2].lower(), _dotted(entered[1]), depth))
        if open_thread is not None and complete:  # the last of a cut-off file may have lost frames
            yield self._closed(open_thread)

    def _closed(self, thread: _Open) -> Thread:
        about = " ".join(thread.about)
        state = _STATE.search(about)
        java_state = timed_if_asleep(_STATES.get(state[1]) if state else None, thread.frames)
        native, java, cpu = (pattern.search(about) for pattern in (_NATIVE_ID, _JAVA_ID, _CPU))
        daemon = "isDaemon:true" in about if "isDaemon:" in about else None
        cpu_s = decimal(cpu[1]) if cpu else None
        return Thread(
            self.table.stack(thread.frames, java_state),
            thread.name,
            hexadecimal(native[1]) if native else None,
            hexadecimal(java[1]) if java else None,
            daemon,
            None if cpu_s is None else cpu_s * 1000,
            locks=tuple(thread.locks),
        )

    def _frame(self, words: str) -> str:
        """`java/lang/Thread.run(Thread.java:840(Compiled Code))` as HotSpot writes it."""
        known = self._frames.get(words)
        if known is None:
            method, opening, place = words.partition("(")
            place = _JIT.sub("", place)
            known = self._frames[words] = _dotted(method) + opening + place
        return known


class _Open:
    """A thread whose lines are being read."""

    __slots__ = ("about", "frames", "locks", "name")

    def __init__(self, name: str, about: str) -> None:
        self.name, self.about = name, [about]
        self.frames: list[str] = []
        self.locks: list[Lock] = []


def _dotted(name: str) -> str:
    return _SLASH.sub(".", name)


def _deadlocks(text: bytes) -> tuple[tuple[Waits, ...], ...]:
    """The reported deadlocks, each a cycle of threads that ends with the first one."""
    found = []
    starts = [match.end() for match in _LOCKS.finditer(text)]
    ends = [match.start() for match in _SECTION.finditer(text)] if starts else []
    for start, later in zip(starts, [*starts[1:], len(text)]):
        section = bisect_right(ends, start)
        end = min(later, ends[section]) if section < len(ends) else later
        waits: list[Waits] = []
        name = lock_class = address = None
        for match in _DEADLOCK_LINE.finditer(decoded(text[start:end])):
            if match[1] is None:
                lock_class, address = _dotted(match[2]), match[3].lower()
                continue
            if name is not None:
                waits.append(Waits(name, lock_class, address, match[1]))
            name = match[1]
        if waits:
            found.append(tuple(waits))
    return tuple(found)
