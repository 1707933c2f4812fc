"""`opskit dentry --culprit`: who is named, by which events, and that nothing is left behind however it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest
from hostcaches import (
    LOOK_FOR_ABSENT,
    TRACE,
    children,
    in_namespace,
    in_some_run,
    in_tracefs,
    instances,
    perf_events,
    traced_lookups,
    wait_until,
)
from stracing import needs_strace


def document(opskit, *arguments):
    """The JSON object; exit code 0 or 1, by what this machine is like."""
    done = opskit("dentry", *arguments, "-f", "json")
    assert done.code in (0, 1), done.err
    return json.loads(done.out)


# Begin at a line on standard input, print one, stay.
WHEN_TOLD = (
    "import os, sys, time\nprint(flush=True)\nsys.stdin.readline()\n{}\nprint('done', flush=True)\ntime.sleep({})"
)


def trace_meanwhile(act):
    """Trace by perf events, call `act` once the events are open, end with Ctrl-C; what was seen."""
    tracer = subprocess.Popen([sys.executable, "-c", TRACE, "perf", "300"], stdout=subprocess.PIPE, text=True)
    try:
        assert wait_until(lambda: perf_events(*children(tracer.pid)))
        act()
        tracer.send_signal(signal.SIGINT)
        out, _ = tracer.communicate(timeout=120)
    finally:
        tracer.kill()
    found = json.loads(out)
    assert found["interrupted"]
    return found


def told(process):
    """Let it begin, and wait until it is done."""
    process.stdin.write("\n")
    process.stdin.flush()
    assert process.stdout.readline() == "done\n"


def test_culprit_in_a_container_says_where_to_go(machine_root):
    """The kernel's PIDs mean nothing in a pid namespace."""
    done = in_namespace(f"{sys.executable} -m opskit dentry --culprit", "-p", "-f", "--mount-proc")
    assert done.returncode == 2
    assert "run opskit dentry --culprit on the host" in done.stderr


@pytest.mark.parametrize("events", ["perf", "syscalls", "raw_syscalls"])
def test_the_culprit_is_named(machine_root, disk, spawn, events):
    """A process that keeps looking for absent files is named, with either kind of events; nothing stays behind."""
    before = instances()
    process = spawn(LOOK_FOR_ABSENT, disk, 1000, 120)
    found = traced_lookups(events, 1.0)
    assert found["events"] == events
    first = found["lookers"][0]
    assert first["pid"] == process.pid
    assert first["lookups"] > 0.5 * found["total"]
    assert set(first["calls"]) & {"newfstatat", "stat", "statx", "newstat"}
    assert set(instances()) <= set(before)


def test_culprit_as_a_user_sees_it(opskit, machine_root, disk, spawn):
    """`--culprit SECONDS` prints who it is first, and what to type to see the paths."""
    process = spawn(LOOK_FOR_ABSENT, disk, 1000, 120)

    def paths_are_found():  # the process has to run within 150 ms for that
        found = document(opskit, "--culprit", "500ms")
        assert found["culprits"][0]["paths"]
        return found

    found = in_some_run(paths_are_found)
    assert found["culprits"][0]["pid"] == process.pid
    assert all(path.startswith(f"{disk}/absent-") for path in found["culprits"][0]["paths"])
    assert found["verdict"][1].startswith(f"It looks for names like {disk}/absent-")
    assert found["culprits"][0]["user"] == "root"
    assert f"({process.pid}) made" in found["verdict"][0]
    assert found["verdict"][2].endswith(f"-p {process.pid}")
    assert found["failed_lookups"] >= found["failed_lookups_counted"] > 0
    assert found["dentries"] > 0


def test_processes_that_have_ended_are_named_by_their_command(opskit, machine_root, disk, spawn):
    """A shell that starts a failing program again and again: the programs are gone, their name is there."""
    loop = "import subprocess, sys, time\nprint(flush=True)\nend = time.monotonic() + 120\n"
    loop += "while time.monotonic() < end: subprocess.run(['/bin/ls', *(f'{sys.argv[1]}/x{i}' for i in range(500))],"
    loop += " stderr=subprocess.DEVNULL)"
    spawn(loop, disk)
    found = document(opskit, "--culprit", "2s", "-n", "0")
    ended = [row for row in found["culprits"] if row["pid"] is None and row["command"] == "ls"]
    assert ended
    assert ended[0]["processes"] > 1
    assert ended[0]["failed_lookups"] > 500


def test_a_busy_process_keeps_its_row_when_it_has_ended(machine_root, disk, spawn):
    """It came and went while the tracer looked: its PID is there, marked, and no command names it."""
    code = "for i in range(100000):\n    try: os.stat(f'{sys.argv[1]}/absent-{i}')\n    except OSError: pass"
    process = spawn(WHEN_TOLD.format(code, 0), disk, stdin=subprocess.PIPE)

    def lived_and_died():
        told(process)
        process.wait(timeout=120)

    found = trace_meanwhile(lived_and_died)
    [row] = [row for row in found["lookers"] if row["pid"] == process.pid]
    assert row["ended"]
    assert row["lookups"] > 80_000


def test_every_failed_lookup_is_counted_and_told_apart_where_they_are_few(machine_root, disk, spawn):
    """By perf events: of a process that makes exactly so many, each one is seen, by call."""
    code = (
        "for number in range(400):\n"
        "    for act in (os.stat, os.readlink):\n"
        "        try: act(f'{sys.argv[1]}/absent-{number}')\n        except OSError: pass\n"
    )
    for _ in range(10):
        process = spawn(WHEN_TOLD.format(code, 600), disk, stdin=subprocess.PIPE)
        found = trace_meanwhile(lambda process=process: told(process))
        rows = [row for row in found["lookers"] if row["pid"] == process.pid]
        if found["counted"] == found["total"] and rows:  # others on the machine left room for every record
            break
    else:
        pytest.skip("this machine is too busy to record every lookup")
    assert rows[0]["lookups"] == 800
    assert sorted(rows[0]["calls"].values()) == [400, 400]


def test_a_flood_is_sampled_and_scaled_to_the_kernels_count(machine_root, disk, spawn):
    """Two processes with different calls: their shares are right although few of their lookups are recorded."""
    both = (
        "import os, sys, time\nprint(flush=True); act = getattr(os, sys.argv[2]); end = time.monotonic() + 60; count = 0\n"
        "while time.monotonic() < end:\n"
        "    for number in range(100):\n"
        "        try: act(f'{sys.argv[1]}/absent-{number}')\n        except OSError: pass\n"
    )
    processes = {spawn(both, disk, name).pid: name for name in ("stat", "readlink")}
    found = traced_lookups("perf", 2.0)
    assert found["counted"] < 0.8 * found["total"]
    assert sum(row["lookups"] for row in found["lookers"]) == pytest.approx(found["total"], rel=0.01)
    for pid, name in processes.items():
        [row] = [row for row in found["lookers"] if row["pid"] == pid]
        assert row["lookups"] > 0.1 * found["total"]
        main = next(iter(row["calls"]))
        assert name in main
        assert row["calls"][main] > 0.95 * row["lookups"]


def test_where_perf_events_are_refused_an_instance_does(machine_root, disk, spawn):
    """A seccomp filter or a security module: the answer is the same, and nothing stays."""
    needs_strace()
    process = spawn(LOOK_FOR_ABSENT, disk, 1000, 120)
    before = set(instances())
    done = subprocess.run(
        ["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=perf_event_open",
         "-e", "inject=perf_event_open:error=EPERM",
         sys.executable, "-m", "opskit", "dentry", "--culprit", "1", "-f", "json"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert process.pid in [row["pid"] for row in json.loads(done.stdout)["culprits"]]
    assert set(instances()) <= before


CULPRIT = """
import sys
from opskit import cli
from opskit.actions import trace_lookups
if sys.argv[1] == "instance":
    trace_lookups.trace_failed_lookups.__defaults__ = (("syscalls", "raw_syscalls"),)
sys.argv = ["opskit", "dentry", "--culprit", "60", "-f", "json"]
cli.main()
"""


@pytest.fixture(params=["perf", "instance"])
def culprit(request, machine_root):
    """`opskit dentry --culprit 60` at work, by perf events and by an instance: (the process, its child, its instances)."""
    before = set(instances())
    process = subprocess.Popen(
        [sys.executable, "-c", CULPRIT, request.param],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip

    def at_work():
        return perf_events(*children(process.pid)) or set(instances()) - before

    assert wait_until(at_work)
    [child] = children(process.pid)
    made = {name for name in set(instances()) - before if name.startswith(f"opskit-{child}-")}
    assert bool(perf_events(child)) is (request.param == "perf")
    assert bool(made) is (request.param == "instance")
    yield process, child, made
    process.kill()
    process.communicate()


def test_ctrl_c_tells_what_was_seen_and_leaves_nothing(culprit):
    """SIGINT to the whole foreground group, as a terminal sends it: exit 130, the report, no instance left."""
    process, child, made = culprit
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in err
    assert json.loads(out)["culprit_s"] < 60
    assert not made & set(instances())
    assert not os.path.exists(f"/proc/{child}")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_that_ends_us_removes_everything_first(culprit, number):
    """The report of what was seen, ended by the signal, and the instance is gone when we are."""
    process, child, made = culprit
    process.send_signal(number)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == -number
    assert json.loads(out)["culprit_s"] < 60
    assert not made & set(instances())
    assert not os.path.exists(f"/proc/{child}")


def test_even_kill_9_leaves_nothing(culprit):
    """The child sees that its parent is gone."""
    process, child, made = culprit
    process.kill()
    process.communicate(timeout=60)
    assert wait_until(lambda: not made & set(instances()) and not os.path.exists(f"/proc/{child}"))


def test_a_killed_tracer_is_cleaned_up_after(culprit):
    """The child is killed: one clear line, exit 2, and its instance is removed."""
    process, child, made = culprit
    os.kill(child, signal.SIGKILL)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "what it had set up was removed" in err
    assert not made & set(instances())


def test_both_killed_leave_no_event_and_the_next_run_removes_an_instance(opskit, culprit, spawn):
    """SIGKILL of both processes: perf events end with them; an instance, without those, stays until the next run."""
    process, child, made = culprit
    enabled = "grep -l 1 events/syscalls/*/enable events/raw_syscalls/*/enable | sort"
    for pid in (process.pid, child):
        os.kill(pid, signal.SIGKILL)
    process.communicate(timeout=60)
    assert wait_until(lambda: not os.path.exists(f"/proc/{child}") or not perf_events(child))
    assert made <= set(instances())
    assert in_tracefs(f"({enabled}) || true") == []
    if made:
        living = spawn(
            "from opskit.actions import leftovers; print(leftovers.new_name()[1:]); import time; time.sleep(60)"
        )
        in_tracefs(f"mkdir instances/{living.line}")
        try:
            opskit("dentry", "--culprit", "100ms")
            assert not made & set(instances())
            assert living.line in instances(), "one whose owner lives stays"
        finally:
            in_tracefs(f"rmdir instances/{living.line}")


def test_a_bug_in_the_tracer_ends_with_70(machine_root):
    """One line with its place, as any other bug."""
    code = CULPRIT.replace("cli.main()", "trace_lookups.Tracer._tallies = lambda *_: {}['x']\ncli.main()").replace(
        '"60"', '"100ms"'
    )
    done = subprocess.run([sys.executable, "-c", code, "perf"], capture_output=True, text=True, check=False)
    assert done.returncode == 70
    [line] = done.stderr.splitlines()
    assert line.startswith("opskit: this is a bug in opskit")
    assert "KeyError: 'x' at opskit/actions/trace_lookups.py" in line
