"""Signals that no instruction raised: kill, watchdogs, abort()."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit import shell
from opskit.analysis.crash.case import Cause, name_of, shortened
from opskit.analysis.crash.meanings import is_sent
from opskit.analysis.crash.stacks import file_of, frames_of, is_malloc, is_runtime

if TYPE_CHECKING:
    from opskit.analysis.crash.case import Case

_TIMEOUTS = (
    "Safepoint sync time longer than",
    "VM operation took too long",
    "VM Operation took longer",
    "took longer than VMOperationTimeout",
    "SafepointTimeout",
)
_DAMAGED = (
    "double free", "corrupted size", "invalid pointer", "malloc()", "free()", "corrupted double-linked list", "invalid next size", "realloc()",
    "munmap_chunk()", "stack smashing", "buffer overflow detected",
)  # fmt: skip


def timed_out(case: Case) -> Cause | None:
    """A timeout of the JVM's options: the JVM ends itself, or sends SIGILL to the thread that is late to a safepoint."""
    event, thread = case.report.event, case.report.thread
    said = next(
        (line.strip() for line in (event.name, *event.message) if any(word in line for word in _TIMEOUTS)), None
    )
    words = f"{case.report.jvm_arguments or ''} {case.report.command_line or ''}"
    shot = event.name == "SIGILL" and is_sent(event) and event.sender_pid in (None, case.report.pid)
    if said is None and not (shot and "+AbortVMOnSafepointTimeout" in words):
        return None
    who = (
        f"thread {shortened(thread.name)}"
        if thread is not None and thread.name and shot
        else "a timeout that the JVM's options set"
    )
    what = f"{who} did not reach a safepoint in time" if shot else said
    return Cause(
        "crash-timeout", who, f"the JVM ended itself at a timeout: {what}{case.called_by}",
        ["-XX:+AbortVMOnSafepointTimeout or -XX:+AbortVMOnVMOperationTimeout is set"], next=case.again,
    )  # fmt: skip


def sent(case: Case) -> Cause | None:
    """Another process sent the signal: kill -SEGV."""
    event = case.report.event
    if not is_sent(event) or event.name == "SIGABRT":
        return None
    own = event.sender_pid is not None and event.sender_pid == case.report.pid
    if own or (event.code == "SI_TKILL" and event.sender_pid is None):
        return _own(case)
    user = "" if event.sender_uid is None else f" of uid {event.sender_uid}"
    if event.sender_pid:
        who = f"process {event.sender_pid}{user}"
    else:
        who = (
            f"a process outside of its PID namespace (its container){user}"
            if event.sender_pid == 0
            else f"a process{user}"
        )
    return Cause(
        "crash-signal-sent", who,
        f"{who} sent {event.name} to the JVM, by kill or a watchdog: it is no bug of the JVM or the application",
        [f"si_code {event.code}" if event.code else "the report says: sent by kill", f"the frame {name_of(case.report.frame)} is only where it ran"],
        next=shell.command("ps", "-o", "pid,user,lstart,args", "-p", event.sender_pid) if event.sender_pid else case.again, alike="sent",
    )  # fmt: skip


def _own(case: Case) -> Cause | None:
    """A signal that the process raised itself: native code called raise() or pthread_kill()."""
    event, frame = case.report.event, case.culprit.frame
    if frame and frame.library and not is_runtime(frame):
        who = f"native code in {file_of(frame.library)}"
    else:
        who = (
            f"the native code of {name_of(case.native_method)}" if case.native_method else "native code of the process"
        )
    return Cause(
        "crash-signal-sent", who, f"{who} raised {event.name} itself, by raise() or kill()",
        [f"si_code {event.code}, sent by its own PID {case.report.pid}", f"frame {name_of(case.report.frame)}"], next=case.next_in_core,
    )  # fmt: skip


def aborted(case: Case) -> Cause | None:
    """SIGABRT: native code called abort()."""
    event = case.report.event
    if event.kind != "signal" or event.name != "SIGABRT":
        return None
    if event.sender_pid and event.sender_pid != case.report.pid:
        return sent(_as_user(case))
    if found := damaged_heap(case):
        return found
    library = case.culprit.frame if case.culprit.who in ("library", "jdk-library") else None
    who = f"native library {file_of(library.library)}" if library else "native code"
    where = f": {name_of(library)}" if library else ", whose library the report does not name"
    return Cause(
        "crash-abort", who, f"{who} ended the process by abort(){where}{case.called_by}",
        ["SIGABRT; the reason is on the standard error of the JVM, above the report"], next=case.next_in_core,
    )  # fmt: skip


def _as_user(case: Case) -> Case:
    event = case.report.event._replace(name="SIGABRT (kill)", code="SI_USER")
    return case._replace(report=case.report._replace(event=event))


def damaged_heap(case: Case) -> Cause | None:
    """The C library's allocator found damaged data, or failed on them."""
    words = " ".join(case.report.event.message)
    said = next((phrase for phrase in _DAMAGED if phrase in words), None)
    inside = next((frame for frame in frames_of(case.report)[:6] if is_malloc(frame)), None)
    frames = frames_of(case.report)
    if said is None and (inside is None or not frames or not is_runtime(frames[0])):
        return None
    found = f"{said} (glibc)" if said else f"it failed in {name_of(inside)}"
    is_free = inside is not None and "free" in (inside.name or "")
    wrong = f", or gave free() a wrong pointer{case.called_by}" if is_free else ""
    return Cause(
        "crash-native-heap", "native code that wrote outside of its memory",
        f"the memory of malloc() is damaged: a native library wrote beyond its block, or freed it twice, some time before{wrong}",
        [found, "the frame is where it was noticed, not where it happened"],
        # Since glibc 2.34 the checks are in a library of their own.
        fix=shell.command("env", "LD_PRELOAD=libc_malloc_debug.so.0", "MALLOC_CHECK_=3", "MALLOC_PERTURB_=165", "java", "-Xcheck:jni", shell.Syntax("…")), next=case.next_in_core,
    )  # fmt: skip
