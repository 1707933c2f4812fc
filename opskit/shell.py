r"""Build commands for the user to type from argument lists. No other module makes a command out of text.

command("chown", "app", "/tmp/a b;c")                    ->  chown app '/tmp/a b;c'
command("dmesg", Syntax("|"), "grep", "-i", "pids")      ->  dmesg | grep -i pids
command("rm", *operands("-x"))                           ->  rm -- -x
command("rm", "/tmp/a\nb")                               ->  rm "$(printf '/tmp/a\012b')"

Names from the machine are untrusted. Each word is quoted for any POSIX shell. A command is one line of printable
characters, so that the copy of what is shown means the same.
"""

from __future__ import annotations

import re

# The pattern of shlex, whose import costs a millisecond, except that zsh expands =name.
_SAFE = r"(?!=)[\w@%+=:,./-]+"
_PLAIN_IN_PRINTF = rb"[ \"-$&(-\[\]-~]"  # printable ASCII without % ' \, and without ! for the history of an old bash


class Syntax(str):
    """A word that the shell interprets (`|`, `>`, `&&`, `…`): a constant of the source, never a name from the machine."""

    __slots__ = ()


def command(*words: object) -> str:
    """Quote every word that is not Syntax, and join them."""
    return " ".join(word if isinstance(word, Syntax) else quote(str(word)) for word in words)


def operands(*words: object) -> tuple[object, ...]:
    """Put `--` before the words if one of them begins with a dash."""
    return ("--", *words) if any(str(word).startswith("-") for word in words) else words


def quote(word: str) -> str:
    """Quote one word for a POSIX shell. Bytes outside UTF-8 are surrogates."""
    if re.fullmatch(_SAFE, word, re.ASCII):
        return word
    if word.isprintable():
        return "'" + word.replace("'", "'\"'\"'") + "'"
    escaped = b"".join(map(_in_printf, word.encode("utf-8", "surrogateescape"))).decode("ascii")
    if escaped.startswith("-"):
        escaped = "\\055" + escaped[1:]
    # $( ) removes newlines at the end. bash, zsh, ksh, busybox and POSIX 2024 know $'…'.
    return f"$'{escaped.replace('%%', '%')}'" if word.endswith("\n") else f"\"$(printf '{escaped}')\""


def _in_printf(byte: int) -> bytes:
    character = bytes((byte,))
    if character == b"%":
        return b"%%"
    return character if re.match(_PLAIN_IN_PRINTF, character) else b"\\%03o" % byte
