"""The check `clock`: adjtimex alone; no daemon is asked, and a clock that nobody is seen to set is judged as `opskit clock` does."""

from __future__ import annotations

import pytest

from opskit.checks.clock import check
from opskit.checks.look import Look
from opskit.collect.clock import collect as clock
from opskit.host import Host
from opskit.proc.fs import ProcFS
from opskit.proc.kernel.adjtimex import PLL, UNSYNCHRONISED, KernelClock

GOOD = KernelClock("TIME_OK", PLL, 0.0, 0.01, 0.01, 0.0, 37)
BAD = GOOD._replace(state="TIME_ERROR", status=UNSYNCHRONISED, most_error_s=16.0, estimated_error_s=16.0)


@pytest.fixture
def found(monkeypatch):
    """The outcome on this machine with another clock, no daemon, and this kind of machine."""

    def look(kernel, problem=None, *, virtual=False, container=None, daemons=()):
        def find(_):
            asked.append("daemons")
            return list(daemons)

        asked = []
        monkeypatch.setattr(clock, "_kernel_clock", lambda _: (kernel, problem))
        monkeypatch.setattr(clock, "find_daemons", find)
        monkeypatch.setattr(clock, "is_virtual", lambda *_: virtual)
        monkeypatch.setattr(clock, "container_evidence", lambda _: container)
        monkeypatch.setattr(clock, "_sees_all", lambda _: container is None)
        outcome = check(Look(Host(ProcFS())))
        return [(each.code, each.severity) for each in outcome.findings], outcome, asked

    return look


def test_a_clock_that_is_right(found):
    """No finding, and no process is looked at."""
    findings, outcome, asked = found(GOOD)
    assert (findings, asked) == ([], [])
    assert outcome.looked_at == ("the kernel's clock (adjtimex)",)


def test_a_machine_of_its_own_without_a_daemon(found):
    """It drifts: a warning."""
    assert found(BAD)[0] == [("clock-unsynchronised", "warning")]


@pytest.mark.parametrize(
    ("virtual", "container"), [(True, None), (None, None), (False, "its pid namespace"), (True, "its pid namespace")]
)
def test_where_others_may_set_it(found, virtual, container):
    """A hypervisor (WSL too) or the host of a container may: a note."""
    assert found(BAD, virtual=virtual, container=container)[0] == [("clock-unsynchronised", "note")]


def test_a_sandbox_that_forbids_the_call(found):
    """A gap, with the reason."""
    findings, outcome, _ = found(None, "adjtimex(2): Operation not permitted")
    assert findings == []
    assert [(gap.check, gap.reason) for gap in outcome.gaps] == [("clock", "adjtimex(2): Operation not permitted")]
    assert outcome.looked_at == ()


def test_of_processes_and_copies(tmp_path):
    """Nothing about a process; a copy has no clock."""
    assert check(Look(Host(ProcFS()), (1,))).findings == ()
    (tmp_path / "proc" / "1").mkdir(parents=True)
    outcome = check(Look(Host.at(str(tmp_path), None)))
    assert [gap.check for gap in outcome.gaps] == ["clock"]
