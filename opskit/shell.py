r"""Commands for the user to type, built from argument lists. No other place makes a command out of text.

command("chown", "app", "/tmp/a b;c")                    ->  chown app '/tmp/a b;c'
command("dmesg", Syntax("|"), "grep", "-i", "pids")      ->  dmesg | grep -i pids
command("rm", *operands("-x"))                           ->  rm -- -x
command("rm", "/tmp/a\nb")                               ->  rm "$(printf '/tmp/a\012b')"

Names from the machine are untrusted: each word is quoted for any POSIX shell, and a command is always one line of
printable characters, so that what is shown can be copied and means the same.
"""

from __future__ import annotations

import re

# Compiled where a command is made. As shlex has it, whose import costs a millisecond; but zsh makes a path of =name.
_SAFE = r"(?!=)[\w@%+=:,./-]+"
_PLAIN_IN_PRINTF = rb"[ \"-$&(-\[\]-~]"  # printable ASCII without % ' \, and without ! for the history of an old bash


class Syntax(str):
    """A word that the shell itself acts on (`|`, `>`, `&&`, `…`): a constant of the source, never a name from the machine."""

    __slots__ = ()


def command(*words: object) -> str:
    """A command line with every word quoted but those that are Syntax."""
    return " ".join(word if isinstance(word, Syntax) else quote(str(word)) for word in words)


def operands(*words: object) -> tuple[object, ...]:
    """Words that must not be taken for options: behind `--` where one of them begins with a dash."""
    return ("--", *words) if any(str(word).startswith("-") for word in words) else words


def quote(word: str) -> str:
    """One word for a POSIX shell. Bytes that are no UTF-8 come as surrogates."""
    if re.fullmatch(_SAFE, word, re.ASCII):
        return word
    if word.isprintable():
        return "'" + word.replace("'", "'\"'\"'") + "'"
    escaped = b"".join(map(_in_printf, word.encode("utf-8", "surrogateescape"))).decode("ascii")
    if escaped.startswith("-"):
        escaped = "\\055" + escaped[1:]
    # $( ) cuts newlines at the end off; $'…' is known to bash, zsh, ksh and busybox, and to POSIX since 2024.
    return f"$'{escaped.replace('%%', '%')}'" if word.endswith("\n") else f"\"$(printf '{escaped}')\""


def _in_printf(byte: int) -> bytes:
    character = bytes((byte,))
    if character == b"%":
        return b"%%"
    return character if re.match(_PLAIN_IN_PRINTF, character) else b"\\%03o" % byte
