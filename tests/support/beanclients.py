"""JVMs with tests/java/Beans.java, a client of its own platform MBean server, and its values beside ours."""

from __future__ import annotations

import contextlib
import json
import time
from typing import TYPE_CHECKING

import jvms

if TYPE_CHECKING:
    from collections.abc import Iterator

# Only code in the JVM can tell these.
UNKNOWN = frozenset({
    "ObjectName", "AllThreadIds", "TotalThreadAllocatedBytes", "CurrentThreadAllocatedBytes", "CurrentThreadCpuTime",
    "CurrentThreadUserTime", "SystemCpuLoad", "CpuLoad", "ProcessCpuLoad",
})  # fmt: skip
UNKNOWN_BEANS = frozenset({"java.util.logging:type=Logging"})
OURS = frozenset({"LastGcCause"})  # not in JMX
REFUSED = "ERROR"
HIDDEN = "…"
# How far a value may be outside of two that the client gives: the machine's memory is everybody's, stubs come and go.
_SLACK = {
    "SystemLoadAverage": 0.011, "FreeMemorySize": 1 << 32, "FreePhysicalMemorySize": 1 << 32,
    "FreeSwapSpaceSize": 1 << 32, "Usage.used": 1 << 18, "NonHeapMemoryUsage.used": 1 << 18,
}  # fmt: skip


class Client:
    """One JVM; `options` with which it was started."""

    def __init__(self, version: int, options: tuple[str, ...], file: str, wrapper: tuple[str, ...] = ()) -> None:
        command = [*wrapper, jvms.java(version), "-Xmx64m", *options, "-cp", jvms.classes(), "Beans", file]
        self.version, self.options = version, options
        self.jvm = jvms.run(command, ready=False)
        self.pid = self.jvm.pid

    def wait_ready(self) -> None:
        """Wait until it answers."""
        self.jvm.wait_ready()

    def ask(self, command: str, wanted: str = "DONE") -> str:
        """Its answer to a letter."""
        self.jvm.process.stdin.write(command.encode())
        self.jvm.process.stdin.flush()
        self.jvm.wait_for_line(wanted, time.monotonic() + jvms.START_S)
        return self.jvm.lines[-1]

    def beans(self) -> dict[str, dict[str, object]]:
        """All its MBeans by their names, with their attributes."""
        found = json.loads(self.ask("b", "BEANS").partition(" ")[2])
        return {bean["ObjectName"]: bean for bean in found.values()}


@contextlib.contextmanager
def clients(
    cases: dict[str, tuple[int, tuple[str, ...]]], file: str, wrapper: tuple[str, ...] = ()
) -> Iterator[dict[str, Client]]:
    """The clients of these cases, started side by side. `wrapper`: a command before java, which it becomes."""
    started = {name: Client(version, options, file, wrapper) for name, (version, options) in cases.items()}
    try:
        for each in started.values():
            each.wait_ready()
        yield started
    finally:
        for each in started.values():
            each.jvm.stop()


def collections(beans: dict[str, dict[str, object]]) -> list[object]:
    """How many collections have run: sizes of spaces change with them in both directions."""
    return [bean.get("CollectionCount") for _, bean in sorted(beans.items())]


def differences(before, ours, after) -> list[str]:
    """What is not equal to one of the client's two values, nor between them."""
    found = [f"{name}: not in JMX" for name in ours if name not in before]
    for name, attributes in before.items():
        if name in UNKNOWN_BEANS:
            continue
        if name not in ours:
            found.append(f"{name}: lacking")
            continue
        for key, value in attributes.items():
            if key in UNKNOWN or value == REFUSED:
                continue
            if key not in ours[name]:
                found += [f"{name} {key}: lacking"] if value is not None else []
                continue
            then, now, later = (
                dict(_flat(value, key)),
                dict(_flat(ours[name][key], key)),
                dict(_flat(after[name][key], key)),
            )
            found += [
                f"{name} {path}: {now.get(path)!r}, not {then.get(path)!r} .. {later.get(path)!r}"
                for path in {*then, *now}
                if not _fits(path, now.get(path), then.get(path), later.get(path))
            ]
        found += [f"{name} {key}: not in JMX" for key in ours[name] if key not in attributes and key not in OURS]
    return found


def _fits(path: str, ours, before, after) -> bool:
    if ours in (before, after) and type(ours) in (type(before), type(after)):
        return True
    if HIDDEN in str(ours):
        return "password" in path or "InputArguments" in path
    numbers = [each for each in (ours, before, after) if isinstance(each, (int, float)) and not isinstance(each, bool)]
    slack = _SLACK.get(path, 0)
    return len(numbers) == 3 and min(before, after) - slack <= ours <= max(before, after) + slack


def _flat(value, path):
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _flat(each, f"{path}.{key}")
    elif isinstance(value, list):
        for number, each in enumerate(value):
            yield from _flat(each, f"{path}.{number}")
    else:
        yield path, value
