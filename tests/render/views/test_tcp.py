"""How connections are shown: goldens in every format, the first screen, what is said where there is nothing, metrics, names."""

from __future__ import annotations

import csv as csv_reader
import io
import json

import promtext
import pytest
import tcpresults
from schemafiles import keeps_to_schema

from opskit.analysis.finding import HOST, Finding
from opskit.analysis.tcp import result as verdicts
from opskit.analysis.tcp.words import sentence
from opskit.collect.tcp.facts import Request
from opskit.render.formats import csv, markdown, prometheus, table, text
from opskit.render.formats import json as as_json
from opskit.render.report import About
from opskit.render.views.tcp import report as view
from opskit.render.views.tcp.document import complete

WRITERS = {"csv": csv, "json": as_json, "markdown": markdown, "prometheus": prometheus, "table": table, "text": text}
ANSWERS = ("orders", "healthy", "idle", "nothing", "still", "unowned")


def made(result, format_="table", **shown):
    about = About("HOST", "2026-01-02T03:04:05Z", "VERSION", "opskit tcp 4242", {"pid": 4242})
    how = view.Shown(**{"text": format_ == "text", **shown})
    return complete(view.report(about, result, how), result, how)


def written(result, format_="table", **shown):
    return WRITERS[format_].render(made(result, format_, **shown))


def screen(result, width=80, height=24, *, watch=False, **shown):
    return table.render(made(result, **shown), width, height, screen=watch)


def rows_on(out, width):
    return sum(-(-max(len(line), 1) // width) for line in out.splitlines())


@pytest.mark.parametrize("format_", WRITERS)
def test_goldens(format_, golden):
    """A service with a lossy broker and a slow database, in every format."""
    golden(f"tcp-orders.{format_}", written(tcpresults.orders(), format_))


@pytest.mark.parametrize("format_", ["table", "text", "markdown", "csv"])
def test_goldens_of_every_connection(format_, golden):
    """-v: each connection, what is in CLOSE-WAIT, the local ports used."""
    golden(f"tcp-verbose.{format_}", written(tcpresults.orders(), format_, verbose=True))


@pytest.mark.parametrize("format_", ["table", "text", "markdown", "csv"])
def test_goldens_of_listening_sockets(format_, golden):
    """--listen: who waits for accept(2), the backlog, what was refused."""
    golden(f"tcp-listen.{format_}", written(tcpresults.orders(findings=()), format_, listen=True))


@pytest.mark.parametrize("name", ANSWERS)
@pytest.mark.parametrize("watch", [False, True])
def test_the_first_screen(golden, name, watch):
    """On 80 x 24 the verdict, the reason and the next command are seen without scrolling."""
    out = screen(getattr(tcpresults, name)(), watch=watch)
    if not watch:
        golden(f"tcp-screen-{name}.txt", out)
    assert rows_on(out, 80) <= 24


def test_a_leak_is_the_verdict():
    """Where connections are idle, or do normal work, a warning about something else is the first line."""
    summary = "orders (4242) has 300 connections on port 8080 that their peers closed and it has not (CLOSE_WAIT)"
    leak = Finding("tcp-close-wait", "warning", HOST, summary, "")
    note = leak._replace(severity="note")
    for result in (tcpresults.idle(), tcpresults.healthy()):
        counted = [line for line in made(result).verdict if " over 2.0 s: " in line]
        assert made(result._replace(findings=(leak,))).verdict[:2] == [f"{summary}.", *counted]
        assert made(result._replace(findings=(note,))).verdict[0] == made(result).verdict[0]


@pytest.mark.parametrize("name", ["healthy", "idle", "nothing"])
@pytest.mark.parametrize("width", [80, 200])
def test_a_healthy_answer_takes_at_most_three_lines(name, width):
    """The verdict, what the others are, and what to type next."""
    verdict = made(getattr(tcpresults, name)()).verdict
    assert len(verdict) <= 3
    assert sum(rows_on(line, width) for line in verdict) <= (5 if width == 80 else 3)


@pytest.mark.parametrize("name", ANSWERS)
@pytest.mark.parametrize("width", [20, 40, 80, 200])
def test_no_line_is_wider_than_the_terminal(name, width):
    """The rows of groups are wrapped between words, and lose none."""
    result = getattr(tcpresults, name)()
    [block] = [block for block in made(result).blocks if block.listing] or [None]
    for row in block.rows if block else ():
        lines = block.listing.lines(row, 1, width)
        whole = block.listing.lines(row, 1, None)
        assert all(len(line) <= width or " " not in line.strip() for line in lines)
        assert "".join(lines).replace(" ", "") == "".join(whole).replace(" ", "")


@pytest.mark.parametrize("name", ANSWERS)
@pytest.mark.parametrize("shown", [{}, {"verbose": True}, {"listen": True}])
def test_json_keeps_to_its_schema(name, shown):
    """Every connection is in its group; unknown values are null."""
    result = getattr(tcpresults, name)()
    document = json.loads(written(result, "json", **shown))
    keeps_to_schema(document, "tcp")
    assert [group["connections"] for group in document["groups"]] == [len(group.judged) for group in result.groups]
    assert [len(group["judged"]) for group in document["groups"]] == [len(group.judged) for group in result.groups]


def test_json_without_tcp_info():
    """/proc has neither rates nor buffers."""
    document = json.loads(written(tcpresults.still(), "json"))
    [group] = document["groups"]
    [connection] = group["judged"]
    for key in (
        "sent_bytes_per_s",
        "loss",
        "rtt_ms",
        "busy",
        "path_mtu_bytes",
        "send_buffer_bytes",
        "last_data_sent_ms",
    ):
        assert connection[key] is None, key
    assert document["is_still"] is True
    assert connection["state"] == "ESTAB"


def test_shares_are_shown_as_they_are():
    """They sum up to 1."""
    document = json.loads(written(tcpresults.orders(), "json"))
    shares = [group["shares"] for group in document["groups"]]
    assert shares[0] is None
    assert shares[1] == {"peer": 0.83, "network": 0.12, "here": 0.05}


@pytest.mark.parametrize("name", ANSWERS)
@pytest.mark.parametrize("shown", [{}, {"verbose": True}, {"listen": True}])
def test_csv_has_a_cell_for_each_column(name, shown):
    """Groups, connections or listening sockets."""
    result = getattr(tcpresults, name)()
    head, *body = csv_reader.reader(io.StringIO(written(result, "csv", **shown)))
    assert len(set(head)) == len(head)
    assert all(len(row) == len(head) for row in body)
    rows = result.listeners if "listen" in shown else [judged for group in result.groups for judged in group.judged]
    assert len(body) == (len(rows) if shown else len(result.groups))


@pytest.mark.parametrize("name", ANSWERS)
def test_metrics(name):
    """A series for each group, verdict, listening socket and state; counters since boot are counters."""
    samples = promtext.parse(written(getattr(tcpresults, name)(), "prometheus"))
    states = [dict(labels)["state"] for metric, labels in samples if metric == "opskit_tcp_sockets"]
    assert states.count("ESTAB") == (2 if name == "unowned" else 1)
    if name == "orders":
        names = {dict(labels)["name"] for metric, labels in samples if metric == "opskit_tcp_host_counter_total"}
        assert names == {"Tcp.OutSegs", "Tcp.RetransSegs", "TcpExt.ListenOverflows"}
        losses = {
            dict(labels)["host"]: loss
            for (metric, labels), loss in samples.items()
            if metric == "opskit_tcp_group_loss"
        }
        assert losses == {"10.0.0.9": 0.0198, "10.0.0.7": 0.0, "2001:db8::30": 0.0}


def test_a_sentence_for_each_group():
    """Also where few rows are shown."""
    result = tcpresults.orders()
    out = written(result)
    for group in result.groups:
        assert out.count(sentence(group)) == 1  # in the finding, if there is one
    assert written(result, watching=True).count(sentence(result.groups[0])) == 2  # a screen cuts the finding
    assert sentence(result.groups[0]).startswith(
        "orders -> 10.0.0.9:9092 (1 connection): the network loses 2.0 %: 67 of 3,382 segments"
    )


def test_who_waits_on_the_connection():
    """With --ask the Java method, and the nearest one that is not the JDK's; without a dump the system call alone."""
    out = written(tcpresults.orders())
    assert "http-nio-8080-exec-3 (fd 57) waits in poll: Net.poll, from PGStream.receiveChar" in out
    group = tcpresults.database()
    first = group.judged[0]
    [thread] = first.connection.threads
    bare = first._replace(connection=first.connection._replace(threads=(thread._replace(frames=()),)))
    out = written(tcpresults.orders(groups=(group._replace(judged=(bare, *group.judged[1:])),)))
    assert "http-nio-8080-exec-3 (fd 57) waits in poll\n" in out


def test_a_thread_that_waits_for_several_connections_is_one_thread():
    """A selector's epoll_wait: the connections of the group are counted, the others it waits for too."""
    group = tcpresults.database()
    [thread] = group.judged[0].connection.threads
    selector = [thread._replace(fd=fd, name="poller", call="epoll_wait", among=14) for fd in (57, 58, 59, 60)]
    waits = [
        each._replace(connection=each.connection._replace(threads=(one,))) for each, one in zip(group.judged, selector)
    ]
    out = written(tcpresults.orders(groups=(group._replace(judged=(*waits, *group.judged[4:])),)))
    assert "poller (fd 57, fd 58, … 2 more) waits in epoll_wait with 10 other fds: Net.poll" in " ".join(out.split())


def test_segments_are_counted_where_there_are_any():
    """A machine that sends nothing has lost none of it."""
    result = tcpresults.orders()
    [space, *_] = result.facts.spaces
    quiet = space._replace(host=space.host._replace(last=space.host.first))
    said = list(made(result._replace(facts=result.facts._replace(spaces=(quiet,)))).summary)
    assert said == ["sockets: 28 TIME-WAIT, 22 ESTAB, 3 CLOSE-WAIT, 2 LISTEN"]


def test_few_rows(golden):
    """-n 1: the worst group, and how many more there are."""
    del golden
    out = written(tcpresults.orders(), top=1)
    assert "… 2 more; -n 0 shows all" in out
    assert "orders -> 10.0.0.7:5432" not in out


NEXT = {
    "the peer's application": (tcpresults.database(), "next, on 10.0.0.7: opskit tcp --peer 10.0.0.2"),
    "an IPv6 peer": (
        tcpresults.clients()._replace(verdict=verdicts.READER_THERE, shares=None),
        "next, on 2001:db8::30: opskit tcp --peer 2001:db8::2",
    ),
    "the network": (tcpresults.database()._replace(verdict=verdicts.QUEUEING, shares=None), "next: opskit tcp 4242 -v"),
    "this JVM": (tcpresults.broker()._replace(verdict=verdicts.READER_HERE), "next: opskit jpmp 4242"),
}


def test_nothing_is_next_where_clients_take_their_time():
    """The peers of a server think between two requests."""
    verdict = made(tcpresults.orders(groups=(tcpresults.clients(),), findings=())).verdict
    assert not [line for line in verdict if line.startswith("next")]


@pytest.mark.parametrize("name", NEXT)
def test_the_next_command(name):
    """It is said where no finding has one, and can be typed."""
    group, expected = NEXT[name]
    verdict = made(tcpresults.orders(groups=(group,), findings=())).verdict
    assert verdict[-1] == expected
    assert not [line for line in made(tcpresults.orders()).verdict if line.startswith("next")]


NOTHING = {
    "of a process": (Request((4242,)), "No TCP connection of 4242; 25 connections of others."),
    "with a peer": (
        Request((4242,), peer=(tcpresults.packed("10.0.0.0"), 8, 443)),
        "No TCP connection of 4242 to or from 10.0.0.0/8 port 443; 25 connections of others.",
    ),
    "with one peer": (
        Request((), peer=(tcpresults.packed("2001:db8::7"), 128, None)),
        "No TCP connection to or from 2001:db8::7; 25 connections of others.",
    ),
    "of a user": (Request((), uids=frozenset({7})), "No TCP connection of these users; 25 connections of others."),
    "of the machine": (Request(()), "No TCP connection."),
}


@pytest.mark.parametrize("name", NOTHING)
def test_nothing_is_never_an_empty_table(name):
    """What was looked at, and what else there is."""
    ask, said = NOTHING[name]
    result = tcpresults.nothing()
    report = made(result._replace(facts=result.facts._replace(ask=ask)))
    assert list(report.verdict) == [said]
    assert not report.blocks


def test_what_could_not_be_read_is_said():
    """Missing rights, other namespaces; --ask without a JVM."""
    footer = made(tcpresults.unowned(), asked=True).footer
    assert footer == [
        "7 of 30 processes could not be read; run as root to see them",
        "4 processes with sockets in 2 other network namespaces are not shown: opskit tcp 812",
        "--ask has no effect: no connection is one of a JVM",
    ]


def test_names_are_escaped():
    """A process may have any name."""
    for format_ in WRITERS:
        out = written(tcpresults.unowned(), format_)
        assert "\x1b" not in out, format_
        assert "evil" in out


LISTENING = {
    "nothing": ((), "No TCP socket of these processes listens."),
    "one waits": (tcpresults.LISTENERS, "No queue is full: 2 listening sockets; at most 41 of 100 wait for accept(2) on [::]:8080."),
    "full": (
        (tcpresults.LISTENERS[0]._replace(most_waiting=101), tcpresults.LISTENERS[1]),
        "The queue of [::]:8080 is full: 101 connections wait for accept(2), its backlog is 100 (2 listening sockets).",
    ),
    "of /proc": (
        tuple(each._replace(last=each.last._replace(cookie=None, send_queue=0)) for each in tcpresults.LISTENERS),
        "2 listening sockets; at most 41 wait for accept(2) on [::]:8080; the backlogs are unknown.",
    ),
    "idle": (tcpresults.LISTENERS[1:], "No queue is full: 1 listening socket; no connection waits for accept(2)."),
}  # fmt: skip


@pytest.mark.parametrize("name", LISTENING)
def test_listening_sockets(name):
    """The verdict on their queues."""
    listeners, said = LISTENING[name]
    report = made(tcpresults.orders(listeners=listeners, findings=()), listen=True)
    assert list(report.verdict) == [said]


def test_overflows_since_boot_and_in_the_window():
    """The counter, and how much it rose."""
    report = made(tcpresults.orders(), listen=True)
    assert list(report.summary) == ["since boot: ListenOverflows 21 (+0 in 2.0 s)"]
