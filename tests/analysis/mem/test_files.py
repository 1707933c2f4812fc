"""Files that hold memory: sentences and findings."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opskit.analysis.mem.files import judge_files, left_behind, name_of, remove_command
from opskit.collect.mem.files import FileFacts, FileHolder, HeldMemory
from opskit.proc.memory_files import DELETED, HUGE_PAGES, MEMFD, SHARED_ANONYMOUS, SYSV, TMPFS

GIB, MIB = 1 << 30, 1 << 20
JAVA = FileHolder(4242, "java", "orders.service", mapped=True, fds=1)
AMPLE = {"MemTotal": 64 * GIB, "MemAvailable": 40 * GIB}
SHORT = {"MemTotal": 64 * GIB, "MemAvailable": GIB}


def held(path, mib, kind=TMPFS, holders=(), *, deleted=False, mount="/dev/shm", **values):
    amount = mib * MIB
    return HeldMemory(
        kind, path, deleted, 27, len(path), amount, amount, None, None, 0, "root", tuple(holders), mount=mount
    )._replace(**values)


def judged(*files, meminfo=AMPLE, complete=True, pids=()):
    return judge_files(FileFacts(pids, files, meminfo, complete))


def test_nothing():
    """One sentence, with the processes that were asked about."""
    assert judged().verdict == ["No files take memory: no tmpfs file, memfd, System V segment or deleted file."]
    assert judged(pids=(7,)).verdict[0].startswith("No files of 7 take memory")
    closed = judge_files(FileFacts((), (), AMPLE, complete=False, whole=False))
    assert closed.verdict[0].startswith("No files that take memory were found")


def test_the_kinds_and_the_largest():
    """How much of each kind, and who holds the largest."""
    result = judged(
        held("/dev/shm/cache", 30, holders=[JAVA]),
        held("/memfd:a", 90, MEMFD, [JAVA], deleted=True),
        held("/dev/zero", 5, SHARED_ANONYMOUS, [JAVA]),
    )
    assert result.verdict == [
        "Files hold 125 MiB of memory: memfd 90.0 MiB, tmpfs 30.0 MiB, shared anonymous 5.0 MiB.",
        "The largest is memfd:a: 90.0 MiB, held by java (4242) in orders.service.",
    ]
    assert [row.name for row in result.rows] == ["memfd:a", "/dev/shm/cache", "shared anonymous memory"]
    assert not result.findings


def test_what_a_dead_process_has_left():
    """In /dev/shm, as a System V segment, on huge pages: named with the command that removes it; a note while memory is not short."""
    left = [
        held("/dev/shm/old -x", 60),
        held("/SYSV", 30, SYSV, attached=0, mount=None, inode=5),
        held("/dev/hugepages/rtemap_0", 20, HUGE_PAGES, mount="/dev/hugepages"),
    ]
    result = judged(*left, held("/run/lock", 100, mount="/run"))
    assert [left_behind(row) for row in result.rows] == [False, True, True, True]
    assert result.verdict[1:] == [
        "The largest is /run/lock: 100 MiB, held by no process.",
        "3 files with 110 MiB are held by no process; the largest is /dev/shm/old -x (60.0 MiB).",
    ]
    [finding] = result.findings
    assert (finding.code, finding.severity, finding.fix) == ("shared-memory-unheld", "note", "rm '/dev/shm/old -x'")
    assert [remove_command(row) for row in result.rows[2:]] == ["ipcrm -m 5", "rm /dev/hugepages/rtemap_0"]


def test_the_shared_memory_of_a_container():
    """Its host sees it at another place."""
    row = judged(held("/run/containerd/x/shm/old", 60, mount="/run/containerd/x/shm")).rows[0]
    assert left_behind(row)


@pytest.mark.parametrize(
    ("file", "complete"),
    [
        (held("/dev/shm/a", 60), False),  # a process that could not be read may have it
        (held("/dev/shm/a", 60, holders=[JAVA]), True),
        (held("/SYSV", 60, SYSV, attached=1, mount=None), True),  # mapped in a process that could not be read
        (held("/dev/shm/a", 60, deleted=True, holders=[JAVA]), True),
        (held("/tmp/a", 60, mount="/tmp"), True),
        (held("/dev/shm/a", 2), True),  # too small
    ],
)
def test_what_is_not_called_left_behind(file, complete):
    """No finding."""
    assert not judged(file, complete=complete).findings


def test_short_of_memory():
    """What is left behind, or deleted and still held, is a warning where it is a tenth of RAM and memory is short."""
    left, gone = held("/dev/shm/a", 9000), held("/dev/shm/b", 9000, holders=[JAVA], deleted=True)
    for meminfo, severity in ((AMPLE, "note"), (SHORT, "warning")):
        result = judged(left, gone, meminfo=meminfo)
        assert {finding.code: finding.severity for finding in result.findings} == {
            "shared-memory-unheld": severity,
            "deleted-files-in-memory": severity,
        }
    assert result.findings[1].next == "opskit mem 4242"
    small = judged(held("/dev/shm/a", 100), meminfo=SHORT)
    assert [finding.severity for finding in small.findings] == ["note"]


def test_swapped_files():
    """A file that a dead process left is named, also where all of it is in swap."""
    result = judged(
        held("/dev/shm/old", 0, swapped_bytes=60 * MIB), held("/dev/shm/new", 30, holders=[JAVA], swapped_bytes=0)
    )
    assert result.verdict[0] == "Files hold 90.0 MiB of memory and swap: tmpfs 90.0 MiB."
    assert [row.name for row in result.rows] == ["/dev/shm/old", "/dev/shm/new"]
    assert [finding.fix for finding in result.findings] == ["rm /dev/shm/old"]


def test_in_a_pid_namespace():
    """Processes outside of it may hold a file: that is said, and no command to remove it is given."""
    facts = FileFacts((), (held("/dev/shm/a", 60),), AMPLE, complete=True, is_namespace=True)
    result = judge_files(facts)
    assert result.verdict[1] == "The largest is /dev/shm/a: 60.0 MiB, held by no process of this PID namespace."
    [finding] = result.findings
    assert finding.summary.startswith("no process of this PID namespace holds 60.0 MiB")
    assert finding.fix is None


def test_a_loop_device():
    """The kernel holds its file."""
    loop = FileHolder(None, "loop0", None, mapped=False, fds=0)
    result = judged(
        held("/dev/shm/image", 60, holders=[loop]), held("/dev/shm/b", 900, holders=[loop], deleted=True), meminfo=SHORT
    )
    assert result.verdict[1] == "The largest is /dev/shm/b: 900 MiB, held by loop0."
    assert not [finding for finding in result.findings if finding.code == "shared-memory-unheld"]


def test_deleted_files_of_a_disk():
    """Their blocks are said apart from memory."""
    log = held("/var/log/x", 0, DELETED, [JAVA], deleted=True, mount=None, disk_bytes=3 * GIB, resident_bytes=None)
    assert (
        "Deleted files that processes still hold take 3.0 GiB of disk: opskit fds --deleted."
        in judged(log, held("/dev/shm/a", 1)).verdict
    )


def test_names_and_commands_of_hostile_files():
    """A path in another mount namespace is removed through /proc; a command is one line for any shell."""
    file = held("/dev/shm/a\n$(x)", 60, mount_pid=77, reached_at="/proc/77/root/dev/shm/a\n$(x)")
    [row] = judged(file).rows
    assert row.name == file.reached_at  # what this shell can look at
    assert remove_command(row) == """rm "$(printf '/proc/77/root/dev/shm/a\\012$(x)')\""""
    assert name_of(held("/SYSV00000000", 1, SYSV, inode=9, attached=1)) == "System V segment 9"
    assert name_of(held("/SYSV-of-mine", 1)) == "/SYSV-of-mine"


amounts = st.none() | st.integers(0, 1 << 45)
names = st.text(max_size=9).filter(lambda name: "None" not in name)  # as a file may be called
files = st.builds(
    HeldMemory, st.sampled_from([TMPFS, MEMFD, SYSV, SHARED_ANONYMOUS, HUGE_PAGES, DELETED]),
    st.sampled_from(["/SYSV0", "/memfd:x", "/dev/shm/y"]) | names, st.booleans(), st.integers(0, 9), st.integers(0, 9),
    *[amounts] * 4, st.none(), st.none() | names,
    st.lists(st.builds(FileHolder, st.integers(1, 9), names, st.none() | names, st.booleans(), st.integers(0, 9)), max_size=3).map(tuple),
    amounts, st.none() | names, st.none() | st.integers(0, 3), st.sampled_from([None, "/dev/shm", "/run"]), st.none() | st.just(5),
)  # fmt: skip


@settings(max_examples=200)
@given(st.lists(files, max_size=5), st.sampled_from([AMPLE, SHORT, {}]), st.booleans())
def test_whatever_is_read(found, meminfo, complete):
    """The largest first, every kind in the sums, unknown never written as None."""
    result = judged(*found, meminfo=meminfo, complete=complete)
    assert [row.bytes for row in result.rows] == sorted((row.bytes for row in result.rows), reverse=True)
    assert sum(result.by_kind.values()) == sum((file.resident_bytes or 0) + (file.swapped_bytes or 0) for file in found)
    lines = [
        *result.verdict,
        *(line for one in result.findings for line in (one.summary, one.evidence, one.fix or "", one.next or "")),
    ]
    assert all("None" not in line for line in lines)
    assert all("\n" not in (one.fix or "") for one in result.findings)
