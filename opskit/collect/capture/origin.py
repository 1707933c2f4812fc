"""Where and by whom a capture is made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit import __version__
from opskit.proc.recorded.tape import Origin

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opskit.host import Host


def origin_of(host: Host, words: Sequence[str], *, asked: bool) -> Origin:
    """What commands depend on, of the machine and of who reads it. `words`: the processes that are asked about."""
    fs, (euid, egid) = host.fs, host.our_ids
    return Origin(
        proc=fs.proc, root=fs.root, is_live=fs.is_live, has_our_root=fs.has_our_root, is_own=fs.is_own(), euid=euid, egid=egid,
        page_bytes=host.page_bytes, clock_ticks=host.clock_ticks, machine=host.machine, node_name=host.name,
        uses_nss=fs.uses_nss, words=tuple(words), asked=asked, version=__version__,
    )  # fmt: skip
