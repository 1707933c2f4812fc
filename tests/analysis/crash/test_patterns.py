"""Each cause of a crash by its signs, and the look-alike that has another cause."""

from __future__ import annotations

import pytest
from crashreports import (
    APPLICATION,
    ENTRY,
    GIB,
    MACHINE,
    MIB,
    STACK_HIGH,
    STACK_LOW,
    facts,
    method,
    native,
    read,
    refused,
    report,
    signal,
    stub,
    vm,
)
from eachof import each_of

from opskit.analysis.crash.case import task_method
from opskit.analysis.crash.judge import judge
from opskit.collect.crash.facts import Core
from opskit.jvm.logs.crashes.record import Event, Frame, Heap, Thread

UNSAFE = (method("jdk.internal.misc.Unsafe.putLong"), method("sun.misc.Unsafe.putLong"))
FOO = native("libfoo.so", "parse")
C2 = Thread(
    "CompilerThread", "C2 CompilerThread0", "_thread_in_native", 4250, 0x7F1500000000, 0x7F1500100000, 0x7F15000F0000
)
GC = Thread("WorkerThread", "GC Thread#1", None, 4251)
TASK = "C2:   1234   12   4   com.acme.Order$Line::total (23 bytes)"
LOW = Thread("JavaThread", "main", "_thread_in_native", 4243, STACK_LOW, STACK_HIGH, STACK_LOW + 0x3100)
MMAP = "Native memory allocation (mmap) failed to map 65536 bytes. Error detail: committing reserved memory."
MALLOC = "Native memory allocation (malloc) failed to allocate 65536 bytes for Chunk::new"
MUSL = ("/lib/ld-musl-x86_64.so.1", "/opt/acme/libfoo.so")


def sent(code="SI_USER", pid=99, name="SIGSEGV", **more):
    return Event("signal", name, 11, code, None, sender_pid=pid, sender_uid=1000, **more)


def internal(*message, source="sharedRuntime.cpp:553"):
    return Event("internal", "Internal Error", message=message, source=source)


def overflow(address=STACK_LOW + 0x3000, thread=LOW, frames=(FOO,) * 30):
    return report(signal("SIGSEGV", "SEGV_ACCERR", address), *frames, APPLICATION, *ENTRY, thread=thread)


COPY = (stub("StubRoutines::jbyte_arraycopy"), APPLICATION)


def bus(code="BUS_ADRERR", at="0x7f00: /data/index.bin", frames=COPY, **more):
    return report(signal("SIGBUS", code), *frames, memory_at_address=at, **more)


CASES = {
    # what the kernel says of the sender
    "kill": (report(sent(), native("libc.so.6")), "crash-signal-sent", "process 99 of uid 1000 sent SIGSEGV"),
    "kill in the compiler": (report(sent(), vm("PhaseIdealLoop::build"), thread=C2, compile_task=TASK), "crash-signal-sent", "no bug of the JVM"),
    "kill from outside of the container": (report(sent(pid=0), native("libc.so.6")), "crash-signal-sent", "outside of its PID namespace"),
    "kill while Unsafe runs": (report(sent(), vm("Unsafe_PutLong"), *UNSAFE, APPLICATION, *ENTRY), "crash-signal-sent", "process 99"),
    "kill with SIGBUS": (report(sent(name="SIGBUS"), FOO, APPLICATION, *ENTRY), "crash-signal-sent", "sent SIGBUS"),
    "raise() of its own": (report(sent("SI_TKILL", 4242), native("libc.so.6", "raise"), FOO), "crash-signal-sent", "libfoo.so raised SIGSEGV itself"),
    "raise() of a native method": (report(sent("SI_TKILL", 4242), native("libc.so.6"), APPLICATION), "crash-signal-sent", "the native code of com.acme.Order.total raised SIGSEGV itself"),
    "a thread that is late to a safepoint": (report(Event("signal", "SIGILL", 4, "SI_TKILL", sender_pid=4242), method("com.acme.Order.total", "J", "c2"), jvm_arguments="-XX:+AbortVMOnSafepointTimeout"), "crash-timeout", "thread main did not reach a safepoint in time"),
    "a timeout that is a failed check": (report(internal("fatal error: Safepoint sync time longer than 10000 ms detected"), vm("VMError::report"), vm("SafepointSynchronize::begin")), "crash-timeout", "longer than 10000 ms"),
    "the heap in memory without a page": (bus(at="0x7f: /memfd:java_heap (deleted)"), "crash-large-pages", "no page left"),
    "kill -ABRT": (report(sent(name="SIGABRT"), native("libc.so.6")), "crash-signal-sent", "sent SIGABRT (kill)"),
    "abort()": (report(signal("SIGABRT", "SI_TKILL", None, sender_pid=4242), native("libc.so.6", "abort"), FOO, APPLICATION), "crash-abort", "libfoo.so ended the process by abort()"),
    # the stack
    "stack overflow": (overflow(), "crash-stack-overflow", "parse in libfoo.so+0x1234 calls itself"),
    "a guard page far from the stack pointer": (overflow(thread=LOW._replace(sp=STACK_HIGH - 0x2000)), "crash-native-library", "libfoo.so"),
    "an address elsewhere, on a low stack": (overflow(address=0x7F0012345678), "crash-native-library", "libfoo.so"),
    "null on a low stack": (overflow(address=8), "crash-native-library", "libfoo.so"),
    "below the stack": (overflow(address=STACK_LOW - 0x800, thread=LOW._replace(sp=STACK_LOW - 0x700)), "crash-stack-overflow", "overflowed"),
    # mapped files
    "a truncated file": (bus(), "crash-mapped-file", "a page of /data/index.bin does not exist"),
    "read of a truncated file": (bus(registers={"ERR": 4, "TRAPNO": 14}), "crash-mapped-file", "read by com.acme.Order.total: it was truncated or replaced in place while it was mapped, or its disk returned a read error"),
    "hsperfdata": (bus(at="/tmp/hsperfdata_app/4242", frames=(vm("PerfMemory::alloc"),)), "crash-mapped-file", "/tmp was full, as a rule"),
    "a mapping that is not named": (bus(at=None), "crash-mapped-file", "a mapped file"),
    "a JAR that was changed": (bus(at=None, frames=(native("libzip.so", "newEntry"), method("java.util.zip.ZipFile.getEntry"), APPLICATION)), "crash-mapped-file", "a JAR or ZIP file"),
    "huge pages": (bus(at=None, jvm_arguments="-Xmx4g -XX:+UseLargePages"), "crash-large-pages", "pool of huge pages is empty"),
    "bad memory": (bus("BUS_MCEERR_AR"), "crash-hardware", "hardware error"),
    "an address that is not aligned": (bus("BUS_ADRALN", at=None, frames=(FOO, APPLICATION)), "crash-native-library", "libfoo.so"),
    "a buffer after unmap": (report(signal(), stub("StubRoutines::jbyte_arraycopy"), method("java.nio.DirectByteBuffer.get"), APPLICATION, *ENTRY), "crash-use-after-unmap", "com.acme.Order.total"),
    "a compiled read of a buffer": (report(signal(), method("java.nio.DirectByteBuffer.get", "J", "c2"), APPLICATION, *ENTRY), "crash-use-after-unmap", "unmapped or freed"),
    # instructions
    "an instruction that the CPU lacks": (report(signal("SIGILL", "ILL_ILLOPN", 0x7F00, pc=0x7F00), FOO, APPLICATION, instructions="0x0000000000007f00:   62 f1 7c 48"), "crash-illegal-instruction", "native library libfoo.so"),
    "a trap": (report(signal("SIGILL", "ILL_ILLOPN", 0x7F00, pc=0x7F00), FOO, APPLICATION, instructions="=>0x0000000000007f00:   0f 0b 12"), "crash-abort", "stopped itself by a trap instruction"),
    "an instruction of compiled code": (report(signal("SIGILL", "ILL_ILLOPN", 0x7F00, pc=0x7F00), method("com.acme.Order.total", "J", "c2")), "crash-illegal-instruction", "compiled Java code"),
    # native code
    "a library": (report(signal(address=0x18), FOO, APPLICATION, *ENTRY), "crash-native-library", "libfoo.so crashed in parse() at libfoo.so+0x1234, called by com.acme.Order.total"),
    "memcpy for a library": (report(signal(), native("libc.so.6", "__memcpy_avx_unaligned"), FOO, APPLICATION, *ENTRY), "crash-native-library", "with a wrong argument for __memcpy_avx_unaligned"),
    "JNI with a bad reference": (report(signal(), vm("jni_GetArrayLength"), FOO, APPLICATION, *ENTRY), "crash-native-library", "with a wrong argument for jni_GetArrayLength"),
    "a JNI function that is gone by a tail call": (report(signal(), vm("AccessInternal::dispatch"), FOO, APPLICATION, *ENTRY), "crash-native-library", "with a wrong argument for AccessInternal::dispatch"),
    "deep in the JVM, called by a library": (report(signal(), vm("Klass::find"), vm("LinkResolver::resolve"), FOO, APPLICATION, *ENTRY), "crash-jvm-internal", "Klass::find"),
    "memcpy, its caller not on the stack": (report(signal(code="SI_KERNEL", address=0), native("libc.so.6"), APPLICATION, *ENTRY), "crash-native-library", "the native code of com.acme.Order.total gave libc.so.6+0x1234 a wrong argument"),
    "a method of the JDK in libc": (report(signal(), native("libc.so.6"), method("java.net.Inet6AddressImpl.lookup"), APPLICATION), "crash-unexplained", "does not show who is to blame"),
    "a stub for a library": (report(signal(), stub("StubRoutines::jbyte_arraycopy"), vm("jni_GetByteArrayRegion"), FOO, APPLICATION), "crash-native-library", "libfoo.so"),
    "division by zero": (report(signal("SIGFPE", "FPE_INTDIV", None), FOO, APPLICATION), "crash-native-library", "libfoo.so"),
    "a jump to nowhere": (report(signal(address=0, pc=0), Frame("C", "0x0000000000000000"), FOO, APPLICATION), "crash-native-library", "it called a function at the null pointer"),
    "a jump to nowhere, its caller not on the stack": (report(signal(address=0, pc=0), Frame("C", "0x0000000000000000"), APPLICATION), "crash-native-library", "the native code of com.acme.Order.total called a function at the null pointer"),
    "a jump to nowhere, straight below the method": (report(signal(address=0, pc=0), APPLICATION, *ENTRY), "crash-native-library", "the native code of com.acme.Order.total called a function at the null pointer"),
    "a jump into data": (report(signal(address=0x7F00, pc=0x7F00), FOO, APPLICATION), "crash-native-library", "it jumped to 0x7f00, where there is no code"),
    "a jump to nowhere after the verifier loaded the class": (report(signal(address=0, pc=0), Frame("C", "0x0000000000000000"), APPLICATION, last_events=("0.31 Loading class java/lang/UnsatisfiedLinkError done",)), "crash-native-library", "called a function at the null pointer"),
    "a jump to nowhere after a failed load": (report(signal(address=0, pc=0), Frame("C", "0x0000000000000000"), APPLICATION, last_events=("java/lang/UnsatisfiedLinkError: no foo in java.library.path",)), "crash-library-missing", "could not be loaded"),
    "an agent": (report(signal(), native("libprofiler.so", "sample"), vm("JvmtiExport::post"), APPLICATION, jvm_arguments="-agentpath:/opt/x/libprofiler.so=start -Xmx1g"), "crash-agent", "libprofiler.so"),
    "a profiler that was attached": (report(signal(), native("libasyncProfiler.so", "StackFrame::pc"), APPLICATION), "crash-agent", "libasyncProfiler.so"),
    "an agent that is not to blame": (report(signal(), FOO, APPLICATION, jvm_arguments="-agentpath:/opt/x/libprofiler.so=start"), "crash-native-library", "libfoo.so"),
    "a profiler in AsyncGetCallTrace": (report(signal(), vm("AsyncGetCallTrace"), native("libasyncProfiler.so", "Profiler::sample"), jvm_arguments="-agentpath:/opt/libasyncProfiler.so=start"), "crash-agent", "AsyncGetCallTrace"),
    "glibc's library on musl": (report(signal(), FOO, APPLICATION, libraries=(*MUSL, "/usr/lib/libgcompat.so.0")), "crash-wrong-libc", "built for glibc"),
    "a library on musl": (report(signal(), FOO, APPLICATION, libraries=MUSL), "crash-native-library", "libfoo.so"),
    "an unresolved function on musl": (report(signal(address=0x3FD6, pc=0x3FD6), Frame("C", "0x0000000000003fd6"), libraries=(*MUSL, "/tmp/libnetty1234567890.so")), "crash-wrong-libc", "a native library was built for glibc"),
    "an unresolved function, called by a library on musl": (report(signal(address=0xB8E6, pc=0xB8E6), FOO, APPLICATION, libraries=MUSL), "crash-wrong-libc", "libfoo.so was built for glibc"),
    "the resolver, called by the JDK": (report(signal(), native("libresolv.so.2", "__libc_res_nquery"), native("libnss_dns.so.2"), native("libnet.so"), method("java.net.Inet6AddressImpl.lookupAllHostAddr"), APPLICATION), "crash-jdk-library", "__libc_res_nquery in libresolv.so.2+0x1234 crashed, called by the JDK's library libnet.so"),
    "a library of Windows": (report(Event("signal", "EXCEPTION_ACCESS_VIOLATION"), native("ntdll.dll"), native("lwjgl64.dll"), method("org.lwjgl.opengl.GL11.nglDrawArrays")), "crash-native-library", "lwjgl64.dll"),
    "the JVM on Windows without symbols": (report(Event("signal", "EXCEPTION_ACCESS_VIOLATION"), Frame("V", "[jvm.dll+0x1]", "jvm.dll"), native("msvcr100.dll"), native("KERNEL32.DLL"), native("ntdll.dll")), "crash-jvm-internal", "jvm.dll"),
    "damaged malloc": (report(signal(), native("libc.so.6", "_int_malloc"), native("libc.so.6", "malloc"), FOO, APPLICATION), "crash-native-heap", "malloc() is damaged"),
    "free() of a wrong pointer": (report(signal(), native("libc.so.6", "__libc_free"), APPLICATION), "crash-native-heap", "gave free() a wrong pointer, called by com.acme.Order.total"),
    "damaged malloc, noticed by the compiler": (report(signal(), native("libc.so.6", "_int_free"), vm("Arena::destruct_contents"), thread=C2, compile_task=TASK), "crash-native-heap", "malloc() is damaged"),
    "the JDK's library": (report(signal(), native("libnio.so", "read"), method("sun.nio.ch.FileDispatcherImpl.read0"), APPLICATION), "crash-jdk-library", "libnio.so"),
    "a foreign function": (report(signal(), native("libc.so.6", "strlen"), stub("RuntimeStub::nep_invoker_blob"), method("java.lang.invoke.LambdaForm$MH.invoke"), APPLICATION), "crash-foreign-function", "com.acme.Order.total called strlen"),
    # Unsafe
    "Unsafe": (report(signal(address=0), vm("Unsafe_PutLong"), *UNSAFE, APPLICATION, *ENTRY), "crash-unsafe-access", "com.acme.Order.total gave jdk.internal.misc.Unsafe.putLong() the null pointer"),
    "Unsafe in a JVM without symbols": (report(signal(address=64), vm(None), *UNSAFE, APPLICATION, *ENTRY), "crash-unsafe-access", "the null pointer plus 64 bytes"),
    "Unsafe.copyMemory": (report(signal(), stub("StubRoutines::jlong_arraycopy"), vm("Unsafe_CopyMemory0"), method("jdk.internal.misc.Unsafe.copyMemory0"), APPLICATION), "crash-unsafe-access", "copyMemory0()"),
    "an unsafe_arraycopy stub": (report(signal(), stub("StubRoutines::unsafe_arraycopy"), method("com.acme.Order.total", "J", "c2")), "crash-unsafe-access", "com.acme.Order.total"),
    "netty": (report(signal(), method("io.netty.util.internal.PlatformDependent0.getLong", "J", "c2"), APPLICATION), "crash-unsafe-access", "freed memory"),
    # the JVM
    "the C2 compiler": (report(signal(address=16), vm("PhaseIdealLoop::build"), thread=C2, compile_task=TASK), "crash-compiler", "compiling com.acme.Order$Line.total"),
    "a failed check of the compiler": (report(internal("assert(n != NULL) failed: no node", source="loopnode.cpp:12"), vm("VMError::report_and_die"), vm("Node::in"), thread=C2, compile_task=TASK), "crash-compiler", "C2"),
    "a library in a compiler's thread": (report(signal(), native("libfoo.so", "on_compiled"), vm("JvmtiExport::post"), thread=C2, compile_task=TASK), "crash-native-library", "libfoo.so"),
    "compiled code": (report(signal(), method("com.acme.Order.total", "J", "c2"), *ENTRY), "crash-compiled-code", "com.acme.Order.total"),
    "a copy from compiled code": (report(signal(), stub("StubRoutines::jbyte_arraycopy"), method("com.acme.Order.total", "J", "c1"), *ENTRY), "crash-compiled-code", "C1"),
    "the collector": (report(signal(address=0xFF), vm("G1ParScanThreadState::trim"), thread=GC), "crash-gc", "damaged Java heap"),
    "the collector in the VM thread": (report(signal(), vm("MarkSweep::mark"), thread=Thread("VMThread", "VM Thread"), vm_operation="GenCollectFull, mode: safepoint"), "crash-gc", "damaged Java heap"),
    "a check of the collector": (report(internal("guarantee(is_in(obj)) failed: not in the heap"), thread=GC), "crash-gc", "guarantee(is_in(obj)) failed"),
    "another operation of the VM thread": (report(signal(), vm("VM_RedefineClasses::doit"), thread=Thread("VMThread", "VM Thread"), vm_operation="RedefineClasses"), "crash-jvm-internal", "VM_RedefineClasses::doit"),
    "a worker that is no collector's": (report(signal(), vm("Dumper::run"), thread=Thread("WorkerThread", "Dump Worker#1")), "crash-jvm-internal", "Dumper::run"),
    "a failed check": (report(internal("guarantee(x) failed: wrong"), vm("VMError::report_and_die"), vm("Deopt::fetch"), APPLICATION), "crash-jvm-internal", "guarantee(x) failed: wrong (sharedRuntime.cpp:553)"),
    "the JVM": (report(signal(), vm("InstanceKlass::find"), APPLICATION, *ENTRY), "crash-jvm-internal", "InstanceKlass::find"),
    "the JVM at its start": (report(signal(), vm("Arguments::parse"), vm("Threads::create_vm"), native("libjli.so", "JavaMain"), uptime_s=0.02), "crash-jvm-internal", "Arguments::parse"),
    "the JVM without symbols, called by its launcher": (report(signal(), vm(None), vm(None), native("libjli.so", "JavaMain")), "crash-jvm-internal", "libjvm.so"),
    "nothing but libc": (report(signal(), native("libc.so.6")), "crash-unexplained", "does not show who is to blame"),
    "interpreted code": (report(signal(), APPLICATION, *ENTRY), "crash-unexplained", "SIGSEGV in com.acme.Order.total"),
    "a stub of interpreted code": (report(signal(), stub("StubRoutines::x"), APPLICATION, *ENTRY), "crash-unexplained", "does not show who is to blame"),
    "a checksum of a buffer": (report(signal(), stub("StubRoutines::updateBytesCRC32"), method("java.util.zip.CRC32.updateByteBuffer0"), APPLICATION), "crash-use-after-unmap", "com.acme.Order.total"),
    "no stack": (report(signal(), frame=None, complete=False), "crash-unexplained", "does not show who is to blame"),
    # memory
    "the Java heap": (report(Event("java-heap", "OutOfMemory encountered: Java heap space"), APPLICATION, heap=Heap(used_bytes=60 * MIB, max_bytes=64 * MIB)), "crash-java-heap", "com.acme.Order.total asked for memory"),
    "metaspace": (report(Event("java-heap", "OutOfMemory encountered: Metaspace"), APPLICATION), "crash-java-heap", "too many classes"),
    "mappings": (refused(MMAP, 65536, maps=65_528), "crash-map-count", "65,528 mappings"),
    "mprotect, mappings unknown": (refused("Native memory allocation (mprotect) failed to protect 16384 bytes for memory to guard stack pages", 16384, maps=None), "crash-map-count", "mprotect() failed"),
    "mprotect with few mappings": (refused("Native memory allocation (mprotect) failed to protect 16384 bytes", 16384, free_bytes=MIB), "crash-native-memory", "1 MiB free"),
    "a thread": (refused("Cannot create worker GC thread. Out of system resources.", None), "crash-threads", "refused a further thread"),
    "ulimit -v": (refused(MMAP, limits={"AS": "2000000k/infinity"}), "crash-address-space", "ulimit -v was 1.9 GiB"),
    "ulimit -v with room": (refused(MMAP, limits={"AS": "40000000k/infinity"}, virtual_bytes=4 * GIB), "crash-overcommit", "though the machine had 20 GiB free"),
    "ulimit -d": (refused(MALLOC, limits={"AS": "infinity/infinity", "DATA": "1000000k/infinity"}), "crash-address-space", "ulimit -d"),
    "larger than the machine": (refused(MMAP, 64 * GIB), "crash-native-memory", "64 GiB of memory at once: the machine has 24 GiB"),
    "the machine is full": (refused(MMAP, free_bytes=100 * MIB), "crash-native-memory", "the machine had 100 MiB free of 24 GiB"),
    "the container is full": (refused(MMAP, container="cgroupv2", container_memory_bytes=GIB, container_used_bytes=GIB - MIB), "crash-native-memory", "its container had used 1023 MiB of 1 GiB"),
    "the container has room": (refused(MMAP, container="cgroupv2", container_memory_bytes=GIB, container_used_bytes=100 * MIB), "crash-overcommit", "vm.overcommit_memory=2"),
    "free memory is refused": (refused(MMAP), "crash-overcommit", "though the machine had 20 GiB free"),
    "free memory is refused, and the list of mappings is cut": (refused(MMAP, maps=7), "crash-native-memory", "reached vm.max_map_count, or vm.overcommit_memory=2"),
    "malloc below compressed oops": (refused(MALLOC)._replace(event=refused(MALLOC).event._replace(message=(MALLOC, "JVM is running with Unscaled Compressed Oops mode"))), "crash-compressed-oops", "below 4 GB"),
    "no limits in the report": (refused(MMAP, limits={}, maps=None), "crash-native-memory", "does not show which limit"),
}  # fmt: skip


@each_of("name", CASES)
def test_cause(name):
    """The finding's code, and what its sentence says; every finding has a command to type."""
    made, code, words = CASES[name]
    result = judge(facts(made))
    (verdict,), finding = result.verdicts, result.findings[0]
    assert (verdict.pattern, finding.code, finding.severity) == (code, code, "error")
    assert words in verdict.cause
    assert finding.next


@pytest.mark.parametrize(
    ("event", "meaning"),
    [
        (signal(address=0), "access to the null pointer: nothing is mapped there"),
        (signal(address=24), "access to the null pointer plus 24 bytes: nothing is mapped there"),
        (signal(code="SEGV_ACCERR"), "access to 0x7f0012345678: its mapping does not allow the access"),
        (signal(code="SI_KERNEL", address=0), "the address is not canonical, and the kernel does not report it: an overwritten pointer, or a wrong length or offset"),
        (signal(address=8, pc=8), "jump to the null pointer plus 8 bytes, where there is no code"),
        (signal("SIGFPE", "FPE_INTDIV"), "integer division by zero"),
        (sent(), "another process sent it, or the JVM itself: no memory access failed"),
        (Event("signal", "SIGXYZ"), "unknown signal"),
        (internal(), None),
    ],
)  # fmt: skip
def test_meaning_of_signals(event, meaning):
    """A phrase for the signal, its code and its address; an address of 0 that the kernel did not report is no null pointer."""
    assert judge(facts(report(event, native("libc.so.6")))).verdicts[0].meaning == meaning


def test_a_pointer_that_is_not_canonical_is_no_null_pointer():
    """si_code SI_KERNEL has an si_addr of 0 that means nothing."""
    verdict = judge(facts(report(signal(code="SI_KERNEL", address=0), FOO, APPLICATION))).verdicts[0]
    assert verdict.pattern == "crash-native-library"
    assert not any("null" in each for each in verdict.evidence)


def test_the_function_of_an_agent_without_symbols_is_the_closer_look():
    """As for a library of the application."""
    found = judge(facts(report(signal(), native("libfoo.so"), jvm_arguments="-agentlib:foo"))).findings[0]
    assert (found.code, found.next) == ("crash-agent", "addr2line -Cfe /opt/acme/libfoo.so 0x1234")


def test_what_a_library_lacks_is_the_closer_look():
    """Where it called a function at the null pointer, with its frame on the stack or without."""
    event = signal(address=0, pc=0)
    for frames in ((FOO, APPLICATION), (Frame("C", "0x0000000000000000"), APPLICATION)):
        assert judge(facts(report(event, *frames))).findings[0].next == "ldd /opt/acme/libfoo.so"


def test_the_method_of_the_compile_task_is_excluded():
    """The option is quoted for a shell; a replay file is named."""
    made = report(signal(), vm("PhaseIdealLoop::build"), thread=C2, compile_task=TASK)
    given = facts(made)
    given = given._replace(read=[given.read[0]._replace(replay="/srv/replay_pid4242.log")])
    verdict = judge(given).verdicts[0]
    assert verdict.fix == "java '-XX:CompileCommand=exclude,com/acme/Order$Line.total' …"
    assert any("/srv/replay_pid4242.log" in each for each in verdict.evidence)


@pytest.mark.parametrize(
    ("task", "method"),
    [
        (TASK, ("com.acme.Order$Line", "total")),
        ("C2:279  !   cf.<init>([B)V (2712 bytes)", ("cf", "<init>")),
        ("opto: 11      java.lang.Thread.setPriority(I)V (53 bytes)", ("java.lang.Thread", "setPriority")),
        ("C1:    143   71   !   3       java.util.Map$1::get @ 12 (23 bytes)", ("java.util.Map$1", "get")),
        ("java/lang/String.hashCode()I", ("java.lang.String", "hashCode")),
        ("C2: (23 bytes)", None),
        (None, None),
    ],
)
def test_the_method_of_a_compile_task(task, method):
    """Of JDK 6 to 25, and of OpenJ9."""
    assert task_method(task) == method


def test_options_are_those_of_the_jvm():
    """OpenJ9 has no CompileCommand, and no tiers by that name."""
    jit = Thread("JavaThread", "JIT Compilation Thread-000")
    made = report(signal(), native("libj9jit29.so", "TR::compile"), thread=jit, compile_task="com/acme/Order.total()J")
    verdict = judge(facts(made._replace(dialect="openj9"))).verdicts[0]
    assert (verdict.pattern, verdict.next) == ("crash-compiler", "java -Xint …")
    compiled = report(signal(), method("com.acme.Order.total", "J"))._replace(dialect="openj9")
    assert judge(facts(compiled)).verdicts[0].fix == "java '-Xjit:exclude={com/acme/Order.total*}' …"


@pytest.mark.parametrize(
    ("name", "excluded"),
    [
        ("com.acme.Order$$Lambda$14/0x0000000800066840", "com/acme/Order$$Lambda*"),
        ("com.acme.Order$$Lambda/0x0000000800066840", "com/acme/Order$$Lambda*"),
        ("com.acme.Order$$Lambda+0x0000000800066840", "com/acme/Order$$Lambda*"),
        ("java.lang.invoke.LambdaForm$MH/0x0000000800066840", "java/lang/invoke/LambdaForm$MH*"),
        ("jdk.proxy2.$Proxy17", "jdk/proxy2/$Proxy*"),
    ],
)
def test_a_generated_class_is_excluded_at_the_next_start(name, excluded):
    """Its number and address differ then."""
    verdict = judge(facts(report(signal(), method(f"{name}.run", "J", "c2")))).verdicts[0]
    assert verdict.fix == f"java '-XX:CompileCommand=exclude,{excluded}.run' …"


def test_the_newest_is_the_last_that_crashed():
    """By the time in the report: a copy of it is written later."""
    made = [
        read(report(signal(), FOO, at_s=at_s), f"hs_err_pid{number}.log", modified_s=modified_s)
        for number, (at_s, modified_s) in enumerate([(100.0, 900.0), (300.0, 300.0), (None, 200.0)])
    ]
    result = judge(facts(*made))
    assert [verdict.read.name[10] for verdict in result.verdicts] == ["1", "2", "0"]
    assert result.groups[0].first is result.verdicts[0]


@pytest.mark.parametrize(
    ("thread", "fix"),
    [
        (LOW, "java -Xss8m …"),
        (LOW._replace(tid=4242), "ulimit -s unlimited"),
        (LOW._replace(kind="CompilerThread", name="C2 CompilerThread0"), "java -XX:CompilerThreadStackSize=8192 …"),
        (LOW._replace(kind="VMThread", name="VM Thread"), "java -XX:VMThreadStackSize=8192 …"),
    ],
    ids=["java", "primordial", "compiler", "vm"],
)
def test_the_option_for_a_larger_stack(thread, fix):
    """It depends on the kind of thread."""
    assert judge(facts(overflow(thread=thread))).verdicts[0].fix == fix


def test_a_core_file_is_the_closer_look():
    """The debugger with the java of that JVM."""
    given = facts(report(signal(), FOO, APPLICATION, *ENTRY))
    given = given._replace(read=[given.read[0]._replace(core=Core("/srv/core.4242", GIB, None))])
    assert judge(given).findings[0].next == "gdb -batch -ex bt /opt/jdk-17/bin/java /srv/core.4242"


@pytest.mark.parametrize(
    ("runtime", "at", "old"),
    [
        ("(11.0.9+11)", "Mon Nov 23 15:18:57 2026 UTC", "JDK 11.0.9 was released in Oct 2020, 73 months before"),
        ("(17.0.15+6)", "Mon Jun 2 10:15:00 2025 UTC", None),
        (
            "OpenJDK (1.8.0_352-b08)",
            "Mon Jun 2 10:15:00 2025 UTC",
            "JDK 8u352 was released in Oct 2022, 32 months before",
        ),
        ("(21+35)", "Mon Jun 2 10:15:00 2025 UTC", None),
        ("(19.0.2+7)", "Mon Jun 2 10:15:00 2025 UTC", "JDK 19 gets no updates since Mar 2023: 21 does"),
        ("(19.0.2+7)", "Wed Feb 1 10:15:00 2023 UTC", None),
        ("(17.0.9+9)", None, None),
    ],
)
def test_an_old_jdk_is_a_note(runtime, at, old):
    """By its update, or the end of its updates, and the date of the crash; where the JDK may be to blame."""
    major = 8 if "1.8" in runtime else 19 if "(19" in runtime else 21
    made = report(signal(), vm("Klass::find"), runtime=runtime, vm="", at=at, java_major=major)
    notes = [each.summary for each in judge(facts(made)).findings if each.code == "crash-jdk-old"]
    assert [each.startswith(old or "-") for each in notes] == [True] * (old is not None)
    library = made._replace(native_frames=(FOO,), frame=FOO)
    assert [each.code for each in judge(facts(library)).findings] == ["crash-native-library"]


def test_limits_are_those_of_the_report():
    """Without a word about limits nothing is concluded."""
    made = refused(MMAP)._replace(machine=MACHINE._replace(limits={}))
    assert judge(facts(made)).verdicts[0].pattern == "crash-native-memory"


def test_full_heap_and_full_metaspace_are_two_causes():
    """They have the same code, and are repaired in other places."""
    made = [
        report(Event("java-heap", f"OutOfMemory encountered: {what}"), APPLICATION)
        for what in ("Java heap space", "Metaspace", "Requested array size exceeds VM limit")
    ]
    result = judge(facts(*made))
    assert len(result.groups) == 3
    assert [verdict.next for verdict in result.verdicts][2] == "opskit crash -v hs_err_pid4242.log"


def test_unpacked_libraries_are_alike():
    """Their names have a number that differs from run to run."""
    made = [
        report(signal(), native(f"librocksdbjni{number}.so"), APPLICATION)
        for number in (4887027544215651946, 5072523310110693670)
    ]
    result = judge(facts(*made))
    assert [len(group.verdicts) for group in result.groups] == [2]
    assert result.findings[0].summary.startswith("2 crashes alike, the newest: native library librocksdbjni")


def test_a_library_whose_file_was_deleted_is_named_without_the_mark():
    """It is in no command: its file is gone."""
    made = report(signal(address=0, pc=0), Frame("C", "0x0"), APPLICATION, libraries=("/tmp/libx.so (deleted)",))
    verdict = judge(facts(made)).verdicts[0]
    assert (verdict.blamed, verdict.next) == ("native library libx.so", "opskit crash -v hs_err_pid4242.log")
