"""What a machine answered, by kind of question, place and moment: the content of a capture, in memory.

A capture has marks: moments at which all counters were read. What was read once stands at mark 0; at a later mark stands
only what has changed since. An answer that holds at a mark is the newest one up to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, MutableMapping

# The kinds of questions, and the type of their answers. Any may be a Failure instead.
FILE = "file"  # the bytes of a file, by its path
LINK = "link"  # where a link points: bytes
STAT = "stat"  # FileId of what a path leads to
LSTAT = "lstat"  # FileId, without following a link at its end
NAMES = "names"  # the names in a directory, in its order: tuple of text
ENTRIES = "entries"  # (name, is a directory, is a link) of each in a directory, in its order
FDS = "fds"  # (name, target, mode) of each fd, in the order of its directory
SPACE = "space"  # Space
WRITABLE = "writable"  # bool
RANGES = "ranges"  # {offset: bytes or Failure} of a file that is read in parts, such as PROC/PID/mem
OPENED = "opened"  # True: a file that could be held
UNTRUSTED = "untrusted"  # True: it was read by read_untrusted; its FileId stands in LSTAT, its bytes in FILE
CALL = "call"  # the answer to Calls.ask, by `name(arguments)`
SOME = "some"  # the first names in a directory that has more: tuple of text
PAGES = "pages"  # how many pages of a file are in the page cache: number
REPLY = "reply"  # the text (bytes) that a JVM replied, by `PID/NAME`: threads, threads-2 (of the second mark), VM.info
KINDS = (
    FILE, LINK, STAT, LSTAT, NAMES, ENTRIES, FDS, SPACE, WRITABLE, RANGES, OPENED, UNTRUSTED, CALL, SOME, PAGES, REPLY,
)  # fmt: skip


class Failure(NamedTuple):
    """An OSError by its errno; `why` where the text is not the errno's own.

    `is_refused`: it was a Refused, whatever its errno. `is_counted`: it was among the files that were not read (`refused`).
    """

    errno: int
    why: str | None = None
    is_refused: bool = False
    is_counted: bool = False


class Mark(NamedTuple):
    """A moment of the captured machine: time since the epoch, and of its monotonic clock, in seconds."""

    wall_s: float
    monotonic_s: float


class Origin(NamedTuple):
    """Where and by whom a capture was made, as far as the commands depend on it."""

    proc: str = "/proc"
    root: str = ""
    is_live: bool = True
    has_our_root: bool = True
    is_own: bool = True
    euid: int = 0
    egid: int = 0
    page_bytes: int = 4096
    clock_ticks: int = 100
    machine: str = ""
    node_name: str = ""
    uses_nss: bool = True
    words: tuple[str, ...] = ()  # the processes that the capture was asked for
    asked: bool = False  # --ask
    version: str = ""  # of opskit
    hidden: int = 0  # values that were redacted
    is_redacted: bool = False
    hidden_kinds: tuple[str, ...] = ()  # `12 options`


class Tape:
    """Answers by kind, mark and key. A key is a path; of CALL: the question with its arguments."""

    def __init__(self, origin: Origin, marks: tuple[Mark, ...] = ()) -> None:
        self.origin = origin
        self.marks = list(marks)
        # kind -> one dict a mark: key -> answer
        self.answers: MutableMapping[str, list[dict[str, Any]]] = {kind: [{}] for kind in KINDS}

    def find(self, kind: str, key: str, mark: int) -> Any:
        """The answer that holds at a mark. Raises KeyError."""
        by_mark = self.answers[kind]
        if mark and len(by_mark) > 1:
            for place in range(min(mark, len(by_mark) - 1), 0, -1):
                if key in by_mark[place]:
                    return by_mark[place][key]
        return by_mark[0][key]

    def keep(self, kind: str, key: str, answer: Any, mark: int = 0) -> None:
        """Keep an answer from a mark on."""
        by_mark = self.answers[kind]
        while len(by_mark) <= mark:
            by_mark.append({})
        by_mark[mark][key] = answer

    def keep_change(self, kind: str, key: str, answer: Any, mark: int) -> None:
        """Keep an answer unless the same holds at this mark already. A key that is new at a later mark stands there alone."""
        try:
            if self.find(kind, key, mark) == answer:
                return
        except KeyError:
            pass
        self.keep(kind, key, answer, mark)

    def all_of(self, kind: str) -> Iterator[tuple[int, str, Any]]:
        """(mark, key, answer) of each of a kind."""
        for mark, answers in enumerate(self.answers[kind]):
            for key, answer in answers.items():
                yield mark, key, answer
