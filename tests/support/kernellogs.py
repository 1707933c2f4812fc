"""Reports of the OOM killer as the kernels 2.6.32 to 6.18 print them, and the forms in which logs keep their lines.

Composed after the formats of mm/oom_kill.c, mm/memcontrol.c and lib/dump_stack.c of each release.
"""

from __future__ import annotations

import json
from typing import NamedTuple

PAGE_KIB = 4
NO_LIMIT_KIB = 9007199254740988


class Process(NamedTuple):
    """A row of the table, in pages."""

    pid: int
    name: str
    rss: int
    uid: int = 1000
    adj: int = 0
    swap: int = 0


JAVA = Process(4242, "java", 103000)
TAIL = Process(4300, "tail -f (x) 7", 700, adj=-998)
PAUSE = Process(4200, "pause", 1, 0, -998)
CGROUP, OWN = "/system.slice/orders.service", "/system.slice/orders.service/java"
HEADERS = {
    "3.10": "[ pid ]   uid  tgid total_vm      rss nr_ptes swapents oom_score_adj name",
    "4.4": "[ pid ]   uid  tgid total_vm      rss nr_ptes nr_pmds swapents oom_score_adj name",
    "4.18": "[  pid  ]   uid  tgid total_vm      rss pgtables_bytes swapents oom_score_adj name",
    "6.8": "[  pid  ]   uid  tgid total_vm      rss rss_anon rss_file rss_shmem pgtables_bytes swapents oom_score_adj name",
}
KERNELS = ("3.10", "el7", "4.4", "4.18", "5.4", "5.10", "6.8", "6.18")
_TABLE_OF = {"el7": "3.10", "5.4": "4.18", "5.10": "4.18", "6.18": "6.8"}
_ONE_LINE_STATS = ("3.10", "el7", "4.4", "4.18")
_OLD = ("3.10", "el7", "4.4", "4.18")


def row(kernel, process):
    """The table's line for a process."""
    table = _TABLE_OF.get(kernel, kernel)
    pid = f"[{process.pid:5d}]" if table in ("3.10", "4.4") else f"[{process.pid:7d}]"
    more = {"3.10": "60 ", "4.4": "60 4 ", "4.18": "245760 ", "6.8": f"{process.rss - 1} 1 0 245760 "}[table]
    return f"{pid} {process.uid:5d} {process.pid:5d} {process.rss * 6:8d} {process.rss:8d} {more}{process.swap:8d} {process.adj:13d} {process.name}"


def killed(kernel, victim, why="Memory cgroup out of memory", anon_kib=None, page_kib=PAGE_KIB):
    """The last sentence."""
    anon = victim.rss * page_kib - 12000 if anon_kib is None else anon_kib
    sizes = f"total-vm:{victim.rss * 6 * page_kib}kB, anon-rss:{anon}kB, file-rss:12000kB"
    if kernel in ("3.10", "4.4"):
        return f"Killed process {victim.pid} ({victim.name}) {sizes}"
    if kernel == "el7":
        return f"Killed process {victim.pid} ({victim.name}), UID {victim.uid}, {sizes}, shmem-rss:0kB"
    if kernel == "4.18":
        return f"Killed process {victim.pid} ({victim.name}) {sizes}, shmem-rss:0kB"
    return f"{why}: Killed process {victim.pid} ({victim.name}) {sizes}, shmem-rss:0kB, UID:{victim.uid} pgtables:240kB oom_score_adj:{victim.adj}"


def chosen(kernel, victim, cgroup, own, why):
    """The sentence before it: until 4.18 by its score, since 5.0 the context."""
    if kernel in _OLD:
        return f"{why}: Kill process {victim.pid} ({victim.name}) score 990 or sacrifice child"
    constraint = "CONSTRAINT_MEMCG" if cgroup else "CONSTRAINT_NONE"
    full = f"oom_memcg={cgroup}" if cgroup else "global_oom"
    return (
        f"oom-kill:constraint={constraint},nodemask=(null),cpuset=/,mems_allowed=0,{full},task_memcg={own or '/'},"
        f"task={victim.name},pid={victim.pid},uid={victim.uid}"
    )


def _cpu(kernel, invoker, pid):
    uid = "UID: 0 " if kernel == "6.18" else ""
    return f"CPU: 1 {uid}PID: {pid} Comm: {invoker} Not tainted {kernel}.0-test #1"


def _stats(kernel, cgroup, own, anon_kib):
    if kernel in _ONE_LINE_STATS:
        empty = f"Memory cgroup stats for {cgroup}: cache:0KB rss:0KB rss_huge:0KB mapped_file:0KB swap:0KB inactive_file:0KB"
        full = f"Memory cgroup stats for {own}: cache:8KB rss:{anon_kib}KB rss_huge:0KB mapped_file:0KB swap:0KB inactive_file:4KB"
        return [empty, full] if own != cgroup else [full]
    numbers = f"anon {anon_kib * 1024}", "file 8192", "kernel_stack 811008", "shmem 4096", "slab_unreclaimable 600000"
    head = f"Memory cgroup stats for {cgroup}:"
    return [head, *numbers] if kernel in ("6.8", "6.18") else [head, "\n".join(numbers)]


def cgroup_report(
    kernel,
    victim=JAVA,
    others=(TAIL, PAUSE),
    cgroup=CGROUP,
    own=OWN,
    limit_kib=409600,
    invoker="VM Thread",
    invoker_pid=4251,
):
    """A kill at a cgroup's limit; messages, of which some have several lines."""
    gfp = "0xd0" if kernel in ("3.10", "el7") else "0x14000c0(GFP_KERNEL)"
    nodes = "" if kernel in ("3.10", "el7", "4.4", "5.4", "5.10", "6.8", "6.18") else " nodemask=(null), "
    memsw = "swap" if kernel == "5.10" else "memory+swap"
    return [
        f"{invoker} invoked oom-killer: gfp_mask={gfp},{nodes} order=0, oom_score_adj={victim.adj}",
        _cpu(kernel, invoker, invoker_pid),
        "Call Trace:",
        " dump_header+0x43/0x1c0",
        *([f"Task in {own} killed as a result of limit of {cgroup}"] if kernel in _OLD else []),
        f"memory: usage {limit_kib}kB, limit {limit_kib}kB, failcnt 24",
        f"{memsw}: usage {limit_kib if '+' in memsw else 0}kB, limit {NO_LIMIT_KIB}kB, failcnt 0",
        *([f"kmem: usage 2136kB, limit {NO_LIMIT_KIB}kB, failcnt 0"] if memsw == "memory+swap" else []),
        *_stats(kernel, cgroup, own, limit_kib - 4000),
        *(["Tasks state (memory values in pages):"] if kernel not in ("3.10", "el7", "4.4") else []),
        HEADERS[_TABLE_OF.get(kernel, kernel)],
        *(row(kernel, each) for each in (*others, victim)),
        chosen(kernel, victim, cgroup, own, "Memory cgroup out of memory"),
        killed(kernel, victim),
    ]


def host_report(kernel, victim=JAVA, others=(TAIL, PAUSE), page_kib=PAGE_KIB, order=0):
    """The whole machine out of memory."""
    return [
        f"cp invoked oom-killer: gfp_mask=0x24201ca, order={order}, oom_score_adj=0",
        _cpu(kernel, "cp", 4289),
        "Mem-Info:",
        "active_anon:960000 inactive_anon:12000 isolated_anon:0\n active_file:120 inactive_file:80 isolated_file:0\n"
        " unevictable:0 dirty:0 writeback:0\n slab_reclaimable:2000 slab_unreclaimable:9000\n"
        " mapped:600 shmem:4000 pagetables:5000 bounce:0\n free:8192 free_pcp:0 free_cma:0",
        "Node 0 DMA free:15900kB min:256kB low:320kB high:384kB active_anon:0kB",
        "Node 0 hugepages_total=512 hugepages_free=512 hugepages_surp=0 hugepages_size=2048kB",
        "4200 total pagecache pages",
        "Free swap  = 0kB",
        "Total swap = 2097148kB",
        "1048576 pages RAM",
        "30000 pages reserved",
        HEADERS[_TABLE_OF.get(kernel, kernel)],
        *(row(kernel, each) for each in (*others, victim)),
        chosen(kernel, victim, None, "/user.slice", "Out of memory"),
        killed(kernel, victim, "Out of memory", page_kib=page_kib),
    ]


def _split(messages):
    return [line for message in messages for line in message.split("\n")]


def _syslog2(messages, start=1215.612345):
    return "".join(f"<4>[{start + number * 1e-6:>12.6f}] {line}\n" for number, line in enumerate(_split(messages)))


def _kmsg(messages, start=1215.612345):
    """What read_kernel_log() makes of /dev/kmsg: a line feed is escaped."""
    escaped = (message.replace("\n", "\\x0a") for message in messages)
    return "".join(f"<4>[{start + number * 1e-6:>12.6f}] {line}\n" for number, line in enumerate(escaped))


def _caller(messages, caller="T4251"):
    return "".join(f"[ 1215.612345][{caller:>6}] {line}\n" for line in _split(messages))


def _prefixed(prefix):
    return lambda messages: "".join(f"{prefix}{line}\n" for line in _split(messages))


def _indented(messages):
    """Journalctl -o short: the further lines of a message are indented."""
    prefix = "Nov 24 16:00:00 web1 kernel: "
    return "".join(prefix + message.replace("\n", "\n" + " " * len(prefix)) + "\n" for message in messages)


def _from_the_journal(messages):
    """/var/log/messages of RHEL: rsyslog reads the journal, and escapes line feeds."""
    return "".join(
        f"Nov 24 16:00:00 web1 kernel: {message}\n".replace("\n", "#012", message.count("\n")) for message in messages
    )


def _json(messages):
    fields = {"__REALTIME_TIMESTAMP": "1764000000123456", "_TRANSPORT": "kernel", "SYSLOG_FACILITY": "0"}
    return "".join(json.dumps({**fields, "MESSAGE": message}) + "\n" for message in messages)


def _bytes_in_json(messages):
    fields = {"__REALTIME_TIMESTAMP": "1764000000123456", "_TRANSPORT": "kernel", "SYSLOG_FACILITY": "0"}
    return "".join(
        json.dumps({**fields, "MESSAGE": list(message.encode())}, separators=(",", ":")) + "\n" for message in messages
    )


def export(messages, transport="kernel"):
    """Journalctl -o export, where a message of several lines comes with its length."""
    parts = []
    for message in messages:
        data = message.encode()
        text = b"MESSAGE\n" + len(data).to_bytes(8, "little") + data if b"\n" in data else b"MESSAGE=" + data
        head = (
            b"__CURSOR=s=1\n__REALTIME_TIMESTAMP=1764000000123456\n_TRANSPORT=%b\nSYSLOG_FACILITY=0\n"
            % transport.encode()
        )
        parts.append(head + text + b"\n\n")
    return b"".join(parts).decode("utf-8", "surrogateescape")


FORMS = {
    "syslog(2)": _syslog2,
    "kmsg": _kmsg,
    "dmesg": _prefixed("[ 1215.612345] "),
    "dmesg with callers": _caller,
    "dmesg with callers and a blank": _prefixed("[ 1215.612345] [ T4251] "),
    "talos": _prefixed("kern: warning: [2026-11-24T16:00:00.123456Z]: "),
    "a mail": _prefixed("> > [ 1215.612345] "),
    "dmesg -T": _prefixed("[Tue Nov 24 16:00:00 2026] "),
    "dmesg -x": _prefixed("kern  :warn  : [ 1215.612345] "),
    "dmesg -e": _prefixed("[  +0.000004] "),
    "dmesg iso": _prefixed("2026-11-24T16:00:00,123456+01:00 "),
    "syslog": _prefixed("Nov 24 16:00:00 web1 kernel: "),
    "journal in French": _prefixed("févr. 24 16:00:00 web1 kernel: "),
    "dmesg -T in Chinese": _prefixed("[二 11月 24 16:00:00 2026] "),
    "kern.log": _prefixed("Nov 24 16:00:00 web1 kernel: [ 1215.612345] "),
    "rsyslog of the journal": _from_the_journal,
    "rsyslog iso": _prefixed("2026-11-24T16:00:00.123456+01:00 web1 kernel: [ 1215.612345] "),
    "rfc 5424": _prefixed("<4>1 2026-11-24T16:00:00.123456+01:00 web1 kernel - - - "),
    "busybox": _prefixed("Nov 24 16:00:00 web1 kern.warn kernel: [ 1215.612345] "),
    "journal short": _indented,
    "journal short-precise": _prefixed("Nov 24 16:00:00.123456 web1 kernel: "),
    "journal short-full": _prefixed("Tue 2026-11-24 16:00:00 CET web1 kernel: "),
    "journal short-unix": _prefixed("1764000000.123456 web1 kernel: "),
    "journal short-monotonic": _prefixed("[ 1215.612345] web1 kernel: "),
    "journal json": _json,
    "journal json of bytes": _bytes_in_json,
    "journal export": export,
    "hypervisor": _prefixed("2026-11-24T16:00:00.127Z In(05) vcpu-5 - Guest: <6>[ 1215.612345] "),
    "bare": _prefixed(""),
}
