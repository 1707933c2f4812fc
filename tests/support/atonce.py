"""Tests of a module that mostly wait, run side by side.

    at_once = AtOnce()
    outcomes = at_once.fixture()

    @at_once.test
    def test_a_case(): ...

Each is reported under its own name, with its own assertion or reason to skip. They take no fixtures, and nothing that only the
first thread of a process may do (the fixture `inprocess`).

    for_each = ForEach(a_case, [11, 17, 21, 25])

    def test_a_case(jvm_version):
        for_each.result(jvm_version)

is the same for one case with several arguments.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

_SIDE_BY_SIDE = 4


class AtOnce:
    """The tests of one module."""

    def __init__(self) -> None:
        self._bodies = {}

    def test(self, body):
        """A test whose body runs with those of the others."""
        self._bodies[body.__name__] = body

        def run(outcomes):
            outcome = outcomes.pop(body.__name__, None)  # a test that is run again runs its body anew
            body() if outcome is None else outcome.result()

        run.__name__, run.__doc__ = body.__name__, body.__doc__
        return run

    def fixture(self):
        """Starts the bodies of the tests that were chosen."""

        @pytest.fixture(scope="module")
        def outcomes(request):
            chosen = {item.originalname for item in request.session.items if item.fspath == request.node.fspath}
            with ThreadPoolExecutor(_SIDE_BY_SIDE) as pool:
                started = {name: pool.submit(body) for name, body in self._bodies.items() if name in chosen}
                yield started
                for each in started.values():
                    each.cancel()

        return outcomes


class ForEach:
    """One body with each of several arguments, side by side. It takes no fixtures either."""

    def __init__(self, body, arguments, at_once=_SIDE_BY_SIDE):
        self._body, self._arguments, self._at_once = body, arguments, at_once
        self._outcomes = None

    def result(self, argument):
        """What the body gave, or its exception. The first call runs it with all arguments; a test that is run again runs it anew."""
        if self._outcomes is None:
            with ThreadPoolExecutor(self._at_once) as pool:
                self._outcomes = {each: pool.submit(self._body, each) for each in self._arguments}
        outcome = self._outcomes.pop(argument, None)
        return self._body(argument) if outcome is None else outcome.result()
