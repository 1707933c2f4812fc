"""opskit.proc.kernel_messages: what real kernels print, and what users can make them print."""

from __future__ import annotations

from eachof import each_of

from opskit.proc.kernel_messages import first_stamp_s, read_message, read_ring

TOLD = [
    ("BUG: unable to handle kernel NULL pointer dereference at 0000000000000008", "oops", None),
    ("BUG: kernel NULL pointer dereference, address: 0000000000000010", "oops", None),
    ("BUG: unable to handle page fault for address: ffffb1c0c0a5f000", "oops", None),
    ("kernel BUG at fs/ext4/inode.c:2721!", "oops", None),
    ("Oops: 0002 [#1] SMP PTI", "oops", None),
    ("Oops: Oops: 0000 [#1] SMP NOPTI", "oops", None),
    ("Internal error: Oops: 96000004 [#1] SMP", "oops", None),
    ("general protection fault: 0000 [#1] SMP", "oops", None),
    ("general protection fault, probably for non-canonical address 0xdead000000000100: 0000 [#1] SMP NOPTI", "oops", None),
    ("Unable to handle kernel paging request at virtual address ffff800012345678", "oops", None),
    ("BUG: Bad page state in process java  pfn:12345", "oops", None),
    ("watchdog: BUG: soft lockup - CPU#1 stuck for 22s! [java:4242]", "lockup", "1"),
    ("NMI watchdog: BUG: soft lockup - CPU#3 stuck for 23s! [kworker/3:1:77]", "lockup", "3"),
    ("NMI watchdog: Watchdog detected hard LOCKUP on cpu 5", "lockup", "5"),
    ("watchdog: Watchdog detected hard LOCKUP on cpu 0", "lockup", "0"),
    ("rcu: INFO: rcu_sched self-detected stall on CPU", "stall", None),
    ("INFO: rcu_sched detected stalls on CPUs/tasks:", "stall", None),
    ("rcu: INFO: rcu_preempt detected expedited stalls on CPUs/tasks: { 1-... } 3 jiffies s: 85 root: 0x2/.", "stall", None),
    ("INFO: task jbd2/sda1-8:232 blocked for more than 120 seconds.", "hung-task", "jbd2/sda1-8"),
    ("INFO: task tee:x y:4242 blocked for more than 241 seconds.", "hung-task", "tee:x y"),
    ("[Hardware Error]: Uncorrected, software containable error.", "uncorrected", None),
    ("{1}[Hardware Error]: event severity: fatal", "uncorrected", None),
    ("CPU 3: Machine Check Exception: 5 Bank 4: be00000000800400", "uncorrected", None),
    ("mce: Uncorrected hardware memory error in user-access at 3f2a000", "uncorrected", None),
    ("Memory failure: 0x3f2a: recovery action for dirty LRU page: Recovered", "uncorrected", None),
    ("EDAC MC0: 1 UE memory read error on CPU_SrcID#0_Ha#0_Chan#1_DIMM#0", "uncorrected", None),
    ("pcieport 0000:00:1c.0: AER: Uncorrected (Fatal) error received: 0000:01:00.0", "uncorrected", None),
    ("mce: [Hardware Error]: Machine check events logged", "corrected", None),
    ("EDAC MC0: 12 CE memory read error on CPU_SrcID#0_Ha#0_Chan#1_DIMM#0 (channel:1 slot:0 page:0x1)", "corrected", None),
    ("pcieport 0000:00:1c.0: AER: Corrected error received: 0000:01:00.0", "pcie-corrected", None),
    ("nvme 0000:01:00.0: PCIe Bus Error: severity=Corrected, type=Physical Layer, (Receiver ID)", "pcie-corrected", None),
    ("Uhhuh. NMI received for unknown reason 2d on CPU 0.", "nmi", None),
    ("end_request: I/O error, dev sdb, sector 2048", "io-error", "sdb"),
    ("blk_update_request: I/O error, dev sdb, sector 2048 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 0", "io-error", "sdb"),
    ("I/O error, dev nvme0n1, sector 2048 op 0x1:(WRITE) flags 0x800 phys_seg 1 prio class 2", "io-error", "nvme0n1"),
    ("critical medium error, dev sda, sector 1953 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 2", "io-error", "sda"),
    ("Buffer I/O error on dev dm-3, logical block 0, async page read", "io-error", "dm-3"),
    ("nvme nvme0: I/O 844 (I/O Cmd) QID 3 timeout, aborting", "io-error", "nvme0"),
    ("nvme nvme0: I/O tag 844 (1234) opcode 0x1 (I/O Cmd) QID 3 timeout, aborting req_op:WRITE(1) size:4096", "io-error", "nvme0"),
    ("ata1.00: failed command: READ FPDMA QUEUED", "io-error", "ata1.00"),
    ("sd 2:0:0:0: rejecting I/O to offline device", "io-error", None),
    ("EXT4-fs error (device sda1): ext4_lookup:1605: inode #12: comm ls: deleted inode referenced: 13", "file-system", "sda1"),
    ("EXT4-fs error (device dm-0 state EMA): ext4_journal_check_start:83: comm java: Detected aborted journal", "file-system", "dm-0"),
    ("EXT4-fs (sda1): Remounting filesystem read-only", "file-system", "sda1"),
    ("XFS (sdb1): Corruption detected. Unmount and run xfs_repair", "file-system", "sdb1"),
    ("XFS (dm-2): Metadata CRC error detected at xfs_agf_read_verify+0x1d/0x50 [xfs], xfs_agf block 0x1", "file-system", "dm-2"),
    ("BTRFS error (device sdb1): bdev /dev/sdb1 errs: wr 1, rd 0, flush 0, corrupt 0, gen 0", "file-system", "sdb1"),
    ("BTRFS: error (device sdb1) in btrfs_commit_transaction:2345: errno=-5 IO failure", "file-system", "sdb1"),
    ("BTRFS error (device sdb1: state EA): Transaction aborted (error -28)", "file-system", "sdb1"),
    ("device-mapper: thin: 253:4: switching pool to out-of-data-space (queue IO) mode", "thin-full", None),
    ("pcieport 0000:00:1c.5: AER: Correctable error message received from 0000:03:00.0", "pcie-corrected", None),
    ("Aborting journal on device sda1-8.", "file-system", "sda1"),
    ("nf_conntrack: table full, dropping packet.", "conntrack", None),
    ("nf_conntrack: nf_conntrack: table full, dropping packet", "conntrack", None),
    ("nf_conntrack: nf_conntrack: table full in netns 4026532867, dropping packet", "conntrack", "4026532867"),
    ("TCP: out of memory -- consider tuning tcp_mem", "tcp-memory", None),
    ("neighbour: arp_cache: neighbor table overflow!", "neighbours", "arp_cache"),
    ("VFS: file-max limit 1000 reached", "file-max", None),
    ("cgroup: fork rejected by pids controller in /app.service", "fork-rejected", "/app.service"),
    ("TCP: request_sock_TCP: Possible SYN flooding on port 8080. Sending cookies.", "syn-flood", "8080"),
    ("TCP: request_sock_TCP: Possible SYN flooding on port 127.0.0.1:7103. Sending cookies.", "syn-flood", "127.0.0.1:7103"),
    ("nfs: server files.example not responding, still trying", "server-silent", "files.example"),
    ("nfs: server files.example OK", "server-answers", "files.example"),
    ("CIFS: VFS: \\\\files has not responded in 180 seconds. Reconnecting...", "server-silent", "\\\\files"),
    ("NETDEV WATCHDOG: eth0 (igb): transmit queue 0 timed out", "send-timeout", "eth0"),
    ("virtio_net virtio0 ens3: NETDEV WATCHDOG: CPU: 3: transmit queue 0 timed out 5000 ms", "send-timeout", "ens3"),
    ("e1000e 0000:00:19.0 eth0: NIC Link is Down", "link-down", "eth0"),
    ("igb 0000:01:00.0 eth0: igb: eth0 NIC Link is Down", "link-down", "eth0"),
    ("r8169 0000:03:00.0 enp3s0: Link is Down", "link-down", "enp3s0"),
    ("mlx5_core 0000:3b:00.0 ens1f0: Link down", "link-down", "ens1f0"),
    ("bond0: (slave eth1): link status definitely down, disabling slave", "link-down", "eth1"),
    ("python3[4242]: segfault at 0 ip 00007f3c sp 00007ffd error 4 in libc.so.6[7f3c00000000+1a0000]", "segfault", "python3"),
    ("traps: app[4242] general protection fault ip:7f sp:7f error:0 in libx.so[7f+1000]", "segfault", "app"),
    ("java: page allocation failure: order:4, mode:0x40cc0(GFP_KERNEL|__GFP_COMP), nodemask=(null)", "allocation", "java"),
    ("WARNING: CPU: 1 PID: 77 at net/sched/sch_generic.c:477 dev_watchdog+0x2a1/0x2b0", "warning", "net/sched/sch_generic.c:477"),
    ("clocksource: timekeeping watchdog on CPU1: Marking clocksource 'tsc' as unstable because the skew is too large:", "clocksource", "tsc"),
    ("PM: suspend exit", "resumed", None),
]  # fmt: skip
# Names of processes, interfaces and files are chosen by users; the others are usual.
UNTOLD = [
    "Oops: 0000 [#1][4242]: hello",
    "Oops: 0 [#1] invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0",
    "EXT4-fs error ( (4242): drop_caches: 3",
    'audit: type=1326 audit(1.2:3): comm="BUG: unable to handle kernel" exe="/tmp/I/O error, dev sda, sector 1"',
    "usb 1-1: Product: BUG: unable to handle kernel NULL pointer dereference at 0",
    "eth0: renamed from BUG:x",
    "BUG:: renamed from lo",
    "EXT4-fs (sda1): mounted filesystem with ordered data mode. Opts: (null)",
    "EXT4-fs (sda1): re-mounted 3f2a ro. Quota mode: none.",
    "XFS (sdb1): Mounting V5 Filesystem",
    "BTRFS info (device sdb1): disk space caching is enabled",
    "e1000e 0000:00:19.0 eth0: NIC Link is Up 1000 Mbps Full Duplex, Flow Control: Rx/Tx",
    "EDAC MC0: Giving out device to module skx_edac controller Skylake",
    "ata1: SATA link up 6.0 Gbps (SStatus 133 SControl 300)",
    "java invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0",
    "Memory cgroup out of memory: Killed process 4242 (java) total-vm:1kB",
    "NMI watchdog: Enabled. Permanently consumes one hw-PMU counter.",
    "mce: CPU0: Core temperature above threshold, cpu clock throttled (total events = 1)",
    "INFO: NMI handler (perf_event_nmi_handler) took too long to run: 1.2 msecs",
    "nvme nvme0: 8/0/0 default/read/poll queues",
    "RAS: Correctable Errors collector initialized.",
    "blk_update_request: critical target error, dev sda, sector 1234 op 0x3:(DISCARD) flags 0x800 phys_seg 1 prio class 0",
    "critical target error, dev sda, sector 0 op 0x9:(WRITE_ZEROES) flags 0x0 phys_seg 1 prio class 2",
    "",
]


@each_of("told", TOLD)
def test_messages_of_real_kernels(told):
    """The kind of each, and what it is about."""
    text, kind, subject = told
    found = read_message(text)
    assert found is not None
    assert (found.kind, found.subject) == (kind, subject)


@each_of("text", UNTOLD)
def test_what_is_no_error(text):
    """Usual messages, and text that a user chose, tell nothing."""
    assert read_message(text) is None


def test_each_kind_is_found_in_the_ring():
    """Each message passes the coarse search too; stamps are in seconds."""
    log = "\n".join(f"<4>[{at:5}.500000][T{at}] {text}" for at, (text, *_) in enumerate(TOLD))
    found = read_ring(log)
    assert [each.text for each in found] == [text for text, *_ in TOLD]
    assert found[7].at_s == 7.5
    assert first_stamp_s(log) == 0.5


def test_what_user_space_wrote_is_left_out():
    """A line of /dev/kmsg has a facility above 0 where a program wrote it; one without a stamp belongs to no record."""
    log = "<12>[    1.000000] BUG: soft lockup - CPU#1 stuck\nBUG: soft lockup - CPU#1 stuck for 22s!\n<4>[    2.000000] PM: suspend exit"
    assert [each.kind for each in read_ring(log)] == ["resumed"]


def test_very_many_messages_are_bounded():
    """Of one kind the newest 2,000 are read."""
    log = "".join(f"<3>[{at:5}.000000] I/O error, dev sdb, sector {at} op\n" for at in range(5000))
    found = read_ring(log)
    assert (len(found), found[-1].at_s) == (2000, 4999.0)
