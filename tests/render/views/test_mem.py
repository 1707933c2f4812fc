"""How the memory of a process is shown: goldens, the first screen, the verdict's sentences, what is unknown, metrics, pictures."""

from __future__ import annotations

import json
import re
from xml.etree import ElementTree as ET

import memfacts
import promtext
import pytest
from memfacts import MIB, ORDERS, SLICE, mib
from schemafiles import keeps_to_schema

from opskit.analysis.mem.result import Headroom
from opskit.analysis.mem.words import who
from opskit.proc.ranges import KINDS
from opskit.render.formats import json as as_json
from opskit.render.formats import markdown, prometheus, table, text
from opskit.render.report import About
from opskit.render.views.mem import report as view
from opskit.render.views.mem import sentences
from opskit.render.views.mem.document import Answer, complete
from opskit.render.views.mem.rows import lines_of

WRITERS = {"json": as_json, "markdown": markdown, "prometheus": prometheus, "table": table, "text": text}


def made(result, format_="table", **shown):
    about = About("HOST", "2026-01-02T03:04:05Z", "VERSION", "opskit mem 4242", view.target(result))
    shown = {"text": format_ == "text", "watching": bool(result.samples), **shown}
    report = view.report(about, result, view.Shown(**shown))
    return complete(report, Answer(process=result)) if format_ in ("json", "prometheus") else report


def written(result, format_="table", **shown):
    report = made(result, format_, **shown)
    return report.draw("svg") if format_ == "svg" else WRITERS[format_].render(report)


def screen(result, width=80, height=24, **shown):
    return table.render(made(result, short=True, **shown), width, height, screen=bool(result.samples))


def rows_on(out, width):
    return sum(-(-max(len(line), 1) // width) for line in out.splitlines())


@pytest.mark.parametrize("format_", ["table", "text", "json", "markdown", "prometheus", "svg"])
def test_goldens(format_, golden):
    """A JVM whose heap does not fit into its cgroup, in every format."""
    golden(f"mem-orders.{format_}", written(memfacts.orders(), format_))


@pytest.mark.parametrize("format_", ["table", "text", "json", "svg"])
def test_goldens_of_a_watch(format_, golden):
    """Direct buffers leak: each row has its growth, and when its limit is reached."""
    golden(f"mem-watched.{format_}", written(memfacts.watched(), format_))


@pytest.mark.parametrize("name", ["orders", "healthy", "native", "sums_only", "watched"])
def test_the_first_screen(golden, name):
    """On 80 x 24 the verdict, the suspects, the next command and the largest rows are seen without scrolling."""
    out = screen(getattr(memfacts, name)())
    golden(f"mem-screen-{name}.txt", out)
    assert rows_on(out, 80) <= 24


@pytest.mark.parametrize("name", ["orders", "healthy", "native", "sums_only", "watched"])
@pytest.mark.parametrize("verbose", [False, True])
def test_json_keeps_to_its_schema(name, verbose):
    """The rows sum up to the total; null stands for what is unknown."""
    result = getattr(memfacts, name)()
    document = json.loads(written(result, "json", verbose=verbose))
    keeps_to_schema(document, "mem")
    if document["rows"]:
        for key in ("rss_bytes", "pss_bytes", "swap_bytes"):
            assert sum(row[key] for row in document["rows"]) == document["total"][key]


def test_the_verdict_is_one_sentence_with_the_fix():
    """Who, what may grow, what is left, what to do."""
    [said, more] = sentences.verdict(memfacts.orders())
    assert said == (
        "4242 (orders) can be killed: the heap may still grow 160 MiB (95.7 of -Xmx256m resident); "
        "the limit leaves 102 MiB (400 MiB, cgroup /orders). Fix: -Xmx190m, or a limit of 460 MiB."
    )
    assert more.startswith("What else can grow: direct buffers 214 MiB, ")
    assert more.endswith(", metaspace without a limit.")


HEADROOM = memfacts.orders().headroom
VERDICTS = {
    "the heap is full": (
        HEADROOM._replace(can_be_killed=False, heap_growth_bytes=0),
        "4242 (orders) fits, with 102 MiB for all the rest: the heap has all of -Xmx256m already; the limit leaves 102 MiB",
    ),
    "it fits": (
        HEADROOM._replace(can_be_killed=False, left_bytes=700 * MIB),
        "4242 (orders) fits, with 540 MiB for all the rest: the heap may still grow 160 MiB (95.7 of -Xmx256m resident); the limit leaves 700",
    ),
    "no limit": (HEADROOM._replace(level=None, left_bytes=90 << 20), "no limit is below the machine's memory, which leaves 90.0 MiB"),
    "swap": (HEADROOM._replace(swap_left_bytes=30 * MIB), "the limit leaves 102 MiB and 30.0 MiB of swap (400 MiB"),
    "unsure": (
        HEADROOM._replace(can_be_killed=None, unsure_bytes=80 * MIB),
        "4242 (orders): whether it can be killed is unknown: the heap may still grow 160 MiB (95.7 of -Xmx256m resident); the limit leaves",
    ),
    "the heap is unknown": (
        HEADROOM._replace(can_be_killed=None, heap_growth_bytes=None),
        "4242 (orders) holds 322 MiB (RSS); the limit leaves 102 MiB (400 MiB, cgroup /orders); how far the heap may grow is unknown.",
    ),
    "all are killed": (HEADROOM._replace(level=ORDERS._replace(group_kill=True)), "can be killed with all processes of its cgroup: the heap"),
    "nothing is killed": (HEADROOM._replace(level=ORDERS._replace(kills_disabled=True)), "can be stopped for good (oom_kill_disable): the"),
    "no smaller heap fits": (HEADROOM._replace(fix_heap_bytes=None), "Fix: a limit of 460 MiB."),
    "nothing is known": (None, "whether it can be killed is unknown: neither a limit nor the machine's memory could be read."),
    "throttled": (
        HEADROOM._replace(throttled_in=ORDERS._replace(high_bytes=350 * MIB), throttle_left_bytes=20 * MIB),
        "It is slowed down before that: memory.high of cgroup /orders (350 MiB) leaves 20.0 MiB.",
    ),
    "another level": (HEADROOM._replace(others=(SLICE._replace(path="/a"),)), "It does not fit either into cgroup /a."),
    "strict overcommit": (
        HEADROOM._replace(allocations_fail=True, commit_left_bytes=7 * MIB),
        "Allocations fail before that: vm.overcommit_memory=2 leaves 7.0 MiB to commit.",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", VERDICTS)
def test_verdicts(name):
    """Each state of the limits has its sentence."""
    headroom, said = VERDICTS[name]
    assert said in " ".join(sentences.verdict(memfacts.orders(headroom=headroom)))


def test_a_process_without_a_jvm():
    """It has no heap to speak of."""
    [said] = sentences.verdict(memfacts.native())
    assert (
        said == "77 (python3.11) holds 70.1 MiB (RSS); no limit is below the machine's memory, which leaves 20.0 GiB."
    )


def test_a_suspect_that_is_a_finding_is_said_once():
    """The finding has its fix and next command."""
    result = memfacts.orders()
    code = result.suspects[0].code
    found = result.findings[0]._replace(code="memory-pressure")
    twice = result._replace(suspects=[result.suspects[0]._replace(code="memory-pressure")], findings=[found])
    assert [*sentences.suspects(twice)] == []
    assert [*sentences.suspects(result._replace(findings=()))][-1] == f"next: {result.suspects[0].next}"
    assert code


def test_the_screen_of_a_watch_has_a_next_command():
    """Its findings are cut to a line; the one of the growth comes first."""
    result = memfacts.watched()
    assert "\nnext: opskit jmap-diff 4242 --live -c 5\n" in screen(result)
    growing = result.findings[0]._replace(code="memory-keeps-growing", next="opskit jpmp 4242")
    assert "\nnext: opskit jpmp 4242\n" in screen(result._replace(findings=(*result.findings, growing)))


def test_one_suspect_is_a_sentence():
    """The others are named with what they hold; -v shows each with what was read."""
    result = memfacts.orders()
    lines = [line for line in made(result).verdict if "suspect" in line]
    assert lines == [
        "suspect: malloc holds 91.4 MiB that is no direct buffer",
        "further suspects (-v): direct buffers 42.0 MiB",
    ]
    shown = [line for line in made(result, verbose=True).verdict if "suspect" in line]
    assert len(shown) == 2
    assert shown[0].endswith("(12 arenas of glibc)")


def test_text_has_the_same_columns_for_awk_in_every_state():
    """A row a kind, bytes without separators, blanks only in the last column."""
    heads = set()
    for name in ("orders", "healthy", "native", "sums_only"):
        lines = written(getattr(memfacts, name)(), "text").splitlines()
        head = next(line for line in lines if line.startswith("KIND"))
        heads.add(tuple(head.split()))
        begin = lines.index(head) + 1
        for line in lines[begin:]:
            if line.split()[0] not in (*KINDS, "rss"):
                break
            cells = line.split(None, len(head.split()) - 1)
            assert all(re.fullmatch(r"[0-9]+|-", cell) for cell in cells[1:10]), line
    assert len(heads) == 1


def test_a_watch_has_growth_in_text_and_table():
    """Bytes a second, seconds until it is full; what grows comes first."""
    lines = written(memfacts.watched(), "text").splitlines()
    head = next(line for line in lines if line.lstrip().startswith("AT_S")).split()
    row = dict(zip(head, next(line for line in lines if " malloc-mmapped " in line).split()))
    assert float(row["BYTES_PER_S"]) == pytest.approx(mib(2) / 10, rel=1e-5)
    assert row["FULL_IN_S"] == "460"
    assert lines_of(memfacts.watched())[0].kind == "malloc-mmapped"
    assert "7 min 40 s" in screen(memfacts.watched())


def test_metrics_are_read_by_prometheus():
    """Names in base units, each sample with the process; nothing for what is unknown."""
    samples = promtext.parse(written(memfacts.orders(), "prometheus"))
    value = lambda name, **labels: promtext.value(samples, name, **labels)  # noqa: E731
    assert value("opskit_mem_rss_bytes", pid=4242, main="orders", kind="java-heap") == mib(95.7)
    assert value("opskit_mem_process_rss_bytes") == memfacts.orders().facts.total.rss_bytes
    assert value("opskit_mem_cgroup_limit_bytes", path="/orders") == 400 * MIB
    assert value("opskit_mem_cgroup_oom_kills_total", path="/orders") == 1
    assert value("opskit_mem_headroom_can_be_killed", cgroup="/orders") == 1
    assert value("opskit_mem_jvm_direct_bytes") == 42 * MIB
    assert value("opskit_mem_malloc_free_bytes") == mib(12.3)
    assert not [name for name, _ in samples if name == "opskit_mem_jvm_metaspace_max_bytes"]
    assert all(dict(labels)["pid"] == "4242" for name, labels in samples if name.startswith("opskit_mem"))
    promtext.parse(written(memfacts.watched(), "prometheus"))


def test_hostile_names_are_escaped_everywhere():
    """A command and a path from the machine add no line, no column, no sample and no element."""
    result = memfacts.native()
    evil = 'a\n"}</svg>\x1b[31m<x y="'
    process = result.facts.process._replace(command=evil)
    parts = [part._replace(kind="libraries", name=evil) for part in memfacts.PARTS]
    result = result._replace(facts=result.facts._replace(process=process, parts=parts))
    for format_ in ("table", "text", "markdown", "prometheus", "svg"):
        out = written(result, format_, verbose=True)
        assert "\x1b" not in out
        assert len([line for line in out.splitlines() if line.startswith('"}')]) == 0
    promtext.parse(written(result, "prometheus"))
    ET.fromstring(written(result, "svg"))  # noqa: S314  (our own)


@pytest.mark.parametrize("name", ["orders", "healthy", "native", "sums_only", "watched"])
def test_the_picture_is_one_readable_file(name):
    """It is XML, loads nothing and has no script; each row is named with its size."""
    result = getattr(memfacts, name)()
    out = written(result, "svg")
    root = ET.fromstring(out)  # noqa: S314  (our own)
    texts = ["".join(each.itertext()) for each in root.iter("{http://www.w3.org/2000/svg}text")]
    assert who(result.facts) in texts[0]
    for line in lines_of(result):
        assert KINDS[line.kind] in texts
    assert "http" not in out.replace("http://www.w3.org/2000/svg", "")
    assert "<script" not in out


def test_the_limit_is_a_line_at_its_place():
    """The bars are to scale: the limit is where 400 MiB are, beyond what counts in the cgroup, before what the heap may take."""
    out = written(memfacts.orders(), "svg")
    boxes = [
        (float(x), float(width), kind)
        for kind, x, width in re.findall(
            r'<rect class="(part|light)" x="([\d.]+)" y="[\d.]+" width="([\d.]+)" height="46"', out
        )
    ]
    [limit] = [float(x) for x in re.findall(r'class="limit" d="M([\d.]+) ', out)]
    resident = max(x + width for x, width, kind in boxes[:14] if kind == "part")
    scale = (resident - 20) / memfacts.orders().facts.total.rss_bytes
    assert limit - 20 == pytest.approx(400 * MIB * scale, rel=0.01)
    growth = next((x, width) for x, width, kind in boxes if kind == "light")
    assert growth == pytest.approx((20 + 298 * MIB * scale, 160.3 * MIB * scale), abs=0.2)
    assert growth[0] < limit < sum(growth)


def test_a_far_limit_does_not_flatten_a_watch():
    """It is named instead."""
    result = memfacts.watched()
    far = result.headroom.level._replace(limit_bytes=64 << 30)
    out = written(result._replace(headroom=result.headroom._replace(level=far)), "svg")
    assert "Above this picture: limit 64 GiB." in out
    assert 'class="limit"' not in out


def details(kind, **changes):
    """What is said about one row of the JVM `orders` with other facts."""
    result = memfacts.orders()
    result = result._replace(facts=result.facts._replace(**changes))
    return next(line.details for line in lines_of(result) if line.kind == kind)


HEAPS = {
    "80 used, 128 committed of 256 MiB, 64.0 MiB in huge pages": {},
    "128 committed of 256 MiB, 64.0 MiB in huge pages": {"heap_used_bytes": None},
    "80 used of 256 MiB, 64.0 MiB in huge pages": {"heap_committed_bytes": None},
    "at most 256 MiB, 64.0 MiB in huge pages": {"heap_used_bytes": None, "heap_committed_bytes": None},
    "80 MiB used, 128 MiB committed, 64.0 MiB in huge pages": {"heap_max_bytes": None},
    "128 MiB committed, 64.0 MiB in huge pages": {"heap_used_bytes": None, "heap_max_bytes": None},
    "64.0 MiB in huge pages": dict.fromkeys(("heap_used_bytes", "heap_committed_bytes", "heap_max_bytes")),
    "0.1 used, 4.0 committed of 4.0 GiB, 64.0 MiB in huge pages": {"heap_committed_bytes": 4 << 30, "heap_max_bytes": 4 << 30},
}  # fmt: skip


@pytest.mark.parametrize("said", HEAPS)
def test_the_details_of_the_heap(said):
    """In one unit; what is unknown is left out."""
    assert details("java-heap", jvm=memfacts.JVM._replace(**HEAPS[said])) == said


def test_free_memory_that_was_not_read_in_full():
    """The footer has the reason."""
    cut = memfacts.MALLOC._replace(incomplete="it has too many free blocks to read them all")
    result = memfacts.orders()
    assert made(result._replace(facts=result.facts._replace(malloc=cut))).footer == [
        "more may be free inside of malloc's arenas: it has too many free blocks to read them all"
    ]


def test_direct_buffers_are_named_where_they_are():
    """Large ones are blocks of their own, small ones are in the arenas."""
    assert "direct buffers 42.0 MiB of at most 256 MiB" in details("malloc-mmapped")
    assert "direct" not in details("malloc-arenas")
    small = [row._replace(usage=memfacts.usage(2)) if row.kind == "malloc-mmapped" else row for row in memfacts.ROWS]
    assert "direct buffers 42.0 MiB" in details("malloc-arenas", rows=tuple(small))
    assert "direct" not in details("malloc-mmapped", rows=tuple(small))


def test_free_blocks_that_were_not_all_read():
    """What is free is then a lower bound."""
    assert "12.3 MiB free" in details("malloc-arenas")
    assert "at least" not in details("malloc-arenas")
    cut = memfacts.MALLOC._replace(incomplete="it has too many free blocks to read them all")
    assert "at least 12.3 MiB free" in details("malloc-arenas", malloc=cut)


def test_a_memfd_is_not_called_deleted():
    """It has no name in a directory, so that the kernel always says so; of a file it matters."""
    file = memfacts.PARTS[2]
    assert details("mapped-files", parts=(file,)) == "1 file: ord ers.idx (deleted)"
    assert details("mapped-files", parts=(file._replace(name="/memfd:java_heap"),)) == "1 file: memfd:java_heap"


def test_pss_is_shown_where_pages_are_shared():
    """Unknown PSS is not 0, and a few shared pages are not worth a word."""

    def libraries(pss):
        used = memfacts.usage(16.6)._replace(pss_bytes=pss)
        return details(
            "libraries",
            rows=tuple(row._replace(usage=used) if row.kind == "libraries" else row for row in memfacts.ROWS),
        )

    assert "PSS 9.0 MiB" in libraries(9 * MIB)
    assert "PSS" not in libraries(None)
    assert "PSS" not in libraries(mib(16.5))


def test_what_could_not_be_read_is_said():
    """In the footer; the reason of missing rows in the verdict."""
    result = memfacts.sums_only()
    facts = result.facts._replace(
        missing=("a", "b", "a"), levels_unknown="the cgroup of 4242 is outside of this container"
    )
    report = made(result._replace(facts=facts, headroom=Headroom(None, None, None, None, None, None)))
    assert "whether it can be killed is unknown: the cgroup of 4242 is outside of this container." in report.verdict[0]
    assert "permission denied for /proc/4242/smaps" in report.verdict[1]
    assert report.footer == ["a", "b"]
