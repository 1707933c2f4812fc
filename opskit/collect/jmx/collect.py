"""Read the platform MBeans of a JVM without code in it: from its counters, its memory, and /proc."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.collect.jmx.beans_of_buffers import buffer_beans
from opskit.collect.jmx.beans_of_flags import flag_beans
from opskit.collect.jmx.beans_of_memory import memory_beans
from opskit.collect.jmx.beans_of_runtime import runtime_bean, system_properties
from opskit.collect.jmx.beans_of_system import read_ticks, system_bean
from opskit.collect.jmx.beans_of_threads import COMPILATION, COMPILER_PROPERTY, thread_beans
from opskit.collect.jmx.facts import Attribute, Bean, Facts, Request
from opskit.collect.jmx.made import ATTACH, MEMORY
from opskit.collect.jmx.sources import Sources
from opskit.errors import UsageError
from opskit.jvm.object_names import parse_pattern, wants_attribute, wants_bean

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from opskit.collect.jmx.beans_of_system import CpuTicks
    from opskit.collect.jmx.facts import Value
    from opskit.host import Host

_LOADS = "java.lang:type=OperatingSystem ProcessCpuLoad, CpuLoad: a first look has no loads; add -i 1s, or -w"
_APPLICATION = "MBeans of the application, java.util.logging, jdk.management: only code in the JVM can read them; --agent or --jolokia"


def collect(host: Host, ask: Request) -> Facts:
    """One look. Raises NoSuchProcess, NotAJvm, NotPermitted, NotSupported, UsageError."""
    return Collector(host, ask).look()


class Collector:
    """Look once, or repeatedly for a watch."""

    def __init__(self, host: Host, ask: Request) -> None:
        self.host, self.ask = host, ask
        self.patterns = [parse_pattern(each) for each in ask.patterns]
        self._sources: Sources | None = None
        self._ticks: CpuTicks | None = None

    def look(self) -> Facts:
        """Read the beans that were asked for. Raises as `collect`; NoSuchProcess where the JVM has ended since the last look."""
        if self.ask.pid is None:
            raise UsageError("no JVM was named")
        if self._sources is None:
            self._sources = Sources(self.host, self.ask.pid)
        sources = self._sources
        if self.ask.window_s is not None and self._ticks is None:
            self._ticks = read_ticks(sources)
            self.host.sleep(self.ask.window_s)
        sources.look()
        before, self._ticks = self._ticks, read_ticks(sources)
        found = read_beans(sources, before, self._ticks, ask=self.ask.ask)
        is_first = before is None and self.host.fs.is_live
        missing = [*sources.missing, *([_LOADS] if is_first else []), _APPLICATION]
        names = {each.name: _paths_of_bean(each) for each in found} if self.patterns else {}
        jvm = sources.jvm
        return Facts(
            jvm.pid,
            jvm.main,
            sources.release,
            self.wanted(found),
            missing,
            at_s=sources.at_s,
            names=names,
        )

    def wanted(self, beans: Sequence[Bean]) -> list[Bean]:
        """Those beans, and of them those attributes, that the patterns mean."""
        found = (self._wanted(bean) for bean in beans if wants_bean(self.patterns, bean.name))
        return [bean for bean in found if bean.attributes]

    def _wanted(self, bean: Bean) -> Bean:
        def is_wanted(each: Attribute) -> bool:
            return wants_attribute(self.patterns, bean.name, each.name, paths_of(each.value))

        return bean._replace(attributes=tuple(filter(is_wanted, bean.attributes)))


def read_beans(sources: Sources, before: CpuTicks | None, now: CpuTicks | None, *, ask: bool = False) -> list[Bean]:
    """All that are known. `before`, `now`: of CPU loads; `ask`: may start the attach listener where nothing else helps."""
    source, properties = system_properties(sources, ask=ask)
    found = [
        *memory_beans(sources), *thread_beans(sources), *buffer_beans(sources), *flag_beans(sources),
        runtime_bean(sources, source, properties), system_bean(sources, properties, before, now),
    ]  # fmt: skip
    return sorted((_named_compiler(each, source, properties) for each in found), key=lambda each: each.name)


def _named_compiler(bean: Bean, source: str, properties: Mapping[str, str]) -> Bean:
    """The bean of the compilers with their name; without attributes where all properties are known, and it has none (-Xint)."""
    if bean.name != COMPILATION:
        return bean
    name = properties.get(COMPILER_PROPERTY)
    if name is None:
        return bean._replace(attributes=()) if source in (MEMORY, ATTACH) else bean
    return bean._replace(attributes=(Attribute("Name", name, source), *bean.attributes))


def _paths_of_bean(bean: Bean) -> Sequence[str]:
    return [
        path
        for each in bean.attributes
        for path in (each.name, *(f"{each.name}.{below}" for below in paths_of(each.value)))
    ]


def paths_of(value: Value) -> Sequence[str]:
    """The paths of the values in a composite: `used`, `memoryUsageAfterGc.G1 Eden Space.used`."""
    paths: list[str] = []
    _add_paths(value, "", paths)
    return paths


def _add_paths(value: Value, path: str, paths: list[str]) -> None:
    from collections.abc import Mapping as AnyMapping

    if isinstance(value, AnyMapping):
        below: Mapping[str, Value] = value
        for key, each in below.items():
            _add_paths(each, f"{path}.{key}" if path else key, paths)
    if path:
        paths.append(path)
