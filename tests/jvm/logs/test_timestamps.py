"""When something was logged, and of which JVM."""

from __future__ import annotations

import pytest

from opskit.jvm.logs.timestamps import Stamp, read_stamp


@pytest.mark.parametrize(("context", "stamp"), [
    ("2016-09-13T06:54:06.773+0100: 11662.232: [Full GC 11662.233: [Class Histogram:\n", Stamp(1473746046.773, 11662.233)),
    ("46.4488813 secs]11747.379: [Class Histogram\n", Stamp(None, 11747.379)),
    ("[2026-11-21T11:13:38.276+0000][0.117s][trace][gc,classhisto      ] GC(0) ", Stamp(1795259618.276, 0.117)),
    ("Sat Nov 21 11:04:11 UTC 2026\n", Stamp(1795259051.0)),
    ("$ jmap -histo:live 88951 | head -n 20\n", Stamp(None, None, 88951)),
    ("17590:\n", Stamp(None, None, 17590)),
    ("histogram-4242-20261121T111338.276Z.txt", Stamp(1795259618.276)),
    ("2024-02-31 12:00:00\n", Stamp()),
    ("nothing at all", Stamp()),
])  # fmt: skip
def test_stamps(context, stamp):
    """GC logs of both kinds, date(1), command lines, file names; None for what is not told."""
    assert read_stamp(context) == stamp
