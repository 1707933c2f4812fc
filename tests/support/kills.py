"""Kill every command at random moments, and look for leftovers.

    sudo python tests/support/kills.py [KILLS] [SEED] [CASE…]     50 kills of each case; prints a table

After SIGTERM, SIGHUP and SIGINT nothing may be left: no temporary file, no dump in the JVM's /tmp, no tracing instance, no
process, no stopped or traced thread, no mount, no process in another cgroup. After SIGKILL files may be left, and one more
complete run removes them.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path
from typing import NamedTuple

import jvms

ROOT = Path(__file__).resolve().parents[2]
SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGKILL)
MARK = "OPSKIT_TEST_KILLS"
GRACE_S = 30.0

# PID: the JVM; DIR: the directory of the case.
CASES = {
    "doctor": "doctor",
    "doctor --ask": "doctor PID --ask",
    "pipes": "pipes --ends --fill",
    "limits": "limits PID",
    "limits --probe": "limits PID --probe",
    "fds": "fds PID",
    "fds --ask": "fds PID --ask",
    "fds --deleted": "fds --deleted",
    "fds -w": "fds PID -w -i 0.1 -c 3",
    "tcp": "tcp -i 0.3",
    "tcp --ask": "tcp PID --ask -i 0.3",
    "tcp -w": "tcp -w -i 0.2 -c 2",
    "clock": "clock PID",
    "clock -w": "clock -w -i 0.1 -c 4",
    "cswitch": "cswitch -i 0.3",
    "cswitch --ask": "cswitch PID --ask -i 0.3",
    "cswitch --bench": "cswitch --bench --pin one --ws 64K",
    "cswitch -w": "cswitch PID -w -i 0.2 -c 2",
    "io": "io -i 0.3",
    "io --ask": "io PID --ask -i 0.3",
    "io -w": "io PID -w -i 0.2 -c 2",
    "irqs": "irqs -i 0.3",
    "irqs -w": "irqs -w -i 0.2 -c 2",
    "irqs --jitter": "irqs --jitter -i 0.3",
    "irqs -o x.svg": "irqs -i 0.2 -o DIR/out.svg",
    "dentry": "dentry",
    "dentry --culprit": "dentry --culprit 300ms",
    "oom": "oom",
    "jvms": "jvms",
    "hsperf-check": "hsperf-check",
    "hsperf-check --probe": "hsperf-check PID --probe",
    "jpmp": "jpmp PID 3 0.05",
    "jpmp --save": "jpmp PID 3 0.05 --save DIR",
    "jpmp --virtual": "jpmp PID 2 0.05 --virtual",
    "jpmp -o x.svg": "jpmp PID 2 0.05 -o DIR/out.svg",
    "jmap-diff": "jmap-diff PID -i 0.1 -c 2 --yes",
    "jmap-diff --save": "jmap-diff PID -i 0.1 -c 2 --save DIR --yes",
    "jmx": "jmx PID",
    "jmx -w": "jmx PID -w -i 0.2 -c 2",
    "safepoints": "safepoints PID -i 0.1 -c 3",
}
CASES.update(
    {
        f"{name} -o x.json": f"{words} -o DIR/out.json"
        for name, words in list(CASES.items())
        if " -o " not in name and "DIR" not in words
    }
)


class Tally(NamedTuple):
    """The result of a case: kills, how many came before its end, files that SIGKILL left, problems."""

    kills: int
    in_time: int
    left_by_sigkill: int
    problems: list[str]


class Case:
    """One command line that is killed repeatedly."""

    def __init__(self, words: str, pid: int, rng: random.Random) -> None:
        self.pid, self.rng = pid, rng
        self.place = tempfile.TemporaryDirectory(prefix="kills-")
        self.directory = Path(self.place.name)
        self.words = [word.replace("PID", str(pid)).replace("DIR", str(self.directory)) for word in words.split()]
        self.traces = "--culprit" in words
        self.problems: list[str] = []
        self.own: set[str] = set()  # the PIDs of the runs: others may run opskit meanwhile
        self.in_time = self.left = 0

    def start(self) -> tuple[subprocess.Popen[str], str]:
        """Start the command; return it and the mark in its environment, which its children inherit."""
        mark = uuid.uuid4().hex
        process = subprocess.Popen(
            [sys.executable, "-m", "opskit", *self.words],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, cwd=ROOT,
            env={**os.environ, MARK: mark}, start_new_session=True,
        )  # fmt: skip
        self.own.add(str(process.pid))
        return process, mark

    def whole_run_s(self) -> float:
        """Run it to its end; return how long that took."""
        begun = time.monotonic()
        process, mark = self.start()
        _, err = process.communicate(timeout=300)
        if process.returncode not in (0, 1):
            self.problems.append(f"undisturbed: exit {process.returncode}: {err.strip()[-300:]}")
        took = time.monotonic() - begun
        self._await_end(mark, "undisturbed")
        return took

    def run(self, kills: int) -> Tally:
        """Kill it this many times."""
        lasts_s = self.whole_run_s()
        before = self._state()
        for number in range(kills):
            self._kill_once(SIGNALS[number % len(SIGNALS)], self.rng.random() * lasts_s, before)
        self.place.cleanup()
        return Tally(kills, self.in_time, self.left, self.problems)

    def _kill_once(self, number: signal.Signals, after_s: float, before: dict[str, object]) -> None:
        process, mark = self.start()
        time.sleep(after_s)
        what = f"{number.name} after {after_s:.3f} s"
        self.in_time += process.poll() is None
        process.send_signal(number)
        if self.rng.random() < 0.4:  # an impatient user sends it twice
            time.sleep(self.rng.random() * 0.02)
            process.send_signal(number)
        _, err = process.communicate(timeout=300)
        self._check_end(process.returncode, err, number, what)
        self._await_end(mark, what)
        after = self._state()
        if number == signal.SIGKILL:
            self.left += len(after["files"]) + len(after["instances"])  # type: ignore[arg-type]
            if after["files"] or after["instances"] or "--virtual" in self.words:  # the JVM may be about to write
                self.whole_run_s()
                after = self._state()
        for kind, value in before.items():
            if after[kind] != value:
                self.problems.append(f"{what}: {kind}: {after[kind]}, before {value}")
        self._check_whole(what)

    def _is_own(self, name: str) -> bool:
        """Whether a file in /tmp belongs to one of the runs."""
        return name.startswith(".opskit-") and name.split("-")[1] in self.own

    def _check_end(self, code: int, err: str, number: signal.Signals, what: str) -> None:
        frames = [line for line in err.splitlines() if line.lstrip().startswith("File ")]
        # Python itself was still starting; its own imports may turn the exception into another one.
        early = number == signal.SIGINT and ("KeyboardInterrupt" in err or all("<frozen" in frame for frame in frames))
        wanted = {0, 1, -number, 130 if number == signal.SIGINT else -number}
        if code not in wanted or ("Traceback" in err and not early):
            self.problems.append(f"{what}: exit {code}: {err.strip()[-300:]}")

    def _await_end(self, mark: str, what: str) -> None:
        """Wait for its children, which may still clean up."""
        deadline = time.monotonic() + GRACE_S
        while left := _marked(mark):
            if time.monotonic() > deadline:
                self.problems.append(f"{what}: processes {left} still run")
                return
            time.sleep(0.01)

    def _state(self) -> dict[str, object]:
        """Everything that a killed run could leave or change."""
        pid = self.pid
        statuses = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/status")]
        return {
            "files": [
                *(name for name in sorted(os.listdir(self.directory)) if name.startswith((".", "opskit"))),
                *(name for name in sorted(os.listdir("/tmp")) if self._is_own(name)),
                *(str(path) for path in (Path(f"/tmp/.attach_pid{pid}"), Path(f"/.attach_pid{pid}")) if path.exists()),
            ],
            "instances": _instances() if self.traces else [],
            "mounts": len(Path("/proc/self/mountinfo").read_text().splitlines()),
            "stopped or traced threads": [
                text for text in statuses if "TracerPid:\t0\n" not in text or "\nState:\tT" in text
            ],
            "cgroups of the JVM": Path(f"/proc/{pid}/cgroup").read_text(),
            "cgroups of ours": Path("/proc/self/cgroup").read_text(),
        }

    def _check_whole(self, what: str) -> None:
        """Check that an output is complete, from this run or an earlier one, or missing."""
        for path in self.directory.iterdir():
            text = path.read_text()
            try:
                whole = bool(json.loads(text)) if path.suffix == ".json" else bool(text)
            except ValueError:
                whole = False
            if path.suffix == ".svg":
                whole = text.rstrip().endswith("</svg>")
            if not whole:
                self.problems.append(f"{what}: {path.name} ends at {len(text)}")


def _instances() -> list[str]:
    script = "mount -t tracefs tracefs /sys/kernel/tracing && ls /sys/kernel/tracing/instances"
    done = subprocess.run(["unshare", "-m", "sh", "-c", script], capture_output=True, text=True, check=False)
    return [name for name in done.stdout.split() if name.startswith("opskit-") and name.count("-") > 3]


def _marked(mark: str) -> list[int]:
    """The processes that have this mark in their environment."""
    wanted = f"{MARK}={mark}".encode()
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            if wanted in Path(f"/proc/{name}/environ").read_bytes():
                found.append(int(name))
        except OSError:
            continue
    return found


def workload() -> jvms.Workload:
    """A JVM for all cases, with so many virtual threads that a dump of them takes a moment."""
    return jvms.start("virtual=8000", "sleep=5", version=25, options=("-Xmx512m",))


def run_case(name: str, kills: int, pid: int, seed: int) -> Tally:
    """Kill one case; `pid` is that of the JVM."""
    return Case(CASES[name], pid, random.Random(f"{seed} {name}")).run(kills)  # noqa: S311


def main() -> int:
    """Run all cases, or those named; exit code 1 if anything was left."""
    kills = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(1 << 32)  # noqa: S311
    names = sys.argv[3:] or list(CASES)
    print(f"{kills} kills of each of {len(names)} cases, seed {seed}")
    jvm = workload()
    run_case("jpmp", 0, jvm.pid, seed)  # starts its listener
    bad = 0
    try:
        for name in names:
            tally = run_case(name, kills, jvm.pid, seed)
            bad += len(tally.problems)
            print(
                f"{name:34} {tally.kills} kills, {tally.in_time} before its end, SIGKILL left {tally.left_by_sigkill} files, "
                f"{len(tally.problems)} problems",
                flush=True,
            )
            for problem in tally.problems:
                print(f"    {problem}")
    finally:
        jvm.stop()
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
