"""A perf map of a real JVM and its frame pointers: names, what is refused, what is left behind."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from attaching import refused
from sampling import wait_for, wait_until_it_samples, wait_until_it_used

from opskit.actions.perf_map import profile_by_perf_map
from opskit.errors import NotSupported
from opskit.host import Host

FRAME_POINTERS = ("-Xmx128m", "-XX:+PreserveFramePointer")
APP = 1236
RUN = (
    "import sys; from opskit import interrupts; interrupts.install()\n"
    "from opskit.actions.perf_map import profile_by_perf_map; from opskit.host import Host\n"
    "print('up'); found = profile_by_perf_map(Host.at(None, None), int(sys.argv[1]), 199.0, float(sys.argv[2]))\n"
    "print(found.ended, found.samples)"
)


@pytest.fixture(autouse=True)
def allowed(root_only):
    """Only root may sample in every place where tests run."""


def profiled(running, seconds=0.4):
    return profile_by_perf_map(Host.at(None, None), running.pid, 499.0, seconds)


def left(running, by=None):
    tmp = Path(f"/proc/{running.pid}/root/tmp")
    inside = Path(f"/proc/{running.pid}/status").read_text().split("NSpid:")[1].split("\n")[0].split()[-1]
    ours = [f".opskit-{pid}-*" for pid in (os.getpid(), by and by.pid) if pid]
    return [*tmp.glob(f"perf-{inside}.map"), *(file for name in ours for file in tmp.glob(name))]


@pytest.mark.parametrize("version", [17, 25])
def test_compiled_methods_have_names(workload, version):
    """Java by frame pointers, native code by its tables, up to the entry of the thread; the map is removed."""
    running = workload("burn=4:1", "sleep=1", version=version, options=FRAME_POINTERS)
    found = profiled(running)
    burning = {key: count for key, count in found.stacks.items() if found.threads[key.tid].name.startswith("burn-")}
    total = sum(burning.values())
    assert total > 5
    names = [{frame.name for frame in key.frames} for key in burning for _ in range(burning[key])]
    assert sum("Workload.work" in each for each in names) > 0.9 * total
    assert found.ends["root"] > 0.95 * found.samples
    assert {frame.kind for key in burning for frame in key.frames} >= {"compiled", "interpreted", "native"}
    assert "interpreted methods have no names" in found.missing[0]
    assert found.debug_non_safepoints is None
    assert not left(running)
    assert running.output() == "READY"


def test_what_is_missing_is_said(workload):
    """Without frame pointers; with them, on a JDK that writes no map. Nothing is sent."""
    for version, options, says in (
        (21, ("-Xmx64m",), "runs without -XX:\\+PreserveFramePointer"),
        (11, FRAME_POINTERS, "is JDK 11, which cannot write a perf map"),
    ):
        running = workload(version=version, options=options)
        with pytest.raises(NotSupported, match=says):
            profiled(running)
        assert not Path(f"/tmp/.java_pid{running.pid}").exists()
        assert running.output() == "READY"


@pytest.mark.parametrize("version", [17, 25])
def test_another_user_in_its_own_namespaces(workload, version):
    """The file has the PID inside, belongs to the JVM's user, and is removed."""
    become = ("setpriv", f"--reuid={APP}", f"--regid={APP}", "--clear-groups")
    script = 'mount -t tmpfs -o mode=1777 tmpfs /tmp && exec "$@"'
    unshared = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child")
    wrapper = ("unshare", "--mount", "sh", "-c", script, "sh", *unshared, *become)
    running = workload("burn=1", version=version, options=FRAME_POINTERS, wrapper=wrapper)
    found = profiled(running)
    assert any(frame.name == "Workload.work" for key in found.stacks for frame in key.frames)
    assert {thread.name for thread in found.threads.values()} >= {"burn-1"}
    assert max(found.threads) < 100
    assert not left(running)


def test_a_link_in_place_of_the_map_is_refused(workload, tmp_path):
    """The JVM would write through it: neither a symbolic link nor a second name nor another user's file is used."""
    running = workload("burn=1", options=FRAME_POINTERS)
    kept = tmp_path / "kept"
    kept.write_text("precious")
    place = Path(f"/tmp/perf-{running.pid}.map")
    for plant in (lambda: place.symlink_to(kept), lambda: os.link(kept, place), lambda: theirs(place)):
        plant()
        try:
            with refused("tmp", f"perf-{running.pid}.map"):
                profiled(running)
            assert os.path.lexists(place)
        finally:
            place.unlink()
    assert kept.read_text() == "precious"


def theirs(place):
    place.touch()
    os.chown(place, APP, APP)


def test_a_map_that_was_there_stays(workload):
    """One of the JVM's user, which an earlier command made: it is written anew, and kept."""
    running = workload("burn=1", options=FRAME_POINTERS)
    place = Path(f"/tmp/perf-{running.pid}.map")
    place.write_text("old")
    try:
        assert profiled(running, 0.3).samples
        assert "Interpreter" in place.read_text()
    finally:
        place.unlink()


def test_signals_and_the_end_of_the_jvm(workload, spawn):
    """Ctrl-C gives the samples so far, and so does the end of the JVM; the map is removed in both cases."""
    running = workload("burn=1", options=FRAME_POINTERS)
    for kills_jvm in (False, True):
        started = spawn(RUN, running.pid, 60)
        wait_for(lambda started=started: left(running, started))
        wait_until_it_samples(started.pid)
        wait_until_it_used(running.pid, 100)
        running.signal(signal.SIGKILL) if kills_jvm else started.send_signal(signal.SIGINT)
        ended, samples = started.stdout.read().split()
        assert ended == ("exited" if kills_jvm else "interrupted")
        assert int(samples) > 0
        assert not list(Path("/tmp").glob(f"perf-{running.pid}.map"))
        assert not list(Path("/tmp").glob(f".opskit-{started.pid}-*"))
