"""/proc/sys, and who sets it: /etc/sysctl.conf and the sysctl.d directories (sysctl.d(5)).

# comment
kernel.threads-max = 4096
-vm.max_map_count=262144
vm/overcommit_memory = 2
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from opskit.quantities import signed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opskit.proc.fs import ProcFS

_DIRECTORIES = ("etc/sysctl.d", "run/sysctl.d", "usr/local/lib/sysctl.d", "usr/lib/sysctl.d", "lib/sysctl.d")


class Setting(NamedTuple):
    """One line of a file that sets something. `text` is the line itself."""

    path: str
    line: int
    key: str
    value: str
    text: str

    @property
    def place(self) -> str:
        """Where it stands, with the line itself: `/etc/sysctl.d/90-app.conf line 3: `vm.max_map_count = 4096``."""
        return f"{self.path} line {self.line}: `{self.text}`"


def read_sysctl(fs: ProcFS, *parts: str) -> int | None:
    """A number of /proc/sys; None where it cannot be read or is none."""
    try:
        return signed(fs.load(str.strip, "sys", *parts))
    except OSError:
        return None


def sysctl_settings(fs: ProcFS) -> dict[str, Setting]:
    """The lines that set something at boot, by key (`kernel.threads-max`): the last one in sysctl.d's order counts."""
    found: dict[str, Setting] = {}
    for path in _files(fs):
        try:
            lines = fs.load_root(str.splitlines, path)
        except OSError:
            continue
        found.update((setting.key, setting) for setting in _settings(f"/{path}", lines))
    return found


def _files(fs: ProcFS) -> Iterator[str]:
    """By file name; of two with the same name the one in the earlier directory; /etc/sysctl.conf comes last."""
    chosen: dict[str, str] = {}
    for directory in _DIRECTORIES:
        for name in fs.names_root(directory):
            if name.endswith(".conf"):
                chosen.setdefault(name, f"{directory}/{name}")
    yield from (chosen[name] for name in sorted(chosen))
    if "99-sysctl.conf" not in chosen:
        yield "etc/sysctl.conf"


def _settings(path: str, lines: list[str]) -> Iterator[Setting]:
    for number, line in enumerate(lines, 1):
        text = line.strip()
        key, equals, value = text.partition("=")
        if not equals or text.startswith(("#", ";")):
            continue
        name = key.strip().removeprefix("-").strip()
        # The first separator says which one the name is written with: net/ipv4/conf/eth0.1/forwarding keeps its dot.
        if "/" in name and ("." not in name or name.index("/") < name.index(".")):
            name = name.replace(".", "\0").replace("/", ".").replace("\0", "/")
        yield Setting(path, number, name, value.strip(), text)
