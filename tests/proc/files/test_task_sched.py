"""How often a thread was switched and moved: sched of a thread."""

from __future__ import annotations

import os
import threading

import pytest

from opskit.proc.files.task_sched import TaskSched, parse_task_sched
from opskit.proc.fs import ProcFS

RULE = "-" * 67
BODY = (
    "se.exec_start                                :      76490663.179644\n"
    "se.nr_migrations                             :                    3\n"
    "nr_switches                                  :                 1302\n"
    "nr_voluntary_switches                        :                   94\n"
    "nr_involuntary_switches                      :                 1208\n"
    "policy                                       :                    5\n"
    "prio                                         :                  139\n"
)


@pytest.mark.parametrize("name", ["order-book-burn", "a (b, #c", "x\npolicy : 1\ny", "", "-----"])
def test_the_numbers_stand_below_the_heading(name):
    """A thread's name may look like a line of numbers."""
    found = parse_task_sched(f"{name} (4242, #threads: 35)\n{RULE}\n{BODY}")
    assert found == TaskSched(name, 94, 1208, 3, 5)


def test_what_a_kernel_lacks_is_unknown():
    """Other lines, torn ones and numbers that are none."""
    torn = parse_task_sched(f"java (1, #threads: 2)\n{RULE}\nnr_voluntary_switches    :   x\npolicy       :\n")
    assert torn == TaskSched("java", None, None, None, None)
    assert parse_task_sched("") is None
    assert parse_task_sched(BODY) is None


def test_this_thread():
    """The kernel counts what this thread does."""
    fs, tid = ProcFS(), threading.get_native_id()
    found = fs.maybe(parse_task_sched, os.getpid(), "task", tid, "sched")
    if found is None:
        pytest.skip("this kernel has no sched files")
    assert found.name == fs.maybe(str, os.getpid(), "task", tid, "comm").rstrip("\n")
    assert None not in found
    assert found.voluntary + found.involuntary > 0
