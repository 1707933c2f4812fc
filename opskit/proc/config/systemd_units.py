"""The settings in the files of systemd units (systemd.unit(5), systemd.exec(5), systemd.resource-control(5)).

[Service]
LimitNPROC=4096
TasksMax=512
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from opskit.proc.config.setting import conf_files, settings_of
from opskit.quantities import integer
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from opskit.proc.config.setting import Setting
    from opskit.proc.fs import ProcFS

# Highest priority first (systemd.unit(5), table 1).
_DIRECTORIES = (
    "etc/systemd/system.control", "run/systemd/system.control", "run/systemd/transient",
    "etc/systemd/system", "run/systemd/system", "run/systemd/generator",
    "usr/local/lib/systemd/system", "usr/lib/systemd/system", "lib/systemd/system",
)  # fmt: skip
_MANAGER = ("etc/systemd", "run/systemd", "usr/local/lib/systemd", "usr/lib/systemd", "lib/systemd")
_UNIT = r"[\w:.\\@-]+\.(?:service|scope|slice|socket|mount|swap)"  # unit_name_is_valid() of systemd
_USER_MANAGER = r"user@([0-9]{1,10})\.service"


class Owner(NamedTuple):
    """A cgroup's unit. `is_own`: the cgroup is not below it. `manager_uid`: the user whose systemd runs it, if any."""

    unit: str
    is_own: bool
    manager_uid: int | None


def owner_of_path(path: str) -> Owner | None:
    """The unit that a cgroup's path leads to, as systemd itself reads it (cg_path_get_unit()); None outside systemd's.

    That is the first part below the slices, and once more below a user's manager. Deeper cgroups were made by the unit's
    processes and may have any name, even that of another unit.
    """
    parts = [part for part in path.split("/") if part]
    found = _first_unit(parts)
    if found is None:
        return None
    unit, below = found
    manager = re.fullmatch(_USER_MANAGER, unit)
    if manager and (inner := _first_unit(below)):
        return Owner(inner[0], not inner[1], integer(manager[1]))
    return Owner(unit, not below, None)


def _first_unit(parts: list[str]) -> tuple[str, list[str]] | None:
    """The unit that these parts of a path begin with, and the parts below it."""
    found = None
    for count, part in enumerate(parts, 1):
        name = part.removeprefix("_")  # systemd marks names that the kernel has for its own files
        if not re.fullmatch(_UNIT, name, re.ASCII):
            break
        found = name, parts[count:]
        if not name.endswith(".slice"):
            break
    return found


def unit_of_path(path: str) -> str | None:
    """The unit that a cgroup's path leads to; None outside systemd's."""
    owner = owner_of_path(path)
    return owner.unit if owner else None


def unit_settings(fs: ProcFS, unit: str) -> dict[str, Setting]:
    """What a unit's file and its drop-ins set, by key (`TasksMax`, `LimitNPROC`); the last line of a key counts."""
    return _last_ones(fs, _unit_files(fs, unit))


def manager_settings(fs: ProcFS) -> dict[str, Setting]:
    """What system.conf and system.conf.d give all units as defaults (`DefaultTasksMax`, `DefaultLimitNPROC`)."""
    main = next((f"{place}/system.conf" for place in _MANAGER if "system.conf" in fs.names_root(place)), None)
    return _last_ones(fs, [*filter(None, [main]), *conf_files(fs, [f"{place}/system.conf.d" for place in _MANAGER])])


def _last_ones(fs: ProcFS, paths: Iterable[str]) -> dict[str, Setting]:
    found: dict[str, Setting] = {}
    for setting in settings_of(fs, paths):
        if setting.value:
            found[setting.key] = setting
        else:  # an empty value resets the key
            found.pop(setting.key, None)
    return found


def _unit_files(fs: ProcFS, unit: str) -> Iterator[str]:
    stem, _, kind = unit.rpartition(".")
    name, at, _ = stem.partition("@")
    template = [f"{name}@.{kind}"] if at else []
    for candidate in [unit, *template]:
        where = next((place for place in _DIRECTORIES if candidate in fs.names_root(place)), None)
        if where:
            yield f"{where}/{candidate}"
            break
    # Drop-ins: of the type, of each dash-separated prefix, of the template, of the unit itself.
    parts = stem.split("-")
    prefixes = ["-".join(parts[:count]) + f"-.{kind}" for count in range(1, len(parts))]
    folders = [kind, *prefixes, *template, unit]
    yield from conf_files(fs, [f"{place}/{folder}.d" for folder in reversed(folders) for place in _DIRECTORIES])
