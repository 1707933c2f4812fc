"""What a command found, ready to be shown in any format. A renderer chooses the form, it never computes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from opskit.analysis.finding import Finding
    from opskit.render.fields import Field
    from opskit.render.paragraphs import Paragraph
    from opskit.render.pictures.chart import Chart

R = TypeVar("R")


class Listing(NamedTuple):
    """Rows as lines instead of columns: `lines(row, detail, width)`, with a detail from 0 to `most`. The first `least` are always shown."""

    lines: Callable[[Any, int, int | None], Sequence[str]]
    most: int
    least: int


class Block(Generic[R]):
    """A table. `rows` are those to show, of `total`; `title` is a heading, where there is more than one block.

    `listing`: how -f table shows the rows, where a row has several lines of its own. `one_line`: on a terminal each row takes one line.
    `details`: on a terminal without room for three lines of it, it is left out, and its title named.
    """

    __slots__ = ("columns", "details", "listing", "one_line", "rows", "title", "total")

    def __init__(
        self,
        fields: Sequence[Field[R]],
        rows: Sequence[R],
        total: int,
        title: str | None = None,
        listing: Listing | None = None,
        *,
        one_line: bool = False,
        details: bool = False,
    ) -> None:
        self.columns = [field for field in fields if field.title]
        self.rows, self.total, self.title, self.listing, self.one_line = rows, total, title, listing, one_line
        self.details = details


class Sheet(NamedTuple):
    """The rows of a CSV file and their header; raw values."""

    header: Sequence[str]
    rows: Iterable[Sequence[object]]


class Metrics(NamedTuple):
    """Rows whose numbers are metrics, named `prefix`_`field`; text and ids are labels. `labels`: those of every row."""

    prefix: str
    fields: Sequence[Field[Any]]
    rows: Sequence[Any]
    labels: Mapping[str, object] = {}


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
    """Verdict and findings first, then the blocks and the summary, then the footer (notes on coverage, advice).

    `document`: the fields of the JSON object and the value they read. `text`: the lines of `-f text` where its contract is
    not the blocks' columns. `sheet`: what `-f csv` writes; `chart`: what a picture shows; `draw`: a picture or profile
    that the view makes itself; `metrics`: what `-f prometheus` writes. `exit_code` replaces that of the findings where a question was not answered.
    `page`: of a width and height, what `-f table` shows instead of all this; `listed`: the lines of Markdown below the verdict.
    """

    about: About
    blocks: Sequence[Block[Any]] = ()
    verdict: Sequence[str] = ()
    footer: Sequence[str] = ()
    text: Callable[[], Iterable[str]] | None = None
    summary: Sequence[str] = ()
    sheet: Callable[[], Sheet] | None = None
    chart: Callable[[], Chart] | None = None
    findings: Sequence[Finding] = ()
    document: tuple[Sequence[Field[Any]], Any] | None = None
    draw: Callable[[str], str | bytes] | None = None
    exit_code: int | None = None
    metrics: Callable[[], Iterable[Metrics]] | None = None
    page: Callable[[int | None, int | None], Sequence[Paragraph]] | None = None
    listed: Callable[[], Iterable[str]] | None = None
