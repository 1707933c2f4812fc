"""The OOM killer's lines in the kernel's log."""

from __future__ import annotations

from opskit.proc.files.kernel_log import OomKill, parse_oom_kills

LOG = """<6>[   12.000001] eth0: link up
<4>[ 1215.612300] java invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0
<3>[ 1215.612345] Memory cgroup out of memory: Killed process 4242 (java) total-vm:2703268kB, anon-rss:129520kB
<3>[99215.600000] Out of memory: Killed process 77 (a) (b) total-vm:1kB
<3>Out of memory: Killed process 78 (java) of a log without times
<6>[    5.000000] audit: comm="Out of memory: Killed process 79 (java) "
"""


def test_kills_with_their_times():
    """At a cgroup's limit, or of the whole machine; a name may look like a line, other lines may quote one."""
    assert parse_oom_kills(LOG) == [OomKill(4242, 1215.612345, "java", True), OomKill(77, 99215.6, "a) (b", False)]
    assert parse_oom_kills("") == []
