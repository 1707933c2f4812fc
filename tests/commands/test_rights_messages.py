"""What the commands say where rights are missing: in a debug container, in a user namespace; and that following it helps."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys

import limitcases
import pytest
from limitcases import child
from shells import BARE_ROOT, CONTAINER_ROOT, DEBUG_ROOT, USER_NAMESPACE_ROOT, opskit_in

pytestmark = pytest.mark.usefixtures("root_only")

NOBODY = 65534
LACKS = "root lacks CAP_SYS_PTRACE here"
GET_IT = ("kubectl debug --profile=general …", "docker run --cap-add SYS_PTRACE …")
OUTSIDE = "this is a user namespace (a rootless container?), whose root has no rights outside of it"
OWN_TMP = 'mount -t tmpfs none /tmp && exec setpriv --reuid=65534 --regid=65534 --clear-groups -- "$@"'

# Words of a command about a process of another user, the exit code where it is refused.
ABOUT_A_PROCESS = [("pipes",), ("limits",)]
ABOUT_A_JVM = [
    ("hsperf-check",),
    ("hsperf-check", "--probe"),
    ("jpmp", "2"),
    ("safepoints", "-i", "0.1s", "-c", "1"),
    ("jmap-diff", "-i", "0.1s", "-c", "2", "--yes"),
]


@pytest.fixture
def sleeper():
    """The pid of a process of nobody's."""
    process = subprocess.Popen(["sleep", "600"], user=NOBODY, group=NOBODY, extra_groups=[])
    yield process.pid
    process.kill()
    process.wait()


@pytest.fixture
def contained(workload):
    """A JVM of nobody's with a /tmp of its own, as in another container of the pod."""
    return workload("sleep=1", wrapper=("unshare", "-m", "sh", "-c", OWN_TMP, "sh"))


def words_of(command, pid):
    """`opskit jpmp PID 2` for ("jpmp", "2")."""
    return (command[0], pid, *command[1:])


def in_namespace(*words):
    """Run opskit as root of a user namespace; skip where these are not permitted."""
    if subprocess.run([*USER_NAMESPACE_ROOT, "true"], check=False, capture_output=True).returncode:
        pytest.skip("user namespaces are not permitted here")
    return opskit_in(USER_NAMESPACE_ROOT, *words)


def assert_names_the_capability(said):
    assert LACKS in said
    assert all(way in said for way in GET_IT)
    assert "sudo" not in said
    assert "run as root" not in said


@pytest.mark.parametrize("words", [("jvms",), ("hsperf-check",)], ids=" ".join)
def test_a_scan_for_jvms_that_found_them_says_nothing_of_other_processes(sleeper, workload, words):
    """A JVM whose maps are unreadable is recognized all the same: what else could not be read has no part in the answer."""
    jvm = workload("sleep=1", user=NOBODY)
    done = opskit_in(CONTAINER_ROOT, *words)
    assert done.returncode in (0, 1)
    assert str(jvm.pid) in done.stdout + done.stderr
    assert "processes could not be read" not in done.stdout + done.stderr


@pytest.mark.parametrize("words", [("pipes",), ("pipes", "--ends", "--fill")], ids=" ".join)
def test_what_a_scan_could_not_read(sleeper, words):
    """The line about coverage names the capability, and root of a user namespace is sent out of it."""
    done = opskit_in(CONTAINER_ROOT, *words)
    assert done.returncode in (0, 1)
    [line] = [line for line in done.stderr.splitlines() if "processes could not be read" in line]
    assert_names_the_capability(line)
    [line] = [line for line in in_namespace(*words).stderr.splitlines() if "could not be read" in line]
    assert OUTSIDE in line


def test_a_process_is_refused_by_the_capability_and_its_own_user_may(sleeper, as_nobody):
    """The printed command, followed, works; so does the container that it names."""
    done = opskit_in(CONTAINER_ROOT, "pipes", sleeper)
    assert (done.returncode, done.stdout) == (2, "")
    assert_names_the_capability(done.stderr)
    own = re.search(r"its own user may: (.*?); or ", done.stderr)[1]
    assert shlex.split(own) == [
        "setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "opskit", "pipes", str(sleeper)
    ]  # fmt: skip
    assert as_nobody("pipes", sleeper).returncode == 0
    assert opskit_in(DEBUG_ROOT, "pipes", sleeper).returncode == 0
    done = in_namespace("pipes", sleeper)
    assert (done.returncode, OUTSIDE in done.stderr) == (2, True)


@pytest.mark.parametrize("words", ABOUT_A_JVM, ids=" ".join)
def test_a_jvm_in_another_container(contained, words):
    """Refused by name of the capability; with it, every command works."""
    done = opskit_in(CONTAINER_ROOT, *words_of(words, contained.pid))
    assert done.returncode == 2
    assert_names_the_capability(done.stderr)
    done = opskit_in(DEBUG_ROOT, *words_of(words, contained.pid))
    assert done.returncode in (0, 1), done.stderr
    done = in_namespace(*words_of(words, contained.pid))
    assert (done.returncode, OUTSIDE in done.stderr) == (2, True)


def test_a_jvms_own_user_may(contained, as_nobody):
    """What is advised to root of a container, for one command that looks and one that asks."""
    done = opskit_in(CONTAINER_ROOT, "jpmp", contained.pid, "2")
    assert f"its own user may: setpriv --reuid={NOBODY} --regid={NOBODY} --clear-groups opskit …" in done.stderr
    done = as_nobody("jpmp", contained.pid, "2")
    assert done.returncode == 0, done.stderr
    assert as_nobody("hsperf-check", contained.pid).returncode in (0, 1)


def test_jvms_does_not_promise_to_attach(contained):
    """`yes` in the column is kept: jpmp works; `no:denied` as well: it is refused for the reason that is given."""
    for shell, code, works in (
        (CONTAINER_ROOT, "denied", False),
        (BARE_ROOT, "denied", False),
        (DEBUG_ROOT, "yes", True),
    ):
        done = opskit_in(shell, "jvms", contained.pid, "-f", "json")
        [row] = json.loads(done.stdout)["jvms"]
        assert row["attach_code"] == code
        assert (opskit_in(shell, "jpmp", contained.pid, "2").returncode == 0) is works


def test_an_attach_socket_that_root_without_capabilities_may_not_use(workload):
    """The JVM shares our /tmp and listens; its socket is its user's alone, and so CAP_DAC_OVERRIDE is named."""
    jvm = workload("sleep=1", user=NOBODY, group=NOBODY)
    assert opskit_in((), "jpmp", jvm.pid, "2").returncode == 0  # from now on it listens
    done = opskit_in(BARE_ROOT, "jpmp", jvm.pid, "2")
    assert done.returncode == 2
    assert "root lacks CAP_DAC_OVERRIDE here" in done.stderr
    [row] = json.loads(opskit_in(BARE_ROOT, "jvms", jvm.pid, "-f", "json").stdout)["jvms"]
    assert row["attach_code"] == "denied"
    assert opskit_in(CONTAINER_ROOT, "jpmp", jvm.pid, "2").returncode == 0


def test_hsperf_check_does_not_call_well_what_it_did_not_judge(workload):
    """A JVM that cannot be looked into is not `all well`."""
    alone = ("unshare", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child", "sh", "-c", OWN_TMP, "sh")
    jvm = workload("sleep=1", wrapper=alone)
    inside = ("nsenter", "--target", str(jvm.pid), "--mount", "--pid")
    done = opskit_in((*inside, *CONTAINER_ROOT), "hsperf-check", "-f", "text")
    assert (done.returncode, done.stdout.splitlines()[0]) == (
        0,
        "1 JVM: nothing was found, but 1 was not judged in full",
    )
    assert_names_the_capability(done.stderr)
    assert opskit_in((*inside, *DEBUG_ROOT), "hsperf-check").stdout.startswith("1 JVM: all well\n")


def test_hsperf_check_invents_nothing_about_a_tmp_that_is_closed(contained):
    """It listens in a /tmp of its own: that no socket is in ours is no finding."""
    assert opskit_in((), "jpmp", contained.pid, "2").returncode == 0
    done = opskit_in(CONTAINER_ROOT, "hsperf-check", "-f", "json")
    document = json.loads(done.stdout)
    assert [each for each in document["findings"] if str(contained.pid) in json.dumps(each)] == []
    done = opskit_in(CONTAINER_ROOT, "jpmp", contained.pid, "2")
    assert "restart" not in done.stderr
    assert f"/proc/{contained.pid}/root/tmp" in done.stderr
    assert_names_the_capability(done.stderr)


# --- limits ---


def nearly_out_of_maps():
    """The case whose number of mappings binds."""
    return next(case for case in limitcases.cases() if case.limit == "vm.max_map_count")


def test_limits_says_at_most_where_the_limit_that_binds_cannot_be_read():
    """In text, table, markdown and JSON; with the capability the smaller number and its limit are told."""
    with child(nearly_out_of_maps()) as process:
        refused = {
            form: opskit_in(CONTAINER_ROOT, "limits", process.pid, "-f", form) for form in ("text", "table", "markdown")
        }
        document = json.loads(opskit_in(CONTAINER_ROOT, "limits", process.pid, "-f", "json").stdout)
        allowed = json.loads(opskit_in(DEBUG_ROOT, "limits", process.pid, "-f", "json").stdout)
    shape = r"can start at most ([\d,]+) more threads; unknown: vm\.max_map_count \(permission denied\)\. The first known limit is "
    for form, done in refused.items():
        assert done.returncode == 0
        said = done.stdout.replace("\\", "")
        found = re.search(shape, said)
        assert found, (form, said)
        assert int(found[1].replace(",", "")) > allowed["threads_left"]
        assert LACKS in said
    assert document["threads_left_is_at_most"] is True
    assert document["unknown_limits"] == [
        {
            "name": "vm.max_map_count", "cgroup": None, "reason": "permission denied",
            "note": f"/proc/{process.pid}/maps: permission denied",
        }
    ]  # fmt: skip
    assert (allowed["binding"], allowed["threads_left_is_at_most"]) == ("vm.max_map_count", False)
    assert allowed["unknown_limits"] == []
    assert allowed["threads_left"] < 1000 < document["threads_left"]


def test_limits_of_stacks_whose_size_only_the_maps_tell():
    """RLIMIT_DATA divided by a guessed stack is no number to rely on: unknown, with the guess in its note."""
    case = limitcases.Case("RLIMIT_DATA", "", limitcases.rlimit("RLIMIT_DATA", 200 << 20))
    with child(case) as process:
        document = json.loads(opskit_in(CONTAINER_ROOT, "limits", process.pid, "-f", "json").stdout)
        given = json.loads(opskit_in(CONTAINER_ROOT, "limits", process.pid, "--stack", "1M", "-f", "json").stdout)
    rows = {row["name"]: row for row in document["limits"]}
    assert (rows["RLIMIT_DATA"]["state"], rows["RLIMIT_DATA"]["threads_left"]) == ("unknown", None)
    assert re.search(
        r"maps: permission denied: the size of its stacks is unknown; \d+ of 8 MiB fit", rows["RLIMIT_DATA"]["note"]
    )
    assert {row["name"] for row in document["unknown_limits"]} == {"RLIMIT_DATA", "vm.max_map_count"}
    rows = {row["name"]: row for row in given["limits"]}
    assert rows["RLIMIT_DATA"]["state"] == "counts"


def test_limits_of_a_uid_that_a_user_namespace_does_not_map(sleeper):
    """All such uids look alike there: how many threads RLIMIT_NPROC counts is unknown."""
    document = json.loads(in_namespace("limits", sleeper, "-f", "json").stdout)
    rows = {row["name"]: row for row in document["limits"]}
    assert (rows["RLIMIT_NPROC"]["state"], rows["RLIMIT_NPROC"]["in_use"]) == ("unknown", None)
    assert "not mapped into our user namespace" in rows["RLIMIT_NPROC"]["note"]
    assert document["threads_left_is_at_most"] is True


def test_a_probe_as_another_user_needs_capabilities(sleeper):
    """Which are named; a container's root has them by default."""
    done = opskit_in(BARE_ROOT, "limits", sleeper, "--probe", "--yes")
    assert done.returncode == 2
    assert (
        "--probe has to act as user nobody: Operation not permitted; root lacks CAP_SETUID and CAP_SETGID here"
        in done.stderr
    )
    done = opskit_in(CONTAINER_ROOT, "limits", sleeper, "--probe", "--yes")
    assert done.returncode == 0
    assert "really started" in done.stdout
    done = in_namespace("limits", sleeper, "--probe", "--yes")
    assert (done.returncode, OUTSIDE in done.stderr) == (2, True)


# --- dentry ---


def test_the_tracer_names_the_capability(initial_pid_namespace):
    """CAP_SYS_ADMIN, which kubectl's profile "general" does not give."""
    done = opskit_in(CONTAINER_ROOT, "dentry", "--culprit", "1")
    assert done.returncode == 2
    assert "root lacks CAP_SYS_ADMIN here" in done.stderr
    assert "kubectl debug --profile=sysadmin … or docker run --cap-add SYS_ADMIN …" in done.stderr
    assert "sudo" not in done.stderr


def test_slabinfo_and_drop_caches_are_the_machines_roots():
    """Root of an unprivileged user's namespace owns neither; nobody is told to use sudo there."""
    script = (
        "import os, sys, pkgutil, importlib, ctypes, opskit\n"
        "for m in pkgutil.walk_packages(opskit.__path__, 'opskit.'):\n"
        "    if m.name not in ('opskit.__main__', 'opskit.render.pictures.plot'): importlib.import_module(m.name)\n"
        "import difflib, grp, json, pwd, shlex, tempfile\n"
        f"os.setgroups([]); os.setresgid(*[{NOBODY}] * 3); os.setresuid(*[{NOBODY}] * 3)\n"
        "libc = ctypes.CDLL(None); libc.prctl(4, 1)\n"
        "if libc.unshare(0x10000000): print('no user namespace'); sys.exit(77)\n"
        "open('/proc/self/setgroups', 'w').write('deny')\n"
        f"open('/proc/self/uid_map', 'w').write('0 {NOBODY} 1'); open('/proc/self/gid_map', 'w').write('0 {NOBODY} 1')\n"
        "from opskit import cli\nsys.exit(cli.run(sys.argv[1:]))"
    )

    def run(*words):
        done = subprocess.run(
            [sys.executable, "-c", script, *words], capture_output=True, text=True, check=False, cwd="/"
        )
        if done.returncode == 77:
            pytest.skip("user namespaces are not permitted here")
        return done

    done = run("dentry", "-f", "text")
    assert f"/proc/slabinfo is for root only; {OUTSIDE}" in done.stderr
    done = run("dentry", "--drop", "--yes", "--in-container")
    assert done.returncode == 2
    assert "on the host itself, as root: sudo opskit dentry --drop dentries" in done.stderr
    assert "sudo" not in run("dentry", "--check", "1").stderr


# --- a whole container ---


def test_in_a_pid_namespace(tmp_path):
    """A container's pids and its root's capabilities: its own process of another user is refused, and named with its pid."""
    script = f"""
setpriv --reuid={NOBODY} --regid={NOBODY} --clear-groups sleep 600 &
sleep 0.2
{shlex.join((*CONTAINER_ROOT, sys.executable, "-m", "opskit", "pipes"))} $!
"""
    command = ["unshare", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child", "sh", "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/", env={**os.environ})
    assert done.returncode == 2
    assert_names_the_capability(done.stderr)
    assert re.search(r"its own user may: setpriv .* opskit pipes [1-9]\d?; or", done.stderr)
