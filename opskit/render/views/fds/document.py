"""The JSON object of `opskit fds`, and its metrics."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from opskit.records import NamedTuple
from opskit.render.fields import of_part
from opskit.render.report import Metrics, Report
from opskit.render.views.fds import deleted, host, process

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opskit.analysis.fds.result import DeletedResult, HostResult, Result
    from opskit.render.fields import Field


class Answer(NamedTuple):
    """What was asked for: a process, the machine, or deleted files. The others are None."""

    process: Result | None = None
    host: HostResult | None = None
    deleted: DeletedResult | None = None


DOCUMENT: Sequence[Field[Answer]] = (
    *of_part("process", process.DOCUMENT),
    *of_part("host", host.DOCUMENT),
    *of_part("deleted", deleted.DOCUMENT),
)
_NOT_A_LABEL = ("example", "lowest", "highest", "start_ticks", "device", "inode")


def complete(report: Report, answer: Answer) -> Report:
    """The report with its JSON object and its metrics."""
    return report._replace(document=(DOCUMENT, answer), metrics=partial(_metrics, answer))


def _metrics(answer: Answer) -> Iterator[Metrics]:
    if answer.process is not None:
        facts = answer.process.facts
        labels = {"pid": facts.process.pid, "command": facts.process.command}
        if facts.open is not None:
            yield Metrics("opskit_fds", process.OPEN, [facts.open], labels)
        if answer.process.total is not None:
            yield Metrics("opskit_fds_growth", process.GROWTH, [answer.process.total], labels)
        yield Metrics("opskit_fds_group", _shown(process.GROUP), process.rows_of(answer.process), labels)
    if answer.host is not None:
        yield Metrics("opskit_fds", host.DOCUMENT, [answer.host])
        yield Metrics("opskit_fds_nearest", _shown(host.NEAR), answer.host.facts.nearest)
        yield Metrics("opskit_fds_user", host.USE, host.uses_of(answer.host.facts))
    if answer.deleted is not None:
        yield Metrics("opskit_fds", deleted.DOCUMENT, [answer.deleted])
        yield Metrics("opskit_fds_file_system", _shown(deleted.SYSTEM), answer.deleted.facts.systems)
        yield Metrics("opskit_fds_deleted", deleted.FILE, deleted.rows_of(answer.deleted.facts))
        yield Metrics("opskit_fds_unattached", deleted.UNATTACHED[:-1], answer.deleted.facts.unattached)


def _shown(fields: Sequence[Field[Any]]) -> list[Field[Any]]:
    return [field for field in fields if field.name not in _NOT_A_LABEL]
