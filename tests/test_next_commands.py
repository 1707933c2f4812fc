"""Each code whose findings have a `next` command has a test that types it where the finding was printed."""

from __future__ import annotations

import ast
from pathlib import Path

from opskit import catalog

TESTS = Path(__file__).resolve().parent
ANALYSIS = TESTS.parent / "opskit" / "analysis"
_MAKE_COMMANDS = {"command", "_jpmp"}
# Staged by captured trees, in which no command can be run. The advice is that of threads-none-left, which is tried.
_IN_TREES = {"stack-above-ram", "seccomp-refuses-threads", "memory-throttled", "memory-commit-limit"}


def _name(call):
    return getattr(call.func, "attr", getattr(call.func, "id", None))


def _calls(nodes):
    return (node for node in nodes if isinstance(node, ast.Call))


def _texts(call):
    return {each.value for each in call.args if isinstance(each, ast.Constant) and isinstance(each.value, str)}


def _has_next(call):
    """Whether a finding is made with a keyword `next`, or with a command by position."""
    by_name = any(each.arg in ("next", "next_") for each in call.keywords)
    return by_name or any(isinstance(each, ast.Call) and _name(each) in _MAKE_COMMANDS for each in call.args)


def _codes_by_variable(all_nodes):
    """The codes in functions that make a finding of a variable `code` and a command `closer`."""
    for function in all_nodes:
        if isinstance(function, ast.FunctionDef):
            nodes = [*ast.walk(function)]
            makes = [call for call in _calls(nodes) if _name(call) == "Finding"]
            names = [{getattr(each, "id", None) for each in call.args} for call in makes]
            if any({"code", "closer"} <= each for each in names):
                yield from (
                    each.value for each in nodes if isinstance(each, ast.Constant) and each.value in catalog.FINDINGS
                )


def codes_with_next():
    """The codes of findings with a next command, in all modules of the analysis."""
    found = set()
    for path in ANALYSIS.rglob("*.py"):
        nodes = [*ast.walk(ast.parse(path.read_text(encoding="utf-8")))]
        found.update(_codes_by_variable(nodes))
        for call in _calls(nodes):
            if _has_next(call):
                found |= _texts(call) & catalog.FINDINGS.keys()
    return found


def codes_tried():
    """The codes in calls of try_next, in all tests."""
    sources = (path.read_text(encoding="utf-8") for path in TESTS.rglob("*.py"))
    return {
        text
        for source in sources
        if "try_next" in source
        for call in _calls(ast.walk(ast.parse(source)))
        if _name(call) == "try_next"
        for text in _texts(call)
    }


def test_each_next_command_is_tried_where_it_is_printed():
    """tests/support/nextsteps.py types it; a new code with a next command needs such a call in the test that stages it."""
    found = codes_with_next()
    assert {"jvm-deadlock", "tmp-full", "jvm-gc-share", "safepoint-not-reached"} <= found
    assert found - codes_tried() - _IN_TREES == set()
