"""A test of many cheap cases, as one test: pytest and its workers take longer for a test than such a case does.

    @each_of("seed", range(300))
    def test_against_sets(seed): ...

is like parametrize, without a name for each case; a failure prints the case. Each runs with the same fixtures.
"""

from __future__ import annotations

import functools
import inspect


def each_of(name, values):
    """Run the body with each value of one argument."""
    cases = [*values]

    def decorate(body):
        @functools.wraps(body)
        def run(**given):
            for case in cases:
                try:
                    body(**given, **{name: case})
                except Exception:
                    print(f"{name} = {case!r}")
                    raise

        of_body = inspect.signature(body)
        rest = [each for each in of_body.parameters.values() if each.name != name]
        run.__signature__ = of_body.replace(parameters=rest)
        return run

    return decorate
