"""Caches that SLUB merged."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from opskit.proc.files.slab_aliases import merged_names, read_aliases
from opskit.proc.fs import ProcFS

ALIASES = {"dentry": ":at-0000192", "ext4_xattr": ":at-0000192", "cred_jar": ":A-0000192", "filp": ":0000256"}


def test_the_listed_name_knows_its_companions():
    """Slabinfo lists one name of a merged cache; the others are found by what serves them."""
    assert merged_names(ALIASES, ["ext4_xattr", "filp", "tmpfs"]) == {"ext4_xattr": ("dentry",)}


def test_a_cache_listed_by_its_internal_name():
    """Where slabinfo shows :at-0000192 itself, every name that leads there belongs to it."""
    assert merged_names(ALIASES, [":at-0000192"]) == {":at-0000192": ("dentry", "ext4_xattr")}


def test_a_machine_without_slub_has_none(tmp_path):
    """No /sys/kernel/slab: nothing is merged."""
    assert read_aliases(ProcFS(str(tmp_path / "proc"), str(tmp_path))) == {}


def test_this_machine():
    """What the links say here is what readlink says."""
    folder = Path("/sys/kernel/slab")
    if not folder.is_dir():
        pytest.skip("needs SLUB")
    found = read_aliases(ProcFS())
    assert found == {p.name: os.readlink(p).rpartition("/")[2] for p in folder.iterdir() if p.is_symlink()}
