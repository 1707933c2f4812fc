"""How often a thread was switched and moved: /proc/PID/task/TID/sched (kernel/sched/debug.c; before Linux 6.15 only with CONFIG_SCHED_DEBUG).

order-book-burn (4242, #threads: 35)
-------------------------------------------------------------------
se.exec_start                                :      22666478.818797
se.nr_migrations                             :                    3
nr_voluntary_switches                        :                   94
nr_involuntary_switches                      :                 1208
policy                                       :                    0
"""

from __future__ import annotations

from opskit.quantities import decimal, integer
from opskit.records import NamedTuple

_RULE = "\n--------------------"  # a name of 15 bytes cannot hold it
_LONGEST_LINE = 160


class TaskSched(NamedTuple):
    """Since the thread's start. `name`: at most 15 bytes. None: not in this kernel's file."""

    name: str
    voluntary: int | None
    involuntary: int | None
    migrations: int | None
    policy: int | None


def parse_task_sched(text: str) -> TaskSched | None:
    """The numbers, each at its first mention below the heading; None for another text."""
    heading, rule, body = text.partition(_RULE)
    name, opening, _ = heading.rpartition(" (")
    if not rule or not opening:
        return None
    return TaskSched(
        name, _number(body, "\nnr_voluntary_switches "), _number(body, "\nnr_involuntary_switches "),
        _number(body, "\nse.nr_migrations "), _number(body, "\npolicy "),
    )  # fmt: skip


def _number(body: str, key: str) -> int | None:
    at = body.find(key)
    if at < 0:
        return None
    colon = body.find(":", at, at + _LONGEST_LINE)
    return integer(body[colon + 1 : body.find("\n", colon)].strip()) if colon > 0 else None


def parse_last_ran_ms(text: str) -> float | None:
    """When the thread last ran, by the scheduler's clock: `se.exec_start`; None for another text."""
    _, rule, body = text.partition(_RULE)
    at = body.find("\nse.exec_start ") if rule else -1
    colon = body.find(":", at, at + _LONGEST_LINE) if at >= 0 else -1
    return decimal(body[colon + 1 : body.find("\n", colon)].strip()) if colon > 0 else None
