"""The machine that a word of `opskit compare` means: `live`, a capture, an sos report, or a copied tree."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.collect.compare.collect import collect_side
from opskit.collect.compare.facts import Facts
from opskit.collect.sos.report import is_sos, sos_host
from opskit.proc.recorded.store import load_capture
from opskit.proc.user_files import STDIN
from opskit.recorded_host import RecordedHost

if TYPE_CHECKING:
    from collections.abc import Callable

    from opskit.collect.compare.facts import Machine
    from opskit.host import Host

LIVE, CAPTURE, SOS, COPY = "live", "capture", "sos report", "copy"
WINDOW_S = 1.0  # of a live machine, where no capture says how long
_LEAST_S, _MOST_S = 0.5, 30.0


def collect(bad: str, good: str, here: Host, progress: Callable[[str], None] = lambda _: None) -> Facts:
    """Both sides; `live` is the machine `here`, sampled as long as the other one was. Raises BadInput, NotPermitted."""
    words = (bad, good)
    opened = {word: (here, _kind(here)) if word == LIVE else open_side(word) for word in dict.fromkeys(words)}
    windows = [
        host.tape.marks[-1].monotonic_s - host.tape.marks[0].monotonic_s
        for host, kind in opened.values()
        if isinstance(host, RecordedHost)
    ]
    window_s = min(_MOST_S, max(_LEAST_S, *windows)) if windows else WINDOW_S
    sides: dict[str, Machine] = {}
    for word, (host, kind) in opened.items():
        progress(f"reading {word}")
        sides[word] = collect_side(host, word, kind, window_s)._replace(options=_options(host, kind))
    return Facts(sides[bad], sides[good])


def _options(host: Host, kind: str) -> tuple[str, ...] | None:
    """The options with which another command reads this machine; None: none can."""
    if isinstance(host, RecordedHost):
        return None if kind == SOS or host.capture == STDIN else ("--from", host.capture)
    if host.fs.root:
        return "--root", host.fs.root
    return () if host.fs.is_live else ("--proc", host.fs.proc)


def _kind(here: Host) -> str:
    return CAPTURE if here.is_recorded else LIVE if here.fs.is_live else COPY


def open_side(word: str) -> tuple[Host, str]:
    """The host of a file or directory, and what it is."""
    if is_sos(word):
        return sos_host(word), SOS
    return RecordedHost(load_capture(word), path=word), CAPTURE
