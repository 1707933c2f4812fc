"""Text that no kernel writes: every parser returns a value or raises BadInput, in bounded time."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opskit.collect.limits.program import cpu_count
from opskit.errors import BadInput
from opskit.proc import pipe_waits as pipewaits
from opskit.proc.cgroup import owner as place
from opskit.proc.cgroup import tree as cgroup  # fmt: skip
from opskit.proc.config import pam_limits as pamlimits  # fmt: skip
from opskit.proc.config import setting as conf
from opskit.proc.fifo_opens import parse_open
from opskit.proc.files import boot_time as boot  # fmt: skip
from opskit.proc.files import (
    dentry_state,
    fd,
    io,
    limits,
    loadavg,
    maps,
    meminfo,
    mountinfo,
    pressure,
    slabinfo,
    stat,
    status,
    vmstat,
)
from opskit.proc.files import schedstat as threadcpu
from opskit.proc.files import uid_map as idmap
from opskit.proc.files.limits import UNLIMITED
from opskit.proc.fs import ids
from opskit.proc.kernel import ftrace  # fmt: skip

RUN = 128_000


def everything_of_a_status(text):
    """Each view of a status."""
    found = status.parse_status(text)
    for name in ("real_uid", "effective_uid", "effective_gid", "real_gid"):
        try:
            getattr(found, name)
        except BadInput:
            continue
    return found.threads, found.parent_pid, found.groups, found.ns_pids, found.bytes_of("VmRSS"), found.mask("SigCgt")


PARSERS = {
    "btime": (boot.parse_boot_time, "cpu 1\nbtime 1795242000\n"),
    "uptime": (boot.parse_uptime, "350735.47 234388.90\n"),
    "cgroup": (cgroup.parse_cgroup, "8:pids:/system.slice/app.service\n0::/a\n"),
    "cgroup mounts": (cgroup._parse_cgroup_mounts, "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"),
    "dentry-state": (lambda text: dentry_state.parse_dentry_state(text, text), "1 2 45 0 5 0\n"),
    "fdinfo": (fd.parse_fdinfo, "pos:\t0\nflags:\t02004002\n"),
    "trace": (
        lambda text: [ftrace.named(event) for event in ftrace.parse_failures(text.encode("utf-8", "surrogateescape"))],
        "         python3-9372    [000] .....  3697.270890: sys_exit: NR 21 = -2\n",
    ),
    "buffer stats": (ftrace.parse_buffer_stats, "entries: 9380\noverrun: 366125\n"),
    "uid_map": (idmap.parse_id_map, "0 100000 65536\n"),
    "limits": (limits.parse_limits, "Limit\nMax stack size            8388608              unlimited            bytes\n"),
    "loadavg": (loadavg.parse_loadavg, "0.20 0.18 0.12 3/80 11206\n"),
    "cpus": (loadavg.parse_cpu_count, "cpu  1\ncpu0 1\n"),
    "maps": (maps.parse_maps, "7f1200000000-7f1200021000 rw-p 00000000 00:00 0 /usr/lib/libc.so.6\n"),
    "smaps": (maps.locks_new_mappings, "7f1200000000-7f1200021000 ---p 00000000 00:00 0\nVmFlags: lo\n"),
    "meminfo": (meminfo.parse_meminfo, "MemTotal: 24609996 kB\n"),
    "mountinfo": (mountinfo.parse_mountinfo, "36 35 98:0 /a\\040b /mnt2 rw master:1 - ext3 /dev/root rw\n"),
    "remote mounts": (mountinfo.parse_remote_mount_points, "36 35 98:0 / /mnt2 rw - nfs a:/b rw\n"),
    "limits.conf value": (lambda text: [pamlimits.parse_value(item, text) for item in ("stack", "nice", "cpu")], "1024"),
    "limits.conf domain": (lambda text: (pamlimits._range(text), pamlimits._split(text)), "@100:200 soft nproc 5"),
    "syscall": (lambda text: pipewaits.parse_call(text, "x86_64"), "1 0x4 0x7f3c2c0008b0 0x10000 0x0 0x0 0x0 0x7ffd 0x7f3c\n"),
    "place": (lambda text: place.owner_of([cgroup.Membership(0, (), text[:4096])]), "/docker/" + "a1" * 32),
    "io": (io.parse_io, "rchar: 5\nwchar: 6\nsyscr: 1\n"),
    "poll": (lambda text: pipewaits.parse_poll(text, "x86_64"), "7 0x7ffc10 0x2 0xffffffff 0x0 0x0 0x0 0x7ffc 0x7f98\n"),
    "open": (lambda text: parse_open(text, "x86_64"), "257 0xffffff9c 0x5575 0x241 0x1b6 0x0 0x1 0x7ffc 0x7f98\n"),
    "pressure": (pressure.parse_pressure, "some avg10=0.00 avg60=0.12 avg300=0.09 total=72873122\n"),
    "cpu list": (cpu_count, "0-3,8\n"),
    "slabinfo": (slabinfo.parse_slabinfo, "slabinfo - version: 2.1\ndentry 1 2 192 21 1 : tunables 0 0 0 : slabdata 3 4 0\n"),
    "stat": (stat.parse_stat, "4242 (java) S 1 4242 4242 0 -1 1077936384 16233 0 12 0 310 45 0 0 20 0 35 0 8675309 9 8\n"),
    "status": (everything_of_a_status, "Name:\tjava\nUid:\t1\t1\t1\t1\nGid:\t1\t1\t1\t1\nGroups:\t4 5\nNSpid:\t5\t1\nSigCgt:\t2000\n"),
    "sysctl.d": (
        lambda text: [conf._sysctl_name(each.key) for each in conf.parse_settings("/x", text.splitlines())],
        "kernel.threads-max = 4096\n",
    ),
    "schedstat": (threadcpu.parse_schedstat, "10385712 62103 31\n"),
    "vmstat": (vmstat.parse_vmstat, "nr_slab_reclaimable 124593\n"),
    "names": (lambda text: ids(text.split()), "1 2 3"),
}  # fmt: skip
PIECES = ("9", "0", "a", "f", "-", " ", "\t", "\n", ":", "/", ".", "(", ")", ",", "=", "%", "*", "@", "[", "²", "٣", "\udcff", "\0", "\x0b", "\u2028",
          "9 ", "a:", "/a", "-1 ", "1-", " - ", ".so", "/libc-2.", "a=", "1:", "(a) ", "lo ", "\\040", "\\x2d")  # fmt: skip


def read(name, text):
    """Through the parser; None for BadInput."""
    try:
        return PARSERS[name][0](text)
    except BadInput:
        return None


@pytest.mark.parametrize("name", sorted(PARSERS))
def test_what_a_kernel_writes_is_read(name):
    """Each parser accepts its sample."""
    assert read(name, PARSERS[name][1]) not in (None, [], ())


# All others are targets of test_fuzz.py, which feeds them such runs.
NO_TARGETS = ("cpu list", "limits.conf domain", "limits.conf value", "names", "open", "poll")


@pytest.mark.parametrize("name", NO_TARGETS)
def test_long_runs_take_no_time(name):
    """128 KB of each character and pair of the formats, alone, after and before a valid line."""
    sample = PARSERS[name][1]
    for piece in PIECES:
        run = piece * (RUN // len(piece))
        half = len(sample) // 2
        for text in (run, sample + run, run + sample, sample[:half] + run + sample[half:]):
            begun = time.process_time()
            read(name, text)
            assert time.process_time() - begun < 1, (piece, text[:40])


@pytest.mark.parametrize("name", sorted(PARSERS))
def test_numbers_that_are_none(name):
    """Each number of the sample replaced: too long, negative, empty, of another script, `max`, a fraction, infinite."""
    sample = PARSERS[name][1]
    starts = [at for at in range(len(sample)) if sample[at].isdigit() and (at == 0 or not sample[at - 1].isdigit())]
    for at in starts:
        end = at
        while end < len(sample) and sample[end].isdigit():
            end += 1
        for number in (
            "9" * 5000,
            "f" * 5000,
            "-1",
            "",
            "²",
            "٣",
            "max",
            "1_0",
            "1e999",
            "nan",
            "0x",
            "18446744073709551616",
            "\udcff",
        ):
            read(name, sample[:at] + number + sample[end:])
    for cut in range(len(sample)):
        read(name, sample[:cut])


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_whatever_is_drawn(data):
    """Pieces of all formats in any order."""
    name = data.draw(st.sampled_from(sorted(PARSERS)))
    words = st.sampled_from([*PIECES, *PARSERS[name][1].split(), PARSERS[name][1]])
    read(name, "".join(data.draw(st.lists(words, max_size=30))))


def test_numbers_of_limits_conf_saturate():
    """As strtoull does: a number that is too large means no limit, and leading zeros are skipped."""
    assert pamlimits.parse_value("nofile", "9" * 5000) == UNLIMITED
    assert pamlimits.parse_value("nofile", "0" * 5000 + "7") == 7
    assert pamlimits.parse_value("nofile", "+7x") == 7
    assert pamlimits.parse_value("nofile", "x") is None
    assert pamlimits.parse_value("nofile", "٣") is None
    assert pamlimits.parse_value("nice", "-" + "9" * 5000) == 40
    assert pamlimits.parse_value("nice", "0") == 20


def test_names_with_other_line_ends_stay_whole():
    """Only a newline ends a line: a form feed in the name of a file or cgroup does not."""
    name = "/tmp/a\x0b\x0c\x1c\x85\u2028b"
    found = maps.parse_maps(
        f"7f1200000000-7f1200021000 r-xp 00000000 00:00 0 {name}\n7f1300000000-7f1300021000 r-xp 0 0:0 0\n"
    )
    assert found is not None
    assert found.maps == 2
    [mount] = mountinfo.parse_mountinfo(f"36 35 98:0 / {name} rw - ext3 /dev/root rw\n")
    assert mount.mount_point == name
    [member] = cgroup.parse_cgroup(f"0::{name}\n")
    assert member.path == name


def test_pids_are_written_as_the_kernel_writes_them():
    """No sign, blank, other script or leading zero; not 0, and at most the largest PID."""
    assert ids(
        ["12", "007", "00", "0", "²", "٣", "-1", "+1", " 5", "1_0", "2147483648", "9" * 5000, "\udcff", "", "3"]
    ) == [3, 12]
