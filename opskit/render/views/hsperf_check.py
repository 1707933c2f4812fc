"""How hsperf-check is shown: who can attach, what the probes gave, what was or would be repaired."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opskit.quantities import plural
from opskit.records import NamedTuple
from opskit.render.fields import FLAG, ID, NUMBER, TEXT, Field, record, records
from opskit.render.report import Block, Report
from opskit.render.views.findings import FINDING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opskit.analysis.finding import Finding
    from opskit.analysis.hsperf_check.clients import ClientVerdict
    from opskit.analysis.hsperf_check.judge import Checked, Result
    from opskit.analysis.hsperf_check.repairs import Outcome
    from opskit.collect.hsperf_check import Probe
    from opskit.render.report import About


_RESULTS = ("refused", "unknown", "works")


class Shown(NamedTuple):
    """The result, and with --fix what was found before and what was or would be repaired."""

    result: Result
    before: Sequence[Finding] | None = None
    repairs: Sequence[Outcome] | None = None


class _Row(NamedTuple):
    """One JVM, with the client of a row."""

    shown: Shown
    checked: Checked
    verdict: ClientVerdict | None = None

    @property
    def user(self) -> str:
        return self.shown.result.facts.user_name(self.checked.around.euid)


CLIENT: Sequence[Field[ClientVerdict]] = (
    Field("client"),
    Field("works", FLAG, help="null: unknown with our rights"),
    Field("why"),
)
CLIENT_ROW: Sequence[Field[_Row]] = (
    Field("pid", ID, "PID", lambda row: row.checked.around.pid),
    Field("user", TEXT, "user"),
    Field("main", TEXT, "main", lambda row: row.checked.around.jvm.main),
    Field("client", TEXT, "client", lambda row: row.verdict and row.verdict.client),
    Field("result", TEXT, "result", lambda row: row.verdict and row.verdict.result),
    Field(
        "why", TEXT, "why", lambda row: row.verdict and row.verdict.why,
        below=lambda row: f"{row.checked.around.pid} {row.verdict and row.verdict.client}",
    ),
)  # fmt: skip
PROBE: Sequence[Field[Probe]] = (
    Field("pid", ID, "PID", json=False),
    Field("works", FLAG, value=lambda probe: probe.reason is None),
    Field("probe", TEXT, "probe", lambda probe: probe.reason or "works", json=False),
    Field("reason", help="stable: timeout, socket-foreign, credentials-refused, …"),
    Field("ms", NUMBER, "ms", lambda probe: round(probe.took_ms, 1), json=False),
    Field("took_ms", NUMBER, value=lambda probe: round(probe.took_ms, 3)),
    Field("said", TEXT, "said", help="the JVM's version, or the error"),
)
JVM: Sequence[Field[_Row]] = (
    Field("pid", ID, value=lambda row: row.checked.around.pid),
    Field("ns_pid", ID, value=lambda row: row.checked.around.jvm.ns_pid, help="its PID in its own PID namespace"),
    Field("user"),
    Field("uid", ID, value=lambda row: row.checked.around.euid),
    Field("gid", ID, value=lambda row: row.checked.around.egid),
    Field("main", value=lambda row: row.checked.around.jvm.main),
    Field("java_major", ID, value=lambda row: row.checked.around.java_major),
    Field("listener_started", FLAG, value=lambda row: row.checked.around.listener),
    Field("socket", value=lambda row: row.checked.around.socket and row.checked.around.socket.entry.path),
    Field("clients", records(CLIENT), value=lambda row: row.checked.clients),
    Field(
        "probe", record(PROBE), value=lambda row: row.shown.result.facts.probes.get(row.checked.around.pid),
        help="with --probe",
    ),
)  # fmt: skip
REPAIR: Sequence[Field[Outcome]] = (
    Field("code", value=lambda row: row.repair.code),
    Field("pid", ID, value=lambda row: row.repair.pid),
    Field("state", TEXT, "state", help="would, done, failed or refused"),
    Field("path", TEXT, "file", lambda row: row.repair.path),
    Field("change", TEXT, "change", lambda row: row.repair.change),
    Field("command", value=lambda row: row.repair.command, help="what to type for it"),
    Field("before", TEXT, "before", help="uid:gid and mode"),
    Field("after", TEXT, "after"),
    Field("why", TEXT, "why", help="why it was not done"),
)
DOCUMENT: Sequence[Field[Shown]] = (
    Field("jvms", records(JVM), value=lambda shown: [_Row(shown, checked) for checked in shown.result.checked]),
    Field("findings_before", records(FINDING), value=lambda shown: shown.before, help="with --fix: before the repairs"),
    Field("repairs", records(REPAIR), help="with --fix"),
)


def report(about: About, shown: Shown) -> Report:
    """Who can attach to each JVM, the probes, the repairs; in the verdict the JVMs that have an error."""
    result = shown.result
    rows = [_Row(shown, checked, verdict) for checked in result.checked for verdict in checked.clients]
    probes = [*result.facts.probes.values()]
    blocks: list[Block[Any]] = [
        Block(CLIENT_ROW, rows, len(rows), "Who can attach"),
        Block(PROBE, probes, len(probes), "Probes"),
        Block(REPAIR, shown.repairs or [], len(shown.repairs or []), "Repairs"),
    ]
    troubled = [each for each in result.checked if any(finding.severity == "error" for finding in each.findings)]
    return Report(
        about,
        verdict=[_summary(result), *(_fates(_Row(shown, checked)) for checked in troubled)],
        findings=result.findings,
        blocks=[block for block in blocks if block.rows],
        footer=[*result.facts.notes, *_advice(shown)],
        document=(DOCUMENT, shown),
        exit_code=result.exit_code,
    )


def _fates(row: _Row) -> str:
    """One JVM in one line: which clients can attach, and which cannot."""
    around = row.checked.around
    clients = {name: [each.client for each in row.checked.clients if each.result == name] for name in _RESULTS}
    fates = (f"{name}: {', '.join(names)}" for name, names in clients.items() if names)
    return f"{around.pid} ({around.jvm.main}, {row.user}): {'; '.join(fates)}"


def _advice(shown: Shown) -> list[str]:
    lines, result = [], shown.result
    if any(probe.reason is None for probe in result.facts.probes.values()):
        lines.append("Each JVM that was attached to now has a thread `Attach Listener` and its socket in /tmp")
    if shown.repairs is None:
        if any(repair.refused is None for repair in result.repairs):
            lines.append("--fix shows what it would repair, and repairs it with --yes")
    elif any(row.state == "would" for row in shown.repairs):
        lines.append("Nothing was changed; add --yes to do it")
    elif not shown.repairs and result.exit_code is None:
        lines.append("There is nothing that --fix could repair")
    return lines


def _summary(result: Result) -> str:
    facts = result.facts
    jvms = plural(len(result.checked), "JVM")
    if not result.checked:
        jvms = "No JVM now" if facts.ask.pids else "No JVM is running here"
    severities: list[str] = [finding.severity for finding in result.findings]
    said = [plural(severities.count(name), name) for name in ("error", "warning", "note") if name in severities]
    if said:
        return f"{jvms}: {', '.join(said)}"
    unread = sum(around.counters is None for around in facts.around)
    if unread:
        return f"{jvms}: nothing was found, but {unread} {'was' if unread == 1 else 'were'} not judged in full"
    if not result.checked:
        return jvms
    return f"{jvms}: " + ("nothing found in the files of this copy" if facts.is_copy else "all well")
