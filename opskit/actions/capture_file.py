"""Write the file of a capture: completely or not at all, and for nobody else to read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.actions import outfile
from opskit.proc.recorded.packing import capture_chunks

if TYPE_CHECKING:
    from opskit.proc.recorded.tape import Tape

_MODE = 0o600  # command lines and environments of all users


def save_capture(tape: Tape, path: str) -> None:
    """Write it as .tar.gz. Raises CannotWrite; an existing file then keeps its content."""
    outfile.write_file(path, capture_chunks(tape), _MODE, "-o", _MODE)
