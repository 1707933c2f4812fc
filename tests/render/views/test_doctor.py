"""How doctor's answer is shown: goldens in every format, first screens, a watch, changes since a run, hostile names."""

from __future__ import annotations

import json

import promtext
import pytest
from doctorresults import (
    AT_S,
    DEADLOCK,
    PIPE,
    PLACES,
    ROOT,
    STALE,
    THREADS,
    THROTTLED,
    TTSP,
    found,
    healthy,
    process,
    seen,
    troubled,
)  # fmt: skip
from hypothesis import given, settings
from hypothesis import strategies as st
from schemafiles import keeps_to_schema

from opskit.analysis.doctor import flat
from opskit.analysis.doctor.judge import judge
from opskit.analysis.doctor.seen import NOTHING_THERE, Gap, Place
from opskit.analysis.doctor.state import compare
from opskit.analysis.doctor.watched import Tracker
from opskit.analysis.finding import HOST, Entity
from opskit.catalog import FINDINGS
from opskit.render.formats import json as as_json
from opskit.render.formats import markdown, page, prometheus, text
from opskit.render.report import About
from opskit.render.views.doctor.answer import Answer, Shown
from opskit.render.views.doctor.report import report

HOSTILE = "a\x1b]0;x\x07\n2. stuck  error fake"
ABOUT = About("vm", "2026-11-23T14:03:10Z", "V", "opskit doctor")
RENDER = {
    "table": page.render,
    "text": text.render,
    "json": as_json.render,
    "markdown": markdown.render,
    "prometheus": prometheus.render,
}


def made(result, *, watched=None, changes=None, **shown):
    names = {25395: "orders", 25393: "billing", 1: "a", 2: HOSTILE}
    return report(ABOUT, Answer(result, "vm", names, watched, changes), Shown(**shown))


def screen(result, width=80, height=24, **more):
    return page.render(made(result, **more), width, height).splitlines()


def lines(result, **more):
    return text.render(made(result, **more)).splitlines()


@pytest.mark.parametrize("form", RENDER)
def test_twelve_faults_in_every_format(golden, form):
    """Problems, effects, notes, what was not checked."""
    golden(f"doctor-troubled.{form}", RENDER[form](made(troubled())))


@pytest.mark.parametrize("form", RENDER)
def test_a_healthy_machine_in_every_format(golden, form):
    """One line, and what --ask would check."""
    golden(f"doctor-healthy.{form}", RENDER[form](made(healthy())))


@pytest.mark.parametrize("form", ["table", "text", "markdown"])
def test_everything(golden, form):
    """--all -v: evidence, all effects, fixes, notes, each check."""
    golden(f"doctor-all.{form}", RENDER[form](made(troubled(asked={25395: 0.0412, 7: None}), all_=True, verbose=True)))


@pytest.mark.parametrize(("name", "width", "height"), [("small", 80, 24), ("wide", 200, 50), ("short", 80, 10)])
def test_first_screens(golden, name, width, height):
    """The verdict, the worst problems in full, a line for each other one; with colours nothing else changes."""
    shown = screen(troubled(), width, height)
    assert len(shown) < height
    assert max(map(len, shown)) <= width
    golden(f"doctor-screen-{name}.txt", "\n".join(shown) + "\n")


def test_twelve_problems_take_at_most_40_lines():
    """Off a terminal too, in table and text; each is named once."""
    many = [found("major-faults", process(pid), said=f"{pid} faults", next="opskit mem") for pid in (910, 2801, 3111)]
    result = judge(troubled().seen._replace(checked=[*troubled().seen.checked, *seen(*many, TTSP).checked]))
    assert len(result.problems) >= 12
    for shown in (lines(result), page.render(made(result)).splitlines(), screen(result, 80, 50)):
        assert len(shown) <= 40
        for number, problem in enumerate(result.problems, 1):
            assert sum(line.lstrip().startswith(f"{number}. {problem.class_}") for line in shown) == 1


def test_more_problems_than_fit():
    """The rest is counted; --all shows each."""
    result = judge(
        seen(*(found("disk-full", process(pid), said=f"{pid} full") for pid in range(3)), DEADLOCK, PIPE, THREADS)
    )
    shown = screen(result, 80, 7)
    assert shown[-2:-1] == ["… 3 more: --all"]
    assert sum(". s" in line for line in screen(result, 80, 7, all_=True)) == len(result.problems) == 6


@pytest.mark.parametrize(
    "gaps",
    [(), (Gap("pipes", "pipes of 3 processes", ROOT), *(Gap("pipes", f"thing {n}", f"reason {n}") for n in range(30)))],
)
def test_a_healthy_answer_takes_at_most_three_lines(gaps):
    """Whatever there is to say."""
    result = judge(seen(*STALE, gaps=gaps))
    for shown in (screen(result), lines(result), page.render(made(result)).splitlines()):
        assert len(shown) <= 3
        assert shown[0] == "no problem found on vm; checked 3 things in 1.4 s"
        assert shown[1] == "also (--all): 34 stale attach sockets"
    assert max(map(len, screen(result))) <= 80


def test_what_was_not_checked_is_grouped_by_its_reason():
    """What --ask alone can check is a clause of its own; bugs are short, and whole with -v."""
    gaps = (
        Gap("pipes", "pipes of 3 processes", ROOT), Gap("units", "systemd units", "it needs --ask"),
        Gap("io", "io of 3 processes", ROOT), Gap("tcp", "TCP connections", "a bug in opskit: KeyError: 'x' at opskit/x.py:1"),
    )  # fmt: skip
    [last] = lines(judge(seen(gaps=gaps)))[1:]
    assert last == (
        f"not checked: pipes of 3 processes, io of 3 processes ({ROOT}); TCP connections (a bug in opskit: -v); with --ask: systemd units"
    )
    assert any("opskit/x.py:1" in line for line in lines(judge(seen(gaps=gaps)), verbose=True))
    gaps = [
        Gap("a", "one thing", "no space"),
        *(Gap("b", f"rates of thing {n}", "a copy has no rates") for n in range(6)),
    ]
    assert screen(judge(seen(gaps=gaps)), 80)[1] == "not checked: 6 things (a copy has no rates); one thing (no space)"
    assert "rates of thing 3, … 2 more (a copy has no rates); one" in screen(judge(seen(gaps=gaps)), 200)[1]
    lacks = "the capture has no thread dump of 7: capture with --ask --what threads"
    assert screen(judge(seen(gaps=[Gap("java-threads", "locks of 7", lacks)])), 200)[1].startswith(
        "not checked: locks of 7 ("
    )
    gaps.append(Gap("c", "CPUs", NOTHING_THERE))
    assert not any("CPUs" in line for line in screen(judge(seen(gaps=gaps))))
    assert f"not checked c: CPUs: {NOTHING_THERE}" in lines(judge(seen(gaps=gaps)), verbose=True)


def test_little_could_be_checked():
    """A verdict about less than half is not one about the machine."""
    late = [Gap(name, name, "it did not finish by the deadline") for name in ("tcp", "io", "fds", "mem")]
    assert lines(judge(seen(gaps=late)))[0] == "no problem found on vm, but checked only 3 of 7 things in 1.4 s"
    assert lines(judge(seen(gaps=late[:3])))[0] == "no problem found on vm; checked 3 of 6 things in 1.4 s"


def test_nothing_could_be_checked():
    """Exit code 2, and why."""
    result = judge(seen(gaps=[Gap("pipes", "open pipes", "it did not finish by the deadline")])._replace(checked=()))
    done = made(result)
    assert done.exit_code == 2
    assert text.render(done).splitlines() == [
        "nothing was checked on vm", "not checked: open pipes (it did not finish by the deadline)"
    ]  # fmt: skip
    assert (made(healthy()).exit_code, made(troubled()).exit_code) == (0, 1)


@pytest.mark.parametrize(
    ("pids", "place"),
    [
        ((25393,), "in 25393 (billing)"),
        ((25393, 7), "in 25393 (billing) and 7"),
        ((1, 25393, 25395), "in 3 processes"),
    ],
)
def test_the_processes_that_were_asked_about(pids, place):
    """In the verdict."""
    assert lines(healthy(pids=pids))[0].startswith(f"no problem found {place}; checked")


def test_others_of_the_same_code():
    """They are named with the last one that is listed."""
    many = [found("major-faults", process(pid), said=f"{pid} (java): faults", share=0.5) for pid in range(100, 110)]
    places = {pid: Place(pid, "java") for pid in range(100, 110)}
    shown = lines(judge(seen(*many)._replace(places=places)))
    assert shown[0] == "3 problems on vm: 3 slow"
    assert shown[3].endswith("102 (java): faults; also 103 (java), 104 (java), 105 (java), … 4 more (--all)")
    assert sum("same: " in line for line in lines(judge(seen(*many)), all_=True)) == 7


ONE = Entity("process", 1, 5, Entity("cgroup", "/a.service"))


@pytest.mark.parametrize(
    ("entity", "said", "sentence"),
    [
        (ONE, "no space is left", "1 (init): no space is left"),
        (ONE, "waits 1 % of the time (1 s)", "1 (init): waits 1 % of the time (1 s)"),
        (ONE, "init (1) has 4 connections", None),
        (ONE, "2 zombies of 1 (init)", None),
        (ONE, "init[1] waits for sleep[11]", None),
        (ONE, "init waits for sleep[11] in /a.service", "1 (init) waits for sleep[11] in /a.service"),
        (ONE, "11 (init) has it", "1 (init): 11 (init) has it"),
        (Entity("socket", "0.0.0.0:80", None, ONE), "the queue of 0.0.0.0:80 is full", "1 (init): the queue of 0.0.0.0:80 is full"),
        (Entity("pool", "http", None, ONE), "none is free", "pool http of 1 (init): none is free"),
        (Entity("cgroup", "/a.service"), "slab takes 30 % of the limit", "/a.service: slab takes 30 % of the limit"),
        (Entity("cgroup", "/a.service"), "11 (java) is throttled", None),
        (HOST, "no space is left", None),
    ],
)  # fmt: skip
def test_a_summary_names_its_subject(entity, said, sentence):
    """Also where its number stands there by chance."""
    one = found("disk-full", entity, said=said)
    assert flat.sentence(one, {1: Place(1, "init")}) == (sentence or said)


@pytest.mark.parametrize(
    ("said", "below"),
    [
        ("25393 (billing) spends 96 % of the time in GC pauses", "it spends 96 % of the time in GC pauses"),
        ("the heap of 25393 (billing) is nearly full", "the heap is nearly full"),
        ("25393 (billing): 52 % is time to safepoint", "52 % is time to safepoint"),
        ("25396 (billing) spends 96 %", "25396 (billing) spends 96 %"),
    ],
)
def test_an_effect_is_a_sentence_below_its_cause(said, below):
    """It does not repeat the process that the cause names."""
    pid = int(said[said.index("2539") :][:5])
    effect = found("jvm-gc-share", process(pid), said=said)
    assert lines(judge(seen(THROTTLED, effect)))[2] == f"  so: {below}"


def test_hostile_names():
    """In every format escaped: no line, sequence or list item of their own."""
    bad = found(
        "disk-full",
        Entity("file", HOSTILE),
        said=f"{HOSTILE} is `full` <b>",
        next=f"opskit fds '{HOSTILE}'",
        evidence=HOSTILE,
    )
    result = judge(seen(bad, gaps=[Gap("disks", HOSTILE, HOSTILE)], asked={2: 0.1}))
    for form, render in RENDER.items():
        for shown in (Shown(), Shown(all_=True, verbose=True)):
            out = render(report(ABOUT, Answer(result, "vm", {2: HOSTILE}), shown))
            assert "\x1b" not in out, form
            assert "\x07" not in out, form
            assert not any(line.startswith("2. ") for line in out.splitlines()), form
    assert "\\<b\\>" in markdown.render(made(result))


def test_the_json_object_refers_by_numbers():
    """Problems have the numbers of the table; an effect names its cause, and the cause its effects."""
    document = json.loads(as_json.render(made(troubled())))
    keeps_to_schema(document, "doctor")
    assert [each["number"] for each in document["problems"]] == [*range(1, 12)]
    by_number = {each["number"]: each for each in document["findings"]}
    assert len(by_number) == len(document["findings"]) == 14 + 35
    [throttled] = [each for each in document["problems"] if each["code"] == "cpu-throttled"]
    [effect] = [by_number[number] for number in throttled["effects"]]
    assert (effect["code"], effect["cause"]) == ("ttsp-dominates", throttled["number"])
    assert {each["check"] for each in document["checked"]} == {"jvms", "pipes", "limits"}
    assert len(document["unchecked"]) == 4
    healthy_one = json.loads(as_json.render(made(healthy())))
    assert (healthy_one["problems"], len(healthy_one["checked"]), healthy_one["asked"]) == ([], 3, [])


def test_metrics_have_no_duplicates_and_no_pids():
    """Findings with the same labels are added up."""
    two = [found("disk-full", process(pid)) for pid in (1, 2)]
    samples = promtext.parse(
        prometheus.render(made(judge(seen(*two, *STALE, gaps=[Gap("tcp", "x", "late"), Gap("jvms", "y", "denied")]))))
    )
    assert (
        promtext.value(samples, "opskit_doctor_findings", code="disk-full", severity="warning", **{"class": "soon"})
        == 2
    )
    assert promtext.value(samples, "opskit_doctor_findings", code="attach-socket-leftover") == 34
    plain = {name: value for (name, labels), value in samples.items() if not labels}
    assert plain == {
        "opskit_doctor_checks": 3, "opskit_doctor_checks_failed": 1, "opskit_doctor_run_seconds": 1.4,
        "opskit_doctor_last_run_timestamp_seconds": AT_S,
    }  # fmt: skip


# --- a watch ---


def watched(*samples, **shown):
    """The reports of these samples."""
    tracker = Tracker(60.0)
    reports = []
    for at, sample in enumerate(samples):
        result = judge(seen(*sample, at_s=AT_S + 10 * at))
        reports.append(made(result, watched=tracker.update(result), **shown))
    return reports


def test_a_watch_marks_what_is_new_and_gone(golden):
    """With times, and since when each stands."""
    *_, last = watched([DEADLOCK, THROTTLED], [DEADLOCK, THROTTLED], [THROTTLED, TTSP, PIPE], on_screen=True)
    shown = page.render(last, 80, 24, screen=True)
    golden("doctor-watched.table", shown)
    golden("doctor-watched.json", as_json.render(last))
    assert "new 14:03:30" in shown
    assert "gone 14:03:30" in shown
    assert "since 14:03:10" in shown


def test_a_watch_never_outgrows_the_screen():
    """However much is new and gone."""
    many = [
        found(code, process(pid), said=f"{pid} " + "long " * 40, next="opskit mem")
        for pid, code in enumerate(
            (
                "disk-full",
                "fds-keep-growing",
                "memory-near-limit",
                "tcp-orphans",
                "major-faults",
                "jvm-gc-share",
                "tmpfs-large",
            )
        )
    ]
    *_, last = watched([*many[:4], DEADLOCK, PIPE, THREADS], many[3:], on_screen=True)
    for height in (5, 12, 24):
        assert len(page.render(last, 80, height, screen=True).splitlines()) < height


def test_text_of_a_watch_lists_changes_alone():
    """The whole answer first; then a line each, and nothing where nothing has changed."""
    shown = [
        text.render(each).splitlines() for each in watched([DEADLOCK], [DEADLOCK], [PIPE], [DEADLOCK], repeats=True)
    ]
    assert shown[0][0] == "1 problem on vm: 1 stuck"
    assert shown[1] == []
    assert [line[:40] for line in shown[2] if line[0] != " "] == [
        "14:03:30 new stuck error pipe-full-write", "14:03:30 gone stuck error jvm-deadlock (",
    ]  # fmt: skip
    assert [line.split()[:2] for line in shown[3] if line[0] != " "] == [["14:03:40", "back"], ["14:03:40", "gone"]]


# --- since the last run ---


def since(first, second, **shown):
    """The report of the second run."""
    state = None if first is None else compare(judge(seen(*first)), None, "vm", ()).state
    result = judge(seen(*second, at_s=AT_S + 300))
    return made(result, changes=compare(result, state, "vm", ()), **shown)


@pytest.mark.parametrize("form", ["table", "text", "json", "markdown"])
def test_changes_since_the_last_run(golden, form):
    """New, worse and gone problems; those that stand are counted."""
    before = [DEADLOCK, THROTTLED, THREADS]
    done = since(before, [THROTTLED._replace(share=0.9), TTSP, THREADS, PIPE])
    assert done.exit_code == 1
    golden(f"doctor-since.{form}", RENDER[form](done))


@pytest.mark.parametrize(
    ("second", "code", "first_line"),
    [
        ([DEADLOCK], 0, None),
        ([], 0, "1 gone on vm since 2026-11-23T14:03:10Z"),
        ([DEADLOCK, PIPE], 1, "1 new on vm since 2026-11-23T14:03:10Z; 1 problem as before"),
    ],
    ids=["same", "gone", "new"],
)
def test_a_later_run_reports_changes_alone(second, code, first_line):
    """Text is empty where nothing has changed, so that cron sends no mail; a table says so. What is gone alone is no failure."""
    done = since([DEADLOCK], second)
    assert done.exit_code == code
    assert (text.render(done).splitlines() or [None])[0] == first_line
    assert page.render(done).startswith(
        first_line or "nothing has changed on vm since 2026-11-23T14:03:10Z; 1 problem as before"
    )


def test_the_first_run_reports_everything():
    """And --all of a later one."""
    assert text.render(since(None, [DEADLOCK])).startswith(
        "1 problem on vm: 1 stuck (first run with this state file)\n1. stuck new error"
    )
    assert "1. stuck error jvm-deadlock" in text.render(since([DEADLOCK], [DEADLOCK, PIPE], all_=True))
    assert "1. stuck error jvm-deadlock" in text.render(since([DEADLOCK], [DEADLOCK], all_=True))


# --- anything ---

ENTITIES = st.one_of(
    st.just(HOST), st.builds(process, st.sampled_from([*PLACES, 7])),
    st.builds(Entity, st.sampled_from(["thread", "lock", "file", "cgroup"]), st.text(max_size=9), st.none(), st.sampled_from([None, HOST, process(910)])),
)  # fmt: skip
ANY = st.lists(
    st.builds(
        found, st.sampled_from(sorted(FINDINGS)), ENTITIES, st.sampled_from(["error", "warning", "note"]), st.text(max_size=200),
        st.one_of(st.none(), st.floats(0, 1)), next=st.one_of(st.none(), st.text(max_size=50)), fix=st.one_of(st.none(), st.text(max_size=50)),
    ),
    max_size=30,
)  # fmt: skip
GAPS = st.lists(
    st.builds(Gap, st.sampled_from(["tcp", "jvms"]), st.text(max_size=30), st.text(max_size=90)), max_size=6
)


@given(ANY, ANY, GAPS, st.integers(1, 200), st.integers(1, 60), st.booleans())
@settings(max_examples=15, deadline=None)
def test_any_findings_in_every_format(first, second, gaps, width, height, all_):
    """Also of a watch and of a later run: no error, no line of its own for a name, valid JSON and metrics."""
    tracker = Tracker(60.0)
    before = judge(seen(*first, gaps=gaps))
    tracker.update(before)
    state = compare(before, None, "vm", ()).state
    result = judge(seen(*second, gaps=gaps, at_s=AT_S + 10))
    for more in ({}, {"watched": tracker.update(result)}, {"changes": compare(result, state, "vm", ())}):
        done = made(result, all_=all_, verbose=all_, **more)
        assert len(page.render(done, width, height, screen=True).splitlines()) <= height
        assert all(line.isprintable() for line in page.render(done, max(width, 30), None).split("\n"))
        assert all(line.isprintable() for line in text.render(done).split("\n"))
        markdown.render(done)
        keeps_to_schema(json.loads(as_json.render(done)), "doctor")
        promtext.parse(prometheus.render(done))
        if not all_ and not more:
            assert len(text.render(done).splitlines()) <= 3 + 3 * len(result.problems)
