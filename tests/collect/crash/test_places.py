"""Where reports are looked for, where the user names none: running JVMs, also in a mount namespace, and copies."""

from __future__ import annotations

import os
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import copies
import crashes
import jvms
import pytest

from opskit.collect.crash import places
from opskit.collect.crash.collect import collect
from opskit.collect.crash.facts import Request
from opskit.collect.crash.places import _numbered
from opskit.host import Host

REPORT = crashes.FIXTURES / "jdk17-native.log"
SMALL = ("-Xmx32m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


def look(root=None):
    return collect(Host.at(None if root is None else str(root), None), Request())


def of(facts, pid):
    """The places of a process: what -> place."""
    return {
        what.partition(" of ")[0]: place
        for place in facts.places
        for what in place.what.split("; ")
        if f" of {pid} (" in what
    }


@pytest.fixture(scope="module")
def stage(tmp_path_factory):
    """A JVM with an ErrorFile, whose predecessor crashed twice, and one in a mount namespace, whose directory we don't see."""
    if os.geteuid():
        pytest.skip("needs root: mounts a file system")
    top = tmp_path_factory.mktemp("places")
    cwd, errors, inside = top / "cwd", top / "errors", top / "inside"
    for place in (cwd, errors, inside):
        place.mkdir()
    shutil.copyfile(REPORT, cwd / "hs_err_pid30834.log")
    shutil.copyfile(REPORT, errors / "fatal_30835.txt")
    (errors / "fatal_x.txt").write_text("no report")
    (errors / "fatal_7.txt").write_text("a secret")
    hidden = f'mount -t tmpfs t {inside} && cp {REPORT} {inside}/hs_err_pid7.log && cd {inside} && exec "$@"'
    with ThreadPoolExecutor() as pool:
        first = pool.submit(
            jvms.start, options=(*SMALL, f"-XX:ErrorFile={errors}/fatal_%p.txt", "-XX:+ErrorFileToStdout"), cwd=str(cwd)
        )
        second = pool.submit(jvms.start, options=SMALL, wrapper=("unshare", "-m", "sh", "-c", hidden, "sh"))
        started = [first.result(), second.result()]
    yield SimpleNamespace(cwd=cwd, errors=errors, inside=inside, plain=started[0].pid, hidden=started[1].pid)
    for each in started:
        each.stop()


def test_reports_of_the_predecessors_of_running_jvms(stage):
    """In the directory of -XX:ErrorFile by its name, and in the working directory."""
    facts = look()
    names = {read.name for read in facts.read}
    assert {f"{stage.cwd}/hs_err_pid30834.log", f"{stage.errors}/fatal_30835.txt"} <= names
    assert f"{stage.errors}/fatal_x.txt" not in names
    assert not [each for each in facts.unread if each.name.startswith(str(stage.errors))], "ErrorFile may name any file"
    its = of(facts, stage.plain)
    assert its["-XX:+ErrorFileToStdout"].path.startswith("pipe:")
    assert "opskit crash -" in its["-XX:+ErrorFileToStdout"].why_not
    assert its["-XX:ErrorFile"].found == [f"{stage.errors}/fatal_30835.txt"]
    assert its["working directory"].path == str(stage.cwd)
    assert "/tmp" in [place.path for place in facts.places]
    assert facts.core_pattern


def test_no_more_reports_are_read_than_enough(stage, monkeypatch):
    """However many JVMs have a directory full of them; the others are named with their place."""
    monkeypatch.setattr(places, "MOST_REPORTS", 1)
    facts = look()
    assert len(facts.read) == 1
    assert facts.read[0].name
    assert [each.why for each in facts.unread if each.why.startswith("not read: at most 1 ")]
    assert of(facts, stage.plain)["working directory"].found == [f"{stage.cwd}/hs_err_pid30834.log"]


def test_a_report_in_another_mount_namespace(stage):
    """By the root directory of the JVM's process: no file of our own namespace has its path."""
    assert not list(stage.inside.iterdir())
    facts = look()
    path = f"/proc/{stage.hidden}/root{stage.inside}/hs_err_pid7.log"
    assert path in [read.name for read in facts.read]
    assert of(facts, stage.hidden)["working directory"].found == [path]


def test_places_of_other_users(stage, as_user):
    """They are named with the reason; /tmp is read."""
    facts = as_user(65534, look)
    assert of(facts, stage.plain)["working directory"].why_not == "permission denied; run as root"
    assert "/tmp" in [place.path for place in facts.places if place.why_not is None]


def test_a_jvm_that_ends_meanwhile_has_no_place():
    """Its working directory is no question of rights."""
    child = subprocess.Popen(["true"])
    child.wait()
    gone = SimpleNamespace(pid=child.pid, ns_pid=child.pid, main="com.acme.Main")
    assert list(places._of_jvm(Host.at(None, None), gone)) == []


def test_a_copy_is_read_alone(stage, tmp_path):
    """Of a copied tree only what is in it: not the files of this machine with the same paths."""
    copies.copy_machine(tmp_path, [stage.plain, stage.hidden])
    first = tmp_path / "proc" / "1" / "ns"
    first.mkdir(parents=True)
    (first / "mnt").symlink_to(os.readlink("/proc/self/ns/mnt"))  # not even root may read that of every pid 1
    (tmp_path / "tmp").mkdir()
    shutil.copyfile(REPORT, tmp_path / "tmp" / "hs_err_pid99.log")
    facts = look(tmp_path)
    assert [read.name for read in facts.read] == [f"{tmp_path}/tmp/hs_err_pid99.log"]
    assert of(facts, stage.plain)["working directory"].why_not == "does not exist"
    assert of(facts, stage.hidden)["working directory"].why_not == "not in this copy"
    here = tmp_path / str(stage.cwd).lstrip("/")
    here.mkdir(parents=True)
    shutil.copyfile(REPORT, here / "hs_err_pid98.log")
    os.symlink(stage.errors, tmp_path / str(stage.errors).lstrip("/"))
    facts = look(tmp_path)
    assert {read.name for read in facts.read} == {f"{tmp_path}/tmp/hs_err_pid99.log", f"{here}/hs_err_pid98.log"}


def test_a_hostile_copy(tmp_path):
    """A link out of the tree and a FIFO are not opened."""
    (tmp_path / "proc" / "1").mkdir(parents=True)
    (tmp_path / "proc" / "meminfo").write_text("MemTotal: 1 kB\n")
    os.symlink("/tmp", tmp_path / "tmp")
    assert look(tmp_path).places[0].why_not is not None
    (tmp_path / "tmp").unlink()
    (tmp_path / "tmp").mkdir()
    os.mkfifo(tmp_path / "tmp" / "hs_err_pid1.log")
    os.symlink(REPORT, tmp_path / "tmp" / "hs_err_pid2.log")
    facts = look(tmp_path)
    assert facts.read == []
    assert len(facts.unread) == 2


@pytest.mark.parametrize(
    ("name", "matches", "others"),
    [
        ("fatal_%p.txt", "fatal_42.txt", "fatal_x.txt"),
        ("100%%.log", "100%.log", "100%%.log"),
        ("a.b", "a.b", "axb"),
        ("(", "(", ""),
        ("", "", "x"),
    ],
)
def test_names_of_error_files(name, matches, others):
    """%p is a PID, %% a percent sign; the rest stands for itself."""
    pattern = _numbered(name)
    assert pattern.fullmatch(matches)
    assert not pattern.fullmatch(others)
