"""Crash reports in a text: HotSpot's hs_err file, its header in a program's output, a javacore of a crash."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opskit.jvm.logs.crashes.record import CrashReport


def parse(data: bytes | str, source: str) -> CrashReport:
    """The first report in a file. `source`: its name in messages. Raises BadInput, which says what the file is instead."""
    return parse_all(data, source)[0]


def parse_all(data: bytes | str, source: str) -> list[CrashReport]:
    """Every report in a file, in order; the header that a JVM prints before its report is not counted twice."""
    raise NotImplementedError
