"""What real libraries need: of glibc, of musl; damaged ones."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys

import pytest

from opskit.proc.elf.dynamic import glibc_versions, libc_of, needed, symbols
from opskit.proc.elf.file import elf_of

SOURCE = 'int puts(const char *s);\nextern int lacking(void) __attribute__((weak));\nint hello(void) { return puts("x") + (lacking ? 1 : 0); }\n'


def built(compiler, place):
    if not shutil.which(compiler):
        pytest.skip("needs the Debian packages gcc and musl-tools")
    path = place / f"{compiler}.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", path, "-x", "c", "-"], input=SOURCE, text=True, check=True)
    return elf_of(path.read_bytes())


def test_libraries_of_both(tmp_path):
    """Their C library, what they need strongly, what they define."""
    gnu, musl = built("gcc", tmp_path), built("musl-gcc", tmp_path)
    assert (libc_of(gnu), libc_of(musl)) == ("glibc", "musl")
    assert needed(gnu) == ("libc.so.6",)
    assert glibc_versions(gnu)
    assert not glibc_versions(musl)
    for image in (gnu, musl):
        assert b"hello" in symbols(image, defined=True)
        assert b"puts" in symbols(image, defined=False)
        assert b"lacking" not in symbols(image, defined=False)


def test_a_program(tmp_path):
    """By its interpreter, also where it needs nothing else."""
    with open(sys.executable, "rb") as file:
        assert libc_of(elf_of(file.read())) == "glibc"


def test_damaged_libraries(tmp_path):
    """Whatever a file says: no exception, no endless loop."""
    if not shutil.which("gcc"):
        pytest.skip("needs the Debian package gcc")
    built("gcc", tmp_path)
    data = (tmp_path / "gcc.so").read_bytes()
    chance = random.Random(16)  # noqa: S311  (the same damage in each run)
    for _ in range(400):
        broken = bytearray(data)
        for _ in range(20):
            at = chance.randrange(len(broken)) if chance.random() < 0.3 else chance.randrange(1200)
            broken[at] = chance.choice((0, 1, 0x7F, 0xFF, chance.randrange(256)))
        image = elf_of(bytes(broken[: chance.choice((len(broken), 3000))]))
        if image is not None:
            needed(image), libc_of(image), glibc_versions(image), symbols(image, defined=True)
