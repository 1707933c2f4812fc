"""Kills without a log: the counters of cgroups, and the crash logs of JVMs that got no memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.proc.cgroup.limits import oom_kills
from opskit.proc.cgroup.tree import controller_root
from opskit.proc.fs import GONE, optional
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opskit.host import Host
    from opskit.proc.cgroup.tree import Level
    from opskit.proc.fs import ProcFS

_MOST_CGROUPS = 5_000
_MOST_CRASHES = 20
_MOST_NAMES = 100_000  # of a directory
_TMP = "tmp"
_HEAD_BYTES = 8192
_LARGEST_BYTES = 4 << 20
_NO_MEMORY = b"There is insufficient memory for the Java Runtime Environment"


class Counted(NamedTuple):
    """How many processes of a cgroup the OOM killer has killed since it was made, without those of the cgroups below."""

    path: str
    kills: int


class CrashLog(NamedTuple):
    """An hs_err file of a JVM that got no native memory; `line`: what it says; `ago_s`: since the file was written."""

    path: str
    line: str
    ago_s: float | None


def counted_in_cgroups(fs: ProcFS) -> tuple[Counted, ...]:
    """The memory cgroups with kills, most first: memory.events of v2, memory.oom_control of v1."""
    top = controller_root(fs, "memory")
    found, todo, seen = [], [top] if top else [], 0
    while todo and seen < _MOST_CGROUPS:
        level = todo.pop()
        seen += 1
        kills = _kills(fs, level)
        children = level.children(fs)
        if level.version == 2:  # counts those below, too
            if kills == 0:
                continue
            kills = kills and max(0, kills - sum(_kills(fs, child) or 0 for child in children))
        if kills:
            found.append(Counted(level.path, kills))
        todo += children
    return tuple(sorted(found, key=lambda each: (-each.kills, each.path)))


def _kills(fs: ProcFS, level: Level) -> int | None:
    return oom_kills(fs, (level,)).get(level.path)


def crash_logs(host: Host) -> tuple[CrashLog, ...]:
    """The hs_err files in /tmp, and in the working directories of JVMs, that tell of too little memory."""
    found: dict[tuple[int, int], CrashLog] = {}
    for directory in dict.fromkeys(_directories(host)):
        listed = optional(host.fs.names_at, directory, _MOST_NAMES, default=[])
        names = [name for name in listed if name.startswith("hs_err_pid")]
        for name in sorted(names, reverse=True)[:_MOST_CRASHES]:
            file, head = optional(host.fs.read_untrusted, directory, name, _LARGEST_BYTES, default=(None, b""))
            if file is not None and _NO_MEMORY in head[:_HEAD_BYTES] and len(found) < _MOST_CRASHES:
                ago_s = max(0.0, host.now().timestamp() - file.ctime_ns / 1e9)
                # Two JVMs may run in one directory.
                found.setdefault(
                    (file.device, file.inode), _crash_log(f"{directory}/{name}", head[:_HEAD_BYTES], ago_s)
                )
    return tuple(found.values())


def _directories(host: Host) -> Iterator[str]:
    from opskit.jvm.discover import find_jvms

    yield f"{host.fs.root}/{_TMP}"
    for jvm in find_jvms(host.fs, host.clock_ticks)[:_MOST_CRASHES]:
        try:
            cwd = host.fs.link(jvm.pid, "cwd").decode("utf-8", "surrogateescape")
            yield host.fs.inside(jvm.pid, cwd)
        except (*GONE, OSError):
            continue


def _crash_log(path: str, head: bytes, ago_s: float) -> CrashLog:
    lines = [line.strip(b"# \r") for line in head.split(b"\n")]
    line = next((each for each in lines if each.startswith(b"Native memory allocation")), _NO_MEMORY)
    return CrashLog(path, line[:300].decode("utf-8", "surrogateescape"), ago_s)
