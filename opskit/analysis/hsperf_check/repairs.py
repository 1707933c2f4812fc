"""What `hsperf-check --fix` would do to which file, what is proven before, and why a file is left alone. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from opskit import shell
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from opskit.analysis.hsperf_check.rules import Subject
    from opskit.jvm.attach.files import Entry, Location, Surroundings
    from opskit.proc.file_id import FileId

Proof = Literal["peer", "mapped", "dead", "old"]
Change = Literal["owner", "group", "mode", "remove"]
NOT_REPAIRED = "not repaired by --fix"  # begins a fix that is no command, but why there is none
OTHERS_MAY_WRITE = 0o022


class Repair(NamedTuple):
    """One change to one file, which must still be the same (device, inode) then.

    `location` and `names` lead to the file, `path` shows it. `owner`, `group`, `mode`: what to set, None: leave; of a directory's
    mode bits are only taken away. `remove`: unlink it. `change` says that in words. `proof`: what is proven again right before:
    "peer" (the listener is `pid`, which runs as `euid`), "mapped" (`pid`, which runs as `euid`, maps the file), "dead" (no process
    listens on it, locks or maps it), "old" (a trigger). `command`: what to type. `refused`: why it is not done; None: it is.
    """

    code: str
    pid: int
    path: str
    location: Location | None
    names: tuple[str, ...]
    device: int
    inode: int
    change: str
    command: str
    proof: Proof
    euid: int | None = None
    owner: int | None = None
    group: int | None = None
    mode: int | None = None
    remove: bool = False
    refused: str | None = None

    @property
    def fix(self) -> str:
        """What a finding says about it."""
        return self.command if self.refused is None else f"{NOT_REPAIRED}: {self.refused}"


class Outcome(NamedTuple):
    """What was or would be done: `state` is `would`, `refused`, `done` or `failed`, `before` and `after` owner and mode or `gone`."""

    repair: Repair
    state: str
    before: str | None = None
    after: str | None = None
    why: str | None = None


def plan(subject: Subject, entry: Entry, code: str, proof: Proof, change: Change) -> Repair:
    """The repair of a subject's file, to the JVM's own owner or group, the mode that it should have, or gone."""
    location, owner, group, mode, words = entry.location, None, None, None, "remove"
    if change == "owner":
        owner, words = subject.jvm.euid, f"owner {subject.user}"
    elif change == "group":
        group, words = subject.jvm.egid, f"group {subject.jvm_group}"
    elif change == "mode":
        mode, words = subject.right_mode, f"mode {subject.right_mode:04o}"
    refused = subject.doubt if location is not None else f"the root directory of {subject.pid} cannot be entered"
    refused = (location.refused if location else None) or refused
    if change == "remove" and not subject.case.sees_all:
        refused = "from within a container not every process is visible: run it on the host"
    # A shell's chown or rm would follow whatever another user puts at a path.
    line = shell.command("opskit", "hsperf-check", *([subject.pid] if subject.by_pid else []), "--fix")
    file = entry.file
    return Repair(
        code, subject.pid, entry.path, location, entry.names, file.device, file.inode, words, line, proof,
        None if subject.around is None else subject.around.euid, owner, group, mode, change == "remove", refused,
    )  # fmt: skip


def not_a_trigger(entry: Entry) -> str | None:
    """Why a file is not surely a trigger file; None where it is one."""
    if entry.kind == "plain file" and entry.file.size_bytes == 0 and entry.file.links == 1:
        return None
    return f"it is not an empty plain file with one link, as a trigger is ({entry.kind}, {entry.file.size_bytes} bytes)"


def doubt_of_counters(around: Surroundings) -> str | None:
    """Why hsperfdata and its directory are not surely the JVM's own; None where they are."""
    counters = around.counters
    if counters is None or not counters.is_own:
        return f"no file in it is mapped by {around.pid}"
    if counters.mapped is None:
        return f"/proc/{around.pid}/map_files, which names what it maps, cannot be read: run as root (CAP_SYS_ADMIN) on the host"
    if around.user is None:
        return f"uid {around.euid} has no name where {around.pid} runs"
    if counters.directory is not None and counters.directory.names != (f"hsperfdata_{around.user}",):
        return f"it is not in hsperfdata_{around.user}, the directory of the user that {around.pid} runs as"
    return None


def open_to_others(file: FileId, euid: int) -> str | None:
    """Why mapping a file, or one in a directory, does not prove that it is a user's: others may write to it.

    A file that only its owner may write to, and that a user maps, was that user's.
    """
    if file.uid == euid or not file.mode & OTHERS_MAY_WRITE:
        return None
    return f"it belongs to uid {file.uid} and others may write to it: nothing proves that it was uid {euid}'s"
