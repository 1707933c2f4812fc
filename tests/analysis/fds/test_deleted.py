"""What is said of deleted files, full file systems and limits of the machine."""

from __future__ import annotations

import fdfacts
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opskit.analysis.fds.deleted import advice, judge_deleted, restart, truncate
from opskit.analysis.fds.host import judge_host
from opskit.analysis.file_space import has_no_inodes, is_full
from opskit.collect.fds.facts import DeletedFile, DeletedHolder, FileSystem, User
from opskit.proc.process import Process

MIB, GIB = 1 << 20, 1 << 30
JAVA = Process(4242, "java", 1001, "app", 1, 555, "S", 40)


def held(size, *fds, appending=None, mapped=False, unit="orders.service", regular=True):
    holder = DeletedHolder(JAVA, fds, mapped, unit, appending)
    return DeletedFile(2049, 7, "/var/log/app.log", size, size, regular, (holder,))


def system(size, free, *files, inodes=None, free_inodes=None):
    return FileSystem(2049, "/var", "ext4", size, free, inodes, free_inodes, files)


def severities(*systems):
    result = judge_deleted(fdfacts.deleted(systems=systems, unattached=()).facts)
    return {finding.code: finding.severity for finding in result.findings}


def test_healthy_disks():
    """Temporary files of a database on a disk with room, a large disk with little free, a small one nearly full: no warning."""
    assert severities(system(100 * GIB, 60 * GIB, held(4 * GIB, 5))) == {"deleted-files-held": "note"}
    assert severities(system(100 * GIB, 60 * GIB, held(8 * MIB, 5))) == {}
    assert severities(system(1000 * GIB, 4 * GIB)) == {}  # 0.4 %, and 4 GiB
    assert severities(system(500 * MIB, 20 * MIB)) == {}
    assert severities(system(100 * GIB, 3 * GIB, held(100 * MIB, 5))) == {"deleted-files-held": "note"}  # not why


def test_full_disks():
    """Full without deleted files; full because of them; without inodes; XFS, which has no inodes when it is full."""
    assert severities(system(100 * GIB, 0)) == {"disk-full": "error"}
    assert severities(system(100 * GIB, 0, held(40 * GIB, 5))) == {
        "disk-full": "error",
        "deleted-files-held": "warning",
    }
    assert severities(system(100 * GIB, 3 * GIB, held(40 * GIB, 5))) == {"deleted-files-held": "warning"}
    assert severities(system(100 * GIB, 50 * GIB, inodes=1000, free_inodes=0)) == {"disk-inodes-used-up": "error"}
    assert severities(system(100 * GIB, 0, inodes=1000, free_inodes=0)) == {"disk-full": "error"}


def test_unknown_sizes():
    """Files of a mount that is gone have no disk to compare with: a note. A size that is unknown is not 0."""
    gone = FileSystem(2049, "", "", None, None, None, None, (held(GIB, 5),))
    assert severities(gone) == {"deleted-files-held": "note"}
    assert severities(system(GIB, GIB, held(None, mapped=True))) == {}


def test_truncate():
    """Only a regular file that every holder has open for writing alone and appending, and nobody has mapped."""
    log = held(GIB, 3, appending=3)
    assert truncate(log) == "truncate -s 0 /proc/4242/fd/3"
    for other in (held(GIB, 3), held(GIB, 3, appending=3, mapped=True), held(GIB, 3, appending=3, regular=False)):
        assert truncate(other) is None
    reader = DeletedHolder(JAVA._replace(pid=77), (4,), False, None)
    assert truncate(log._replace(holders=(*log.holders, reader))) is None


def test_advice():
    """A restart or log rotation first; the loss of the content with the command; of a mapping only the restart."""
    assert advice(held(GIB, 3, appending=3)) == (
        "Restart java (4242) in orders.service, or have it open its log again (log rotation); "
        "or empty the file, whose content is lost then: truncate -s 0 /proc/4242/fd/3"
    )
    assert advice(held(GIB, mapped=True, unit=None)) == "Restart java (4242)"


@pytest.mark.parametrize(
    ("unit", "expected"),
    [
        ("orders.service", "systemctl restart orders.service"),
        ("-x.service", "systemctl restart -- -x.service"),
        ("user@1000.service", None),
        ("session-3.scope", None),
        ("docker:3f2a9c81d0e4", None),
        (None, None),
    ],
)
def test_restart(unit, expected):
    """Of a service of this machine."""
    assert restart(DeletedHolder(JAVA, (3,), False, unit)) == expected


@given(
    st.none() | st.integers(0, 1 << 45),
    st.none() | st.integers(0, 1 << 45),
    st.none() | st.integers(0, 99),
    st.integers(0, 99),
)
def test_any_numbers(size, free, inodes, free_inodes):
    """A disk is never without space and without inodes at once, and unknown is never full."""
    one = system(size, free, held(GIB, 3), inodes=inodes, free_inodes=free_inodes)
    assert not (is_full(one) and has_no_inodes(one))
    assert not is_full(one._replace(free_bytes=None))
    judge_deleted(fdfacts.deleted(systems=(one,)).facts)


def users(used):
    return (User(1001, "app", used, ((4242, "java", used),)),)


def test_limits_of_users():
    """A note from 80 % on, a warning from 95 % on, and what the next one fails with at the limit; unlimited is none."""

    def found(**more):
        facts = fdfacts.host(nearest=(), inotify_instances=(), inotify_watches=(), **more).facts
        return [(finding.code, finding.severity) for finding in judge_host(facts).findings]

    assert found() == []
    assert found(epoll_watches=users(4_000_001)) == [("epoll-watches-nearly-used", "note")]
    assert found(epoll_watches=users(4_800_000)) == [("epoll-watches-nearly-used", "warning")]
    assert found(epoll_watches=users(4_800_000), max_epoll=None) == []
    assert found(file_nr=(96, 100)) == [("file-max-nearly-used", "warning")]
    assert found(file_nr=(100, 100)) == [("file-max-nearly-used", "error")]
    assert found(file_nr=None) == []


def test_the_error_at_the_limit():
    """No space left on device is not a full disk."""
    facts = fdfacts.host(nearest=(), inotify_instances=(), inotify_watches=users(65536)).facts
    [finding] = judge_host(facts).findings
    assert "the next one fails (inotify_add_watch: No space left on device)" in finding.summary
    assert finding.fix == "sysctl -w fs.inotify.max_user_watches=131072"
    [lower] = judge_host(facts._replace(complete=False)).findings
    assert "at least 65,536 of 65,536" in lower.summary
