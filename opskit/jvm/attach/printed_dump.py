"""The thread dump that a JVM prints after SIGQUIT (`kill -3`) without any attach: whether it would, where it appears, how to read it.

HotSpot writes it to fd 1 (with -XX:+DisplayVMOutputToStderr to fd 2). A pipe or a socket is never read: that would take the log
from its reader.
"""

from __future__ import annotations

import posixpath
import stat
from typing import TYPE_CHECKING

from opskit.jvm.attach.target import catches_sigquit, command_words
from opskit.jvm.launch import last_flag
from opskit.proc.cgroup.owner import owner_of
from opskit.proc.cgroup.tree import parse_cgroup
from opskit.proc.files.fd import parse_fdinfo
from opskit.proc.files.status import parse_status
from opskit.proc.fs import ProcFS, optional
from opskit.quantities import integer
from opskit.records import NamedTuple
from opskit.shell import Syntax, command

if TYPE_CHECKING:
    from opskit.jvm.discover import Jvm
    from opskit.proc.file_id import FileId

_O_APPEND = 0o2000
_THEN, _PIPE, _BOTH, _ELSE = Syntax("&&"), Syntax("|"), Syntax("2>&1"), Syntax("…")
_TO_JPMP = (_PIPE, "opskit", "jpmp", "-")
_TERMINALS = ("/dev/pts/", "/dev/tty", "/dev/console")
_LAST_WITHOUT_JHSDB = 8
_CLIENTS = {"docker": "docker", "podman": "podman", "containerd": "crictl", "cri-o": "crictl"}


class PrintedDump(NamedTuple):
    """What `kill -3` gives. `kill`: the command; `where`: where the dump appears; `read`: the command that reads it, None: unknown.

    `only`: the command for this dump alone, where it comes after others in a file; `whole`: the line that asks, waits and reads it.
    `lost`: nobody can read it.
    """

    kill: str
    where: str
    read: str | None = None
    only: str | None = None
    whole: str | None = None
    lost: bool = False

    @property
    def sentence(self) -> str:
        """For a line of its own: `kill -3 42` prints a thread dump to its stdout, /var/log/app.log, after byte 4,096; …."""
        if self.lost:
            return f"`{self.kill}` would print a thread dump to {self.where}"
        reads = f"; `{self.read}` reads it" if self.read else ""
        alone = f", `{self.only}` this one alone" if self.only else ""
        return f"`{self.kill}` prints a thread dump to {self.where}{reads}{alone}"


def printed_dump(fs: ProcFS, jvm: Jvm) -> PrintedDump | None:
    """The dump after `kill -3`; None where the signal has no effect, or might kill the process."""
    status = fs.maybe(parse_status, jvm.pid, "status")
    if jvm.libjvm is None or status is None or not catches_sigquit(status):
        return None
    kill, number, name = command("kill", "-3", jvm.pid), 1, "its stdout"
    if last_flag(*command_words(fs, jvm.pid), "DisplayVMOutputToStderr") == "-XX:+DisplayVMOutputToStderr":
        number, name = 2, "its stderr"
    link = optional(fs.link, jvm.pid, "fd", number)
    if link is None:
        names = optional(fs.names_at, fs.path(jvm.pid, "fd"))
        if names is None or str(number) in names:
            return PrintedDump(kill, name)
        return PrintedDump(kill, f"{name}, which is closed: it would be lost", lost=True)
    target = link.decode("utf-8", "surrogateescape")
    if target.startswith(("pipe:", "socket:")):
        kind = target.partition(":")[0]
        log = _log_command(fs, jvm)
        reader = command("opskit", "pipes", jvm.pid, "--ends") if kind == "pipe" and log is None else None
        whose = f"; `{reader}` shows its reader" if reader else ", which goes to its log" if log else ""
        return PrintedDump(kill, f"{name}, a {kind}{whose}", log)
    if target == "/dev/null":
        return PrintedDump(kill, f"{name}, /dev/null: it would be lost", lost=True)
    file = optional(fs.file_id, jvm.pid, "fd", number)
    if file is not None and stat.S_ISREG(file.mode):
        return _in_file(fs, jvm.pid, number, target, file, PrintedDump(kill, name))
    return PrintedDump(kill, f"{name}, {'the terminal ' * target.startswith(_TERMINALS)}{target}")


def _in_file(fs: ProcFS, pid: int, number: int, target: str, file: FileId, found: PrintedDump) -> PrintedDump:
    """In a regular file, from its end on, or where it was not opened to append, from its position on."""
    fields = fs.maybe(parse_fdinfo, pid, "fdinfo", number, default={})
    position, appends = integer(fields.get("pos", "")), fields.get("flags", "")[-4:-3] in ("2", "3", "6", "7")
    offset = file.size_bytes if position is None or appends else position
    ours = optional(fs.file_id_at, f"{fs.root}{target}")
    is_here = ours is not None and (ours.device, ours.inode) == (file.device, file.inode)
    path = target if is_here else fs.path(pid, "fd", number)
    shown = target if is_here else f"{target}, here {path}"
    tail = ("tail", "-c", f"+{offset + 1}", path, *_TO_JPMP)
    return found._replace(
        where=f"{found.where}, {shown}, after byte {offset:,}",
        read=command("opskit", "jpmp", path),
        only=command(*tail),
        whole=command("kill", "-3", pid, _THEN, "sleep", "1", _THEN, *tail),
    )


def _log_command(fs: ProcFS, jvm: Jvm) -> str | None:
    """What reads the log that a pipe or socket leads to, by the pod, container or unit of its cgroups; None: unknown."""
    memberships = fs.maybe(parse_cgroup, jvm.pid, "cgroup", default=[])
    owner = owner_of(memberships)
    if owner is not None and owner.pod:
        environment = command_words(fs, jvm.pid)[1]
        host = next((entry[9:] for entry in environment if entry.startswith("HOSTNAME=")), "")
        return command("kubectl", "logs", "--since=1m", host or _ELSE, *_TO_JPMP)
    if owner is not None and owner.container and owner.runtime in _CLIENTS:
        return command(_CLIENTS[owner.runtime], "logs", "--since", "1m", owner.container, _BOTH, *_TO_JPMP)
    if owner is not None and owner.unit and owner.unit.endswith(".service"):
        user = ("--user",) if "/user@" in owner.path else ()
        return command("journalctl", *user, "-u", owner.unit, "-o", "cat", "--since", "-1min", *_TO_JPMP)
    return None


def instead(fs: ProcFS, jvm: Jvm, java_major: int | None) -> tuple[str, ...]:
    """Sentences about how to get a thread dump of a JVM that cannot be attached to."""
    printed = printed_dump(fs, jvm)
    lines = [printed.sentence] if printed is not None else []
    if jvm.libjvm is not None and (printed is None or printed.lost) and (java_major or 0) > _LAST_WITHOUT_JHSDB:
        how = command(_jhsdb(fs, jvm), "jstack", "--pid", jvm.pid, *_TO_JPMP)
        lines.append(
            f"`{how}` reads the stacks from outside, and stops the JVM meanwhile; it needs the JDK of this very build"
        )
    return tuple(lines)


def _jhsdb(fs: ProcFS, jvm: Jvm) -> str:
    """The program beside the JVM's own java, where it is there and has the same path for us."""
    home = posixpath.dirname(posixpath.dirname(posixpath.dirname(jvm.libjvm or "")))
    path = f"{home}/bin/jhsdb"
    theirs = optional(fs.inside, jvm.pid, path)
    found = None if theirs is None else optional(fs.file_id_at, theirs)
    return path if found is not None and found == optional(fs.file_id_at, f"{fs.root}{path}") else "jhsdb"
