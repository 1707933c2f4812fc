"""Causes that the address tells: a full stack, a page of a mapped file, an unmapped buffer, an instruction."""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING

from opskit import shell
from opskit.analysis.crash.case import Cause, bytes_at, java_stack, name_of, shortened, started_with
from opskit.analysis.crash.meanings import is_null, is_sent
from opskit.analysis.crash.stacks import class_of, file_of, frames_of, java_frames_of
from opskit.quantities import short_size

if TYPE_CHECKING:
    from opskit.analysis.crash.case import Case
    from opskit.jvm.logs.crashes.record import Frame

_GUARD = 256 << 10  # HotSpot's zones of a stack are 80 KiB with 4 KiB pages, and those of the C library below it
_NEAR_SP = 128 << 10  # a frame with a large buffer touches its far end first
_UD2, _BRK = b"\x0f\x0b", (b"\x20\x00\x20\xd4", b"\x00\x00\x20\xd4")
_PATH = re.compile(r"(/[^\0\n]{1,1000}?)(?=$|[,;)\]'\"]| at 0x| \(|\s+\[)")
_BUFFERS = (
    "java.nio.",
    "jdk.internal.misc.ScopedMemoryAccess",
    "jdk.internal.foreign.",
    "sun.nio.ch.",
    "java.util.zip.CRC32",
    "java.util.zip.Adler32",
)
_IN_MEMORY = ("/memfd:", "/SYSV", "/anon_hugepage", "/dev/zero", "/dev/hugepages")
_ZIP = ("libzip.so", "libjimage.so")


def stack_overflow(case: Case) -> Cause | None:
    """A write below the end of the thread's stack."""
    event, thread = case.report.event, case.report.thread
    if event.kind != "signal" or event.name not in ("SIGSEGV", "SIGBUS") or is_sent(event) or event.code == "SI_KERNEL":
        return None
    said = (
        "guard" in (case.report.memory_at_address or "").lower()
        and "stack" in (case.report.memory_at_address or "").lower()
    )
    if thread is None or event.address is None or is_null(event.address):
        return None
    low, sp = thread.stack_low, thread.sp
    in_zone = low is not None and low - _GUARD <= event.address < low + _GUARD
    near_sp = sp is None or abs(event.address - sp) <= _NEAR_SP
    if not ((in_zone or said) and near_sp):
        return None
    if low is not None and sp is not None and sp > low + 2 * _GUARD:
        return None  # the stack has room: a wild pointer met a guard page
    size = thread.stack_high - low if thread.stack_high is not None and low is not None else None
    repeated = _repeated(case)
    evidence = [
        "the address lies in the guard pages of the stack"
        if said or in_zone
        else "the address is next to the stack pointer"
    ]
    evidence += [f"a stack of {short_size(size)}"] if size else []
    evidence += (
        [f"the stack pointer is 0x{sp:x}, the stack begins at 0x{low:x}"] if sp is not None and low is not None else []
    )
    where = (
        f"{name_of(repeated)} calls itself" if repeated else f"in {name_of(case.culprit.frame or case.report.frame)}"
    )
    fix = _larger_stack(case, is_main=thread.tid is not None and thread.tid == case.report.pid)
    return Cause(
        "crash-stack-overflow", "native code that used up the stack",
        f"the stack of thread {shortened(thread.name or 'unknown')} overflowed in native code, where no StackOverflowError is possible: {where}{case.called_by}",
        evidence, fix, case.next_in_core, alike=f"overflow {name_of(repeated or case.report.frame)}",
    )  # fmt: skip


def _larger_stack(case: Case, *, is_main: bool) -> str:
    """How this thread gets a larger stack."""
    if is_main:
        return shell.command("ulimit", "-s", "unlimited")
    if case.is_compiler:
        return started_with("-XX:CompilerThreadStackSize=8192")  # KiB
    kind = case.report.thread.kind if case.report.thread else ""
    return started_with("-Xss8m" if kind in ("JavaThread", "native") else "-XX:VMThreadStackSize=8192")


def _repeated(case: Case) -> Frame | None:
    """A frame that the stack holds again and again."""
    counts: dict[str, int] = {}
    frames = frames_of(case.report)
    for frame in frames:
        counts[name_of(frame)] = counts.get(name_of(frame), 0) + 1
    most = max(counts, key=lambda key: counts[key], default=None)
    return next((frame for frame in frames if name_of(frame) == most and counts[most] >= 5), None) if most else None


def mapped_file(case: Case) -> Cause | None:
    """SIGBUS of a mapped file: truncated, or without space."""
    event = case.report.event
    if event.kind != "signal" or event.name != "SIGBUS" or is_sent(event):
        return None
    if event.code in ("BUS_MCEERR_AR", "BUS_MCEERR_AO"):
        return Cause(
            "crash-hardware", "the machine's memory", "the memory at the address has a hardware error that ECC could not correct",
            [f"si_code {event.code}"], next=shell.command("dmesg", "--level=emerg,alert,crit,err"),
        )  # fmt: skip
    if event.code not in ("BUS_ADRERR", None):
        return None
    path = _file_at(case)
    if path and "hsperfdata" in path:
        where = posixpath.dirname(posixpath.dirname(path))
        return Cause(
            "crash-mapped-file", f"the file system of {where}", f"{where} was full, as a rule: the JVM writes its counters into {path}, and got no page for it",
            _mapping_evidence(case), started_with("-XX:+PerfDisableSharedMem"), shell.command("df", "-h", where), alike=f"mapped {where}",
        )  # fmt: skip
    in_memory = path if path is not None and path.startswith(_IN_MEMORY) else None
    if in_memory or (path is None and _is_large_pages(case)):
        return Cause(
            "crash-large-pages", "the pool of huge pages" if _is_large_pages(case) else "shared memory",
            "the kernel had no page left for memory that the JVM uses: the pool of huge pages is empty, or shared memory is at its limit",
            [f"SIGBUS {event.code} in {in_memory}" if in_memory else f"SIGBUS {event.code}; -XX:+UseLargePages"], next=shell.command("grep", "-i", "huge", "/proc/meminfo"),
        )  # fmt: skip
    return _mapped_by_application(case, path)


def _mapped_by_application(case: Case, path: str | None) -> Cause:
    zipped = case.culprit.frame is not None and file_of(case.culprit.frame.library) in _ZIP
    what = path or ("a JAR or ZIP file" if zipped else "a mapped file")
    writes = _is_write(case)
    access = {True: "written", False: "read", None: "used"}[writes]
    user = f", {access} by {name_of(case.application)}" if case.application else f", {access} by native code"
    cut = "it was truncated or replaced in place while it was mapped"
    reason = f"{cut}, or {'its disk returned a read error' if writes is False else 'its file system was full'}"
    folder = posixpath.dirname(path) if path else None
    evidence = _mapping_evidence(case)
    if path is None:
        evidence.append("the report does not name the file")
    elif "shm" in path.split("/"):
        evidence.append("a tmpfs without space gives no page for a write")
    return Cause(
        "crash-mapped-file", f"the mapped file {path}" if path else what, f"a page of {what} does not exist{user}: {reason}", evidence,
        next=shell.command("df", "-h", *shell.operands(folder)) if folder else shell.command("df", "-h"),
        alike=f"mapped {path or name_of(case.application or case.report.frame)}",
    )  # fmt: skip


def _is_write(case: Case) -> bool | None:
    """Whether the access was a write, by the error code of an x86 page fault; None where the report has none."""
    error = case.report.registers.get("ERR")
    return None if error is None or case.report.registers.get("TRAPNO") not in (None, 14) else bool(error & 2)


def _mapping_evidence(case: Case) -> list[str]:
    event = case.report.event
    address = "" if event.address is None else f", address 0x{event.address:x}"
    return [f"SIGBUS {event.code or ''}".rstrip() + address, f"in {name_of(case.report.frame)}"]


def _file_at(case: Case) -> str | None:
    """The file whose mapping holds the address, as the report says."""
    found = _PATH.search(case.report.memory_at_address or "")
    return found[1].removesuffix(" (deleted)") if found else None


def _is_large_pages(case: Case) -> bool:
    words = f"{case.report.jvm_arguments or ''} {case.report.command_line or ''}"
    return "+UseLargePages" in words or "+UseHugeTLBFS" in words or "+UseSHM" in words


def unmapped(case: Case) -> Cause | None:
    """A buffer that was used after its memory was unmapped."""
    event = case.report.event
    if event.kind != "signal" or event.name != "SIGSEGV" or event.code != "SEGV_MAPERR" or is_null(event.address):
        return None
    if case.culprit.who not in ("unsafe", "compiled", "interpreted"):
        return None
    frames = java_frames_of(case.report)[:4]
    top = case.culprit.frame
    classes = [class_of(frame) for frame in (*((top,) if top else ()), *frames)]
    user = next((each for each in classes if each.startswith(_BUFFERS)), None)
    if user is None:
        return None
    return Cause(
        "crash-use-after-unmap", f"a buffer of {name_of(case.application)}" if case.application else "a direct or mapped buffer",
        f"a buffer was used after its memory was unmapped or freed{case.called_by}: invokeCleaner(), a closed arena, or a cleaned-up mapping",
        [f"nothing is mapped at 0x{event.address or 0:x}", f"{user} is on the stack"], next=case.again, alike=f"unmapped {name_of(case.application or top)}",
    )  # fmt: skip


def illegal_instruction(case: Case) -> Cause | None:
    """SIGILL: a CPU without the instruction, a deliberate trap, or a jump into data."""
    event = case.report.event
    if event.kind != "signal" or event.name != "SIGILL" or is_sent(event):
        return None
    who, frame = case.culprit.who, case.culprit.frame
    code = bytes_at(case.report.instructions, event.pc)
    if code.startswith((_UD2, *_BRK)):
        place = (
            f"native library {file_of(frame.library)}"
            if frame and frame.library and who == "library"
            else name_of(frame)
        )
        return Cause(
            "crash-abort", place, f"{place} stopped itself by a trap instruction{case.called_by}: a failed check, a panic or unreachable code",
            [f"the instruction is {'ud2' if code.startswith(_UD2) else 'brk or udf'}", "the reason may be on the standard error of the JVM"],
            next=case.next_in_core,
        )  # fmt: skip
    bytes_ = f"instruction bytes {code[:8].hex(' ')}" if code else "the report does not show the instruction"
    reason = "a CPU without it, a hypervisor that hides a feature, or overwritten code"
    if not code:
        reason += ", or a trap by which code stops itself"
    fix = None if who in ("library", "jdk-library") else started_with("-XX:UseAVX=0")
    blamed = (
        f"native library {file_of(frame.library)}" if fix is None and frame else f"an instruction of {_whose(case)}"
    )
    sentence = f"the CPU does not execute an instruction of {blamed.removeprefix('an instruction of ')}{case.called_by}: {reason}"
    return Cause(
        "crash-illegal-instruction", blamed, sentence, [bytes_, f"in {name_of(case.report.frame)}", *java_stack(case)[:1]], fix,
        shell.command("lscpu"),
    )  # fmt: skip


def _whose(case: Case) -> str:
    return {"compiled": "compiled Java code", "jvm": "the JVM"}.get(case.culprit.who, "the program")
