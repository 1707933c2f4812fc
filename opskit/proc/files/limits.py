"""/proc/PID/limits (proc_pid_limits(5), fs/proc/base.c): the rlimits in force for a process.

Limit                     Soft Limit           Hard Limit           Units
Max stack size            8388608              unlimited            bytes
Max processes             96365                96365                processes
Max nice priority         0                    0
"""

from __future__ import annotations

import math
from functools import lru_cache

from opskit.errors import BadInput
from opskit.quantities import integer
from opskit.records import NamedTuple

_NEARLY = 0.8
UNLIMITED = math.inf

_NAMES = {
    "Max cpu time": "RLIMIT_CPU", "Max file size": "RLIMIT_FSIZE", "Max data size": "RLIMIT_DATA",
    "Max stack size": "RLIMIT_STACK", "Max core file size": "RLIMIT_CORE", "Max resident set": "RLIMIT_RSS",
    "Max processes": "RLIMIT_NPROC", "Max open files": "RLIMIT_NOFILE", "Max locked memory": "RLIMIT_MEMLOCK",
    "Max address space": "RLIMIT_AS", "Max file locks": "RLIMIT_LOCKS", "Max pending signals": "RLIMIT_SIGPENDING",
    "Max msgqueue size": "RLIMIT_MSGQUEUE", "Max nice priority": "RLIMIT_NICE",
    "Max realtime priority": "RLIMIT_RTPRIO", "Max realtime timeout": "RLIMIT_RTTIME",
}  # fmt: skip
_NAME_WIDTH = 25
_LONGEST = 4096  # of a kernel's text


class Rlimit(NamedTuple):
    """One limit: bytes, seconds or a count, by its name; UNLIMITED (infinity) where there is none."""

    soft: float
    hard: float


def parse_limits(text: str, only: str | None = None) -> dict[str, Rlimit]:
    """The limits by the names that setrlimit(2) has for them, all or `only` this one. Raises BadInput."""
    found: dict[str, Rlimit] = {}
    for number, line in enumerate(text.splitlines(), 1):
        name = _NAMES.get(line[:_NAME_WIDTH].rstrip())
        if name is None or (only is not None and name != only):  # the heading, or a newer limit
            continue
        words = line[_NAME_WIDTH:].split()
        if len(words) < 2:
            raise BadInput("limits", "not `name soft hard units`", number, line)
        found[name] = Rlimit(_amount(words[0], number, line), _amount(words[1], number, line))
    if not found:
        raise BadInput("limits", "it lists no limit", found=text)
    return found


class SoftLimits(NamedTuple):
    """The soft limits of RLIMIT_NOFILE and RLIMIT_NPROC; UNLIMITED where there is none."""

    open_files: float
    processes: float


def parse_soft_limits(text: str) -> SoftLimits:
    """These two alone, for a look at every process. Raises BadInput."""
    return _usual(text) if len(text) <= _LONGEST else _soft_limits(text)


def _soft_limits(text: str) -> SoftLimits:
    return SoftLimits(_soft(text, "\nMax open files "), _soft(text, "\nMax processes "))


_usual = lru_cache(maxsize=256)(_soft_limits)  # most processes of a machine have the same ones


def _soft(text: str, heading: str) -> float:
    begin = text.find(heading)
    words = text[begin + _NAME_WIDTH : begin + 2 * _NAME_WIDTH + 22].split(None, 1) if begin >= 0 else []
    if not words:
        raise BadInput("limits", f"no `{heading.strip()}`", found=text)
    return _amount(words[0], 1, heading)


def _amount(word: str, number: int, line: str) -> float:
    if word == "unlimited":
        return UNLIMITED
    amount = integer(word)
    if amount is None:
        raise BadInput("limits", "neither a number nor `unlimited`", number, line)
    return amount


def is_nearly_full(value: float | None, in_use: int | None) -> bool:
    """Whether more than 80 % of a limit are used."""
    return value is not None and value != UNLIMITED and in_use is not None and in_use > _NEARLY * value
