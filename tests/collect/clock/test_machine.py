"""Clocksource, hardware clock, hypervisor and daemons of captured trees: what this machine lacks."""

from __future__ import annotations

import os
from datetime import datetime, timezone

import pytest
from trees import Link

from opskit.collect.clock.daemons import find_daemons
from opskit.collect.clock.machine import is_virtual, read_rtc, read_source
from opskit.host import Host
from opskit.proc.fs import ProcFS

NOW_S = 1_795_349_811
SOURCE = "sys/devices/system/clocksource/clocksource0"
RTC = "sys/class/rtc"
STATUS = "Name:\t{}\nUmask:\t0022\nState:\tS (sleeping)\nTgid:\t{pid}\nPid:\t{pid}\nPPid:\t1\nUid:\t{uid}\nGid:\t0\t0\t0\t0\nThreads:\t1\nCapPrm:\t{caps:016x}\nCapEff:\t{caps:016x}\n"
SYS_TIME = 1 << 25


def host(root):
    found = Host.at(str(root), None)
    found.now = lambda: datetime.fromtimestamp(NOW_S, timezone.utc)
    return found


def test_the_clocksource(tree):
    """The current one, and those there are; a tree without is unknown."""
    root = tree(
        {
            "proc/1/comm": "x",
            f"{SOURCE}/current_clocksource": "hpet\n",
            f"{SOURCE}/available_clocksource": "hpet acpi_pm \n",
        }
    )
    assert read_source(host(root).fs, None) == ("hpet", ("hpet", "acpi_pm"), None)
    (root / SOURCE / "current_clocksource").unlink()
    assert read_source(host(root).fs, None)[0] is None


@pytest.mark.parametrize(
    ("files", "ahead_s", "keeps"),
    [
        ({"rtc0/since_epoch": f"{NOW_S}\n"}, 0.5, None),
        ({"rtc0/since_epoch": f"{NOW_S - 25200}\n"}, -25199.5, None),
        (
            {
                "rtc0/since_epoch": "1\n",
                "rtc1/since_epoch": f"{NOW_S + 60}\n",
                "rtc0/hctosys": "0\n",
                "rtc1/hctosys": "1\n",
            },
            60.5,
            None,
        ),
        ({"rtc0/since_epoch": f"{NOW_S}\n", "adjtime": "0.0 0 0.0\n0\nLOCAL\n"}, 0.5, "LOCAL"),
    ],
)
def test_the_hardware_clock(tree, files, ahead_s, keeps):
    """Of several the one that sets the clock at boot; the middle of its second."""
    named = {("etc/" if name == "adjtime" else f"{RTC}/") + name: text for name, text in files.items()}
    found = read_rtc(host(tree({"proc/1/comm": "x", **named})))
    assert (found.ahead_s, found.keeps) == (pytest.approx(ahead_s), keeps)


@pytest.mark.parametrize("text", [None, "", "soon\n"])
def test_no_hardware_clock(tree, text):
    """None is there, or it cannot be read."""
    files = {} if text is None else {f"{RTC}/rtc0/since_epoch": text}
    assert read_rtc(host(tree({"proc/1/comm": "x", **files}))) is None


DMI = "sys/class/dmi/id"
CPU = "processor\t: 0\nflags\t\t: fpu vme {}constant_tsc\nbugs\t\t:\n"


@pytest.mark.parametrize(
    ("files", "source", "expected"),
    [
        ({"proc/cpuinfo": CPU.format(""), f"{DMI}/sys_vendor": "Dell Inc.\n"}, "tsc", False),
        ({"proc/cpuinfo": CPU.format("hypervisor "), f"{DMI}/sys_vendor": "Dell Inc.\n"}, "tsc", True),
        ({"proc/cpuinfo": CPU.format(""), f"{DMI}/sys_vendor": "QEMU\n"}, "tsc", True),
        ({"proc/cpuinfo": CPU.format(""), f"{DMI}/product_name": "VMware Virtual Platform\n"}, "tsc", True),
        ({"proc/cpuinfo": CPU.format(""), f"{DMI}/sys_vendor": "Dell Inc.\n"}, "kvm-clock", True),
        ({"proc/cpuinfo": CPU.format("")}, "tsc", None),  # no firmware table: firecracker, a board
        ({f"{DMI}/sys_vendor": "Dell Inc.\n"}, "arch_sys_counter", None),
        ({"sys/hypervisor/type": "xen\n"}, "tsc", True),
    ],
)
def test_whether_a_hypervisor_runs_the_machine(tree, files, source, expected):
    """No only where both CPU and firmware say so."""
    assert is_virtual(host(tree({"proc/1/comm": "x", **files})).fs, source) is expected


def process(
    name, *, pid=500, uid="0\t0\t0\t0", caps=SYS_TIME, user="user:[4026531837]", uid_map="0 0 4294967295\n", ppid=1
):
    """The files of one process."""
    stat = f"{pid} ({name}) S {ppid} {pid} {pid} 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 100000 0 0 " + "0 " * 28 + "\n"
    return {
        f"proc/{pid}/comm": f"{name}\n", f"proc/{pid}/stat": stat, f"proc/{pid}/status": STATUS.format(name, pid=pid, uid=uid, caps=caps).replace("PPid:\t1", f"PPid:\t{ppid}"),
        f"proc/{pid}/uid_map": uid_map, **({} if user is None else {f"proc/{pid}/ns/user": Link(user)}),
        "proc/uptime": "5000.00 100.00\n",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("given", "may_set"),
    [
        ({}, True),
        ({"caps": 0, "uid": "1000\t1000\t1000\t1000"}, False),  # a user's program of that name
        ({"user": "user:[4026532999]"}, False),  # root of a container's user namespace
        ({"user": None}, True),  # the link is closed to us: its map is the whole range
        ({"user": None, "uid_map": "0 100000 65536\n"}, False),
    ],
)
def test_a_name_is_no_proof(tree, given, may_set):
    """CAP_SYS_TIME in the initial user namespace is."""
    [found] = find_daemons(host(tree(process("chronyd", **given))))
    assert (found.name, found.pid, found.may_set, found.age_s) == ("chronyd", 500, may_set, 4000.0)


def test_the_helper_of_a_daemon_is_no_second_one(tree):
    """A helper is forked for what needs root; systemd-timesyncd's name is cut by the kernel."""
    root = tree(
        {
            **process("chronyd"),
            **process("chronyd", pid=501, ppid=500),
            **process("systemd-timesyn", pid=600),
            **process("sh", pid=700),
        }
    )
    assert [(each.name, each.pid) for each in find_daemons(host(root))] == [
        ("chronyd", 500),
        ("systemd-timesyncd", 600),
    ]


def test_very_many_processes_of_such_a_name(tree):
    """Twenty at most of those without the right; they do not hide the one that has it."""
    files = process("chronyd", pid=900)
    for pid in range(500, 540):
        files.update(process("ntpd", pid=pid, caps=0))
    found = find_daemons(host(tree(files)))
    assert len(found) == 21
    assert [each.pid for each in found if each.may_set] == [900]


def test_this_machine():
    """What is here can be read by anyone."""
    fs = ProcFS()
    assert read_source(fs, None).current in read_source(fs, None).available
    assert is_virtual(fs, None) in (True, False, None)
    assert all(daemon.pid != os.getpid() for daemon in find_daemons(Host(fs)))
