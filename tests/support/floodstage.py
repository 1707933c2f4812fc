"""A flood of datagrams over a veth pair between two network namespaces, whose packets RPS gives to one CPU, where a spinner is pinned.

It needs root, two CPUs, unshare, nsenter, ip and a C compiler. Nothing of it stays: the namespaces are those of two processes, which end.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

_SPINNER = Path(__file__).resolve().parents[1] / "native" / "spinner.c"
_ENOUGH, _WANTED, _MOST = 0.22, 0.3, 400_000  # shares of the spinner's CPU; packets a second
_HOLD = "echo READY && read end"
_FLOOD = """
import os, socket, sys, time
cpu, rate = int(sys.argv[1]), float(sys.argv[2])
os.sched_setaffinity(0, {cpu})
os.setpriority(os.PRIO_PROCESS, 0, -20)  # whatever else runs there
there = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
there.connect(("10.77.0.2", 9))
begun, sent = time.monotonic(), 0
while True:
    due = min(int((time.monotonic() - begun) * rate) - sent, 64)
    for _ in range(due):
        try: there.send(b"x" * 64)
        except OSError: pass
    sent += max(due, 0)
    if due < 8: time.sleep(0.0002)
"""


class Stage:
    """What runs. `cpu`: gets the packets; `other`: sends them. `interface`: that receives them. `spinner`: its process."""

    def __init__(self, cpu: int, other: int, interface: str, receiver: int, spinner: subprocess.Popen[str]) -> None:
        self.cpu, self.other, self.interface, self.receiver, self.spinner = cpu, other, interface, receiver, spinner
        self.seen: list[tuple[int, ...]] = []
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for line in self.spinner.stdout or ():
            self.seen.append(tuple(map(int, line.split())))

    def lost(self, begin_ns: int, end_ns: int) -> float:
        """The share of its time on the CPU that the spinner lost to interrupts; 0 where it got no time."""
        inside = [each for each in self.seen if begin_ns <= each[0] <= end_ns]
        if len(inside) < 2:
            return 0.0
        passed, gaps, used = (after - before for before, after in zip(inside[0], inside[-1]))
        waited = passed - used
        return (gaps - waited) / used if used else 0.0

    def restore(self) -> None:
        """Undo what a test has moved."""
        os.sched_setaffinity(self.spinner.pid, {self.cpu})
        _inside(self.receiver, f"echo {1 << self.cpu:x} > /sys/class/net/{self.interface}/queues/rx-0/rps_cpus")

    def rps_cpus(self) -> str:
        """The mask of RPS, as the kernel has it."""
        return _inside(self.receiver, f"cat /sys/class/net/{self.interface}/queues/rx-0/rps_cpus").strip()


@contextmanager
def flood(folder: Path, rate: int) -> Iterator[Stage]:
    """So many datagrams a second, or more, where they take less than a fourth of the CPU."""
    cpus = sorted(os.sched_getaffinity(0))
    tools = ("unshare", "nsenter", "ip", "gcc")
    if os.geteuid() != 0 or len(cpus) < 2 or not all(map(shutil.which, tools)):
        pytest.skip(f"needs root, two CPUs and {', '.join(tools)}")
    cpu, other = cpus[:2]
    program = folder / "spinner"
    subprocess.run(["gcc", "-O2", "-o", program, _SPINNER], check=True)
    with ExitStack() as stack:
        here, there = (_started(stack, ["unshare", "-n", "sh", "-c", _HOLD], stdin=subprocess.PIPE) for _ in range(2))
        for holder in (here, there):
            assert holder.stdout.readline() == "READY\n"
        names = f"opf{os.getpid() % 10**6}a", f"opf{os.getpid() % 10**6}b"
        _run(
            "ip",
            "link",
            "add",
            names[0],
            "netns",
            str(here.pid),
            "type",
            "veth",
            "peer",
            "name",
            names[1],
            "netns",
            str(there.pid),
        )
        for holder, name, address in ((here, names[0], "10.77.0.1/24"), (there, names[1], "10.77.0.2/24")):
            _run(
                "nsenter",
                f"--net=/proc/{holder.pid}/ns/net",
                "sh",
                "-c",
                f"ip addr add {address} dev {name}; ip link set {name} up",
            )
        _inside(there.pid, f"echo {1 << cpu:x} > /sys/class/net/{names[1]}/queues/rx-0/rps_cpus")
        stage = Stage(cpu, other, names[1], there.pid, _started(stack, [program, str(cpu)]))
        _send(stack, stage, here.pid, rate)
        yield stage


def _send(stack: ExitStack, stage: Stage, sender: int, rate: float) -> None:
    """Raise the rate until the spinner loses a fourth of its CPU: a packet costs three times as much on some machines as on others."""
    for _ in range(3):
        words = [sys.executable, "-c", _FLOOD, str(stage.other), str(rate)]
        sending = _started(stack, ["nsenter", f"--net=/proc/{sender}/ns/net", *words])
        time.sleep(0.2)
        begin_ns = time.monotonic_ns()
        time.sleep(0.3)
        lost = stage.lost(begin_ns, time.monotonic_ns())
        if lost >= _ENOUGH or rate >= _MOST:
            return
        sending.kill()
        rate = min(rate * _WANTED / max(lost, 0.1), _MOST)


def _started(stack: ExitStack, words: list[object], **options: object) -> subprocess.Popen[str]:
    process = subprocess.Popen([*map(str, words)], stdout=subprocess.PIPE, text=True, **options)  # type: ignore[call-overload]
    stack.callback(process.wait)
    stack.callback(process.kill)
    return process


def _inside(pid: int, line: str) -> str:
    """Run a line of a shell in the network namespace of a process, which sysfs shows too."""
    script = f"mount -t sysfs sysfs /sys && {line}"
    return _run("nsenter", f"--net=/proc/{pid}/ns/net", "unshare", "-m", "sh", "-c", script)


def _run(*words: str) -> str:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (words, done.stderr)
    return done.stdout
