"""What tests/support/fuzz.py feeds to the reader of captures: archives, indexes, questions to the kernel, manifests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from captures import entry, full_tape, plain_tar

from opskit.jvm.attach.recorded import _error_of
from opskit.proc.recorded import manifest
from opskit.proc.recorded.layout import ODD, RANGES, REFUSED, SHAPES
from opskit.proc.recorded.packing import pack
from opskit.proc.recorded.replies import parse_times
from opskit.proc.recorded.store import unpack
from opskit.proc.recorded.tape import Failure
from opskit.proc.recorded.unarchive import read_archive

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FILES = dict(pack(full_tape()))
MANIFEST = FILES[manifest.NAME]
HEADS = {f"{shape.head}\n".encode(): kind for kind, shape in (*SHAPES.items(), ("refused", REFUSED), ("odd", ODD), ("ranges", RANGES))}  # fmt: skip


def everything(name: str, data: bytes) -> object:
    """All answers of a capture with this file."""
    return {kind: list(marks) for kind, marks in unpack(((manifest.NAME, MANIFEST), (name, data)), "x").answers.items()}


def index(data: bytes) -> object:
    """An index by its first line."""
    kind = HEADS.get(data[: data.find(b"\n") + 1], "link")
    return everything(f"index/1/{kind}.tsv", data)


def summed(data: bytes) -> Iterator[bytes]:
    """The archive as it is, then with right checksums wherever a header may stand: what is behind them is read, too."""
    yield data
    parts = []
    for at in range(0, len(data), 512):
        block = data[at : at + 512]
        if block[257:262] == b"ustar":
            parts.append(block[:148] + b"%06o\0 " % sum(block[:148].ljust(148) + b" " * 8 + block[156:]) + block[156:])
        else:
            parts.append(block)
    yield b"".join(parts)


def archive(data: bytes) -> object:
    """The last of both."""
    from opskit.errors import BadInput

    found: object = None
    for each in summed(data):
        try:
            found = list(read_archive("x", [each]))
        except BadInput as error:
            found = error
    if isinstance(found, BadInput):
        raise found
    return found


def register(target: Callable[..., Any]) -> None:
    """Register them."""
    samples = [data for name, data in FILES.items() if name.endswith(".tsv")]
    target("capture index", *samples, words=[b"\\x80", b"\\u0085", b"\t-\t", b"failed\t", b"yes", *HEADS])(index)
    target("capture calls", FILES["index/1/calls.jsonl"], words=[b'{"ask":"f()","answer":', b"\\ud800", b"NaN"])(
        lambda data: everything("index/1/calls.jsonl", data)
    )
    target("capture manifest", MANIFEST, words=[b"null", b"1e999", b'"marks": [', b'"origin": {', b"\\ud800"])(
        lambda data: manifest.parse_manifest(data, "x")
    )
    target("capture reply times", b"threads 1763948000.123\nthreads-2 1763948001.125\n")(parse_times)
    target("capture reply failure", b"stopped\ncannot attach\nline", b"\nno rights")(
        lambda data: _error_of(Failure(5, data.decode("latin-1")))
    )
    small = plain_tar(entry("manifest.json", MANIFEST[:20]), entry("tree/" + "a" * 120, b"1"), entry("./tree/b", b""))
    target("capture archive", small[:6144], words=[b"ustar\0", b"ustar  \0", b"../", b"00000000013\0", b"12 path=x\n"])(
        archive
    )
