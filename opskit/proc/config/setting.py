"""`key = value` lines of configuration files, the order in which *.d directories are read, and sysctl.d(5).

# comment
kernel.threads-max = 4096
-vm.max_map_count=262144
vm/overcommit_memory = 2
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from opskit.proc.fs import ProcFS

_SYSCTL_D = ("etc/sysctl.d", "run/sysctl.d", "usr/local/lib/sysctl.d", "usr/lib/sysctl.d", "lib/sysctl.d")


class Setting(NamedTuple):
    """One line of a file that sets something. `text` is the line itself."""

    path: str
    line: int
    key: str
    value: str
    text: str

    @property
    def place(self) -> str:
        """File, line number and the line itself: `/etc/sysctl.d/90-app.conf line 3: `vm.max_map_count = 4096``."""
        return f"{self.path} line {self.line}: `{self.text}`"


def conf_files(fs: ProcFS, directories: Iterable[str], *, hidden: bool = True) -> list[str]:
    """Paths of *.conf by file name, from the first directory that has it; `hidden` False skips dot files."""
    chosen: dict[str, str] = {}
    for directory in directories:
        for name in fs.names_root(directory):
            if name.endswith(".conf") and (hidden or not name.startswith(".")):
                chosen.setdefault(name, f"{directory}/{name}")
    return [chosen[name] for name in sorted(chosen)]


def parse_settings(path: str, lines: Iterable[str]) -> Iterator[Setting]:
    """The `key = value` lines of the file at this path."""
    for number, line in enumerate(lines, 1):
        text = line.strip()
        key, equals, value = text.partition("=")
        if equals and not text.startswith(("#", ";", "[")):
            yield Setting(path, number, key.strip(), value.strip(), text)


def settings_of(fs: ProcFS, paths: Iterable[str]) -> Iterator[Setting]:
    """The settings of files, in the order of the paths; none where a file cannot be read."""
    for path in paths:
        yield from parse_settings(f"/{path}", fs.maybe_root(str.splitlines, path, default=[]))


def sysctl_settings(fs: ProcFS) -> dict[str, Setting]:
    """The lines that set something at boot, by key (`kernel.threads-max`): the last one in sysctl.d's order counts."""
    paths = conf_files(fs, _SYSCTL_D)
    if not any(path.endswith("/99-sysctl.conf") for path in paths):
        paths.append("etc/sysctl.conf")
    return {(key := _sysctl_name(setting.key)): setting._replace(key=key) for setting in settings_of(fs, paths)}


def _sysctl_name(key: str) -> str:
    name = key.removeprefix("-").strip()
    # The first separator decides how the name is written: net/ipv4/conf/eth0.1/forwarding keeps its dot.
    if "/" in name and ("." not in name or name.index("/") < name.index(".")):
        name = name.replace(".", "\0").replace("/", ".").replace("\0", "/")
    return name
