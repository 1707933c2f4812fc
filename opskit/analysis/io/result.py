"""What `opskit io` concludes. None: unknown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.records import NamedTuple

if TYPE_CHECKING:
    from opskit.analysis.finding import Finding
    from opskit.collect.io.facts import Device, Facts, File, ProcessIo, Thread


class Row(NamedTuple):
    """A thread, the file that it reads or writes (None: unknown, or several), and what it suffers from in a few words; empty: nothing."""

    thread: Thread
    file: File | None = None
    why: str = ""


class ProcessRow(NamedTuple):
    """A process of the machine, likewise."""

    process: ProcessIo
    why: str = ""


class DeviceRow(NamedTuple):
    """A block device, likewise."""

    device: Device
    why: str = ""


class Result(NamedTuple):
    """`verdict`: sentences, the first is the answer. `rows`: of a process, the most calls or bytes first. The others: of the machine."""

    facts: Facts
    verdict: tuple[str, ...]
    rows: tuple[Row, ...]
    processes: tuple[ProcessRow, ...]
    devices: tuple[DeviceRow, ...]
    findings: tuple[Finding, ...]
    next: str | None = None
