"""Facts of the machine's input and output, made by hand."""

from __future__ import annotations

from opskit.collect.io.facts import Device, Facts, ProcessIo, Rates, StalledThread
from opskit.proc.process import Process


def rates(**given):
    """Zero but for what is given."""
    return Rates(*(0.0 for _ in Rates._fields))._replace(**given)


def process(pid, command, **given):
    """A process that did something."""
    made = ProcessIo(Process(pid, command, 1000, "app", 1, 7000 + pid, "S", 3), rates())
    return made._replace(**given)


def stalled(tid=4242, name="worker", where="request_wait_answer", for_s=2.0):
    """A thread in state D."""
    return StalledThread(tid, name, where, for_s)


def device(name="sda", **given):
    """A disk that does 100 reads a second of 16 KiB, each in 2 ms."""
    made = Device(
        name, 100.0, 0.0, 100 * 16384.0, 0.0, 0.002, None, None, 0.0, 0.2, 0.2, 0, "mq-deadline", "write back", True
    )
    return made._replace(**given)


def facts(processes=(), devices=(), **given):
    """A window of two seconds."""
    made = Facts(
        None, 2.0, processes=tuple(processes), devices=tuple(devices), total=rates(), host_some=0.25, host_full=0.1
    )
    return made._replace(dirty_bytes=8 << 20, writeback_bytes=0, **given)


BUSY = facts(
    (
        process(
            4242,
            "java",
            rates=rates(reads=900, read_bytes=120 << 20, disk_read_bytes=110 << 20, writes=10, written_bytes=2048),
        ),
        process(4300, "csv-import", rates=rates(reads=1903808, read_bytes=1903808)),
        process(4400, "bash", children=rates(reads=500, read_bytes=30 << 20)),
        process(4500, "sshfs-user", stalled=(stalled(4500, "sshfs-user"),), in_d=1.0),
        process(4600, "other", rates=None, stalled=(stalled(4600, "other", None, 0.5),), in_d=0.6),
    ),
    (device("sda", stacked_on=(), mounts=("/",)), device("dm-0", model="vg0-root", stacked_on=("sda",))),
    missing=("1 of 6 processes could not be read (4600); run as root to see them",),
)
