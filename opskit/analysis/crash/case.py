"""One report with what is derived from it, and the cause that a pattern finds."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from opskit import shell
from opskit.analysis.crash.stacks import (
    Culprit,
    application_frame,
    class_of,
    culprit_of,
    file_of,
    is_java,
    is_jdk_class,
    java_frames_of,
)
from opskit.quantities import duration, hexadecimal, integer
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opskit.collect.crash.facts import Read
    from opskit.jvm.logs.crashes.record import CrashReport, Frame

SOON_S = 10.0
REST = shell.Syntax("…")  # the rest of the command that starts the JVM
_COMPILER = re.compile(r"(?:C1|C2|JVMCI|Graal)[\w -]{0,20}Thread|JIT Compilation Thread|CompilerThread")
_GC = re.compile(
    r"GC (?:Thread|Worker|Slave|task)|G1[ \w]{1,30}|Z[A-Z]\w{1,30}|XWorker|XDirector|XStat|Shenandoah|ParGC|ParallelGC|Gang worker|CMS"
)
_GC_KINDS = ("GCTaskThread", "ConcurrentGCThread", "GangWorker", "ConcurrentMarkSweepThread")
_GC_OPERATIONS = ("G1", "CMS", "ParallelGC", "ParallelCollect", "ParallelFull", "Gen", "Shenandoah", "ZMark", "ZRelocate", "XMark", "XRelocate",
                  "ZOperation", "CGC_Operation", "SerialCollect", "SerialGC", "HeapDumper")  # fmt: skip
_MOST_WORDS, _LONGEST_NAME = 32, 128
_OF_THIS_RUN = re.compile(
    r"(?<=\$\$Lambda).*|(?<=\$Proxy)[0-9]+$|[/.+]0x[0-9a-f]+$"
)  # in the name of a generated class


class Cause(NamedTuple):
    """`code`: of the finding. `blamed`: a phrase. `sentence`: the cause. `next`: the closer look; `alike`: equal for equal causes."""

    code: str
    blamed: str
    sentence: str
    evidence: Sequence[str] = ()
    fix: str | None = None
    next: str | None = None
    alike: str | None = None


class Case(NamedTuple):
    """A report, who is to blame by its stack, and the nearest frame of the application."""

    read: Read
    report: CrashReport
    culprit: Culprit
    application: Frame | None

    @classmethod
    def of(cls, read: Read) -> Case:
        """Derive what the patterns ask for."""
        report = read.report
        return cls(read, report, culprit_of(report), application_frame(report))

    @property
    def is_compiler(self) -> bool:
        """Whether a compiler's thread crashed."""
        thread = self.report.thread
        named = thread is not None and bool(_COMPILER.match(thread.name or "")) and thread.kind != "native"
        return named or (thread is not None and thread.kind == "CompilerThread")

    @property
    def is_gc(self) -> bool:
        """Whether the collector was at work in the thread that crashed."""
        thread = self.report.thread
        if thread is None:
            return False
        if thread.kind in _GC_KINDS or (thread.kind == "WorkerThread" and bool(_GC.match(thread.name or ""))):
            return True
        operation = (self.report.vm_operation or "").removeprefix("VM_")
        return thread.kind == "VMThread" and operation.startswith(_GC_OPERATIONS)

    @property
    def is_openj9(self) -> bool:
        """Whether the JVM was OpenJ9, which has other options."""
        return self.report.dialect == "openj9"

    @property
    def called_by(self) -> str:
        """`, called by com.acme.Order.total`; empty without an application frame."""
        return f", called by {name_of(self.application)}" if self.application else ""

    @property
    def native_method(self) -> Frame | None:
        """The method of the application whose native code ran; None where the JVM or the JDK ran."""
        thread, frames = self.report.thread, java_frames_of(self.report)
        if thread is None or thread.state != "_thread_in_native" or not frames or is_jdk_class(class_of(frames[0])):
            return None
        return frames[0]

    @property
    def whole_file(self) -> str | None:
        """The file of the whole report, where this is only the header in a program's output."""
        return None if self.report.complete else self.report.report_file

    @property
    def again(self) -> str:
        """The command that shows the whole report; of standard input, the end of the pipe."""
        name = self.whole_file or self.read.name
        return shell.command("opskit", "crash", "-v", *((name,) if name == "-" else shell.operands(name)))

    @property
    def debugger(self) -> str | None:
        """The command that shows the stacks in the core file; None without one."""
        core, report = self.read.core, self.report
        if core is None or core.path is None:
            return None
        java = f"{report.java_home}/bin/java" if report.java_home else "java"
        return shell.command("gdb", "-batch", "-ex", "bt", java, core.path)

    @property
    def next_in_core(self) -> str:
        """Look into the core file, or without one into the report."""
        return self.debugger or self.again


def started_with(*options: str) -> str:
    """`java OPTIONS …`: how to start the JVM."""
    return shell.command("java", *options, REST)


def shortened(text: str) -> str:
    """The text, or its beginning and its end: three such names fit on the first screen."""
    return text if len(text) <= _LONGEST_NAME else f"{text[: _LONGEST_NAME // 2]}…{text[1 - _LONGEST_NAME // 2 :]}"


def name_of(frame: Frame | None) -> str:
    """A frame as a phrase of a sentence."""
    return shortened(full_name_of(frame))


def full_name_of(frame: Frame | None) -> str:
    """A frame as a phrase: a method's name, `parse in libfoo.so+0x1234`, or what the file says."""
    if frame is None:
        return "an unknown frame"
    if is_java(frame) and frame.name:
        return frame.name.replace("/", ".")
    place = place_of(frame)
    if frame.name:
        return f"{frame.name} in {place}" if place else frame.name
    return place or frame.text.strip()


def place_of(frame: Frame) -> str | None:
    """`libfoo.so+0x1234`; None without a library."""
    library = file_of(frame.library)
    if library is None:
        return None
    offset = offset_of(frame)
    return library if offset is None else f"{library}+0x{offset:x}"


def offset_of(frame: Frame) -> int | None:
    """Of a native frame, into its library."""
    return frame.library_offset if frame.library_offset is not None or frame.name else frame.offset


def task_method(task: str | None) -> tuple[str, str] | None:
    """(class, method) of a compile task: `C2: 1234 12 4 java.util.HashMap::get (23 bytes)`, before JDK 8 `C2:12 ! a.B.get([B)V (23 bytes)`."""
    for word in (task or "").split()[:_MOST_WORDS]:
        name, bracket, _ = word.partition("(")
        class_, colons, method = name.partition("::")
        if not colons and bracket:
            class_, _, method = name.rpartition(".")
        if class_ and method:
            return class_.replace("/", "."), method.lstrip(":")
    return None


def exclude(case: Case, method: tuple[str, str]) -> str:
    """The option that keeps a method from being compiled."""
    class_ = _OF_THIS_RUN.sub("*", method[0]).replace(".", "/")
    if case.is_openj9:
        return f"-Xjit:exclude={{{class_}.{method[1]}*}}"
    return f"-XX:CompileCommand=exclude,{class_}.{method[1]}"


def limit_bytes(case: Case, name: str) -> int | None:
    """The soft limit of a resource: `2000000k/infinity`. None: unlimited, or not said."""
    soft = case.report.machine.limits.get(name, "").partition("/")[0].strip()
    factor = {"k": 1024, "m": 1 << 20, "g": 1 << 30}.get(soft[-1:].lower())
    number = integer(soft[:-1] if factor else soft)
    return None if number is None else number * (factor or 1)


def java_stack(case: Case) -> Sequence[str]:
    """The names of the innermost Java methods."""
    return [name_of(frame) for frame in java_frames_of(case.report)]


def age_words(report: CrashReport) -> str:
    """`2.1 s after its start`, `after 12 days`; empty where unknown."""
    if report.uptime_s is None:
        return ""
    return (
        f"{duration(report.uptime_s)} after its start"
        if report.uptime_s < SOON_S
        else f"after {duration(report.uptime_s)}"
    )


def bytes_at(text: str | None, pc: int | None) -> bytes:
    """The machine code from pc on, of the lines of the section Instructions; empty where they do not hold it."""
    if text is None or pc is None:
        return b""
    known: dict[int, int] = {}
    for line in text.splitlines()[:80]:
        start, colon, row = line.strip().removeprefix("=>").partition(":")
        address = hexadecimal(start.strip()) if colon else None
        if address is None:
            continue
        for place, word in enumerate(row.split()[:32]):
            value = hexadecimal(word) if len(word) == 2 else None
            if value is None:
                break
            known[address + place] = value
    found = bytearray()
    while pc + len(found) in known and len(found) < 16:
        found.append(known[pc + len(found)])
    return bytes(found)
