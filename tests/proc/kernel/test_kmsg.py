"""Records of /dev/kmsg: as `dmesg -r` shows them, in pieces, with callers, escaped; the real device."""

from __future__ import annotations

import os
import stat
import subprocess

import pytest

from opskit.proc.kernel import kmsg
from opskit.proc.kernel.kmsg import _of_records, read_kernel_log


def test_records_become_lines():
    """Priority, time and text; the keys below a record are left out."""
    found = _of_records(
        ["6,0,5140900,-;NET: Registered\n SUBSYSTEM=pci\n DEVICE=+pci:0\n", "12,1,51910671720,-;written by a process\n"]
    )
    assert found.text == "<6>[    5.140900] NET: Registered\n<12>[51910.671720] written by a process"
    assert found.is_whole is True


def test_a_line_in_pieces_is_joined():
    """Until 4.19 a line may come as several records."""
    found = _of_records(
        ["4,7,1000000,c;Task in \n", "4,8,1000001,+;/a\n", "4,9,1000002,+; killed\n", "4,10,1000003,-;next\n"]
    )
    assert found.text == "<4>[    1.000000] Task in /a killed\n<4>[    1.000003] next"
    assert found.is_whole is False


def test_callers_and_escapes_stay():
    """CONFIG_PRINTK_CALLER; a line feed in a name is no new line."""
    assert _of_records(["4,0,1000000,-,caller=T4242;a\\x0ab\n"]).text == "<4>[    1.000000][T4242] a\\x0ab"


@pytest.mark.parametrize("record", ["", "x", "4,5;x", "a,b,c,d;x", ";", "4,5,6;x\n", "4,5," + "9" * 30 + ",-;x"])
def test_records_that_are_none(record):
    """They are left out."""
    assert _of_records([record]).text == ""


@pytest.mark.parametrize(
    "make",
    [
        os.mkfifo,
        lambda path: os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 3)),
        lambda path: path.write_text("4,0,1,-;x"),
    ],
)
def test_what_stands_in_for_the_device(root_only, monkeypatch, tmp_path, make):
    """A container may have /dev/null, a FIFO or a file there: syslog(2) is asked instead."""
    place = tmp_path / "kmsg"
    make(place)
    monkeypatch.setattr(kmsg, "_PATH", str(place))
    monkeypatch.setattr(kmsg, "kernel_log", lambda: "<6>[    0.000000] Linux\n")
    assert read_kernel_log() == ("<6>[    0.000000] Linux\n", None)


def test_the_real_device(root_only):
    """The same records as dmesg prints, in the same order."""
    if not os.access("/dev/kmsg", os.R_OK):
        pytest.skip("needs to read /dev/kmsg")
    ours = read_kernel_log().text.split("\n")
    theirs = subprocess.run(
        ["dmesg", "-r"], capture_output=True, text=True, errors="replace", check=False
    ).stdout.splitlines()
    if not theirs:
        pytest.skip("dmesg prints nothing here")
    common = [line for line in theirs if line in set(ours)]
    assert len(common) >= 0.9 * len(theirs)  # names are escaped in another way, and the log goes on
    assert common == [line for line in ours if line in set(theirs)][: len(common)]
