"""`opskit dentry --drop`: what it changes, what it asks, and when it refuses.

Tests that drop the caches of this machine run with OPSKIT_TEST_HOST=1 only.
"""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys

import pytest
from hostcaches import (
    LOOK_FOR_ABSENT,
    children,
    dentry_slab_pages,
    drops,
    in_namespace,
    in_some_run,
    needs_host_changes,
    wait_until,
    without_a_drop,
)
from stracing import traced
from terminal import on_terminal

NEGATIVES = 200_000
DROP = f"{sys.executable} -m opskit dentry --drop --yes"
READ_ONLY = "mount --bind /proc/sys /proc/sys && mount -o remount,bind,ro /proc/sys && "


@pytest.fixture
def host_changes(machine_root):
    """Skip unless tests may drop the caches of this machine."""
    needs_host_changes()


def test_negative_entries_are_seen_and_dropped(inprocess, host_changes, disk):
    """200,000 failed stat()s show as so many negative dentries; --drop frees the slab, by /proc/slabinfo itself."""
    folders = iter(range(100))

    def look():
        return json.loads(inprocess("dentry", "-f", "json").out)

    def seen_and_dropped():
        before, first_drops = look(), drops()
        folder = disk / str(next(folders))
        folder.mkdir()
        subprocess.run(
            [sys.executable, "-c", LOOK_FOR_ABSENT, folder, str(NEGATIVES), "0"], check=True, capture_output=True
        )
        after = look()
        assert drops() == first_drops, "another process dropped them"
        assert after["negative"] - before["negative"] == pytest.approx(NEGATIVES, rel=0.05)
        assert re.search(r"\d+ % of it are negative entries", after["verdict"][0])
        pages = dentry_slab_pages()
        done = inprocess("dentry", "--drop", "--yes", "-f", "json")
        assert (pages - dentry_slab_pages()) * 4096 > 0.8 * NEGATIVES * 192
        assert done.code == 0, done.err
        assert drops() != first_drops
        dropped = json.loads(done.out)["drop"]
        assert (dropped["level"], dropped["written"], dropped["synced"]) == ("dentries", 2, True)
        assert dropped["before"]["dentries"] - dropped["after"]["dentries"] > 0.8 * NEGATIVES
        assert dropped["freed_bytes"] > 0.8 * NEGATIVES * 192
        assert dropped["drop_s"] > 0

    in_some_run(seen_and_dropped)


@pytest.mark.parametrize(("level", "word", "number"), [("1", "pagecache", 1), ("all", "all", 3)])
def test_levels(host_changes, level, word, number):
    """The numbers 1, 2, 3 are understood; what is written is 1, 2 or 3, as strace sees it."""
    done = traced("dentry", "--drop", level, "--yes", "-f", "json", calls=("write", "sync"))
    assert done.code == 0
    assert json.loads(done.out)["drop"]["level"] == word
    # The value is written by a child whose standard streams are elsewhere: a number and a newline, and nothing else.
    assert re.findall(r'write\(\d+, "(\d)\\n", 2\)', "\n".join(done.calls)) == [str(number)]
    assert done.of("sync")


def test_a_typed_yes_drops(host_changes):
    """The plan, the question, before and after."""
    before = drops()
    code, shown = on_terminal("dentry", "--drop", "-f", "text", question="Type yes to go on", answer=b"yes\n")
    assert code == 0
    assert "write 2 to /proc/sys/vm/drop_caches" in shown
    assert "Freed" in shown
    assert drops() != before


# `opskit dentry WORDS…` with a sync() that takes ten minutes.
SLOW_SYNC = """
import os, sys, time
os.sync = lambda: time.sleep(600)
sys.argv = ["opskit", "dentry", *sys.argv[1:]]
from opskit import cli
cli.main()
"""


def test_a_sync_that_hangs_is_left_behind(host_changes):
    """The drop is done all the same, with a note that dirty data stayed."""
    words = ("--drop", "pagecache", "--yes", "--sync-timeout", "500ms", "-f", "json")
    done = subprocess.run([sys.executable, "-c", SLOW_SYNC, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["drop"]["synced"], found["drop"]["written"]) == (False, 1)
    assert any("sync did not end within 0.5 s" in note for note in found["notes"])


# --- nothing is changed ---


def test_without_yes_nothing_is_changed(inprocess, machine_root):
    """Off a terminal it says what would happen, asks nothing, changes nothing, exits with 2."""
    done = without_a_drop(lambda: inprocess("dentry", "--drop"))
    assert (done.code, done.out) == (2, "")
    assert "write 2 to /proc/sys/vm/drop_caches" in done.err
    assert "Nothing was changed; add --yes" in done.err


@pytest.mark.parametrize("answer", [b"no\n", b"\n", b"y\n", b"\x04", b"\x03"])
def test_anything_but_yes_changes_nothing(machine_root, answer):
    """On a terminal it asks; no, nothing, a hasty y, end of input and Ctrl-C are all a no."""
    code, shown = without_a_drop(lambda: on_terminal("dentry", "--drop", question="Type yes to go on", answer=answer))
    assert code in (2, 130)
    assert "Type yes to go on" in shown
    assert "Freed" not in shown


def test_a_read_only_proc_sys(machine_root):
    """EROFS: nothing changed, and what would work."""
    done = without_a_drop(lambda: in_namespace(READ_ONLY + DROP))
    assert done.returncode == 2
    assert "Read-only file system" in done.stderr
    assert "Nothing was changed" in done.stderr
    assert "on the host itself" in done.stderr


def test_a_container_is_refused_without_the_option(machine_root):
    """In a pid namespace of its own: refused, with memory.reclaim as the alternative; with --in-container only the rights are checked."""
    done = without_a_drop(lambda: in_namespace(DROP, "-p", "-f", "--mount-proc"))
    assert done.returncode == 2
    assert "this is a container (its pid namespace" in done.stderr
    assert "--in-container" in done.stderr
    assert "memory.reclaim" in done.stderr
    done = without_a_drop(lambda: in_namespace(f"{READ_ONLY}{DROP} --in-container", "-p", "-f", "--mount-proc"))
    assert done.returncode == 2
    assert "Read-only file system" in done.stderr


def test_ctrl_c_while_it_waits_for_sync_changes_nothing(machine_root):
    """Exit 130 at once, and nothing was dropped."""

    def interrupted():
        process = subprocess.Popen(
            [sys.executable, "-c", SLOW_SYNC, "--drop", "--yes"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert wait_until(lambda: children(process.pid))
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=300)
        return process.returncode, out, err

    code, out, err = without_a_drop(interrupted)
    assert (code, out) == (130, "")
    assert "interrupted while it waited for sync. Nothing was changed" in err
