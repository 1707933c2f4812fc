"""What tests/support/fuzz.py feeds: each parser with samples of what it reads. A target takes bytes, as the parser's caller does."""

from __future__ import annotations

import base64
import itertools
import json
import os
import re
import shutil
import struct
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import answerfuzz
import capturefuzz
import click
import clockfuzz
import hdrlogs
import irqfuzz
import jmxagentfuzz
import jmxviewfuzz
from corefiles import core_bytes
from diagmessages import message, tcp_info
from kernellogs import FORMS, KERNELS, cgroup_report, host_report

from opskit.actions import peek_paths
from opskit.analysis.compare.identity import without_identity
from opskit.analysis.distribution import Scratch
from opskit.analysis.doctor.state import parse_state
from opskit.analysis.hdr.sums import Choice as HdrChoice
from opskit.analysis.hdr.sums import Sums as HdrSums
from opskit.analysis.jmap_diff.judge import judge
from opskit.analysis.jmap_diff.names import Choice
from opskit.analysis.jpmp import flame_tree, frame_kinds, frames, locks, stacks
from opskit.analysis.limits.origin import unit_soft
from opskit.analysis.limits.thread_stack import compiler_stack_bytes, java_stack
from opskit.analysis.moments import moment_of
from opskit.analysis.oom import judge as judge_oom
from opskit.analysis.safepoints.advice import verdict
from opskit.analysis.safepoints.stops import stops_of
from opskit.analysis.safepoints.sums import Sums
from opskit.collect import oom
from opskit.collect.asprof import read_stacks
from opskit.collect.compare.libraries import object_facts
from opskit.collect.compare.options import option_facts, options_of
from opskit.collect.crash.cores import by_pattern, said_paths
from opskit.collect.host import device_errors
from opskit.collect.host.units import parse_units
from opskit.collect.io import looks as iolooks
from opskit.collect.jmap_diff import Facts, Sample
from opskit.collect.jpmp import collect as dump_files
from opskit.collect.mem.accounting import account
from opskit.collect.sos.commands import files_said
from opskit.collect.targets import pid_of
from opskit.commands import dentry
from opskit.commands.shared import options
from opskit.errors import OpskitError
from opskit.host import Host
from opskit.jvm import launch, profiles
from opskit.jvm import mapped_files as jvm_maps
from opskit.jvm import native_image as nativeimage
from opskit.jvm.attach import target as attachtarget
from opskit.jvm.attach import wire as attachwire
from opskit.jvm.dumps import class_names, plain_text, sniff
from opskit.jvm.dumps.actuator import ActuatorParser
from opskit.jvm.dumps.dialects import DumpReader
from opskit.jvm.dumps.dump_to_file import JsonParser, PlainParser
from opskit.jvm.dumps.heap_info import parse_heap_info
from opskit.jvm.dumps.histogram_reader import parse_histograms
from opskit.jvm.dumps.hotspot import HotSpotParser
from opskit.jvm.dumps.java_properties import parse_java_properties
from opskit.jvm.dumps.javacore import JavacoreParser
from opskit.jvm.dumps.jrockit import JRockitParser
from opskit.jvm.dumps.serviceability import ServiceabilityParser
from opskit.jvm.logs import timestamps
from opskit.jvm.logs.crashes.redaction import redact_report
from opskit.jvm.logs.crashes.report import parse_all
from opskit.jvm.logs.hdr import codec as hdrcodec
from opskit.jvm.logs.hdr import counts as hdrcounts
from opskit.jvm.logs.hdr import lines as hdrlines
from opskit.jvm.logs.hdr import spectrum as hdrspectrum
from opskit.jvm.logs.safepoints.log import SafepointLog
from opskit.jvm.perfdata import counters
from opskit.jvm.perfdata import hsperfdata as perf
from opskit.jvm.perfdata import stop_clock as stopclock
from opskit.proc import (
    compressed,
    fd_kinds,
    kernel_messages,
    memory_files,
    net_sockets,
    tmpfs_mounts,
    unix_sockets,
    user_files,
)
from opskit.proc import pipe_waits as pipewaits
from opskit.proc.cgroup import io as cgroupio
from opskit.proc.cgroup import limits as cgrouplimits
from opskit.proc.cgroup import owner as place
from opskit.proc.cgroup import tree as cgroup
from opskit.proc.config import fstab
from opskit.proc.config import pam_limits as pamlimits
from opskit.proc.config import systemd_units as units
from opskit.proc.config.setting import sysctl_settings
from opskit.proc.elf.core_notes import HEAD_BYTES, notes_at, pid_in
from opskit.proc.elf.demangle import demangle
from opskit.proc.fifo_opens import parse_open
from opskit.proc.files import boot_time as boot
from opskit.proc.files import (
    conntrack_stat,
    dentry_state,
    diskstats,
    fd,
    file_nr,
    io,
    limits,
    loadavg,
    local_ports,
    meminfo,
    mountinfo,
    neighbour_stat,
    net_tcp,
    net_unix,
    pressure,
    routes,
    slabinfo,
    smaps,
    snmp,
    sockstat,
    stat,
    status,
    sysctl,
    sysvipc_shm,
    tainted,
    task_sched,
    vmstat,
    zoneinfo,
)
from opskit.proc.files import maps as proc_maps
from opskit.proc.files import schedstat as threadcpu
from opskit.proc.files import smaps as proc_smaps
from opskit.proc.files import uid_map as idmap
from opskit.proc.files.kallsyms import KernelSymbols
from opskit.proc.files.syscall import parse_stack_pointer
from opskit.proc.fs import ProcFS
from opskit.proc.inet_diag import Reader, parse_socket
from opskit.proc.kernel import ftrace, seccomp
from opskit.proc.kernel.cpu_samples import read_sample
from opskit.proc.oom import killed
from opskit.proc.oom import log as oom_log
from opskit.proc.spans import without
from opskit.proc.stacks import stacks_at
from opskit.proc.thread_names import pattern_of
from opskit.proc.unwind.perf_map import parse_perf_map
from opskit.redact import redact_cmdline, redact_environ, redact_line
from opskit.render.fields import to_object
from opskit.render.formats.text import block_lines
from opskit.render.pictures import flame_layout
from opskit.render.report import About
from opskit.render.views import oom as oom_view
from opskit.render.views.jpmp import sentences as view
from opskit.render.views.jpmp.document import STACK
from opskit.words import is_java_launcher

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

ROOT = Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "tests" / "fixtures"
REAL = Path(os.environ.get("OPSKIT_SAMPLES", ROOT.parent / "shared" / "samples"))
_HEAD_BYTES, _TAIL_BYTES = 2000, 600


class Target(NamedTuple):
    """A parser. `samples` are what it reads, `words` pieces of its format."""

    run: Callable[[bytes], object]
    samples: tuple[bytes, ...]
    words: tuple[bytes, ...] = ()


TARGETS: dict[str, Target] = {}


def refusals() -> tuple[type[BaseException], ...]:
    """What a parser may raise: the project's own errors, and click's for an option's value."""
    return OpskitError, click.UsageError


def target(name: str, *samples: bytes, words: Iterable[bytes] = (), files: Iterable[bytes] = ()) -> Any:
    """Register a parser of bytes."""

    def register(run: Callable[[bytes], object]) -> Callable[[bytes], object]:
        assert name not in TARGETS
        TARGETS[name] = Target(run, (*samples, *files), tuple(words))
        return run

    return register


def text_target(name: str, parse: Callable[[str], object], *samples: bytes, words: Iterable[bytes] = ()) -> None:
    """Register a parser of text, as ProcFS.load gives it."""
    target(name, *samples, words=words)(lambda data: parse(text(data)))


def text(data: bytes) -> str:
    """Bytes that are no UTF-8 come as surrogates."""
    return data.decode("utf-8", "surrogateescape")


def ends_of(*folders: str) -> Iterator[bytes]:
    """The beginning and the end of each real sample: small inputs are quick, and most of a file is more of the same."""
    for folder in folders:
        for path in sorted([*(FIXTURES / folder).glob("*"), *(REAL / folder).glob("*")]):
            if path.suffix == ".md":
                continue
            data = path.read_bytes()
            yield data if len(data) <= _HEAD_BYTES + _TAIL_BYTES else data[:_HEAD_BYTES] + data[-_TAIL_BYTES:]


def whole(value: object) -> object:
    """Go through all that is lazy."""
    return list(value) if hasattr(value, "__next__") else value


# /proc and its like

text_target("proc boot time", boot.parse_boot_time, b"cpu  1 2 3\nbtime 1795242000\nprocesses 5\n", words=[b"\nbtime "])
text_target("proc uptime", boot.parse_uptime, b"350735.47 234388.90\n")
text_target("proc cgroup", cgroup.parse_cgroup, b"9:name=systemd:/system.slice/app.service\n1:cpu,cpuacct:/\n0::/a b\n")
text_target(
    "proc place",
    lambda words: (place.owner_of(cgroup.parse_cgroup(words)), place.unit_of(cgroup.parse_cgroup(words))),
    b"0::/kubepods/burstable/pod6a1c2b9e-0d0f-4f35-9d6b-3d1f0e5a7c11/" + b"3f" * 32 + b"\n",
    b"0::/system.slice/docker-" + b"3f" * 32 + b".scope\n",
    b"0::/machine.slice/machine-web\\x2d1.scope\n1:cpu:/system.slice/a\\x2fb.service\n",
    words=[b":cri-containerd:", b"lxc.payload.", b"-pod", b"\\x"],
)
text_target("proc cpu count", loadavg.parse_cpu_count, b"cpu  1 2\ncpu0 1 2\ncpu1 3 4\nintr 5\n")
text_target("proc loadavg", loadavg.parse_loadavg, b"0.20 0.18 0.12 3/80 11206\n")
for release in ("5.10.0-26", None, "²."):
    text_target(
        f"proc dentry-state {release}",
        lambda words, release=release: dentry_state.parse_dentry_state(words, release),
        b"432690\t430030\t45\t0\t12319\t0\n",
    )
text_target("proc fdinfo", fd.parse_fdinfo, b"pos:\t0\nflags:\t02004002\nmnt_id:\t15\nino:\t1044\nscm_fds: 3\n")
text_target(
    "fdinfo of an epoll", fd.parse_epoll, b"pos:\t0\ntfd:        5 events:       1d data: ffff  pos:0 ino:61af sdev:7\n"
)
text_target("proc id map", lambda words: idmap.parse_id_map(words).inner(1000), b"         0     100000      65536\n")
text_target(
    "proc limits",
    limits.parse_limits,
    b"Limit                     Soft Limit           Hard Limit           Units     \n"
    b"Max stack size            8388608              unlimited            bytes     \n"
    b"Max nice priority         0                    0                    \n",
)
text_target(
    "proc soft limits",
    limits.parse_soft_limits,
    b"Limit                     Soft Limit           Hard Limit           Units     \n"
    b"Max processes             96365                unlimited            processes \n"
    b"Max open files            1024                 4096                 files     \n",
)
text_target("proc file-nr", file_nr.parse_file_nr, b"593\t0\t2466177\n")
text_target(
    "proc sched last run",
    task_sched.parse_last_ran_ms,
    b"sh (1, #threads: 1)\n--------------------\nse.exec_start    :   22.8187\n",
)
text_target(
    "proc net route", routes.parse_routes, b"Iface\tDestination\neth0 00000000 010200C0 0003 0 0 0 00000000 0 0 0\n"
)
text_target(
    "proc net if_inet6", routes.parse_global_addresses, b"fd000000000000000000000000000002 04 40 00 82     eth0\n"
)
text_target("proc net stat arp_cache", neighbour_stat.parse_neighbours, b"entries  table_fulls\n00000012  0000000a\n")
MAPS = (
    b"55f0c8a00000-55f0c8a02000 r-xp 00000000 fe:00 1310 /usr/bin/java\n7f1200000000-7f1200021000 rw-p 00000000 00:00 0 \n"
    b"7f1200021000-7f1204000000 ---p 00000000 00:00 0 \n7f2b5c000000-7f2b5d3c1000 r-xp 003e5000 08:01 917534   "
    b"/usr/lib/jvm/java-17/lib/server/libjvm.so\n7f2b60210000-7f2b60218000 rw-s 00000000 08:01 1046541  "
    b"/tmp/hsperfdata_app/4242 (deleted)\n7ffd3c1e0000-7ffd3c201000 rw-p 00000000 00:00 0 [stack]\n"
)
text_target("proc maps", proc_maps.parse_maps, MAPS, words=[b"[anon:x]", b"/libc.so.6", b"[vsyscall]"])
text_target("jvm maps", jvm_maps.parse_jvm_maps, MAPS, words=[b"/libj9vm29.so", b"/hsperfdata_"])
text_target("code mappings", proc_maps.parse_code_mappings, MAPS, words=[b"r-xp 00000000", b"[vdso]", b" (deleted)"])
target("perf map", b"7f1c2a0401c0 2e0 LazyCompile:~fib /srv/app.js:3\n0x7f00 0x10 Interpreter\n", words=[b"0x"])(
    parse_perf_map
)
text_target(
    "symbol",
    demangle,
    b"_ZZN3Foo3barEiENKUlP1AE0_clES0_",
    b"_ZNSt6vectorIiSaIiEE9push_backERKi.part.0",
    b"_ZN16SortedLinkedListI10MallocSiteXadL_Z4sizeRKS0_S2_EELN6AnyObj15allocation_typeE2EE3addEPKS0_",
    b"_RNvXsd_NtNtNtCsgEmfK2I1SDS_4core3fmt3num3impyNtB9_7Display3fmt",
    b"_ZN4core3ptr42drop_in_place$LT$std..io..error..Error$GT$17hd292a51e8404f469E.llvm.21683",
    words=[b"S_", b"S0_", b"T_", b"IX", b"LZ", b"cv", b"NSt", b"B_", b".cold"],
)
text_target("proc smaps", proc_maps.locks_new_mappings, MAPS + b"VmFlags: rd wr mr mw me lo\n")
SMAPS = (
    b"7f1200000000-7f1200021000 rw-p 00000000 00:00 0 \nSize: 132 kB\nRss: 16 kB\nPss: 16 kB\nSwap: 8 kB\nVmFlags: rd wr mr\n"
    b"7f2b60210000-7f2b60218000 r--s 00001000 fe:00 1310    /tmp/a b (deleted)\nSize: 32 kB\nRss: 4 kB\nPss: 2 kB\nSwap: 0 kB\n"
    b"VmFlags: rd mr me\n"
)
text_target(
    "proc smaps mappings", proc_smaps.parse_smaps, SMAPS, words=[b"[anon:x]", b"-", b" kB\n", b"Private_Hugetlb:"]
)
text_target(
    "memory by kinds",
    lambda words: (
        (found := proc_smaps.parse_smaps(words)),
        account(found, stacks_at(found, [0x7F1200001000]), None),
        without([(each.start, each.end) for each in found], [(0, 0x7F1200000000)]),
    ),
    SMAPS,
    words=[b"[stack]", b"[anon:x]", b"---p"],
)
text_target("proc smaps_rollup", proc_smaps.parse_smaps_rollup, SMAPS)
text_target(
    "proc stack pointer",
    parse_stack_pointer,
    b"1 0x4 0x7f3c2c0008b0 0x10000 0x0 0x0 0x0 0x7ffd1c3c8a88 0x7f3c3a1f2a90\n",
)
text_target("proc meminfo", meminfo.parse_meminfo, b"MemTotal:       24609996 kB\nHugePages_Total:       0\n")
MOUNTS = (
    b"36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue\n"
    b"22 1 0:21 / /proc rw,relatime - proc proc rw,hidepid=invisible\n25 1 0:23 / /mnt\\040x rw - nfs4 host:/a rw\n"
)
text_target(
    "tmpfs mounts",
    tmpfs_mounts._parse,
    MOUNTS + b"9 1 0:27 / /dev/shm rw - tmpfs tmpfs rw,size=4k\n",
    words=[b" - tmpfs "],
)
text_target(
    "zram and ARC",
    lambda words: (compressed._memory_used(words), compressed._arc(words)),
    b"9 8 7 6\n",
    b"13 1 0x01\nsize 4 99\n",
)
text_target(
    "proc sockstat",
    sockstat.parse_socket_pages,
    b"sockets: used 290\nTCP: inuse 27 orphan 0 mem 8\nUDP: inuse 5 mem 2\n",
)
text_target(
    "proc sockstat numbers",
    sockstat.parse_sockstat,
    b"sockets: used 290\nTCP: inuse 27 orphan 0 mem 8\nUDP: inuse 5 mem 2\n",
)
text_target("proc net snmp", snmp.parse_counters, b"Tcp: InSegs MaxConn\nTcp: 7 -1\nTcpExt: ListenDrops\nTcpExt: 3\n")
text_target(
    "diskstats",
    diskstats.parse_diskstats,
    b"254 0 vda 100 2 8000 500 10 6 3000 255 1 400 755 5 2 27 4 15 52\n8 0 sda 1 2 3 4 5 6 7 8 9 10 11\n",
)
text_target(
    "proc net stat conntrack", conntrack_stat.parse_conntrack_stat, b"entries  found drop\n00000012  0 0000000a\n"
)
text_target(
    "options of a JVM",
    lambda text: [*option_facts(options_of([], [], text))],
    b"-Xmx2g -XX:+UseG1GC -Dx=a b -XX:ThreadStackSize=1024 -Xlog:gc:file=/x",
)
text_target(
    "identity",
    lambda text: without_identity(text, ("web-1", "4242")),
    b"web-1:9092/4242 10.0.0.1:80 /tmp/x 0b4a7c1e-1111-2222-3333-444455556666",
)
text_target("libraries of maps", lambda text: object_facts(text, "/jdk"), MAPS)
text_target(
    "output of sos commands",
    lambda text: files_said(
        {
            "kernel/sysctl_-a": text.encode("utf-8", "replace"),
            "process/ps_auxwwwm": text.encode("utf-8", "replace"),
            "kernel/uname_-a": text.encode("utf-8", "replace"),
        }
    ),
    b"vm.swappiness = 60\na 42 1 2 3 4 ? S 1 0:1 /bin/java -Xmx1g Main\n",
)
text_target("sysctl ports", local_ports.parse_ports, b"8080,9148-9160\n")
text_target("sysctl port range", local_ports.parse_port_range, b"32768\t60999\n")
text_target(
    "proc zoneinfo", zoneinfo.parse_cpu_free_pages, b"Node 0, zone   Normal\n    cpu: 0\n              count:    3854\n"
)
text_target(
    "proc shares", smaps.parse_proportional, b"0-1 ---p 00000000 00:00 0 [rollup]\nPss:  281 kB\nPss_Anon: 112 kB\n"
)
text_target(
    "proc sysvipc shm",
    sysvipc_shm.parse_sysvipc_shm,
    b"key shmid perms size cpid lpid nattch uid rss swap\n0 7 1600 104857600 4242 4300 2 1000 104853504 4096\n",
)
target("mapped files", MAPS, words=[b"/memfd:x (deleted)", b"/SYSV00000000 (deleted)"])(
    lambda data: re.findall(memory_files._LINE, data, re.MULTILINE)
)
text_target("proc mountinfo", mountinfo.parse_mountinfo, MOUNTS)
text_target("proc remote mounts", mountinfo.parse_remote_mount_points, MOUNTS)
text_target(
    "proc pressure", pressure.parse_pressure, b"some avg10=0.00 avg60=0.12 avg300=0.09 total=72873122\nfull total=0\n"
)
text_target("proc tainted", tainted.parse_tainted, b"4608\n")
text_target("proc stat terminal", stat.parse_terminal, b"4242 (java) S 1 4242 4242 34816 4242 1077936384 1\n")
text_target(
    "kernel messages",
    kernel_messages.read_ring,
    b"<4>[ 1215.612345] watchdog: BUG: soft lockup - CPU#1 stuck for 22s! [java:4242]\n<3>[ 1216.000001][T42] EXT4-fs error (device sda1): x\n",
    b"<6>[ 12.000001] java[42]: segfault at 0 ip 0\n<3>[ 13.000001] nvme nvme0: I/O 844 (I/O Cmd) QID 3 timeout, aborting\n",
)
text_target(
    "systemctl show",
    parse_units,
    b"Type=simple\nResult=exit-code\nExecMainCode=1\nExecMainStatus=3\nId=web.service\nStateChangeTimestampMonotonic=226\n\n",
)
text_target(
    "fstab",
    fstab.parse_fstab,
    b"# x\nUUID=1-2  /a\\040b  ext4  ro,noauto  0 1\n/dev/sdb1 /data/ xfs defaults,nofail 0 2\n",
)
text_target("btrfs error stats", device_errors.parse_error_stats, b"write_errs 0\nread_errs 7\nflush_errs 0\n")
text_target(
    "kills of a kernel log",
    killed.read_killed,
    b"<6>[ 22158.031000][T7] oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),oom_memcg=/a,task_memcg=/a/b,task=x,pid=42,uid=0\n"
    b"<3>[ 22158.032000] Memory cgroup out of memory: Killed process 42 (x) total-vm:1kB\n<6>[    9.000000] PM: suspend exit\n",
)
text_target("proc pressure averages", pressure.parse_averages, b"some avg10=0.00 avg60=0.12 avg300=0.09 total=1\n")


@target(
    "oom log",
    *(FORMS[form](made("5.10")).encode("utf-8", "surrogateescape") for form in FORMS for made in (cgroup_report, host_report)),
    *(FORMS["dmesg"](cgroup_report(kernel)).encode() for kernel in KERNELS),
    words=[
        b": Killed process ", b"] Out of memory", b"\\x0a", b" invoked oom-killer: order=0", b"\nMESSAGE\n", b"[  pid  ]   uid  tgid total_vm      rss",
        b"[ 1] 0 1 2 3 4 5 6 x\n", b"oom-kill:constraint=CONSTRAINT_MEMCG,", b",task_memcg=/", b"[T1] ", b"Memory cgroup stats for /a: rss:1KB",
        b"Tasks in /a are going to be killed due to memory.oom.group set", b"OOMKilled: true", b"exit code 137", b'"MESSAGE":[1,2]',
    ],
)  # fmt: skip
def _oom_log(data: bytes) -> object:
    found = oom._of_logs([("a file", oom_log.read_log([data[:700], data[700:]], now_s=1.8e9))])
    report = oom_view.report(About("", "", "", ""), judge_oom(found), oom_view.Shown(0, details=True))
    return to_object(oom_view.DOCUMENT, report.document[1]), [*block_lines(report.blocks[0])] if report.blocks else None


text_target(
    "proc slabinfo",
    slabinfo.parse_slabinfo,
    b"slabinfo - version: 2.1\n# name            <active_objs> <num_objs>\n"
    b"dentry            439961 440895    192   21    1 : tunables    0    0    0 : slabdata  20995  20995      0\n",
    b"slabinfo - version: 1.1 (SMP)\ndnotify cache          0      0     20    0    0    1 :  252  126\n",
)
STAT = b"4242 (java) S 1 4242 4242 0 -1 1077936384 16233 0 12 0 310 45 0 0 20 0 35 0 8675309 6301232 4096 0\n"
text_target("proc stat placement", stat.parse_placement, STAT[:-1] + b" 1 1 0 0 0 0 4 0 16384 1 0 0 0 0 17 1 0 0 0\n")
text_target(
    "proc stat", lambda words: (found := stat.parse_stat(words)) and (found.is_exiting, found.is_kernel_thread), STAT
)


def _status(words: str) -> object:
    found = status.parse_status(words)
    return (
        *(found.real_uid, found.effective_uid, found.effective_gid, found.real_gid, found.threads, found.parent_pid),
        *(found.groups, found.ns_pids, found.bytes_of("VmSize"), found.mask("SigCgt")),
        attachtarget.catches_sigquit(found),
    )


text_target(
    "proc status",
    _status,
    b"Name:\tjava\nState:\tS (sleeping)\nTgid:\t4242\nPPid:\t1\nUid:\t1001\t1001\t1001\t1001\nGid:\t1001\t1001\t1001\t1001\n"
    b"Groups:\t4 27\nNSpid:\t4242\t1\nVmSize:\t6301232 kB\nThreads:\t35\nSigIgn:\t0000000000001000\nSigCgt:\t2000000181005ccf\n",
)
text_target(
    "proc net unix",
    net_unix.parse_unix_inodes,
    b"Num RefCount\n0000000000000000: 00000002 00000000 00010000 0001 01  8121 /run/x\n",
)
text_target(
    "proc net tcp", net_tcp.parse_net_tcp, b"  sl\n   0: 0100007F:1F90 0700000A:18EB 01 0:0 00:0 0 1000 0 43219 1\n"
)
for _name, (_parse, _sample) in {**clockfuzz.TEXT, **irqfuzz.TEXT, **jmxviewfuzz.TEXT}.items():
    text_target(_name, _parse, _sample)
for _name, (_parse, _sample) in clockfuzz.BYTES.items():
    target(_name, _sample)(_parse)


NET_TCP = (
    b"  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
    b"   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 81 1 0 100\n"
    b"   1: 0100007F:1F90 0900000A:C000 08 00000000:00000000 00:00000000 00000000  1000        0 82 1 0 100\n"
)
NET_UNIX = (
    b"Num       RefCount Protocol Flags    Type St Inode Path\n"
    b"000000007e8d8f85: 00000003 00000000 00010000 0001 01  81 /run/app.sock\n0000000032c72163: 00000003 00000000 00000000 0002 03  82\n"
)
NET_NETLINK = (
    b"sk               Eth Pid        Groups   Rmem     Wmem     Dump  Locks    Drops    Inode\n"
    b"00000000dc6c1790 0   0          00000000 0        0        0     2        0        81       \n"
    b"0000000094a4747b 99  0          00000000 0        0        0     2        0        82       \n"
)


@target(
    "proc net sockets",
    NET_TCP,
    NET_UNIX,
    NET_NETLINK,
    words=[b"00000000000000000000000000000000:0000", b" 0A ", b" @0000f"],
)
def _net_sockets(data):
    class Files:
        """The same text in every file; no other namespace to compare with."""

        is_own = staticmethod(lambda: False)
        read = staticmethod(lambda *parts: data)

    names, places = net_sockets.name_sockets(Files(), (1,), [b"socket:[81]", b"socket:[82]", b"socket:[1]"])
    assert {*places.values()} == {*range(len(names))}


@target(
    "sock_diag sockets",
    (96).to_bytes(4, sys.byteorder) + bytes(12) + b"\x02\x0a\0\0" + bytes(76),
    words=[(88).to_bytes(4, "little")],
)
def _sock_diag_sockets(data):
    names = net_sockets._Names([b"socket:[81]", b"socket:[1]"])
    net_sockets._add_tcp(net_sockets._messages(data), names)
    assert len(names.names) <= 2


UNIX_MESSAGE = (
    (56).to_bytes(4, sys.byteorder) + bytes(12) + b"\x01\x01\x01\0" + (81).to_bytes(4, sys.byteorder) + bytes(8)
    + struct.pack("=HH6s2x", 10, 0, b"/run/a") + struct.pack("=HHI", 8, 2, 82) + bytes(4)
)  # fmt: skip


@target(
    "sock_diag unix sockets", UNIX_MESSAGE, UNIX_MESSAGE * 2, words=[struct.pack("=HH", 8, 2), struct.pack("=HH", 0, 0)]
)
def _unix_diag_sockets(data):
    for each in unix_sockets.parse_messages(data):
        assert len(each.name) <= len(data)
        unix_sockets.describe(each.type, each.state, each.name, each.name)


@target(
    "fd targets",
    b"anon_inode:[eventpoll]",
    b"/memfd:pool (deleted)",
    b"/proc/12/task/13/stat",
    b"net:[4]",
    words=[b"anon_inode:", b"/proc/", b"/task/"],
)
def _fd_targets(data):
    fd_kinds.kind_of(data)
    fd_kinds.unmounted_kind_of(data)
    fd_kinds.place_of(data)


@target("perf sample", bytes(24) + (2).to_bytes(8, "little") + bytes(16) + (2).to_bytes(8, "little") + bytes(100))
def _perf_sample(data):
    for id_bytes in (0, 8):
        sample = read_sample(data, 0, len(data), in_kernel=True, id_bytes=id_bytes)
        assert sample is None or len(sample.stack) + 8 * len(sample.kernel) <= len(data)


@target("sock_diag message", message(info=tcp_info(280), memory=bytes(36)), message(state=6) + message(info=tcp_info()))
def _sock_diag(data):
    reader = Reader()
    reader.look(data)
    for start, row in reader.rows(data):
        assert parse_socket(data, start).state == row[1]
    assert len(list(reader.ends(data))) == len(list(reader.rows(data)))


text_target(
    "proc kallsyms", lambda text: KernelSymbols(text).name(0xFFFFFFFF81000010),
    b"ffffffff81000000 T _stext\nffffffffc0201000 t nft_do_chain\t[nf_tables]\n",
)  # fmt: skip
text_target(
    "proc task sched",
    task_sched.parse_task_sched,
    b"java (4242, #threads: 35)\n"
    + b"-" * 67
    + b"\nse.nr_migrations   :   3\nnr_voluntary_switches   :   94\npolicy   :   0\n",
)
text_target("proc schedstat", threadcpu.parse_schedstat, b"10385712 62103 31\n")
text_target("proc vmstat", vmstat.parse_vmstat, b"nr_slab_reclaimable 124593\ndrop_pagecache 1\nnr_x -5\n")
text_target("proc io", io.parse_io, b"rchar: 323934931\nwchar: 323929600\nsyscr: 632687\nread_bytes: 0\n")


@target(
    "io looks",
    b"7 (a) S 1 7 7 0 -1 0 1 0 2 0 310 45 0 0 20 0 2 0 42 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 1 0 0 9 0 0\n",
    b"0 0x4 0x7 0x1 0x0 0x0 0x0 0x7f 0x7f\n",
    b"-1 0x7f 0x7f\n",
    b"running\n",
)
def _io_looks(data: bytes) -> object:
    """A thread whose stat, syscall and wchan are anything."""
    fs = _CGROUPS.with_file("proc/7/task/7/stat", data if b")" in data else b"7 (a) D " + data)
    for name in ("syscall", "wchan", "schedstat"):
        (Path(fs.root) / "proc/7/task/7" / name).write_bytes(data)
    looks = iolooks.Looks(Host(fs), 7)
    for _ in range(2):
        looks.look([7])
    track = looks.tracks[7]
    return track.calls(), track.stalls(), track.use(100), looks.stalled([7]), looks.asleep_s(7)


@target("proc comm", b"pool-12-thread-\n")
def _comm(data: bytes) -> object:
    return pattern_of(data)


text_target(
    "proc syscall",
    lambda words: [
        parse(words, machine)
        for parse in (pipewaits.parse_call, pipewaits.parse_poll, parse_open)
        for machine in ("x86_64", "aarch64")
    ],
    b"7 0x7ffc10 0x2 0xffffffff 0x0 0x0 0x0 0x7ffc 0x7f98\n",
    b"257 0xffffff9c 0x557552502908 0x241 0x1b6 0x7f9841ccac70 0x1 0x7ffc11f047b0 0x7f9841bef011\n",
    b"1 0x4 0x7f3c2c0008b0 0x10000 0x0 0x0 0x0 0x7ffd1c3c8a88 0x7f3c3a1f2a90\n",
    b"275 0x4 0x0 0x7 0x0 0x0 0x0 0x7ffd1c3c8a88 0x7f3c3a1f2a90\n",
    b"running\n",
)


@target(
    "tracer events",
    b"         python3-9372    [000] .....  3697.270890: sys_access -> 0xfffffffffffffffe\n"
    b" a-b c-12     (  12) [001] d..2.  3697.270890: sys_exit: NR 21 = -2\nCPU:1 [LOST 150800 EVENTS]\n",
)
def _tracer(data: bytes) -> object:
    return [ftrace.named(event) for event in ftrace.parse_failures(data)]


text_target(
    "tracer buffer stats",
    ftrace.parse_buffer_stats,
    b"entries: 9380\noverrun: 366125\ndropped events: 0\nread events: 20495\n",
)
target(
    "tracer addresses",
    b" java-12 [000] ..... 1.0: sys_openat(dfd: ffffff9c, filename: 0x7f3c2c0008b0, flags: 0)\n"
    b" java-12 [000] ..... 1.0: sys_openat -> 0xfffffffffffffffe\n",
)(
    lambda data: peek_paths._FAILED.findall(re.sub(rb"([^\n]{4096})[^\n]*", rb"\1", data))
)  # the kernel writes no longer line


@target(
    "seccomp filter",
    bytes.fromhex("200000000000000015000001b3010000060000000100050006000000" + "0000ff7f"),
    bytes.fromhex(
        "2000000000000000" + "0500000000000000" + "5400000000000000" + "3c00000001000000" + "1600000000000000"
    ),
)
def _seccomp(data: bytes) -> object:
    program = seccomp.parse_filter(data)
    return [seccomp.start_answer([program, program], machine) for machine in ("x86_64", "aarch64", "s390x")]


class Tree:
    """A tree of files, for the parsers that open what they read."""

    def __init__(self) -> None:
        self._folder: Path | None = None
        self._owner = 0

    def with_file(self, name: str, data: bytes) -> ProcFS:
        """The tree with this file; made once in each process."""
        if self._folder is None or self._owner != os.getpid():
            import atexit

            self._folder, self._owner = Path(tempfile.mkdtemp(prefix="opskit-fuzz-", dir=_memory())), os.getpid()
            from multiprocessing.util import Finalize

            Finalize(None, shutil.rmtree, args=(self._folder, True), exitpriority=1)
            atexit.register(shutil.rmtree, self._folder, ignore_errors=True)
            (self._folder / "proc" / "self").mkdir(parents=True)
        path = self._folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return ProcFS(str(self._folder / "proc"), str(self._folder))


def _memory() -> str | None:
    """A directory in memory, where there is one: ext4 writes a file that is replaced to the disk, 5 ms each."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


_TREE, _UNITS, _CGROUPS = Tree(), Tree(), Tree()


@target(
    "pam limits",
    b"# comment\n*          -     stack   17179869184\n@web       soft  nproc   4096\n1000:1999  hard  as      unlimited\nroot -\n"
    b"@100:200 hard nice -5\napp soft cpu 10 # minutes\n%web - maxlogins 3\n:1001 - nofile -1\n",
)
def _pam(data: bytes) -> object:
    fs = _TREE.with_file("etc/security/limits.conf", data)
    (Path(fs.root) / "etc" / "group").write_bytes(data.replace(b" ", b":") + b"web:x:100:app\n")
    account = pamlimits.account_of(fs, "app", 1001, 1001, [100])
    return pamlimits.pam_limits(fs, account)


@target(
    "systemd units",
    b"[Service]\nLimitNPROC=4096:8192\nTasksMax=512\nLimitNOFILE=infinity\n# c\nTasksMax=\nLimitSTACK=8M\n",
)
def _units(data: bytes) -> object:
    fs = _UNITS.with_file("etc/systemd/system/a-b@c.service", data)
    found = units.unit_settings(fs, "a-b@c.service")
    return [unit_soft(setting.value) for setting in found.values()]


text_target(
    "systemd cgroup path",
    lambda path: (units.unit_of_path(path), units.owner_of_path(path)),
    b"/user.slice/user@1.service/app.scope",
)


@target(
    "sysctl",
    b"# comment\nkernel.threads-max = 4096\n-vm.max_map_count=262144\nvm/overcommit_memory = 2\nnet/ipv4/conf/eth0.1/x=1\n",
)
def _sysctl(data: bytes) -> object:
    fs = _UNITS.with_file("etc/sysctl.conf", data)
    found = sysctl_settings(fs)
    fs = _UNITS.with_file("proc/sys/kernel/pid_max", data.partition(b"=")[2])
    return found, sysctl.read_sysctl(fs, "kernel", "pid_max")


@target(
    "cgroup files",
    b"usage_usec 5\nnr_periods 3600\nnr_throttled 1224\nthrottled_usec 61200000\n",
    b"200000 100000\n",
    b"max 100000\n",
    b"9223372036854771712\n",
    b"max\n",
    b"populated 1\nfrozen 0\n",
    b"8:16 rbps=2097152 wbps=max rbytes=1459200 wbytes=314773504 riops=max wiops=120\n",
    b"8:16 2097152\n8:16 Read 1459200\nTotal 3\n",
)
def _cgroup_files(data: bytes) -> object:
    fs = _CGROUPS.with_file("sys/fs/cgroup/a/cpu.stat", data)
    for name in (
        "cpu.max",
        "memory.max",
        "memory.current",
        "cgroup.events",
        "memory.limit_in_bytes",
        "cpu.cfs_quota_us",
        *("io.max", "io.stat", "blkio.throttle.read_bps_device", "blkio.throttle.io_service_bytes"),
    ):
        (Path(fs.root) / "sys/fs/cgroup/a" / name).write_bytes(data)
    levels = tuple(cgroup.Level("/a", "/sys/fs/cgroup/a", version) for version in (1, 2))
    return [
        (
            cgrouplimits.memory_limit(fs, (level,)),
            cgrouplimits.cpu_limit(fs, (level,)),
            cgrouplimits.frozen_by(fs, (level,)),
            cgroupio.device_limits(fs, (level,)),
        )
        for level in levels
    ]


# Thread dumps

HOTSPOT = b"""2026-11-21 11:04:04
Full thread dump OpenJDK 64-Bit Server VM (17.0.15+6-Debian-1deb12u1 mixed mode, sharing):

"pool-1-thread-17" #41 daemon prio=5 os_prio=0 cpu=1.02ms elapsed=9.86s tid=0x00007f84 nid=0x1f4c waiting on condition  [0x00007f]
   java.lang.Thread.State: WAITING (parking)
\tat jdk.internal.misc.Unsafe.park(java.base@17.0.15/Native Method)
\t- parking to wait for  <0x00000006c9c7b730> (a java.util.concurrent.locks.AbstractQueuedSynchronizer$ConditionObject)
\tat java.util.concurrent.locks.LockSupport.park(java.base@17.0.15/LockSupport.java:341)
\tat java.lang.Thread.run(java.base@17.0.15/Thread.java:840)

   Locked ownable synchronizers:
\t- <0x00000006c9c7b730> (a java.util.concurrent.locks.ReentrantLock$NonfairSync)

"A" #42 [8012] prio=5 cpu=2680,94ms tid=0x1 nid=8012 waiting for monitor entry  [0x00007f]
   java.lang.Thread.State: BLOCKED (on object monitor)
   Carrying virtual thread #22
\tat T.run(T.java:3)
\t- waiting to lock <0x0000000500> (a java.lang.Object)
\t- locked <0x0000000501> (a java.lang.Object)

   Mounted virtual thread #22
\tat V.run(V.java:7)

"VM Thread" os_prio=0 cpu=22.19ms elapsed=108.50s tid=0x00007f nid=0x12f6 runnable

JNI global refs: 26, weak refs: 0


Found one Java-level deadlock:
=============================
"A":
  waiting to lock monitor 0x00007f (object 0x0000000500, a java.lang.Object),
  which is held by "B"

"B":
  waiting to lock monitor 0x00007e (object 0x0000000501, a java.lang.Object),
  which is held by "A"

Java stack information for the threads listed above:
===================================================
Found 1 deadlock.
"""
JMX = (
    b'"main" Id=1 in WAITING on lock=java.lang.Object@3 owned by "x" Id=2\n   java.lang.Thread.State: WAITING\n\tat a.B.c(B.java:1)\n'
    b'\t- blocked on java.lang.Object@1f owned by "x" Id=2\n\n"Timer-180" - Thread t@332\n\tat a.B.c(B.java:1)\n\n'
)
AGENT = b"""Attaching to process ID 31781, please wait...
Debugger attached successfully.
JVM version is 1.5.0_13-119
Deadlock Detection:

Thread 3987: (state = BLOCKED)
 - java.lang.Object.wait(long) @bci=0 (Interpreted frame)
 - java.lang.ref.ReferenceQueue.remove(long) @bci=44, line=116 (Compiled frame)


"Finalizer" #3 daemon prio=8 tid=0x1 nid=0x469c in Object.wait() [0x2]
   java.lang.Thread.State: WAITING (on object monitor)
 - java.lang.Object.wait(long) @bci=0 (Interpreted frame)
\t- waiting on <0x000000069ec02f40> (a java.lang.ref.ReferenceQueue$Lock)

----------------- 18086 -----------------
0x00007fc36b1116f1\t__futex_abstimed_wait_common + 0xc6
0x00007fc35494df0a\t* T.run() bci:4 line:1 (Interpreted frame)
"""
JROCKIT = b"""===== FULL THREAD DUMP ===============
Wed Aug 17 12:05:14 2005
BEA JRockit(R) R25.2.0-28 dra-45238-20050523-2021-win-ia32

"Thread-0" id=10 idx=0x14 tid=5628 prio=5 alive, in native, blocked
    -- Blocked trying to get lock: java/lang/Object@0x0095C8D0[thin lock]
    at jrockit/vm/Threads.shortNap(I)V(Native Method)
    at net/homeip/yusuke/samurai/test/AThread.run()V(StackSample.java:25)
    ^-- Holding lock: java/lang/Object@0x0095C8C8[thin lock]
    -- end of trace

"Finalizer"  id: 0x00000380  prio: 8  WAITING, DAEMON, GCABLE
    thread: 0x40C906A8  lastj: 0x4125FD8C  pt_thr: 0x0000065C
    at jrockit/vm/Threads.waitForSignal(Native Method)@40C421C0
    --- End of stack trace

Circular (deadlocked) lock chains
=================================
Chain 1:
"Thread-1" id=11 idx=0x16 tid=3264 waiting for java/lang/Object@0x0095C8C8 held by:
"Thread-0" id=10 idx=0x14 tid=5628 waiting for java/lang/Object@0x0095C8D0 held by:
"Thread-1" id=11 idx=0x16 tid=3264

===== END OF THREAD DUMP ===============
"""
JAVACORE = b"""0SECTION       TITLE subcomponent dump routine
1TIDATETIME    Date: 2024/10/02 at 12:28:23:001
1CIJAVAVERSION JRE 21 Linux amd64-64 (build 21.0.4+7-LTS)
1LKDEADLOCK    Deadlock detected !!!
2LKDEADLOCKTHR  Thread "A" (0x0000000000061100)
3LKDEADLOCKWTR    is waiting for:
4LKDEADLOCKOBJ      java/lang/Object@0x00000000FFF3B6D0
2LKDEADLOCKTHR  Thread "B" (0x0000000000061100)
0SECTION       THREADS subcomponent dump routine
3XMTHREADINFO      "main" J9VMThread:0x0000000000061100, omrthread_t:0x1, java/lang/Thread:0x2, state:CW, prio=5
3XMJAVALTHREAD            (java/lang/Thread getId:0x2, isDaemon:false)
3XMTHREADINFO1            (native thread ID:0x8D14A, native priority:0x5)
3XMCPUTIME               CPU usage total: 1.264468000 secs, current category="Application"
3XMTHREADBLOCK     Waiting on: java/util/TaskQueue@0x0000000300688FF0 Owned by: <unowned>
4XESTACKTRACE                at java/lang/Object.wait(Native Method)
5XESTACKTRACE                   (entered lock: java/util/TaskQueue@0x0000000300688FF0, entry count: 1)
NULL
0SECTION       MEMINFO subcomponent dump routine
NULL           ---------------------- END OF DUMP -------------------------------------
"""
PLAIN = b"""16916
2026-11-21T11:42:58.613909546Z
25.0.2+10-LTS

#27 "vd1" virtual BLOCKED 2026-11-21T11:42:58.679664547Z
    at V.lambda$main$2(V.java:7)
    - locked <java.lang.Object@b0d6be9>
    - waiting to lock <java.lang.Object@9b6068a>, owner #5

#22 "" virtual
      java.base/java.lang.VirtualThread.run(VirtualThread.java:309)

"""
JSON_DUMP = (
    b'{"threadDump": {"processId": "16916", "time": "2026", "runtimeVersion": "25.0.2+10-LTS", "threadContainers": [{"container": '
    b'"<root>", "parent": null, "owner": null, "threads": [{"tid": "27", "virtual": true, "name": "vd1", "state": "BLOCKED", '
    b'"blockedOn": "java.lang.Object@9b6068a", "parkBlocker": {"object": "a.B@1", "owner": "5"}, "waitingOn": null, '
    b'"stack": ["V.lambda$main$2(V.java:7)"], "monitorsOwned": [{"depth": 0, "locks": ["java.lang.Object@b0d6be9"]}]}]}]}}'
)
ACTUATOR = (
    b'HTTP/1.1 200\nDate: Sat\n\n{"threads":[{"threadName":"Finalizer","threadId":3,"lockName":"java.lang.ref.ReferenceQueue$Lock@2f407ecb",'
    b'"lockOwnerId":-1,"lockOwnerName":null,"daemon":true,"threadState":"WAITING","stackTrace":[{"className":"java.lang.Object",'
    b'"methodName":"wait","fileName":"Object.java","lineNumber":-2,"nativeMethod":true,"moduleName":"java.base",'
    b'"moduleVersion":"17","classLoaderName":null}],"lockedMonitors":[{"className":"java.lang.Object","identityHashCode":1,'
    b'"lockedStackDepth":3}],"lockedSynchronizers":[]}]}'
)
LOGGED = b'{"log":"\\"main\\" #1 prio=5 tid=0x1 nid=0x2 runnable\\n","stream":"stdout","time":"2026"}\n{"log":"\\tat a.B.c(B.java:1)\\n"}\n'
DUMPS = (HOTSPOT, JMX, AGENT, JROCKIT, JAVACORE, PLAIN, JSON_DUMP, ACTUATOR, LOGGED)
_DUMP_WORDS = tuple(
    word.encode()
    for word in (
        '"', '\n"', '" #1 ', "#1 ", "prio=", "[0x", "Heap\n", "\nJNI global ref", "Full thread dump ", "tid=0x", "nid=0x", "nid=", "Id=",
        "t@", "\tat ", "\n\tat ", "\t- locked <0x1> (a ", "java.lang.Thread.State: ", "\nFound one Java-level deadlock", "cpu=", "elapsed=",
        '\n{"log":"', '" virtual', " - ", "Thread 1: (state = ", " @bci=", "0SECTION ", "3XMTHREADINFO ", "4XESTACKTRACE at ",
        '{"threadDump":', '"tid":', '"threadName":', "idx=0x", "===== FULL THREAD DUMP =====", " owned by ", ' user="', "#011", "Chain 1:",
    )
)  # fmt: skip


def read_dumps(data: bytes) -> object:
    """The whole way of a file: dialect, threads, profile, locks, and the lines that are printed."""
    shown = []
    for detail in ("stacks", "locks"):
        dumps = DumpReader(detail).read(data, "a file")  # type: ignore[arg-type]
        weighed = (
            stacks.weigh(dumps, stacks.Naming(), root="pool")
            if detail == "locks"
            else stacks.count(dumps, stacks.Naming())
        )
        picked = stacks.select(weighed, stacks.Selection())
        for write in (view.root_first, view.leaf_first):
            shown += view.weighed_lines(stacks.lines_by_weight(picked, write), folded=True)
        stacks.hottest_first(picked)
        json.dumps([to_object(STACK, stack) for stack in picked])
        for dump in dumps:
            shown += map(view.reported_deadlock, dump.deadlocks)
        if detail == "locks":
            stacks.cpu_over_run(dumps)
            locks.contention(dumps)
    return shown


target("thread dumps", *DUMPS, words=_DUMP_WORDS, files=ends_of("thread-dumps"))(read_dumps)
for dialect, parser, sample in (
    ("hotspot", HotSpotParser, HOTSPOT + JMX),
    ("agent", ServiceabilityParser, AGENT),
    ("jrockit", JRockitParser, JROCKIT),
    ("javacore", JavacoreParser, JAVACORE),
    ("dump to file", PlainParser, PLAIN),
    ("dump to file json", JsonParser, JSON_DUMP),
    ("actuator", ActuatorParser, ACTUATOR),
):
    target(f"dump {dialect}", sample, words=_DUMP_WORDS)(
        lambda data, parser=parser: (
            parser.starts(data),
            parser("locks").parse(data),
            getattr(parser, "recognises", len)(data),
        )
    )
target("dump text", *DUMPS, words=_DUMP_WORDS, files=ends_of("thread-dumps"))(
    lambda data: (plain_text.is_binary(data), plain_text.plain_text(data), plain_text.logged_as_json(data))
)

# Histograms, logs, counters

HISTOGRAM = b"""2016-09-13T06:54:06.773+0100: 11662.232: [Full GC 11662.233: [Class Histogram (before full gc):
 num     #instances         #bytes  class name (module)
-------------------------------------------------------
   1:          7610         607736  [B (java.base@11.0.5)
   2:          7069         169656  java.lang.String (java.base@11.0.5)
   3:           250          12000  com.acme.Order
Total         14929         789392
"""
HISTOGRAMS = (
    HISTOGRAM,
    HISTOGRAM.replace(b"Total         14929         789392\n", b""),
    b"num   #instances  #bytes  class name\n---\n1: 5 100 a.B\n2: 1 50 a.C\n...\nTotal 7 170\n1: 5 101 a.D\n",
    b"Object Histogram:\n\nnum \t  #instances\t#bytes\tClass description\n---\n1:\t\t5\t100\tbyte[]\n2:\t\t1\t50\tjava.lang.String[][]\nTotal : \t6\t150\n",
    b" num   object count     total size    class name\n-----\n    1           13312         1129480    [B\n    2  5  100  a.B\n",
    b"[0.117s][trace][gc,classhisto] GC(0)  num     #instances         #bytes  class name\n[0.117s][trace][gc,classhisto] GC(0)    1: 5 100 a.B\n"
    b"[0.118s][trace][gc,classhisto] GC(0) Total 5 100\n",
    b"1: 1 16 a num #instances #bytes class name",
)
_ROWS = tuple(
    word.encode()
    for word in ("\n1: ", "\n   2:  ", "num #instances #bytes class name", "num  object count  total size  class name", "\nTotal ", "Total : ",
                 "-------\n", " (java.base@11.0.5)", "\n...\n", "0: 1 16 a\n", "1: 1 16 ", "$$Lambda/0x1", "[L", "[]", ";")
)  # fmt: skip


@target("histogram", *HISTOGRAMS, words=_ROWS, files=ends_of("class-histograms"))
def read_histograms(data: bytes) -> object:
    """Files, and what is made of them."""
    found = parse_histograms(text(data), "a file")
    return judge(Facts([Sample(histogram) for histogram in [found[0], *found]]), Choice())


text_target(
    "attach properties",
    parse_java_properties,
    b"#Mon Nov 23 15:31:24 UTC 2026\njava.version=17.0.9\npath.separator=\\:\na\\=b=\\u00fc\\n\\\\\n",
    words=[b"\\u", b"\\", b"=", b"#", b"\\uD83D"],
)
text_target(
    "heap info",
    parse_heap_info,
    b" garbage-first heap   total 8192K, used 883K [0x00000000f8000000, 0x0000000100000000)\n  region size 1024K\n"
    b" Metaspace       used 3970K, capacity 4574K\n  class space    used 369K, capacity 398K\n",
    b"Shenandoah Heap\n 128M max, 128M soft max, 128M committed, 4486K used\n 512 x 256 K regions\n",
    words=[b" used ", b"K used\n", b"\nMetaspace used 1K\n", b"999999999999999G"],
)


LOGS = (
    b"4.097: Total time for which application threads were stopped: 0.0002590 seconds, Stopping threads took: 0.0000513 seconds\n"
    b"366,174: Total time for which application threads were stopped: 0,0002590 seconds\n",
    b"2017-03-05T07:46:46.551-0500: 4.097: Application time: 0.0012757 seconds\n2017-03-05T07:46:46.551-0500: 4.098: Total time for which "
    b"application threads were stopped: 1.0002590 seconds, Stopping threads took: 0.0000513 seconds\n",
    b"[0.030s][info][safepoint    ] Application time: 0.0012757 seconds\n[0.030s][info][safepoint    ] Entering safepoint region: RevokeBias\n"
    b"[0.031s][info][safepoint    ] Leaving safepoint region\n[0.031s][info][safepoint    ] Total time for which application threads were "
    b"stopped: 0.0000643 seconds, Stopping threads took: 0.0000100 seconds\n",
    b'[2026-11-21T11:13:38.276+0000][0.079s][info][safepoint] Safepoint "ThreadDump", Time since last: 117785 ns, Reaching safepoint: 588577 ns, '
    b"At safepoint: 28984 ns, Leaving safepoint: 10105 ns, Total: 627666 ns, Threads: 0 runnable, 10 total\n",
    b"         vmop                    [threads: total initially_running wait_to_block]    [time: spin block sync cleanup vmop] page_trap_count\n"
    b"1617.723: RevokeBias                       [    2450          6            117    ]      [     8    11    21    36     0    ]  6\n"
    b"[0.079s][info ][safepoint,stats] ThreadDump        [         10            0 ][       588577      39089     627666 ]       0\n",
    b"# SafepointSynchronize::begin: Timeout detected:\n# SafepointSynchronize::begin: Threads which did not reach the safepoint:\n"
    b'# "main" #1 prio=5 os_prio=0 tid=0x00007f2a3c00b800 nid=0x2f03 runnable [0x0000000000000000]\n'
    b"# SafepointSynchronize::begin: (End of list)\n",
    b"OpenJDK 64-Bit Server VM (25.0.1+8) for linux-amd64 JRE (17.0.1+12), built\n[1795242000123ms][5ns] x\n",
)
_LOG_WORDS = tuple(
    word.encode()
    for word in ("Total time for which application threads were stopped: ", "Stopping threads took: ", " seconds\n", " ns, ", "Total: ",
                 "Application time: ", "Entering safepoint region: ", 'Safepoint "', ", Time since last: ", "Reaching safepoint: ",
                 "SafepointSynchronize::begin", "page_trap_count", " [ ", "[0.030s][info][safepoint    ] ", '# "', "JRE (", "Version: ")
)  # fmt: skip


def _pieces(data: bytes, size: int) -> Iterator[bytes]:
    return (data[at : at + size] for at in range(0, len(data), size))


@target("safepoint log", *LOGS, words=_LOG_WORDS, files=ends_of("safepoint-logs"))
def read_log(data: bytes) -> object:
    """A log at once, and in chunks of a few bytes; its sums, minutes and timeline."""
    sums = []
    for size in (1 << 16, 100) if len(data) < 5000 else (1 << 16,):
        log = SafepointLog()
        collector = Sums(Scratch(tempfile.TemporaryFile), by_minute=True, timeline=True)
        for batch in log.read(_pieces(data, size)):
            collector.add(batch)
            for _ in stops_of(batch):
                pass
        summary = collector.summary()
        sums.append((log.lines, log.unreadable, log.late_threads, log.timeouts, log.jdk, log.jdk_range, summary))
        verdict(summary.totals, summary.operations, log.timeouts)
    return sums


_HDR = tuple(
    hdrlogs.header() + hdrlogs.line(hdrlogs.histogram([0, 5, 0, 0, 700, 1], compressed=packed, **kind), 1, most=0.004, tag="A")
    for packed in (True, False)
    for kind in ({}, {"version": 0}, {"version": 1, "word": 2, "offset": 9}, {"span": 1000, "ratio": 0.25}, {"digits": 5})
)  # fmt: skip


@target(
    "hdr log",
    *_HDR,
    words=[b"Tag=", b"#[StartTime: ", b"#[BaseTime: ", b",1.0,", b"HISTFAAA", b"HISTEwAA", b"DHISTw", b"\n"],
)
def _read_hdr(data: bytes) -> object:
    """A log at once, and in chunks of a few bytes; its sums and periods."""
    found = []
    for size in (1 << 16, 100) if len(data) < 5000 else (1 << 16,):
        sums = HdrSums(HdrChoice(by_s=10.0, ignore_tags=True))
        for each in hdrlines.Log("x").read(_pieces(data, size)):
            if not isinstance(each, hdrlines.Bad):
                sums.add(each)
        found.append([(series[:-2], list(series.curve), list(series.periods)) for series in sums.series()])
    return found


@target(
    "hdr histogram",
    *(base64.b64decode(hdrlogs.histogram([0, 5, 0, 900], compressed=False, version=each)) for each in range(3)),
)
def _read_histogram(data: bytes) -> object:
    """The bytes of a histogram that is not compressed."""
    try:
        return sum(
            sum(block) for _, block in hdrcounts.counts_of(hdrcodec.parse_payload(base64.b64encode(data))).blocks
        )
    except hdrcodec.BadHistogram as why:
        return str(why)


@target(
    "printed histogram",
    b"  Latency Distribution (HdrHistogram - Recorded Latency)\n 50.000%    6.67ms\n99.990%   12.45s\n  Detailed Percentile spectrum:\n"
    b"       Value   Percentile   TotalCount 1/(1-Percentile)\n\n       0.921     0.000000            1         1.00\n"
    b"   12503.039     1.000000        39500          inf\n#[Mean    =        6.602, StdDeviation   =        1.919]\n"
    b"#[Max     =    12496.896, Total count    =        39500]\n",
    b"Results:\nLatency mean              :    0.8 ms [READ: 0.7 ms, WRITE: 0.9 ms]\nLatency median            :    0.6 ms [READ: 0.5 ms]\n"
    b"Latency 99.9th percentile :   12.1 ms [READ: 11.0 ms, WRITE: 12.2 ms]\nTotal partitions          :  1,000,000 [READ: 500,100]\n"
    b"Total operation time      : 00:01:21\n",
    words=[b"#[", b"Total count = ", b"Latency ", b"th percentile : ", b" ms [", b"% "],
)
def _read_printed(data: bytes) -> object:
    return list(hdrspectrum.Printed("x").read(hdrlines.lines_of(_pieces(data, 1000))))


@target("log stamps", *LOGS)
def _log_stamps(data: bytes) -> object:
    lines = data.split(b"\n")
    return (
        timestamps.first_stamp(data[: 1 << 16]),
        timestamps.parse_stamp(data),
        timestamps.uptimes_s(lines),
        timestamps.parse_stamp(lines[0]),
    )


text_target(
    "histogram stamp",
    timestamps.read_stamp,
    b"2016-09-13T06:54:06.773+0100: 11662.232: [Full GC 11662.233: [Class Histogram:\n",
    b"[2026-11-21T11:13:38.276+0000][0.117s][trace][gc,classhisto      ] GC(0)\n",
    b"Sat Nov 21 11:04:11 UTC 2026\n$ jmap -histo:live 88951\n4242:\n",
)


@target(
    "hsperfdata",
    files=sorted(
        {
            (FIXTURES / "hsperfdata" / name).read_bytes()
            for name in ("jdk11-g1", "jdk21-z", "jdk25-shenandoah", "jdk25-epsilon")
        }
    ),
)
def _hsperfdata(data: bytes) -> object:
    found = perf.parse_hsperfdata(data, "a file")
    perf.parse_hsperfdata(data, "a file", frozenset((b"sun.rt.safepointTime", b"sun.os.hrt.frequency")))
    return (
        *(counters.heap(found), counters.gc_work(found), counters.collector(found), stopclock.stopped_s(found)),
        *(
            stopclock.jdk_of(found),
            launch.major_of(found.text("java.property.java.vm.specification.version") or ""),
        ),
        launch.main_of_command(found.text("sun.rt.javaCommand") or ""),
    )


@target(
    "attach reply",
    b"0\n2 streaming\n",
    b"0\n" + HOTSPOT,
    b"0\n" + HISTOGRAM,
    b"101\n",
    b"-1\nOperation getversion not recognized!",
    b"\xed\xa0\xbd\xed\xb8\x80",
)
def _attach_reply(data: bytes) -> object:
    code, words = attachwire.split_reply(data, 1)
    attachwire.speaks_v2(code, words)
    attachwire.decode(words)
    for check in (attachwire.check_thread_dump, attachwire.check_histogram):
        try:
            check(words, 1)
        except OpskitError:
            pass
    return attachwire.result_of(data, 1, "threaddump")


@target("attach request", b"threaddump\n-l\n\n", b"jcmd\nThread.print -l\n", b"a b\n\nc")
def _attach_request(data: bytes) -> object:
    command, *arguments = data.decode("utf-8", "replace").split("\n")
    return attachwire.encode_v2(command, tuple(arguments)), attachwire.encode_v1(command, tuple(arguments))


# What else is read of a JVM

ELF = (
    b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x03\0\x3e\0" + bytes(20) + (64).to_bytes(8, "little") + bytes(10) + b"\x40\0\x01\0\0\0"
    + bytes(24) + (128).to_bytes(8, "little") + (32).to_bytes(8, "little") + bytes(24) + b"\0.text\0.svm_heap\0" + bytes(20)
)  # fmt: skip
target("native image", ELF)(lambda data: nativeimage.is_native_image(lambda offset, size: data[offset : offset + size]))
COMMAND = b"java\0-Xmx2g\0-XX:+UsePerfData\0-Dtoken=a b\0-cp\0app.jar\0com.example.Main\0serve\0"


@target(
    "command line", COMMAND, b"java\0@args\0", b"java\0-m\0a/b\0", b"JAVA_TOOL_OPTIONS=-Xrs -XX:-UsePerfData\0A=b\0"
)
def _command_line(data: bytes) -> object:
    words = launch.parse_words(text(data))
    line = " ".join(words)
    return (
        *(
            launch.main_of_words(words),
            launch.vm_words(words),
            launch.main_of_command(line),
            is_java_launcher(words),
        ),
        *(
            launch.last_flag(words, words, "UsePerfData"),
            launch.without_secrets(line, words),
            launch.without_secrets(line),
        ),
        *(
            attachtarget.reduced_signals(words, words),
            java_stack(tuple(words)),
            compiler_stack_bytes(tuple(words)),
        ),
    )


text_target(
    "java options",
    lambda line: (java_stack(tuple(line.split())), compiler_stack_bytes(tuple(line.split()))),
    b"-Xss512k -XX:ThreadStackSize=1024 -XX:CompilerThreadStackSize=4m -ss1g",
)
text_target(
    "java release",
    lambda words: launch.major_of(launch.parse_release(words).get("JAVA_VERSION", "")),
    b'IMPLEMENTOR="Eclipse"\nJAVA_VERSION="17.0.15"\n',
)
text_target("java version", launch.major_of, b"1.8.0_402", b"17.0.15", b"17-ea")


@target(
    "class names",
    b"[[Ljava.lang.String;\ncom.acme.App$$Lambda$14/0x0000000800c03000\njdk.proxy2.$Proxy31\n<methodKlass>\nbyte[][]\na.B$$EnhancerByCGLIB$$1a2b\nGeneratedMethodAccessor12\n",
)
def _class_names(data: bytes) -> object:
    names = list(dict.fromkeys(text(data).split("\n")))
    every = (
        class_names.fold,
        class_names.to_readable,
        class_names.to_internal,
        class_names.package,
        class_names.is_application,
        class_names.is_vm,
    )
    return [each(name) for name in names for each in every], class_names.fold_all(names, "\n".join(names))


text_target("what it looks like", sniff.content_type, b"PK\x03\x04", b"\x1f\x8b\x08", b"[gc] x\n", b"hello\n")
GZIP = bytes.fromhex("1f8b080000000000020373492d4e2e4a2cc9cccfe30200a9f9d9840c000000")


UTF = b"\xff\xfea\0b\0\n\0", b"\xef\xbb\xbfabc", b"\xfe\xff\0a"


@target("user file", GZIP, GZIP + GZIP, *UTF, b"BZh91", b"plain\n")
def _user_file(data: bytes) -> object:
    return sum(map(len, user_files._text(user_files._Source("a file", "jpmp"), _pieces(data, 1000))))


# Profiles and pictures

FOLDED = b"main;com.example.Shop.serve;java.util.HashMap.get 412\njava;[libjvm.so];java/util/HashMap.get_[j];do_syscall_64_[k] 7\na;b 1.5\n"


def _draw(weighed: Iterable[profiles.WeightedStack]) -> object:
    paths = [(stack.frames[::-1], stack.samples) for stack in weighed]
    tree = flame_tree.compare(paths[::2], paths)
    kinds = frame_kinds.kinds_of((frame for path, _ in paths for frame in path), (path[0] for path, _ in paths if path))
    return (
        flame_layout.bytes_of(tree, 1200),
        flame_tree.starts(tree.frames),
        flame_tree.thin(tree, [1] * (len(tree.frames) + len(tree.gone)), 5),
        kinds,
    )


@target("folded stacks", FOLDED, b"a;b -3\n", b"a 1\n" * 5, words=[b";", b" 1\n", b"_[k]"])
def _folded(data: bytes) -> object:
    words = text(data)
    profiles.is_folded(words)
    return _draw(profiles.parse_folded(words, "a file"))


@target(
    "async-profiler's stacks",
    b"[burn-4 tid=634];java.lang.Thread.run_[j];Workload.work_[0] 70\n[a;b tid=12];[unknown_Java] 2\n[x\ny tid=7];write_[k] 5\n",
    words=[b" tid=1];", b"tid=", b"]", b"_[j]", b" 7\n"],
)
def _asprof(data: bytes) -> object:
    return read_stacks(text(data), "a file")


@target(
    "profile json",
    b'{"stacks": [{"frames": ["a.B.c", "main"], "state": "RUNNABLE", "samples": 3, "cpu_ms": 1.5, "threads": 2, "pools": {"main": 1}, '
    b'"idle": false, "deadlocked": false}]}',
    words=[b"1e999", b"NaN", b"-Infinity", b"[[[["],
)
def _profile(data: bytes) -> object:
    found = dump_files.read_profile(text(data), "a file")
    if found is None:
        return None
    list(view.weighed_lines(stacks.lines_by_weight(found, view.root_first), folded=True))
    json.dumps([to_object(STACK, stack) for stack in stacks.select(found, stacks.Selection())])
    return _draw(found)


@target(
    "frames",
    b"java.base@17/java.lang.Thread.run(Thread.java:840)\npool-1-thread-17\nGC Thread#3\na/b.C$$Lambda$5/0x12.run(I)I(C.java:3)\nhttp-nio-8080-exec-5 (x)\nTimer (12)\n",
)
def _frames(data: bytes) -> object:
    names = dict.fromkeys(text(data).split("\n"))
    for name in names:
        (
            frames.pool_of(name),
            frames.vm_frame(name),
            frames.frame_name(name),
            frames.frame_name(name, full=True, lines=True),
        )
        stacks._is_idle("WAITING", (name,))
    return frame_kinds.kinds_of(names, names)


# Crash reports, and what is hidden in them


def crash_reports() -> Iterator[bytes]:
    """Real reports with little of each section."""
    for path in sorted((FIXTURES / "crashes").glob("*-unsafe.log")):
        yield b"\n\n".join(section[:400] for section in path.read_bytes().split(b"\n\n"))


@target("core file", core_bytes(4242), words=[b"\x7fELF\x02\x01", b"CORE\0\0\0\0"])
def _core_file(data: bytes) -> object:
    at = notes_at(data[:HEAD_BYTES])
    return None if at is None else pid_in(data[at : at + HEAD_BYTES])


text_target(
    "core line",
    said_paths,
    b'Core dump will be written. Default location: Core dumps may be processed with "/x %P" (or dumping to /srv/core.42)',
    b"Core dump written. Default location: /srv/shop/core or core.42 (max size 1 k)",
    words=[b"Default location: ", b"(or dumping to ", b" or ", b" (max size "],
)
text_target(
    "kernel.core_pattern",
    lambda line: list(by_pattern(line, 42)),
    b"/cores/%e-%p-%t.core",
    b"|/usr/lib/systemd/systemd-coredump %P %u",
    words=[b"%p", b"%%", b"%"],
)


@target(
    "crash report",
    b'0SECTION       TITLE x\n1TISIGINFO     Dump Event "gpf" (00002000) received\n1XHEXCPCODE    Signal_Number: 0000000B\n'
    b"1XHEXCPMODULE  Module: /a/b.so\n1XHEXCPMODULE  Module_base_address: 0000FF00\n2XHREGISTER      PC: 0000FF10\n1XMCURTHDINFO  x\n"
    b'3XMTHREADINFO      "main" J9VMThread:0x1, state:R, prio=5\n4XESTACKTRACE                at a/B.c(D.java:1)\n'
    b"4XENATIVESTACK               f+0x1c (0x0000FF10 [b.so+0x10])\n",
    b"2026-11-23T15:04:05.1Z stdout F # A fatal error has been detected by the Java Runtime Environment:\n"
    b"2026-11-23T15:04:05.12Z stdout P #  SIGSEGV (0xb) at pc=0x01, pid=1, tid=2\n2026-11-23T15:04:05Z stdout F \n",
    b'{"log":"# There is insufficient memory for the Java Runtime Environment to continue.\\n","stream":"x"}\n{"log":"# Native memory"}\n',
    words=[b"[error occurred during error reporting", b"siginfo: ", b"Events (10 events):\n", b"# A fatal error has been detected by the ", b"(0x1 [", b'Dump Event "a" Detail "', b"1.1."],
    files=crash_reports(),
)  # fmt: skip
def _crash_report(data: bytes) -> object:
    return [redact_report(report) for report in parse_all(data, "a file")]


@target(
    "secrets",
    b"-Ddb.password=a b -p x --token 'x y' https://u:p@h/x jdbc:oracle:thin:a/b@h Bearer abcdefghijk -javaagent:a=key=b\n",
    words=[
        b"\0-Dpassword=",
        b"://",
        b'="',
        b"-p ",
        b" = ",
        b"<password>",
        b"-----BEGIN RSA PRIVATE KEY-----",
        b"IDENTIFIED BY '",
        b"?sig=",
        b"java ",
    ],
)
def _secrets(data: bytes) -> object:
    return redact_line(text(data[:32768])), redact_cmdline(data[:4096]), redact_environ(data[:4096])


@target(
    "redacted captures",
    b"jvm_args: -Ddb.password=x -Xmx1g\nEnvironment Variables:\nA=b\n\nEnvironment=A=x B='y z'\npassword: hunter2x\n",
    words=[b"password=", b"Environment=", b"\0"],
)
def _redacted_captures(data: bytes) -> object:
    from opskit.analysis.capture.redact import redact
    from opskit.proc.recorded.tape import CALL, FILE, RANGES, REPLY, Mark, Origin, Tape

    tape, part = Tape(Origin(), (Mark(0, 0),)), data[:4096]
    tape.keep(FILE, "/proc/7/cmdline", b"x\0--password\0hunter2x\0" + part)
    tape.keep(FILE, "/etc/x.conf", data[:16384])
    for path in ("/proc/7/environ", "/proc/7/maps", "/proc/7/stat", "/proc/cmdline"):
        tape.keep(FILE, path, part)
    tape.keep(FILE, "/tmp/hsperfdata_x/7", b"\xca\xfe\xc0\xc0" + part)
    tape.keep(RANGES, "/proc/7/mem", {0: part})
    tape.keep(REPLY, "7/threads", part)
    tape.keep(CALL, "q(1)", ["answer", {"base64": text(data)[:64]}])
    return redact(tape).total >= 0


text_target(
    "doctor's state",
    lambda given: parse_state(given, "state"),
    b'{"opskit_doctor_state": 1, "host": "vm", "words": ["a"], "at_s": 1.5, "findings": [{"code": "oom-killed", "key": "host", "severity": "error", "subject": "host", "summary": "x", "since_s": 1.0, "total": 1, "share": 0.5, "checks": ["oom"], "is_listed": true}]}',
)


# Values of options


def option(name: str, kind: Any, *samples: bytes) -> None:
    """Register the type of an option's value."""
    target(f"option {name}", *samples)(lambda data: kind.convert(text(data), None, None))


option("duration", options.Duration(zero=True), b"500ms", b"10s", b"1.5m", b"5", b".5h")
option("size", options.Size(), b"64K", b"1.5G", b"10MiB", b"7")
text_target("option pid", pid_of, b"4242", b"0")
target("option percent", b"25%", b"12.5")(lambda data: dentry._percent(None, None, text(data)))
target("option level", b"all", b"2")(lambda data: dentry._level(None, None, text(data)))
text_target(
    "option time",
    moment_of,
    b"2026-01-31T10:05:30.5+0100",
    b"2026-01-31",
    b"90s",
    b"9999-12-31T23:59-2300",
    b"0001-01-01T00:00+2300",
)
target("option regex", b"a.*b", b"(a|b)+")(lambda data: options.Regex().convert(text(data[:1000]), None, None))
target("option samples", b"20", b"0")(lambda data: dump_files.read_samples(text(data), "4242"))
target("option interval", b"0.25", b"250ms")(lambda data: dump_files.read_interval(text(data)))


jmxagentfuzz.register(text_target, target, text)
capturefuzz.register(target)
answerfuzz.register(target)


def every_line_of(samples: Iterable[bytes]) -> list[bytes]:
    """The different lines of some samples."""
    return list(dict.fromkeys(itertools.chain.from_iterable(sample.split(b"\n") for sample in samples)))
