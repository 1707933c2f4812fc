"""Names that identify their process, and which of the files may be removed."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest
from shells import NOBODY

from opskit.actions import leftovers


@pytest.fixture
def dead_name():
    """The name made by a process that has ended; `parts` replace its parts."""
    code = "from opskit.actions import leftovers; print(leftovers.new_name())"
    made = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()

    def name(**parts):
        _, pid, start, machine, random = made.split("-")
        given = {"pid": pid, "start": start, "machine": machine, "random": random, **parts}
        return ".opskit-{pid}-{start}-{machine}-{random}".format(**given)

    return name


def test_a_name_is_ours_while_we_live():
    """PID, start time, machine and a random part; never the same twice."""
    name = leftovers.new_name(".json")
    assert re.fullmatch(rf"\.opskit-{os.getpid()}-\d+-[0-9a-f.]+-[0-9a-f]{{16}}\.json", name)
    assert name != leftovers.new_name(".json")
    assert not leftovers.is_abandoned(name)


def test_the_owner_is_dead_where_pid_or_start_time_say_so(dead_name):
    """No such process, or a later one of the same pid; with a suffix, or as a tracing instance, without the dot."""
    assert leftovers.is_abandoned(dead_name())
    assert leftovers.is_abandoned(dead_name()[1:])
    assert leftovers.is_abandoned(dead_name() + ".json")
    assert leftovers.is_abandoned(dead_name(pid=os.getpid()))
    assert leftovers.is_abandoned(dead_name(pid=1))


def test_a_zombie_is_dead():
    """Its parent has not waited for it."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.write(writing, leftovers.new_name().encode())
        os._exit(0)
    try:
        name = os.read(reading, 200).decode()
        os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
        assert leftovers.is_abandoned(name)
    finally:
        os.waitpid(child, 0)
        os.close(reading)
        os.close(writing)


@pytest.mark.parametrize(
    "parts",
    [
        {"machine": "0"},
        {"machine": "0123456789abcdef.f0000000"},
        {"pid": 0},
        {"pid": "99999999999"},
        {"pid": "²"},
        {"start": "x"},
        {"random": "short"},
        {"random": "0123456789abcdef/../x"},
    ],
)
def test_what_is_not_proven_is_not_dead(dead_name, parts):
    """Another boot, machine or pid namespace, and names that opskit did not make."""
    assert not leftovers.is_abandoned(dead_name(**parts))


def test_another_pid_namespace_proves_nothing(dead_name, root_only):
    """Its PIDs are not ours, and /proc may belong to the other one."""
    code = f"from opskit.actions import leftovers; print(leftovers.is_abandoned({dead_name()!r}))"
    for more in (["--mount-proc"], []):
        done = subprocess.run(
            ["unshare", "-p", "-f", *more, sys.executable, "-c", code], capture_output=True, text=True, check=False
        )
        if done.returncode:
            pytest.skip(f"needs namespaces: {done.stderr}")
        assert done.stdout == "False\n"


def test_only_plain_files_of_the_user_with_one_name_are_removed(dead_name, tmp_path, root_only):
    """Everything else stays: links, directories, FIFOs, other users' files, other names."""
    names = [dead_name(random=f"{number:016x}") for number in range(7)]
    gone, theirs, two_names, link, directory, fifo, suffixed = (tmp_path / name for name in names)
    for path in (gone, theirs, two_names):
        path.write_text("")
    os.chown(theirs, NOBODY, NOBODY)
    os.link(two_names, tmp_path / "second")
    link.symlink_to("second")
    directory.mkdir()
    os.mkfifo(fifo)
    (tmp_path / ".opskit-mine").write_text("")
    (tmp_path / leftovers.new_name()).write_text("")
    suffixed.with_name(suffixed.name + ".plain").write_text("")
    before = set(os.listdir(tmp_path))
    fd = os.open(tmp_path, os.O_PATH)
    try:
        leftovers.remove_abandoned(fd, 0)
        assert before - set(os.listdir(tmp_path)) == {gone.name, suffixed.name + ".plain"}
    finally:
        os.close(fd)
