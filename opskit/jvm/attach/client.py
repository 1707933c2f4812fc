"""Send commands to a HotSpot JVM without a JDK: start its attach listener, connect to /tmp/.java_pidN, read the whole reply.

Sources: src/jdk.attach/linux/.../VirtualMachineImpl.java (client), src/hotspot/os/posix/attachListener_posix.cpp (server).
"""

from __future__ import annotations

import os
import select
from typing import TYPE_CHECKING, NoReturn

from opskit.errors import AttachError, NoSuchProcess
from opskit.jvm.attach import wire
from opskit.jvm.attach.deadline import Deadline, RanOutError
from opskit.jvm.attach.listener import Listener, has_ids
from opskit.jvm.attach.starter import Starter
from opskit.jvm.attach.target import DEFAULT_TIMEOUT_S, AttachTarget, check_same, read_target
from opskit.proc.rights import as_owner_or_root

if TYPE_CHECKING:
    import socket

    from opskit.proc.fs import ProcFS

_CHUNK_BYTES = 1 << 18
# No client can attach until something else is done: the error also says how to get a thread dump without it.
_DEAD_ENDS = frozenset({
    "disabled", "needs-restart", "no-trigger", "tmp", "no-signal-handler", "socket-insecure", "socket-orphaned",
    "socket-foreign", "denied", "credentials-refused", "no-fds",
})  # fmt: skip


class AttachClient:
    """A client for several commands to one JVM. Its identity and protocol `version` are determined once, at the first exchange.

    `timeout_s` is the deadline of each exchange as a whole: starting the listener, connecting, sending, reading the reply.
    `may_start` False: nothing is sent to a JVM whose listener does not run, and it raises AttachError (no-listener).
    Each command raises as execute() does; an incomplete thread dump or histogram is an AttachError (reply-cut).
    """

    def __init__(self, fs: ProcFS, pid: int, timeout_s: float = DEFAULT_TIMEOUT_S, *, may_start: bool = True) -> None:
        self.fs, self.pid, self.timeout_s, self._may_start = fs, pid, timeout_s, may_start
        self._target: AttachTarget | None = None
        self._as_target = False  # connect with the JVM's own IDs: JDK 8 refuses all others, root's too
        self.version: int | None = None

    @property
    def target(self) -> AttachTarget:
        """The JVM. Raises as execute() does."""
        if self._target is None:
            self._target = read_target(self.fs, self.pid, os.geteuid())
        return self._target

    def execute(self, command: str, *arguments: str) -> bytes:
        """Send a command; the reply's text after the line with its code. The reply is read to its end first.

        Raises NoSuchProcess, NotAJvm, NotPermitted, AttachError, and UsageError for a request that every JVM would refuse.
        """
        try:
            return self._execute(command, arguments)
        except AttachError as error:
            if error.reason in _DEAD_ENDS and not error.lines:
                from opskit.jvm.attach.printed_dump import instead

                error.lines = instead(self.fs, self.target.jvm, self.target.java_major)
            raise

    def _execute(self, command: str, arguments: tuple[str, ...]) -> bytes:
        deadline = Deadline(self.fs, self.target, self.timeout_s)
        # Once it has answered, its cgroups are checked only when an answer does not come.
        check_same(self.fs, self.target, frozen=self.version is None)
        try:
            if self.version is None:
                self.version = self._negotiate(deadline)
            encode = wire.encode_v2 if self.version == 2 else wire.encode_v1
            limit = wire.LARGEST_REPLY_BYTES.get(command, wire.LARGEST_OTHER_REPLY_BYTES)
            reply = self._ask(encode(command, arguments), limit, deadline)
        except RanOutError as ran_out:
            deadline.explain(str(ran_out))
        except ProcessLookupError:  # its memory goes first: for a moment its stat still looks alive
            raise NoSuchProcess(self.pid, "the JVM has ended") from None
        except FileNotFoundError:
            check_same(self.fs, self.target)
            raise
        if not reply:
            self._refused()
        return wire.result_of(reply, self.pid, command)

    def thread_dump(self, *, locks: bool = False, extended: bool = False) -> str:
        """Every platform thread's stack, as `jstack` prints it. `locks`: with ownable synchronizers, which walks the whole heap."""
        flags = ("l" if locks else "") + ("e" if extended else "")
        text = self.execute("threaddump", *([f"-{flags}"] if flags else []))
        return wire.decode(wire.check_thread_dump(text, self.pid))

    def histogram(self, *, live: bool = False) -> str:
        """Instances and bytes of every class, as `jmap -histo` prints it. Pauses the JVM; `live` runs a full GC first."""
        text = self.execute("inspectheap", "-live" if live else "-all")  # without an argument it would be -live
        return wire.decode(wire.check_histogram(text, self.pid))

    def jcmd(self, line: str) -> str:
        """The output of a diagnostic command (`VM.flags`, `Thread.dump_to_file -format=json /tmp/x`), as `jcmd` prints it."""
        return wire.decode(self.execute("jcmd", line))

    def _negotiate(self, deadline: Deadline) -> int:
        request, limit = wire.encode_v1("getversion", ("options",)), wire.LARGEST_OTHER_REPLY_BYTES
        reply = self._ask(request, limit, deadline)
        if not reply and os.geteuid() == 0 and not self._as_target and not has_ids(self.target):
            self._as_target = True
            reply = self._ask(request, limit, deadline)
        if not reply:
            self._refused()
        return 2 if wire.speaks_v2(*wire.split_reply(reply, self.pid)) else 1

    def _ask(self, request: bytes, limit_bytes: int, deadline: Deadline) -> bytes:
        """Connect, send, read. Empty: the JVM closed without an answer. Raises AttachError."""
        listener = Listener(self.fs, self.target, deadline, as_target=self._as_target)
        try:
            connection = Starter(listener, may_start=self._may_start).connect(first=self.version is None)
        finally:
            os.close(listener.tmp)
        with connection:
            _send(connection, request, deadline)
            return self._receive(connection, limit_bytes, deadline)

    def _receive(self, connection: socket.socket, limit_bytes: int, deadline: Deadline) -> bytes:
        chunks: list[bytes] = []
        size = 0
        while True:
            deadline.wait(connection, select.POLLIN, "end of the answer" if size else "answer")
            try:
                chunk = connection.recv(_CHUNK_BYTES)
            except BlockingIOError:
                continue
            except ConnectionResetError:
                if not size:
                    return b""
                what = f"the connection broke after {size} bytes"
                raise AttachError("reply-cut", self.target.who, what=what, received_bytes=size) from None
            if not chunk:
                return b"".join(chunks)
            size += len(chunk)
            if size > limit_bytes:
                what = f"it answered more than {limit_bytes >> 20} MiB, the limit for this command"
                advice = "nothing of it was used"
                raise AttachError("reply-too-large", self.target.who, what=what, advice=advice, limit_bytes=limit_bytes)
            chunks.append(chunk)

    def _refused(self) -> NoReturn:
        """The JVM closed without an answer: it has ended, or it refused our credentials."""
        target = self.target
        check_same(self.fs, target)
        theirs = f"uid {target.euid} gid {target.egid}"
        if has_ids(target) or self._as_target:
            ours = f"root, then as {theirs}" if self._as_target else theirs
            why = f"we connected as {ours}, the IDs that it has itself. It is ending, or in a user namespace with other IDs"
            advice = "try again from within its container"
        else:
            ours = f"uid {os.geteuid()} gid {os.getegid()}"
            why = f"we are {ours}, it runs as {theirs}, and accepts only clients with both"
            advice = as_owner_or_root(self.fs, "CAP_SETUID CAP_SETGID", target.pid, target.euid, target.egid)
        raise AttachError("credentials-refused", target.who, why=why, advice=advice)


def _send(connection: socket.socket, request: bytes, deadline: Deadline) -> None:
    rest = memoryview(request)
    while rest:
        try:
            rest = rest[connection.send(rest) :]
        except BlockingIOError:
            deadline.wait(connection, select.POLLOUT, "end of the request")
        except (BrokenPipeError, ConnectionResetError):
            return  # what the JVM sent before it closed is read next
