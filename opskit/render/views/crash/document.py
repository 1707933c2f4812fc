"""The JSON object of `opskit crash`: each report whole, with its verdict."""

from __future__ import annotations

from datetime import datetime, timezone
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from opskit.render.fields import COUNT, FLAG, ID, NUMBER, SIZE, TEXT, Field, Kind, list_of, map_of, record, records

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opskit.analysis.crash.result import Group, Result, Verdict
    from opskit.collect.crash.facts import Core, Place, Unread
    from opskit.jvm.logs.crashes.record import CrashReport, Event, Frame, Heap, Machine, Thread
    from opskit.render.report import Report

_DATE = Kind({"type": "string", "format": "date-time"})
_LAST_MOMENT_S = 253_402_300_800

FRAME: Sequence[Field[Frame]] = (
    Field("kind", help="J compiled, j interpreted, A AOT-compiled, V the JVM, v a stub, C native code"),
    Field("text", help="as it stands in the report"),
    Field("library"),
    Field("name", help="the method with its class, or the function"),
    Field("offset", ID, help="into the function; into the library where the function is unknown"),
    Field("library_offset", ID),
    Field("signature"),
    Field("compiler", help="c1, c2 or jvmci"),
    Field("source"),
)
EVENT: Sequence[Field[Event]] = (
    Field("kind", help="signal, memory, internal, java-heap or error"),
    Field("name"),
    Field("number", ID),
    Field("code", help="si_code"),
    Field("address", ID, help="si_addr"),
    Field("pc", ID),
    Field("sender_pid", ID),
    Field("sender_uid", ID),
    Field("message", list_of(TEXT)),
    Field("source", help="file and line in the JVM's source"),
    Field("bytes_refused", SIZE),
)
THREAD: Sequence[Field[Thread]] = (
    Field("kind"),
    Field("name"),
    Field("state"),
    Field("tid", ID),
    Field("stack_low", ID),
    Field("stack_high", ID),
    Field("sp", ID),
)
MACHINE: Sequence[Field[Machine]] = (
    Field("os"),
    Field("cpus", COUNT),
    Field("memory_bytes", SIZE),
    Field("free_bytes", SIZE),
    Field("swap_free_bytes", SIZE),
    Field("load"),
    Field("limits", map_of(TEXT), help="soft/hard, as the report writes them"),
    Field(
        "container", help="cgroupv1 or cgroupv2, before JDK 22 also outside of a container; null: neither, or not said"
    ),
    Field("container_memory_bytes", SIZE, help="its limit"),
    Field("container_used_bytes", SIZE),
    Field("container_max_used_bytes", SIZE),
    Field("container_cpus"),
    Field("max_map_count", COUNT, help="vm.max_map_count"),
    Field("maps", COUNT, help="mappings of the process"),
    Field("threads_max", COUNT),
    Field("pid_max", COUNT),
    Field("commit_limit_bytes", SIZE, help="CommitLimit, which vm.overcommit_memory=2 enforces"),
    Field("committed_bytes", SIZE, help="Committed_AS"),
    Field("rss_bytes", SIZE, help="of the JVM"),
    Field("virtual_bytes", SIZE, help="of the JVM"),
)
HEAP: Sequence[Field[Heap]] = (
    Field("lines", list_of(TEXT)),
    Field("collector"),
    Field("used_bytes", SIZE),
    Field("committed_bytes", SIZE),
    Field("max_bytes", SIZE),
)
CORE: Sequence[Field[Core]] = (
    Field("path"),
    Field("size_bytes", SIZE),
    Field("said", help="what the report or this machine says of it"),
)
REPORT: Sequence[Field[CrashReport]] = (
    Field("dialect", help="hotspot or openj9"),
    Field("event", record(EVENT)),
    Field("pid", ID),
    Field("runtime"),
    Field("vm"),
    Field("java_major", ID),
    Field("frame", record(FRAME), help="the problematic frame"),
    Field("core"),
    Field("thread", record(THREAD)),
    Field("native_frames", records(FRAME)),
    Field("java_frames", records(FRAME)),
    Field("compile_task"),
    Field("vm_operation"),
    Field("instructions"),
    Field("registers", map_of(ID)),
    Field("memory_at_address"),
    Field("last_events", list_of(TEXT), help="the newest last"),
    Field("at", help="as written in the report"),
    Field("at_s", NUMBER, help="the same since the epoch; null where its time zone is not known"),
    Field("uptime_s", NUMBER),
    Field("command_line"),
    Field("jvm_arguments"),
    Field("java_command"),
    Field("java_home"),
    Field("environment", map_of(TEXT)),
    Field("libraries", list_of(TEXT)),
    Field("signal_handlers", map_of(TEXT)),
    Field("heap", record(HEAP)),
    Field("machine", record(MACHINE)),
    Field("is_error_in_error_handler", FLAG),
    Field("complete", FLAG, help="false: the report ends before its last section"),
    Field("report_file", help="where the JVM says that it saved the report"),
    Field("is_in_output", FLAG, help="found in the output of a program"),
)


def utc(time_s: float | None) -> str | None:
    """A time since the epoch as a date; None where it is none."""
    if time_s is None or not 0 <= time_s < _LAST_MOMENT_S:
        return None
    return datetime.fromtimestamp(time_s, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


VERDICT: Sequence[Field[Verdict]] = (
    Field("file", value=attrgetter("read.name")),
    Field("modified_utc", _DATE, value=lambda verdict: utc(verdict.read.modified_s)),
    Field("pattern", help="the finding's code"),
    Field("blamed"),
    Field("cause"),
    Field("meaning", help="of the signal and its code"),
    Field("evidence", list_of(TEXT)),
    Field("fix"),
    Field("next"),
    Field("application", record(FRAME), help="the innermost Java method outside the JDK"),
    Field("core_file", record(CORE), value=attrgetter("read.core")),
    Field("replay_file", value=attrgetter("read.replay"), help="of the compiler"),
    Field(
        "report", record(REPORT), value=attrgetter("read.report"), help="the whole report; secrets are replaced by …"
    ),
)
GROUP: Sequence[Field[Group]] = (
    Field("crashes", COUNT, value=lambda group: len(group.verdicts)),
    Field("pattern", value=attrgetter("first.pattern")),
    Field("blamed", value=attrgetter("first.blamed")),
    Field("cause", value=attrgetter("first.cause")),
    Field(
        "files", list_of(TEXT), value=lambda group: [each.read.name for each in group.verdicts], help="the newest first"
    ),
)
UNREAD: Sequence[Field[Unread]] = (Field("file", value=attrgetter("name")), Field("why"))
PLACE: Sequence[Field[Place]] = (
    Field("path"),
    Field("what", help="why JVMs write reports there"),
    Field("found", list_of(TEXT), help="reports"),
    Field("why_not", help="why it could not be read"),
)


def _of_facts(name: str, kind: Kind, help_: str = "") -> Field[Any]:
    return Field(name, kind, value=attrgetter(f"facts.{name}"), help=help_)


DOCUMENT: Sequence[Field[Result]] = (
    Field("crashes", records(VERDICT), value=attrgetter("verdicts")),
    Field("groups", records(GROUP), help="crashes of the same cause, the most frequent first"),
    _of_facts("unread", records(UNREAD)),
    _of_facts("places", records(PLACE), "where reports were looked for, without a file"),
    _of_facts("core_pattern", TEXT, "kernel.core_pattern of this machine"),
    _of_facts("has_coredumpctl", FLAG),
)


def complete(report: Report, result: Result) -> Report:
    """The report with its JSON object."""
    return report._replace(document=(DOCUMENT, result))
