"""MBeans as JMX names them: attributes by ObjectName, from the JVM's counters, memory and diagnostic commands, or from an agent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Union

    # As JSON: composites are objects by key, tabular data and arrays are lists.
    Value = Union[None, bool, int, float, str, Sequence["Value"], Mapping[str, "Value"]]


class Request(NamedTuple):
    """`patterns`: of `ObjectName` or `ObjectName attribute`; none: all that cost nothing. `ask`: may start the attach listener.

    `jolokia`: a URL, or "" to discover one; `agent`: load our agent for MBeans that only code in the JVM can read. `window_s`: of
    CPU loads, which are unknown in a first look without it.
    """

    pid: int | None
    patterns: Sequence[str] = ()
    ask: bool = False
    jolokia: str | None = None
    agent: bool = False
    window_s: float | None = None


class Attribute(NamedTuple):
    """`name` is JMX's (HeapMemoryUsage). `error`: why this one has no value. `source`: hsperfdata, memory, proc, jcmd, agent, jolokia."""

    name: str
    value: Value
    source: str
    error: str | None = None


class Bean(NamedTuple):
    """`name`: the ObjectName as the MBean server writes it (java.lang:type=MemoryPool,name=G1 Eden Space).

    A table with one key (SystemProperties, memoryUsageAfterGc) is an object by that key.
    """

    name: str
    attributes: Sequence[Attribute]


class Facts(NamedTuple):
    """`missing`: sentences, what could not be read and what to do (--ask, --agent). `left_behind`: what an agent leaves in the JVM."""

    pid: int | None
    main: str | None  # main class or jar; None: read over HTTP
    java_version: str | None
    beans: Sequence[Bean]
    missing: Sequence[str] = ()
    left_behind: Sequence[str] = ()
    at_s: float = 0.0  # of the wall clock
    names: Mapping[
        str, Sequence[str]
    ] = {}  # with patterns: every MBean that can be read here, and paths of its attributes
    jolokia_url: str | None = None  # that answered, without user and password

    @property
    def in_process(self) -> bool:
        """Whether code in the JVM read them: then there is no other MBean, and what is missing is of those that were asked for."""
        return self.jolokia_url is not None or bool(self.left_behind)
