"""Processes near their limit on open files, by counts alone."""

from __future__ import annotations

import os
import resource
import subprocess
import sys

from nextsteps import try_next

from opskit.analysis.fds.host import judge_quick
from opskit.checks.fds import check
from opskit.checks.look import Look
from opskit.collect.fds.quick import collect_quick
from opskit.host import Host

PROGRAM = "import os, time; fds = [os.dup(0) for _ in range({})]; print('READY', flush=True); time.sleep(60)"


def near_its_limit(opened):
    """A process with a limit of 40."""
    words = [sys.executable, "-c", PROGRAM.format(opened)]
    process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    process.stdout.readline()
    resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (40, 40))
    return process


def test_a_process_near_its_limit_and_one_with_room():
    """Of all processes of the machine, or of those asked about; the second one has opened half of it."""
    with near_its_limit(34) as near, near_its_limit(15) as roomy:
        try:
            host = Host.at(None, None)
            facts = collect_quick(host)
            named = {each.process.pid for each in facts.nearest}
            assert near.pid in named
            assert roomy.pid not in named
            assert facts.processes > 2
            [one] = check(Look(host, (near.pid, roomy.pid))).findings
            assert (one.code, one.severity, one.entity.id) == ("rlimit-nearly-used", "warning", near.pid)
            assert one.entity.start_ticks
            try_next([one._replace(next=one.next.removesuffix(" -w"))], "rlimit-nearly-used")
        finally:
            near.kill()
            roomy.kill()


LIMITS = """\
Limit                     Soft Limit           Hard Limit           Units
Max processes             100                  100                  processes
Max open files            20                   4096                 files
"""


def test_a_kernel_that_does_not_count(tree):
    """Before Linux 6.2 and in a copy: a table of file descriptors that may be nearly full is listed."""
    files = {"proc/meminfo": "MemTotal: 1 kB\n", "proc/sys/fs/file-nr": "99 0 100\n"}
    for pid, size, opened in ((5, 64, 18), (6, 64, 3), (7, 16, 0)):
        files[f"proc/{pid}/status"] = f"Name:\tapp\nTgid:\t{pid}\nUid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\nFDSize:\t{size}\n"
        files[f"proc/{pid}/limits"] = LIMITS
        files.update({f"proc/{pid}/fd/{number}": "" for number in range(opened)})
    host = Host.at(str(tree(files)), None)
    facts = collect_quick(host)
    assert [(each.process.pid, each.open.taken) for each in facts.nearest] == [(5, 18)]
    assert {each.code for each in judge_quick(facts)} == {"rlimit-nearly-used", "file-max-nearly-used"}
    assert check(Look(host, (6,))).findings == []


def test_own_process_has_room():
    """The check says what it looked at."""
    outcome = check(Look(Host.at(None, None), (os.getpid(),)))
    assert (list(outcome.findings), list(outcome.looked_at), list(outcome.gaps)) == ([], ["1 process"], [])
