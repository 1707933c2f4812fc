"""Who set a limit: the files and ancestors whose value is the one in force."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from opskit.proc.config.systemd_units import unit_of_path
from opskit.proc.files.limits import UNLIMITED
from opskit.quantities import integer, short_size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opskit.analysis.limits.limit import Limit
    from opskit.collect.limits.facts import ThreadLimitFacts
    from opskit.proc.config.pam_limits import PamLimit

_CONTAINER = re.compile(r"(?:docker[-/]|libpod-|cri-containerd-|crio-)([0-9a-f]{12,64})|/([0-9a-f]{64})(?:/|$)")
# Where only root makes cgroups: in a subtree that is delegated to a user, a directory may have any container's name.
_DOCKERS_OWN = re.compile(r"/docker/([0-9a-f]{64})|(?:/[^/]+\.slice)*/docker-([0-9a-f]{64})\.scope")
_SHORT_ID = 12
_DEFAULT_TASKS_MAX_SHARE = 0.15  # systemd-system.conf(5), DefaultTasksMax
_SLICE_TASKS_MAX_SHARE = 0.33
_SUFFIXES = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40, "P": 1 << 50, "E": 1 << 60}
_SYSCTL_DEFAULTS = {
    "kernel.threads-max": "the kernel, from the size of RAM",
    "kernel.pid_max": "the kernel or systemd's default",
}
_RLIMIT_DEFAULTS: dict[str, tuple[float, ...]] = {
    "RLIMIT_STACK": (8 << 20,), "RLIMIT_AS": (UNLIMITED,), "RLIMIT_DATA": (UNLIMITED,),
    "RLIMIT_MEMLOCK": (8 << 20, 64 << 10), "RLIMIT_NOFILE": (1024,),
}  # fmt: skip


def set_by(limit: Limit, facts: ThreadLimitFacts) -> str | None:
    """Who set it; several candidates are joined by "; or". None where it is unknown."""
    if limit.name.startswith(("kernel.", "vm.")):
        return _sysctl(limit, facts)
    by = _rlimit if limit.name.startswith("RLIMIT_") else _cgroup
    return "; or ".join(by(limit, facts)) or None


def _sysctl(limit: Limit, facts: ThreadLimitFacts) -> str:
    setting = facts.sources.sysctl.get(limit.name)
    if setting is None:
        return _SYSCTL_DEFAULTS.get(limit.name, "the kernel's default") + "; no sysctl.d file sets it"
    if limit.name != "vm.overcommit_memory" and setting.value != f"{limit.value:.0f}":
        return f"sysctl -w or a program, since boot ({setting.place} is no longer in force)"
    return setting.place


def _rlimit(limit: Limit, facts: ThreadLimitFacts) -> Iterator[str]:
    name, soft = limit.name, facts.soft(limit.name)
    if soft is None:
        return
    named = list(_lines_giving(name, soft, facts))
    yield from named
    if not named or _differs_from_parent(name, soft, facts):
        yield _inherited(name, soft, facts)
    if not named and (kernel := _kernel_default(name, soft, facts)):
        yield kernel


def _lines_giving(name: str, soft: float, facts: ThreadLimitFacts) -> Iterator[str]:
    """The lines of files that set this value: limits.conf, the unit, the default of all units."""
    given = pam_source(name, facts)
    if given:
        yield given.setting.place + (" (the unit there is KB)" if given.in_kb and given.value != UNLIMITED else "")
    sources, key = facts.sources, f"Limit{name.removeprefix('RLIMIT_')}"
    unit = sources.unit_settings.get(sources.unit or "", {}).get(key)
    line = unit or sources.manager.get(f"Default{key}")
    if line and _same(unit_soft(line.value), soft):
        yield line.place


def _differs_from_parent(name: str, soft: float, facts: ThreadLimitFacts) -> bool:
    """Whether its parent has another value. A child of init may have lost the session that had the same."""
    above = next((each.limits.get(name) for each in facts.ancestors[:1] if each.pid != 1), None)
    return above is not None and above.soft != soft


def _same(one: float | None, other: float) -> bool:
    return one is not None and (one == other or (math.isinf(other) and one >= 2**63))


def pam_source(name: str, facts: ThreadLimitFacts) -> PamLimit | None:
    """The line of limits.conf that gives the value in force; None for services, which do not read the file."""
    if facts.sources.in_service or name not in facts.limits:
        return None
    soft, lines = facts.limits[name].soft, facts.sources.pam.limits
    given, hard = lines.get((name, "soft")), lines.get((name, "hard"))
    if hard and (given is None or hard.value < given.value) and _same(hard.value, soft):
        given = hard  # pam_limits lowers the soft limit to the hard one
    if given is None:
        return None
    value = given.value
    if name == "RLIMIT_NOFILE" and value == UNLIMITED:
        value = facts.sysctl.get("fs.nr_open") or value
    return given if _same(value, soft) else None


def unit_soft(text: str) -> float | None:
    """The soft limit of `LimitX=soft:hard` or `LimitX=both` (systemd.exec(5))."""
    word = text.partition(":")[0].strip()
    if word == "infinity":
        return UNLIMITED
    suffix = word[-1:].upper() if integer(word[-1:]) is None else ""
    number = integer(word[:-1] if suffix else word)
    return None if number is None or suffix not in _SUFFIXES else number * _SUFFIXES[suffix]


def _inherited(name: str, soft: float, facts: ThreadLimitFacts) -> str:
    """The ancestor, from init down, that is the first to have the value."""
    who, highest = "the process itself or prlimit", None
    for ancestor in facts.ancestors:
        named, above = f"{ancestor.pid} ({ancestor.command})", ancestor.limits.get(name)
        if above is None or above.soft != soft:
            return f"{who} ({named} above has {_amount(name, above.soft) if above else 'no such limit'})"
        who = f"{named}, an ancestor" if highest else f"its parent {named}"
        highest = ancestor
    if highest is None:
        return "the process that started it"
    if highest.pid == 1:
        return f"inherited from 1 ({highest.command}) down"
    return f"inherited: its ancestors up to {highest.pid} ({highest.command}) have the same"


def _amount(name: str, value: float) -> str:
    if value == UNLIMITED:
        return "unlimited"
    if name in ("RLIMIT_NPROC", "RLIMIT_NOFILE", "RLIMIT_SIGPENDING") or value % 1024:
        return f"{value:.0f}"
    exact = next((power for power in (40, 30, 20) if value and value % (1 << power) == 0), 10)
    return short_size(value) if exact > 10 else f"{int(value) >> 10} KiB"


def _kernel_default(name: str, soft: float, facts: ThreadLimitFacts) -> str | None:
    threads_max = facts.sysctl.get("kernel.threads-max")
    if name in ("RLIMIT_NPROC", "RLIMIT_SIGPENDING") and threads_max and soft == threads_max // 2:
        return "the kernel's default (half of kernel.threads-max)"
    return "the kernel's default" if soft in _RLIMIT_DEFAULTS.get(name, ()) else None


def _cgroup(limit: Limit, facts: ThreadLimitFacts) -> Iterator[str]:
    unit, container = unit_of_path(limit.cgroup or ""), container_of(limit.cgroup or "")
    keys = ("TasksMax",) if limit.name == "pids.max" else ("MemoryMax", "MemoryLimit")
    settings = facts.sources.unit_settings.get(unit or "", {})
    lines = [settings[key] for key in keys if key in settings]
    yield from (line.place for line in lines)
    if limit.cgroup is None or (limit.value == UNLIMITED and not lines):
        return
    default = facts.sources.manager.get("DefaultTasksMax")
    if limit.name == "pids.max" and unit and not lines and not container:
        if default:
            yield default.place
        elif _is_share(limit.value, facts, unit):
            yield "systemd's default for " + ("user slices (33 %)" if unit.endswith(".slice") else "units (15 %)")
        else:
            yield f"systemctl set-property of {unit}, or the program that manages it"
    if container:
        yield f"the container runtime, for container {container[:12]}"
    elif not unit:
        yield f"the creator of cgroup {limit.cgroup}"


def _is_share(value: float | None, facts: ThreadLimitFacts, unit: str) -> bool:
    caps = [cap for name in ("kernel.threads-max", "kernel.pid_max") if (cap := facts.sysctl.get(name))]
    share = _SLICE_TASKS_MAX_SHARE if unit.endswith(".slice") else _DEFAULT_TASKS_MAX_SHARE
    return bool(caps) and value is not None and abs(value - share * min(caps)) <= 2


def container_of(path: str) -> str | None:
    """The container's id in a cgroup's path, as Docker, Podman, containerd and CRI-O write it."""
    match = _CONTAINER.search(path)
    return (match[1] or match[2]) if match else None


def docker_id(path: str) -> str | None:
    """The short id of the container that Docker made in this cgroup; None for any other."""
    found = _DOCKERS_OWN.fullmatch(path)
    return found and (found[1] or found[2])[:_SHORT_ID]
