"""Names of Go programs by the table of Go's runtime, compared with nm."""

from __future__ import annotations

import shutil
import subprocess

import nativeprograms
import pytest

from opskit.proc.elf.file import elf_of, open_elf
from opskit.proc.elf.go_functions import GoFunctions
from opskit.proc.fs import ProcFS

FS = ProcFS()


@pytest.fixture(scope="module")
def program():
    """Go's own tool, which is a Go program."""
    found = subprocess.run([nativeprograms.tool("go"), "env", "GOROOT"], check=True, capture_output=True, text=True)
    path = shutil.which("go", path=f"{found.stdout.strip()}/bin")
    if path is None:
        pytest.skip("needs go")
    return path


def test_a_stripped_go_program_has_the_names_of_nm(program, tmp_path):
    """Without a table of symbols."""
    stripped = tmp_path / "stripped"
    nativeprograms.run("strip", "-o", stripped, program)
    functions = GoFunctions(open_elf(FS, str(stripped)))
    wanted = [line.split(None, 2) for line in nativeprograms.run("nm", program).splitlines()]
    wanted = [
        (int(at, 16), name) for at, kind, name in wanted if kind in "tT" and "." in name and not name.startswith("go:")
    ]
    assert len(wanted) > 5000
    wrong = [
        name for at, name in wanted
        if name != "runtime.etext" and functions.name(at) not in (name, name.rpartition(".")[0])
    ]  # fmt: skip
    assert len(wrong) < len(wanted) / 200, wrong[:5]
    assert functions.name(0) is None
    assert functions.name((1 << 64) - 1) is None


def test_other_files_have_no_go_functions(tmp_path):
    """A C program, and a file of nothing but a header."""
    program = nativeprograms.build("rules.s", tmp_path / "rules", "-nostdlib")
    assert GoFunctions(open_elf(FS, str(program))).name(0x1000) is None
    assert GoFunctions(elf_of(b"\x7fELF\x02\x01" + bytes(58))).name(0x1000) is None
