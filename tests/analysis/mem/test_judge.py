"""Findings about a process's memory: each that is one, and no false alarm about what is healthy."""

from __future__ import annotations

import memfacts
import pytest
from memfacts import MIB, mib

from opskit import catalog
from opskit.analysis.mem.judge import judge
from opskit.collect.mem.facts import Malloc, Member, Row, Unheld

LARGE = memfacts.ORDERS._replace(limit_bytes=1024 * MIB, oom_kills=0)


def alarms(facts, samples=()):
    found = judge(facts, samples).findings
    assert all(each.code in catalog.FINDINGS for each in found)
    return [each.code for each in found if each.severity != "note"]


def roomy(**changes):
    return memfacts.facts(**{"levels": (LARGE, memfacts.SLICE), **changes})


def test_the_finding_has_the_numbers_and_the_fix():
    (found,) = (each for each in judge(memfacts.facts()).findings if each.severity == "warning")
    assert found.code == "memory-heap-outgrows-limit"
    assert found.summary == (
        "4242 (orders) can be killed: its heap may grow 58.3 MiB beyond the limit of 400 MiB of cgroup /orders; "
        "-Xmx190m, or a limit of 470 MiB would fit"
    )
    assert found.evidence == "memory.stat of /orders: anon 290 MiB, kernel 8.0 MiB"
    assert (found.entity.id, found.entity.inside.id, found.next) == (4242, "/orders", "opskit mem 4242 -w")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"group_kill": True}, "can be killed with all processes of its cgroup"),
        ({"kills_disabled": True}, "can be stopped for good (oom_kill_disable)"),
    ],
)
def test_what_the_kernel_does_at_the_limit(changes, words):
    level = memfacts.ORDERS._replace(**changes)
    assert words in judge(memfacts.facts(levels=(level,))).findings[0].summary


def test_the_machine_instead_of_a_limit():
    host = memfacts.HOST._replace(meminfo={**memfacts.HOST.meminfo, "MemAvailable": 100 * MIB, "SwapFree": 10 * MIB})
    facts = memfacts.facts(levels=(memfacts.SLICE,), host=host)
    summary = judge(facts).findings[0].summary
    assert summary == (
        "4242 (orders) can be killed when the machine runs out of memory: its heap may grow 50.3 MiB beyond what the machine has and its swap; "
        "-Xmx190m would fit"
    )


@pytest.mark.parametrize(
    "facts",
    [
        roomy(),
        memfacts.facts(levels=(memfacts.SLICE,)),  # no limit
        roomy(levels=(LARGE._replace(usage_bytes=1020 * MIB, cache_bytes=722 * MIB),)),  # full of page cache
        memfacts.native().facts,
        memfacts.sums_only().facts,
        roomy(levels=(LARGE._replace(pinned_bytes=600 * MIB, anon_bytes=560 * MIB),)),  # others hold half of it
        roomy(members=(Member(7, "sidecar", mib(30), 0, 0, 0), Member(4242, "java", mib(290), 0, 0, 0))),
        roomy(
            malloc=Malloc("glibc", 16, 16, mib(95), mib(60), 0, mib(55), mib(42), 42)
        ),  # half of small arenas is free
        roomy(levels=(LARGE._replace(high_bytes=900 * MIB),)),
        roomy(levels=(LARGE._replace(oom_kills=3),)),  # some day since the cgroup was made
        roomy(levels=(LARGE._replace(shmem_bytes=40 * MIB),), members=(Member(4242, "java", mib(290), 0, 0, 0),)),
        roomy(levels=(), levels_unknown="permission denied"),
        # v1: 500 MiB of kernel memory, most of it dentries that may go
        memfacts.native().facts._replace(
            levels=(LARGE._replace(version=1, slab_unknown=True, kernel_bytes=500 * MIB, pinned_bytes=1000 * MIB),)
        ),
    ],
)
def test_what_is_healthy(facts):
    """No error and no warning."""
    assert alarms(facts) == []


def test_near_the_limit():
    """By what cannot be reclaimed; the heap may fit, and the rest nearly does not."""
    touched = Row("java-heap", memfacts.usage(256), 256 * MIB, 1)
    full = memfacts.ORDERS._replace(pinned_bytes=365 * MIB)
    rows = (touched, *memfacts.ROWS[1:])
    assert "memory-near-limit" in alarms(memfacts.facts(rows=rows, levels=(full,)))
    assert "memory-near-limit" in alarms(memfacts.native().facts._replace(levels=(full,)))
    assert "memory-near-limit" not in alarms(memfacts.facts(rows=rows, levels=(full._replace(pinned_bytes=350 * MIB),)))
    host = memfacts.HOST._replace(meminfo={**memfacts.HOST.meminfo, "SwapFree": 500 * MIB})
    assert "memory-near-limit" not in alarms(memfacts.facts(rows=rows, levels=(full,), host=host))


def test_a_large_limit_is_not_near_with_gigabytes_left():
    """A heap of 56 GiB that was touched at the start: 91 % of 64 GiB are pinned, and 5.8 GiB are left."""
    heap = memfacts.usage(56 << 10)
    rows = (Row("java-heap", heap, 56 << 30, 1), *memfacts.ROWS[1:])
    level = memfacts.ORDERS._replace(limit_bytes=64 << 30, pinned_bytes=58 << 30)
    jvm = memfacts.JVM._replace(heap_max_bytes=56 << 30, heap_touched=True)
    host = memfacts.HOST._replace(meminfo={**memfacts.HOST.meminfo, "MemTotal": 256 << 30, "MemAvailable": 90 << 30})
    touched = memfacts.facts(rows=rows, total=memfacts.total(rows), levels=(level,), jvm=jvm, host=host)
    assert alarms(touched) == []
    full = touched._replace(levels=(level._replace(pinned_bytes=(64 << 30) - 900 * MIB),))
    assert alarms(full) == ["memory-near-limit"]


def test_memory_high_slows_it_down():
    """The heap does not fit below it; a program without a heap is slowed down once it is reached."""
    assert "memory-throttled" in alarms(roomy(levels=(LARGE._replace(high_bytes=400 * MIB),)))
    native = memfacts.native().facts
    high = LARGE._replace(high_bytes=290 * MIB)
    assert "memory-throttled" in alarms(native._replace(levels=(high,)))
    assert alarms(native._replace(levels=(high._replace(high_bytes=310 * MIB),))) == []


def test_strict_overcommit():
    host = memfacts.HOST._replace(
        overcommit=2, meminfo={**memfacts.HOST.meminfo, "CommitLimit": 1000 * MIB, "Committed_AS": 950 * MIB}
    )
    assert alarms(roomy(host=host)) == ["memory-commit-limit"]


def test_waste_in_arenas():
    malloc = Malloc("glibc", 40, 16, mib(816), mib(710), mib(5), mib(700), 0, 0)
    rows = (Row("malloc-arenas", memfacts.usage(816), 2 << 30, 40),)
    (found,) = judge(roomy(rows=rows, total=memfacts.total(rows), malloc=malloc, jvm=None)).findings
    assert (found.code, found.severity) == ("memory-in-arenas", "warning")
    assert "87 % of its RSS" in found.summary
    assert found.fix == "env MALLOC_ARENA_MAX=2 java …"
    one = roomy(rows=rows, total=memfacts.total(rows), malloc=malloc._replace(arenas=1), jvm=None)
    (found,) = judge(one).findings
    assert found.fix is None  # it has no arenas that it could do without
    assert "MALLOC_ARENA_MAX" not in found.summary


def test_a_file_of_a_dead_process():
    charged = memfacts.ORDERS._replace(limit_bytes=1024 * MIB, shmem_bytes=110 * MIB)
    dead = roomy(
        levels=(charged,),
        members=(Member(4242, "java", mib(290), 0, 0, 0),),
        unheld=(Unheld("tmpfs", "/dev/shm/old", 5, 110 * MIB, mount="/dev/shm"),),
    )
    assert alarms(dead) == ["memory-of-dead-process"]
    assert alarms(dead._replace(levels=(charged._replace(limit_bytes=2000 * MIB),))) == []  # 6 % of the limit


def test_files_of_a_tmpfs_that_a_program_keeps():
    """An index below /srv is not open at every moment: it is named, and nobody is told to remove it."""
    kept = roomy(
        levels=(memfacts.ORDERS._replace(limit_bytes=1024 * MIB, shmem_bytes=310 * MIB),),
        members=(Member(4242, "java", mib(290), 0, 0, 0),),
        unheld=(Unheld("tmpfs", "/srv/index/7", 5, 300 * MIB, mount="/srv/index"),),
    )
    assert alarms(kept) == []
    first = judge(kept).suspects[0]
    assert (first.code, first.fix) == ("memory-in-tmpfs", None)
    assert "/srv/index/7 (300 MiB)" in first.summary


def test_kills_in_the_window_are_errors():
    before, after = roomy(at_s=0.0), roomy(levels=(LARGE._replace(oom_kills=1),), at_s=5.0)
    found = judge(after, [before, after]).findings
    assert [(each.code, each.severity, each.next) for each in found] == [("oom-counted", "error", "opskit oom")]
    assert [each.severity for each in judge(after).findings] == ["note"]


def looks(grow, direct=None, number=8):
    """Looks at a JVM with room; `grow`: MiB that a kind has more at each look."""
    found = []
    for at in range(number):
        rows = tuple(
            row._replace(usage=memfacts.usage(row.usage.rss_bytes / MIB + grow.get(row.kind, 0) * at))
            for row in memfacts.ROWS
        )
        level = LARGE._replace(pinned_bytes=LARGE.pinned_bytes + mib(sum(grow.values()) * at))
        jvm = memfacts.JVM._replace(direct_bytes=42 * MIB + mib((direct or 0) * at))
        found.append(
            roomy(rows=rows, total=memfacts.total(rows), levels=(level,), jvm=jvm, at_s=at * 10.0, age_s=900.0 + at)
        )
    return found


@pytest.mark.parametrize(
    ("grow", "direct", "words", "first"),
    [
        ({"malloc-mmapped": 2}, 2, "direct buffers by 12.0 MiB a minute, full in", "memory-in-direct-buffers"),
        ({"malloc-arenas": 2}, None, "malloc arenas by 12.0 MiB a minute", "memory-in-malloc"),
        ({"thread-stacks": 2}, None, "thread stacks by 12.0 MiB a minute", "memory-in-thread-stacks"),
        ({"metaspace": 2, "malloc-arenas": 6}, None, "metaspace by 12.0 MiB a minute", "memory-in-metaspace"),
    ],
)
def test_growth_names_its_cause(grow, direct, words, first):
    """A row that explains another one is named; the suspect that grows is the first."""
    samples = looks(grow, direct)
    result = judge(samples[-1], samples)
    (found,) = [each for each in result.findings if each.code == "memory-keeps-growing"]
    assert words in found.summary
    assert result.suspects[0].code == first
    assert result.samples == samples


def test_growth_of_another_process_names_it():
    """With the command for that process, not for this one."""
    samples = looks({})
    for at, sample in enumerate(samples):
        level = LARGE._replace(pinned_bytes=LARGE.pinned_bytes + mib(5 * at))
        members = (Member(4242, "java", mib(290), 0, 0, 0), Member(7, "envoy", mib(50 + 5 * at), 0, 0, 0))
        samples[at] = sample._replace(levels=(level,), members=members)
    (found,) = judge(samples[-1], samples).findings
    growing = "the memory of its cgroup grows by 30.0 MiB a minute, most of it envoy (7); full in "
    assert found.summary.startswith(f"4242 (orders) shares a limit with what keeps growing: {growing}")
    assert found.next == "opskit mem 7 -w"
    samples = [sample._replace(members=()) for sample in samples]
    (found,) = judge(samples[-1], samples).findings
    assert found.next == "opskit mem --files"


def test_a_busy_jvm_is_not_growing():
    """Its heap fills and is collected, its rows breathe."""
    samples = looks({})
    for at, sample in enumerate(samples):
        rows = tuple(
            row._replace(
                usage=memfacts.usage(
                    row.usage.rss_bytes / MIB + {"java-heap": 12 * at, "malloc-arenas": at % 3}.get(row.kind, 0)
                )
            )
            for row in sample.rows
        )
        samples[at] = sample._replace(rows=rows, total=memfacts.total(rows))
    assert alarms(samples[-1], samples) == []


def test_the_last_look_need_not_be_among_the_samples():
    samples = looks({"malloc-arenas": 2})
    one, other = judge(samples[-1], samples), judge(samples[-1], samples[:-1])
    assert one.slopes == other.slopes
