"""`opskit hsperf-check --fix --yes` by root, where a user makes the files of others look like those of its own JVM.

What is asserted of each attack is that nothing of the victim's has changed. Each is real: processes, namespaces, mounts.
"""

from __future__ import annotations

import contextlib
import json
import os
import pwd
import socket
import subprocess
import sys
from pathlib import Path

import hsperf
import pytest

SCRIPT = Path(__file__).resolve().parent.parent / "attacker.py"
HOWS = ("user-namespace", "setuid-helper")


class Attacker:
    """tests/attacker.py at work."""

    def __init__(self, user, how, trick, victim, name, fd=-1):
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
        self.process.kill()
        error = self.process.stderr.read()
        if "PermissionError" in error or "enter_user_namespace" in error:
            pytest.skip(f"user namespaces are disabled here: {error.splitlines()[-1]}")
        raise AssertionError(error)

    def go(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        self.expect("READY")

    def end(self):
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def user(root_only):
    """Who attacks: somebody with a name and without rights."""
    for name in ("games", "bin", "mail", "daemon", "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name)
    pytest.skip("no system user here")


@pytest.fixture
def attack(user):
    """A function that starts an attacker; ended afterwards."""
    started = []

    def start(how, trick, victim, name=user.pw_name, **options):
        started.append(Attacker(user, how, trick, victim, name, **options))
        return started[-1]

    yield start
    for attacker in started:
        attacker.end()


@pytest.fixture
def victim():
    """A file of root's, that nobody else may read, with a small inode number."""
    path = Path(f"/dev/shm/opskit-test-{os.getpid()}")
    path.write_bytes(hsperf.build({"sun.rt.javaCommand": "x"}))
    path.chmod(0o600)
    yield path
    path.unlink()


@pytest.fixture
def fix(opskit):
    """Run the repair as root; gives its repairs."""

    def run(*words):
        ran = opskit("hsperf-check", *words, "--fix", "--yes", "-f", "json")
        assert ran.code in (0, 1), ran.err
        return json.loads(ran.out)["repairs"]

    return run


def look(path):
    found = os.lstat(path)
    return found.st_uid, found.st_gid, found.st_mode, found.st_nlink


@pytest.mark.parametrize("how", HOWS)
def test_a_file_with_the_number_of_the_attackers(attack, fix, victim, how):
    """The exploit: the attacker maps a file of its own with the victim's inode number, and lays the victim over its name."""
    before = look(victim)
    attacker = attack(how, "same-number", victim)
    attacker.go()
    repairs = fix(attacker.pid)
    assert look(victim) == before
    assert all(repair["state"] == "refused" for repair in repairs), repairs
