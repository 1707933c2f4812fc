"""What patterns choose, the lines that values become, and how fast numbers change."""

from __future__ import annotations

import math

import jmxfacts
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jmxfacts import bean, facts

from opskit.analysis.jmx.flatten import leaves
from opskit.analysis.jmx.judge import judge

MEMORY, EDEN = "java.lang:type=Memory", "java.lang:type=MemoryPool,name=G1 Eden Space"
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(max_size=3), below, max_size=3),
    max_leaves=20,
)


def lines(patterns, made=None, **given):
    """ObjectName, path and value of each line."""
    return [(line.bean, line.path, line.value) for line in judge(facts(made, **given), patterns).lines]


@pytest.mark.parametrize(
    ("pattern", "paths"),
    [
        (f"{MEMORY} HeapMemoryUsage.used", ["HeapMemoryUsage.used"]),
        (f"{MEMORY} HeapMemoryUsage", [f"HeapMemoryUsage.{part}" for part in ("committed", "init", "max", "used")]),
        (f"{MEMORY} *Usage.used", ["HeapMemoryUsage.used", "NonHeapMemoryUsage.used"]),
        ("*:type=Memory *.?ax", ["HeapMemoryUsage.max", "NonHeapMemoryUsage.max"]),
        (f"{EDEN} Usage.used", ["Usage.used"]),
        ("*:name=G1 Young*,* LastGcInfo.memoryUsageAfterGc.G1\\x20Eden\\x20Space.used",
         ["LastGcInfo.memoryUsageAfterGc.G1 Eden Space.used"]),
        ("*:type=Threading All*", ["AllThreadIds"]),
    ],
)  # fmt: skip
def test_a_pattern_chooses_an_attribute_or_a_part_of_it(pattern, paths):
    """As its path is printed, with the blanks of ObjectNames as they are."""
    assert [path for _, path, _ in lines([pattern])] == paths


def test_two_patterns_choose_what_either_means():
    """The object has these parts, and no others; each value once, in the order of the names."""
    result = judge(jmxfacts.FIRST, [f"{MEMORY} HeapMemoryUsage.used", f"{MEMORY} *.max", EDEN, EDEN])
    [memory, eden] = result.beans
    assert {each.name: each.value for each in memory.attributes} == {
        "HeapMemoryUsage": {"max": 1 << 30, "used": 357826560}, "NonHeapMemoryUsage": {"max": -1},
    }  # fmt: skip
    assert eden.name == EDEN
    assert [line.path for line in result.lines if line.bean == EDEN].count("Name") == 1
    assert not result.unmatched


def test_all_is_chosen_without_a_pattern():
    """Sorted by ObjectName and attribute."""
    found = lines([])
    assert found == sorted(found, key=lambda line: (line[0], line[1].partition(".")[0]))
    assert {name for name, _, _ in found} == {each.name for each in jmxfacts.FIRST.beans}


@pytest.mark.parametrize(
    ("pattern", "sentence"),
    [
        ("java.lang:type=Memry", "no MBean matches 'java.lang:type=Memry'; near: java.lang:type=Memory"),
        ("java.lang:type=memory", "no MBean matches 'java.lang:type=memory'; near: java.lang:type=Memory"),
        (f"{MEMORY} HeapUsage", f"{MEMORY} has no attribute 'HeapUsage'; near: HeapMemoryUsage"),
        ("*type=Memry*", "no MBean matches '*type=Memry*'; near: java.lang:type=Memory"),
        ("*.cassandra.*:*", "opskit jmx 4242 --agent '*.cassandra.*:*', or by a Jolokia"),
        (
            "java.util.logging:type=Logging",
            "MBeans of java.util.logging are read by code in the JVM: opskit jmx 4242 --agent java",
        ),
        ("*:* HeapMemoryUsge", "none of 12 MBeans has an attribute 'HeapMemoryUsge'; near: HeapMemoryUsage"),
        (
            "*:* Backlog",
            "none of 12 MBeans has an attribute 'Backlog': MBeans of an application are read by code in the JVM",
        ),
        ("-x:*", "opskit jmx 4242 --agent -- '-x:*', or by a Jolokia"),
        ("java.lang:name=eden space", "near: java.lang:type=MemoryPool,name=G1 Eden Space"),
        (
            "shop:type=Order,*",
            "no MBean matches 'shop:type=Order,*': MBeans of an application are read by code in the "
            "JVM: opskit jmx 4242 --agent 'shop:type=Order,*', or by a Jolokia that runs there: --jolokia auto",
        ),
        ("java.lang:type=" + "x" * 4000, "x…'"),
    ],
)
def test_a_pattern_without_a_match(pattern, sentence):
    """One sentence with the names that are near, or with what can read an application's MBeans."""
    [said] = judge(jmxfacts.FIRST, [pattern, MEMORY]).unmatched
    assert sentence in said
    assert len(said) < 500


def test_near_names_are_those_of_all_mbeans():
    """The collector reads only what is wanted, and knows all names."""
    names = {MEMORY: ["HeapMemoryUsage", "HeapMemoryUsage.used"]}
    [attribute] = judge(facts([], names=names), [f"{MEMORY} HeapMemoryUsage.usd"]).unmatched
    assert attribute.endswith("near: HeapMemoryUsage.used")
    [name] = judge(facts([], names=names), ["java.lang:type=Memori"]).unmatched
    assert name.endswith(f"near: {MEMORY}")


ABOUT_LOADS = "java.lang:type=OperatingSystem ProcessCpuLoad, CpuLoad: a first look has no loads; add -i 1s, or -w"
ABOUT_MEMORY = "java.lang:type=Threading AllThreadIds; java.lang:type=Memory Verbose: only code in the JVM can ask; --agent reads them"
NO_RIGHT, IN_JVM = "permission denied for /proc/7/mem", "MBeans of the application need code in the JVM: --agent"


@pytest.mark.parametrize(
    ("patterns", "missing", "unmatched"),
    [
        ((), (ABOUT_LOADS, ABOUT_MEMORY, IN_JVM), ()),
        ((f"{MEMORY} HeapMemoryUsage.used",), (), ()),
        ((MEMORY,), (ABOUT_MEMORY,), ()),
        ((f"{MEMORY} Verb*", MEMORY), (ABOUT_MEMORY,), ()),
        (("java.lang:type=OperatingSystem",), (ABOUT_LOADS,), ()),
        (("java.lang:type=OperatingSystem *CpuLoads",), (), ("has no attribute '*CpuLoads'",)),
    ],
)
def test_what_could_not_be_read_is_said_where_it_matters(patterns, missing, unmatched):
    """Of each MBean and attribute that a pattern means; without patterns all."""
    result = judge(jmxfacts.FIRST._replace(missing=(ABOUT_LOADS, ABOUT_MEMORY, IN_JVM)), patterns)
    assert result.missing == [*missing]
    assert len(result.unmatched) == len(unmatched)
    assert all(part in said for part, said in zip(unmatched, result.unmatched))


def test_an_attribute_that_could_not_be_read_is_not_called_unknown():
    """The reason stands instead, and once."""
    threads = "java.lang:type=Threading AllThread?ds"
    result = judge(
        facts([bean(MEMORY, X=1)], missing=(ABOUT_LOADS, ABOUT_MEMORY)), [threads, "*:type=OperatingSystem CpuLoad"]
    )
    assert (result.unmatched, result.missing) == ([ABOUT_MEMORY, ABOUT_LOADS], [])
    refused = judge(facts([], missing=(NO_RIGHT, IN_JVM)), [MEMORY])
    assert (refused.unmatched, refused.missing) == ([f"nothing was read for '{MEMORY}'"], [NO_RIGHT])


def test_what_an_agent_does_not_find_is_not_there():
    """No other way to read it is advised."""
    made = [bean("shop:type=Order,name=a", "agent", Count=1)]
    [said] = judge(facts(made, left_behind=("its class",)), ["shop:type=Ordr,*", "shop:*"]).unmatched
    assert said == "no MBean matches 'shop:type=Ordr,*'; near: shop:type=Order,name=a"


def test_what_code_in_the_jvm_could_not_read_is_always_said():
    """Also of MBeans without a type, or with blanks, and where each pattern has an answer."""
    said = ("a:b=c d could not be read: gone", "7 MBeans or attributes not read: 10 s had passed")
    made = facts([bean("a:b=e", "jolokia", X=1)], missing=said, jolokia_url="http://127.0.0.1:8778/jolokia/")
    assert judge(made, ["a:*"]).missing == [*said]
    assert judge(made._replace(names={"a:b=c d": []}), ["a:b=c d"]).unmatched == ["nothing was read for 'a:b=c d'"]


def test_changes_are_per_second():
    """Of numbers, by ObjectName and path; not of texts, flags and what is new."""
    later = judge(jmxfacts.LATER, (), judge(jmxfacts.FIRST))
    changes = {(line.bean, line.path): line.change_per_s for line in later.lines}
    assert changes[MEMORY, "HeapMemoryUsage.used"] == 2 << 20
    assert changes["java.lang:type=GarbageCollector,name=G1 Young Generation", "CollectionCount"] == 0.2
    assert changes[MEMORY, "HeapMemoryUsage.max"] == 0
    assert changes[MEMORY, "Verbose"] is None
    assert changes["java.lang:type=Runtime", "VmName"] is None
    assert all(line.change_per_s is None for line in judge(jmxfacts.FIRST).lines)


@pytest.mark.parametrize(
    ("before", "now"), [("7", 8), (7, None), (True, 1), (math.inf, 1.0), (math.nan, 1.0), (10**400, 1)]
)
def test_what_is_no_change(before, now):
    """Other types, and numbers without an end."""
    first = judge(facts([bean("a:b=c", X=before)]))
    [line] = judge(facts([bean("a:b=c", X=now)], at_s=101.0), (), first).lines
    assert line.change_per_s is None


def test_another_jvm_or_the_same_moment_has_no_changes():
    """Nothing is divided by zero."""
    first = judge(jmxfacts.FIRST)
    for other in (jmxfacts.LATER._replace(pid=5), jmxfacts.FIRST, jmxfacts.LATER._replace(at_s=1.0)):
        assert all(line.change_per_s is None for line in judge(other, (), first).lines)


def test_arrays():
    """Of scalars: one value; of objects: each with its number. What is empty is whole."""
    value = {"ids": [1, 2], "rows": [{"a": 1}, {"a": [None]}], "none": [], "nothing": {}, "mixed": [1, {"b": 2}]}
    assert [*leaves("X", value)] == [
        ("X.ids", [1, 2]), ("X.rows[0].a", 1), ("X.rows[1].a", [None]), ("X.none", []), ("X.nothing", {}),
        ("X.mixed[0]", 1), ("X.mixed[1].b", 2),
    ]  # fmt: skip


@given(VALUES)
def test_no_value_is_lost(value):
    """Each scalar is in one line; every line is a scalar, an array of them, or empty."""

    def scalars(each):
        if isinstance(each, dict):
            return [found for below in each.values() for found in scalars(below)]
        return [found for below in each for found in scalars(below)] if isinstance(each, list) else [each]

    found = [*leaves("X", value)]
    assert repr([one for _, each in found for one in scalars(each)]) == repr(scalars(value))
    assert all(not each for _, each in found if isinstance(each, dict))
