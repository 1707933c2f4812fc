"""/proc/sys."""

from __future__ import annotations

from opskit.proc.files.sysctl import read_sysctl
from opskit.proc.fs import ProcFS


def test_a_number_or_unknown(tree):
    """A sign, other text, and a file that is not there."""
    root = tree({"proc/sys/vm/a": "-1\n", "proc/sys/vm/b": "1 2\n", "proc/sys/vm/c": "65530\n"})
    fs = ProcFS(f"{root}/proc", str(root))
    assert [read_sysctl(fs, "vm", name) for name in "abcd"] == [-1, None, 65530, None]


def test_this_machine():
    """A value of this machine's kernel."""
    assert read_sysctl(ProcFS(), "kernel", "threads-max") > 0
