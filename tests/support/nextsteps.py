"""Type the `next` command of a finding in the state that printed it."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import inprocess
from shellwords import check_syntax, words_of

ROOT = Path(__file__).resolve().parents[2]
# What ends a command that would go on, ask or wait.
_SHORTER = {
    "opskit jvms": ("-c", "1", "-i", "0.2"), "opskit limits": ("-c", "1", "-i", "0.2"), "opskit jmap-diff": ("-i", "0.2", "--yes", "--timeout", "120"),
    "opskit jpmp": ("--timeout", "120"), "opskit safepoints": ("-c", "1", "-i", "0.2"), "opskit dentry": ("--help",),
    "opskit mem": ("-c", "1", "-i", "0.2"), "opskit fds": ("-c", "1", "-i", "0.2"),
    "opskit profile": ("--duration", "500ms"), "opskit tcp": ("-c", "1", "-i", "0.2"), "opskit clock": ("-c", "2", "-i", "0.2"),
    "opskit cswitch": ("-c", "1", "-i", "0.2"), "opskit irqs": ("-c", "1", "-i", "0.2"), "opskit io": ("-c", "1", "-i", "0.2"),
    "top": ("-b", "-n", "1"), "vmstat": ("2",),
}  # fmt: skip


def try_next(findings, code, *, cwd="/", run=None, **placeholders):
    """Run the command of the finding with this code, and check that it gives an answer; it is returned.

    `findings`: those of the JSON object, or records.

    `run`: what runs the words of opskit, by default this process. `placeholders`: what a user puts for `PID`. A tool that is not installed is only checked for its syntax.
    """
    read = (finding if isinstance(finding, dict) else finding._asdict() for finding in findings)
    line = next(finding for finding in read if finding["code"] == code)["next"]
    assert line, code
    check_syntax(line)
    if " | " in line:
        done = subprocess.run(
            ["bash", "-c", f'opskit() {{ {shlex.quote(sys.executable)} -m opskit "$@"; }}; set -o pipefail; {line}'],
            capture_output=True, text=True, check=False, timeout=120, cwd=cwd, env={**os.environ, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip
        assert done.returncode in (0, 1) and done.stdout, (line, done.stderr)  # noqa: PT018
        return line
    for part in line.split(" && "):
        words = [placeholders.get(word, word) for word in words_of(f"x {part}")]
        _run([*map(str, words)], cwd, run or partial(inprocess.run, cwd=str(cwd), timeout=300))
    return line


def _run(words, cwd, run):
    name = " ".join(words[:2]) if words[0] == "opskit" else words[0]
    is_no_watch = "-w" not in words and name in (
        "opskit jvms",
        "opskit limits",
        "opskit mem",
        "opskit fds",
        "opskit tcp",
        "opskit clock",
        "opskit cswitch",
        "opskit irqs",
        "opskit io",
    )
    extra = () if is_no_watch else _SHORTER.get(name, ())
    extra = (
        ("-i", "0.2") if is_no_watch and name in ("opskit tcp", "opskit cswitch", "opskit irqs", "opskit io") else extra
    )
    extra = () if name == "opskit jmap-diff" and not words[2].isdigit() else extra
    if name == "opskit jpmp" and words[2].isdigit() and not any(word == "-c" or word.isdigit() for word in words[3:]):
        extra = (*extra, "-c", "3", "-i", "0.1")  # the pauses of a JVM without CPU are long, and would stretch the run
    if words[0] == "opskit":
        done = run(*words[1:], *extra)
        assert done.code in (0, 1), (words, done.err)
        assert done.out, (words, done.err)
    elif shutil.which(words[0]):
        done = subprocess.run([*words, *extra], capture_output=True, text=True, check=False, timeout=120, cwd=cwd)
        assert done.returncode in _codes(words, done.stderr), (words, done.stderr)


def _codes(words, errors):
    """The exit codes of a command that gave its answer."""
    if words[:2] == ["grep", "-rs"]:
        return (0, 1, 2)  # 2: a file of the list is missing, which -s tolerates
    if words[0] == "find" and all(line.endswith("No such file or directory") for line in errors.splitlines()):
        return (0, 1)  # 1: another process deleted a directory while find read it
    return (0,)
