"""The values of threads, processes, CPUs and quotas: columns of the tables, keys of the JSON object, metrics."""

from __future__ import annotations

from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any

from opskit.quantities import duration, listed, number_ranges, percent
from opskit.render.cells import or_dash, rate_field, rounded_at, share_field
from opskit.render.fields import COUNT, FLAG, ID, NUMBER, SECONDS, SHARE, TEXT, Field, list_of, records

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from opskit.analysis.cswitch.result import ProcessRow, Row
    from opskit.collect.cswitch.facts import CpuLoad, Handoff, Quota, Thread
    from opskit.proc.process import Process

# sched(7)
POLICIES = {0: "other", 1: "fifo", 2: "rr", 3: "batch", 5: "idle", 6: "deadline", 7: "ext"}
_MOST_PINNED = 2  # threads in a cell; json has all


def name_of(thread: Thread) -> str:
    """The Java name in full, or the kernel's, which is cut to 15 bytes."""
    return thread.java_name or thread.name


def who(process: Process) -> str:
    """`4242 (java)`."""
    return f"{process.pid} ({process.command})"


def _policy(row: Row) -> str:
    return POLICIES.get(row.thread.policy, str(row.thread.policy))


# Of threads, and of processes: the sums of their threads.
def waits_of(of: str) -> tuple[Field[Any], ...]:
    """The shares of the window: `of` is `thread` of a Row, or `waits` of a ProcessRow."""
    whole = "0 to 1, of the window" if of == "thread" else "of all threads together: 1 is one CPU for the whole window"
    return (
        share_field("waiting", "waits", f"{of}.waiting", help=f"runnable without a CPU; {whole}; null: unknown"),
        share_field("running", "runs", f"{of}.running", help=f"on a CPU; {whole}"),
    )


def switches_of(of: str) -> tuple[Field[Any], ...]:
    """The context switches a second, likewise."""
    return (
        rate_field("voluntary_per_s", "vol/s", f"{of}.voluntary", rank=6, help="voluntary context switches: it slept"),
        rate_field(
            "involuntary_per_s", "invol/s", f"{of}.involuntary", rank=5,
            help="involuntary context switches: another thread took its CPU",
        ),
    )  # fmt: skip


def _milliseconds(row: Row) -> float | None:
    wait_s = row.thread.average_wait_s
    return None if wait_s is None else round(wait_s * 1000, 3)


THROTTLED: Field[Row] = share_field(
    "throttled",
    "throttled",
    "thread.throttled",
    help="the part of `waiting` for which its cgroup had used up its quota",
)
AVERAGE_WAIT: Field[Row] = Field(
    "average_wait_s", SECONDS, "each wait", rounded_at("thread.average_wait_s", 9), show=or_dash(duration), rank=4,
    help="how long it waited each time it got a CPU",
)  # fmt: skip
# Text has numbers without units.
AVERAGE_WAIT_MS: Field[Row] = Field("average_wait_ms", NUMBER, "each wait ms", _milliseconds)
MIGRATIONS: Field[Row] = rate_field(
    "migrations_per_s", "migr/s", "thread.migrations", rank=7, help="moves to another CPU"
)
SLICES: Field[Any] = rate_field("slices_per_s", "", "thread.slices", help="how often it got a CPU")
CPU: Field[Row] = Field("cpu", ID, "cpu", attrgetter("thread.cpu"), rank=8, help="the one it ran on last")
ALLOWED: Field[Row] = Field(
    "allowed_cpus", TEXT, "may use", lambda row: number_ranges(row.thread.allowed) or "-", rank=9, help="CPUs"
)
TID: Field[Row] = Field("tid", ID, "tid", attrgetter("thread.tid"))
NAME: Field[Row] = Field(
    "name", TEXT, "thread", lambda row: name_of(row.thread), shrinks=15, help="its Java name with --ask"
)
WHY: Field[Any] = Field(
    "why", TEXT, "because of", lambda row: row.why or None, rank=1,
    help="throttled, softirqs, pinned, outnumbered, ping-pong, stolen; null: nothing was proven",
)  # fmt: skip
THREAD: Sequence[Field[Row]] = (
    TID,
    *waits_of("thread"),
    THROTTLED,
    Field("throttled_by", TEXT, value=attrgetter("thread.throttled_by"), help="the cgroup whose quota was used up"),
    AVERAGE_WAIT,
    SLICES,
    *switches_of("thread"),
    MIGRATIONS,
    CPU,
    Field("allowed", list_of(ID), value=lambda row: sorted(row.thread.allowed), help="the CPUs that it may use; empty: unknown"),
    Field("policy", TEXT, value=_policy, help="sched(7): other, batch, idle, fifo, rr, deadline"),
    Field("nice", COUNT, value=attrgetter("thread.nice")),
    WHY,
    NAME,
    Field("kernel_name", TEXT, value=attrgetter("thread.name"), help="the name that the kernel has, at most 15 bytes"),
)  # fmt: skip


def _worst(name: str) -> Callable[[ProcessRow], Any]:
    def value(row: ProcessRow) -> Any:
        worst = row.waits.worst
        if worst is None:
            return None
        return name_of(worst) if name == "name" else getattr(worst, name)

    return value


PID: Field[ProcessRow] = Field("pid", ID, "pid", attrgetter("waits.process.pid"))
COMMAND: Field[ProcessRow] = Field("command", TEXT, "command", attrgetter("waits.process.command"), shrinks=12)
USER: Field[ProcessRow] = Field("user", TEXT, "user", attrgetter("waits.process.user"), rank=8)
MOVED: Field[ProcessRow] = Field(
    "threads", COUNT, "threads", attrgetter("waits.threads"), rank=7, help="those that ran or waited"
)
WORST: Field[ProcessRow] = Field(
    "worst_name", TEXT, "worst thread", _worst("name"), rank=2, shrinks=12, help="the thread that waited most",
    show=lambda name: name or "",
)  # fmt: skip
WORST_WAITS: Field[ProcessRow] = Field(
    "worst_waiting",
    SHARE,
    "it waits",
    rounded_at("waits.worst_waiting", 4),
    rank=3,
    help="0 to 1, of the window: the thread that waited most",
    show=or_dash(percent),
)
PROCESS_ROW: Sequence[Field[ProcessRow]] = (
    PID,
    Field("start_ticks", ID, value=attrgetter("waits.process.start_ticks"), help="clock ticks since boot"),
    *waits_of("waits"),
    rate_field("slices_per_s", "", "waits.slices", help="how often its threads got a CPU"),
    *switches_of("waits"),
    MOVED,
    Field("worst_tid", ID, value=_worst("tid")),
    WORST_WAITS,
    USER,
    WHY,
    COMMAND,
    WORST,
)


def _use(name: str, title: str, **more: Any) -> Field[CpuLoad]:
    return share_field(name, title, f"use.{name}", **more)


_PINNED: Sequence[Field[tuple[int, int, str, float]]] = (
    Field("pid", ID, value=itemgetter(0)),
    Field("tid", ID, value=itemgetter(1)),
    Field("name", TEXT, value=itemgetter(2)),
    Field("running", SHARE, value=lambda it: round(it[3], 4), help="0 to 1, of the window"),
)


def _pinned_text(load: CpuLoad) -> str:
    """`7525 (spin) 58 %, … 2 more`."""
    return listed([f"{tid} ({name}) {percent(running)}" for _, tid, name, running in load.pinned], _MOST_PINNED)


CPU_ROW: Sequence[Field[CpuLoad]] = (
    Field("cpu", ID, "cpu", attrgetter("use.cpu")),
    _use("user", "user", help="0 to 1, of the window"),
    _use("system", "system"),
    _use("softirq", "softirq"),
    _use("irq", "irq", rank=2),
    _use("steal", "steal", help="what the hypervisor ran elsewhere", rank=1),
    _use("idle", "idle"),
    rate_field("net_rx_per_s", "NET_RX/s", "net_rx", rank=3, help="softirqs for received packets"),
    Field("pinned", records(_PINNED), value=lambda load: [*load.pinned], help="threads that may run on it alone or nearly, and did"),
    Field("pinned_text", TEXT, "pinned threads", _pinned_text, json=False, shrinks=16, rank=4),
)  # fmt: skip
HANDOFF: Sequence[Field[Handoff]] = (
    Field("first", ID, help="a TID"),
    Field("second", ID, help="another one"),
    Field("looks", COUNT, help="at both at the same time"),
    Field("asleep", COUNT, help="of the looks: both slept"),
    Field("awake", COUNT, help="of the looks: neither slept"),
    Field("call", TEXT, help="the system call that both sleep in; futex: a lock or a condition; null: unknown, or another one each"),
    Field("same_address", FLAG, help="they were seen to wait for the same futex"),
)  # fmt: skip
QUOTA: Sequence[Field[Quota]] = (
    Field("cpus", NUMBER, "CPUs", lambda quota: round(quota.cpus, 3), help="the quota", show=lambda cpus: f"{cpus:g}"),
    Field("periods", COUNT, "periods", help="in the window"),
    Field("throttled_periods", COUNT, "used up in", help="the periods in which the quota was used up"),
    Field("throttled", SHARE, "throttled", rounded_at("throttled", 4), show=or_dash(percent),
          help="0 to 1, of the window: at least one of its CPUs was throttled; null: not counted"),
    Field("path", TEXT, "cgroup", shrinks=24),
)  # fmt: skip
