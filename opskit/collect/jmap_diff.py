"""Class histograms to compare: their record, and the reading of saved ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.errors import BadInput, NoSuchProcess
from opskit.jvm.dumps.histogram_reader import parse_histograms
from opskit.jvm.logs.timestamps import read_stamp
from opskit.proc.user_files import read_text, source_name
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opskit.errors import OpskitError
    from opskit.jvm.dumps.heap_info import HeapInfo
    from opskit.jvm.dumps.histogram import Histogram
    from opskit.jvm.perfdata.gc_counts import GcCounts


class Sample(NamedTuple):
    """A histogram. `pause_s`: how long taking it paused the JVM; None: from a file, or unknown.

    `before` and `after`: the collections so far, around it; `info`: the heap and Metaspace after it; `direct_bytes`: the
    direct memory in use. None: from a file, or unknown.
    """

    histogram: Histogram
    pause_s: float | None = None
    before: GcCounts | None = None
    after: GcCounts | None = None
    info: HeapInfo | None = None
    direct_bytes: int | None = None


class Room(NamedTuple):
    """The memory that is left to a process, in bytes, and whose limit ends it."""

    owner: str
    free_bytes: int


class Limits(NamedTuple):
    """What ends growth in the heap and outside of it, in bytes. None: unknown; UNLIMITED: no limit.

    `direct_is_default`: -XX:MaxDirectMemorySize is not set, and the maximum heap is the limit.
    """

    heap: float | None = None
    metaspace: float | None = None
    class_space: float | None = None
    direct: float | None = None
    direct_is_default: bool = False
    room: Room | None = None


class Target(NamedTuple):
    """The JVM that was asked. `heap_max_bytes` None: unknown."""

    pid: int
    start_ticks: int | None
    main: str
    jdk: str | None
    unit: str | None
    heap_max_bytes: int | None


class Facts(NamedTuple):
    """The histograms, in order. `jvm` None: they are from files, and the rest has no meaning.

    `saved`: the files with their raw text; None: they were not saved. `late`: how many came late. `error`: why a series
    ended early. `replayed`: they are those of a capture.
    """

    samples: Sequence[Sample]
    jvm: Target | None = None
    live: bool = False
    saved: Sequence[str] | None = None
    late: int = 0
    interrupted: bool = False
    error: OpskitError | None = None
    limits: Limits = Limits()
    replayed: bool = False

    @property
    def has_ended(self) -> bool:
        """Whether the JVM ended during the series."""
        return isinstance(self.error, NoSuchProcess)


def collect(files: Sequence[str]) -> Facts:
    """All histograms of the files, in the order given. Raises BadInput, also for a single histogram, and NotPermitted."""
    found: list[Histogram] = []
    for file in files:
        inside = parse_histograms(read_text(file, "jmap-diff"), source_name(file))
        if len(inside) == 1 and len(files) > 2 and inside[0].stamp.time_s is None:
            named = read_stamp(file)  # --save and many scripts write the time into the name
            inside = [inside[0]._replace(stamp=inside[0].stamp._replace(time_s=named.time_s))]
        found += inside
    if len(found) == 1:
        problem = "this is a single histogram; give another one to compare it with, or a PID to take them"
        raise BadInput(found[0].source, problem)
    return Facts([Sample(histogram) for histogram in found])
