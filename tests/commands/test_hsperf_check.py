"""`opskit hsperf-check` on real JVMs: every fault injected for real, found, explained, and repaired where that is safe."""

from __future__ import annotations

import fcntl
import grp
import json
import os
import pwd
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import jvms
import pytest
from attaching import remove_dead_socket
from jvmtree import LIBJVM, PROGRAM, Tree
from nextsteps import try_next
from stracing import ACTS, OPENS, traced
from users import reserved_user

from opskit.analysis.hsperf_check import rules
from opskit.jvm import discover
from opskit.jvm.attach.client import AttachClient
from opskit.proc.fs import ProcFS

APP, OTHER = 1234, 1235
PAGE = os.sysconf("SC_PAGE_SIZE")


@pytest.fixture
def passwd_user(root_only):
    """A user with a passwd entry that is not root, for whom HotSpot makes hsperfdata: (name, uid, gid)."""
    with reserved_user() as entry:
        if entry is None:
            pytest.skip("needs a system user that no other test uses")
        remove_directory(Path(f"/tmp/hsperfdata_{entry.pw_name}"))  # what an interrupted test may have left
        yield entry.pw_name, entry.pw_uid, entry.pw_gid


def remove_directory(directory):
    """Remove a user's hsperfdata directory, or the link in its place."""
    if directory.is_symlink():
        directory.unlink()
    elif directory.exists():
        for file in directory.iterdir():
            file.unlink()
        directory.rmdir()


@pytest.fixture
def check(inprocess):
    """Run the check on pids; gives (exit code, JSON object)."""

    def run(*words, timeout=120):
        ran = inprocess("hsperf-check", *words, "-f", "json", timeout=timeout)
        assert ran.code in (0, 1), ran.err
        return ran.code, json.loads(ran.out)

    return run


@pytest.fixture
def app(workload, passwd_user, jvm_version):
    """A JVM of another user with its listener started: (workload, user's name, uid, gid, hsperfdata path, socket path)."""
    return start_app(workload, passwd_user, jvm_version)


def start_app(workload, passwd_user, version, **options):
    name, uid, gid = passwd_user
    running = workload("sleep=1", version=version, user=uid, group=gid, **options)
    AttachClient(ProcFS(), running.pid, 60).thread_dump()
    running.user, running.uid, running.gid = name, uid, gid
    running.group = grp.getgrgid(gid).gr_name
    running.counters = f"/tmp/hsperfdata_{name}/{running.pid}"
    running.socket = f"/tmp/.java_pid{running.pid}"
    return running


def codes(document):
    return {finding["code"] for finding in document["findings"]}


def fates(document):
    [jvm] = document["jvms"]
    return {client["client"]: client["works"] for client in jvm["clients"]}


def test_all_well(check, workload, jvm_version):
    """A JVM whose files are as it made them: nothing is found, exit 0; also once its listener runs."""
    running = workload(version=jvm_version)
    for _ in range(2):
        code, document = check(running.pid)
        assert (code, codes(document)) == (0, set())
        assert fates(document) == {
            "jstack of JDK 8 as root": True,
            "jstack of JDK 11+ as root": True,
            "opskit as root": True,
        }
        AttachClient(ProcFS(), running.pid, 60).thread_dump()


def test_another_users_jvm_is_well_too(check, app):
    """The blog's case without any fault: only JDK 8's client as root is refused, and that is no deviation."""
    code, document = check(app.pid)
    assert (code, codes(document)) == (0, set())
    assert fates(document) == {
        "jstack of JDK 8 as root": False,
        "jstack of JDK 11+ as root": True,
        f"jstack as {app.user}": True,
        "opskit as root": True,
    }
    why = document["jvms"][0]["clients"][0]["why"]
    assert "well-known file is not secure" in why
    assert f"{app.user} ({app.uid})" in why


FAULTS = {
    "attach-socket-owner": lambda app: os.chown(app.socket, OTHER, -1),
    "attach-socket-group": lambda app: os.chown(app.socket, -1, 0),
    "attach-socket-mode": lambda app: os.chmod(app.socket, 0o666),  # noqa: S103
    "hsperf-file-owner": lambda app: os.chown(app.counters, OTHER, -1),
    "hsperf-file-group": lambda app: os.chown(app.counters, -1, OTHER),
    "hsperf-file-mode": lambda app: os.chmod(app.counters, 0o644),
    "hsperf-dir-owner": lambda app: os.chown(os.path.dirname(app.counters), OTHER, -1),
    "hsperf-dir-mode": lambda app: os.chmod(os.path.dirname(app.counters), 0o777),  # noqa: S103
}


@pytest.mark.parametrize("code", FAULTS)
def test_a_wrong_owner_group_or_mode_is_found_and_repaired(check, workload, passwd_user, code):
    """Found; shown by --fix and left alone; repaired by --fix --yes to what it was; then all is well."""
    app = start_app(workload, passwd_user, 17)
    path = app.socket if "socket" in code else app.counters if "file" in code else os.path.dirname(app.counters)
    before = os.lstat(path)
    FAULTS[code](app)
    broken = os.lstat(path)
    exit_code, document = check(app.pid)
    assert (exit_code, codes(document)) == (1, {code})
    exit_code, document = check(app.pid, "--fix")
    assert (exit_code, [repair["state"] for repair in document["repairs"]]) == (1, ["would"])
    assert os.lstat(path).st_mode == broken.st_mode
    assert (os.lstat(path).st_uid, os.lstat(path).st_gid) == (broken.st_uid, broken.st_gid)
    exit_code, document = check(app.pid, "--fix", "--yes")
    assert (exit_code, codes(document)) == (0, set())
    assert [repair["state"] for repair in document["repairs"]] == ["done"]
    assert {finding["code"] for finding in document["findings_before"]} == {code}
    after = os.lstat(path)
    assert (after.st_mode, after.st_uid, after.st_gid) == (before.st_mode, before.st_uid, before.st_gid)


PLACES = {
    "the host": "",
    "a tmpfs": "mount -t tmpfs -o mode=1777 tmpfs /tmp",
    "an overlay": "mount -t overlay -o lowerdir={0}/lower,upperdir={0}/upper,workdir={0}/work overlay /tmp",
    "a bind mount": "mount --bind {0}/upper /tmp",
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("pid_namespace", [False, True], ids=["", "its own pid namespace"])
def test_a_recursive_chown_of_tmp_is_repaired(check, workload, passwd_user, tmp_path, place, pid_namespace):
    """Owner, group and mode of socket, counters and directory at once, wherever its /tmp lies: all is as before.

    On overlayfs and btrfs device numbers in maps are not those of stat.
    """
    name, uid, gid = passwd_user
    for part in ("lower", "upper", "work"):
        (tmp_path / part).mkdir()
        (tmp_path / part).chmod(0o1777)
    become = (
        f'{PLACES[place].format(tmp_path) or "true"} && exec setpriv --reuid={uid} --regid={gid} --clear-groups "$@"'
    )
    own = ("--pid", "--fork", "--mount-proc", "--kill-child") if pid_namespace else ()
    remove_dead_socket("/tmp/.java_pid1")
    try:
        running = workload("sleep=1", wrapper=("unshare", "--mount", *own, "sh", "-c", become, "sh"))
    except pytest.fail.Exception as failed:
        if "mount" in str(failed):
            pytest.skip(f"cannot be mounted here: {failed}")
        raise
    client = AttachClient(ProcFS(), running.pid, 60)
    client.thread_dump()
    tmp = f"/proc/{running.pid}/root/tmp"
    socket_path, directory = f"{tmp}/{client.target.socket_name}", f"{tmp}/hsperfdata_{name}"
    counters = f"{directory}/{client.target.jvm.ns_pid}"
    paths = (socket_path, counters, directory)
    before = [(found.st_mode, found.st_uid, found.st_gid) for found in map(os.lstat, paths)]
    code, document = check(running.pid)
    assert (code, codes(document) - {"tmp-private"}) == (0, set())
    try:
        for path in paths:
            os.chown(path, OTHER, OTHER)
        os.chmod(socket_path, 0o640)
        os.chmod(counters, 0o644)
        code, document = check(running.pid, "--fix", "--yes")
        assert {repair["state"] for repair in document["repairs"]} == {"done"}, document["repairs"]
        assert (code, codes(document) - {"tmp-private"}) == (0, set())
        if place != "the host":  # the directory's group has no effect
            os.chown(directory, -1, gid)
        after = [(found.st_mode, found.st_uid, found.st_gid) for found in map(os.lstat, paths)]
        assert after[:2] == before[:2]
        assert after[2][:2] == before[2][:2]
    finally:
        for path in (socket_path, counters):
            os.unlink(path)


def test_a_jvm_in_a_user_namespace_is_repaired_from_within_only(check, workload, root_only, tmp_path):
    """Who runs in one may have mounted anything anywhere: refused on the host, with what to do; done from inside of it."""
    inside = ("unshare", "--user", "--map-root-user", "--mount")
    try:
        running = workload(
            "sleep=1", wrapper=(*inside, "sh", "-c", 'mount -t tmpfs -o mode=1777 tmpfs /tmp && exec "$@"', "sh")
        )
    except pytest.fail.Exception as failed:
        pytest.skip(f"user namespaces are disabled here: {failed}")
    AttachClient(ProcFS(), running.pid, 60).thread_dump()
    path = f"/proc/{running.pid}/root/tmp/.java_pid{running.pid}"
    os.chmod(path, 0o644)
    code, document = check(running.pid, "--fix", "--yes")
    assert code == 1
    assert [repair["state"] for repair in document["repairs"]] == ["refused"]
    assert document["repairs"][0]["why"] == f"{running.pid} runs in another user namespace: run opskit inside of it"
    assert os.lstat(path).st_mode & 0o777 == 0o644
    enter = ("nsenter", "--target", str(running.pid), "--user", "--mount", "--preserve-credentials")
    done = subprocess.run(
        [*enter, sys.executable, "-m", "opskit", "hsperf-check", str(running.pid), "--fix", "--yes", "-f", "json"],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert [repair["state"] for repair in json.loads(done.stdout)["repairs"]] == ["done"]
    assert os.lstat(path).st_mode & 0o777 == 0o600


def test_ones_own_socket_needs_no_root(as_nobody, workload, root_only):
    """Its owner may repair the socket's mode; only root can read what is mapped, and a note says so."""
    running = workload("sleep=1", user=65534, group=65534)
    AttachClient(ProcFS(), running.pid, 60).thread_dump()
    path = f"/tmp/.java_pid{running.pid}"
    counters = f"/tmp/hsperfdata_{pwd.getpwuid(65534).pw_name}/{running.pid}"
    os.chmod(path, 0o644)
    os.chmod(counters, 0o644)
    done = as_nobody("hsperf-check", running.pid, "--fix", "--yes", "-f", "json")
    assert done.returncode == 1, done.stderr
    document = json.loads(done.stdout)
    states = {repair["code"]: repair["state"] for repair in document["repairs"]}
    assert states == {"attach-socket-mode": "done", "hsperf-file-mode": "refused"}
    [why] = [repair["why"] for repair in document["repairs"] if repair["state"] == "refused"]
    assert "map_files" in why
    assert (os.lstat(path).st_mode & 0o777, os.lstat(counters).st_mode & 0o777) == (0o600, 0o644)


def test_the_blogs_case(check, opskit, workload, passwd_user):
    """The group of the socket is root's: JDK 8's jstack is refused, and its own user's; JDK 11+ as root works."""
    app = start_app(workload, passwd_user, 17)
    os.chown(app.socket, -1, 0)
    _, document = check(app.pid)
    assert fates(document) == {
        "jstack of JDK 8 as root": False,
        "jstack of JDK 11+ as root": True,
        f"jstack as {app.user}": False,
        "opskit as root": True,
    }
    ran = opskit("hsperf-check", app.pid)
    assert ran.code == 1
    assert f"the group of {app.socket} is root (0), the JVM runs with group {app.group} ({app.gid})" in ran.out
    assert f"opskit hsperf-check {app.pid} --fix" in ran.out


def test_the_verdicts_are_what_jstack_really_does(check, workload, passwd_user):
    """Oracle: the JDK's own jstack, as root and as the user, fails or works exactly as predicted."""
    jstack = Path(jvms.java(17)).parent / "jstack"
    app = start_app(workload, passwd_user, 17)
    for break_it in (lambda: None, *(lambda fault=fault: FAULTS[fault](app) for fault in list(FAULTS)[:3])):
        break_it()
        _, document = check(app.pid)
        said = fates(document)
        for user, client in ((None, "jstack of JDK 11+ as root"), (app.uid, f"jstack as {app.user}")):
            done = subprocess.run(
                [jstack, str(app.pid)],
                user=user,
                group=None if user is None else app.gid,
                extra_groups=None if user is None else [],
                capture_output=True,
                text=True,
                check=False,
                timeout=120,
            )
            assert (done.returncode == 0) is said[client], (client, done.stderr)
        os.chown(app.socket, app.uid, app.gid)
        os.chmod(app.socket, 0o600)


def test_a_planted_socket_is_never_repaired(check, workload, fake_jvm, passwd_user):
    """Giving it the right owner would make jstack trust it: its peer is not the JVM, so it is reported and left alone."""
    app = start_app(workload, passwd_user, 17)
    evil = fake_jvm("v1", user=OTHER)
    AttachClient(ProcFS(), evil.pid, 60).thread_dump()
    os.unlink(app.socket)
    os.link(f"/tmp/.java_pid{evil.pid}", app.socket)
    code, document = check(app.pid, "--fix", "--yes")
    assert code == 1
    assert "attach-socket-foreign" in codes(document)
    assert document["repairs"] == []
    assert os.lstat(app.socket).st_uid == OTHER
    assert set(fates(document).values()) == {False}


@pytest.mark.parametrize("kind", ["plain file", "symbolic link"])
def test_no_socket_in_the_sockets_place(check, workload, passwd_user, kind):
    """Reported, never touched."""
    app = start_app(workload, passwd_user, 17)
    os.unlink(app.socket)
    Path(app.socket).touch() if kind == "plain file" else os.symlink("/etc/passwd", app.socket)
    code, document = check(app.pid, "--fix", "--yes")
    assert code == 1
    assert codes(document) == {"attach-not-a-socket"}
    assert os.path.lexists(app.socket)
    assert os.stat("/etc/passwd").st_uid == 0


def test_an_orphan_is_removed_and_the_jvm_can_be_asked_again(check, app, jvm_version, initial_pid_namespace):
    """Nobody listens on the file over the JVM's own name: removed; the JVM makes its own again (not 11, which needs a restart)."""
    os.unlink(app.socket)
    with socket.socket(socket.AF_UNIX) as orphan:
        orphan.bind(app.socket)
    code, document = check(app.pid)
    assert (code, codes(document)) == (1, {"attach-socket-orphaned"})
    code, document = check(app.pid, "--fix", "--yes")
    assert not os.path.lexists(app.socket)
    assert code == 1
    if jvm_version == 11:
        assert codes(document) == {"attach-socket-lost"}
    else:
        assert codes(document) == {"attach-socket-deleted"}
        code, document = check(app.pid, "--probe")
        assert document["jvms"][0]["probe"]["works"]
        assert check(app.pid)[0] == 0


def test_triggers(check, workload, passwd_user, initial_pid_namespace, monkeypatch):
    """A wrong-owner trigger in the cwd stops attaching; it is removed, as is an old one; a fresh one belongs to a client at work."""
    _, uid, gid = passwd_user
    running = workload(user=uid, group=gid)
    trigger = Path(f"/proc/{running.pid}/cwd/.attach_pid{running.pid}")
    trigger.touch()
    os.chown(trigger, OTHER, OTHER)
    code, document = check(running.pid)
    assert (code, codes(document)) == (1, {"attach-trigger-owner"})
    assert set(fates(document).values()) == {False}
    code, document = check(running.pid, "--fix", "--yes")
    assert (code, codes(document)) == (0, set())
    assert not trigger.exists()
    trigger.touch()
    os.chown(trigger, uid, gid)
    assert check(running.pid)[0] == 0
    monkeypatch.setattr(rules, "TRIGGER_STAYS_S", 0.0)
    code, document = check(running.pid)
    assert (code, codes(document)) == (1, {"attach-trigger-left"})
    assert check(running.pid, "--fix", "--yes")[0] == 0
    assert not trigger.exists()
    trigger.write_text("not a trigger")
    os.chown(trigger, OTHER, OTHER)
    code, document = check(running.pid, "--fix", "--yes")
    assert [repair["state"] for repair in document["repairs"]] == ["refused"]
    assert trigger.exists()
    trigger.unlink()


def test_hsperfdata_deleted_replaced_linked_cut(check, workload, passwd_user, tmp_path):
    """What became of the counters' file: each has its own finding, and is not touched."""
    app = start_app(workload, passwd_user, 17)
    link = Path(app.counters + ".link")
    os.link(app.counters, link)
    code, document = check(app.pid, "--fix", "--yes")
    assert (code, codes(document)) == (1, {"hsperf-file-links"})
    try_next(document["findings"], "hsperf-file-links")
    link.unlink()
    size = os.stat(app.counters).st_size
    os.truncate(app.counters, size + 5)
    assert codes(check(app.pid)[1]) == {"hsperf-file-size"}
    os.truncate(app.counters, size)
    assert check(app.pid)[0] == 0
    os.unlink(app.counters)
    assert codes(check(app.pid)[1]) == {"hsperf-file-deleted"}
    Path(app.counters).write_bytes(b"\0" * PAGE)
    assert codes(check(app.pid)[1]) == {"hsperf-file-stale"}
    os.unlink(app.counters)


def wait_for_codes(check, pid):
    """What is found once the JVM is no longer one that may just be starting."""
    deadline = time.monotonic() + 60
    while "hsperf-file-missing" not in codes(check(pid)[1]) and time.monotonic() < deadline:
        time.sleep(0.5)
    return codes(check(pid)[1])


@pytest.fixture
def soon_grown(monkeypatch):
    """A JVM counts as starting for half a second instead of five."""
    monkeypatch.setattr(discover, "_YOUNG_S", 0.5)


@pytest.mark.parametrize("mode", [0o555, 0o300])
def test_a_directory_that_its_own_user_cannot_use(check, workload, passwd_user, soon_grown, mode):
    """Its mode locks the JVM's own user out: the finding names that mode and the repair."""
    name, uid, gid = passwd_user
    directory = Path(f"/tmp/hsperfdata_{name}")
    directory.mkdir()
    os.chown(directory, uid, gid)
    directory.chmod(mode)
    try:
        running = workload(user=uid, group=gid)
        assert wait_for_codes(check, running.pid) == {"hsperf-file-missing"}
        [finding] = check(running.pid)[1]["findings"]
        assert f"mode {mode:04o} of {directory} locks out {name} ({uid})" in finding["summary"]
        assert finding["fix"] == f"sudo -u '#{uid}' chmod u+rwx {directory}; then restart the JVM"
    finally:
        directory.rmdir()


def test_a_directory_that_a_jvm_does_not_use(check, workload, passwd_user, soon_grown, tmp_path):
    """Writable for others, or a link, when the JVM starts: it keeps its counters to itself."""
    name, uid, gid = passwd_user
    directory = Path(f"/tmp/hsperfdata_{name}")
    remove_directory(directory)
    directory.mkdir()
    os.chown(directory, uid, gid)
    os.chmod(directory, 0o777)  # noqa: S103  (the fault)
    running = workload(user=uid, group=gid)
    assert wait_for_codes(check, running.pid) == {"hsperf-dir-mode", "hsperf-file-missing"}
    _, document = check(running.pid, "--fix", "--yes")
    assert [repair["state"] for repair in document["repairs"]] == ["refused"]  # nothing in it is the JVM's own
    running.stop()
    directory.rmdir()
    directory.symlink_to(tmp_path)
    try:
        running = workload(user=uid, group=gid)
        assert wait_for_codes(check, running.pid) == {"hsperf-dir-symlink", "hsperf-file-missing"}
    finally:
        directory.unlink()


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (("-XX:-UsePerfData",), "hsperf-off"),
        (("-XX:+PerfDisableSharedMem",), "hsperf-off"),
        (("-XX:+DisableAttachMechanism",), "attach-disabled"),
        (("-Xrs",), "attach-xrs"),
    ],
)
def test_what_was_intended_is_a_note(check, workload, jvm_version, options, code):
    """A flag that disables something is a note, and does not fail the check."""
    running = workload(version=jvm_version, options=options)
    exit_code, document = check(running.pid)
    assert (exit_code, codes(document)) == (0, {code})
    assert [finding["severity"] for finding in document["findings"]] == ["note"]
    if code == "attach-disabled":
        assert set(fates(document).values()) == {False}
        exit_code, document = check(running.pid, "--probe")
        assert exit_code == 0
        assert document["jvms"][0]["probe"]["reason"] == "disabled"


def test_a_user_without_a_name(check, workload, root_only):
    """HotSpot makes no hsperfdata for a uid without a passwd entry: a note that says so."""
    running = workload(user=APP, group=APP)
    code, document = check(running.pid)
    assert (code, codes(document)) == (0, {"hsperf-nameless"})


MOUNTS = {
    "tmp-read-only": "mount -t tmpfs tmpfs /tmp && mount -o remount,ro /tmp",
    "tmp-full": "mount -t tmpfs -o nr_inodes=2 tmpfs /tmp && touch /tmp/x",
    "tmp-not-sticky": "mount -t tmpfs -o mode=0777 tmpfs /tmp",
    "tmp-setgid": "mount -t tmpfs -o mode=3777 tmpfs /tmp",
    "tmp-closed": "mount -t tmpfs -o mode=0755 tmpfs /tmp",
    "tmp-private": "mount -t tmpfs -o mode=1777 tmpfs /tmp",
}


@pytest.mark.parametrize("code", MOUNTS)
def test_tmp(check, workload, passwd_user, code):
    """What is wrong with the /tmp that the JVM has, which is not ours."""
    _, uid, gid = passwd_user
    become = f"setpriv --reuid={uid} --regid={gid} --clear-groups" if code == "tmp-closed" else ""
    running = workload(wrapper=("unshare", "--mount", "sh", "-c", f'{MOUNTS[code]} && exec {become} "$@"', "sh"))
    exit_code, document = check(running.pid)
    assert {code, "tmp-private"} <= codes(document)
    fixes = [finding["fix"] or "" for finding in document["findings"]]
    assert all(fix.startswith("df ") for fix in fixes if "/proc/" in fix), fixes  # others may turn that path elsewhere
    assert exit_code == (0 if code == "tmp-private" else 1)
    if code == "tmp-full":
        try_next(document["findings"], "tmp-full")
    works = fates(document)["jstack of JDK 11+ as root"]
    assert works is (code in ("tmp-private", "tmp-not-sticky", "tmp-setgid"))
    assert fates(document)["jstack of JDK 8 as root"] is False


def test_two_that_share_a_tmp_and_an_inner_pid(check, workload, root_only):
    """Socket and counters of that name belong to the other JVM: reported, and not repaired."""
    unshared = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child")
    first = workload("sleep=1", wrapper=unshared)
    second = workload("sleep=2", wrapper=unshared)
    asked = AttachClient(ProcFS(), first.pid, 60)
    asked.thread_dump()
    try:
        code, document = check(second.pid)
        assert code == 1
        assert {"attach-socket-foreign", "hsperf-file-foreign"} <= codes(document)
        assert check(first.pid)[0] == 0
    finally:
        os.unlink(f"/tmp/{asked.target.socket_name}")


def test_a_leftover_of_an_inner_pid_that_a_jvm_elsewhere_has(check, workload, root_only):
    """A JVM that is pid 1 in its own /tmp says nothing about what another pid 1 has left in this one."""
    mounted = ("unshare", "--mount", "sh", "-c", 'mount -t tmpfs -o mode=1777 tmpfs /tmp && exec "$@"', "sh")
    running = workload(wrapper=mounted)
    workload(wrapper=("unshare", "--pid", "--fork", "--mount-proc", "--kill-child", *mounted))
    tmp = f"/proc/{running.pid}/root/tmp"
    leave_socket(f"{tmp}/.java_pid1")
    _, document = check()
    left = {finding["subject"] for finding in document["findings"] if finding["code"] == "attach-socket-leftover"}
    assert f"{tmp}/.java_pid1" in left


def leave_socket(path):
    """A socket without a listening process."""
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(path)


def test_jstack_of_jdk_8_does_not_know_inner_pids(check, workload, root_only):
    """In another pid namespace it looks for the wrong name, although /tmp is the same."""
    running = workload(wrapper=("unshare", "--pid", "--fork", "--mount-proc", "--kill-child"))
    _, document = check(running.pid)
    assert fates(document)["jstack of JDK 11+ as root"] is True
    [refused] = [each for each in document["jvms"][0]["clients"] if each["client"] == "jstack of JDK 8 as root"]
    assert refused["works"] is False
    assert f"looks for .java_pid{running.pid}; the JVM, 1 in its own" in refused["why"]


def test_a_stopped_jvm(check, workload):
    """It cannot answer; the command that resumes it."""
    running = workload()
    running.signal(signal.SIGSTOP)
    code, document = check(running.pid, "--probe")
    assert code == 1
    assert codes(document) == {"attach-stopped", "attach-probe-failed"}
    assert f"kill -CONT {running.pid}" in {finding["fix"] for finding in document["findings"]}


@pytest.mark.parametrize("version", [11, 25])  # the client itself is tested with each
def test_a_jvm_that_reaches_no_safepoint(opskit, workload, version):
    """--probe comes back in its timeout, and names the thread."""
    running = workload("hog", version=version, options=jvms.HOG_OPTIONS)
    ran = opskit("hsperf-check", running.pid, "--probe", "--timeout", "1")
    assert ran.code == 2
    assert 'thread "hog"' in ran.out


def test_probe(check, inprocess, workload, jvm_version):
    """It attaches for real, says what it leaves behind, and nothing else."""
    running = workload(version=jvm_version)
    code, document = check(running.pid, "--probe")
    assert code == 0
    assert document["jvms"][0]["probe"]["said"].startswith(f"JDK {jvm_version}.")
    assert any("Attach Listener" in note for note in document["notes"])
    assert os.path.lexists(f"/tmp/.java_pid{running.pid}")
    ran = inprocess("attach-check", running.pid, "--probe", "-f", "markdown")
    assert ran.code == 0
    assert "works" in ran.out


@pytest.fixture
def dead(workload, passwd_user):
    """A JVM that was killed with its files left: (pid, [socket, counters])."""
    app = start_app(workload, passwd_user, 17)
    os.kill(app.pid, signal.SIGKILL)
    app.process.wait()
    files = [Path(app.socket), Path(app.counters)]
    yield app.pid, files
    for file in files:
        file.unlink(missing_ok=True)


def test_leftovers_of_a_dead_jvm(check, inprocess, root_only, dead):
    """A killed JVM leaves socket and counters: found without a pid and by its pid, removed by --fix --yes."""
    pid, files = dead
    everything = json.loads(inprocess("hsperf-check", "-f", "json").out)
    subjects = {finding["subject"]: finding["code"] for finding in everything["findings"]}
    assert subjects[str(files[0])] == "attach-socket-leftover"
    assert subjects[str(files[1])] == "hsperf-leftover"
    code, document = check(pid)
    assert (code, codes(document)) == (0, {"attach-socket-leftover", "hsperf-leftover"})
    code, document = check(pid, "--fix", "--yes")
    for repair in document["repairs"]:
        # Refused where we are in a container, or where a process does not let its maps be read, not even by root.
        assert repair["state"] == "done" or "visible" in repair["why"] or "looked into" in repair["why"]
        assert os.path.lexists(repair["path"]) is (repair["state"] == "refused")


def test_a_leftover_that_is_locked_stays(check, dead):
    """An flock, or a mapping, means that a process has it: it is not a leftover."""
    pid, files = dead
    with open(files[1]) as held:
        fcntl.flock(held, fcntl.LOCK_SH)
        _, document = check(pid, "--fix", "--yes")
        assert "hsperf-leftover" not in codes(document)
        assert files[1].exists()


def test_what_cannot_be_checked(inprocess, spawn):
    """Exit 2 and one line."""
    other = spawn("import time; print('up', flush=True); time.sleep(1000)")
    for words, says in (
        ((other.pid,), "is not a JVM"),
        ((2**22 - 1,), "no process 4194303"),
        (("nosuch",), "not a PID or a part of a running JVM's main class or jar"),
        (("--yes",), "--yes goes with --fix"),
        (("--timeout", "3"), "--timeout goes with --probe"),
        (("--probe", "--timeout", "abc"), "is not a duration"),
    ):
        ran = inprocess("hsperf-check", *words)
        assert ran.code == 2
        assert says in ran.err
        assert ran.out == ""


def test_no_jvm_at_all(inprocess, tree):
    """A machine without a JVM: says so, exit 0."""
    root = tree(
        {
            "proc/1/status": "Name:\tinit\nUid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\nNSpid:\t1\n",
            "proc/1/comm": "init\n",
            "proc/1/maps": PROGRAM,
            "tmp/x": "",
        }
    )
    ran = inprocess("--root", root, "hsperf-check")
    assert ran.code == 0
    assert "No JVM is running here" in ran.out
    assert inprocess("--root", root, "hsperf-check", "--probe").code == 2
    assert inprocess("--root", root, "hsperf-check", "--fix", "--yes").code == 2


def test_a_jvm_by_its_name(inprocess, tmp_path):
    """A part of its main class may replace its PID; two JVMs that match are listed, exit 2; a copy is named as the reason."""
    tree = Tree(tmp_path)
    for pid, main in ((70, "com.example.Billing"), (90, "com.example.Orders")):
        tree.process(pid, ("java", "-cp", "x", main), maps=LIBJVM)
    done = inprocess("--root", tmp_path, "hsperf-check", "billing", "-f", "json")
    assert done.code in (0, 1), done.err
    document = json.loads(done.out)
    assert [jvm["pid"] for jvm in document["jvms"]] == [70]
    assert {client["works"] for client in document["jvms"][0]["clients"]} == {None}
    assert all("a copy does not contain it" in client["why"] for client in document["jvms"][0]["clients"])
    assert [finding["code"] for finding in document["findings"]] == []
    done = inprocess("--root", tmp_path, "hsperf-check", "example")
    assert (done.code, done.out) == (2, "")
    assert "2 JVMs match 'example'" in done.err


def test_what_the_safety_table_says(workload):
    """Without --probe nothing is written, signalled or sent; with it one trigger, one SIGQUIT by pidfd, and its removal."""
    running = workload()
    calls = (*OPENS, *ACTS, "connect", "sendto", "sendmsg")
    assert traced("hsperf-check", running.pid, calls=calls).acting() == []
    traced("hsperf-check", running.pid, "--probe").only_started_the_listener(running.pid)
    again = traced("hsperf-check", running.pid, calls=calls).acting()
    assert again
    assert all(call.startswith("connect(") and f".java_pid{running.pid}" in call for call in again)


def test_fix_is_refused_without_a_terminal_and_yes(opskit, workload, passwd_user):
    """A no, and the end of the input, change nothing."""
    app = start_app(workload, passwd_user, 17)
    os.chmod(app.socket, 0o644)
    ran = opskit("hsperf-check", app.pid, "--fix", stdin="yes\n")
    assert ran.code == 1
    assert "Nothing was changed; add --yes to do it" in ran.err
    assert os.stat(app.socket).st_mode & 0o777 == 0o644
