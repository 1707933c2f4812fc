"""Read the attach and hsperfdata files of each JVM and the leftovers of ended ones in /tmp; attach on request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.collect.found_jvms import hotspot_jvms
from opskit.errors import BadInput, NoSuchProcess, NotAJvm, NotPermitted, OpskitError
from opskit.jvm.attach.files import FileFinder, Surroundings
from opskit.jvm.attach.leftovers import Leftover, find_leftovers
from opskit.jvm.attach.listening import ListeningSockets
from opskit.jvm.attach.target import DEFAULT_TIMEOUT_S
from opskit.jvm.discover import HOTSPOT, Jvm, check_identifiable, find_jvm, survey
from opskit.proc.fs import GONE
from opskit.proc.namespaces import in_initial
from opskit.proc.rights import how_to_be_allowed
from opskit.proc.visibility import coverage_lines
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from opskit.host import Host

_KINDS = {"OpenJ9": "an OpenJ9 JVM", "native image": "a GraalVM native image"}


class Request(NamedTuple):
    """What to read. No `pids`: every JVM. `probe`: attach to each for real, with `timeout_s` for each exchange.

    `again`: a PID without a process or anything left in /tmp is accepted: it was repaired. `quick`: connect to no socket, and read the
    maps of no process but the JVMs, all of which `pids` are; a process that is none is left out.
    """

    pids: tuple[int, ...] = ()
    probe: bool = False
    timeout_s: float = DEFAULT_TIMEOUT_S
    again: bool = False
    quick: bool = False


class Probe(NamedTuple):
    """What attaching for real gave. `reason` None: it worked."""

    pid: int
    reason: str | None
    said: str
    took_ms: float


class Facts(NamedTuple):
    """One look. `now_s`: the wall clock. `sees_all`: no process is hidden by our PID namespace.

    `interrupted`: Ctrl-C ended the probes. `is_copy`: another machine's tree, whose /tmp says nothing about that machine.
    """

    ask: Request
    around: Sequence[Surroundings]
    leftovers: Sequence[Leftover]
    probes: Mapping[int, Probe]
    interrupted: bool
    notes: Sequence[str]
    now_s: float
    page_bytes: int
    sees_all: bool
    is_copy: bool
    user_name: Callable[[int], str]
    group_name: Callable[[int], str]


def collect(host: Host, ask: Request, progress: Callable[[str], None] = lambda _: None) -> Facts:
    """Look at the JVMs that were asked for. `progress` gets a line for each probe.

    Raises NoSuchProcess, NotAJvm, NotPermitted and NotSupported for a PID that cannot be judged.
    """
    if ask.probe:
        host.prove_own()
    if ask.quick:
        return _collect_quickly(host, ask)
    finder = FileFinder(host.fs, host.user_name)
    living = [pid for pid in ask.pids if host.fs.exists(pid)]
    jvms, notes = ([_hotspot(host, pid) for pid in living], []) if ask.pids else _all_jvms(host)
    if not host.fs.is_live:
        skipped = "sockets, owners, modes and inodes in its /tmp are not the machine's, and were not judged"
        notes.append(f"{host.fs.proc} is a copy: {skipped}")
    seen = [_look(host, finder, jvm, ask, notes) for jvm in jvms]
    around = [each for each in seen if each is not None]
    ended = [pid for pid in ask.pids if pid not in living]
    leftovers: list[Leftover] = []
    if host.fs.is_live and (ended or not ask.pids):
        everyone = survey(host.fs, host.clock_ticks).jvms if ask.pids else jvms
        leftovers = find_leftovers(finder, [each.tmp for each in around], everyone, ended if ask.pids else None)
    for pid in ended:
        if not ask.again and all(left.pid != pid for left in leftovers):
            where = "nothing in /tmp was left by it either" if host.fs.is_live else "it is not in this copy"
            raise NoSuchProcess(pid, f"{where}; opskit jvms lists the JVMs")
    probes, interrupted = _probe_all(host, around, ask, progress) if ask.probe else ({}, False)
    return _facts(host, ask, around, leftovers, notes)._replace(probes=probes, interrupted=interrupted)


def _collect_quickly(host: Host, ask: Request) -> Facts:
    jvms, notes = hotspot_jvms(host, ask.pids).jvms, list[str]()
    finder = FileFinder(host.fs, host.user_name, ListeningSockets(host.fs, jvms))
    seen = [_look(host, finder, jvm, ask._replace(pids=()), notes) for jvm in jvms]
    around = [each for each in seen if each is not None]
    leftovers = []
    if host.fs.is_live and not ask.pids:
        leftovers = find_leftovers(finder, [each.tmp for each in around], jvms, None)
    return _facts(host, ask, around, leftovers, notes)


def _facts(
    host: Host, ask: Request, around: Sequence[Surroundings], leftovers: Sequence[Leftover], notes: Sequence[str]
) -> Facts:
    return Facts(
        ask, around, leftovers, {}, False, notes,
        now_s=host.now().timestamp(), page_bytes=host.page_bytes, sees_all=in_initial(host.fs, "pid") is True,
        is_copy=not host.fs.is_live, user_name=host.user_name, group_name=host.group_name,
    )  # fmt: skip


def _look(host: Host, finder: FileFinder, jvm: Jvm, ask: Request, notes: list[str]) -> Surroundings | None:
    """One JVM; None with a note, or an error where it was asked for by its PID, if it cannot be judged."""
    who = f"{jvm.pid} ({jvm.main})"
    try:
        around = finder.look(jvm)
    except GONE:
        if ask.pids:
            raise NoSuchProcess(jvm.pid, "it ended just now") from None
        return None
    except BadInput as error:
        if ask.pids:
            raise
        notes.append(f"{who} was not judged: {error}")
        return None
    if around.counters is None:
        advice = how_to_be_allowed(host.fs, "CAP_SYS_PTRACE", "opskit", "hsperf-check", jvm.pid, pid=jvm.pid)
        what = f"cannot read {host.fs.path(jvm.pid, 'maps')}; {advice}"
        denied = f"{who} belongs to {host.user_name(around.euid)}: {what}"
        if ask.pids:
            raise NotPermitted(denied)
        notes.append(f"hsperfdata was not judged: {denied}")
    return around


def _hotspot(host: Host, pid: int) -> Jvm:
    jvm = find_jvm(host.fs, pid, host.clock_ticks)
    if jvm.kind != HOTSPOT:
        why = "it has neither HotSpot's hsperfdata nor its attach socket"
        raise NotAJvm(f"{pid} ({jvm.main}) is {_KINDS[jvm.kind]}: {why}")
    return jvm


def _all_jvms(host: Host) -> tuple[list[Jvm], list[str]]:
    """Every HotSpot JVM, and notes on what was not judged."""
    seen = survey(host.fs, host.clock_ticks)
    check_identifiable(host.fs, seen)
    unseen = not seen.jvms  # a JVM whose maps are unreadable is recognized by its threads or command line
    notes = [*coverage_lines(host.fs, len(seen.scanned), seen.denied, len(seen.vanished), may_be_meant=unseen)]
    others = [jvm for jvm in seen.jvms if jvm.kind != HOTSPOT]
    notes += [f"{jvm.pid} ({jvm.main}) is {_KINDS[jvm.kind]}, and was not judged" for jvm in others]
    return [jvm for jvm in seen.jvms if jvm.kind == HOTSPOT], notes


def _probe_all(
    host: Host, around: Sequence[Surroundings], ask: Request, progress: Callable[[str], None]
) -> tuple[dict[int, Probe], bool]:
    """Attach to each JVM for real. True: Ctrl-C came."""
    probes: dict[int, Probe] = {}
    try:
        for each in around:
            progress(f"attaching to {each.pid} …")
            probes[each.pid] = _probe(host, each.pid, ask.timeout_s)
    except KeyboardInterrupt:
        return probes, True
    return probes, False


def _probe(host: Host, pid: int, timeout_s: float) -> Probe:
    from opskit.jvm.attach.client import AttachClient

    begun = host.monotonic()
    reason = None
    try:
        client = AttachClient(host.fs, pid, timeout_s)
        lines = client.jcmd("VM.version").splitlines()
        client.thread_dump()  # as jstack: unlike VM.version it needs a safepoint
        said = f"{lines[1] if len(lines) > 1 else lines[0]}, attach protocol version {client.version}"
    except OpskitError as error:
        reason, said = getattr(error, "reason", "failed"), str(error)
    return Probe(pid, reason, said, (host.monotonic() - begun) * 1000)
