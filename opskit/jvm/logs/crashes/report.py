"""Crash reports in a text: HotSpot's hs_err file, its header in a program's output, a javacore of a crash."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from opskit.errors import BadInput
from opskit.jvm.dumps.sniff import content_type
from opskit.jvm.logs.crashes.hotspot import parse_hotspot
from opskit.jvm.logs.crashes.javacore import parse_javacore, why_no_crash
from opskit.jvm.logs.crashes.unwrap import unwrap
from opskit.redact import redact_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opskit.jvm.logs.crashes.record import CrashReport

MARKS = (
    b"# A fatal error has been detected by ",
    b"# An unexpected error has been detected by ",
    b"# There is insufficient memory for the Java",
    b"0SECTION       TITLE",
)
_JAVACORE = b"0SECTION"
_LONGEST_REPORT = 16 << 20  # one of 10,000 threads and 60,000 mappings has 10 MiB
_MOST_REPORTS = 1000
_SNIFFED = 1 << 16
_BEFORE = 2048
_LONGEST_JSON_PREFIX = 1 << 14  # a pod's labels, which some shippers write before the line
# What the JVM says in the program's output directly before its header.
_NOTES = re.compile(
    r"An irrecoverable stack overflow has occurred|Please check if any of your loaded \.so files"
    r"|.{0,200}os::commit_memory\(.{0,200} failed; error=|.{0,80}Attempt to (?:protect|unguard|deallocate) stack guard pages failed"
    r"|Aborting due to java\.lang\.OutOfMemoryError|java\.lang\.OutOfMemoryError occurred, aborting|FATAL ERROR in native method"
)
_PARTS = (
    b"---------------  T H R E A D",
    b"---------------  P R O C E S S",
    b"Native frames: (J=",
    b"VM Arguments:\n",
    b"vm_info: ",
)
_MINIDUMP = b"MDMP"
# Other traces of a process that ended so.
_OTHERS = (
    (b"SegfaultHandler caught a segfault", "the output of a GraalVM native image that crashed; it has no hs_err file"),
    (b"JvmtiExport can_", "the replay file of a JIT compiler; the report beside it has the name hs_err_pidN.log"),
    (
        b"J9Generic_Signal_Number",
        "the output of an OpenJ9 JVM that crashed; its report is the javacore that a line with JVMDUMP010I names",
    ),
    (
        b" segfault at ",
        "a kernel log; it says that a process crashed, and the JVM's own report has the name hs_err_pidN.log",
    ),
)


def parse(data: bytes | bytearray | str, source: str) -> CrashReport:
    """The first report in a file. `source`: its name in messages. Raises BadInput, which says what the file is instead."""
    return parse_all(data, source)[0]


def parse_all(data: bytes | bytearray | str, source: str) -> list[CrashReport]:
    """Every report in a file, in order; the header that a JVM prints before its report is not counted twice."""
    if isinstance(data, str):
        data = data.encode("utf-8", "surrogateescape")
    starts = _starts(data)
    found: list[CrashReport] = []
    for begin, end in zip(starts, [*starts[1:], len(data)]):
        report = _report(data, begin, min(end, begin + _LONGEST_REPORT))
        if report is None:
            continue
        if found and _is_same(found[-1], report):
            report = _joined(found.pop(), report)
        found.append(report)
    if not found:
        raise BadInput(
            source, f"is not a JVM crash report (hs_err_pidN.log, or a javacore of a crash): {_instead(data, starts)}"
        )
    return found


def _starts(data: bytes | bytearray) -> list[int]:
    return sorted(at for mark in MARKS for at in _places(data, mark))[:_MOST_REPORTS]


def _places(data: bytes | bytearray, mark: bytes) -> Iterator[int]:
    at = data.find(mark)
    for _ in range(_MOST_REPORTS):
        if at < 0:
            return
        yield at
        at = data.find(mark, at + len(mark))


def _report(data: bytes | bytearray, begin: int, end: int) -> CrashReport | None:
    """The report whose mark stands at `begin`."""
    window = max(0, begin - _LONGEST_JSON_PREFIX)
    line = max(data.rfind(b"\n", window, begin) + 1, window)
    prefix = _decoded(data[line:begin])
    lines = unwrap(_decoded(data[line:end]), prefix)
    if data.startswith(_JAVACORE, begin):
        return parse_javacore(lines)
    mark = next((number for number, text in enumerate(lines[:3]) if text.startswith("# ")), 0)
    report = parse_hotspot(lines[mark:])
    if report is None:
        return None
    before = unwrap(_decoded(data[max(0, line - _BEFORE) : line]), prefix)
    notes = tuple(dict.fromkeys(text.strip() for text in before if _NOTES.match(text)))
    if notes:
        report = report._replace(event=report.event._replace(message=(*report.event.message, *notes)))
    only_header = line < _BEFORE and data[:line].strip(b"# \r\n\t") == b""
    return report if only_header and not prefix else report._replace(is_in_output=True)


def _is_same(first: CrashReport, second: CrashReport) -> bool:
    """Whether two are of one crash: -XX:+ErrorFileToStdout prints the header, then the report, which begins with the header."""
    if first.thread is not None or first.dialect != second.dialect or first.event.kind != second.event.kind:
        return False
    same = (first.event.name, first.event.pc) == (second.event.name, second.event.pc)
    return same and (first.pid == second.pid or first.pid is None)


def _joined(header: CrashReport, report: CrashReport) -> CrashReport:
    """The report, with what only the header in the output says."""
    message = dict.fromkeys((*report.event.message, *header.event.message))
    return report._replace(
        event=report.event._replace(message=tuple(message)), report_file=report.report_file or header.report_file
    )


def _instead(data: bytes | bytearray, starts: Sequence[int]) -> str:
    if data.startswith(b"\x7fELF") and data[16:18] in (b"\4\0", b"\0\4"):
        return "a core file; the report that the JVM wrote beside it has the name hs_err_pidN.log"
    if data.startswith(_MINIDUMP):
        return "a minidump of Windows; the report that the JVM wrote beside it has the name hs_err_pidN.log"
    for begin in starts:
        if data.startswith(_JAVACORE, begin):
            why = why_no_crash(_decoded(data[begin : begin + _SNIFFED]))
            if why is not None:
                return why
    if data.startswith(_JAVACORE, starts[0]) if starts else False:
        return "a javacore without the event that caused it"
    head = data[:_SNIFFED]
    _, could_not_start, rest = head.partition(b"Error occurred during initialization of VM")
    if could_not_start:
        why = _decoded(rest.lstrip().partition(b"\n")[0][:200]).strip()
        return f"the output of a JVM that did not start: {why}"
    for mark, what in _OTHERS:
        if mark in head:
            return what
    if b"JRE version:" in head and b"S U M M A R Y" in head:
        return "the answer of jcmd PID VM.info, by a JVM that ran"
    if any(mark in head for mark in _PARTS):
        return "a part of a crash report without its beginning, the lines with #"
    what = content_type(_decoded(data[:_SNIFFED]))
    if what == "a thread dump":
        return "a thread dump; read it with opskit jpmp"
    if what == "a class histogram":
        return "a class histogram; read it with opskit jmap-diff"
    return redact_text(what)  # it has the beginning of a text


def _decoded(data: bytes | bytearray) -> str:
    return data.decode("utf-8", "surrogateescape")
