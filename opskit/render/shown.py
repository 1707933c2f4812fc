"""How to show the rows of a process or of the machine."""

from __future__ import annotations

from opskit.records import NamedTuple
from opskit.render.cells import row_limit


class Shown(NamedTuple):
    """`text`: columns for awk; `watching`: -w, with growth; `verbose`: every row; `top`: -n; `asked`: --ask.

    `on_screen`: of a watch that is redrawn, where a finding is cut to a line, without its own command.
    """

    text: bool = False
    watching: bool = False
    verbose: bool = False
    top: int | None = None
    asked: bool = False
    on_screen: bool = False

    def first(self, most: int) -> int | None:
        """How many rows to show; None: all."""
        return row_limit(self.top, None if self.text or self.verbose else most)
