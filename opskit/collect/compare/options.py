"""A JVM's options as facts: flags by their long names, system properties, agents; the last one of a name is in force."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from opskit.collect.compare.facts import BYTES, CONFIGURED, Fact
from opskit.jvm.launch import jvm_options
from opskit.quantities import bytes_of
from opskit.words import is_java_launcher, launcher_options

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from opskit.jvm.discover import Jvm

_FLAG = re.compile(r"-XX:([+-]?)([A-Za-z][A-Za-z0-9_]{0,100})(?:=(.*))?", re.DOTALL)
_SHORT = (("-Xmx", "MaxHeapSize"), ("-Xms", "InitialHeapSize"), ("-Xmn", "NewSize"), ("-Xss", "ThreadStackSize"))
_SHOWN = {"MaxHeapSize": "-Xmx", "InitialHeapSize": "-Xms", "NewSize": "-Xmn", "ThreadStackSize": "-Xss"}
_SIZED = re.compile(r"[0-9]+[kKmMgGtT]?")
_BARE = re.compile(r"-X(?:int|comp|mixed|batch|rs|noclassgc|incgc|share:\w+|check:jni|prof|verify:?\w*|debug|nolinenumbers)|-(?:ea|da|esa|dsa|server|client)(?::.*)?|--enable-preview")  # fmt: skip
_NEXT = re.compile(r"(?<=\s)(?=-(?:X|D|ea|da|esa|dsa|javaagent:|agentlib:|agentpath:|server|client|verbose|-))")
# Flags whose value is a file, a port or a command of this JVM.
_OF_ONE = frozenset(("HeapDumpPath", "ErrorFile", "LogFile", "OnOutOfMemoryError", "OnError", "Flags", "VMOptionsFile", "SharedArchiveFile", "ArchiveClassesAtExit", "StartFlightRecording", "FlightRecorderOptions", "ReplayDataFile", "CRaCCheckpointTo"))  # fmt: skip
# Flags that only let others be given.
_OF_OTHERS = frozenset(("UnlockDiagnosticVMOptions", "UnlockExperimentalVMOptions", "UnlockCommercialFeatures", "IgnoreUnrecognizedVMOptions"))  # fmt: skip
_MOST, _LONGEST = 2000, 500
_LONGEST_COUNTER = 1024  # PerfMaxStringConstLength: what is longer is cut off


def options_of(words: Sequence[str], environment: Sequence[str], vm_args: str | None) -> list[str]:
    """The options in force: of the counters, which have those of files and variables too, else of the command line and variables."""
    is_cut = vm_args is not None and len(vm_args) >= _LONGEST_COUNTER - 1 and is_java_launcher(words)
    if vm_args is not None and not is_cut:
        return [each.strip() for each in _NEXT.split(vm_args)[:_MOST] if each.strip()]
    if not is_java_launcher(words):
        return []
    return jvm_options(list(words), list(environment))[:_MOST]


def option_facts(options: Sequence[str]) -> Iterator[Fact]:
    """Flags (`flag.MaxHeapSize`), properties (`property.x`), agents and switches."""
    found: dict[str, Fact] = {}
    for option in options:
        fact = _fact(option)
        if fact is not None:
            found[fact.key] = fact
    yield from found.values()


def _fact(option: str) -> Fact | None:
    flag = _FLAG.fullmatch(option)
    if flag:
        sign, name, value = flag.groups()
        if name in _OF_OTHERS:
            return None
        if name == "ThreadStackSize" and value:
            value += "K"  # the flag is in KiB, -Xss in bytes
        return _flag(name, {"+": "on", "-": "off"}.get(sign) or (value or ""))
    for short, name in _SHORT:
        if option.startswith(short) and _SIZED.fullmatch(option[len(short) :]):
            return _flag(name, option[len(short) :])
    if option.startswith("-D"):
        name, _, value = option[2:].partition("=")
        return Fact(f"property.{name[:200]}", CONFIGURED, "properties", f"-D{name[:200]}", value[:_LONGEST])
    for kind in ("-javaagent:", "-agentlib:", "-agentpath:"):
        if option.startswith(kind):
            path, _, value = option[len(kind) :].partition("=")
            name = path.rpartition("/")[2]
            return Fact(f"agent.{_unversioned(name)}", CONFIGURED, "flags", f"{kind}{_unversioned(name)}", f"{name} {value}"[:_LONGEST].strip())  # fmt: skip
    if option.startswith(("-Xlog", "-Xloggc", "-verbose")):
        # -Xlog:gc*:file=/var/log/gc-1.log:time: where it goes is this JVM's own.
        what = ":".join(option.split(":")[: 1 if option.startswith("-Xloggc") else 2])
        return Fact(f"switch.{what[:_LONGEST]}", CONFIGURED, "flags", what[:_LONGEST], "on")
    if _BARE.fullmatch(option):
        return Fact(f"switch.{option}", CONFIGURED, "flags", option, "on")
    return None


def _flag(name: str, value: str) -> Fact:
    shown = _SHOWN.get(name) or f"-XX:{name}"
    if name in _OF_ONE:
        return Fact(f"flag.{name}", CONFIGURED, "flags", shown, "set")
    number = bytes_of(value) if _SIZED.fullmatch(value) else None
    if number is not None and (name in _SHOWN or not value.isdigit() or name.endswith("Size")):
        return Fact(f"flag.{name}", CONFIGURED, "flags", shown, number, BYTES)
    return Fact(f"flag.{name}", CONFIGURED, "flags", shown, value[:_LONGEST])


def _unversioned(name: str) -> str:
    return re.sub(r"[-_]v?[0-9][\w.+-]*(?=\.(?:jar|so)\Z)", "", name)


def command_of(jvm: Jvm, words: Sequence[str]) -> str:
    """The main class or jar and its arguments."""
    said = jvm.perf.text("sun.rt.javaCommand") if jvm.perf is not None else None
    if said:
        return said
    if not is_java_launcher(words):
        return " ".join(words) or jvm.main
    _, place = launcher_options(list(words))
    return " ".join(words[place:]) or jvm.main


def class_path_of(words: Sequence[str], properties: Mapping[str, str]) -> list[str]:
    """The places of the class path and the module path, and the jar of -jar."""
    found: list[str] = []
    for place, word in enumerate(words[:-1]):
        if word in ("-cp", "-classpath", "--class-path", "-p", "--module-path"):
            found += words[place + 1].split(":")
        elif word == "-jar":
            found.append(words[place + 1])
            return found
    said = properties.get("java.class.path", "")
    # The counters have what a wildcard stood for.
    is_better = not found or (any(each.endswith("*") for each in found) and len(said) < _LONGEST_COUNTER - 1)
    return [each for each in said.split(":") if each] or found if is_better else found
