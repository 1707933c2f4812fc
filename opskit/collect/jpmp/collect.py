"""Collect thread dumps: sample a live JVM, or read saved dumps and profiles (plain or gzip; `-` is standard input)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NoReturn

from opskit.collect.targets import is_pid, resolve_jvm, resolve_process
from opskit.errors import NothingFound, NotSupported, OpskitError, UsageError
from opskit.jvm import profiles
from opskit.jvm.dumps.dialects import DumpReader
from opskit.proc.user_files import read_bytes, size_bytes, source_name
from opskit.quantities import integer, seconds_of
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from opskit.collect.asprof import AsprofProfile
    from opskit.collect.cpu_profile import CpuProfile
    from opskit.collect.heap_size import HeapSize
    from opskit.collect.jpmp.load import Load
    from opskit.host import Host
    from opskit.jvm.attach.client import AttachClient
    from opskit.jvm.dumps.thread_dump import Detail, ThreadDump
    from opskit.proc.socket_waits import Peer

    DumpVirtual = Callable[[Host, AttachClient, "int | None"], bytes]
    Keep = Callable[[int, bytes], None]

VIRTUAL_TIMEOUT_S = 60.0  # a JVM writes some 15,000 threads/s
_SMALL_BYTES = 16 << 20
UNASKED_TIMEOUT_S = 20.0  # for such a dump beside ordinary ones
_S_PER_GIB = 0.6  # 36 to 39 s were reported for a heap of 65 GB
DEFAULT_SAMPLES, DEFAULT_INTERVAL_S, DEFAULT_MAX_STOP_PERCENT = 20, 0.25, 1.0

# Plain, with owners of java.util.concurrent locks, with all virtual threads.
DumpKind = Literal["threads", "synchronizers", "virtual"]
End = Literal["interrupted", "exited", "deadlock", "long stop", "failed"]
Sampler = Literal["unwind", "dumps", "asprof", "perf-map"]


class Schedule(NamedTuple):
    """How often to sample. `interval_s` None: the default, stretched so that stops stay within `max_stop_percent`."""

    samples: int = DEFAULT_SAMPLES
    interval_s: float | None = None
    max_stop_percent: float | None = None

    @property
    def planned_s(self) -> float:
        """The interval before it is stretched."""
        return DEFAULT_INTERVAL_S if self.interval_s is None else self.interval_s


class Request(NamedTuple):
    """What to read: `files`, or the JVM `pid`, with its threads' CPU time if `cpu`. `before`: a file to compare with.

    `to_the_end`: a deadlock in the first dump does not end the run.
    """

    files: Sequence[str] = ()
    pid: int | None = None
    schedule: Schedule = Schedule()
    kind: DumpKind = "threads"
    timeout_s: float | None = None
    before: str | None = None
    detail: Detail = "stacks"
    cpu: bool = False
    to_the_end: bool = False


class Sampled:
    """A sampled JVM. `times_s`: when each sample began. CPU readings are in ms by native id; so are the peers of sockets.

    `stops_ms`: one per dump, by hsperfdata, or (`stops_are_bounds`) the dump's own time, which is longer.
    `replayed`: the dumps are those of a capture, and what they cost the JVM is unknown.
    `virtual`: dumps of the virtual threads too, taken after `dumps`; `virtual_problem`: why there is none. `parallelism`:
    how many carriers run virtual threads at once.
    """

    def __init__(
        self, pid: int, start_ticks: int | None, main: str, schedule: Schedule, kind: DumpKind = "threads"
    ) -> None:
        self.pid, self.start_ticks, self.main, self.schedule, self.kind = pid, start_ticks, main, schedule, kind
        self.unit: str | None = None
        self.dumps: list[ThreadDump] = []
        self.times_s: list[float] = []
        self.stops_ms: list[float] = []
        self.stops_are_bounds = self.stretched = self.replayed = False
        self.late, self.elapsed_s = 0, 0.0
        self.ended: End | None = None
        self.error: OpskitError | None = None
        self.cpu_before: Mapping[int, float] | None = None
        self.cpu_after: Mapping[int, float] | None = None
        self.natives: Mapping[int, str] | None = None
        self.peers: Mapping[int, Peer] = {}
        self.load: Load | None = None
        self.java_major: int | None = None
        self.virtual: list[ThreadDump] = []
        self.virtual_times_s: list[float] = []
        self.virtual_problem: str | None = None
        self.parallelism: int | None = None

    @property
    def throttled_percent(self) -> float | None:
        """The share of its scheduler periods in which a CPU quota ran out."""
        return None if self.load is None else self.load.throttled_percent

    @property
    def interval_s(self) -> float:
        """The planned interval."""
        return self.schedule.planned_s

    @property
    def mean_interval_s(self) -> float | None:
        """The actual interval; None with a single sample."""
        gaps = len(self.dumps) - 1
        return self.times_s[gaps] / gaps if gaps > 0 else None

    @property
    def stopped_ms(self) -> float | None:
        """How long sampling stopped the JVM."""
        return None if self.replayed else sum(self.stops_ms)

    @property
    def stopped_percent(self) -> float | None:
        """Its share of the run; None with a single sample."""
        stopped_ms = self.stopped_ms
        return (
            stopped_ms / self.elapsed_s / 10
            if stopped_ms is not None and len(self.dumps) > 1 and self.elapsed_s
            else None
        )


class CutOff(NamedTuple):
    """A dump without its end: the `number`-th of `dumps` in a file, with so many whole stacks."""

    source: str
    number: int
    dumps: int
    whole_stacks: int


class Facts(NamedTuple):
    """Dumps, and stacks of saved profiles, from `files`, from the JVM `live`, or the samples `cpu` of a process.

    `sampler`: how a live process was sampled; `fallback`: why by dumps, although CPU samples were asked for. `load`: beside
    `cpu`. `asprof`: what async-profiler says about `cpu`. `unit`: the container, pod or unit of that process. `is_jvm`: false for
    one that is known to be none.
    """

    dumps: Sequence[ThreadDump] = ()
    stacks: Sequence[profiles.WeightedStack] = ()
    files: Sequence[str] = ()
    cut_off: Sequence[CutOff] = ()
    live: Sampled | None = None
    before: Facts | None = None
    cpu: CpuProfile | None = None
    sampler: Sampler | None = None
    fallback: str | None = None
    load: Load | None = None
    asprof: AsprofProfile | None = None
    unit: str | None = None
    is_jvm: bool = True

    @property
    def ended(self) -> str | None:
        """Why the run of a live process ended early."""
        return self.cpu.ended if self.cpu is not None else None if self.live is None else self.live.ended

    @property
    def counts_cpu(self) -> bool:
        """Whether the samples `cpu` are of CPU time, and not of allocations, locks or elapsed time."""
        return self.asprof is None or self.asprof.event in ("ctimer", "cpu")

    @property
    def counted(self) -> str:
        """What samples count: samples, or bytes or ns where async-profiler weighs them."""
        return "samples" if self.asprof is None else self.asprof.unit

    @property
    def process(self) -> tuple[int, int | None] | None:
        """PID and start time of the live process; None for files."""
        of = self.cpu or self.live
        return None if of is None else (of.pid, of.start_ticks)


def collect(host: Host, ask: Request, *, dump_virtual: DumpVirtual | None = None, keep: Keep | None = None) -> Facts:
    """Read the file to compare with, then the files or the JVM. Raises BadInput, and AttachError if the JVM gave no dump at all.

    `dump_virtual`: an action that takes a dump of all virtual threads. `keep` gets the number and raw text of each dump.
    """
    reader, before = DumpReader(ask.detail), read_before(ask)
    if ask.pid is None:
        return read_files(ask.files, reader)._replace(before=before)
    live = _sample(host, ask.pid, ask, reader, dump_virtual, keep)
    return Facts(live.dumps, live=live, before=before, sampler="dumps")


def read_before(ask: Request) -> Facts | None:
    """The file to compare with."""
    return None if ask.before is None else read_files((ask.before,), DumpReader(ask.detail))


def read_files(paths: Sequence[str], reader: DumpReader) -> Facts:
    """Read every file as what it is. Raises BadInput, NotPermitted, and NothingFound for a file without dump or profile."""
    dumps: list[ThreadDump] = []
    stacks: list[profiles.WeightedStack] = []
    cut_off: list[CutOff] = []
    for path in paths:
        source, data = source_name(path), read_bytes(path, "jpmp")
        if source.removesuffix(".gz").endswith((".folded", ".collapsed")):
            text = data.decode("utf-8", "surrogateescape")
            del data  # such files are big
            stacks += profiles.parse_folded(text, source)
            continue
        try:
            found = reader.read(data, source)
        except NothingFound:
            profile = read_profile(data.decode("utf-8", "surrogateescape"), source)
            if profile is None:
                raise
            stacks += profile
            continue
        dumps += found
        for number, dump in enumerate(found, 1):
            if dump.cut_off:
                whole = sum(bool(thread.stack.frames) for thread in dump.threads)
                cut_off.append(CutOff(source, number, len(found), whole))
    return Facts(dumps, stacks, tuple(paths), cut_off)


def is_small(paths: Sequence[str]) -> bool:
    """Whether thread names in these files, if they are files, cost less than a second to read."""
    return sum(map(size_bytes, paths)) <= _SMALL_BYTES


def read_profile(text: str, source: str) -> list[profiles.WeightedStack] | None:
    """The stacks of collapsed stacks or of `opskit jpmp -f json`; None if the text is neither. Raises BadInput."""
    if not text[:1000].lstrip().startswith("{"):
        return profiles.parse_folded(text, source) if profiles.is_folded(text) else None
    import json

    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return profiles.parse_profile(document, source) if profiles.is_profile(document) else None


def _sample(
    host: Host, pid: int, ask: Request, reader: DumpReader, dump_virtual: DumpVirtual | None, keep: Keep | None
) -> Sampled:
    # Sockets and cgroups: not needed for files.
    from opskit.collect.jpmp.sampling import Sampler
    from opskit.collect.jpmp.virtual import FIRST_JDK, add_virtual_threads
    from opskit.jvm.attach.connect import client_of
    from opskit.jvm.attach.target import DEFAULT_TIMEOUT_S
    from opskit.proc.cgroup.owner import unit_of
    from opskit.proc.cgroup.tree import parse_cgroup

    host.prove_asking(pid)
    if host.is_recorded:
        ask, dump_virtual = _of_capture(host, pid, ask), _no_virtual
    default_s = VIRTUAL_TIMEOUT_S if ask.kind == "virtual" else DEFAULT_TIMEOUT_S
    client = client_of(host.fs, pid, default_s if ask.timeout_s is None else ask.timeout_s)

    def dump() -> bytes:
        if ask.kind == "virtual" and dump_virtual is not None:
            return dump_virtual(host, client, heap_to_walk(host, pid).bytes)
        return client.thread_dump(locks=ask.kind == "synchronizers").encode("utf-8", "surrogateescape")

    has_virtual = (client.target.java_major or 0) >= FIRST_JDK
    if has_virtual and ask.detail == "stacks":
        reader = DumpReader("threads")  # pinned carriers are found by the ids of threads
    sampled = Sampler(host, client, reader, ask, dump, keep).sample()
    sampled.java_major = client.target.java_major
    if has_virtual and dump_virtual is not None:
        patient = client_of(host.fs, pid, UNASKED_TIMEOUT_S if ask.timeout_s is None else ask.timeout_s)

        def read_virtual() -> ThreadDump:
            text = dump_virtual(host, patient, heap_to_walk(host, pid).bytes)
            return max(reader.read(text, f"the dump of {pid}"), key=lambda found: len(found.threads))

        add_virtual_threads(host, patient, sampled, ask.detail, None if ask.kind == "virtual" else read_virtual)
    memberships = host.fs.maybe(parse_cgroup, pid, "cgroup")
    sampled.unit = None if memberships is None else unit_of(memberships)
    return sampled


def _of_capture(host: Host, pid: int, ask: Request) -> Request:
    """As many dumps as a capture has, at most so many as are asked for. Raises NotSupported for a dump of virtual threads."""
    from opskit.collect.replayed import recorded_samples
    from opskit.proc.recorded.replies import THREADS

    if ask.kind == "virtual":
        _no_virtual()
    schedule = ask.schedule._replace(samples=recorded_samples(host, pid, THREADS, ask.schedule.samples))
    return ask._replace(schedule=schedule, to_the_end=True)


def _no_virtual(*_: object) -> NoReturn:
    raise NotSupported("a capture has no dump of virtual threads, which a JVM writes to a file")


def heap_to_walk(host: Host, pid: int) -> HeapSize:
    """What a walk of the JVM's heap reads."""
    from opskit.collect.heap_size import heap_size
    from opskit.jvm.discover import read_perfdata

    try:
        perf = read_perfdata(host.fs, pid)
    except OpskitError:
        perf = None
    return heap_size(host, pid, perf)


def heap_walk_s(used_bytes: int, samples: int) -> float:
    """How long `samples` dumps with owners of java.util.concurrent locks stop the JVM, about."""
    return samples * used_bytes / 2**30 * _S_PER_GIB


def read_words(
    host: Host,
    words: Sequence[str],
    kind: DumpKind,
    samples: int | None = None,
    interval_s: float | None = None,
    max_stop_percent: float | None = None,
    *,
    any_process: bool = False,
) -> tuple[int, Schedule]:
    """The PID, and the schedule, by [PID [SAMPLES] [INTERVAL]] or options. Raises UsageError, NoSuchProcess and WhichProcess.

    `any_process`: the word may be the name of a process that is no JVM.
    """
    command = "profile" if any_process else "jpmp"
    name, numbers = (words[0], words[1:]) if words else (None, ())
    if len(numbers) > 2:
        raise UsageError(f"{command}: {numbers[2]!r} is an unexpected argument after PID, SAMPLES and INTERVAL")
    for given, word, option in zip((samples, interval_s), ("SAMPLES", "INTERVAL")[: len(numbers)], ("-c", "-i")):
        if given is not None:
            raise UsageError(f"{command}: {option} and {word} exclude each other: choose one")
    if numbers:
        samples = read_samples(numbers[0], name, command)
    if len(numbers) > 1:
        interval_s = read_interval(numbers[1], command)
    # A walk of the heap, or a file written by the JVM, happens once by default.
    default = DEFAULT_SAMPLES if kind == "threads" else 1
    schedule = Schedule(default if samples is None else samples, interval_s, max_stop_percent)
    if any_process and name is not None and not is_pid(name):
        return resolve_process(host, name, command), schedule
    return resolve_jvm(host, name, or_file=True), schedule


def read_samples(word: str, name: str | None, command: str = "jpmp") -> int:
    """SAMPLES. Raises UsageError."""
    samples = integer(word)
    if samples is None and name is not None and not is_pid(name):
        raise UsageError(f"{command}: {name!r} is not a file, and {word!r} is not a number of samples")
    if samples:
        return samples
    shown = repr(word) if samples is None else word
    raise UsageError(f"{command}: SAMPLES is {shown}; give a whole number from 1 up, such as 20")


def read_interval(word: str, command: str = "jpmp") -> float:
    """INTERVAL in seconds. Raises UsageError."""
    seconds = seconds_of(word)
    if seconds is None:
        raise UsageError(f"{command}: INTERVAL is {word!r}; give seconds from 0 up, 250ms, 2s or 1m")
    return seconds
