"""The load average, and the CPUs of /proc/stat."""

from __future__ import annotations

import os

import pytest

from opskit.errors import BadInput
from opskit.proc.files.loadavg import Load, parse_cpu_count, parse_loadavg
from opskit.proc.fs import ProcFS


def test_the_line():
    """Runnable tasks now, of how many, and the last pid."""
    assert parse_loadavg("0.20 0.18 0.12 3/80 11206\n") == Load(0.20, 3, 80, 11206)
    assert parse_loadavg("0.20 0.18 0.12 3/80\n").last_pid is None


@pytest.mark.parametrize("text", ["", "0.20\n", "0.20 0.18 0.12 3\n", "x 0.18 0.12 3/80 1\n", "0.20 0.18 0.12 3/x 1\n"])
def test_other_text_is_refused(text):
    """Cut short, or not a number."""
    with pytest.raises(BadInput):
        parse_loadavg(text)


def test_the_cpus_that_are_online():
    """The first line is the sum of all."""
    assert parse_cpu_count("cpu  1 2\ncpu0 1\ncpu1 1\nintr 5\n") == 2
    assert parse_cpu_count("") is None


def test_this_machine():
    """The file of this machine's kernel."""
    fs = ProcFS()
    assert fs.load(parse_cpu_count, "stat") == os.cpu_count()
    assert fs.load(parse_loadavg, "loadavg").tasks > 0
