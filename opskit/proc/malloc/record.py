"""What is known about a process's allocator."""

from __future__ import annotations

from opskit.records import NamedTuple


class Malloc(NamedTuple):
    """The process's allocator: glibc, musl, jemalloc, tcmalloc, mimalloc, Go; None: not recognised. Sizes in bytes; None: unknown.

    `system_bytes`: taken from the kernel by its arenas. `free_bytes`: free inside them, which no `free` gives back, as malloc_info(3)
    counts it (without the few KiB in each thread's cache); `top_bytes` of it could be trimmed. `resident_free_bytes`: still in memory.
    `unknown`: why the arenas are unknown ("malloc by elimination"); `incomplete`: why more may be free. `runtime`: Go, V8 or CPython, whose heap is beside malloc's.
    """

    name: str | None
    arenas: int | None = None
    arena_limit: int | None = None  # MALLOC_ARENA_MAX or 8 x CPUs
    system_bytes: int | None = None
    free_bytes: int | None = None
    top_bytes: int | None = None
    resident_free_bytes: int | None = None
    mmapped_bytes: int | None = None
    mmapped_blocks: int | None = None
    unknown: str | None = None
    incomplete: str | None = None
    runtime: str | None = None
