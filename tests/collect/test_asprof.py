"""Collapsed stacks of async-profiler, with the threads and marks that it writes."""

from __future__ import annotations

import time

import pytest

from opskit.collect.asprof import read_stacks
from opskit.proc.unwind.cursor import Frame

# Written by async-profiler 4.0 with collapsed,threads,ann,dot,norm.
TEXT = """[burn-4 tid=634];java.lang.Thread.run_[j];Workload$$Lambda.run_[i];Workload.work_[0] 70
[burn-4 tid=634];java.lang.Thread.run_[j];Workload.start_[1];write;do_syscall_64_[k] 3
[tid=12];[unknown_Java] 2
[C1 CompilerThre tid=640];start_thread;thread_native_entry;[vdso] 5
"""


def test_threads_frames_and_marks():
    """The thread is not a frame; a mark is the kind of its frame; leaf first; failed walks are incomplete."""
    found = read_stacks(TEXT, "x")
    assert found.names == {634: "burn-4", 12: "", 640: "C1 CompilerThre"}
    assert found.ends == {"root": 78, "torn": 2}
    stacks = {key.frames: (key.tid, count) for key, count in found.stacks.items()}
    burn = (
        Frame("Workload.work", "interpreted"),
        Frame("Workload$$Lambda.run", "inlined"),
        Frame("java.lang.Thread.run", "compiled"),
    )
    assert stacks[burn] == (634, 70)
    assert [frame.kind for key in found.stacks for frame in key.frames if frame.name.startswith(("do_", "write", "Workload.start"))] == [
        "kernel", "native", "c1",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "name", ["a;b", "a\nb", "a 7\nb", "x tid=1];y", "", " ", ";;", "[", "]", "tid=", "a;tid=9", "\u202e"]
)
def test_hostile_thread_names(name):
    """Semicolons, line breaks and what looks like another thread: never an error, never a lost sample of other threads."""
    found = read_stacks(f"[{name} tid=42];java.lang.Thread.run_[j] 3\n{TEXT}", "x")
    assert sum(found.stacks.values()) >= 80
    assert found.names[634] == "burn-4"


def test_a_semicolon_in_a_name_is_part_of_it():
    """The frames behind it are whole."""
    found = read_stacks("[a;b tid=42];java.lang.Thread.run_[j] 3\n", "x")
    assert found.names == {42: "a;b"}
    assert [key.frames for key in found.stacks] == [(Frame("java.lang.Thread.run", "compiled"),)]


def test_a_large_hostile_profile_takes_linear_time():
    """Lines without counts, and thread names without an end."""
    begun = time.process_time()
    read_stacks("[" * 100_000 + "\n" + "[;" * 60_000 + "x 1\n" + "x\n" * 100_000, "x")
    assert time.process_time() - begun < 5


def test_counts_of_time_become_samples():
    """Nanoseconds of ctimer; none becomes 0."""
    found = read_stacks("[a tid=1];b 30303030\n[a tid=1];c 4\n", "x", 10_101_010)
    assert {key.frames[0].name: count for key, count in found.stacks.items()} == {"b": 3, "c": 1}
