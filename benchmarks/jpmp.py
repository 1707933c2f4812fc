"""`opskit jpmp` against a shell script: jstack or saved dumps through awk | sort | uniq -c | sort -rn.

    python benchmarks/jpmp.py [RUNS]

Saved dumps: eight of 4,000 threads in one file, with one pool, or with 200 different stacks and one lock for each thread.
Live: 20 samples, interval 0, of a JVM with about a hundred threads; needs a JDK's jstack and the tests' JVMs.
"""

from __future__ import annotations

import shutil
import statistics
import sys
import tempfile
from pathlib import Path

from common import OPSKIT, machine, ratio, side_by_side, table, verdict

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))

AWK = r"""BEGIN { s = "" }
/^"/ { if (s) print s; s = "" }
/^\tat / { sub(/\([^)]*\)?$/, "", $2); sub(/^java/, "j", $2); if (s) s = s "," $2; else s = $2 }
END { if (s) print s }"""
COUNT = f"awk '{AWK}' %s | sort | uniq -c | sort -rnk1"

DUMPS, THREADS, STACKS = 8, 4_000, 200
HEAD = "2026-11-21 11:00:0%d\nFull thread dump OpenJDK 64-Bit Server VM (17.0.15+6 mixed mode, sharing):\n\n"
THREAD = (
    '"pool-1-thread-%d" #%d prio=5 os_prio=0 cpu=%d.02ms elapsed=%d.10s tid=0x00007f0a4c0%05x nid=0x%x waiting on condition'
    "  [0x00007f09f8%06x]\n   java.lang.Thread.State: WAITING (parking)\n"
)
LEAF = """\
	at jdk.internal.misc.Unsafe.park(java.base@17.0.15/Native Method)
	- parking to wait for  <0x%016x> (a java.util.concurrent.locks.AbstractQueuedSynchronizer$ConditionObject)
	at java.util.concurrent.locks.LockSupport.park(java.base@17.0.15/LockSupport.java:341)
	at java.util.concurrent.locks.AbstractQueuedSynchronizer$ConditionNode.block(java.base@17.0.15/AbstractQueuedSynchronizer.java:506)
	at java.util.concurrent.ForkJoinPool.unmanagedBlock(java.base@17.0.15/ForkJoinPool.java:3465)
	at java.util.concurrent.ForkJoinPool.managedBlock(java.base@17.0.15/ForkJoinPool.java:3436)
	at java.util.concurrent.locks.AbstractQueuedSynchronizer$ConditionObject.await(java.base@17.0.15/AbstractQueuedSynchronizer.java:1630)
	at java.util.concurrent.LinkedBlockingQueue.take(java.base@17.0.15/LinkedBlockingQueue.java:435)
"""
ROOT = """\
	at java.util.concurrent.ThreadPoolExecutor.getTask(java.base@17.0.15/ThreadPoolExecutor.java:1062)
	at java.util.concurrent.ThreadPoolExecutor.runWorker(java.base@17.0.15/ThreadPoolExecutor.java:1122)
	at java.util.concurrent.ThreadPoolExecutor$Worker.run(java.base@17.0.15/ThreadPoolExecutor.java:635)
	at java.lang.Thread.run(java.base@17.0.15/Thread.java:840)

"""
TAIL = '"VM Thread" os_prio=0 cpu=22.19ms elapsed=108.50s tid=0x00007f84 nid=0x12f6 runnable\n\nJNI global refs: 26, weak refs: 0\n\n'


def write_dumps(path: Path, *, different: bool) -> None:
    """Write eight dumps into one file."""
    middles = [
        "".join(f"\tat com.example.shop.s{number}.Layer{n}.handle(Layer{n}.java:{n})\n" for n in range(12))
        if different
        else ""
        for number in range(STACKS)
    ]
    with path.open("w") as file:
        for dump in range(DUMPS):
            file.write(HEAD % dump)
            for n in range(THREADS):
                file.write(THREAD % (n, n + 20, n % 50 + dump, 100 + dump, n * 16, 5000 + n, n * 4096 % (1 << 24)))
                file.write(LEAF % (0x700001234 + (n * 24 if different else 0)) + middles[n % STACKS] + ROOT)
            file.write(TAIL)


def saved(folder: Path, runs: int) -> bool:
    """Saved dumps: CPU against the script's, memory against the file."""
    kept = []
    for name, different, bound in (("one pool", False, 1.0), ("200 stacks, own locks", True, 1.6)):
        path = folder / "dumps.txt"
        write_dumps(path, different=different)
        size = path.stat().st_size
        print(f"{DUMPS} dumps of {THREADS:,} threads, {name}, {size / 2**20:.0f} MiB:")
        script = ["sh", "-c", COUNT % path]
        costs = side_by_side(
            {"opskit jpmp FILE": [OPSKIT, "jpmp", str(path)], "awk | sort | uniq | sort": script}, runs
        )
        table(costs)
        ours, theirs = costs.values()
        kept.append(verdict("CPU, of the script's", ratio(ours, theirs), bound))
        kept.append(verdict("peak memory, of the file", max(cost.peak_bytes for cost in ours) / size, 4.0))
    return all(kept)


def live(runs: int) -> bool:
    """20 samples of a live JVM, interval 0: CPU and wall time against the script with jstack."""
    import jvms

    if shutil.which("jstack") is None:
        print("jstack not found: no live comparison")
        return True
    jvm = jvms.start("sleep=50", "socket=20", "park=40")
    try:
        loop = f"for x in $(seq 1 20); do jstack {jvm.pid}; sleep 0; done | " + COUNT % ""
        print("20 samples of a live JVM of about 120 threads:")
        costs = side_by_side(
            {
                "opskit jpmp PID 20 0": [OPSKIT, "jpmp", str(jvm.pid), "20", "0"],
                "the loop with jstack": ["sh", "-c", loop],
            },
            runs,
        )
    finally:
        jvm.stop()
    table(costs)
    ours, theirs = costs.values()
    wall = statistics.median(a.wall_s / b.wall_s for a, b in zip(ours, theirs))
    kept = verdict("CPU, of the loop's", ratio(ours, theirs), 1 / 20)
    return verdict("wall time, of the loop's", wall, 1 / 20) and kept


def main() -> int:
    """Run both; 1 where a bound was missed."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    print(machine())
    with tempfile.TemporaryDirectory() as folder:
        kept = saved(Path(folder), runs)
    return 0 if live(max(3, runs // 2)) and kept else 1


if __name__ == "__main__":
    sys.exit(main())
