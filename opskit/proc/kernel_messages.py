r"""The kernel's own messages about what went wrong, as Linux 3.10 to 6.18 print them.

watchdog: BUG: soft lockup - CPU#1 stuck for 22s! [java:4242]
INFO: task jbd2/sda1-8:232 blocked for more than 120 seconds.
blk_update_request: I/O error, dev sdb, sector 2048 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 0

Each pattern holds from the beginning of a message on: names of processes, devices and paths inside of one are chosen by users. A process
begins some messages with its own name (`NAME[4242]: segfault at 0`, `NAME invoked oom-killer`), and those are read first.
"""

from __future__ import annotations

import re

from opskit.quantities import decimal, integer
from opskit.records import NamedTuple

(
    OOPS, LOCKUP, STALL, HUNG_TASK, UNCORRECTED, CORRECTED, PCIE_CORRECTED, NMI, IO_ERROR, FILE_SYSTEM, CONNTRACK, TCP_MEMORY, NEIGHBOURS, FILE_MAX,
    FORK_REJECTED, SYN_FLOOD, SERVER_SILENT, SERVER_ANSWERS, LINK_DOWN, SEGFAULT, ALLOCATION, WARNING, CLOCKSOURCE, RESUMED, THIN_FULL,
    SEND_TIMEOUT,
) = (
    "oops", "lockup", "stall", "hung-task", "uncorrected", "corrected", "pcie-corrected", "nmi", "io-error", "file-system", "conntrack", "tcp-memory",
    "neighbours", "file-max", "fork-rejected", "syn-flood", "server-silent", "server-answers", "link-down", "segfault", "allocation", "warning",
    "clocksource", "resumed", "thin-full", "send-timeout",
)  # fmt: skip
_LONGEST = 300
_MOST = 2000  # messages with each needle, the newest


class Message(NamedTuple):
    """A message: when, in seconds since boot without suspend (None: unknown), its kind, and what it is about: a device, a task, a CPU."""

    at_s: float | None
    kind: str
    subject: str | None
    text: str
    pid: int | None = None


# Kind, a text that each such message has, and a pattern. What begins with the name of a process: at most 15 bytes, each of which /dev/kmsg
# may write as \xNN. None: nothing, whatever the name says.
_BY_NAME = (
    (SEGFAULT, "]", r"(?:traps: )?(?P<s>.{1,60}?)\[(?P<pid>\d{1,10})\]:? (?:segfault at |general protection|trap )"),
    (ALLOCATION, "page allocation ", r"(?P<s>.{1,60}?): page allocation (?:failure|stalls)[:. ]"),
    (None, "invoked oom-killer", r".{1,60}? invoked oom-killer: "),
    (None, ": ", r".{1,60}? ?[\[(]\d{1,10}[\])]: "),
)
_DEVICE = r"(?P<s>[\w!.:-]{1,40})"
_OF_DEVICE = r"\((?:device )?(?P<s>[\w!.:-]{1,40}?)(?::? state [A-Z]{1,8})?\)"
# A disk may refuse these at each fstrim: nothing is lost.
_NO_DISCARD = r"(?!.{0,60}(?:DISCARD|SECURE_ERASE|WRITE_ZEROES|WRITE_SAME)\))"
# The first one that matches.
_PATTERNS = (
    (LOCKUP, "soft lockup", r"(?:NMI )?(?:watchdog: )?BUG: soft lockup - CPU#(?P<s>\d{1,5}) "),
    (LOCKUP, "hard LOCKUP", r"(?:NMI )?(?:[Ww]atchdog: )?(?:CPU\d{1,5}: )?Watchdog detected hard LOCKUP on cpu (?P<s>\d{1,5})"),
    (LOCKUP, "workqueue lockup", r"BUG: workqueue lockup - pool "),
    (STALL, "INFO: rcu_", r"(?:rcu: )?INFO: rcu_\w{1,20} (?:detected|self-detected) (?:expedited )?stalls? on CPU"),
    (STALL, "kthread starved", r"rcu: rcu_\w{1,20} kthread starved for "),
    (HUNG_TASK, "INFO: task ", r"INFO: task (?P<s>.{1,60}):(?P<pid>\d{1,10}) blocked (?:in I/O wait )?for more than \d{1,10} seconds"),
    (OOPS, "BUG: ", r"BUG: (?:unable to handle|kernel NULL pointer|Bad page |Bad rss-counter|scheduling while atomic|KASAN: |KFENCE: |kernel stack overflow|stack guard|using __this_cpu)"),
    (OOPS, "kernel BUG at ", r"kernel BUG at \S{1,200}:\d{1,6}!"),
    (OOPS, "Oops", r"(?:Internal error: )?Oops(?: - [\w ]{1,40})?: .{0,120}\[#\d{1,4}\]"),
    (OOPS, " [#", r"(?:general protection fault|invalid opcode|divide error|stack segment)(?:,.{0,120})?: [0-9a-f]{4} \[#"),
    (OOPS, "Unable to handle kernel", r"Unable to handle kernel (?:paging request|NULL pointer|access)"),
    (UNCORRECTED, "[Hardware Error]", r"(?:mce: |\{\d{1,6}\})?\[Hardware Error\]: .{0,80}(?:[Uu]ncorrected|severity: (?:fatal|recoverable)|Deferred error)"),
    (UNCORRECTED, "hardware memory error", r"mce: Uncorrected hardware memory error"),
    (UNCORRECTED, "Machine Check Exception", r"CPU \d{1,5}: Machine Check Exception: "),
    (UNCORRECTED, "Memory failure: ", r"Memory failure: 0x[0-9a-f]{1,16}: recovery action "),
    (UNCORRECTED, "EDAC ", r"EDAC \w{1,20}: \d{1,9} UE "),
    (UNCORRECTED, "ncorrect", r"[\w-]{1,30} [0-9a-f:.]{7,16}: (?:AER: )?(?:Uncorrect(?:ed|able) |PCIe Bus Error: severity=Uncorrect)"),
    (CORRECTED, "[Hardware Error]", r"(?:mce: |\{\d{1,6}\})?\[Hardware Error\]: .{0,80}(?:Corrected error|severity: corrected|Machine check events logged)"),
    (CORRECTED, "EDAC ", r"EDAC \w{1,20}: \d{1,9} CE "),
    (PCIE_CORRECTED, "Correct", r"[\w-]{1,30} [0-9a-f:.]{7,16}: (?:AER: )?(?:(?:Multiple )?Correct(?:ed|able) |PCIe Bus Error: severity=Correct)"),
    (NMI, "NMI", r"(?:Uhhuh\. )?NMI(?: received for unknown reason|: memory parity error|: PCI system error|: IOCK error)"),
    (IO_ERROR, " error, dev ", rf"(?:(?:blk_update_request|print_req_error|end_request): )?(?:I/O|critical (?:medium|target|nexus|space allocation)) error, dev {_DEVICE}, {_NO_DISCARD}"),
    (IO_ERROR, "I/O error on dev", rf"Buffer I/O error on (?:dev|device) {_DEVICE},"),
    (IO_ERROR, "nvme nvme", r"nvme (?P<s>nvme\d{1,4}): (?:I/O (?:tag )?\d{1,6}.{0,80} timeout|controller is down; will reset|Device not ready)"),
    (IO_ERROR, "failed command: ", r"(?P<s>ata\d{1,4}(?:\.\d\d)?): failed command: "),
    (IO_ERROR, "rejecting I/O", r"sd [\d:]{3,30}: (?:\[(?P<s>\w{1,20})\] )?rejecting I/O to (?:offline|dead) device"),
    (IO_ERROR, "Medium Error", r"sd [\d:]{3,30}: (?:\[(?P<s>\w{1,20})\] )?.{0,40}Medium Error"),
    (THIN_FULL, "out-of-data-space", r"device-mapper: thin: \d{1,4}:\d{1,7}: switching pool to out-of-data-space "),
    (FILE_SYSTEM, "-fs error", rf"EXT[234]-fs error {_OF_DEVICE}"),
    (FILE_SYSTEM, "-fs (", rf"EXT[234]-fs {_OF_DEVICE}: (?:Remounting filesystem read-only|.{{0,120}}data loss)"),
    (FILE_SYSTEM, "XFS (", rf"XFS {_OF_DEVICE}: (?:Corruption |Metadata |metadata I/O error|xfs_do_force_shutdown|Filesystem has been shut down|writeback error|Internal error|Please u?n?mount)"),
    (FILE_SYSTEM, "BTRFS", rf"BTRFS:? (?:error|critical) {_OF_DEVICE}"),
    (FILE_SYSTEM, "Aborting journal", r"Aborting journal on device (?P<s>[\w!.:-]{1,40}?)-\d{1,20}\."),
    (FILE_SYSTEM, "JBD2: ", r"JBD2: Detected IO errors while flushing file data on (?P<s>[\w!.:-]{1,40}?)-\d{1,20}$"),
    (CONNTRACK, "table full", r"(?:nf_conntrack: )?(?:nf|ip)_conntrack: table full(?: in netns (?P<s>\d{1,12}))?"),
    (TCP_MEMORY, "TCP: out of", r"TCP: out of memory"),
    (TCP_MEMORY, "TCP: too many", r"TCP: too many orphaned sockets"),
    (NEIGHBOURS, "neighbor table overflow", r"neighbour: (?P<s>\w{1,20}): neighbor table overflow"),
    (FILE_MAX, "file-max limit", r"VFS: file-max limit \d{1,20} reached"),
    (FORK_REJECTED, "fork rejected", r"cgroup: fork rejected by pids controller in (?P<s>/.{0,200})"),
    (SYN_FLOOD, "SYN flooding", r"(?:TCP: )?(?:request_sock_\w{1,20}|TCP): Possible SYN flooding on port (?P<s>\S{1,60}?)\. "),
    (SERVER_SILENT, "not responding", r"nfs: server (?P<s>\S{1,80}) not responding"),
    (SERVER_SILENT, "has not responded", r"(?:CIFS: )?(?:VFS: )?(?P<s>\\\\\S{1,80}) has not responded in "),
    (SERVER_ANSWERS, "nfs: server ", r"nfs: server (?P<s>\S{1,80}) OK"),
    (SEND_TIMEOUT, "NETDEV WATCHDOG: ", r"(?:[\w-]{1,30} [\w:.-]{1,30} (?P<s>[\w.@-]{1,15}): )?NETDEV WATCHDOG: (?:(?P<s2>[\w.@-]{1,15}) \([\w-]{1,30}\)|CPU: \d{1,5}): transmit queue \d{1,5} timed out"),
    (LINK_DOWN, "own", r"(?:[\w-]{1,30} [0-9a-f:.]{7,16} )?(?P<s>[\w.@-]{1,15}): (?:[\w-]{1,30}: [\w.@-]{1,15} )?(?:NIC )?[Ll]ink (?:is )?[Dd]own"),
    (LINK_DOWN, "definitely down", r"(?:bonding: )?\S{1,15}: (?:\(slave (?P<s>[\w.@-]{1,15})\): )?link status definitely down(?: for interface (?P<s2>[\w.@-]{1,15}))?"),
    (WARNING, "WARNING: ", r"WARNING: (?:CPU: \d{1,5} PID: \d{1,10} at )?(?P<s>[\w./-]{1,120}:\d{1,6}) "),
    (CLOCKSOURCE, "as unstable", r"(?:clocksource: )?(?:timekeeping watchdog on CPU\d{1,5}: )?Marking clocksource '?(?P<s>[\w-]{1,30})'? as unstable"),
    (RESUMED, "exit", r"PM: (?:suspend exit|hibernation: hibernation exit)"),
    (RESUMED, "Waking up", r"ACPI: (?:PM: )?Waking up from system sleep state"),
)  # fmt: skip
# Each message of the patterns has one of these; they are rarer than the texts above.
_RARER = {"]": ("segfault at ", "] general protection", "] trap "), "own": ("ink is Down", "ink is down", "ink down", "ink Down"),
          "exit": ("PM: suspend exit", "hibernation exit"), "Correct": ("Correct",), "ncorrect": ("ncorrect",), ": ": (), "invoked oom-killer": ()}  # fmt: skip
NEEDLES = tuple(dict.fromkeys(needle for _, text, _ in (*_BY_NAME, *_PATTERNS) for needle in _RARER.get(text, (text,))))
_STAMP = re.compile(r"<(\d{1,4})>\[ {0,12}(\d{1,12})\.(\d{6})\](?:\[[TC]\d{1,10}\])? ")


def read_message(text: str, at_s: float | None = None) -> Message | None:
    """What a message of the kernel tells, without its stamp; None: nothing of the above."""
    text = text[:_LONGEST]
    for kind, hint, pattern in (*_BY_NAME, *_PATTERNS):
        found = re.match(pattern, text) if hint in text else None  # few of the patterns are ever compiled
        if found is None:
            continue
        if kind is None:
            return None
        groups = found.groupdict()
        return Message(at_s, kind, groups.get("s") or groups.get("s2"), text, integer(groups.get("pid") or ""))
    return None


def read_ring(text: str) -> list[Message]:
    """The messages in the kernel's log as `dmesg -r` writes it, in their order; what user space wrote to /dev/kmsg is left out."""
    found = []
    for begin in sorted(_begins(text)):
        line = text[begin : begin + _LONGEST + 40].partition("\n")[0]
        stamp = _STAMP.match(line)
        if stamp is None or (integer(stamp[1]) or 0) >> 3:  # facility 0 is the kernel
            continue
        at_s = (integer(stamp[2]) or 0) + (integer(stamp[3]) or 0) / 1e6
        if message := read_message(line[stamp.end() :], at_s):
            found.append(message)
    return found


def first_stamp_s(text: str) -> float | None:
    """The stamp of its first line, in seconds since boot; None where it is empty."""
    return decimal(text[:80].partition("[")[2].partition("]")[0].strip())


def _begins(text: str) -> set[int]:
    """Where the lines begin that have a needle."""
    begins = set()
    for needle in NEEDLES:
        at = len(text)
        for _ in range(_MOST):
            at = text.rfind(needle, 0, at)
            if at < 0:
                break
            at = text.rfind("\n", 0, at) + 1
            begins.add(at)
    return begins
