"""Every dialect of thread dump gives the same records, whole or cut, alone or beside another one."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from eachof import each_of
from hypothesis import given, settings
from hypothesis import strategies as st

from opskit.errors import BadInput
from opskit.jvm.dumps.dialects import DumpReader
from opskit.jvm.dumps.thread_dump import Lock, Waits

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "thread-dumps"

JAVACORE = """\
0SECTION       TITLE subcomponent dump routine
1TIDATETIME    Date: 2024/10/02 at 12:28:23:001
0SECTION       ENVINFO subcomponent dump routine
1CIJAVAVERSION JRE 21 Linux amd64-64 (build 21.0.4+7-LTS)
0SECTION       LOCKS subcomponent dump routine
1LKDEADLOCK    Deadlock detected !!!
NULL           ---------------------
2LKDEADLOCKTHR  Thread "A "quoted" one" (0x0000000000061100)
3LKDEADLOCKWTR    is waiting for:
4LKDEADLOCKMON      sys_mon_t:0x0000000000061248 infl_mon_t: 0x0000000000061288:
4LKDEADLOCKOBJ      java/lang/Object@0x00000000FFF3B6D0
3LKDEADLOCKOWN    which is owned by:
2LKDEADLOCKTHR  Thread "B" (0x0000000000061200)
3LKDEADLOCKWTR    which is waiting for:
4LKDEADLOCKOBJ      com/example/Lock@0x00000000FFF3B6E0
3LKDEADLOCKOWN    which is owned by:
2LKDEADLOCKTHR  Thread "A "quoted" one" (0x0000000000061100)
0SECTION       THREADS subcomponent dump routine
1XMTHDINFO     Thread Details
NULL
3XMTHREADINFO      "A "quoted" one" J9VMThread:0x0000000000061100, omrthread_t:0x1, java/lang/Thread:0x2, state:B, prio=5
3XMJAVALTHREAD            (java/lang/Thread getId:0x1F, isDaemon:false)
3XMTHREADINFO1            (native thread ID:0x379C, native priority:0x5, native policy:UNKNOWN, vmstate:B, vm thread flags:0x1)
3XMCPUTIME               CPU usage total: 0.046875000 secs, user: 0.015625000 secs, system: 0.031250000 secs
3XMTHREADBLOCK     Blocked on: java/lang/Object@0x00000000FFF3B6D0 Owned by: "B" (J9VMThread:0x61200, java/lang/Thread:0x3)
3XMTHREADINFO3           Java callstack:
4XESTACKTRACE                at com/example/A.inner(A.java:20(Compiled Code))
4XESTACKTRACE                at com/example/A$$Lambda/0x00000000A.run(Unknown Source)
5XESTACKTRACE                   (entered lock: com/example/Lock@0x00000000FFF3B6E0, entry count: 1)
3XMTHREADINFO3           Native callstack:
4XENATIVESTACK               pthread_cond_wait+0x1 (0x00007F)
NULL
3XMTHREADINFO      Anonymous native thread
3XMTHREADINFO1            (native thread ID:0x5B64, native priority: 0x0, native policy:UNKNOWN)
NULL
3XMTHREADINFO      "old" (TID:0x2BDE718, sys_thread_t:0x10DD9048, state:CW, native ID:0xCD0) prio=5
4XESTACKTRACE          at java.lang.Thread.sleep(Native Method)
4XESTACKTRACE          at java.lang.Thread.run(Thread.java:570)
NULL           ------------------------------------------------------------------------
0SECTION       CLASSES subcomponent dump routine
NULL           ---------------------- END OF DUMP -------------------------------------
"""

JROCKIT = """
===== FULL THREAD DUMP ===============
Wed Aug 17 12:05:14 2005
BEA JRockit(R) R25.2.0-28

"Main" id=1 idx=0x2 tid=5428 prio=5 alive, in native, daemon

"one" id=10 idx=0x14 tid=5628 prio=5 alive, in native, blocked
    -- Blocked trying to get lock: java/lang/Object@0x0095C8D0[thin lock]
    at jrockit/vm/Threads.shortNap(I)V(Native Method)
    at com/example/A.run()V(A.java:25)
    ^-- Holding lock: java/lang/Object@0x0095C8C8[thin lock]
    at jrockit/vm/RNI.c2java()V(Native Method)
    -- end of trace

"two" id=11 idx=0x16 tid=3264 prio=5 alive, sleeping, native_waiting
    at java/lang/Thread.sleep(J)V(Native Method)
    -- end of trace

Circular (deadlocked) lock chains
=================================
Chain 2:
"one" id=10 idx=0x14 tid=5628 waiting for java/lang/Object@0x0095C8D0 held by:
"two" id=11 idx=0x16 tid=3264 waiting for java/lang/Object@0x0095C8C8 held by:
"one" id=10 idx=0x14 tid=5628

===== END OF THREAD DUMP ===============
"""

# WebLogic 8.1's: JDK 1.4.1, 1.4.2, and the server's own command.
JROCKIT_141 = """
===== FULL THREAD DUMP ===============
Thu Mar 04 01:55:11 2004

"main"  id: 0x0x00000080  prio: 5  WAITING, NONDAEMON, GCABLE
    thread: 0x03152A40  lastj: 0x7FF70EC0
    pt_thr: 0x00000678
    at java.lang.Thread.sleep(Native Method)@116C0A68
    at com.example.Main.main(Main.java:145)@19761A01
    --- End of stack trace

"work"  id: 0x0x00000100  prio: 5  ACTIVE, DAEMON, GCABLE
    thread: 0x031533F8  lastj: 0x7FF50EC0
    pt_thr: 0x0000060C
    at com.example.Work.run(Unknown Source)@116C0A68
    --- End of stack trace

"Finalizer"  id: 0x00000180  prio: 8  WAITING, DAEMON, GCABLE
    thread: 0x01F75890  lastj: 0xFFFFFFFC  pt_thr: 0x000003E4
    No Java stack trace available

"""
JROCKIT_142 = """
===== FULL THREAD DUMP ===============
Wed Aug 17 00:45:54 2005

"Main Thread" prio=5 id=0x80 tid=0x104c active, daemon

"one" prio=8 id=0x380 pid=13191 active, daemon
    -- Blocked trying to get lock: java/lang/Object@0x015F10C0[thin lock]
    at jrockit/vm/Threads.waitForSignal(Native Method)@0x00CCC620
    at com/example/A.run(A.java:25)@0x00CCC541
    ^-- Holding lock: java/lang/Object@0x015F10B8[thin lock]
    --- End of stack trace

"two" prio=10 id=0x400 tid=0x4e8 waiting for pending references, daemon
    at java/lang/ref/Reference.getPending(Native Method)@0x00CE3BD0
    --- End of stack trace

Circular (deadlocked) lock chains
=================================
Chain 1:
"one" (id: 0x00000380) waiting for java/lang/Object@0x015F10C0 held by:
"two" (id: 0x00000400) waiting for java/lang/Object@0x015F10B8 held by:
"one" (id: 0x00000380)

Blocked lock chains
===================
Chain 2:
"three" (id: 0x00000500) waiting for java/lang/Object@0x015F10C0 held by:
"one" (id: 0x00000380) in chain 1

===== END OF THREAD DUMP ===============
"""
JROCKIT_WEBLOGIC = """
===== FULL THREAD DUMP ===============
Thu May 04 22:00:33 JST 2006

Thread-1 "Main Thread" <alive, in native, waiting, priority=5> {
    -- Waiting for notification on: com/example/Server@1349b30[fat lock]
    jrockit/vm/Threads.waitForSignal()V(Native Method)
    com/example/Server.await([Ljava/lang/String;)V(Server.java:1208)
    ^-- Lock released while waiting: com/example/Server@1349b30[fat lock]
}


Thread-0x100 "(Signal Handler)" <Active, priority=5, DAEMON> {
}


Thread-0x180 "work" <Active, priority=5, DAEMON> {
    com.example.Work.run()V(Work.java:???)
}

"""

AGENT = """\
Attaching to process ID 31781, please wait...
Debugger attached successfully.
JVM version is 25.144-b01
Thread 3987: (state = BLOCKED)
 - java.lang.Object.wait(long) @bci=0 (Interpreted frame)
 - com.example.A.run() @bci=44, line=116 (Compiled frame)


Thread 3988: (state = IN_NATIVE)
 - java.net.SocketInputStream.socketRead0(java.io.FileDescriptor, byte[], int, int, int) @bci=0 (Compiled frame)


Thread 3989: (state = BLOCKED)
 - com.example.A.enter() @bci=7, line=38 (Interpreted frame)

"""

ACTUATOR = """\
HTTP/1.1 200
Content-Type: application/json
Date: Wed, 15 Sep 2021 01:03:52 GMT

{"threads":[{"threadName":"exec-1","threadId":12,"lockName":"java.lang.Object@2f407ecb","lockOwnerId":13,
"lockOwnerName":"exec-2","daemon":true,"threadState":"BLOCKED","stackTrace":[{"classLoaderName":null,
"moduleName":"java.base","moduleVersion":"17","methodName":"read","fileName":"A.java","lineNumber":5,
"nativeMethod":false,"className":"com.example.A"},{"methodName":"run","fileName":null,"lineNumber":-1,
"nativeMethod":false,"className":"com.example.B"}],"lockedMonitors":[{"className":"java.lang.String",
"identityHashCode":255,"lockedStackDepth":1}],"lockedSynchronizers":[],"lockInfo":null},
{"threadName":"exec-2","threadId":13,"threadState":"RUNNABLE","stackTrace":[],"lockedMonitors":[],"lockedSynchronizers":[]}]}
"""

HOTSPOT = """\
2026-11-21 11:04:04
Full thread dump OpenJDK 64-Bit Server VM (17.0.15+6 mixed mode, sharing):

"main" #1 prio=5 os_prio=0 cpu=102.50ms elapsed=9.86s tid=0x00007f nid=0x1f4b runnable  [0x1]
   java.lang.Thread.State: RUNNABLE
\tat com.example.Main.main(Main.java:10)

JNI global refs: 26, weak refs: 0

"""

WHOLE = {
    "javacore": JAVACORE,
    "JRockit": JROCKIT,
    "JRockit of JDK 1.4.1": JROCKIT_141,
    "JRockit of JDK 1.4.2": JROCKIT_142,
    "JRockit of WebLogic": JROCKIT_WEBLOGIC,
    "jstack -F": AGENT,
    "actuator JSON": ACTUATOR,
    "HotSpot": HOTSPOT,
    **{
        f"{name} {path.name}": path.read_text(encoding="utf-8")
        for name, path in (
            ("Thread.dump_to_file", FIXTURES / "jdk25-dump-to-file.txt"),
            ("Thread.dump_to_file", FIXTURES / "jdk21-dump-to-file.txt"),
            ("Thread.dump_to_file JSON", FIXTURES / "jdk25-dump-to-file.json"),
            ("Thread.dump_to_file JSON", FIXTURES / "jdk21-dump-to-file.json"),
            ("jstack -F", FIXTURES / "jdk17-jhsdb-jstack.txt"),
            ("jstack -F", FIXTURES / "jdk17-jhsdb-jstack-mixed.txt"),
        )
    },
}


def read(text):
    data = text if isinstance(text, bytes) else text.encode("utf-8", "surrogateescape")
    return DumpReader("locks").read(data, "x.txt")


def stacks(dumps):
    """(thread's name, its frames) with how often each is there."""
    return Counter(
        (thread.name, thread.stack.frames) for dump in dumps for thread in dump.threads if thread.stack.frames
    )


def test_javacore():
    """Names with quotes, ids, CPU, states, locks with their owner, the old form beside the new, and the deadlock."""
    [dump] = read(JAVACORE)
    assert (dump.dialect, dump.time, dump.cut_off) == ("javacore", "2024/10/02 at 12:28:23:001", False)
    assert dump.version == "JRE 21 Linux amd64-64 (build 21.0.4+7-LTS)"
    first, native, old = dump.threads
    assert (first.name, first.native_id, first.java_id, first.daemon) == ('A "quoted" one', 0x379C, 31, False)
    assert (first.cpu_ms, first.elapsed_s, first.stack.state) == (46.875, None, "BLOCKED")
    assert first.stack.frames == (
        "com.example.A.inner(A.java:20)",
        "com.example.A$$Lambda/0x00000000A.run(Unknown Source)",
    )
    assert first.locks == (
        Lock("waiting to lock", "0x00000000fff3b6d0", "java.lang.Object", 0, "B"),
        Lock("locked", "0x00000000fff3b6e0", "com.example.Lock", 1),
    )
    assert (native.name, native.native_id, native.stack.frames) == ("Anonymous native thread", 0x5B64, ())
    assert (old.name, old.native_id, old.java_id, old.stack.state) == ("old", 0xCD0, None, "TIMED_WAITING")
    assert old.stack.frames == ("java.lang.Thread.sleep(Native Method)", "java.lang.Thread.run(Thread.java:570)")
    assert dump.deadlocks == (
        (
            Waits('A "quoted" one', "java.lang.Object", "0x00000000fff3b6d0", "B"),
            Waits("B", "com.example.Lock", "0x00000000fff3b6e0", 'A "quoted" one'),
        ),
    )


def test_a_javacore_of_131_has_no_sections():
    """It begins with its threads, and has one blank after each tag."""
    text = (
        "1XMTHDINFO Thread Info\nNULL -----------\nNULL\n"
        "2XMFULLTHDDUMP Full thread dump Classic VM (J2RE 1.3.1 IBM Windows 32, native threads):\n"
        '3XMTHREADINFO "Finalizer" (TID:0x101B4100, sys_thread_t:0x998610,state:CW, native ID:0x94) prio=8\n'
        "4XESTACKTRACE at java.lang.Object.wait(Native Method)\n"
        '3XMTHREADINFO "main" (TID:0x101B4190, sys_thread_t:0x3D4FD8, state:R, native ID:0x1F4) prio=5\n'
        "4XESTACKTRACE at com.example.Main.main(Main.java:10)\n"
    )
    [dump] = read(text)
    assert (dump.version, dump.cut_off) == ("Classic VM (J2RE 1.3.1 IBM Windows 32, native threads)", False)
    assert [(thread.name, thread.stack.state, len(thread.stack.frames)) for thread in dump.threads] == [
        ("Finalizer", "WAITING", 1),
        ("main", "RUNNABLE", 1),
    ]
    [cut] = read(text[:-5])
    assert (cut.cut_off, [thread.name for thread in cut.threads]) == (True, ["Finalizer"])


def test_a_javacore_without_threads_says_so():
    """A clear line, not an empty answer."""
    with pytest.raises(BadInput, match=r"x\.txt: a javacore without threads"):
        read(JAVACORE[: JAVACORE.index("0SECTION       THREADS")])


def test_jrockit():
    """Descriptors go, states come from the words, the chain is a deadlock."""
    [dump] = read(JROCKIT)
    assert (dump.dialect, dump.time, dump.version) == (
        "JRockit",
        "Wed Aug 17 12:05:14 2005",
        "BEA JRockit(R) R25.2.0-28",
    )
    main, one, two = dump.threads
    assert (main.name, main.stack.frames, main.daemon) == ("Main", (), True)
    assert one.stack.frames[1] == "com.example.A.run(A.java:25)"
    assert (one.stack.state, one.native_id, one.java_id) == ("BLOCKED", 5628, 10)
    assert one.locks[0] == Lock("waiting to lock", "0x0095c8d0", "java.lang.Object", 0)
    assert one.locks[1] == Lock("locked", "0x0095c8c8", "java.lang.Object", 1)
    assert two.stack.state == "TIMED_WAITING"
    assert dump.deadlocks == (
        (Waits("one", "java.lang.Object", "0x0095c8d0", "two"), Waits("two", "java.lang.Object", "0x0095c8c8", "one")),
    )


def test_jrockit_of_jdk_14():
    """Three other headers, addresses after frames or no `at` before them; lines after the last thread do not belong to it."""
    [dump] = read(JROCKIT_141 + "java.lang.Error: later\n\tat com.example.Later.on(Later.java:1)\n")
    main, work, finalizer = dump.threads
    assert main.stack.frames == ("java.lang.Thread.sleep(Native Method)", "com.example.Main.main(Main.java:145)")
    assert (main.name, main.native_id, main.daemon, main.stack.state) == ("main", 0x678, False, "TIMED_WAITING")
    assert (work.stack.frames, work.stack.state) == (("com.example.Work.run(Unknown Source)",), "RUNNABLE")
    assert (finalizer.stack.frames, finalizer.native_id, dump.cut_off) == ((), 0x3E4, False)
    [dump] = read(JROCKIT_142)
    assert [thread.native_id for thread in dump.threads] == [0x104C, 13191, 0x4E8]
    assert [thread.stack.state for thread in dump.threads] == [None, "BLOCKED", "WAITING"]
    assert dump.threads[1].stack.frames[1] == "com.example.A.run(A.java:25)"
    assert dump.deadlocks == (
        (Waits("one", "java.lang.Object", "0x015f10c0", "two"), Waits("two", "java.lang.Object", "0x015f10b8", "one")),
    )
    [dump] = read(JROCKIT_WEBLOGIC)
    main, signals, work = dump.threads
    assert main.stack.frames[1] == "com.example.Server.await(Server.java:1208)"
    assert (main.java_id, main.daemon, main.stack.state) == (1, False, "WAITING")
    assert (signals.name, signals.daemon, signals.stack.frames) == ("(Signal Handler)", True, ())
    assert (work.stack.state, dump.cut_off) == ("RUNNABLE", False)


def test_a_frame_that_a_console_broke_in_two():
    """Its method is on the first of the two lines."""
    broken = JROCKIT.replace("run()V(A.java:25)", "run(Ljava/lang/Object;)V(A.ja\nva:25)")
    assert read(broken)[0].threads[1].stack.frames[1] == "com.example.A.run(Unknown Source)"


def test_the_serviceability_agent():
    """No names before JDK 9; its BLOCKED is any waiting thread, so the leaf frame decides the state."""
    [dump] = read(AGENT)
    assert (dump.dialect, dump.version) == ("jstack -F", "25.144-b01")
    assert [thread.name for thread in dump.threads] == [None] * 3
    assert [thread.native_id for thread in dump.threads] == [3987, 3988, 3989]
    assert [thread.stack.state for thread in dump.threads] == ["WAITING", "RUNNABLE", "BLOCKED"]
    assert dump.threads[0].stack.frames == ("java.lang.Object.wait(Unknown Source)", "com.example.A.run(line 116)")


def test_the_serviceability_agent_of_today():
    """Names and states of JDK 9 and later; with --mixed, native frames between Java's."""
    [dump] = read(WHOLE["jstack -F jdk17-jhsdb-jstack.txt"])
    spin = next(thread for thread in dump.threads if thread.name == "spin")
    assert spin.stack.frames[0] == "T.lambda$main$0(line 1)"
    assert spin.stack.frames[1].startswith("T$$Lambda$1/0x")
    assert (spin.java_id, spin.native_id, spin.stack.state) == (12, 0x46A6, "RUNNABLE")
    assert spin.locks == (Lock("locked", "0x000000069ec190e0", "java.lang.Object", 0),)
    [mixed] = read(WHOLE["jstack -F jdk17-jhsdb-jstack-mixed.txt"])
    spin = next(thread for thread in mixed.threads if thread.name == "spin")
    assert spin.stack.frames[0] == "T.lambda$main$0(line 1)"
    assert "thread_native_entry(Thread*)" in spin.stack.frames
    assert next(thread for thread in mixed.threads if thread.name == 'blk"x').stack.state == "BLOCKED"


def test_actuator_json_behind_http_headers():
    """Frames as HotSpot writes them; the lock's owner; monitors with their depth."""
    [dump] = read(ACTUATOR)
    assert (dump.dialect, dump.time, dump.cut_off) == ("actuator JSON", "Wed, 15 Sep 2021 01:03:52 GMT", False)
    first, second = dump.threads
    assert first.stack.frames == ("com.example.A.read(java.base@17/A.java:5)", "com.example.B.run(Unknown Source)")
    assert (first.name, first.java_id, first.daemon, first.stack.state) == ("exec-1", 12, True, "BLOCKED")
    assert first.locks == (
        Lock("waiting to lock", "2f407ecb", "java.lang.Object", 0, "exec-2"),
        Lock("locked", "ff", "java.lang.String", 1),
    )
    assert (second.stack.frames, second.daemon) == ((), None)


def test_dump_to_file_of_25_tells_virtual_threads_states_and_locks():
    """Plain and JSON say the same of the deadlocked pair of virtual threads."""
    for name in ("Thread.dump_to_file jdk25-dump-to-file.txt", "Thread.dump_to_file JSON jdk25-dump-to-file.json"):
        [dump] = read(WHOLE[name])
        assert dump.dialect == name.rpartition(" ")[0]
        assert dump.version == "25.0.2+10-LTS"
        by_name = {thread.name: thread for thread in dump.threads}
        one, two = by_name["vd1"], by_name["vd2"]
        assert (one.virtual, one.stack.state, by_name["main"].virtual) == (True, "BLOCKED", False)
        wants = {lock.address for lock in one.locks if lock.action == "waiting to lock"}
        holds = {lock.address for lock in two.locks if lock.action == "locked"}
        assert wants
        assert wants == holds
        assert by_name['spin "q" <x>'].virtual
        assert sum(thread.virtual for thread in dump.threads) == 6


def test_dump_to_file_of_21_knows_virtual_threads_by_their_stack():
    """Its JSON has no `virtual` key; the plain form has the word."""
    for name in ("Thread.dump_to_file jdk21-dump-to-file.txt", "Thread.dump_to_file JSON jdk21-dump-to-file.json"):
        [dump] = read(WHOLE[name])
        by_name = {thread.name: thread for thread in dump.threads}
        assert by_name['spin "q" <x>'].virtual
        assert not by_name["main"].virtual
        assert by_name["main"].stack.state is None


def test_a_thread_named_like_the_head_of_a_hotspot_dump():
    """The JSON is read as JSON, whatever the names in it."""
    text = WHOLE["Thread.dump_to_file JSON jdk25-dump-to-file.json"].replace('"vd1"', '"Full thread dump X (1)"')
    [dump] = read(text)
    assert (dump.dialect, dump.cut_off) == ("Thread.dump_to_file JSON", False)
    assert "Full thread dump X (1)" in {thread.name for thread in dump.threads}


def test_threads_of_a_container_keep_its_name():
    """JSON groups threads by their executor or scope."""
    [dump] = read(WHOLE["Thread.dump_to_file JSON jdk25-dump-to-file.json"])
    containers = Counter(thread.container.partition("@")[0] for thread in dump.threads)
    assert containers["java.util.concurrent.ThreadPerTaskExecutor"] == 3
    assert containers["<root>"] == 14


# Threads as people paste them into a report: nothing of the dump around them.
PASTED = {
    "javacore": JAVACORE[
        JAVACORE.index('3XMTHREADINFO      "A') : JAVACORE.index("NULL           ----------------------------------")
    ],
    "JRockit": JROCKIT[JROCKIT.index('"Main" id=1') : JROCKIT.index("Circular")].rstrip("\n"),
    "jstack -F": AGENT[AGENT.index("Thread 3987") :],
    "Thread.dump_to_file": '#34 "" virtual\n      Spin.run(Spin.java:3)\n      java.base/java.lang.VirtualThread.run(V.java:9)\n',
}


@pytest.mark.parametrize("name", PASTED)
@pytest.mark.parametrize("prefix", ["", "> ", "2026-11-21 11:04:04,123 INFO  [main] - "])
def test_threads_without_a_head_are_read_as_what_they_are(name, prefix):
    """A few threads of a dump, quoted or from a log."""
    threads = WHOLE.get(name, "1\n2026-11-21T11:04:04Z\n25\n\n" + PASTED[name] + "\n")
    text = "".join(f"{prefix}{line}\n" for line in PASTED[name].split("\n"))
    [dump] = read("this is what hangs:\n" + text)
    assert dump.dialect == name
    assert stacks([dump]) == stacks(read(threads))
    assert (dump.time, dump.version, dump.cut_off) == (None, None, False)


def test_json_with_sorted_keys():
    """Some writers sort a thread's keys; the whole threads of a cut-off file are read too."""
    _, _, body = ACTUATOR.partition("\n\n")
    text = json.dumps(json.loads(body), sort_keys=True)
    [dump], [other] = read(text), read(ACTUATOR)
    assert stacks([dump]) == stacks([other])
    [cut] = read(text[:-30])
    assert (cut.cut_off, [thread.name for thread in cut.threads]) == (True, ["exec-1"])


# What the JVM prints to a file or to its output, that ends up in mail and logs.
@each_of("name", [name for name in WHOLE if "JSON" not in name])
@each_of(
    "prefix",
    [
        "> ",
        "app-1  | ",
        "2026-11-21T11:04:{:02d}.{:03d}Z stdout F ",
        "Nov {:2d} 11:04:04 host java[4242]: ",
        "{:d}:",
        "{:6d}\t",
    ],
)
def test_every_dialect_is_read_behind_a_prefix(name, prefix):
    """A mail, compose, Kubernetes, the journal, numbered lines."""
    lines = WHOLE[name].split("\n")
    text = "".join(prefix.format(n % 28 + 1, n % 28 + 1) + line + "\n" for n, line in enumerate(lines))
    assert stacks(read(text)) == stacks(read(WHOLE[name]))


@pytest.mark.parametrize("name", WHOLE)
def test_blanks_at_the_ends_of_lines_are_nothing(name):
    """Text copied from a terminal has them."""
    padded = "".join(f"{line:80}   \n" for line in WHOLE[name].splitlines())
    assert stacks(read(padded)) == stacks(read(WHOLE[name]))


@pytest.mark.parametrize("name", [name for name in WHOLE if not name.startswith("Thread.dump_to_file")])
def test_double_spaced_dumps_are_read(name):
    """A blank line after every line, as mail and web forms make of Windows line ends."""
    assert stacks(read(WHOLE[name].replace("\n", "\n\n"))) == stacks(read(WHOLE[name]))


@each_of("first", WHOLE)
@each_of("second", WHOLE)
def test_two_dialects_in_one_file_are_each_read_by_their_own(first, second):
    """Together they give the same as each by itself."""
    alone = stacks(read(WHOLE[first])) + stacks(read(WHOLE[second]))
    together = read(WHOLE[first].rstrip("\n") + "\n\n" + WHOLE[second])
    assert stacks(together) == alone
    assert [dump.dialect for dump in together] == [read(WHOLE[name])[0].dialect for name in (first, second)]


@pytest.mark.parametrize("name", WHOLE)
def test_windows_line_ends_and_utf16_read_the_same(name):
    """As PowerShell redirects them."""
    text = WHOLE[name]
    expected = stacks(read(text))
    assert stacks(read(text.replace("\n", "\r\n").encode())) == expected
    assert stacks(read(b"\xff\xfe" + text.replace("\n", "\r\n").encode("utf-16-le"))) == expected


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_cut_at_any_byte_there_is_never_a_stack_that_was_not_there(data):
    """No traceback, no stack that the whole dump does not have, and no shortened stack."""
    name = data.draw(st.sampled_from(sorted(WHOLE)))
    whole = WHOLE[name].encode()
    cut = data.draw(st.integers(0, len(whole)))
    known = stacks(read(whole))
    try:
        dumps = read(whole[:cut])
    except BadInput:
        return
    extra = stacks(dumps) - known
    assert not extra, f"{name} cut at {cut}: {extra}"


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_corrupted_bytes_are_bad_input_or_a_dump(data):
    """Bytes that are overwritten, inserted or removed give BadInput or records."""
    name = data.draw(st.sampled_from(sorted(WHOLE)))
    text = bytearray(WHOLE[name].encode())
    for _ in range(data.draw(st.integers(1, 8))):
        at = data.draw(st.integers(0, len(text) - 1))
        end = min(len(text), at + data.draw(st.integers(0, 40)))
        text[at:end] = data.draw(st.binary(max_size=20))
    try:
        dumps = read(bytes(text))
    except BadInput:
        return
    for dump in dumps:
        for thread in dump.threads:
            assert all(isinstance(frame, str) for frame in thread.stack.frames)


# Rough counts of a regular expression; where ours differ, the reason stands beside it.
REAL = {
    "hpux-jdk1.x-no-version-3dumps.txt": (3, 225, "HotSpot"),
    "ibm-jdk1.4.2-javacore.txt": (1, 45, "javacore"),  # its `Full thread dump` line is not a second dump
    "ibm-jdk8-javacore-quoted-thread-name.txt": (1, 36, "javacore"),
    "jdk1.4-sun-deadlock-7dumps.txt": (7, 63, "HotSpot"),
    "jdk17-actuator-json-with-http-headers.txt": (1, 22, "actuator JSON"),
    "jdk23-graalvm-dumptofile-1000-vthreads.json": (1, 1012, "Thread.dump_to_file JSON"),
    "jdk24-dumptofile-text.txt": (1, 14, "Thread.dump_to_file"),
    "jdk5-jstack-serviceability-agent.txt": (3, 21, "jstack -F"),
    "jrockit5-deadlock.txt": (3, 33, "JRockit"),  # 42 with the lines of the lock chains
    "openj9-jdk21-javacore-liberty-macos.txt": (1, 66, "javacore"),
}


@pytest.mark.parametrize("name", REAL)
def test_real_dumps_of_other_people(samples, name):
    """All dumps and threads are found, and nearly all have the values of their dialect."""
    dumps = DumpReader("locks").read((samples / "thread-dumps" / name).read_bytes(), name)
    dump_count, threads, dialect = REAL[name]
    assert len(dumps) == dump_count
    assert sum(len(dump.threads) for dump in dumps) == threads
    assert {dump.dialect for dump in dumps} == {dialect}
    assert not any(dump.cut_off for dump in dumps)


def test_every_real_dump_gives_stacks_or_says_why_not(samples):
    """The only file without a dump is a server's log of slow requests."""
    for path in sorted((samples / "thread-dumps").iterdir()):
        if path.name == "was-liberty-slow-request-log.txt":
            with pytest.raises(BadInput, match="no thread dump in"):
                DumpReader().read(path.read_bytes(), path.name)
        else:
            assert any(dump.threads for dump in DumpReader().read(path.read_bytes(), path.name)), path.name
