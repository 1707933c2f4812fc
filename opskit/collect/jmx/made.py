"""Beans of attributes that are known; what is None is left out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.collect.jmx.facts import Attribute, Bean

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opskit.collect.jmx.facts import Value
    from opskit.jvm.memory.memory_service import Usage

COUNTERS, MEMORY, PROC, ATTACH = "hsperfdata", "memory", "proc", "jcmd"


def bean(name: str, *groups: tuple[str, Mapping[str, Value]]) -> Bean:
    """A bean with the known values of groups of (source, values by name)."""
    known = (
        Attribute(each, value, source)
        for source, values in groups
        for each, value in values.items()
        if value is not None
    )
    return Bean(name, tuple(known))


def usage_value(usage: Usage | None) -> Value:
    """A MemoryUsage as a composite."""
    return None if usage is None else {key: getattr(usage, key) for key in ("init", "used", "committed", "max")}
