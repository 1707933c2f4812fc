"""/proc/net/stat/nf_conntrack."""

from __future__ import annotations

from opskit.proc.files.conntrack_stat import parse_conntrack_stat

HEAD = "entries  found drop early_drop\n"


def test_the_sum_of_all_cpus():
    """Hexadecimal; `entries` is the same in each line, and no counter."""
    text = HEAD + "00000012  00000000 0000000a 00000001\n00000012  00000002 00000001 00000000\n"
    assert parse_conntrack_stat(text) == {"Conntrack.found": 2, "Conntrack.drop": 11, "Conntrack.early_drop": 1}


def test_damaged_text():
    """A column that is no number is left out, and so is what a line lacks."""
    assert parse_conntrack_stat(HEAD + "00000012 x 0000000a\n") == {"Conntrack.drop": 10}
    assert parse_conntrack_stat("") == parse_conntrack_stat("\n") == {}
    assert parse_conntrack_stat(HEAD) == {}
