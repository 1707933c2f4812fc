"""Complete the dumps of a live JVM: its virtual threads, which ordinary dumps lack, and how many carriers it may use.

JDK 25 can crash in Thread.dump_to_file while virtual threads mount and unmount (JDK-8364343; 25.0.2 was seen to, in
GetThreadSnapshotClosure). It is asked without --virtual only while no carrier runs at all.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from opskit.errors import OpskitError
from opskit.jvm.launch import jvm_options, last_flag, parse_words
from opskit.proc.cgroup.limits import cpu_limit
from opskit.proc.cgroup.tree import ancestry
from opskit.proc.files.cpu_times import parse_cpu_list
from opskit.proc.files.status import parse_status
from opskit.proc.fs import optional
from opskit.proc.thread_cpu import ThreadCpu
from opskit.quantities import integer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from opskit.collect.jpmp.collect import Sampled
    from opskit.host import Host
    from opskit.jvm.attach.client import AttachClient
    from opskit.jvm.dumps.thread_dump import Detail, Thread, ThreadDump

FIRST_JDK = 21
_LISTS_SCHEDULER = 24  # first JDK with Thread.vthread_scheduler
_CAN_CRASH = 25  # first JDK that can crash
_MOST_DUMPS, _PAUSE_S = 3, 0.5  # three show that a wait lasts
_QUIET_S = 0.3  # so long no carrier uses CPU time
_LONG_S = 1.0  # a dump that takes longer is taken once
_TOP = 6  # frames next to the leaf
_PARALLELISM = re.compile(r"\bparallelism = ([0-9]{1,9})\b")
_OPTION = "-Djdk.virtualThreadScheduler.parallelism="


def add_virtual_threads(
    host: Host, client: AttachClient, run: Sampled, detail: Detail, dump: Callable[[], ThreadDump] | None
) -> None:
    """Take up to three dumps with virtual threads: for locks always, for stacks if carriers do not move on. Never raises."""
    if run.ended in ("interrupted", "exited", "failed"):
        run.virtual_problem = "the run ended early"
        return
    try:
        if dump is not None and (detail == "locks" or _is_stuck(run.dumps)):
            _take(host, client, run, dump)
        if any(thread.stack.role == "carrier" for taken in (*run.dumps[-1:], *run.virtual) for thread in taken.threads):
            run.parallelism = read_parallelism(host, client)
    except OpskitError as error:
        run.virtual_problem = str(error)
    except KeyboardInterrupt:
        run.ended, run.virtual_problem = "interrupted", "the run was interrupted"


def _take(host: Host, client: AttachClient, run: Sampled, dump: Callable[[], ThreadDump]) -> None:
    major = client.target.java_major or 0
    for number in range(_MOST_DUMPS):
        if number:
            host.sleep(_PAUSE_S)
        if major >= _CAN_CRASH and not _is_quiet(host, client.pid, run.dumps[-1]):
            if not number:
                run.virtual_problem = f"JDK {major} can crash while it dumps virtual threads that run"
            return
        begun = host.monotonic()
        taken = dump()
        run.virtual.append(taken)
        run.virtual_times_s.append(begun)
        if host.monotonic() - begun > _LONG_S or not any(map(_waits, taken.threads)):
            return


def _is_quiet(host: Host, pid: int, dump: ThreadDump) -> bool:
    """Whether no carrier uses any CPU time for a moment: then no virtual thread is mounted or unmounted."""
    carriers = [thread.native_id for thread in dump.threads if thread.native_id is not None and _may_carry(thread)]
    if not carriers:
        return True
    cpu = ThreadCpu(host.fs, pid, host.clock_ticks)
    before = cpu.read().used_ms
    host.sleep(_QUIET_S)
    after = cpu.read().used_ms
    return all(before.get(carrier) == after.get(carrier) for carrier in carriers)


def _may_carry(thread: Thread) -> bool:
    stack = thread.stack
    return stack.role is not None or any("ForkJoinWorkerThread.run" in frame for frame in stack.frames[-1:])


def _waits(thread: Thread) -> bool:
    """Whether a virtual thread may wait for a lock."""
    frames = thread.stack.frames[:_TOP]
    return bool(thread.virtual) and (
        thread.stack.state == "BLOCKED" or any("Synchronizer.acquire" in frame for frame in frames)
    )


def _is_stuck(dumps: Sequence[ThreadDump]) -> bool:
    """Whether a carrier has the same virtual thread in every dump, and no dump has the stack of that thread (JDK 21 to 23)."""
    if len(dumps) < 2 or any(thread.stack.role == "mounted" for thread in dumps[-1].threads):
        return False
    carried = [
        {(thread.java_id, thread.mount_id) for thread in dump.threads if thread.stack.role == "carrier"}
        for dump in dumps
    ]
    return bool(set.intersection(*carried))


def read_parallelism(host: Host, client: AttachClient) -> int | None:
    """How many carriers run virtual threads at once: as the JVM tells (24 and later), by its options, or by its CPUs."""
    fs, pid = host.fs, client.pid
    if (client.target.java_major or 0) >= _LISTS_SCHEDULER:
        told = _PARALLELISM.search(client.jcmd("Thread.vthread_scheduler"))
        if told:
            return integer(told[1])
    words, environment = (list(fs.maybe(parse_words, pid, name, default=())) for name in ("cmdline", "environ"))
    options = [word for word in jvm_options(words, environment) if word.startswith(_OPTION)]
    if options:
        return integer(options[-1][len(_OPTION) :])
    flag = last_flag(words, environment, "ActiveProcessorCount")
    if flag is not None:
        return integer(flag.partition("=")[2])
    status, cgroups = fs.maybe(parse_status, pid, "status"), optional(ancestry, fs, pid, "cpu")
    allowed = None if status is None else parse_cpu_list(status.fields.get("Cpus_allowed_list", ""))
    if not allowed:
        return None
    quota = cpu_limit(fs, cgroups.levels).cpus if cgroups is not None and cgroups.levels else None
    return len(allowed) if quota is None else max(1, min(len(allowed), math.ceil(quota)))
