"""What looks at threads see, by captured files: states, calls, and where in the kernel."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest

from opskit.collect.io.facts import Seen, Stalled
from opskit.collect.io.looks import Looks
from opskit.host import Host
from opskit.proc.fs import ProcFS

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="the numbers of calls are those of x86-64")
PLACE = "proc/7/task/8"
READ = "0 0x4 0x7f00 0x1 0x0 0x0 0x0 0x7ffc 0x7f10\n"
FSYNC = "74 0x5 0x0 0x0 0x0 0x0 0x0 0x7ffc 0x7f10\n"


def stat(state, user=10, system=20, faults=3, waits=5, start=42):
    """A line of 52 fields, with user and system time, major faults, and ticks of waiting for storage."""
    fields = (
        f"{state} 1 7 7 0 -1 0 1 0 {faults} 0 {user} {system} 0 0 20 0 2 0 {start}"
        + " 0" * 19
        + f" {waits} 0 0 0 0 0 0 0 0 0 0\n"
    )
    return f"8 (a) S (b)) {fields}"


def switched(times):
    """A thread that was preempted so often."""
    return f"Name:\ta\nvoluntary_ctxt_switches:\t5\nnonvoluntary_ctxt_switches:\t{times}\n"


@pytest.fixture
def machine(tree):
    """A thread whose files are set, and what Looks sees of it: a function of the files, called once for each look."""
    root = tree({f"{PLACE}/stat": stat("S")})
    host = Host(ProcFS(f"{root}/proc", str(root)))
    looks = Looks(host, 7)
    looks.begin()

    def look(*, now_s=1.0, **files):
        host.monotonic = lambda: now_s
        for name, text in files.items():
            (Path(root) / PLACE / name).write_text(text)
        looks.look([8])
        return looks

    return look


def test_calls_by_fd_and_length(machine):
    """The most bytes that were asked for; fds that are none; calls without one; numbers that nobody knows."""
    for call in (
        READ,
        READ.replace("0x1 ", "0x40 "),
        FSYNC,
        "202 0x7f 0x80 0x0 0x0 0x0 0x0 0x7f 0x7f\n",
        "5000 0x1 0x1 0x1 0x0 0x0 0x0 0x7f 0x7f\n",
    ):
        looks = machine(stat=stat("S"), syscall=call)
    looks = machine(syscall=READ.replace("0x4 ", "0xffffffffffffffff "))
    assert set(looks.tracks[8].calls()) == {
        Seen("read", 4, 2, 64), Seen("fsync", 5, 1), Seen("futex", None, 1), Seen("system call 5000", None, 1), Seen("read", None, 1, 1),
    }  # fmt: skip
    assert looks.tracks[8].stalls() == ()


def test_threads_that_run(machine):
    """Runnable by its state; one that was asleep and runs again by the next read tells no call."""
    machine(stat=stat("R"), syscall=READ)
    looks = machine(stat=stat("S"), syscall="running\n")
    track = looks.tracks[8]
    assert (track.looks, track.calls()) == (2, (Seen("running", None, 1),))


def test_state_d(machine):
    """The kernel's function; `0` or nothing where it ran on at once, at last; a page fault is no call."""
    machine(stat=stat("D"), syscall=READ, wchan="folio_wait_bit_common")
    machine(wchan="0", syscall="running\n")
    machine(wchan="0")
    looks = machine(wchan="folio_wait_bit_common", syscall="-1 0x7ffc 0x7f10\n")
    track = looks.tracks[8]
    assert track.stalls() == (Stalled("folio_wait_bit_common", 2), Stalled(None, 2))
    assert track.calls() == (Seen("read", 4, 1, 1), Seen("page fault", None, 1))
    assert track.in_d == 4


def test_what_it_used_between_the_looks(machine):
    """Shares of the time between the first look and the last; unknown after one look, and where the TID is another thread's."""
    looks = machine(stat=stat("S"), now_s=100.0)
    assert looks.tracks[8].use(100) == (None, None, None, None)
    machine(stat=stat("S", user=60, system=120, faults=23, waits=30), now_s=102.0)
    assert looks.tracks[8].use(100) == (0.25, 0.5, 0.125, 10.0)
    # Ticks of 10 ms end later than the window.
    machine(stat=stat("S", user=10, system=221, faults=3), now_s=102.0)
    assert looks.tracks[8].use(100)[1] == 1.0
    machine(stat=stat("S", start=43), now_s=103.0)
    assert looks.tracks[8].use(100) == (None, None, None, None)


def test_one_sleep_and_many(machine):
    """As often switched away from a CPU as before: the same sleep, also over windows. It began at the first look that found it."""
    looks = machine(stat=stat("D"), wchan="x", status=switched(31), now_s=100.0)
    machine(now_s=100.9)
    assert looks.asleep_s(8) == pytest.approx(0.9)
    looks.begin()
    machine(now_s=109.0)
    assert looks.asleep_s(8) == pytest.approx(9.0)
    machine(now_s=110.0, status=switched(32))
    assert looks.asleep_s(8) == 0.0
    looks.begin()
    machine(now_s=111.0)
    assert looks.asleep_s(8) == 0.0
    machine(now_s=112.0, stat=stat("S"))
    assert looks.asleep_s(8) == 0.0


def test_switches_that_are_unknown(machine):
    """A thread without `status` has ended."""
    looks = machine(stat=stat("D"), wchan="x")
    assert looks.asleep_s(8) is None


def test_a_thread_that_waits_for_fuse(tree):
    """In state S, where a FUSE file system is mounted; elsewhere its place is not even read."""
    for mounted, stalls in (("fuse.sshfs", (Stalled("request_wait_answer", 1),)), ("ext4", ()), ("fusectl", ())):
        root = tree({
            f"{PLACE}/stat": stat("S"), f"{PLACE}/syscall": READ, f"{PLACE}/wchan": "request_wait_answer",
            "proc/7/mountinfo": f"36 35 0:98 / /mnt rw - {mounted} x rw\n",
        })  # fmt: skip
        looks = Looks(Host(ProcFS(f"{root}/proc", str(root))), 7)
        looks.begin()
        looks.look([8])
        assert looks.tracks[8].stalls() == stalls
        assert looks.stalled([8]) == ([8] if stalls else [])


def test_threads_that_end(machine):
    """Zombies and threads without files are passed over."""
    looks = machine(stat=stat("Z"))
    assert looks.tracks[8].looks == 0
    looks.look([9])
    assert 9 not in looks.tracks
    assert looks.stalled([8, 9]) == []
