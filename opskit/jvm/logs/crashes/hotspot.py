"""HotSpot's hs_err file of JDK 6 to 26, whole, truncated, or only its header (src/hotspot/share/utilities/vmError.cpp)."""

from __future__ import annotations

import re
from itertools import takewhile
from typing import TYPE_CHECKING

from opskit.jvm.logs.crashes.frames import frames
from opskit.jvm.logs.crashes.header import parse_header, with_siginfo
from opskit.jvm.logs.crashes.heap import parse_heap
from opskit.jvm.logs.crashes.machine import parse_machine
from opskit.jvm.logs.crashes.mappings import parse_mappings
from opskit.jvm.logs.crashes.moment import epoch_of
from opskit.jvm.logs.crashes.record import CrashReport, Thread
from opskit.jvm.logs.crashes.sections import Sections
from opskit.quantities import decimal, hexadecimal, integer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opskit.jvm.logs.crashes.record import Frame

# (11.0.9+11), (build 1.8.0_402-b06), (26-ea+10); a vendor's version before it has no bracket or begins with a name. JDK 6: 6.0_30-b12
_MAJOR = re.compile(r"(?:^|\((?:build )?)(?:1\.)?([0-9]{1,2})[._+-]")
_MAJOR_OF_VM = re.compile(
    r"\((?:1\.(?=[0-9]\.)|(?=[^ ,()+]{1,40}\+))([0-9]{1,2})"
)  # (21.0.8+9-LTS, …), JDK 5: (1.5.0_01-b08 …)
_CURRENT = re.compile(r"Current thread \(0x[0-9a-fA-F]{1,16}\): +([A-Za-z][A-Za-z0-9_]{0,63})")
_STATE = re.compile(r"\[(_thread_[A-Za-z_]{1,40})")
_ID = re.compile(r"\bid=([0-9]{1,20})")
_STACK = re.compile(r"\[?\bstack ?[:(] ?(0x[0-9a-fA-F]{1,16}), ?(0x[0-9a-fA-F]{1,16})")
_BOUNDS = re.compile(r"\[(0x[0-9a-fA-F]{1,16}), ?(0x[0-9a-fA-F]{1,16})\]")
_POINTER = re.compile(r"\bsp=(0x[0-9a-fA-F]{1,16})")
_COMPILER_THREAD = re.compile(r"(?:C[12] CompilerThread|JVMCI(?:-native)? CompilerThread|CompilerThread)[0-9]{1,6}")
_REGISTER = re.compile(r"\b([A-Za-z][A-Za-z0-9]{0,9}) ?= ?0x([0-9a-fA-F]{1,16})\b")
_ELAPSED = re.compile(r"([0-9]{1,15}(?:[.,][0-9]{1,9})?) seconds?")
_EVENT = re.compile(r"Event: ([0-9]{1,15}[.,][0-9]{1,9}) ")
_ERRORS = (
    "[error occurred during error reporting",
    "[timeout occurred during error reporting",
    "[Too many errors, abort]",
)
# What happened before, and what is worth reading of it: not each compilation, collection and method that was flushed.
_EVENTS = re.compile(
    r"(?:Internal exceptions|Deoptimization events|Classes loaded|Classes unloaded|Classes redefined|VM Operations|Events"
    r"|Dll operation events|Memory protections|Vm events) \([0-9]"
)
_ANY_EVENTS = re.compile(r"[A-Za-z][A-Za-z ]{2,48} \([0-9]{1,9} events\)")
_MOST_EVENTS, _MOST_REGISTERS, _MOST_VARIABLES = 40, 256, 1000
_MOST_INSTRUCTION_LINES = 64
_LONGEST = 2000  # characters of a name or a sentence; what is longer is no real one
_SAYS_NOTHING = ("is an unknown value", "points into unknown readable memory", "is at entry_point+")
_LIBJVM = re.compile(
    r"(?:/jre)?/(?:lib|bin)(?:/[a-z0-9_]{1,16})?/(?:server|client|minimal)/(?:libjvm\.(?:so|dylib)|jvm\.dll)$"
)


def parse_hotspot(lines: Sequence[str]) -> CrashReport | None:
    """The report whose first line is the first one here; None if there is no report."""
    head = parse_header(lines)
    if head is None:
        return None
    found = Sections(lines)
    event = head.event
    siginfo = found.line("siginfo")
    if siginfo is not None:
        event = with_siginfo(event, siginfo)
    maps = parse_mappings(found.below("Dynamic libraries"), event.address)
    major = _major(head.runtime, head.vm)
    at, uptime = _times(found)
    native, java = _stacks(found)
    return CrashReport(
        "hotspot",
        event,
        head.pid,
        head.runtime,
        head.vm,
        major,
        head.frame,
        head.core,
        _thread(found),
        native,
        java,
        _compile_task(found),
        _operation(found.line("VM_Operation")),
        _instructions(found),
        _registers(found),
        _at_address(found, event.address, maps.holder),
        _last_events(lines),
        at,
        uptime,
        found.value("Command Line") if not _is_next(found, "Command Line") else None,
        _own_value(found, "jvm_args"),
        _own_value(found, "java_command"),
        _java_home(maps.libraries),
        _environment(found),
        maps.libraries,
        _handlers(found),
        parse_heap(found),
        parse_machine(found, maps.number),
        any(line.startswith(_ERRORS) for line in lines),
        _is_complete(found, major),
        head.report_file,
        at_s=epoch_of(at),
    )


def _major(runtime: str | None, vm: str | None) -> int | None:
    found = _MAJOR.search(runtime or "") or _MAJOR_OF_VM.search(vm or "")
    return integer(found[1]) if found else None


def _is_next(found: Sections, title: str) -> bool:
    """Whether a title's own line has no value."""
    return (found.line(title) or "").rstrip().endswith(":")


def _own_value(found: Sections, title: str) -> str | None:
    return None if _is_next(found, title) else found.value(title)


def _times(found: Sections) -> tuple[str | None, float | None]:
    """(date and zone, seconds since the start). From JDK 11 on in one line: `Time: … elapsed time: 0.04 seconds (…)`."""
    line = _own_value(found, "Time")
    if line is not None:
        at, mark, rest = line.partition(" elapsed time: ")
        elapsed: str | None = rest if mark else found.value("elapsed time")
    else:
        at = " ".join(filter(None, (found.value("time"), found.value("timezone"))))
        elapsed = found.value("elapsed time")
    seconds = _ELAPSED.match(elapsed or "")
    return at.strip() or None, decimal(seconds[1]) if seconds else None


def _thread(found: Sections) -> Thread | None:
    line = found.line("Current thread") or found.line("Current thread is native thread")
    if line is None:
        return None
    kind = _CURRENT.match(line)
    if kind is None:
        return _bounded(Thread("native"), "", found)
    rest = line[kind.end() :]
    quote, end = rest.find('"'), rest.rfind('"')
    name = rest[quote + 1 : end][:_LONGEST] if 0 <= quote < end else None
    about = rest[end + 1 :]
    state, tid = _STATE.search(about), _ID.search(about)
    what = kind[1]
    if what == "JavaThread" and name is not None and _COMPILER_THREAD.fullmatch(name):
        what = "CompilerThread"
    return _bounded(Thread(what, name, state[1] if state else None, integer(tid[1]) if tid else None), about, found)


def _bounded(thread: Thread, about: str, found: Sections) -> Thread:
    stack = found.value("Stack") or ""
    bounds = _STACK.search(about) or _BOUNDS.match(stack)
    pointer = _POINTER.search(stack)
    return thread._replace(
        stack_low=hexadecimal(bounds[1]) if bounds else None,
        stack_high=hexadecimal(bounds[2]) if bounds else None,
        sp=hexadecimal(pointer[1]) if pointer else None,
    )


def _stacks(found: Sections) -> tuple[tuple[Frame, ...], tuple[Frame, ...]]:
    """(native frames, Java frames). A stack whose printing failed is printed again without source information."""
    native = _native(found, "Native frames")
    for title in found.titles("Retrying call stack printing"):
        again = _native(found, title)
        native = again if len(again) > len(native) else native
    return tuple(native), tuple(frames(found.below("Java frames")))


def _native(found: Sections, title: str) -> list[Frame]:
    """The frames of a section; JDK 25 has no empty line before the next one."""
    return frames(takewhile(lambda line: not line.startswith("Java frames"), found.below(title)))


def _compile_task(found: Sections) -> str | None:
    below = found.below("Current CompileTask")
    return below[0].strip()[:_LONGEST] if below else None


def _operation(line: str | None) -> str | None:
    return None if line is None else line.partition("): ")[2].strip()[:_LONGEST] or None


def _instructions(found: Sections) -> str | None:
    lines = found.below("Instructions")[:_MOST_INSTRUCTION_LINES]
    return "\n".join(lines) or None


def _registers(found: Sections) -> dict[str, int]:
    registers: dict[str, int] = {}
    for line in found.below("Registers")[:_MOST_REGISTERS]:
        for name, value in _REGISTER.findall(line):
            number = hexadecimal(value)
            if number is not None and len(registers) < _MOST_REGISTERS:
                registers.setdefault(name, number)
    return registers


def _at_address(found: Sections, address: int | None, holder: str | None) -> str | None:
    """What the file says of the address: the mapping that holds it, or the register that has it."""
    for title in ("Error accessing class data sharing archive.", "Error accessing compressed class space."):
        if found.has(title):
            return found.line(title)
    if holder is not None or not address:
        return holder
    for line in found.below("Register to memory mapping", past_empty=True):
        name, equals, rest = line.partition("=")
        value, _, said = rest.partition(" ")
        if equals and name.strip().isalnum() and hexadecimal(value) == address and not said.startswith(_SAYS_NOTHING):
            return said.strip() or None
    return None


def _last_events(lines: Sequence[str]) -> tuple[str, ...]:
    found: list[tuple[float, str]] = []
    wanted = False
    for line in lines:
        if not line.startswith("Event: "):
            if _ANY_EVENTS.match(line):
                wanted = _EVENTS.match(line) is not None
        elif wanted and (match := _EVENT.match(line)):
            found.append((decimal(match[1]) or 0.0, line.removeprefix("Event: ").rstrip()))
    found.sort(key=lambda event: event[0])
    return tuple(text for _, text in found[-_MOST_EVENTS:])


def _environment(found: Sections) -> dict[str, str]:
    pairs = (line.partition("=") for line in found.below("Environment Variables")[:_MOST_VARIABLES])
    return {name: value for name, equals, value in pairs if equals}


def _handlers(found: Sections) -> dict[str, str]:
    pairs = (line.strip().partition(": ") for line in found.below("Signal Handlers")[:_MOST_VARIABLES])
    return {name: value for name, colon, value in pairs if colon and name.startswith("SIG")}


def _java_home(libraries: Sequence[str]) -> str | None:
    for path in libraries:
        found = _LIBJVM.search(path.replace("\\", "/"))
        if found is not None:
            return path[: found.start()] or None
    return None


def _is_complete(found: Sections, major: int | None) -> bool:
    """Whether its last line is there: `END.` from JDK 9 on, the time before."""
    if found.has("END."):
        return True
    return (major is None or major <= 8) and found.has("vm_info") and found.has("elapsed time")
