r"""The header of an hs_err file, lines that begin with #, which the JVM prints to its output too (vmError.cpp, JDK 5 to 26).

# A fatal error has been detected by the Java Runtime Environment:
#  SIGSEGV (0xb) at pc=0x00007f011ab1ccd5 (sent by kill), pid=576034, tid=576034
#  Internal Error (loopnode.hpp:628), pid=4252, tid=0x00007f4d78ee6700
#  guarantee(n != NULL) failed: No Node.                      or assert, fatal error: …, Error: ShouldNotReachHere()

# There is insufficient memory for the Java Runtime Environment to continue.
# Native memory allocation (mmap) failed to map 12288 bytes. Error detail: committing reserved memory.
# Possible reasons: …
#  Out of Memory Error (os_linux.cpp:2759), pid=4252, tid=4260    not in the program's output

# JRE version: OpenJDK Runtime Environment (17.0.7+7) (build 17.0.7+7-LTS)
# Java VM: OpenJDK 64-Bit Server VM (17.0.7+7-LTS, mixed mode, tiered, g1 gc, linux-amd64)
# Problematic frame:
# C  [libc.so.6+0x14d667]  __memcpy_ssse3+0xb57
# Core dump will be written. Default location: …
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from opskit.jvm.logs.crashes.frames import parse_frame
from opskit.jvm.logs.crashes.record import Event, Frame
from opskit.quantities import hexadecimal, integer
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

NO_MEMORY = "There is insufficient memory for the Java"
_SIGNAL = re.compile(
    r"([A-Z][A-Za-z0-9_+]{1,63}) \((0x[0-9a-fA-F]{1,16})\) at pc=(0x[0-9a-fA-F]{1,16})(?: \((sent by [a-z ]{1,40} handler)\))?"
)
_ERROR = re.compile(r"(Internal Error|Out of Memory Error)(?: at | \()([^),]{1,500})")
_IDS = re.compile(r", pid=([0-9]{1,20})(?:, tid=(0x[0-9a-fA-F]{1,16}|[0-9]{1,20}))?")
_REFUSED = re.compile(r"(?:failed to [a-z]{1,16}|requested) ([0-9]{1,20}) bytes")
_OUT_OF_MEMORY = "OutOfMemory encountered: "
_MOST_LINES = 100
_CORE_WORDS = ("core dump", "core file", "minidump", "createcoredumponcrash")
_ENDS_MESSAGE = (
    "JRE version:",
    "Java VM:",
    "Problematic frame:",
    "An error report file",
    "If you would like to submit",
)
_BOILERPLATE = ("This output file may be truncated",)
_NO_SIGNALS = range(
    0xE0000000, 0xE0000100
)  # INVALID (0xe0000000) of JDK 8: a failed check; …1 and …2: malloc and mmap failed


class Header(NamedTuple):
    """What it says. `tid`: 0x… is pthread_t in JDK 8."""

    event: Event
    pid: int | None
    tid: int | None
    runtime: str | None
    vm: str | None
    frame: Frame | None
    core: str | None
    report_file: str | None
    length: int  # lines


def parse_header(lines: Sequence[str]) -> Header | None:
    """The header that begins in the first line; None if it names no event."""
    if not lines:
        return None
    numbers = _numbers(lines)
    texts = [lines[number][1:].rstrip() for number in numbers]
    event, pid, tid = _event([text.strip() for text in texts])
    if event is None:
        return None
    frame = core = report_file = None
    for text, after in zip(texts, [*texts[1:], ""]):
        words = text.strip()
        if words == "Problematic frame:":
            frame = frame or parse_frame(after.strip() + " ")
        elif core is None and any(mark in words.lower() for mark in _CORE_WORDS):
            core = words
        elif words.startswith("An error report file"):
            report_file = report_file or after.strip() or None
    return Header(
        event,
        pid,
        tid,
        _after(texts, "JRE version:"),
        _after(texts, "Java VM:"),
        frame,
        core,
        report_file,
        numbers[-1] + 1,
    )


def _numbers(lines: Sequence[str]) -> list[int]:
    """The numbers of the header's lines; another thread may have printed between them."""
    found = []
    others = 0
    for number, line in enumerate(lines[:_MOST_LINES]):
        if line.startswith("#"):
            found.append(number)
            others = 0
        elif line.startswith("-----") or others == 3:
            break
        else:
            others += 1
    return found or [0]


def _after(texts: Sequence[str], title: str) -> str | None:
    found = next((text.strip() for text in texts if text.strip().startswith(title)), None)
    return None if found is None else found[len(title) :].strip() or None


def _event(texts: Sequence[str]) -> tuple[Event | None, int | None, int | None]:
    message: list[str] = []
    signal = error = ids = None
    is_advice = False
    for text in texts[1:]:
        if text.startswith(_ENDS_MESSAGE):
            break
        ids = ids or _IDS.search(text)
        if signal is None and (signal := _SIGNAL.match(text)):
            continue
        if error is None and (error := _ERROR.match(text)):
            is_advice = False
            continue
        if text.startswith("Possible reasons"):
            is_advice = True
        elif text and not is_advice and not text.startswith(_BOILERPLATE):
            message.append(text)
    pid = integer(ids[1]) if ids else None
    tid = (hexadecimal(ids[2]) if ids[2].startswith("0x") else integer(ids[2])) if ids and ids[2] else None
    number = hexadecimal(signal[2]) if signal is not None else None
    if number in _NO_SIGNALS:
        signal, error = None, error or _ERROR.match("Internal Error (?)")
    if signal is not None:
        # -XX:+AbortVMOnSafepointTimeout: "sent by safepoint timeout handler"
        said = (*([signal[4]] if signal[4] else []), *message)
        event = Event("signal", signal[1], number, pc=hexadecimal(signal[3]), message=said)
    elif texts[0].startswith(NO_MEMORY) or (error is not None and error[1] == "Out of Memory Error"):
        name = "Out of Memory Error"
        event = Event("memory", name, message=tuple(message), source=_source(error), bytes_refused=_refused(message))
    elif error is not None:
        event = _internal(error[1], _source(error), message)
    elif message and any(text.startswith(_ENDS_MESSAGE) for text in texts[1:]):
        event = Event("error", message[0], message=tuple(message[1:]))
    else:
        return None, None, None
    return event, pid, tid


def _internal(name: str, source: str | None, message: Sequence[str]) -> Event:
    for text in message:
        _, found, what = text.partition(_OUT_OF_MEMORY)
        if found:
            return Event("java-heap", found + what, message=tuple(message), source=source)
    return Event("internal", name, message=tuple(message), source=source)


def _source(error: re.Match[str] | None) -> str | None:
    source = "" if error is None else error[2].strip().replace("\\", "/").rpartition("/")[2]
    return source if source not in ("", "?") and not source.startswith("0x") else None


def _refused(message: Sequence[str]) -> int | None:
    found = next(filter(None, (_REFUSED.search(text) for text in message)), None)
    return integer(found[1]) if found else None


_SIGINFO_NAME = re.compile(r"si_signo[:=] ?(?:([0-9]{1,5})(?: \((SIG[A-Z0-9+]{1,16})\))?|(SIG[A-Z0-9+]{1,16}))")
_SIGINFO_CODE = re.compile(r"si_code[:=] ?(-?[0-9]{1,10})(?: \(([A-Za-z_]{1,40})\))?")
_SIGINFO_ADDRESS = re.compile(r"si_addr[:=] ?(0x[0-9a-fA-F]{1,16})")
_SENDER = re.compile(r"(?:si_pid[:=]|sent from pid[:=]) ?([0-9]{1,10})")
_SENDER_UID = re.compile(r"(?:si_uid|uid)[:=] ?([0-9]{1,10})")
_WINDOWS = re.compile(r"(reading|writing|data execution prevention violation at) address (0x[0-9a-fA-F]{1,16})")
_CODES = {0: "SI_USER", 128: "SI_KERNEL", -1: "SI_QUEUE", -6: "SI_TKILL"}
CODES_OF = {
    "SIGSEGV": ("SEGV_MAPERR", "SEGV_ACCERR"),
    "SIGBUS": ("BUS_ADRALN", "BUS_ADRERR", "BUS_OBJERR"),
    "SIGILL": ("ILL_ILLOPC", "ILL_ILLOPN", "ILL_ILLADR", "ILL_ILLTRP", "ILL_PRVOPC", "ILL_PRVREG", "ILL_COPROC", "ILL_BADSTK"),
    "SIGFPE": (
        "FPE_INTDIV", "FPE_INTOVF", "FPE_FLTDIV", "FPE_FLTOVF", "FPE_FLTUND", "FPE_FLTRES", "FPE_FLTINV", "FPE_FLTSUB",
    ),
    "SIGTRAP": ("TRAP_BRKPT", "TRAP_TRACE"),
}  # fmt: skip


def code_name(signal: str, code: int | None) -> str | None:
    """The name of an si_code of Linux: SEGV_MAPERR."""
    if code is None or code in _CODES:
        return None if code is None else _CODES[code]
    names = CODES_OF.get(signal, ())
    return names[code - 1] if 0 < code <= len(names) else str(code)


def with_siginfo(event: Event, siginfo: str) -> Event:
    """The event with what the line `siginfo: …` adds: code, address, sender."""
    if windows := _WINDOWS.search(siginfo):
        return event._replace(code=windows[1].removesuffix(" at"), address=hexadecimal(windows[2]))
    if event.kind != "signal":
        return event
    named = _SIGINFO_NAME.search(siginfo)
    number = integer(named[1]) if named and named[1] else event.number
    code = _SIGINFO_CODE.search(siginfo)
    address = _SIGINFO_ADDRESS.search(siginfo)
    sender, uid = _SENDER.search(siginfo), _SENDER_UID.search(siginfo)
    name = None
    if code is not None:
        digits = code[1].lstrip("-")
        value = integer(digits)
        name = code[2] or code_name(event.name, None if value is None else -value if code[1] != digits else value)
    return event._replace(
        number=number,
        code=name or event.code,
        address=hexadecimal(address[1]) if address else None,
        sender_pid=integer(sender[1]) if sender else None,
        sender_uid=integer(uid[1]) if uid else None,
    )
