r"""What user space writes about processes that were killed, or that ended for want of memory.

systemd-oomd[612]: Killed /system.slice/app.service due to memory pressure for /system.slice being 85.03% > 60.00% for > 20s …
earlyoom[612]: sending SIGTERM to process 2119 uid 1000 "chrome": badness 305, VmRSS 120 MiB
systemd[1]: app.service: A process of this unit has been killed by the OOM killer.
systemd[1]: app.service: Main process exited, code=killed, status=9/KILL
"OOMKilled": true          reason: OOMKilled          "exitCode": 137          exited with code 137
containerd[800]: … msg="TaskOOM event container_id:\"3f2a…\""
kubelet[7]: … "System OOM encountered, victim process: java, pid: 4242"
# There is insufficient memory for the Java Runtime Environment to continue.
# Native memory allocation (mmap) failed to map 65536 bytes for committing reserved memory.
Terminating due to java.lang.OutOfMemoryError: Java heap space
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from opskit.proc.oom.lines import When, when_of
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from opskit.proc.oom.lines import Line

OOMD, EARLYOOM, UNIT, CONTAINER, SIGKILL, NATIVE, HEAP = (
    "systemd-oomd", "earlyoom", "unit", "container", "sigkill", "native memory", "java heap",
)  # fmt: skip
KILL_KINDS = (OOMD, EARLYOOM, UNIT, CONTAINER)
NEEDLES = (
    " due to memory ", "sending SIG", "killed by the OOM killer", "result 'oom-kill'", "status=9/KILL", "OOMKill", "TaskOOM", "System OOM encountered",
    "code 137", "code=137", "status 137", "status=137", "xitCode", "insufficient memory for the Java Runtime",
    "Native memory allocation (", "ing due to java.lang.OutOfMemoryError",
)  # fmt: skip
_MOST = 1_000
_LONGEST = 300
_UNIT_NAME = r"([A-Za-z0-9:_.@\\-]{1,255}\.(?:service|scope|slice|socket|mount|swap))"


class Sign(NamedTuple):
    """What is told about one subject: `kind`, `who` (a cgroup, unit, process; "" if unnamed), the last line, how often."""

    kind: str
    who: str
    text: str
    when: When
    times: int = 1


# (kind, programs that are believed, what they write); a log without names of programs is believed.
_KINDS: tuple[tuple[str, tuple[str, ...], str], ...] = (
    (OOMD, ("systemd-oomd",), r"Killed (/.{1,4096}?) due to memory (?:pressure|used)"),
    (EARLYOOM, ("earlyoom",), r'sending SIG(?:TERM|KILL) to process (\d{1,10} (?:uid \d{1,10} )?".{0,64}"):'),
    (UNIT, ("systemd",), rf"{_UNIT_NAME}: (?:A process of this unit has been killed by the OOM killer|Failed with result 'oom-kill')"),
    (SIGKILL, ("systemd",), rf"{_UNIT_NAME}: (?:Main|Control) process exited, code=killed, status=9/KILL"),
    (NATIVE, (), r"[# ]{0,8}There is (insufficient) memory for the Java Runtime Environment"),
    (NATIVE, (), r"[# ]{0,8}(Native) memory allocation \([a-z]{1,20}\) failed to "),
    (HEAP, (), r"(?:Terminat|Abort)(ing) due to java\.lang\.OutOfMemoryError"),
)  # fmt: skip
_ANYWHERE: tuple[tuple[str, str], ...] = (
    (CONTAINER, r"OOMKilled\"?\s{0,4}[:=]\s{0,4}\"?[Tt]rue|(?:[Rr]eason|Error)\"?\s{0,4}[:=]\s{0,4}\"?OOMKilled"),
    (
        SIGKILL,
        r"[Ee]xit(?:ed with)?(?:[Cc]ode|\s(?:code|status))?\"?\s{0,4}[:= ]\s{0,4}\"?137\b|(?:code|status)[ =]137\b",
    ),
)
# What a container runtime says in other words, and the tables of kubectl.
_RUNTIMES = ("", "kubelet", "dockerd", "containerd", "crio", "podman", "k3s")
_SAID_BY_RUNTIMES = r"\bOOMKill(?:ed|ing)\b(?!\"?\s{0,4}[:=]\s{0,4}\"?(?:[Ff]alse|0|null|nil|<|\{|\[))|TaskOOM event|System OOM encountered, victim process: (.{1,64}), pid: \d"
# `container=web1`, `containerName":"web1`, `container_id:\"3f2a`, `container 3f2a9c01d2e4 exited`; other words follow "container", too.
_NAMED_CONTAINER = (
    r"container(?:Name|ID|_id)?(?:\\?\"?[=:]\s?\\?\"?([A-Za-z0-9][\w.-]{0,127})|\s\"?([0-9a-f]{12,64})\b)"
)


class Signs:
    """Collects the signs of a log, one of each kind and subject."""

    def __init__(self, now_s: float | None = None) -> None:
        self._found: dict[tuple[str, str], Sign] = {}
        self._now_s = now_s

    def take(self, line: Line) -> None:
        """A line with one of the NEEDLES."""
        for kind, programs, pattern in _KINDS:
            if line.program and programs and line.program not in programs:
                continue
            if found := re.match(pattern, line.text):
                self._add(kind, "" if kind in (NATIVE, HEAP) else found[1], line)
                return
        for kind, pattern in _ANYWHERE:
            if line.program != "kernel" and re.search(pattern, line.text[:4096]):
                self._add(kind, _container(line), line)
                return
        if line.program in _RUNTIMES and (found := re.search(_SAID_BY_RUNTIMES, line.text[:4096])):
            self._add(CONTAINER, found[1] or _container(line), line)

    def found(self) -> list[Sign]:
        """In the order of their first lines."""
        return list(self._found.values())

    def _add(self, kind: str, who: str, line: Line) -> None:
        before = self._found.get((kind, who))
        if before is None and len(self._found) >= _MOST:
            return
        text = line.text.strip(" #")[:_LONGEST]
        when = when_of(line.date, line.uptime, self._now_s)
        if before is not None and kind == NATIVE:  # its second line tells how much
            text = f"{before.text} {text}"[:_LONGEST] if before.times == 1 and text not in before.text else before.text
        self._found[kind, who] = Sign(kind, who, text, when, 1 if before is None else before.times + 1)


def _container(line: Line) -> str:
    """The container that a line names; "" without one."""
    found = re.search(_NAMED_CONTAINER, line.text[:4096])
    return (found[1] or found[2]) if found else ""
