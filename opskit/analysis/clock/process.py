"""What a process takes for the time: its zone, a library that lies to it, its time namespace. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.analysis.clock.offsets import amount, utc
from opskit.analysis.finding import Entity, Finding
from opskit.quantities import duration

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opskit.collect.clock.facts import Facts, View
    from opskit.proc.zones import Zone


def sentence(view: View, machine: Zone) -> str:
    """What the process sees."""
    who = f"{view.process.pid} ({view.process.command})"
    zone = _zone(view.zone, machine)
    if view.faked_by is not None:
        return f"{who} does not see the machine's clock: {_lie(view)}{zone}."
    if view.zone is None:
        return f"What {who} takes for the time is unknown: its time zone and libraries cannot be read."
    return f"{who} sees the machine's clock{zone}."


def _lie(view: View) -> str:
    """`libfaketime sets its clock 7 h behind (FAKETIME=-7h)`."""
    from opskit.proc.fake_time import shift_s

    library = (view.faked_by or "").rpartition("/")[2].partition(".so")[0]
    shift = None if view.fake is None else shift_s(view.fake)
    if shift:
        return f"{library} sets its clock {amount(shift)} {'ahead' if shift > 0 else 'behind'} (FAKETIME={view.fake})"
    return f"{library} is loaded{'' if view.fake is None else f' (FAKETIME={view.fake})'}"


def _zone(zone: Zone | None, machine: Zone) -> str:
    if zone is None:
        return ""
    name = f" ({zone.source}={zone.name})" if zone.source != machine.source and zone.name else ""
    if zone.utc_offset_s is None:
        return f"; {'the offset of ' if name else ''}its time zone{name} is unknown"
    same = zone.utc_offset_s == machine.utc_offset_s
    return f"; its local time is {utc(zone.utc_offset_s)}{name}, {'as the machine has it' if same else f'the machine has {utc(machine.utc_offset_s)}'}"


def findings(facts: Facts) -> Iterator[Finding]:
    """Of the process that was asked for."""
    view = facts.view
    if view is None:
        return
    pid = view.process.pid
    entity = Entity("process", pid, view.process.start_ticks)
    if view.faked_by is not None:
        yield Finding(
            "clock-faked", "warning", entity, f"{pid} does not see the machine's clock: {_lie(view)}",
            f"/proc/{pid}/maps: {view.faked_by}",
        )  # fmt: skip
    offsets = view.offsets
    if offsets is not None and (offsets.monotonic_s or offsets.boottime_s):
        shifted = " and ".join(
            f"its {name} clock is {duration(abs(by_s))} {'ahead' if by_s > 0 else 'behind'}"
            for name, by_s in (("monotonic", offsets.monotonic_s), ("boot time", offsets.boottime_s))
            if by_s
        )
        yield Finding(
            "clock-time-namespace", "note", entity,
            f"{pid} runs in a time namespace: {shifted}; its date is the machine's", f"/proc/{pid}/timens_offsets",
        )  # fmt: skip
    zone, machine = view.zone, facts.zone
    if zone is None:
        return
    if zone.is_missing and zone.source != machine.source and not view.is_java:
        yield Finding(
            "clock-zone-missing", "note", entity,
            f"{zone.source}={zone.name} names no time zone that {pid} can find: its C library uses UTC",
            f"no such file in /usr/share/zoneinfo of /proc/{pid}/root",
        )  # fmt: skip
    elif None not in (zone.utc_offset_s, machine.utc_offset_s) and zone.utc_offset_s != machine.utc_offset_s:
        apart_s = (zone.utc_offset_s or 0.0) - (machine.utc_offset_s or 0.0)
        where = zone.source if zone.name is None else f"{zone.source}={zone.name}"
        yield Finding(
            "clock-zone-differs", "note", entity,
            f"the local time of {pid} is {amount(apart_s)} {'ahead of' if apart_s > 0 else 'behind'} the machine's: {utc(zone.utc_offset_s)}, not {utc(machine.utc_offset_s)}",
            f"{where}; the machine: {machine.name or machine.source}",
        )  # fmt: skip
