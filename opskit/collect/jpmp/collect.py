"""Collect thread dumps: sample a live JVM, or read saved dumps and profiles."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.collect.jpmp.facts import Facts, Sampled
from opskit.errors import OpskitError
from opskit.jvm.dumps.dialects import DumpReader

if TYPE_CHECKING:
    from collections.abc import Callable

    from opskit.collect.jpmp.facts import Request
    from opskit.host import Host
    from opskit.jvm.attach.client import AttachClient

VIRTUAL_TIMEOUT_S = 60.0  # a JVM writes some 15,000 threads/s
_S_PER_GIB = 0.6  # 36 to 39 s were reported for a heap of 65 GB


def collect(
    host: Host,
    ask: Request,
    *,
    dump_virtual: Callable[[Host, AttachClient, int | None], bytes] | None = None,
    keep: Callable[[int, bytes], None] | None = None,
) -> Facts:
    """Read the file to compare with, then the files or the JVM.

    `dump_virtual` takes a dump of all virtual threads (it writes a file, so it is an action); `keep` gets the number and
    the raw text of each dump. Raises BadInput, and AttachError if the JVM gave no dump at all.
    """
    reader = DumpReader(ask.detail)
    from opskit.collect.jpmp.files import read_files

    before = None if ask.before is None else read_files((ask.before,), reader)
    if ask.pid is None:
        return read_files(ask.files, reader)._replace(before=before)
    live = _sample(host, ask.pid, ask, reader, dump_virtual, keep)
    return Facts(live.dumps, live=live, before=before)


def _sample(
    host: Host,
    pid: int,
    ask: Request,
    reader: DumpReader,
    dump_virtual: Callable[[Host, AttachClient, int | None], bytes] | None,
    keep: Callable[[int, bytes], None] | None,
) -> Sampled:
    # Sockets and cgroups: not needed for files.
    from opskit.collect.jpmp.sampling import Sampler
    from opskit.jvm.attach.client import DEFAULT_TIMEOUT_S, AttachClient
    from opskit.proc.cgroup.owner import unit_of
    from opskit.proc.cgroup.tree import parse_cgroup

    host.prove_own(pid)
    default_s = VIRTUAL_TIMEOUT_S if ask.kind == "virtual" else DEFAULT_TIMEOUT_S
    client = AttachClient(host.fs, pid, default_s if ask.timeout_s is None else ask.timeout_s)

    def dump() -> bytes:
        if ask.kind == "virtual" and dump_virtual is not None:
            return dump_virtual(host, client, heap_used_bytes(host, pid))
        return client.thread_dump(locks=ask.kind == "synchronizers").encode("utf-8", "surrogateescape")

    sampled = Sampler(host, client, reader, ask, dump, keep).sample()
    memberships = host.fs.maybe(parse_cgroup, pid, "cgroup")
    sampled.unit = None if memberships is None else unit_of(memberships)
    return sampled


def heap_used_bytes(host: Host, pid: int) -> int | None:
    """The used heap by hsperfdata; None if unknown."""
    from opskit.jvm.discover import read_perfdata
    from opskit.jvm.perfdata.counters import heap

    try:
        found = heap(read_perfdata(host.fs, pid))
    except OpskitError:
        return None
    return None if found is None else found.used_bytes


def heap_walk_s(used_bytes: int, samples: int) -> float:
    """How long `samples` dumps with owners of java.util.concurrent locks stop the JVM, about."""
    return samples * used_bytes / 2**30 * _S_PER_GIB
