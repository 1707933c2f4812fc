"""A pipe has one fill, whichever of its fds is asked."""

from __future__ import annotations

import pytest

from opskit.proc.kernel.syscalls import pipe_fill
from opskit.proc.recorded.tape import CALL, FDS, Mark, Origin, Tape
from opskit.recorded_host import RecordedHost

FILL = ["answer", [12, 65536, [15, 77, 4480, 0, 0, 1, 0, 1, 0, 1]]]


def test_by_another_fd():
    """Another process's, of the same pipe; none of another pipe, and nonsense is passed over."""
    tape = Tape(Origin(), (Mark(0.0, 0.0),))
    tape.keep(CALL, "proc.kernel.syscalls.pipe_fill(6,1,false)", ["answer", 3])
    tape.keep(CALL, "proc.kernel.syscalls.pipe_fill(7,1,false)", FILL)
    tape.keep(FDS, "/proc/8/fd", ((b"0", b"pipe:[77]", 4480), (b"1", b"pipe:[78]", 4480)))
    calls = RecordedHost(tape).fs.calls
    assert calls.ask(pipe_fill, 8, 0, False)[:2] == (12, 65536)
    for pid, fd in ((8, 1), (8, 2), (9, 0)):
        with pytest.raises(OSError, match="not in the capture"):
            calls.ask(pipe_fill, pid, fd, False)
