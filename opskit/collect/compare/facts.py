"""What two machines are compared by: flat facts, each with a class, an area, a name and a value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Optional, Union

from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opskit.jvm.discover import Jvm

MEASURED, CONFIGURED, HOST = "measured", "configured", "host"
CLASSES = (MEASURED, CONFIGURED, HOST)

# Units of numbers. A share is 0 to 1.
SHARE, PER_S, BYTES, BYTES_PER_S, CPUS, SECONDS, COUNT = "share", "per_s", "bytes", "bytes_per_s", "cpus", "s", "count"
TEXT = ""

NO_RATES = "rates need two samples"
Value = Union[float, str]


class Fact(NamedTuple):
    """One value. `key` is the same on every machine: `jvm.collector`, `flag.MaxHeapSize`, `sysctl.vm.swappiness`.

    `events`: how many events a rate or share rests on; None: it does not rest on events. `since`: the same share since the
    JVM's or the cgroup's start. `low`, `high`: between the samples, where there are three or more.
    """

    key: str
    class_: str
    area: str
    name: str
    value: Value
    unit: str = TEXT
    events: Optional[float] = None  # noqa: UP045
    since: Optional[float] = None  # noqa: UP045
    low: Optional[float] = None  # noqa: UP045
    high: Optional[float] = None  # noqa: UP045


class Known(NamedTuple):
    """The facts of a machine or a JVM by key. What has one of the prefixes `whole` and is not among them is not set.

    `missing`: (what, why) of facts that are unknown. `off_line`: keys of options that the command line does not show; None: which they are
    is unknown, as the environment could not be read.
    """

    facts: Mapping[str, Fact]
    whole: tuple[str, ...] = ()
    missing: tuple[tuple[str, str], ...] = ()
    off_line: Optional[frozenset[str]] = frozenset()  # noqa: UP045


class JvmFacts(NamedTuple):
    """A JVM. `command`: its main class and arguments; `line`: its whole command line. `identity`: words that are its own."""

    pid: int
    main: str
    command: str
    line: str
    known: Known
    identity: tuple[str, ...] = ()
    jvm: Optional[Jvm] = None  # noqa: UP045
    dumps: tuple[bytes, ...] = ()  # replies to attach commands that a capture holds
    histogram: Optional[bytes] = None  # noqa: UP045


class Machine(NamedTuple):
    """One side. `label`: as it was given; `kind`: capture, sos report, live, copy. `window_s` 0: nothing was measured.

    `options`: those with which another command reads it; None: no command can.
    """

    label: str
    kind: str
    name: str
    time_utc: Optional[str]  # noqa: UP045
    samples: int
    window_s: float
    known: Known
    jvms: tuple[JvmFacts, ...]
    identity: tuple[str, ...] = ()
    options: Optional[tuple[str, ...]] = ()  # noqa: UP045


class Facts(NamedTuple):
    """Both sides."""

    bad: Machine
    good: Machine


def fact_map(facts: list[Fact]) -> dict[str, Fact]:
    """The facts by key; of two with one key the first."""
    found: dict[str, Fact] = {}
    for fact in facts:
        found.setdefault(fact.key, fact)
    return found
