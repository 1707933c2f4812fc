"""How hsperf-check is shown: who can attach, what was found, what was or would be done."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from opskit.render.report import Block, Column

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opskit.analysis.finding import Finding
    from opskit.analysis.hsperf_check import Checked, ClientVerdict, Repair


@dataclass(frozen=True)
class ClientRow:
    """A client's fate with one JVM."""

    pid: int
    user: str
    main: str
    verdict: ClientVerdict


@dataclass(frozen=True)
class ProbeRow:
    """What attaching for real gave. `reason` None: it worked."""

    pid: int
    reason: str | None
    said: str
    took_ms: float


@dataclass(frozen=True)
class RepairRow:
    """A repair: planned ("would"), refused, done or failed."""

    repair: Repair
    state: str
    before: str | None = None
    after: str | None = None
    why: str | None = None


_RESULTS = {True: "works", False: "refused", None: "unknown"}

CLIENT_COLUMNS: Sequence[Column[ClientRow]] = (
    Column("PID", lambda row: row.pid, right=True),
    Column("user", lambda row: row.user),
    Column("main", lambda row: row.main),
    Column("client", lambda row: row.verdict.client),
    Column("result", lambda row: _RESULTS[row.verdict.works]),
    Column("why", lambda row: row.verdict.why),
)

FINDING_COLUMNS: Sequence[Column[Finding]] = (
    Column("severity", lambda finding: finding.severity),
    Column("code", lambda finding: finding.code),
    Column("subject", lambda finding: finding.subject),
    Column("finding", lambda finding: finding.summary),
    Column("fix", lambda finding: finding.fix),
)

PROBE_COLUMNS: Sequence[Column[ProbeRow]] = (
    Column("PID", lambda row: row.pid, right=True),
    Column("probe", lambda row: row.reason or "works"),
    Column("ms", lambda row: round(row.took_ms, 1), right=True),
    Column("said", lambda row: row.said),
)

REPAIR_COLUMNS: Sequence[Column[RepairRow]] = (
    Column("state", lambda row: row.state),
    Column("file", lambda row: row.repair.path),
    Column("change", lambda row: row.repair.change),
    Column("before", lambda row: row.before),
    Column("after", lambda row: row.after),
    Column("why", lambda row: row.why),
)


def blocks(
    clients: Sequence[ClientRow], findings: Sequence[Finding], probes: Sequence[ProbeRow], repairs: Sequence[RepairRow]
) -> list[Block[Any]]:
    """The tables; an empty one is left out."""
    found: list[Block[Any]] = [
        Block(CLIENT_COLUMNS, clients, len(clients), "Who can attach"),
        Block(FINDING_COLUMNS, findings, len(findings), "Findings"),
        Block(PROBE_COLUMNS, probes, len(probes), "Probes"),
        Block(REPAIR_COLUMNS, repairs, len(repairs), "Repairs"),
    ]
    return [block for block in found if block.rows]


def verdict_line(checked: Checked, user: str) -> str:
    """One JVM in one line: who can attach, and who cannot, and why."""
    fates = ". ".join(client.line for client in checked.clients)
    return f"{checked.around.pid} ({checked.around.jvm.main}, {user}): {fates}."


def jvm_object(checked: Checked, user: str, probe: ProbeRow | None) -> dict[str, Any]:
    """One JVM for JSON. Keys: see docs/commands/hsperf-check.md."""
    around = checked.around
    return {
        "pid": around.pid,
        "ns_pid": around.jvm.ns_pid,
        "user": user,
        "uid": around.euid,
        "gid": around.egid,
        "main": around.jvm.main,
        "java_major": around.java_major,
        "listener_started": around.listener,
        "socket": None if around.socket is None else around.socket.entry.path,
        "clients": [{"client": client.client, "works": client.works, "why": client.why} for client in checked.clients],
        "probe": None if probe is None else probe_object(probe),
    }


def probe_object(row: ProbeRow) -> dict[str, Any]:
    """A probe for JSON."""
    return {"works": row.reason is None, "reason": row.reason, "said": row.said, "took_ms": round(row.took_ms, 3)}


def repair_object(row: RepairRow) -> dict[str, Any]:
    """A repair for JSON."""
    return {
        "code": row.repair.code,
        "pid": row.repair.pid,
        "path": row.repair.path,
        "change": row.repair.change,
        "command": row.repair.command,
        "state": row.state,
        "before": row.before,
        "after": row.after,
        "why": row.why,
    }
