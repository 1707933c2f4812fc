"""The replies of a JVM in a capture. A recording asks the JVM what costs it nothing, and keeps the reply."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

from opskit.errors import AttachError, NoSuchProcess, NotSupported, OpskitError
from opskit.jvm.attach.client import AttachClient
from opskit.jvm.attach.target import AttachTarget, target_of
from opskit.jvm.discover import find_jvm
from opskit.proc.fs import GONE
from opskit.proc.recorded.replies import HISTOGRAM, THREADS, name_of
from opskit.proc.recorded.tape import Failure

if TYPE_CHECKING:
    from opskit.proc.fs import ProcFS
    from opskit.proc.recorded.replies import Replies

FLAGS = ("VM.flags -all", "VM.command_line")
INFO = ("VM.version", "VM.uptime", "VM.info", "GC.heap_info", "VM.native_memory summary", "Compiler.codecache")
CARRIERS = "Thread.vthread_scheduler"
PROPERTIES = "properties"
# Neither starts a collection nor stops the JVM.
_FREE = frozenset({*FLAGS, *INFO, CARRIERS})
_KNOWN = {
    THREADS: ("thread dump", THREADS),
    HISTOGRAM: ("class histogram", HISTOGRAM),
    PROPERTIES: ("system properties", "flags"),
    **{name_of("jcmd", line): (f"reply to {line}", "flags") for line in FLAGS},
    **{name_of("jcmd", line): (f"reply to {line}", "info") for line in INFO},
    name_of("jcmd", CARRIERS): (f"reply to {CARRIERS}", THREADS),
}
_OWNERS = "Locked ownable synchronizers"


class RecordedError(AttachError):
    """An AttachError of the capture's maker: its reason, its text and the lines below it."""

    def __init__(self, reason: str, said: str, lines: tuple[str, ...]) -> None:
        OpskitError.__init__(self, said)
        self.reason, self.facts, self.lines = reason, {}, lines


class RecordedClient(AttachClient):
    """A client of a JVM in a capture. It raises NotSupported for what the JVM was not asked."""

    def __init__(self, fs: ProcFS, replies: Replies, pid: int, timeout_s: float, *, may_start: bool) -> None:
        super().__init__(fs, pid, timeout_s, may_start=may_start)
        self._replies = replies

    @property
    def target(self) -> AttachTarget:
        """The JVM. Raises as read_target does."""
        if self._target is None:
            try:
                self._target = target_of(self.fs, find_jvm(self.fs, self.pid), self._replies.origin.euid)
            except GONE:
                raise NoSuchProcess(self.pid, "opskit jvms lists the JVMs of the capture") from None
        return self._target

    def execute(self, command: str, *arguments: str) -> bytes:
        """The recorded reply. Raises NotSupported, and the error of the one who made the capture."""
        if command == "printflag":
            return self._flag(*arguments)
        name = name_of(command, *arguments)
        found = self._replies.find(self.pid, name)
        if found is None and self._replies.source is not None and _costs_nothing(command, arguments):
            found = self._asked(self._replies.source, command, arguments)
            self._replies.keep(self.pid, name, found)
        if found is None:
            raise NotSupported(self._lacks(name))
        if isinstance(found, Failure):
            raise _error_of(found)
        return found

    def thread_dump(self, *, locks: bool = False, extended: bool = False) -> str:
        """The recorded dump. Raises NotSupported where it is without the owners that are asked for."""
        text = super().thread_dump(locks=locks, extended=extended)
        if locks and _OWNERS not in text:
            why = "its heap was too large to walk for them"
            raise NotSupported(
                f"the thread dump of {self.pid} in the capture has no owners of java.util.concurrent locks: {why}"
            )
        return text

    def _asked(self, source: ProcFS, command: str, arguments: tuple[str, ...]) -> bytes | Failure:
        try:
            return AttachClient(source, self.pid, self.timeout_s, may_start=self._may_start).execute(
                command, *arguments
            )
        except OpskitError as error:
            return failure_of(error)

    def _flag(self, flag: str) -> bytes:
        """As `printflag` replies, by the list of all flags."""
        listed = self.execute("jcmd", FLAGS[0])
        for line in listed.splitlines():  # `   size_t MaxHeapSize    = 134217728    {product} {command line}`
            words = line.partition(b"{")[0].split(None, 3)
            if words[1:2] == [flag.encode()]:
                return b"-XX:%s=%s\n" % (flag.encode(), b"".join(words[3:]).strip())
        raise NotSupported(f"{flag} is not among the flags of {self.pid} in the capture")

    def _lacks(self, name: str) -> str:
        what, word = _KNOWN.get(name, (None, ""))
        if name == f"{HISTOGRAM}-live":
            return f"the capture has no class histogram of {self.pid} after a full GC: a capture never starts one; leave out --live"
        if what is None:
            return (
                f"the capture has no reply of {self.pid} to {name.replace('_', ' ')}, which a capture does not ask for"
            )
        return f"the capture has no {what} of {self.pid}: capture with --ask --what {word}"


def failure_of(error: OpskitError) -> Failure:
    """An error of an attach client, as it is kept on a tape."""
    reason = error.reason if isinstance(error, AttachError) else ""
    return Failure(errno.EIO, "\n".join((reason, str(error).replace("\n", " "), *error.lines)))


def _error_of(failure: Failure) -> OpskitError:
    reason, _, rest = (failure.why or "").partition("\n")
    said, *lines = rest.split("\n")
    said = said or "the JVM did not reply when the capture was made"
    if reason:
        return RecordedError(reason, said, tuple(lines))
    error = NotSupported(said)
    error.lines = tuple(lines)
    return error


def _costs_nothing(command: str, arguments: tuple[str, ...]) -> bool:
    return command == PROPERTIES or (command == "jcmd" and " ".join(arguments) in _FREE)
