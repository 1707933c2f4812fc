"""/proc/slabinfo, from Linux 2.4 to today."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opskit.errors import BadInput
from opskit.proc.files.slabinfo import Slab, merged_names, parse_slabinfo, read_aliases
from opskit.proc.fs import ProcFS

HEAD = (
    "slabinfo - version: 2.1\n"
    "# name            <active_objs> <num_objs> <objsize> <objperslab> <pagesperslab> : tunables <limit> <batchcount> "
    "<sharedfactor> : slabdata <active_slabs> <num_slabs> <sharedavail>\n"
)
ALIASES = {"dentry": ":at-0000192", "ext4_xattr": ":at-0000192", "cred_jar": ":A-0000192", "filp": ":0000256"}
LINE = "dentry            439961 440895    192   21    1 : tunables    0    0    0 : slabdata  20995  20995      0\n"


def test_the_current_form():
    """2.1: the slabs are in slabdata, a slab's pages before it."""
    [cache] = parse_slabinfo(HEAD + LINE)
    assert cache == Slab("dentry", 439961, 440895, 192, 20995, 1)
    assert cache.bytes(4096) == 20995 * 4096


def test_version_2_0_with_statistics():
    """2.0 and (statistics): additional groups are skipped."""
    text = (
        "slabinfo - version: 2.0 (statistics)\n# name  <active_objs> … : globalstat … : cpustat …\n"
        "dentry_cache   128   2486    180   22    2 : tunables   32   16    8 : slabdata    113    114    128 "
        ": globalstat  664846 590238 26829    0    0    1   70 : cpustat 1 974008  78670 1990714  61964\n"
    )
    assert parse_slabinfo(text) == [Slab("dentry_cache", 128, 2486, 180, 114, 2)]


@pytest.mark.parametrize(
    ("version", "tail"),
    [
        ("1.1", ""),
        ("1.1 (SMP)", " :  252  126"),
        ("1.1 (statistics)", " :     58      58     3    0    0"),
        ("1.1 (statistics) (SMP)", " :     58      58     3    0    0 :  252  126 : 1 2 3 4"),
        ("1.2", " :  252  126"),
    ],
)
def test_the_forms_of_2_4(version, tail):
    """1.1 and 1.2: slabs in use, slabs, pages a slab; a name may hold a space."""
    text = f"slabinfo - version: {version}\ndnotify cache          0      0     20    0    3    1{tail}\n"
    text += f"dentry_cache        5469   5880    128  183  196    2{tail}\n"
    assert parse_slabinfo(text) == [
        Slab("dnotify cache", 0, 0, 20, 3, 1),
        Slab("dentry_cache", 5469, 5880, 128, 196, 2),
    ]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", 1),
        ("hello\n", 1),
        ("slabinfo - version: 3.0\n" + LINE, 1),
        ("slabinfo - version: 1.0\ndentry 1 2\n", 1),
        (HEAD, 2),
        (HEAD + LINE + LINE[:60], 4),
        (HEAD + LINE + LINE[:60] + "\n", 4),
        (HEAD + LINE[:-3], 3),
        (HEAD + "dentry 1 2 x 4 5 : tunables 0 0 0 : slabdata 1 2 3\n", 3),
        (HEAD + LINE + "\n", 4),
    ],
)
def test_what_is_no_slabinfo_or_cut_short_is_refused_with_its_place(text, line):
    """One clear line: where, what, and the text that was found."""
    with pytest.raises(BadInput) as caught:
        parse_slabinfo(text)
    assert str(caught.value).startswith(f"slabinfo:{line}: ")


numbers = st.integers(0, 10**12)
names = st.from_regex(r"[A-Za-z][A-Za-z0-9_:(),-]{0,20}( [a-z]{1,8})?", fullmatch=True)


@given(st.lists(st.tuples(names, *[numbers] * 6), min_size=1))
def test_what_is_written_is_read_back(rows):
    """Any names and numbers are read back from the file's format."""
    body = "".join(
        f"{name:<17} {active:6d} {objects:6d} {size:6d} {7:4d} {pages:4d} : tunables 0 0 0 : slabdata {slabs} {slabs} {extra}\n"
        for name, active, objects, size, slabs, pages, extra in rows
    )
    assert parse_slabinfo(HEAD + body) == [Slab(*row[:6]) for row in rows]


@given(st.integers(1, len(HEAD + LINE * 2) - 1))
def test_every_cut_is_noticed_or_ends_at_a_line(length):
    """A text that ends anywhere but behind a cache's line is refused."""
    text = (HEAD + LINE * 2)[:length]
    whole = len(HEAD + LINE)
    if length == whole:
        assert len(parse_slabinfo(text)) == 1
        return
    with pytest.raises(BadInput):
        parse_slabinfo(text)


def test_this_machine(root_only):
    """The machine's own slabinfo: every line is understood, and the sum is near meminfo's Slab."""
    caches = parse_slabinfo(Path("/proc/slabinfo").read_text(encoding="utf-8"))
    meminfo = dict(line.split(":") for line in Path("/proc/meminfo").read_text(encoding="utf-8").splitlines())
    total = int(meminfo["Slab"].split()[0]) * 1024
    assert 0.5 * total < sum(cache.bytes(4096) for cache in caches) < 1.5 * total
    assert {"dentry", "inode_cache"} <= {cache.name for cache in caches}


def test_the_listed_name_knows_its_companions():
    """Slabinfo lists one name of a merged cache; the others are found by what serves them."""
    assert merged_names(ALIASES, ["ext4_xattr", "filp", "tmpfs"]) == {"ext4_xattr": ("dentry",)}


def test_a_cache_listed_by_its_internal_name():
    """Where slabinfo shows :at-0000192 itself, every name that leads there belongs to it."""
    assert merged_names(ALIASES, [":at-0000192"]) == {":at-0000192": ("dentry", "ext4_xattr")}


def test_a_machine_without_slub_has_none(tmp_path):
    """No /sys/kernel/slab: nothing is merged."""
    assert read_aliases(ProcFS(str(tmp_path / "proc"), str(tmp_path))) == {}


def test_the_aliases_of_this_machine():
    """Compared with readlink on this machine."""
    folder = Path("/sys/kernel/slab")
    if not folder.is_dir():
        pytest.skip("needs SLUB")
    found = read_aliases(ProcFS())
    assert found == {p.name: os.readlink(p).rpartition("/")[2] for p in folder.iterdir() if p.is_symlink()}
