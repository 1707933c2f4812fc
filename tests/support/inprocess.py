"""A command line of opskit run in this process: four times as fast as a process of its own.

What a process has to itself is put back afterwards: standard streams, working directory, arguments, environment, the
garbage collector's threshold, the directories that were searched for leftovers. The OOM score is left alone.
"""

from __future__ import annotations

import gc
import io
import os
import signal
import sys
import threading
from contextlib import contextmanager
from typing import NamedTuple

import pytest

import opskit.actions.outfile
import opskit.host
from opskit import cli, interrupts

MAIN = os.path.join(os.path.dirname(cli.__file__), "__main__.py")  # sys.argv[0] of `python -m opskit`


class Ran(NamedTuple):
    """How a command line ended."""

    code: int
    out: str
    err: str


def run(*arguments, env=None, stdin="", timeout=120, encoding="utf-8", cwd="/") -> Ran:
    """Run `opskit ARGUMENTS`; an error that would be reported as a bug (exit code 70) is raised."""
    out = io.TextIOWrapper(io.BytesIO(), "utf-8", sys.__stdout__.errors)
    err = io.TextIOWrapper(io.BytesIO(), "utf-8", "backslashreplace")
    with pytest.MonkeyPatch.context() as patch, _stdin(stdin, encoding) as given, _limited(timeout, arguments):
        for name, value in (env or {}).items():
            patch.setenv(name, value)
        patch.chdir(cwd)
        patch.setattr(sys, "argv", [MAIN, *map(str, arguments)])
        patch.setattr(sys, "stdin", given)
        patch.setattr(sys, "stdout", out)
        patch.setattr(sys, "stderr", err)
        patch.setattr(opskit.host, "be_killed_first", lambda: None)
        patch.setattr(cli, "_report_bug", _raise)
        opskit.actions.outfile._looked_through.clear()
        threshold = gc.get_threshold()
        try:
            code = cli._run_and_flush()
            err.flush()
        finally:
            gc.set_threshold(*threshold)
        assert (interrupts._state.guards, interrupts._state.ended_by) == (0, 0), "a guard was not left"
    return Ran(code, _decoded(out, encoding), _decoded(err, encoding))


def _raise(error):
    raise error


def _decoded(stream, encoding):
    """The text, with the line ends that subprocess gives."""
    stream.buffer.seek(0)
    return io.TextIOWrapper(stream.buffer, encoding, "surrogateescape").read()


@contextmanager
def _stdin(text, encoding):
    """A pipe with this text, as subprocess makes one."""
    reading, writing = os.pipe()
    data = text.encode(encoding, "surrogateescape")

    def feed():
        try:
            with open(writing, "wb") as pipe:
                pipe.write(data)
        except BrokenPipeError:
            pass  # the command has read enough

    feeder = threading.Thread(target=feed) if len(data) > 65536 else None  # what a pipe holds
    feeder.start() if feeder else feed()
    try:
        with open(reading, encoding="utf-8", errors=sys.__stdin__.errors) as stream:
            yield stream
    finally:
        if feeder:
            feeder.join()


@contextmanager
def _limited(timeout, arguments):
    """Fail the test after so many seconds."""

    def late(_number, _frame):
        pytest.fail(f"opskit {arguments} took more than {timeout} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, timeout)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
