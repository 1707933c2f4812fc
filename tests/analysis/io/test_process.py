"""What is concluded about one process: each finding, and the healthy programs that come close to it."""

from __future__ import annotations

import pytest

from opskit.analysis.finding import is_failure
from opskit.analysis.io.judge import judge
from opskit.collect.io.facts import CgroupIo, Facts, File, IoLimit, Rates, Seen, Stalled, Step, Thread
from opskit.proc.process import Process

PROCESS = Process(4242, "java", 1001, "app", 1, 8675309, "S", 40)
LINES = File(4, "/data/lines.txt", "file", 1_903_808.0, 0o100000, "sda1", (), "/data")
LOG = File(5, "/var/log/app.log", "file", 500_000.0, 0o102001, "sda1")
MIB = float(1 << 20)


def rates(reads=0.0, writes=0.0, read=0.0, written=0.0, from_disk=0.0, to_disk=0.0, cancelled=0.0):
    return Rates(reads, writes, read, written, from_disk, to_disk, cancelled)


def thread(of_rates, tid=4250, name="csv-import-worker-1", looks=60, seen=None, user=0.2, system=0.7, **more):
    return Thread(
        tid,
        name,
        of_rates,
        looks,
        (Seen("running", None, looks),) if seen is None else seen,
        user=user,
        system=system,
        **more,
    )


def facts(*threads, files=(), **more):
    total = Rates(*map(sum, zip(*(each.rates for each in threads)))) if threads else rates()
    in_steps = {each.tid: (each.rates.read_bytes, each.rates.written_bytes) for each in threads}
    parts = (0.3, 0.2, 0.1, 0.4)
    steps = tuple(
        Step(
            {tid: round(part * read) for tid, (read, _) in in_steps.items()},
            {tid: round(part * written) for tid, (_, written) in in_steps.items()},
            {file.fd: round(part * (file.moved_bytes or 0)) for file in files if file.moved_bytes is not None},
        )
        for part in parts
    )
    known = {"total": total, "steps": steps, "looks": 60, "thread_total": 40, **more}
    return Facts(PROCESS, 1.0, tuple(threads), tuple(files), **known)


BYTE_READS = rates(reads=1_903_808.0, read=1_903_808.0)


def test_a_byte_a_read():
    """The sentence that is promised, to the letter."""
    result = judge(facts(thread(BYTE_READS), files=[LINES], is_jvm=True))
    assert (
        result.verdict[0]
        == "csv-import-worker-1 does 1,903,808 reads/s of 1.0 byte: fd 4 /data/lines.txt; wrap it in a buffer"
    )
    (finding,) = result.findings
    assert (finding.code, finding.severity, finding.class_) == ("io-tiny-reads", "warning", "slow")
    assert (finding.entity.kind, finding.entity.id, finding.entity.inside.id) == ("thread", 4250, 4242)
    assert (
        finding.evidence
        == "/proc/4242/task/4250/io: 1,903,808 calls and 1,903,808 bytes a second; stat: 70 % of a CPU in the kernel"
    )
    assert finding.next == result.next == "opskit io 4242 --ask"
    assert (result.rows[0].file, result.rows[0].why) == (LINES, "1.0 byte a read")


def test_with_the_java_stack():
    """From the call out to the application's method; the next step is another one."""
    frames = (
        "java.io.RandomAccessFile.read0(java.base@17/Native Method)", "java.io.RandomAccessFile.read(java.base@17/RandomAccessFile.java:365)",
        "java.io.RandomAccessFile.readLine(java.base@17/RandomAccessFile.java:954)", "com.example.RL.load(RL.java:12)",
        "com.example.RL.run(RL.java:5)",
    )  # fmt: skip
    result = judge(facts(thread(BYTE_READS, frames=frames), files=[LINES], is_jvm=True, asked=True))
    assert result.verdict[1] == (
        "csv-import-worker-1 is in RandomAccessFile.read0 < RandomAccessFile.read < RandomAccessFile.readLine < RL.load"
    )
    assert result.next == "opskit profile 4242"


def test_several_threads_do_the_same():
    """One finding, about the process."""
    other = File(6, "/data/more.txt", "file", 1_000_000.0, 0o100000)
    result = judge(
        facts(thread(BYTE_READS), thread(rates(reads=1e6, read=1e6), 4251, system=0.6), files=[LINES, other])
    )
    (finding,) = result.findings
    assert (finding.entity.kind, finding.entity.id) == ("process", 4242)
    assert finding.summary.endswith("fd 4 /data/lines.txt; wrap it in a buffer; 1 more thread does the same")


@pytest.mark.parametrize(
    ("of_rates", "how"),
    [
        (rates(reads=9_000.0, read=9_000.0), {}),  # few
        (rates(reads=50_000.0, read=50_000.0 * 64), {}),  # not tiny
        (BYTE_READS, {"system": 0.01}),  # it costs nothing
        (BYTE_READS, {"system": 0.1, "user": 0.9}),  # it computes
        (BYTE_READS, {"system": None, "user": None}),  # unknown
    ],
)
def test_reads_that_are_no_habit(of_rates, how):
    """Each threshold by itself."""
    moved = LINES._replace(moved_bytes=of_rates.read_bytes)
    assert judge(facts(thread(of_rates, **how), files=[moved])).findings == ()


def test_small_reads_of_unknown_files():
    """A server's requests, wake-ups and agents are small reads too. Only so many of so few bytes are a note."""
    note = judge(facts(thread(BYTE_READS))).findings
    assert [(each.code, each.severity) for each in note] == [("io-tiny-reads", "note")]
    assert note[0].summary.endswith("of 1.0 byte; which fd is unknown: pread, a pipe or a socket")
    for quiet in (rates(reads=100_000.0, read=100_000.0), rates(reads=400_000.0, read=400_000.0 * 9)):
        assert judge(facts(thread(quiet))).findings == ()


def test_reads_that_return_nothing():
    """A program that polls needs no buffer."""
    pipe = File(6, "pipe:[9]", "pipe", None, 0)
    (finding,) = judge(facts(thread(rates(reads=500_000.0)), unmoved=(pipe,))).findings
    assert (finding.code, finding.severity) == ("io-tiny-reads", "note")
    assert finding.summary == (
        "csv-import-worker-1 does 500,000 reads/s that return nothing: fd 6 pipe:[9]; it polls: wait for an event instead"
    )


def test_the_only_file_that_can_be_read():
    """Without positions and calls: what is left when all others are write-only, empty, or events."""
    null, out = File(0, "/dev/null", "device", None, 0), File(1, "pipe:[7]", "pipe", None, 0o1)
    event, pipe = File(5, "anon_inode:[eventfd]", "eventfd", None, 2), File(6, "pipe:[9]", "pipe", None, 0)
    (finding,) = judge(facts(thread(BYTE_READS), unmoved=(null, out, event, pipe))).findings
    assert finding.severity == "warning"
    assert finding.summary.endswith("reads/s of 1.0 byte: fd 6 pipe:[9]; wrap it in a buffer")
    for open_files in (None, (null,), (pipe, pipe._replace(fd=7))):
        (finding,) = judge(facts(thread(BYTE_READS), unmoved=open_files)).findings
        assert finding.severity == "note"


def test_what_children_did():
    """It is named as theirs."""
    children = rates(reads=1000.0, read=100 * MIB)
    words = judge(facts(thread(rates(writes=2.0, written=10.0)), ended=children)).verdict[0]
    assert words == (
        "4242 (java) writes 10 B/s in 2 calls/s; its children and threads that ended: reads 100 MiB/s in 1,000 calls/s: no problem found"
    )
    assert judge(facts(ended=children)).verdict[0].startswith("4242 (java) its children and threads that ended: reads")


@pytest.mark.parametrize(("length", "severity"), [(1, "warning"), (65536, None), (None, "note")])
def test_what_a_call_asked_for(length, severity):
    """A large buffer that gets one byte has read all there was."""
    pipe = File(3, "pipe:[9]", "pipe", None)
    seen = (Seen("running", None, 50), Seen("read", 3, 10, length))
    found = judge(facts(thread(BYTE_READS, seen=seen), files=[pipe])).findings
    assert [each.severity for each in found] == ([severity] if severity else [])


def test_a_reader_that_seeks():
    """A note, with other advice."""
    moved = LINES._replace(moved_bytes=None)
    (finding,) = judge(facts(thread(rates(reads=500_000.0, read=8e6)), files=[moved])).findings
    assert finding.severity == "note"
    assert finding.summary.endswith("fd 4 /data/lines.txt; it seeks between them: map the file or cache it")
    small = moved._replace(size_bytes=1290)
    (finding,) = judge(facts(thread(rates(reads=500_000.0, read=8e6)), files=[small])).findings
    assert (finding.severity, finding.summary.rpartition("; ")[2]) == ("warning", "wrap it in a buffer")


def test_writes():
    """A byte a write is a warning, a line a write a note, and a quiet log nothing."""
    found = {}
    for size, calls in ((1, 500_000.0), (90, 20_000.0), (90, 1_000.0), (8192, 20_000.0)):
        log = LOG._replace(moved_bytes=size * calls)
        found[size, calls] = [
            (each.code, each.severity)
            for each in judge(facts(thread(rates(writes=calls, written=size * calls)), files=[log])).findings
        ]
    assert list(found.values()) == [[("io-tiny-writes", "warning")], [("io-tiny-writes", "note")], [], []]
    assert judge(facts(thread(rates(writes=5e5, written=5e5)))).findings == ()  # an eventfd, a socket, /dev/null


SYNC = (Seen("fsync", 5, 40), Seen("running", None, 20))


def test_a_sync_after_each_record():
    """A page for 100 bytes is a warning; a database that commits whole pages is a note; one that syncs now and then is nothing."""
    log = LOG._replace(moved_bytes=500_000.0)
    records, blocks = (
        rates(writes=5_000.0, written=500_000.0, to_disk=5_000.0 * 4096),
        rates(writes=500.0, written=500 * 8192.0, to_disk=500 * 8192.0),
    )
    (finding,) = judge(facts(thread(records, seen=SYNC, user=0.03, system=0.3), files=[log])).findings
    assert (finding.code, finding.severity) == ("io-sync-dominates", "warning")
    assert finding.summary == (
        "csv-import-worker-1 spends 96 % of its time in fsync: 5,000 writes/s of 100.0 bytes: fd 5 /var/log/app.log; write more before each sync"
    )
    assert "488 KiB/s written made 19.5 MiB/s dirty" in finding.evidence
    (finding,) = judge(
        facts(thread(blocks, seen=SYNC, user=0.03, system=0.3), files=[LOG._replace(moved_bytes=500 * 8192.0)])
    ).findings
    assert finding.severity == "note"
    rare = (Seen("fsync", 5, 6), Seen("futex", None, 50), Seen("running", None, 4))
    assert judge(facts(thread(blocks, seen=rare, system=0.05), files=[log])).findings == ()
    few = thread(records, looks=5, seen=(Seen("fsync", 5, 5),), system=0.01)
    assert judge(facts(few, files=[log])).findings == ()


def test_syncs_of_what_others_write():
    """A thread that only syncs, as a log's flusher or msync(), is a note; its call is named."""
    for call, fd in (("fdatasync", 5), ("msync", None)):
        seen = (Seen(call, fd, 50), Seen("running", None, 10))
        (finding,) = judge(facts(thread(rates(), seen=seen, user=0.02, system=0.1), files=[LOG])).findings
        assert (finding.code, finding.severity) == ("io-sync-dominates", "note")
        place = "" if fd is None else ": fd 5 /var/log/app.log"
        assert finding.summary == (
            f"csv-import-worker-1 spends 98 % of its time in {call}{place}; its pace is that of the storage"
        )


def test_writes_that_are_synchronous():
    """By the flags of the file: O_SYNC or O_DSYNC."""
    log = LOG._replace(flags=0o4010001, moved_bytes=500_000.0)
    seen = (Seen("write", 5, 40, 100), Seen("running", None, 20))
    of_rates = rates(writes=5_000.0, written=500_000.0, to_disk=5_000.0 * 4096)
    (finding,) = judge(facts(thread(of_rates, seen=seen, user=0.03, system=0.3), files=[log])).findings
    assert "in writes with O_SYNC" in finding.summary
    buffered = judge(facts(thread(of_rates, seen=seen, user=0.03, system=0.3), files=[LOG])).findings
    assert [each.code for each in buffered] == ["io-tiny-writes"]


def test_files_that_are_deleted_at_once():
    """A note, from 1 MiB/s on."""
    (finding,) = judge(
        facts(thread(rates(writes=100.0, written=40 * MIB, to_disk=40 * MIB, cancelled=40 * MIB)))
    ).findings
    assert (finding.code, finding.severity, finding.class_) == ("io-writes-cancelled", "note", "tidy")
    assert judge(facts(thread(rates(writes=100.0, written=MIB, to_disk=MIB, cancelled=MIB / 2)))).findings == ()


def cgroup(**changes):
    return CgroupIo("/pod/app", 0.4, 0.3, 25_000.0, (), 64 << 20, 60 << 20, 0.3, 63 << 20)._replace(**changes)


FROM_DISK = rates(reads=2_000.0, read=128 * MIB, from_disk=100 * MIB)
TABLE = File(7, "/data/table", "file", None, 0o100000, "sda1", (4250,), "/data", size_bytes=300 << 20)
IN_D = (Stalled("folio_wait_bit_common", 40), Stalled(None, 5))


def test_a_page_cache_that_is_too_small():
    """Refaults explain what comes from disk, the limit is used up, and a thread waits for it."""
    result = judge(facts(thread(FROM_DISK, stalled=IN_D), files=[TABLE], cgroup=cgroup(), available_bytes=8 << 30))
    (finding,) = result.findings
    assert (finding.code, finding.severity, finding.entity.name) == ("io-cache-thrash", "warning", "/pod/app")
    assert finding.summary == (
        "csv-import-worker-1 reads the same pages from disk again, 100 MiB/s, 75 % of the time waiting for storage: "
        "the page cache of /pod/app is too small, its memory limit is 64.0 MiB"
    )
    assert finding.evidence == (
        "memory.stat of /pod/app: 25,000 refaults a second, 60.0 MiB of page cache; 78 % of what was read came from disk"
    )
    assert result.rows[0].why == "waits for a block device (folio_wait_bit_common), 75 % of looks; 78 % from disk"


@pytest.mark.parametrize(
    ("of_rates", "of_cgroup"),
    [
        (FROM_DISK, {"refaults": 1_000.0}),  # a file that is read once, or far more than fits
        (FROM_DISK, {"refaults": None}),
        (FROM_DISK, {"memory_limit_bytes": None}),
        (FROM_DISK, {"usage_bytes": 20 << 20}),  # room is left
        (FROM_DISK, {"usage_bytes": None}),
        (rates(reads=2_000.0, read=1000 * MIB, from_disk=100 * MIB), {}),  # most of it was in the cache
    ],
)
def test_reads_from_disk_that_are_healthy(of_rates, of_cgroup):
    """Each condition by itself."""
    assert judge(facts(thread(of_rates, stalled=IN_D), cgroup=cgroup(**of_cgroup))).findings == ()


@pytest.mark.parametrize(
    ("size", "available", "severity"),
    [
        (300 << 20, 8 << 30, "warning"),
        (100 << 30, 8 << 30, "note"),
        (None, 8 << 30, "warning"),
        (None, 100 << 20, "note"),
        (300 << 20, None, "note"),
    ],
)
def test_a_database_that_fits_in_no_memory(size, available, severity):
    """A larger limit would not help it. Without the sizes, how much of it is in the cache tells how large it is: 60 MiB of 274."""
    table = TABLE._replace(size_bytes=size)
    (finding,) = judge(
        facts(thread(FROM_DISK, stalled=IN_D), files=[table], cgroup=cgroup(), available_bytes=available)
    ).findings
    assert finding.severity == severity


def test_refaults_that_nobody_waits_for():
    """Readahead is fast enough: a note."""
    (finding,) = judge(
        facts(thread(FROM_DISK), files=[TABLE], cgroup=cgroup(memory_some=0.01), available_bytes=8 << 30)
    ).findings
    assert finding.severity == "note"


def test_a_limit_of_its_cgroup():
    """Used up while a thread waits; below it, or with nobody waiting, it is none."""
    limit = IoLimit("/pod/app", "vda", "rbps", MIB, 0.99 * MIB)
    slow = rates(reads=16.0, read=MIB, from_disk=MIB)
    (finding,) = judge(facts(thread(slow, stalled=IN_D), cgroup=cgroup(refaults=0.0, limits=(limit,)))).findings
    assert (finding.code, finding.severity) == ("io-cgroup-throttled", "warning")
    assert finding.summary == (
        "csv-import-worker-1 is throttled, 75 % of the time waiting for storage: its cgroup /pod/app may do 1.0 MiB/s of reads on vda"
    )
    burst = limit._replace(used=1.5 * MIB)
    (over,) = judge(facts(thread(slow, stalled=IN_D), cgroup=cgroup(refaults=0.0, limits=(burst,)))).findings
    assert over.share == 1.0
    for each in (limit._replace(used=0.5 * MIB), limit._replace(used=None)):
        assert judge(facts(thread(slow, stalled=IN_D), cgroup=cgroup(refaults=0.0, limits=(each,)))).findings == ()
    assert judge(facts(thread(slow), cgroup=cgroup(refaults=0.0, limits=(limit,)))).findings == ()


def stuck(where, asleep_s, tid=4250, **more):
    return thread(
        rates(),
        tid,
        seen=(Seen("read", 3, 60),),
        stalled=(Stalled(where, 60),),
        system=0.0,
        user=0.0,
        asleep_s=asleep_s,
        **more,
    )


def test_a_sync_of_many_dirty_pages():
    """It is one sleep until all are stored: a note as long as some are."""
    for stored, severity in ((5000, "note"), (0, "error"), (None, "error")):
        (finding,) = judge(facts(stuck("wb_wait_for_completion", 12.0), stored_pages=stored)).findings
        assert (finding.code, finding.severity) == ("io-stuck", severity)


FUSE = File(3, "/mnt/x/data", "file", None, 0, "fuse", (4250,), "/mnt/x")


@pytest.mark.parametrize(
    ("where", "asleep_s", "severity"),
    [
        ("request_wait_answer", 0.99, "warning"),
        ("rpc_wait_bit_killable", 12.0, "error"),
        ("folio_wait_bit_common", 30.0, "error"),
        ("rwsem_down_write_slowpath", 30.0, "note"),  # the holder of the lock is the one to find
        ("something_new", 5.0, "note"),
        ("request_wait_answer", 0.4, None),  # a moment
        ("request_wait_answer", 0.0, None),  # it ran: a slow server answers one request after the other
        ("request_wait_answer", None, None),
        ("__refrigerator", 60.0, None),
        ("kernel_clone", 60.0, None),
    ],
)
def test_threads_that_do_not_get_on(where, asleep_s, severity):
    """Storage that does not answer, and waits that are meant."""
    found = judge(facts(stuck(where, asleep_s), files=[FUSE])).findings
    assert [(each.code, each.severity) for each in found] == ([("io-stuck", severity)] if severity else [])


def test_who_waits_where():
    """The longest is named with its call and file; several at one place are one finding about the process."""
    (finding,) = judge(facts(stuck("request_wait_answer", 2.1), files=[FUSE])).findings
    assert finding.summary == (
        "csv-import-worker-1 has not run for 2.1 s: waits for a FUSE server (request_wait_answer), in read: fd 3 /mnt/x/data on fuse"
    )
    assert finding.next == "cat /proc/4242/task/4250/stack"
    (finding,) = judge(
        facts(stuck("request_wait_answer", 2.1), stuck("request_wait_answer", 7.0, 4251, name="b"), files=[FUSE])
    ).findings
    assert finding.summary.startswith("2 threads (b, …) have not run for 7.0 s: waits for")
    assert finding.entity.id == 4242
    (finding,) = judge(facts(stuck("folio_wait_bit_common", 2.0), files=[FUSE])).findings
    assert "waits for the server of fuse (folio_wait_bit_common)" in finding.summary


def test_one_that_was_also_elsewhere():
    """Two places, or counters that moved: it gets on."""
    two = stuck("request_wait_answer", 2.0)._replace(
        stalled=(Stalled("request_wait_answer", 30), Stalled("folio_wait_bit_common", 30))
    )
    moving = stuck("request_wait_answer", 2.0)._replace(rates=rates(reads=1.0, read=9.0))
    for each in (two, moving):
        assert judge(facts(each, files=[FUSE])).findings == ()


def test_a_healthy_process():
    """One line: what it reads and writes."""
    copy = thread(
        rates(reads=512.0, writes=512.0, read=512 * MIB, written=512 * MIB, from_disk=512 * MIB), name="cp", system=0.9
    )
    result = judge(facts(copy))
    assert result.verdict == (
        "4242 (java) reads 512 MiB/s in 512 calls/s, 100 % from disk and writes 512 MiB/s in 512 calls/s: no problem found",
    )
    assert (result.findings, result.next, is_failure(result.findings)) == ((), None, False)
    assert judge(facts()).verdict == ("4242 (java) has read and written nothing in 1.0 s",)
    assert judge(facts(total=None)).verdict == ("4242 (java): its I/O counters are unknown",)


def test_a_mapped_file():
    """No call: pages."""
    mapped = thread(rates(from_disk=50 * MIB), major_faults=12_000.0)
    assert judge(facts(mapped)).verdict == (
        "4242 (java) fetches 50.0 MiB/s from disk by page faults: no problem found",
    )


def test_the_order_of_rows():
    """Who is stuck, then who has a bad habit, then who does the most."""
    quiet, busy = (
        thread(rates(reads=5.0, read=10.0), 1, "quiet"),
        thread(rates(reads=9_000.0, read=900 * MIB), 2, "busy"),
    )
    bad, hung = thread(BYTE_READS, 3, "bad"), stuck("request_wait_answer", 5.0, 4, name="hung")
    rows = judge(facts(quiet, busy, bad, hung, files=[FUSE])).rows
    assert [row.thread.name for row in rows] == ["hung", "bad", "busy", "quiet"]
