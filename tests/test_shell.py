"""Commands that are printed mean, in a real shell, the very words they were made of."""

from __future__ import annotations

import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opskit.shell import Syntax, command, operands, quote

NAMES = st.binary(min_size=1, max_size=12).map(
    lambda data: data.replace(b"\0", b"'").decode("utf-8", "surrogateescape")
)


def words_of(line, shell="sh"):
    """The words that a shell makes of a command line whose first word is `x`."""
    script = f'x() {{ printf "%s\\0" "$@"; }}\n{line}\n'
    done = subprocess.run([shell, "-c", script.encode("utf-8")], capture_output=True, check=True)
    return [word.decode("utf-8", "surrogateescape") for word in done.stdout.split(b"\0")[:-1]]


HOSTILE = [
    "a;touch pwn;#", "$(touch pwn)", "`touch pwn`", "a\nb", "'", '"', "a'b\"c", "\\", "%s%n", "-rf", "--", "~", "*", "a b",
    "\udcff\udc80", "\x1b[31m", "\u202e", "-\n-", "a&b|c>d<e", "!!", "{a,b}", "é", "\u3000", "#", "=", "a=b c", "\r", "\t", "%\n.",
]  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_is_one_word(name):
    """Whatever is in a name, a shell gets the name, and nothing else happens."""
    line = command("x", *operands(name, "/tmp/" + name))
    assert line.isprintable()
    subprocess.run(["sh", "-n", "-c", line], check=True)
    dashes = ["--"] if name.startswith("-") else []
    assert words_of(line) == [*dashes, name, "/tmp/" + name]


@pytest.mark.parametrize("name", ["a\n", "\n", "%'\\\n\n"])
def test_a_newline_at_the_end_is_kept(name):
    """A shell with $'…' gets a name's last newlines too."""
    line = command("x", name)
    assert line.isprintable()
    assert words_of(line, "bash") == [name]


@given(st.lists(NAMES.filter(lambda name: not name.endswith("\n")), min_size=1, max_size=4))
def test_any_words_come_back(names):
    """Every argument list is the same after a shell has read it."""
    line = command("x", *names)
    assert line.isprintable()
    assert words_of(line) == names


def test_plain_words_stay_plain_and_syntax_is_the_shells():
    """What needs no quotes gets none; pipes and redirections are data of our own."""
    assert command("opskit", "jpmp", 42, "--locks") == "opskit jpmp 42 --locks"
    assert command("dmesg", Syntax("|"), "grep", "a b") == "dmesg | grep 'a b'"
    assert operands("a", "b") == ("a", "b")
    assert quote("") == "''"
