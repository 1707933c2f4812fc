"""What a captured file may hold of others' words, by its path."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opskit.proc.recorded.tape import Origin

WORDS = "words"  # of a command line, each ended by NUL
ENVIRON = "environ"  # NAME=value, each ended by NUL
NUMBERS = "numbers"  # the kernel's own words and numbers alone
NAMED = "named"  # the same, and the name of a thread: `1 (java) S …`, `Name:\tjava`
PATHS = "paths"  # memory mappings: addresses, and a path from its first slash on
KNOWN = "known"  # names and paths that the kernel shows
LINE = "line"  # a command line, its words separated by blanks
TEXT = "text"  # anything
PERFDATA = "perfdata"  # the counters of a JVM, by their first bytes

_NUMBERS = (
    "schedstat|io|statm|limits|wchan|syscall|oom_score|oom_adj|oom_score_adj|uid_map|gid_map|projid_map|timens_offsets|loginuid|sessionid"
    "|personality|coredump_filter|setgroups|cpu_resctrl_groups|arch_status|auxv|pagemap|clear_refs|smaps_rollup|children|stack"
)
_KERNEL_TEXTS = frozenset({"mounts", "mountinfo", "mountstats"})


class Places:
    """The paths of one captured machine."""

    def __init__(self, origin: Origin) -> None:
        proc = re.escape(origin.proc.rstrip("/"))
        self._proc, self._root = f"{origin.proc.rstrip('/')}/", origin.root.rstrip("/")
        self._process = re.compile(
            rf"{proc}/(?:[0-9]+|self|thread-self)(?:/task/[0-9]+)?/(?:(?P<numbers>{_NUMBERS})|(?P<named>stat|status|comm|sched)"
            r"|(?P<paths>maps|smaps|numa_maps)|(?P<words>cmdline)|(?P<environ>environ)|(?P<inner>root|cwd|fd|map_files)/.*"
            r"|(?P<text>mounts|mountinfo|mountstats)|(?P<known>.*))",
            re.DOTALL,
        )

    def of(self, path: str) -> str:
        """What the file at a path holds."""
        found = self._process.fullmatch(path)
        if found is not None:
            kind = found.lastgroup or KNOWN
            return TEXT if kind == "inner" else kind
        if path.startswith(self._proc):
            name = path[len(self._proc) :]
            return LINE if name == "cmdline" else TEXT if name in _KERNEL_TEXTS else KNOWN
        below = path[len(self._root) :] if self._root and path.startswith(self._root) else path
        if below.startswith("/sys/"):
            return NUMBERS if below.startswith("/sys/fs/cgroup/") and not below.endswith("/release_agent") else KNOWN
        return TEXT
