"""OpenJ9's javacores of a crash; those of other events are refused."""

from __future__ import annotations

import pytest

from opskit.errors import BadInput
from opskit.jvm.logs.crashes.report import parse

# After OpenJ9's documentation of the javadump and of its tags.
JAVACORE = """0SECTION       TITLE subcomponent dump routine
NULL           ===============================
1TICHARSET     UTF-8
1TISIGINFO     Dump Event "gpf" (00002000) received
1TIDATETIMEUTC Date: 2026/03/25 at 09:52:22:443 (UTC)
1TIDATETIME    Date: 2026/03/25 at 10:52:22:443
1TITIMEZONE    Timezone: CET (CET)
1TINANOTIME    System nanotime: 5090250000000
0SECTION       GPINFO subcomponent dump routine
2XHOSLEVEL     OS Level         : Linux 6.1.0
3XHNUMCPUS       How Many       : 4
1XHEXCPCODE    J9Generic_Signal_Number: 00000018
1XHEXCPCODE    Signal_Number: 0000000B
1XHEXCPCODE    Error_Value: 00000000
1XHEXCPCODE    Signal_Code: 00000002
1XHEXCPCODE    InaccessibleAddress: 0000FFFF98A70010
1XHEXCPMODULE  Module: /opt/acme/lib/libacme-codec.so
1XHEXCPMODULE  Module_base_address: 0000FFFF98A70000
2XHREGISTER      R0: 000000000000002A
2XHREGISTER      PC: 0000FFFF98A7FB6C
0SECTION       ENVINFO subcomponent dump routine
1CIJAVAVERSION JRE 11 Linux aarch64-64 (build 11.0.28+6)
1CIJ9VMTAG     openj9-0.53.0
1CICONTINFO    Running in container : TRUE
1CISTARTNANO   JVM start nanotime: 5088750000000
1CIPROCESSID   Process ID: 38 (0x26)
1CICMDLINE     java -Dapi.token=s3cr3t -jar shop.jar --password hunter2
1CIJAVAHOMEDIR Java Home Dir:   /opt/java
1CIUSERARGS    UserArgs:
2CIUSERARG               -Xmx64m
2CIUSERARG               -Dapi.token=s3cr3t
2CIUSERLIMIT   RLIMIT_NOFILE                      1048576              2097152
2CIENVVAR      PATH=/usr/bin
2CIENVVAR      DB_PASSWORD=hunter2
3CICGRPINFO        Memory Limit : 536870912 bytes
3CICGRPINFO        Memory Usage : 218484736 bytes
3CICGRPINFO        CPU Quota : 150000 microseconds
3CICGRPINFO        CPU Period : 100000 microseconds
0SECTION       MEMINFO subcomponent dump routine
1STHEAPTOTAL   Total memory:                       8388608 (0x0000000000800000)
1STHEAPINUSE   Total memory in use:                2104008 (0x0000000000201AC8)
1STSEGTOTAL    Total memory:                         1002304 (0x00000000000F4B40)
0SECTION       THREADS subcomponent dump routine
1XMCURTHDINFO  Current thread
3XMTHREADINFO      "order "7"" J9VMThread:0x000000000001BF00, omrthread_t:0x0000FFFF94006B88, java/lang/Thread:0x1, state:R, prio=5
3XMTHREADINFO1            (native thread ID:0x27, native priority:0x5, native policy:UNKNOWN, vmstate:CW, vm thread flags:0x20)
3XMTHREADINFO2            (native stack address range from:0x0000FFFF9908E000, to:0x0000FFFF990CE000, size:0x40000)
3XMTHREADINFO3           Java callstack:
4XESTACKTRACE                at com/acme/shop/Codec.parse(Native Method)
4XESTACKTRACE                at com/acme/shop/Order.read(Order.java:42(Compiled Code))
3XMTHREADINFO3           Native callstack:
4XENATIVESTACK                (0x0000FFFF98A10000 [libj9prt29.so+0x241d4])
4XENATIVESTACK               parse_header+0x1c (0x0000FFFF98A7FB6C [libacme-codec.so+0xfb6c])
4XENATIVESTACK               0x0000FFFF9848982C
1XMTHDINFO     Thread Details
3XMTHREADINFO      "other" J9VMThread:0x0000000000021B00, state:CW, prio=5
4XESTACKTRACE                at java/lang/Object.wait(Native Method)
NULL           ---------------------- END OF DUMP -------------------------------------
"""


def test_a_javacore_of_a_crash():
    """Signal, code, address, the frame in the module that it names, the current thread and its stacks."""
    report = parse(JAVACORE, "javacore.txt")
    event, frame, thread = report.event, report.frame, report.thread
    assert (report.dialect, report.java_major, report.pid, report.vm) == ("openj9", 11, 38, "openj9-0.53.0")
    assert (event.kind, event.name, event.number, event.code) == ("signal", "SIGSEGV", 11, "SEGV_ACCERR")
    assert (event.address, event.pc) == (0xFFFF98A70010, 0xFFFF98A7FB6C)
    assert (frame.library, frame.name, frame.offset, frame.library_offset) == (
        "libacme-codec.so",
        "parse_header",
        0x1C,
        0xFB6C,
    )
    assert (thread.kind, thread.name, thread.state, thread.tid) == ("JavaThread", 'order "7"', "R", 0x27)
    assert (thread.stack_low, thread.stack_high) == (0xFFFF9908E000, 0xFFFF990CE000)
    assert [(each.kind, each.name) for each in report.java_frames] == [
        ("j", "com.acme.shop.Codec.parse"), ("J", "com.acme.shop.Order.read"),
    ]  # fmt: skip
    assert [each.library for each in report.native_frames] == ["libacme-codec.so", None]  # without the signal handler's


def test_the_frames_of_the_signal_handler_are_no_cause():
    """Where the stack does not reach the crash, only the frame that the file names is left."""
    report = parse(
        JAVACORE.replace("(0x0000FFFF98A7FB6C [libacme-codec.so+0xfb6c])", "(0x01 [libj9prt29.so+0x1])"), "javacore.txt"
    )
    assert report.native_frames == (report.frame,)
    assert (report.frame.library, report.frame.offset) == ("libacme-codec.so", 0xFB6C)


@pytest.mark.parametrize(
    "mark", ["               __kernel_rt_sigreturn+0x0 (0xB7747410)", "               (0x01 [libj9dmp29.so+0x1])"]
)
def test_without_the_module_the_signal_handler_is_not_to_blame(mark):
    """Its frames end with the return of the signal; some releases print none."""
    text = JAVACORE.replace("1XHEXCPMODULE  Module:", "1XHEXCPMODULE  Unknown:").replace(
        "2XHREGISTER      PC:", "2XHREGISTER      X:"
    )
    text = text.replace(
        "4XENATIVESTACK               parse_header", f"4XENATIVESTACK{mark}\n4XENATIVESTACK               parse_header"
    )
    report = parse(text, "javacore.txt")
    assert (report.frame.library, report.frame.name) == ("libacme-codec.so", "parse_header")


def test_a_javacore_has_the_machine_and_its_limits():
    """The container's limits, the heap, the time since the start."""
    report = parse(JAVACORE, "javacore.txt")
    machine = report.machine
    assert report.uptime_s == 1.5
    assert report.at == "2026/03/25 at 10:52:22:443 CET (CET)"
    assert (machine.container_memory_bytes, machine.container_used_bytes, machine.container_cpus) == (
        512 << 20,
        218484736,
        "1.5",
    )
    assert (machine.cpus, machine.limits) == (4, {"NOFILE": "1048576/2097152"})
    assert (report.heap.used_bytes, report.heap.committed_bytes) == (2104008, 8 << 20)
    assert report.environment == {"PATH": "/usr/bin", "DB_PASSWORD": "hunter2"}
    assert report.complete
    assert not parse(JAVACORE[:-200], "javacore.txt").complete


def test_an_abort_is_a_signal_and_a_dump_without_one_is_an_error():
    """The event `abort` is SIGABRT; some releases write no registers."""
    aborted = parse(
        '0SECTION       TITLE x\n1TISIGINFO     Dump Event "abort" (00000020) received\n1XHEXCPCODE    Signal_Number: 00000006\n',
        "f",
    )
    assert (aborted.event.kind, aborted.event.name, aborted.event.number) == ("signal", "SIGABRT", 6)
    bare = parse('0SECTION       TITLE x\n1TISIGINFO     Dump Event "gpf" (00002000) received\n', "f")
    assert (bare.event.kind, bare.event.name, bare.frame) == ("error", 'Dump Event "gpf"', None)


@pytest.mark.parametrize(
    ("event", "said"),
    [
        ('"user" (00004000) received', 'the event "user"'),
        ('"systhrow" (00040000) Detail "java/lang/OutOfMemoryError" received', 'the event "systhrow" (java/lang/OutOfMemoryError)'),
    ],
)  # fmt: skip
def test_a_javacore_of_another_event_is_refused(event, said):
    """A JVM that was asked for a dump, or that threw an OutOfMemoryError, did not crash."""
    with pytest.raises(BadInput, match="opskit jpmp") as refused:
        parse(f"0SECTION       TITLE x\n1TISIGINFO     Dump Event {event}\n", "javacore.txt")
    assert said in str(refused.value)
