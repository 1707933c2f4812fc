"""Captured files of threads, for what io reads of a machine."""

from __future__ import annotations

SWITCHES = "Name:\ta\nUid:\t0\t0\t0\t0\nvoluntary_ctxt_switches:\t{}\nnonvoluntary_ctxt_switches:\t2\n"
STATX = "332 0xffffff9c 0x7f00 0x0 0x0 0x0 0x0 0x7ffc 0x7f10\n"


def thread(pid, tid, state, wchan, threads=1):
    """The files of one thread."""
    stat = f"{tid} (a) S (b)) {state} 1 7 7 0 -1 0 1 0 0 0 10 20 0 0 20 0 {threads} 0 42" + " 0" * 30 + "\n"
    place = f"proc/{pid}/task/{tid}"
    files = {"stat": stat, "status": SWITCHES.format(5), "wchan": wchan, "syscall": STATX, "comm": "a) S (b"}
    found = {f"{place}/{name}": text for name, text in files.items()}
    return {**found, f"proc/{pid}/stat": stat} if pid == tid else found


def io(read_bytes):
    """The counters of a process that has read so much."""
    return (
        f"rchar: {read_bytes}\nwchar: 0\nsyscr: 5\nsyscw: 0\nread_bytes: 0\nwrite_bytes: 0\ncancelled_write_bytes: 0\n"
    )
