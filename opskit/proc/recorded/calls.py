"""Questions that no file answers, with the answers that were given when a capture was made.

On the tape an answer is ["answer", a JSON value] or ["error", class, text]; an OSError is a Failure.
"""

from __future__ import annotations

import errno
import json
from typing import TYPE_CHECKING, Any, TypeVar

from opskit.errors import BadInput, NotPermitted, NotSupported, OpskitError, TargetTimeout
from opskit.proc.calls import Calls
from opskit.proc.patient_reads import PatientReads
from opskit.proc.recorded.answers import decode, encode
from opskit.proc.recorded.fills import QUESTION as FILL
from opskit.proc.recorded.fills import fill_by_other_fd
from opskit.proc.recorded.tape import CALL, Failure

if TYPE_CHECKING:
    from collections.abc import Callable

    from opskit.proc.fs import ProcFS
    from opskit.proc.recorded.fs import TapeFS
    from opskit.proc.recorded.network import TapeNetwork

T = TypeVar("T")

NOT_CAPTURED = "it is not in the capture"
_ERRORS: dict[str, Callable[[str], OpskitError]] = {
    "BadInput": lambda text: BadInput(*text.partition(": ")[::2]),
    "NotPermitted": NotPermitted,
    "NotSupported": NotSupported,
    "TargetTimeout": TargetTimeout,
}
_PATH, _NAMESPACE = '"/', "/ns/"  # in a key: what is asked about a file may hang; a namespace is that of a thread
_to_json = json.JSONEncoder(separators=(",", ":")).encode


def name_of(question: Callable[..., object]) -> str:
    """`proc.kernel.syscalls.pipe_fill`."""
    return f"{question.__module__.partition('.')[2]}.{question.__qualname__}"


def key_of(name: str, arguments: tuple[object, ...]) -> str:
    """`proc.kernel.syscalls.pipe_fill(4242,3)`: the arguments are canonical JSON."""
    return f"{name}({_to_json(encode(arguments))[1:-1]})"


class TapeCalls(Calls):
    """Answers from the tape, at the mark of its clock. With a source what is missing is asked there once, and kept."""

    def __init__(self, fs: TapeFS) -> None:
        self._fs = fs

    def ask(self, question: Callable[..., T], *arguments: object) -> T:
        """The answer that was given. Raises its error, OSError for a question that was not asked, BadInput for another type."""
        name, returns = name_of(question), question.__annotations__["return"]
        found: T = self.answer(name, returns, arguments, lambda source: source.calls.ask(question, *arguments))
        return found

    def answer(self, name: str, returns: str, arguments: tuple[object, ...], ask: Callable[[Any], Any]) -> Any:
        """The answer to a question of that name, whose type is `returns`; ask(source): put it to the machine."""
        fs = self._fs
        key = key_of(name, arguments)
        try:
            held = fs.tape.find(CALL, key, fs.clock.mark)
        except KeyError:
            if fs.source is None:
                held = fill_by_other_fd(fs.tape, *arguments[:2]) if name == FILL else None
                if held is None:
                    raise OSError(errno.ENODATA, NOT_CAPTURED) from None
            else:
                held = self._put(key, ask)
                fs.tape.keep(CALL, key, held)
        return given(held, returns)

    def work_out(
        self, fs: ProcFS, name: str, returns: str, arguments: tuple[object, ...], make: Callable[[ProcFS], T]  # noqa: ARG002
    ) -> T:  # fmt: skip
        """What was made of the files. Raises its error."""
        found: T = self.answer(name, returns, arguments, make)
        return found

    @property
    def mark(self) -> int:
        """The mark of the clock."""
        return self._fs.clock.mark

    def network(self, path: str | None = None) -> TapeNetwork:
        """A network namespace as it was. Raises OSError."""
        from opskit.proc.recorded.network import TapeNetwork

        return TapeNetwork(self, path)

    def _put(self, key: str, ask: Callable[[Any], Any]) -> Any:
        source = self._fs.source
        try:
            if source is not None and isinstance(source.kept, PatientReads) and _PATH in key and _NAMESPACE not in key:
                return kept_of(source.kept.ask(key, ask, source))
            return kept_of(ask(source))
        except (OSError, OpskitError) as error:
            return kept_of(error)


def kept_of(answer: Any) -> Any:
    """An answer, or the error in its place, as the tape has it."""
    if isinstance(answer, OSError):
        return Failure(answer.errno or errno.EIO, answer.strerror or str(answer))
    if isinstance(answer, OpskitError):
        name = type(answer).__name__
        return ["error", name if name in _ERRORS else "NotSupported", str(answer)]
    return ["answer", encode(answer)]


def given(held: Any, returns: str) -> Any:
    """What the tape has, as an answer of a type. Raises its error, and BadInput for what is neither."""
    if isinstance(held, Failure):
        raise OSError(held.errno, held.why or f"error {held.errno}")
    kind, *rest = held if type(held) is list and held else [""]
    if kind == "answer" and len(rest) == 1:
        return decode(rest[0], returns)
    if kind == "error" and len(rest) == 2 and all(type(each) is str for each in rest) and rest[0] in _ERRORS:
        raise _ERRORS[rest[0]](rest[1])
    raise BadInput("the capture", "a recorded answer is neither an answer nor an error")
