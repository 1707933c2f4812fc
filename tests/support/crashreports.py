"""Crash reports made by hand: a record for each kind of crash, as the parser gives it."""

from __future__ import annotations

from opskit.collect.crash.facts import Facts, Read
from opskit.jvm.logs.crashes.record import CrashReport, Event, Frame, Heap, Machine, Thread

STACK_LOW, STACK_HIGH = 0x7F15C0300000, 0x7F15C0400000
MIB, GIB = 1 << 20, 1 << 30


def signal(name="SIGSEGV", code="SEGV_MAPERR", address=0x7F0012345678, **more):
    """A signal that an instruction raised."""
    return Event(
        "signal",
        name,
        {"SIGSEGV": 11, "SIGBUS": 7, "SIGILL": 4, "SIGFPE": 8, "SIGABRT": 6}[name],
        code,
        address,
        **more,
    )


def native(library, name=None, offset=0x1234, kind="C"):
    """A frame of a library."""
    into = f"  {name}+0x11" if name else ""
    at = 0x11 if name else offset
    return Frame(kind, f"[{library}+0x{offset:x}]{into}", library, name, at, library_offset=offset)


def vm(name):
    """A frame of the JVM."""
    return native("libjvm.so", name, 0xEDA214, "V")


def method(name, kind="j", compiler=None):
    """A Java method's frame."""
    prefix = f"20 {compiler} " if compiler else ""
    return Frame(kind, f"{prefix}{name}(J)V+7", name=name, signature="(J)V", compiler=compiler)


def stub(name="StubRoutines::call_stub"):
    """A frame of generated code."""
    return Frame("v", f"~{name}", name=name)


ENTRY = (stub(), vm("JavaCalls::call_helper"), vm("jni_invoke_static"), native("libjli.so", "JavaMain"))
APPLICATION = method("com.acme.Order.total")
MACHINE = Machine(
    os="Debian GNU/Linux 12", cpus=2, memory_bytes=24 * GIB, free_bytes=20 * GIB, swap_free_bytes=0, load="1.00 1.00 1.00",
    limits={"STACK": "8192k/infinity", "CORE": "0k/0k", "NPROC": "96365/96365", "NOFILE": "20000/20000", "AS": "infinity/infinity", "DATA": "infinity/infinity"},
    max_map_count=65530, maps=190, threads_max=192_730, pid_max=32_768,
)  # fmt: skip


def report(event=None, *frames, **more):
    """A report of a JVM that ran for two hours, whose thread main crashed below Java code."""
    java = [frame for frame in frames if frame.kind in ("J", "j")]
    given = {
        "pid": 4242, "runtime": "OpenJDK Runtime Environment (17.0.15+6) (build 17.0.15+6)", "java_major": 17,
        "vm": "OpenJDK 64-Bit Server VM (17.0.15+6, mixed mode, tiered, compressed oops, g1 gc, linux-amd64)",
        "frame": frames[0] if frames else None, "native_frames": frames, "java_frames": java,
        "thread": Thread("JavaThread", "main", "_thread_in_native", 4243, STACK_LOW, STACK_HIGH, STACK_HIGH - 0x2000),
        "at": "Mon Jun 2 10:15:00 2025 UTC", "uptime_s": 7200.0, "java_command": "com.acme.Main serve", "java_home": "/opt/jdk-17",
        "core": "No core dump will be written. Core dumps have been disabled.", "machine": MACHINE,
        "libraries": ("/opt/jdk-17/lib/server/libjvm.so", "/usr/lib/x86_64-linux-gnu/libc.so.6", "/opt/acme/libfoo.so"),
    }  # fmt: skip
    return CrashReport("hotspot", event or signal(), **{**given, **more})


def read(made, name="hs_err_pid4242.log", **more):
    """It as it was read of a file."""
    return Read(name, made, **more)


def facts(*reports, **more):
    """What was read."""
    return Facts([each if isinstance(each, Read) else read(each) for each in reports], **more)


def refused(said, count=16 * MIB, **machine):
    """A JVM that got no memory."""
    event = Event(
        "memory",
        "There is insufficient memory for the Java Runtime Environment to continue.",
        message=(said,),
        bytes_refused=count,
    )
    return report(
        event, vm("VMError::report_and_die"), machine=MACHINE._replace(**machine), heap=Heap(max_bytes=4 * GIB)
    )
