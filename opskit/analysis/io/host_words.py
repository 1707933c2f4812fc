"""Sentences about the machine's processes and devices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.analysis.io.waits import wait_of
from opskit.quantities import duration, percent, size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opskit.collect.io.facts import Device, ProcessIo, Rates

_LEAST = 0.01  # of all bytes: a smaller part is not told


def waiting_words(where: str | None) -> str:
    """`waits for a FUSE server (request_wait_answer)`; for a function that is not known its name alone."""
    wait = wait_of(where)
    if wait is not None:
        return f"{wait.words} ({where})"
    return "it sleeps in an unknown function of the kernel" if where is None else f"it sleeps in {where}"


def parts_of(each: ProcessIo) -> Iterator[Rates]:
    """Its own rates and those of its children that ended, as far as they are known."""
    yield from (rates for rates in (each.rates, each.children) if rates is not None)


def named(each: ProcessIo) -> str:
    """`4242 (java)`."""
    return f"{each.process.pid} ({each.process.command})"


def with_children(each: ProcessIo) -> str:
    """What follows its name where the numbers hold those of its children."""
    return " with its children that ended" if each.children is not None and any(each.children) else ""


def moved_words(each: ProcessIo) -> str:
    """`4242 (java) reads 120 MiB/s (98 % from disk) and writes 3.0 MiB/s`."""
    parts = [*parts_of(each)]
    read, written, disk = (
        sum(getattr(rates, name) for rates in parts) for name in ("read_bytes", "written_bytes", "disk_read_bytes")
    )
    # Mapped files and readahead fetch more than the calls return.
    share = f" ({percent(min(1.0, disk / read))} from disk)" if read and disk / read >= _LEAST else ""
    reads = f"reads {size(read)}/s{share}" if read >= written or read >= 1024 else ""
    writes = f"writes {size(written)}/s" if written > read or written >= 1024 else ""
    return f"{named(each)}{with_children(each)} {' and '.join(filter(None, (reads, writes)))}"


def stored_words(each: ProcessIo) -> str:
    """`4242 (mongod) fetches 120 MiB/s and makes 3.0 MiB/s dirty`."""
    read, written = (
        sum(getattr(rates, name) for rates in parts_of(each)) for name in ("disk_read_bytes", "disk_written_bytes")
    )
    fetched, dirtied = (f"fetches {size(read)}/s", read), (f"makes {size(written)}/s dirty", written)
    parts = [words for words, amount in (fetched, dirtied) if amount > _LEAST * (read + written)]
    return f"{named(each)}{with_children(each)} {' and '.join(parts)}"


def calls_words(each: ProcessIo) -> str:
    """`7525 (csv-import) does 1,903,808 reads/s of 1.0 byte`."""
    parts = [*parts_of(each)]
    reads, writes = sum(rates.reads for rates in parts), sum(rates.writes for rates in parts)
    what, number, total = (
        ("reads", reads, sum(rates.read_bytes for rates in parts))
        if reads >= writes
        else ("writes", writes, sum(rates.written_bytes for rates in parts))
    )
    mean = total / number if number else 0.0
    return f"{named(each)} does {number:,.0f} {what}/s of {bytes_words(mean)}"


def bytes_words(mean: float) -> str:
    """A mean size: `1.0 byte`, `12.5 bytes`, `8.0 KiB`."""
    if mean >= 1024:
        return size(mean)
    said = f"{mean:,.1f}"
    return f"{said} {'byte' if said == '1.0' else 'bytes'}"


def device_words(device: Device) -> str:
    """`vda, busy 45 %: 820 reads/s (await 0.4 ms), 12 writes/s (await 2.1 ms), 1.2 requests at a time`."""
    parts = [
        f"{rate:,.0f} {what}/s (await {duration(await_s)})" if await_s is not None else f"{rate:,.0f} {what}/s"
        for what, rate, await_s in (
            ("reads", device.reads, device.read_await_s),
            ("writes", device.writes, device.write_await_s),
        )
        if rate >= 0.5
    ]
    parts.append(f"{device.queue:,.1f} requests at a time")
    return f"{device.name}, busy {percent(device.busy)}: {', '.join(parts)}"
