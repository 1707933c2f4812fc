"""What one more thread of a process costs: its stack, by whom it is sized, and what its malloc() maps. Pure."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from opskit.analysis.stack_space import ARENAS_PER_CPU, ThreadCost
from opskit.proc.files.limits import UNLIMITED
from opskit.quantities import hexadecimal, integer

if TYPE_CHECKING:
    from opskit.proc.thread_limits import Situation

_GLIBC_DEFAULT = 2 << 20  # nptl, ARCH_STACK_DEFAULT_SIZE: what an unlimited RLIMIT_STACK gives
_MUSL_DEFAULT, _MUSL_GUARD = 128 << 10, 8 << 10
_JAVA_DEFAULT = 1 << 20  # ThreadStackSize and CompilerThreadStackSize on x86-64, JDK 11 to 25
_MIN_STACK = 16 << 10  # PTHREAD_STACK_MIN
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_XSS = re.compile(r"-(?:Xss|ss)([0-9]{1,20})([kmgt]?)", re.IGNORECASE)
_STACK_SIZE = re.compile(r"-XX:ThreadStackSize=([0-9]{1,20})([kmgt]?)", re.IGNORECASE)
_COMPILER_SIZE = re.compile(r"-XX:CompilerThreadStackSize=([0-9]{1,20})([kmgt]?)", re.IGNORECASE)
_WITHOUT_ARENAS = 3  # that many threads and no arena: these threads do not call malloc()


@dataclass(frozen=True)
class Stack:
    """A new thread's stack. `kind`: "glibc", "musl", "java", "unknown", or "given" (by --stack).

    `guard_bytes` is mapped beside it and never touched; `maps` is how many mappings both are. `origin` says in words
    where the size is from. `follows_rlimit`: RLIMIT_STACK gave it.
    """

    kind: str
    bytes: int
    guard_bytes: int
    maps: int
    origin: str
    follows_rlimit: bool


def stack_of(situation: Situation, given_bytes: int | None, page_bytes: int) -> Stack:
    """How large the next thread's stack will be."""
    soft = situation.limits["RLIMIT_STACK"].soft if "RLIMIT_STACK" in situation.limits else None
    java = _is_java(situation)
    maps = 1 if situation.glibc and situation.glibc >= (2, 42) and _guards_inside(situation, page_bytes) else 2
    if given_bytes is not None:
        size = max(_rounded(given_bytes, page_bytes), _MIN_STACK)
        return Stack("given", size, 0 if java else page_bytes, maps, "given by --stack", follows_rlimit=False)
    if java:
        size, origin = _java_stack(situation.java_options)
        return Stack("java", _rounded(size, page_bytes), 0, 2, origin, follows_rlimit=False)
    if situation.space is not None and situation.space.musl:
        return Stack("musl", _MUSL_DEFAULT, _MUSL_GUARD, 2, "musl's default of 128 KiB", follows_rlimit=False)
    kind = "glibc" if situation.space is None or situation.space.glibc else "unknown"
    seen = _seen(situation, page_bytes)
    if seen is not None and seen != soft:
        return Stack(kind, seen, page_bytes, maps, "as its threads have it now", follows_rlimit=False)
    if soft == UNLIMITED:
        origin = "glibc's default of 2 MiB where RLIMIT_STACK is unlimited"
        return Stack(kind, _GLIBC_DEFAULT, page_bytes, maps, origin, follows_rlimit=True)
    if soft is None:
        return Stack(
            kind, 8 << 20, page_bytes, maps, "the usual 8 MiB: its limits could not be read", follows_rlimit=True
        )
    size = max(_rounded(int(soft), page_bytes), _MIN_STACK)
    return Stack(kind, size, page_bytes, maps, "RLIMIT_STACK as glibc's default", follows_rlimit=True)


def _seen(situation: Situation, page_bytes: int) -> int | None:
    """The stack that at least half of its threads have, where none of them has the default's size."""
    others = (situation.status.threads or 1) - 1
    if others == 0 or situation.space is None:
        return None
    counts = Counter(situation.space.guarded)
    soft = situation.limits["RLIMIT_STACK"].soft if "RLIMIT_STACK" in situation.limits else UNLIMITED
    default = _GLIBC_DEFAULT if soft == UNLIMITED else _rounded(int(soft), page_bytes)
    size, count = max(counts.items(), key=lambda item: item[1], default=(0, 0))
    return size if not counts[default] and 2 * count >= others else None


def cost_of(situation: Situation, stack: Stack) -> ThreadCost:
    """What the next threads map. Raises ValueError where the address space could not be read."""
    space = situation.space
    if space is None:
        raise ValueError("no maps")
    threads = situation.status.threads or 1
    arenas_left = unused = 0
    if space.glibc and space.allocator is None and not (threads > _WITHOUT_ARENAS and space.arenas == 0):
        unused = max(0, space.arenas - (threads - 1))
        arenas_left = max(0, arena_limit(situation) - 1 - space.arenas)
    stacks = sum(size == stack.bytes for size in space.guarded)
    cached = max(0, stacks - (threads - 1)) if stack.guard_bytes else 0
    return ThreadCost(stack.bytes, stack.guard_bytes, stack.maps, arenas_left, cached, unused)


def arena_limit(situation: Situation) -> int:
    """How many malloc arenas glibc makes, the main one counted: 8 x CPUs, unless the process was started otherwise."""
    tunable = re.search(r"glibc\.malloc\.arena_max=([0-9]{1,20})", situation.malloc_options.get("GLIBC_TUNABLES", ""))
    text = tunable[1] if tunable else situation.malloc_options.get("MALLOC_ARENA_MAX", "")
    given = integer(text)
    if given:
        return given
    allowed = situation.status.fields.get("Cpus_allowed", "").split(",")  # words of 32 bits, hundreds on large machines
    masks = [hexadecimal(word) for word in allowed]
    by_affinity = None if None in masks else sum(bin(mask or 0).count("1") for mask in masks)
    by_machine = situation.online_cpus or by_affinity or 1
    # glibc 2.34 to 2.36 counted the CPUs that the process may run on; all others those that are online.
    counts_affinity = situation.glibc is not None and (2, 34) <= situation.glibc <= (2, 36)
    cpus = min(by_machine, by_affinity) if counts_affinity and by_affinity else by_machine
    # The limit is looked at for the first time when there are nine.
    return max(ARENAS_PER_CPU * cpus, ARENAS_PER_CPU + 1)


def _is_java(situation: Situation) -> bool:
    if situation.space is not None:
        return situation.space.jvm is not None
    return situation.status.fields.get("Name") == "java"


def _guards_inside(situation: Situation, page_bytes: int) -> bool:
    """Whether the guard page is marked within one mapping (MADV_GUARD_INSTALL): then no guard shows in the maps."""
    release = situation.release
    shows = situation.space is not None and any(size % page_bytes == 0 for size in situation.space.guarded)
    return (release is None or release >= (6, 13)) and not shows


def _rounded(size: int, page_bytes: int) -> int:
    return -(-size // page_bytes) * page_bytes


def _java_stack(options: tuple[str, ...]) -> tuple[int, str]:
    size, origin = _JAVA_DEFAULT, "the JVM's default of 1 MiB (no -Xss given)"
    for option in options:
        if match := _XSS.fullmatch(option):
            given = int(match[1]) * _UNITS[match[2].lower()]
        elif match := _STACK_SIZE.fullmatch(option):
            given = int(match[1]) * _UNITS[match[2].lower()] * 1024  # the flag's unit is KiB
        else:
            continue
        size, origin = (given, option) if given else (_JAVA_DEFAULT, f"{option}: the JVM's default of 1 MiB")
    return size, origin


def compiler_stack_bytes(options: tuple[str, ...]) -> int:
    """The stack of a JVM's compiler threads, in bytes."""
    size = _JAVA_DEFAULT
    for option in options:
        if match := _COMPILER_SIZE.fullmatch(option):
            size = int(match[1]) * _UNITS[match[2].lower()] * 1024 or _JAVA_DEFAULT
    return size
