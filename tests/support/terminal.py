"""Run a command on a pseudo-terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios

SILENT_S = 120  # a loaded machine may need long


def on_terminal(*arguments, env=None, rows=24, columns=80, question="", answer=b"", meanwhile=None, wrapper=()):
    """Run `opskit` on a pseudo-terminal and type the answer at the question; return the exit code and the output.

    `meanwhile` is called before the answer is typed. `wrapper` comes before Python (unshare, …).
    """
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    own_session = ("setsid", "-c", "-w")  # so that Ctrl-C works
    process = subprocess.Popen(
        [*own_session, *wrapper, sys.executable, "-m", "opskit", *arguments],
        stdin=follower,
        stdout=follower,
        stderr=follower,
        env={**os.environ, "TERM": "xterm-256color", **(env or {})},
    )
    os.close(follower)
    shown = b""
    while True:
        if not select.select([leader], [], [], SILENT_S)[0]:
            process.kill()
            raise AssertionError(f"no output for {SILENT_S} s after {shown.decode()!r}")
        try:
            chunk = os.read(leader, 65536)
        except OSError:
            break
        if not chunk:
            break
        shown += chunk
        if answer and question.encode() in shown:
            if meanwhile is not None:
                meanwhile()
            os.write(leader, answer)
            answer = b""
    os.close(leader)
    return process.wait(), shown.decode()
