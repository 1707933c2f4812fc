"""opskit.analysis.host.kernel: what counts, what is a note, and how often and when it was."""

from __future__ import annotations

import pytest
from nextsteps import try_next

from opskit.analysis.doctor.judge import judge as judge_all
from opskit.analysis.doctor.seen import Checked, Outcome, Seen
from opskit.analysis.host.devices import judge_devices
from opskit.analysis.host.disks import judge_disks
from opskit.analysis.host.kernel import judge
from opskit.collect.host.device_errors import Counted, DeviceFacts, Ext4
from opskit.collect.host.file_systems import ReadOnly, SpaceFacts
from opskit.collect.host.kernel import Facts, Told
from opskit.proc.files.mountinfo import parse_mountinfo
from opskit.proc.kernel_messages import read_message

MINUTE_S, HOUR_S, DAY_S = 60.0, 3600.0, 86_400.0
IO = "I/O error, dev sdb, sector 2048 op 0x0:(READ)"
OOPS = "BUG: kernel NULL pointer dereference, address: 0000000000000010"
LOCKUP = "watchdog: BUG: soft lockup - CPU#1 stuck for 22s! [java:4242]"
HUNG = "INFO: task jbd2/sda1-8:232 blocked for more than 120 seconds."
DOWN = "e1000e 0000:00:19.0 eth0: NIC Link is Down"


def told(text, ago_s=MINUTE_S, **more):
    message = read_message(text)
    assert message is not None
    return Told(message, ago_s, **more)


def found(*messages, taints=(), uptime_s=30 * DAY_S):
    return judge(Facts(taints, uptime_s, messages))


def brief(findings):
    return [(each.code, each.severity, each.entity.name) for each in findings]


@pytest.mark.parametrize(
    ("text", "code", "severity", "entity"),
    [
        (OOPS, "kernel-oops", "error", "host"),
        ("{1}[Hardware Error]: event severity: fatal", "hardware-error", "error", "host"),
        ("EDAC MC0: 12 CE memory read error on CPU_SrcID#0", "hardware-error", "note", "host"),
        ("Uhhuh. NMI received for unknown reason 2d on CPU 0.", "hardware-error", "warning", "host"),
        (LOCKUP, "kernel-lockup", "warning", "host"),
        ("rcu: INFO: rcu_sched self-detected stall on CPU", "kernel-lockup", "warning", "host"),
        (HUNG, "kernel-task-hung", "warning", "host"),
        (IO, "storage-error", "error", "sdb"),
        ("I/O error, dev sr0, sector 0 op 0x0:(READ)", "storage-error", "note", "sr0"),
        ("EXT4-fs (sda1): Remounting filesystem read-only", "filesystem-error", "error", "sda1"),
        (
            "device-mapper: thin: 253:4: switching pool to out-of-data-space (queue IO) mode",
            "storage-error",
            "error",
            "host",
        ),
        ("nfs: server files not responding, still trying", "file-server-silent", "warning", "host"),
        ("NETDEV WATCHDOG: eth0 (igb): transmit queue 0 timed out", "network-errors", "warning", "eth0"),
        ("nf_conntrack: table full, dropping packet.", "conntrack-nearly-full", "warning", "host"),
        (
            "cgroup: fork rejected by pids controller in /app.service",
            "threads-nearly-none-left",
            "warning",
            "/app.service",
        ),
        (
            "TCP: request_sock_TCP: Possible SYN flooding on port 80. Sending cookies.",
            "tcp-syn-queue-full",
            "note",
            "host",
        ),
        ("WARNING: CPU: 1 PID: 77 at net/sched/sch_generic.c:477 dev_watchdog+0x2a1", "kernel-warning", "note", "host"),
    ],
    ids=range(17),
)
def test_each_kind_of_message(text, code, severity, entity):
    """Its code, severity and entity; a day later it is a note."""
    now = found(told(text))
    assert brief(now) == [(code, severity, entity)]
    assert now[0].summary.endswith("60.0 s ago")
    assert len(now[0].summary) <= 200
    assert brief(found(told(text, DAY_S + 1))) == [(code, "note", entity)]
    assert brief(found(told(text, None))) == [(code, "note", entity)]
    assert brief(found(told(text, is_ours=False)))[0][1] == "note"
    try_next(now, code)


def test_where_to_look_closer():
    """At the present state of what the message is about."""
    try_next(found(told("Marking clocksource 'tsc' as unstable")), "kernel-warning")
    try_next(found(told("nf_conntrack: table full, dropping packet.")), "conntrack-nearly-full")
    try_next(found(told("TCP: out of memory -- consider tuning tcp_mem")), "tcp-memory-pressure")


def test_repeated_messages_are_counted():
    """By device; the old ones do not count where there are new ones."""
    messages = (
        [told(IO, 4 * MINUTE_S + at) for at in range(312)]
        + [told(IO, 3 * DAY_S)] * 5
        + [told(IO.replace("sdb", "sdc"))]
    )
    findings = found(*messages)
    assert [each.summary for each in findings] == [
        "I/O error on sdc, 60.0 s ago", "I/O error on sdb, 312 times, last 4 min 0 s ago",
    ]  # fmt: skip


def test_very_many_devices_are_cut():
    """The newest eight, and how many more."""
    findings = found(*(told(IO.replace("sdb", f"sd{at}"), at) for at in range(30)))
    assert len(findings) == 8
    assert findings[0].evidence.endswith("; 22 more")


def test_a_server_that_answers_again_is_no_finding():
    """Its last word counts."""
    silent, answers = "nfs: server files not responding, still trying", "nfs: server files OK"
    assert found(told(silent, 100), told(answers, 50)) == []
    assert brief(found(told(answers, 100), told(silent, 50))) == [("file-server-silent", "warning", "host")]


def test_a_link_that_flaps():
    """Five times within an hour; a laptop that sleeps five times a day is none."""
    assert brief(found(*(told(DOWN, 600.0 * at) for at in range(5)))) == [("link-flapping", "warning", "eth0")]
    assert found(*(told(DOWN, HOUR_S * at) for at in range(10))) == []
    assert found(*(told(DOWN, 600.0 * at) for at in range(4))) == []
    try_next(found(*(told(DOWN, 60.0 * at) for at in range(5))), "link-flapping")


def test_programs_that_crash_again_and_again():
    """Three times is a note; once is nobody's business here."""
    crash = "app[4242]: segfault at 0 ip 00007f3c sp 00007ffd error 4 in libc.so.6"
    assert found(told(crash), told(crash)) == []
    findings = found(*[told(crash)] * 3)
    assert brief(findings) == [("program-crashes", "note", "host")]
    try_next(findings, "program-crashes")


def test_many_corrected_errors_are_a_module_that_fails():
    """A hundred in a day."""
    corrected = told("EDAC MC0: 1 CE memory read error on CPU_SrcID#0")
    assert brief(found(*[corrected] * 100)) == [("hardware-error", "warning", "host")]


def test_a_hung_task_that_still_runs_is_named():
    """By its PID and start time."""
    finding = found(told(HUNG, start_ticks=77))[0]
    assert (finding.entity.kind, finding.entity.id, finding.entity.start_ticks) == ("process", 232, 77)


def test_one_fault_of_a_disk_once():
    """The log and the counter of ext4 tell the same; the error of the disk below explains it, and that it is read-only."""
    chain = "dm-0", "sdb2", "sdb"
    lost = [told("EXT4-fs error (device dm-0): ext4_lookup:1602: inode #2", chain=chain), told(IO, chain=("sdb",))]
    once = Counted({}, {}, {"dm-0": Ext4("dm-0", chain, 3, MINUTE_S)}, {})
    mounts = parse_mountinfo("36 25 253:0 / /data rw - ext4 /dev/mapper/data ro,errors=remount-ro\n")
    by_check = {
        "kernel": found(*lost), "devices": judge_devices(DeviceFacts(once, once, (), 1.0)),
        "disks": judge_disks(SpaceFacts((), (ReadOnly(mounts[0], True, chain=chain),))),
    }  # fmt: skip
    checked = [Checked(name, Outcome(findings), 0.1) for name, findings in by_check.items()]
    [problem] = judge_all(Seen(checked, (), {}, 1.0, 0.0)).problems
    assert brief([problem.finding]) == [("storage-error", "error", "sdb")]
    assert [(each.finding.code, len(each.others)) for each in problem.effects] == [
        ("filesystem-error", 0), ("file-system-read-only", 0),
    ]  # fmt: skip


def test_hostile_text_is_escaped():
    """A task's name has any bytes."""
    finding = found(told("INFO: task \x1b[31mx:4242 blocked for more than 120 seconds."))[0]
    assert "\x1b" not in finding.summary


@pytest.mark.parametrize(
    ("taints", "uptime_s", "severity"),
    [
        ((12, 13), HOUR_S, "note"), ((0,), HOUR_S, "note"), ((9,), HOUR_S, "note"),
        ((7,), HOUR_S, "warning"), ((4,), HOUR_S, "warning"), ((14,), HOUR_S, "warning"),
        ((7,), 2 * DAY_S, "note"), ((7,), None, "note"), ((63,), HOUR_S, "note"),
    ],
)  # fmt: skip
def test_taints(taints, uptime_s, severity):
    """Modules are harmless; an oops counts where the machine was started within a day."""
    findings = found(taints=taints, uptime_s=uptime_s)
    assert brief(findings) == [("kernel-tainted", severity, "host")]
    try_next(findings, "kernel-tainted")


def test_a_taint_that_the_log_tells_is_a_note():
    """One cause once: the log has its time."""
    assert brief(found(told(OOPS), taints=(7,), uptime_s=HOUR_S)) == [
        ("kernel-oops", "error", "host"), ("kernel-tainted", "note", "host"),
    ]  # fmt: skip


def test_nothing():
    """No message and no taint."""
    assert found() == []
    assert judge(Facts(None, None)) == []
