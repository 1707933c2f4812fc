"""Which file a thread reads, by steps that grow alike."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from opskit.analysis.io.attribution import Use, uses_of
from opskit.collect.io.facts import Facts, File, Rates, Seen, Step, Thread

O_RDONLY, O_WRONLY, O_RDWR = 0, 1, 2


def thread(tid, read=0, written=0, *, reads=None, **more):
    rates = Rates(reads if reads is not None else read / 10, written / 10, read, written, 0, 0, 0)
    return Thread(tid, f"worker-{tid}", rates, 50, **more)


def file(fd, moved, flags=O_RDONLY, kind="file"):
    return File(fd, f"/data/{fd}", kind, moved, flags, "sda1")


def steps(read=None, written=None, moved=None):
    """From lists of bytes by TID and fd."""
    lists = [each or {} for each in (read, written, moved)]
    count = max(len(each) for one in lists for each in one.values())
    return tuple(Step(*({key: each[at] for key, each in one.items()} for one in lists)) for at in range(count))


def facts(threads, files, of_steps):
    return Facts(None, 1.0, tuple(threads), tuple(files), steps=tuple(of_steps))


def fds(found):
    return {tid: (use.reads and use.reads.fd, use.writes and use.writes.fd) for tid, use in found.items()}


def test_a_pool_whose_threads_read_as_fast():
    """Their totals are the same; when each ran is not."""
    read = {1: [10, 0, 30, 20], 2: [20, 30, 0, 10], 3: [0, 20, 20, 20]}
    moved = {7: read[3], 8: read[1], 9: read[2]}
    threads = [thread(tid, 60) for tid in read]
    assert fds(uses_of(facts(threads, [file(fd, 60) for fd in moved], steps(read, None, moved)))) == {
        1: (8, None), 2: (9, None), 3: (7, None),
    }  # fmt: skip


def test_a_copy_reads_one_file_and_writes_the_other():
    """By the flags of each, and by what both counters do."""
    copied = [100, 300, 200, 50]
    found = uses_of(
        facts(
            [thread(1, 650, 650)],
            [file(3, 650), file(4, 650, O_WRONLY)],
            steps({1: copied}, {1: copied}, {3: copied, 4: copied}),
        )
    )
    assert fds(found) == {1: (3, 4)}


def test_threads_that_cannot_be_told_apart():
    """In step with each other: neither file is claimed."""
    same = [10, 20, 30, 40]
    threads = [thread(1, 100), thread(2, 100)]
    found = uses_of(facts(threads, [file(3, 100), file(4, 100)], steps({1: same, 2: same}, None, {3: same, 4: same})))
    assert set(fds(found).values()) == {(None, None)}


def test_what_is_missing_in_a_step_is_in_the_next_one():
    """The counter and the position are read one after the other."""
    found = uses_of(
        facts(
            [thread(1, 400)],
            [file(3, 400), file(4, 7)],
            steps({1: [100] * 4}, None, {3: [110, 90, 104, 96], 4: [1, 2, 3, 1]}),
        )
    )
    assert fds(found) == {1: (3, None)}


def test_a_file_that_another_reads_beside_a_pread():
    """The only position that moves is not that of the thread with the most bytes: somebody else reads that file."""
    threads = [thread(1, 1_000_000), thread(2, 900)]
    found = uses_of(
        facts(
            threads, [file(3, 900)], steps({1: [250_000] * 4, 2: [200, 300, 150, 250]}, None, {3: [200, 300, 150, 250]})
        )
    )
    assert fds(found) == {1: (None, None), 2: (3, None)}


def test_a_position_that_jumps():
    """Alone it must be the reader's; with another that may have set it, it is nobody's."""
    jumps = steps({1: [100] * 4, 2: [1, 1, 1, 1]}, None, {3: [90_000, -1, -1, 4]})
    one, other = thread(1, 400), thread(2, 4, reads=40)
    alone = uses_of(facts([one], [file(3, None)], jumps))
    assert alone[1] == Use(file(3, None), None, seeks=True)
    assert fds(uses_of(facts([one, other], [file(3, None)], jumps))) == {1: (None, None), 2: (None, None)}


def test_a_position_that_goes_back():
    """As often as forward: a reader that seeks, though the sum is by chance what was read."""
    back = steps({1: [100] * 6}, None, {3: [300, -1, 200, -1, -1, 100]})
    assert uses_of(facts([thread(1, 600)], [file(3, 600)], back))[1].seeks
    forward = steps({1: [100] * 6}, None, {3: [100, 100, 0, 100, 100, 100]})
    assert not uses_of(facts([thread(1, 600)], [file(3, 500)], forward))[1].seeks


def test_a_small_file_that_is_read_again_and_again():
    """Its position is somewhere else at each look; one that moves now and then is no proof of who reads what."""
    often = steps({1: [90_000] * 6}, None, {3: [300, -1, 200, -1, 50, 100]})
    assert uses_of(facts([thread(1, 540_000)], [file(3, 650)], often))[1] == Use(file(3, 650), None, seeks=True)
    runs, jumps = file(3, 650)._replace(runs=5, jumps=1), file(3, 650)._replace(runs=3, jumps=3)
    assert uses_of(facts([thread(1, 540_000)], [runs], often))[1] == Use(runs, None, seeks=False)
    assert uses_of(facts([thread(1, 540_000)], [jumps], often))[1].seeks
    seldom = steps({1: [90_000] * 6}, None, {3: [300, 0, 200, 0, 50, 100]})
    assert fds(uses_of(facts([thread(1, 540_000)], [file(3, 650)], seldom))) == {1: (None, None)}


def test_a_pace_that_is_one_thread_s():
    """The other threads read too often to leave it to the only one, but none as fast."""
    read, moved = {1: [90_000] * 6, 2: [900] * 6}, {3: [300, -1, 200, -1, 50, 100]}
    threads, small = [thread(1, 540_000), thread(2, 5400)], file(3, 650)
    for change, reader in (
        ({}, None),
        ({"pace": 300_000.0, "runs": 7}, 1),
        ({"pace": 3e6, "runs": 7}, None),
        ({"pace": 3e5, "runs": 2}, None),
    ):
        found = uses_of(facts(threads, [small._replace(**change)], steps(read, None, moved)))
        assert [tid for tid, use in found.items() if use.reads] == ([reader] if reader else []), change
    two = [small._replace(pace=300_000.0, runs=7), file(4, 650)._replace(pace=4e5, runs=7)]
    assert set(fds(uses_of(facts(threads, two, steps(read, None, {**moved, 4: moved[3]})))).values()) == {(None, None)}


def test_calls_in_which_it_was_seen():
    """A socket has no position. Of several fds none is the one."""
    sockets = [File(5, "socket:[1]", "socket", None), File(6, "socket:[2]", "socket", None)]
    one, both = Seen("recvfrom", 5, 40), Seen("read", 6, 1)
    assert fds(uses_of(facts([thread(1, 100, seen=(one, Seen("write", 6, 3)))], sockets, ()))) == {1: (5, 6)}
    assert fds(uses_of(facts([thread(1, 100, seen=(one, both))], sockets, ()))) == {1: (None, None)}
    assert fds(uses_of(facts([thread(1, 0, seen=(Seen("fsync", 5, 9),))], sockets, ()))) == {1: (None, 5)}


AMOUNTS = st.lists(st.integers(0, 10**6), min_size=4, max_size=4)


@given(st.dictionaries(st.integers(1, 5), AMOUNTS, max_size=4), st.dictionaries(st.integers(3, 8), AMOUNTS, max_size=4))
def test_no_file_has_two_readers(read, moved):
    """Whatever the numbers: each thread has at most one file, each file at most one thread, and only what moved is claimed."""
    threads = [thread(tid, sum(each)) for tid, each in read.items()]
    files = [file(fd, sum(each)) for fd, each in moved.items()]
    of_steps = steps(read, None, moved) if read or moved else ()
    claimed = [use.reads.fd for use in uses_of(facts(threads, files, of_steps)).values() if use.reads is not None]
    assert len(claimed) == len(set(claimed))
    assert set(claimed) <= moved.keys()


@given(st.permutations(range(4)), st.lists(AMOUNTS, min_size=4, max_size=4, unique_by=tuple))
def test_equal_steps_belong_together(order, amounts):
    """Where a file moves exactly as a thread reads, and no other comes near, it is the thread's."""
    read, moved = dict(enumerate(amounts)), {10 + fd: amounts[tid] for fd, tid in enumerate(order)}
    found = uses_of(
        facts(
            [thread(tid, sum(each)) for tid, each in read.items()],
            [file(fd, sum(each)) for fd, each in moved.items()],
            steps(read, None, moved),
        )
    )
    for tid, use in found.items():
        if use.reads is not None:
            assert moved[use.reads.fd] == read[tid]
