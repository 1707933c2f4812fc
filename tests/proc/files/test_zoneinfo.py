"""/proc/zoneinfo."""

from __future__ import annotations

from pathlib import Path

from opskit.proc.files.zoneinfo import parse_cpu_free_pages

TEXT = """\
Node 0, zone   Normal
  pages free     5803840
        high     26000
  pagesets
    cpu: 0
              count:    3854
              high:     53348
              batch:    63
    cpu: 1
              count:    32971
              high:     39363
Node 1, zone   Normal
    cpu: 0
              count: 4
"""


def test_the_lists_of_all_cpus_and_nodes():
    """Only the counts, of each zone and CPU."""
    assert parse_cpu_free_pages(TEXT) == 3854 + 32971 + 4
    assert parse_cpu_free_pages("") == parse_cpu_free_pages("count: 1\n") == 0


def test_this_kernel_has_such_lines():
    """One for each zone with memory and each CPU."""
    assert Path("/proc/zoneinfo").read_text().count(" count: ") > 0
