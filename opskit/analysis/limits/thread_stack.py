"""What one more thread of a process costs: its stack, what sizes it, and what its malloc() maps."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from opskit.analysis.limits.stack_space import ThreadCost
from opskit.proc.files.limits import UNLIMITED
from opskit.proc.malloc.limit import arena_limit
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from opskit.collect.limits.facts import ThreadLimitFacts

_GLIBC_DEFAULT = 2 << 20  # nptl, ARCH_STACK_DEFAULT_SIZE: what an unlimited RLIMIT_STACK gives
_MUSL_DEFAULT, _MUSL_GUARD = 128 << 10, 8 << 10
_JAVA_DEFAULT = 1 << 20  # ThreadStackSize and CompilerThreadStackSize on x86-64, JDK 11 to 25
_MIN_STACK = 16 << 10  # PTHREAD_STACK_MIN
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_XSS, _STACK_SIZE, _COMPILER_SIZE = (
    re.compile(f"-{option}([0-9]{{1,20}})([kmgt]?)", re.IGNORECASE)
    for option in ("(?:Xss|ss)", "XX:ThreadStackSize=", "XX:CompilerThreadStackSize=")
)
_WITHOUT_ARENAS = 3  # that many threads and no arena: these threads do not call malloc()


class Stack(NamedTuple):
    """A new thread's stack. `kind`: "glibc", "musl", "java", "unknown", or "given" (by --stack).

    `guard_bytes` is mapped beside it and never touched; `maps` is how many mappings both are. `origin` says in words
    what sizes it. `follows_rlimit`: RLIMIT_STACK does.
    """

    kind: str
    bytes: int
    guard_bytes: int
    maps: int
    origin: str
    follows_rlimit: bool = False


def stack_of(facts: ThreadLimitFacts, given_bytes: int | None) -> Stack:
    """How large the next thread's stack will be."""
    page = facts.page_bytes
    soft = facts.soft("RLIMIT_STACK")
    java = facts.space.jvm is not None if facts.space else facts.status.fields.get("Name") == "java"
    maps = 1 if facts.program.glibc and facts.program.glibc >= (2, 42) and _guards_inside(facts) else 2
    if given_bytes is not None:
        size = max(_rounded(given_bytes, page), _MIN_STACK)
        return Stack("given", size, 0 if java else page, maps, "given by --stack")
    if java:
        size, origin = java_stack(facts.program.java_options)
        return Stack("java", _rounded(size, page), 0, 2, origin)
    if facts.space is not None and facts.space.musl:
        return Stack("musl", _MUSL_DEFAULT, _MUSL_GUARD, 2, "musl's default of 128 KiB")
    kind = "glibc" if facts.space is None or facts.space.glibc else "unknown"
    if soft is None:
        size, origin = 8 << 20, "the usual 8 MiB: its limits could not be read"
    elif soft == UNLIMITED:
        size, origin = _GLIBC_DEFAULT, "glibc's default of 2 MiB where RLIMIT_STACK is unlimited"
    else:
        size, origin = max(_rounded(int(soft), page), _MIN_STACK), "RLIMIT_STACK as glibc's default"
    seen = _seen(facts, soft)
    if seen is not None and seen != soft:
        return Stack(kind, seen, page, maps, "as its threads have it now")
    return Stack(kind, size, page, maps, origin, follows_rlimit=True)


def _seen(facts: ThreadLimitFacts, soft: float | None) -> int | None:
    """The stack that at least half of its threads have, where none of them has the default's size."""
    others = (facts.status.threads or 1) - 1
    if others == 0 or facts.space is None:
        return None
    counts = Counter(facts.space.guarded)
    default = _GLIBC_DEFAULT if soft in (None, UNLIMITED) else _rounded(int(soft or 0), facts.page_bytes)
    size, count = max(counts.items(), key=lambda item: item[1], default=(0, 0))
    return size if not counts[default] and 2 * count >= others else None


def cost_of(facts: ThreadLimitFacts, stack: Stack) -> ThreadCost | None:
    """What the next threads map; None where the address space could not be read."""
    space = facts.space
    if space is None:
        return None
    threads = facts.status.threads or 1
    arenas_left = unused = 0
    if space.glibc and space.allocator is None and not (threads > _WITHOUT_ARENAS and space.arenas == 0):
        unused = max(0, space.arenas - (threads - 1))
        arenas_left = max(0, _arena_limit(facts) - 1 - space.arenas)
    stacks = sum(size == stack.bytes for size in space.guarded)
    cached = max(0, stacks - (threads - 1)) if stack.guard_bytes else 0
    return ThreadCost(stack.bytes, stack.guard_bytes, stack.maps, arenas_left, cached, unused)


def _arena_limit(facts: ThreadLimitFacts) -> int:
    return arena_limit(facts.program.malloc_options, facts.status, facts.online_cpus, facts.program.glibc)


def _guards_inside(facts: ThreadLimitFacts) -> bool:
    """Whether the guard page is marked within one mapping (MADV_GUARD_INSTALL): then no guard shows in the maps."""
    shows = facts.space is not None and any(size % facts.page_bytes == 0 for size in facts.space.guarded)
    return (facts.release is None or facts.release >= (6, 13)) and not shows


def _rounded(size: int, page_bytes: int) -> int:
    return -(-size // page_bytes) * page_bytes


def java_stack(options: tuple[str, ...]) -> tuple[int, str]:
    """(bytes, what sizes it) of a JVM's Java threads."""
    size, origin = _JAVA_DEFAULT, "the JVM's default of 1 MiB (no -Xss given)"
    for option in options:
        given = _given(_XSS, option, 1)
        given = _given(_STACK_SIZE, option, 1024) if given is None else given
        if given is not None:
            size, origin = (given, option) if given else (_JAVA_DEFAULT, f"{option}: the JVM's default of 1 MiB")
    return size, origin


def compiler_stack_bytes(options: tuple[str, ...]) -> int:
    """The stack of a JVM's compiler threads, in bytes."""
    given = [size for option in options if (size := _given(_COMPILER_SIZE, option, 1024)) is not None]
    return given[-1] or _JAVA_DEFAULT if given else _JAVA_DEFAULT


def _given(pattern: re.Pattern[str], option: str, unit: int) -> int | None:
    """The size in bytes; the -XX flags' unit is KiB."""
    match = pattern.fullmatch(option)
    return int(match[1]) * _UNITS[match[2].lower()] * unit if match else None  # a number: 20 digits at most
