"""Files that the user names: whole and in chunks, plain and gzip, in every encoding, with bounds and clear errors."""

from __future__ import annotations

import gzip
import io
import os
import resource
import subprocess
import sys
import threading

import pytest

from opskit.errors import BadInput, NotPermitted
from opskit.proc import user_files
from opskit.proc.user_files import open_files, read_bytes, read_text

TEXT = "zwölf Boxkämpfer\n" * 20_000
ENCODINGS = {
    "utf-8": TEXT.encode(),
    "utf-8 with a mark": b"\xef\xbb\xbf" + TEXT.encode(),
    "utf-16-le": ("\ufeff" + TEXT).encode("utf-16-le"),
    "utf-16-be": ("\ufeff" + TEXT).encode("utf-16-be"),
    "utf-16 appended with >>": ("\ufeff" + TEXT[:17] + "\ufeff" + TEXT[17:]).encode("utf-16-le"),
}
PACKED = {
    "plain": bytes,
    "gzip": gzip.compress,
    "members": lambda data: gzip.compress(data[:7]) + gzip.compress(data[7:]),
}


@pytest.fixture
def path(tmp_path):
    """A function that writes a file and gives its path."""

    def write(content, name="x"):
        (tmp_path / name).write_bytes(content)
        return str(tmp_path / name)

    return write


def stdin_of(monkeypatch, file):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(file))


@pytest.mark.parametrize("packed", PACKED)
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_every_reader_gives_the_same_text(path, monkeypatch, encoding, packed):
    """As a whole, in chunks, from standard input (a pipe, a file, an object of Python's own): UTF-8 without a mark."""
    data = PACKED[packed](ENCODINGS[encoding])
    name = path(data)
    assert read_text(name, "jmap-diff") == TEXT
    assert read_bytes(name, "jpmp") == TEXT.encode()
    [file] = open_files([name], "safepoints")
    assert TEXT.encode().startswith(file.head)
    for _ in range(2):  # a regular file can be read again
        assert b"".join(file.chunks()) == TEXT.encode()
    with subprocess.Popen(["cat", name], stdout=subprocess.PIPE) as pipe:
        stdin_of(monkeypatch, pipe.stdout)
        [file] = open_files(["-"], "safepoints")
        assert (file.name, file.head[:5]) == ("standard input", "zwöl".encode())
        assert b"".join(file.chunks()) == TEXT.encode()
    for stream in (io.BytesIO(data), open(name, "rb")):  # noqa: SIM115
        stdin_of(monkeypatch, stream)
        assert read_text("-", "jpmp") == TEXT


def test_standard_input_is_read_from_where_it_stands(path, monkeypatch):
    """`(read line; opskit jpmp -) < FILE`: reading continues where another program stopped."""
    with open(path(b"first\n" + b"x" * 200_000), "rb", buffering=0) as file:
        os.read(file.fileno(), 6)
        stdin_of(monkeypatch, io.BufferedReader(file))
        assert read_bytes("-", "jpmp") == b"x" * 200_000


def test_what_is_not_utf8_comes_as_surrogates(path):
    """In text; bytes stay unchanged."""
    assert read_text(path(b"a\xffb"), "jmap-diff") == "a\udcffb"
    assert read_bytes(path(b"a\xffb"), "jpmp") == b"a\xffb"


def test_of_a_binary_text_is_only_the_beginning(path):
    """A heap dump may be larger than the memory; gzipped ones too."""
    data = b"JAVA PROFILE 1.0.2\0" + bytes(1 << 20)
    for name in (path(data), path(gzip.compress(data), "x.gz")):
        assert read_text(name, "jmap-diff") == data[: user_files.CHUNK_BYTES].decode()
        assert read_bytes(name, "jpmp") == data


@pytest.mark.parametrize("command", ["jpmp", "jmap-diff"])
def test_a_file_that_is_too_large_is_not_read(opskit, path, command):
    """A sparse file of 3 GiB is refused at once."""
    name = path(b"x\n" * (1 << 17))
    os.truncate(name, 3 << 30)
    ran = opskit(command, name, name)
    assert (ran.code, ran.out) == (2, "")
    assert f"{name}: more than 1 GiB, the most that is read at once" in ran.err


def test_a_pipe_without_end_is_left(monkeypatch):
    """Standard input that never ends is read up to the limit."""
    monkeypatch.setattr(user_files, "LARGEST_BYTES", 5 << 20)
    with subprocess.Popen(["yes"], stdout=subprocess.PIPE) as endless:
        stdin_of(monkeypatch, endless.stdout)
        with pytest.raises(BadInput, match="standard input: more than"):
            read_text("-", "jmap-diff")
        endless.kill()


def test_a_zip_bomb_is_left(path, monkeypatch):
    """Gzip that grows a thousandfold is unpacked up to the limit, and in chunks a chunk at a time."""
    name = path(gzip.compress(b"x" * (64 << 20)))
    assert os.path.getsize(name) < 100_000
    monkeypatch.setattr(user_files, "LARGEST_BYTES", 5 << 20)
    for read in (read_text, read_bytes):
        with pytest.raises(BadInput, match="more than 0 GiB"):
            read(name, "jpmp")
    [file] = open_files([name], "safepoints")
    assert len(file.head) <= 2 * user_files.CHUNK_BYTES
    assert {len(chunk) for chunk in file.chunks()} == {user_files.CHUNK_BYTES}


def test_empty_members_cost_little(path):
    """50,000 of them within 2 s of CPU."""
    name = path(gzip.compress(b"") * 50_000 + gzip.compress(b"end"))
    begun = resource.getrusage(resource.RUSAGE_SELF).ru_utime
    assert read_bytes(name, "jpmp") == b"end"
    assert resource.getrusage(resource.RUSAGE_SELF).ru_utime - begun < 2


def test_a_fifo_is_waited_for(tmp_path):
    """`opskit safepoints <(…)`, and a FIFO by its name."""
    fifo = str(tmp_path / "fifo")
    os.mkfifo(fifo)

    def write():
        with open(fifo, "wb") as file:
            file.write(gzip.compress(TEXT.encode()))

    for read in (lambda: read_text(fifo, "jpmp"), lambda: b"".join(open_files([fifo], "x")[0].chunks()).decode()):
        writer = threading.Thread(target=write)
        writer.start()
        assert read() == TEXT
        writer.join()


READERS = {
    "read_text": read_text,
    "read_bytes": read_bytes,
    "open_files": lambda name, command: b"".join(open_files([name], command)[0].chunks()),
}
REFUSED = {
    "xz": (b"\xfd7zXZ\0" + bytes(9), "{}: is compressed; unpack it: xzcat {} | opskit jpmp -"),
    "bzip2": (b"BZh91AY", "{}: is compressed; unpack it: bzcat {} | opskit jpmp -"),
    "zstd": (b"\x28\xb5\x2f\xfd\1", "{}: is compressed; unpack it: zstdcat {} | opskit jpmp -"),
    "zip": (b"PK\x03\x04\1", "{}: is compressed; unpack it: unzip -p {} | opskit jpmp -"),
    "truncated gzip": (
        gzip.compress(os.urandom(100_000).hex().encode())[:-9],
        "{}: truncated gzip: unexpected end of data; read what there is with: zcat {} 2>/dev/null | opskit jpmp -",
    ),
    "damaged gzip": (b"\x1f\x8b\x08\0" + b"\xff" * 50, "{}: damaged gzip data (Error -3"),
}


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_unpacked_names_the_command(path, case, read):
    """The same message from each reader, with a pipeline that can be typed."""
    content, said = REFUSED[case]
    name = path(content)
    with pytest.raises(BadInput) as refused:
        READERS[read](name, "jpmp")
    assert said.format(name, name) in str(refused.value)


@pytest.mark.parametrize("read", READERS)
def test_what_cannot_be_opened_is_named(tmp_path, monkeypatch, read):
    """A missing file, a directory, a closed standard input, an input/output error."""
    monkeypatch.setattr(sys, "stdin", None)
    for name, said in [
        (f"{tmp_path}/none", f"{tmp_path}/none: cannot be read: No such file or directory"),
        (f"{tmp_path}/none/x", f"{tmp_path}/none/x: cannot be read: No such file or directory"),
        (str(tmp_path), f"{tmp_path}: is a directory; name the files in it: {tmp_path}/*"),
        ("/", "/: is a directory; name the files in it: /*"),
        ("-", "standard input: it is closed"),
        ("/proc/self/mem", "/proc/self/mem: cannot be read: Input/output error"),
    ]:
        with pytest.raises(BadInput) as refused:
            READERS[read](name, "jpmp")
        assert str(refused.value) == said


@pytest.mark.parametrize("read", READERS)
def test_a_file_that_we_may_not_read_names_who_may(path, monkeypatch, read):
    """Permission denied, and the advice that fits our rights."""

    def refuse(*_args, **_options):
        raise PermissionError(13, "Permission denied")

    name = path(b"x")
    monkeypatch.setattr(user_files, "open", refuse, raising=False)
    with pytest.raises(NotPermitted, match=r"cannot read .*: permission denied; run as its owner"):
        READERS[read](name, "jpmp")


def test_standard_input_that_does_not_block_is_refused(monkeypatch):
    """A pipe without data yet is an error, not an empty file."""
    end, other = os.pipe()
    os.set_blocking(end, False)
    with open(end, "rb") as stream, open(other, "wb"):
        stdin_of(monkeypatch, stream)
        with pytest.raises(BadInput, match="standard input: cannot be read: no data yet"):
            read_bytes("-", "jpmp")


def test_a_file_that_is_named_twice_is_refused(path):
    """Its content would count twice."""
    name = path(b"x")
    with pytest.raises(BadInput, match="named twice"):
        open_files([name, "/", name], "safepoints")
