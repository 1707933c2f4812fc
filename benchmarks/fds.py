"""`opskit fds` against lsof and lsfd, on 200,000 file descriptors.

    sudo python benchmarks/fds.py [RUNS]

One process with as many as it may open, of each kind: `opskit fds PID` against `lsof -nP -p PID` and `lsfd -p PID`. Where a process may
not open 200,000, what each start costs is a large part: it is measured with a process of few fds, and the bound is for the rest. Then the
whole machine: `opskit fds` against `lsof -nP` and `lsfd`, with pipes, files and sockets in 12 processes or more.
"""

from __future__ import annotations

import os
import resource
import shutil
import signal
import socket
import sys
import tempfile
from contextlib import contextmanager
from typing import TYPE_CHECKING

from common import OPSKIT, machine, median_cpu, ratio, side_by_side, table, verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

FDS = 200_000
LSOF, LSFD = 0.35, 0.5
KINDS = ("pipe", "file", "tcp", "unix", "mixed")


def most_fds() -> int:
    """How many a process may have; as root the limit is raised first."""
    wanted = FDS + 100
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, wanted))
    except (ValueError, OSError):
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return min(FDS, resource.getrlimit(resource.RLIMIT_NOFILE)[0] - 50)


def open_fds(kind: str, number: int, directory: str) -> list[object]:
    """Open so many fds of a kind."""
    kept: list[object] = []
    if kind == "mixed":
        for each in KINDS[:-1]:
            kept += open_fds(each, number // 4, directory)
    elif kind == "pipe":
        kept += [os.pipe() for _ in range(number // 2)]
    elif kind == "unix":
        kept += [socket.socketpair() for _ in range(number // 2)]
    elif kind == "file":
        kept += [os.open(f"{directory}/{each}", os.O_CREAT | os.O_WRONLY) for each in range(number)]
    else:
        listeners = [socket.create_server(("127.0.0.1", 0), backlog=1024) for _ in range(8)]
        kept += listeners
        for each in range((number - 8) // 2):
            listener = listeners[each % 8]
            kept += [socket.create_connection(listener.getsockname()), listener.accept()[0]]
    return kept


@contextmanager
def holders(kinds: list[str], number: int) -> Iterator[list[int]]:
    """Processes that hold so many fds of a kind each, until the block ends; their PIDs."""
    ready = os.pipe()
    pids = []
    with tempfile.TemporaryDirectory() as directory:
        try:
            for place, kind in enumerate(kinds):
                pid = os.fork()
                if pid == 0:
                    own = f"{directory}/{place}"
                    os.mkdir(own)
                    kept = open_fds(kind, number, own)
                    os.write(ready[1], b"." if kept else b"!")
                    while True:
                        signal.pause()
                pids.append(pid)
            for _ in kinds:
                os.read(ready[0], 1)
            yield pids
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)


def others(pid: int | None) -> dict[str, list[str]]:
    """The programs to compare with, of a process or of the machine."""
    found = {}
    if shutil.which("lsof"):
        found["lsof"] = ["lsof", "-nP", *([] if pid is None else ["-p", str(pid)])]
    if shutil.which("lsfd"):
        found["lsfd"] = ["lsfd", *([] if pid is None else ["-p", str(pid)])]
    return found


def commands(pid: int | None) -> dict[str, list[str]]:
    """What is measured."""
    ours = [OPSKIT, "fds", *([] if pid is None else [str(pid)]), "-f", "text"]
    return {"opskit fds": ours, **others(pid)}


def compare(what: str, pid: int | None, runs: int, *, small: int | None = None) -> bool:
    """Measure; return whether the bounds are kept. `small`: a process with few fds, whose costs are those of every start."""
    print(what)
    starts = {} if small is None else {f"{name}, few fds": words for name, words in commands(small).items()}
    costs = side_by_side({**commands(pid), **starts}, runs)
    table(costs)
    mine = costs["opskit fds"]
    kept = []
    for name, bound in (("lsof", LSOF), ("lsfd", LSFD)):
        if name not in costs:
            continue
        whole = ratio(mine, costs[name])
        if small is None:
            kept.append(verdict(f"fds / {name}", whole, bound))
            continue
        print(f"  fds / {name}, whole commands: {whole:.3f}")
        ours, theirs = (
            median_cpu(costs[each]) - median_cpu(costs[f"{each}, few fds"]) for each in ("opskit fds", name)
        )
        kept.append(verdict(f"fds / {name}, for each fd", ours / theirs, bound))
    kept.append(verdict("peak memory, MB", max(cost.peak_bytes for cost in mine) / 1e6, 250))
    return all(kept)


def main() -> int:
    """Measure all cases; exit code 1 where a bound is missed."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    print(machine())
    most = most_fds()
    kept = []
    for kind in KINDS:
        number = min(most, 50_000) if kind in ("tcp", "mixed") else most  # ports of one address
        with holders([kind], number) as (pid,), holders(["pipe"], 2) as (few,):
            small = None if number == FDS else few
            kept.append(compare(f"one process, {number:,} fds: {kind}", pid, runs, small=small))
    processes = max(12, -(-FDS // most))
    with holders((["mixed"] + ["pipe", "file", "unix"] * processes)[:processes], FDS // processes):
        kept.append(compare(f"the machine, {FDS:,} fds in {processes} processes", None, runs))
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(main())
