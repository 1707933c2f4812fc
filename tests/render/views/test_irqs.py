"""How interrupts are shown: goldens in every format, the first screen, large machines, the heat strip, metrics, names."""

from __future__ import annotations

import csv as csv_reader
import io
import json

import irqresults
import promtext
import pytest
from schemafiles import keeps_to_schema

from opskit.quantities import number_ranges
from opskit.render.formats import csv, markdown, prometheus, table, text
from opskit.render.formats import json as as_json
from opskit.render.report import About
from opskit.render.views.irqs import report as view
from opskit.render.views.irqs import strip
from opskit.render.views.irqs.document import complete

WRITERS = {"csv": csv, "json": as_json, "markdown": markdown, "prometheus": prometheus, "table": table, "text": text}
WITH_ROWS = ("flood", "healthy", "large", "sparse", "hostile")
ANSWERS = (*WITH_ROWS, "no_ticks")


def made(result, format_="table", looks=1, **shown):
    about = About("HOST", "2026-01-02T03:04:05Z", "VERSION", "opskit irqs")
    is_table = format_ == "table"
    shown["watching"] = is_table and shown.get("watching", False)
    how = view.Shown(**{"text": format_ == "text", "strip": is_table, **shown})
    moments = irqresults.moments(result, looks)
    return complete(view.report(about, result, how, moments), result, moments if looks > 1 else ())


def written(result, format_="table", **shown):
    return WRITERS[format_].render(made(result, format_, **shown))


def screen(result, width=80, height=24, **shown):
    return table.render(made(result, **shown), width, height, screen=shown.get("watching", False))


def rows_on(out, width):
    return sum(-(-max(len(line), 1) // width) for line in out.splitlines())


@pytest.mark.parametrize("format_", WRITERS)
def test_goldens(format_, golden):
    """A UDP flood that RPS steers to one CPU, with a thread pinned to it, in every format."""
    golden(f"irqs-flood.{format_}", written(irqresults.flood(), format_))


@pytest.mark.parametrize("format_", ["table", "text", "markdown"])
def test_goldens_of_every_row(format_, golden):
    """-v: interrupts, interfaces and pinned threads too."""
    golden(f"irqs-verbose.{format_}", written(irqresults.flood(), format_, verbose=True))


@pytest.mark.parametrize("format_", ["json", "table", "markdown", "text"])
def test_goldens_of_a_watch(format_, golden):
    """-w: the samples, and the strip of the last ones."""
    golden(f"irqs-watched.{format_}", written(irqresults.flood(), format_, watching=True, looks=5))


@pytest.mark.parametrize("name", ["flood", "healthy", "large", "sparse"])
@pytest.mark.parametrize("watching", [False, True])
def test_the_first_screen(golden, name, watching):
    """On 80 x 24 the verdict, the reason and the next command are seen without scrolling."""
    result = getattr(irqresults, name)()
    out = screen(result, watching=watching, looks=12 if watching else 1)
    golden(f"irqs-screen-{name}{'-watched' if watching else ''}.txt", out)
    assert rows_on(out, 80) <= 24
    for command in result.commands:
        assert command.line in out


@pytest.mark.parametrize("looks", [1, 3])
def test_a_window_without_a_clock_tick(looks):
    """No CPU has shares: every format says so, and a picture is drawn."""
    result = irqresults.no_ticks()
    for format_ in WRITERS:
        for verbose in (False, True):
            out = written(result, format_, looks=looks, verbose=verbose)
            assert "No clock tick was counted" in out or format_ in ("csv", "prometheus")
    assert made(result, looks=looks).draw("svg").startswith("<?xml")


def test_a_healthy_answer_takes_at_most_three_lines():
    """Before the table."""
    assert rows_on(made(irqresults.healthy()).verdict[0], 80) <= 3


@pytest.mark.parametrize("height", [10, 16, 24, 50])
@pytest.mark.parametrize("watching", [False, True])
def test_the_busiest_cpu_is_never_hidden(height, watching):
    """Of 192 CPUs, however few lines there are: it is in the first row, and idle ones go."""
    lines = screen(irqresults.large(), height=height, watching=watching, looks=5).splitlines()
    head = next((number for number, line in enumerate(lines) if line.startswith("CPU   ")), None)
    if head is not None and head + 2 < len(lines):
        assert lines[head + 2].split()[0] == "77"
    assert "CPU 77" in lines[1]


def test_idle_cpus_are_hidden():
    """On a large machine; how many is said."""
    result = irqresults.large()
    shown = [row.cpu.use.cpu for row in view.rows_shown(result, view.Shown())]
    assert shown[0] == 77
    assert sorted(shown[1:]) == [*range(50)]
    assert f"… {192 - len(shown)} more; -n 0 shows all" in screen(result, height=400)


@pytest.mark.parametrize(("top", "rows"), [(3, 3), (0, 192)])
def test_so_many_rows_as_were_asked_for(top, rows):
    """-n: the busiest ones; 0: all."""
    [block] = [block for block in made(irqresults.large(), top=top).blocks if len(block.columns) == len(view.TABLE)]
    assert (len(block.rows), block.total) == (rows, 192)
    assert block.rows[0].cpu.use.cpu == 77
    for verbose in (False, True):
        *_, block = made(irqresults.large(), top=top, verbose=verbose).blocks[: 3 if verbose else None]
        assert (len(block.rows), block.total) == (top or 64, 64)  # interrupts


def test_a_quiet_machine_shows_its_busiest_cpu():
    """Never an empty table."""
    result = irqresults.large()
    quiet = tuple(row._replace(load=0.001, is_saturated=False, cpu=row.cpu._replace(drops=0.0)) for row in result.rows)
    assert len(view.rows_shown(result._replace(rows=quiet), view.Shown())) == 1


@pytest.mark.parametrize("width", [20, 40, 80, 200, 400])
@pytest.mark.parametrize("name", ["flood", "large"])
def test_the_strip_fits_the_terminal(name, width):
    """A cell for each CPU, or for a few neighbours, of which the busiest counts; one line a sample, the newest first."""
    result = getattr(irqresults, name)()
    looks = irqresults.moments(result, 12)
    block = strip.block(looks)
    [legend], *lines = [block.listing.lines(row, 0, width) for row in block.rows]
    assert all(len(line) <= max(width, 20) for [line] in lines)
    newest = lines[0][0]
    assert newest.startswith("now ")
    assert lines[1][0].startswith("-2s ")
    cells = newest[8:]
    cpus = len(result.rows)
    merged = -(-cpus // max(8, width - 8))
    assert len(cells) == -(-cpus // merged)
    busiest = max(result.rows, key=lambda row: row.load)
    at = [row.cpu.use.cpu for row in result.rows].index(busiest.cpu.use.cpu) // merged
    assert cells[at] == max(cells, key="·▁▂▃▄▅▆▇█".index)
    assert number_ranges(range(cpus)) in legend
    assert ("busiest of" in legend) == (merged > 1)


def test_the_cells_of_the_strip():
    """Idle, an eighth, all of it; a CPU that was offline has none."""
    loads = [{0: 0.0, 1: 0.13, 2: 0.5, 3: 1.0}, {0: 0.009, 1: 0.01, 3: 0.87}]
    looks = [irqresults.Moment(at * 0.5, each) for at, each in enumerate(loads)]
    block = strip.block([looks[1]._replace(at_s=0.0), looks[0]._replace(at_s=0.5)])
    _, *lines = [block.listing.lines(row, 0, 80)[0] for row in block.rows]
    assert lines == ["now     ·▂▅█", "-0.5s   ·▁ ▇"]


def test_the_ages_of_samples():
    """Of half a second and of minutes; each fits before the cells."""
    dates = (1000.0, 998.5, 996.02, 940.0, 700.0, 0.0)
    block = strip.block([irqresults.Moment(at, {0: 0.0}) for at in reversed(dates)])
    lines = [block.listing.lines(row, 0, 80)[0] for row in block.rows[1:]]
    assert lines == ["now     ·", "-1.5s   ·", "-4s     ·", "-1m0s   ·", "-5m0s   ·", "-16m40s ·"]


@pytest.mark.parametrize("name", ANSWERS)
@pytest.mark.parametrize("watching", [False, True])
def test_json_keeps_to_its_schema(name, watching):
    """Unknown values are null; every CPU is there, by number."""
    result = getattr(irqresults, name)()
    document = json.loads(written(result, "json", looks=3 if watching else 1))
    keeps_to_schema(document, "irqs")
    assert [row["cpu"] for row in document["cpus"]] == [row.cpu.use.cpu for row in result.rows]
    assert (document["samples"] is None) == (not watching)
    if name == "sparse":
        assert {row["drops_per_s"] for row in document["cpus"]} == {None}
        assert {each["managed"] for each in document["interrupts"]} == {None}
        assert document["accounts_irqs"] is None
    if name == "flood":
        assert document["victims"][0]["pid"] == 7525
        assert [each["nodes"] for each in document["pinned"]] == [[0], [0]]
        assert document["irqbalance"]["pid"] == 812
        assert document["interfaces"][1]["queues"][0] == {"kind": "rx", "number": 0, "cpus": [0], "flows": 0}


@pytest.mark.parametrize("name", ANSWERS)
def test_csv_has_a_row_for_each_cpu(name):
    """Raw values."""
    result = getattr(irqresults, name)()
    head, *body = csv_reader.reader(io.StringIO(written(result, "csv")))
    assert len(set(head)) == len(head)
    assert all(len(row) == len(head) for row in body)
    assert [row[0] for row in body] == [str(row.cpu.use.cpu) for row in result.rows]


@pytest.mark.parametrize("name", WITH_ROWS)
def test_text_has_a_line_for_each_cpu(name):
    """Stable columns, all CPUs, in the order of their numbers; `-` is unknown."""
    result = getattr(irqresults, name)()
    lines = written(result, "text").splitlines()
    head = next(number for number, line in enumerate(lines) if line.startswith("CPU  "))
    rows = [line.split() for line in lines[head + 1 : head + 1 + len(result.rows)]]
    assert [row[0] for row in rows] == [str(row.cpu.use.cpu) for row in result.rows]
    drops = lines[head].split().index("DROPS/S")
    if name in ("sparse", "large"):
        assert rows[0][drops] == ("-" if name == "sparse" else "0")


@pytest.mark.parametrize("name", WITH_ROWS)
def test_metrics(name):
    """A series for each CPU, softirq, interrupt that occurred, interface, pinned thread."""
    result = getattr(irqresults, name)()
    samples = promtext.parse(written(result, "prometheus"))
    shares = {
        dict(labels)["cpu"]: value for (metric, labels), value in samples.items() if metric == "opskit_irqs_cpu_softirq"
    }
    assert shares == {str(row.cpu.use.cpu): round(row.cpu.use.softirq, 4) for row in result.rows}
    assert any(metric == "opskit_irqs_cpu_drops_per_second" for metric, _ in samples) == (name != "sparse")
    if name == "flood":
        rates = {
            (dict(labels)["name"], dict(labels)["cpu"]): value
            for (metric, labels), value in samples.items()
            if metric == "opskit_irqs_interrupts_per_second"
        }
        assert rates[("25", "0")] == 40.5
        assert not [key for key in rates if key[0] == "9"], "it did not occur"
        [rx] = [
            value
            for (metric, labels), value in samples.items()
            if metric == "opskit_irqs_softirqs_per_second" and ("name", "NET_RX") in labels and ("cpu", "0") in labels
        ]
        assert rx == 13271


def test_what_to_type():
    """A command that is a finding's fix is printed with it, except in a watch, which cuts the findings; each warning once."""
    result = irqresults.flood()
    out = written(result)
    assert out.count(irqresults.RPS) == 1
    assert "move spin off CPU 0: taskset -cp 1 7525\nCPU 1 is 55 % busy: both then share it\n" in out
    assert f"let CPU 1 receive what veth1 brings: {irqresults.RPS}\n" in written(result, watching=True)
    both = tuple(command._replace(warning=result.commands[1].warning) for command in result.commands)
    assert written(result._replace(commands=both)).count("CPU 1 is 55 % busy") == 1


def test_very_many_commands():
    """The first four; -v shows all."""
    result = irqresults.flood()
    move = result.commands[1]
    many = tuple(move._replace(line=f"taskset -cp 1 {tid}", warning=None) for tid in range(100, 130))
    assert "… 26 more commands: -v" in written(result._replace(commands=many))
    assert written(result._replace(commands=many), verbose=True).count("taskset") == 30


@pytest.mark.parametrize("format_", WRITERS)
def test_names_are_escaped(format_):
    """Of interfaces, drivers, interrupts and threads."""
    for verbose in (False, True):
        out = written(irqresults.hostile(), format_, verbose=verbose)
        assert "\x1b" not in out
        assert "evil" in out
        assert format_ in ("json", "markdown") or all(line.isprintable() for line in out.splitlines())


def test_what_decides_where_interrupts_go():
    """irqbalance, isolated CPUs, how the time is measured."""
    assert list(made(irqresults.large()).summary) == [
        "irqbalance (2041) runs without CPU 190-191; isolated: CPUs 180-191; nohz_full: CPUs 180-191"
    ]
    assert list(made(irqresults.flood()).summary) == [
        "irqbalance (812) runs; irq and softirq time is sampled by clock ticks"
    ]
    assert list(made(irqresults.sparse()).summary) == []
    assert made(irqresults.sparse()).footer == ["/proc/net/softnet_stat: permission denied: drops are unknown"]
