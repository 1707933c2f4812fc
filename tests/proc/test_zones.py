"""Time zones of processes, beside what the C library makes of them."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import datetime, timezone

import pytest
from eachof import each_of

from opskit.proc.fs import ProcFS
from opskit.proc.treefs import TreeFS
from opskit.proc.zone_rule import offset_by_rule
from opskit.proc.zones import _offset_s, machine_zone, zone_of

FS = ProcFS()
SUMMER, WINTER = datetime(2026, 7, 1, 12, tzinfo=timezone.utc), datetime(2026, 1, 1, 12, tzinfo=timezone.utc)
needs_zones = pytest.mark.skipif(not os.path.exists("/usr/share/zoneinfo/Europe/Berlin"), reason="needs tzdata")


@needs_zones
@each_of("now", [SUMMER, WINTER, datetime(2050, 7, 1, 12, tzinfo=timezone.utc)])
@each_of(
    "tz",
    ["", ":", "UTC", "UTC0", "Europe/Berlin", ":America/Los_Angeles", "posix/Asia/Kolkata", "Asia/Kathmandu", "JST-9", "<+0545>-5:45",
     "CET-1CEST,M3.5.0,M10.5.0/3", "PST8PDT,M3.2.0,M11.1.0", "Europe/Berln", "nothing", "/usr/share/zoneinfo/Asia/Tokyo", "AAA24:59"],
)  # fmt: skip
def test_the_offset_is_that_of_the_c_library(tz, now):
    """date(1) with the same TZ, at the same moment."""
    shown = subprocess.run(
        ["date", "-d", f"@{now.timestamp():.0f}", "+%::z"], env={"TZ": tz, "PATH": os.environ["PATH"]}, capture_output=True, text=True, check=True
    ).stdout.strip()  # fmt: skip
    hours, minutes, seconds = (int(part) for part in shown[1:].split(":"))
    expected = (-1 if shown[0] == "-" else 1) * (hours * 3600 + minutes * 60 + seconds)
    found = zone_of(FS, os.getpid(), tz, now)
    assert found.utc_offset_s == expected
    assert found.is_missing == (tz in ("Europe/Berln", "nothing"))


@needs_zones
def test_without_tz_it_is_the_file_of_its_root():
    """/etc/localtime, and the name of the zone that it leads to."""
    found = zone_of(FS, os.getpid(), None, WINTER)
    assert (found.source, found.utc_offset_s) == ("/etc/localtime", machine_zone(FS, WINTER).utc_offset_s)


@needs_zones
def test_another_directory_of_zones():
    """TZDIR."""
    assert zone_of(FS, os.getpid(), "Berlin", WINTER, "/usr/share/zoneinfo/Europe").utc_offset_s == 3600


@needs_zones
def test_the_zone_of_a_tree(tree):
    """A copy's /etc/localtime: a file, a link within the tree, none."""
    with open("/usr/share/zoneinfo/Asia/Tokyo", "rb") as file:
        root = tree({"proc/1/comm": "x", "etc/localtime": file.read()})
    assert machine_zone(TreeFS(f"{root}/proc", str(root)), WINTER).utc_offset_s == 32400
    (root / "etc" / "localtime").unlink()
    found = machine_zone(TreeFS(f"{root}/proc", str(root)), WINTER)
    assert (found.utc_offset_s, found.is_missing) == (0, True)
    (root / "etc" / "localtime").write_bytes(b"TZif but no more")
    assert machine_zone(TreeFS(f"{root}/proc", str(root)), WINTER).utc_offset_s is None


@needs_zones
def test_a_damaged_file_is_unknown():
    """Cut or changed anywhere: a number or None, in bounded time."""
    with open("/usr/share/zoneinfo/America/Los_Angeles", "rb") as file:
        data = file.read()
    for cut in range(len(data)):
        for damaged in (data[:cut], data[:cut] + b"\xff" + data[cut + 1 :], data[:cut] + bytes(4) + data[cut + 4 :]):
            found = _offset_s(damaged, WINTER)
            assert found is None or isinstance(found, int)


@pytest.mark.parametrize(
    "rule",
    [
        "",
        "CET",
        "CE-1",
        "CET-1CEST,M13.5.0,M10.5.0",
        "CET-1CEST,M3.6.0,M10.5.0",
        "CET-1CEST,J0,J366",
        "CET-1CEST,M3.5.0",
        "x" * 5000,
    ],
)
def test_what_is_no_rule(rule):
    """None."""
    assert offset_by_rule(rule, 1.8e9) is None


@needs_zones
@each_of("year", range(2024, 2036))
@each_of(
    "rule", ["CET-1CEST,M3.5.0,M10.5.0/3", "AEST-10AEDT,M10.1.0,M4.1.0/3", "XST3XDT,J60/0,J300/25:30", "XST3XDT,59,299", "IST-1GMT0,M10.5.0,M3.5.0/1", "PST8PDT"],
)  # fmt: skip
def test_rules_over_the_years(rule, year):
    """As the C library has them, around each transition of a year."""
    moments = range(
        int(datetime(year, 1, 1, tzinfo=timezone.utc).timestamp()),
        int(datetime(year + 1, 1, 1, tzinfo=timezone.utc).timestamp()),
        5 * 86400 + 3600,
    )
    shown = _offsets_of_libc(rule, moments)
    assert [offset_by_rule(rule, moment) for moment in moments] == shown


def _offsets_of_libc(rule, moments):
    """tm_gmtoff of localtime(3), in a process with that TZ."""
    code = "import sys, time\nfor word in sys.argv[1:]: print(time.localtime(int(word)).tm_gmtoff)"
    done = subprocess.run(
        [sys.executable, "-S", "-c", code, *map(str, moments)],
        env={"TZ": rule},
        capture_output=True,
        text=True,
        check=True,
    )
    return [int(line) for line in done.stdout.split()]
