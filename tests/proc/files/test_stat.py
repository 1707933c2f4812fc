"""/proc/PID/stat: names that look like fields, and lines that are cut short."""

from __future__ import annotations

import os

import pytest

from opskit.errors import BadInput
from opskit.proc.files.stat import Placement, parse_placement, parse_stat
from opskit.proc.fs import ProcFS

REST = "S 1 4242 4242 0 -1 1077936384 16233 0 12 0 310 45 0 0 20 0 35 0 8675309 4096000 -7 184467 1 1"


@pytest.mark.parametrize("comm", ["java", "a b", ") S 9 (", "a\nb", "(((", ""])
def test_the_fields_stand_behind_the_last_parenthesis(comm):
    stat = parse_stat(f"4242 ({comm}) {REST}\n")
    assert (stat.pid, stat.comm, stat.state, stat.ppid) == (4242, comm, "S", 1)
    assert (stat.flags, stat.major_faults, stat.user_ticks, stat.system_ticks) == (1077936384, 12, 310, 45)
    assert (stat.threads, stat.start_ticks, stat.session) == (35, 8675309, 4242)


def test_kernel_threads_and_exiting_processes():
    assert parse_stat("2 (kthreadd) " + REST.replace("1077936384", "2129984")).is_kernel_thread
    assert parse_stat("9 (java) " + REST.replace("1077936384", "4")).is_exiting
    assert not parse_stat(f"9 (java) {REST}").is_exiting


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "cut short"),
        ("4242 (java", "cut short"),
        (") 4242 (", "cut short"),
        ("4242 (java) S 1 4242", "cut short"),
        (f"4242 (java) {REST}".rsplit(" ", 4)[0], "cut short"),
        (f"4242 (java) {REST.replace('310', '3l0')}", "not the numbers"),
        (f"4242 (java) {REST.replace('310', '-310')}", "not the numbers"),
        (f"4242 (java) {REST.replace('310', '3' * 21)}", "not the numbers"),
        (f"x (java) {REST}", "not the numbers"),
    ],
)
def test_anything_else_is_refused(text, problem):
    with pytest.raises(BadInput, match=problem):
        parse_stat(text)


def test_our_own():
    stat = ProcFS().load(parse_stat, "self", "stat")
    assert (stat.pid, stat.ppid) == (os.getpid(), os.getppid())


def test_placement():
    """The nice value, the CPU and the policy, behind a name that looks like fields; a line that is cut short raises BadInput."""
    fields = "R " + " ".join(map(str, range(4, 19))) + " -5 " + " ".join(map(str, range(20, 39))) + " 7 0 3 0 0\n"
    assert parse_placement(f"42 (a) R 1 ( {fields}"[:9] + f") {fields}") == Placement("R", -5, 7, 3)
    assert parse_placement(f"9 (kworker/0:1) {fields.replace(' 9 ', ' 69238880 ', 1)}").is_bound
    for text in ("", "42 (a)", f"42 (a) {REST}", f"42 (a) {fields[:60]}"):
        with pytest.raises(BadInput):
            parse_placement(text)


def test_placement_of_this_thread():
    """It runs, at the niceness that Python knows."""
    found = ProcFS().load(parse_placement, "self", "stat")
    assert (found.state, found.nice, found.policy) == (
        "R",
        os.getpriority(os.PRIO_PROCESS, 0),
        os.sched_getscheduler(0),
    )
    assert found.cpu in os.sched_getaffinity(0)
