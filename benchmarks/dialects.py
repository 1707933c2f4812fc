"""`opskit jpmp FILE` on dumps of other dialects: a javacore of 17 MB, and a JSON dump of 100,000 virtual threads.

    python benchmarks/dialects.py [RUNS]

No other tool reads both; the bounds are CPU seconds of the whole command.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from common import OPSKIT, machine, median_cpu, side_by_side, table, verdict

FRAMES = 20


def javacore(path: Path, size: int = 17_000_000) -> None:
    """Write threads with 200 different stacks until the file has its size."""
    stacks = [
        "".join(
            f"4XESTACKTRACE                at com/example/service{i % 7}/Handler{i}.call{depth}(Handler{i}.java:{depth}(Compiled Code))\n"
            for depth in range(FRAMES)
        )
        for i in range(200)
    ]
    with path.open("w", encoding="utf-8") as out:
        out.write("0SECTION       TITLE subcomponent dump routine\n1TIDATETIME    Date: 2024/10/02 at 12:28:23:001\n")
        out.write("0SECTION       THREADS subcomponent dump routine\n")
        number = 0
        while out.tell() < size:
            number += 1
            out.write(
                f'3XMTHREADINFO      "worker-{number}" J9VMThread:0x{number:016X}, omrthread_t:0x{number:016X}, '
                f"java/lang/Thread:0x{number:016X}, state:CW, prio=5\n"
                f"3XMJAVALTHREAD            (java/lang/Thread getId:0x{number:X}, isDaemon:true)\n"
                f"3XMTHREADINFO1            (native thread ID:0x{number:X}, native priority:0x5, vmstate:CW)\n"
                f"3XMCPUTIME               CPU usage total: 0.{number:09d} secs\n"
                f"3XMTHREADINFO3           Java callstack:\n{stacks[number % len(stacks)]}NULL\n"
            )
        out.write("0SECTION       Javadump End section\nNULL           ------ END OF DUMP ------\n")


def virtual_threads(path: Path, count: int = 100_000) -> None:
    """A dump in the format of JDK 25: parked virtual threads of one executor, 200 different stacks."""
    stacks = [
        [f"com.example.Service{i}.call{depth}(Service{i}.java:{depth})" for depth in range(FRAMES)] for i in range(200)
    ]
    threads = [
        {
            "tid": str(i),
            "time": "2026-01-02T03:04:05.000000Z",
            "virtual": True,
            "name": "",
            "state": "WAITING",
            "parkBlocker": {"object": f"java.util.concurrent.CountDownLatch$Sync@{i:x}"},
            "stack": stacks[i % len(stacks)],
        }
        for i in range(count)
    ]
    container = {
        "container": "java.util.concurrent.ThreadPerTaskExecutor@1",
        "parent": "<root>",
        "owner": None,
        "threads": threads,
    }
    dump = {
        "processId": "1",
        "time": "2026-01-02T03:04:05Z",
        "runtimeVersion": "25+36",
        "threadContainers": [container],
    }
    with path.open("w", encoding="utf-8") as out:
        json.dump({"threadDump": dump}, out, indent=2)


def main() -> int:
    """Measure, print, and exit with 1 where a bound is missed."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    print(machine())
    with tempfile.TemporaryDirectory() as folder:
        core, dump = Path(folder) / "javacore.txt", Path(folder) / "virtual.json"
        javacore(core)
        virtual_threads(dump)
        print(f"javacore {core.stat().st_size / 1e6:.1f} MB, JSON {dump.stat().st_size / 1e6:.1f} MB")
        costs = side_by_side(
            {
                "opskit jpmp javacore.txt": [OPSKIT, "jpmp", str(core), "-f", "text"],
                "opskit jpmp virtual.json": [OPSKIT, "jpmp", str(dump), "-f", "text"],
            },
            runs,
        )
    table(costs)
    kept = [
        verdict("javacore of 17 MB, CPU s", median_cpu(costs["opskit jpmp javacore.txt"]), 2.0),
        verdict("JSON of 100,000 virtual threads, CPU s", median_cpu(costs["opskit jpmp virtual.json"]), 5.0),
    ]
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(main())
