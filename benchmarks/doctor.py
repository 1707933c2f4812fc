"""`opskit doctor`: CPU seconds, peak memory and wall time at 1,000 processes and 4 JVMs; beside the commands that it stands for.

    python benchmarks/doctor.py [cost] [deadlines] [commands] [tools] [runs=N]

`cost`: the bounds. `deadlines`: the wall time with other deadlines. `commands`: the sum of opskit's single commands, one after the
other. `tools`: what an engineer types in the first minute (uptime, dmesg, vmstat, …, those that are installed), with windows of 1 s.
Processes and JVMs are started up to these numbers, and ended. The JVMs come from PyPI, as in the tests.
"""

from __future__ import annotations

import shutil
import sys

from common import OPSKIT, Cost, measure, median_cpu, run_sections, side_by_side, table, verdict
from stage import machine_of

PROCESSES, JVMS = 1000, 4
CPU_S, PEAK_MB, DEADLINE_S, LATE_S = 0.8, 60.0, 2.0, 0.2
DEADLINES_S = (0.05, 0.5, 1.0, 2.0, 3600.0)
DOCTOR = [OPSKIT, "doctor"]
COMMANDS = (
    *(
        "pipes",
        "tcp -i 1",
        "cswitch -i 1",
        "irqs -i 1",
        "io -i 1",
        "limits PID",
        "fds",
        "dentry",
        "mem",
        "oom",
        "clock",
    ),
    *("jvms -i 1", "hsperf-check", "safepoints PID -i 1 -c 1"),
)
TOOLS = (
    *(
        "uptime",
        "dmesg",
        "vmstat 1 2",
        "mpstat -P ALL 1 1",
        "pidstat 1 1",
        "iostat -xz 1 2",
        "free -m",
        "sar -n DEV 1 1",
    ),
    *("sar -n TCP,ETCP 1 1", "top -b -n 1"),
)


def cost(runs: int) -> bool:
    """The bounds of the defaults, in each format."""
    with machine_of(PROCESSES, JVMS):
        costs = side_by_side(
            {f"opskit doctor -f {name}": [*DOCTOR, "-f", name] for name in ("text", "table", "json")}, runs
        )
    table(costs)
    each = [one for many in costs.values() for one in many]
    return all([
        verdict("CPU seconds, median", max(map(median_cpu, costs.values())), CPU_S),
        verdict("peak of the largest process, MB", max(one.peak_bytes for one in each) / 1e6, PEAK_MB),
        verdict("wall seconds, worst", max(one.wall_s for one in each), DEADLINE_S + LATE_S),
    ])  # fmt: skip


def deadlines(runs: int) -> bool:
    """The wall time is at most the deadline and a little; with a long one, the run ends when all is done."""
    with machine_of(PROCESSES, JVMS):
        words = {f"--deadline {each:g}s": [*DOCTOR, "--deadline", f"{each:g}s"] for each in DEADLINES_S}
        costs = side_by_side(words, runs)
    table(costs)
    return all([  # noqa: C419  (each is printed)
        verdict(f"wall seconds, worst, {name}", max(one.wall_s for one in many), min(each, DEADLINE_S) + LATE_S)
        for each, (name, many) in zip(DEADLINES_S, costs.items())
    ])  # fmt: skip


def commands(runs: int) -> bool:
    """The sum of the single commands."""
    with machine_of(PROCESSES, JVMS) as pid:
        words = {each: [OPSKIT, *each.replace("PID", str(pid)).split()] for each in COMMANDS}
        return _beside("opskit's commands", words, runs)


def tools(runs: int) -> bool:
    """The sum of the tools."""
    words = {each: each.split() for each in TOOLS if shutil.which(each.split()[0])}
    with machine_of(PROCESSES, JVMS):
        return _beside(f"{len(words)} tools", words, runs)


def _beside(what: str, words: dict[str, list[str]], runs: int) -> bool:
    costs = {"opskit doctor": [measure(DOCTOR) for _ in range(runs)]}
    costs.update({name: [measure(command) for _ in range(min(runs, 3))] for name, command in words.items()})
    table(costs)
    ours, *theirs = costs.values()
    cpu_s, wall_s = sum(map(median_cpu, theirs)), sum(_median_wall(each) for each in theirs)
    print(
        f"  {what} together: cpu {cpu_s:.3f} s, wall {wall_s:.1f} s; doctor: {median_cpu(ours):.3f} s, {_median_wall(ours):.1f} s"
    )
    return True


def _median_wall(costs: list[Cost]) -> float:
    return sorted(each.wall_s for each in costs)[len(costs) // 2]


if __name__ == "__main__":
    sys.exit(run_sections({"cost": cost, "deadlines": deadlines, "commands": commands, "tools": tools}, runs=5))
