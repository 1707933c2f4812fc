"""Addresses whose use is known: what a runtime, an allocator or the kernel says about a part of an address space."""

from __future__ import annotations

from opskit.records import NamedTuple

# What memory is used for, in the order of the table. A JVM's, an allocator's, any program's.
KINDS = {
    "java-heap": "Java heap",
    "metaspace": "metaspace",
    "class-space": "compressed class space",
    "code-cache": "code cache",
    "gc": "GC structures",
    "cds": "CDS archive",
    "vm-structures": "JVM structures",
    "thread-stacks": "thread stacks",
    "malloc-arenas": "malloc arenas",
    "malloc-mmapped": "malloc, large blocks",
    "runtime-heap": "heap of the language's runtime",  # Go, Node, an allocator with mappings of its own
    "mapped-files": "mapped files",
    "libraries": "libraries and programs",
    "shared-memory": "shared memory",
    "named": "named anonymous memory",  # [anon:NAME]
    "kernel": "kernel mappings",  # [vdso], [vvar]
    "unnamed": "other anonymous memory",
}


class Range(NamedTuple):
    """Addresses from `start` to below `end`, for one of KINDS. Ranges of one process may not overlap."""

    start: int
    end: int
    kind: str
