"""Answers of doctor: a machine with twelve faults, a healthy one, and samples of a watch."""

from __future__ import annotations

from opskit.analysis.doctor.judge import judge
from opskit.analysis.doctor.seen import Checked, Gap, Outcome, Place, Seen
from opskit.analysis.finding import HOST, Entity, Finding

AT_S = 1_795_442_590.0  # 2026-11-23T14:03:10Z
PLACES = {
    25395: Place(25395, "orders", ("/orders.service",), 1),
    25393: Place(25393, "billing", ("/billing.service",), 1),
    25396: Place(25396, "billing", ("/billing.service",), 1),
    2801: Place(2801, "app", ("/app.service",), 1),
    3111: Place(3111, "java", ("/docker/4f5e6d7c8b9a4f5e6d7c8b9a4f5e6d7c8b9a4f5e6d7c8b9a4f5e6d7c8b9a4f5e",), 1),
    910: Place(910, "nginx", ("/nginx.service",), 1),
}
ROOT = "permission denied: run as root"
ASK = (Gap("units", "systemd units", "it needs --ask"), Gap("java-threads", "Java threads", "it needs --ask"))


def process(pid):
    """A process in its cgroup."""
    place = PLACES.get(pid)
    inside = Entity("cgroup", place.cgroups[0], None, HOST) if place is not None else None
    return Entity("process", pid, 1000 + pid, inside)


def found(code, entity=HOST, severity="warning", said="it is so", share=None, **more):
    """A finding with evidence."""
    return Finding(code, severity, entity, said, more.pop("evidence", "/proc/x: 1"), share=share, **more)


DEADLOCK = found(
    "jvm-deadlock", process(25395), "error",
    'deadlock of 2 threads in 25395 (orders): "deadlock-A" waits for <0x00000000e1a2b3c8> held by "deadlock-B"',
    evidence="thread dump", next="opskit jpmp 25395 --locks",
)  # fmt: skip
CONTENDED = found(
    "lock-contended", Entity("lock", "0xe1a2b3c8", None, process(25395)), "warning",
    '25395 (orders): 5 threads wait for a lock of "lock-holder"',
)  # fmt: skip
PIPE = found(
    "pipe-full-writer-blocked", Entity("pipe", "pipe:[1777960]", None, process(910)), "error",
    "writer 910 (nginx) is blocked: pipe:[1777960] is full and 912 (logger) does not read", next="opskit pipes 910 --ends --fill",
)  # fmt: skip
THROTTLED = found(
    "cpu-throttled", Entity("cgroup", "/billing.service", None, HOST), "warning",
    "25393 (billing) is throttled in 55 % of the periods: its cgroup's quota is 0.3 CPUs", 0.55,
    fix="systemctl set-property billing.service CPUQuota=100%", next="opskit cswitch 25393", window_s=1.0,
)  # fmt: skip
TTSP = found(
    "ttsp-dominates", process(25393), "warning", "25393 (billing): 52 % of pause time is time to safepoint", 0.52
)
THREADS = found(
    "threads-nearly-none-left", Entity("cgroup", "/app.service", None, HOST), "warning",
    "1 more thread can start in /app.service: pids.max is 40", 0.98, fix="systemctl set-property app.service TasksMax=80",
)  # fmt: skip
FULL = found(
    "disk-full", Entity("file", "/var/lib/docker/volumes/with a long name/and more of it"), "error",
    "/var/lib/docker/volumes/with a long name/and more of it is full: 0 B of 20.0 GiB left", 1.0,
    next="opskit fds --deleted",
)  # fmt: skip
FILES = found(
    "rlimit-nearly-used",
    process(2801),
    "warning",
    "1,010 of 1,024 file descriptors are open",
    0.98,
    next="opskit fds 2801",
)
SOCKET = found(
    "attach-socket-mode", Entity("file", "/tmp/.java_pid3111", None, process(3111)), "warning",
    "3111 (java) cannot be reached: /tmp/.java_pid3111 has mode 0666", fix="chmod 600 /tmp/.java_pid3111",
)  # fmt: skip
MORE = [
    found(code, process(pid), "warning", f"{pid} ({PLACES[pid].name}): {said}", share, next=f"opskit {command} {pid}")
    for code, pid, said, share, command in (
        ("heap-nearly-full", 3111, "the heap is 97 % full after a full collection", 0.97, "jvms"),
        ("tcp-close-wait", 2801, "412 connections in CLOSE_WAIT are not closed", None, "tcp"),
        ("io-tiny-writes", 910, "writes 1.2 bytes a call, 41,022 times a second", 0.4, "io"),
        ("thread-ping-pong", 25396, "two threads wake each other 22,000 times a second", 0.3, "cswitch"),
        ("major-faults", 2801, "210 major faults a second", 0.2, "mem"),
    )
]
STALE = [
    found("attach-socket-leftover", Entity("file", f"/tmp/.java_pid{pid}"), "note", f"/tmp/.java_pid{pid} is stale")
    for pid in range(60000, 60034)
]
NOTE = found("dentry-negative", HOST, "note", "2,636,806 negative dentries stand for files that do not exist")


def seen(*findings, gaps=ASK, took_s=1.4, at_s=AT_S, pids=(), names=("jvms", "pipes", "limits"), asked=None):
    """What three checks saw."""
    first, *others = names
    parts = [Checked(first, Outcome(findings, ("4 JVMs",), (), asked or {}), 0.8123, 0.0512)]
    parts += [Checked(name, Outcome((), ("53 pipes", "1,130 processes")), 0.5, 0.06) for name in others]
    return Seen(parts, gaps, PLACES, took_s, at_s, pids)


def troubled(**more):
    """Twelve faults with effects, notes, and what was not checked."""
    gaps = (*ASK, Gap("pipes", "pipes of 3 processes", ROOT), Gap("limits", "limits of 3 processes", ROOT))
    faults = [DEADLOCK, CONTENDED, PIPE, THROTTLED, TTSP, THREADS, FULL, FILES, SOCKET, *MORE, *STALE, NOTE]
    return judge(seen(*faults, gaps=gaps, **more))


def healthy(**more):
    """Nothing was found."""
    return judge(seen(**more))
