"""Write the raw thread dumps of a run to a folder, one file per sample."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def saver(folder: str, name: str) -> Callable[[int, bytes], None]:
    """A function of number and dump that writes `folder/name-0001.txt`. Makes the folder. Raises CannotWrite."""
    from opskit.actions import outfile

    outfile.make_directory(folder)

    def save(number: int, dump: bytes) -> None:
        suffix = "json" if dump.startswith(b"{") else "txt"
        outfile.write_file(os.path.join(folder, f"{name}-{number:04d}.{suffix}"), dump)

    return save
