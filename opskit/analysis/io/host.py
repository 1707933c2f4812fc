"""Judge the machine's input and output: who reads and writes the most, which threads and devices do not get on, which device is slow.

A device that is busy all the time is none of these: NVMe disks serve many requests at once, and a copy keeps any disk busy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.analysis.finding import Entity, Finding, most_severe_first
from opskit.analysis.io.host_words import (
    bytes_words,
    calls_words,
    device_words,
    moved_words,
    parts_of,
    stored_words,
    waiting_words,
)
from opskit.analysis.io.result import DeviceRow, ProcessRow, Result
from opskit.analysis.io.waits import CHILD, DEVICE, DIRTY, FLUSH, FROZEN, JOURNAL, severity_of, wait_of
from opskit.quantities import agreeing, duration, percent, plural, size
from opskit.shell import command

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from opskit.analysis.finding import Severity
    from opskit.collect.io.facts import Device, Facts, ProcessIo, StalledThread

_WHOLE = 0.9  # of the window: a sleep that long is the same one
_STUCK_S = 0.9  # of one sleep
# A request by itself: disks need 1 to 20 ms, and a slow network 50 ms; the transfer of large ones takes more.
_SLOW_S, _SLOWEST_BYTES_S, _FEWEST_REQUESTS = 0.1, 10 << 20, 3
_KERNEL_LOG = ("dmesg", "--level", "emerg,alert,crit,err,warn")
_SLOW_BY_NATURE = ("sr", "fd", "mtd")  # optical disks, floppies, raw flash
_ALWAYS_BUSY, _QUEUED = 0.95, 4.0
_OFTEN = 0.5  # of looks, of bytes
_MANY_CALLS, _TINY_BYTES = 10_000, 64
_MUCH_BYTES = 1 << 20
_LOCAL = (DEVICE, JOURNAL, DIRTY, FLUSH)


def judge_host(facts: Facts) -> Result:
    """The answer for the machine."""
    processes, devices = host_rows(facts)
    findings = host_findings(facts)
    verdict = tuple(_verdict(facts, processes, devices))
    return Result(facts, verdict, (), processes, devices, findings, None if findings else _next(processes))


def host_rows(facts: Facts) -> tuple[tuple[ProcessRow, ...], tuple[DeviceRow, ...]]:
    """Processes: stuck ones, then those first by bytes, by calls or by storage. Devices: those with a problem, then the busiest."""
    stuck, slow = {each.process.pid: each for each in facts.processes if _stuck(facts, each)}, _slow(facts)
    ranks = [_ranks(facts.processes, by) for by in (_bytes, _calls, _storage_bytes)]
    processes = sorted(
        facts.processes,
        key=lambda each: (
            each.process.pid not in stuck, min(rank[each.process.pid] for rank in ranks), -_bytes(each), each.process.pid,
        ),
    )  # fmt: skip
    hung = {device.name for device in _hung(facts)}
    devices = sorted(
        facts.devices,
        key=lambda each: (
            each.name not in hung, each.name not in slow, -each.busy, -(each.read_bytes + each.written_bytes), each.name,
        ),
    )  # fmt: skip
    return (
        tuple(ProcessRow(each, _why(facts, each)) for each in processes),
        tuple(DeviceRow(each, _device_why(each, slow, hung)) for each in devices),
    )


def _ranks(processes: Sequence[ProcessIo], by: Callable[[ProcessIo], float]) -> dict[int, int]:
    """The place of each by a number; all that have none are last."""
    ordered = sorted(processes, key=lambda each: -by(each))
    return {each.process.pid: place if by(each) else len(ordered) for place, each in enumerate(ordered)}


def _bytes(each: ProcessIo) -> float:
    return sum(rates.read_bytes + rates.written_bytes for rates in parts_of(each))


def _calls(each: ProcessIo) -> float:
    return sum(rates.reads + rates.writes for rates in parts_of(each))


def _storage_bytes(each: ProcessIo) -> float:
    return sum(rates.disk_read_bytes + rates.disk_written_bytes for rates in parts_of(each))


# Threads in state D


def _stuck(facts: Facts, each: ProcessIo) -> tuple[StalledThread, ...]:
    """Threads in one uninterruptible sleep for the whole window. A frozen cgroup and a vfork are meant to be so."""
    least_s = max(_STUCK_S, _WHOLE * facts.window_s)
    long = (thread for thread in each.stalled if thread.for_s >= least_s)
    return tuple(
        thread for thread in long if (wait := wait_of(thread.where)) is None or wait.kind not in (FROZEN, CHILD)
    )


def host_findings(facts: Facts) -> tuple[Finding, ...]:
    """Threads that wait for storage and do not get on, devices that finish nothing, devices that are slow."""
    found = [*_hung_findings(facts), *_stuck_findings(facts), *_slow_findings(facts)]
    return tuple(most_severe_first(found))


def _stuck_findings(facts: Facts) -> Iterator[Finding]:
    hung = _hung(facts)
    for each in facts.processes:
        stuck = () if each.is_kernel_thread else _stuck(facts, each)
        if not stuck:
            continue
        process = each.process
        # Of several the one that waits for storage: others may wait for its locks.
        worst = max(stuck, key=lambda thread: (_severity(facts, thread) != "note", thread.for_s))
        who = f"{process.pid} ({process.command})"
        threads = plural(len(stuck), "thread")
        yield Finding(
            "io-stuck",
            _severity(facts, worst),
            Entity("process", process.pid, process.start_ticks, _waits_for(worst, hung)),
            f"{who}: {threads} {agreeing(len(stuck), 'has', 'have')} not run for {duration(worst.for_s)}: "
            f"{worst.name} {waiting_words(worst.where)}{f', in {worst.call}' if worst.call else ''}",
            f"/proc/{process.pid}/task/{worst.tid}: asleep with the same context switches in all looks, wchan {worst.where or 'unknown'}",
            next=command("opskit", "io", process.pid),
            share=1.0,
            window_s=facts.window_s,
        )


def _waits_for(thread: StalledThread, hung: Sequence[Device]) -> Entity | None:
    """The only device that is hung, for a thread that waits for a local one."""
    wait = wait_of(thread.where)
    is_local = wait is not None and wait.kind in _LOCAL
    return Entity("device", hung[0].name) if is_local and len(hung) == 1 else None


def _severity(facts: Facts, thread: StalledThread) -> Severity:
    return severity_of(thread.where, thread.call, thread.for_s, stores=bool(facts.stored_pages))


# Devices


def _finished(device: Device) -> float:
    """Requests a second."""
    return device.reads + device.writes + device.flushes + device.discards


def _waiters(facts: Facts) -> list[StalledThread]:
    """The threads, kernel threads too, that have waited for a local device for the whole window."""
    stuck = (thread for each in facts.processes for thread in _stuck(facts, each))
    return [thread for thread in stuck if (wait := wait_of(thread.where)) is not None and wait.kind in _LOCAL]


def _hung(facts: Facts) -> list[Device]:
    """Devices with requests of which none was finished, while threads wait for one: some drivers count requests in flight that are none."""
    if not _waiters(facts):
        return []
    return _lowest(
        facts, {device.name: device for device in facts.devices if device.in_flight and not _finished(device)}
    )


def _hung_findings(facts: Facts) -> Iterator[Finding]:
    waiters = _waiters(facts)
    for device in _hung(facts):
        longest = max(waiters, key=lambda thread: thread.for_s)
        yield Finding(
            "io-device-hung",
            severity_of(longest.where, None, longest.for_s, stores=False),
            Entity("device", device.name),
            f"{device.name} has finished no request for {duration(facts.window_s)}, {device.in_flight:,} "
            f"{agreeing(device.in_flight, 'is', 'are')} in flight; {plural(len(waiters), 'thread')} "
            f"{agreeing(len(waiters), 'waits', 'wait')} for storage",
            f"/proc/diskstats; {longest.name} (TID {longest.tid}) in {longest.where} for {duration(longest.for_s)}",
            next=command(*_KERNEL_LOG),
            window_s=facts.window_s,
        )


def request_s(device: Device) -> float | None:
    """What the device needs for one request: its time, shared among those that are there at once, without a slow transfer; None: too few."""
    times = [(device.reads, device.read_await_s), (device.writes, device.write_await_s)]
    requests = sum(rate for rate, await_s in times if await_s is not None)
    if not requests:
        return None
    together_s = sum(
        rate * await_s for rate, await_s in times if await_s is not None
    )  # in a second: requests at a time
    transfer_s = (device.read_bytes + device.written_bytes) / requests / _SLOWEST_BYTES_S
    return max(0.0, together_s / requests / max(1.0, together_s) - transfer_s)


def _slow(facts: Facts) -> Mapping[str, float]:
    """The time of a request of each slow device; of a stack the lowest."""
    slow = {}
    for device in facts.devices:
        needs_s = request_s(device)
        enough = (device.reads + device.writes) * facts.window_s >= _FEWEST_REQUESTS
        if needs_s is not None and needs_s >= _SLOW_S and enough and not device.name.startswith(_SLOW_BY_NATURE):
            slow[device.name] = device
    return {device.name: request_s(device) or 0.0 for device in _lowest(facts, slow)}


def _lowest(facts: Facts, found: Mapping[str, Device]) -> list[Device]:
    """Those that stand on none of the others."""
    stacks = {device.name: device.stacked_on for device in facts.devices}
    return [device for device in found.values() if not any(name in found for name in below(stacks, device.name))]


def below(stacks: Mapping[str, tuple[str, ...]], name: str) -> set[str]:
    """All devices that a device stands on."""
    found: set[str] = set()
    todo = [name]
    while todo:
        for each in stacks.get(todo.pop(), ()):
            if each not in found:
                found.add(each)
                todo.append(each)
    return found - {name}


def _slow_findings(facts: Facts) -> Iterator[Finding]:
    devices = {device.name: device for device in facts.devices}
    for name, needs_s in _slow(facts).items():
        device = devices[name]
        look = ("smartctl", "-H", "-A", f"/dev/{name}") if name.startswith(("sd", "nvme")) else _KERNEL_LOG
        yield Finding(
            "io-device-slow",
            "warning",
            Entity("device", name),
            f"{name} needs {duration(needs_s)} for a request: it finished {device.reads + device.writes:,.1f} a second, "
            f"{device.queue:,.1f} at a time{_below_words(devices, name)}",
            f"/proc/diskstats: {_awaits(device)}, busy {percent(device.busy)}",
            next=command(*look),
            window_s=facts.window_s,
        )


def _below_words(devices: Mapping[str, Device], name: str) -> str:
    """What holds the requests where the devices below are fast; empty: it stands on none that served any."""
    lower = below({each.name: each.stacked_on for each in devices.values()}, name)
    times = [(needs_s, each) for each in sorted(lower) if (needs_s := _known_s(devices.get(each))) is not None]
    if not times:
        return ""
    slowest_s, slowest = max(times)
    return (
        f"; {slowest} below it needs {duration(slowest_s)}: a limit of a cgroup (io.max) or the mapping holds requests"
    )


def _known_s(device: Device | None) -> float | None:
    return None if device is None else request_s(device)


def _awaits(device: Device) -> str:
    """`await 310 ms (reads), 12 ms (writes)`."""
    times = (("reads", device.read_await_s), ("writes", device.write_await_s), ("flushes", device.flush_await_s))
    said = ", ".join(f"{duration(await_s)} ({what})" for what, await_s in times if await_s is not None)
    return f"await {said}" if said else "await unknown"


# Words


def _why(facts: Facts, each: ProcessIo) -> str:
    """What a process suffers from, or what is unusual about it; empty: nothing."""
    stuck = _stuck(facts, each)
    if stuck:
        return f"stuck for {duration(stuck[0].for_s)}: {waiting_words(stuck[0].where)}"
    if each.stalled and each.in_d >= _OFTEN:
        return f"in state D in {percent(each.in_d)} of looks: {waiting_words(each.stalled[0].where)}"
    if each.in_d >= _OFTEN:
        return f"in state D in {percent(each.in_d)} of looks"
    return "; ".join(_rate_words(each))


def _rate_words(each: ProcessIo) -> Iterator[str]:
    rates = each.rates
    if rates is None:
        yield "its counters may not be read"
    else:
        if rates.reads >= _MANY_CALLS and (rates.bytes_per_read or 0) < _TINY_BYTES:
            yield f"{bytes_words(rates.bytes_per_read or 0)} a read"
        if rates.writes >= _MANY_CALLS and (rates.bytes_per_write or 0) < _TINY_BYTES:
            yield f"{bytes_words(rates.bytes_per_write or 0)} a write"
        if rates.disk_read_bytes >= max(_MUCH_BYTES, _OFTEN * rates.read_bytes):
            # Mapped files, O_DIRECT and readahead are no calls, or read more than was asked for.
            share = rates.disk_read_bytes / rates.read_bytes if rates.read_bytes else 1.0
            yield f"{percent(min(1.0, share))} from disk"
        if rates.cancelled_bytes >= max(_MUCH_BYTES, _OFTEN * rates.disk_written_bytes):
            yield "deletes what it wrote"
    children = each.children
    if children is not None and (total := children.read_bytes + children.written_bytes) >= _MUCH_BYTES:
        yield f"its children that ended: {size(total)}/s"


def _device_why(device: Device, slow: Mapping[str, float], hung: set[str]) -> str:
    if device.name in hung:
        return "finishes no request"
    if device.name in slow:
        return f"slow: {duration(slow[device.name])} a request"
    if device.busy >= _ALWAYS_BUSY and device.queue >= _QUEUED:
        return f"always busy: {device.queue:,.0f} requests at a time"
    return ""


def _verdict(facts: Facts, processes: Sequence[ProcessRow], devices: Sequence[DeviceRow]) -> Iterator[str]:
    active = [row.process for row in processes if _calls(row.process) or _storage_bytes(row.process)]
    if active:
        yield from _most(active)
    else:
        yield f"No process that could be read has read or written in {duration(facts.window_s)}"
    busiest = _busiest(devices)
    if busiest is not None:
        yield f"Busiest device: {device_words(busiest)}"
    stalled = [each for each in facts.processes if each.stalled and not each.is_kernel_thread]
    if stalled and not any(_stuck(facts, each) for each in stalled):
        threads = sum(len(each.stalled) for each in stalled)
        yield f"{plural(threads, 'thread')} of {plural(len(stalled), 'process', 'processes')} in state D at the last look"


def _most(active: Sequence[ProcessIo]) -> Iterator[str]:
    """Who reads and writes the most; who stores more than that one, and who makes more calls, where that is much."""
    most, stores, calls = (max(active, key=by) for by in (_bytes, _storage_bytes, _calls))
    moves = bool(_bytes(most))
    if moves:
        yield f"Most bytes: {moved_words(most)}"
    # Mapped files, swap, AIO and io_uring are in no call that is counted.
    if _storage_bytes(stores) > (max(_MUCH_BYTES, _storage_bytes(most)) if moves else 0):
        yield f"Most storage traffic: {stored_words(stores)}"
    if _calls(calls) >= (_MANY_CALLS if moves else 1) and not (moves and calls is most):
        yield f"Most calls: {calls_words(calls)}"


def _busiest(devices: Sequence[DeviceRow]) -> Device | None:
    """The busiest of those that stand on no other, which count the same requests again."""
    used = [row.device for row in devices if _finished(row.device) or row.device.in_flight]
    return max(used, key=lambda device: (not device.stacked_on, device.busy), default=None)


def _next(processes: Sequence[ProcessRow]) -> str | None:
    """Closer to who does the most, where that is not little."""
    first = next((row.process for row in processes if row.process.rates and not row.process.process.has_ended), None)
    if first is None or (max(_bytes(first), _storage_bytes(first)) < _MUCH_BYTES and _calls(first) < _MANY_CALLS):
        return None
    return command("opskit", "io", first.process.pid)
