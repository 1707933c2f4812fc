"""A whole log: which chunks are skipped, first and last stamps, long lines."""

from __future__ import annotations

import time

import pytest
from kernellogs import FORMS, cgroup_report

from opskit.proc.oom import log, signs
from opskit.proc.oom.log import COARSE, NEEDLES, read_log


@pytest.mark.parametrize("needle", NEEDLES)
def test_a_chunk_with_a_needle_is_not_skipped(needle):
    """Each needle has one of the coarse ones."""
    assert any(each in needle for each in COARSE)


def test_every_sign_has_a_needle():
    """A line of each kind is found far behind the first lines, which are all read."""
    lines = {
        signs.OOMD: "Nov 24 16:00:00 h systemd-oomd[1]: Killed /a/b due to memory used (1) / total (2) and swap used",
        signs.EARLYOOM: 'sending SIGKILL to process 1 "a": x',
        signs.UNIT: "a.service: Failed with result 'oom-kill'.",
        signs.CONTAINER: 'reason: "OOMKilled"',
        signs.SIGKILL: "Exited with status 137",
        signs.NATIVE: "# There is insufficient memory for the Java Runtime Environment to continue.",
        signs.HEAP: "Aborting due to java.lang.OutOfMemoryError: Metaspace",
    }
    noise = b"x\n" * 5_000
    for kind, line in lines.items():
        found = read_log([noise, line.encode() + b"\n", noise])
        assert [sign.kind for sign in found.signs] == [kind]
        assert found.lines == 10_001


def test_first_and_last_stamps():
    """Of the first and last line that has one, also where nothing was killed."""
    text = "2026-11-24T16:00:00Z h a: x\n" + "b\n" * 10_000 + "2026-11-25T16:00:00Z h a: x\n"
    found = read_log([text.encode()])
    assert (found.first.text, found.last.text) == ("2026-11-24T16:00:00Z", "2026-11-25T16:00:00Z")
    found = read_log([text.encode() + b"more of it\n\n"])
    assert found.last.text == "2026-11-25T16:00:00Z"


def test_a_line_without_an_end():
    """It is not held in memory, and what follows its end is read."""
    report = FORMS["dmesg"](cgroup_report("6.8")).encode()
    found = read_log([*[b"x" * 65_536] * 100, b"\n" + report])
    assert [kill.pid for kill in found.kills] == [4242]
    assert len(log._Reader(4096, None, 0)._rest) == 0


def test_many_kills_are_counted():
    """The last ones are kept; those above the most are counted."""
    line = (
        "[ 1215.612345] Out of memory: Killed process %d (a) total-vm:1kB, anon-rss:1kB, file-rss:0kB, shmem-rss:0kB\n"
    )
    found = read_log([(line % number).encode() for number in range(10_050)])
    assert (len(found.kills), found.more) == (10_000, 50)
    assert found.kills[-1].pid == 10_049


def test_many_members_of_a_killed_cgroup_take_bounded_time():
    """Each process once, up to a bound; the others are counted."""
    group = "[ 1215.612345] Tasks in /a are going to be killed due to memory.oom.group set\n"
    line = "[ 1215.612345] Memory cgroup out of memory: Killed process %d (a) total-vm:1kB, anon-rss:1kB, file-rss:0kB, shmem-rss:0kB\n"
    text = line % 1 + group + "".join(line % number for number in range(1, 20_001)) + line % 5
    began_s = time.process_time()
    found = read_log([text.encode()])
    assert time.process_time() - began_s < 2
    assert (len(found.kills), found.more) == (10_001, 9_999)
