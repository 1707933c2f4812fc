"""Hide the secrets of a capture, in place: names stay, values are replaced; see docs/captures.md.

1. Command lines and environments, whose words are delimited, give the first values.
2. Every other file of free text, the counters and memory of JVMs and the answers to questions are searched for these values, and for
   secrets by their names and forms, which give more values.
3. Each value is replaced wherever else it stands: in any file but those of numbers, in paths, names and links.

Texts get `…`; what has a fixed structure (hsperfdata, memory) gets as many `*` as there were bytes.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any

from opskit.analysis.capture import places
from opskit.analysis.capture.hiders import EqualLength, Keeper, without_cut
from opskit.analysis.capture.known_values import KnownValues, add_runs, is_telling
from opskit.analysis.capture.tape_parts import (
    bytes_of,
    names_in_use,
    names_on,
    redact_answer,
    redact_names,
    redact_ranges,
    thread_name,
)
from opskit.jvm.perfdata.hsperfdata import MAGIC
from opskit.proc.recorded import tape as kinds
from opskit.proc.recorded.tape import Failure
from opskit.records import NamedTuple
from opskit.words import HIDDEN

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from opskit.proc.recorded.tape import Tape

    Change = Callable[[bytes], bytes]

_SHORT = 256  # bytes of a text that many answers have
_NONE: Counter[str] = Counter()
_PATHS = re.compile(rb"[/\[].*")


class Hidden(NamedTuple):
    """How many values were hidden, by kind. `copies`: where one stood once more, in another place."""

    variables: int = 0
    options: int = 0
    properties: int = 0
    urls: int = 0
    tokens: int = 0
    texts: int = 0
    copies: int = 0

    @property
    def total(self) -> int:
        """All of them."""
        return sum(self)


def redact(tape: Tape, secrets: Collection[str] = ()) -> Hidden:
    """Hide the secrets on a tape, and say how many. `secrets`: values that the commands hid which were run for it."""
    work = _Redaction(tape)
    work.learn(secrets)
    work.hide_words()
    work.hide_texts()
    work.hide_copies()
    work.forget()
    hidden = Hidden(**work.counts)
    found = tuple(f"{number} {kind}" for kind, number in hidden._asdict().items() if number)
    tape.origin = tape.origin._replace(
        hidden=tape.origin.hidden + hidden.total, is_redacted=True, hidden_kinds=tape.origin.hidden_kinds + found
    )
    return hidden


class _Redaction:
    """One tape at work."""

    def __init__(self, tape: Tape) -> None:
        self.counts: Counter[str] = Counter()
        self._tape = tape
        self._keeper, self._equal = Keeper(self.counts), EqualLength(self.counts)
        self._equal.values = self._keeper.values
        self._names: set[bytes] = set()  # of threads
        self._runs: set[bytes] | None = None
        self._telling: list[str] = []
        self._known = KnownValues(())
        self._done: dict[tuple[str, bytes], tuple[bytes, Counter[str]]] = {}  # equal contents are redacted once
        self._clean: set[bytes] = set()  # short texts without a secret
        place_of = places.Places(tape.origin).of
        self._places: dict[str, dict[int, list[str]]] = {}  # by place and mark: the files that may hold others' words
        for mark, path, data in tape.all_of(kinds.FILE):
            if isinstance(data, bytes) and data and (place := place_of(path)) != places.NUMBERS:
                kept = places.PERFDATA if data.startswith(MAGIC) else place
                self._places.setdefault(kept, {}).setdefault(mark, []).append(path)
                if place == places.NAMED:
                    self._names.add(thread_name(path, data))
        self._used = names_in_use(tape, self._names)

    def learn(self, secrets: Collection[str]) -> None:
        """Values that are secrets wherever they stand."""
        for value in secrets:
            self._keeper.keep(value)

    def hide_words(self) -> None:
        """Command lines and environments."""
        self._files({places.WORDS: self._keeper.cmdline, places.ENVIRON: self._keeper.environ})
        self._learn()

    def hide_texts(self) -> None:
        """Everything else in which a secret is known by its name or form."""
        keeper, equal = self._keeper, self._equal
        self._files({
            places.TEXT: self._free_text,
            places.LINE: lambda data: keeper.line_file(self._in_words(data)),
            places.PERFDATA: lambda data: equal.perfdata(self._in_binary(data)),
        })  # fmt: skip
        self._answers(kinds.REPLY, self._free_text)
        self._answers(kinds.CALL, lambda answer: redact_answer(answer, self._free_text, self._free_bytes))
        self._answers(kinds.RANGES, lambda found: redact_ranges(found, self._free_bytes))
        self._learn()

    def hide_copies(self) -> None:
        """Every other place of a value that was hidden."""
        self._files({places.PERFDATA: lambda data: without_cut(self._in_binary(data), self._known)})
        if not self._known.is_found:
            return
        either = lambda data: self._in_binary(data) if b"\0" in data else self._in_text(data)  # noqa: E731
        self._files({
            places.WORDS: self._in_words, places.ENVIRON: self._in_words, places.LINE: self._in_words,
            places.PATHS: self._in_mappings, places.KNOWN: self._in_text, places.TEXT: either,
        })  # fmt: skip
        self._thread_names()
        self._answers(kinds.REPLY, self._in_text)  # a histogram is full of numbers
        self._answers(kinds.RANGES, lambda found: redact_ranges(found, self._in_binary))
        self._answers(kinds.CALL, lambda answer: redact_answer(answer, self._in_text, self._in_binary))
        redact_names(self._tape, self._in_text)

    def forget(self) -> None:
        """Let go what took memory: the file is written next."""
        for each in (self._done, self._clean, self._places, self._runs or set()):
            each.clear()

    def _learn(self) -> None:
        telling = [value for value, is_sure in self._keeper.values.items() if is_telling(value, is_sure, self._used)]
        if self._runs is None:
            self._runs = self._foreign_runs()
        self._done.clear()
        self._clean.clear()
        if telling != self._telling:
            self._telling, self._known = telling, KnownValues(telling)
            self._known.look_for(self._runs)

    def _foreign_runs(self) -> set[bytes]:
        """The runs of letters and digits in all that may hold a value, command lines being redacted already."""
        runs: set[bytes] = set()
        contents: set[bytes] = set(self._names)
        files = self._tape.answers[kinds.FILE]
        for place in self._places:
            for mark, path in self._files_of(place) if place != places.NAMED else ():
                if place == places.PATHS:
                    contents.update(_PATHS.findall(files[mark][path]))
                else:
                    contents.add(files[mark][path])
        for kind in (kinds.REPLY, kinds.CALL, kinds.RANGES):
            for _, _, answer in self._tape.all_of(kind):
                for data in bytes_of(answer):
                    if len(data) <= _SHORT:
                        contents.add(data)
                    else:
                        add_runs(runs, data)
        for each in (contents, names_on(self._tape)):
            for data in each:
                add_runs(runs, data)
        return runs

    def _files(self, changes: dict[str, Change]) -> None:
        files = self._tape.answers[kinds.FILE]
        for place, change in changes.items():
            for mark, path in self._files_of(place):
                files[mark][path] = self._once(place, change, files[mark][path])

    def _files_of(self, place: str) -> Iterator[tuple[int, str]]:
        """The mark and path of each file of a place."""
        for mark, paths in self._places.get(place, {}).items():
            for path in paths:
                yield mark, path

    def _once(self, place: str, change: Change, data: bytes) -> bytes:
        """The changed content, each content once; counted each time."""
        found = self._done.get((place, data))
        if found is None:
            before = self.counts.copy()
            changed = change(data)
            found = self._done[place, data] = changed, (self.counts - before if self.counts != before else _NONE)
        else:
            self.counts.update(found[1])
        return found[0]

    def _answers(self, kind: str, change: Callable[[Any], Any]) -> None:
        for answers in self._tape.answers[kind]:
            for key, answer in answers.items():
                if not isinstance(answer, Failure):
                    answers[key] = change(answer)

    def _free_text(self, data: bytes) -> bytes:
        if data in self._clean:
            return data
        changed = self._free_bytes(data) if b"\0" in data else self._keeper.text_file(self._in_text(data))
        if len(data) <= _SHORT and changed == data:
            self._clean.add(data)
        return changed

    def _free_bytes(self, data: bytes) -> bytes:
        return self._equal.memory(self._in_binary(data))

    def _in_text(self, data: bytes) -> bytes:
        return self._copied(self._known.in_text(data))

    def _in_words(self, data: bytes) -> bytes:
        return self._copied(self._known.in_text(data, numbers=True))

    def _in_binary(self, data: bytes) -> bytes:
        return self._copied(self._known.in_binary(data))

    def _in_mappings(self, data: bytes) -> bytes:
        """A file of mappings: of addresses and a path in each line, most in many processes."""
        known: dict[bytes, bytes] = {}
        for path in set(_PATHS.findall(data)):
            if (changed := self._in_text(path)) != path:
                known[path] = changed
        return _PATHS.sub(lambda found: known.get(found[0], found[0]), data) if known else data

    def _copied(self, changed: tuple[bytes, int]) -> bytes:
        if changed[1]:
            self.counts["copies"] += changed[1]
        return changed[0]

    def _thread_names(self) -> None:
        """The names of threads, which are in each stat, status and comm."""
        files = self._tape.answers[kinds.FILE]
        cut = self._known.starts
        known = {name: HIDDEN.encode() if name in cut else self._in_text(name) for name in self._names}
        known = {name: changed for name, changed in known.items() if name != changed}
        for mark, path in self._files_of(places.NAMED) if known else ():
            data = files[mark][path]
            name = thread_name(path, data)
            if name in known:
                files[mark][path] = data.replace(name, known[name], 1)
