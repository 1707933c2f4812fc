"""Who is to blame by the stack: the first frame that chose what failed, not the one in which it failed.

memcpy() fails for its caller, jni_GetArrayLength for the library that passed it a bad reference, Unsafe_PutLong for the Java
code that gave it an address.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opskit.jvm.logs.crashes.record import CrashReport, Frame

Who = Literal[
    "library", "jdk-library", "unsafe", "foreign-function", "jvm", "compiled", "interpreted", "runtime", "nowhere"
]

_RUNTIME = re.compile(
    r"(?:libc|libm|libpthread|libdl|librt|libgcc_s|libstdc\+\+|libc\+\+|ld-linux[\w-]{0,20}|ld|libresolv)(?:-[\d.]{1,9})?\.so[\d.]{0,12}"
    r"|libnss_[\w-]{1,20}(?:\.[\d]{1,2})?\.so[\d.]{0,9}|libsystem_\w{1,30}\.dylib|(?i:ntdll|kernel32|kernelbase|msvc[rp][\dt]{1,3}|ucrtbase|vcruntime140(?:_1)?|user32|win32u)\.(?i:dll)"
    r"|ld-musl-[\w]{1,20}\.so\.1|libc\.musl-[\w]{1,20}\.so\.1|linux-vdso\.so\.1|\[vdso\]"
)
_VM = re.compile(r"libjvm\.(?:so|dylib)|libj9\w{0,30}\.so|libjclse\w{0,10}\.so|libomr\w{0,20}\.so|jvm\.dll")
_JDK = frozenset(
    [
        "attach",
        "awt",
        "awt_headless",
        "awt_xawt",
        "dt_socket",
        "extnet",
        "fontmanager",
        "instrument",
        "j2gss",
        "j2pcsc",
        "j2pkcs11",
        "jaas",
        "java",
        "javajpeg",
        "jawt",
        "jdwp",
        "jimage",
        "jli",
        "jsig",
        "jsound",
        "jsvml",
        "lcms",
        "le",
        "management",
        "management_agent",
        "management_ext",
        "mlib_image",
        "net",
        "nio",
        "npt",
        "prefs",
        "rmi",
        "saproc",
        "sctp",
        "simdsort",
        "splashscreen",
        "sunec",
        "syslookup",
        "verify",
        "zip",
    ]
)
# What native code calls; the arguments are its own.
_INTERFACE = ("jni_", "checked_jni_", "JVM_", "jvmti_", "JvmtiEnv::", "AsyncGetCallTrace")
_CALLS_JAVA = ("JavaCalls::", "call_helper", "Threads::create_vm", "JNI_CreateJavaVM", "thread_native_entry")
_JDK_CLASSES = ("java.", "javax.", "jdk.", "sun.", "com.sun.", "openj9.", "com.ibm.oti.")
_JNA = "com.sun.jna."
_UNSAFE_CLASSES = ("sun.misc.Unsafe", "jdk.internal.misc.Unsafe")
_FOREIGN = ("jdk.internal.foreign.abi.", "jdk.internal.vm.ForeignLinker")
_MALLOC = frozenset((
    "malloc", "free", "calloc", "realloc", "cfree", "_int_malloc", "_int_free", "_int_realloc", "malloc_consolidate", "unlink_chunk",
    "malloc_printerr", "__libc_malloc", "__libc_free", "tcache_get", "tcache_put", "sysmalloc", "__libc_calloc", "__libc_memalign",
    "_int_memalign", "_int_free_merge_chunk", "_int_free_maybe_consolidate",
))  # fmt: skip


_REPORTING = ("VMError::", "report_", "print_error_for_unit_test")


class Culprit(NamedTuple):
    """`frame`: of whom to blame. `through`: the function in which it failed, where that is another one."""

    who: Who
    frame: Frame | None = None
    through: Frame | None = None


def frames_of(report: CrashReport) -> Sequence[Frame]:
    """The stack, its innermost frame first; where the file has none, the problematic frame alone."""
    return report.native_frames or ((report.frame,) if report.frame else ())


def innermost(report: CrashReport) -> Frame | None:
    """The problematic frame; where the JVM ended itself, the function that did it."""
    return report.frame or next(
        (frame for frame in frames_of(report) if not (frame.name or "").startswith(_REPORTING)), None
    )


def java_frames_of(report: CrashReport) -> Sequence[Frame]:
    """The Java methods of the stack, the innermost first."""
    return [frame for frame in (report.java_frames or report.native_frames) if is_java(frame) and frame.name]


def is_java(frame: Frame) -> bool:
    """Whether it is a Java method."""
    return frame.kind in ("J", "j", "A")


def file_of(library: str | None) -> str | None:
    """The file's name without its directory."""
    return library.replace("\\", "/").rpartition("/")[2] if library else None


def is_vm(frame: Frame) -> bool:
    """Whether it is in the JVM's own library."""
    return frame.kind == "V" or (frame.library is not None and bool(_VM.fullmatch(file_of(frame.library) or "")))


def is_runtime(frame: Frame) -> bool:
    """Whether it is in the C or C++ library, which does what its caller asks."""
    return frame.kind == "C" and bool(_RUNTIME.fullmatch(file_of(frame.library) or ""))


def is_jdk_library(frame: Frame) -> bool:
    """Whether it is in a library of the JDK."""
    stem, _, suffix = (file_of(frame.library) or "").rpartition(".")
    return (
        suffix in ("so", "dylib", "dll")
        and stem.removeprefix("lib") in _JDK
        and (suffix == "dll" or stem.startswith("lib"))
    )


def class_of(frame: Frame) -> str:
    """`java.util.HashMap` of a method."""
    return (frame.name or "").replace("/", ".").rpartition(".")[0]


def is_jdk_class(name: str) -> bool:
    """Whether the class is the JDK's. JNA has a package of Sun's."""
    return name.startswith(_JDK_CLASSES) and not name.startswith(_JNA)


def application_frame(report: CrashReport) -> Frame | None:
    """The innermost Java method outside the JDK."""
    return next((frame for frame in java_frames_of(report) if not is_jdk_class(class_of(frame))), None)


def is_unsafe(frame: Frame) -> bool:
    """Whether it is a method of Unsafe, its implementation in the JVM, or the stub that copies memory for it."""
    if is_java(frame):
        return class_of(frame) in _UNSAFE_CLASSES
    name = frame.name or ""
    return (frame.kind == "V" and name.startswith("Unsafe_")) or (frame.kind == "v" and "unsafe_" in frame.text)


def is_malloc(frame: Frame) -> bool:
    """Whether it is a function of the C library's allocator."""
    return is_runtime(frame) and (frame.name or "").partition("@")[0] in _MALLOC


def culprit_of(report: CrashReport) -> Culprit:
    """The first frame that is responsible for what failed."""
    frames = frames_of(report)
    if not frames:
        return Culprit("nowhere")
    top = frames[0]
    if report.frame and is_java(report.frame) and not is_java(top):
        top = report.frame
    if is_java(top):
        return _in_java(report, top)
    above: Frame | None = None
    for frame in frames:
        if is_java(frame):
            return _called_from_java(report, top, frame)
        if is_unsafe(frame):
            return Culprit("unsafe", frame, None if frame is top else top)
        if frame.kind == "v" and "call_stub" in frame.text:
            break
        if any(word in (frame.name or "") for word in _CALLS_JAVA):
            break
        if frame.kind == "C" and frame.library and not is_runtime(frame) and not is_vm(frame):
            return _in_library(frame, top, above)
        above = frame
    return Culprit("jvm" if is_vm(top) else "runtime" if is_runtime(top) else _no_library(top), top)


def _no_library(top: Frame) -> Who:
    return "nowhere" if top.kind == "C" else "jvm"


def _in_library(frame: Frame, top: Frame, above: Frame | None) -> Culprit:
    """The library that called the JVM or the C library; the JVM, where it called neither as far as the names tell."""
    through = None if frame is top else top
    is_jdk = is_jdk_library(frame)
    if above is not None and is_vm(above) and not (above.name or "").startswith(_INTERFACE):
        # An application calls the JVM by JNI alone: the function that it called may be gone by a tail call.
        is_call = not is_jdk and above is top and above.name is not None
        return Culprit("library", frame, through) if is_call else Culprit("jvm", top)
    if is_jdk:
        return Culprit("jvm", top) if above is not None and is_vm(above) else Culprit("jdk-library", frame, through)
    return Culprit("library", frame, through)


def _in_java(report: CrashReport, top: Frame) -> Culprit:
    frames = java_frames_of(report)
    first = frames[0] if frames else top
    if is_unsafe(top) or is_unsafe(first):
        return Culprit("unsafe", top if is_unsafe(top) else first)
    return Culprit("interpreted" if top.kind == "j" else "compiled", top)


def _called_from_java(report: CrashReport, top: Frame, caller: Frame) -> Culprit:
    """What Java code called directly: a native function of the foreign function interface, a stub, the JVM."""
    frames = java_frames_of(report)
    if is_unsafe(caller) or (frames and is_unsafe(frames[0]) and not is_vm(top)):
        return Culprit("unsafe", caller if is_unsafe(caller) else frames[0], top)
    is_foreign = any(class_of(frame).startswith(_FOREIGN) for frame in frames[:8])
    if is_foreign or any("nep_invoker" in frame.text or "linkToNative" in frame.text for frame in frames_of(report)):
        return Culprit("foreign-function", caller, top)
    if top.kind == "v":
        return Culprit("interpreted" if caller.kind == "j" else "compiled", caller, top)
    return Culprit("jvm" if is_vm(top) else "runtime" if is_runtime(top) else _no_library(top), top)
