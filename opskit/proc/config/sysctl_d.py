"""/etc/sysctl.conf and the sysctl.d directories (sysctl.d(5)): what sets /proc/sys at boot.

# comment
kernel.threads-max = 4096
-vm.max_map_count=262144
vm/overcommit_memory = 2
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.proc.config.setting import conf_files, settings_of

if TYPE_CHECKING:
    from opskit.proc.config.setting import Setting
    from opskit.proc.fs import ProcFS

_DIRECTORIES = ("etc/sysctl.d", "run/sysctl.d", "usr/local/lib/sysctl.d", "usr/lib/sysctl.d", "lib/sysctl.d")


def sysctl_settings(fs: ProcFS) -> dict[str, Setting]:
    """The lines that set something at boot, by key (`kernel.threads-max`): the last one in sysctl.d's order counts."""
    paths = conf_files(fs, _DIRECTORIES)
    if not any(path.endswith("/99-sysctl.conf") for path in paths):
        paths.append("etc/sysctl.conf")
    return {(key := _name(setting.key)): setting._replace(key=key) for setting in settings_of(fs, paths)}


def _name(key: str) -> str:
    name = key.removeprefix("-").strip()
    # The first separator decides how the name is written: net/ipv4/conf/eth0.1/forwarding keeps its dot.
    if "/" in name and ("." not in name or name.index("/") < name.index(".")):
        name = name.replace(".", "\0").replace("/", ".").replace("\0", "/")
    return name
