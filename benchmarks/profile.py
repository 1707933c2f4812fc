"""`opskit jpmp PID --on-cpu` against async-profiler 4.0 in the same window: methods and their shares.

    sudo python benchmarks/profile.py [--programs h2,lucene] [--jdks 17,21] [--seconds 20] [--hz 199] [--no-debug] [--floor]

Needs Maven, javac and the tests' JVMs. Points are differences of shares of all samples, over the methods with 5 % or more in either
profile. leaf: the Java method that ran or that called the native code that ran; inclusive: all Java methods on the stack; raw: the
frame that ran, without the kernel's. chance: what the top row may be off by, with so few samples (95 %). failed: what async-profiler
could not walk, which may belong to any method. rooted: samples that end at the entry of a thread; expl.: CPU time explained.

async-profiler's event is cpu: a clock of each thread, which sees more of the kernel than there is where threads stop and go often, as
`perf record -p` does (`perf record -a` does not). kernel: the share of kernel mode by either, and by the kernel's own accounting. itimer
is one clock for the process, at the kernel's ticks; ctimer has one for each thread, and sees too little of those that run for less.
--floor compares async-profiler with itself, in short windows by turns: what no profiler can be nearer than.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from typing import NamedTuple

import psutil
from common import OPSKIT, machine
from profile_baseline import recording
from profile_footer import Footer
from profile_programs import PROGRAMS, VERSIONS, Case, java
from profile_stacks import (
    Difference,
    Profile,
    compare,
    in_kernel,
    leaf_frame,
    leaf_method,
    methods,
    noise,
    parse,
    parse_baseline,
    shares,
)  # fmt: skip

_WAYS = {"leaf": leaf_method, "inclusive": methods, "raw": leaf_frame}
_TURNS = 5
_ROOTED, _EXPLAINED = 0.95, 0.97
_FLAGS = ("-XX:+UnlockDiagnosticVMOptions",)


class Window(NamedTuple):
    """A window in both profilers. `failed`: the share that async-profiler could not walk; `footer`: what opskit says of its own.

    `system`: the share of system time by the kernel's accounting.
    """

    ours: Profile
    theirs: Profile
    failed: float
    footer: Footer
    system: float


def window(pid: int, seconds: float, hz: float, event: str) -> Window:
    """Profile a JVM with both at once."""
    command = [
        OPSKIT,
        "jpmp",
        str(pid),
        "--on-cpu",
        "--sampler",
        "unwind",
        "-F",
        f"{hz:g}",
        "--duration",
        f"{seconds:g}s",
    ]
    with recording(pid, event) as recorded:
        before = psutil.Process(pid).cpu_times()
        done = subprocess.run([*command, "-f", "folded", "--full-names"], capture_output=True, text=True, check=False)
        after = psutil.Process(pid).cpu_times()
    user, system = after.user - before.user, after.system - before.system
    if done.returncode not in {0, 1}:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr}")
    return Window(
        parse(done.stdout), *parse_baseline(recorded.text), Footer(done.stderr), system / ((user + system) or 1)
    )


def floor(pid: int, seconds: float, event: str) -> dict[str, Difference]:
    """async-profiler against itself: windows by turns, so that what changes in the program meets both."""
    sides = (Profile(), Profile())
    for turn in range(2 * _TURNS):
        with recording(pid, event) as recorded:
            time.sleep(seconds / _TURNS)
        sides[turn % 2].update(parse_baseline(recorded.text)[0])
    return differences(*sides)


def differences(ours: Profile, theirs: Profile) -> dict[str, Difference]:
    """By leaf, by inclusive share, by raw leaf."""
    return {name: compare(shares(ours, of), shares(theirs, of)) for name, of in _WAYS.items()}


def kernel(profile: Profile) -> float:
    """The percentage of samples in the kernel."""
    return 100 * in_kernel(profile) / (sum(profile.values()) or 1)


def shown(found: dict[str, Difference], by_chance: float) -> str:
    """The columns of a comparison. `tie`: the top rows are exchanged, and nearer than chance allows to tell."""
    lead = found["leaf"].lead
    top = "same " if not lead else "tie  " if lead <= by_chance else "OTHER"
    return f"{top}  " + "  ".join(f"{each.most:5.1f} /{each.mean:5.1f}" for each in found.values())


def judged(case: Case, seen: Window, found: dict[str, Difference], by_chance: float) -> bool:
    """Whether the bounds are kept; what async-profiler could not walk may belong to any method."""
    leaf, inclusive, unknown = found["leaf"], found["inclusive"], 100 * seen.failed
    within = leaf.most <= case.leaf + unknown and inclusive.most <= case.inclusive + unknown
    within = within and max(leaf.mean, inclusive.mean) <= case.mean + unknown and leaf.lead <= by_chance
    return within and seen.footer.rooted >= _ROOTED and seen.footer.explained >= _EXPLAINED


def options_of(how: argparse.Namespace) -> tuple[str, ...]:
    """The JVM's options: the same flag for both profilers."""
    return (*_FLAGS, f"-XX:{'-' if how.no_debug else '+'}DebugNonSafepoints")


def run(name: str, version: int, how: argparse.Namespace) -> bool:
    """Profile one program, print its row; whether it keeps its bounds."""
    case, event = PROGRAMS[name], how.event
    with case.start(java(name, version), options_of(how)) as program:
        time.sleep(how.warmup)
        if how.floor:
            found = floor(program.pid, how.seconds, event)
            print(f"{name:<14} {version:>3}  {shown(found, 100)}   (async-profiler with itself)", flush=True)
            return True
        seen = window(program.pid, how.seconds, how.hz, event)
    found = differences(seen.ours, seen.theirs)
    footer = seen.footer
    samples = min(sum(seen.theirs.values()), footer.samples)
    by_chance = noise(shares(seen.theirs, leaf_method), samples)
    kept = judged(case, seen, found, by_chance)
    print(
        f"{name:<14} {version:>3}  {shown(found, by_chance)}  {by_chance:5.1f}  {100 * seen.failed:5.1f}  {footer.samples:>7,}"
        f"  {100 * footer.rooted:5.1f} {100 * footer.explained:6.1f}  {footer.lost:>4}"
        f"  ({case.leaf:g}, {case.inclusive:g}) {'ok' if kept else 'MISSED'}",
        flush=True,
    )
    if not kept or how.verbose:
        for way, each in found.items():
            print(f"    {way}: {each.worst}")
        print(
            f"    kernel: {kernel(seen.ours):.1f} against {kernel(seen.theirs):.1f} %, accounted {100 * seen.system:.1f} %"
        )
        print("   ", footer.text.strip().replace("\n", "\n    "))
    return kept


def main() -> int:
    """Run the chosen programs; 1 where a bound was missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", default=",".join(PROGRAMS), help="names, with commas between (all)")
    parser.add_argument("--jdks", default=",".join(map(str, VERSIONS)), help="versions, with commas between (all)")
    parser.add_argument("--seconds", type=float, default=20, help="length of a window (20)")
    parser.add_argument("--warmup", type=float, default=20, help="seconds before the window (20)")
    parser.add_argument("--hz", type=float, default=199, help="opskit's samples a second and CPU (199)")
    parser.add_argument(
        "--event", default="cpu", choices=("cpu", "itimer", "ctimer"), help="async-profiler's event (cpu)"
    )
    parser.add_argument("--no-debug", action="store_true", help="run without -XX:+DebugNonSafepoints")
    parser.add_argument("--floor", action="store_true", help="compare async-profiler with itself")
    parser.add_argument("--verbose", action="store_true", help="print the largest differences of every run")
    how = parser.parse_args()
    print(f"{machine()}; {how.seconds:g} s at {how.hz:g} Hz")
    print(
        "program        JDK  top    leaf max/mean  inclusive     raw leaf      chance  failed  samples  rooted  expl.  lost  (bounds)"
    )
    kept = [
        run(name, version, how)
        for name in how.programs.split(",")
        for version in map(int, how.jdks.split(","))
        if version in PROGRAMS[name].versions
    ]
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(main())
