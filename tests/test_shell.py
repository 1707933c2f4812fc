"""A real shell reads printed commands as the words that they were made of."""

from __future__ import annotations

import os
import subprocess

import pytest
from eachof import each_of
from hypothesis import given
from hypothesis import strategies as st
from shellwords import HOSTILE, check_syntax, words_of

from opskit.shell import Syntax, command, operands, quote

NAMES = st.binary(min_size=1, max_size=12).map(
    lambda data: data.replace(b"\0", b"'").decode("utf-8", "surrogateescape")
)


@each_of("name", HOSTILE)
def test_a_hostile_name_is_one_word(name):
    """A shell reads any name as one word, and runs nothing."""
    line = command("x", *operands(name, "/tmp/" + name))
    check_syntax(line)
    dashes = ["--"] if name.startswith("-") else []
    assert words_of(line) == [*dashes, name, "/tmp/" + name]


@pytest.mark.parametrize("name", ["!!", "\x1b!!", "it's !touch", "=ls"])
def test_an_interactive_bash_takes_nothing_from_its_history(name, tmp_path):
    """`!` is quoted so that bash expands no history; words that other shells expand are quoted."""
    script = f"set -o history -H\ntouch pwn-was-here\nrm pwn-was-here\nprintf '<%s>' {quote(name)}\n"
    done = subprocess.run(
        ["bash", "--norc", "-i"],
        input=script.encode(),
        capture_output=True,
        check=False,
        cwd=tmp_path,
        env={"HOME": str(tmp_path), "PATH": os.environ["PATH"]},
    )
    assert f"<{name}>".encode() in done.stdout
    assert quote(name) != name


@pytest.mark.parametrize("name", ["a\n", "\n", "%'\\\n\n"])
def test_a_newline_at_the_end_is_kept(name):
    """A shell with $'…' keeps newlines at the end."""
    line = command("x", name)
    assert line.isprintable()
    assert words_of(line, "bash") == [name]


@given(st.lists(NAMES.filter(lambda name: not name.endswith("\n")), min_size=1, max_size=4))
def test_any_words_come_back(names):
    """A shell reads every argument list unchanged."""
    line = command("x", *names)
    assert line.isprintable()
    assert words_of(line) == names


def test_plain_words_stay_plain_and_syntax_is_the_shells():
    """Plain words get no quotes; pipes and redirections are Syntax."""
    assert command("opskit", "jpmp", 42, "--locks") == "opskit jpmp 42 --locks"
    assert command("dmesg", Syntax("|"), "grep", "a b") == "dmesg | grep 'a b'"
    assert operands("a", "b") == ("a", "b")
    assert quote("") == "''"
