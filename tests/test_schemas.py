"""The published schemas are up to date, and the program's output is valid by them."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

import jsonschema
import pytest
from eachof import each_of
from schemafiles import keeps_to_schema, schema_of

from opskit.catalog import COMMANDS, SCHEMA

ROOT = Path(__file__).resolve().parents[1]
NAMES = [command.name for command in COMMANDS if not command.hidden]
GOLDENS = sorted((ROOT / "tests" / "golden").glob("*.json"))

sys.path.insert(0, str(ROOT / "docs"))


def test_the_published_schemas_are_those_of_the_program():
    """`python docs/schemas.py` writes them."""
    import schemas

    for path, text in schemas.schemas().items():
        assert path.read_text(encoding="utf-8") == text, path.name
    assert {path.stem for path in (ROOT / "docs" / "schemas").glob("*.json")} == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_each_is_a_schema(name):
    """And refuses an object with a missing or an additional key."""
    schema = schema_of(name)
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["additionalProperties"] is False
    assert set(schema["required"]) == set(schema["properties"]) >= {"schema", "host", "verdict", "findings", "notes"}


@each_of("golden", GOLDENS)
def test_every_golden_keeps_to_its_schema(golden):
    """The file's name begins with the command's."""
    name = max((name for name in NAMES if re.match(rf"{name}(-|$)", golden.stem)), key=len)
    document = json.loads(golden.read_text(encoding="utf-8"))
    keeps_to_schema(document, name)
    assert document["schema"] == SCHEMA


RUNS = [
    ("doctor",), ("doctor", "PID", "--only", "fds,limits", "-w", "-c", "2", "-i", "0.1"),
    ("pipes",), ("pipes", "--ends", "--fill", "--fifos"), ("pipes", "--by-user"), ("pipes", "-w", "-c", "2", "-i", "0.1"),
    ("fds",), ("fds", "PID"), ("fds", "--deleted"), ("fds", "PID", "-w", "-c", "2", "-i", "0.1"),
    ("tcp", "-i", "0.2"), ("tcp", "--listen", "-i", "0.2"), ("tcp", "-w", "-c", "2", "-i", "0.1"),
    ("clock",), ("clock", "PID"), ("clock", "-w", "-c", "2", "-i", "0.1"),
    ("cswitch", "-i", "0.1"), ("cswitch", "PID", "-i", "0.1"), ("cswitch", "PID", "-w", "-c", "2", "-i", "0.1"),
    ("cswitch", "--bench", "--pin", "one"),
    ("irqs", "-i", "0.2"), ("irqs", "-w", "-c", "2", "-i", "0.1"), ("irqs", "--jitter", "-i", "0.1"),
    ("io", "-i", "0.1"), ("io", "PID", "-i", "0.1"), ("io", "-w", "-c", "2", "-i", "0.1"),
    ("limits",), ("limits", "--all"), ("limits", "-w", "-c", "2", "-i", "0.1"),
    ("dentry",), ("dentry", "-w", "-c", "2", "-i", "0.1"),
    ("crash",), ("oom",), ("jvms",), ("jvms", "-w", "-c", "2", "-i", "0.1"), ("hsperf-check",),
]  # fmt: skip


@pytest.mark.parametrize("words", RUNS, ids=" ".join)
def test_real_runs_keep_to_their_schema(inprocess, words):
    """With the data of this machine. PID: these tests."""
    done = inprocess(*(str(os.getpid()) if word == "PID" else word for word in words), "-f", "json")
    assert done.code in (0, 1), done.err
    keeps_to_schema(json.loads(done.out), words[0])
