"""The sentences about the processes that look up absent files."""

from __future__ import annotations

from opskit.analysis.dentry.lookups import Looker, Lookups, verdict


def seen(*lookers):
    return Lookups(2.0, 1000 if lookers else 0, 1000, "perf", interrupted=False, lookers=lookers)


def looker(pid, paths=()):
    return Looker(pid, "curl", "root", None, 3, 900, 450.0, 0.9, {"openat": 900}, paths, pid in (None, 43))


def test_who_and_how_much_and_which_names():
    """The process, its share, its paths, the command to type; for ended processes, how many there were."""
    assert verdict(seen(looker(42, ("/a", "/b"))), 500) == [
        "curl (42) made 90 % of the 1,000 failed lookups in 2.0 s: 450 a second; negative entries grew by 500 meanwhile.",
        "It looks for names like /a, /b",
        "See all paths: strace -f -Z -e trace=%file -p 42",
    ]
    assert verdict(seen(looker(None)), -5) == [
        "curl (3 processes, ended) made 90 % of the 1,000 failed lookups in 2.0 s: 450 a second; "
        "negative entries shrank by 5 meanwhile."
    ]
    assert verdict(seen(looker(43)), None) == [
        "curl (43, ended) made 90 % of the 1,000 failed lookups in 2.0 s: 450 a second."
    ]
    assert "No lookup failed in 2.0 s" in verdict(seen(), None)[0]
