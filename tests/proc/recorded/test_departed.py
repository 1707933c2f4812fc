"""Processes that end between two samples of a capture."""

from __future__ import annotations

import pytest

from opskit.proc.recorded import tape as kinds
from opskit.proc.recorded.departed import Departed
from opskit.proc.recorded.implied import implied
from opskit.proc.recorded.tape import Failure, Mark, Origin, Tape


def test_process_that_ended_while_a_sample_was_taken():
    """It is in the listing of processes, its threads can no longer be listed: they have ended."""
    tape = Tape(Origin(), (Mark(0.0, 0.0), Mark(1.0, 1.0)))
    tape.keep(kinds.NAMES, "/proc", ("7", "8"))
    tape.keep(kinds.NAMES, "/proc/7/task", ("7", "9"))
    tape.keep(kinds.NAMES, "/proc/7/task", Failure(3), 1)
    departed = Departed(tape, "/proc")
    assert not departed.has("/proc/7/task/9/stat", 0)
    assert departed.has("/proc/7/task/9/stat", 1)
    assert not departed.has("/proc/8/stat", 1)


@pytest.mark.parametrize(("listing", "found"), [(("b",), Failure(2)), (Failure(13), None), (None, None)])
def test_file_of_a_directory_that_could_not_be_listed(listing, found):
    """A listing without the name says that the file does not exist; one that was denied says nothing about it."""
    tape = Tape(Origin(), (Mark(0.0, 0.0),))
    if listing is not None:
        tape.keep(kinds.NAMES, "/etc/d", listing)
    assert implied(tape, kinds.FILE, "/etc/d/a", 0) == found
