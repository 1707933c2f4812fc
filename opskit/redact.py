"""Secrets in command lines, environments, properties and URLs: names are kept, values are replaced by `…`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

HIDDEN = "…"


def is_secret(name: str) -> bool:
    """Whether the value of an option, property or variable of this name is a secret: `db.password`, `API_KEY`."""
    raise NotImplementedError


def redact_value(name: str, value: str) -> str:
    """The value of a property or option; `…` if its name says that it is a secret."""
    raise NotImplementedError


def redact_words(words: Sequence[str]) -> list[str]:
    """The words of a command line."""
    raise NotImplementedError


def redact_line(text: str) -> str:
    """One line of text: a command line whose words are separated by blanks, a message, a URL."""
    raise NotImplementedError


def redact_environment(variables: Mapping[str, str]) -> dict[str, str]:
    """An environment: the values of well-known names are kept, every other is hidden."""
    raise NotImplementedError


def redact_cmdline(data: bytes) -> bytes:
    r"""Words that each end with NUL, as in /proc/PID/cmdline."""
    raise NotImplementedError


def redact_environ(data: bytes) -> bytes:
    r"""NAME=value entries that each end with NUL, as in /proc/PID/environ."""
    raise NotImplementedError
