"""Doctor's order, causes and counts: any findings at all, and the cases that an engineer expects."""

from __future__ import annotations

import ast
import operator
from collections import Counter
from functools import reduce
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opskit import catalog
from opskit.analysis.doctor.judge import judge
from opskit.analysis.doctor.places import containers, key_of, scopes
from opskit.analysis.doctor.result import CLASSES
from opskit.analysis.doctor.seen import Checked, Outcome, Place, Seen
from opskit.analysis.doctor.words import NOTE, TIDY
from opskit.analysis.finding import HOST, Entity, Finding
from opskit.catalog import FINDINGS

SHOP, BILLING = Entity("cgroup", "/shop"), Entity("cgroup", "/shop/billing")
PLACES = {
    1: Place(1, "init"),
    10: Place(10, "orders", ("/shop/orders",), 1),
    11: Place(11, "billing", ("/shop/billing",), 1),
    12: Place(12, "cron", ("/cron", "/legacy/cron"), 1),
}


def process(pid, inside=None):
    return Entity("process", pid, 100 + pid, inside)


def found(code, entity=HOST, severity="warning", share=None, said="it is so", **more):
    return Finding(code, severity, entity, said, "read", share=share, **more)


def seen(*findings, pids=(), places=PLACES):
    return Seen([Checked("some", Outcome(findings), 0.1)], (), places, 1.0, 0.0, pids)


def of_checks(*reports):
    return seen()._replace(checked=[Checked(str(at), Outcome(report), 0.1) for at, report in enumerate(reports)])


def shape(result):
    """The codes of each problem and of its effects, and how many more there are."""
    return [
        (each.finding.code, len(each.others), [(effect.finding.code, effect.more) for effect in each.effects])
        for each in result.problems
    ]


ENTITIES = st.one_of(
    st.just(HOST),
    st.sampled_from([SHOP, BILLING, Entity("cgroup", "/cron"), Entity("cgroup", "/shop/orders/worker")]),
    st.sampled_from([process(1), process(10), process(11), process(12), process(10, SHOP), Entity("process", 99)]),
    st.builds(Entity, st.sampled_from(["thread", "lock", "pool", "socket", "file", "pipe"]), st.sampled_from([7, "/tmp/a", "/"]),
              st.none(), st.sampled_from([None, HOST, process(10), process(11)])),
    st.sampled_from([Entity("device", "sda"), process(12, Entity("device", "sda")), Entity("user", "app", None, HOST)]),
)  # fmt: skip
CODES = sorted(FINDINGS)
FINDING = st.builds(
    found, st.sampled_from(CODES), ENTITIES, st.sampled_from(["error", "warning", "note"]),
    st.one_of(st.none(), st.sampled_from([0.0, 0.3, 1.0])), st.sampled_from(["one", "another"]),
)  # fmt: skip
# Few codes that are related, so that chains and groups arise.
RELATED = [code for code in CODES if FINDINGS[code][1]][:12]
RELATED += [effect for code in RELATED for effect in FINDINGS[code][1]]
MANY = st.lists(
    st.one_of(FINDING, FINDING.map(lambda it: it._replace(code=RELATED[len(it.code) % len(RELATED)]))), max_size=40
)


@given(st.lists(MANY, min_size=1, max_size=3), st.randoms())
@settings(max_examples=60, deadline=None)
def test_any_findings(reports, random):
    """No finding is lost, none is there twice; the order does not depend on that of the checks; a cause contains its effect."""
    result = judge(
        seen()._replace(checked=[Checked(str(at), Outcome(report), 0.1) for at, report in enumerate(reports)])
    )
    said = [Counter(map(_key, {*map(_tidied, report)})) for report in reports]
    assert Counter(map(_key, result.findings)) == reduce(operator.or_, said), "as many as the check that says most"
    worst = {
        key: min(_severity(each) for report in reports for each in report if _key(each) == key)
        for key in said_keys(said)
    }
    assert {key: min(_severity(each) for each in result.findings if _key(each) == key) for key in worst} == worst

    mixed = [Checked(str(at), Outcome(random.sample(report, len(report))), 0.1) for at, report in enumerate(reports)]
    random.shuffle(mixed)
    assert judge(seen()._replace(checked=mixed))[1:] == result[1:]

    for effect, cause in result.causes.items():
        assert effect.code in FINDINGS[cause.code][1]
        assert set(scopes(cause.entity)) & set(containers(effect.entity, PLACES))
        assert "note" not in (cause.severity, effect.severity)
    effects = [
        each for problem in result.problems for effect in problem.effects for each in (effect.finding, *effect.others)
    ]
    assert sorted(effects, key=repr) == sorted(result.causes, key=repr)
    assert all(effect.more == len(effect.others) for problem in result.problems for effect in problem.effects)
    ranks = [(CLASSES.index(each.class_), each.severity) for each in result.problems]
    assert ranks == sorted(ranks)
    harmful = {each.code for each in result.findings if each.severity != "note"}
    named = {each.finding.code for problem in result.problems for each in (problem, *problem.effects)}
    assert named == harmful, "every code is named"


def said_keys(said):
    return {key for each in said for key in each}


def _key(finding):
    return finding.code, key_of(finding.entity)


def _tidied(finding):
    return finding._replace(severity="note") if finding.class_ == "tidy" else finding


def _severity(finding):
    """As a number; what is to be tidied is a note."""
    return 2 if finding.class_ == "tidy" else ("error", "warning", "note").index(finding.severity)


def test_the_order():
    """Class, then severity, then the measured share, then the code and the entity."""
    result = judge(seen(
        found("attach-socket-owner", process(10), "error"), found("memory-commit-limit"), found("cpu-throttled", BILLING, share=0.2),
        found("cpu-throttled", Entity("cgroup", "/cron"), share=0.6), found("pool-exhausted", process(11)),
        found("jvm-deadlock", process(10), "error"), found("clock-stepped"),
    ))  # fmt: skip
    assert [(each.finding.code, each.finding.entity.id) for each in result.problems] == [
        ("jvm-deadlock", 10), ("pool-exhausted", 11), ("cpu-throttled", "/cron"), ("cpu-throttled", "/shop/billing"),
        ("clock-stepped", None), ("memory-commit-limit", None), ("attach-socket-owner", 10),
    ]  # fmt: skip


def test_a_chain_has_all_its_effects_under_the_first_cause():
    """A quota explains waits for a CPU, which explain a long time to safepoint."""
    result = judge(seen(
        found("ttsp-dominates", process(11)), found("jvm-cpu-wait", process(11)), found("cpu-throttled", SHOP),
    ))  # fmt: skip
    assert shape(result) == [("cpu-throttled", 0, [("jvm-cpu-wait", 0), ("ttsp-dominates", 0)])]
    by_code = {effect.code: cause.code for effect, cause in result.causes.items()}
    assert by_code == {"jvm-cpu-wait": "cpu-throttled", "ttsp-dominates": "jvm-cpu-wait"}


def test_the_nearest_cause_wins():
    """The cgroup's own quota, not that of a cgroup above it, nor the machine's trouble; what is beside it does not count."""
    causes = found("cpu-throttled", SHOP), found("cpu-throttled", BILLING), found("cpu-stolen")
    beside = found("cpu-throttled", Entity("cgroup", "/shop/bill"))
    result = judge(seen(*causes, beside, found("jvm-cpu-wait", process(11)), found("jvm-cpu-wait", process(1))))
    assert {(effect.entity.id, cause.entity.id) for effect, cause in result.causes.items()} == {
        (11, "/shop/billing"),
        (1, None),
    }


def test_the_host_does_not_swallow_what_is_a_cgroups_own():
    """Memory pressure of the machine and a cgroup that is near its own limit are two problems."""
    result = judge(
        seen(found("memory-pressure"), found("memory-throttled", BILLING), found("major-faults", process(11)))
    )
    assert [each.finding.code for each in result.problems] == ["memory-pressure", "memory-throttled"]
    assert {cause.code for cause in result.causes.values()} == {"memory-throttled"}


def test_a_note_explains_nothing_and_is_counted():
    """An error stays a problem; notes and what is to be tidied are one counted line each."""
    stale = [found("attach-socket-leftover", Entity("file", f"/tmp/{number}"), "note") for number in range(34)]
    result = judge(seen(found("io-device-hung", Entity("device", "sda"), "note"), found("io-stuck", severity="error"), *stale,
                        found("hsperf-leftover", severity="warning")))  # fmt: skip
    assert shape(result) == [("io-stuck", 0, [])]
    assert [each.words for each in result.collapsed] == [
        "34 stale attach sockets",
        "1 hsperfdata file of an ended JVM",
        "1 note",
    ]
    assert [each.code for each in result.collapsed] == ["attach-socket-leftover", "hsperf-leftover", NOTE]


def test_what_two_checks_say_is_said_once():
    """The severest, with the share and the command that only the other one has; the entity that is known best."""
    brief = found("oom-killed", process(10), "note", share=0.5, next="opskit oom")
    full = found("oom-killed", Entity("process", 10), "error", said="10 (orders) was killed")
    [problem] = judge(of_checks([brief], [full])).problems
    assert problem.finding == full._replace(share=0.5, next="opskit oom", entity=process(10))
    two = judge(
        seen(
            found("pool-exhausted", Entity("pool", "db", None, process(10))),
            found("pool-exhausted", Entity("pool", "db", None, process(11))),
        )
    )
    assert len(two.problems) == 2, "pools of two processes"
    servers = [found("file-server-silent", said=f"the file server {name} did not answer") for name in ("a", "b")]
    assert [each.finding for each in judge(of_checks(servers, servers[:1])).problems] == servers, "one check means both"


@pytest.mark.parametrize(
    ("cause", "effect"),
    [
        (("process-stopped", process(11)), ("lock-contended", Entity("lock", "held by a", None, process(11)))),
        (("tcp-peer-does-not-answer", Entity("socket", "db:1", None, process(11))), ("lock-contended", Entity("lock", "held by a", None, process(11)))),
        (("io-device-hung", Entity("device", "sda")), ("io-stuck", process(11, Entity("device", "sda")))),
        (("file-server-silent", HOST), ("io-stuck", process(11))),
        (("jvm-deadlock", process(11)), ("tcp-listen-queue-full", Entity("socket", ":80", None, process(11)))),
        (("jvm-deadlock", process(11)), ("pool-exhausted", Entity("pool", "http", None, process(11)))),
        (("tcp-peer-does-not-answer", Entity("socket", "db:5432", None, process(11))), ("pool-exhausted", Entity("pool", "db", None, process(11)))),
        (("connections-exhausted", Entity("pool", "db", None, process(11))), ("pool-exhausted", Entity("pool", "http", None, process(11)))),
        (("tcp-listen-queue-full", Entity("socket", ":80", None, process(11))), ("tcp-listen-overflows", HOST)),
        (("link-flapping", Entity("device", "eth0")), ("tcp-host-retransmits", HOST)),
        (("disk-full", Entity("file", "/", None, HOST)), ("tmp-full", Entity("file", "/tmp", None, process(11)))),
        (("tmp-full", Entity("file", "/tmp", None, process(11))), ("hsperf-file-missing", Entity("file", "/tmp/hsperfdata_app/11", None, process(11)))),
        (("deleted-files-held", Entity("file", "/var", None, HOST)), ("disk-full", Entity("file", "/var"))),
        (("memory-near-limit", SHOP), ("oom-killed", Entity("process", 99, None, BILLING))),
        (("memory-short", HOST), ("swapping", HOST)),
        (("swapping", HOST), ("ttsp-dominates", process(11))),
        (("cpu-throttled", SHOP), ("jvm-gc-share", process(11))),
        (("cpu-stolen", HOST), ("runnable-above-cpus", HOST)),
        (("tmpfs-large", Entity("file", "/dev/shm")), ("memory-short", HOST)),
        (("threads-none-left", SHOP), ("threads-nearly-none-left", process(11))),
    ],
    ids=lambda it: it[0],
)  # fmt: skip
def test_causes_that_an_engineer_expects(cause, effect):
    """Each pair with the entities that the checks give."""
    result = judge(seen(found(*cause), found(*effect)))
    assert shape(result) == [(cause[0], 0, [(effect[0], 0)])]


@pytest.mark.parametrize(("code", "kind"), [("pipe-full-writer-blocked", "pipe"), ("tcp-peer-does-not-read", "socket")])
def test_what_another_process_holds_up(code, kind):
    """The cause is in the process that should read, or around it; what is wrong with the one that waits is no cause."""
    effect = found(code, Entity(kind, "7", None, process(10)), waits_for=process(11))
    for cause in (found("process-stopped", process(11)), found("jvm-deadlock", process(11), "error")):
        assert shape(judge(seen(effect, cause))) == [(cause.code, 0, [(code, 0)])]
        assert judge(seen(effect, cause._replace(entity=process(10)))).causes == {}
        assert judge(seen(effect._replace(waits_for=None), cause)).causes == {}


@pytest.mark.parametrize(
    ("cause", "other"),
    [
        (("io-device-hung", Entity("device", "sda")), ("io-stuck", process(11))),
        (("io-device-hung", Entity("device", "sda")), ("io-stuck", process(11, Entity("device", "sdb")))),
        (("jvm-deadlock", process(11)), ("pool-exhausted", Entity("pool", "http", None, process(10)))),
        (("tcp-peer-does-not-answer", Entity("socket", "db", None, process(10))), ("pool-exhausted", Entity("pool", "db", None, process(11)))),
        (("disk-full", Entity("file", "/var")), ("tmp-full", Entity("file", "/tmp", None, process(11)))),
        (("memory-near-limit", SHOP), ("oom-killed", process(12))),
        (("cpu-throttled", Entity("cgroup", "/sh")), ("jvm-cpu-wait", process(11))),
        (("irq-cpu-saturated", HOST), ("jvm-cpu-wait", process(11))),
        (("memory-short", HOST), ("oom-killed", process(11))),
    ],
    ids=lambda it: it[0],
)  # fmt: skip
def test_what_is_only_beside_it_is_no_cause(cause, other):
    """Another device, process, cgroup or file system; a CPU that may be another one."""
    assert judge(seen(found(*cause), found(*other))).causes == {}


@pytest.mark.parametrize(("others", "listed"), [(0, 3), (9, 3), (10, 2), (11, 1), (20, 1)])
def test_many_of_one_code_leave_room_for_the_others(others, listed):
    """At most three of a code are problems of their own; where there is much else, fewer. The last one has the others and their effects."""
    full = [found("cpu-throttled", Entity("cgroup", f"/{number}"), share=1 - number / 100) for number in range(30)]
    late = found("ttsp-dominates", process(10, Entity("cgroup", "/29")))
    else_ = [
        found(code, severity="error")
        for code in [code for code in CODES if code.startswith("crash-") and code not in _effects()][:others]
    ]
    result = judge(seen(*full, late, *else_))
    mine = [each for each in result.problems if each.finding.code == "cpu-throttled"]
    assert [len(each.others) for each in mine] == [0] * (listed - 1) + [30 - listed]
    assert [effect.finding.entity for effect in mine[-1].effects] == [late.entity]
    assert len(result.problems) == others + listed


def _effects():
    return {effect for _, explains in FINDINGS.values() for effect in explains} | {"crash-jdk-old"}


def test_a_problem_ranks_by_the_worst_that_it_causes():
    """A cgroup near its memory limit is of class soon: the process that was killed for it is not."""
    result = judge(
        seen(
            found("cpu-stolen", share=1.0),
            found("memory-near-limit", SHOP),
            found("oom-killed", process(11), "error"),
        )
    )
    assert [(each.finding.code, each.class_, each.severity) for each in result.problems] == [
        ("memory-near-limit", "stuck", "error"), ("cpu-stolen", "slow", "warning"),
    ]  # fmt: skip


def test_of_processes_only_theirs():
    """Their own findings, those of their cgroups and of the host; no tidy ones of the host."""
    mine = [
        found("jvm-gc-share", process(11)), found("lock-contended", Entity("lock", "0x1", None, process(11))), found("cpu-throttled", SHOP),
        found("clock-stepped"), found("io-device-slow", Entity("device", "sda")), found("attach-socket-leftover", Entity("file", "/tmp/a", None, process(11)), "note"),
    ]  # fmt: skip
    others = [
        found("jvm-gc-share", process(10)), found("cpu-throttled", Entity("cgroup", "/cron")), found("hsperf-leftover", HOST, "note"),
        found("cpu-throttled", Entity("cgroup", "/shop/bill")), found("oom-reported", Entity("process", "billing.service")),
    ]  # fmt: skip
    result = judge(seen(*mine, *others, pids=(11,)))
    assert sorted(each.code for each in result.findings) == sorted(each.code for each in mine)


def test_the_catalog_has_each_code_once():
    """A second line for a code would silently replace the first."""
    source = ast.parse(Path(catalog.__file__).read_text(encoding="utf-8"))
    tables = {getattr(node.targets[0], "id", ""): node.value for node in source.body if isinstance(node, ast.Assign)}
    plain = [
        each.value for name in ("_EXPLAIN_NONE", "_OF_HOST_CHECKS") for row in tables[name].values for each in row.elts
    ]
    [table] = [node.value for node in source.body if isinstance(node, ast.AnnAssign) and node.target.id == "FINDINGS"]
    codes = [key.value for key in table.keys if key is not None]
    groups = [value for key, value in zip(table.keys, table.values) if key is None and isinstance(value, ast.Call)]
    codes += [each.value for group in groups for each in group.args[0].elts]
    assert [code for code, times in Counter([*plain, *codes]).items() if times > 1] == []
    assert {*plain, *codes} == FINDINGS.keys()


def test_the_table_has_no_cycle_and_the_words_every_tidy_code():
    """A cause that its own effect explains would hide both."""
    left = {code: set(explains) for code, (_, explains) in FINDINGS.items()}
    while left:
        ends = [code for code, explains in left.items() if not explains & left.keys()]
        assert ends, f"a cycle of {sorted(left)}"
        for code in ends:
            del left[code]
    assert {code for code, (class_, _) in FINDINGS.items() if class_ == "tidy"} == TIDY.keys()
    assert all(class_ != "tidy" for class_, explains in FINDINGS.values() if explains)
    assert all(FINDINGS[effect][0] != "tidy" for _, explains in FINDINGS.values() for effect in explains)
