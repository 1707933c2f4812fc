"""The lines of a contended lock."""

from __future__ import annotations

from opskit.analysis.jpmp.lock_owners import HELD_BY_READERS
from opskit.analysis.jpmp.locks import ContendedLock, Party
from opskit.render.views.jpmp.lock_listing import fitted_name, lock_lines

OWNER = Party("holder", 7, 70, "RUNNABLE", tuple(f"com.example.Frame.f{number}" for number in range(20)), virtual=False)
WAITER = Party("waiter", 8, 80, "BLOCKED", (), virtual=False)
LOCK = ContendedLock("java.lang.Object", "1f", "monitor", (WAITER,) * 5, 5, OWNER, None, (), 3, 0.5, dumps=4)


def test_detail_takes_lines_away_until_the_holder_is_left():
    """Nine to zero: eight frames and the waiters, one frame and the waiters, one frame, none."""
    assert [len(lock_lines(LOCK, (), detail, None)) for detail in (9, 8, 2, 1, 0)] == [11, 10, 4, 3, 2]
    assert lock_lines(LOCK, (), 1, None) == [
        "5 held up  java.lang.Object@1f  3 of 4 dumps, ≥ 0.5 s",
        '  held by "holder" #7 RUNNABLE',
        "    com.example.Frame.f0",
    ]
    assert lock_lines(LOCK, (), 2, None)[-1] == '  waiting: "waiter" #8, "waiter" #8, "waiter" #8, … 2 more'
    assert "  DEADLOCK, 3" in lock_lines(LOCK, {LOCK.key}, 0, None)[0]


def test_what_is_known_of_an_unknown_holder():
    """Readers are named as such."""
    unknown = LOCK._replace(owner=None, owner_unknown=HELD_BY_READERS)
    assert lock_lines(unknown, (), 0, None)[1] == "  held by readers; the JVM does not record which"
    assert lock_lines(unknown._replace(owner_unknown="x"), (), 0, None)[1] == "  its owner is unknown: x"


def test_a_name_gives_up_packages_before_its_class():
    """From the left, only as many as it takes."""
    name = "java.util.concurrent.locks.ReentrantLock$NonfairSync@1f"
    assert fitted_name(name, None) == fitted_name(name, 55) == name
    assert fitted_name(name, 50) == "j.u.concurrent.locks.ReentrantLock$NonfairSync@1f"
    assert fitted_name(name, 10) == "ReentrantLock$NonfairSync@1f"
