"""Reads that hang for real: a FUSE mount without an answer, a process whose memory is locked. Nothing else is lost by them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SUPPORT = Path(__file__).resolve().parent.parent / "support"
CODE = """
import json, os, subprocess, sys, time
from types import ModuleType
directory, pid = sys.argv[1], int(sys.argv[2])
from opskit.analysis.doctor.seen import Outcome
from opskit.catalog import CHECKS, Quick
from opskit.checks import run
from opskit.host import Host
from opskit.proc.fs import ProcFS, optional

def space(look):
    return Outcome((), [path for path in ("/", directory) if optional(look.host.fs.space_at, path)])

def file(look):
    return Outcome((), [str(optional(look.host.fs.file_id_at, f"{directory}/file"))])

def jvms(look):
    read = [each for each in look.host.fs.pids() if look.host.fs.maybe(str, each, "cmdline") is not None]
    return Outcome((), [str(pid in read), str(len(read) > 1)])

def words(look):
    look.host.sleep(0.6)
    return Outcome((), [str(look.host.fs.maybe(str, pid, "cmdline")), str(bool(look.host.fs.maybe(str, "self", "cmdline")))])

def stat(look):
    return Outcome((), [look.host.fs.load(str, pid, "comm").strip()])

def outside(look):
    os.stat(directory)

made = {"space": space, "file": file, "jvms": jvms, "words": words, "stat": stat, "outside": outside}
CHECKS.clear()
for name, check in made.items():
    CHECKS[name] = Quick(name, 1, 1.0 if name == "words" else 0.0)
    sys.modules[f"opskit.checks.{name}"] = module = ModuleType(name)
    module.check = check
def alive():
    return [open(f"/proc/{each}/comm").read().strip() for each in (pid, os.getppid())]
doctors = {}
for name, words in (("pid", [str(pid)]), ("machine", [])):
    words = [sys.executable, "-m", "opskit", "doctor", *words]
    doctors[name] = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
told = {"rounds": []}
rest = tuple(name for name in made if name != "outside")
for names, deadline_s in ((rest, 20.0), (("outside",), 0.5), (tuple(made), 20.0)):
    seen = run.run_checks(Host(ProcFS()), run.Request((), names, deadline_s=deadline_s))
    told["rounds"].append([
        {each.name: each.outcome.looked_at for each in seen.checked},
        [[gap.check, gap.what, gap.reason] for gap in seen.unchecked],
    ])
told["checked"], told["gaps"] = told["rounds"][0]
told["left"] = len([each for each in run._left if each.child.reap() is None])
told["alive"] = alive()
for name, doctor in doctors.items():
    told[name] = [*doctor.communicate(), doctor.returncode]
told["alive"] += alive()
print(json.dumps([pid, told]), flush=True)
"""


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """The PID whose memory is locked, the directory of the dead mount, and what a run of checks and of `opskit doctor` said."""
    if os.geteuid():
        pytest.skip("needs root")
    directory = tmp_path_factory.mktemp("dead")
    done = subprocess.run(
        ["unshare", "-m", sys.executable, str(SUPPORT / "hungreads.py"), str(directory), CODE],
        capture_output=True, text=True, timeout=90, check=False,
    )  # fmt: skip
    if not done.stdout:
        pytest.skip(f"cannot stage reads that hang: {done.stderr[-300:]}")
    return str(directory), *json.loads(done.stdout)


def test_all_that_does_not_hang_has_answered(told):
    """Each check that meets such a file runs on without it: it counts as denied."""
    _, _, run = told
    assert run["checked"] == {
        "space": ["/"],
        "file": ["None"],
        "jvms": ["False", "True"],
        "words": ["None", "True"],
        "stat": run["checked"]["stat"],
    }


def test_what_hangs_is_named(told):
    """With the process whose memory is locked; a check that hangs elsewhere does not finish."""
    directory, pid, run = told
    comm = run["checked"]["stat"][0]
    assert {(what, reason) for _, what, reason in run["gaps"]} == {
        (f"{directory}/file", "reading it hangs"),
        (f"{pid} ({comm})", f"reading /proc/{pid}/cmdline hangs"),
        (directory, "reading it hangs"),
    }
    assert {check for check, *_ in run["gaps"]} <= {"file", "jvms", "words", "space"}
    assert run["rounds"][1] == [{}, [["outside", "outside", "it did not finish by the deadline"]]]


def test_a_later_round_hangs_no_more(told):
    """What still hangs in the children of earlier rounds is not read again: no more children are left."""
    _, _, run = told
    (checked, gaps), _, (later, later_gaps) = run["rounds"]
    assert (later, run["left"]) == (checked, 2)
    still = ["outside", "outside", "it still hangs since it was last run"]
    assert sorted(later_gaps) == sorted([*gaps, still])


def test_nothing_is_killed(told):
    """The process whose memory is locked runs on, and the one that started opskit."""
    _, _, run = told
    assert len(run["alive"]) == 4


@pytest.mark.parametrize("word", ["machine", "pid"])
def test_doctor_answers_and_ends(told, word):
    """Of the machine, and of that very process: it has checked something, and exits as ever."""
    _, _, run = told
    out, err, code = run[word]
    assert (code in (0, 1), bool(out), err) == (True, True, "")
