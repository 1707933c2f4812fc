"""A capture's file: what is written is read again as it was, and by every other tar."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import tarfile

import pytest
from captures import MARKS, capture_bytes, content, full_tape
from hypothesis import given, settings
from hypothesis import strategies as st

from opskit.errors import BadInput
from opskit.proc.file_id import FileId
from opskit.proc.file_space import Space
from opskit.proc.fs import ProcFS
from opskit.proc.recorded import tape as kinds
from opskit.proc.recorded.manifest import manifest_of, read_for_manifest
from opskit.proc.recorded.packing import pack
from opskit.proc.recorded.store import load_capture, unpack
from opskit.proc.recorded.tape import Failure, Origin, Tape
from opskit.proc.recorded.unarchive import read_archive
from opskit.recorded_host import RecordedHost

NAMES = st.binary(max_size=12).map(lambda data: data.decode("utf-8", "surrogateescape")) | st.text(
    st.characters(exclude_categories=["Cs"]), max_size=8
)
PATHS = st.lists(st.sampled_from(("a", "b", "", ".", "..", "1", "-x", "\\x2d")) | NAMES, max_size=4).map("/".join)
NUMBERS = st.integers(-(10**19), 10**20 - 1)
COUNTS = st.integers(0, (1 << 63) - 1)
BYTES = st.binary(max_size=8)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.floats(allow_nan=False, allow_infinity=False) | NAMES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=5,
)
FAILURES = st.builds(Failure, st.integers(0, 133), st.none() | NAMES, st.booleans(), st.booleans())
TIMES = st.integers(-(1 << 63), (1 << 63) - 1)
STATS = st.builds(FileId, *([COUNTS] * 2), *([st.integers(0, 10**9 - 1)] * 3), *([COUNTS] * 2), TIMES, COUNTS, TIMES)
ANSWERS = {
    kinds.FILE: BYTES, kinds.LINK: BYTES, kinds.STAT: STATS, kinds.LSTAT: STATS, kinds.NAMES: st.lists(NAMES, max_size=3).map(tuple),
    kinds.SOME: st.lists(NAMES, max_size=3).map(tuple), kinds.PAGES: COUNTS,
    kinds.ENTRIES: st.lists(st.tuples(NAMES, st.booleans(), st.booleans()), max_size=3).map(tuple),
    kinds.FDS: st.lists(st.tuples(st.integers(0, 10**9).map(b"%d".__mod__), BYTES, st.integers(0, 0o1777777777)), max_size=3).map(tuple),
    kinds.SPACE: st.builds(Space, st.booleans(), COUNTS, st.none() | COUNTS, COUNTS, COUNTS, st.none() | COUNTS, COUNTS),
    kinds.WRITABLE: st.booleans(), kinds.OPENED: st.just(True), kinds.UNTRUSTED: st.just(True),
    kinds.RANGES: st.dictionaries(st.integers(0, 10**20 - 1), BYTES | FAILURES, max_size=3), kinds.CALL: JSON, kinds.REPLY: BYTES,
}  # fmt: skip


@st.composite
def tapes(draw):
    tape = Tape(Origin(words=tuple(draw(st.lists(NAMES.filter(lambda name: "\0" not in name), max_size=2)))), MARKS)
    for kind in draw(st.lists(st.sampled_from(kinds.KINDS), max_size=8)):
        mark = draw(st.sampled_from((0, 0, 1)))
        tape.keep(kind, draw(PATHS), draw(ANSWERS[kind] | FAILURES if kind != kinds.RANGES else ANSWERS[kind]), mark)
    return tape


def test_every_kind_of_answer_has_a_strategy():
    """A new kind is tested here, too."""
    assert set(ANSWERS) == set(kinds.KINDS)


@given(tapes())
@settings(max_examples=25, deadline=None)
def test_any_tape_comes_back_as_it_was(tape):
    """Answers of every kind, names and contents of any bytes."""
    assert content(unpack(pack(tape), "x")) == content(tape)
    assert content(unpack(read_archive("x", [capture_bytes(tape)]), "x")) == content(tape)


@pytest.fixture(scope="module")
def tape():
    return full_tape()


@pytest.fixture(scope="module")
def archive(tape, tmp_path_factory):
    path = tmp_path_factory.mktemp("capture") / "x.tar.gz"
    path.write_bytes(capture_bytes(tape))
    return path


def test_full_tape_comes_back(tape, archive):
    """From a file; the same answers give the same bytes again."""
    assert content(load_capture(str(archive))) == content(tape)
    assert capture_bytes(full_tape()) == archive.read_bytes()


@pytest.mark.parametrize("tar", ["tar", "bsdtar", "busybox"])
def test_other_programs_unpack_it(tape, archive, tmp_path, tar):
    """Each file comes out with its content, below the directory alone, and is readable for its owner alone."""
    if shutil.which(tar) is None:
        pytest.skip(f"needs {tar}")
    words = ["busybox", "tar"] if tar == "busybox" else [tar]
    done = subprocess.run([*words, "-xzf", archive, "-C", tmp_path], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    files = {str(path.relative_to(tmp_path)): path for path in tmp_path.rglob("*") if path.is_file()}
    assert {name: path.read_bytes() for name, path in files.items()} == dict(pack(tape))
    assert {path.stat().st_mode & 0o777 for path in files.values()} == {0o600}
    listed = subprocess.run([*words, "-tzf", archive], capture_output=True, text=True, check=True).stdout
    assert listed.splitlines()[0] == "manifest.json"
    assert "tree/proc/1/stat" in listed


def test_python_reads_it(tape, archive):
    """Modes, times and owners are the same in each entry."""
    with tarfile.open(archive) as found:
        members = found.getmembers()
        assert {each.name: found.extractfile(each).read() for each in members} == dict(pack(tape))
    assert {(each.mode, each.uid, each.gid, each.mtime, each.type) for each in members} == {
        (0o600, 0, 0, 1_700_000_000, b"0")
    }


@pytest.mark.parametrize("words", [["."], ["*"], ["up"]], ids=["dot", "names", "directory"])
@pytest.mark.parametrize("form", ["gnu", "posix"])
def test_capture_that_was_packed_again_is_read(tape, archive, tmp_path, words, form):
    """Directories as entries, `./` before names, another order, pax attributes, a directory above all."""
    inner = tmp_path / "up"
    inner.mkdir()
    subprocess.run(["tar", "xzf", archive, "-C", inner], check=True)
    names = sorted(path.name for path in inner.iterdir()) if words == ["*"] else words
    again = tmp_path / "again.tar"
    place = tmp_path if words == ["up"] else inner
    subprocess.run(["tar", f"--format={form}", "-cf", again, "-C", place, *names], check=True)
    assert content(load_capture(str(again))) == content(tape)


def test_python_packs_it_again(tape, archive, tmp_path):
    """Tarfile writes names as pax attributes."""
    again = tmp_path / "again.tar.gz"
    with tarfile.open(again, "w:gz", format=tarfile.PAX_FORMAT) as made:
        for name, data in reversed(list(pack(tape))):
            info = tarfile.TarInfo(f"./{name}")
            info.size, info.mtime = len(data), 1.5
            made.addfile(info, io.BytesIO(data))
    assert content(load_capture(str(again))) == content(tape)


def test_unpacked_capture_is_read(tape, archive, tmp_path):
    """The directory, or the one above it; not a link in it, and no FIFO is waited for."""
    inner = tmp_path / "x"
    inner.mkdir()
    subprocess.run(["tar", "xzf", archive, "-C", inner], check=True)
    assert content(load_capture(str(inner))) == content(load_capture(f"{tmp_path}/")) == content(tape)
    for make, what in (
        (lambda path: path.symlink_to("/etc/passwd"), "has a symbolic link"),
        (os.mkfifo, "is not a plain file"),
        (lambda path: path.symlink_to("/proc"), "has a symbolic link"),
    ):
        make(inner / "tree" / "new")
        with pytest.raises(BadInput, match=what):
            load_capture(str(inner))
        (inner / "tree" / "new").unlink()
    with pytest.raises(BadInput, match="without manifest"):
        load_capture(str(inner / "tree" / "proc"))


def test_manifest_says_who_made_it_where_and_when(archive):
    """For people and other tools; what the machine did not tell is null."""
    with tarfile.open(archive) as found:
        about = json.load(found.extractfile("manifest.json"))
    assert {name: about[name] for name in ("opskit_capture", "host", "kernel", "boot_id", "processes", "hidden_values")} == {
        "opskit_capture": 1, "host": "web-1", "kernel": "5.14.0", "boot_id": None, "processes": ["shop", "a\nb"], "hidden_values": 3,
    }  # fmt: skip
    assert about["reader"] == {"uid": 0, "gid": 0, "namespaces": {"pid": "pid:[4026531836]"}}
    assert about["marks"] == [mark._asdict() for mark in MARKS]


def test_manifest_reads_the_machine():
    """A recording keeps what its manifest tells."""
    tape = Tape(Origin(), MARKS)
    read_for_manifest(RecordedHost(tape, ProcFS()).fs)
    about = json.loads(manifest_of(tape))
    assert about["kernel"] == os.uname().release
    assert len(about["boot_id"]) == 36
    assert about["reader"]["namespaces"]["pid"] == os.readlink("/proc/self/ns/pid")


def test_indexes_wait_until_they_are_asked_for(archive):
    """A command that reads files alone pays for no other kind; to look at one that is unknown is an error."""
    tape = load_capture(str(archive))
    assert tape.find(kinds.FILE, "/proc/1/stat", 1) == b"1 (systemd) R"
    assert kinds.STAT not in tape.answers._read
    assert tape.find(kinds.STAT, "/x", 1).inode == 4026531836
    with pytest.raises(KeyError):
        tape.answers["unknown"]
