"""A fuzz target: answers to questions, as an archive may claim them."""

from __future__ import annotations

import json
from contextlib import suppress

from opskit.errors import OpskitError
from opskit.proc.recorded import answers
from opskit.proc.recorded.answers import encode
from opskit.proc.recorded.calls import given
from opskit.proc.recorded.manifest import parse_json

_ANSWERS = (
    (100, 65536, (1, 2, 4480, 0, 0, 1, 0, 0, 0, 0)),
    ("TIME_OK", 64, 0.0, 16.0, 16.0, 0.0, 37),
    (frozenset({0, 1, 2, 7}), b"\0\xff", b"text", None, True),
    [b"\0" * 5000, b"x"],
)
_KINDS = (
    *answers._RECORDS,
    *(
        "tuple[int, int, FileId]",
        "dict[str, tuple[int | None, ...]]",
        "frozenset[int]",
        "list[bytes]",
        "str | None",
        "bytes",
    ),
)


def read(data):
    """An answer as one of each type: what does not fit is refused."""
    held = parse_json(data, "calls.jsonl")
    for kind in _KINDS:
        with suppress(OpskitError):
            given(held, kind)


def register(target):
    """Add the target."""
    samples = [json.dumps(["answer", encode(each)]).encode() for each in _ANSWERS]
    target("recorded answer", *samples, b'["error","NotSupported","no"]', words=(b"null", b'"base64"', b'"deflated"'))(
        read
    )
