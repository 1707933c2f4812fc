"""The lock lines and the deadlock reports of HotSpot's thread dumps.

    ␉- parking to wait for  <0x00000006c9c7b730> (a java.util.concurrent.Semaphore$FairSync)
    ␉-  blocked on java.lang.Object@1f owned by "x" Id=2                              JMX

    Found one Java-level deadlock:
    =============================
    "A":
      waiting to lock monitor 0x00007f8f1c003ae8 (object 0x00000000d6e3b6d0, a java.lang.Object),
      which is held by "B"

    Java stack information for the threads listed above:
    ===================================================
    "A":
    ␉at java.util.concurrent.locks.LockSupport.parkNanos(…)                           tryLock with a timeout

Source: src/hotspot/share/runtime/vframe.cpp, src/hotspot/share/services/threadService.cpp.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from opskit.jvm.dumps.dialect import decoded
from opskit.jvm.dumps.thread_dump import Lock, Waits

if TYPE_CHECKING:
    from collections.abc import Iterator

FRAME = re.compile(r"\s+at (.+)|at ([\w.$/@<>-]+\(.*\))")
OWNED_BY = ' owned by "'  # in a header or a lock line of java.lang.management.ThreadInfo
_LOCK_LINE = re.compile(r"\s+-\s+(?=\S)")
_ACTION = re.compile(r"[a-z][a-z ]*")
_ADDRESS_OR_WORDS = re.compile(r"(?:0x)?([0-9a-f]+)|[a-z ]+")
_NAMED = re.compile(r"([\w.$]+)@([0-9a-f]+)")
_OWNERS_ID = re.compile(r'" (?:t@|Id=)[0-9]+')
_WAITING = re.compile(rb"\s+waiting ")
_LOCK_OF = re.compile(rb"(0x[0-9a-f]+),? ?\(?a ")
_HELD_BY = b"which is held by "
_STACK = re.compile(rb'\n"(.*)":((?:\n[ \t].*)*)')
_TIMED_PARK = re.compile(rb"LockSupport\.park(?:Nanos|Until)\(")


@lru_cache(maxsize=4096)  # most threads of a live JVM are the same in each dump
def locks_by_stack(block: str) -> tuple[tuple[Lock, ...], ...]:
    """The lock lines of each stack of a thread's block, in order; ownable synchronizers belong to the first stack."""
    stacks: list[list[Lock]] = [[]]
    frames, in_synchronizers = 0, False
    for line in block.split("\n"):
        if FRAME.match(line):
            frames += 1
        elif "Mounted virtual thread" in line:
            stacks.append([])
            frames = 0
        elif "Locked ownable synchronizers" in line:
            in_synchronizers = True
        elif (begin := _LOCK_LINE.match(line)) and (lock := _lock(line[begin.end() :].rstrip())):
            depth = None if in_synchronizers else frames - 1
            stacks[0 if in_synchronizers else -1].append(lock._replace(depth=depth))
    return tuple(map(tuple, stacks))


def _lock(words: str) -> Lock | None:
    """`waiting to lock <0x…> (a T)`, `<0x…> (a T)`, `blocked on T@1f owned by "x" Id=2`; None for other lines."""
    owner = None
    what, owned, rest = words.partition(OWNED_BY)
    if owned:
        end = rest.rfind('" ')
        if end < 0 or not _OWNERS_ID.fullmatch(rest, end):
            return None
        owner = rest[:end]
    address: str | None
    class_name: str | None
    action, opening, after = what.partition("<")
    if opening:
        inside, closing, of = after.partition(">")
        match = _ADDRESS_OR_WORDS.fullmatch(inside) if closing else None
        if match is None or (of and not (of.startswith(" (a ") and of.endswith(")"))):
            return None
        address, class_name = match[1], of[len(" (a ") : -1] or None
    else:
        named = what.rsplit(None, 1)[-1] if what else ""
        match = _NAMED.fullmatch(named)
        if match is None:
            return None
        action, class_name, address = what[: -len(named)], match[1], match[2]
    action = action.rstrip()
    if action and not _ACTION.fullmatch(action):
        return None
    return Lock("waiting to lock" if action == "blocked on" else action or "locked", address, class_name, None, owner)


def reported_deadlocks(section: bytes) -> tuple[tuple[Waits, ...], ...]:
    """The `Found one Java-level deadlock:` parts. HotSpot also reports threads that wait with a timeout."""
    found = []
    for part in section.split(b"Java-level deadlock")[1:]:
        links, _, stacks = part.partition(b"Java stack information")
        timed = {decoded(name) for name, frames in _STACK.findall(stacks) if _TIMED_PARK.search(frames)}
        waits = _links(links.split(b"\n"))
        found.append(tuple(link._replace(timed=link.thread in timed) for link in waits))
    return tuple(filter(None, found))


def _links(lines: list[bytes]) -> Iterator[Waits]:
    """The links of one deadlock, three lines each: `"A":`, `  waiting to lock monitor 0x… (object 0x…, a T),`, `  which is held by "B"`."""
    written = [line for line in lines if line and not line.isspace()]
    for name, waiting, held in zip(written, written[1:], written[2:]):
        lock = _LOCK_OF.search(waiting) if _WAITING.match(waiting) else None
        closing = waiting.removesuffix(b",")
        at = held.rfind(_HELD_BY)
        if name[:1] != b'"' or name[-2:] != b'":' or lock is None or not closing.endswith(b")") or at < 0:
            continue
        owner = held[at + len(_HELD_BY) :]
        end = owner.rfind(b'"')
        yield Waits(
            decoded(name[1:-2]),
            decoded(closing[lock.end() : -1]),
            decoded(lock[1]),
            decoded(owner[1:end]) if owner[:1] == b'"' and end > 0 else None,
        )
