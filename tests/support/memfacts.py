"""Facts about the memory of processes, as the collector gives them: a JVM in a full cgroup, a healthy one, a program without rights."""

from __future__ import annotations

from opskit.analysis.finding import Entity, Finding
from opskit.analysis.mem.result import Growth, Headroom, Result, Slope, Suspect
from opskit.collect.mem.facts import Facts, HostMemory, JvmMemory, Malloc, Part, Row
from opskit.proc.cgroup.memory import MemoryGroup
from opskit.proc.cgroup.owner import CgroupOwner
from opskit.proc.files.smaps import Usage
from opskit.proc.process import Process

MIB = 1 << 20
KIB = 1 << 10
HOST = HostMemory(
    {"MemTotal": 24 << 30, "MemAvailable": 20 << 30, "SwapTotal": 0, "SwapFree": 0}, 0, oom_score=680, oom_score_adj=0
)


def mib(amount) -> int:
    """MiB as bytes, in whole pages."""
    return round(amount * 256) * 4096


def usage(rss, pss=None, **more) -> Usage:
    """In MiB."""
    rest = {f"{name}_bytes": mib(amount) for name, amount in more.items()}
    return Usage(mib(rss), mib(rss if pss is None else pss), **{"anonymous_bytes": mib(rss), **rest})


ROWS = (
    Row("java-heap", usage(95.7, huge=64), 256 * MIB, 1),
    Row("metaspace", usage(28.4), 64 * MIB, 3),
    Row("class-space", usage(3.1), 1024 * MIB, 1),
    Row("code-cache", usage(11.2), 240 * MIB, 3),
    Row("gc", usage(6.4), 12 * MIB, 5),
    Row("cds", usage(12.5, 6.3, anonymous=1), 13 * MIB, 4),
    Row("named", usage(2.9), 4 * MIB, 9),
    Row("thread-stacks", usage(3.2), 34 * MIB, 34),
    Row("malloc-arenas", usage(91.4, swap=4), 768 * MIB, 12),
    Row("malloc-mmapped", usage(42.1), 43 * MIB, 42),
    Row("libraries", usage(16.6, 9.1, anonymous=2), 40 * MIB, 60),
    Row("mapped-files", usage(8), 8 * MIB, 1),
    Row("kernel", usage(0), 32 * KIB, 2),
    Row("unnamed", usage(0.7), 2 * MIB, 6),
)
PARTS = (
    Part("libraries", "/usr/lib/jvm/21/lib/server/libjvm.so", False, usage(14.2, 7.1, anonymous=1)),
    Part("libraries", "/usr/lib/libc.so.6", False, usage(1.6, 0.2, anonymous=0)),
    Part("mapped-files", "/var/cache/ord ers.idx", True, usage(8, 8, anonymous=0)),
)
JVM = JvmMemory(
    "orders", "21.0.8", "G1", mib(80.2), 128 * MIB, 256 * MIB, False, mib(27.6), mib(28.5), None, 1024 * MIB, 240 * MIB,
    42 * MIB, 256 * MIB, None, 34, MIB, 212, ("vmStructs", "hsperfdata"),
)  # fmt: skip
MALLOC = Malloc("glibc", 12, 16, mib(95.5), mib(12.3), mib(2.5), mib(9.5), mib(42.3), 42)
ORDERS = MemoryGroup(
    "/orders", 2, 400 * MIB, None, mib(340), mib(352.5), mib(290), mib(0), mib(42), mib(8), mib(298), mib(4), None, 1
)
SLICE = MemoryGroup(
    "/", 2, None, None, mib(3120), None, mib(2000), mib(20), mib(900), mib(180), mib(2200), mib(4), None, 1
)
SUSPECTS = (
    Suspect(
        "memory-in-malloc", mib(91.4), "malloc holds 91.4 MiB that is no direct buffer", "12 arenas of glibc",
        None, "opskit jmap-diff 4242 --live -c 5",
    ),
    Suspect("memory-in-direct-buffers", 42 * MIB, "direct buffers hold 42.0 MiB of at most 256 MiB", "java.nio.Bits"),
)  # fmt: skip
GROWTHS = (
    Growth("direct", 214 * MIB, "MaxDirectMemorySize"),
    Growth("code-cache", mib(228.8), "ReservedCodeCacheSize"),
    Growth("thread-stacks", MIB, "-Xss, for each new thread"),
    Growth("metaspace", None, None),
)
KILLED = Finding(
    "memory-heap-outgrows-limit", "warning", Entity("process", 4242),
    "4242 (orders) can be killed: its heap may grow 58.3 MiB beyond the limit of 400 MiB of cgroup /orders; -Xmx190m, or a limit of 460 MiB would fit", "memory.stat of /orders: anon 290 MiB, kernel 8.0 MiB",
    None, "opskit mem 4242 -w", 0.745,
)  # fmt: skip


def total(rows) -> Usage:
    """The sum of rows."""
    return Usage(*map(sum, zip(*(row.usage for row in rows))))


def facts(**changes) -> Facts:
    """The JVM `orders` in its cgroup of 400 MiB."""
    process = Process(4242, "java", 1001, "app", 1, 8675309, "S", 34)
    owner = CgroupOwner("/system.slice/orders.service", unit="orders.service")
    made = Facts(process, owner, total(ROWS), mib(1.4), ROWS, PARTS, MALLOC, JVM, (ORDERS, SLICE), None, HOST, at_s=0.0)
    return made._replace(**changes)


def orders(**changes) -> Result:
    """It can be killed."""
    headroom = Headroom(ORDERS, 102 * MIB, mib(160.3), True, 190 * MIB, 460 * MIB, GROWTHS, mib(95.7))
    return Result(facts(), headroom, SUSPECTS, (), (KILLED,))._replace(**changes)


def healthy() -> Result:
    """The heap fits."""
    level = ORDERS._replace(limit_bytes=1024 * MIB, oom_kills=0)
    headroom = Headroom(level, 726 * MIB, mib(160.3), False, None, None, GROWTHS, mib(95.7))
    return Result(facts(levels=(level, SLICE)), headroom, (), (), ())


def native() -> Result:
    """A program without a JVM and without a limit."""
    rows = (
        Row("malloc-arenas", usage(61), 64 * MIB, 1),
        Row("libraries", usage(9, 3, anonymous=1), 30 * MIB, 40),
        Row("thread-stacks", usage(0.1), 8 * MIB, 1),
    )
    process = Process(77, "python3.11", 0, "root", 1, 99, "S", 1)
    made = facts(process=process, owner=None, rows=rows, parts=(), total=total(rows), malloc=Malloc("glibc", 1, 16, mib(62), mib(20)),
                 jvm=None, levels=(SLICE,))  # fmt: skip
    return Result(made, Headroom(None, 20 << 30, None, None, None, None), (), (), ())


def sums_only() -> Result:
    """A process whose mappings may not be read."""
    made = facts(
        rows=(), parts=(), malloc=None, jvm=None, total=usage(322.2, 310),
        why_sums_only="permission denied for /proc/4242/smaps; run as root: sudo opskit mem 4242",
    )  # fmt: skip
    return Result(made, Headroom(ORDERS, 102 * MIB, None, None, None, None), (), (), ())


def watched(number=6, interval_s=10.0) -> Result:
    """Looks in which direct buffers leak 2 MiB at a time."""
    looks = []
    for at in range(number):
        leaked = 2 * at
        rows = tuple(row._replace(usage=usage(42.1 + leaked)) if row.kind == "malloc-mmapped" else row for row in ROWS)
        jvm = JVM._replace(direct_bytes=JVM.direct_bytes + mib(leaked))
        level = ORDERS._replace(
            usage_bytes=ORDERS.usage_bytes + mib(leaked), pinned_bytes=ORDERS.pinned_bytes + mib(leaked)
        )
        looks.append(facts(rows=rows, total=total(rows), jvm=jvm, levels=(level, SLICE), at_s=at * interval_s))
    rate = mib(2) / interval_s
    slopes = [Slope(kind, rate, 460.0) for kind in ("rss", "malloc-mmapped", "cgroup", "direct")]
    headroom = Headroom(
        looks[-1].levels[0], mib(102 - 2 * (number - 1)), mib(160.3), True, 190 * MIB, 460 * MIB, GROWTHS, mib(95.7)
    )
    still = [Slope(row.kind, 0.0, None) for row in ROWS if row.kind != "malloc-mmapped"]
    return Result(looks[-1], headroom, SUSPECTS, (*slopes, *still), (KILLED,), looks)
