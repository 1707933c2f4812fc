r"""BEA and Oracle JRockit's thread dumps, of WebLogic 8.1's JDK 1.4.1 to R28 (`jrcmd PID print_threads`, kill -3).

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

JDK 1.4 has other headers, and addresses after the frames; WebLogic's THREAD_DUMP command prints braces:

    "Finalizer"  id: 0x00000380  prio: 8  WAITING, DAEMON, GCABLE          "Main Thread" prio=5 id=0x80 tid=0x104c active, daemon
        thread: 0x40C906A8  lastj: 0x4125FD8C  pt_thr: 0x0000065C
        at jrockit/vm/Threads.waitForSignal(Native Method)@40C421C0        Thread-0x80 "Main Thread" <Waiting, priority=5, DAEMON> {
        --- End of stack trace                                                 java.lang.Object.wait0()V(Unknown Source)
                                                                           }

Source: Oracle JRockit's "Diagnostics and Troubleshooting Guide", chapter "Using Thread Dumps".
"""

from __future__ import annotations

import re

from opskit.jvm.dumps.dialect import Dialect, blocks, decoded, native_id
from opskit.jvm.dumps.thread_dump import Lock, Thread, ThreadDump, Waits, timed_if_asleep
from opskit.quantities import integer

_HEAD = b" FULL THREAD DUMP "
_END = re.compile(r"(?m)^=====+ END OF THREAD DUMP")
_CHAINS = re.compile(r"(?m)^(?:Blocked lock chains|Open lock chains|Circular \(deadlocked\) lock chains)")
_HEADER = re.compile(
    r'(?m)^(?:Thread-(?P<number>\w+) )?"(?P<name>[^\n]*)" +(?:id=(?P<id>[\d?]+) idx=\S+(?: tid=(?P<tid>\d+))? prio=\d+ '
    r"|prio=\d+ id=0x\w+ [tp]id=(?P<lwp>0x[0-9a-fA-F]+|\d+) |id: 0x\w+  prio: \d+  |<)(?P<about>[^\n]*)"
)
_THREADS_END = re.compile(r"\n\n|(?m:^ *-- end of trace$|^ *--- End of stack trace$|^\}$)")
_FRAME = re.compile(r"\s+(?:at )?((?:[\w$<>-]+[/.])+[\w$<>-]+)\((.*)")
_PLACE = re.compile(r"\(([^()]*)\)(?:@(?:0x)?[0-9A-Fa-f]+)?$")
_NATIVE_ID = re.compile(r"\bpt_thr: (0x[0-9A-Fa-f]+)")
_LOCK = re.compile(
    r"\s+(?:\^)?-- (Blocked trying to get lock|Waiting for notification on|Parking to wait for|Holding lock"
    r"|Lock released while waiting): ([\w$/.]+)@(?:0x)?([0-9A-Fa-f]+)"
)
_LINK = re.compile(
    r'(?m)^"([^\n]*)" (?:id=\S+ idx=\S+(?: tid=\d+)?|\(id: \w+\)) waiting for ([\w$/.]+)@(?:0x)?([0-9A-Fa-f]+) held by:\n'
    r'"([^\n]*)" \(?id'
)
_ACTIONS = {
    "Blocked trying to get lock": "waiting to lock",
    "Waiting for notification on": "waiting on",
    "Parking to wait for": "parking to wait for",
    "Holding lock": "locked",
    "Lock released while waiting": "locked",
}
# The words after `alive`, the most specific first. With only `in native`, a call runs or waits in the kernel.
_STATES = (("blocked", "BLOCKED"), ("sleeping", "TIMED_WAITING"), ("parked", "WAITING"), ("waiting", "WAITING"))


class JRockitParser(Dialect):
    """Parser of JRockit's dumps."""

    NAME = "JRockit"
    HINTS = (_HEAD,)
    START = re.compile(rb"(?m)^=====+ FULL THREAD DUMP =+")
    FRAGMENT = re.compile(rb'(?m)^"[^\n]*" id=\d+ idx=0x')

    def dump(self, data: bytes) -> ThreadDump:
        """One dump, or a fragment of one."""
        text, is_fragment = decoded(data), _HEAD not in data
        end, chains = _END.search(text), _CHAINS.search(text)
        body = text[: chains.start() if chains else end.start() if end else len(text)]
        threads, torn = [], False
        for header, block, is_last in blocks(_HEADER, body):
            if ending := _THREADS_END.search(block):
                block = block[: ending.start()]
            elif is_last and end is None and chains is None and not is_fragment:
                torn = True
                break
            threads.append(self._thread(header, block))
        first = _HEADER.search(body)
        lacks_its_end = end is None and not is_fragment and first is not None and "prio=" in first[0]
        head = body[: first.start() if first else len(body)].split("\n")
        words = [] if is_fragment else [line.strip() for line in head[1:] if line.strip()]
        return ThreadDump(
            self.NAME,
            threads,
            words[0] if words else None,
            words[1] if len(words) > 1 else None,
            _deadlocks(text),
            cut_off=torn or lacks_its_end or not threads,
        )

    def _thread(self, header: re.Match[str], block: str) -> Thread:
        frames: list[str] = []
        locks: list[Lock] = []
        for line in block.split("\n"):
            if match := _FRAME.match(line):
                place = _PLACE.search(line)  # absent where a console broke the line
                frames.append(f"{match[1].replace('/', '.')}({place[1] if place else 'Unknown Source'})")
            elif self.with_locks and (match := _LOCK.match(line)):
                depth = max(len(frames) - 1, 0)
                locks.append(Lock(_ACTIONS[match[1]], f"0x{match[3].lower()}", match[2].replace("/", "."), depth))
        about = [word.strip().lower() for word in header["about"].rstrip("> {").split(",")]
        if "-- Blocked trying to get lock" in block:  # with a thin lock the header says `active`
            about.append("blocked")
        state = next((state for start, state in _STATES if any(word.startswith(start) for word in about)), None)
        if state is None and frames:
            state = "RUNNABLE"
        native = header["tid"] or header["lwp"]
        if native is None and (found := _NATIVE_ID.search(block)):
            native = found[1]
        return Thread(
            self.table.stack(frames, timed_if_asleep(state, frames)), header["name"], native_id(native or ""),
            integer(header["id"] or header["number"] or ""), "daemon" in about, locks=tuple(locks),
        )  # fmt: skip


def _deadlocks(text: str) -> tuple[tuple[Waits, ...], ...]:
    circular = text.rfind("Circular (deadlocked) lock chains")
    if circular < 0:
        return ()
    found = []
    others = _CHAINS.search(text, circular + 1)
    for chain in re.split(r"(?m)^Chain \d+:", text[circular : others.start() if others else len(text)])[1:]:
        # The last line of a link is the first line of the next one.
        waits, at = [], 0
        while match := _LINK.search(chain, at):
            waits.append(Waits(match[1], match[2].replace("/", "."), f"0x{match[3].lower()}", match[4]))
            at = match.start() + 1
        if waits:
            found.append(tuple(waits))
    return tuple(found)
