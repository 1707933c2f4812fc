"""How OOM kills are shown: a sentence each, tables of the kills and of the largest processes, the JSON object."""

from __future__ import annotations

import re
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from opskit.analysis.mem.headroom import flag_size
from opskit.analysis.oom import LATELY_S, is_old, label_of, limit_of, missing_kills, outside_heap_bytes, uncounted_bytes
from opskit.proc.oom.records import CHOSEN
from opskit.proc.oom.signs import KILL_KINDS, OOMD
from opskit.quantities import duration, plural, short_duration, short_size, size
from opskit.records import NamedTuple
from opskit.render.cells import at
from opskit.render.fields import COUNT, FLAG, ID, NUMBER, SECONDS, SIZE, TEXT, Field, record, records, sheet
from opskit.render.report import Block, Report

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opskit.analysis.oom import Result
    from opskit.collect.oom import Known, Source
    from opskit.collect.oom_counters import Counted, CrashLog
    from opskit.proc.oom.lines import When
    from opskit.proc.oom.records import Held, Kill, Task
    from opskit.proc.oom.signs import Sign
    from opskit.render.report import About

_SENTENCES, _ROWS, _TASKS = 3, 10, 5
_LARGE = 0.5  # of what the cgroup used
_MIB = 1 << 20
_DATE = re.compile(
    r"(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d)(?:[.,]\d{1,9})?(Z?)|([^\W\d_]{3,9}\.? {1,2}\d{1,2} \d\d:\d\d:\d\d(?: \d{4})?)"
)


class Shown(NamedTuple):
    """What to show: `top` rows (None: as many as fit; 0: all); `details`: what was held, and who asked, for each of several kills."""

    top: int | None = None
    details: bool = False


def _utc(when: When) -> str | None:
    if when.time_s is None or not 0 <= when.time_s < 253_402_300_800:
        return None
    return datetime.fromtimestamp(when.time_s, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def _when_cell(known: Known) -> str:
    """For a narrow column: an age, a date as in the log, or an uptime."""
    when = known.kill.when
    if known.ago_s is not None:
        return f"{short_duration(known.ago_s)} ago"
    return f"{when.uptime_s:.3f} s" if when.uptime_s is not None and when.local_s is None else when.text


def _short_stamp(text: str) -> str:
    """A date without its weekday, fraction and offset; any other stamp as it is."""
    found = _DATE.search(text)
    return "".join(part or "" for part in found.groups()) if found else text


def _full(known: Known) -> str:
    kill = known.kill
    if kill.by_cgroup:
        return kill.cgroup or "its cgroup"
    return "sysrq" if kill.manual else kill.scope or "unknown"


def _limit_bytes(known: Known) -> int | None:
    limit = limit_of(known)
    return limit and limit[1]


def _size_or_none(count: int | None) -> str:
    return "" if count is None else size(count)


TASK: Sequence[Field[Task]] = (
    Field("pid", ID, "pid"),
    Field("name", TEXT, "name", help="of its first thread, 15 bytes; the process chose it"),
    Field("uid", ID, "uid"),
    Field("rss_bytes", SIZE, "rss"),
    Field("swap_bytes", SIZE, "swap"),
    Field("adj", NUMBER, "adj", help="oom_score_adj"),
)
HELD: Sequence[Field[Held]] = (
    Field("anon_bytes", SIZE),
    Field("shmem_bytes", SIZE, help="tmpfs, /dev/shm, memfd"),
    Field("cache_bytes", SIZE, help="page cache without shmem"),
    Field("kernel_bytes", SIZE, help="of the host: slab that cannot be reclaimed, and page tables"),
    Field("swap_bytes", SIZE),
    Field("free_bytes", SIZE, help="of the host"),
    Field("swap_free_bytes", SIZE, help="of the host"),
    Field("swap_total_bytes", SIZE, help="of the host"),
    Field("ram_bytes", SIZE, help="of the host"),
    Field("huge_bytes", SIZE, help="reserved huge pages of the host"),
)
KILL: Sequence[Field[Known]] = (
    Field("when", TEXT, "when", at("kill.when.text"), help="as written in the log"),
    Field("time_utc", value=lambda known: _utc(known.kill.when), help="null: a date without a zone, or only an uptime"),
    Field("uptime_s", NUMBER, value=at("kill.when.uptime_s"), help="since boot"),
    Field(
        "ago_s",
        NUMBER,
        value=lambda known: None if known.ago_s is None else round(known.ago_s, 1),
        help="null: in a file",
    ),
    Field("pid", ID, "pid", at("kill.pid"), help="in the initial PID namespace"),
    Field("name", TEXT, "name", at("kill.name"), help="of its first thread, 15 bytes; the process chose it", shrinks=8),
    Field(
        "outcome",
        value=at("kill.outcome"),
        help="killed; chosen: the log ends before the kill; panic, no victim, unfinished",
    ),
    Field(
        "unit", TEXT, "unit", label_of, help="systemd unit, container or pod, by the cgroup's path", shrinks=8, rank=1
    ),
    Field("container", value=at("owner.container")),
    Field("pod", value=at("owner.pod")),
    Field("uid", ID, value=at("kill.uid")),
    Field("user", value=at("user")),
    Field("rss_bytes", SIZE, "rss", at("kill.rss_bytes")),
    Field("anon_bytes", SIZE, value=at("kill.anon_bytes")),
    Field("file_bytes", SIZE, value=at("kill.file_bytes")),
    Field("shmem_bytes", SIZE, value=at("kill.shmem_bytes")),
    Field("page_table_bytes", SIZE, value=at("kill.page_table_bytes")),
    Field("total_vm_bytes", SIZE, value=at("kill.total_vm_bytes")),
    Field("limit_bytes", SIZE, "limit", _limit_bytes, help="of the cgroup that was full", show=_size_or_none),
    Field("usage_bytes", SIZE, value=at("kill.memory.usage_bytes"), help="of that cgroup"),
    Field("failures", COUNT, value=at("kill.memory.failures"), help="how often the limit was hit"),
    Field("swap_usage_bytes", SIZE, value=at("kill.swap.usage_bytes"), help="v1: memory+swap"),
    Field("swap_limit_bytes", SIZE, value=at("kill.swap.limit_bytes")),
    Field("adj", NUMBER, "adj", at("kill.adj"), help="oom_score_adj", rank=2),
    Field("score", NUMBER, value=at("kill.score"), help="until 5.0"),
    Field("scope", value=at("kill.scope"), help="what was full: cgroup, host, cpuset or mempolicy"),
    Field("full", TEXT, "full", _full, json=False, shrinks=8),
    Field("constraint", value=at("kill.constraint")),
    Field("cgroup", value=at("kill.cgroup"), help="the one at its limit"),
    Field("task_cgroup", value=at("kill.task_cgroup"), help="the victim's own"),
    Field("group", value=at("kill.group"), help="the cgroup that was killed as a whole (memory.oom.group)"),
    Field("invoker", value=at("kill.invoker"), help="the thread that asked for memory; not the victim"),
    Field("invoker_pid", ID, value=at("kill.invoker_pid")),
    Field("gfp", value=at("kill.gfp")),
    Field("order", NUMBER, value=at("kill.order")),
    Field("by_sysrq", FLAG, value=at("kill.manual")),
    Field("main", value=at("left.main"), help="main class of a JVM, in the counters that it left"),
    Field("heap_committed_bytes", SIZE, value=at("left.heap.committed_bytes")),
    Field("heap_max_bytes", SIZE, value=at("left.heap.max_bytes")),
    Field("outside_heap_bytes", SIZE, value=outside_heap_bytes, help="at least"),
    Field("is_cut", FLAG, value=at("kill.is_cut"), help="the log lacks the beginning of the report"),
    Field("is_mixed", FLAG, value=at("kill.is_mixed"), help="with lines of another report among its own"),
    Field("tasks_total", COUNT, value=at("kill.tasks_total")),
    Field("page_bytes", SIZE, value=at("kill.page_bytes")),
    Field("source", value=at("source")),
)
_NESTED: Sequence[Field[Known]] = (
    Field("held", record(HELD), value=at("kill.held"), help="by the cgroup that was full, or the host"),
    Field("tasks", records(TASK), value=at("kill.tasks"), help="the largest"),
)
SIGN: Sequence[Field[Sign]] = (
    Field("kind", help="systemd-oomd, earlyoom, unit, container, sigkill, native memory, java heap"),
    Field("who"),
    Field("times", COUNT),
    Field("when", value=at("when.text")),
    Field("text"),
)
SOURCE: Sequence[Field[Source]] = (
    Field("name"),
    Field("lines", COUNT),
    Field("first", value=at("first.text")),
    Field("last", value=at("last.text")),
)
COUNTED: Sequence[Field[Counted]] = (Field("path"), Field("kills", COUNT))
CRASH: Sequence[Field[CrashLog]] = (Field("path"), Field("line"), Field("ago_s", SECONDS))
DOCUMENT: Sequence[Field[Result]] = (
    Field("kills", records([*KILL, *_NESTED]), value=lambda result: result.kills, help="in the order of time"),
    Field("others", records([*KILL, *_NESTED]), value=lambda result: result.others, help="calls without a victim"),
    Field("signs", records(SIGN), help="what other programs wrote"),
    Field("counted", COUNT, value=at("facts.counted"), help="kills since boot, by the kernel's counter"),
    Field("cgroups", records(COUNTED), value=at("facts.cgroups"), help="kills by cgroup, where logs lack some"),
    Field("crash_logs", records(CRASH), value=at("facts.crashes"), help="hs_err files of JVMs that got no memory"),
    Field("sources", records(SOURCE), value=at("facts.sources")),
    Field("covers_s", NUMBER, value=at("facts.covers_s"), help="how far back the logs of this machine reach"),
    Field("left_out", COUNT, help="kills outside of --since and --until"),
)


def report(about: About, result: Result, shown: Shown) -> Report:
    """A sentence for each of the last kills, the tables, and what was read."""
    kills = result.kills
    blocks = []
    if kills:
        fields = [_WHEN, *KILL[1:]]
        rows = list(reversed(kills))[: shown.top if shown.top else _ROWS if shown.top is None else None]
        blocks.append(
            Block(
                fields, rows, len(kills), "kills, the last one first" if kills[-1].kill.tasks else None, one_line=True
            )
        )
        if tasks := kills[-1].kill.tasks[:_TASKS]:
            of_all = f" of {kills[-1].kill.tasks_total:,}" if kills[-1].kill.tasks_total > len(tasks) else ""
            blocks.append(Block(TASK, tasks, 0, f"largest processes{of_all} when {kills[-1].kill.pid} was killed"))  # type: ignore[arg-type]
    is_unknown = not result.facts.sources and result.facts.counted is None and not result.findings
    return Report(
        about,
        blocks,
        verdict=list(_verdict(result, shown)),
        footer=list(_footer(result)),
        findings=result.findings,
        document=(DOCUMENT, result),
        sheet=lambda: sheet(KILL, kills),
        exit_code=2 if is_unknown else None,
    )


_WHEN: Field[Known] = Field("when", TEXT, "when", _when_cell, show=_short_stamp)


def _verdict(result: Result, shown: Shown) -> Iterator[str]:
    most = _SENTENCES if shown.top is None else shown.top or len(result.kills)
    last = list(reversed(result.kills))[:most]
    for each in last:
        yield sentence(each)
        if shown.details or len(result.kills) == 1:
            yield from details(each)
    if len(result.kills) > len(last):
        yield f"… {plural(len(result.kills) - len(last), 'earlier kill')} (-n 0)"
    if not result.kills:
        yield none_found(result)


def sentence(known: Known) -> str:
    """`killed 23345 (java, orders.service): its cgroup /orders is at its limit of 400 MiB; …; next: opskit mem`."""
    kill, label = known.kill, label_of(known)
    who = f"{kill.pid} ({kill.name}{', ' + label if label else ''})"
    done = f"chose {who} to be killed, and the log ends there" if kill.outcome == CHOSEN else f"killed {who}"
    parts = [_cause(known), *_parts(known), _moment(known)]
    return f"{done}: {'; '.join(parts)}; next: opskit mem"


def _moment(known: Known) -> str:
    text = known.kill.when.text
    if known.ago_s is None:
        return text or "when is unknown"
    ago = f"{duration(known.ago_s)} ago"
    return f"{text}, {ago}" if is_old(known.ago_s) and text else ago


def _cause(known: Known) -> str:
    kill, limit = known.kill, limit_of(known)
    if kill.manual:
        return "sysrq called the OOM killer"
    if kill.by_cgroup:
        path = f" {kill.cgroup}" if kill.cgroup else ""
        at = (
            f"is at its {limit[0]} of {short_size(limit[1])}"
            if limit
            else "is at its limit, which the log does not show"
        )
        return f"its cgroup{path} {at}"
    if kill.scope in ("cpuset", "mempolicy"):
        what = "cpuset" if kill.scope == "cpuset" else "memory policy"
        return f"the memory nodes of its {what} were full"
    if kill.scope is None:
        return "the log does not show what was full"
    held = kill.held
    free = "" if held is None or held.free_bytes is None else f", {short_size(held.free_bytes)} free"
    swap = "" if held is None or held.swap_total_bytes is None else f", {_swap(held)}"
    return f"the whole host was out of memory{free}{swap}"


def _swap(held: Held) -> str:
    if not held.swap_total_bytes:
        return "no swap"
    return f"{short_size(held.swap_free_bytes)} of {short_size(held.swap_total_bytes)} swap free"


def _parts(known: Known) -> Iterator[str]:
    kill, heap = known.kill, known.left and known.left.heap
    if heap is not None:
        outside = outside_heap_bytes(known)
        more = f", {short_size(outside)} were outside the heap" if outside else ""
        yield f"its heap was {round(heap.committed_bytes / _MIB)} of -Xmx{flag_size(heap.max_bytes)}{more}"
    elif kill.rss_bytes is not None:
        yield f"it had {short_size(kill.rss_bytes)} resident"
    if kill.group:
        yield f"all of {kill.group} was killed with it (memory.oom.group)"
    yield from _largest(kill)


def _largest(kill: Kill) -> Iterator[str]:
    """What held the memory, where it was not the victim."""
    held, used = kill.held, kill.memory.usage_bytes if kill.memory else None
    if kill.scope == "host" and held is not None:
        used = held.ram_bytes
    for name, part in (
        ("shared memory (tmpfs, /dev/shm)", held and held.shmem_bytes),
        ("memory of the kernel", held and held.kernel_bytes),
        ("reserved huge pages", held and held.huge_bytes),
    ):
        if used and part and part >= used * _LARGE:
            yield f"{short_size(part)} of it was {name}" if kill.by_cgroup else f"{short_size(part)} were {name}"
    first = kill.tasks[0] if kill.tasks else None
    if first is not None and first.pid != kill.pid and first.rss_bytes > (kill.rss_bytes or 0):
        yield f"the largest was {first.pid} ({first.name}) with {short_size(first.rss_bytes)}"


def details(known: Known) -> Iterator[str]:
    """What was held, and who asked for memory."""
    kill, held = known.kill, known.kill.held
    if held is not None:
        parts = (
            ("anonymous", held.anon_bytes), ("shared (tmpfs)", held.shmem_bytes), ("page cache", held.cache_bytes),
            ("kernel", held.kernel_bytes), ("huge pages", held.huge_bytes), ("swap", held.swap_bytes),
            ("not yet in its statistics", uncounted_bytes(kill)),
        )  # fmt: skip
        listed = ", ".join(f"{name} {size(part)}" for name, part in parts if part is not None)
        yield f"{kill.cgroup or 'it' if kill.by_cgroup else 'the host'} held: {listed}"
    if kill.invoker:
        pid = "" if kill.invoker_pid is None else f" ({kill.invoker_pid})"
        is_own = ", its first thread" if kill.invoker_pid == kill.pid else ""
        yield f"asked for memory: {kill.invoker}{pid}{is_own}; {kill.gfp or 'flags unknown'}, order {kill.order}"


def none_found(result: Result) -> str:
    """`no OOM kill since boot (14 h 22 min ago)`, and how that is known."""
    facts = result.facts
    window = f"; {plural(result.left_out, 'kill')} outside of --since and --until" if result.left_out else ""
    if any(sign.kind in KILL_KINDS for sign in result.signs):
        window = f"; other programs report kills{window}"
    if not facts.is_live and not facts.sources and facts.counted is None:
        return "no log of the kernel is there: whether it killed a process is unknown"
    if not facts.is_live:
        lines = sum(source.lines for source in facts.sources)
        where = ", ".join(source.name for source in facts.sources[:3]) or "any log that could be read"
        return f"no OOM kill in {where}: {plural(lines, 'line')} read{window}"
    boot = "" if facts.uptime_s is None else f" ({duration(facts.uptime_s)} ago)"
    if facts.counted == 0:
        return f"no OOM kill in the kernel's log since boot{boot}: its counter is 0"
    if facts.is_whole:
        return f"no OOM kill in the kernel's log since boot{boot}{window}"
    if facts.sources:
        begins = "" if facts.covers_s is None else f", which begins {duration(facts.covers_s)} ago"
        return f"no OOM kill in the kernel's log{begins}{window}"
    if facts.counted:
        kills = plural(facts.counted, "OOM kill")
        return f"the kernel's log could not be read: its counter tells of {kills} since boot{boot}, and not of whom"
    return "the kernel's log could not be read: whether it killed a process is unknown"


def _footer(result: Result) -> Iterator[str]:
    facts = result.facts
    for why in dict.fromkeys(why for _, why in facts.unread):
        names = [name for name, reason in facts.unread if reason == why]
        more = f" and {plural(len(names) - 1, 'more log')}" if len(names) > 1 else ""
        yield f"could not read {names[0]}{more}: {why}"
    old = sum(is_old(each.ago_s) for each in result.kills)
    if old and old < len(result.kills):
        yield f"{plural(old, 'kill')} of them {'is' if old == 1 else 'are'} older than {LATELY_S / 3600:.0f} h"
    if result.left_out and result.kills:
        yield f"{plural(result.left_out, 'kill')} outside of --since and --until"
    if result.undated:
        yield f"{plural(result.undated, 'kill')} without a time that can be compared with --since and --until: they are shown"
    cut = sum(each.kill.is_cut for each in result.kills)
    if cut:
        yield f"the log lacks the beginning of {plural(cut, 'report')}: what it said is unknown"
    if any(each.kill.is_mixed for each in result.kills):
        yield "reports are mixed in the log: what cannot be told apart is shown as unknown"
    if facts.other_pids:
        yield "PIDs are those of the host: this is another PID namespace"
    if facts.more:
        yield f"{plural(facts.more, 'more kill')}: only the last 10,000 are kept"
    if facts.oomd and not any(sign.kind == OOMD for sign in result.signs):
        yield f"systemd-oomd runs here; what it killed is in the journal: {facts.oomd}"
    if facts.journal and (missing_kills(facts) or not facts.sources):
        yield f"the journal is binary: {facts.journal}"
