"""`opskit mem`: its rows against NMT x pagemap, arenas against malloc_info, headroom against real OOM kills; safepoints, CPU.

    sudo python benchmarks/mem.py [rows|arenas|safepoints|cpu|headroom]...
    sudo python benchmarks/mem.py rows=/usr/lib/jvm/java-17-openjdk-amd64/bin/java

The JVMs come from PyPI, as in the tests; pmap of procps and jcmd of any JDK are compared by CPU. Headroom needs a memory cgroup.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))

import cgroups
import holders
import jvms
import mem_truth
from common import OPSKIT, machine, measure, median_cpu, side_by_side

from opskit.analysis.mem.judge import judge
from opskit.collect.mem.collect import collect
from opskit.collect.mem.facts import Request
from opskit.host import Host
from opskit.jvm.attach.client import AttachClient
from opskit.jvm.discover import read_perfdata

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from opskit.analysis.mem.result import Result
    from opskit.collect.mem.facts import Facts

T = TypeVar("T")
MIB = holders.MIB
UNLOCK = ("-XX:+UnlockExperimentalVMOptions", "-XX:+UnlockDiagnosticVMOptions")
COLLECTORS = ("G1", "Serial", "Parallel", "Z", "Shenandoah")
IDLE = (*UNLOCK, "-XX:GuaranteedSafepointInterval=0")
HELD = (
    *("heap=100", "direct=30", "small=30", "deflaters=100", "threads=60"),
    *("loaders=500", "classes=300"),
)
# Row of the truth -> the rows of opskit that it is compared with, and the bound in %.
ROWS: dict[str, tuple[tuple[str, ...], float | None]] = {
    "java-heap": (("java-heap",), 0.5),
    "malloc": (("malloc-arenas", "malloc-mmapped"), 1),
    "metaspace": (("metaspace", "class-space"), 1),
    "thread-stacks": (("thread-stacks",), 8),
    "code-cache": (("code-cache",), None),
    "gc": (("gc",), None),
    "cds": (("cds",), None),
    "libraries": (("libraries",), None),
}
SUM_BOUND, UNNAMED_BOUND, ARENA_BOUND, HEADROOM_BOUND = 0.1, 3, 1, 2
CPU_START_S, CPU_GIB_S = 0.150, 0.040


def look(pid: int) -> Facts:
    """What `opskit mem PID` reads."""
    return collect(Host.at(None, None), Request(pid))


def judged(pid: int) -> Result:
    """What it says about that."""
    facts = look(pid)
    return judge(facts, (facts,))


def resident(facts: Facts, *kinds: str) -> int:
    """The resident bytes of some rows."""
    return sum(row.usage.rss_bytes for row in facts.rows if row.kind in kinds)


class Table:
    """Lines with figures beside their bounds. `kept`: whether all are."""

    def __init__(self) -> None:
        self.kept = True

    def line(self, what: str, found: str, value: float, bound: float | None) -> None:
        """Print a figure, `value` of it, and the bound of that."""
        good = bound is None or abs(value) <= bound
        said = "" if bound is None else f"bound {bound:g}  {'ok' if good else 'MISSED'}"
        print(f"  {what:<34} {found:<34} {value:8.2f}  {said}", flush=True)
        self.kept &= good


def percent(found: float, truth: float) -> float:
    """How far a figure is off, in % of the truth."""
    return 100 * (found - truth) / truth if truth else 0.0 if not found else 100.0


def mib(value: float | None) -> str:
    """A size in MiB, for the table."""
    return "-" if value is None else f"{value / MIB:.1f}"


def _known(value: T | None) -> T:
    if value is None:
        raise ValueError("opskit does not know what is measured here")
    return value


def rows(table: Table, *binaries: str) -> None:
    """Each JVM with each collector that it has: its rows beside the truth, in MiB and %."""
    for binary in binaries or map(jvms.java, jvms.WHEELS):
        for collector in COLLECTORS:
            options = ("-Xmx256m", *UNLOCK, f"-XX:+Use{collector}GC")
            works = subprocess.run([binary, *options, "-version"], capture_output=True, text=True, check=False)
            if works.returncode:
                continue
            release = works.stderr.splitlines()[1]
            print(f"{release}, {collector}: rows in MiB and their difference in %")
            with holders.java(*HELD, binary=binary, options=(*options, "-XX:NativeMemoryTracking=detail")) as held:
                direct, _ = holders.buffers(held)
                mem_truth.rows(held.pid)  # it makes threads and buffers of its own
                mem_truth.settled(held.pid)
                _compare(table, mem_truth.rows(held.pid), look(held.pid), direct)


def _compare(table: Table, truth: dict[str, int], facts: Facts, direct: int) -> None:
    rss, found = facts.total.rss_bytes, sum(row.usage.rss_bytes for row in facts.rows)
    table.line("sum of the rows / RSS", f"{mib(found)} / {mib(rss)}", percent(found, rss), SUM_BOUND)
    for kind, (kinds, bound) in ROWS.items():
        value = resident(facts, *kinds)
        if value or truth[kind]:
            table.line(kind, f"{mib(value)} / {mib(truth[kind])}", percent(value, truth[kind]), bound)
    unnamed = resident(facts, "unnamed")
    table.line("unnamed, % of RSS", mib(unnamed), 100 * unnamed / rss, UNNAMED_BOUND)
    said = facts.jvm.direct_bytes if facts.jvm else None
    may_be_unknown = facts.jvm is not None and (facts.jvm.collector or "").startswith(
        "ZGC"
    )  # its pointers change colour
    table.line(
        "direct buffers, bytes off",
        f"{said} / {direct}",
        (said or 0) - direct,
        None if said is None and may_be_unknown else 0,
    )


def arenas(table: Table) -> None:
    """What is free inside the arenas, beside malloc_info of a C program and of the JVMs that can be asked for it."""
    print("free inside the arenas, MiB and difference in %")
    with tempfile.TemporaryDirectory() as place:
        for name, modes in {
            "C, 8 threads, fragmented": ("fragments=8:16",),
            "C, 8 threads, full": ("arenas=8:16",),
            "C, large blocks, main arena": ("blocks=30:1", "fragments=1:8"),
        }.items():
            with holders.native(*modes, f"info=0:{place}/info") as held:
                _compare_arenas(table, name, held.pid, Path(f"{place}/info").read_text(encoding="utf-8"))
    for version in (21, 25):
        with holders.java("fragments=16", version=version) as held:
            client = AttachClient(Host.at(None, None).fs, held.pid)
            client.jcmd("System.native_heap_info")
            _compare_arenas(table, f"JDK {version}, 16 threads", held.pid, client.jcmd("System.native_heap_info"))


def _compare_arenas(table: Table, name: str, pid: int, info: str) -> None:
    truth, malloc = holders.malloc_info(info), _known(look(pid).malloc)
    for what, found, real in (
        ("system", malloc.system_bytes, truth["system"]),
        ("free", malloc.free_bytes, truth["free"]),
    ):
        error = percent(found or 0, real) if real > MIB else 100 * ((found or 0) - real) / truth["system"]
        table.line(f"{name}: {what}", f"{mib(found)} / {mib(real)}", error, ARENA_BOUND)


def safepoints(table: Table) -> None:
    """The safepoints of an idle JVM during one command, before and after its attach listener was started."""
    print("safepoints of an idle JVM during `opskit mem PID`")
    for version in jvms.WHEELS:
        with holders.java("heap=20", "loaders=200", version=version, options=("-Xmx128m", *IDLE)) as held:
            mem_truth.settled(held.pid)
            for listener in ("no attach listener", "attach listener runs"):
                before = _safepoints(held.pid)
                measure([OPSKIT, "mem", str(held.pid), "-f", "text"])
                table.line(f"JDK {version}, {listener}", "", _safepoints(held.pid) - before, 0)
                AttachClient(Host.at(None, None).fs, held.pid).jcmd("VM.version")


def _safepoints(pid: int) -> int:
    return _known(read_perfdata(Host.at(None, None).fs, pid).number("sun.rt.safepoints"))


def cpu(table: Table) -> None:
    """CPU of whole commands in ms, for heaps that are in memory as a whole, and for processes with many objects of other kinds."""
    for size in (64, 1024, 4096):
        options = (f"-Xms{size}m", f"-Xmx{size}m", "-XX:+AlwaysPreTouch", "-XX:NativeMemoryTracking=summary")
        _costs(table, f"JVM, heap of {size} MiB", holders.java(options=options))
    _costs(table, "JVM, 16 fragmented arenas", holders.java("fragments=16"))
    _costs(table, "JVM, 600 threads", holders.java("threads=600"))
    _costs(table, "JVM, 5,000 class loaders", holders.java("loaders=5000", options=("-Xmx256m",)))
    _costs(table, "C, 16 fragmented arenas", holders.native("fragments=16:16"), is_jvm=False)


def _costs(
    table: Table, name: str, holder: contextlib.AbstractContextManager[jvms.Workload], *, is_jvm: bool = True
) -> None:
    with holder as held:
        pid = str(held.pid)
        rss = look(held.pid).total.rss_bytes
        bound = 1000 * (CPU_START_S + CPU_GIB_S * rss / 2**30)
        print(f"{name}: CPU of whole commands, ms ({mib(rss)} MiB resident)")
        ours = {"opskit mem -f text": [OPSKIT, "mem", pid, "-f", "text"]}
        _print_costs(table, {**ours, "pmap -X": ["pmap", "-X", pid]}, bound)
        if is_jvm:
            ours = {f"{each}, listener runs": command for each, command in ours.items()}
            _print_costs(table, {"jcmd PID VM.native_memory": ["jcmd", pid, "VM.native_memory"], **ours}, bound)


def _print_costs(table: Table, commands: dict[str, list[str]], bound: float) -> None:
    for name, costs in side_by_side(commands, runs=5).items():
        wall, peak = statistics.median(cost.wall_s for cost in costs), max(cost.peak_bytes for cost in costs)
        found = f"wall {1000 * wall:.0f} ms, peak {mib(peak)} MiB"
        table.line(name, found, 1000 * median_cpu(costs), bound if name.startswith("opskit") else None)


def headroom(table: Table) -> None:
    """Processes in a cgroup that grow until the kernel kills them: what was left by opskit, beside what they got, in % of the limit."""
    print("headroom to the OOM kill, MiB and difference in % of the limit")
    java = ("-Xmx128m", "-XX:MaxDirectMemorySize=2g")
    cases: dict[str, tuple[int, str, Callable[[Path], contextlib.AbstractContextManager[jvms.Workload]], bool]] = {
        "C, anonymous": (150, "a", lambda place: holders.native("anon=60", cgroup=place), False),
        "C, memfd": (150, "s", lambda place: holders.native("memfd=60", cgroup=place), False),
        "C, anonymous, page cache": (150, "a", lambda place: holders.native("anon=60", cgroup=place), True),
        "C, 300 threads": (150, "a", lambda place: holders.native("threads=300:16", cgroup=place), False),
        "JDK 17, direct buffers": (250, "d", lambda place: holders.java("heap=50", options=java, cgroup=place), False),
        "JDK 25, heap, page cache": (
            200,
            "h",
            lambda place: holders.java("heap=20", version=25, options=("-Xmx1g", "-XX:+UseSerialGC"), cgroup=place),
            True,
        ),
    }
    for name, (size, letter, start, cached) in cases.items():
        with (
            _limited(size) as place,
            start(place) as held,
            _page_cache(place, size) if cached else contextlib.nullcontext(),
        ):
            before = _charged(held.pid)
            left = _known(_known(judged(held.pid).headroom).left_bytes)
            while holders.grow(held, letter):
                now = _charged(held.pid) or before
                grown = now - before
            table.line(
                name,
                f"{mib(left)} / {mib(grown)}",
                100 * (left - grown) / (size * MIB),
                HEADROOM_BOUND,
            )


@contextlib.contextmanager
def _limited(size: int) -> Iterator[Path]:
    """A new memory cgroup with a limit in MiB."""
    with cgroups.new_cgroup("memory", "opskit-benchmark", "memory.max memory.limit_in_bytes") as place:
        limit = next(place / name for name in ("memory.max", "memory.limit_in_bytes") if (place / name).exists())
        limit.write_text(str(size * MIB))
        yield place


def _charged(pid: int) -> int:
    """Anonymous and shared memory of a process, as its cgroup counts them. 0 when it has ended."""
    with contextlib.suppress(OSError):
        words = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").split()
        sizes = dict(zip(words, words[1:]))
        return sum(int(sizes.get(key, "0")) for key in ("RssAnon:", "RssShmem:", "VmPTE:")) * 1024
    return 0


@contextlib.contextmanager
def _page_cache(place: Path, size: int) -> Iterator[None]:
    """Read a file of this size in MiB in the cgroup: its pages are charged to it until the kernel needs them."""
    with tempfile.NamedTemporaryFile(dir="/var/tmp") as file:
        file.truncate(size * MIB)
        subprocess.run(["sh", "-c", f'echo $$ > {place}/cgroup.procs && cat "$0" > /dev/null', file.name], check=True)
        yield


SECTIONS: dict[str, Callable[..., None]] = {
    "rows": rows,
    "arenas": arenas,
    "safepoints": safepoints,
    "cpu": cpu,
    "headroom": headroom,
}


def main() -> int:
    """Measure and print the chosen sections; exit code 1 where a bound is missed."""
    chosen = sys.argv[1:] or list(SECTIONS)
    if not {"pmap", "jcmd"} <= {name for name in ("pmap", "jcmd") if shutil.which(name)}:
        sys.exit("needs pmap (procps) and jcmd (a JDK) in PATH")
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed opskit has its byte code
    print(machine())
    table = Table()
    for name, _, binary in (each.partition("=") for each in chosen):
        SECTIONS[name](table, *filter(None, [binary]))
    print("all bounds are kept" if table.kept else "a bound is MISSED")
    return 0 if table.kept else 1


if __name__ == "__main__":
    sys.exit(main())
