"""Suspects: which is first, what its sentence says, and what a healthy process does not have."""

from __future__ import annotations

from types import MappingProxyType

import memfacts
import pytest
from memfacts import MIB, mib

from opskit import catalog
from opskit.analysis.mem import headroom
from opskit.analysis.mem.suspects import is_waste, suspects, trim_command
from opskit.collect.mem.facts import Malloc, Member, Part, Row, Unheld

LEVEL = memfacts.ORDERS._replace(cache_bytes=4 * MIB)
SMALL = (  # a JVM that has just started
    Row("java-heap", memfacts.usage(20), 256 * MIB, 1),
    Row("metaspace", memfacts.usage(8), 64 * MIB, 1),
    Row("class-space", memfacts.usage(1), 1024 * MIB, 1),
    Row("code-cache", memfacts.usage(7), 240 * MIB, 3),
    Row("gc", memfacts.usage(4), 12 * MIB, 5),
    Row("thread-stacks", memfacts.usage(2.1), 24 * MIB, 24),
    Row("malloc-arenas", memfacts.usage(14), 700 * MIB, 8),
    Row("malloc-mmapped", memfacts.usage(3), 4 * MIB, 2),
    Row("libraries", memfacts.usage(16, 9, anonymous=2), 40 * MIB, 40),
)


def small(*, jvm=True, malloc=None, members=(), unheld=(), parts=(), direct=0, loaders=40, release="21.0.8", **held):
    """A small JVM (or another program) with these rows in MiB instead, by kind with _ for -."""
    rows = {row.kind: row for row in SMALL if jvm or not row.kind.startswith(("java", "meta", "class", "code", "gc"))}
    for kind, amount in held.items():
        name = kind.replace("_", "-")
        used = amount if isinstance(amount, tuple) else memfacts.usage(amount)
        rows[name] = Row(name, used, used.rss_bytes, 300 if name == "thread-stacks" else 1)
    machine = memfacts.JVM._replace(direct_bytes=mib(direct), class_loaders=loaders, release=release) if jvm else None
    return memfacts.facts(
        rows=tuple(rows.values()), total=memfacts.total(rows.values()), jvm=machine, parts=parts, levels=(LEVEL,),
        malloc=malloc or Malloc("glibc", 8, 16, mib(14), mib(1), 0, mib(1), mib(3), 2), members=members, unheld=unheld,
    )  # fmt: skip


def named(facts, level=LEVEL, growing=MappingProxyType({})):
    return [each.code for each in suspects(facts, level, growing)]


OF_SELF = Member(4242, "java", mib(70), 0, 0, MIB)
FREE = Malloc("glibc", 40, 16, mib(816), mib(700), mib(5), mib(690), 0, 0)


@pytest.mark.parametrize(
    ("first", "facts"),
    [
        ("memory-in-direct-buffers", small(direct=200, malloc_mmapped=203)),
        ("memory-in-direct-buffers", small(direct=200, malloc_arenas=216)),  # of 16 KiB each
        ("memory-in-malloc", small(malloc_arenas=92)),  # 300 Deflaters
        ("memory-in-malloc", small(malloc_arenas=290, direct=40)),
        ("memory-in-thread-stacks", small(thread_stacks=28, malloc_arenas=30)),
        ("memory-in-class-loaders", small(loaders=5000, metaspace=31, malloc_arenas=98)),
        ("memory-in-arenas", small(malloc=FREE, malloc_arenas=816)),
        ("memory-in-mapped-files", small(mapped_files=memfacts.usage(100, anonymous=0))),
        ("memory-in-shared-memory", small(shared_memory=memfacts.usage(100, anonymous=0))),
        ("memory-in-metaspace", small(metaspace=200, class_space=30, loaders=90)),
        ("memory-in-code-cache", small(code_cache=220)),
        ("memory-in-huge-pages", small(thread_stacks=memfacts.usage(60, huge=56))),
        ("memory-in-huge-pages", small(java_heap=memfacts.usage(200, huge=190))),
        ("memory-in-reserved-huge-pages", small(jvm=False, shared_memory=memfacts.usage(0, hugetlb=64))),
        ("memory-in-huge-pages", small(jvm=False, unnamed=memfacts.usage(200, huge=190))),
        ("memory-in-anonymous-mappings", small(jvm=False, unnamed=100)),
        ("memory-in-anonymous-mappings", small(jvm=False, runtime_heap=100, malloc=Malloc("Go"))),
        ("memory-in-malloc", small(unnamed=150, malloc=Malloc("jemalloc", unknown="malloc by elimination"))),
        ("memory-in-other-processes", small(members=(Member(7, "helper", mib(150), 0, 0, 0), OF_SELF))),
    ],
)  # fmt: skip
def test_what_is_staged_is_first(first, facts):
    """And each code is one of the catalog."""
    found = suspects(facts, LEVEL)
    assert found[0].code == first, found
    assert all(each.code in catalog.FINDINGS and each.summary and each.evidence and each.bytes for each in found)


def test_a_healthy_jvm_has_no_suspect():
    """That has just started; a service with 130 MiB outside of its heap has malloc and its classes, and no waste."""
    assert suspects(small(), None) == []
    service = memfacts.healthy().facts
    assert "memory-in-arenas" not in named(service)
    assert not is_waste(service)


def test_a_heap_that_was_not_found_is_no_malloc():
    """Without rights to read its memory the heap is among the anonymous mappings: they are no suspect."""
    unread = Malloc("glibc", unknown="its memory cannot be read")
    found = small(unnamed=250, malloc=unread, malloc_arenas=0.1)
    assert named(found) == ["memory-in-malloc"]
    rows = tuple(row for row in found.rows if row.kind in ("unnamed", "malloc-arenas", "libraries", "thread-stacks"))
    assert suspects(found._replace(rows=rows), LEVEL) == []


def test_page_cache_is_last_and_harmless():
    """Also where it is the largest."""
    full = LEVEL._replace(cache_bytes=300 * MIB)
    assert named(small(), full) == ["memory-in-page-cache"]
    assert named(small(malloc_arenas=120), full) == ["memory-in-malloc", "memory-in-page-cache"]


def test_free_memory_of_arenas_is_no_malloc_that_is_used():
    """Each byte is in one suspect, and direct buffers are no malloc of others."""
    found = {each.code: each.bytes for each in suspects(small(malloc=FREE, malloc_arenas=816, direct=50), LEVEL)}
    assert found["memory-in-arenas"] == mib(700)
    assert found["memory-in-malloc"] == mib(816 + 3 - 700 - 50)


def test_malloc_is_an_upper_bound_where_not_all_free_blocks_were_read():
    """More of it may be free."""
    cut = FREE._replace(incomplete="it has too many free blocks to read them all")
    [_, used, *_] = suspects(small(jvm=False, malloc=cut, malloc_arenas=816), LEVEL)
    assert used.summary == "at most 119 MiB is allocated by malloc"


def test_class_loaders_explain_malloc_only_where_there_are_thousands():
    """18 KiB for each."""
    assert "memory-in-class-loaders" not in named(small(loaders=300, malloc_arenas=200))
    found = {each.code: each.bytes for each in suspects(small(loaders=5000, metaspace=31, malloc_arenas=400), LEVEL)}
    assert "memory-in-class-loaders" not in found  # 88 of 400 MiB: something else is larger
    assert found["memory-in-malloc"] > 380 * MIB


def test_shared_memory_of_a_dead_process_is_named():
    """What is charged to the cgroup and mapped by none of its processes: the file, and the command that removes it."""
    charged = LEVEL._replace(shmem_bytes=60 * MIB)
    dead = small(
        members=(OF_SELF,),
        unheld=(
            Unheld("tmpfs", "/dev/shm/a b", 5, 58 * MIB, mount="/dev/shm"),
            Unheld("tmpfs", "/dev/shm/c", 6, 2 * MIB, mount="/dev/shm"),
        ),
    )
    first = suspects(dead, charged)[0]
    assert (first.code, first.bytes, first.fix) == ("memory-of-dead-process", 60 * MIB, "rm '/dev/shm/a b'")
    assert "/dev/shm/a b (58.0 MiB) and 1 other file are open in no process" in first.summary
    assert named(small(members=(OF_SELF,)), charged)[0] == "memory-in-tmpfs"  # no such file is known
    little = small(members=(OF_SELF,), unheld=(Unheld("tmpfs", "/dev/shm/c", 6, 2 * MIB, mount="/dev/shm"),))
    assert named(little, charged)[0] == "memory-in-tmpfs"  # it explains next to nothing
    segment = small(members=(OF_SELF,), unheld=(Unheld("sysv", "/SYSV", 98, 60 * MIB),))
    assert suspects(segment, charged)[0].fix == "ipcrm -m 98"
    file = Unheld("tmpfs", "/dev/shm/x", 6, 60 * MIB, 4242, mount="/dev/shm", reached_at="/proc/4242/root/dev/shm/x")
    inside = small(members=(OF_SELF,), unheld=(file,))
    assert suspects(inside, charged)[0].fix == "rm /proc/4242/root/dev/shm/x"


def test_the_untouched_heap_of_zgc_is_no_shared_memory_of_others():
    """Its memfd is charged to the cgroup with every committed page, and mapped where it is touched."""
    look = small(members=(OF_SELF,))
    charged = LEVEL._replace(shmem_bytes=60 * MIB)
    jvm = look.jvm._replace(collector="ZGC", heap_committed_bytes=headroom.heap_resident_bytes(look) + 60 * MIB)
    assert "memory-in-tmpfs" in named(look, charged)
    assert "memory-in-tmpfs" not in named(look._replace(jvm=jvm), charged)


def test_shared_memory_that_is_mapped_is_not_dead():
    """By this process or another one of the cgroup; unknown members prove nothing."""
    charged, file = (
        LEVEL._replace(shmem_bytes=60 * MIB),
        (Unheld("tmpfs", "/dev/shm/x", 5, 60 * MIB, mount="/dev/shm"),),
    )
    other = Member(7, "helper", MIB, mib(60), 0, 0)
    assert "memory-of-dead-process" not in named(small(members=(OF_SELF, other), unheld=file), charged)
    unknown = other._replace(shmem_bytes=None)
    assert "memory-of-dead-process" not in named(small(members=(OF_SELF, unknown), unheld=file), charged)
    assert named(small(members=(OF_SELF,), unheld=file)._replace(members_unread=5), charged) == []


def test_what_grows_is_first():
    """Under a watch, although something else is larger."""
    facts = small(malloc_arenas=200, thread_stacks=15)
    assert named(facts)[0] == "memory-in-malloc"
    assert named(facts, LEVEL, {"thread-stacks": 1e6})[0] == "memory-in-thread-stacks"


def test_names_from_the_machine_are_quoted():
    part = Part("shared-memory", "/dev/shm/x y", True, memfacts.usage(90, anonymous=0))
    found = suspects(small(shared_memory=memfacts.usage(100, anonymous=0), parts=(part,)), LEVEL)
    assert "90.0 MiB of it /dev/shm/x y (deleted)" in found[0].summary


@pytest.mark.parametrize(
    ("release", "has"),
    [("17.0.8", False), ("17.0.9", True), ("17.0.9+9-Debian", True), ("21", True), ("25.0.2", True), ("11.0.99", False), (None, False),
     ("1.8.0_392", False), ("garbage", False)],
)  # fmt: skip
def test_trimming_is_offered_where_the_jvm_can(release, has):
    """System.trim_native_heap came with 17.0.9 and 21."""
    assert trim_command(small(release=release)) == ("jcmd 4242 System.trim_native_heap" if has else None)


def test_waste_is_much_and_a_part_of_the_whole():
    assert is_waste(small(malloc=FREE, malloc_arenas=816))
    assert not is_waste(small(malloc=FREE, malloc_arenas=816, java_heap=4000))  # of a large process it is little
    assert not is_waste(small(malloc=FREE._replace(resident_free_bytes=mib(20)), malloc_arenas=126))  # trimmed already
    assert is_waste(
        small(malloc=FREE._replace(resident_free_bytes=mib(20)), malloc_arenas=816)
    )  # seven of eight blocks of a page
