"""What a report says, as rows of a name and a value."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.analysis.crash.case import full_name_of
from opskit.analysis.crash.memory import FEWEST_MAPS
from opskit.analysis.crash.native import application_libraries_of
from opskit.analysis.crash.stacks import frames_of, innermost, java_frames_of
from opskit.quantities import duration, listed, plural, short_size
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opskit.analysis.crash.result import Verdict
    from opskit.jvm.logs.crashes.record import CrashReport, Heap, Machine

_FRAMES, _EVENTS, _MESSAGES, _LIBRARIES = 64, 20, 3, 20
_LIMITS = ("NOFILE", "NPROC", "AS", "DATA", "STACK", "CORE")


class Row(NamedTuple):
    """One fact of a report."""

    name: str
    value: str


def main_rows(verdict: Verdict) -> Iterator[Row]:
    """What decides the verdict, and the state of the JVM and the machine."""
    report = verdict.read.report
    pairs = (
        ("signal", _signal(verdict)),
        ("message", "; ".join(line.strip() for line in report.event.message[:_MESSAGES]) or None),
        ("frame", _frame(report)),
        ("application", full_name_of(verdict.application) if verdict.application else None),
        ("thread", _thread(report)),
        ("compile task", report.compile_task and report.compile_task.strip()),
        ("VM operation", report.vm_operation),
        ("time", _time(report)),
        ("JVM", _jvm(report)),
        ("heap", _heap(report.heap)),
        ("memory", _memory(report.machine)),
        ("machine", _machine(report.machine)),
        ("container" if _is_limited(report.machine) else "cgroup", _container(report.machine)),
        ("limits", _limits(report.machine)),
        ("core file", _core(verdict)),
        ("replay file", verdict.read.replay),
    )
    for name, value in pairs:
        if value:
            yield Row(name, value)


def _signal(verdict: Verdict) -> str:
    event = verdict.read.report.event
    code = f" {event.code}" if event.code else ""
    source = f" ({event.source})" if event.source else ""
    return f"{event.name}{code}{source}" + (f": {verdict.meaning}" if verdict.meaning else "")


def _frame(report: CrashReport) -> str | None:
    frame = innermost(report)
    return f"{frame.kind} {frame.text}" if frame else None


def _thread(report: CrashReport) -> str | None:
    thread = report.thread
    if thread is None:
        return None
    state = f", {thread.state}" if thread.state else ""
    tid = f", TID {thread.tid}" if thread.tid is not None else ""
    size = (
        ""
        if thread.stack_low is None or thread.stack_high is None
        else f", stack {short_size(thread.stack_high - thread.stack_low)}"
    )
    return f"{thread.kind} {thread.name or ''}".rstrip() + f"{state}{tid}{size}"


def _time(report: CrashReport) -> str | None:
    age = f"{duration(report.uptime_s)} after its start" if report.uptime_s is not None else None
    return ", ".join(each for each in (report.at, age) if each) or None


def _jvm(report: CrashReport) -> str | None:
    return report.runtime or report.vm


def _heap(heap: Heap) -> str | None:
    sizes = (("used", heap.used_bytes), ("committed", heap.committed_bytes), ("-Xmx", heap.max_bytes))
    known = [f"{name} {short_size(count)}" for name, count in sizes if count is not None]
    return ", ".join([*([heap.collector] if heap.collector else []), *known]) or None


def _memory(machine: Machine) -> str | None:
    sizes = (("resident (RSS)", machine.rss_bytes), ("virtual", machine.virtual_bytes))
    return ", ".join(f"{name} {short_size(count)}" for name, count in sizes if count is not None) or None


def _machine(machine: Machine) -> str | None:
    parts = [
        machine.os,
        None if machine.cpus is None else plural(machine.cpus, "CPU"),
        None if machine.memory_bytes is None else f"memory {short_size(machine.memory_bytes)}",
        None if machine.free_bytes is None else f"{short_size(machine.free_bytes)} free",
        None if machine.swap_free_bytes is None else f"{short_size(machine.swap_free_bytes)} of swap free",
        machine.load and f"load {machine.load}",
    ]
    return ", ".join(part for part in parts if part) or None


def _is_limited(machine: Machine) -> bool:
    """Whether a container is certain: JVMs up to 21 name the cgroup of a JVM outside of one too."""
    return machine.container_memory_bytes is not None or machine.container_cpus is not None


def _container(machine: Machine) -> str | None:
    if machine.container is None:
        return None
    sizes = (
        ("limit", machine.container_memory_bytes),
        ("used", machine.container_used_bytes),
        ("most used", machine.container_max_used_bytes),
    )
    known = [f"{name} {short_size(count)}" for name, count in sizes if count is not None]
    known = known if machine.container_memory_bytes is not None else ["no memory limit", *known]
    cpus = [f"CPUs {machine.container_cpus}"] if machine.container_cpus else []
    return ", ".join([machine.container, *known, *cpus])


def _limits(machine: Machine) -> str | None:
    soft = ((name, machine.limits[name].partition("/")[0].strip()) for name in _LIMITS if name in machine.limits)
    known = [f"{name} {limit}" for name, limit in soft if limit not in ("infinity", "unlimited")]
    if machine.max_map_count is not None:
        maps = machine.maps if machine.maps is not None and machine.maps >= FEWEST_MAPS else None
        known.append(f"max_map_count {machine.max_map_count}" + ("" if maps is None else f" ({maps} mappings)"))
    return ", ".join(known) or None


def _core(verdict: Verdict) -> str | None:
    core = verdict.read.core
    if core is not None and core.path:
        more = f"; {core.said}" if core.said else ""
        return core.path + (f" ({short_size(core.size_bytes)})" if core.size_bytes is not None else "") + more
    said = (core.said if core else None) or verdict.read.report.core
    return "none: core files were disabled" if said and "disabled" in said else said


def more_rows(verdict: Verdict) -> Iterator[Row]:
    """For -v: how the JVM was started, its environment, libraries and last events."""
    report = verdict.read.report
    for name, value in (
        ("command", report.java_command), ("command line", report.command_line), ("JVM arguments", report.jvm_arguments), ("java.home", report.java_home),
    ):  # fmt: skip
        if value:
            yield Row(name, value)
    for variable in report.environment.items():
        yield Row("environment", "=".join(variable))
    libraries = application_libraries_of(report)
    if libraries:
        yield Row("application libraries", listed(libraries, _LIBRARIES))
    if report.memory_at_address:
        yield Row("at the address", report.memory_at_address)
    events = [line for line in report.last_events if "Loading class" not in line] or report.last_events
    for line in events[-_EVENTS:]:
        yield Row("event", line.strip())


def frame_rows(report: CrashReport) -> Sequence[Row]:
    """The stack: native frames, which hold the Java ones too where the JVM could walk them."""
    frames = [*frames_of(report)]
    java = [frame for frame in java_frames_of(report) if frame not in frames]
    return [Row(frame.kind, frame.text) for frame in (*frames[:_FRAMES], *java[:_FRAMES])]
