"""How full a pipe is, by whichever fd of it was asked when the capture was made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opskit.proc.recorded.tape import CALL, FDS, Failure

if TYPE_CHECKING:
    from opskit.proc.recorded.tape import Tape

QUESTION = "proc.kernel.syscalls.pipe_fill"


def fill_by_other_fd(tape: Tape, pid: object, fd: object) -> Any:
    """The answer about another fd of the same pipe, as it is kept; None: there is none."""
    listed: Any = tape.answers[FDS][0].get(f"{tape.origin.proc}/{pid}/fd", ())
    name = str(fd).encode()
    target = next((each[1] for each in ([] if isinstance(listed, Failure) else listed) if each[0] == name), b"")
    if not target.startswith(b"pipe:["):
        return None
    answers = tape.answers[CALL][0].items()
    return next((held for key, held in answers if key.startswith(f"{QUESTION}(") and _inode(held) == target), None)


def _inode(held: object) -> bytes:
    """`pipe:[4242]` of what pipe_fill answered."""
    try:
        return b"pipe:[%d]" % held[1][2][1]  # type: ignore[index]
    except (TypeError, LookupError):
        return b""
