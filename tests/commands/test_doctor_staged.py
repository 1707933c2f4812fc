"""`opskit doctor` on a machine with twelve faults at once, and on the same machine in health: tests/support/doctorstage.py."""

from __future__ import annotations

import json
import os
import re
from collections import Counter

import pytest
from doctorstage import FAULTS, HEALTHY, Machine

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: cgroups, namespaces and mounts"),
    pytest.mark.skipif(
        not os.environ.get("OPSKIT_TEST_HOST"),
        reason="OPSKIT_TEST_HOST is not set: it makes cgroups and loads the CPUs",
    ),
]
# The kernel's log is the whole machine's, with what other tests made the kernel write.
OTHERS = "oom,kernel"


def _is_ours(machine, problem):
    """Cgroups are the whole machine's, with those of other tests."""
    return problem["entity"]["kind"] != "cgroup" or machine.name in problem["subject"]


def _names(finding, subject):
    """Whether it is about this process or mount."""
    places, place = [], finding["entity"]
    while place is not None:
        places.append(place["id"])
        place = place["inside"]
    said = rf"\({re.escape(subject)}\)|(?<![\w/.]){re.escape(subject)} \("
    return subject in places or re.search(said, finding["summary"]) is not None


class Stage:
    """A staged machine and what doctor says about it: `shown`, the lines of the table, and `answer`, the JSON object."""

    def __init__(self, machine):
        self.staged = machine.staged
        self.shown = machine.on_terminal("doctor", "--skip", OTHERS, "--deadline", "60s")["out"].splitlines()
        done = machine.opskit("doctor", "--skip", OTHERS, "--deadline", "60s", "-f", "json")
        self.code = done["code"]
        assert not done["err"]
        self.answer = json.loads(done["out"])
        self.problems = [each for each in self.answer["problems"] if _is_ours(machine, each)]

    def about(self, name):
        """The problem that tells this fault."""
        fault = self.staged[name]
        return next(each for each in self.problems if each["code"] in fault["codes"] and _names(each, fault["subject"]))


@pytest.fixture(scope="module")
def faults():
    machine = Machine("faults")
    try:
        return Stage(machine)
    finally:
        machine.close()


@pytest.mark.parametrize("name", FAULTS)
def test_each_fault_is_named(faults, name):
    """With its cause's code and its process or mount, and with what to type."""
    found = faults.about(name)
    assert found["severity"] in ("error", "warning"), found
    assert found["fix"] or found["next"]


def test_nothing_else_is_a_problem(faults):
    """Each problem is one of the staged faults, or the effect of one."""
    expected = {faults.about(name)["number"] for name in FAULTS}
    others = [each for each in faults.problems if each["number"] not in expected and each["cause"] is None]
    assert not others


def test_no_fault_is_told_twice(faults):
    """Twelve causes, each once; no code twice about the same thing."""
    assert faults.code == 1
    causes = [each for each in faults.problems if each["cause"] is None and each["like"] is None]
    assert len(causes) == len(FAULTS), [each["code"] for each in causes]
    pairs = Counter((each["code"], json.dumps(each["entity"])) for each in faults.answer["findings"])
    assert set(pairs.values()) == {1}


@pytest.mark.parametrize(
    ("name", "effect"),
    [("stopped", "attach-stopped"), ("gc", "jvm-gc-share"), ("close-wait", "rlimit-nearly-used"), ("attach", "attach-socket-group")],
)  # fmt: skip
def test_effects_stand_below_their_cause(faults, name, effect):
    """A JVM that is stopped answers no client; a full heap is collected all the time; connections that are not closed use up descriptors."""
    cause, subject = faults.about(name), faults.staged[name]["subject"]
    told = [each for each in faults.answer["findings"] if each["code"] == effect and _names(each, subject)]
    assert [each["cause"] for each in told] == [cause["number"]]
    assert told[0]["number"] in cause["effects"]


def test_they_fit_on_one_screen(faults):
    """At most 40 lines of 80 columns, the stuck ones first."""
    lines = sum(max(1, -(-len(line) // 80)) for line in faults.shown)  # a command is never broken by opskit
    assert lines <= 40, "\n".join(faults.shown)
    classes = [line.split()[1] for line in faults.shown if line.lstrip()[:1].isdigit() and ". " in line[:5]]
    assert classes == sorted(classes, key=("stuck", "slow", "soon", "tools").index)
    assert len(classes) == len(FAULTS)


def test_a_healthy_busy_machine_has_no_problem():
    """The same kinds of programs at work, on busy CPUs."""
    machine = Machine("healthy")
    try:
        assert machine.staged.keys() == HEALTHY.keys()
        done = machine.opskit("doctor", "--skip", OTHERS, "--deadline", "60s", "-f", "json")
    finally:
        machine.close()
    answer = json.loads(done["out"])
    assert [each for each in answer["problems"] if _is_ours(machine, each)] == []
    assert len(answer["checked"]) > 15
