"""Work in a thread of its own: Ctrl-C ends it, also where no signal interrupts it."""

from __future__ import annotations

import os
import signal
import sys
import threading

import pytest

from opskit.commands.shared.in_thread import in_thread


def test_ctrl_c():
    """It raises at once, with the streams that there were; the work may hang on."""
    streams, end = (sys.stdout, sys.stderr), threading.Event()

    def work():
        sys.stdout = sys.stderr = None
        os.kill(os.getpid(), signal.SIGINT)
        end.wait()

    with pytest.raises(KeyboardInterrupt):
        in_thread(work)
    assert (sys.stdout, sys.stderr) == streams
    end.set()


def test_what_the_work_returns_or_raises():
    """As if it were called."""
    assert in_thread(lambda: 7) == 7
    with pytest.raises(ZeroDivisionError):
        in_thread(lambda: 1 / 0)
