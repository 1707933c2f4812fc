"""`opskit tcp`: CPU on 20,000 sockets beside ss(8), and its figures on staged networks beside the truth.

    sudo python benchmarks/tcp.py [cpu|accuracy]... [runs=N]

The sockets are in a network namespace of their own, the staged networks in two each (tests/support/netlab.py).
"""

from __future__ import annotations

import contextlib
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))

import netlab
from common import OPSKIT, machine, ratio, side_by_side, table, verdict
from netcases import CASES, Case, group_of, look, staged

if TYPE_CHECKING:
    from collections.abc import Iterator

PROCESSES, CONNECTIONS = 20, 1000
NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
SHARE_BOUND, LOSS_BOUND = 5, 0.2


@contextlib.contextmanager
def sockets() -> Iterator[str]:
    """A network namespace with 20,000 connected sockets: the file to enter it by."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with netlab.line(veth=True) as line:
        for port in range(7000, 7000 + PROCESSES // 2):
            line.here("hold", listen=port, connections=CONNECTIONS)
            line.here("hold", connect=port, connections=CONNECTIONS, to=0)
        yield line.spaces[0]


def cpu(runs: int) -> bool:
    """Whole commands: as an unprivileged user without owners, as root with them."""
    with sockets() as space:
        inside = netlab.entering(space)
        kept = []
        # Root comes first: it may write byte code.
        for options, bound, user, whose in (("-tinpa", 0.85, [], "as root"), ("-tina", 1.4, NOBODY, "as nobody")):
            commands = {
                f"ss {options}, {whose}": [*inside, *user, "ss", options],
                f"opskit tcp -f text, {whose}": [*inside, *user, OPSKIT, "tcp", "-f", "text"],
            }
            _check(commands)
            print(f"{PROCESSES * CONNECTIONS} sockets of {PROCESSES} processes, {whose}")
            costs = side_by_side(commands, runs)
            table(costs)
            theirs, ours = costs.values()
            kept.append(verdict(f"tcp / ss {options}", ratio(ours, theirs), bound))
    return all(kept)


def _check(commands: dict[str, list[str]]) -> None:
    """Both work, and see the sockets."""
    for command in commands.values():
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode not in (0, 1) or not done.stdout:
            sys.exit(f"{command} failed: {done.stderr}")


def accuracy(runs: int) -> bool:
    """The staged cases one by one, seen from both ends: verdicts, shares and loss beside the truth."""
    losing = {"forth": {"delay_ms": 10, "loss": 0.02, "rate": 5e6}, "back": {"delay_ms": 10}}
    slow_line = CASES["slow line"]
    cases = {**CASES, "loss 2 %": slow_line._replace(line=losing, here_says={"network-loses"})}
    kept = []
    for name, case in cases.items():
        for _ in range(runs):
            kept += _staged(name, case)
    return all(kept)


def _staged(name: str, case: Case) -> Iterator[bool]:
    with staged(case) as ends:
        time.sleep(1.5)
        before = ends.totals(), ends.line.carried() if not case.line.get("veth") else None
        result = look(ends.here.pid, ends.there.pid)
        after = ends.totals(), ends.line.carried() if not case.line.get("veth") else None
    here, there = (group_of(result, each.pid) for each in (ends.here, ends.there))
    for group, says in ((here, case.here_says), (there, case.there_says)):
        print(
            f"  {name:<22} {'server' if group.inbound else 'client':<7} {group.verdict:<28} {'ok' if group.verdict in says else 'WRONG'}"
        )
        yield group.verdict in says
    if here.shares and there.shares:
        truth = netlab.shares(*zip(before[0], after[0]))
        for group, peer, own in ((here, truth.server, truth.client), (there, truth.client, truth.server)):
            off = max(
                abs(group.shares.peer - peer), abs(group.shares.network - truth.line), abs(group.shares.here - own)
            )
            said = " ".join(f"{100 * share:.1f}" for share in group.shares)
            yield verdict(
                f"  shares {said}, true {100 * peer:.1f} {100 * truth.line:.1f} {100 * own:.1f}: points",
                100 * off,
                SHARE_BOUND,
            )
    if here.verdict == "network-loses":
        truth = netlab.loss(before[1], after[1])
        yield verdict(
            f"  loss {100 * here.rates.loss:.2f} %, true {100 * truth:.2f} %: points",
            100 * abs(here.rates.loss - truth),
            LOSS_BOUND,
        )


def main() -> int:
    """Measure and print the chosen sections; exit code 1 where a bound is missed."""
    chosen = [word for word in sys.argv[1:] if "=" not in word]
    runs = next((int(word.partition("=")[2]) for word in sys.argv[1:] if word.startswith("runs=")), None)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed opskit has its byte code
    print(machine())
    kept = []
    if "cpu" in chosen or not chosen:
        kept.append(cpu(runs or 5))
    if "accuracy" in chosen or not chosen:
        kept.append(accuracy(runs or 1))
    print("all bounds are kept" if all(kept) else "a bound is MISSED")
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(main())
