"""What no file of a ProcFS answers is asked in one place, `Calls.ask`, so that a capture holds all of it."""

from __future__ import annotations

import inspect
import json
import random

import pytest
import questions

from opskit.proc.recorded import answers
from opskit.proc.recorded.answers import decode, encode
from opskit.proc.recorded.calls import name_of

# Files that ask the machine itself, and why: a capture refuses them, or they are what a capture asks by.
ALLOWED = {
    "checks/run.py": "doctor's child processes: on a capture there are none",
    "checks/word.py": "doctor's child processes: on a capture there are none",
    "collect/clock/server.py": "--server asks a time server: refused on a capture",
    "collect/cpu_profile.py": "samples a running process: refused on a capture",
    "collect/cpu_rights.py": "samples a running process: refused on a capture",
    "collect/cswitch/bench.py": "--bench measures this machine: refused on a capture",
    "collect/irqs/interfaces.py": "devices_here, a question",
    "collect/irqs/jitter.py": "--jitter measures this machine: refused on a capture",
    "collect/jmx/jolokia.py": "asks a running JVM: refused on a capture",
    "collect/jmx/jolokia_place.py": "asks a running JVM: refused on a capture",
    "collect/limits/collect.py": "judges what was asked: filter_answer and own_answer are pure",
    "collect/softirq_losses.py": "measures in child processes: a capture has losses_now",
    "host.py": "Host.at",
    "proc/held_file.py": "a held file of a tape asks the tape",
    "proc/network.py": "a network namespace of a tape asks the tape",
    "proc/resolve.py": "opens files for a tree",
    "proc/treefs.py": "opens files for a tree",
    "proc/recorded/network.py": "pure",
}
ACTING = ("actions/", "jvm/attach/", "proc/kernel/")


def test_questions_are_only_asked():
    """Outside what acts, nobody calls the kernel, or a function that is a question, directly."""
    asked = {*questions.questions()}
    wrong = [
        f"{path}:{line}: {name}"
        for path, use in questions.uses().items()
        if not path.startswith(ACTING) and path not in ALLOWED
        for line, module, name in use.called
        if module.startswith("opskit.proc.kernel.") or (module, name) in asked
    ]
    assert wrong == []


def test_the_list_of_exceptions_is_needed():
    """Each file there calls the kernel."""
    needless = {
        path
        for path in ALLOWED
        if not any(
            module.startswith("opskit.proc.kernel") or (module, name) == ("opskit.proc.fs", "ProcFS")
            for _, module, name in questions.uses()[path].called
        )
    }
    assert needless == set()


# Functions that read this machine's own files are questions, or what they are made of.
OWN_READS = {
    "actions": "acts here",
    "collect/asprof_library.py": "reads the user's file",
    "collect/crash/collect.py": "reads the user's files",
    "collect/cpu_rights.py": "samples a running process",
    "collect/cswitch/bench.py": "measures this machine",
    "collect/irqs/jitter.py": "measures this machine",
    "collect/irqs/interfaces.py": "devices_here",
    "host.py": "Host.at",
    "collect/softirq_losses.py": "losses_now",
    "proc/memory_files.py": "our_ipc_namespace",
    "proc/network.py": "our_network",
    "proc/recorded/network.py": "asks while a capture is made",
    "proc/rights.py": "read_rights, our_uid_map, our_obstacles",
    "proc/user_files.py": "reads the user's files",
    "proc/blocked.py": "whether a thread of opskit hangs",
}


def test_only_questions_read_this_machines_files():
    """A ProcFS of our own is made in a question, or where this machine is meant whatever tree is read."""
    makers = {
        path
        for path, use in questions.uses().items()
        if any((module, name) == ("opskit.proc.fs", "ProcFS") for _, module, name in use.called)
    }
    assert {path for path in makers if not path.startswith("actions/")} == {*OWN_READS} - {"actions"}


ALL = [f"{module.removeprefix('opskit.')}.{name}" for module, name in questions.questions()]


def test_questions_were_found():
    """The search knows all forms in which they are asked."""
    assert len(ALL) > 25
    for name in ("proc.kernel.syscalls.pipe_fill", "proc.rights.read_rights", "proc.kernel.names.user_by_uid"):
        assert name in ALL
    for name in ("jvm.attach.listener.listener_at", "actions.programs.ask_program", "proc.kernel.syscalls.charged_uid"):
        assert name in ALL
    others = [name for module, name in questions.questions() if not module.startswith("opskit.proc.kernel.")]
    assert [name for name in others if not name.startswith(questions._QUESTIONS_ELSEWHERE)] == []


@pytest.mark.parametrize("name", ALL)
def test_answers_of_each_question_come_back(name):
    """A question is a function of a module with plain arguments; whatever its type allows comes back from JSON as it was."""
    module, _, short = name.rpartition(".")
    question = questions.function(f"opskit.{module}", short)
    assert name_of(question) == name
    assert all(each.kind is each.POSITIONAL_OR_KEYWORD for each in inspect.signature(question).parameters.values())
    returns = question.__annotations__["return"]
    chance = random.Random(name)  # noqa: S311
    for _ in range(20):
        answer = questions.any_answer(returns, chance)
        found = decode(json.loads(json.dumps(encode(answer))), returns)
        assert found == answer
        assert len(repr(found)) == len(repr(answer))
        for wrong in ([], {}, "\u20ac", 1 << 70, [[[]]], {"base64": 3}, -0.5):
            with_any = [*encode(answer), wrong] if isinstance(encode(answer), list) else wrong
            _decoded_or_refused(with_any, returns)


def _decoded_or_refused(value, returns):
    """Nothing but BadInput is raised."""
    try:
        decode(value, returns)
    except answers.BadInput:
        pass
