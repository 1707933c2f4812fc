"""The kernel's parameters of /proc/sys, without those that are counters or random, or that belong to one interface."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from opskit.collect.compare.facts import CONFIGURED, Fact
from opskit.proc.fs import optional

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opskit.proc.fs import ProcFS

_MOST, _LONGEST, _DEEPEST = 5000, 300, 6
# Counters, states, secrets, names of this machine.
_LEFT_OUT = re.compile(
    r"(?:kernel/(?:random/|hostname|domainname|ns_last_pid|pty/nr|osrelease|version|ostype|usermodehelper|keys/|tainted|bootloader_|modprobe|"
    r"real-root-dev|sched_domain/|perf_event_max_sample_rate|cap_last_cap|seccomp/actions_avail|spl/|firmware_config|sg-big-buff|ftrace_dump|"
    r"msg_next_id|sem_next_id|shm_next_id|max_lock_depth|acpi_video_flags|poweroff_cmd|hotplug|cad_pid|print-fatal)"
    r"|fs/(?:dentry-state|inode-nr|inode-state|file-nr|aio-nr|quota/|binfmt_misc/|dqstats|pipe-user-pages-now|verity|nfs/|mqueue/queues_max$|epoll/none)"
    r"|net/(?:netfilter/nf_conntrack_count|nf_conntrack_count|ipv[46]/route/flush|ipv4/tcp_fastopen_key|ipv4/tcp_available|ipv6/conf/[^/]*/stable_secret|"
    r"ipv4/tcp_allowed_congestion_control|core/netdev_rss_key|netfilter/nf_log|ipv[46]/(?:conf|neigh)/(?!all/|default/)|mpls/conf|"
    r"ipv4/ipfrag_none|core/bpf_jit_none)"
    r"|dev/(?:cdrom|parport|raid/speed_none|tty/none)|debug/|vm/(?:stat_refresh|drop_caches|compact_memory)|crypto/|sunrpc/|abi/)"
)
_WALKED = ("kernel", "vm", "fs", "net", "user", "dev")


def sysctl_facts(fs: ProcFS) -> list[Fact]:
    """Each parameter that can be read, by its dotted name."""
    facts = []
    for path, value in _walk(fs):
        name = path.replace("/", ".")
        facts.append(Fact(f"sysctl.{name}", CONFIGURED, "sysctl", name, " ".join(value.split())[:_LONGEST]))
        if len(facts) >= _MOST:
            break
    return facts


def _walk(fs: ProcFS) -> Iterator[tuple[str, str]]:
    base = fs.path("sys")
    todo = [*reversed(_WALKED)]
    while todo:
        path = todo.pop()
        if _LEFT_OUT.match(path) or _LEFT_OUT.match(f"{path}/") or path.count("/") > _DEEPEST:
            continue
        names = None
        if "/" not in path or path in ("net/ipv4", "net/ipv6") or "." not in path:
            names = optional(fs.names_at, f"{base}/{path}")
        if names is not None:
            todo += [f"{path}/{name}" for name in sorted(names, reverse=True)]
            continue
        value = fs.maybe(str.strip, "sys", *path.split("/"))
        if value is not None:
            yield path, value
