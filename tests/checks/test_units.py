"""The check `units`: a real systemd's failed units, and what its client may say."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from nextsteps import try_next
from ownsystemd import own_systemd

from opskit.actions import programs, systemd_units
from opskit.analysis.host.units import judge
from opskit.checks.look import Look
from opskit.checks.units import check
from opskit.collect.host.units import Unit, parse_units
from opskit.errors import NotSupported
from opskit.host import Host
from opskit.proc.fs import ProcFS

ROOT = Path(__file__).resolve().parents[2]
SHOWN = """\
Type=simple
Result=exit-code
NRestarts=0
ExecMainCode=1
ExecMainStatus=3
Id=web.service
TriggeredBy=
ActiveState=failed
SubState=failed
Slice=a-b.slice
StateChangeTimestampMonotonic=22608320093

Result=oom-kill
Id=session-3.scope
ActiveState=failed
SubState=failed
StateChangeTimestampMonotonic=0

"""
WEB = Unit("web.service", "simple", "exit-code", 3, False, 0, False, 100.0, "", "system.slice")
LIST = """
import json
from opskit.checks.look import Look
from opskit.checks.units import check
from opskit.host import Host
from opskit.proc.fs import ProcFS
found = check(Look(Host(ProcFS()), ask=True))
print(json.dumps([[[each.code, each.severity, each.summary, each.entity.id] for each in found.findings], list(found.looked_at)]))
"""


@pytest.mark.skipif(not os.environ.get("OPSKIT_TEST_HOST"), reason="OPSKIT_TEST_HOST is not set: it starts a systemd")
def test_a_real_systemd():
    """A service that ended, one that is killed, one that restarts for ever, a job that failed; one that runs is none."""
    with own_systemd(
        web="ExecStart=/bin/sh -c 'exit 3'",
        killed="ExecStart=/bin/sh -c 'kill -9 $$$$'",
        backup="Type=oneshot\nExecStart=/bin/false",
        looping="ExecStart=/bin/false\nRestart=always\nRestartSec=1s\nStartLimitBurst=1000",
        fine="ExecStart=/bin/sleep 60",
    ) as entry:
        done = subprocess.run(
            [*entry, sys.executable, "-c", LIST],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
    findings, looked_at = json.loads(done.stdout)
    told = {
        place.rpartition("/")[2].removesuffix(".service"): (code, severity, summary)
        for code, severity, summary, place in findings
    }
    assert looked_at == ["units of systemd"]
    assert {name: each[:2] for name, each in told.items() if name != "looping"} == {
        "web": ("unit-failed", "warning"), "killed": ("unit-failed", "warning"), "backup": ("unit-job-failed", "warning"),
    }  # fmt: skip
    assert told["web"][2].endswith("ago: exit code 3")
    assert told["killed"][2].endswith("ago: signal 9 ended it")


def test_units_are_parsed():
    """Blocks in any order of their properties."""
    assert parse_units(SHOWN) == [
        Unit("web.service", "simple", "exit-code", 3, False, 0, False, 22608.320093, "", "a-b.slice"),
        Unit("session-3.scope", "", "oom-kill", None, False, 0, False, None, "", ""),
    ]
    assert parse_units("") == parse_units("\n\nType=simple\n") == []


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, ("unit-failed", "warning", "web.service failed 20.0 s ago: exit code 3")),
        ({"since_s": None}, ("unit-failed", "warning", "web.service failed: exit code 3")),
        ({"result": "oom-kill"}, ("unit-failed", "warning", "web.service failed 20.0 s ago: a process of it was killed for memory")),
        ({"result": "signal", "was_killed": True, "status": 9}, ("unit-failed", "warning", "web.service failed 20.0 s ago: signal 9 ended it")),
        ({"result": "", "status": None}, ("unit-failed", "warning", "web.service failed 20.0 s ago: the reason is unknown")),
        ({"is_restarting": True, "restarts": 12}, ("unit-failed", "warning", "web.service ends and is restarted again and again, 12 times so far: exit code 3")),
        ({"is_restarting": True, "restarts": 1}, None),
        ({"type_": "oneshot"}, ("unit-job-failed", "warning", "web.service failed 20.0 s ago: exit code 3")),
        ({"name": "x.scope"}, ("unit-job-failed", "warning", "x.scope failed 20.0 s ago: exit code 3")),
        ({"type_": "oneshot", "since_s": -90_000.0}, ("unit-job-failed", "note", "web.service failed 25 h 2 min ago: exit code 3")),
        ({"type_": "oneshot", "since_s": -90_000.0, "triggered_by": "web.timer"}, ("unit-job-failed", "warning", "web.service failed 25 h 2 min ago: exit code 3")),
    ],
    ids=range(11),
)  # fmt: skip
def test_what_a_failed_unit_means(changes, expected):
    """A service that is down is a warning; a job of the past is a note."""
    found = judge([WEB._replace(**changes)], 120.0)
    assert [(each.code, each.severity, each.summary) for each in found] == ([expected] if expected else [])


def test_its_cgroup_and_its_log():
    """The path below its slices; journalctl shows its last lines."""
    found = judge([WEB._replace(slice_="a-b.slice"), WEB._replace(name="job.timer", slice_="")], 120.0)
    assert [each.entity.name for each in found] == ["/a.slice/a-b.slice/web.service", "/job.timer"]
    try_next(found, "unit-failed")
    try_next(found, "unit-job-failed")


def test_a_machine_without_systemd(monkeypatch):
    """It is said, and is no gap."""
    monkeypatch.setattr("opskit.checks.units.runs_systemd", lambda _: False)
    outcome = check(Look(Host(ProcFS()), ask=True))
    assert (outcome.looked_at, outcome.gaps) == (["no systemd units: systemd is not the init here"], ())


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("echo Failed to connect to bus: Host is down; exit 1", "systemctl: Failed to connect to bus: Host is down"),
        ("exec sleep 600", "systemctl did not end within 0.2 s"),
        (None, "systemctl is not installed"),
    ],
)
def test_a_client_without_an_answer(tmp_path, monkeypatch, script, why):
    """The reason is said."""
    monkeypatch.setattr(programs, "_DIRECTORIES", (str(tmp_path),))
    monkeypatch.setattr(systemd_units, "_TIMEOUT_S", 0.2)
    if script is not None:
        (tmp_path / "systemctl").write_text(f"#!/bin/sh\nPATH=/bin:/usr/bin\n{script}\n")
        (tmp_path / "systemctl").chmod(0o755)
    with pytest.raises(NotSupported, match=why):
        systemd_units.failed_units(Host(ProcFS()))
