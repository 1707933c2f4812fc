"""The checks of JVMs on real ones, healthy and sick, of several releases."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from pathlib import Path

import jvms
import pytest
from nextsteps import try_next

from opskit.analysis.safepoints.window import judge
from opskit.checks import hsperf_check, java_threads, safepoints
from opskit.checks import jvms as jvms_check
from opskit.checks.look import Look
from opskit.collect import jvm_monitors
from opskit.collect.found_jvms import found_jvms
from opskit.collect.safepoints.window import Facts, Stops, Watched
from opskit.host import Host
from opskit.proc.fs import ProcFS
from opskit.proc.kept_reads import KeptReads

SICK = ("deadlock", "blocked=5", "sleep=1")
STAGED = {
    "11": {"modes": SICK, "version": 11},
    "17": {"modes": SICK, "version": 17},
    "21": {"modes": SICK, "version": 21},
    "25": {"modes": SICK, "version": 25, "options": ("-Xmx128m", "-XX:+UseZGC")},
    "busy": {"modes": ("allocate=500000000",), "options": ("-Xmx128m", "-Xmn8m")},
    "closed": {"modes": SICK, "options": ("-Xmx128m", "-XX:+DisableAttachMechanism")},
    "stopped": {"modes": SICK},
}
DEADLOCK = 'deadlock of 2 threads in {} (Workload): "deadlock-A" waits for '


@pytest.fixture(scope="module")
def staged():
    """The JVMs by their name, started side by side."""
    started = {}
    try:
        for name, each in STAGED.items():
            options = {key: value for key, value in each.items() if key != "modes"}
            started[name] = jvms.start(*each["modes"], ready=False, **options)
        for each in started.values():
            each.wait_ready()
        started["stopped"].signal(signal.SIGSTOP)
        yield started
    finally:
        for each in started.values():
            each.stop()


def host():
    """A host as doctor's checks share it."""
    found = Host(ProcFS())
    found.fs.kept = KeptReads()
    return found


def look(*started, check=jvms_check, ask=False, seconds=20.0, **more):
    here = host()
    pids = tuple(each.pid for each in started)
    return check.check(Look(here, pids, ask=ask, until_s=here.monotonic() + seconds, **more))


def severe(outcome):
    """By PID the codes of errors and warnings."""
    found = {}
    for finding in outcome.findings:
        entity = finding.entity
        while entity.kind != "process":
            entity = entity.inside
        if finding.severity != "note":
            found.setdefault(entity.id, []).append(finding.code)
    return found


@pytest.fixture(scope="module")
def seen(staged):
    """What the checks with a window say of all of them, side by side."""
    here, found = host(), {}
    pids = tuple(each.pid for each in staged.values())
    threads = [
        threading.Thread(target=lambda each=each: found.setdefault(each, each.check(Look(here, pids))))
        for each in (jvms_check, safepoints)
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    return found


@pytest.mark.parametrize("name", ["11", "17", "21", "25", "closed"])
def test_a_deadlock_is_found_without_asking(staged, seen, name):
    """By the monitors in its memory, also of a JVM that no client can attach to."""
    pid = staged[name].pid
    of_it = [each for each in seen[jvms_check].findings if each.entity.id == pid and each.code == "jvm-deadlock"]
    assert [(each.severity, each.summary) for each in of_it] == [
        ("error", f'{DEADLOCK.format(pid)}a monitor held by "deadlock-B"')
    ]
    assert f'5 threads of {pid} (Workload) wait for a monitor held by "lock-holder", which sleeps in futex' in {
        each.summary for each in seen[jvms_check].findings
    }
    assert severe(seen[jvms_check])[pid] == ["jvm-deadlock", "lock-contended"]


def test_a_jvm_that_allocates_fast_is_healthy(staged, seen):
    pid = staged["busy"].pid
    assert pid not in severe(seen[jvms_check])
    assert severe(seen[safepoints]) == {}


def test_a_stopped_jvm_is_found(staged, seen):
    assert "process-stopped" in severe(seen[jvms_check])[staged["stopped"].pid]


def test_what_was_looked_at_and_what_needs_to_be_asked(seen):
    number = len(STAGED)
    assert seen[jvms_check].looked_at == [f"{number} JVMs"]
    assert [(gap.check, gap.what) for gap in seen[jvms_check].gaps] == [
        ("java-threads", f"thread pools and java.util.concurrent locks of {number} JVMs")
    ]
    assert seen[safepoints].looked_at == [f"pauses of {number} JVMs"]


def test_a_jvm_with_too_many_threads_is_a_gap(staged, monkeypatch):
    """Its deadlock was not looked for."""
    monkeypatch.setattr(jvm_monitors, "_MOST_THREADS", 3)
    outcome = look(staged["17"], window_s=0.05)
    assert severe(outcome) == {}
    assert ("jvms", "deadlocks of 1 JVM", "there are too many threads") in outcome.gaps


def test_a_jvm_that_starts_is_healthy():
    """It loads classes, compiles, and lets its heap grow."""
    started = jvms.start("burn=4:2:1", ready=False, options=("-Xms8m", "-Xmx256m"))
    try:
        deadline = time.monotonic() + jvms.START_S
        while not found_jvms(Host(ProcFS()), (started.pid,)).jvms:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        outcome = look(started, window_s=0.5)
        assert severe(outcome) == {}
    finally:
        started.stop()


def test_a_safepoint_that_is_not_reached(staged):
    """Within the window: the VM thread polls all the time. Asking it ends in time, and does not hold up another JVM."""
    other = staged["17"].pid
    with jvms.running("hog", options=jvms.HOG_OPTIONS) as hog:
        deadline = time.monotonic() + jvms.START_S
        while "safepoint-not-reached" not in severe(look(hog, window_s=0.3)).get(hog.pid, ()):
            assert time.monotonic() < deadline
        outcome = look(hog, staged["17"], check=java_threads, ask=True, seconds=2.5)
        assert severe(outcome) == {other: ["jvm-deadlock", "lock-contended"]}
        assert [gap.what for gap in outcome.gaps] == [f"deadlocks and locks of {hog.pid} (Workload)"]
        assert list(outcome.asked) == [other]


def test_one_dump_names_threads_and_the_pause(staged):
    """Of each JVM; one that is stopped, or was told to refuse clients, is a gap with the reason, and gets no signal."""
    outcome = look(*staged.values(), check=java_threads, ask=True)
    asked = {name: staged[name].pid for name in ("11", "17", "21", "25", "busy")}
    assert set(outcome.asked) == set(asked.values())
    assert all(0 <= pause < jvms.START_S for pause in outcome.asked.values())
    for name in ("11", "17", "21", "25"):
        [finding] = [each for each in outcome.findings if each.code == "jvm-deadlock" and each.entity.id == asked[name]]
        assert finding.summary.startswith(f"{DEADLOCK.format(asked[name])}Object@")
        assert finding.summary.endswith(' held by "deadlock-B"')
        assert "; the dump paused it for " in finding.evidence
    assert asked["busy"] not in severe(outcome)
    reasons = {gap.what: gap.reason for gap in outcome.gaps}
    assert reasons == {
        f"deadlocks and locks of {staged['closed'].pid} (Workload)": (
            "it was started with -XX:+DisableAttachMechanism; start it without that option"
        ),
        f"deadlocks and locks of {staged['stopped'].pid} (Workload)": (
            f"it is stopped by a signal (state T); resume it: kill -CONT {staged['stopped'].pid}"
        ),
    }
    assert "Full thread dump" not in staged["closed"].output()


def test_a_held_lock_is_the_same_finding_by_memory_and_by_dump(staged, seen):
    """So that both are shown as one."""
    pid = staged["17"].pid
    by_dump = look(staged["17"], check=java_threads, ask=True).findings
    keys = [
        {
            (each.code, each.entity.id)
            for each in findings
            if pid in (each.entity.id, getattr(each.entity.inside, "id", None))
        }
        for findings in (by_dump, seen[jvms_check].findings)
    ]
    assert keys[0] == keys[1] == {("jvm-deadlock", pid), ("lock-contended", "held by lock-holder")}


def test_only_those_who_may_be_asked_are_asked(staged):
    """Without --ask nobody; without names the suspects alone; no process that is no JVM."""
    here = host()
    assert java_threads.check(Look(here, (staged["17"].pid,))) == ((), (), (), {})
    suspect = Look(here, ask=True, suspects=(staged["21"].pid, os.getpid()))
    assert list(java_threads.check(suspect).asked) == [staged["21"].pid]
    assert java_threads.check(Look(here, ask=True)).asked == {}
    none = look(check=java_threads, ask=True, suspects=(os.getpid(),))
    assert [*none.findings, *none.looked_at, *none.gaps, *none.asked] == []


def test_a_jvm_of_another_user_in_namespaces_of_its_own(root_only):
    """Its threads are named by their PIDs here; a dump is taken with its own IDs."""
    own_tmp = ("unshare", "--mount", "sh", "-c", 'mount -t tmpfs -o mode=1777 tmpfs /tmp && exec "$@"', "sh")
    own_pids = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child")
    wrapper = (*own_tmp, *own_pids, "setpriv", "--reuid=1234", "--regid=1234", "--clear-groups")
    with jvms.running("deadlock", wrapper=wrapper) as inner:
        assert severe(look(inner)) == {inner.pid: ["jvm-deadlock"]}
        assert severe(look(inner, check=java_threads, ask=True)) == {inner.pid: ["jvm-deadlock"]}


def test_attach_files_are_judged_without_a_connection(root_only, staged):
    """What listens by the list of unix sockets: of the JVM itself, and of one that has ended."""
    jvm, mute = staged["17"], staged["closed"]
    look(jvm, check=java_threads, ask=True)  # it listens
    assert Path(f"/tmp/.java_pid{jvm.pid}").is_socket()
    assert look(jvm, check=hsperf_check).findings == []
    path = Path(f"/tmp/.java_pid{mute.pid}")
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
        path.chmod(0o600)
        found = {each.code: each for each in look(mute, check=hsperf_check).findings}
        path.unlink()
    assert found.keys() == {"attach-socket-orphaned", "attach-disabled"}
    assert found["attach-disabled"].summary.startswith(
        f"{mute.pid} (Workload): started with -XX:+DisableAttachMechanism"
    )
    orphan = found["attach-socket-orphaned"]
    assert orphan.severity == "error"
    assert orphan.summary.startswith(f"{path} of {mute.pid} (Workload): no process listens on it")
    assert (
        f"/proc/{mute.pid}/net/unix has no such listening socket; socket root (0):root (0) mode 0600" in orphan.evidence
    )


def test_leftovers_are_notes_and_nobody_is_connected_to():
    """A socket that has a listener, whoever that is, is left out."""
    pid = 4_100_000  # above pid_max's default
    left, used = Path(f"/tmp/.java_pid{pid}"), Path(f"/tmp/.java_pid{pid + 1}")
    with socket.socket(socket.AF_UNIX) as dead, socket.socket(socket.AF_UNIX) as alive:
        try:
            dead.bind(str(left))
            alive.bind(str(used))
            alive.listen()
            alive.setblocking(False)
            found = {each.entity.id: each for each in look(check=hsperf_check).findings}
            assert (found[str(left)].code, found[str(left)].severity) == ("attach-socket-leftover", "note")
            assert str(used) not in found
            with pytest.raises(BlockingIOError):
                alive.accept()
        finally:
            left.unlink()
            used.unlink()


def test_the_next_commands_for_pauses_work(staged):
    """Type what a finding about pauses says, without collections and with late threads."""
    [jvm] = found_jvms(Host(ProcFS()), (staged["17"].pid,)).jvms
    begin = Stops(1.0, 5, 1.0, 0.0, 0.0)
    paused, late = (Watched(jvm, 17, 100.0, None, begin, Stops(2.0, 15, 1.5, ttsp_s, 0.0)) for ttsp_s in (0.0, 0.4))
    try_next(judge(Facts([paused])), "jvm-paused")
    try_next(judge(Facts([late])), "ttsp-dominates")
