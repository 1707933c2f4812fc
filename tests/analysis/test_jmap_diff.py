"""Differences and trends of class histograms: sums, names, trends, and which class leaks."""

from __future__ import annotations

import re

import pytest
from histotext import POST, text
from hypothesis import given
from hypothesis import strategies as st

from opskit.analysis.jmap_diff.comparable import comparable, oddities
from opskit.analysis.jmap_diff.compare import compare, order, visible
from opskit.analysis.jmap_diff.judge import judge
from opskit.analysis.jmap_diff.names import Choice
from opskit.analysis.jmap_diff.spaces import forecast
from opskit.collect.jmap_diff import Facts, Sample, Target
from opskit.jvm.dumps.heap_info import HeapInfo
from opskit.jvm.dumps.histogram_reader import parse_histograms
from opskit.jvm.logs.timestamps import Stamp
from opskit.jvm.perfdata.gc_counts import GcCounts


def histogram(rows, source="x", stamp=None, **options):
    [found] = parse_histograms(text(rows, **options), source)
    return found if stamp is None else found._replace(stamp=stamp)


def series(*snapshots, seconds=None):
    """Histograms of {name: bytes}, `seconds` apart."""
    return [
        histogram(
            [(name, size // 16, size) for name, size in sizes.items()],
            stamp=Stamp(uptime_s=number * seconds) if seconds else None,
        )
        for number, sizes in enumerate(snapshots)
    ]


NAMES = st.sampled_from(
    [
        "[B",
        "[La.B;",
        "a.B",
        "a.C",
        "java.lang.String",
        "<methodKlass>",
        "a.B$$Lambda$1/0x12",
        "a.B$$Lambda$2/0x13",
        "b.D",
    ]
)
HISTOGRAMS = st.lists(st.tuples(NAMES, st.integers(1, 10**6), st.integers(8, 64)), min_size=1, max_size=12).map(
    lambda rows: histogram([(name, count, count * size) for name, count, size in rows])
)
CHOICES = st.builds(Choice, by=st.sampled_from(["class", "package", "module"]), fold=st.booleans(), vm=st.booleans())


def signed(rows, sign=1):
    return sorted((row.name, sign * row.instances_diff, sign * row.bytes_diff) for row in rows)


@given(HISTOGRAMS, HISTOGRAMS, CHOICES)
def test_the_way_back_is_the_way_there_negated(one, other, choice):
    """diff(a, b) = -diff(b, a), rows and totals."""
    there, back = compare([one, other], choice), compare([other, one], choice)
    assert signed(there.rows) == signed(back.rows, -1)
    assert signed([there.total, there.vm]) == signed([back.total, back.vm], -1)


@given(HISTOGRAMS, CHOICES)
def test_no_difference_from_itself(one, choice):
    """diff(a, a) is empty."""
    found = compare([one, one], choice)
    assert found.rows == []
    assert (found.total.instances_diff, found.total.bytes_diff) == (0, 0)


@given(HISTOGRAMS, HISTOGRAMS, CHOICES)
def test_the_rows_add_up_to_the_difference_of_the_totals(one, other, choice):
    """In instances and bytes, whatever is folded, rolled up or left out."""
    found = compare([one, other], choice)
    assert sum(row.instances_diff for row in found.rows) == found.total.instances_diff
    assert sum(row.bytes_diff for row in found.rows) == found.total.bytes_diff
    if choice.vm:
        assert found.total.bytes_diff == other.total.bytes - one.total.bytes


def test_the_table_of_the_post():
    """Its totals, and the part of the VM's own rows."""
    before = histogram([(name, 100, 10_000) for name, _, _ in POST])
    after = histogram([(name, 100 + count, 10_000 + size) for name, count, size in POST])
    found = compare([before, after], Choice())
    assert found.total[-2:] == (2933, 371744)
    assert found.vm[-2:] == (2140, 309704)
    assert signed(found.rows) == sorted(POST)
    assert compare([before, after], Choice(vm=False)).total[-2:] == (793, 62040)


def test_what_only_one_side_has_counts_from_and_to_nothing():
    """A class that vanished counts to 0."""
    found = compare(series({"a.A": 160, "a.Same": 16}, {"a.B": 320, "a.Same": 16}), Choice())
    assert signed(found.rows) == [("a.A", -10, -160), ("a.B", 20, 320)]


def test_a_restart_is_no_leak():
    """Lambdas, proxies and accessors of another run fold; --no-fold keeps them apart."""
    pair = series(
        {"a.B$$Lambda$1/0x12": 160, "com.sun.proxy.$Proxy7": 32, "a.A": 16},
        {"a.B$$Lambda$9/0x55": 176, "com.sun.proxy.$Proxy9": 32, "a.A": 16},
    )
    assert signed(compare(pair, Choice()).rows) == [("a.B$$Lambda/*", 1, 16)]
    assert len(compare(pair, Choice(fold=False)).rows) == 4


def test_choosing_classes():
    """--include and --exclude search the JVM's names; the rest is still known."""
    pair = series({"a.A": 16, "b.B": 16, "[La.A;": 16}, {"a.A": 32, "b.B": 160, "[La.A;": 64})
    found = compare(pair, Choice(include=re.compile("a[.]A"), exclude=re.compile("^\\[")))
    assert signed(found.rows) == [("a.A", 1, 16)]
    assert (found.total.bytes_diff, found.everything.bytes_diff) == (16, 208)


@pytest.mark.parametrize(("by", "expected"), [
    ("package", [("(arrays of primitives)", 6, 96), ("a", 1, 16)]),
    ("module", [("(no named module)", 1, 16), ("java.base", 6, 96)]),
])  # fmt: skip
def test_roll_ups(by, expected):
    """By package and by module."""
    rows = [("[B", 1, 16, "java.base@17"), ("java.lang.String", 1, 16, "java.base@17"), ("a.A", 1, 16), ("a.B", 1, 16)]
    more = [("[B", 7, 112, "java.base@17"), *rows[1:3], ("a.B", 2, 32)]
    found = compare([histogram(rows, modules=True), histogram(more, modules=True)], Choice(by=by))
    assert signed(found.rows) == expected


@pytest.mark.parametrize(("sort", "names"), [
    ("bytes", ["big", "many", "new", "shrunk"]),
    ("instances", ["many", "big", "new", "shrunk"]),
    ("growth", ["new", "many", "big", "shrunk"]),
    ("name", ["big", "many", "new", "shrunk"]),
])  # fmt: skip
def test_orders(sort, names):
    """By bytes, by instances, in proportion (what is new first), by name."""
    before = histogram([("big", 10, 100_000), ("many", 10, 1_000), ("shrunk", 5, 500)])
    after = histogram([("big", 11, 150_000), ("many", 900, 40_000), ("new", 1, 16), ("shrunk", 1, 100)])
    rows = compare([before, after], Choice()).rows
    assert [rows[place].name for place in order(rows, sort)] == names


def test_rows_whose_bytes_did_not_change_are_left_out():
    """Unless they are sorted by instances; --min-bytes leaves out small ones, also shrunken ones."""
    found = compare([histogram([("[B", 2, 64), ("a", 1, 16)]), histogram([("[B", 1, 64), ("a", 9, 144)])], Choice())
    assert [row.name for row in visible(found.rows, "bytes", 0)] == ["a"]
    assert {row.name for row in visible(found.rows, "instances", 0)} == {"a", "[B"}
    assert visible(found.rows, "bytes", 129) == []


def test_the_leak_is_ranked_before_the_noise():
    """Steady growth first, the application's before arrays and the JDK's, however large the others are."""
    leak = [1000 + 160 * n for n in range(6)]
    noise = [10_000, 90_000, 20_000, 80_000, 30_000, 99_000]
    arrays = [10_000 * (n + 1) for n in range(6)]
    found = compare(
        series(*({"a.Leak": a, "a.Cache": b, "[B": c, "java.lang.String": c // 2} for a, b, c in zip(leak, noise, arrays)), seconds=30),
        Choice(),
    )  # fmt: skip
    assert [one.name for one in found.trend] == ["a.Leak", "[B", "java.lang.String", "a.Cache"]
    first = found.trend[0]
    assert (first.steps_grown, first.steps, first.steady) == (5, 5, True)
    assert first.bytes_per_min == pytest.approx(320)
    assert first.bytes_per_step == pytest.approx(160)
    assert not found.trend[-1].steady


def test_slopes_are_by_histogram_where_the_times_are_not_known():
    """A name that is missing in a cut histogram has no trend."""
    snapshots = series({"a.A": 160, "a.B": 16}, {"a.A": 320, "a.B": 32}, {"a.A": 480})
    found = compare([*snapshots[:2], snapshots[2]._replace(cut="it has no Total line")], Choice())
    assert [(one.name, one.bytes_per_min, one.bytes_per_step) for one in found.trend] == [
        ("a.A", None, pytest.approx(160))
    ]


@pytest.mark.parametrize(("sizes", "minutes"), [
    ((1600, 3200, 4800, 6400), 99),
    ((1600, 3200, 4800), None),
    ((1600, 3200, 3100, 6400), None),
    ((100, 200, 300, 90_000), None),
])  # fmt: skip
def test_a_forecast_needs_a_series_that_supports_it(sizes, minutes):
    """Four points or more that rise in each step, and in a straight line."""
    found = forecast("heap", [(60.0 * at, used) for at, used in enumerate(sizes)], 164_800, "its maximum")
    assert found.full_in_min == (minutes and pytest.approx(minutes))
    assert found.used_bytes == sizes[-1]


def test_a_log_with_both_sides_of_each_collection_is_compared_by_what_is_left():
    """Three or more after a full GC make a trend; with fewer, all are compared."""
    both = [one._replace(moment=moment) for one in series({"a.A": 16}, {"a.A": 32}, {"a.A": 48})
            for moment in ("before full gc", "after full gc")]  # fmt: skip
    assert [one.moment for one in comparable(both)] == ["after full gc"] * 3
    assert len(comparable(both[:4])) == 4


def odd(one, other):
    return oddities([one, other], compare([one, other], Choice()).came)


ROWS = [(f"a.B{number}", 1, 16) for number in range(20)]


@pytest.mark.parametrize(("one", "other", "said"), [
    (histogram(ROWS, "a"), histogram(ROWS, "b"), "the same in every row"),
    (histogram([("[B", 1, 16, "java.base@11.0.5")], modules=True), histogram([("[B", 1, 32, "java.base@17")], modules=True), "JDK versions 11.0.5, 17"),
    (histogram(ROWS, stamp=Stamp(pid=1)), histogram([*ROWS, ("c", 1, 16)], stamp=Stamp(pid=2)), "pids 1, 2"),
    (histogram(ROWS), histogram([(f"c.D{n}", 1, 16) for n in range(20)]), "0 of 20 application classes in common"),
    (histogram([(f"a.B$$Lambda$1/0x{n}", 1, 16) for n in range(9)]), histogram([(f"a.B$$Lambda$1/0x9{n}", 1, 16) for n in range(9)]), "few lambdas"),
    (histogram(ROWS, stamp=Stamp(uptime_s=9)), histogram([*ROWS, ("c", 1, 16)], stamp=Stamp(uptime_s=5)), "uptimes decrease"),
])  # fmt: skip
def test_what_is_not_one_jvm_at_two_times_is_said(one, other, said):
    """The same file twice, other versions, other pids, other classes, a restart, the wrong order."""
    assert any(said in sentence for sentence in odd(one, other))


def test_one_jvm_at_two_times_is_not():
    """A few classes that appear or vanish do not mean another JVM."""
    assert odd(histogram(ROWS), histogram([*ROWS[1:], ("c.D", 1, 16)])) == []


def judged(*snapshots, jvm=None, live=False, **options):
    return judge(Facts([Sample(one) for one in series(*snapshots, seconds=30)], jvm, live), Choice(), **options)


def test_what_keeps_growing_is_a_finding():
    """Its entity is the JVM; share and window are those of the series; a cache that is emptied gives none."""
    jvm = Target(7, 99, "Main", "17", None, 1 << 20)
    sizes = [
        ({"a.Leak": leak, "a.Cache": cache}) for leak, cache in zip(range(1600, 16000, 1600), [16, 1600, 3200, 16] * 2)
    ]
    result = judged(*sizes, jvm=jvm, live=True)
    [found] = result.findings
    assert result.heap.full_in_min > 0
    assert (found.code, found.severity) == ("class-keeps-growing", "warning")
    assert found.entity[:3] == ("process", 7, 99)
    assert found.summary == "a.Leak keeps growing: in 7 of 7 steps, +3.1 KiB a minute, 12.5 KiB by now"
    assert found.next == "jcmd 7 GC.heap_dump FILE"
    assert found.share == pytest.approx(12800 / 12816)
    assert found.window_s == 210


def test_files_do_not_tell_whether_growth_is_garbage():
    """A note that says so and names the command that tells, no warning; proven where each histogram follows a full GC."""
    log = [one._replace(moment="after full gc") for one in series(*({"a.A": size} for size in (160, 320, 480)))]
    assert [one.severity for one in judge(Facts([*map(Sample, log)]), Choice()).findings] == ["warning"]
    log[1] = log[1]._replace(moment=None)
    [found] = judge(Facts([*map(Sample, log)]), Choice()).findings
    assert (found.severity, found.next) == ("note", "opskit jmap-diff PID --live -c 5")
    assert "grew, and may be garbage" in found.summary


JVM = Target(7, 99, "Main", "17", None, 100_000)
SIZES = [{"a.A": size} for size in (16_000, 32_000, 48_000, 64_000, 80_000)]


def run(steps, *sizes, live=False, collector="G1", old=lambda total: total, jvm=JVM):
    """The judgement of histograms; `steps`: (young, full, cycles) between them, `old`: bytes of the old generation."""
    counts, samples = GcCounts(collector, 0, 0, 0), []
    for histogram, step in zip(series(*sizes, seconds=30), ((0, 0, 0), *steps)):
        young, full, cycles = step
        counts = GcCounts(
            collector, counts.young + young, counts.full + full, counts.cycles + cycles, old(histogram.total.bytes)
        )
        after = counts._replace(full=counts.full + 1) if live else counts
        samples.append(Sample(histogram, None, counts, after))
        counts = after
    return judge(Facts(samples, jvm, live), Choice())


@pytest.mark.parametrize(("steps", "kind", "said"), [
    ([(0, 0, 0)] * 4, "none", "no collection between them: growth may be garbage; --live or a longer -i: opskit jmap-diff 7 --live -c 5"),
    ([(3, 0, 0)] * 4, "young", "only young collections between them (12): growth may be garbage of the old generation"),
    ([(0, 1, 0), (1, 0, 0), (0, 0, 0), (0, 0, 0)], "young", "old collections in 1 step of 4: too few to tell a leak from garbage"),
    ([(1, 0, 2), (1, 0, 0), (1, 0, 2), (0, 0, 0)], "young", "old collections in 2 steps of 4: too few"),
    ([(0, 1, 0), (1, 0, 0), (0, 1, 0), (0, 0, 0)], "collected", None),
    ([(1, 0, 2), (1, 0, 2), (1, 0, 2), (0, 0, 0)], "collected", None),
])  # fmt: skip
def test_only_old_collections_prove_growth(steps, kind, said):
    """Between three histograms by full collections, between four by concurrent cycles; nothing else is a warning."""
    result = run(steps, *SIZES)
    assert result.proof.kind == kind
    assert [one.severity for one in result.findings] == {"collected": ["warning"], "young": ["note"], "none": []}[kind]
    assert result.proof.why is None if said is None else said in result.proof.why
    assert (result.heap is None) == (kind != "collected")


def test_two_or_three_histograms_between_young_collections_name_no_suspect():
    """Growth that young collections moved to the old generation needs four."""
    assert run([(3, 0, 0)] * 2, *SIZES[:3]).findings == []
    assert run([(3, 0, 0)], *SIZES[:2]).proof.kind == "young"


def test_growth_in_the_young_generation_is_garbage():
    """However often an old collection ran: what is young may be dead, and a heap that stays has no leak."""
    assert run([(3, 0, 0)] * 4, *SIZES, old=lambda total: 10_000).findings == []
    assert run([(0, 1, 0)] * 4, *SIZES, old=lambda total: 16_000).findings == []


@pytest.mark.parametrize("collector", ["ZGC", "ZGC-generational", "Shenandoah"])
def test_collectors_whose_histograms_have_no_garbage(collector):
    """They prove growth without any collection."""
    result = run([(0, 0, 0)] * 4, *SIZES, collector=collector)
    assert result.proof.kind == "reachable"
    assert [one.severity for one in result.findings] == ["warning"]


def test_a_full_collection_that_the_jvm_refused():
    """With --live each histogram follows one, or proves nothing."""
    assert run([(0, 0, 0)] * 4, *SIZES, live=True).proof.kind == "reachable"
    samples = [one._replace(after=one.before) for one in run([(0, 0, 0)] * 4, *SIZES, live=True).facts.samples]
    result = judge(Facts(samples, JVM, live=True), Choice())
    assert result.findings == []
    assert "refused the full GC before 5 histograms" in result.proof.why


def test_a_jvm_without_counters():
    """A used heap that never shrinks shows that no collection was seen; one that shrinks leaves open which ran."""

    def judged_with(*used):
        samples = [Sample(one, info=HeapInfo("Serial", size, None, None)) for one, size in zip(series(*SIZES), used)]
        return judge(Facts(samples, JVM), Choice())

    assert "no collection between them was seen" in judged_with(1, 2, 3, 4, 5).proof.why
    assert "is unknown (the JVM shares no counters)" in judged_with(1, 2, 1, 4, 5).proof.why
    assert judged_with(1, 2, 1, 4, 5).findings == []


@pytest.mark.parametrize(("name", "sizes", "found"), [
    ("a.A", (548, 550, 553, 555, 558), 0),
    ("a.A", (548, 570, 590, 610, 640), 1),
    ("a.A", (10.0, 10.1, 10.2, 10.3, 10.4), 0),
    ("a.A", (200, 300, 350, 356, 360), 0),
    ("a.A", (200, 300, 400), 1),
    ("a.A", (200, 300, 600), 0),
    ("a.A", (200, 300, 330, 600), 0),
    ("[B", (548, 570, 590, 610, 640), 0),
    ("[B", (548, 1000, 1500, 2000, 2500), 1),
])  # fmt: skip
def test_the_least_growth_of_a_suspect(name, sizes, found):
    """10 % of itself and 1 % of what is reachable (a quarter for the JDK's classes), or 1 % of the heap; no leap, and no cache that is full."""
    jvm = JVM._replace(heap_max_bytes=128 << 20)
    snapshots = [{name: round(size * 1024), "[C": 1 << 20} for size in sizes]
    assert len(run([(0, 0, 0)] * (len(sizes) - 1), *snapshots, live=True, jvm=jvm).findings) == found


@pytest.mark.parametrize("snapshots", [
    [{"a.A": 16}],
    [{"a.A": 16}, {"a.A": 1600}],
    [{"a.A": 1600}, {"a.A": 16}, {"a.A": 160}],
    [{"a.A": 16, "[B": 10**6}, {"a.A": 32, "[B": 10**6}, {"a.A": 48, "[B": 10**6}],
])  # fmt: skip
def test_no_finding(snapshots):
    """Of one histogram, of two, of noise, and of less than a percent of all bytes."""
    assert judged(*snapshots).findings == []


def test_the_rows_of_a_result_are_in_order():
    """The first ones, or all of them."""
    result = judged({"a.A": 16, "a.B": 16}, {"a.A": 160, "a.B": 1600}, sort="name", min_bytes=100)
    assert [row.name for row in result.first(None)] == ["a.A", "a.B"]
    assert [row.name for row in result.first(1)] == ["a.A"]
