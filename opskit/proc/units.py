"""What a systemd unit's files say (systemd.unit(5), systemd.exec(5), systemd.resource-control(5)).

[Service]
LimitNPROC=4096
TasksMax=512
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.proc.sysctl import Setting

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from opskit.proc.fs import ProcFS

# From what overrules to what is overruled (systemd.unit(5), table 1).
_DIRECTORIES = (
    "etc/systemd/system.control",
    "run/systemd/system.control",
    "run/systemd/transient",
    "etc/systemd/system",
    "run/systemd/system",
    "run/systemd/generator",
    "usr/local/lib/systemd/system",
    "usr/lib/systemd/system",
    "lib/systemd/system",
)
_MANAGER = ("etc/systemd", "run/systemd", "usr/local/lib/systemd", "usr/lib/systemd", "lib/systemd")
_TYPES = (".service", ".scope", ".slice", ".socket", ".mount", ".swap")


def unit_of_path(path: str) -> str | None:
    """The unit that a cgroup's path leads to: its last part that is one. None outside systemd's."""
    return next((part for part in reversed(path.split("/")) if part.endswith(_TYPES)), None)


def is_of_user_manager(path: str) -> bool:
    """Whether a cgroup's path leads to a unit of a user's own systemd (`systemctl --user`), below its user@.service."""
    above, _, _ = path.rpartition(f"/{unit_of_path(path)}")
    return any(part.startswith("user@") and part.endswith(".service") for part in above.split("/"))


def unit_settings(fs: ProcFS, unit: str) -> dict[str, Setting]:
    """What a unit's file and its drop-ins set, by key (`TasksMax`, `LimitNPROC`): the last line of a key counts."""
    return _last_ones(fs, _unit_files(fs, unit))


def manager_settings(fs: ProcFS) -> dict[str, Setting]:
    """What system.conf and system.conf.d give all units as defaults (`DefaultTasksMax`, `DefaultLimitNPROC`)."""
    main = next((f"{place}/system.conf" for place in _MANAGER if "system.conf" in fs.names_root(place)), None)
    return _last_ones(fs, [*filter(None, [main]), *_drop_ins(fs, [f"{place}/system.conf.d" for place in _MANAGER])])


def _last_ones(fs: ProcFS, paths: Iterable[str]) -> dict[str, Setting]:
    found: dict[str, Setting] = {}
    for path in paths:
        for setting in _settings(fs, path):
            if setting.value:
                found[setting.key] = setting
            else:  # an empty value takes back what was set before
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
    yield from _drop_ins(fs, [f"{place}/{folder}.d" for folder in reversed(folders) for place in _DIRECTORIES])


def _drop_ins(fs: ProcFS, directories: list[str]) -> list[str]:
    """By file name; of two with the same name the one in the earlier directory."""
    chosen: dict[str, str] = {}
    for directory in directories:
        for name in fs.names_root(directory):
            if name.endswith(".conf"):
                chosen.setdefault(name, f"{directory}/{name}")
    return [chosen[name] for name in sorted(chosen)]


def _settings(fs: ProcFS, path: str) -> Iterator[Setting]:
    try:
        lines = fs.load_root(str.splitlines, path)
    except OSError:
        return
    for number, line in enumerate(lines, 1):
        text = line.strip()
        key, equals, value = text.partition("=")
        if equals and not text.startswith(("#", ";", "[")):
            yield Setting(f"/{path}", number, key.strip(), value.strip(), text)
