"""The moment of a crash, where the report tells its zone."""

from __future__ import annotations

import pytest

from opskit.jvm.logs.crashes.moment import epoch_of, epoch_of_utc


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        ("Wed Nov 19 10:58:56 2025 UTC", 1763549936),
        ("Tue Oct 17 20:25:14 2023 +08", 1697545514),
        ("Tue Oct 17 20:25:14 2023 +0530", 1697554514),
        ("Tue Oct 17 20:25:14 2023 -03:00", 1697585114),
        ("Tue Dec  1 14:30:22 2020 KST", 1606800622),
        ("Mon Oct  5 11:11:20 2020 EDT", 1601910680),
        ("Wed Nov 17 10:01:35 2021 CET", 1637139695),
        ("Thu Feb 25 14:14:53 2021 CST", None),
        ("Fri Oct 30 10:52:14 2020", None),
        ("Wed Dec 15 00:04:28 2021 Eastern Standard Time", None),
        ("Wed Feb 30 10:58:56 2025 UTC", None),
        ("Wed Nov 19 25:58:56 2025 UTC", None),
        ("REDACTED", None),
        (None, None),
    ],
    ids=[
        "utc", "offset", "half-hour", "west", "korea", "new-york", "berlin", "ambiguous", "no-zone", "windows", "no-day", "no-hour",
        "no-date", "missing",
    ],
)  # fmt: skip
def test_the_time_of_a_crash(at, expected):
    """Offsets and unambiguous abbreviations; CST is in America and in China."""
    assert epoch_of(at) == expected


def test_the_time_of_a_javacore():
    """OpenJ9 writes the date in UTC too."""
    assert epoch_of_utc("2026/03/25 at 09:52:22:443 (UTC)") == 1774432342
    assert epoch_of_utc("2026-03-25") is None
