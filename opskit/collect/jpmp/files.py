"""Read saved thread dumps and profiles, plain or gzip; `-` is standard input."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.collect.jpmp.facts import CutOff, Facts
from opskit.errors import NothingFound
from opskit.proc.user_files import read_bytes, source_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opskit.jvm.dumps.dialects import DumpReader
    from opskit.jvm.dumps.thread_dump import ThreadDump
    from opskit.jvm.profiles import WeightedStack


def read_files(paths: Sequence[str], reader: DumpReader) -> Facts:
    """Read every file as what it is. Raises BadInput, NotPermitted, and NothingFound for a file without dump or profile."""
    dumps: list[ThreadDump] = []
    stacks: list[WeightedStack] = []
    cut_off: list[CutOff] = []
    for path in paths:
        source, data = source_name(path), read_bytes(path, "jpmp")
        if source.removesuffix(".gz").endswith((".folded", ".collapsed")):
            text = data.decode("utf-8", "surrogateescape")
            del data  # such files are big
            from opskit.jvm.profiles import parse_folded

            stacks += parse_folded(text, source)
            continue
        try:
            found = reader.read(data, source)
        except NothingFound:
            profile = read_profile(data.decode("utf-8", "surrogateescape"), source)
            if profile is None:
                raise
            stacks += profile
            continue
        dumps += found
        for number, dump in enumerate(found, 1):
            if dump.cut_off:
                whole = sum(bool(thread.stack.frames) for thread in dump.threads)
                cut_off.append(CutOff(source, number, len(found), whole))
    return Facts(dumps, stacks, tuple(paths), cut_off)


def read_profile(text: str, source: str) -> list[WeightedStack] | None:
    """The stacks of collapsed stacks or of `opskit jpmp -f json`; None if the text is neither. Raises BadInput."""
    from opskit.jvm import profiles

    if not text[:1000].lstrip().startswith("{"):
        return profiles.parse_folded(text, source) if profiles.is_folded(text) else None
    import json

    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return profiles.parse_profile(document, source) if profiles.is_profile(document) else None
