"""A crash report of a JVM as a record: HotSpot's hs_err file, OpenJ9's javacore of a crash. None: the file does not say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Frame(NamedTuple):
    """A frame of a stack. `kind`: HotSpot's letter, J compiled by a JIT, j interpreted, A AOT-compiled, V the JVM, v a stub, C native code.

    `library`: a file's name; `name`: the method with its class (`java.util.HashMap.get`), or the function; `offset`: into it.
    """

    kind: str
    text: str  # as it stands in the file, without the letter
    library: str | None = None
    name: str | None = None
    offset: int | None = None
    signature: str | None = None  # of a Java method: (Ljava/lang/Object;)V
    compiler: str | None = None  # c1, c2, jvmci
    source: str | None = None  # of a native function, where the JVM had symbols: methodLiveness.cpp:136
    library_offset: int | None = None  # for addr2line; `offset` is into the function where that has a name


class Event(NamedTuple):
    """What ended the JVM. `kind`: signal, memory (native memory refused), internal (a failed check in the JVM), java-heap, error.

    `name`: SIGSEGV, or the sentence of the file. `code`: SEGV_MAPERR. `address`: si_addr. `sender_pid`: of a signal that was sent.
    `message`: the further lines: `Native memory allocation (mmap) failed to map 16384 bytes …`, `guarantee(…) failed: …`.
    `source`: where in HotSpot: `sharedRuntime.cpp:1234`. `kind` is java-heap for -XX:+CrashOnOutOfMemoryError.
    """

    kind: str
    name: str
    number: int | None = None
    code: str | None = None
    address: int | None = None
    pc: int | None = None
    sender_pid: int | None = None
    sender_uid: int | None = None
    message: Sequence[str] = ()
    source: str | None = None
    bytes_refused: int | None = None


class Thread(NamedTuple):
    """The thread that crashed. `kind`: JavaThread, CompilerThread, VMThread, GCTaskThread, WorkerThread, native."""

    kind: str
    name: str | None = None
    state: str | None = None  # _thread_in_native
    tid: int | None = None
    stack_low: int | None = None
    stack_high: int | None = None
    sp: int | None = None


class Machine(NamedTuple):
    """The machine and its limits at that time. Bytes; `limits`: of getrlimit, as the file names them: {"NOFILE": "1024/4096"}."""

    os: str | None = None
    cpus: int | None = None
    memory_bytes: int | None = None
    free_bytes: int | None = None  # MemAvailable where the report has it: MemFree lacks the page cache
    swap_free_bytes: int | None = None
    load: str | None = None
    limits: Mapping[str, str] = {}
    container: str | None = None  # cgroupv1, cgroupv2; None: not in one, or not said
    container_memory_bytes: int | None = None  # its limit
    container_used_bytes: int | None = None
    container_max_used_bytes: int | None = None
    container_cpus: str | None = None
    max_map_count: int | None = None
    maps: int | None = None  # mappings listed in the file
    threads_max: int | None = None
    pid_max: int | None = None
    commit_limit_bytes: int | None = None  # meminfo's CommitLimit, which vm.overcommit_memory=2 enforces
    committed_bytes: int | None = None  # meminfo's Committed_AS
    rss_bytes: int | None = None  # of the JVM, from JDK 17 on
    virtual_bytes: int | None = None


class Heap(NamedTuple):
    """The heap as the file lists it: lines, and use where a collector's line has it."""

    lines: Sequence[str] = ()
    collector: str | None = None
    used_bytes: int | None = None
    committed_bytes: int | None = None
    max_bytes: int | None = None


class CrashReport(NamedTuple):
    """One report. `dialect`: hotspot or openj9. `complete`: its last section is there. Nothing in it is redacted yet."""

    dialect: str
    event: Event
    pid: int | None = None
    runtime: str | None = None  # JRE version line
    vm: str | None = None  # Java VM line
    java_major: int | None = None
    frame: Frame | None = None  # "Problematic frame"
    core: str | None = None  # the line about the core dump
    thread: Thread | None = None
    native_frames: Sequence[Frame] = ()
    java_frames: Sequence[Frame] = ()
    compile_task: str | None = None
    vm_operation: str | None = None
    instructions: str | None = None
    registers: Mapping[str, int] = {}
    memory_at_address: str | None = None  # what the file says of the address: in a mapping, a stack's guard page
    last_events: Sequence[str] = ()  # exceptions, class loading, deoptimizations just before, newest last
    at: str | None = None  # date and zone as written
    uptime_s: float | None = None
    command_line: str | None = None
    jvm_arguments: str | None = None
    java_command: str | None = None
    java_home: str | None = None
    environment: Mapping[str, str] = {}
    libraries: Sequence[str] = ()  # mapped files, in order
    signal_handlers: Mapping[str, str] = {}
    heap: Heap = Heap()
    machine: Machine = Machine()
    is_error_in_error_handler: bool = False
    complete: bool = True
    report_file: str | None = None  # where the JVM saved the report, as the header in a program's output says
    is_in_output: bool = False  # found among the lines of a program's output, not as a file of its own
    at_s: float | None = None  # the same since the epoch, where the zone is known
