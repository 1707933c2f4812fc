"""`opskit crash`: files, directories, standard input, what is no report, exit codes, secrets, and what its findings say to type."""

from __future__ import annotations

import gzip
import json
import os
import shutil
from pathlib import Path

import pytest
from crashreports import APPLICATION, ENTRY, facts, method, native, refused, report, signal, stub, vm
from imports import HEAVY, imported
from nextsteps import try_next
from stracing import ACTS, traced
from terminal import on_terminal

from opskit.analysis.crash.judge import judge
from opskit.jvm.logs.crashes.record import Event, Frame, Heap, Thread

CRASHES = Path(__file__).resolve().parents[1] / "fixtures" / "crashes"
MMAP = "Native memory allocation (mmap) failed to map 65536 bytes."
MALLOC = "Native memory allocation (malloc) failed to allocate 65536 bytes"
C2 = Thread("CompilerThread", "C2 CompilerThread0")
GC = Thread("GCTaskThread", "GC Thread#0")


@pytest.fixture
def place(tmp_path):
    """A function that copies reports into a directory; its path."""

    def copy(*names, directory="reports"):
        path = tmp_path / directory
        path.mkdir(exist_ok=True)
        for number, name in enumerate(names):
            shutil.copy(CRASHES / f"{name}.log", path / f"hs_err_pid{number + 1}.log")
        return path

    return copy


def test_a_report(inprocess):
    """Exit code 1; who is to blame, the application's frame, the next command."""
    done = inprocess("crash", CRASHES / "jdk25-native.log")
    assert done.code == 1
    assert (
        "to blame: native library libacme-codec.so; nearest application frame com.acme.shop.Crashes$Native.nullWrite"
        in done.out
    )
    assert f"  next: opskit crash -v {CRASHES}/jdk25-native.log" in done.out


@pytest.mark.parametrize("given", ["gzip", "standard input", "directory"])
def test_where_a_report_is_read_from(inprocess, place, tmp_path, given):
    """The same verdict as of the file."""
    data = (CRASHES / "jdk17-unsafe.log").read_bytes()
    words, stdin = [str(place("jdk17-unsafe"))], ""
    if given == "gzip":
        (tmp_path / "hs_err.log.gz").write_bytes(gzip.compress(data))
        words = [str(tmp_path / "hs_err.log.gz")]
    elif given == "standard input":
        words, stdin = ["-"], data.decode()
    done = inprocess("crash", *words, stdin=stdin)
    assert done.code == 1
    assert "to blame: com.acme.shop.Crashes$Prices.store" in done.out
    assert (given != "standard input") == ("next: opskit crash -v -\n" not in done.out)


def test_several_reports(inprocess, place):
    """By cause, the most frequent first; a file that is no report is named, and costs itself only."""
    path = place("jdk8-native", "jdk17-unsafe", "jdk17-native", "jdk25-native")
    (path / "notes.txt").write_text("nothing\n")
    done = inprocess("crash", *sorted(path.iterdir()))
    assert done.code == 1
    assert done.out.startswith("4 crashes of 2 causes; 3 alike in libacme-codec.so+0x1185\n")
    assert f"{path}/notes.txt: is not a JVM crash report" in done.err
    groups = json.loads(inprocess("crash", path, "-f", "json").out)["groups"]
    assert [group["crashes"] for group in groups] == [3, 1]


@pytest.mark.parametrize(
    "content", ["", "hello\n", "\0\1\2" * 100, "# A fatal error has been detected by the Java Runtime Environment:\n"]
)
def test_a_file_that_is_no_report(inprocess, tmp_path, content):
    """One line with its name; exit code 2."""
    path = tmp_path / "x.log"
    path.write_text(content)
    done = inprocess("crash", path)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"opskit: {path}: ")
    assert done.err.count("\n") == 1
    assert inprocess("crash", tmp_path / "missing.log").code == 2


def test_a_directory_without_reports(inprocess, tmp_path):
    """Exit code 0."""
    done = inprocess("crash", tmp_path)
    assert (done.code, done.out) == (0, f"no crash report in {tmp_path}\n")


def test_a_machine_without_reports(inprocess, tmp_path):
    """The places that were looked at, exit statuses and what to type; exit code 0."""
    for name in ("tmp", "proc/1", "usr/bin"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "proc/meminfo").touch()
    (tmp_path / "usr/bin/coredumpctl").touch()
    done = inprocess("crash", "--root", tmp_path)
    assert done.code == 0
    assert done.out == f"no crash report in 1 place where JVMs write them: {tmp_path}/tmp\n"
    assert "exit status 134:" in done.err
    assert "`coredumpctl list java`, `opskit oom`" in done.err


def test_reports_that_are_found(inprocess, place, tmp_path):
    """In the working directory: a row each, and the command for the newest by the time in the reports."""
    path = place("jdk17-unsafe", "jdk25-native")
    os.utime(path / "hs_err_pid1.log", (1_700_000_000, 1_700_000_000))
    done = inprocess("crash", cwd=str(path))
    assert done.code == 1
    assert f"next: opskit crash {path}/hs_err_pid1.log\n" in done.out
    assert done.out.index("hs_err_pid1.log") < done.out.index("hs_err_pid2.log")


def test_secrets_are_hidden_unless_asked_for(inprocess):
    """The password and token of the report."""
    secrets = ("-Dshop.db.password=", "--token=")
    path = CRASHES / "jdk17-unsafe.log"
    document = json.loads(inprocess("crash", path, "-f", "json").out)
    open_document = json.loads(inprocess("crash", path, "-f", "json", "--no-redact").out)
    hidden, shown = (each["crashes"][0]["report"]["command_line"] for each in (document, open_document))
    assert "…" in hidden
    assert "…" not in shown
    assert shown in path.read_text()
    values = [word.partition("=")[2] for word in shown.split() if word.startswith(secrets)]
    assert values
    for form in ("text", "table", "json", "markdown"):
        out = inprocess("crash", path, "-v", "-f", form).out
        assert not [value for value in values if value in out]


def test_mappings_against_their_limit(inprocess, tmp_path):
    """A report with as many mappings as vm.max_map_count allows, as the JVM wrote it."""
    text = (CRASHES / "jdk25-mappings.log").read_text()
    before, title, after = text.partition("Dynamic libraries:\n")
    path = tmp_path / "hs_err.log"
    path.write_text(f"{before}{title}" + "100010000-100020000 ---p 00000000 00:00 0 \n" * 65_523 + after)
    done = inprocess("crash", path)
    assert "to blame: the limit vm.max_map_count" in done.out
    assert "  fix: sysctl -w vm.max_map_count=262144\n" in done.out


def test_on_a_terminal():
    """The first screen of 80 x 24 has the verdict and the next command."""
    code, out = on_terminal("crash", str(CRASHES / "jdk21-kill-segv.log"), env={"NO_COLOR": "1"})
    assert code == 1
    assert "to blame: process 1813 of uid 0" in out
    assert "next: ps -o pid,user,lstart,args -p 1813" in out


def test_it_acts_on_nothing():
    """No file is written or changed, and no signal sent."""
    done = traced("crash", CRASHES / "jdk17-unsafe.log")
    assert done.code == 1
    assert done.of(*ACTS) == []
    assert done.writing() == []


def test_imports():
    """Text needs no heavy module, and no JSON object."""
    modules = imported("crash", str(CRASHES / "jdk17-unsafe.log"), "-f", "text")
    assert not modules & HEAVY
    assert "opskit.render.views.crash.document" not in modules


def findings(*frames, event=None, **more):
    """The findings of a hand-made report."""
    return judge(facts(report(event or signal(), *frames, **more))).findings


def of(made):
    return judge(facts(made)).findings


def test_next_commands_of_signals(tmp_path):
    """Each is typed in the directory of the report."""
    (tmp_path / "hs_err_pid4242.log").write_bytes((CRASHES / "jdk17-unsafe.log").read_bytes())
    foo = native("libfoo.so", "parse")
    sent = Event("signal", "SIGSEGV", 11, "SI_USER", sender_pid=os.getpid(), sender_uid=0)
    assert try_next(findings(foo, event=sent), "crash-signal-sent", cwd=tmp_path).endswith(str(os.getpid()))
    late = findings(vm("x"), event=Event("internal", "Internal Error", message=("SafepointTimeout",)))
    try_next(late, "crash-timeout", cwd=tmp_path)
    low = Thread("JavaThread", "main", None, 4243, 0x7F0000000000, 0x7F0000100000, 0x7F0000003100)
    try_next(findings(foo, event=signal(address=0x7F0000003000), thread=low), "crash-stack-overflow", cwd=tmp_path)
    mapped = findings(foo, event=signal("SIGBUS", "BUS_ADRERR"), memory_at_address=f"0x7f: {tmp_path}/index.bin")
    try_next(mapped, "crash-mapped-file", cwd=tmp_path)
    try_next(
        findings(foo, event=signal("SIGBUS", "BUS_ADRERR"), jvm_arguments="-XX:+UseLargePages"), "crash-large-pages"
    )
    try_next(findings(foo, event=signal("SIGBUS", "BUS_MCEERR_AR")), "crash-hardware")
    unmapped = findings(stub("StubRoutines::x"), method("java.nio.DirectByteBuffer.get"), APPLICATION)
    try_next(unmapped, "crash-use-after-unmap", cwd=tmp_path)
    try_next(findings(foo, event=signal("SIGILL", "ILL_ILLOPN")), "crash-illegal-instruction", cwd=tmp_path)
    try_next(findings(foo, event=signal("SIGABRT", "SI_TKILL", sender_pid=4242)), "crash-abort", cwd=tmp_path)
    try_next(findings(native("libc.so.6", "_int_free"), foo), "crash-native-heap", cwd=tmp_path)


def test_next_commands_of_stacks(tmp_path):
    """The same for causes that the stack tells."""
    (tmp_path / "hs_err_pid4242.log").write_bytes((CRASHES / "jdk17-unsafe.log").read_bytes())
    foo, version = native("libfoo.so", "parse"), {"…": "-version"}
    libraries = ("/usr/lib/x86_64-linux-gnu/libfoo.so",)
    try_next(findings(foo, APPLICATION, libraries=libraries), "crash-native-library", cwd=tmp_path)
    try_next(findings(foo, jvm_arguments="-agentlib:foo"), "crash-agent", cwd=tmp_path)
    try_next(
        findings(native("libc.so.6"), stub("RuntimeStub::nep_invoker_blob"), APPLICATION),
        "crash-foreign-function",
        cwd=tmp_path,
    )
    try_next(findings(native("libnio.so", "read")), "crash-jdk-library", cwd=tmp_path)
    jump, error = Frame("C", "0x0000000000000000"), ("UnsatisfiedLinkError: no foo",)
    try_next(
        findings(jump, APPLICATION, event=signal(address=0, pc=0), last_events=error),
        "crash-library-missing",
        cwd=tmp_path,
    )
    musl = ("/lib/ld-musl-x86_64.so.1", "/usr/lib/libgcompat.so.0")
    try_next(findings(foo, libraries=musl), "crash-wrong-libc", cwd=tmp_path)
    try_next(findings(vm("Unsafe_PutLong"), APPLICATION, *ENTRY), "crash-unsafe-access", cwd=tmp_path)
    try_next(findings(method("com.acme.Order.total", "J", "c2")), "crash-compiled-code", cwd=tmp_path, **version)
    try_next(
        findings(vm("Node::in"), thread=C2, compile_task="C2: 1 4 com.acme.Order::total (2 bytes)"),
        "crash-compiler",
        **version,
    )
    try_next(findings(vm("G1::trim"), thread=GC), "crash-gc", **version)
    try_next(findings(vm("Klass::find"), libraries=()), "crash-jvm-internal", cwd=tmp_path)
    try_next(findings(native("libc.so.6")), "crash-unexplained", cwd=tmp_path)


def test_next_commands_of_memory(workload):
    """The same for memory; the JVM that is looked at stands for the one that was started again."""
    heap = report(
        Event("java-heap", "OutOfMemory encountered: Java heap space"),
        APPLICATION,
        heap=Heap(used_bytes=60, max_bytes=64),
    )
    try_next(of(heap), "crash-java-heap", PID=workload("sleep=1").pid)
    try_next(of(refused(MMAP, maps=65_528)), "crash-map-count")
    try_next(of(refused("Cannot create worker GC thread. Out of system resources.", None)), "crash-threads")
    try_next(of(refused(MMAP, limits={"AS": "2000000k/infinity"})), "crash-address-space")
    try_next(of(refused(MMAP, free_bytes=100)), "crash-native-memory")
    low = refused(MALLOC)
    low = low._replace(event=low.event._replace(message=(MALLOC, "JVM is running with Unscaled Compressed Oops mode")))
    try_next(of(low), "crash-compressed-oops")
    try_next(of(refused(MMAP)), "crash-overcommit")
