r"""HotSpot's thread dumps, JDK 1.4 to 25 (src/hotspot/share/runtime/threads.cpp, vframe.cpp, javaThread.cpp).

    2026-11-21 11:04:04
    Full thread dump OpenJDK 64-Bit Server VM (17.0.15+6-Debian-1deb12u1 mixed mode, sharing):

    "pool-1-thread-17" #41 prio=5 os_prio=0 cpu=1.02ms elapsed=9.86s tid=0x0… nid=0x1f4c waiting on condition  [0x…]
       java.lang.Thread.State: WAITING (parking)
    ␉at jdk.internal.misc.Unsafe.park(java.base@17.0.15/Native Method)
    ␉- parking to wait for  <0x00000006c9c7b730> (a java.util.concurrent.locks.AbstractQueuedSynchronizer$ConditionObject)
    ␉at java.util.concurrent.locks.LockSupport.park(java.base@17.0.15/LockSupport.java:341)

    "VM Thread" os_prio=0 cpu=22.19ms elapsed=108.50s tid=0x00007f8420129230 nid=0x12f6 runnable

    JNI global refs: 26, weak refs: 0

Here ␉ is a tab. The same shape comes from JMX (`"main" - Thread t@1`, `"main" Id=1 in RUNNABLE`), with module and loader
before the class. A thread's whole block is looked up first: most threads of a dump have the stack of another one.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from opskit.jvm.dumps.dialect import Dialect, decoded, native_id
from opskit.jvm.dumps.hotspot_locks import FRAME, OWNED_BY, locks_by_stack, reported_deadlocks
from opskit.jvm.dumps.plain_text import MARKER, heads, thread_prefixes
from opskit.jvm.dumps.thread_dump import STATES, Thread, ThreadDump
from opskit.jvm.progress import onwards
from opskit.quantities import decimal, integer

if TYPE_CHECKING:
    from opskit.jvm.dumps.thread_dump import Detail, Stack

_TIME = re.compile(rb"(?:\A|\n)(\d[\d-]+ [\d:]+)\n$")
_SUFFIX = re.compile(rb'"(?: - Thread t@\d+.*| #\d+ virtual.*)?')
_STATE = re.compile(r"java\.lang\.Thread\.State: ([A-Z_]+)")
_TROUBLE = re.compile(r"(?:Caused by: |Exception in thread |[\w.$]+(?:Exception|Error)\b)")
_ADDRESS = re.compile(rb"<(?:0x)?[0-9a-f]+>")
_WORDS = re.compile(r"\b(nid|cpu|elapsed)=(\S+)")
_JAVA_ID = re.compile(r"(?:^ #|t@|Id=)([0-9]+)")
_OS_ID = re.compile(r"\[([0-9]+)\]")
_CARRIED_ID = re.compile(rb"(?:Carrying|Mounted) virtual thread #(\d+)")
_SYNCHRONIZERS = b"\n   Locked ownable synchronizers:"
_USER = ' user="'  # in the header of SAP's JVM
_SAPS_USER = re.compile(r' user="[^"]*"(?= \w+=)')
_DEADLOCKS = b"\nFound one Java-level deadlock", b"\nFound a total of"
_ROOTS = re.compile(r".*\.main\(|(?:[\w.@+-]*/)?java\.lang\.(?:Thread\.run|ref\.[\w$]+\.run)\(")
_ENDS = (b"\nJNI global ref", b"\nHeap\n")
_BODY_ENDS = (b"\n\n", b'\n"')
_CACHED_SHAPES = 8192  # blocks without their locks
_CACHED_BODIES = 1024  # whole blocks


class HotSpotParser(Dialect):
    """Parser of HotSpot's dumps. With detail "stacks" a thread has only its stack, which is three times as fast."""

    NAME = "HotSpot"
    HINTS = (MARKER,)

    def __init__(self, detail: Detail = "stacks") -> None:
        super().__init__(detail)
        self._bodies: dict[bytes, tuple[Thread, ...]] = {}
        self._shapes: dict[bytes, tuple[Thread, ...]] = {}

    @classmethod
    def starts(cls, text: bytes) -> list[int]:
        """Offsets of the dumps: the line of the head, or the line of the time before it."""
        found, line = [], 0
        for at in heads(text):
            line = text.rfind(b"\n", line, at) + 1 or line
            if text.startswith(b"2XM", line):  # a javacore has the same words after a tag
                continue
            time = _TIME.search(text, max(0, line - 40), line)
            found.append(time.start(1) if time else line)
        return found

    @classmethod
    def gaps(cls, text: bytes) -> list[tuple[int, int]]:
        """(start, end) of what is outside of its whole dumps: all of a text that has none."""
        gaps, begun = [], 0
        starts = cls.starts(text)
        for start, end in zip(starts, [*starts[1:], len(text)]):
            gaps.append((begun, start))
            begun = max(start, text.find(_ENDS[0], start, end))
        return [*gaps, (begun, len(text))]

    @classmethod
    def recognises(cls, text: bytes) -> bool:
        """Whether the text has a thread of this dialect."""
        return any(not prefix for prefix in thread_prefixes(text))

    def parse(self, text: bytes) -> list[ThreadDump]:
        """Every dump in the text; a text without any `Full thread dump` line but with threads is one dump."""
        starts = list(heads(text))
        if not starts:
            return [self._dump(b"\n" + text, 0, len(text) + 1, marked=False)]
        dumps = (
            (self._dump(text, start, end, marked=True), _is_head(text, start, end))
            for start, end in zip(starts, [*starts[1:], len(text)])
        )
        # `INFO Full thread dump written to x.txt` is not a dump; a head that is cut off after its line is.
        return [dump for dump, head in dumps if dump.threads or head]

    def _dump(self, text: bytes, start: int, end: int, *, marked: bool) -> ThreadDump:
        found = [at for heading in _DEADLOCKS if (at := text.find(heading, start, end)) >= 0]
        threads_end = min(found, default=end)
        threads, torn = self._threads(text, start, threads_end, marked=marked)
        time = version = None
        if marked:
            line_end = text.find(b"\n", start, end)
            version = decoded(text[start + len(MARKER) : line_end if line_end > 0 else end]).strip().rstrip(":") or None
            before = _TIME.search(text, max(0, start - 40), start)
            time = decoded(before[1]) if before else None
        unfinished = marked and self._lacks_its_end(text, start, end)
        return ThreadDump(
            self.NAME,
            threads,
            time,
            version,
            reported_deadlocks(text[threads_end:end]),
            cut_off=torn or unfinished or not threads,
            lists_owners=self.with_locks and text.find(_SYNCHRONIZERS, start, end) >= 0,
        )

    @staticmethod
    def _lacks_its_end(text: bytes, start: int, end: int) -> bool:
        """Since JDK 6 a dump by the JVM itself (it names native ids) ends with its JNI references."""
        is_own = text.find(b" nid=", start, end) >= 0 and text.find(b"java.lang.Thread.State: ", start, end) >= 0
        return is_own and not any(text.find(mark, start, end) >= 0 for mark in _ENDS)

    def _threads(self, text: bytes, start: int, end: int, *, marked: bool) -> tuple[list[Thread], bool]:
        """The threads between two offsets, and whether the last one was cut off and left out."""
        threads: list[Thread] = []
        find, same = text.find, text.startswith
        known = self._bodies
        found: tuple[Thread, ...] = ()
        body = b"?"
        at = find(b'\n"', start, end)
        while at >= 0:
            line_end = find(b"\n", at + 1, end)
            if line_end < 0:
                return threads, end == len(text)
            if find(b"d=", at, line_end) < 0 and not _is_header(text[at + 1 : line_end]):
                line_end = _second_line_end(text, at + 1, line_end, end)
                if line_end < 0:  # a line of the application
                    at = find(b'\n"', at + 1, end)
                    continue
            if not same(body, line_end):
                body = _body(text, line_end, end)
                if not body.endswith(_BODY_ENDS):
                    if end == len(text) and not _is_whole(body, marked=marked):
                        return threads, True
                    body += b"\n\n"
                found = known.get(body) or self._learn(body)
            next_at = find(b'\n"', onwards(at, line_end + len(body) - 2), end)
            if self.detail == "stacks":
                threads += found
            else:
                block = text[line_end : next_at if next_at >= 0 else end]
                self._add_detailed(threads, found, decoded(text[at + 1 : line_end]), block)
            at = next_at
        return threads, False

    def _learn(self, body: bytes) -> tuple[Thread, ...]:
        """The stacks of a new body; most new bodies differ from a known one by the addresses of their locks."""
        shape = _ADDRESS.sub(b"", body)
        found = self._shapes.get(shape)
        if found is None:
            if len(self._shapes) >= _CACHED_SHAPES:
                self._shapes.clear()
            found = self._shapes[shape] = self._parse_body(decoded(shape))
        if len(self._bodies) < _CACHED_BODIES:
            self._bodies[body] = found
        return found

    def _parse_body(self, body: str) -> tuple[Thread, ...]:
        stacks: list[Stack] = []
        frames: list[str] = []
        state = role = None
        in_trace = False  # a stack trace that the application printed in between
        for line in body.split("\n"):
            if match := FRAME.match(line):
                if not in_trace:
                    frames.append(match[1] or match[2])
            elif match := _STATE.search(line):
                state = match[1] if match[1] in STATES else None
            elif "Carrying virtual thread" in line:
                role = "carrier"
            elif "Mounted virtual thread" in line:
                stacks.append(self.table.stack(frames, state, role))
                frames, role = [], "mounted"
            else:
                in_trace = _TROUBLE.match(line) is not None
        stacks.append(self.table.stack(frames, state, role))
        return tuple(map(Thread, stacks))

    def _add_detailed(self, threads: list[Thread], found: tuple[Thread, ...], header: str, block: bytes) -> None:
        owned = header.find(OWNED_BY, header.find(" Id="))  # before that, it is part of a name
        if owned >= 0:
            owner = header[owned + len(OWNED_BY) : header.rfind('"')]
            header = header[:owned]
        elif _USER in header:
            header = _SAPS_USER.sub("", header)
        closing = header.rfind('"')
        name, rest = header[1:closing], header[closing + 1 :]
        words = dict(_WORDS.findall(rest))
        os_id, java_id = _OS_ID.search(rest), _JAVA_ID.search(rest)
        thread = Thread(
            found[0].stack,
            name,
            integer(os_id[1]) if os_id else native_id(words.get("nid", "")),
            integer(java_id[1]) if java_id else None,
            " daemon " in rest,
            decimal(words.get("cpu", "").removesuffix("ms")),  # the decimal sign is the locale's
            decimal(words.get("elapsed", "").removesuffix("s")),
        )
        if thread.stack.state is None and thread.stack.role is None:
            frames = thread.stack.frames
            thread = thread._replace(stack=self.table.stack(frames, _state_of_header(rest, frames)))
        locks = locks_by_stack(decoded(block)) if self.with_locks else ()
        if locks:
            first = locks[0]
            if owned >= 0 and first and first[0].action == "waiting to lock":
                first = (first[0]._replace(owner=owner), *first[1:])
            thread = thread._replace(locks=first)
        if thread.stack.role != "carrier" and len(found) == 1:
            threads.append(thread)
            return
        carried = _CARRIED_ID.search(block)
        carried_id = integer(carried[1]) if carried else None
        threads.append(thread._replace(mount_id=carried_id))
        for number, mounted in enumerate(found[1:], 1):
            threads.append(
                thread._replace(
                    stack=mounted.stack,
                    java_id=carried_id,
                    locks=locks[number] if locks else (),
                    mount_id=thread.java_id,
                )
            )


def _is_header(line: bytes) -> bool:
    """Whether a line without `tid=`, `nid=` or `Id=` is a thread's header: `"Timer-180" - Thread t@332`, `"Finalizer"`."""
    return _SUFFIX.fullmatch(line[max(1, line.rfind(b'"')) :]) is not None


def _second_line_end(text: bytes, start: int, line_end: int, end: int) -> int:
    """The end of the second line of a header whose thread name has a line break; -1 where this is not a header."""
    second = text.find(b"\n", line_end + 1, end)
    is_one = second >= 0 and text.count(b'"', start, line_end) == 1 and text.find(b'" ', line_end, second) >= 0
    return second if is_one and text.find(b"tid=", line_end, second) >= 0 else -1


def _body(text: bytes, start: int, end: int) -> bytes:
    """The text from a header's end through the next blank line or header; without either, to the end."""
    next_header = text.find(b'\n"', start, end)
    blank = text.find(b"\n\n", start, next_header + 1 if next_header >= 0 else end)
    stop = blank if blank >= 0 else next_header
    return text[start : stop + 2 if stop >= 0 else end]


def _state_of_header(words: str, frames: tuple[str, ...]) -> str | None:
    """The state that the header names: the only place in dumps of JDK 1.4 and 5; in those of JMX after the id."""
    for state in ("TIMED_WAITING", "RUNNABLE", "BLOCKED", "WAITING"):
        if state in words:
            return state
    if not frames:
        return None
    if " runnable" in words:
        return "RUNNABLE"
    if "waiting for monitor entry" in words:
        return "BLOCKED"
    if "waiting on " in words or "in Object.wait()" in words:
        return "TIMED_WAITING" if frames[0].startswith("java.lang.Thread.sleep(") else "WAITING"
    return None


def _is_whole(last: bytes, *, marked: bool) -> bool:
    """Whether the block at the very end of a file is complete.

    In a fragment, one that ends with a line is; in a dump with its head, only a stack that reaches a thread's first frame.
    """
    text = decoded(last)
    if not text.endswith("\n") and not text.endswith(")"):
        return False
    frames = [match[1] or match[2] for line in text.split("\n") if (match := FRAME.match(line))]
    if not frames:
        return not marked or not text.strip() or text.partition("\n")[2][:1] not in " \t"
    # The JDK's own threads have frames below Thread.run.
    inner = any("CleanerImpl" in frame or "ProcessHandleImpl" in frame for frame in frames)
    return not marked or (_ROOTS.match(frames[-1]) is not None and not inner)


def _is_head(text: bytes, start: int, end: int) -> bool:
    """Whether the marker at `start` begins a dump: a VM's name and version follow it, or its line ends."""
    line_end = text.find(b"\n", start, end)
    words = text[start + len(MARKER) : line_end if line_end >= 0 else end].lstrip(b" ")
    if words.startswith(b":"):
        return True
    cut_off = line_end < 0 and end == len(text)
    return words[:1].isupper() and (cut_off or b"(" in words) if words else cut_off or line_end >= 0
