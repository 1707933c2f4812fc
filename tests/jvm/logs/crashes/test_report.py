"""Whole reports of real JVMs, the same reports damaged or inside a program's output, and what is no report."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from opskit.errors import BadInput
from opskit.jvm.logs.crashes.report import parse, parse_all

FIXTURES = Path(__file__).resolve().parents[3] / "fixtures" / "crashes"
UNSAFE = (FIXTURES / "jdk25-unsafe.log").read_text()
MAJORS = (8, 11, 17, 21, 25)


def reports():
    """The names of all real reports."""
    return sorted(path.name for path in FIXTURES.glob("*.log"))


def read(name):
    """The report of a fixture."""
    return parse((FIXTURES / name).read_bytes(), name)


@pytest.mark.parametrize("name", reports())
def test_every_real_report_has_what_each_report_has(name):
    """Event, versions, thread, stack, time, command, heap, memory; the last line was read."""
    report = read(name)
    assert report.java_major == int(name.removeprefix("jdk").partition("-")[0])
    assert report.event.kind in ("signal", "memory", "java-heap")
    assert report.complete
    assert not report.is_in_output
    assert report.pid > 0
    assert report.core
    assert report.thread.sp
    has_stack = name != "jdk25-c2-crash.log"  # it says: Native frames: <unavailable>
    assert bool(report.native_frames) == has_stack
    assert report.at.startswith("Mon Nov 23 15:")
    assert report.at.endswith(" 2026 UTC")
    assert 0 < report.uptime_s < 60
    assert report.java_command.startswith("com.acme.shop.Crashes")
    assert "-Xmx64m" in report.jvm_arguments
    assert report.java_home
    assert report.libraries
    assert report.signal_handlers["SIGSEGV"]
    assert report.heap.collector
    assert report.heap.max_bytes == 64 << 20
    assert 0 <= report.heap.used_bytes <= report.heap.committed_bytes <= 64 << 20
    assert report.machine.cpus == 2
    assert report.machine.memory_bytes > report.machine.free_bytes > 0
    assert report.environment["PATH"]
    if report.event.kind == "signal" and has_stack:
        assert report.frame == next(
            frame for frame in report.native_frames if frame.kind != "v" or report.frame.kind == "v"
        )
        assert report.registers["RIP"] == report.event.pc
        assert report.instructions


@pytest.mark.parametrize("major", MAJORS)
def test_the_address_of_a_truncated_or_unknown_file_is_named(major):
    """The mapping that holds si_addr, where the list of mappings has it; a null pointer is in none."""
    assert read(f"jdk{major}-unsafe.log").memory_at_address is None
    if major in (8, 25):
        assert read(f"jdk{major}-truncated-file.log").memory_at_address == "/srv/shop/f (rw-s)"


@pytest.mark.parametrize("major", [11, 25])
def test_a_compiler_thread_names_its_task(major):
    """The method that C2 was compiling, and the sender of the signal."""
    report = read(f"jdk{major}-compiler-kill-segv.log")
    assert (report.thread.kind, report.event.code) == ("CompilerThread", "SI_TKILL")
    assert report.compile_task.startswith("C2:")
    assert "::" in report.compile_task
    assert report.event.sender_pid


@pytest.mark.parametrize(
    ("name", "kind", "thread"),
    [
        ("jdk11-gc-g1.log", "GCTaskThread", "GC Thread#0"),
        ("jdk25-gc-parallel.log", "WorkerThread", "GC Thread#1"),
        ("jdk21-gc-serial.log", "VMThread", "VM Thread"),
        ("jdk8-gc-serial.log", "VMThread", None),
        ("jdk17-native-thread.log", "native", None),
        ("jdk21-kill-segv.log", "native", None),
    ],
)
def test_threads_that_run_no_java(name, kind, thread):
    """Collectors, the VM thread and threads of native code."""
    report = read(name)
    assert (report.thread.kind, report.thread.name) == (kind, thread)


def test_the_vm_operation_of_a_collection_is_named():
    """Serial collects in the VM thread."""
    assert read("jdk21-gc-serial.log").vm_operation.startswith("GenCollectFull, mode: safepoint")


def test_the_containers_limits():
    """512 MiB and 1.5 CPUs."""
    machine = read("jdk25-container.log").machine
    assert (machine.container, machine.container_memory_bytes, machine.container_cpus) == ("cgroupv1", 512 << 20, "1.5")
    assert 0 < machine.container_used_bytes <= machine.container_max_used_bytes


def wrapped(text, way):
    """A report's text as a program's output in a log of that kind."""
    lines = text.split("\n")
    ways = {
        "containerd": lambda number, line: f"2026-11-23T15:04:{number % 60:02}.{number * 7919:09}Z stdout F {line}",
        "seconds": lambda number, line: f"2026-11-23T15:04:{number % 60:02}{'.5' * (number % 2)}Z stderr F {line}",
        "docker": lambda number, line: json.dumps({"log": line + "\n", "stream": "stdout", "time": f"2026-11-23T15:04:05.{number}Z"}),
        "fluentd": lambda number, line: json.dumps({"kubernetes": {"labels": {f"label-{each}": "x" * 60 for each in range(30)}}, "log": line}),
        "compose": lambda number, line: f"web-1  | {line}".rstrip(),
        "syslog": lambda number, line: f"Nov 23 15:04:{number % 60:02} host java[812]: {line}",
        "quoted": lambda number, line: f"> {line}".rstrip(),
        "crlf": lambda number, line: f"{line}\r",
    }  # fmt: skip
    return "\n".join(ways[way](number, line) for number, line in enumerate(lines))


@pytest.mark.parametrize("way", ["containerd", "seconds", "docker", "fluentd", "compose", "syslog", "quoted", "crlf"])
def test_a_report_in_a_programs_output_is_the_same(way):
    """What a log shipper puts before each line is taken off, digits of all lengths."""
    expected = parse(UNSAFE, "a file")
    report = parse(f"started\n{wrapped(UNSAFE, way)}", "out")
    assert report.is_in_output
    assert report._replace(is_in_output=False) == expected
    plain = parse(wrapped(UNSAFE, way), "out")
    assert plain.is_in_output == (way != "crlf")


def test_lines_that_a_container_runtime_has_split_are_joined():
    """A line of more than 16 KiB comes in pieces, all but the last with P."""
    before, found, after = UNSAFE.partition("java_command: ")
    stamp = "2026-11-23T15:04:05.1Z stdout"
    split = wrapped(before, "containerd") + found + "com.acme"
    split = (
        split.replace("F java_command", "P java_command")
        + f"\n{stamp} F .Main\n"
        + wrapped(after.partition("\n")[2], "containerd")
    )
    report = parse(split, "out")
    assert report.java_command == "com.acme.Main"
    assert report.complete


def test_lines_that_docker_has_split_are_joined():
    """A piece of a line of more than 16 KiB has no end of line."""
    pieces = UNSAFE.replace("java_command: com", "java_command: \0com").splitlines(keepends=True)
    logged = [{"log": piece, "stream": "stdout"} for line in pieces for piece in line.split("\0")]
    report = parse("\n".join(map(json.dumps, logged)), "out")
    assert report._replace(is_in_output=False) == parse(UNSAFE, "a file")


def test_a_prefix_of_numbers_is_matched_in_one_way():
    """Each number of it may have any number of digits; where one part could end is no guess."""
    prefix = "1.1." * 120
    lines = [f"{prefix}{line}" for line in UNSAFE.split("\n")[1:40]]
    hostile = [f"{'1.1.' * 200}x"] * 200
    assert parse("\n".join([*lines[:12], *hostile, *lines[12:]]), "out").pid == parse(UNSAFE, "a file").pid


def test_a_truncated_report_has_what_came_before():
    """Wherever it is cut, the header stands, nothing is invented, and it says that its end is missing."""
    whole = parse(UNSAFE, "a file")
    header = UNSAFE.index("# JRE version")
    for end in range(header, len(UNSAFE) - 6, 211):
        report = parse(UNSAFE[:end], "a file")
        assert not report.complete
        assert (report.event.name, report.pid) == (whole.event.name, whole.pid)
        assert set(report.native_frames[:-1]) <= set(whole.native_frames)
        assert report.machine.cpus in (None, whole.machine.cpus)


def test_errors_of_the_error_handler_are_said():
    """The sections that failed are missing; the others are read. A stack that is printed again replaces the first."""
    broken = UNSAFE.replace(
        "siginfo: ",
        "[error occurred during error reporting (printing siginfo), id 0xb, SIGSEGV (0xb) at pc=0x00007f7a1c8d20c0]\n\nsiginf",
    )
    report = parse(broken, "a file")
    assert report.is_error_in_error_handler
    assert report.event.code is None
    assert report.machine.cpus == 2
    begin, end = UNSAFE.index("Native frames"), UNSAFE.index("Java frames")
    native = UNSAFE[begin:end].split("\n")
    again = "\n".join(["", "Retrying call stack printing without source information...", *native[1:]])
    text = (
        UNSAFE[:begin]
        + "\n".join([*native[:3], "[error occurred during error reporting (printing native stack)]", again])
        + UNSAFE[end:]
    )
    assert parse(text, "a file").native_frames[:12] == parse(UNSAFE, "a file").native_frames[:12]


def test_variables_of_the_environment_are_no_titles():
    """OS=Windows_NT is not the section about the operating system."""
    text = UNSAFE.replace("Environment Variables:\n", "Environment Variables:\nOS=Windows_NT\nMemory=1\n")
    report = parse(text, "a file")
    assert report.environment["OS"] == "Windows_NT"
    assert report.machine == parse(UNSAFE, "a file").machine


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "empty"),
        (b"\x7fELF\2\1\1\0\0\0\0\0\0\0\0\0\4\0>\0", "a core file"),
        (b"\x7fELF\2\1\1\0\0\0\0\0\0\0\0\0\3\0>\0", "a binary"),
        (b"MDMP\x93\xa7", "a minidump of Windows"),
        (b"\x1f\x8b\x08\0\0", "gzip-compressed"),
        (b"JAVA PROFILE 1.0.2\0", "a heap dump"),
        (b"2026-11-23 15:00:00\nFull thread dump OpenJDK 64-Bit Server VM\n", "a thread dump; read it with opskit jpmp"),
        (b" num     #instances         #bytes  class name\n", "a class histogram"),
        (b"#\n# JRE version: x\n\n---------------  S U M M A R Y ------------\n", "the answer of jcmd PID VM.info"),
        (b"---------------  T H R E A D  ---------------\n", "without its beginning"),
        (b"Error occurred during initialization of VM\nCould not reserve enough space\n", "did not start: Could not reserve enough space"),
        (b"[ [ SubstrateSegfaultHandler caught a segfault. ] ]\n", "a GraalVM native image"),
        (b"Unhandled exception\nType=Segmentation error vmState=0x00040000\nJ9Generic_Signal_Number=00000018\n", "line with JVMDUMP010I"),
        (b"JvmtiExport can_access_local_variables 0\n", "the replay file of a JIT compiler"),
        (b"[12.5] java[42]: segfault at 0 ip 0000 sp 0000 error 4 in libfoo.so\n", "a kernel log"),
        (b"# A fatal error has been detected by the Java Runtime Environment:\nhello\n", "text that begins with '# A fatal error"),
        (b"INFO: logged # A fatal error has been detected by the Java Runtime Environment: of a child\nINFO: done\n", "text that begins with 'INFO"),
        (b"INFO: db.password=hunter2\n", "text that begins with 'INFO: db.password=…"),
    ],
    ids=[
        "nothing", "core", "library", "minidump", "gzip", "heap-dump", "thread-dump", "histogram", "vm-info", "part", "no-start",
        "native-image", "openj9", "replay", "kernel-log", "no-event", "mentioned", "secret",
    ],
)  # fmt: skip
def test_what_is_no_report_is_named(data, said):
    """One line says what the file is instead."""
    with pytest.raises(BadInput) as refused:
        parse(data, "some.log")
    assert str(refused.value).startswith("some.log: is not a JVM crash report")
    assert said in str(refused.value)


def test_the_events_before_the_crash_are_in_order():
    """Of all sections, without compilations and collections; the newest is the last."""
    text = UNSAFE[: UNSAFE.index("\n", UNSAFE.index("Environment Variables")) + 1] + (
        "\nInternal exceptions (2 events):\n"
        "Event: 3.500 Thread 0x01 Exception <a 'java/lang/Error'{0x02}: 'late'> (0x02) \nthrown [x.cpp, line 5]\n"
        "Event: 9.000 Thread 0x01 Exception <a 'java/lang/Error'{0x02}: 'last'> (0x02) \nthrown [x.cpp, line 5]\n\n"
        "Compilation events (1 events):\nEvent: 9.100 Thread 0x01 nmethod 5\n\n"
        "Dll operation events (1 events):\nEvent: 8.000 Loaded shared library /opt/acme/lib/libacme.so\n\n"
    )  # fmt: skip
    last = parse(text, "a file").last_events[-2:]
    assert [event.partition(" ")[0] for event in last] == ["8.000", "9.000"]
    assert "last" in last[1]


def test_a_file_of_many_crashes_is_read_to_a_limit():
    """Each report once, in order; at most a thousand."""
    header = UNSAFE[: UNSAFE.index("---------------  S U M")]
    found = parse_all("".join(header.replace("pid=", f"pid={number}") for number in range(1, 1200)), "out")
    assert len(found) == 1000
    assert len({report.pid for report in found}) == 1000
