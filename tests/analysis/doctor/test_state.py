"""What a run of doctor leaves for the next one: what is new, worse and gone, and damaged files."""

from __future__ import annotations

import json

import pytest
from doctorresults import (
    AT_S,
    DEADLOCK,
    PIPE,
    PLACES,
    THREADS,
    THROTTLED,
    TTSP,
    found,
    healthy,
    process,
    seen,
    troubled,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from opskit.analysis.doctor.judge import judge
from opskit.analysis.doctor.seen import Place
from opskit.analysis.doctor.state import State, check_scope, compare, dump_state, lasting_key, parse_state
from opskit.analysis.finding import HOST, Entity
from opskit.errors import BadInput


def then(first, second, places=PLACES):
    """The changes that the second run reports; its findings are of other processes with `places`."""
    before = compare(judge(seen(*first)), None, "vm", ()).state
    kept = parse_state(dump_state(before), "state")
    assert kept == before
    after = seen(*second, at_s=AT_S + 600)._replace(places=places)
    return compare(judge(after), kept, "vm", ())


def codes(findings):
    return sorted(each.code for each in findings)


def test_the_first_run_reports_all():
    """And remembers effects, too."""
    changes = compare(troubled(), None, "vm", ())
    assert (len(changes.new), changes.worse, changes.gone, changes.stand, changes.since_s) == (11, (), (), 0, None)
    assert {each.code for each in changes.state.kept if not each.is_listed} == {
        "lock-contended",
        "ttsp-dominates",
        "rlimit-nearly-used",
    }
    assert not any("leftover" in each.code for each in changes.state.kept), "notes"


def test_nothing_has_changed():
    """Numbers that change a little are no news."""
    changes = then([THROTTLED, DEADLOCK], [THROTTLED._replace(share=0.6, summary="60 %"), DEADLOCK])
    assert (changes.new, changes.worse, changes.gone, changes.stand, changes.since_s) == ((), (), (), 2, AT_S)


def test_new_and_gone():
    """A gone one is reported once, with since when it stood."""
    changes = then([DEADLOCK], [PIPE])
    assert (codes(changes.new), [(each.code, each.since_s) for each in changes.gone]) == (
        [PIPE.code],
        [(DEADLOCK.code, AT_S)],
    )
    assert compare(judge(seen(PIPE)), changes.state, "vm", ()).gone == ()


@pytest.mark.parametrize(
    "second",
    [
        [THREADS._replace(severity="error")],
        [THROTTLED._replace(share=0.7)],
        [found("major-faults", process(2801)), found("major-faults", process(2802))],
    ],
    ids=["severity", "share", "more-of-them"],
)
def test_worse(second):
    """An error that was a warning, a share that is 10 % larger, a second process of the same name."""
    first = [THREADS, THROTTLED, found("major-faults", process(2801))]
    changes = then(
        first, [*second, *(each for each in first if each.code != second[0].code)], {**PLACES, 2802: Place(2802, "app")}
    )
    assert codes(changes.worse) == [second[0].code]
    assert (changes.new, changes.gone) == ((), ())


def test_slow_growth_is_noticed():
    """The share is compared with the one that was reported last."""
    state, worse = None, []
    for share in (0.50, 0.54, 0.58, 0.62, 0.66):
        changes = compare(judge(seen(THROTTLED._replace(share=share))), state, "vm", ())
        worse.append(len(changes.worse))
        state = changes.state
    assert worse == [0, 0, 0, 1, 0]


def test_a_restarted_service_is_the_same():
    """By the names of processes and containers; PIDs, inodes, locks and container ids change."""
    old = found("lock-contended", Entity("lock", "0xe1", None, process(3111)))
    new = found(
        "lock-contended", Entity("lock", "0xf7", None, Entity("process", 4000, 5, Entity("cgroup", "/docker/0a")))
    )
    changes = then([old], [new], {4000: Place(4000, "java", ("/docker/0a",))})
    assert (changes.new, changes.worse, changes.gone, changes.stand) == ((), (), (), 1)


@pytest.mark.parametrize(
    ("entity", "key"),
    [
        (HOST, "host"),
        (Entity("thread", 25401, None, process(25395)), "thread in process orders"),
        (Entity("process", 77), "process"),
        (Entity("pipe", "pipe:[17]"), "pipe pipe:[17]"),
        (Entity("cgroup", f"/docker/{'4f' * 32}"), "cgroup /docker/*"),
        (
            Entity("cgroup", "/kubepods.slice/kubepods-pod0ad6a3f2_9c1f_4a7e_b3a5_1f2e3d4c5b6a.slice/cri-containerd-0123456789abcdef.scope", None, HOST),
            "cgroup /kubepods.slice/kubepods-pod*.slice/cri-containerd-*.scope in host",
        ),
        (Entity("file", "/var/lib/data"), "file /var/lib/data"),
    ],
    ids=["host", "thread", "unnamed", "pipe", "docker", "kubernetes", "file"],
)  # fmt: skip
def test_names_that_a_restart_does_not_change(entity, key):
    """What a finding is recognized by from run to run."""
    assert lasting_key(entity, PLACES) == key


def test_an_effect_whose_cause_is_gone_is_new():
    """It was never reported on its own. A problem that is explained later is neither new nor gone."""
    changes = then([THROTTLED, TTSP], [TTSP])
    assert (codes(changes.new), codes(changes.gone)) == ([TTSP.code], [THROTTLED.code])
    changes = then([TTSP], [THROTTLED, TTSP])
    assert (codes(changes.new), changes.gone) == ([THROTTLED.code], ())


def test_what_was_not_checked_stays():
    """It is neither gone now nor new later."""
    before = compare(judge(seen(DEADLOCK)), None, "vm", ()).state
    late = compare(judge(seen(names=("pipes",))), before, "vm", ())
    assert (late.gone, late.state.kept) == ((), before.kept)
    again = compare(judge(seen(DEADLOCK)), late.state, "vm", ())
    assert (again.new, again.stand) == ((), 1)
    assert [each.code for each in compare(healthy(), late.state, "vm", ()).gone] == [DEADLOCK.code]


def _with(**values):
    content = json.loads(dump_state(compare(judge(seen(THROTTLED)), None, "vm", ("orders",)).state))
    for key, value in values.items():
        place = content if key in content else content["findings"][0]
        place[key] = value
    return json.dumps(content)


DAMAGED = {
    "empty": "", "cut": _with()[:-30], "a list": "[]", "another program's": '{"version": 1}', "text": "total 4\n", "deep": "[" * 100_000,
    "no host": _with(host=None), "a word": _with(words="orders"), "words of numbers": _with(words=[1]), "no time": _with(at_s=True),
    "a time beyond all calendars": _with(at_s=1e15), "nan": _with(at_s=float("nan")), "a past before 1970": _with(since_s=-1), "no findings": _with(findings=None),
    "a finding that is none": _with(findings=[3]), "a foreign severity": _with(severity="bad"), "a count that is text": _with(total="1"),
    "a share that is text": _with(share="1"), "checks": _with(checks=[None]), "a missing key": _with(findings=[{"code": "x"}]),
    "format 0.5": _with(opskit_doctor_state=0.5),
}  # fmt: skip


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_files(name):
    """One line with the file's name, and what to do."""
    with pytest.raises(
        BadInput, match=r"^state\.json: it is .*; it was left as it is: name another file, or remove it$"
    ):
        parse_state(DAMAGED[name], "state.json")


def test_a_newer_format():
    """Is not guessed at."""
    with pytest.raises(BadInput, match=r"a newer opskit wrote it \(format 2; this one knows 1\)"):
        parse_state(_with(opskit_doctor_state=2), "state.json")


def test_the_state_of_another_host_or_target():
    """Everything would be new and gone."""
    state = State("db1", ("orders",), AT_S, ())
    check_scope(state, "db1", ["orders"], "s")
    with pytest.raises(BadInput, match="it is the state of 'db1', and this is 'vm'"):
        check_scope(state, "vm", ("orders",), "s")
    with pytest.raises(BadInput, match="it is the state of 'orders', and 'the whole machine' was asked for"):
        check_scope(state, "db1", (), "s")


@given(st.text(), st.text(), st.lists(st.text()))
@settings(max_examples=20, deadline=None)
def test_any_names_survive(host, summary, words):
    """Also those that are no UTF-8."""
    state = compare(judge(seen(PIPE._replace(summary=summary + "\udc80"))), None, host, words).state
    assert parse_state(dump_state(state), "state") == state
