"""What the views of several commands share: rounded values, rates, a dash for what is unknown, values at a path, the process that was asked about."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any

from opskit.quantities import percent
from opskit.render.fields import ID, NUMBER, SHARE, Field

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from opskit.proc.process import Process

_WHOLE = 1000  # a rate from which on fractions mean nothing


def or_dash(show: Callable[[Any], str]) -> Callable[[Any], str]:
    """Show `-` for what is unknown."""
    return lambda value: "-" if value is None else show(value)


def rounded(value: float | None, digits: int = 3) -> float | None:
    """A value without digits that mean nothing; None stays None."""
    return None if value is None else round(value, digits)


def rounded_at(path: str, digits: int = 3) -> Callable[[Any], float | None]:
    """Read such a value of a row: `path` is its attribute, or that of a part (`thread.waiting`)."""
    read = attrgetter(path)
    return lambda row: rounded(read(row), digits)


def at(path: str) -> Callable[[Any], Any]:
    """The value at a path of attributes; None where one before the last is None."""
    names = path.split(".")

    def value(row: Any) -> Any:
        for name in names:
            row = None if row is None else getattr(row, name)
        return row

    return value


def rate(per_s: float | None) -> float | None:
    """A rounded number a second: an integer if it is large, of which -f text would print six digits alone."""
    return None if per_s is None else round(per_s) if per_s >= _WHOLE else round(per_s, 2)


def rate_at(path: str) -> Callable[[Any], float | None]:
    """Read a rate of a row."""
    read = attrgetter(path)
    return lambda row: rate(read(row))


def rate_text(per_s: float | None) -> str:
    """`13,271`, `4.5`; `-` if it is unknown."""
    return "-" if per_s is None else f"{per_s:,.0f}" if per_s >= 9.95 or per_s == 0 else f"{per_s:.1f}"


def share_field(name: str, title: str, path: str, **more: Any) -> Field[Any]:
    """A share of a whole, 0 to 1."""
    return Field(name, SHARE, title, rounded_at(path, 4), show=or_dash(percent), **more)


def rate_field(name: str, title: str, path: str, **more: Any) -> Field[Any]:
    """A number a second."""
    return Field(name, NUMBER, title, rate_at(path), show=rate_text, **more)


def row_limit(top: int | None, most: int | None) -> int | None:
    """How many rows to show; None: all. `top`: -n, of which 0 is all; without it `most`."""
    return most if top is None else top or None


TARGET: Sequence[Field[Process]] = (
    Field("pid", ID),
    Field("start_ticks", ID, help="clock ticks since boot"),
    Field("command"),
    Field("uid", ID),
    Field("user"),
)
