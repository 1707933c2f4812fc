"""Files that the user names, and standard input for `-`: plain or gzip, UTF-8 or UTF-16, read as a whole or in chunks.

Their names come from the command line: links are followed, a FIFO is waited for. All text comes as UTF-8 without a
byte order mark. Raises BadInput and NotPermitted. `command` is the opskit command that reads, for messages.
"""

from __future__ import annotations

import codecs
import os
import stat
import sys
from contextlib import suppress
from itertools import chain
from typing import TYPE_CHECKING, BinaryIO, cast

from opskit import shell
from opskit.errors import BadInput, NotPermitted
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

STDIN = "-"
LARGEST_BYTES = 1 << 30  # held in memory as a whole; a dump of a million virtual threads has 768 MiB
CHUNK_BYTES = 1 << 16
_FIRST_OF_A_PIPE_BYTES, _LONGEST_WAIT_S = 4096, 10
GZIP = b"\x1f\x8b"
_CAPTURE = b"manifest.json\0"  # the name of its first file
_OTHER_COMPRESSIONS = {
    b"\xfd7zXZ\0": "xzcat",
    b"BZh": "bzcat",
    b"\x28\xb5\x2f\xfd": "zstdcat",
    b"PK\x03\x04": "unzip -p",
}
_UTF_16 = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}  # what PowerShell's > writes


class UserFile(NamedTuple):
    """A file that is read in chunks. `head`: its first 64 KiB or more. `chunks()`: all of it, once for a pipe."""

    name: str
    head: bytes
    chunks: Callable[[], Iterator[bytes]]


class _Source(NamedTuple):
    path: str
    command: str

    @property
    def name(self) -> str:
        return source_name(self.path)

    def bad(self, problem: str) -> BadInput:
        return BadInput(self.name, problem)

    @property
    def too_large(self) -> BadInput:
        return self.bad(f"more than {LARGEST_BYTES >> 30} GiB, the most that is read at once; give it in parts")

    def through(self, *tool: str, quietly: bool = False) -> str:
        """The pipeline that reads this file through another program."""
        pipe = shell.Syntax("|")
        before: tuple[object, ...] = (*tool, *shell.operands(self.path))
        if self.path == STDIN:
            before = (shell.Syntax("…"), pipe, *tool)
        elif self.path.startswith("-") and tool[0] == "unzip":  # which takes `--` for something else
            before = (*tool, f"./{self.path}")
        errors = (shell.Syntax("2>/dev/null"),) if quietly else ()
        return shell.command(*before, *errors, pipe, "opskit", self.command, "-")


def exists(path: str) -> bool:
    """Whether there is a file of this name, a broken link included."""
    return os.path.lexists(path)


def size_bytes(path: str) -> int:
    """The size of a file; 0 for a pipe and for what is not there."""
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def is_directory(path: str) -> bool:
    """Whether there is a directory of this name."""
    return path != STDIN and os.path.isdir(path)


def is_read_once(path: str) -> bool:
    """Whether its content is gone when it was read: standard input, a FIFO, a socket, a terminal."""
    if path == STDIN:
        return True
    with suppress(OSError, ValueError):
        mode = os.stat(path).st_mode
        return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))
    return False


def modified_s(path: str) -> float | None:
    """When a regular file was last written, since the epoch; None for a pipe."""
    with suppress(OSError):
        found = os.stat(path)
        return found.st_mtime if path != STDIN and stat.S_ISREG(found.st_mode) else None
    return None


def source_name(path: str) -> str:
    """The name of a path in messages."""
    return "standard input" if path == STDIN else path


def read_text(path: str, command: str) -> str:
    """The whole text; of a binary only the beginning, to identify it. Bytes that are not UTF-8 come as surrogates."""
    return _read(_Source(path, command), whole_binary=False).decode("utf-8", "surrogateescape")


def read_bytes(path: str, command: str) -> bytes:
    """The same as bytes, a binary as a whole too."""
    return _read(_Source(path, command), whole_binary=True)


def open_files(paths: Sequence[str], command: str) -> list[UserFile]:
    """Open each of them and read its head."""
    for path, following in zip(sorted(paths), sorted(paths)[1:]):
        if path == following:
            raise BadInput(source_name(path), "named twice: its content would count twice")
    return [_open_file(_Source(path, command)) for path in paths]


def capture_chunks(path: str) -> Iterator[bytes]:
    """The bytes of a capture as they are, compressed. No device is opened, and no FIFO that nobody writes to is waited for."""
    source = _Source(path, "--from")
    if path == STDIN:
        if sys.stdin is not None and sys.stdin.isatty():
            raise source.bad("is a terminal; give the file of a capture")
        yield from _raw(source, _open(source))
        return
    mode = 0
    with suppress(OSError, ValueError):
        mode = os.stat(path).st_mode
    if stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
        raise source.bad("is a device; give the file of a capture")
    with _open_fifo(source) if stat.S_ISFIFO(mode) else _open(source) as file:
        yield from _raw(source, file)


def _open_fifo(source: _Source) -> BinaryIO:
    """A FIFO or pipe with data in it, or with none to come."""
    import select

    file = _open(source, lambda path, flags: os.open(path, flags | os.O_NONBLOCK))
    ready = select.poll()
    ready.register(file.fileno(), select.POLLIN)
    if not ready.poll(_LONGEST_WAIT_S * 1000):
        file.close()
        raise source.bad(
            f"is a FIFO, and nothing was written to it for {_LONGEST_WAIT_S} s; give the file of a capture"
        )
    os.set_blocking(file.fileno(), True)
    return file


def scratch_file() -> BinaryIO:
    """An unnamed temporary file without a buffer, for what is too large for the memory."""
    import tempfile

    return cast("BinaryIO", tempfile.TemporaryFile(prefix="opskit-", buffering=0))


def _open_file(source: _Source) -> UserFile:
    file = _open(source)
    chunks = _text(source, _raw(source, file))
    if source.path != STDIN and stat.S_ISREG(os.fstat(file.fileno()).st_mode):

        def again() -> Iterator[bytes]:
            with _open(source) as file:
                yield from _text(source, _raw(source, file))

        with file:
            return UserFile(source.name, b"".join(_until(chunks, CHUNK_BYTES)), again)
    first = list(_until(chunks, _FIRST_OF_A_PIPE_BYTES))
    return UserFile(source.name, b"".join(first), lambda: chain(first, chunks))


def _until(chunks: Iterator[bytes], size: int) -> Iterator[bytes]:
    for chunk in chunks:
        yield chunk
        size -= len(chunk)
        if size <= 0:
            return


def _open(source: _Source, opener: Callable[[str, int], int] | None = None) -> BinaryIO:
    if source.path == STDIN:
        if sys.stdin is None:
            raise source.bad("it is closed")
        return cast("BinaryIO", getattr(sys.stdin.buffer, "raw", sys.stdin.buffer))
    try:
        return cast("BinaryIO", open(source.path, "rb", buffering=0, opener=opener))
    except PermissionError:
        raise NotPermitted(f"cannot read {source.path}: permission denied; {_to_be_allowed()}") from None
    except IsADirectoryError:
        directory = f"./{source.path}" if source.path.startswith("-") else source.path
        inside = shell.quote(directory.rstrip("/")) if directory.strip("/") else ""
        raise source.bad(f"is a directory; name the files in it: {inside}/*") from None
    except (OSError, ValueError) as error:
        raise source.bad(f"cannot be read: {getattr(error, 'strerror', None) or error}") from None


def _to_be_allowed() -> str:
    from opskit.proc.fs import ProcFS
    from opskit.proc.rights import RUN_AS_ROOT, how_to_be_allowed

    advice = how_to_be_allowed(ProcFS(), "CAP_DAC_READ_SEARCH")
    return "run as its owner or as root" if advice == RUN_AS_ROOT else f"run as its owner, or: {advice}"


def _read(source: _Source, *, whole_binary: bool) -> bytes:
    file = _open(source)
    try:
        raw = _raw(source, file)
        beginning = next(raw, b"")
        chunks = _text(source, chain((beginning,), raw))
        head = next(chunks, b"")
        if not whole_binary and b"\0" in head:
            return head
        if (size := _size_of(file)) > LARGEST_BYTES:
            raise source.too_large
        if head is beginning and size > len(head):  # a plain file comes in one piece, which is not copied
            file.seek(-len(head), os.SEEK_CUR)
            return _joined(source, _raw(source, file, size + 1))
        return _joined(source, chain((head,), chunks))
    finally:
        if source.path != STDIN:
            file.close()


def _size_of(file: BinaryIO) -> int:
    """The size of a regular file; 0 for anything else, such as an object of Python's own."""
    with suppress(OSError):
        found = os.fstat(file.fileno())
        return found.st_size if stat.S_ISREG(found.st_mode) else 0
    return 0


def _joined(source: _Source, chunks: Iterable[bytes]) -> bytes:
    found, left = [], LARGEST_BYTES
    for chunk in chunks:
        found.append(chunk)
        left -= len(chunk)
        if left < 0:
            raise source.too_large
    return b"".join(found)


def _raw(source: _Source, file: BinaryIO, size: int = CHUNK_BYTES) -> Iterator[bytes]:
    try:
        while chunk := file.read(size):
            yield chunk
            size = min(size, CHUNK_BYTES * 16)
        if chunk is None:
            raise source.bad("cannot be read: no data yet, and it does not block; give a file or a pipe")
    except OSError as error:
        raise source.bad(f"cannot be read: {error.strerror}") from None


def _text(source: _Source, raw: Iterator[bytes]) -> Iterator[bytes]:
    """Decompressed, and UTF-8 without a byte order mark. A plain chunk comes as it is, not as a copy."""
    chunks = _decompressed(source, raw)
    first = next(chunks, b"")
    if first.startswith(_CAPTURE) and first[257:262] == b"ustar":
        through = shell.command("opskit", "--from", source.path, source.command)
        raise source.bad(f"is a capture; read it with {through}")
    if (encoding := _UTF_16.get(first[:2])) is None:
        yield from chain((first.removeprefix(codecs.BOM_UTF8),), chunks)
        return
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    for chunk in chain((first,), chunks):
        yield decoder.decode(chunk).replace("\ufeff", "").encode()  # >> writes a mark before each piece


def _decompressed(source: _Source, raw: Iterator[bytes]) -> Iterator[bytes]:
    first = next(raw, b"")
    if first.startswith(GZIP):
        return _gunzip(source, first, raw)
    for magic, tool in _OTHER_COMPRESSIONS.items():
        if first.startswith(magic):
            raise source.bad(f"is compressed; unpack it: {source.through(*tool.split())}")
    return chain((first,), raw)


def _gunzip(source: _Source, first: bytes, raw: Iterator[bytes]) -> Iterator[bytes]:
    import zlib

    try:
        yield from gunzip(first, raw)
    except EOFError:
        readable = source.through("zcat", quietly=True)
        raise source.bad(f"truncated gzip: unexpected end of data; read what there is with: {readable}") from None
    except zlib.error as error:
        raise source.bad(f"damaged gzip data ({error}); fetch the file again") from None


def gunzip(first: bytes, raw: Iterator[bytes]) -> Iterator[bytes]:
    """Every member of a gzip file, never more than a chunk at a time. Raises EOFError and zlib.error."""
    import zlib

    member, data = zlib.decompressobj(wbits=31), first
    while True:
        if text := member.decompress(data, CHUNK_BYTES):
            yield text
        data = member.unconsumed_tail
        if member.eof:
            data = member.unused_data.lstrip(b"\0") or next(raw, b"").lstrip(b"\0")
            if not data:
                return
            member = zlib.decompressobj(wbits=31)
        elif not data and not (data := next(raw, b"")):
            raise EOFError("truncated gzip")
