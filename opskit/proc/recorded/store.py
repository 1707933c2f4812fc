"""A capture from a file of a stranger, in memory. Raises BadInput, one line, for whatever is not as opskit writes it."""

from __future__ import annotations

import re
from collections.abc import MutableMapping
from typing import TYPE_CHECKING, Any

from opskit.errors import BadInput
from opskit.proc import user_files
from opskit.proc.recorded import manifest
from opskit.proc.recorded import tape as kinds
from opskit.proc.recorded.escaped import unescaped
from opskit.proc.recorded.layout import ODD, RANGES, REFUSED, SHAPES, check_index, failure_in, read_index, rows_of
from opskit.proc.recorded.tape import Failure, Tape
from opskit.proc.recorded.unarchive import read_archive
from opskit.quantities import plural

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_SAMPLE = re.compile(r"(samples|index|odd)/([1-9][0-9]{0,4})/(.+)", re.DOTALL)
_OURS = (manifest.NAME, "tree", "samples", "index", "odd", "attach")
_MOST_FOREIGN = 1000
_MOST_BRACKETS = 1 << 21  # each takes 64 bytes
_CALLS, _MEMORY = "calls.jsonl", "memory.bin"


class Answers(MutableMapping[str, "list[dict[str, Any]]"]):
    """Answers by kind and mark, as in Tape. An index is read when its kind is first asked for."""

    def __init__(
        self, waiting: dict[str, list[tuple[int, str]]], failures: dict[str, list[tuple[int, str, Failure]]]
    ) -> None:
        self._waiting, self._failures = waiting, failures
        self._read: dict[str, list[dict[str, Any]]] = {}

    def __getitem__(self, kind: str) -> list[dict[str, Any]]:
        """The answers of a kind, by mark."""
        return self._read.get(kind) or self._load(kind)

    def __setitem__(self, kind: str, answers: list[dict[str, Any]]) -> None:
        """Replace the answers of a kind."""
        self._read[kind] = answers

    def __delitem__(self, kind: str) -> None:
        """Forget the answers of a kind."""
        self._read[kind] = [{}]

    def __iter__(self) -> Iterator[str]:
        """Over all kinds."""
        return iter(kinds.KINDS)

    def __len__(self) -> int:
        """The number of kinds."""
        return len(kinds.KINDS)

    def _load(self, kind: str) -> list[dict[str, Any]]:
        if kind not in kinds.KINDS:
            raise KeyError(kind)
        answers: list[dict[str, Any]] = [{}]
        for mark, text in self._waiting.get(kind, ()):
            _at(answers, mark).update(read_index(SHAPES[kind], text))
        for mark, key, failure in self._failures.get(kind, ()):
            _at(answers, mark)[key] = failure
        answers = self._read.setdefault(kind, answers)  # of the thread that was first
        self._waiting.pop(kind, None)
        self._failures.pop(kind, None)
        return answers


def load_capture(path: str) -> Tape:
    """The content of a capture: a .tar.gz, or a directory where it was unpacked, or - for standard input. Raises BadInput, NotPermitted."""
    source = user_files.source_name(path)
    if user_files.is_directory(path):
        from opskit.proc.recorded.unpacked import read_directory

        return unpack(read_directory(path), source)
    return unpack(read_archive(source, user_files.capture_chunks(path)), source)


def unpack(files: Iterable[tuple[str, bytes]], source: str) -> Tape:
    """The tape in the files of a capture. Raises BadInput."""
    found = _Found(source)
    for name, data in files:
        found.take(name, data)
    return found.tape()


def _at(answers: list[dict[str, Any]], mark: int) -> dict[str, Any]:
    """The answers of a mark."""
    answers.extend({} for _ in range(mark + 1 - len(answers)))
    return answers[mark]


class _Found:
    """What was found in an archive. The manifest may stand anywhere: the archive may have been packed again by a tar."""

    def __init__(self, source: str) -> None:
        self.source, self.above = source, ""  # the directory above all of it, if there is one
        self.tree: dict[str, bytes] = {}
        self.samples: dict[int, dict[str, bytes]] = {}
        self.others: dict[str, bytes] = {}
        self.shared: dict[bytes, bytes] = {}  # many processes have the same limits and mounts
        self.foreign = 0
        self.is_begun = False

    def bad(self, problem: str, name: str | None = None) -> BadInput:
        """The error for an archive that is no capture."""
        return BadInput(self.source, problem, found=name)

    def take(self, name: str, data: bytes) -> None:
        """Take a file of the archive."""
        if not self.is_begun:
            self._begin(name)
        if self.above:
            name = name[len(self.above) :] if name.startswith(self.above) else ""
        place, key = self.others, name
        if name.startswith("tree/"):
            place, key = self.tree, name[4:]
        elif name.startswith("samples/"):
            number, key = self._sample(name)
            place = self.samples.setdefault(number, {})
            key = f"/{key}"
        elif name.partition("/")[0] not in _OURS:
            self.foreign += 1
            if self.foreign > _MOST_FOREIGN:
                raise self._no_capture()
            return
        if key in place:
            raise self.bad("has two files of one name; don't use it", name)
        place[key] = self.shared.setdefault(data, data)

    def _begin(self, name: str) -> None:
        self.is_begun = True
        head, slash, rest = name.partition("/")
        if head.startswith("sosreport-") or rest.startswith("sos_"):
            raise self.bad("is an sos report, not a capture; `opskit compare` reads it")
        if slash and head not in _OURS:
            self.above = f"{head}/"

    def _no_capture(self) -> BadInput:
        return self.bad("is not a capture: it has no manifest.json; give a file that `opskit capture` wrote")

    def _sample(self, name: str) -> tuple[int, str]:
        found = _SAMPLE.fullmatch(name)
        if found is None:
            raise self.bad("has a file that belongs to no sample; don't use it", name)
        return int(found[2]), found[3]  # a number: one to five digits

    def tape(self) -> Tape:
        """The tape. Raises BadInput."""
        if manifest.NAME not in self.others:
            raise self._no_capture()
        origin, marks = manifest.parse_manifest(self.others.pop(manifest.NAME), f"{self.source}: {manifest.NAME}")
        tape = Tape(origin, marks)
        indexes = _Indexes(self, len(marks))
        tape.answers = indexes.answers()
        files = tape.answers[kinds.FILE]
        self.samples[1] = self.tree
        for number, of_sample in sorted(self.samples.items()):
            indexes.check_sample(number, f"samples/{number}")
            _merge(self, _at(files, number - 1), of_sample)
        return tape


def _merge(found: _Found, answers: dict[str, Any], more: dict[str, Any]) -> None:
    """Add answers to those of a mark. Raises BadInput where one is given twice."""
    if answers and (twice := answers.keys() & more.keys()):
        raise found.bad("has two answers for one path; don't use it", min(twice))
    answers.update(more)


class _Indexes:
    """The indexes of an archive, checked."""

    def __init__(self, found: _Found, marks: int) -> None:
        self.found, self.marks = found, marks
        self.waiting: dict[str, list[tuple[int, str]]] = {}
        self.failures: dict[str, list[tuple[int, str, Failure]]] = {}
        self.read: dict[str, list[dict[str, Any]]] = {kinds.REPLY: [{}]}

    def check_sample(self, number: int, name: str) -> None:
        """Raise BadInput for a sample that the manifest does not have."""
        if number > self.marks:
            raise self.found.bad(f"has a file of sample {number}, but only {plural(self.marks, 'sample')}", name)

    def answers(self) -> Answers:
        """The answers in all indexes, and the replies. Raises BadInput."""
        for name, data in self.found.others.items():
            if name.startswith("attach/"):
                self._reply(name, data)
            elif name.startswith("index/"):
                number, file = self.found._sample(name)  # noqa: SLF001
                self.check_sample(number, name)
                self._index(name, number, file, data)
        made = Answers(self.waiting, self.failures)
        for kind, by_mark in self.read.items():
            answers = made[kind]
            for mark, more in enumerate(by_mark):
                if more:
                    _merge(self.found, _at(answers, mark), more)
        return made

    def _reply(self, name: str, data: bytes) -> None:
        key = name[len("attach/") :]
        if not key.endswith(".txt"):
            raise self.found.bad("has a file that is no reply of a JVM", name)
        self.read[kinds.REPLY][0][key[: -len(".txt")]] = data

    def _index(self, name: str, number: int, file: str, data: bytes) -> None:
        source, mark = f"{self.found.source}: {name}", number - 1
        kind, _, end = file.rpartition(".")
        if end == "tsv" and kind in SHAPES:
            self.waiting.setdefault(kind, []).append((mark, check_index(SHAPES[kind], data, source)))
        elif file == "refused.tsv":
            self._refused(mark, check_index(REFUSED, data, source))
        elif file == "odd.tsv":
            self._odd(number, check_index(ODD, data, source))
        elif file == "ranges.tsv":
            self._ranges(number, check_index(RANGES, data, source), source)
        elif file == _CALLS:
            _merge(self.found, self._place(kinds.CALL, mark), _calls(data, source))
        elif file != _MEMORY:
            raise self.found.bad("has an unknown index; update opskit", name)

    def _place(self, kind: str, mark: int) -> dict[str, Any]:
        return _at(self.read.setdefault(kind, [{}]), mark)

    def _refused(self, mark: int, text: str) -> None:
        known: dict[tuple[str, ...], Failure] = {}
        for key, kind, *fields in rows_of(text):
            failure = known.get(tuple(fields)) or known.setdefault(tuple(fields), failure_in(fields))
            self.failures.setdefault(kind, []).append((mark, unescaped(key), failure))

    def _odd(self, number: int, text: str) -> None:
        for key, kind, place in rows_of(text):
            data = self.found.others.get(f"odd/{number}/{place}")
            if data is None:
                raise self.found.bad("lacks a file that its index has", f"odd/{number}/{place}")
            self._place(kind, number - 1)[unescaped(key)] = data

    def _ranges(self, number: int, text: str, source: str) -> None:
        memory = self.found.others.get(f"index/{number}/{_MEMORY}", b"")
        place = self._place(kinds.RANGES, number - 1)
        for key, *fields in rows_of(text):
            ranges = place.setdefault(unescaped(key), {})
            if not fields:
                continue
            offset = int(fields[0])  # a number: checked
            if fields[1] == "failed":
                ranges[offset] = failure_in(fields[2:])
                continue
            size, at = int(fields[1]), int(fields[2])  # a number: checked
            if at + size > len(memory):
                raise BadInput(source, f"a part at {at:,} of {size:,} bytes is outside of {_MEMORY}")
            ranges[offset] = memory[at : at + size]


def _calls(data: bytes, source: str) -> dict[str, Any]:
    if data.count(b"[") + data.count(b"{") > _MOST_BRACKETS:
        raise BadInput(source, f"has more than {_MOST_BRACKETS:,} lists and objects, the most that is read")
    if data and not data.endswith(b"\n"):
        raise BadInput(source, "has no end of line at its end")
    answers = {}
    for number, line in enumerate(data.split(b"\n")[:-1], start=1):
        call = manifest.parse_json(line, source, number)
        if not isinstance(call, dict) or call.keys() != {"ask", "answer"} or not isinstance(call["ask"], str):
            raise BadInput(source, "is not a question with its answer", number)
        if call["ask"] in answers:
            raise BadInput(source, "a question stands there twice", number, call["ask"])
        answers[call["ask"]] = call["answer"]
    return answers
