"""The JSON object of `opskit tcp`, its metrics and its CSV file."""

from __future__ import annotations

from functools import partial
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any

from opskit.records import NamedTuple
from opskit.render.fields import (
    COUNT,
    FLAG,
    ID,
    NUMBER,
    SIZE,
    TEXT,
    TOTAL,
    Field,
    list_of,
    map_of,
    records,
    sheet,
    to_object,
)
from opskit.render.report import Metrics
from opskit.render.views.tcp.fields import (
    CLOSING,
    CONNECTION,
    GROUP,
    OWNER,
    RATES,
    SHARES,
    host_name,
    state_name,
)
from opskit.render.views.tcp.host import LIMITS, SPACE
from opskit.render.views.tcp.listen import LISTENER, dropped_since_start

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opskit.analysis.tcp.moments import Moment
    from opskit.analysis.tcp.result import Group, Result
    from opskit.collect.tcp.facts import Closing, Listener
    from opskit.collect.tcp.host_facts import HostFacts
    from opskit.render.report import Report, Sheet
    from opskit.render.views.tcp.report import Shown


class Answer(NamedTuple):
    """What is shown, and what a watch has seen so far."""

    result: Result
    moments: Sequence[Moment] = ()


MOMENT: Sequence[Field[Moment]] = (
    Field("at_s", NUMBER, value=lambda it: round(it.at_s, 3), help="since the first look"),
    Field("verdicts", map_of(COUNT), value=lambda it: dict(it.verdicts), help="how many connections have each"),
    Field("sent_bytes_per_s", SIZE, value=lambda it: _whole(it.sent_bytes_s)),
    Field("received_bytes_per_s", SIZE, value=lambda it: _whole(it.received_bytes_s)),
    Field("close_wait", COUNT),
    Field("time_wait", COUNT),
)
_ELSEWHERE = (Field("pid", ID, value=itemgetter(0)), Field("processes", COUNT, value=itemgetter(1)))
DOCUMENT: Sequence[Field[Answer]] = (
    Field("window_s", NUMBER, value=lambda it: round(it.result.facts.window_s, 3)),
    Field("is_still", FLAG, value=attrgetter("result.facts.is_still"), help="looked at once: no rates"),
    Field("groups", records(GROUP), value=lambda it: [*it.result.groups], help="the worst first"),
    Field("listeners", records(LISTENER), value=lambda it: [*it.result.listeners], help="the fullest first"),
    Field("closing", records(CLOSING), value=lambda it: [*it.result.closing], help="CLOSE-WAIT: closed by the peer, not by the process"),
    Field("spaces", records(SPACE), value=lambda it: [*it.result.facts.spaces], help="the network namespaces of the processes"),
    Field(
        "elsewhere", records(_ELSEWHERE), value=lambda it: [*it.result.facts.elsewhere],
        help="other network namespaces: a process in each, and how many have sockets there",
    ),
    Field("missing", list_of(TEXT), value=lambda it: [*it.result.facts.missing], help="what could not be read"),
    Field("samples", records(MOMENT), value=lambda it: [*it.moments] or None, help="with -w, the oldest first"),
)  # fmt: skip


def _whole(rate: float | None) -> int | None:
    return None if rate is None else round(rate)


def _inside(path: str, fields: Sequence[Field[Any]], prefix: str = "") -> Iterator[Field[Any]]:
    """The fields of a record inside of a row, which may lack it."""
    read = attrgetter(path)

    def wrapped(field: Field[Any]) -> Field[Any]:
        def value(row: Any) -> object:
            whole = read(row)
            return None if whole is None else field.value(whole)

        return Field(f"{prefix}{field.name}", field.kind, value=value)

    return map(wrapped, fields)


# The labels of a group, and of what a process has open.
_NAMES: Sequence[Field[Group]] = (
    Field("command"),
    Field("direction", value=lambda group: "in" if group.inbound else "out"),
    Field("host", value=lambda group: host_name(group.host)),
    Field("port", ID),
)
_OWNED = [*_inside("owner", [field for field in OWNER if field.name in ("pid", "command", "fd")])]
_CONNECTIONS: Field[Group] = Field("connections", COUNT)
_VERDICT = (
    Field("verdict", value=itemgetter(0)),
    Field("connections", COUNT, value=itemgetter(1), help="with this verdict"),
)
_STATE: Sequence[Field[tuple[int, int]]] = (
    Field("state", value=lambda it: state_name(it[0])),
    Field("sockets", COUNT, value=itemgetter(1)),
)
_COUNTER = (
    Field("name", value=itemgetter(0)),
    Field("counter", TOTAL, value=itemgetter(1), help="of /proc/net/snmp and netstat, since boot"),
)
_NOT_COUNTED = frozenset({"Tcp.CurrEstab", "Tcp.MaxConn", "Tcp.RtoAlgorithm", "Tcp.RtoMax", "Tcp.RtoMin"})
_LISTENER: Sequence[Field[Listener]] = (
    *(field for field in LISTENER if field.name in ("local", "waiting", "most_waiting", "backlog")),
    Field("dropped", TOTAL, value=dropped_since_start, help="connections that were refused, since the socket was made"),
)
_CLOSING: Sequence[Field[Closing]] = (
    *(field for field in CLOSING if field.name in ("host", "port", "oldest_ms")),
    Field("connections", COUNT, value=attrgetter("last")),
)


def metrics(result: Result) -> Iterator[Metrics]:
    """Groups and their verdicts, listening sockets, CLOSE-WAIT, and of each namespace its sockets, counters and limits."""
    yield Metrics("opskit_tcp_group", (*_NAMES, _CONNECTIONS, *RATES), result.groups)
    for group in result.groups:
        names = to_object(_NAMES, group) or {}
        yield Metrics("opskit_tcp_time", SHARES, [group.shares] if group.shares else [], names)
        yield Metrics("opskit_tcp_verdict", _VERDICT, group.verdicts, names)
    yield Metrics("opskit_tcp_listener", (*_OWNED, *_LISTENER), result.listeners)
    yield Metrics("opskit_tcp_close_wait", (*_OWNED, *_CLOSING), result.closing)
    for space in result.facts.spaces:
        names = {"namespace": space.namespace}
        yield Metrics("opskit_tcp", _STATE, [*space.states.items()], names)
        yield Metrics("opskit_tcp_host", _COUNTER, _counters(space.host), names)
        yield Metrics("opskit_tcp_host", LIMITS, [space.host], names)


def _counters(host: HostFacts) -> list[tuple[str, int]]:
    """Those that only rise."""
    return [(name, number) for name, number in host.last.items() if name not in _NOT_COUNTED]


def rows(result: Result, shown: Shown) -> Sheet:
    """The rows of the CSV file: listening sockets, with -v connections, else groups."""
    if shown.listen:
        return sheet([*_inside("owner", OWNER), *_flat(LISTENER)], result.listeners)
    shares = [*_inside("shares", SHARES, "share_")]
    if shown.verbose:
        judged = (judged for group in result.groups for judged in group.judged)
        return sheet([*_inside("connection.owner", OWNER), *_flat(CONNECTION), *shares], judged)
    return sheet([*_flat(GROUP), *shares], result.groups)


def _flat(fields: Sequence[Field[Any]]) -> Iterator[Field[Any]]:
    """The fields that fit into a cell."""
    return (field for field in fields if field.kind.schema.get("type") not in ("object", "array"))


def complete(report: Report, result: Result, shown: Shown, moments: Sequence[Moment] = ()) -> Report:
    """The report with its JSON object, metrics and CSV file."""
    return report._replace(
        document=(DOCUMENT, Answer(result, moments)),
        metrics=partial(metrics, result),
        sheet=partial(rows, result, shown),
    )
