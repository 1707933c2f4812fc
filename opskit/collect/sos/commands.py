"""What the commands that sos runs say, as the files that would have said it.

sos_commands/kernel/sysctl_-a             vm.swappiness = 60               proc/sys/vm/swappiness
sos_commands/kernel/uname_-a              Linux web1 5.14.0-70.el9 …       proc/sys/kernel/osrelease, hostname
sos_commands/process/ps_auxwwwm           root 4242 … java -Xmx2g …        proc/4242/cmdline
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.quantities import integer
from opskit.words import is_java_launcher

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_PS = {"process/ps_auxwwwm": 10, "process/ps_auxwww": 10, "process/ps_aux": 10}
_MOST_LINES, _LONGEST = 200_000, 1 << 16


def files_said(commands: Mapping[str, bytes]) -> dict[str, bytes]:
    """The files by their paths on the machine. `commands`: outputs by their paths below sos_commands."""
    found: dict[str, bytes] = {}
    for name, data in commands.items():
        text = data.decode("utf-8", "surrogateescape")
        if name == "kernel/sysctl_-a":
            found.update(_sysctls(text))
        elif name in ("kernel/uname_-a", "host/uname_-a"):
            words = text.split(None, 3)
            if len(words) > 2:
                found["/proc/sys/kernel/hostname"], found["/proc/sys/kernel/osrelease"] = (
                    word.encode("utf-8", "surrogateescape") for word in words[1:3]
                )
        elif name in _PS:
            found.update(_processes(text, _PS[name]))
    return found


def _sysctls(text: str) -> dict[str, bytes]:
    """A value of several lines is shown as several lines with the same name."""
    found: dict[str, bytes] = {}
    for line in text.split("\n")[:_MOST_LINES]:
        name, equals, value = line.partition(" = ")
        if equals and " " not in name and ".." not in name and not name.startswith("."):
            # A dot of an interface's name is a slash in sysctl's.
            path = "/".join(part.replace("/", ".") for part in name.split("."))
            before = found.get(f"/proc/sys/{path}")
            data = value[:_LONGEST].encode("utf-8", "surrogateescape")
            found[f"/proc/sys/{path}"] = data if before is None else b"\n".join((before, data))[:_LONGEST]
    return found


def _processes(text: str, column: int) -> Iterator[tuple[str, bytes]]:
    """The command lines of JVMs: ps shows blanks between words."""
    for line in text.split("\n")[1:_MOST_LINES]:
        words = line[:_LONGEST].split(None, column)
        pid = integer(words[1]) if len(words) > column else None
        command = words[column].split() if pid else []
        if is_java_launcher(command):
            yield f"/proc/{pid}/cmdline", "\0".join([*command, ""]).encode("utf-8", "surrogateescape")


def kept_names() -> tuple[str, ...]:
    """The outputs that are read."""
    return ("kernel/sysctl_-a", "kernel/uname_-a", "host/uname_-a", *_PS)
