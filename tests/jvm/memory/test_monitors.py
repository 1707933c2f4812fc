"""Who holds a monitor, by each of HotSpot's ways to say so, in a small memory made for it."""

from __future__ import annotations

import struct

import pytest

from opskit.errors import NotSupported
from opskit.jvm.memory.monitors import Monitors, Wait
from opskit.jvm.memory.vmstructs import VmField, VmStructs
from opskit.proc.memory import RecordedMemory

LIST, ARRAY, FIRST, MONITOR, HANDLE = 0x1000, 0x1100, 0x2000, 0x5000, 0x6000
PENDING, STACK, SIZE, LOCK_STACK, ID = 0x10, 0x18, 0x20, 0x40, 0x80
OBJECT = 0x7F0012345678
FIELDS = {
    ("ThreadsSMRSupport", "_java_thread_list"): VmField(True, 0x900, "ThreadsList*"),
    ("ThreadsList", "_length"): VmField(False, 0, "uint"),
    ("ThreadsList", "_threads"): VmField(False, 8, "JavaThread**"),
    ("JavaThread", "_current_pending_monitor"): VmField(False, PENDING, "ObjectMonitor*"),
    ("JavaThread", "_stack_base"): VmField(False, STACK, "address"),
    ("JavaThread", "_stack_size"): VmField(False, SIZE, "size_t"),
    ("JavaThread", "_osthread"): VmField(False, 0x28, "OSThread*"),
    ("JavaThread", "_lock_stack"): VmField(False, LOCK_STACK, "LockStack"),
    ("JavaThread", "_monitor_owner_id"): VmField(False, ID, "int64_t"),
    ("LockStack", "_top"): VmField(False, 0, "uint32_t"),
    ("LockStack", "_base[0]"): VmField(False, 8, "oop"),
    ("OSThread", "_thread_id"): VmField(False, 0, "pid_t"),
    ("ObjectMonitor", "_owner"): VmField(False, 0x40, ""),
    ("ObjectMonitor", "_object"): VmField(False, 8, ""),
}  # fmt: skip
WITH_IDS = {**FIELDS, ("ObjectMonitor", "_owner"): VmField(False, 0x40, "int64_t")}
HOLDER = FIRST + 0x1000


def monitors(owner, fields=FIELDS, *, threads=2, top=LOCK_STACK + 16, on_stack=OBJECT, handle=OBJECT):
    """A JVM whose first thread waits; the second one may hold the monitor."""
    words = {0x900: LIST, LIST: threads, LIST + 8: ARRAY, MONITOR + 0x40: owner, MONITOR + 8: HANDLE, HANDLE: handle}
    for number in range(2):
        thread = FIRST + 0x1000 * number
        words |= {ARRAY + 8 * number: thread, thread + STACK: 0x90000 + 0x10000 * number, thread + SIZE: 0x8000}
        words |= {thread + ID: 40 + number}
    words |= {FIRST + PENDING: MONITOR, HOLDER + LOCK_STACK: top, HOLDER + LOCK_STACK + 8: on_stack}
    pages = {}
    for address, value in words.items():
        page = pages.setdefault(address // 4096, bytearray(4096))
        struct.pack_into("<Q", page, address % 4096, value)
    return Monitors(VmStructs(fields, {}, {}), RecordedMemory({number: bytes(page) for number, page in pages.items()}))


@pytest.mark.parametrize(
    ("owner", "fields", "more", "holder"),
    [
        (HOLDER, FIELDS, {}, HOLDER),
        (0x9F000, FIELDS, {}, HOLDER),  # in its stack
        (0x97FFF, FIELDS, {}, 0),  # below it
        (0xA0000, FIELDS, {}, 0),  # at its end
        (1, FIELDS, {}, HOLDER),
        (1, FIELDS, {"handle": OBJECT << 13}, HOLDER),  # a pointer with colours
        (1, FIELDS, {"on_stack": 5}, 0),
        (1, FIELDS, {"top": 0xFFFFFFFF, "on_stack": 5}, 0),  # more than any LockStack has
        (41, WITH_IDS, {}, HOLDER),
        (77, WITH_IDS, {}, 0),
        (0, FIELDS, {}, 0),
    ],
)
def test_the_holder(owner, fields, more, holder):
    assert monitors(owner, fields, **more).waits(10) == {FIRST: Wait(MONITOR, holder)}


def test_a_thread_that_has_just_got_its_monitor_does_not_wait():
    """It is no deadlock with itself, also of a JVM that is stopped at that moment."""
    assert monitors(FIRST).waits(10) == {}


def test_a_jvm_with_too_many_threads_is_left_out():
    assert monitors(HOLDER).waits(1) is None


def test_a_list_that_claims_more_threads_than_there_are():
    """The memory ends, or has none of them."""
    assert monitors(HOLDER, threads=1 << 31).waits(1 << 17).get(FIRST) == Wait(MONITOR, HOLDER)


def test_a_jvm_without_these_fields_is_not_supported():
    with pytest.raises(NotSupported, match="_current_pending_monitor"):
        Monitors(VmStructs({}, {}, {}), RecordedMemory({}))
