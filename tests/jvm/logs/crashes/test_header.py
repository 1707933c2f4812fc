"""What ended the JVM: each kind of header that HotSpot writes, in its files and in the program's output."""

from __future__ import annotations

import pytest

from opskit.jvm.logs.crashes.report import parse, parse_all

FATAL = "#\n# A fatal error has been detected by the Java Runtime Environment:\n#\n"
MEMORY = "#\n# There is insufficient memory for the Java Runtime Environment to continue.\n"
ADVICE = (
    "# Possible reasons:\n#   The system is out of physical RAM or swap space\n# Possible solutions:\n"
    "#   Reduce memory load on the system\n# This output file may be truncated or incomplete.\n#\n"
)
VERSIONS = (
    "#\n# JRE version: OpenJDK Runtime Environment (17.0.7+7) (build 17.0.7+7-LTS)\n"
    "# Java VM: OpenJDK 64-Bit Server VM (17.0.7+7-LTS, mixed mode, tiered, g1 gc, linux-amd64)\n"
)


def event_of(header, rest=""):
    """The event of a report with this header."""
    return parse(f"{header}{VERSIONS}#\n\n{rest}", "a file").event


@pytest.mark.parametrize(
    ("signal", "siginfo", "expected"),
    [
        ("SIGSEGV (0xb)", "si_signo: 11 (SIGSEGV), si_code: 1 (SEGV_MAPERR), si_addr: 0x0000000000000010", (11, "SEGV_MAPERR", 16)),
        ("SIGSEGV (0xb)", "si_signo: 11 (SIGSEGV), si_code: 2 (SEGV_ACCERR), si_addr: 0x00007f0000000000", (11, "SEGV_ACCERR", 0x7F << 40)),
        ("SIGBUS (0x7)", "si_signo: 7 (SIGBUS), si_code: 2 (BUS_ADRERR), si_addr: 0x1000", (7, "BUS_ADRERR", 4096)),
        ("SIGBUS (0xa)", "si_signo: 10 (SIGBUS), si_code: 1 (BUS_ADRALN), si_addr: 0x1", (10, "BUS_ADRALN", 1)),
        ("SIGILL (0x4)", "si_signo: 4 (SIGILL), si_code: 2 (ILL_ILLOPN), si_addr: 0x2", (4, "ILL_ILLOPN", 2)),
        ("SIGFPE (0x8)", "si_signo: 8 (SIGFPE), si_code: 1 (FPE_INTDIV), si_addr: 0x3", (8, "FPE_INTDIV", 3)),
        ("SIGTRAP (0x5)", "si_signo: 5 (SIGTRAP), si_code: 128 (SI_KERNEL), si_addr: 0x0", (5, "SI_KERNEL", 0)),
        ("SIGSEGV (0xb)", "si_signo=SIGSEGV: si_errno=0, si_code=1 (SEGV_MAPERR), si_addr=0x00000005d85ad688", (11, "SEGV_MAPERR", 0x5D85AD688)),
        ("SIGSEGV (0xb)", "si_signo=11, si_errno=0, si_code=1, si_addr=0x00000008", (11, "SEGV_MAPERR", 8)),
        ("SIGSEGV (0xb)", "si_signo: 11 (SIGSEGV), si_code: 77", (11, "77", None)),
        ("EXCEPTION_ACCESS_VIOLATION (0xc0000005)", "ExceptionCode=0xc0000005, reading address 0x0000000000000048", (0xC0000005, "reading", 0x48)),
        ("EXCEPTION_ACCESS_VIOLATION (0xc0000005)", "EXCEPTION_ACCESS_VIOLATION (0xc0000005), writing address 0x0000000000000018", (0xC0000005, "writing", 24)),
    ],
)  # fmt: skip
def test_signals_have_number_code_and_address(signal, siginfo, expected):
    """The forms of JDK 5 to 25, Linux, macOS and Windows."""
    event = event_of(f"{FATAL}#  {signal} at pc=0x00007f011ab1ccd5, pid=42, tid=43\n", f"siginfo: {siginfo}\n\n")
    assert (event.kind, event.name, event.pc) == ("signal", signal.split()[0], 0x7F011AB1CCD5)
    assert (event.number, event.code, event.address) == expected


@pytest.mark.parametrize(
    "sender", ["si_pid: 31, si_uid: 1000", "sent from pid: 31 (uid: 1000)", "si_pid=31, si_uid=1000"]
)
def test_a_signal_that_was_sent_names_its_sender(sender):
    """`kill -SEGV` from a process: its PID and user, no address."""
    header = f"{FATAL}#  SIGSEGV (0xb) at pc=0x00007f011ab1ccd5 (sent by kill), pid=42, tid=0x00007f36\n"
    event = event_of(header, f"siginfo: si_signo: 11 (SIGSEGV), si_code: 0 (SI_USER), {sender}\n\n")
    assert (event.code, event.address, event.sender_pid, event.sender_uid) == ("SI_USER", None, 31, 1000)


def test_the_signal_of_the_safepoint_timeout_says_so():
    """-XX:+AbortVMOnSafepointTimeout kills the thread that does not stop."""
    header = f"{FATAL}#  SIGILL (0x4) at pc=0x00007f01 (sent by safepoint timeout handler), pid=42, tid=43\n"
    event = event_of(header)
    assert (event.name, event.pc, event.message) == ("SIGILL", 0x7F01, ("sent by safepoint timeout handler",))


@pytest.mark.parametrize(
    ("place", "message", "source"),
    [
        ("loopnode.hpp:628", "guarantee(n != NULL) failed: No Node.", "loopnode.hpp:628"),
        ("/build/src/hotspot/share/ci/ciEnv.hpp:172", "Error: ShouldNotReachHere()", "ciEnv.hpp:172"),
        ("./src/hotspot/os/windows/os_windows.cpp:33", "assert(false) failed: bad AD file", "os_windows.cpp:33"),
        (
            "D:\\jdk\\src\\sharedRuntime.cpp:833",
            "fatal error: exception happened outside interpreter",
            "sharedRuntime.cpp:833",
        ),
    ],
)
def test_a_failed_check_has_its_sentence_and_place(place, message, source):
    """The file of HotSpot without its directories."""
    event = event_of(f"{FATAL}#  Internal Error ({place}), pid=4252, tid=4263\n#  {message}\n")
    assert (event.kind, event.name, event.message, event.source) == ("internal", "Internal Error", (message,), source)


@pytest.mark.parametrize(
    ("said", "refused"),
    [
        ("Native memory allocation (mmap) failed to map 16384 bytes for committing reserved memory.", 16384),
        ("Native memory allocation (mmap) failed to map 65536 bytes. Error detail: committing reserved memory.", 65536),
        ("Native memory allocation (malloc) failed to allocate 32744 bytes for ChunkPool::allocate", 32744),
        ("Native memory allocation (mprotect) failed to protect 16384 bytes for memory to guard stack pages", 16384),
        ("Native memory allocation (mmap) failed to map 8589934592 bytes for Failed to commit area from 0x6 to 0x8 of length 8589934592.", 8589934592),
        ("Cannot create GC thread. Out of system resources.", None),
        ("Out of swap space to map in thread stack.", None),
        ("java.lang.OutOfMemoryError: requested 4092 bytes for jbyte in (…/prims/jni.cpp). Out of swap space?", 4092),
    ],
)  # fmt: skip
def test_refused_memory_has_its_size(said, refused):
    """The bytes of mmap, malloc and mprotect; the advice that follows is left out."""
    event = event_of(f"{MEMORY}# {said}\n{ADVICE}#  Out of Memory Error (os_linux.cpp:2759), pid=42, tid=43\n#\n")
    assert (event.kind, event.name, event.bytes_refused) == ("memory", "Out of Memory Error", refused)
    assert (event.message, event.source) == ((said,), "os_linux.cpp:2759")


@pytest.mark.parametrize("number", ["0xe0000000", "0xe0000001", "0xe0000002"])
def test_jdk_8_gives_failed_checks_numbers_of_no_signal(number):
    """`INVALID (0xe0000000)` of a product build: a check, or malloc or mmap that failed."""
    invalid = f"#  INVALID ({number}) at pc=0x0000000000000000, pid=7, tid=0x1103\n"
    event = event_of(f"{FATAL}{invalid}#  fatal error: OutOfMemory encountered: Java heap space\n")
    assert (event.kind, event.name, event.number) == ("java-heap", "OutOfMemory encountered: Java heap space", None)
    said = "Native memory allocation (mmap) failed to map 12288 bytes for committing reserved memory."
    event = event_of(f"{MEMORY}# {said}\n{ADVICE}{invalid}")
    assert (event.kind, event.bytes_refused) == ("memory", 12288)


def test_what_the_jvm_says_before_its_header_belongs_to_the_event():
    """A stack overflow in native code and the errno of mmap stand only in the program's output, before the header."""
    overflow = "An irrecoverable stack overflow has occurred.\n"
    report = parse(f"started\n{overflow}{FATAL}#  SIGSEGV (0xb) at pc=0x0, pid=1, tid=2\n{VERSIONS}", "out")
    assert report.event.message == (overflow.strip(),)
    assert report.is_in_output
    failed = (
        "OpenJDK 64-Bit Server VM warning: INFO: os::commit_memory(0x1, 16384, 0) failed; "
        "error='Not enough space' (errno=12)"
    )
    said = "Native memory allocation (mmap) failed to map 16384 bytes. Error detail: committing reserved memory."
    saved = "# An error report file with more information is saved as:\n# /srv/app/hs_err_pid7.log\n"
    report = parse(f"{failed}\n{MEMORY}# {said}\n{saved}", "out")
    assert report.event == report.event._replace(kind="memory", bytes_refused=16384, message=(said, failed))
    assert (report.report_file, report.pid, report.complete) == ("/srv/app/hs_err_pid7.log", None, False)


@pytest.mark.parametrize(
    ("version", "major"),
    [
        ("OpenJDK Runtime Environment (8.0_402-b06) (build 1.8.0_402-b06)", 8),
        (" (8.0_131-b12) (build )", 8),
        ("OpenJDK Runtime Environment (Zulu 8.70.0.23-CA-macos-aarch64) (8.0_372-b07) (build 1.8.0_372-b07)", 8),
        ("OpenJDK Runtime Environment 18.9 (11.0.9+11) (build 11.0.9+11-LTS)", 11),
        ("OpenJDK Runtime Environment Zulu17.42+20-SA (17.0.7+7) (build 17.0.7+7-LTS)", 17),
        ("OpenJDK Runtime Environment (Red_Hat-21.0.0.0.35-2) (21.0+35) (build 21+35-LTS)", 21),
        ("OpenJDK Runtime Environment (25+36) (build 25+36-3489)", 25),
        ("OpenJDK Runtime Environment (26.0) (fastdebug build 26-ea+10)", 26),
        ("6.0_30-b12", 6),
        ("7.0_21-b11", 7),
    ],
)
def test_the_release_is_read_from_every_vendors_version(version, major):
    """A vendor's own version before it is no release."""
    text = f"{FATAL}#  SIGSEGV (0xb) at pc=0x0, pid=1, tid=2\n#\n# JRE version: {version}\n# Problematic frame:\n# C  0x0\n"
    report = parse(text, "a file")
    assert (report.java_major, report.runtime) == (major, version.strip())


def test_reports_of_jdk_5_and_6():
    """Another sentence, no JRE version, the release in the line of the VM, registers of SPARC."""
    text = (
        "#\n# An unexpected error has been detected by HotSpot Virtual Machine:\n#\n"
        "#  SIGSEGV (0xb) at pc=0xfe9bb960, pid=20929, tid=17\n#\n"
        "# Java VM: Java HotSpot(TM) Server VM (1.5.0_01-b08 mixed mode)\n# Problematic frame:\n# V  [libjvm.so+0x1bb960]\n#\n\n"
        "---------------  T H R E A D  ---------------\n\n"
        'Current thread (0x01a770e0):  JavaThread "JiraQuartz-1" [_thread_in_vm, id=17]\n\n'
        "siginfo:si_signo=11, si_errno=0, si_code=1, si_addr=0x00000000\n\nRegisters:\n O0=0xf5999882 O1=0xf5999883\n\n"
    )
    report = parse(text, "a file")
    assert (report.java_major, report.pid, report.frame.library) == (5, 20929, "libjvm.so")
    assert (report.event.code, report.event.address, report.thread.tid) == ("SEGV_MAPERR", 0, 17)
    assert report.registers == {"O0": 0xF5999882, "O1": 0xF5999883}


@pytest.mark.parametrize(
    "core",
    [
        'Core dump will be written. Default location: Core dumps may be processed with "/usr/lib/systemd/systemd-coredump %P" (or dumping to /x/core.1)',
        'Failed to write core dump. Core dumps have been disabled. To enable core dumping, try "ulimit -c unlimited" before starting Java again',
        "Core dump written. Default location: /srv/app/core or core.42",
        "No core dump will be written. Minidumps are not enabled by default on client versions of Windows",
        "CreateCoredumpOnCrash turned off, no core file dumped",
    ],
)  # fmt: skip
def test_the_line_about_the_core_file_is_kept(core):
    """Written, refused, or turned off."""
    text = f"{FATAL}#  SIGSEGV (0xb) at pc=0x0, pid=1, tid=2\n{VERSIONS}# Problematic frame:\n# C  [libc.so.6+0x12]\n#\n# {core}\n#\n"
    assert parse(text, "a file").core == core


def test_the_header_before_a_report_is_not_a_second_crash():
    """-XX:+ErrorFileToStdout prints the header and then the report, which begins with it; two JVMs are two crashes."""
    header = f"{FATAL}#  SIGSEGV (0xb) at pc=0x00007f01, pid=42, tid=43\n{VERSIONS}#\n"
    thread = '\n---------------  T H R E A D  ---------------\n\nCurrent thread (0x01):  JavaThread "main" [_thread_in_vm, id=43]\n\n'
    report = f"{header}{thread}END.\n"
    assert [each.thread.name for each in parse_all(f"{header}{report}", "out")] == ["main"]
    other = report.replace("pid=42", "pid=99")
    assert [each.pid for each in parse_all(f"{report}{other}", "out")] == [42, 99]
    assert len(parse_all(report * 3, "out")) == 3  # a log that was written three times
