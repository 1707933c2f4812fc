"""The trigger file: made as the JVM's user and always removed; those of other clients stay."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time

import pytest
from attaching import client, refused, triggers_of
from shells import root_with

APP = 1234
PATH = os.pathsep.join(filter(None, sys.path))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_leaves_no_trigger(fake_jvm, number):
    """Interrupted while it waits for the listener, opskit removes the trigger before it ends."""
    fake = fake_jvm("never")
    child = os.fork()
    if not child:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            client(fake, 600.0).thread_dump()
        except KeyboardInterrupt:
            os._exit(130)
        finally:
            os._exit(1)
    deadline = time.monotonic() + 60
    while "quit" not in fake.output():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert any(map(os.path.lexists, triggers_of(fake)))
    os.kill(child, number)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == (130 if number == signal.SIGINT else -signal.SIGTERM)
    assert not any(map(os.path.lexists, triggers_of(fake)))


def test_a_trigger_that_was_left_behind_serves_and_stays(fake_jvm):
    """A trigger that another client has left is used and not removed."""
    fake = fake_jvm("v1")
    path = triggers_of(fake)[1]
    with open(path, "w"):
        os.utime(path, (0, 0))
    try:
        assert "main" in client(fake).thread_dump()
        assert os.path.lexists(path)
    finally:
        os.unlink(path)


def test_a_trigger_that_is_at_work_is_waited_for(fake_jvm):
    """Another client's new trigger: no second signal before the JVM has handled the first one."""
    fake = fake_jvm("v1")
    path = triggers_of(fake)[1]
    with open(path, "w"):
        pass
    slow = threading.Timer(1.5, fake.signal, [signal.SIGQUIT])
    slow.start()
    try:
        assert "main" in client(fake).thread_dump()
    finally:
        slow.join()
        os.unlink(path)
    assert fake.output().count("quit") == 1
    assert "dump" not in fake.output().splitlines()


def test_a_trigger_of_the_wrong_user_stops_everything(fake_jvm, root_only):
    """HotSpot would find that file, reject it and print a dump: no signal is sent."""
    fake = fake_jvm("v1")
    _, path = triggers_of(fake)
    with open(path, "w"):
        os.chown(path, APP, APP)
    try:
        with refused("no-trigger", f"belongs to uid {APP}.*No signal was sent"):
            client(fake).thread_dump()
        assert "quit" not in fake.output()
        assert "dump" not in fake.output()
        assert os.path.lexists(path)
    finally:
        os.unlink(path)


def test_the_trigger_goes_to_tmp_where_the_cwd_is_closed(fake_jvm, root_only, tmp_path):
    """The JVM's user may not write to /, so the trigger is made in /tmp."""
    fake = fake_jvm("v1", user=APP)
    assert "main" in client(fake).thread_dump()
    assert f"quit {APP}" in fake.output()


ASK = "import sys\nfrom attaching import *\nAttachClient(ProcFS(), int(sys.argv[1])).thread_dump()"


def test_a_trigger_in_a_directory_that_is_closed_to_root(fake_jvm, root_only):
    """Root without CAP_DAC_OVERRIDE, as on NFS with root_squash, removes its trigger with the IDs of the JVM."""
    shell = root_with("sys_ptrace", "setuid", "setgid", "kill")
    with tempfile.TemporaryDirectory() as cwd:
        os.chown(cwd, APP, APP)
        fake = fake_jvm("v1", user=APP, cwd=cwd)
        words = [*shell, sys.executable, "-c", ASK, str(fake.pid)]
        done = subprocess.run(
            words, capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": PATH}
        )
        assert "permission denied for /tmp/.java_pid" in done.stderr
        assert f"quit {APP}" in fake.output()
        assert os.listdir(cwd) == []
