"""Read a printed command with a real shell, without running it; names that would do harm unquoted."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile

HOSTILE = [
    "a;touch pwn;#", "$(touch pwn)", "`touch pwn`", "a\nb", "'", '"', "a'b\"c", "'; touch pwn; '", '"; touch pwn; "', "\\",
    "%s%n", "-rf", "--", "-", "~", "*", "a b", " a ", "\udcff\udc80", "\x1b[31mred\x1b[0m", "\u202e", "-\n-", "a&b|c>d<e",
    "a > b", "a | opskit safepoints -", "!!", "!touch", "\x1b!!", "{a,b}", "é", "\u3000", "#", "=", "=ls", "a=b c", "\r", "\t",
    "%\n.", "[red]x[bold]", "a&#39;; touch pwn; &#39;", "a&apos;b", "|a|", "__x__", "<b>", "a\x0bb", "a\x85b", "a\u2028b",
]  # fmt: skip


def check_syntax(line, shell="sh"):
    """Check that a command is one line of printable characters that `sh -n` accepts."""
    assert line.isprintable(), line
    done = subprocess.run(
        [shell, "-n", "-c", line.encode("utf-8", "surrogateescape")], capture_output=True, check=False
    )
    assert done.returncode == 0, (line, done.stderr)


def argv_of(line, shell="sh"):
    """The words of a printed command as a real shell reads them; redirections and pipes count as words."""
    check_syntax(line, shell)
    line = re.sub(r"^(echo (?:\d+|'[\w. =-]+')) > ", r"\1 '>' ", line)
    line = re.sub(r" 2>/dev/null(?= \| opskit safepoints -$)", " '2>/dev/null'", line)
    line = re.sub(r" \| (?=opskit safepoints -$)", " '|' ", line)
    return words_of(f"x {line}", shell)


def words_of(line, shell="sh"):
    """The words that a shell makes of a command line whose first word is `x`."""
    script = f'x() {{ printf "%s\\0" "$@"; }}\n{line}\n'
    with tempfile.TemporaryDirectory() as folder:
        words = [shell, "-c", script.encode("utf-8", "surrogateescape")]
        done = subprocess.run(words, capture_output=True, check=False, cwd=folder)
        assert not os.listdir(folder), f"{line} made {os.listdir(folder)}"
    assert (done.returncode, done.stderr) == (0, b""), (line, done.stderr)
    return [word.decode("utf-8", "surrogateescape") for word in done.stdout.split(b"\0")[:-1]]
