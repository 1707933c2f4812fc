"""The header that a JVM prints to its program's output names the file that has the rest."""

from __future__ import annotations

from opskit.analysis.crash.judge import judge
from opskit.collect.crash.facts import Facts, Read
from opskit.jvm.logs.crashes.report import parse
from opskit.render.report import About
from opskit.render.views.crash.report import Shown
from opskit.render.views.crash.report import report as view

OUTPUT = """Started
#
# A fatal error has been detected by the Java Runtime Environment:
#
#  SIGSEGV (0xb) at pc=0x00007f10e13a91ed, pid=22510, tid=22511
#
# JRE version: OpenJDK Runtime Environment Temurin-25.0.2+10 (25.0.2+10) (build 25.0.2+10-LTS)
# Problematic frame:
# C  [libfoo.so+0x11a91ed]  parse+0xad
#
# An error report file with more information is saved as:
# /srv/my app/hs_err_pid22510.log
#
"""


def test_the_whole_report_is_named():
    """As the command that reads it."""
    facts = Facts([Read("out.log", parse(OUTPUT, "out.log"))])
    result = judge(facts)
    notes = view(About("HOST", "2026-01-02T03:04:05Z", "VERSION", "opskit crash"), result, Shown()).footer
    assert result.findings[0].next == "opskit crash -v '/srv/my app/hs_err_pid22510.log'"
    assert any(note.endswith("the whole report: opskit crash '/srv/my app/hs_err_pid22510.log'") for note in notes)
