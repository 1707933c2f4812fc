"""How waits for a CPU are shown: goldens in every format, the first screen, what is unknown, metrics, hostile names."""

from __future__ import annotations

import json

import cswitchfacts
import promtext
import pytest
from schemafiles import keeps_to_schema

from opskit.analysis.cswitch import bench
from opskit.analysis.cswitch.moments import moment_of
from opskit.collect.cswitch.bench import Calls
from opskit.collect.cswitch.bench import Facts as Costs
from opskit.collect.cswitch.facts import Handoff, ProcessWaits
from opskit.proc.files.cpuinfo import CpuInfo
from opskit.render.formats import csv, markdown, prometheus, table, text
from opskit.render.formats import json as as_json
from opskit.render.report import About
from opskit.render.shown import Shown
from opskit.render.views.cswitch import bench as bench_view
from opskit.render.views.cswitch import report as view
from opskit.render.views.cswitch.document import Answer, complete

WRITERS = {
    "csv": csv, "json": as_json, "markdown": markdown, "prometheus": prometheus, "table": table, "text": text,
}  # fmt: skip
ANSWERS = ("starved", "throttled", "flooded", "healthy", "still", "unknown", "host", "quiet_host")


def made(result, format_="table", moments=(), **shown):
    about = About("HOST", "2026-01-02T03:04:05Z", "VERSION", "opskit cswitch", view.target(result))
    report = view.report(about, result, Shown(**{"text": format_ == "text", **shown}))
    return complete(report, Answer(result, moments))


def written(result, format_="table", **shown):
    return WRITERS[format_].render(made(result, format_, **shown))


def rows_on(out, width):
    return sum(-(-max(len(line), 1) // width) for line in out.splitlines())


@pytest.mark.parametrize("format_", WRITERS)
@pytest.mark.parametrize("name", ["starved", "host"])
def test_goldens(name, format_, golden):
    """A JVM with more threads than CPUs, and the machine, in every format."""
    golden(f"cswitch-{name}.{format_}", written(getattr(cswitchfacts, name)(), format_, verbose=True))


@pytest.mark.parametrize("name", ANSWERS)
def test_the_first_screen(golden, name):
    """On 80 x 24 the verdict, the reason and the next command are seen without scrolling."""
    result = getattr(cswitchfacts, name)()
    out = table.render(made(result), 80, 24)
    golden(f"cswitch-screen-{name}.txt", out)
    assert rows_on(out, 80) <= 24
    closer = [each.next for each in result.findings] or [result.next]
    assert closer == [None] or f"next: {closer[0]}" in out


@pytest.mark.parametrize("name", ANSWERS)
def test_the_screen_of_a_watch(name):
    """A finding is cut to a line; its command stands above it."""
    result = getattr(cswitchfacts, name)()
    out = table.render(made(result, on_screen=True), 80, 24, screen=True)
    assert rows_on(out, 80) <= 24
    for finding in result.findings:
        assert f"\nnext: {finding.next}\n" in out


def test_a_long_name_of_a_cpu():
    """The table of servers fits 80 columns."""
    cpu = CpuInfo("Intel(R) Xeon(R) Platinum 8375C CPU @ 2.90GHz", False)
    costs = bench.judge(Costs(Calls((0,), 85.0, 86.0, 0.03), (), cpu, (), is_virtual=True))
    out = table.render(bench_view.report(made(cswitchfacts.still()).about, costs, text=False), 80, 24)
    assert max(map(len, out.splitlines())) <= 80, out
    assert "this machine (Int" in out
    assert cpu.model in costs.servers[0].cpu


def test_other_processes_beside_the_one_that_waits():
    """Their switches are not read: no columns of dashes; shares have four digits."""
    worst = cswitchfacts.burner(9, 1 / 3)
    others = (ProcessWaits(cswitchfacts.SHELL, 2 / 3, 1 / 3, None, 1, worst),)
    result = cswitchfacts.judged(cswitchfacts.facts(processes=others))
    head = written(result).partition("other processes on these CPUs\n")[2].splitlines()[0]
    assert head.split() == ["waits", "runs", "threads", "pid", "user", "command", "it", "waits", "worst", "thread"]
    [row] = json.loads(written(result, "json"))["processes"]
    assert (row["worst_waiting"], row["voluntary_per_s"]) == (0.3333, None)


@pytest.mark.parametrize("name", ["healthy", "still", "quiet_host"])
def test_a_healthy_answer_takes_three_lines_at_most(name):
    """Nothing waits: the reader goes on."""
    said = made(getattr(cswitchfacts, name)()).verdict
    assert sum(-(-len(line) // 80) for line in said) <= 3


@pytest.mark.parametrize("name", ANSWERS)
def test_json_keeps_to_its_schema(name):
    """Threads of a process; what was not asked for is null, and so is what is unknown."""
    document = json.loads(written(getattr(cswitchfacts, name)(), "json"))
    keeps_to_schema(document, "cswitch")
    is_host = "host" in name
    assert (document["threads"] is None) == is_host
    assert (document["process"] is None, document["is_jvm"] is None) == (is_host, is_host)
    assert document["samples"] is None


def test_json_of_threads():
    """Shares of the window, rates a second, the name in full and the kernel's."""
    thread = json.loads(written(cswitchfacts.throttled(), "json"))["threads"][0]
    assert thread == {
        "tid": 4250, "waiting": 0.6, "running": 0.4, "throttled": 0.55, "throttled_by": "/kubepods/pod7/app", "average_wait_s": 0.009022556, "slices_per_s": 66.5,
        "voluntary_per_s": 2.0, "involuntary_per_s": 64.5, "migrations_per_s": 12.25, "cpu": 0, "allowed": [0, 1],
        "policy": "other", "nice": 0, "why": "throttled", "name": "order-book-burner-0", "kernel_name": "order-book-burn",
    }  # fmt: skip


def test_what_is_unknown_is_no_number():
    """A dash in tables, null in JSON, no sample for Prometheus."""
    result = cswitchfacts.unknown()
    thread = json.loads(written(result, "json"))["threads"][0]
    for key in ("waiting", "average_wait_s", "slices_per_s", "voluntary_per_s", "migrations_per_s", "cpu"):
        assert thread[key] is None, key
    row = written(result, "text").splitlines()[2].split()
    assert row == ["77", "-", "0.25", "0", "-", "-", "-", "-", "-", "-", "bash"]
    samples = promtext.parse(written(result, "prometheus"))
    assert promtext.value(samples, "opskit_cswitch_thread_running", tid=77) == 0.25
    assert not [name for name, _ in samples if name.endswith(("_waiting", "_runnable", "_pressure"))]


def test_policies_have_their_names():
    """As chrt(1) and sched(7) write them; a number that is new is shown as it is."""
    result = cswitchfacts.healthy()
    for number, name in ((0, "other"), (1, "fifo"), (2, "rr"), (3, "batch"), (5, "idle"), (6, "deadline"), (9, "9")):
        row = result.rows[0]._replace(thread=cswitchfacts.burner(0, 0.1, policy=number))
        assert json.loads(written(result._replace(rows=(row,)), "json"))["threads"][0]["policy"] == name


def test_text_has_the_same_columns_for_awk_in_every_state():
    """A row a thread or process; blanks only in the last column."""
    for name in ("starved", "healthy", "unknown"):
        lines = written(getattr(cswitchfacts, name)(), "text").splitlines()
        head = next(line for line in lines if line.split()[:1] == ["TID"])
        assert head.split() == [
            "TID", "WAITS", "RUNS", "THROTTLED", "EACH_WAIT_MS", "VOL/S", "INVOL/S", "MIGR/S", "CPU", "BECAUSE_OF", "THREAD",
        ]  # fmt: skip
        for line in lines[lines.index(head) + 1 :][: len(getattr(cswitchfacts, name)().rows)]:
            assert line.split()[0].isdigit()
            assert line.split(None, 10)[10] in {*(f"order-book-burner-{n}" for n in range(8)), "GC Thread#0", "bash"}


def test_more_rows_than_fit_are_counted():
    """-n chooses; 0, -v and text show all."""
    threads = tuple(cswitchfacts.burner(number, 0.5) for number in range(1000))
    result = cswitchfacts.result(cswitchfacts.facts(threads=threads), "x")
    for shown, rows in (
        ({}, 10),
        ({"top": 0}, 1000),
        ({"top": 7}, 7),
        ({"verbose": True}, 1000),
        ({"text": True}, 1000),
    ):
        [block, *_] = made(result, **shown).blocks
        assert (len(block.rows), block.total) == (rows, 1000), shown
    assert "… 990 more; -n 0 shows all" in written(result)


def test_other_processes_beside_one():
    """Where its threads wait for them: three by default, with a title of their own."""
    waits = tuple(cswitchfacts.WAITS[0]._replace(process=cswitchfacts.SHELL._replace(pid=pid)) for pid in range(1, 8))
    result = cswitchfacts.starved()
    result = result._replace(processes=cswitchfacts.host(processes=waits).processes)
    [threads, others] = made(result).blocks
    assert (threads.title, others.title) == (None, "other processes on these CPUs")
    assert (len(others.rows), others.total) == (3, 7)
    assert len(made(result, verbose=True).blocks[1].rows) == 7
    assert rows_on(table.render(made(result), 80, 24), 80) <= 24
    document = json.loads(written(result, "json"))
    keeps_to_schema(document, "cswitch")
    assert (len(document["threads"]), len(document["processes"])) == (9, 7)


def test_pairs_that_switch_often():
    """JSON has the looks at them; other formats the sentence of the verdict."""
    handoff = Handoff(4250, 4251, 40, 2, 3, "futex", True)
    document = json.loads(written(cswitchfacts.result(cswitchfacts.facts(handoffs=(handoff,)), "x"), "json"))
    keeps_to_schema(document, "cswitch")
    assert document["handoffs"] == [
        {"first": 4250, "second": 4251, "looks": 40, "asleep": 2, "awake": 3, "call": "futex", "same_address": True}
    ]


def test_a_cpu_that_others_take_is_shown_without_asking():
    """No thread's numbers show softirqs or steal; a quota is shown where it was used up."""
    titles = [block.title for block in made(cswitchfacts.flooded()).blocks]
    assert titles == [None, "CPUs"]
    assert [row.use.cpu for row in made(cswitchfacts.flooded()).blocks[1].rows] == [0]
    assert [block.title for block in made(cswitchfacts.throttled()).blocks] == [None, "CPU quotas of its cgroups"]
    assert [block.title for block in made(cswitchfacts.starved()).blocks] == [None]
    unused = cswitchfacts.QUOTA._replace(throttled_periods=0, throttled=0.0)
    result = cswitchfacts.result(cswitchfacts.facts(quotas=(unused,)), "x")
    assert [block.title for block in made(result).blocks] == [None]
    assert [block.title for block in made(result, verbose=True).blocks] == [None, "CPUs", "CPU quotas of its cgroups"]


def test_columns_that_say_nothing_are_left_out():
    """A reason, a quota: only where a row has one."""
    titles = [column.title for column in made(cswitchfacts.healthy()).blocks[0].columns]
    assert not {"because of", "throttled"} & {*titles}
    titles = [column.title for column in made(cswitchfacts.throttled()).blocks[0].columns]
    assert {"because of", "throttled"} <= {*titles}


def test_the_machine_in_a_line():
    """What all CPUs did, how many tasks wanted them; what is unknown is left out."""
    assert made(cswitchfacts.host()).summary == [
        "2 CPUs over 2.0 s: user 96 %, system 3.5 %, softirq 0.2 %, idle 0.8 %; 8.5 tasks runnable; 612 switches/s; "
        "some task of the machine waited 97 % of the time (PSI)"
    ]
    assert made(cswitchfacts.unknown()).summary == []
    one = cswitchfacts.facts(cpus=cswitchfacts.IDLE_CPUS[:1], runnable=1.0, switches=None, pressure=None)
    assert made(cswitchfacts.result(one, "x")).summary == [
        "1 CPU over 2.0 s: user 2.0 %, system 1.0 %, idle 97 %; 1.0 task runnable"
    ]


def test_what_is_not_shown_is_said():
    """Threads that slept, on request; --ask at a process that is no JVM; what could not be read, once."""
    assert made(cswitchfacts.starved()).footer == []
    assert made(cswitchfacts.starved(), verbose=True).footer == ["48 threads neither ran nor waited"]
    asked = made(cswitchfacts.still(), asked=True).footer
    assert asked == ["--ask: 77 is not a JVM: its threads have no Java names"]
    twice = cswitchfacts.facts(missing=("a", "b", "a"))
    assert made(cswitchfacts.result(twice, "x")).footer == ["a", "b"]


def test_the_next_command_is_said_once():
    """Below its finding; above the rows where no finding has one, and where findings are cut to a line."""
    assert written(cswitchfacts.starved()).count("next: ") == 1
    assert written(cswitchfacts.throttled()).count("next: opskit jvms 4242 -w") == 1
    both = cswitchfacts.starved()._replace(next="opskit irqs")
    assert "opskit irqs" not in written(both)


def test_the_looks_of_a_watch():
    """In JSON: the time, the sums, who waited most."""
    moments = []
    for result in (cswitchfacts.starved(), cswitchfacts.healthy(), cswitchfacts.still(), cswitchfacts.unknown()):
        moments.append(moment_of(result, moments))
    assert [moment.at_s for moment in moments] == [2.0, 4.0, 6.0, 8.0]
    assert [moment.worst for moment in moments] == ["order-book-burner-0", "order-book-burner-0", None, "bash"]
    assert [moment.worst_waiting for moment in moments] == [0.82, 0.004, None, None]
    document = json.loads(as_json.render(made(cswitchfacts.healthy(), moments=moments)))
    keeps_to_schema(document, "cswitch")
    assert [sample["waiting"] for sample in document["samples"]] == [6.281, 0.005, 0, 0]
    [moment] = [moment_of(cswitchfacts.host(), ())]
    assert (moment.worst, moment.worst_waiting) == ("4242 (java)", 6.3)


def test_metrics_are_read_by_prometheus():
    """Threads by tid and name, processes, CPUs, quotas; a machine's figures have no label of the process."""
    samples = promtext.parse(written(cswitchfacts.throttled(), "prometheus"))
    of_thread = {"pid": 4242, "command": "java", "tid": 4250, "name": "order-book-burner-0"}
    assert promtext.value(samples, "opskit_cswitch_thread_waiting", **of_thread) == 0.6
    assert promtext.value(samples, "opskit_cswitch_thread_throttled", **of_thread) == 0.55
    assert promtext.value(samples, "opskit_cswitch_thread_average_wait_seconds", tid=4250) == pytest.approx(0.009022556)
    assert promtext.value(samples, "opskit_cswitch_quota_throttled_periods", path="/kubepods/pod7/app") == 18
    assert promtext.value(samples, "opskit_cswitch_cpu_pressure", pid=4242) == 0.6
    assert samples["opskit_cswitch_runnable", frozenset()] == 4.0
    samples = promtext.parse(written(cswitchfacts.host(), "prometheus"))
    assert promtext.value(samples, "opskit_cswitch_process_waiting", pid=4242, command="java") == 6.3
    assert promtext.value(samples, "opskit_cswitch_cpu_net_rx_per_second", cpu=0) == 12
    for _, labels in samples:
        assert {name for name, _ in labels} <= {"pid", "command", "cpu", "code", "severity", "class", "subject"}


@pytest.mark.parametrize("format_", WRITERS)
@pytest.mark.parametrize("evil", ['a\n"}\x1b[31m| <b>', "\udcff\x85\u2028 ,x", "'; touch pwn; '"])
def test_hostile_names_are_escaped_everywhere(evil, format_):
    """Threads, commands, users and cgroups add no line, no column and no sample."""
    process = cswitchfacts.BOOK._replace(command=evil, user=evil)
    thread = cswitchfacts.burner(0, 0.5, name=evil, java_name=evil)
    loads = tuple(load._replace(pinned=((1, 1, evil, 0.5),)) for load in cswitchfacts.BUSY_CPUS)
    quota = cswitchfacts.QUOTA._replace(path=evil)
    of_process = cswitchfacts.facts(process=process, threads=(thread,), cpus=loads, quotas=(quota,), missing=(evil,))
    waits = cswitchfacts.WAITS[0]._replace(process=process, worst=thread)
    of_host = cswitchfacts.facts(process=None, threads=(), processes=(waits,), cpus=loads)
    for seen in (of_process, of_host):
        result = cswitchfacts.result(seen, evil)
        out = written(result, format_, verbose=True, asked=True)
        assert all(line.isprintable() for line in out.split("\n"))
        assert not [line for line in out.split("\n") if line.startswith('"}')]
        if format_ == "prometheus":
            promtext.parse(out)
