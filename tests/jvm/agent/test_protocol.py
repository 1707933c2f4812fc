"""What is said to the agent and by it, without a JVM."""

from __future__ import annotations

import json
import math
import re
import sys
from pathlib import Path

import pytest

from opskit.jvm.agent.protocol import Record, parse_answer, request
from opskit.jvm.object_names import canonical_name, parse_pattern

FIXTURES = Path(__file__).parents[2] / "fixtures" / "jmx" / "object-names.json"
ANSWERS = json.loads(FIXTURES.read_text(encoding="utf-8"))


def expressions(*patterns, without=()):
    r"""Those for MBeans and for attributes, as Python writes them: Java has \x{1f600} for a character."""
    lines = request(patterns, 1, 2, 3, without).decode().split("\n")
    assert lines[:3] == ["1", "2", "3"]
    assert lines[5:] == [""]
    return [
        re.compile(re.sub(r"\\x\{([0-9a-f]+)\}", lambda found: re.escape(chr(int(found[1], 16))), each))
        for each in lines[3:5]
    ]


@pytest.mark.skipif(
    sys.version_info < (3, 11), reason="Python's expressions are possessive from 3.11 on, as Java's are"
)
def test_expressions_mean_what_patterns_mean():
    """The agent reads the MBeans that the patterns mean, as JMX has it, and no others; of quoted values it may read some more."""
    for text in ANSWERS["patterns"]:
        pattern = parse_pattern(text)
        beans, attributes = expressions(pattern.text)
        for name in ANSWERS["names"]:
            both = f"{name}\n{canonical_name(name)}"
            wanted = pattern.matches(name)
            assert bool(beans.fullmatch(both)) >= wanted, (text, name)
            found = bool(attributes.fullmatch(f"{both}\nAny attribute"))
            assert found == wanted or (found and '"' in name), (text, name)


@pytest.mark.skipif(
    sys.version_info < (3, 11), reason="Python's expressions are possessive from 3.11 on, as Java's are"
)
def test_attributes_and_parts_of_them():
    """A part of an attribute needs the attribute; what hangs is left out."""
    both = "app:type=Pool,name=a b\napp:name=a b,type=Pool"
    cases = {
        "app:* Usage.used": ["Usage", "Usage.used"],
        "app:name=a b,* Us?ge": ["Usage"],
        "app:type=Pool,name=a b": ["Usage", "Usage.used", "Other"],
        "app:* *.used": ["Usage", "Usage.used", "Other"],
        "app:type=Pool Usage": [],
        "*a?b* Ot\\x20er": [],
    }
    for text, wanted in cases.items():
        _, attributes = expressions(text, without=[("app:type=Pool,name=a b", "Hanging")])
        names = ["Usage", "Usage.used", "Other", "Hanging"]
        assert [each for each in names if attributes.fullmatch(f"{both}\n{each}")] == wanted, text


def test_an_answer():
    """Values, tables, what JMX has wrapped, a getter that hangs, and what was left out."""
    text = """[1
,["a:b=c","N",NaN]
,["a:b=c","I",-Infinity]
,["a:b=c","Huge",1e999]
,["a:b=c","Map",{"":["key"],"rows":[{"key":"x.y","value":1},{"key":2,"value":null}]}]
,["a:b=c","Keyed",{"":["id"],"rows":[{"id":true,"value":1}]}]
,["a:b=c","Two",{"":["a","b"],"rows":[{"a":1,"b":2}]}]
,["a:b=c","E",null,"javax.management.MBeanException: x\\u0000java.io.IOException: closed"]
,["a:b=c","F",null,"java.lang.Error: own\\u0000java.io.IOException: cause"]
,["a:b=c","H",null,"no value in time"]
,["a:b=d",null,null,"gone\\u0000null"]
,17]"""
    answer = parse_answer(text.encode())
    assert (answer.protocol, answer.end) == (1, 17)
    records = {each.name: each for each in answer.records}
    assert math.isnan(records["N"].value)
    assert records["I"].value == -math.inf
    assert records["Huge"].value == "1e999"
    assert records["Map"].value == {"x.y": 1, "2": None}
    assert records["Keyed"].value == {"true": {"id": True, "value": 1}}
    assert records["Two"].value == [{"a": 1, "b": 2}]
    assert records["E"].error == "java.io.IOException: closed"
    assert records["F"].error == "java.lang.Error: own"
    assert records["H"].hangs
    assert answer.records[-1] == Record("a:b=d", None, None, "gone")


@pytest.mark.parametrize(
    ("data", "protocol", "records", "end"),
    [
        (b"", None, 0, None),
        (b"hello", None, 0, None),
        (b"[2", 2, 0, None),
        (b'[1\n,["a:b=c","A",1]\n,["a:b=c","B', 1, 1, None),
        (b'[1\n,["a:b=c","A",1]\n,"size"]', 1, 1, "size"),
        (b"[1\n,0]", 1, 0, 0),
        (b'[1\n,["a:b=c","A",' + b"[" * 500 + b"]" * 500 + b"]\n,0]", 1, 0, None),
        (b'[1\n,["a:b=c","A",' + b"[" * 50_000 + b"]" * 50_000 + b"]\n,0]", 1, 0, None),
    ],
)
def test_an_answer_that_is_cut(data, protocol, records, end):
    """What came whole is kept, and that there is no end."""
    answer = parse_answer(data)
    assert (answer.protocol, len(answer.records), answer.end) == (protocol, records, end)
