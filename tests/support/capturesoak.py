"""Captures of a busy machine, each replayed through every command: `python tests/support/capturesoak.py [N=20]`.

While they are made JVMs start and end, short processes run, a compiler-like load reads and writes, and connections come and go.
Each replay must end with an exit code of 0, 1 or 2 and without a traceback; doctor must find what it found when the capture was made.
"""
# ruff: noqa: E402

from __future__ import annotations

import json
import os
import random
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tests" / "support"), str(ROOT)]

import inprocess
import jvms
from taping import codes_in, packed_and_loaded, show

from opskit import cli
from opskit.commands.shared.capturing import Wanted, make_tape
from opskit.commands.shared.every_command import every_line
from opskit.host import Host
from opskit.recorded_host import RecordedHost

MODES = (("sleep=5",), ("blocked=2",), ("deadlock",), ("allocate=3000000", "gc=100"), ("park=3", "burn=2:1"))
WORK = "import os, tempfile\nfor n in range(400):\n with tempfile.TemporaryFile() as f: f.write(bytes(99999)); f.flush(); f.seek(0); f.read()"


def main(captures: int) -> int:
    """Make and replay them; the number of faults."""
    ends, faults = threading.Event(), 0
    threads = [threading.Thread(target=each, args=(ends,), daemon=True) for each in (_jvms, _processes, _connections)]
    for each in threads:
        each.start()
    place = Path(os.environ.get("TMPDIR", "/tmp"))
    try:
        for number in range(captures):
            faults += _one(number, place)
    finally:
        ends.set()
        for each in threads:
            each.join(30)
    print(f"{captures} captures, {faults} faults")
    return faults


def _one(number: int, place: Path) -> int:
    begun_s = time.process_time()
    host = Host.at(None, None)
    tape, captured = make_tape(host, cli.group, Wanted(interval_s=0.5, redacts=bool(number % 2)))
    made_s = time.process_time() - begun_s
    loaded = packed_and_loaded(tape, place)
    faults = [f"{line}: {why}" for line, why in captured.without if "a bug" in why]
    jvms_there = [int(line.split()[1]) for line in captured_lines(captured, "jmx")]
    there = {each.code for each in captured.seen}
    lines = ["doctor --all", *every_line(jvms_there, jvms_there)]
    for line in lines:
        try:
            ran = show(RecordedHost(loaded), f"{line} -f json")
        except Exception as error:
            faults.append(f"{line}: {error!r}")
            continue
        if ran.code not in (0, 1, 2) or "Traceback" in ran.err:
            faults.append(f"{line}: exit {ran.code} {ran.err[-300:]}")
        if line == "doctor --all":
            faults += [f"doctor found {code}" for code in set(codes_in(json.loads(ran.out))) - there]
            faults += [f"doctor lost {code}" for code in there - set(codes_in(json.loads(ran.out)))]
    made = f"{captured.processes} processes, {captured.jvms} JVMs, {made_s:.1f} CPU s"
    print(f"capture {number}: {made}; {len(lines)} lines; {' '.join(sorted(there))}", *faults, sep="\n  ", flush=True)
    return len(faults)


def captured_lines(captured, name):
    """The lines of a command that gave something; JVMs that are there."""
    return [f"{name} {pid}" for pid in _java() if not any(line == f"{name} {pid}" for line, _ in captured.without)]


def _java():
    return [int(each) for each in os.listdir("/proc") if each.isdigit() and _name(each) == "java"]


def _name(pid):
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def _jvms(ends):
    running = []
    while not ends.wait(0.7):
        running.append(jvms.start(*random.choice(MODES), options=("-Xmx64m",)))  # noqa: S311
        if len(running) > 3:
            running.pop(0).stop()
    for each in running:
        each.stop()


def _processes(ends):
    while not ends.wait(0.05):
        subprocess.run([sys.executable, "-c", WORK], check=False)
        subprocess.run(["sh", "-c", "seq 20000 | sort | uniq | tail -1 | cat >/dev/null"], check=False)


def _connections(ends):
    with socket.create_server(("127.0.0.1", 0)) as server:
        while not ends.wait(0.005):
            with socket.create_connection(server.getsockname()) as one, server.accept()[0] as other:
                one.sendall(bytes(5000))
                other.recv(9999)


if __name__ == "__main__":
    assert inprocess
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 20) > 0)
