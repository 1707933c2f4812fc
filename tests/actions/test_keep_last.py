"""`--keep N`: the last files of a series."""

from __future__ import annotations

import gzip
import os

import pytest

from opskit.actions.keep_last import keep_last, with_time

CAPTURE = gzip.compress(b"manifest.json\0")
STAMP = "20261124T01020{}Z"


@pytest.mark.parametrize("ending", [".tar.gz", ".tgz"])
def test_names(tmp_path, ending):
    """The time comes before the ending; a second file of the same second has a number."""
    path = f"{tmp_path}/a.b{ending}"
    assert with_time(path, "T") == f"{tmp_path}/a.b-T{ending}"
    (tmp_path / f"a.b-T{ending}").touch()
    assert with_time(path, "T") == f"{tmp_path}/a.b-T-2{ending}"


def test_only_older_files_of_the_series_are_removed(tmp_path):
    """Never another file: of other names, links, directories."""
    ours = [f"x-{STAMP.format(number)}.tar.gz" for number in range(4)]
    ours.insert(2, f"x-{STAMP.format(1)}-2.tar.gz")
    others = [
        "x.tar.gz",
        f"y{ours[0]}",
        f"x-1-{STAMP.format(0)}.tar.gz",
        f"{ours[0]}.bak",
        f"x-{STAMP.format(0)}.tgz",
        "x-check.tar.gz",
    ]
    for name in (*ours, *others):
        (tmp_path / name).write_bytes(CAPTURE)
    (tmp_path / f"x-{STAMP.format(5)}.tar.gz").symlink_to(tmp_path / others[0])
    (tmp_path / f"x-{STAMP.format(6)}.tar.gz").mkdir()
    others += [f"x-{STAMP.format(7)}.tar.gz", f"x-{STAMP.format(8)}.tar.gz"]  # no captures
    (tmp_path / others[-2]).write_bytes(gzip.compress(b"mine"))
    (tmp_path / others[-1]).write_bytes(b"manifest.json")
    assert keep_last(f"{tmp_path}/x.tar.gz", 2) == [f"{tmp_path}/{name}" for name in ours[:3]]
    assert keep_last(f"{tmp_path}/x.tar.gz", 2) == []
    left = {each.name for each in tmp_path.iterdir()}
    assert {*ours[3:], *others} <= left
    assert len(left) == 2 + len(others) + 2


def test_series_in_the_current_directory(tmp_path, monkeypatch):
    """A name without a directory."""
    monkeypatch.chdir(tmp_path)
    names = [f"x-{STAMP.format(number)}.tgz" for number in range(2)]
    for name in names:
        (tmp_path / name).write_bytes(CAPTURE)
    assert keep_last("x.tgz", 1) == names[:1]


def test_files_of_another_user_stay(tmp_path, root_only):
    """Root removes its own captures alone."""
    for number in range(3):
        (tmp_path / f"x-{STAMP.format(number)}.tar.gz").write_bytes(CAPTURE)
    os.chown(tmp_path / f"x-{STAMP.format(0)}.tar.gz", 65534, 65534)
    assert keep_last(f"{tmp_path}/x.tar.gz", 1) == [f"{tmp_path}/x-{STAMP.format(1)}.tar.gz"]
