"""Networks for the tests: two network namespaces and the line between them, with programs that talk over it.

    with netlab.line(forth={"delay_ms": 20}, back={"delay_ms": 20}) as line:
        server = line.there("serve", listen=5432, think_ms=100)
        client = line.here("ask", connect=5432, think_ms=10, name="orders")

Nothing of it stays: the namespaces are those of the programs, which end with the block. It needs root, nsenter and ip.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

_BESIDE = Path(__file__).resolve().parent
START_S = 60
_numbers = itertools.count()


class Program:
    """A running netpeer.py. `pid`: its process."""

    def __init__(self, command: list[str]) -> None:
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd="/",
            env={**os.environ, "PYTHONHOME": sys.base_prefix},  # for a Python under another name
        )
        self.pid = self.process.pid

    def wait(self, wanted: str) -> str:
        """Its next line, which begins so."""
        line = self.process.stdout.readline()
        assert line.startswith(wanted), (line, self.process.args)
        return line

    def ready(self) -> Program:
        """Return it when its connections are made."""
        self.wait("READY")
        return self

    def totals(self) -> dict[str, float]:
        """What it has done so far: see netpeer.py."""
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        while not (line := self.process.stdout.readline()).startswith(("{", "[")):
            assert line, self.process.args
        return json.loads(line)

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(BrokenPipeError):
                stream.close()


class Shares(NamedTuple):
    """Of the time of requests and answers: of the server's program, the line, the client's program."""

    server: float
    line: float
    client: float


class Line:
    """Two namespaces. `spaces`: files to enter them by; `addresses`: IPv4 and IPv6 of each end."""

    def __init__(self, forwarder: Program, addresses: list[tuple[str, str]], place: Path) -> None:
        self.forwarder, self.addresses, self.place = forwarder, addresses, place
        fds = forwarder.wait("READY").split()[1:]
        self.spaces = [f"/proc/{forwarder.pid}/fd/{fd}" for fd in fds]
        self.programs: list[Program] = []

    def here(self, action: str, **wanted) -> Program:
        """Start a program in the first namespace: see netpeer.py. `connect`, `listen`: a port; `name`: of its program."""
        return self._start(0, action, wanted)

    def there(self, action: str, **wanted) -> Program:
        """Start one in the second."""
        return self._start(1, action, wanted)

    def _start(self, side: int, action: str, wanted: dict) -> Program:
        ipv6 = wanted.pop("ipv6", False)
        for key, place in (("listen", side), ("connect", wanted.pop("to", 1 - side))):
            if key in wanted:
                wanted[key] = [self.addresses[place][ipv6], wanted[key]]
        python = [self._python(wanted.pop("name"))] if "name" in wanted else [sys.executable]
        words = [*entering(self.spaces[side]), *python, str(_BESIDE / "netpeer.py")]
        self.programs.append(Program([*words, json.dumps({"action": action, **wanted})]))
        if "listen" in wanted:
            self.programs[-1].wait("LISTENS")
        else:
            self.programs[-1].ready()
        return self.programs[-1]

    def _python(self, name: str) -> str:
        """Python under another name, which a process is known by."""
        path = self.place / name
        shutil.copy(os.path.realpath(sys.executable), path)
        return str(path)

    def run(self, side: int, *command: object, **options) -> subprocess.CompletedProcess:
        """Run a command in a namespace to its end."""
        words = [*entering(self.spaces[side]), *map(str, command)]
        return subprocess.run(words, capture_output=True, text=True, check=False, timeout=START_S, **options)

    def carried(self) -> list[dict[str, int]]:
        """What the line was given and has dropped, forth and back."""
        return self.forwarder.totals()


def entering(space: str) -> list[str]:
    """The words before a command that is to run in a namespace."""
    return ["nsenter", f"--net={space}"]


@contextlib.contextmanager
def line(**wanted) -> Iterator[Line]:
    """A line as netline.py describes it; skip where it cannot be made."""
    if os.geteuid() != 0 or not shutil.which("nsenter") or not shutil.which("ip"):
        pytest.skip("needs root, nsenter (util-linux) and ip (iproute2)")
    if not wanted.get("veth") and not os.path.exists("/dev/net/tun"):
        pytest.skip("needs /dev/net/tun")
    made: list[Line] = []
    number = next(_numbers) % 256
    addresses = [(f"10.67.{number}.{end}", f"fd67:{number:x}::{end}") for end in (1, 2)]
    command = [sys.executable, str(_BESIDE / "netline.py"), json.dumps({**wanted, "addresses": addresses})]
    forwarder = Program(command)
    try:
        with tempfile.TemporaryDirectory() as place:
            made.append(Line(forwarder, addresses, Path(place)))
            yield made[0]
    finally:
        for program in [*(made[0].programs if made else ()), forwarder]:
            program.stop()


def shares(server: tuple[dict, dict], client: tuple[dict, dict]) -> Shares:
    """Who took the time between two totals of a server that thinks and its client, by their own clocks."""
    thought, waited, between = (
        (after[key] - before[key]) / (after["exchanges"] - before["exchanges"])
        for (before, after), key in ((server, "thought_s"), (client, "waited_s"), (client, "thought_s"))
    )
    whole = waited + between
    return Shares(thought / whole, (waited - thought) / whole, between / whole)


def loss(before: list[dict[str, int]], after: list[dict[str, int]], direction: int = 0) -> float:
    """The share of the data that the line has dropped between two readings of carried()."""
    given, dropped = (after[direction][key] - before[direction][key] for key in ("bytes", "dropped_bytes"))
    return dropped / given if given else 0.0
