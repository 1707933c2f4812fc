"""Names of kernel functions by /proc/kallsyms."""

from __future__ import annotations

import pytest

from opskit.proc.files.kallsyms import KernelSymbols
from opskit.proc.fs import ProcFS

TEXT = """\
0000000000000000 A fixed_percpu_data
ffffffff81000000 T _stext
ffffffff81000000 t local_alias
ffffffff81000040 t first
ffffffff81000050 W weak
ffffffff81200000 D no_function
ffffffffc0201000 t nft_do_chain\t[nf_tables]
ffffffffc0100000 t before_it\t[other]
"""


@pytest.mark.parametrize(
    ("pc", "name"),
    [
        (0xFFFFFFFF81000000, "_stext"), (0xFFFFFFFF8100003F, "_stext"), (0xFFFFFFFF81000040, "first"),
        (0xFFFFFFFF81000051, "weak"), (0xFFFFFFFFC0201008, "nft_do_chain"), (0xFFFFFFFFC0100001, "before_it"),
        (0xFFFFFFFF80FFFFFF, None), (0xFFFFFFFFFFFFFFFF, None), (0, None), (0x7F0000000000, None),
    ],
)  # fmt: skip
def test_the_function_at_an_address(pc, name):
    """The global name of several; modules in any order; data is no code; far behind a symbol nothing is known."""
    assert KernelSymbols(TEXT).name(pc) == name


@pytest.mark.parametrize("text", ["", "\n\n", "no symbols\n", "ffffffff8100000g T odd\n", "ffffffff81000000 T \n"])
def test_anything_else_has_no_names(text):
    """No line of that form: no name."""
    assert KernelSymbols(text).name(0xFFFFFFFF81000000) is None


def test_hidden_addresses_are_no_names():
    """What a user without rights reads: all zeros."""
    hidden = "0000000000000000 T _stext\n0000000000000000 t first\n0000000000000000 t nft_do_chain\t[nf_tables]\n"
    symbols = KernelSymbols(hidden)
    assert symbols.name(0xFFFFFFFF81000000) is None


def test_this_kernel(root_only):
    """Each address of a function that the file lists is found under one of its names."""
    text = ProcFS().load(str, "kallsyms")
    symbols = KernelSymbols(text)
    lines = [line.split() for line in text.splitlines()[::997]]
    checked = [(int(address, 16), name) for address, kind, name, *_ in lines if kind in "tT" and int(address, 16)]
    if not checked:
        pytest.skip("this kernel hides its symbols")
    same = {pc: {n for a, k, n, *_ in map(str.split, text.splitlines()) if int(a, 16) == pc} for pc, _ in checked[:3]}
    assert all(symbols.name(pc) in names for pc, names in same.items())
    assert sum(symbols.name(pc) == name for pc, name in checked) > len(checked) * 0.7
