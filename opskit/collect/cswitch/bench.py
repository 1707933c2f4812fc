"""Measure what a system call and a process switch cost on this machine."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from opskit.errors import NotSupported, UsageError
from opskit.interrupts import Guard, Interruptible
from opskit.proc.cpu_topology import read_caches, read_topology
from opskit.proc.files.cpu_times import parse_cpu_list
from opskit.proc.files.cpuinfo import CpuInfo, parse_cpuinfo
from opskit.proc.files.status import parse_status
from opskit.proc.fs import ProcFS
from opskit.proc.kernel import switch_cost
from opskit.proc.kernel.children import answer_of, pin, start_child
from opskit.quantities import bytes_of
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from opskit.host import Host
    from opskit.proc.cpu_topology import Cache, Place, Topology
    from opskit.proc.kernel.children import Child, Send

ONE_CPU, SMT_SIBLING, SAME_SOCKET, OTHER_SOCKET, TWO_CPUS, NOT_PINNED = (
    "one-cpu", "smt-sibling", "same-socket", "other-socket", "two-cpus", "not-pinned",
)  # fmt: skip
_ANSWER_S = 30.0  # a figure takes 2 s; longer on a machine that is overloaded
_PARTNER_S = 2.0
_USUAL_S = 0.5  # of a figure
_LEAST_SET, _LARGEST_SET, _MOST_SETS = 1 << 10, 256 << 20, 8


class Request(NamedTuple):
    """What to measure. `pin`: `one` or `two` CPUs; None: both, and not pinned. `working_sets`: in bytes, besides none at all."""

    pin: str | None = None
    working_sets: tuple[int, ...] = ()


class Pairing(NamedTuple):
    """Where the two processes run: one CPU, two of them (`two-cpus`: the sockets are unknown), or where the scheduler puts them (no CPU)."""

    kind: str
    cpus: tuple[int, ...]


class Figure(NamedTuple):
    """Switches between two processes, in ns. `trip_ns`: there and back, `own_ns`: the same calls without a switch; each the shortest and the median.

    `switches`: counted by the kernel in both processes, over all `round_trips`. `cpu_s`: what measuring took of both.
    """

    pairing: Pairing
    working_set_bytes: int
    trip_ns: tuple[float, float]
    own_ns: tuple[float, float]
    round_trips: int
    switches: int
    cpu_s: float


class Calls(NamedTuple):
    """A system call (getppid), in ns: the shortest and the median of the batches. `cpus`: where it was measured."""

    cpus: tuple[int, ...]
    least_ns: float
    median_ns: float
    cpu_s: float


class Facts(NamedTuple):
    """What was measured, and where. `caches`: of the first CPU used. `failed`: what could not be measured (None: system calls), and why."""

    calls: Calls | None
    figures: tuple[Figure, ...]
    cpu: CpuInfo
    caches: tuple[Cache, ...]
    failed: tuple[tuple[Pairing | None, int, str], ...] = ()
    interrupted: bool = False
    is_virtual: bool = False


def parse_working_sets(text: str) -> tuple[int, ...]:
    """Bytes of each size in `64K,1M,16M`, in ascending order. Raises UsageError."""
    sizes = [bytes_of(word) for word in text.split(",", _MOST_SETS)]
    if len(sizes) > _MOST_SETS or not all(size and _LEAST_SET <= size <= _LARGEST_SET for size in sizes):
        raise UsageError(f"--ws {text[:40]}: write up to {_MOST_SETS} sizes from 1K to 256M: --ws 64K,1M,16M")
    return tuple(sorted({size for size in sizes if size}))


def collect(host: Host, ask: Request, expect: Callable[[str, float], None]) -> Facts:
    """Measure one figure after the other. `expect` is told what comes and how many seconds are left. Ctrl-C ends it early.

    Raises NotSupported where two CPUs are wanted and only one may be used, where no process can be started, for a copy of another machine.
    """
    host.prove_moving("--bench")
    host.prove_here("--bench")
    fs = ProcFS()  # what is measured is this machine, whatever tree is read
    topology = read_topology(fs)
    status = fs.maybe(parse_status, "self", "status")
    allowed = parse_cpu_list(status.fields.get("Cpus_allowed_list", "")) if status else None
    pairings = choose(topology, allowed or frozenset(topology.online), ask.pin)
    first = pairings[0].cpus[:1]
    calls, figures, failed, interrupted = _measure(pairings, ask.working_sets, expect)
    if failed and calls is None and not figures and not interrupted:
        raise NotSupported(f"--bench: nothing could be measured: {failed[0][2]}")
    info = fs.maybe(parse_cpuinfo, "cpuinfo", default=CpuInfo(None, False))
    is_virtual = info.is_virtual or fs.root_exists("sys", "hypervisor", "type")
    return Facts(calls, tuple(figures), info, read_caches(fs, first[0]), tuple(failed), interrupted, is_virtual)


def _measure(
    pairings: Sequence[Pairing], sizes: Sequence[int], expect: Callable[[str, float], None]
) -> tuple[Calls | None, list[Figure], list[tuple[Pairing | None, int, str]], bool]:
    """The system calls, then each figure; what failed; whether a signal came."""
    todo: list[tuple[Pairing | None, int]] = [(None, 0), *((each, size) for each in pairings for size in (0, *sizes))]
    calls: Calls | None = None
    figures: list[Figure] = []
    failed: list[tuple[Pairing | None, int, str]] = []
    try:
        for number, (pairing, size) in enumerate(todo):
            expect(f"figure {number + 1} of {len(todo)}", (len(todo) - number) * _USUAL_S)
            try:
                if pairing is None:
                    calls = _calls(pairings[0].cpus[:1])
                else:
                    figures.append(_figure(pairing, size))
            except OSError as error:
                failed.append((pairing, size, error.strerror or str(error)))
    except KeyboardInterrupt:
        return calls, figures, failed, True
    return calls, figures, failed, False


def choose(topology: Topology, allowed: frozenset[int], pin: str | None) -> tuple[Pairing, ...]:
    """The pairings that this machine has, of the CPUs that we may use; CPUs that the scheduler leaves alone come last.

    Raises NotSupported.
    """
    usable = [cpu for cpu in topology.online if cpu in allowed] or [*topology.online]
    cpus = sorted(usable, key=lambda cpu: (cpu in topology.isolated, cpu))
    found = [Pairing(ONE_CPU, (cpus[0],))] if pin != "two" else []
    if pin != "one":
        pairs = ((kind, _pair(topology, cpus, fits)) for kind, fits in _KINDS.items())
        found += [Pairing(kind, pair) for kind, pair in pairs if pair]
    if pin == "two" and not found:
        raise NotSupported(f"--pin two: only CPU {cpus[0]} may be used here")
    return (*found, Pairing(NOT_PINNED, ())) if pin is None and len(cpus) > 1 else tuple(found)


def _pair(topology: Topology, cpus: Sequence[int], fits: Callable[[Place, Place], bool]) -> tuple[int, int] | None:
    places = [(cpu, topology.place(cpu)) for cpu in cpus]
    pairs = ((one, other) for at, one in enumerate(places) for other in places[at + 1 :])
    return next(((one[0], other[0]) for one, other in pairs if fits(one[1], other[1])), None)


_KINDS: dict[str, Callable[[Place, Place], bool]] = {
    SMT_SIBLING: lambda one, other: one.siblings == other.siblings,
    SAME_SOCKET: lambda one, other: one.siblings != other.siblings and one.package == other.package is not None,
    OTHER_SOCKET: lambda one, other: None not in (one.package, other.package) and one.package != other.package,
    TWO_CPUS: lambda one, other: one.siblings != other.siblings and None in (one.package, other.package),
}


def _calls(cpus: tuple[int, ...]) -> Calls:
    with Guard():
        child = start_child(_pinned(cpus, switch_cost.time_calls))
        try:
            with Interruptible():
                said = answer_of(child, _ANSWER_S)
        finally:
            child.end()
    return Calls(cpus, said["ns"], said["median_ns"], said["cpu_s"])


def _figure(pairing: Pairing, size: int) -> Figure:
    children: list[Child] = []
    with Guard():
        try:
            _start(pairing, size, children)
            with Interruptible():
                said, theirs = _answers(*children)
        finally:
            for child in children:
                child.end()
    return Figure(
        pairing, size, (said["trip_ns"][0], said["trip_ns"][1]), (said["own_ns"][0], said["own_ns"][1]), said["round_trips"],
        said["switches"] + theirs["switches"], said["cpu_s"] + theirs["cpu_s"],
    )  # fmt: skip


def _start(pairing: Pairing, size: int, children: list[Child]) -> None:
    """Start the process that asks, and the one that answers."""
    wires = switch_cost.Wires.make()
    try:
        asking = _pinned(pairing.cpus[:1], partial(switch_cost.ask, wires, size))
        answering = _pinned(pairing.cpus[-1:], partial(switch_cost.answer, wires, size))
        children.append(start_child(asking, (wires.there[1], wires.back[0])))
        children.append(start_child(answering, (wires.there[0], wires.back[1])))
    finally:
        wires.close()


def _answers(asking: Child, answering: Child) -> tuple[dict[str, Any], dict[str, Any]]:
    try:
        said = answer_of(asking, _ANSWER_S)
    except BrokenPipeError:
        answer_of(answering, _PARTNER_S)  # raises the cause
        raise
    return said, answer_of(answering, _PARTNER_S)


def _pinned(cpus: tuple[int, ...], work: Callable[[Send], None]) -> Callable[[Send], None]:
    def run(send: Send) -> None:
        if cpus:
            pin(cpus)
        work(send)

    return run
