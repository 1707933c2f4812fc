"""How many threads each process and user runs."""

from __future__ import annotations

import os

from trees import Link

from opskit.proc.fs import ProcFS
from opskit.proc.task_counts import read_task_counts
from opskit.proc.treefs import TreeFS


def status(uid, threads):
    return f"Name:\tx\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\nThreads:\t{threads}\n"


def test_threads_by_user_and_namespace(tree):
    """A process whose namespace cannot be read counts in each."""
    root = tree({
        "proc/loadavg": "0 0 0 1/9 900\n",
        "proc/20/status": status(5, 4),
        "proc/20/task/20/x": "", "proc/20/task/310/x": "", "proc/20/task/311/x": "", "proc/20/task/21/x": "",
        "proc/400/status": status(5, 3),
        "proc/400/ns/user": Link("user:[4026532999]"),
        "proc/401/status": status(6, 2),
        "proc/402/status": "Name:\tbroken\n",
    })  # fmt: skip
    fs = TreeFS(f"{root}/proc", str(root))
    counts = read_task_counts(fs)
    assert (counts.threads, counts.high_ids, counts.hidden) == (9, 2 + 3 + 2, False)
    assert (counts.of_uid(5), counts.of_user(fs, 5, b"user:[4026531837]")) == (7, 4)


def test_a_copy_with_fewer_threads_than_ran(tree):
    """Processes of any user may be missing."""
    root = tree({"proc/loadavg": "0 0 0 1/9 900\n", "proc/400/status": status(5, 3)})
    assert read_task_counts(TreeFS(f"{root}/proc", str(root))).hidden


def test_this_machine():
    """This process is one of them."""
    counts = read_task_counts(ProcFS())
    assert os.getpid() in [process.pid for process in counts.processes]
    assert counts.of_uid(os.getuid()) >= 1
