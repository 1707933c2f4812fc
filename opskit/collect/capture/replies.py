"""Ask the JVMs of a machine for a capture: thread dumps, flags, the state of the JVM, class histograms. The replies go on its tape.

All are asked at once, each in a thread of its own: one that does not reply holds up no other, and not the capture.
"""

from __future__ import annotations

import copy
import threading
from functools import partial
from typing import TYPE_CHECKING

from opskit.collect.histograms import pause_estimate_s
from opskit.collect.jpmp.collect import heap_to_walk, heap_walk_s
from opskit.collect.one_dump import short_reason
from opskit.errors import AttachError, NotPermitted, NotSupported, OpskitError, UsageError
from opskit.jvm.attach import wire
from opskit.jvm.attach.client import AttachClient
from opskit.jvm.attach.recorded import CARRIERS, FLAGS, INFO, PROPERTIES, failure_of
from opskit.jvm.discover import HOTSPOT
from opskit.proc.recorded.replies import HISTOGRAM, THREADS, TIMES, key_of, name_of, named, times_of
from opskit.proc.recorded.tape import REPLY
from opskit.quantities import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from opskit.host import Host
    from opskit.jvm.discover import Jvm
    from opskit.proc.recorded.tape import Failure, Tape

    Step = tuple[int, str, Callable[[], bytes]]  # the mark, the name, what asks

WHAT = (THREADS, HISTOGRAM, "flags", "info")
DEFAULT_WHAT = (THREADS, "flags", "info")
MOST_AT_ONCE = 20
_TIMEOUT_S, _LONGEST_S, _TIMEOUT_PAUSES = 5.0, 60.0, 10
_MOST_GAP_S = 1.0  # between two of them: the evidence is wanted soon
_MOST_SAMPLES = 20
_CHEAP_WALK_S, _CHEAP_HISTOGRAM_S = 0.2, 1.0
_END_S = 5.0  # beyond the timeouts: a thread that hangs in a file of the process is left
_LAST_S = 2.0  # after Ctrl-C
_LOOK_S = 0.005
_FIRST_EXTENDED, _FIRST_INFO, _FIRST_CARRIERS = 11, 9, 24


def parse_what(text: str | None) -> tuple[str, ...]:
    """The words of --what; None: the default. Raises UsageError."""
    if text is None:
        return DEFAULT_WHAT
    words = tuple(dict.fromkeys(word.strip() for word in text.split(",") if word.strip()))
    for word in words:
        if word not in WHAT:
            raise UsageError(f"--what {word!r}: choose among {', '.join(WHAT)}")
    if not words:
        raise UsageError(f"--what is empty: choose among {', '.join(WHAT)}")
    return words


def ask_jvms(
    host: Host,
    tape: Tape,
    jvms: Sequence[Jvm],
    what: Sequence[str],
    gap_s: float = _MOST_GAP_S,
    progress: Callable[[str], None] = lambda _: None,
) -> list[str]:
    """Put their replies on the tape: a thread dump and a histogram a mark, all else once. Gives who was not asked, and why.

    `host`: the live machine; on another machine's tree nobody is asked. `gap_s`: between two dumps, at most a second.
    """
    asked = [jvm for jvm in jvms if jvm.kind == HOTSPOT]
    notes = [f"{jvm.pid} ({jvm.main}) was not asked: it is no HotSpot JVM" for jvm in jvms if jvm.kind != HOTSPOT]
    if not asked:
        return notes
    try:
        host.prove_own()
    except NotPermitted as error:
        return [*notes, f"{plural(len(asked), 'JVM')} not asked: {error}"]
    for begin in range(0, len(asked), MOST_AT_ONCE):
        batch = asked[begin : begin + MOST_AT_ONCE]
        progress(f"asking {plural(len(batch), 'JVM')}: {', '.join(what)}")
        notes += _ask_all(host, tape, batch, what, min(_MOST_GAP_S, gap_s))
    return notes


def _ask_all(host: Host, tape: Tape, jvms: Sequence[Jvm], what: Sequence[str], gap_s: float) -> Iterator[str]:
    gaps = [gap_s] * (min(_MOST_SAMPLES, len(tape.marks)) - 1)
    asking = [_Asking(host, jvm, what, gaps) for jvm in jvms]
    until_s = host.monotonic() + sum(gaps) + max(each.longest_s for each in asking)
    try:
        _wait(host, asking, until_s)
    except KeyboardInterrupt:  # what they have made to start a listener they remove themselves
        for each in asking:
            each.stop()
        _wait(host, asking, host.monotonic() + _LAST_S)
        raise
    for each in asking:
        replies, why = each.result()
        for mark, name, reply in replies:
            tape.keep(REPLY, key_of(each.jvm.pid, name, mark), reply)
        if each.times:
            tape.keep(REPLY, key_of(each.jvm.pid, TIMES), times_of(each.times))
        if why:
            further = " further" * any(isinstance(reply, bytes) for _, _, reply in replies)
            yield f"{each.jvm.pid} ({each.jvm.main}) was not asked{further}: {why}"


def _wait(host: Host, asking: Sequence[_Asking], until_s: float) -> None:
    while any(each.is_alive() for each in asking) and host.monotonic() < until_s:
        host.sleep(_LOOK_S)


class _Asking:
    """Asks one JVM. `longest_s`: how long that can take, beside the gaps between samples."""

    def __init__(self, host: Host, jvm: Jvm, what: Sequence[str], gaps: Sequence[float]) -> None:
        self.jvm, self._host, self._what, self._gaps = jvm, host, what, gaps
        self._fs = copy.copy(host.fs)
        self._fs.kept = None  # what was kept is not good enough for who sends a signal
        self._replies: list[tuple[int, str, bytes | Failure]] = []
        self._why: str | None = None
        self._error: OpskitError | None = None
        self.times: dict[str, float] = {}
        self._first = host.now().timestamp() - host.monotonic()
        self._end = threading.Event()
        heap = heap_to_walk(host, jvm.pid).bytes or 0
        self._has_locks = heap_walk_s(heap, 1) <= _CHEAP_WALK_S
        self._pause_s = pause_estimate_s(heap, live=False)
        self._histogram_timeout_s = min(_LONGEST_S, max(_TIMEOUT_S, _TIMEOUT_PAUSES * self._pause_s))
        self.longest_s = _TIMEOUT_S + _END_S + (self._histogram_timeout_s if HISTOGRAM in what else 0.0)
        self._thread = threading.Thread(target=self._ask, daemon=True)
        try:
            self._thread.start()
        except (RuntimeError, MemoryError):
            self._why = "no thread can be started to ask it"

    def stop(self) -> None:
        """Ask for nothing more than what it is asking for now."""
        self._end.set()

    def is_alive(self) -> bool:
        """Whether it still asks."""
        return self._thread.is_alive()

    def result(self) -> tuple[list[tuple[int, str, bytes | Failure]], str | None]:
        """The replies by mark and name, and why some are missing. An error stands for the replies that it prevented."""
        replies, why = list(self._replies), self._why
        if why is None and self.is_alive():
            why = "it did not reply in time"
        if why is not None:
            failure = failure_of(self._error or NotSupported(f"{self.jvm.pid} ({self.jvm.main}) gave no reply: {why}"))
            got = {name for _, name, _ in replies}
            replies += [(0, name, failure) for name in self._names() if name not in got]
        return replies, why

    def _names(self) -> Iterator[str]:
        if THREADS in self._what:
            yield THREADS
        if HISTOGRAM in self._what:
            yield HISTOGRAM
        if "flags" in self._what:
            yield from (*(name_of("jcmd", line) for line in FLAGS), PROPERTIES)
        if "info" in self._what:
            yield from (name_of("jcmd", line) for line in INFO)

    def _ask(self) -> None:
        try:
            client = AttachClient(self._fs, self.jvm.pid, _TIMEOUT_S)
            for mark, name, ask in self._steps(client):
                asked_s = self._first + self._host.monotonic()
                self._replies.append((mark, name, _reply(ask)))
                if name in (THREADS, HISTOGRAM):
                    self.times[named(name, mark)] = asked_s
                if self._end.is_set():
                    return
        except OpskitError as error:
            self._error, self._why = error, short_reason(error, self.jvm)
        except OSError as error:
            self._why = error.strerror or str(error)

    def _steps(self, client: AttachClient) -> Iterator[Step]:
        major = client.target.java_major or 0
        for mark in range(1 + len(self._gaps)):
            if mark and not self._samples_again:
                break
            if mark:
                self._end.wait(self._gaps[mark - 1])
            if THREADS in self._what:
                flags = "l" * self._has_locks + "e" * (major >= _FIRST_EXTENDED)
                yield mark, THREADS, partial(_thread_dump, client, [f"-{flags}"] if flags else [])
            if HISTOGRAM in self._what and (not mark or self._pause_s <= _CHEAP_HISTOGRAM_S):
                patient = AttachClient(self._fs, self.jvm.pid, self._histogram_timeout_s)
                yield mark, HISTOGRAM, partial(_histogram, patient)
        lines = [
            *(FLAGS if "flags" in self._what else ()),
            *(INFO if "info" in self._what and major >= _FIRST_INFO else ()),
        ]
        if THREADS in self._what and major >= _FIRST_CARRIERS:
            lines.append(CARRIERS)
        for line in lines:
            yield 0, name_of("jcmd", line), partial(client.execute, "jcmd", line)
        if "flags" in self._what:
            yield 0, PROPERTIES, partial(client.execute, PROPERTIES)

    @property
    def _samples_again(self) -> bool:
        return THREADS in self._what or (HISTOGRAM in self._what and self._pause_s <= _CHEAP_HISTOGRAM_S)


def _thread_dump(client: AttachClient, flags: Sequence[str]) -> bytes:
    return wire.check_thread_dump(client.execute("threaddump", *flags), client.pid)


def _histogram(client: AttachClient) -> bytes:
    """Without a collection before it."""
    return wire.check_histogram(client.execute("inspectheap", "-all"), client.pid)


def _reply(ask: Callable[[], bytes]) -> bytes | Failure:
    """What it replies; its refusal of one command. Raises OpskitError where it does not reply at all."""
    try:
        return ask()
    except AttachError as error:
        if error.reason != "command-failed":
            raise
        return failure_of(error)
