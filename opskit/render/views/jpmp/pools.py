"""What the threads of each pool wait for: sentences, and their fields in the JSON object."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.analysis.jpmp.pools import sentence, summed_singles
from opskit.quantities import plural
from opskit.render.fields import COUNT, Field, records

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opskit.analysis.jpmp.pools import Overview, Pool, Waiting

_ON_SCREEN, _ELSEWHERE = 5, 20  # pools
_MOST_WAITS = 3

_WAIT: Sequence[Field[Waiting]] = (
    Field("threads", COUNT, help="the median over the dumps"),
    Field("kind", value=lambda waiting: waiting.wait.kind, help="connection, answer, lock, future, permit, …"),
    Field("place", value=lambda waiting: waiting.wait.place, help="the method of the JDK or library that waits"),
    Field("caller", value=lambda waiting: waiting.wait.caller, help="the nearest method of the application"),
    Field("peer", help="address of the other end of the socket"),
    Field("dumps", COUNT, help="dumps that show such a thread"),
    Field("still", COUNT, help="threads in the same wait in every dump, without CPU time"),
)
POOL: Sequence[Field[Pool]] = (
    Field("name"),
    Field("threads", COUNT, help="in the last dump"),
    Field("idle", COUNT, help="of these, waiting for work"),
    Field("waits", records(_WAIT)),
    Field("sentence", value=lambda pool: sentence(pool) if pool.waits else None),
)


def lines(found: Overview | None, *, terminal: bool) -> list[str]:
    """A heading and a sentence for each pool with threads that wait in a request; empty where none do."""
    waiting = [] if found is None else summed_singles([pool for pool in found.pools if pool.waits])
    if found is None or not waiting:
        return []
    shown = waiting[: _ON_SCREEN if terminal else _ELSEWHERE]
    of = f" (median of {found.dumps} dumps)" if found.dumps > 1 else ""
    said = [f"what the threads of each pool wait for{of}:", *(sentence(pool, _MOST_WAITS) for pool in shown)]
    if rest := len(waiting) - len(shown):
        said.append(f"… {plural(rest, 'more pool waits', 'more pools wait')}; -f json has all")
    return said


def idle_line(found: Overview | None) -> list[str]:
    """A sentence where all threads are idle."""
    threads = 0 if found is None else sum(pool.threads for pool in found.pools)
    all_idle = found is not None and threads > 1 and threads == found.idle
    return [f"all {plural(threads, 'Java thread')} wait for work"] if all_idle else []
