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

# Names in PROC/PID and PROC/PID/task/TID.
_OF_PROCESS = {
    **dict.fromkeys(
        (
            *(
                "schedstat",
                "io",
                "statm",
                "limits",
                "wchan",
                "syscall",
                "oom_score",
                "oom_adj",
                "oom_score_adj",
                "uid_map",
                "gid_map",
            ),
            *(
                "projid_map",
                "timens_offsets",
                "loginuid",
                "sessionid",
                "personality",
                "coredump_filter",
                "setgroups",
                "arch_status",
            ),
            *("auxv", "pagemap", "clear_refs", "smaps_rollup", "children", "stack", "cpuset_mems"),
        ),
        NUMBERS,
    ),
    **dict.fromkeys(("stat", "status", "comm"), NAMED),
    **dict.fromkeys(("maps", "smaps", "numa_maps"), PATHS),
    **dict.fromkeys(("mounts", "mountinfo", "mountstats"), TEXT),
    "cmdline": WORDS,
    "environ": ENVIRON,
}
_OF_HOST = {"cmdline": LINE, "mounts": TEXT}


class Places:
    """The paths of one captured machine."""

    def __init__(self, origin: Origin) -> None:
        proc = origin.proc.rstrip("/")
        self._proc, self._sys = f"{proc}/", f"{origin.root.rstrip('/')}/sys/"
        self._cgroups = f"{self._sys}fs/cgroup/"
        self._process = re.compile(rf"{re.escape(proc)}/(?:[0-9]+|self|thread-self)(?:/task/[0-9]+)?")
        self._inner = re.compile(
            rf"{re.escape(proc)}/(?:[0-9]+|self|thread-self)(?:/task/[0-9]+)?/(?:root|cwd|fd|map_files)(?:/.*)?",
            re.DOTALL,
        )
        self._of_directory: dict[str, dict[str, str] | str] = {}

    def of(self, path: str) -> str:
        """What the file at a path holds."""
        directory, _, name = path.rpartition("/")
        found = self._of_directory.get(directory)
        if found is None:
            found = self._of_directory[directory] = self._in(f"{directory}/")
        if isinstance(found, str):
            return NUMBERS if found == NUMBERS and name != "release_agent" else KNOWN if found == NUMBERS else found
        return found.get(name, KNOWN)

    def _in(self, directory: str) -> dict[str, str] | str:
        if directory == self._proc:
            return _OF_HOST
        if directory.startswith(self._proc):
            if self._process.fullmatch(directory[:-1]):
                return _OF_PROCESS
            return TEXT if self._inner.fullmatch(directory[:-1]) else KNOWN
        if directory.startswith(self._sys):
            return NUMBERS if directory.startswith(self._cgroups) else KNOWN
        return TEXT
