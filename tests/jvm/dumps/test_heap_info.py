"""The answers to GC.heap_info of each collector and release."""

from __future__ import annotations

import pytest

from opskit.jvm.dumps.heap_info import HeapInfo, parse_heap_info

KIB = 1 << 10
G1_11 = """\
 garbage-first heap   total 8192K, used 883K [0x00000000f8000000, 0x0000000100000000)
  region size 1024K, 1 young (1024K), 0 survivors (0K)
 Metaspace       used 3970K, capacity 4574K, committed 4864K, reserved 1056768K
  class space    used 369K, capacity 398K, committed 512K, reserved 1048576K
"""
G1_25 = """\
garbage-first heap   total reserved 131072K, committed 8192K, used 1874K [0x00000000f8000000, 0x0000000100000000)
 region size 1024K, 1 young (1024K), 0 survivors (0K)
"""
PARALLEL = """\
 PSYoungGen      total 38400K, used 5715K [0x00000000fd580000, 0x0000000100000000, 0x0000000100000000)
  eden space 33280K, 17% used [0x00000000fd580000,0x00000000fdb14ef0,0x00000000ff600000)
  from space 5120K, 0% used [0x00000000ffb00000,0x00000000ffb00000,0x0000000100000000)
 ParOldGen       total 87552K, used 100K [0x00000000f8000000, 0x00000000fd580000, 0x00000000fd580000)
  object space 87552K, 0% used [0x00000000f8000000,0x00000000f8000000,0x00000000fd580000)
 Metaspace       used 3118K, committed 4864K, reserved 1056768K
  class space    used 311K, committed 512K, reserved 1048576K
"""
SERIAL_25 = """\
DefNew     total 39296K, used 6680K [0x00000000f8000000, 0x00000000faaa0000, 0x00000000faaa0000)
 eden space 34944K,  19% used [0x00000000f8000000, 0x00000000f86863b0, 0x00000000fa220000)
Tenured    total 87424K, used 20K [0x00000000faaa0000, 0x0000000100000000, 0x0000000100000000)
 the  space 87424K,   0% used [0x00000000faaa0000, 0x00000000faaa0000, 0x0000000100000000)
"""
ZGC = """\
 ZHeap           used 18M, capacity 128M, max capacity 128M
 Metaspace       used 3121K, capacity 4164K, committed 4352K, reserved 8192K
"""
SHENANDOAH = """\
Shenandoah Heap
 128M max, 128M soft max, 128M committed, 4486K used
 512 x 256 K regions
Status: not cancelled
"""


@pytest.mark.parametrize(("text", "found"), [
    (G1_11, HeapInfo("G1", 883 * KIB, 3970 * KIB, 369 * KIB)),
    (G1_25, HeapInfo("G1", 1874 * KIB, None, None)),
    (PARALLEL, HeapInfo("Parallel", 5815 * KIB, 3118 * KIB, 311 * KIB)),
    (SERIAL_25, HeapInfo("Serial", 6700 * KIB, None, None)),
    (ZGC, HeapInfo("ZGC", 18 << 20, 3121 * KIB, None)),
    (SHENANDOAH, HeapInfo("Shenandoah", 4486 * KIB, None, None)),
    ("Unknown diagnostic command\n", HeapInfo(None, None, None, None)),
    ("", HeapInfo(None, None, None, None)),
])  # fmt: skip
def test_what_is_in_use(text, found):
    """The generations together; Metaspace with its class space. What is not in the answer is unknown."""
    assert parse_heap_info(text) == found
