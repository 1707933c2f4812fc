"""`opskit hsperf-check --fix --yes` by root, where a user makes the files of others look like those of its own JVM.

What is asserted of each attack is that nothing of the victim's has changed. Each is real: processes, namespaces, mounts.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import hsperf
import pytest
from terminal import on_terminal
from users import reserved_user

from opskit.actions.repair_ownership import carry_out
from opskit.analysis.hsperf_check.judge import judge
from opskit.analysis.hsperf_check.repairs import Repair
from opskit.collect.hsperf_check import Request, collect
from opskit.host import Host
from opskit.jvm.attach.files import Location
from opskit.proc.files.stat import parse_stat

SCRIPT = Path(__file__).resolve().parent.parent / "support" / "attacker.py"
IN_MOUNTS = ("user-namespace", "setuid-helper")
COUNTERS = hsperf.build({"sun.rt.javaCommand": "x"})
# As if every process could be looked into: root may not read the maps of some, and then nothing is removed.
ALL_VISIBLE = """
for process in /proc/[0-9]*; do
    cat "$process/maps" > /dev/null 2>&1 || [ ! -e "$process/maps" ] || mount --bind /dev/null "$process/maps" || exit 9
done
exec "$@"
"""


class Attacker:
    """tests/support/attacker.py at work."""

    def __init__(self, user, how, trick, name, victim="", fd=-1):
        self.how = how
        self.process = subprocess.Popen(
            [sys.executable, SCRIPT, str(user.pw_uid), str(user.pw_gid), how, trick, name, str(victim), str(fd)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            pass_fds=() if fd < 0 else (fd,),
        )
        self.pid = int(self.expect("PID").split()[1])

    def expect(self, word):
        line = self.process.stdout.readline()
        if line.startswith(word):
            return line
        error = self.process.communicate()[1]
        if word == "PID" and self.how == "user-namespace":
            pytest.skip(f"user namespaces are disabled here: {error.splitlines()[-1]}")
        raise AssertionError(error)

    def go(self):
        """Let it play its trick."""
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        self.expect("READY")

    def end(self):
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def user(root_only):
    """The attacker: a user with a name and without rights."""
    with reserved_user() as entry:
        if entry is None:
            pytest.skip("needs a system user that no other test uses")
        yield entry


@pytest.fixture
def attack(user):
    """A function that starts an attacker; ended afterwards."""
    started = []

    def start(how, trick, victim="", name=user.pw_name, **options):
        started.append(Attacker(user, how, trick, name, victim, **options))
        return started[-1]

    yield start
    for attacker in started:
        attacker.end()


@pytest.fixture
def ground(root_only):
    """A directory of root's that others may enter, on a tmpfs of its own, whose inode numbers begin anew."""
    path = Path(f"/dev/shm/opskit-test-{os.getpid()}")
    path.mkdir(mode=0o755)
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", path], check=False).returncode == 0
    yield path
    if mounted:
        subprocess.run(["umount", "--lazy", path], check=True)
    shutil.rmtree(path)


@pytest.fixture
def fix(inprocess):
    """Run the repair as root; gives its repairs."""

    def run(*words):
        ran = inprocess("hsperf-check", *words, "--fix", "--yes", "-f", "json")
        assert ran.code in (0, 1), ran.err
        return json.loads(ran.out)["repairs"]

    return run


@pytest.fixture
def seeing_all(initial_pid_namespace, root_only):
    """Run Python with these words from where every process can be looked into, so that what is dead is removed."""

    def run(*words):
        return subprocess.run(
            ["unshare", "--mount", "sh", "-c", ALL_VISIBLE, "sh", sys.executable, *map(str, words)],
            capture_output=True, text=True, check=False, timeout=120,
        )  # fmt: skip

    return run


@pytest.fixture
def fix_seeing_all(seeing_all):
    """The repair of what was left by a pid, from there; gives its repairs."""

    def run(pid):
        done = seeing_all("-m", "opskit", "hsperf-check", pid, "--fix", "--yes", "-f", "json")
        assert done.returncode in (0, 1), done.stderr
        return json.loads(done.stdout)["repairs"]

    return run


def write(path, mode, content=COUNTERS):
    path.write_bytes(content)
    path.chmod(mode)
    return path


def seen(*paths):
    """What a repair could change."""
    found = [os.lstat(path) for path in paths]
    return [(each.st_uid, each.st_gid, each.st_mode, each.st_nlink) for each in found]


def refusals(repairs):
    """Why nothing was done; fails where something was."""
    assert {repair["state"] for repair in repairs} <= {"refused", "failed"}, repairs
    return {repair["why"] for repair in repairs}


def repair(pid, uid, names, code, proof, tmp=("tmp",), **what):
    """What a look that was deceived would plan."""
    file = os.lstat("/".join((f"/proc/{pid}/root", *tmp, *names)))
    location = Location(pid, parse_stat(Path(f"/proc/{pid}/stat").read_text()).start_ticks, "root", tmp)
    return Repair(code, pid, "/".join(names), location, names, file.st_dev, file.st_ino, "", "", proof, uid, **what)


def forced(attacker, user, name=None):
    """Try every repair of the attacker's files, whatever the plan says; the reasons why each was refused."""
    directory = (f"hsperfdata_{name or user.pw_name}",)
    file, place = (*directory, str(attacker.pid)), (f".java_pid{attacker.pid}",)
    planned = []
    for names, code, proof, changes in (
        (file, "hsperf-file", "mapped", ({"owner": user.pw_uid}, {"group": user.pw_gid}, {"mode": 0o600})),
        (file, "hsperf-leftover", "dead", ({"remove": True},)),
        (directory, "hsperf-dir", "mapped", ({"owner": user.pw_uid}, {"mode": 0o700})),
        (place, "attach-socket", "peer", ({"owner": user.pw_uid}, {"group": user.pw_gid}, {"mode": 0o600})),
        (place, "attach-socket-orphaned", "dead", ({"remove": True},)),
    ):
        with contextlib.suppress(FileNotFoundError):
            planned += [repair(attacker.pid, user.pw_uid, names, code, proof, **change) for change in changes]
    assert planned
    problems = [done.why for done in carry_out(Host.at(None, None), planned)]
    assert all(problems), problems
    if attacker.how == "user-namespace":
        assert set(problems) == {f"{attacker.pid} runs in another user namespace: run opskit inside of it"}
    return set(problems)


@pytest.mark.parametrize("how", IN_MOUNTS)
def test_a_file_with_the_number_of_the_attackers(attack, fix, ground, user, how):
    """The exploit: it maps a file of its own with the inode number of root's, and lays root's over the name."""
    for number in range(50):  # the attacker's own files come first
        write(ground / str(number), 0o600)
    victim = write(ground / "secret", 0o600)
    before = seen(victim)
    attacker = attack(how, "same-number", victim)
    attacker.go()
    repairs = fix(attacker.pid)
    assert seen(victim) == before
    assert refusals(repairs) <= {f"no file in it is mapped by {attacker.pid}"}
    assert forced(attacker, user)
    assert seen(victim) == before


@pytest.mark.parametrize("how", IN_MOUNTS)
def test_a_file_that_every_user_may_write_to(attack, fix, ground, user, how):
    """It really maps root's file, at the right name: only the mount shows that it is another place."""
    victim = write(ground / "board", 0o666)
    before = seen(victim)
    attacker = attack(how, "mapped", victim)
    attacker.go()
    assert refusals(fix(attacker.pid))
    assert forced(attacker, user)
    assert seen(victim) == before


@pytest.mark.parametrize("how", IN_MOUNTS)
def test_a_file_of_its_own_under_the_victims_name(attack, fix, ground, user, how):
    """A file of the victim's, closed to all, which the attacker owned when it mapped it: only the mount shows it."""
    victim = write(ground / "handed-over", 0o600)
    os.chown(victim, user.pw_uid, user.pw_gid)
    attacker = attack(how, "mapped", victim)
    attacker.go()
    os.chown(victim, 0, 0)
    before = seen(victim)
    [why] = {why.replace(str(attacker.pid), "PID") for why in refusals(fix(attacker.pid))}
    foreign, mounted = "PID runs in another user namespace: run opskit inside of it", "something is mounted over it"
    assert why.startswith(foreign if how == "user-namespace" else mounted)
    assert forced(attacker, user)
    assert seen(victim) == before


@pytest.mark.parametrize("how", IN_MOUNTS)
@pytest.mark.parametrize("trick", ["directory", "tmp"])
def test_a_directory(attack, fix, ground, user, how, trick):
    """Root's directory with a file in it that is open to all, laid over its own one, or over /tmp."""
    attacker = attack(how, trick, ground)
    directory = ground
    if trick == "tmp":
        directory = ground / f"hsperfdata_{user.pw_name}"
        directory.mkdir(0o755)
    victim = write(directory / str(attacker.pid), 0o666)
    before = seen(directory, victim)
    attacker.go()
    assert refusals(fix(attacker.pid))
    assert forced(attacker, user)
    assert seen(directory, victim) == before


def test_what_a_dead_jvm_of_roots_left_open(attack, fix, user):
    """No namespace at all: a process that has got the pid of root's dead JVM maps its file, which root's chmod had opened."""
    directory = Path("/tmp/hsperfdata_root")
    made = not directory.exists()
    directory.mkdir(0o755, exist_ok=True)
    attacker = attack("plain", "open", name="root")
    victim = write(directory / str(attacker.pid), 0o666)
    try:
        before = seen(directory, victim)
        attacker.go()
        repairs = fix(attacker.pid)
        assert seen(directory, victim) == before
        assert any("the directory of the user" in why for why in refusals(repairs))
        assert forced(attacker, user, "root")
        assert seen(directory, victim) == before
    finally:
        victim.unlink()
        if made:
            directory.rmdir()


@pytest.fixture
def directory(user):
    """The attacker's own /tmp/hsperfdata_NAME, as a JVM of its user would have made it."""
    path = Path(f"/tmp/hsperfdata_{user.pw_name}")
    made = not path.exists()
    path.mkdir(exist_ok=True)
    path.chmod(0o755)
    os.chown(path, user.pw_uid, user.pw_gid)
    yield path
    if made:
        shutil.rmtree(path)


def test_a_file_of_another_user_that_was_open_to_it(attack, fix, user, directory):
    """In its own directory, where it can move what it may write to: being mapped does not make it its own."""
    attacker = attack("plain", "open")
    victim = write(directory / str(attacker.pid), 0o664)
    os.chown(victim, 0, user.pw_gid)
    try:
        before = seen(victim)
        attacker.go()
        assert all("nothing proves that it was" in why for why in refusals(fix(attacker.pid)))
        os.chown(directory, 0, 0)
        assert any("nothing proves that it was" in why for why in forced(attacker, user))
        assert seen(victim) == before
    finally:
        victim.unlink()


@pytest.fixture
def own(attack, user, directory):
    """A process that maps its own counters, all of whose repairs are done: (attacker, its directory, its file)."""
    attacker = attack("plain", "open")
    file = write(directory / str(attacker.pid), 0o644)
    os.chown(file, user.pw_uid, user.pw_gid)
    attacker.go()
    yield attacker, directory, file
    file.unlink(missing_ok=True)


def problem(planned):
    """Why a repair was not done; None where it was."""
    [done] = carry_out(Host.at(None, None), [planned])
    return done.why


def test_each_proof_by_itself(own, user, tmp_path):
    """One thing is not as it must be: nothing is done; then, with all as it must be, all is."""
    attacker, directory, file = own
    pid, uid, names = attacker.pid, user.pw_uid, (directory.name, str(attacker.pid))

    def planned(names=names, code="hsperf-file-mode", proof="mapped", uid=uid, **what):
        return repair(pid, uid, names, code, proof, **(what or {"mode": 0o600}))

    def content(text):
        with open(file, "r+b") as out:
            out.write(text)

    assert problem(planned(uid=uid + 1)) == f"{pid} runs as another user now"
    assert problem(planned(names[:1])) == "it has another file type than it should have"
    assert problem(planned(code="hsperf-dir-mode")) == "it has another file type than it should have"
    assert problem(planned(proof="old", remove=True)) == "it is not empty, as a trigger is"
    content(b"\0")
    assert problem(planned()) == "it is not an hsperfdata file"
    content(COUNTERS[:1])
    os.link(file, directory / "2")
    assert problem(planned()) == "it has 2 links"
    assert problem(planned(names[:1], "hsperf-dir-mode", mode=0o700)) == "it is not a plain file with one link"
    (directory / "2").unlink()
    looked_at, elsewhere = planned(), tmp_path / "hsperfdata_other"
    elsewhere.mkdir()
    os.rename(file, elsewhere / "2")
    assert problem(planned(names[:1], "hsperf-dir-mode", mode=0o700)) == f"the file that {pid} maps is not in it"
    write(file, 0o644)
    assert problem(looked_at) == "it is not the file that was looked at any more"
    assert problem(planned()) == f"{pid} maps a file of another name"
    os.rename(elsewhere / "2", elsewhere / names[1])
    elsewhere.rename(elsewhere.with_name(directory.name))  # the right names, in another place
    elsewhere = elsewhere.with_name(directory.name)
    assert problem(planned()) == f"{pid} maps another file"
    os.rename(elsewhere / names[1], file)
    assert seen(file)[0][:3] == (uid, user.pw_gid, 0o100644)
    os.chown(file, 0, 0)
    assert problem(planned(owner=uid)) is None
    assert problem(planned(group=user.pw_gid)) is None
    assert problem(planned()) is None
    os.chown(directory, 0, -1)
    assert problem(planned(names[:1], "hsperf-dir-owner", owner=uid)) is None
    assert problem(planned(names[:1], "hsperf-dir-mode", mode=0o777)) is None
    assert [each[:3] for each in seen(directory, file)] == [
        (uid, user.pw_gid, 0o40755),  # bits are only taken away
        (uid, user.pw_gid, 0o100600),
    ]
    file.unlink()
    write(file, 0o644)
    assert problem(planned()) == f"{pid} maps no hsperfdata file"


def test_a_file_that_is_mapped_on_another_mount(attack, fix, user):
    """Its own file, but not from its /tmp: nothing shows what that other mount is."""
    attacker = attack("setuid-helper", "other-mount")
    attacker.go()
    os.chmod(f"/proc/{attacker.pid}/root/tmp/hsperfdata_{user.pw_name}/{attacker.pid}", 0o640)
    assert refusals(fix(attacker.pid)) == {f"{attacker.pid} maps it on another mount"}


LISTENS = """
import os, socket, sys, time
if sys.argv[1] == "as root":
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(f"/tmp/.java_pid{os.getpid()}")
    listener.listen()
if sys.argv[1] != "before":
    os.setgroups([]); os.setresgid(*[int(sys.argv[3])] * 3); os.setresuid(*[int(sys.argv[2])] * 3)
if sys.argv[1] == "as the user":
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(f"/tmp/.java_pid{os.getpid()}")
    listener.listen()
if sys.argv[1] == "before":
    os.setresuid(0, int(sys.argv[2]), 0)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(f"/tmp/.java_pid{os.getpid()}")
    listener.listen()
    os.setresuid(0, 0, 0)
print("up"); time.sleep(1000)
"""


@pytest.mark.parametrize("listens", ["as root", "as the user", "before", "not at all"])
def test_the_listener_by_itself(spawn, user, listens):
    """A socket is the process's own if that process listens on it as the user who it is, and not as whom it was then."""
    process = spawn(LISTENS, listens, user.pw_uid, user.pw_gid)
    path = Path(f"/tmp/.java_pid{process.pid}")
    with socket.socket(socket.AF_UNIX) as others:
        try:
            if listens == "not at all":
                others.bind(str(path))
                others.listen()
            os.chown(path, 0, 0)
            path.chmod(0o666)
            names = (path.name,)
            dead = repair(process.pid, user.pw_uid, names, "attach-socket-orphaned", "dead", remove=True)
            assert problem(dead) == "a process listens on it"
            planned = repair(process.pid, user.pw_uid, names, "attach-socket-owner", "peer", owner=user.pw_uid)
            refused = f"its listener is not {process.pid}"
            if listens == "before":
                refused = f"{process.pid} runs as another user now"
            assert problem(planned) == (None if listens == "as the user" else refused)
            assert path.stat().st_uid == (user.pw_uid if listens == "as the user" else 0)
        finally:
            path.unlink()


def test_no_link_on_the_way(ground):
    """A link in the place of a directory, or of the file, is not followed."""
    write(ground / "4194001", 0o600)
    link = Path(f"/tmp/opskit-test-link-{os.getpid()}")
    link.symlink_to(ground)
    file = os.lstat(ground / "4194001")
    try:
        for steps, names in ((("tmp", link.name), ("4194001",)), (("tmp",), (link.name, "4194001"))):
            planned = Repair(
                "hsperf-leftover", 4194001, "", Location(None, None, "root", steps), names, file.st_dev, file.st_ino, "", "",
                "dead", remove=True,
            )  # fmt: skip
            assert problem(planned) == "a directory on its path has changed: Not a directory"
        assert (ground / "4194001").exists()
    finally:
        link.unlink()


@pytest.mark.parametrize("how", IN_MOUNTS)
def test_a_socket_that_it_was_given_to_listen_on(attack, fix, ground, user, how):
    """Started by root's socket unit, it calls listen() again: then the kernel names it, and not root, as the listener."""
    victim = ground / "service.socket"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(victim))
        listener.listen()
        before = seen(victim)
        attacker = attack(how, "socket", victim, fd=listener.fileno())
        attacker.go()
        assert refusals(fix(attacker.pid))
        assert forced(attacker, user)
        assert seen(victim) == before


# Without a PID, as leftovers in the /tmp of a JVM are found, but only those; also where the look has
# refused, since it may be deceived.
REMOVE_ALL_OF = """
import json, sys
from opskit.actions.repair_ownership import carry_out
from opskit.analysis.hsperf_check.judge import judge
from opskit.collect.hsperf_check import Request, collect
from opskit.host import Host
host = Host.at(None, None)
planned = [each for each in judge(collect(host, Request())).repairs if each.path.startswith(f"/proc/{sys.argv[1]}/root/")]
print(json.dumps([done.why for done in carry_out(host, [each._replace(refused=None) for each in planned])]))
"""


@pytest.mark.parametrize("how", IN_MOUNTS)
def test_a_directory_of_another_users_leftovers(attack, seeing_all, ground, how):
    """Files that are called as numbers (jobs, mails) are not removed because their directory is laid over a /tmp/hsperfdata_NAME."""
    victims = [write(ground / "4194001", 0o600), write(ground / "4194002", 0o600, b"a mail")]
    attacker = attack(how, "leftovers", ground)
    attacker.go()
    done = seeing_all("-c", REMOVE_ALL_OF, attacker.pid)
    assert done.returncode == 0, done.stderr
    problems = json.loads(done.stdout)
    assert len(problems) >= len(victims)  # those of the directory come with them
    assert all(problems)
    assert all(victim.exists() for victim in victims)


@pytest.fixture
def leftover(root_only):
    """A directory in /tmp with counters that no process has: (their pid, their path)."""
    directory = Path(f"/tmp/hsperfdata_opskit-test-{os.getpid()}")
    directory.mkdir()
    yield 4194101, write(directory / "4194101", 0o600)
    shutil.rmtree(directory)


def test_a_leftover_is_removed(fix_seeing_all, leftover):
    """Nobody holds or maps it, and it is an hsperfdata file: gone. Another file with a number for a name stays."""
    pid, file = leftover
    other = write(file.parent / "4194102", 0o600, b"minutes of the last meeting")
    [repair] = fix_seeing_all(pid)
    assert (repair["state"], repair["after"]) == ("done", "gone")
    assert not file.exists()
    [repair] = fix_seeing_all(4194102)
    assert (repair["state"], repair["why"]) == ("failed", "it is not an hsperfdata file")
    assert other.exists()


def test_a_locked_leftover_stays(seeing_all, leftover):
    """Somebody has an flock on it, as JVMs since 17 have: it is no leftover, also where no process seems to map it."""
    pid, file = leftover
    with open(file) as held:
        fcntl.flock(held, fcntl.LOCK_SH)
        done = seeing_all("-m", "opskit", "hsperf-check", pid, "--fix", "--yes")
        assert done.returncode == 2
        assert "nothing in /tmp was left by it" in done.stderr
        assert file.exists()


def on_question(meanwhile, *words):
    """Run the repair on a terminal, with every process to be seen, and do something between the look and the yes."""
    asked = []
    _, shown = on_terminal(
        "hsperf-check", *map(str, words), "--fix", "-f", "json",
        question="Type yes to go on: ",
        answer=b"yes\n",
        meanwhile=lambda: asked.append(meanwhile()),
        wrapper=("unshare", "--mount", "sh", "-c", ALL_VISIBLE, "sh"),
    )  # fmt: skip
    assert asked, shown
    document = shown[shown.index("\n{") + 1 : shown.rindex("}") + 1]
    return json.loads(document)["repairs"]


def test_a_lock_between_look_and_deed(initial_pid_namespace, leftover):
    """A JVM that takes the file while --fix waits for its yes keeps it."""
    pid, file = leftover
    with open(file) as held:
        [repair] = on_question(lambda: fcntl.flock(held, fcntl.LOCK_SH), pid)
        assert (repair["state"], repair["why"]) == ("failed", "a process holds a lock on it, or locks cannot be seen")
        assert file.exists()


def test_a_mapping_between_look_and_deed(initial_pid_namespace, leftover, attack, user):
    """The same of a JVM that maps it."""
    pid, file = leftover
    os.chown(file, user.pw_uid, user.pw_gid)
    attacker = attack("plain", "open", name=file.parent.name.removeprefix("hsperfdata_"))

    def take_it():
        os.rename(file, file.parent / str(attacker.pid))
        attacker.go()
        os.rename(file.parent / str(attacker.pid), file)

    [repair] = on_question(take_it, pid)
    assert (repair["state"], repair["why"]) == (
        "failed",
        "a process maps it, or not every process could be looked into",
    )
    assert file.exists()


LEADERLESS = """
import ctypes, mmap, os, sys, threading, time
with open(sys.argv[1], "r+b") as file:
    mapped = mmap.mmap(file.fileno(), 0)
threading.Thread(target=time.sleep, args=(1e6,)).start()
print("up", flush=True)
ctypes.CDLL(None).syscall(60, 0)  # exit(2) of x86-64: of this thread alone
"""


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the number of exit(2) is x86-64's")
def test_a_mapping_of_a_process_without_its_first_thread(seeing_all, leftover, spawn):
    """Its first thread has ended, so that /proc/PID/maps is empty; the others go on, and so does what they map."""
    pid, file = leftover
    process = spawn(LEADERLESS, str(file))
    status = Path(f"/proc/{process.pid}/status")
    while "State:\tZ" not in status.read_text():
        time.sleep(0.01)
    done = seeing_all("-m", "opskit", "hsperf-check", pid, "--fix", "--yes")
    assert done.returncode == 2, done.stdout
    assert "nothing in /tmp was left by it" in done.stderr
    assert file.exists()


def test_who_leaves_our_user_namespace_meanwhile(attack, ground, user, monkeypatch):
    """A process that goes into namespaces of its own between the question where it is and the step into its root: refused."""
    attacker = attack("later", "tmp", ground)
    (ground / f"hsperfdata_{user.pw_name}").mkdir()
    write(ground / f"hsperfdata_{user.pw_name}" / str(attacker.pid), 0o666)
    start = parse_stat(Path(f"/proc/{attacker.pid}/stat").read_text()).start_ticks
    victim = write(ground / f".attach_pid{attacker.pid}", 0o644, b"")
    file, really_open = os.lstat(victim), os.open
    planned = Repair(
        "attach-trigger-left", attacker.pid, "", Location(attacker.pid, start, "root", ("tmp",)), (victim.name,),
        file.st_dev, file.st_ino, "", "", "old", remove=True,
    )  # fmt: skip

    def open_late(path, *words, **named):
        if path == "root":
            attacker.go()
        return really_open(path, *words, **named)

    monkeypatch.setattr(os, "open", open_late)
    [done] = carry_out(Host.at(None, None), [planned])
    assert done.why == f"{attacker.pid} runs in another user namespace: run opskit inside of it"
    assert victim.exists()


@pytest.fixture
def app(workload, user):
    """A JVM of another user, whose counters have a wrong mode."""
    with contextlib.suppress(FileNotFoundError):  # what an interrupted test may have left
        shutil.rmtree(f"/tmp/hsperfdata_{user.pw_name}")
    running = workload(user=user.pw_uid, group=user.pw_gid)
    running.counters = f"/tmp/hsperfdata_{user.pw_name}/{running.pid}"
    os.chmod(running.counters, 0o644)
    return running


def test_a_file_swapped_between_look_and_deed(app, tmp_path):
    """Another file, a link, a directory that is another one, at the name that was looked at: none is touched."""
    file, directory = Path(app.counters), Path(app.counters).parent
    kept, aside, victim = directory / "kept", directory.with_name("aside"), write(tmp_path / str(app.pid), 0o644)
    before = seen(victim)

    def to_link():
        os.rename(file, kept)
        os.symlink(victim, file)

    def to_hard_link():
        os.rename(file, kept)
        os.link(victim, file)

    def directory_to_link():
        os.rename(directory, aside)
        os.symlink(tmp_path, directory)

    for swap, says in (
        (to_link, "it is not the file that was looked at any more"),
        (to_hard_link, "it is not the file that was looked at any more"),
        (directory_to_link, "a directory on its path has changed: Not a directory"),
    ):
        try:
            [repair] = on_question(swap, app.pid)
        finally:
            if kept.exists():
                os.replace(kept, file)
            if aside.exists():
                directory.unlink()
                os.rename(aside, directory)
        assert (repair["state"], repair["why"]) == ("failed", says)
        assert seen(victim) == before


def test_a_process_that_ends_between_look_and_deed(app):
    """Nothing is done for a pid whose process has ended, nor for another process that has the pid now."""
    host = Host.at(None, None)
    planned = judge(collect(host, Request((app.pid,)))).repairs
    later = [repair._replace(location=repair.location._replace(start_ticks=1)) for repair in planned]
    [done] = carry_out(host, later)
    assert done.why == f"{app.pid} is another process now"
    os.kill(app.pid, signal.SIGKILL)
    app.process.wait()
    [done] = carry_out(host, planned)
    assert done.why
    assert os.stat(app.counters).st_mode & 0o777 == 0o644


HOSTILE = (
    b"x;touch pwn;#",
    b"$(touch pwn)",
    b"`touch pwn`",
    b"a\ntouch pwn",
    b"'\"",
    b"-rf",
    b"\xff\xfe",
    b"a b",
    b"\x1b[31m",
)


def test_hostile_names(inprocess, root_only):
    """Whatever a directory in /tmp is called: each printed command is opskit's own, word by word, and no name is in it."""
    directories = [b"/tmp/hsperfdata_" + name + b"%d" % os.getpid() for name in HOSTILE]
    for number, directory in enumerate(directories):
        os.mkdir(directory)
        Path(os.fsdecode(directory + b"/%d" % (4194200 + number))).write_bytes(COUNTERS)
    try:
        document = json.loads(inprocess("hsperf-check", "--fix", "-f", "json").out)
        found = [finding for finding in document["findings"] if "/41942" in finding["subject"]]
        assert len(found) == len(directories)
        repairs = [repair for repair in document["repairs"] if "/41942" in repair["path"]]
        assert len(repairs) == len(directories)
        for repair in repairs:
            assert shlex.split(repair["command"]) == ["opskit", "hsperf-check", str(repair["pid"]), "--fix"]
        for finding in found:
            assert finding["fix"].startswith(("opskit hsperf-check ", "not repaired by --fix: "))
        shown = inprocess("hsperf-check", "-f", "text").out
        assert "\x1b" not in shown
        assert not [line for line in shown.splitlines() if line.startswith("touch pwn")]
    finally:
        for directory in directories:
            shutil.rmtree(directory)
