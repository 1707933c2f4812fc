"""Read the platform MBeans of a JVM without code in it: from its counters, its memory, and /proc."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.collect.jmx.facts import Bean, Facts, Request
from opskit.jvm.discover import find_jvm
from opskit.jvm.object_names import parse_pattern, wants_attribute, wants_bean

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from opskit.collect.jmx.facts import Attribute, Value
    from opskit.host import Host


def collect(host: Host, ask: Request) -> Facts:
    """One look. Raises NoSuchProcess, NotAJvm, NotPermitted, NotSupported, UsageError."""
    return Collector(host, ask).look()


class Collector:
    """Look once, or repeatedly for a watch."""

    def __init__(self, host: Host, ask: Request) -> None:
        self.host, self.ask = host, ask
        self.patterns = [parse_pattern(each) for each in ask.patterns]

    def look(self) -> Facts:
        """Read the beans that were asked for. Raises as `collect`; NoSuchProcess where the JVM has ended since the last look."""
        assert self.ask.pid is not None
        jvm = find_jvm(self.host.fs, self.ask.pid, self.host.clock_ticks)
        beans: list[Bean] = []
        return Facts(jvm.pid, jvm.main, None, self.wanted(beans), at_s=self.host.now().timestamp())

    def wanted(self, beans: Sequence[Bean]) -> list[Bean]:
        """Those beans, and of them those attributes, that the patterns mean."""
        found = (self._wanted(bean) for bean in beans if wants_bean(self.patterns, bean.name))
        return [bean for bean in found if bean.attributes]

    def _wanted(self, bean: Bean) -> Bean:
        def is_wanted(each: Attribute) -> bool:
            return wants_attribute(self.patterns, bean.name, each.name, paths_of(each.value))

        return bean._replace(attributes=tuple(filter(is_wanted, bean.attributes)))


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
