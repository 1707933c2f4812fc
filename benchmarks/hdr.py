"""`opskit hdr LOG` against HdrHistogram's own HistogramLogProcessor, and the package hdrhistogram of PyPI where it is found.

PYTHONPATH=DIRECTORY-OF-HDRHISTOGRAM python benchmarks/hdr.py      needs java, javac, Maven and 100 MB in the temporary directory

The log has 3,600 intervals of 20,000 values each (18.5 MB). Bounds: at most 1.2 times the CPU of the Java processor, at most 40 MiB,
also on ten such logs at once.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import tempfile
from pathlib import Path

from common import OPSKIT, median_cpu, ratio, run_sections, side_by_side, table, verdict

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests" / "support"))  # benchmarks have a jvms.py, too
JAR = "org.hdrhistogram:HdrHistogram:2.2.2"
INTERVALS, VALUES, MOST_RATIO, MOST_MIB = 3600, 20_000, 1.2, 40
PYPI = """
import sys
from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader
total = HdrHistogram(1, 3600000000000, 3)
reader = HistogramLogReader(sys.argv[1], total)
while reader.add_next_interval_histogram():
    pass
print(total.get_total_count(), [total.get_value_at_percentile(each) for each in (50, 90, 99, 99.9, 99.99)])
"""


def java_path() -> tuple[str, str]:
    """The class path of the library, and that of the program that writes the log."""
    import maven

    path = maven.jars(JAR)
    return path, maven.classes(HERE / "java" / "LatencyLog.java", path)


def one_log(runs: int) -> bool:
    """Figures of a whole log."""
    path, classes = java_path()
    with tempfile.TemporaryDirectory() as folder:
        log = f"{folder}/latency.hdr"
        write = ["java", "-cp", f"{path}:{classes}", "LatencyLog", log, str(INTERVALS), str(VALUES)]
        subprocess.run(write, check=True)
        processor = ["java", "-cp", path, "org.HdrHistogram.HistogramLogProcessor", "-i", log]
        commands = {
            "opskit hdr -f text": [OPSKIT, "hdr", log, "--unit", "ns", "-f", "text"],
            "opskit hdr --by 10s -f text": [OPSKIT, "hdr", log, "--unit", "ns", "--by", "10s", "-f", "text"],
            "HistogramLogProcessor": processor,
            "HistogramLogProcessor -o (intervals)": [*processor, "-o", f"{folder}/out"],
        }
        if importlib.util.find_spec("hdrh"):
            commands["PyPI hdrhistogram"] = [sys.executable, "-c", PYPI, log]
        print(f"{INTERVALS:,} intervals of {VALUES:,} values, {Path(log).stat().st_size / 1e6:.1f} MB")
        for command in commands.values():
            subprocess.run(command, check=True, capture_output=True)
        costs = side_by_side(commands, runs)
    table(costs)
    ours, theirs = costs["opskit hdr -f text"], costs["HistogramLogProcessor"]
    peak = max(cost.peak_bytes for cost in ours) / 2**20
    if "PyPI hdrhistogram" in costs:
        print(f"  of PyPI hdrhistogram (C): {median_cpu(ours) / median_cpu(costs['PyPI hdrhistogram']):.2f}")
    kept = [
        verdict("CPU of HistogramLogProcessor", ratio(ours, theirs), MOST_RATIO),
        verdict("peak, MiB", peak, MOST_MIB),
    ]
    by, intervals = costs["opskit hdr --by 10s -f text"], costs["HistogramLogProcessor -o (intervals)"]
    kept.append(verdict("--by: CPU of HistogramLogProcessor -o", ratio(by, intervals), MOST_RATIO))
    return all(kept)


def long_log(runs: int) -> bool:
    """The peak memory on ten times the intervals."""
    path, classes = java_path()
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "latency.hdr"
        write = ["java", "-cp", f"{path}:{classes}", "LatencyLog", str(log), str(INTERVALS // 4), str(VALUES)]
        subprocess.run(write, check=True)
        data = log.read_bytes()
        with log.open("ab") as out:
            for _ in range(39):  # StartTime again: as a program writes that is started again
                out.write(data)
        costs = side_by_side({"opskit hdr, 36,000 intervals": [OPSKIT, "hdr", str(log), "-f", "text"]}, min(runs, 1))
    table(costs)
    return verdict("peak, MiB", max(cost.peak_bytes for runs in costs.values() for cost in runs) / 2**20, MOST_MIB)


if __name__ == "__main__":
    sys.exit(run_sections({"one": one_log, "long": long_log}, 5))
