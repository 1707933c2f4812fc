"""What a command found, ready to be shown in any format. A renderer chooses the form, it never computes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from opskit.render.pictures.chart import Chart

R = TypeVar("R")


class Column(Generic[R]):
    """One column: its title, the raw value of a row, how people read it, and which side it leans on.

    A value that is a tuple of strings is a cell of several lines. A column of commands has `below`, which names a row: on
    a screen, where a cell may be broken into lines, its values stand below the table, a line each. (Written out: a
    generic dataclass takes a millisecond of every start to define.)
    """

    __slots__ = ("below", "right", "show", "title", "value")

    def __init__(
        self,
        title: str,
        value: Callable[[R], object],
        show: Callable[[Any], str] | None = None,
        right: bool = False,
        below: Callable[[R], str] | None = None,
    ) -> None:
        self.title, self.value, self.show, self.right, self.below = title, value, show, right, below

    def human(self, row: R) -> str:
        """The cell for a table, on one line."""
        return " ".join(self.lines(row))

    def lines(self, row: R) -> tuple[str, ...]:
        """The cell for a table, line by line."""
        value = self.value(row)
        if self.show is not None:
            return (self.show(value),)
        if isinstance(value, tuple):
            return value
        return ("",) if value is None else (str(value),)


class Block(Generic[R]):
    """A table. `rows` are those to show, of `total`; `title` is a heading, where there is more than one block."""

    __slots__ = ("columns", "rows", "title", "total")

    def __init__(self, columns: Sequence[Column[R]], rows: Sequence[R], total: int, title: str | None = None) -> None:
        self.columns, self.rows, self.total, self.title = columns, rows, total, title


class Sheet(NamedTuple):
    """The rows of a CSV file and their header; raw values."""

    header: Sequence[str]
    rows: Iterable[Sequence[object]]


class About(NamedTuple):
    """Where, when and on what: the head of table, markdown and json."""

    host: str
    time_utc: str
    version: str
    command_line: str
    target: Mapping[str, Any] | None = None

    @property
    def line(self) -> str:
        """The head as one line."""
        target = "".join(f"  {key} {value}" for key, value in (self.target or {}).items() if value is not None)
        return f"{self.host}  {self.time_utc}  opskit {self.version}{target}"  # no command: who wrote it


class Report(NamedTuple):
    """Verdict first, then the blocks, then the footer (coverage, advice).

    `text`: the lines of `-f text` where its contract is not the blocks' columns. `data`: the JSON object's own keys.
    `sheet`: what `-f csv` writes; `chart`: what a picture shows; for the commands that have these.
    """

    about: About
    blocks: Sequence[Block[Any]] = ()
    verdict: Sequence[str] = ()
    footer: Sequence[str] = ()
    data: Callable[[], Mapping[str, Any]] = dict
    text: Callable[[], Iterable[str]] | None = None
    summary: Sequence[str] = ()
    sheet: Callable[[], Sheet] | None = None
    chart: Callable[[], Chart] | None = None
