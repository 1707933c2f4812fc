"""Facts of the input and output of the machine and of a process, made by hand."""

from __future__ import annotations

from opskit.collect.io.facts import (
    CgroupIo,
    Device,
    Facts,
    File,
    IoLimit,
    ProcessIo,
    Rates,
    Seen,
    Stalled,
    StalledThread,
    Step,
    Thread,
)
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


def thread(tid, name, of_rates, **more):
    """A thread that was looked at 60 times, half of them on a CPU."""
    made = Thread(tid, name, of_rates, 60, (Seen("running", None, 60),), user=0.2, system=0.3)
    return made._replace(**more)


JVM = Process(4242, "java", 1001, "app", 1, 8675309, "S", 40)
_LINES = File(4, "/data/lines.txt", "file", 903808.0, 0o100000, "sda1", (), "/data", 12, 0, 903808.0, 80 << 20)
_LOG = File(5, "/var/log/app.log", "file", 20000.0, 0o102001, "sda1", (4251,), "/", size_bytes=5 << 30)
_MOUNTED = File(9, "/mnt/share/report.csv", "file", None, 0o100000, "fuse.sshfs", (4252,), "/mnt/share")
_FRAMES = (
    "java.io.RandomAccessFile.read0(java.base@17/Native Method)", "java.io.RandomAccessFile.readLine(java.base@17/RandomAccessFile.java:954)",
    "com.example.Importer.load(Importer.java:12)",
)  # fmt: skip
PROCESS = Facts(
    JVM, 2.0,
    (
        thread(4250, "csv-import-worker-1", rates(reads=903808.0, read_bytes=903808.0, disk_read_bytes=409600.0), system=0.7, frames=_FRAMES),
        thread(
            4251, "log-writer", rates(writes=200.0, written_bytes=20000.0, disk_written_bytes=860160.0), block_wait=0.3,
            seen=(Seen("fsync", 5, 48), Seen("running", None, 10), Seen("write", 5, 2, 100)), stalled=(Stalled("jbd2_log_wait_commit", 30),),
        ),
        thread(4252, "report", rates(), seen=(Seen("read", 9, 60, 8192),), stalled=(Stalled("request_wait_answer", 60),), user=0.0, system=0.0, asleep_s=12.0),
        thread(4253, "pool-1-thread-9", rates(reads=3.0, read_bytes=30000.0), started=True),
    ),
    (_LINES, _LOG, _MOUNTED),
    CgroupIo("/app", 0.25, 0.125, 0.0, (IoLimit("/app", "sda", "rbps", 1048576.0, 409600.0),), 64 << 20, 30 << 20, 0.0, 60 << 20),
    total=rates(reads=903811.0, writes=200.0, read_bytes=933808.0, written_bytes=20000.0, disk_read_bytes=409600.0, disk_written_bytes=860160.0),
    host_some=0.25, host_full=0.1, is_jvm=True, asked=True, dirty_bytes=8 << 20, available_bytes=1 << 30, writeback_bytes=0,
    steps=tuple(Step({4250: read, 4251: 0}, {4250: 0, 4251: written}, {4: read, 5: written}) for read, written in ((400000, 900), (1200000, 2100), (300000, 700))),
    looks=60, thread_total=40, ended=rates(reads=9.0, read_bytes=90000.0), stalled_total=1,
)  # fmt: skip


SLOW = device("sda", reads=5.0, read_bytes=20480.0, read_await_s=0.4, queue=2.0, busy=1.0)


def renamed(facts, name):
    """The same, with this name for all that somebody else may name: threads, files, processes, devices, mount points, cgroups, models."""
    threads = tuple(each._replace(name=name) for each in facts.threads)
    files = tuple(each._replace(path=f"/data/{name}", device=name, mount_point=f"/mnt/{name}") for each in facts.files)
    processes = tuple(
        each._replace(
            process=each.process._replace(command=name), stalled=tuple(one._replace(name=name) for one in each.stalled)
        )
        for each in facts.processes
    )
    device = SLOW._replace(name=f"sd{name}", model=name, mounts=(f"/mnt/{name}",), scheduler=name)
    limits = (IoLimit(f"/{name}", name, "rbps", 409600.0, 409600.0),)
    cgroup = facts.cgroup and facts.cgroup._replace(path=f"/{name}", limits=limits, refaults=1000.0)
    process = facts.process and facts.process._replace(command=name)
    return facts._replace(
        threads=threads, files=files, processes=processes, devices=(device,), cgroup=cgroup, process=process
    )


def large():
    """A process with as many threads, files and steps as a look keeps, all of which could belong together."""
    threads = tuple(
        thread(number, f"t-{number}", rates(reads=5e5 + number, read_bytes=5e5 + number)) for number in range(1, 1101)
    )
    files = tuple(_LINES._replace(fd=number, path=f"/data/{number}", pace=5e5 + number) for number in range(3, 103))
    steps = tuple(
        Step({tid: 30000 + tid * step % 7 for tid in range(1, 17)}, dict.fromkeys(range(1, 17), 0), {fd: 30000 + fd * step % 5 for fd in range(3, 19)})
        for step in range(128)
    )  # fmt: skip
    return PROCESS._replace(threads=threads, files=files, steps=steps, unmoved=files[:60])


def large_machine():
    """4,000 processes, some with a thread in state D, and 1,024 slow or hung devices on one below."""
    waits = (stalled(where="folio_wait_bit_common"),)
    processes = (
        process(number, f"p{number}", rates=rates(reads=number), stalled=waits if number < 256 else (), in_d=1.0)
        for number in range(1, 4_001)
    )
    hung = device(reads=0.0, read_await_s=None, in_flight=3)
    devices = (
        (SLOW if number % 2 else hung)._replace(name=f"dm-{number}", stacked_on=("sda",)) for number in range(1024)
    )
    return facts(processes, devices)
