"""Runs of small made-up checks in a real child process: every answer arrives, and what fails is a gap that says why."""

from __future__ import annotations

import os
import resource
import signal
import sys
import threading
import time
from types import ModuleType

import pytest
from lesser import call

from opskit.analysis.doctor.seen import Gap, Outcome
from opskit.analysis.finding import HOST, Entity, Finding
from opskit.catalog import CHECKS, Quick
from opskit.checks import crew
from opskit.checks import run as run_module
from opskit.checks.run import Request, preload, run_checks
from opskit.errors import NotSupported, OpskitError
from opskit.host import Host
from opskit.proc.files.stat import parse_stat
from opskit.proc.fs import ProcFS, optional

NOBODY = 65534
CODE = "dentry-share"
FINDING = Finding(CODE, "note", HOST, "a summary", "evidence")


@pytest.fixture
def seen(monkeypatch):
    """Run these checks, and no others: functions of a Look, or a pair with the Quick of the catalog."""

    def run(host=None, words=(), ask=False, deadline_s=2.0, used_s=0.0, **checks):
        for name, each in checks.items():
            function, quick = each if isinstance(each, tuple) else (each, Quick(f"the {name}s", 1))
            module = ModuleType(f"opskit.checks.{name}")
            module.check = function
            monkeypatch.setitem(sys.modules, module.__name__, module)
            monkeypatch.setitem(CHECKS, name, quick)
        return run_checks(host or Host(ProcFS()), Request(words, tuple(checks), ask, deadline_s, used_s))

    return run


@pytest.fixture
def impatient(monkeypatch):
    """What hangs is seen within 0.1 s."""
    monkeypatch.setattr("opskit.checks.turns._QUIET_S", 0.03)
    monkeypatch.setattr("opskit.checks.turns._HANGS_S", 0.08)


def reasons(seen):
    return {gap.check: gap.reason for gap in seen.unchecked}


def good(_look):
    return Outcome([FINDING], ["1 thing"])


def raising(error):
    def check(_look):
        raise error

    return check


def test_findings_arrive_as_they_were_made(seen):
    """Texts that are no UTF-8, larger than a socket takes, nested entities, many gaps and findings, and pauses by PID."""
    inside = Entity("thread", 7, 3, Entity("process", os.getpid(), 5, Entity("cgroup", "/\udcff")))
    findings = (
        Finding(CODE, "warning", inside, "\udcff\x1b\0" + "x" * 400_000, "\U0001f600", "fix", "next", 0.5, 1.0, inside),
        *[FINDING] * 250,
    )
    gaps = tuple(Gap("one", f"file {number}", "é" * 1000) for number in range(300))
    result = seen(one=lambda _: Outcome(findings, ("2 things", "x"), gaps, {4: 0.1, 5: None}), two=good)
    one, two = result.checked
    assert one.outcome == Outcome(findings, ("2 things", "x"), (), {4: 0.1, 5: None})
    assert two.outcome.findings == (FINDING,)
    assert (result.unchecked, list(result.places)) == (gaps, [os.getpid()])
    assert result.places[os.getpid()].ppid == os.getppid()


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (OpskitError("not here"), "not here"),
        (PermissionError(13, "Permission denied", "/proc/1/maps"), "/proc/1/maps: Permission denied"),
        (OSError("odd"), "odd"),
        (MemoryError(), "out of memory"),
        (RecursionError("deep"), "a bug in opskit: RecursionError: deep"),
        (SystemExit(3), "a bug in opskit: SystemExit: 3"),
        (KeyboardInterrupt(), "a bug in opskit: KeyboardInterrupt"),
        (KeyError("\udcff"), "a bug in opskit: KeyError: '\\udcff'"),
    ],
)
def test_a_check_that_fails_stops_no_other(seen, error, reason):
    """Each exception becomes a reason."""
    result = seen(bad=raising(error), fine=good)
    assert [each.name for each in result.checked] == ["fine"]
    assert reasons(result)["bad"].partition(" at opskit/")[0] == reason


def test_a_result_that_cannot_be_sent(seen):
    """It is a bug of that check, and the others answer."""
    bad = Finding(CODE, "note", HOST, b"bytes", "evidence")  # type: ignore[arg-type]
    result = seen(bad=lambda _: Outcome([bad]), odd=lambda _: None, fine=good)
    assert [each.name for each in result.checked] == ["fine"]
    assert reasons(result)["bad"].startswith("a bug in opskit: TypeError: Object of type bytes")
    assert reasons(result)["odd"].startswith("a bug in opskit: AttributeError")


def test_the_process_is_killed(seen):
    """What was answered before remains; the reason names the signal."""

    def killed(look):
        look.host.sleep(0.05)
        os.kill(os.getpid(), signal.SIGKILL)

    result = seen(bad=(killed, Quick("a", 1, 1.0)), fine=good)
    assert [each.name for each in result.checked] == ["fine"]
    assert reasons(result) == {"bad": "its process was ended by SIGKILL, as the OOM killer does"}


def test_what_does_not_finish_by_the_deadline(seen, impatient):
    """One that computes and one that waits outside a read: both are named, all others have answered."""

    def computing(_look):
        while True:
            pass

    checks = {"busy": computing, "stuck": lambda _: threading.Event().wait(), "fine": good, "fine_too": good}
    result = seen(**checks, deadline_s=0.6)
    assert [each.name for each in result.checked] == ["fine", "fine_too"]
    assert reasons(result) == dict.fromkeys(("busy", "stuck"), "it did not finish by the deadline")


def test_a_read_that_hangs_is_left_out(seen, impatient):
    """The check runs again without that file; others are refused the whole memory of that process; the file is a gap."""
    pid, tries = os.getpid(), []

    def hanging(look):
        tries.append(1)
        try:
            look.host.fs._ask(lambda _: os.read(os.pipe()[0], 1), f"/proc/{pid}/cmdline")
        except PermissionError as error:
            return Outcome((), (f"try {len(tries)}", str(error)))

    def later(look):
        look.host.sleep(0.2)
        return Outcome((), [look.host.fs.maybe(str, pid, "maps", default="refused")])

    result = seen(hanging=hanging, later=(later, Quick("b", 1, 1.0)), fine=good)
    error = f"[Errno 110] reading it hangs: '/proc/{pid}/cmdline'"
    assert [each.outcome.looked_at for each in result.checked] == [("try 2", error), ("refused",), ("1 thing",)]
    comm = ProcFS().load(str, pid, "comm").strip()
    assert result.unchecked == (Gap("hanging", f"{pid} ({comm})", f"reading /proc/{pid}/cmdline hangs"),)


def test_a_read_that_is_only_slow(seen, impatient):
    """A thread that computes, or waits for another one of ours, does not hang: a machine may be busy."""

    def waiting(look):
        return Outcome((), [look.host.fs._ask(lambda path: threading.Event().wait(0.15) or path, "/sys/late")])

    def computing(path):
        begun = time.monotonic()
        while time.monotonic() < begun + 0.15:
            hash(path)
        return path

    def busy(look):
        return Outcome((), [look.host.fs._ask(computing, "/sys/large")])

    result = seen(waiting=waiting, busy=busy)
    assert [each.outcome.looked_at for each in result.checked] == [("/sys/late",), ("/sys/large",)]
    assert result.unchecked == ()


def test_no_process_can_be_started(seen, monkeypatch):
    """The checks run in this process, with the same answers; the host is as before."""

    def refuse():
        raise NotSupported("cannot start a child process")

    monkeypatch.setattr("opskit.proc.kernel.children.fork", refuse)
    host = Host(ProcFS())
    sleep = host.sleep
    result = seen(host, one=good, two=raising(OpskitError("no")), three=(good, Quick("c", 1, 1.0)))
    assert [each.name for each in result.checked] == ["one", "three"]
    assert reasons(result) == {"two": "no"}
    assert (host.sleep, host.fs.kept) == (sleep, None)


def test_neither_a_process_nor_a_thread_can_be_started(seen):
    """One check after the other, as far as their windows fit."""

    def waits(look):
        look.host.sleep(look.window_s)
        return Outcome((), (f"window {look.window_s:g} s",))

    def limited():
        resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))
        windowed = waits, Quick("w", 1, 0.3)
        return seen(limits=windowed, fine=good, late=windowed, deadline_s=0.6)

    result = call(limited, uid=NOBODY)
    assert [(each.name, each.outcome.looked_at) for each in result.checked] == [
        ("limits", ("window 0.3 s",)),
        ("fine", ("1 thing",)),
    ]
    reason = "no thread can be started for it; opskit limits shows which limit is reached"
    assert reasons(result) == {"late": reason}


@pytest.mark.parametrize(("left_s", "window"), [(1.9, 1.0), (1.0, 0.75), (0.1, 0.2)])
def test_the_window_of_a_check_that_begins_late_is_shorter(left_s, window):
    """On a crowded machine: a short window tells more than none. A copy has none."""
    assert crew.fitting_s(1.0, left_s) == window
    assert crew.fitting_s(0.0, left_s) == 0.0


def test_the_window_shrinks_with_the_deadline(seen):
    """At most a second and 60 % of the deadline, never more than the check asks for; below 0.2 s there is none."""

    def windows(deadline_s):
        def told(look):
            return Outcome((), (f"{look.window_s:g}",))

        result = seen(long=(told, Quick("a", 1, 1.0)), short=(told, Quick("b", 1, 0.5)), deadline_s=deadline_s)
        return [each.outcome.looked_at[0] for each in result.checked], reasons(result)

    assert windows(3600.0) == (["1", "0.5"], {})
    assert windows(1.0) == (["0.6", "0.5"], {})
    short = "0.3 s are too short for it; raise --deadline"
    assert windows(0.3) == ([], {"long": short, "short": short})


@pytest.mark.parametrize(("used_s", "left_s"), [(0.0, 1.9), (0.25, 1.65), (60.0, 1.5)])
def test_the_start_of_opskit_is_part_of_the_deadline(seen, used_s, left_s):
    """But most of it is for the checks: on an overloaded machine the start alone takes seconds."""

    def told(look):
        return Outcome((), (str(before + left_s <= look.until_s <= time.monotonic() + left_s),))

    before = time.monotonic()
    [one] = seen(used_s=used_s, told=told).checked
    assert one.outcome.looked_at == ("True",)


def test_a_copy_has_no_window(seen, tree):
    """Rates are left out there."""
    root = tree({"proc/1/stat": "1 (init) S 0", "proc/meminfo": "MemTotal: 1 kB\n"})
    told = (lambda look: Outcome((), (f"{look.window_s:g}",)), Quick("a", 1, 1.0))
    [one] = seen(Host.at(str(root), None), told=told).checked
    assert one.outcome.looked_at == ("0",)


def test_what_needs_leave_to_ask(seen):
    """Without --ask it is a gap; with it, it comes last and is told the suspects."""
    entity = Entity("thread", 1, None, Entity("process", 4242))
    stuck = Finding("jvm-deadlock", "error", entity, "a deadlock", "evidence")

    def asks(look):
        return Outcome((), (repr(look.suspects),), (), dict.fromkeys(look.suspects, 0.01))

    checks = {"last": (asks, Quick("a", 1, ask=True, last=True)), "first": lambda _: Outcome([stuck, FINDING])}
    assert reasons(seen(**checks)) == {"last": "it needs --ask"}
    result = seen(**checks, ask=True)
    assert result.checked[0].outcome == Outcome((), ("(4242,)",), (), {4242: 0.01})


def test_names_come_from_files_without_leave_to_ask(seen, monkeypatch):
    """NSS is not asked: it connects to nscd, sssd and LDAP."""
    monkeypatch.setattr("pwd.getpwuid", lambda _uid: pytest.fail("NSS was asked"))
    monkeypatch.setattr("grp.getgrgid", lambda _gid: pytest.fail("NSS was asked"))
    named = seen(one=lambda look: Outcome((), (look.host.user_name(0), look.host.group_name(0)))).checked
    assert named[0].outcome.looked_at == ("root", "root")


def test_which_process_is_meant(seen):
    """It is found out in the child, too: an unknown one is an error with the lines to choose from."""
    pid = str(os.getpid())
    result = seen(words=(pid, pid), one=lambda look: Outcome((), (repr(look.pids),)))
    assert (result.pids, result.checked[0].outcome.looked_at) == ((os.getpid(),), (f"({pid},)",))
    with pytest.raises(OpskitError, match=r"'no such thing' is not a PID.*ps -e lists them"):
        seen(words=("no such thing",), one=good)


def test_which_process_is_meant_hangs(seen, monkeypatch):
    """At the deadline it is an error that says what helps."""
    monkeypatch.setattr("opskit.collect.targets.resolve_process", lambda *_: threading.Event().wait())
    with pytest.raises(
        OpskitError, match="cannot tell which process is 'orders': it did not finish by the deadline; give"
    ):
        seen(words=("orders",), one=good, deadline_s=0.1)


class Lingering:
    """A child that cannot end: a thread of it is in the kernel."""

    def __init__(self, status):
        self.status = status

    def reap(self):
        return self.status


LEFT = [
    run_module._Left(Lingering(None), ("one",), (("three", "/dead"),)),
    run_module._Left(Lingering(0), ("two",), (("two", "/alive"),)),
]


def test_a_child_that_cannot_end(seen, monkeypatch):
    """In the next round its checks do not start again, and nobody reads what it hangs in, until it has ended."""

    def reading(look):
        return Outcome((), [optional(look.host.fs._ask, str, path, default="") for path in ("/dead", "/alive")])

    monkeypatch.setattr(run_module, "_left", [*LEFT])
    result = seen(one=good, two=reading, three=reading)
    assert [(each.name, each.outcome.looked_at) for each in result.checked] == [
        ("two", ("", "/alive")),
        ("three", ("", "/alive")),
    ]
    assert reasons(result) == {"one": "it still hangs since it was last run", "three": "reading it hangs"}


def test_a_second_round_imports_nothing(seen):
    """What the child of the first round imported, `preload` imports before the next fork."""

    def imports(_look):
        import this_is_not_there_yet  # noqa: F401

        return Outcome()

    def loads(_look):
        before = "xml.sax.saxutils" in sys.modules
        import xml.sax.saxutils  # noqa: F401

        return Outcome((), (str(before),))

    for name in [name for name in sys.modules if name.startswith("xml.sax")]:
        del sys.modules[name]
    first = seen(one=loads, two=imports)
    preload(())
    assert [each.outcome.looked_at for each in (*first.checked, *seen(one=loads).checked)] == [("False",), ("True",)]


def children():
    """The processes that this one has started, and not waited for."""
    stats = ((pid, optional(ProcFS().load, parse_stat, pid, "stat")) for pid in ProcFS().pids())
    return {pid for pid, stat in stats if stat is not None and stat.ppid == os.getpid()}


def test_nothing_is_left(seen):
    """No child and no thread of ours."""
    threads, others = threading.active_count(), children()
    seen(one=good)
    assert children() <= others
    assert threading.active_count() == threads


def test_the_child_reads_a_tree(tmp_path):
    """The directories that a tree's files are read through stay open in the child."""
    (tmp_path / "proc" / "1").mkdir(parents=True)
    (tmp_path / "proc" / "meminfo").write_text("MemTotal: 1000 kB\nMemFree: 800 kB\nMemAvailable: 900 kB\n")
    ran = run_checks(Host.at(str(tmp_path), None), Request(checks=("mem",)))
    assert [each.name for each in ran.checked] == ["mem"]
    assert "1000 KiB of memory" in ran.checked[0].outcome.looked_at[0]
