"""Bounds for hostile files: 2 s of CPU below 1 MB, and memory in proportion to the size."""

from __future__ import annotations

import json
import tempfile

import cswitchfacts
import fdfacts
import fuzz
import iofacts
import irqresults
import pytest
from fuzztargets import ACTUATOR, AGENT, HOTSPOT, JAVACORE, JSON_DUMP, LOGS

from opskit.analysis.distribution import Scratch
from opskit.analysis.fds.judge import judge
from opskit.analysis.io.judge import judge as judge_io
from opskit.analysis.jmap_diff.compare import compare
from opskit.analysis.jmap_diff.names import Choice
from opskit.analysis.jpmp import locks
from opskit.analysis.jpmp.frames import pool_of
from opskit.analysis.safepoints.sums import Sums
from opskit.errors import BadInput
from opskit.jvm.dumps.dialects import DumpReader
from opskit.jvm.dumps.dump_to_file import JsonParser
from opskit.jvm.dumps.histogram_reader import parse_histograms
from opskit.jvm.launch import HIDDEN, without_secrets
from opskit.jvm.logs.safepoints.log import SafepointLog
from opskit.render.formats import json as as_json
from opskit.render.formats import table as as_table
from opskit.render.formats import text as as_text
from opskit.render.report import About
from opskit.render.shown import Shown
from opskit.render.views.cswitch import report as cswitch
from opskit.render.views.cswitch.document import Answer
from opskit.render.views.cswitch.document import complete as complete_cswitch
from opskit.render.views.fds import process
from opskit.render.views.io import report as io
from opskit.render.views.io.document import complete as complete_io
from opskit.render.views.irqs import report as irqs
from opskit.render.views.irqs.document import complete

MB = 1_000_000
HEAD = b"num   #instances  #bytes  class name\n"
STOPPED = b"Total time for which application threads were stopped: "
NANOS = b'[%d.000s][info][safepoint] Safepoint "%s", Time since last: 5 ns, Reaching safepoint: 6 ns, At safepoint: 7 ns, Total: 13 ns\n'


def lines(count, write):
    return b"".join(write(number) for number in range(count))


def waits(number):
    """A thread that waits for the next one's lock."""
    return b'"t%d" #%d prio=5 tid=0x1 nid=0x1 waiting\n   java.lang.Thread.State: BLOCKED\n\tat a.B.c(B.java)\n\t- waiting to lock <0x%x> (a X)\n\t- locked <0x%x> (a X)\n\n' % (
        *(number, number, number + 2, number + 1),
    )  # fmt: skip


def tabled(number):
    return b"1: 1 16 a.B%d\nTotal 1 16\n" % number


# Inputs that once looped, failed or took quadratic time: (target, input).
ONCE = {
    "a header on a row's line": ("histogram", b"1: 1 16 a num #instances #bytes class name"),
    "a row cut within its name": ("histogram", HEAD + b"1: 5 100 java.lang.Str" + HEAD + b"1: 5 100 a.B\nTotal 5 100\n"),
    "row 0": ("histogram", HEAD + b"0: 1 16 a.B\n1: 1 16 a.C\n"),
    "a name of white space": ("histogram", HEAD + b"1: 1 16 \x1c\n"),
    "a total of 5,000 digits": ("histogram", HEAD + b"1: 1 16 a.B\nTotal 1 " + b"9" * 5000 + b"\n"),
    "tables without number": ("histogram", lines(25_000, tabled)),
    "headers without number": ("histogram", HEAD * (MB // len(HEAD))),
    "a long word with digits": ("histogram", HEAD + b"a " + b"1" * 200_000 + b" " + b"2" * 200_000 + b"\n"),
    "colours within a line": ("histogram", b"x" + b"\x1b[m" * 200_000 + b"y\n" + HEAD + b"1: 1 16 a.B\n"),
    "brackets without number": ("histogram", b"num \t  #instances\t#bytes\tClass description\n" + b"1: 5 160 " + b"[]" * 400_000 + b"\n"),
    "one line of decorations": ("safepoint log", LOGS[2] * 200 + b"[][]" * 200_000 + b"\n"),
    "a long line before a stop": ("safepoint log", b"a" * 900_000 + STOPPED + b"x seconds\n"),
    "reports without an end": ("oom log", b"[ 1.0] a invoked oom-killer: gfp_mask=0x0, order=0\n" * 18_000),
    "mixed reports": ("oom log", (b"a invoked oom-killer: gfp_mask=0x0, order=0\n" * 2 + b"memory: usage 1kB, limit 1kB, failcnt 1\n" * 50) * 400),
    "one long table": ("oom log", b"a invoked oom-killer: order=0\n" + lines(14_000, lambda n: b"[%7d]     0 %5d 55342 15741 15232 0 0 python3\n" % (n, n))),
    "one long message": ("oom log", b'{"_TRANSPORT":"kernel","MESSAGE":"' + b"invoked oom-killer: order=" * 38_000 + b'"}\n'),
    "a number without end in a message": ("oom log", b'{"MESSAGE":[' + b"9" * 900_000 + b"]}\n"),
    "a path of colons": ("oom log", b"[ 1.0] a invoked oom-killer: order=0\n" + b"[ 1.0] Memory cgroup stats for /" + b": a:1KB" * 100_000 + b"\n"),
    "lines with one T": ("safepoint log", (b"a" * 60_000 + b"T\n") * 15),
    "a name without its end": ("safepoint log", b"# SafepointSynchronize::begin: Timeout\n" + b'# "' * 300_000),
    "keys without their colon": ("safepoint log", b'Safepoint "x", Time since last: 1 ns, ' + b"A" * 900_000),
    "words before a bracket": ("safepoint log", (b"a a a a " * 120 + b"[ x\n") * 1000),
    "a version of digits": ("safepoint log", b"Version: " + b"1" * 60_000 + b"\n"),
    "a row of long numbers": ("safepoint log", b"page_trap_count\nX [ 1 2 ] [ 1 2 " + b"9" * 400 + b" ]\n"),
    "a year of milliseconds": ("safepoint log", b"[99999999999999999ms][x] " + STOPPED + b"0.1000000 seconds\n"),
    "ages of a stop": ("safepoint log", b"2026-11-21T11:13:38.276+0000: " + STOPPED + b"9999999999.0 seconds\n"),
    "operations without number": ("safepoint log", lines(7600, lambda number: NANOS % (number, b"Op%d" % number))),
    "returns": ("dump text", b"\r" * MB),
    "markers on one line": ("dump hotspot", b"Full thread dump A" * 50_000),
    "prefixes without number": ("dump text", lines(12_000, lambda number: b"a%d Full thread dump\na%d x\n" % (number % 6000, number % 6000))),
    "quotes on one line": ("dump text", b'"' + b'" ' * 400_000 + b"\n\x20nid=0x1"),
    "ids on one line": ("dump text", b"tid=" * 200_000 + b"\nx\njava.lang.Thread.State: "),
    "a header of words": ("dump hotspot", b'\n"main" #1 tid=0x1 ' + b"a" * 900_000 + b"\n\tat a.B.c(B.java)\n\n"),
    "a thread's number": ("dump hotspot", HOTSPOT.replace(b"#41", b"#" + b"4" * 5000)),
    "locks without number": ("thread dumps", b'"a" #1 prio=5 tid=0x1 nid=0x1\n\tat a.B.c(B.java)\n' + b"\t- locked <0x1> (a X)\n" * 40_000 + b"\n"),
    "a lock of blanks": ("thread dumps", b'"a" #1 prio=5 tid=0x1 nid=0x1\n\tat a.B.c(B.java)\n\t- a' + b" " * 500_000 + b"x\n\n"),
    "owners without number": ("thread dumps", b'"a" #1 prio=5 tid=0x1 nid=0x1\n\tat a.B.c(B.java)\n\t- locked <1> (a X' + b') owned by "' * 40_000 + b"\n\n"),
    "mounted threads": ("dump hotspot", b'"a" #1 prio=5 tid=0x1 nid=0x1\n' + b"   Mounted virtual thread\n" * 35_000 + b"\n"),
    "a deadlock of addresses": ("dump hotspot", b'\n"a" tid=0x1\n\nFound one Java-level deadlock\n"a":\n  waiting ' + b"0x1 a " * 120_000 + b"\n"),
    "a chain of locks": ("thread dumps", lines(5000, waits)),
    "threads of an agent": ("dump agent", AGENT + b'"' + b'" ' * 400_000 + b"\n"),
    "an agent's long id": ("dump agent", b"Thread " + b"9" * 5000 + b": (state = BLOCKED)\n\n\n"),
    "deadlocks of a javacore": ("dump javacore", JAVACORE + b"1LKDEADLOCK\n" * 70_000),
    "two points in a time": ("dump javacore", JAVACORE.replace(b"1.264468000", b"1.264.468")),
    "inlined frames": ("dump javacore", JAVACORE.replace(b"(Native Method)", b"(Inlined" * 60_000)),
    "a dump nested without end": ("thread dumps", b'{"threadDump":{"threadContainers":[{"threads":[{"tid":' + b"[" * 100_000),
    "threads that are a number": ("thread dumps", JSON_DUMP.replace(b'"monitorsOwned": [', b'"monitorsOwned": 5, "x": [')),
    "containers that are true": ("thread dumps", b'{"threadDump": {"threadContainers": [{"container": "x", "threads": true}]}}'),
    "a trace that is a number": ("thread dumps", ACTUATOR.replace(b'"stackTrace":[', b'"stackTrace":5,"x":[')),
    "an actuator nested without end": ("thread dumps", b'[{"threadName":"a"},{"daemon":' + b'{"a":' * 100_000),
    "lambdas of blanks": ("command line", b"java\0-Da=" + b" " * 900_000 + b"x\0"),
    "a version of digits in counters": ("java version", b"1" * 5000),
    "a count of 400 digits": ("folded stacks", b"a;b " + b"9" * 400 + b"\n"),
    "an endless weight": ("profile json", b'{"stacks": [{"frames": ["a"], "samples": 1e999}]}'),
    "a pool that is text": ("profile json", b'{"stacks": [{"frames": ["a"], "samples": 1, "pools": {"x": "y"}}, {"frames": ["a"], "samples": 1, "pools": {"x": 1}}]}'),
    "a queue of queues": ("frames", b"a." + b"Queue" * 60_000 + b".foo\n"),
    "a thread's name of words": ("frames", b"a " * 200_000 + b"(\n"),
    "a name of digits": ("frames", b"1" * 400_000 + b"x\n"),
    "a size without end": ("option size", b"9" * 400),
    "a pid without end": ("option pid", b"9" * 5000),
    "groups without number": ("option regex", b"(" * 900),
}  # fmt: skip


@pytest.mark.parametrize("case", ONCE)
def test_what_once_was_too_much(case):
    """A result or an error of the project, within 2 s of CPU."""
    name, data = ONCE[case]
    assert len(data) <= MB + 1000
    assert fuzz.trial(name, data) in (None, ("", ""))


def test_a_histogram_cut_by_another_one():
    """A histogram that is cut inside a class name, followed by a whole one; a header without rows is left out and reported."""
    text = (HEAD + b"  1: 5 100 java.lang.Str" + HEAD + b"  1: 5 100 java.lang.String\nTotal 5 100\n").decode()
    [whole] = parse_histograms(text, "x")
    assert (dict(whole.rows), whole.cut) == ({"java.lang.String": (5, 100)}, None)
    assert whole.doubts == ("the header in line 1 has neither a row nor a Total, and is left out",)
    first, second = parse_histograms(text.replace("  1: 5", "  1: 9 900 A\n  2: 5", 1), "x")
    assert (dict(first.rows), first.cut) == ({"A": (9, 900)}, "its last line is cut off")
    assert dict(second.rows) == dict(whole.rows)


def test_a_chain_of_locks_is_counted_and_told_in_part():
    """5,000 threads, each waiting for the next: the last lock holds up all, and 100 links of its chain are shown."""
    dumps = DumpReader("locks").read(lines(5000, waits), "x")
    found = {lock.address: lock for lock in locks.contention(dumps).locks}
    assert (found["1389"].held_up, found["1389"].owner) == (5000, None)
    assert (found["2"].held_up, len(found["2"].chain)) == (1, 100)


@pytest.mark.parametrize("size", [1, 2, 7, 1000, 1 << 16])
def test_a_log_in_small_pieces(size):
    """Pieces of any size give the same result, and no piece is scanned repeatedly."""
    text = lines(20, lambda number: NANOS % (number, b"X")) + b"x" * 100_000 + b"\n" + NANOS % (99, b"X")
    log = SafepointLog()
    pieces = (text[at : at + size] for at in range(0, len(text), size))
    with fuzz.guarded():
        assert sum(map(len, log.read(pieces))) == 21
    assert log.lines == 22


def collected(text, **options):
    collector = Sums(Scratch(tempfile.TemporaryFile), **options)
    for batch in SafepointLog().read([text]):
        collector.add(batch)
    return collector


def test_operations_without_number_are_summed_up_together():
    """After a thousand names the others are summed up as `(others)`, and a timeline keeps the slowest."""
    text = lines(8000, lambda number: NANOS % (1, b"Op%d" % number))
    with fuzz.guarded():
        summary = collected(text, timeline=True).summary()
    assert len(summary.operations) == 1001
    assert {row.name: row.safepoints for row in summary.operations}["(others)"] == 7000
    assert 0 < len(summary.timeline.points) <= 6000


def test_minutes_of_a_long_stop():
    """A pause of three days fills its minutes; one of three hundred years is refused."""
    line = b"2026-11-21T11:13:30.000+0000: " + STOPPED + b"%d.0000000 seconds\n"
    with fuzz.guarded():
        minutes = collected(line % (3 * 86400), by_minute=True).summary().minutes
        assert (len(minutes), sum(minute.stopped_s for minute in minutes)) == (3 * 1440 + 1, 3 * 86400)
        assert [minute.stopped_s for minute in minutes[:2]] == [30, 60]
        assert (minutes[0].minute, minutes[-1].minute) == ("2026-11-18T11:13", "2026-11-21T11:13")
        with pytest.raises(BadInput, match="at most 1,000,000 are listed"):
            collected(line % 999_999_999 + line % 5, by_minute=True).summary()


def test_histograms_of_nothing_in_common():
    """10,000 histograms with one class each are refused: a trend over them would take gigabytes."""
    found = parse_histograms(lines(10_000, tabled).decode(), "x")
    with fuzz.guarded(), pytest.raises(BadInput, match="10,000 of them name 10,000 classes"):
        compare(found, Choice())


def test_descriptors_of_very_many_places():
    """10,000 groups of one process are judged and shown within 2 s of CPU."""
    groups = tuple(fdfacts.LEAK._replace(detail=f"ESTAB to 10.0.0.9:{port}", fds=1) for port in range(10_006))
    looks = [fdfacts.facts(groups=groups[: 10_000 + each], fds=10_000 + each, at_s=each) for each in range(7)]
    about = About("HOST", "T", "V", "opskit fds")
    with fuzz.guarded():
        result = judge(looks[-1], looks)
        report = process.report(about, result, Shown(text=True, watching=True))
        assert len(as_text.render(report).splitlines()) > 10_000


def test_very_many_threads_that_wait():
    """5,000 threads of one process are shown within 2 s of CPU, with all their values."""
    threads = tuple(cswitchfacts.burner(number, 0.5) for number in range(5_000))
    with fuzz.guarded():
        result = cswitchfacts.judged(cswitchfacts.facts(threads=threads, all_threads=5_000))
        about, shown = About("HOST", "T", "V", "opskit cswitch"), Shown(text=True)
        report = complete_cswitch(cswitch.report(about, result, shown), Answer(result))
        assert len(as_text.render(report).splitlines()) > 5_000
        assert as_json.render(report).count('"tid"') == 5_000


def test_reads_of_very_many_threads_and_files():
    """As many threads, files and steps as a look keeps: judged and shown within 2 s of CPU."""
    with fuzz.guarded():
        result = judge_io(iofacts.large())
        report = complete_io(io.report(About("HOST", "T", "V", "opskit io"), result, Shown(text=True)), result)
        assert len(as_text.render(report).splitlines()) > 1_000
        assert as_json.render(report).count('"started"') == 1_100


def test_input_and_output_of_a_very_large_machine():
    """4,000 processes and 1,024 devices, slow or hung, within 2 s of CPU."""
    with fuzz.guarded():
        result = judge_io(iofacts.large_machine())
        report = complete_io(io.report(About("HOST", "T", "V", "opskit io"), result, Shown()), result)
        assert len(as_table.render(report, 80, 24, screen=True).splitlines()) < 60
        assert as_json.render(report).count('"user"') == 4_000


def test_interrupts_of_very_many_cpus():
    """4,096 CPUs and as many interrupts, watched for 100 looks, are shown within 2 s of CPU in each format."""
    result = irqresults.large(4096)
    looks = irqresults.moments(result, 100)
    about, shown = About("HOST", "T", "V", "opskit irqs"), irqs.Shown(strip=True, watching=True)
    for render in (lambda made: as_table.render(made, 80, 24, screen=True), as_json.render):
        with fuzz.guarded():
            assert "77" in render(complete(irqs.report(about, result, shown, looks), result, looks[-3:]))
    with fuzz.guarded():
        assert len(irqs.report(about, result, shown, looks).draw("svg")) < 20_000_000


def test_secrets_stay_hidden_however_many():
    """Very many options with spaces in their values: none of them is shown."""
    words = [f"-Da{number}=x y" for number in range(2000)]
    assert without_secrets(" ".join(words), words) == HIDDEN
    assert without_secrets("-Da=b c -Dx -Dd=e", ["-Da=b c -Dx", "-Dd=e"]) == f"-Da={HIDDEN} -Dd={HIDDEN}"


@pytest.mark.parametrize(("name", "pool"), [
    ("pool-1-thread-17", "pool-1-thread-*"),
    ("http-nio-8080-exec-5 (x)", "http-nio-8080-exec-* (x)"),
    ("Timer-1 (12)", "Timer-* (12)"),
    ("pool-1-x5 (foo)", "pool-*-x5 (foo)"),
    ("worker5", "worker*"),
    ("a1b", "a1b"),
    ("1" * 16384 + "x", "1" * 16384 + "x"),
    ("x-" + "1" * 16384, "x-*"),
])  # fmt: skip
def test_pools(name, pool):
    """The number in a thread's name is cut, in linear time."""
    assert pool_of(name) == pool


def test_dumps_close_together():
    """Each document is one dump."""
    text = (
        b'{"threadDump": {"time": "1", "threadContainers": []}}\n{"threadDump": {"time": "2", "threadContainers": []}}'
    )
    assert [dump.time for dump in JsonParser().parse(text)] == ["1", "2"]


def test_json_lines_nested_without_end():
    """A JSON line that cannot be decoded is dropped; the others stay."""
    good = json.dumps({"log": '"a" #1 prio=5 tid=0x1 nid=0x1 runnable\n'}).encode()
    text = good + b'\n{"log":' + b"[" * 100_000 + b'\n{"log":"\\tat a.B.c(B.java:1)\\n"}\n'
    [dump] = DumpReader("threads").read(text, "x")
    assert [(thread.name, thread.stack.frames) for thread in dump.threads] == [("a", ("a.B.c(B.java:1)",))]
