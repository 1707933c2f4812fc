"""Causes around the JVM itself: Unsafe, compilers and their code, the collector, failed checks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit import shell
from opskit.analysis.crash.case import Cause, exclude, name_of, shortened, started_with, task_method
from opskit.analysis.crash.meanings import is_null, meaning_of, null_words
from opskit.analysis.crash.native import application_libraries_of
from opskit.analysis.crash.stacks import class_of, file_of, frames_of, innermost
from opskit.quantities import listed

if TYPE_CHECKING:
    from opskit.analysis.crash.case import Case
    from opskit.jvm.logs.crashes.record import Frame

_NO_TIER_2 = "-XX:TieredStopAtLevel=1"
_CHECKS_OF_HEAP = {
    False: ("-XX:+UnlockDiagnosticVMOptions", "-XX:+VerifyBeforeGC", "-Xcheck:jni"),
    True: ("-Xcheck:gc", "-Xcheck:jni"),
}
# Libraries of Java that read and write memory by Unsafe, often with the access compiled into them.
_BY_UNSAFE = (
    "io.netty.util.internal.PlatformDependent", "org.agrona.", "net.openhft.", "com.esotericsoftware.kryo.unsafe", "org.lwjgl.", "org.apache.spark.unsafe.",
    "com.sun.jna.", "io.netty.buffer.Unsafe", "org.apache.datasketches.memory", "org.apache.arrow.memory", "org.rocksdb.", "org.jctools.util.Unsafe",
    "com.hazelcast.internal.memory", "net.jpountz.util.Unsafe", "org.apache.ignite.internal.util.GridUnsafe", "com.google.protobuf.Unsafe",
)  # fmt: skip


def unsafe(case: Case) -> Cause | None:
    """Java code gave Unsafe a wrong address."""
    if case.culprit.who != "unsafe":
        return None
    event = case.report.event
    frames = [frame for frame in frames_of(case.report) if frame.kind in ("J", "j", "A")]
    method = next((frame for frame in frames if class_of(frame).endswith("Unsafe")), None)
    what = (
        f"{class_of(method)}.{(method.name or '').rpartition('.')[2]}()"
        if method
        else (case.culprit.frame and case.culprit.frame.name) or "Unsafe"
    )
    address = (
        "a wrong address"
        if event.address is None or event.code == "SI_KERNEL"
        else (null_words(event.address) if is_null(event.address) else f"the wrong address 0x{event.address:x}")
    )
    user = name_of(case.application) if case.application else "Java code"
    failed_in = case.report.frame if case.culprit.through is None else case.culprit.through
    return Cause(
        "crash-unsafe-access", user, f"{user} gave {what} {address}: the JVM checks no address of Unsafe",
        [f"it failed in {name_of(failed_in)}", f"{event.code}" if event.code else ""], next=case.again, alike=f"unsafe {user}",
    )  # fmt: skip


def compiler(case: Case) -> Cause | None:
    """A compiler's thread crashed: the JVM's own bug, or memory damaged by others."""
    if not case.is_compiler:
        return None
    report = case.report
    method = task_method(report.compile_task)
    name = _compiler_of(report.thread.name if report.thread else None)
    what = f", compiling {shortened('.'.join(method))}" if method else ""
    evidence = (
        [f"compile task {shortened(report.compile_task.strip())}"]
        if report.compile_task
        else ["the report names no compile task"]
    )
    evidence += [f"in {name_of(innermost(report))}"]
    if case.read.replay:
        evidence.append(f"{case.read.replay} repeats the compilation: add it to a bug report")
    return Cause(
        "crash-compiler", f"the {name} compiler{what}",
        f"the {name} compiler of the JVM crashed{what}: as a rule a bug of this JDK; exclude the method, and install the newest update",
        evidence, started_with(exclude(case, method)) if method else None,
        started_with(_without_compiler(case, name)),
        alike=f"compiler {name} {'.'.join(method) if method else _site(case)}",
    )  # fmt: skip


def _without_compiler(case: Case, name: str) -> str:
    """The option that proves whether this compiler is to blame."""
    if case.is_openj9 or name == "JIT":
        return "-Xint"
    return "-XX:-TieredCompilation" if name == "C1" else _NO_TIER_2


def _compiler_of(thread: str | None) -> str:
    """`C2` of a thread's name."""
    return next((name for name in ("JVMCI", "C1", "C2") if name in (thread or "")), "JIT")


def _site(case: Case) -> str:
    """Where it failed, without what differs from run to run."""
    frame = innermost(case.report)
    event = case.report.event
    return event.source or (name_of(frame) if frame is not None else event.name)


def collector(case: Case) -> Cause | None:
    """A thread of the collector met a damaged heap."""
    if not case.is_gc:
        return None
    thread, report = case.report.thread, case.report
    evidence = [
        f"thread {shortened(thread.name or thread.kind)}" if thread else "",
        f"in {name_of(report.frame)}" if report.frame else "",
    ]
    evidence += [f"VM operation {report.vm_operation}"] if report.vm_operation else []
    loaded = application_libraries_of(case.report)
    if loaded:
        evidence.append(f"native libraries of the application: {listed([file_of(path) or path for path in loaded], 4)}")
    message = f" ({report.event.message[0]})" if report.event.message else ""
    return Cause(
        "crash-gc", "a damaged Java heap",
        f"the collector met a damaged Java heap{message}: by native code (JNI), by Unsafe, by a bug of the JVM, or by bad memory",
        evidence, started_with(*_CHECKS_OF_HEAP[case.is_openj9]), started_with("-Xcheck:jni"),
        alike=f"gc {_site(case)}",
    )  # fmt: skip


def internal(case: Case) -> Cause | None:
    """A check in the JVM failed: guarantee, fatal error, ShouldNotReachHere."""
    event = case.report.event
    if event.kind not in ("internal", "error"):
        return None
    said = next((line for line in event.message if line.strip()), event.name)
    place = f" ({event.source})" if event.source else ""
    return Cause(
        "crash-jvm-internal", "a failed check in the JVM", f"the JVM ended itself: {said.strip()[:200]}{place}{case.called_by}",
        [f"thread {shortened(case.report.thread.name or case.report.thread.kind)}" if case.report.thread else "", "look for it in the JDK's bug database; install the newest update"],
        next=case.next_in_core, alike=f"internal {event.source or said[:80]}",
    )  # fmt: skip


def in_vm(case: Case) -> Cause | None:
    """The JVM itself, without a caller that chose the arguments."""
    if case.culprit.who != "jvm" or case.report.event.kind != "signal":
        return None
    frame = case.culprit.frame
    loaded = application_libraries_of(case.report)
    evidence = [meaning_of(case.report.event) or ""]
    if loaded:
        evidence.append(
            f"or memory damaged by {listed([file_of(path) or path for path in loaded], 3)}: -Xcheck:jni tells"
        )
    return Cause(
        "crash-jvm-internal", "the JVM, or memory that was damaged before", f"the JVM crashed in {name_of(frame)}{case.called_by}: a bug of the JVM, or memory that was damaged before",
        evidence, next=started_with("-Xcheck:jni") if loaded else case.next_in_core, alike=f"jvm {_site(case)}",
    )  # fmt: skip


def compiled(case: Case) -> Cause | None:
    """Compiled Java code: a wrong address given to Unsafe within it, or a bug of the compiler."""
    frame = case.culprit.frame
    if case.culprit.who != "compiled" or frame is None:
        return None
    name = name_of(frame)
    method = (class_of(frame), (frame.name or "").rpartition(".")[2]) if frame.name else None
    event = case.report.event
    evidence = [meaning_of(event) or event.name]
    if frame.compiler:
        evidence.append(f"compiled by {frame.compiler.upper()}")
    evidence.append("the report does not show what was inlined")
    if name.startswith(_BY_UNSAFE):
        return Cause(
            "crash-unsafe-access", _user(case, name), f"{name} used a wrong address by Unsafe{_caller(case, name)}: freed memory, or beyond its end",
            evidence, next=case.again, alike=f"unsafe {name}",
        )  # fmt: skip
    option = exclude(case, method) if method else "-Xint"
    return Cause(
        "crash-compiled-code", f"compiled code of {name}",
        f"the compiled code of {name} crashed: Unsafe or a native buffer with a wrong address in it, or a bug of the {_compiler(frame)}",
        evidence, started_with(option), started_with("-Xint"), alike=f"compiled {name}",
    )  # fmt: skip


def _compiler(frame: Frame) -> str:
    return f"{frame.compiler.upper()} compiler" if frame.compiler else "compiler"


def _user(case: Case, name: str) -> str:
    return name_of(case.application) if case.application else name


def _caller(case: Case, name: str) -> str:
    user = _user(case, name)
    return "" if user == name else f", called by {user}"


def unexplained(case: Case) -> Cause:
    """What the report does not decide."""
    report = case.report
    frame = innermost(report)
    where = f" in {name_of(frame)}" if frame else ""
    event = report.event
    lacks = [] if frames_of(report) else ["the report has no stack"]
    lacks += [] if report.complete else ["the report is cut off"]
    lacks += [] if case.read.core and case.read.core.path else ["no core file"]
    if frame is not None and frame.name is None and case.culprit.who in ("runtime", "nowhere"):
        lacks.append("the stack was not unwound to a caller")
    if case.culprit.who == "interpreted":
        lacks.append("interpreted code fails where native code or Unsafe has damaged the Java heap: -Xcheck:jni tells")
    return Cause(
        "crash-unexplained", name_of(frame) if frame else "unknown",
        f"{event.name}{where}{case.called_by}: the report does not show who is to blame",
        [meaning_of(event) or event.name, *lacks],
        next=case.again if case.whole_file else case.debugger or shell.command("ulimit", "-c", "unlimited"), alike=f"unknown {event.name} {_site(case)}",
    )  # fmt: skip
