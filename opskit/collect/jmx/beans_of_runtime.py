"""java.lang:type=Runtime: how the JVM was started and what it is. Secrets in its options and properties are hidden."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.collect.jmx.made import ATTACH, COUNTERS, MEMORY, PROC, bean
from opskit.errors import NotSupported, OpskitError
from opskit.jvm.launch import parse_words, vm_words
from opskit.jvm.memory.system_properties import read_system_properties
from opskit.proc.fs import optional
from opskit.redact import redact_text, redact_value, redact_words

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opskit.collect.jmx.facts import Bean, Value
    from opskit.collect.jmx.sources import Sources

_PROPERTY = "java.property."
_FIRST_WITHOUT_BOOT_PATH, _FIRST_WITH_PID = 9, 10
_MANAGEMENT_SPECS = ((20, "4.0"), (14, "3.0"), (9, "2.0"), (7, "1.2"))
_MOST_HOSTNAME_BYTES = 4096
_TIMEOUT_S = 2.0
_PROPERTIES = "java.lang:type=Runtime SystemProperties"
START = "_ZL18initial_time_count"  # of os::elapsed_counter(), in nanoseconds of the monotonic clock
_NS_PER_S, _NS_PER_MS = 1_000_000_000, 1_000_000
_ELSE = "--agent reads them"


def system_properties(sources: Sources, *, ask: bool = False) -> tuple[str, Mapping[str, str]]:
    """Where they were read, and all of them from the JVM's memory, else those few that it shares in its counters.

    `ask`: without rights to its memory the JVM may be asked, for which it loads some classes.
    """
    found = None
    if sources.memory is not None:
        try:
            structs, objects = sources.opened[0], sources.objects()
            found = sources.steady(_PROPERTIES, lambda: read_system_properties(structs, objects) or {}) or None
        except NotSupported as error:
            sources.missing.append(f"{_PROPERTIES}: {error}; {_ELSE}")
        else:
            if found is None:
                why = "the JVM's heap changed while it was read; try again. Here are those of its counters"
                sources.missing.append(f"{_PROPERTIES}: {why}")
    if found is not None:
        return MEMORY, found
    if ask and sources.memory is None and sources.host.can_ask:
        try:
            return ATTACH, asked_properties(sources)
        except (OpskitError, OSError) as error:
            sources.missing.append(f"{_PROPERTIES}: {error}")
    counted = sources.perf.counters.items() if sources.perf is not None else ()
    begin = len(_PROPERTY)
    return COUNTERS, {
        name[begin:]: counter.value
        for name, counter in counted
        if name.startswith(_PROPERTY) and isinstance(counter.value, str)
    }


def asked_properties(sources: Sources) -> Mapping[str, str]:
    """The JVM's answer to the attach command `properties`. Raises as AttachClient does."""
    from opskit.jvm.attach.connect import client_of
    from opskit.jvm.dumps.java_properties import parse_java_properties

    answer = client_of(sources.host.fs, sources.pid, _TIMEOUT_S).execute("properties")
    return parse_java_properties(answer.decode("latin-1"))


def runtime_bean(sources: Sources, source: str, properties: Mapping[str, str]) -> Bean:
    """What is known. `properties`: those of `system_properties`, with secrets."""
    major = sources.major
    texts: dict[str, Value] = {
        attribute: _shown(name, properties)
        for attribute, name in (
            ("VmName", "java.vm.name"), ("VmVendor", "java.vm.vendor"), ("VmVersion", "java.vm.version"),
            ("SpecName", "java.vm.specification.name"), ("SpecVendor", "java.vm.specification.vendor"),
            ("SpecVersion", "java.vm.specification.version"), ("ClassPath", "java.class.path"),
            ("LibraryPath", "java.library.path"),
        )
    }  # fmt: skip
    if major is not None and major < _FIRST_WITHOUT_BOOT_PATH:
        texts["BootClassPath"] = _shown("sun.boot.class.path", properties)
    texts["SystemProperties"] = {name: redact_value(name, value) for name, value in sorted(properties.items())} or None
    fixed: dict[str, Value] = {}
    if major is not None:
        fixed["BootClassPathSupported"] = major < _FIRST_WITHOUT_BOOT_PATH
        fixed["ManagementSpecVersion"] = next((spec for first, spec in _MANAGEMENT_SPECS if major >= first), None)
    return bean(
        "java.lang:type=Runtime", (COUNTERS, _times(sources)), (COUNTERS, fixed), (source, texts), (PROC, _names(sources)),
        _arguments(sources),
    )  # fmt: skip


def _shown(name: str, properties: Mapping[str, str]) -> str | None:
    value = properties.get(name)
    return None if value is None else redact_value(name, value)


def _times(sources: Sources) -> dict[str, Value]:
    """In milliseconds; without counters they are not known so exactly."""
    began, ready = (sources.number(f"sun.rt.{name}Time") for name in ("createVmBegin", "vmInitDone"))
    if not sources.host.fs.is_live:
        return {"StartTime": ready}
    start = sources.variable(START, 8)
    if start and _has_our_clock(sources):  # the wall clock may have been set since
        return {"StartTime": ready, "Uptime": max(0, round(sources.at_monotonic_s * _NS_PER_S) - start) // _NS_PER_MS}
    if began is None:
        return {"StartTime": ready}
    return {"StartTime": ready, "Uptime": max(0, round(sources.at_s * 1000) - began)}


def _has_our_clock(sources: Sources) -> bool:
    """Whether its monotonic clock is ours: not that of a time namespace (Linux 5.6)."""
    fs = sources.host.fs
    return optional(fs.link, sources.pid, "ns", "time") == optional(fs.link, "self", "ns", "time")


def _names(sources: Sources) -> dict[str, Value]:
    host_name = _host_name(sources)
    number = sources.jvm.ns_pid
    return {
        "Pid": number if (sources.major or 0) >= _FIRST_WITH_PID else None,
        "Name": f"{number}@{host_name}" if host_name else None,
    }


def _host_name(sources: Sources) -> str | None:
    """The name of the machine or container that the JVM runs in; None: not visible from here."""
    fs, pid = sources.host.fs, sources.pid
    if not fs.is_live or optional(fs.link, pid, "ns", "uts", default=b"?") == optional(fs.link, "self", "ns", "uts"):
        return sources.host.name
    found = optional(fs.read_inside, pid, "/etc/hostname", _MOST_HOSTNAME_BYTES, default=b"")
    return found.decode("utf-8", "replace").strip() or None


def _arguments(sources: Sources) -> tuple[str, dict[str, Value]]:
    read = sources.arguments()
    if read is not None:
        return MEMORY, {"InputArguments": redact_words(read)}
    words = sources.host.fs.maybe(parse_words, sources.pid, "cmdline", default=[])
    line = sources.text("java.rt.vmArgs")
    options = [word for word in vm_words(words) if not word.startswith("-J")]
    if line is not None and line == " ".join(options):
        return COUNTERS, {"InputArguments": redact_words(options)}
    if line is not None:
        why = "options with blanks cannot be told apart in the JVM's counters; here is one line"
        sources.missing.append(f"java.lang:type=Runtime InputArguments: {why}")
        return COUNTERS, {"InputArguments": [redact_text(" ".join(redact_words(line.split(" "))))]}
    return PROC, {"InputArguments": redact_words(options) if options else None}
