"""What `opskit capture --when` waits for."""

from __future__ import annotations

import pytest

from opskit.catalog import CHECKS, FINDINGS
from opskit.collect.capture.condition import parse_condition, watcher
from opskit.collect.capture.found_by import checks_of
from opskit.errors import NoSuchProcess, NotSupported, UsageError
from opskit.host import Host
from opskit.proc.treefs import TreeFS

PRESSURE = "some avg10=0.00 avg60=0.00 avg300=0.00 total={}\n"
CPU = "cpu  {0} 0 0 {1} 0 0 0 0 0 0\ncpu0 {0} 0 0 {1} 0 0 0 0 0 0\n"


@pytest.mark.parametrize(
    ("text", "share", "holds"),
    [
        ("cpu>80", 0.8, False), ("cpu>80", 0.81, True), ("cpu>=80", 0.8, True), (" psi.io > 12.5 % ", 0.126, True), ("heap>90", None, False),
        ("stopped>0", 0.0, False), ("cpu>=100", 1.0, True),
    ],
)  # fmt: skip
def test_share(text, share, holds):
    """A share above the limit, or at it with >=; an unknown one never."""
    assert parse_condition(text).holds(share) is holds


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "write 'cpu>80'"), ("cpu", "write 'cpu>80'"), ("cpu<80", "write 'cpu>80'"), ("cpu>80 or heap>90", "write 'cpu>80'"),
        ("psi.net>1", "write 'cpu>80'"), ("cpu>101", "not a percentage"), ("cpu>1.2.3", "not a percentage"), ("heap>" + "9" * 400, "not a percentage"),
        ("finding=disk-ful", "did you mean 'disk-full'"), ("finding=crash-gc", "doctor finds crash-gc not"), ("finding=unit-failed", "only with --ask"),
    ],
)  # fmt: skip
def test_not_a_condition(text, said):
    """One line that lists the forms, or names the mistake."""
    with pytest.raises(UsageError) as error:
        parse_condition(text)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_checks_of_a_finding():
    """Few checks run while one waits for a finding; none that sends something. Each check finds some code."""
    assert parse_condition("finding=disk-full").checks == ("disks",)
    assert parse_condition("finding=jvm-deadlock").checks == ("jvms",)
    found = {code: checks_of(code) for code in FINDINGS}
    assert {name for names in found.values() for name in names} == set(CHECKS)
    assert max(map(len, found.values())) <= 3


def tree(tmp_path, **files):
    for name, text in {"loadavg": "0 0 0 1/1 1\n", "stat": CPU.format(0, 100), **files}.items():
        path = tmp_path / "proc" / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    host = Host(TreeFS(str(tmp_path / "proc"), str(tmp_path)))
    host.monotonic = iter(range(100)).__next__
    return host


def test_cpu(tmp_path):
    """The share of all CPUs with work since the last look."""
    look = watcher(tree(tmp_path), parse_condition("cpu>80"), ())
    tree(tmp_path, stat=CPU.format(90, 110))
    assert look() == (True, "cpu 90 %")
    assert look() == (False, "cpu unknown")
    tree(tmp_path, stat=CPU.format(100, 150))
    assert look() == (False, "cpu 20 %")


def test_cpu_of_processes(tmp_path):
    """The highest share of the CPUs that a process may use; the machine's is another question. It ends with the last of them."""

    def stat(ticks):
        return f"7 (x) R 1 7 7 0 -1 0 0 0 0 0 {ticks} 0 0 0 20 0 1 0 55 0 0" + " 0" * 30

    files = {"7__stat": stat(0), "7__status": "Name:\tx\nCpus_allowed_list:\t0\n"}
    host = tree(tmp_path, **files)
    host.clock_ticks = 100
    look = watcher(host, parse_condition("cpu>80"), (7,))
    (tmp_path / "proc/7/stat").write_text(stat(90))
    assert look() == (True, "cpu 90 %")
    assert look() == (False, "cpu 0 %")
    (tmp_path / "proc/7/stat").unlink()
    with pytest.raises(NoSuchProcess, match="it ended while it was watched"):
        look()


def test_pressure(tmp_path):
    """The share of the time since the last look in which a task waited."""
    host = tree(tmp_path, pressure__memory=PRESSURE.format(0))
    look = watcher(host, parse_condition("psi.memory>10"), ())
    (tmp_path / "proc/pressure/memory").write_text(PRESSURE.format(300_000))
    assert look().holds
    assert not look().holds


@pytest.mark.parametrize("text", ["psi.memory>10", "heap>90", "stopped>20"])
def test_what_the_machine_lacks(tmp_path, text):
    """A kernel without PSI, a machine without a JVM: it is said at once."""
    with pytest.raises(NotSupported, match=f"--when {text.partition('>')[0]}: "):
        watcher(tree(tmp_path), parse_condition(text), ())
