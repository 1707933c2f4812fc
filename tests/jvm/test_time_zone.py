"""Default time zones of JVMs, beside what Java makes of the same words (`java.util.TimeZone.getDefault()` of JDK 17)."""

from __future__ import annotations

import os
from datetime import datetime, timezone

import pytest

from opskit.jvm.time_zone import java_zone_of
from opskit.proc.fs import ProcFS
from opskit.proc.zones import machine_zone, zone_of

FS = ProcFS()
WINTER = datetime(2026, 1, 1, 12, tzinfo=timezone.utc)
needs_zones = pytest.mark.skipif(not os.path.exists("/usr/share/zoneinfo/Europe/Berlin"), reason="needs tzdata")


@needs_zones
@pytest.mark.parametrize(
    ("word", "by_option_s", "by_tz_s"),
    [
        ("GMT+5", 18000, 18000), ("GMT+08:00", 28800, 28800), ("GMT+0830", 30600, 30600), ("GMT-3", -10800, -10800), ("GMT+10", 36000, 36000),
        ("UTC-7", None, 25200), ("UTC+7", None, -25200), ("PST", None, None), ("Nonsense", None, None), ("GMT+08:3", None, -28980),
        ("Europe/Berlin", 3600, 3600), ("EST", -18000, -18000), ("CET-1CEST,M3.5.0,M10.5.0/3", None, 3600),
        (":Asia/Tokyo", None, 32400),
    ],
)  # fmt: skip
def test_offsets_are_those_of_java(word, by_option_s, by_tz_s):
    """GMT+5 is east. None: Java knows more names than there are files."""
    found = java_zone_of(FS, os.getpid(), [f"-Duser.timezone={word}"], "Europe/Berlin", WINTER)
    assert (found.source, found.name, found.utc_offset_s) == ("-Duser.timezone", word, by_option_s)
    assert java_zone_of(FS, os.getpid(), ["-Xmx1g"], word, WINTER).utc_offset_s == by_tz_s


@needs_zones
@pytest.mark.parametrize("given", [":/etc/localtime", "posix/Asia/Tokyo"])
def test_words_that_the_c_library_knows(given):
    """Java takes its offset, or strips the prefix."""
    assert (
        java_zone_of(FS, os.getpid(), [], given, WINTER).utc_offset_s
        == zone_of(FS, os.getpid(), given, WINTER).utc_offset_s
    )


@pytest.mark.parametrize(("options", "given"), [([], None), ([], ""), (["-Duser.timezone="], "")])
def test_without_a_zone_it_is_that_of_the_file(options, given):
    """An empty TZ is none for Java, where the C library takes UTC."""
    found = java_zone_of(FS, os.getpid(), options, given, WINTER)
    assert (found.source, found.utc_offset_s) == ("/etc/localtime", machine_zone(FS, WINTER).utc_offset_s)


@needs_zones
def test_an_image_without_zone_files(tree, monkeypatch):
    """Java has its own database: the offset is that of the files outside of the container."""
    image = tree({"proc/1/comm": "x"})
    outside = ProcFS()
    monkeypatch.setattr(ProcFS, "inside", lambda self, pid, path: f"{image}{path}" if pid == 1 else path)
    assert java_zone_of(outside, 1, [], "Europe/Berlin", WINTER).utc_offset_s == 3600
