"""Find the library of an async-profiler, and check whether a JVM can load it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


def find_library(given: str | None, environment: Mapping[str, str]) -> str:
    """The path of the library: of --asprof PATH, else of OPSKIT_ASPROF, else of an asprof on PATH or in the usual places.

    A path is that of the library, of the asprof program, or of the directory of an installation. Raises UsageError where there is none.
    """
    raise NotImplementedError
