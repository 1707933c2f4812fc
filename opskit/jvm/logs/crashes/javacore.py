r"""OpenJ9's javacore of a crash: the same file as on a signal to dump, with the event `gpf` or `abort`, a tag before each line.

1TISIGINFO     Dump Event "gpf" (00002000) received
1TIDATETIME    Date: 2026/03/25 at 09:52:22:443
1TINANOTIME    System nanotime: 5090248790083
1XHEXCPCODE    Signal_Number: 0000000B
1XHEXCPCODE    Signal_Code: 00000001
1XHEXCPCODE    InaccessibleAddress: 0000000000000000
1XHEXCPMODULE  Module: /opt/java/openjdk/lib/default/libj9vm29.so
2XHREGISTER      PC: 0000FFFF98B9FB6C
1CIJAVAVERSION JRE 11 Linux aarch64-64 (build 11.0.28+6)
1CIPROCESSID   Process ID: 38 (0x26)
1XMCURTHDINFO  Current thread
3XMTHREADINFO      "main" J9VMThread:0x…, omrthread_t:0x…, java/lang/Thread:0x…, state:R, prio=5
3XMTHREADINFO1            (native thread ID:0x27, native priority:0x5, …)
4XESTACKTRACE                at sun/misc/Unsafe.putLong(Native Method)
4XENATIVESTACK               sigsegv_handler+0x1a (0x00007F8B7C0B3D63 [libcrash.so+0x1d63])

The tags are those of OpenJ9's documentation ("Java dump").
"""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING

from opskit.jvm.logs.crashes.header import code_name
from opskit.jvm.logs.crashes.moment import epoch_of_utc
from opskit.jvm.logs.crashes.record import CrashReport, Event, Frame, Heap, Machine, Thread
from opskit.quantities import hexadecimal, integer

if TYPE_CHECKING:
    from collections.abc import Sequence

_CRASHES = frozenset({"gpf", "abort", "traceassert"})
_LINE = re.compile(r"([0-9][A-Z][A-Z0-9]{1,20})(?:\s+(.*))?")
_NAMES = {4: "SIGILL", 5: "SIGTRAP", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE", 11: "SIGSEGV"}
_BUILD = re.compile(r"JRE (?:1\.)?([0-9]{1,2})")
_THREAD = re.compile(r'"(.*)" +\(?(?:J9VMThread|TID):')
_STATE = re.compile(r"\bstate:(\w{1,8})")
_TID = re.compile(r"[Nn]ative [Tt]hread ID: ?(0x[0-9A-Fa-f]{1,16})")
_RANGE = re.compile(r"from: ?(0x[0-9A-Fa-f]{1,16}), ?to: ?(0x[0-9A-Fa-f]{1,16})")
_JAVA = re.compile(r"at ([^\s(]{1,1000})(\(.*)?")
_BYTES = re.compile(r"([0-9]{1,20})(?: bytes)?(?: .*)?")
_PROGRAM_COUNTERS = ("RIP", "PC", "EIP", "IP", "PSWA")
_HANDLER = ("libj9prt", "libj9dmp", "j9prt", "j9dmp")
_SIGNAL_RETURN = frozenset(
    {"__kernel_rt_sigreturn", "__kernel_sigreturn", "__restore_rt"}
)  # below it is where the signal came
_MOST_FRAMES, _MOST_LISTED, _LONGEST = 4096, 10_000, 2000
_LAST = "END OF DUMP"


class _Found:
    """The lines of each tag, without the tag; and those that follow the current thread's line up to the next thread's."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.tags: dict[str, list[str]] = {}
        self.thread: list[tuple[str, str]] = []
        self.is_whole = False
        state = 0  # 0: before the current thread, 1: its title was seen, 2: in it, 3: behind it
        for line in lines:
            matched = _LINE.match(line)
            if matched is None:
                self.is_whole = self.is_whole or _LAST in line
                continue
            tag, text = matched[1], (matched[2] or "").rstrip()
            kept = self.tags.setdefault(tag, [])
            if len(kept) < _MOST_LISTED:
                kept.append(text)
            if state == 0 and tag == "1XMCURTHDINFO":
                state = 1
            elif tag == "3XMTHREADINFO" and state in (1, 2):
                state += 1
            elif state == 2 and tag.startswith(("1", "0")):
                state = 3
            if state == 2:
                self.thread.append((tag, text))

    def after(self, tag: str, title: str) -> str | None:
        """The rest of the first line of a tag that begins with a title."""
        found = next((text for text in self.tags.get(tag, ()) if text.startswith(title)), None)
        return None if found is None else found[len(title) :].strip() or None

    def first(self, tag: str) -> str | None:
        """The first line of a tag."""
        return next(iter(self.tags.get(tag, ())), None) or None


def _cause(text: str) -> tuple[str, str | None] | None:
    """(event, detail) of the first `Dump Event "systhrow" (00040000) Detail "java/lang/OutOfMemoryError" received`."""
    _, found, rest = text.partition('Dump Event "')
    name, quote, rest = rest[:_LONGEST].partition('"')
    if not found or not quote or not name.isalpha():
        return None
    _, found, detail = rest.partition("\n")[0].partition('Detail "')
    return name, detail.partition('"')[0] if found else None


def why_no_crash(text: str) -> str | None:
    """What a javacore is if no crash caused it: `a javacore of the event "user", …`; None for one of a crash."""
    event = _cause(text)
    if event is None or event[0] in _CRASHES:
        return None
    detail = f" ({event[1]})" if event[1] else ""
    return f'a javacore of the event "{event[0]}"{detail}, not of a crash; read its threads with opskit jpmp'


def parse_javacore(lines: Sequence[str]) -> CrashReport | None:
    """The report; None if no crash caused it."""
    found = _Found(lines)
    event = _cause(found.first("1TISIGINFO") or "")
    if event is None or event[0] not in _CRASHES:
        return None
    runtime = found.first("1CIJAVAVERSION")
    major = _BUILD.search(runtime or "")
    module = found.after("1XHEXCPMODULE", "Module:")
    registers = _registers(found)
    pid = re.match(r"[0-9]{1,20}", found.after("1CIPROCESSID", "Process ID:") or "")
    native, java = _stacks(found)
    at = " ".join(filter(None, (found.after("1TIDATETIME", "Date:"), found.after("1TITIMEZONE", "Timezone:"))))
    blamed = _blamed(found, native, module, registers)
    return CrashReport(
        "openj9",
        _event(found, event[0], registers),
        integer(pid[0]) if pid else None,
        runtime,
        found.first("1CIJ9VMTAG") or found.first("1CIVMVERSION"),
        integer(major[1]) if major else None,
        blamed,
        thread=_thread(found),
        native_frames=_from(native, registers, blamed),
        java_frames=java,
        compile_task=found.after("1XHEXCPMODULE", "Method_being_compiled:") or found.first("1XHMETHODBEINGCOMPILED"),
        registers=registers,
        at=at or None,
        uptime_s=_uptime(found),
        command_line=found.first("1CICMDLINE"),
        jvm_arguments=" ".join(found.tags.get("2CIUSERARG", ())) or None,
        java_home=found.after("1CIJAVAHOMEDIR", "Java Home Dir:"),
        environment=_environment(found),
        heap=_heap(found),
        machine=_machine(found),
        complete=found.is_whole,
        at_s=epoch_of_utc(found.after("1TIDATETIMEUTC", "Date:")),
    )


def _event(found: _Found, name: str, registers: dict[str, int]) -> Event:
    number = _hex(found.after("1XHEXCPCODE", "Signal_Number:"))
    code = _hex(found.after("1XHEXCPCODE", "Signal_Code:"))
    if code is not None and code >= 1 << 31:
        code -= 1 << 32
    address = found.after("1XHEXCPCODE", "InaccessibleAddress:") or found.after("1XHEXCPCODE", "Inaccessible Address:")
    signal = _NAMES.get(number or 0) or ("SIGABRT" if name == "abort" else None)
    said = found.first("1TISIGINFO") or ""
    if signal is None and number is None:
        return Event("error" if name == "gpf" else "internal", f'Dump Event "{name}"', message=(said,))
    return Event(
        "signal",
        signal or f"signal {number}",
        number if number is not None else 6 if name == "abort" else None,
        code_name(signal or "", code),
        _hex(address),
        next((registers[each] for each in _PROGRAM_COUNTERS if each in registers), None),
        message=(said,),
    )


def _hex(text: str | None) -> int | None:
    return hexadecimal(text) if text else None


def _registers(found: _Found) -> dict[str, int]:
    registers: dict[str, int] = {}
    for text in found.tags.get("2XHREGISTER", ()):
        name, colon, value = text.partition(":")
        number = hexadecimal(value.strip())
        if colon and number is not None and len(registers) < 256:
            registers.setdefault(name.strip(), number)
    return registers


def _thread(found: _Found) -> Thread | None:
    if not found.thread:
        return None
    said = "\n".join(text for tag, text in found.thread if tag.startswith("3XM"))
    head = found.thread[0][1][:_LONGEST]
    name, state, tid, stack = _THREAD.match(head), _STATE.search(head), _TID.search(said), _RANGE.search(said)
    return Thread(
        "JavaThread" if name else "native",
        name[1] if name else head.strip('"') or None,
        state[1] if state else None,
        hexadecimal(tid[1]) if tid else None,
        hexadecimal(stack[1]) if stack else None,
        hexadecimal(stack[2]) if stack else None,
    )


def _stacks(found: _Found) -> tuple[tuple[Frame, ...], tuple[Frame, ...]]:
    native, java = [], []
    for tag, line in found.thread[:_MOST_FRAMES]:
        text = line[:_LONGEST]
        if tag == "4XENATIVESTACK" and (frame := _native_frame(text)):
            native.append(frame)
        elif tag == "4XESTACKTRACE" and (at := _JAVA.match(text)):
            kind = "J" if "(Compiled Code)" in text else "j"
            java.append(Frame(kind, text[3:], name=at[1].replace("/", ".")))
    came = next((number + 1 for number, frame in enumerate(native) if frame.name in _SIGNAL_RETURN), 0)
    return tuple(native[came:]), tuple(java)


def _from(frames: tuple[Frame, ...], registers: dict[str, int], blamed: Frame | None) -> tuple[Frame, ...]:
    """The frames from where the signal came on. Those before it are of the handler that writes the file; often no other is there."""
    pc = next((registers[each] for each in _PROGRAM_COUNTERS if each in registers), None)
    marks = () if pc is None else (f"({pc:#x} [", f"(0x{pc:016x} [")
    for number, frame in enumerate(frames):
        if any(mark in frame.text.lower() for mark in marks):
            return frames[number:]
    if blamed is not None and frames and (frames[0].library or "").startswith(_HANDLER):
        return (blamed,)
    return frames


def _native_frame(text: str) -> Frame | None:
    """`name+0x1a (0x00007F8B7C0B3D63 [libcrash.so+0x1d63])`, without a name, or the address alone."""
    text = text.strip()
    head, found, inside = text.rstrip(")").rpartition(" [")
    if not found or not inside.endswith("]"):
        name, plus, _ = text.partition("+0x")
        return Frame("C", text, name=name if plus else None) if plus or hexadecimal(text) is not None else None
    before, _, address = head.rpartition("(")
    if hexadecimal(address) is None:
        return None
    library, _, offset = inside[:-1].rpartition("+")
    function = before.strip()
    name, plus, into = function.rpartition("+0x")
    at = hexadecimal(offset)
    return Frame(
        "C",
        text,
        library or None,
        (name if plus else function) or None,
        hexadecimal(into) if plus else None if function else at,
        library_offset=at,
    )


def _blamed(found: _Found, native: Sequence[Frame], module: str | None, registers: dict[str, int]) -> Frame | None:
    """The frame where the signal came: of the module that the file names, with the function if the stack has it."""
    base = _hex(found.after("1XHEXCPMODULE", "Module_base_address:"))
    symbol = found.after("1XHEXCPMODULE", "Symbol:")
    pc = next((registers[each] for each in _PROGRAM_COUNTERS if each in registers), None)
    if module is None:
        method = found.after("1XHEXCPMODULE", "Compiled_method:") or found.after("1XHEXCPMODULE", "Compiled_method=")
        if method:
            return Frame("J", method, name=method.partition("(")[0].replace("/", "."))
        return next((frame for frame in native if not (frame.library or "").startswith(_HANDLER)), None)
    library = posixpath.basename(module)
    offset = pc - base if pc is not None and base is not None and pc >= base else None
    for frame in native:
        if frame.library == library and offset is not None and frame.library_offset == offset:
            return frame
    text = f"[{library}{f'+{offset:#x}' if offset is not None else ''}]"
    return Frame("C", text, library, symbol, None if symbol else offset, library_offset=offset)


def _uptime(found: _Found) -> float | None:
    now = integer(found.after("1TINANOTIME", "System nanotime:") or "")
    start = integer(found.after("1CISTARTNANO", "JVM start nanotime:") or "")
    return (now - start) / 1e9 if now is not None and start is not None and now >= start else None


def _environment(found: _Found) -> dict[str, str]:
    pairs = (text.partition("=") for text in found.tags.get("2CIENVVAR", ()))
    return {name: value for name, equals, value in pairs if equals}


def _heap(found: _Found) -> Heap:
    """The object memory: later sections of the same tags are of classes and the JIT compiler."""
    sizes = [integer((text.partition(":")[2].split() or [""])[0]) for text in (
        found.after("1STHEAPTOTAL", "Total memory") or "", found.after("1STHEAPINUSE", "Total memory in use") or "",
    )]  # fmt: skip
    lines = [found.first(tag) or "" for tag in ("1STHEAPTOTAL", "1STHEAPINUSE", "1STHEAPFREE")]
    policy = next((text for text in found.tags.get("1STGCMODES", ())), None)
    return Heap(tuple(line for line in lines if line), policy, sizes[1], sizes[0])


def _machine(found: _Found) -> Machine:
    limits = {}
    for text in found.tags.get("2CIUSERLIMIT", ()):
        words = text.split()
        if len(words) == 3 and words[0].startswith("RLIMIT_"):
            limits[words[0].removeprefix("RLIMIT_")] = f"{words[1]}/{words[2]}"
    cgroup = {
        key.strip(): value.strip()
        for key, _, value in (each.partition(" : ") for each in found.tags.get("3CICGRPINFO", ()))
    }
    memory = {
        key.strip(): value.strip()
        for key, _, value in (each.partition(":") for each in found.tags.get("2CIPHYSMEM", ()))
    }
    is_container = (found.after("1CICONTINFO", "Running in container :") or "").upper() == "TRUE"
    quota, period = _size(cgroup.get("CPU Quota")), _size(cgroup.get("CPU Period"))
    return Machine(
        os=found.after("2XHOSLEVEL", "OS Level         :") or found.first("2XHOSLEVEL"),
        cpus=integer(found.after("3XHNUMCPUS", "How Many       :") or ""),
        memory_bytes=_size(memory.get("Physical memory")),
        limits=limits,
        container="cgroup" if is_container else None,
        container_memory_bytes=_size(cgroup.get("Memory Limit")),
        container_used_bytes=_size(cgroup.get("Memory Usage")),
        container_cpus=f"{quota / period:g}" if quota and period else None,
    )


def _size(text: str | None) -> int | None:
    words = (text or "").split()
    return integer(words[0]) if words else None
