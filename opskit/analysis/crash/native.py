"""Causes in native code: a library of the application, an agent, a missing function, the wrong C library."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from opskit import shell
from opskit.analysis.crash.case import Cause, name_of, offset_of, place_of, shortened
from opskit.analysis.crash.meanings import is_null, null_words
from opskit.analysis.crash.stacks import file_of, is_jdk_library, is_runtime, is_vm, java_frames_of
from opskit.jvm.logs.crashes.record import Frame
from opskit.quantities import listed

if TYPE_CHECKING:
    from opskit.analysis.crash.case import Case
    from opskit.jvm.logs.crashes.record import CrashReport

_AGENT = re.compile(r"-agent(?:path:([^\s=,]{1,500})|lib:([\w.-]{1,200}))")
_KNOWN_AGENTS = (
    "libasyncProfiler", "libjprofilerti", "libyjpagent", "liboneagent", "libruxitagent", "libhonest-profiler", "libjavaProfiler", "elastic-jvmti",
)  # fmt: skip
_MUSL = re.compile(r"ld-musl-\w{1,20}\.so\.1|libc\.musl-\w{1,20}\.so\.1")
_GLIBC = re.compile(r"libc\.so\.6|libc-2[\d.]{1,5}\.so|ld-linux[\w-]{0,20}\.so\.\d|libgcompat\.so\.0")
_DELETED = " (deleted)"  # of a library that was unpacked into a temporary file
_LARGEST_OFFSET = 1 << 24  # of a function in a library
_LINKING = (
    "symbol not found",
    "Error relocating",
    "undefined symbol",
    "version `GLIBC",
    "ld-linux",
    "cannot open shared object",
)


def agent(case: Case) -> Cause | None:
    """A library of -agentpath or -agentlib is to blame, or one that is known to be an agent, loaded while the JVM ran."""
    frame = case.culprit.frame
    if case.culprit.who not in ("library", "jdk-library") or frame is None:
        return None
    words = f"{case.report.jvm_arguments or ''} {case.report.command_line or ''} {case.report.environment.get('JAVA_TOOL_OPTIONS', '')}"
    name = file_of(frame.library) or ""
    option = next((found[0] for found in _AGENT.finditer(words) if _library_of(found) == name), None)
    if option is None and not name.startswith(_KNOWN_AGENTS):
        return None
    how = (
        f"the JVM was started with {option}"
        if option
        else "it is a profiler or monitoring agent, loaded while the JVM ran"
    )
    return Cause(
        "crash-agent", f"agent {name}", f"the agent {name} crashed: {name_of(frame)}{_through(case)}", [how, *_reason(case)],
        next=case.debugger or _symbols(case, frame) or case.again, alike=f"agent {_site(frame)}",
    )  # fmt: skip


def _library_of(option: re.Match[str]) -> str | None:
    return file_of(option[1]) if option[1] else f"lib{option[2]}.so"


def wrong_libc(case: Case) -> Cause | None:
    """A library that was built for glibc in a process of musl.

    A function that musl lacks stays unresolved: the library jumps to its offset, an address of a few thousand.
    """
    event, report = case.report.event, case.report
    names = {file_of(path) or "": path for path in report.libraries}
    musl = next((name for name in names if _MUSL.fullmatch(name)), None) or (
        "musl" if "alpine" in (report.vm or "") else None
    )
    if musl is None or event.kind != "signal" or case.culprit.who not in ("library", "runtime", "nowhere"):
        return None
    glibc = next((name for name in names if _GLIBC.fullmatch(name)), None)
    said = next((line.strip() for line in report.last_events if any(word in line for word in _LINKING)), None)
    if event.pc is not None and 0 < event.pc < _LARGEST_OFFSET:
        said = f"a jump to 0x{event.pc:x}, the offset of a function that was not found"
    if not (glibc or said):
        return None
    frame, loaded = case.culprit.frame, application_libraries_of(report)
    library = path_of(report, frame) or frame.library if frame is not None and case.culprit.who == "library" else None
    if library is None and len(loaded) == 1:
        library = loaded[0]
    blamed = f"native library {file_of(library)}" if library else "a native library"
    candidates = (
        [] if library else [f"loaded: {listed([file_of(path) or path for path in loaded], 4)}"] if loaded else []
    )
    return Cause(
        "crash-wrong-libc", blamed, f"{blamed} was built for glibc; this JVM runs on musl (Alpine)",
        [f"{musl} and {glibc} are both loaded" if glibc else f"{musl}; {said}", *candidates],
        next=shell.command("ldd", *shell.operands(library)) if library and library.startswith("/") else case.again,
    )  # fmt: skip


def library_missing(case: Case) -> Cause | None:
    """A call through a null pointer after a library could not be loaded."""
    event = case.report.event
    # The verifier loads the class for a catch clause.
    thrown = (line for line in reversed(case.report.last_events) if "oading class" not in line)
    said = next((line for line in thrown if "UnsatisfiedLinkError" in line), None)
    if event.kind != "signal" or said is None or not is_null(event.pc):
        return None
    return Cause(
        "crash-library-missing", "a native library that was not loaded",
        f"native code called a function that does not exist{case.called_by}: a library could not be loaded shortly before",
        [said.strip()[:300]], next=case.again,
    )  # fmt: skip


def library(case: Case) -> Cause | None:
    """A native library of the application."""
    frame = case.culprit.frame
    if case.culprit.who != "library" or frame is None:
        return None
    name, path = file_of(frame.library), path_of(case.report, frame)
    method, jumped = _native_method(case), _jump(case)
    return Cause(
        "crash-native-library", f"native library {name}", f"native library {name} crashed in {_inner(frame)}{method or case.called_by}"
        + (f"; it {jumped}" if jumped else _through(case)),
        _reason(case), next=case.debugger or _missing(case, path) or _symbols(case, frame) or case.again, alike=f"library {_site(frame)}",
    )  # fmt: skip


def in_native_method(case: Case) -> Cause | None:
    """The C library, or an address without code, below a native method: the frame of its library is not on the stack."""
    method, through = case.native_method, case.culprit.frame
    jumped = _jump(case)
    if method is None or not (jumped or case.culprit.who in ("runtime", "nowhere")):
        return None
    loaded = application_libraries_of(case.report)
    named = [(file_of(path) or path).removesuffix(_DELETED) for path in loaded]
    what = jumped or f"gave {name_of(through)} a wrong argument"
    evidence = [] if not loaded else [f"the application has loaded {listed(named, 4)}"]
    only = loaded[0] if len(loaded) == 1 else None
    return Cause(
        "crash-native-library", f"native library {named[0]}" if only else f"the native code of {name_of(method)}",
        f"the native code of {name_of(method)} {what}", [*_about_address(case), "the stack was not unwound to its library", *evidence],
        next=case.debugger or _missing(case, only) or case.again, alike=f"native {name_of(method)} {_site(through) if through and not jumped else ''}",
    )  # fmt: skip


def _jump(case: Case) -> str | None:
    """`called a function at the null pointer`; None where the program counter is at code."""
    event = case.report.event
    if event.kind != "signal" or event.pc is None or not (is_null(event.pc) or event.pc == event.address):
        return None
    if is_null(event.pc):
        return (
            "called a function at the null pointer: dlsym() or a table of functions lacks it, or a library is missing"
        )
    return f"jumped to 0x{event.pc:x}, where there is no code: an overwritten stack, or a pointer that is no function"


def _missing(case: Case, path: str | None) -> str | None:
    """The command that shows the libraries that one needs, where it called a function that does not exist."""
    return (
        shell.command("ldd", *shell.operands(path))
        if path and is_null(case.report.event.pc) and not path.endswith(_DELETED)
        else None
    )


def _native_method(case: Case) -> str | None:
    """The Java method that entered the library, where another one is the nearest of the application."""
    frames = java_frames_of(case.report)
    if not frames or case.application is None or frames[0] == case.application:
        return None
    return f", called by {name_of(frames[0])} from {name_of(case.application)}"


def _inner(frame: Frame) -> str:
    return f"{shortened(frame.name)}() at {place_of(frame)}" if frame.name else place_of(frame) or frame.text


def _site(frame: Frame) -> str:
    return place_of(frame) or frame.text


def _through(case: Case) -> str:
    through = case.culprit.through
    if through is None:
        return ""
    if through.kind == "C" and not through.library:
        return ", which jumped to an address without code"
    return f", with a wrong argument for {shortened(through.name) if through.name else name_of(through)}"


def _reason(case: Case) -> list[str]:
    """What the address says, and what the stack lacks."""
    unnamed = case.culprit.frame is not None and case.culprit.frame.name is None
    return [*_about_address(case), *(["the library has no symbols"] if unnamed else [])]


def _about_address(case: Case) -> list[str]:
    event = case.report.event
    found = []
    if event.name in ("SIGSEGV", "SIGBUS") and event.code != "SI_KERNEL" and is_null(event.address) and not _jump(case):
        found.append(f"it used {null_words(event.address or 0)}")
    elif event.code == "FPE_INTDIV":
        found.append("it divided by zero")
    if event.code == "SI_KERNEL":
        found.append("the address is not canonical: an overwritten pointer, or a wrong length or offset")
    return found


def _symbols(case: Case, frame: Frame) -> str | None:
    """The command that names the function of a frame without one."""
    offset, path = offset_of(frame), path_of(case.report, frame)
    if frame.name is not None or offset is None or path is None:
        return None
    return shell.command("addr2line", "-Cfe", path, f"0x{offset:x}")


def path_of(report: CrashReport, frame: Frame) -> str | None:
    """The path of a frame's library: frames have its name alone."""
    if (frame.library or "").startswith("/"):
        return frame.library
    return next((path for path in report.libraries if path.startswith("/") and file_of(path) == frame.library), None)


def foreign_function(case: Case) -> Cause | None:
    """Java called a function by the foreign function interface."""
    if case.culprit.who != "foreign-function":
        return None
    through = case.culprit.through or case.report.frame
    user = name_of(case.application) if case.application else "Java code"
    return Cause(
        "crash-foreign-function", user, f"{user} called {name_of(through)} by the foreign function interface with a wrong address or argument",
        _reason(case), next=case.again, alike=f"foreign {user}",
    )  # fmt: skip


def jdk_library(case: Case) -> Cause | None:
    """A native library of the JDK, or a system library that it called."""
    frame, through = case.culprit.frame, case.culprit.through
    if case.culprit.who != "jdk-library" or frame is None:
        return None
    name = f"the JDK's library {file_of(frame.library)}"
    reason = (
        ": as a rule a JAR or ZIP file was changed while the JVM had it open"
        if file_of(frame.library) == "libzip.so"
        else ""
    )
    if through is None:
        blamed, sentence = name, f"{name} crashed in {_inner(frame)}{case.called_by}{reason}"
    else:
        blamed, sentence = (
            f"{name}, or {place_of(through) or 'what it called'}",
            f"{name_of(through)} crashed, called by {name}{case.called_by}{reason}",
        )
    return Cause(
        "crash-jdk-library", blamed, sentence, _reason(case), next=case.next_in_core, alike=f"library {_site(frame)}"
    )


def application_libraries_of(report: CrashReport) -> list[str]:
    """Mapped native libraries that are neither the JDK's nor the C library's, nor below /usr/lib."""
    home = f"{report.java_home.rstrip('/')}/" if report.java_home else None
    found = []
    for path in report.libraries:
        frame = Frame("C", path, library=path)
        is_known = is_runtime(frame) or is_vm(frame) or is_jdk_library(frame) or path.startswith(("/usr/lib", "/lib"))
        if ".so" in (file_of(path) or "") and not is_known and not (home and path.startswith(home)):
            found.append(path)
    return list(dict.fromkeys(found))
