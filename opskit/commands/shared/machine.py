"""The machine that a command reads: this one, a tree (--root, --proc), or a capture (--from)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from opskit.errors import UsageError
from opskit.host import Host
from opskit.quantities import plural

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from opskit.recorded_host import RecordedHost

_LOADED = "opskit.captured"


def open_machine(root: str | None, proc: str | None, captures: Sequence[str]) -> Host:
    """The host of these options, of the command or of opskit itself, or the one that is the `obj` of the outermost context.

    Raises UsageError, BadInput.
    """
    context = click.get_current_context()
    top = context.find_root()
    if isinstance(top.obj, Host):
        return top.obj
    outer = top.params
    captures = tuple(dict.fromkeys((*(outer.get("captures") or ()), *captures)))
    if not captures:
        return Host.at(root or outer.get("root"), proc or outer.get("proc"))
    if "" in captures:
        raise UsageError("--from names no file; give the file of a capture")
    if len(captures) > 1:
        raise UsageError(f"--from is given twice: {captures[0]} and {captures[1]}; give one capture")
    for name, value in (("--root", root or outer.get("root")), ("--proc", proc or outer.get("proc"))):
        if value:
            raise UsageError(f"--from and {name} exclude each other: choose one")
    return _captured(context, captures[0])


def _captured(context: click.Context, path: str) -> RecordedHost:
    """The host of a capture, which is read once: a WORD for opskit itself was searched for in it."""
    host: RecordedHost | None = context.meta.get(_LOADED)
    if host is None:
        from opskit.proc.recorded.store import load_capture
        from opskit.recorded_host import RecordedHost

        host = context.meta[_LOADED] = RecordedHost(load_capture(path), path=path)
    host.rewind()
    return host


def line_about(host: Host) -> str:
    """What a capture is of: `capture of web-1, 2026-11-24T01:12:25Z, 2 samples, 1.0 s apart`."""
    count = host.samples
    apart = f", {host.sample_gap_s:.1f} s apart" if count > 1 else ""
    return f"capture of {host.name}, {host.now():%Y-%m-%dT%H:%M:%SZ}, {plural(count, 'sample')}{apart}"


def option_values(words: Iterable[str], *names: str) -> list[str | None]:
    """The values of options in a command line that is not parsed yet."""
    found: dict[str, str | None] = {}
    rest = iter(words)
    for word in rest:
        name, _, value = word.partition("=")
        if word == "--":
            break
        if name in names:
            found[name] = value if "=" in word else next(rest, None)
    return [found.get(name) for name in names]


def without_capture(words: Iterable[str]) -> list[str]:
    """A command line as it was on the captured machine: without --from."""
    kept: list[str] = []
    rest = iter(words)
    for word in rest:
        if word == "--":
            return [*kept, word, *rest]
        if word == "--from":
            next(rest, None)
        elif not word.startswith("--from="):
            kept.append(word)
    return kept
