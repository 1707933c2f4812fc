r"""BEA and Oracle JRockit's thread dumps, R25 to R28 (`jrcmd PID print_threads`, kill -3).

    ===== FULL THREAD DUMP ===============
    Wed Aug 17 12:05:14 2005
    BEA JRockit(R) R25.2.0-28 dra-45238-20050523-2021-win-ia32

    "Thread-0" id=10 idx=0x14 tid=5628 prio=5 alive, in native, blocked
        -- Blocked trying to get lock: java/lang/Object@0x0095C8D0[thin lock]
        at jrockit/vm/Threads.shortNap(I)V(Native Method)
        at net/homeip/yusuke/samurai/test/AThread.run()V(StackSample.java:25)
        ^-- Holding lock: java/lang/Object@0x0095C8C8[thin lock]
        -- end of trace

    Circular (deadlocked) lock chains
    =================================
    Chain 1:
    "Thread-1" id=11 idx=0x16 tid=3264 waiting for java/lang/Object@0x0095C8C8 held by:
    "Thread-0" id=10 idx=0x14 tid=5628 waiting for java/lang/Object@0x0095C8D0 held by:
    "Thread-1" id=11 idx=0x16 tid=3264

    ===== END OF THREAD DUMP ===============

Source: Oracle JRockit's "Diagnostics and Troubleshooting Guide", chapter "Using Thread Dumps".
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from opskit.jvm.dumptext import blocks
from opskit.jvm.threaddump import Lock, StackTable, Thread, ThreadDump, Waits

if TYPE_CHECKING:
    from opskit.jvm.threaddump import Detail

NAME = "JRockit"
_HEAD = " FULL THREAD DUMP "
_START = re.compile(rb"(?m)^=====+ FULL THREAD DUMP =+")

_FRAGMENT = re.compile(rb'(?m)^"[^\n]*" id=\d+ idx=0x')
_END = re.compile(r"(?m)^=====+ END OF THREAD DUMP")
_CHAINS = re.compile(r"(?m)^(?:Blocked lock chains|Open lock chains|Circular \(deadlocked\) lock chains)")
_HEADER = re.compile(r'(?m)^"([^\n]*)" id=(\d+) idx=\S+(?: tid=(\d+))? prio=\d+ ([^\n]*)')
_FRAME = re.compile(r"\s+at ([\w$/<>.]+)\.([\w$<>]+)\([^)]*\)[^(\s]*\(([^)]*)\)")
_PLAIN_FRAME = re.compile(r"\s+at ([\w$/<>.]+)\.([\w$<>]+)\(([^)]*)\)")
_LOCK = re.compile(
    r"\s+(?:\^)?-- (Blocked trying to get lock|Waiting for notification on|Parking to wait for|Holding lock"
    r"|Lock released while waiting): ([\w$/.]+)@(?:0x)?([0-9A-Fa-f]+)"
)
_LINK = re.compile(
    r'(?m)^"([^\n]*)" id=\d+ idx=\S+(?: tid=\d+)? waiting for ([\w$/.]+)@(?:0x)?([0-9A-Fa-f]+) held by:\n"([^\n]*)" id='
)
_ACTIONS = {
    "Blocked trying to get lock": "waiting to lock",
    "Waiting for notification on": "waiting on",
    "Parking to wait for": "parking to wait for",
    "Holding lock": "locked",
    "Lock released while waiting": "locked",
}
# The words behind `alive`, the most telling first. `in native` alone is a call that runs, or waits in the kernel.
_STATES = (
    ("blocked", "BLOCKED"),
    ("sleeping", "TIMED_WAITING"),
    ("parked", "WAITING"),
    ("waiting", "WAITING"),
)


class JRockitParser:
    """Parses JRockit's dumps; equal stacks stay one object from dump to dump."""

    def __init__(self, detail: Detail = "stacks") -> None:
        self._locks = detail == "locks"
        self._table = StackTable()

    @staticmethod
    def starts(text: bytes) -> list[int]:
        """Where its dumps begin."""
        return [match.start() for match in _START.finditer(text)] if b" FULL THREAD DUMP " in text else []

    @staticmethod
    def recognises(text: bytes) -> bool:
        """Whether there is a thread in a text whose head was not saved."""
        return _FRAGMENT.search(text) is not None

    def parse(self, text: bytes) -> list[ThreadDump]:
        """The dumps in the text."""
        starts = [match.start() for match in _START.finditer(text)] or [0]
        ends = [*starts[1:], len(text)]
        return [self._dump(text[a:b].decode("utf-8", "surrogateescape")) for a, b in zip(starts, ends, strict=True)]

    def _dump(self, text: str) -> ThreadDump:
        is_fragment = _HEAD not in text
        end = _END.search(text)
        chains = _CHAINS.search(text)
        body = text[: chains.start() if chains else end.start() if end else len(text)]
        threads = []
        for header, block, is_last in blocks(_HEADER, body):
            may_be_torn = is_last and end is None and chains is None and not is_fragment
            if not may_be_torn or any(end in block for end in ("-- end of trace\n", "\n\n")):
                threads.append(self._thread(header, block))
        first = _HEADER.search(body)
        head = body[: first.start() if first else len(body)].split("\n")
        words = [] if is_fragment else [line.strip() for line in head[1:] if line.strip()]
        return ThreadDump(
            NAME,
            threads,
            words[0] if words else None,
            words[1] if len(words) > 1 else None,
            _deadlocks(text),
            cut_off=end is None and not is_fragment,
        )

    def _thread(self, header: re.Match[str], block: str) -> Thread:
        frames: list[str] = []
        locks: list[Lock] = []
        for line in block.split("\n"):
            if match := _FRAME.match(line) or _PLAIN_FRAME.match(line):
                frames.append(f"{match[1].replace('/', '.')}.{match[2]}({match[3]})")
            elif self._locks and (match := _LOCK.match(line)):
                depth = max(len(frames) - 1, 0)
                locks.append(Lock(_ACTIONS[match[1]], f"0x{match[3].lower()}", match[2].replace("/", "."), depth))
        about = [word.strip() for word in header[4].split(",")]
        state = next((state for word, state in _STATES if word in about), "RUNNABLE" if frames else None)
        return Thread(
            self._table.stack(frames, state),
            header[1],
            int(header[3]) if header[3] else None,
            int(header[2]),
            "daemon" in about,
            None,
            None,
            tuple(locks),
        )


def _deadlocks(text: str) -> tuple[tuple[Waits, ...], ...]:
    circular = text.rfind("Circular (deadlocked) lock chains")
    if circular < 0:
        return ()
    found = []
    for chain in re.split(r"(?m)^Chain \d+:", text[circular:])[1:]:
        # A link's last line is the next one's first: look at overlapping pairs.
        waits = []
        at = 0
        while match := _LINK.search(chain, at):
            waits.append(Waits(match[1], match[2].replace("/", "."), f"0x{match[3].lower()}", match[4]))
            at = match.start() + 1
        if waits:
            found.append(tuple(waits))
    return tuple(found)
