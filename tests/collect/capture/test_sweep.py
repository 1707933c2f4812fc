"""What a capture has of processes that began after its first sample."""

from __future__ import annotations

import pytest
from taping import tape_of

from opskit.collect.capture.sweep import sweep
from opskit.host import Host
from opskit.proc.recorded import tape as kinds
from opskit.proc.recorded.tape import Mark
from opskit.recorded_host import RecordedHost


def test_one_that_has_ended_is_absent_and_not_unknown(tmp_path):
    """A watch that comes to its sample finds its counters, and none of its other files; they are not counted as not read."""
    for pid in (1, 8):
        (tmp_path / f"proc/{pid}").mkdir(parents=True)
        (tmp_path / f"proc/{pid}/cmdline").write_text(f"program {pid}")
    machine = Host.at(str(tmp_path), None)
    tape = tape_of(machine)
    tape.marks.append(Mark(tape.marks[0].wall_s + 1, tape.marks[0].monotonic_s + 1))
    proc = machine.fs.proc
    for mark, names in enumerate((("1",), ("1", "7", "8"))):
        tape.keep(kinds.NAMES, proc, names, mark)
    tape.keep(kinds.FILE, f"{proc}/7/stat", b"7 (short) R", 1)
    assert sweep(RecordedHost(tape, machine.fs)) == 1
    replay = RecordedHost(tape)
    replay.sleep(1)
    assert (replay.fs.read(7, "stat"), replay.fs.read(8, "cmdline")) == (b"7 (short) R", b"program 8")
    for name in ("cmdline", "smaps_rollup", "task"):
        with pytest.raises(FileNotFoundError):
            replay.fs.read(7, name)
    assert replay.fs.refused == {}
