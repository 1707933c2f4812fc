"""What a system call and a process switch cost here, beside the servers of 2010 to 2013. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.collect.cswitch.bench import NOT_PINNED, ONE_CPU, OTHER_SOCKET, SAME_SOCKET, SMT_SIBLING, TWO_CPUS
from opskit.quantities import duration, number_ranges, percent, plural, short_size
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from opskit.collect.cswitch.bench import Calls, Facts, Figure
    from opskit.proc.cpu_topology import Cache

SYSTEM_CALL = "system-call"
_PLACES = {
    ONE_CPU: "on one CPU",
    SMT_SIBLING: "between SMT siblings",
    SAME_SOCKET: "between cores of one socket",
    OTHER_SOCKET: "between two sockets",
    TWO_CPUS: "between two CPUs",
    NOT_PINNED: "without pinning",
}
THREADS = "Threads: not measurable from Python (one at a time holds the interpreter lock)."
OTHERS = "Other servers: with the futex calls, divided by an assumed number of switches."
_WORTH = 1.5  # times as long with a working set: worth a sentence


class Row(NamedTuple):
    """A figure: nanoseconds for each call, or for each counted switch. `what`: `system-call`, or where the two processes run.

    `least_ns`, `median_ns`: of the batches; None: lost in the time that the same calls take without a switch. `cache`: the one that
    holds what both processes write (`L2`); None: none does, unknown, or no working set.
    """

    what: str
    cpus: tuple[int, ...]
    working_set_bytes: int
    least_ns: float | None
    median_ns: float | None
    cpu_s: float
    round_trips: int | None = None
    switches: int | None = None
    cache: str | None = None

    @property
    def where(self) -> str:
        """In words."""
        return _where(self.what)

    @property
    def per_trip(self) -> float | None:
        """Counted switches for each byte that went there and back: 2 where every read had to wait."""
        return self.switches / self.round_trips if self.switches is not None and self.round_trips else None


class Server(NamedTuple):
    """A server of the blog post "How long does it take to make a context switch?": in ns, without a working set.

    The switches on one CPU and those not pinned include the futex calls, and were divided by an assumed number of switches.
    """

    cpu: str
    call_ns: float | None
    pinned_ns: float | None
    thread_ns: float | None
    not_pinned_ns: float | None


SERVERS = (
    Server("Intel 5150 (2.67 GHz)", 105, 1900, 1700, 4300),
    Server("Intel E5440 (2.83 GHz)", 87, 1300, 1100, 3600),
    Server("Intel E5520 (2.27 GHz)", 58, 1400, 1300, 4500),
    Server("Intel X5550 (2.67 GHz)", 52, 1300, 1100, 3000),
    Server("Intel L5630 (2.13 GHz)", 58, 1600, 1400, 3000),
    Server("Intel E5-2620 (2 GHz)", 67, 1600, 1300, 3000),
)


class Result(NamedTuple):
    """`verdict`: sentences, the first is the answer. `servers`: this machine first, then those of the post.

    `notes`: what the figures hold, and what could not be measured.
    """

    facts: Facts
    verdict: tuple[str, ...]
    rows: tuple[Row, ...]
    servers: tuple[Server, ...]
    notes: tuple[str, ...]


def judge(facts: Facts) -> Result:
    """Divide what was measured by the switches that were counted."""
    calls = (_calls(facts.calls),) if facts.calls else ()
    rows = (*calls, *(_row(figure, facts.caches) for figure in facts.figures))
    servers = (_this_machine(facts, rows), *SERVERS)
    return Result(facts, tuple(_verdict(facts, rows)), rows, servers, tuple(_notes(facts, rows)))


def _calls(calls: Calls) -> Row:
    return Row(SYSTEM_CALL, calls.cpus, 0, calls.least_ns, calls.median_ns, calls.cpu_s)


def _row(figure: Figure, caches: Sequence[Cache]) -> Row:
    per_trip = figure.switches / figure.round_trips
    least, median = (_cost(trip, own, per_trip) for trip, own in zip(figure.trip_ns, figure.own_ns))
    if least is not None and median is not None:
        least = min(least, median)  # the shortest round trip and the shortest calls alone are of different moments
    return Row(
        figure.pairing.kind, figure.pairing.cpus, figure.working_set_bytes, least, median, figure.cpu_s,
        figure.round_trips, figure.switches, _cache(figure, caches),
    )  # fmt: skip


def _cost(trip_ns: float, own_ns: float, per_trip: float) -> float | None:
    cost = (trip_ns - 2 * own_ns) / per_trip if per_trip else 0.0
    return cost if cost > 0 else None


def _cache(figure: Figure, caches: Sequence[Cache]) -> str | None:
    """The nearest cache of a CPU that holds what both processes write there."""
    size, cpus = figure.working_set_bytes, figure.pairing.cpus
    if not size or not cpus:
        return None

    def fits(cache: Cache) -> bool:
        writers = 2 if len(cpus) == 1 or cpus[-1] in cache.shared else 1
        return cache.kind != "Instruction" and size * writers <= cache.size_bytes

    return next((f"L{cache.level}" for cache in caches if fits(cache)), None)


def _this_machine(facts: Facts, rows: Sequence[Row]) -> Server:
    plain = {row.what: row.least_ns for row in rows if not row.working_set_bytes}
    return Server(_machine(facts), plain.get(SYSTEM_CALL), plain.get(ONE_CPU), None, plain.get(NOT_PINNED))


def _where(what: str) -> str:
    return "system call" if what == SYSTEM_CALL else f"switch {_PLACES[what]}"


def _verdict(facts: Facts, rows: Sequence[Row]) -> Iterator[str]:
    plain = {row.what: row.least_ns for row in rows if not row.working_set_bytes and row.least_ns}
    call_ns, switches = plain.pop(SYSTEM_CALL, None), [*plain.items()]
    costs = [f"A process {_where(what)} costs {_ns(ns)}" for what, ns in switches[:1]]
    if call_ns:
        costs.append(f"a system call {_ns(call_ns)}" if costs else f"A system call costs {_ns(call_ns)}")
    if facts.interrupted:
        yield f"Interrupted: {plural(len(rows), 'figure')} measured."
    if costs:
        yield f"{', '.join(costs)} on this machine."
    if switches[1:]:
        rest = ", ".join(f"{_PLACES[what]} {_ns(ns)}" for what, ns in switches[1:])
        yield f"{rest[0].upper()}{rest[1:]}."
    if ONE_CPU in plain:
        yield f"10,000 switches a second on one CPU take {percent(plain[ONE_CPU] * 10_000 / 1e9)} of it."
    yield from _larger(rows, plain)


def _larger(rows: Sequence[Row], plain: Mapping[str, float]) -> Iterator[str]:
    """What the largest working set adds."""
    largest = max(rows, key=lambda row: row.working_set_bytes, default=None)  # the first of them: on one CPU
    without_ns = plain.get(largest.what) if largest else None
    if largest and largest.working_set_bytes and largest.least_ns and without_ns:
        more = largest.least_ns / without_ns
        if more >= _WORTH:
            yield (
                f"Where each process writes {short_size(largest.working_set_bytes)} in between, a {largest.where} costs "
                f"{_ns(largest.least_ns)}: their memory replaces each other's in the caches."
            )


def _ns(ns: float | None) -> str:
    return duration(None if ns is None else ns / 1e9)


def _machine(facts: Facts) -> str:
    kind = "virtual" if facts.is_virtual else None
    details = ", ".join(filter(None, (facts.cpu.model, kind)))
    return f"this machine ({details})" if details else "this machine"


def _notes(facts: Facts, rows: Sequence[Row]) -> Iterator[str]:
    yield THREADS
    yield OTHERS
    if any(len(row.cpus) == 2 for row in rows):
        which = "virtual CPU" if facts.is_virtual else "CPU"
        yield f"Two CPUs: with the time until the idle {which} has woken up."
    for row in rows:
        if row.least_ns is None:
            why = "no switch was counted" if not row.switches else "it is lost in the time that the calls alone take"
            yield f"Not measurable: {_named(row.what, row.cpus, row.working_set_bytes)}: {why}."
    for pairing, size, why in facts.failed:
        what, cpus = pairing or (SYSTEM_CALL, ())
        yield f"Not measured: {_named(what, cpus, size)}: {why}."


def _named(what: str, cpus: Sequence[int], size: int) -> str:
    """`switch on one CPU (CPU 0, 64 KiB)`."""
    details = [f"CPU {number_ranges(cpus)}"] if cpus else []
    details += [short_size(size)] if size else []
    return f"{_where(what)} ({', '.join(details)})" if details else _where(what)
