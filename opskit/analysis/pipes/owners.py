"""Pipes by the user who made them, against fs.pipe-user-pages-soft. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from opskit.analysis.pipes.uses import Pipe

PAGES_OF_A_NEW_PIPE = 16  # fs/pipe.c, PIPE_DEF_BUFFERS


class OwnerUse(NamedTuple):
    """A user's pipes against fs.pipe-user-pages-soft. `capacity_bytes` sums what could be seen.

    `shrunk`: "yes" (new pipes of this user get 8 KiB), "no", "exempt" (root) or "unknown".
    """

    user: str
    uid: int
    pipes: int
    fds: int
    capacity_bytes: int | None
    soft_limit_bytes: int | None
    shrunk: str


def owners(
    pipes: Iterable[Pipe], user_name: Callable[[int], str], soft_pages: int | None, page_bytes: int
) -> list[OwnerUse]:
    """Per user who made them: pipes, fds, capacity, and whether the kernel already shrinks this user's new pipes."""
    groups: dict[int, list[Pipe]] = {}
    for pipe in pipes:
        uid = pipe.fill.uid if pipe.fill and pipe.fill.uid is not None else pipe.uses[0].process.uid
        groups.setdefault(-1 if uid is None else uid, []).append(pipe)
    rows = []
    for uid, members in groups.items():
        sizes = [pipe.fill.capacity_bytes for pipe in members if pipe.fill and pipe.fill.capacity_bytes is not None]
        capacity = sum(sizes) if sizes else None
        complete = len(sizes) == len(members)
        user, fds = "unknown" if uid < 0 else user_name(uid), sum(pipe.fds for pipe in members)
        limit = soft_pages * page_bytes if soft_pages else None
        shrunk = _shrunk(uid, capacity, complete, soft_pages, page_bytes)
        rows.append(OwnerUse(user, uid, len(members), fds, capacity, limit, shrunk))
    return sorted(rows, key=lambda row: (-row.fds, row.uid))


def _shrunk(uid: int, capacity: int | None, complete: bool, soft_pages: int | None, page_bytes: int) -> str:
    # fs/pipe.c, alloc_pipe_info: the user's pages, with those of the new pipe, against the soft limit; root is exempt.
    if uid == 0:
        return "exempt"
    if soft_pages == 0:
        return "no"
    if capacity is None or soft_pages is None or uid < 0:
        return "unknown"
    if capacity // page_bytes + PAGES_OF_A_NEW_PIPE > soft_pages:
        return "yes"
    return "no" if complete else "unknown"
