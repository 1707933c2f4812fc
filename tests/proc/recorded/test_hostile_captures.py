"""Captures that strangers made: each is refused with one line, quickly, and nothing is written or hung on."""

from __future__ import annotations

import gzip
import json
import os
import resource
import tarfile
import time
import zlib

import pytest
from captures import archive_of, capture_bytes, entry, full_tape, plain_tar

from opskit.errors import BadInput
from opskit.proc.recorded.manifest import manifest_of
from opskit.proc.recorded.packing import pack
from opskit.proc.recorded.store import load_capture, unpack
from opskit.proc.recorded.unarchive import read_archive

TAPE = full_tape()
MANIFEST = entry("manifest.json", manifest_of(TAPE))
GOOD = capture_bytes(TAPE)
LINK = {"linkname": "/etc/passwd"}
WRONG_SUM = bytearray(plain_tar(MANIFEST, entry("tree/a", b"1")))
WRONG_SUM[512 + -(-len(MANIFEST[1]) // 512) * 512] ^= 1  # in the name of the second file


def refused(data, name="x"):
    """The error's text, of one line."""
    with pytest.raises(BadInput) as error:
        unpack(read_archive(name, [data]), name)
    assert "\n" not in str(error.value)
    return str(error.value)


def pax(**records):
    made = tarfile.TarInfo("tree/a")
    made.pax_headers = {key.replace("__", "."): value for key, value in records.items()}
    return plain_tar(MANIFEST, (made, b""), form=tarfile.PAX_FORMAT)


def sparse():
    made, data = entry("tree/a", b"x" * 512, tarfile.GNUTYPE_SPARSE)
    return plain_tar(MANIFEST, (made, data))


@pytest.mark.parametrize(
    ("data", "what"),
    [
        pytest.param(b"", "is empty", id="empty"),
        pytest.param(b"\0" * 10240, "no manifest", id="zeros"),
        pytest.param(b"hello, world\n" * 100, "is not a capture", id="text"),
        pytest.param(gzip.compress(b"hello, world\n" * 100), "is not a capture", id="gzipped text"),
        pytest.param(GOOD[: len(GOOD) // 2], "end in the middle", id="half a gzip"),
        pytest.param(GOOD[:-4], "end in the middle", id="gzip without its size"),
        pytest.param(GOOD[:-8] + b"\0" * 4 + GOOD[-4:], "damaged gzip", id="wrong gzip checksum"),
        pytest.param(GOOD[:100] + b"\xff" * 50 + GOOD[150:], "damaged gzip", id="damaged gzip"),
        pytest.param(GOOD + b"more", "damaged gzip", id="data behind the gzip"),
        pytest.param(plain_tar(MANIFEST)[:700], "ends in the middle of a file", id="half a file"),
        pytest.param(plain_tar(MANIFEST)[:2048], "ends in the middle", id="no end"),
        pytest.param(bytes(WRONG_SUM), "checksum is wrong", id="wrong header checksum"),
        pytest.param(plain_tar(MANIFEST) + b"x" * 512, "behind the end", id="data behind the end"),
        pytest.param(archive_of(MANIFEST, entry("tree/a", b"", tarfile.SYMTYPE, **LINK)), "has a symbolic link", id="symbolic link"),
        pytest.param(archive_of(MANIFEST, entry("tree/a", b"", tarfile.LNKTYPE, **LINK)), "has a hard link", id="hard link"),
        pytest.param(archive_of(MANIFEST, entry("tree/a", b"", tarfile.CHRTYPE)), "has a device", id="character device"),
        pytest.param(archive_of(MANIFEST, entry("tree/a", b"", tarfile.BLKTYPE)), "has a device", id="block device"),
        pytest.param(archive_of(MANIFEST, entry("tree/a", b"", tarfile.FIFOTYPE)), "has a FIFO", id="FIFO"),
        pytest.param(sparse(), "has a sparse file", id="sparse"),
        pytest.param(pax(GNU__sparse__major="1", GNU__sparse__minor="0"), "GNU.sparse", id="sparse by pax"),
        pytest.param(archive_of(MANIFEST, entry("tree/a", b"", b"Z")), "unknown type", id="unknown type"),
        pytest.param(archive_of(MANIFEST, entry("../a")), "leads out of its directory", id="dot-dot first"),
        pytest.param(archive_of(MANIFEST, entry("tree/x/../../a")), "leads out of its directory", id="dot-dot inside"),
        pytest.param(archive_of(MANIFEST, entry("tree/..")), "leads out of its directory", id="dot-dot last"),
        pytest.param(archive_of(MANIFEST, entry("..", b"", tarfile.DIRTYPE)), "leads out of its directory", id="dot-dot directory"),
        pytest.param(archive_of(MANIFEST, entry("./../a")), "leads out of its directory", id="dot-dot after a dot"),
        pytest.param(archive_of(MANIFEST, entry("/etc/passwd")), "absolute name", id="absolute"),
        pytest.param(archive_of(MANIFEST, entry(".//etc/passwd")), "absolute name", id="absolute after a dot"),
        pytest.param(archive_of(MANIFEST, entry("tree//a")), "simplest form", id="two slashes"),
        pytest.param(archive_of(MANIFEST, entry("tree/" + "a" * 5000)), "has a name of 5,005 characters", id="long name"),
        pytest.param(archive_of(MANIFEST, entry("x" * 100_000)), "has a name or attributes of", id="huge name"),
        pytest.param(pax(path="../../etc/passwd"), "leads out of its directory", id="dot-dot by pax"),
        pytest.param(pax(size="7"), "change a file's size", id="size by pax"),
        pytest.param(archive_of(MANIFEST, entry("tree/a"), entry("tree/a")), "two files of one name", id="two files of one name"),
        pytest.param(archive_of(MANIFEST, entry("tree/a"), entry("./tree/a")), "two files of one name", id="two, one with a dot"),
        pytest.param(archive_of(MANIFEST, MANIFEST), "two files of one name", id="two manifests"),
        pytest.param(archive_of(entry("tree/a")), "no manifest.json", id="no manifest"),
        pytest.param(archive_of(*(entry(f"src/{number}.c") for number in range(1100))), "no manifest.json", id="another archive"),
        pytest.param(archive_of(entry("sosreport-web-1/sos_commands/x")), "is an sos report", id="sos report"),
        pytest.param(archive_of(MANIFEST, entry("samples/3/proc/stat")), "only 2 samples", id="sample 3 of 2"),
        pytest.param(archive_of(MANIFEST, entry("samples/x/proc/stat")), "belongs to no sample", id="sample x"),
        pytest.param(archive_of(MANIFEST, entry("samples/99999999999/a")), "belongs to no sample", id="sample of many digits"),
        pytest.param(archive_of(MANIFEST, entry("index/1/unknown.tsv")), "unknown index", id="unknown index"),
        pytest.param(archive_of(MANIFEST, entry("attach/7/threads")), "no reply", id="a reply without .txt"),
    ],
)  # fmt: skip
def test_archive_is_refused(data, what):
    """One line that says what was found."""
    assert what in refused(data)


def index(name, data):
    return archive_of(MANIFEST, entry(f"index/1/{name}", data))


@pytest.mark.parametrize(
    ("name", "data", "what"),
    [
        pytest.param("link.tsv", b"", "does not begin with", id="empty"),
        pytest.param("link.tsv", b"path\ttarget\tmore\n", "link.tsv:1: does not begin with", id="other fields"),
        pytest.param("link.tsv", b"path\ttarget\n/x\t/y", "no end of line", id="no end of line"),
        pytest.param("link.tsv", b"path\ttarget\n/x\t/y\n/x\n", "link.tsv:3: the fields of a line", id="a field too few"),
        pytest.param("link.tsv", b"path\ttarget\n/x\t/y\t\n", "link.tsv:2: the fields", id="a field too many"),
        pytest.param("link.tsv", b"path\ttarget\n/x\t\xff\n", "link.tsv:2: is not UTF-8", id="not UTF-8"),
        pytest.param("link.tsv", b"path\ttarget\n/x\t\\ud800\n", "a backslash", id="half a surrogate pair"),
        pytest.param("link.tsv", b"path\ttarget\n/x\ta\x1b[0m\n", "control characters", id="control characters"),
        pytest.param("names.tsv", b"path\tnames\n" + b"\n" * (3 << 20), "more than the 2,097,152", id="many lines"),
        pytest.param("names.tsv", b"path\tnames\n/x" + b"\tab" * (1 << 21) + b"\n", "more than 1,048,576 names", id="many names"),
        pytest.param("calls.jsonl", b"[],[],[]," * (1 << 20), "lists and objects", id="many lists"),
        pytest.param("stat.tsv", b"path\tx\n", "does not begin with", id="stat of other fields"),
        pytest.param("pages.tsv", b"path\tpages\n/x\t1e9\n", "the fields", id="no number"),
        pytest.param("pages.tsv", b"path\tpages\n/x\t" + b"9" * 5000 + b"\n", "the fields", id="a huge number"),
        pytest.param("entries.tsv", b"path\tentries\n/x\tda\n/y\tda\txb\n", "entries.tsv:3: the fields", id="unknown kind of entry"),
        pytest.param("fds.tsv", b"path\tfd\tmode\ttarget\n/x\t1\t9\tx\n", "the fields", id="mode that is not octal"),
        pytest.param("fds.tsv", b"path\tfd\tmode\ttarget\n/x\t\\xff\t1\tx\n", "the fields", id="fd that is no number"),
        pytest.param("writable.tsv", b"path\tanswer\n/x\tmaybe\n", "the fields", id="neither yes nor no"),
        pytest.param("refused.tsv", b"path\tkind\terrno\tname\thow\twhy\n/x\tno\t2\t\t-\n", "the fields", id="unknown kind"),
        pytest.param("odd.tsv", b"path\tkind\tfile\n/x\tfile\t1\n", "lacks a file", id="a file that is not there"),
        pytest.param("ranges.tsv", b"path\toffset\tsize\tat\n/x\t0\t5\t0\n", "outside of memory.bin", id="outside of the memory"),
        pytest.param("calls.jsonl", b"{}\n{", "no end of line", id="no end of a question"),
        pytest.param("calls.jsonl", b"{}\n", "calls.jsonl:1: is not a question", id="no question"),
        pytest.param("calls.jsonl", b'{"ask":"f()","answer":1}\n{"ask":"f()","answer":2}\n', "calls.jsonl:2: a question", id="a question twice"),
        pytest.param("calls.jsonl", b"{'ask'}\n", "is not JSON", id="no JSON"),
        pytest.param("calls.jsonl", b'{"ask":"f()","answer":NaN}\n', "NaN is not a number", id="NaN"),
        pytest.param("calls.jsonl", b'{"ask":"f()","answer":"\\uD800"}\n', "surrogates not allowed", id="half a surrogate pair as an escape"),
        pytest.param("calls.jsonl", b'{"ask":"f()","answer":1e999}\n', "1e999 is not a number", id="infinite"),
        pytest.param("calls.jsonl", b'{"ask":"f()","answer":"\xed\xa0\x80"}\n', "is not JSON", id="half a surrogate pair as bytes"),
        pytest.param("calls.jsonl", b'{"ask":"f()","answer":' + b"[" * 100_000 + b"\n", "nested too deeply", id="deep"),
        pytest.param("calls.jsonl", b'{"ask":"f()","answer":' + b"9" * 100_000 + b"}\n", "more than 400 digits", id="many digits"),
    ],
)  # fmt: skip
def test_index_is_refused(name, data, what):
    """The place, and what was found there."""
    assert what in refused(index(name, data))


def changed(**values):
    about = json.loads(manifest_of(TAPE))
    for name, value in values.items():
        inner, _, field = name.partition("__")
        if field:
            about[inner][field] = value
        else:
            about[name] = value
    return json.dumps(about).encode()


@pytest.mark.parametrize(
    ("data", "what"),
    [
        pytest.param(b"", "is not JSON", id="empty"),
        pytest.param(b"\xff", "is not JSON", id="bytes"),
        pytest.param(b"[]", "is not the manifest", id="list"),
        pytest.param(b"[" * 100_000, "nested too deeply", id="deep"),
        pytest.param(b" " * (2 << 20), "more than a manifest", id="large"),
        pytest.param(changed(opskit_capture=2), "has format 2; this opskit reads formats up to 1: update opskit", id="newer"),
        pytest.param(changed(opskit_capture="1"), "not the number of a format", id="text for a number"),
        pytest.param(changed(opskit_capture=True), "not the number of a format", id="true for a number"),
        pytest.param(changed(origin=[]), "`origin` is not an object", id="origin"),
        pytest.param(changed(origin__clock_ticks=0), "`origin.clock_ticks`", id="no ticks"),
        pytest.param(changed(origin__page_bytes=4097), "power of two", id="odd pages"),
        pytest.param(changed(origin__page_bytes=4096.0), "`origin.page_bytes`", id="fraction of a page"),
        pytest.param(changed(origin__euid=-1), "`origin.euid`", id="negative uid"),
        pytest.param(changed(origin__is_live=1), "`origin.is_live`", id="1 for true"),
        pytest.param(changed(origin__root=None), "`origin.root`", id="null for text"),
        pytest.param(changed(origin__root="\ud800"), "surrogates not allowed", id="half a surrogate pair"),
        pytest.param(changed(origin__node_name="x" * 5000), "`origin.node_name`", id="long text"),
        pytest.param(changed(origin__words=[["a"]]), "`origin.words`", id="list for text"),
        pytest.param(changed(marks=[]), "`marks` is not a list", id="no marks"),
        pytest.param(changed(marks=[[1, 2]]), "not a pair of times", id="marks without names"),
        pytest.param(changed(marks=[{"wall_s": "1", "monotonic_s": 1}]), "not a pair of times", id="text for a time"),
        pytest.param(changed(marks=[{"wall_s": 1e300, "monotonic_s": 1}]), "not a pair of times", id="far future"),
        pytest.param(changed(marks=[{"wall_s": 1, "monotonic_s": 2}, {"wall_s": 2, "monotonic_s": 1}]), "not in order", id="backwards"),
    ],
)  # fmt: skip
def test_manifest_is_refused(data, what):
    """A value of the wrong type, or one that no machine has, is named."""
    assert what in refused(archive_of(entry("manifest.json", data)))


def test_unknown_field_of_the_manifest_is_passed_over():
    """A later opskit may say more about the same format."""
    made = changed(origin__later=[1], later={"x": 1})
    assert unpack(read_archive("x", [archive_of(entry("manifest.json", made))]), "x").origin == TAPE.origin


def bomb(head, mib):
    """Gzip data of a head and 10 GiB, of the same MiB again and again."""
    squeeze = zlib.compressobj(9, zlib.DEFLATED, 31)
    yield squeeze.compress(head) + squeeze.flush(zlib.Z_FULL_FLUSH)
    piece = squeeze.compress(mib) + squeeze.flush(zlib.Z_FULL_FLUSH)
    for _ in range(10 << 10):
        yield piece


def header(size):
    made = tarfile.TarInfo("tree/a")
    made.size = size
    return made.tobuf()


@pytest.mark.parametrize(
    ("head", "mib", "what"),
    [
        pytest.param(b"", b"\0" * (1 << 20), "behind the end", id="zeros"),
        pytest.param(header(1 << 30), b"\0" * (1 << 20), "times its size", id="a file of zeros"),
        pytest.param(header(7 << 30), b"\0" * (1 << 20), "more than 1 GiB", id="a file above the limit"),
        pytest.param(b"", header((1 << 20) - 512) + b" " * ((1 << 20) - 512), "two files", id="files of blanks"),
        pytest.param(b"", b"\n" * (1 << 20), "not a capture", id="no archive"),
    ],
)
def test_bombs_are_refused_early(head, mib, what):
    """10 GiB in 10 MiB: little of it is unpacked."""
    before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    with pytest.raises(BadInput, match=what):
        unpack(read_archive("x", bomb(head, mib)), "x")
    assert time.process_time() - began < 1
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 120 << 10


def test_number_of_entries_is_bounded(monkeypatch):
    """Directories count, too."""
    monkeypatch.setattr("opskit.proc.recorded.unarchive.MOST_FILES", 10)
    assert "more than 10 files" in refused(archive_of(MANIFEST, *[entry("tree/a", b"", tarfile.DIRTYPE)] * 10))


def test_files_that_need_no_room_are_refused_early(monkeypatch):
    """A million empty files in a few MB: reading them would take seconds."""
    monkeypatch.setattr("opskit.proc.recorded.unarchive._FREE_FILES", 1000)
    first = entry("tree/a")[0].tobuf(tarfile.GNU_FORMAT)
    with pytest.raises(BadInput, match="more than its size allows"):
        for _ in read_archive("x", [gzip.compress(first * 5000, 1)]):
            pass


def test_devices_and_fifos_are_refused(tmp_path, monkeypatch):
    """No read of them waits."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    monkeypatch.setattr("opskit.proc.user_files._LONGEST_WAIT_S", 0.01)
    for path, what in (
        (fifo, "is a FIFO, and nothing was written"),
        ("/dev/zero", "is a device"),
        (tmp_path / "none", "No such file"),
        ("a\0b", "cannot be read"),
    ):
        with pytest.raises(BadInput, match=what):
            load_capture(str(path))


def test_capture_in_a_pipe_is_read():
    """`--from <(ssh web-1 cat x.tar.gz)` works."""
    read_end, write_end = os.pipe()
    small = archive_of(*(entry(name, data) for name, data in pack(TAPE)))
    os.write(write_end, small)
    os.close(write_end)
    try:
        assert load_capture(f"/dev/fd/{read_end}").origin == TAPE.origin
    finally:
        os.close(read_end)


def test_command_ends_with_one_line(inprocess, tmp_path):
    """Exit code 2; a name in the archive cannot act on the terminal."""
    path = tmp_path / "x.tar.gz"
    path.write_bytes(archive_of(MANIFEST, entry("tree/\x1b[31m\n/../a")))
    done = inprocess("--from", str(path), "jvms")
    assert (done.code, done.out) == (2, "")
    (line,) = done.err.splitlines()
    assert line.startswith(f"opskit: {path}: has a name that leads out of its directory; ")
    assert "\x1b" not in line
