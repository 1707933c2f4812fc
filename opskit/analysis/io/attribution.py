"""Which file a thread reads and which it writes: by positions that move as its counters do, and by the calls that it was seen in.

The kernel tells the call of a sleeping thread alone. One that reads from the page cache always runs, but what it has read and
the position of its file grow by the same steps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from opskit.collect.io.facts import Facts, File, Rates, Step, Thread

READS = frozenset({"read", "pread64", "readv", "preadv", "preadv2", "recvfrom", "recvmsg", "recvmmsg", "getdents64"})
SYNCS = frozenset({"fsync", "fdatasync", "syncfs", "sync_file_range", "sync", "msync"})
WRITES = (
    frozenset({"write", "pwrite64", "writev", "pwritev", "pwritev2", "sendto", "sendmsg", "sendmmsg", "sendfile"})
    | SYNCS
)
_FEWEST_STEPS, _FEWEST_PAIRS = 3, 3
_ABOUT = 3.0  # times
_NEAR, _APART, _TWICE = 0.12, 0.03, 2.0  # distance of the best match; of the second best to it
_LONE, _BACK, _EACH = 0.5, 0.2, 0.8
_MODE, _READ_ONLY, _WRITE_ONLY, _READ_WRITE = 3, 0, 1, 2  # of open(2)
_EVENT_BYTES = 8
_BUFFER_BYTES = 8192  # of BufferedReader in Java and in Python
_OUTPUTS, _SLOW_OR_EMPTY = (1, 2), ("/dev/null", "/dev/pts/", "/dev/tty")
_REGULAR = ("file", "deleted", "memfd")


class Use(NamedTuple):
    """The file that a thread reads, and the one that it writes. None: unknown, or several. `seeks`: it sets the position between reads."""

    reads: File | None = None
    writes: File | None = None
    seeks: bool = False


def uses_of(facts: Facts) -> dict[int, Use]:
    """Of each thread, by TID."""
    files = {file.fd: file for file in facts.files}
    readable = [file for file in facts.files if _is_regular(file) and _mode(file) != _WRITE_ONLY]
    writable = [file for file in facts.files if _is_regular(file) and _mode(file) != _READ_ONLY]
    reads = _matches(facts, readable, lambda rates: (rates.read_bytes, rates.reads), lambda step: step.read)
    writes = _matches(facts, writable, lambda rates: (rates.written_bytes, rates.writes), lambda step: step.written)
    return {
        thread.tid: Use(
            reads.get(thread.tid) or _seen(thread, files, READS),
            writes.get(thread.tid) or _seen(thread, files, WRITES),
            _seeks(reads.get(thread.tid), facts.steps),
        )
        for thread in facts.threads
    }


def only_readable(facts: Facts, mean: float) -> File | None:
    """The one open file that a thread can read small parts of without moving a position, if there is only one; None: none, several, or unknown.

    /dev/null gives nothing, and an eventfd 8 bytes or none.
    """
    if facts.unmoved is None:
        return None
    found = [
        file
        for file in (*facts.unmoved, *facts.files)
        if _mode(file) in (None, _READ_ONLY, _READ_WRITE) and _gives(file, mean)
    ]
    return found[0] if len(found) == 1 else None


def _gives(file: File, mean: float) -> bool:
    """Whether read(2) of the file can return so few bytes."""
    if file.kind in ("eventfd", "timerfd", "inotify", "signalfd", "fanotify"):
        return mean >= _EVENT_BYTES
    is_output = file.fd in _OUTPUTS  # a terminal or a log, which may be opened for both
    return (
        not is_output and file.kind not in ("directory", "epoll", "pidfd") and not file.path.startswith(_SLOW_OR_EMPTY)
    )


def _seeks(file: File | None, steps: Sequence[Step]) -> bool:
    """Whether the position is set between reads, so that a reader from begin to end cannot be what moves it."""
    if file is None or (file.size_bytes is not None and file.size_bytes <= _BUFFER_BYTES):
        return False  # a buffer holds all of it
    if file.runs + file.jumps >= _FEWEST_PAIRS:
        return file.jumps > _BACK * (file.runs + file.jumps)
    return file.moved_bytes is None or _goes_back(file, steps)


def _goes_back(file: File, steps: Sequence[Step]) -> bool:
    moved = [step.moved[file.fd] for step in steps if file.fd in step.moved]
    return sum(each < 0 for each in moved) > _BACK * len(moved)


def _is_regular(file: File) -> bool:
    return file.kind in _REGULAR


def _mode(file: File) -> int | None:
    return None if file.flags is None else file.flags & _MODE


def _matches(
    facts: Facts,
    files: Sequence[File],
    of_rates: Callable[[Rates], tuple[float, float]],
    of: Callable[[Step], Mapping[int, int]],
) -> dict[int, File]:
    """The threads and files that belong together: by their steps, or alone. `of_rates`: bytes and calls."""
    threads = [thread for thread in facts.threads if of_rates(thread.rates)[0] > 0]
    measured = {tid for step in facts.steps for tid in of(step)}
    sampled = [thread for thread in threads if thread.tid in measured]
    known = {thread.tid: _by_steps(thread, sampled, files, facts.steps, of) for thread in sampled}
    found = {tid: file for tid, file in known.items() if file is not None}
    found.update(_by_pace(threads, [file for file in files if file not in found.values()], found, of_rates))
    if len(files) == 1 and threads and not found:
        most = max(threads, key=lambda thread: of_rates(thread.rates))
        others = sum(of_rates(thread.rates)[1] for thread in threads if thread is not most) * facts.window_s
        moves = sum(step.moved.get(files[0].fd, 0) != 0 for step in facts.steps)
        moved, bytes_ = files[0].moved_bytes, of_rates(most.rates)[0]
        is_most = moved is None or moved >= _LONE * bytes_
        # A small file that is read again and again is somewhere else at each look.
        is_everywhere = moves >= _EACH * len(facts.steps) and _goes_back(files[0], facts.steps)
        # Each move needs a call: of the others there are too few.
        if others < max(moves, 1) and (is_most or is_everywhere):
            found[most.tid] = files[0]
    return found


def _by_pace(
    threads: Sequence[Thread],
    files: Sequence[File],
    known: Collection[int],
    of_rates: Callable[[Rates], tuple[float, float]],
) -> dict[int, File]:
    """Those whose pace is about that of one thread alone: of a small file that is read again and again, the steps tell nothing."""
    rates = {thread.tid: of_rates(thread.rates)[0] for thread in threads if thread.tid not in known}
    found = {}
    for file in files:
        pace = file.pace or 0.0
        near = [tid for tid, rate in rates.items() if pace / _ABOUT <= rate <= pace * _ABOUT]
        others = sum(pace / _ABOUT <= (other.pace or 0.0) <= pace * _ABOUT for other in files)
        if file.runs >= _FEWEST_PAIRS and len(near) == 1 and others == 1:
            found[near[0]] = file
    return found


def _by_steps(
    thread: Thread, threads: Sequence[Thread], files: Sequence[File], steps: Sequence[Step],
    of: Callable[[Step], Mapping[int, int]],
) -> File | None:  # fmt: skip
    """The file whose position moved as the thread's counter did, if there is one such file, and one such thread for it."""
    near = sorted(
        (
            (distance, file.fd, file)
            for file in files
            if (distance := _distance(thread.tid, file.fd, steps, of)) is not None
        ),
        key=lambda each: each[:2],
    )
    if not near or not _is_clear([each[0] for each in near]):
        return None
    file = near[0][2]
    others = sorted(distance for other in threads if (distance := _distance(other.tid, file.fd, steps, of)) is not None)
    return file if _is_clear(others) and others[0] == near[0][0] else None


def _is_clear(distances: Sequence[float]) -> bool:
    best = distances[0]
    return best <= _NEAR and (len(distances) < 2 or distances[1] >= max(_TWICE * best, best + _APART))


def _distance(tid: int, fd: int, steps: Sequence[Step], of: Callable[[Step], Mapping[int, int]]) -> float | None:
    """How far the steps of both are apart, as a share of the thread's bytes; None: too few of them."""
    pairs = [(of(step)[tid], max(0, step.moved[fd])) for step in steps if tid in of(step) and fd in step.moved]
    total = sum(counted for counted, _ in pairs)
    if len(pairs) < _FEWEST_STEPS or not total:
        return None
    # A step may end a moment later for one of both: what is missing in it is in the next one.
    sums = 0
    apart = 0
    for counted, moved in pairs:
        sums += counted - moved
        apart += abs(counted - moved)
    return min(apart, abs(sums) + apart / 2) / total


def _seen(thread: Thread, files: Mapping[int, File], calls: frozenset[str]) -> File | None:
    """The file that the thread was seen on in such calls; None: none, or several."""
    fds = {each.fd for each in thread.seen if each.call in calls and each.fd is not None}
    return files.get(fds.pop()) if len(fds) == 1 else None
