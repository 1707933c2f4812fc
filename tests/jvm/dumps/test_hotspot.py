"""HotSpot's dumps, JDK 1.4 to 25: real ones, and damaged ones."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opskit.analysis.jpmp.frames import frame_name
from opskit.errors import BadInput
from opskit.jvm.dumps.dialects import DumpReader
from opskit.jvm.dumps.hotspot import HotSpotParser
from opskit.jvm.dumps.thread_dump import Lock, Waits

DUMP = """\
2026-11-21 11:04:04
Full thread dump OpenJDK 64-Bit Server VM (17.0.15+6-Debian-1deb12u1 mixed mode, sharing):

Threads class SMR info:
_java_thread_list=0x00007facd510ecf0, length=2, elements={
0x00007facd40a4000, 0x00007facd40a7000
}

"main" #1 prio=5 os_prio=0 cpu=102.50ms elapsed=9.86s tid=0x00007f00 nid=0x1f4b in Object.wait()  [0x00007f01]
   java.lang.Thread.State: WAITING (on object monitor)
	at java.lang.Object.wait(java.base@17.0.15/Native Method)
	- waiting on <0x0000000500000001> (a java.lang.Object)
	at com.example.Main.main(Main.java:10)
	- locked <0x0000000500000002> (a com.example.Main)

   Locked ownable synchronizers:
	- <0x0000000500000003> (a java.util.concurrent.locks.ReentrantLock$NonfairSync)

"say "hi" nid=1; [x]" #22 daemon prio=5 os_prio=0 cpu=1,02ms elapsed=9,86s tid=0x00007f02 nid=0x1f4c runnable  [0x00007f03]
   java.lang.Thread.State: RUNNABLE
	at com.example.Loop$$Lambda$14/0x0000000800c03000.run(Unknown Source)
	at java.lang.Thread.run(java.base@17.0.15/Thread.java:840)

"VM Thread" os_prio=0 cpu=22.19ms elapsed=108.50s tid=0x00007f04 nid=0x1f4d runnable

JNI global refs: 26, weak refs: 0


Found one Java-level deadlock:
=============================
"A":
  waiting to lock monitor 0x00007f05 (object 0x0000000500000004, a java.lang.Object),
  which is held by "B"

"B":
  waiting for ownable synchronizer 0x0000000500000005, (a java.util.concurrent.locks.ReentrantLock$NonfairSync),
  which is held by "A"

Java stack information for the threads listed above:
===================================================
"A":
	at com.example.Main.a(Main.java:20)
"B":
	at com.example.Main.b(Main.java:30)

Found 1 deadlock.

"""


def read(text, detail="locks"):
    data = text if isinstance(text, bytes) else text.encode("utf-8", "surrogateescape")
    return DumpReader(detail).read(data, "x.txt")


def stacks(text):
    """Every stack of a text, and how often it occurs."""
    return Counter(
        thread.stack.frames for dump in read(text, "stacks") for thread in dump.threads if thread.stack.frames
    )


def test_a_dump_gives_what_it_says():
    """Version, time, threads with their ids, CPU, states, locks; the deadlock, whose stacks are not counted again."""
    [dump] = read(DUMP)
    assert dump.dialect == "HotSpot"
    assert dump.time == "2026-11-21 11:04:04"
    assert dump.version == "OpenJDK 64-Bit Server VM (17.0.15+6-Debian-1deb12u1 mixed mode, sharing)"
    assert not dump.cut_off
    main, quoted, vm = dump.threads
    assert (main.name, main.native_id, main.java_id, main.daemon) == ("main", 0x1F4B, 1, False)
    assert (main.cpu_ms, main.elapsed_s, main.stack.state) == (102.5, 9.86, "WAITING")
    assert main.stack.frames == (
        "java.lang.Object.wait(java.base@17.0.15/Native Method)",
        "com.example.Main.main(Main.java:10)",
    )
    assert main.locks == (
        Lock("waiting on", "0000000500000001", "java.lang.Object", 0),
        Lock("locked", "0000000500000002", "com.example.Main", 1),
        Lock("locked", "0000000500000003", "java.util.concurrent.locks.ReentrantLock$NonfairSync", None),
    )
    assert (quoted.name, quoted.native_id, quoted.daemon) == ('say "hi" nid=1; [x]', 0x1F4C, True)
    assert (quoted.cpu_ms, quoted.elapsed_s) == (1.02, 9.86)
    assert (vm.name, vm.stack.frames, vm.stack.state) == ("VM Thread", (), None)
    assert dump.deadlocks == (
        (
            Waits("A", "java.lang.Object", "0x0000000500000004", "B"),
            Waits("B", "java.util.concurrent.locks.ReentrantLock$NonfairSync", "0x0000000500000005", "A"),
        ),
    )


@pytest.mark.parametrize("detail", ["stacks", "locks"])
def test_a_reported_deadlock_that_times_out(detail):
    """HotSpot reports a tryLock with a timeout too; the stack of its thread shows the timeout."""
    park = "\tat java.util.concurrent.locks.LockSupport.parkNanos(java.base@17/LockSupport.java:252)\n"
    [dump] = read(DUMP.replace('"B":\n\tat', f'"B":\n{park}\tat'), detail)
    assert [[link.timed for link in deadlock] for deadlock in dump.deadlocks] == [[False, True]]


def test_without_details_a_thread_is_its_stack_alone():
    """The fast way gives the same stacks, and one object for equal ones."""
    plain, full = read(DUMP * 3, "stacks"), read(DUMP * 3, "threads")
    assert [[t.stack.frames for t in dump.threads] for dump in plain] == [
        [t.stack.frames for t in dump.threads] for dump in full
    ]
    assert {thread.name for dump in plain for thread in dump.threads} == {None}
    assert plain[0].threads[0].stack is plain[2].threads[0].stack


def test_threads_that_differ_by_their_locks_alone_share_a_stack():
    """Different lock addresses do not make different stacks."""
    blocks = "".join(
        f'"w-{n}" #{n} prio=5 tid=0x{n:x} nid=0x{n:x} waiting on condition\n   java.lang.Thread.State: WAITING (parking)\n'
        f"\tat a.B.park(Native Method)\n\t- parking to wait for  <0x{n:016x}> (a a.Lock)\n\n"
        for n in range(1, 50)
    )
    [dump] = read(blocks, "stacks")
    assert len({thread.stack for thread in dump.threads}) == 1
    [dump] = read(blocks, "locks")
    assert len({thread.locks for thread in dump.threads}) == 49


def test_carrier_and_mounted_thread_are_two_stacks():
    """JDK 25: a carrier's header has neither nid nor state; what it carries comes below."""
    text = """\
"ForkJoinPool-1-worker-1" #65 [62471] daemon prio=5 os_prio=31 cpu=305.89ms elapsed=15.79s tid=0x000000013e056a00  [0x1]
   Carrying virtual thread #206
	at jdk.internal.vm.Continuation.run(java.base@25/Continuation.java:251)
	at java.util.concurrent.ForkJoinWorkerThread.run(java.base@25/ForkJoinWorkerThread.java:187)
   Mounted virtual thread #206
	at com.example.Spin.run(Spin.java:3)
	- locked <0x000000013e056a00> (a com.example.Spin)
	at java.lang.VirtualThread.run(java.base@25/VirtualThread.java:456)

   Locked ownable synchronizers:
	- None

"""
    [dump] = read(text)
    carrier, mounted = dump.threads
    assert (carrier.stack.role, carrier.native_id, carrier.java_id) == ("carrier", 62471, 65)
    assert (mounted.stack.role, mounted.native_id, mounted.java_id) == ("mounted", 62471, 206)
    assert mounted.stack.frames[0] == "com.example.Spin.run(Spin.java:3)"
    assert (carrier.locks, mounted.locks) == ((), (Lock("locked", "000000013e056a00", "com.example.Spin", 0),))


def test_a_name_may_have_a_line_break():
    """Java allows it, and the dump contains it unescaped."""
    text = DUMP.replace('"main" #1', '"two\nlines" #1')
    [dump] = read(text)
    assert dump.threads[0].name == "two\nlines"
    assert stacks(text) == stacks(DUMP)


@pytest.mark.parametrize(
    ("header", "state"),
    [
        ('"a" prio=5 tid=0x1 nid=0x2 runnable [0x3..0x4]', "RUNNABLE"),
        ('"a" prio=5 tid=0x1 nid=0x2 waiting for monitor entry [0x3..0x4]', "BLOCKED"),
        ('"a" prio=5 tid=0x1 nid=0x2 in Object.wait() [0x3..0x4]', "WAITING"),
        ('"a" prio=5 tid=0x1 nid=0x2 waiting on monitor [0x3..0x4]', "WAITING"),
        ('"a" Id=236 in TIMED_WAITING', "TIMED_WAITING"),
        ('"a" prio=5 Id=25 WAITING', "WAITING"),
        ('"a" prio=5 tid=0x1 nid=0x2 strange [0x3..0x4]', None),
    ],
)
def test_dumps_without_a_state_line_have_it_in_the_header(header, state):
    """JDK 1.4, 5 and JMX."""
    [dump] = read(f"{header}\n\tat a.B.c(B.java:1)\n\n")
    assert dump.threads[0].stack.state == state


@pytest.mark.parametrize(
    "name", ["Full thread dump writer", "Full thread dump X (1): y", "Full thread dump\nwriter", 'x owned by "y']
)
def test_a_thread_named_like_another_part_of_a_dump(name):
    """The name begins no second dump, is not taken for a prefix of all lines, and stays whole."""
    [dump] = read(DUMP.replace('say "hi" nid=1; [x]', name))
    assert [thread.name for thread in dump.threads] == ["main", name, "VM Thread"]
    assert [thread.native_id for thread in dump.threads] == [0x1F4B, 0x1F4C, 0x1F4D]
    assert not dump.cut_off


def test_an_applications_stack_trace_in_between_is_no_frame():
    """An exception printed into the dump is not part of any stack."""
    text = DUMP.replace(
        "\tat com.example.Main.main", "Caused by: a.B: no\n\tat x.Y.z(Y.java:1)\nlog line\n\tat com.example.Main.main"
    )
    assert stacks(text) == stacks(DUMP)


# Thread headers by INDEX.tsv, which counts by a regular expression; here with the reasons where ours differs.
EXPECTED = {
    "hpux-jdk1.x-no-version-3dumps.txt": (3, 225),
    "jdk1.4-sun-deadlock-7dumps.txt": (7, 63),
    "jdk5-weblogic90-console-japanese.txt": (5, 133),
    "jdk5-apple-blocked-3dumps.txt": (3, 33),
    "jdk6-nutch-crawler-linux.txt": (1, 70),
    "jdk6-visualvm-jmx-crlf.txt": (1, 119),
    "jdk7-torquebox-jruby-conc.txt": (1, 140),
    "jdk7-markdown-quoted-dump-fragment.txt": (1, 2),
    "jdk8-jvmtools-sample.txt": (1, 160),
    "jdk8-swing-heap-section.txt": (1, 21),
    "jdk8-clojure-agent-pool-fragment.txt": (1, 2),
    "jdk11-liberica-highcpu-3dumps.txt": (3, 81),
    "jdk11-windows-swt-hang.txt": (1, 75),
    "jdk11-threadinfo-tostring-fragment.txt": (1, 1),
    "jdk14-kotlin-coroutines-kotest.txt": (1, 41),
    "jdk17-blocker-3dumps.txt": (3, 90),
    "jdk17-eclipse-quotes-and-comma.txt": (1, 104),
    "jdk17-actuator-text-appprefix.txt": (1, 25),
    "jdk21-macos-jstack.txt": (1, 28),
    "jdk21-minecraft-jcmd-utf16-crlf.txt": (1, 52),
    "openj9-jdk22-jenkins-timestamp-prefix-fragment.txt": (1, 2),
    "jdk25-many-virtual-threads.txt": (1, 54 + 10),  # ten carriers, each with the thread that is mounted on it
    "jdk25-three-way-deadlock.txt": (1, 54),
}


@pytest.mark.parametrize("name", EXPECTED)
def test_real_dumps(samples, name):
    """Every HotSpot file of the samples, in the form in which it was saved."""
    dumps = read((samples / "thread-dumps" / name).read_bytes())
    assert (len(dumps), sum(len(dump.threads) for dump in dumps)) == EXPECTED[name]
    for dump in dumps:
        for thread in dump.threads:
            assert thread.name is not None
            assert all(re.fullmatch(r"[^\s(]\S.*", frame) for frame in thread.stack.frames)


def test_what_the_real_dumps_say_at_their_odd_places(samples):
    """Quotes in names, decimal commas, legacy encodings, several deadlocks."""
    folder = samples / "thread-dumps"
    [eclipse] = read((folder / "jdk17-eclipse-quotes-and-comma.txt").read_bytes())
    names = {thread.name: thread for thread in eclipse.threads}
    assert 'Worker-450: Resolving "Eclipse 2023-06 4.28" target definition' in names
    assert any(thread.cpu_ms == 2680.94 for thread in eclipse.threads)
    [three_way] = read((folder / "jdk25-three-way-deadlock.txt").read_bytes())
    assert [len(deadlock) for deadlock in three_way.deadlocks] == [2, 2, 3]
    [many] = read((folder / "jdk25-many-virtual-threads.txt").read_bytes())
    assert sum(thread.stack.role == "mounted" for thread in many.threads) == 10
    japanese = read((folder / "jdk5-weblogic90-console-japanese.txt").read_bytes())
    assert not any(dump.cut_off for dump in japanese)


def test_what_is_no_dump_is_not_claimed(samples):
    """A log with stack traces but without threads."""
    with pytest.raises(BadInput, match=r"no thread dump in slow\.log: 28 lines read"):
        DumpReader().read((samples / "thread-dumps" / "was-liberty-slow-request-log.txt").read_bytes(), "slow.log")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "x: empty"),
        (b" \n\n", "x: empty"),
        (b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0>\0", "x: no thread dump: it is a binary (ELF)"),
        (b"INFO started\n" * 812, "no thread dump in x: 812 lines read"),
        (b"INFO started", "no thread dump in x: 1 line read"),
        (b"Full thread dump OpenJDK\n", "no thread dump in x: 1 line read"),
    ],
)
def test_bad_input_is_one_clear_line(data, message):
    """Text without a dump gives BadInput."""
    with pytest.raises(BadInput, match=re.escape(message)):
        DumpReader().read(data, "x")


@given(st.integers(0, len(DUMP.encode())))
def test_a_dump_cut_at_any_byte_has_no_stack_that_was_not_there(cut):
    """Only whole stacks of the dump are left, and the dump is marked as cut off."""
    data = DUMP.encode()[:cut]
    try:
        [dump] = read(data, "stacks")
    except BadInput:
        return
    left = Counter(thread.stack.frames for thread in dump.threads if thread.stack.frames)
    assert not left - stacks(DUMP)
    end = DUMP.index("\nJNI global ref")
    assert dump.cut_off or cut > end or b"java.lang.Thread.State" not in data


@given(st.integers(0, len(DUMP)), st.integers(0, 60), st.binary(max_size=40))
def test_a_corrupted_dump_is_no_crash(at, gone, put):
    """Any bytes in any place: stacks or a BadInput, and never more stacks than header lines."""
    data = DUMP.encode()
    data = data[:at] + put + data[at + gone :]
    for detail in ("stacks", "locks"):
        try:
            dumps = read(data, detail)
        except BadInput:
            continue
        assert sum(len(dump.threads) for dump in dumps) <= data.count(b'"') + 1


@given(st.lists(st.integers(0, 2), min_size=1, max_size=6))
def test_dumps_joined_are_counted_together(parts):
    """Any number of dumps in one text, with log lines between them."""
    other = DUMP.replace("com.example.Main", "com.example.Other")
    pieces = [[DUMP], [other], ["INFO between\n\n"]]
    text = "".join(pieces[part][0] for part in parts)
    if not set(parts) - {2}:
        return
    assert stacks(text) == sum((stacks(pieces[part][0]) for part in parts if part != 2), Counter())


def test_a_whole_fragment_without_a_head_is_not_cut():
    """A pasted thread that ends with its last line is whole; one that ends within a line is left out."""
    block = '"a" #1 prio=5 tid=0x1 nid=0x2 runnable\n\tat a.B.c(B.java:1)\n\tat a.B.d(B.java:2)'
    for text in (block, block + "\n"):
        [dump] = read(text)
        assert [len(thread.stack.frames) for thread in dump.threads] == [2]
        assert not dump.cut_off
    [dump] = read(block[:-5])
    assert dump.cut_off
    assert dump.threads == []


def test_a_dump_that_ends_with_its_last_stack_keeps_it():
    """The end is missing, but a stack that reaches main is whole."""
    text = DUMP[: DUMP.index("   Locked ownable")].rstrip()
    [dump] = read(re.sub(r"\n\t- locked[^\n]*$", "", text) + "\n")
    assert [thread.name for thread in dump.threads] == ["main"]
    assert dump.cut_off


def test_a_dump_that_ends_behind_its_head_is_cut_off():
    """It is a dump without threads; an application's message about a dump is not a dump."""
    later = (
        DUMP
        + "\n2026-11-21 11:09:04\nFull thread dump OpenJDK 64-Bit Server VM (17.0.15+6 mixed mode):\n\nThreads class"
    )
    assert [(len(dump.threads) > 0, dump.cut_off) for dump in read(later)] == [(True, False), (False, True)]
    assert len(read("INFO  Full thread dump written to /tmp/x.txt\n\n" + DUMP)) == 1
    assert len(read(DUMP + "\nINFO  Full thread dump written to /tmp/x.txt\n")) == 1


def test_saps_headers_and_frames():
    """CPU with a reset, the user in quotes, descriptors in frames: none of it is the thread's name or its module."""
    text = (
        "Full thread dump SAP Java Server VM (8.1.108):\n\n"
        '"HTTP "w" [2]" daemon cpu=153220.00 [reset 20.00] ms allocated=1943 B (1.89 kB) user="ADMIN 27" prio=1 '
        "tid=0x0000002ca872fd10 nid=0x4f79 runnable [0x1..0x2]\n   java.lang.Thread.State: RUNNABLE\n"
        "\tat com.example.Read.read(Lcom/example/Reader;)Lcom/example/Message;(Read.java:727)\n\n"
    )
    [dump] = DumpReader("threads").read(text.encode(), "x")
    [thread] = dump.threads
    assert (thread.name, thread.native_id, thread.cpu_ms, thread.daemon) == ('HTTP "w" [2]', 0x4F79, 153220.0, True)
    assert frame_name(thread.stack.frames[0]) == "com.example.Read.read(Lcom/example/Reader;)Lcom/example/Message;"


def test_virtual_threads_with_nothing_but_their_number_are_threads():
    """Some tools add them to a dump."""
    added = (
        '"" #32 virtual\n   java.lang.Thread.State: RUNNABLE\n\tat com.example.Order.process(Order.java:67)\n\n"main"'
    )
    assert stacks(DUMP.replace('"main"', added, 1))[("com.example.Order.process(Order.java:67)",)] == 1


def test_recognising_reads_no_more_than_headers():
    """Quotes do not make a dump."""
    assert not HotSpotParser.recognises(b'"a" said\n"b" said tid\n')
    assert HotSpotParser.recognises(b'x\n"Timer-180" - Thread t@332\n')
