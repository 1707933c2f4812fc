"""The threads of a capture: what they did between its samples."""

from __future__ import annotations

from opskit.collect.cswitch.sweep import Sweep
from opskit.proc.recorded.tape import FILE, NAMES, Mark, Origin, Tape
from opskit.recorded_host import RecordedHost

PID = 7
STAT = f"{PID} (busy) S 1 7 7 0 -1 0 0 0 0 0 5 5 0 0 20 0 1 0 9" + " 0" * 33
STATUS = "Name:\tbusy\nCpus_allowed_list:\t0\nvoluntary_ctxt_switches:\t{}\nnonvoluntary_ctxt_switches:\t{}\n"


def test_switches_are_those_between_the_samples():
    """Who moved is known at the end alone; the rates are over the whole window, and not of one sample looked at twice."""
    tape = Tape(Origin(), (Mark(0.0, 10.0), Mark(2.0, 12.0)))
    for path in (f"/proc/{PID}", f"/proc/{PID}/task/{PID}"):
        for mark, (ran_ms, voluntary, forced) in enumerate(((100, 40, 10), (600, 240, 110))):
            tape.keep(FILE, f"{path}/schedstat", b"%d 0 %d" % (ran_ms * 1_000_000, voluntary), mark)
            tape.keep(FILE, f"{path}/status", STATUS.format(voluntary, forced).encode(), mark)
        tape.keep(FILE, f"{path}/stat", STAT.encode())
    for path, names in (("/proc", ("1", "7")), (f"/proc/{PID}/task", ("7",))):
        tape.keep(NAMES, path, names)
    tape.keep(FILE, "/proc/1/schedstat", b"9 9 9")
    host = RecordedHost(tape)
    sweep = Sweep(host, lambda: [PID])
    sweep.begin()
    host.sleep(2.0)
    assert [moved.tid for moved in sweep.probe()] == [PID]
    (thread,) = sweep.end(frozenset({0}), look_for_stuck=False).threads[PID]
    assert (thread.name, thread.running, thread.voluntary, thread.involuntary) == ("busy", 0.25, 100.0, 50.0)
    assert host.monotonic() == 12.0
