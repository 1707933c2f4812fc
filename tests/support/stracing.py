"""Run opskit under strace, to compare its system calls with the safety table of each page."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import pytest
from shells import opskit_as

OPENS = ("open", "openat", "openat2", "creat")
SIGNALS = ("kill", "tkill", "tgkill", "pidfd_send_signal")
FORKS = ("clone", "clone3", "fork", "vfork")
FILE_CHANGES = (
    "rename", "renameat", "renameat2", "unlink", "unlinkat", "mkdir", "mkdirat", "link", "linkat", "symlink", "symlinkat",
    "chmod", "fchmod", "fchmodat", "chown", "fchown", "fchownat", "truncate",
)  # fmt: skip
ACTS = (*SIGNALS, *FILE_CHANGES, "ptrace", "pidfd_getfd", "process_vm_readv", "mount", "unshare", "sync", "setrlimit")


class Traced(NamedTuple):
    """How a run ended, and its system calls in order, with those of its children: `name(arguments) = result`."""

    code: int
    out: str
    err: str
    calls: list[str]

    def of(self, *names: str) -> list[str]:
        """The calls of these names."""
        return [call for call in self.calls if call.partition("(")[0] in names]

    def writing(self) -> list[str]:
        """The files opened for writing, except its own oom_score_adj and /dev/null."""
        opened = [call for call in self.of(*OPENS) if re.search(r"O_WRONLY|O_RDWR|O_CREAT|^creat", call)]
        return [call for call in opened if "/proc/self/oom_score_adj" not in call and "/dev/null" not in call]

    def acting(self) -> list[str]:
        """The calls that change something: files opened for writing, and every call other than open."""
        done = [call for call in self.calls if call.partition("(")[0] not in OPENS and "ENOENT" not in call]
        return [*self.writing(), *done]

    def only_started_the_listener(self, pid: int) -> None:
        """Check that the trigger was made safely and removed, SIGQUIT sent once by pidfd, and nothing else done."""
        acting = self.acting()
        [made] = [call for call in acting if "O_CREAT" in call]
        assert f".attach_pid{pid}" in made
        assert all(flag in made for flag in ("O_EXCL", "O_NOFOLLOW"))
        [signalled] = [call for call in acting if call.startswith(SIGNALS)]
        assert signalled.startswith("pidfd_send_signal(")
        assert "SIGQUIT" in signalled
        [removed] = [call for call in acting if call.startswith("unlink")]
        assert f".attach_pid{pid}" in removed
        assert [call for call in acting if call not in (made, signalled, removed)] == []


def needs_strace() -> None:
    """Skip without strace."""
    if not shutil.which("strace"):
        pytest.skip("needs the Debian package strace")


def traced(
    *words: object, calls: tuple[str, ...] = (*OPENS, *ACTS), options: tuple[str, ...] = (), uid: int | None = None
) -> Traced:
    """Run `opskit words…` under strace (with more `options` of strace), as a user; skip without strace."""
    needs_strace()
    command = [sys.executable, "-B", "-m", "opskit", *map(str, words)]
    if uid is not None:
        command[2:] = opskit_as(uid, *words)[1:]
    with tempfile.NamedTemporaryFile("r", suffix=".strace") as log:
        done = subprocess.run(
            ["strace", "-f", "--seccomp-bpf", "-qq", "-e", "signal=none", "-o", log.name, "-e", f"trace={','.join(calls)}", *options,
             *command],
            capture_output=True, text=True, check=False, cwd="/",
        )  # fmt: skip
        lines = Path(log.name).read_text(encoding="utf-8").splitlines()
    # Each line begins with a PID, padded to five places. The second part of an interrupted call begins with "<...".
    seen = [line.split(None, 1)[1] for line in lines]
    return Traced(done.returncode, done.stdout, done.stderr, [call for call in seen if not call.startswith("<...")])
