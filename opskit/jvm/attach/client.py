"""Ask a HotSpot JVM, without a JDK: start its attach listener, connect to /tmp/.java_pidN, send a command, drain the reply.

Sources: src/jdk.attach/linux/.../VirtualMachineImpl.java (client), src/hotspot/os/posix/attachListener_posix.cpp (server).

How to be sure that nothing is harmed:

- The trigger file is made before SIGQUIT is sent, as the JVM's own user, and is always removed; where it cannot be made, no
  signal is sent: it would only print a dump into the application's output.
- SIGQUIT goes by pidfd to a process whose start time and signal handler were checked again.
- After connect() the kernel names the listener (SO_PEERCRED): it must be the very process that was asked for. That is
  stronger than the owner and the modes of the socket's file, which the JDK's own client goes by.
"""

from __future__ import annotations

import errno
import os
import select
import signal
import socket
import stat
import struct
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

from opskit import shell
from opskit.errors import (
    AttachDenied,
    AttachError,
    AttachRefused,
    AttachReplyCut,
    AttachReplyTooLarge,
    AttachSocketForeign,
    AttachSocketInsecure,
    AttachSocketOrphaned,
    AttachTimeout,
    AttachTmp,
    AttachTrigger,
    NoSuchProcess,
    NotSupported,
)
from opskit.jvm.attach import target as attachtarget
from opskit.jvm.attach import wire as attachwire
from opskit.jvm.attach.target import AttachTarget, read_target
from opskit.proc.fs import GONE, FileId, ProcFS, Space
from opskit.proc.rights import as_owner_or_root

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

DEFAULT_TIMEOUT_S = 10.0

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.001, 0.05
_SETTLE_S = 0.5  # a listener that another client has just started needs this long at most to make its socket
_SETTLE_STEP_S = 0.01
_FOR_A_TRIGGER = (
    "CAP_SYS_PTRACE CAP_SETUID CAP_SETGID"  # to reach the directory, and to make the file as the JVM's user
)
_TRIGGER_STAYS_S = 15.0  # a client waits for the listener 10 s at most by default
_STARTING_STEP_S = 0.02
_CHUNK_BYTES = 1 << 18
_CLOCK_TICKS = os.sysconf("SC_CLK_TCK")
_UCRED = struct.Struct("3i")


class AttachClient:
    """A JVM that is asked again and again. Who it is, and which protocol it speaks, is found out once.

    `timeout_s` is the deadline of each exchange as a whole: starting the listener, connecting, asking, draining the reply.
    """

    def __init__(self, fs: ProcFS, pid: int, timeout_s: float = DEFAULT_TIMEOUT_S) -> None:
        self.fs, self.pid, self.timeout_s = fs, pid, timeout_s
        self._target: AttachTarget | None = None
        self._as_target = False  # whether to connect with the JVM's own ids: JDK 8 takes nobody else, not even root
        self._version: int | None = None

    @property
    def version(self) -> int | None:
        """The protocol version that was agreed; None before the first exchange."""
        return self._version

    @property
    def target(self) -> AttachTarget:
        """Who is asked. Raises as execute() does."""
        if self._target is None:
            self._target = read_target(self.fs, self.pid, os.geteuid())
        return self._target

    def execute(self, command: str, *arguments: str) -> bytes:
        """Send a command; the reply's text, after the line with its code. It is drained before anything is looked at.

        Raises NoSuchProcess, NotAJvm, NotPermitted, an AttachError of its own class for each way to fail, UsageError for a
        request that no JVM could take.
        """
        deadline = _Deadline(self.timeout_s)
        target = self.target
        # Once it has answered, its cgroups are looked at when an answer does not come.
        attachtarget.check_same(self.fs, target, frozen=self._version is None)
        exchange = _Exchange(self.fs, target, deadline)
        try:
            if self._version is None:
                self._version = self._negotiate(exchange)
            encode = attachwire.encode_v2 if self._version == 2 else attachwire.encode_v1
            limit = attachwire.LARGEST_REPLY_BYTES.get(command, attachwire.LARGEST_OTHER_REPLY_BYTES)
            reply = exchange.ask(encode(command, arguments), limit, as_target=self._as_target)
        except _RanOutError as ran_out:
            exchange.explain(ran_out.waited_for)
        except ProcessLookupError:  # its memory goes first: for a moment more its stat looks alive
            raise NoSuchProcess(target.pid, "the JVM has ended") from None
        except FileNotFoundError:
            attachtarget.check_same(self.fs, target)
            raise
        if not reply:
            self._refused(target)
        return attachwire.result_of(reply, target.pid, command)

    def thread_dump(self, *, locks: bool = False, extended: bool = False) -> str:
        """Every platform thread's stack, as `jstack` prints it. `locks` finds ownable synchronizers: that walks the whole heap.

        Raises as execute() does; AttachReplyCut where the dump has no end.
        """
        flags = ("l" if locks else "") + ("e" if extended else "")
        text = self.execute("threaddump", *([f"-{flags}"] if flags else []))
        return attachwire.decode(attachwire.check_thread_dump(text, self.pid))

    def histogram(self, *, live: bool = False) -> str:
        """Instances and bytes of every class, as `jmap -histo` prints it. It stops the JVM; `live` does a full GC first.

        Raises as execute() does; AttachReplyCut where the histogram has no end.
        """
        text = self.execute("inspectheap", "-live" if live else "-all")  # without an argument it would be -live
        return attachwire.decode(attachwire.check_histogram(text, self.pid))

    def jcmd(self, line: str) -> str:
        """A diagnostic command (`VM.flags`, `Thread.dump_to_file -format=json /tmp/x`), as `jcmd` prints it."""
        return attachwire.decode(self.execute("jcmd", line))

    def _negotiate(self, exchange: _Exchange) -> int:
        request = attachwire.encode_v1("getversion", ("options",))
        limit = attachwire.LARGEST_OTHER_REPLY_BYTES
        reply = exchange.ask(request, limit, as_target=self._as_target)
        if not reply and os.geteuid() == 0 and not self._as_target and not _has_ids(exchange.target):
            self._as_target = True
            reply = exchange.ask(request, limit, as_target=True)
        if not reply:
            self._refused(exchange.target)
        code, text = attachwire.split_reply(reply, exchange.target.pid)
        return 2 if attachwire.speaks_v2(code, text) else 1

    def _refused(self, target: AttachTarget) -> NoReturn:
        """The JVM closed without a word: it has ended, or it does not take our credentials."""
        attachtarget.check_same(self.fs, target)
        ours = f"uid {os.geteuid()} gid {os.getegid()}"
        theirs = f"uid {target.euid} gid {target.egid}"
        if self._as_target:
            ours = f"root, then as {theirs}"
        if _has_ids(target) or self._as_target:
            raise AttachRefused(
                f"{target.pid} ({target.jvm.main}) closed the connection without a word, although we came as {ours}, as it "
                "runs itself: it is ending, or in a user namespace with other ids; try again from within its container"
            )
        advice = as_owner_or_root(self.fs, "CAP_SETUID CAP_SETGID", target.pid, target.euid, target.egid)
        raise AttachRefused(
            f"{target.pid} ({target.jvm.main}) refused our credentials: we are {ours}, it runs as {theirs}, and takes only "
            f"clients with both; {advice}"
        )


class _RanOutError(Exception):
    """The deadline has passed. `waited_for` names what did not come."""

    def __init__(self, waited_for: str) -> None:
        self.waited_for = waited_for
        super().__init__(waited_for)


class _Deadline:
    """When an exchange must be over."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._begun = time.monotonic()

    def spent(self) -> float:
        return time.monotonic() - self._begun

    def left(self) -> float:
        return max(0.0, self.seconds - self.spent())


class _Exchange:
    """One question and its answer, with what was seen of the JVM's threads while it was awaited."""

    def __init__(self, fs: ProcFS, target: AttachTarget, deadline: _Deadline) -> None:
        self.fs, self.target, self.deadline = fs, target, deadline
        self._before: dict[int, tuple[str, int]] | None = None
        self._before_at = 0.0

    def ask(self, request: bytes, limit_bytes: int, *, as_target: bool) -> bytes:
        """Connect, send, drain. Empty: the JVM closed without a word. Raises AttachReplyTooLarge above the limit."""
        with self._connect(as_target) as connection:
            self._send(connection, request)
            return self._drain(connection, limit_bytes)

    def explain(self, waited_for: str) -> NoReturn:
        """Raise AttachTimeout with what the JVM was doing; NoSuchProcess or AttachStopped where that is why."""
        attachtarget.check_same(self.fs, self.target)
        if self._before is None:
            self._look()
            time.sleep(0.1)
        after = attachtarget.thread_times(self.fs, self.target.pid)
        elapsed_ticks = (time.monotonic() - self._before_at) * _CLOCK_TICKS
        found = attachtarget.burning(self._before or {}, after, elapsed_ticks)
        raise AttachTimeout(
            f"{self.target.pid} ({self.target.jvm.main}): no {waited_for} within {self.deadline.seconds:g} s; "
            f"{attachtarget.meanwhile(found)}",
            None if found is None else found[1],
        )

    def _look(self) -> None:
        """Remember the threads' CPU times, for the case that nothing comes."""
        self._before_at = time.monotonic()
        self._before = attachtarget.thread_times(self.fs, self.target.pid)

    def _on_time(self, waited_for: str) -> float:
        """How long to wait now, in seconds; half-way, when it has become slow, it looks at the JVM's threads.

        Raises _RanOutError.
        """
        half = self.deadline.seconds / 2
        if self._before is None and self.deadline.spent() >= half:
            self._look()
        left = self.deadline.left()
        if not left:
            raise _RanOutError(waited_for)
        return left if self._before is not None else max(0.0, min(left, half - self.deadline.spent()))

    def _pause(self, seconds: float, waited_for: str) -> None:
        time.sleep(min(seconds, self._on_time(waited_for)))

    def _wait(self, connection: socket.socket, event: int, waited_for: str) -> None:
        """Wait until the connection can go on."""
        poll = select.poll()
        poll.register(connection, event)
        while not poll.poll(self._on_time(waited_for) * 1000):
            continue

    def _send(self, connection: socket.socket, request: bytes) -> None:
        rest = memoryview(request)
        while rest:
            try:
                rest = rest[connection.send(rest) :]
            except BlockingIOError:
                self._wait(connection, select.POLLOUT, "end of the request")
            except (BrokenPipeError, ConnectionResetError):
                return  # what the JVM said before it closed, or that it said nothing, is read next

    def _drain(self, connection: socket.socket, limit_bytes: int) -> bytes:
        chunks: list[bytes] = []
        size = 0
        while True:
            self._wait(connection, select.POLLIN, "end of the answer" if size else "answer")
            try:
                chunk = connection.recv(_CHUNK_BYTES)
            except BlockingIOError:
                continue
            except ConnectionResetError:
                if not size:
                    return b""
                raise AttachReplyCut(self.target.pid, f"the connection broke after {size} bytes", size) from None
            if not chunk:
                return b"".join(chunks)
            size += len(chunk)
            if size > limit_bytes:
                raise AttachReplyTooLarge(
                    f"{self.target.pid} ({self.target.jvm.main}) answered more than {limit_bytes >> 20} MiB, the most that is "
                    "taken of such an answer; is it a JVM? Nothing of it was used",
                    limit_bytes,
                )
            chunks.append(chunk)

    # Connecting

    def _connect(self, as_target: bool) -> socket.socket:
        """A connection to the JVM's own listener, which is started where there is none. The caller closes it."""
        tmp = self._open_tmp()
        try:
            try:
                return self._try_connect(tmp, as_target)
            except _NobodyListensError as nobody:
                listener = attachtarget.has_listener(self.fs, self.target.pid)
                connection = self._settle(tmp, as_target) if listener else None
                return connection or self._start_listener(tmp, as_target, nobody, listener=listener)
        finally:
            os.close(tmp)

    def _open_tmp(self) -> int:
        """The JVM's own /tmp. Raises AttachDenied where it is closed to us."""
        pid = self.target.pid
        try:
            return os.open(self.fs.inside(pid, "/tmp"), os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        except GONE:
            attachtarget.check_same(self.fs, self.target)
            raise AttachTmp(
                f"{pid} ({self.target.jvm.main}) has no /tmp, where its socket would be; make one"
            ) from None
        except PermissionError:
            if self.target.ns_pid != pid or not attachtarget.shares_our_mounts(self.fs, pid):
                raise self._denied(f"/proc/{pid}/root/tmp") from None
            return os.open("/tmp", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)

    def _try_connect(self, tmp: int, as_target: bool) -> socket.socket:
        """Connect, and prove who listens. Raises _NobodyListensError, AttachSocketInsecure, AttachSocketForeign, AttachDenied."""
        name = self.target.socket_name
        path = f"/tmp/{name}"
        try:
            found = os.lstat(name, dir_fd=tmp)
        except FileNotFoundError:
            raise _NobodyListensError(path, orphan=False) from None
        if not stat.S_ISSOCK(found.st_mode):
            kind = {stat.S_IFLNK: "a symbolic link", stat.S_IFREG: "a plain file", stat.S_IFDIR: "a directory"}.get(
                stat.S_IFMT(found.st_mode), "no socket"
            )
            raise AttachSocketInsecure(
                f"{path} of {self.target.pid} is {kind} of uid {found.st_uid}, where its socket should be: somebody put it "
                "there; nothing was sent. Look at it, remove it, and try again"
            )
        connection = self._connected(f"/proc/self/fd/{tmp}/{name}", path, as_target)
        try:
            self._prove_peer(connection, path)
        except BaseException:
            connection.close()
            raise
        return connection

    def _connected(self, address: str, path: str, as_target: bool) -> socket.socket:
        pause = _FIRST_PAUSE_S
        while True:
            try:
                if as_target:
                    # The JVM sees the ids that the connecting process had in that moment; the connection itself is ours.
                    return socket.socket(fileno=_as_user(self.target, lambda: _connect_unix(address).detach()))
                return _connect_unix(address)
            except BlockingIOError:  # its queue of five is full: others are asking, or it takes nobody
                self._pause(pause, "place in the queue of its listener")
                pause = min(pause * 2, _LONGEST_PAUSE_S)
            except ConnectionRefusedError:
                raise _NobodyListensError(path, orphan=True) from None
            except FileNotFoundError:
                raise _NobodyListensError(path, orphan=False) from None
            except PermissionError:
                raise self._denied(path, "CAP_SETUID CAP_SETGID" if as_target else "CAP_DAC_OVERRIDE") from None

    def _prove_peer(self, connection: socket.socket, path: str) -> None:
        peer = peer_pid(connection)
        if peer != self.target.pid:
            who = f"process {peer}" if peer else "a process in a pid namespace that we cannot see"
            raise AttachSocketForeign(
                f"{path} of {self.target.pid} belongs to {who}: two JVMs with the same inner pid share this /tmp, and the "
                "later one took the name; nothing was asked. Give each container a /tmp of its own",
                peer,
            )

    def _denied(self, what: str, capabilities: str = "CAP_SYS_PTRACE") -> AttachDenied:
        return AttachDenied(
            f"the kernel does not let us use {what} of {self.target.pid} ({self.target.jvm.main}): "
            f"{attachtarget.why_denied(self.fs, self.target, capabilities)}"
        )

    # Starting the listener

    def _settle(self, tmp: int, as_target: bool) -> socket.socket | None:
        """Give a listener that somebody else has just started the time to make its socket. None: it has made none."""
        begun = self.deadline.spent()
        while self.deadline.spent() - begun < _SETTLE_S:
            self._pause(_SETTLE_STEP_S, "socket")
            try:
                return self._try_connect(tmp, as_target)
            except _NobodyListensError:
                continue
        return None

    def _start_listener(
        self, tmp: int, as_target: bool, nobody: _NobodyListensError, *, listener: bool
    ) -> socket.socket:
        """Trigger, SIGQUIT, and wait for the listener. Everything that forbids the signal is asked before."""
        disabled = attachtarget.why_disabled(self.fs, self.target)
        if disabled is not None:
            raise disabled
        if attachtarget.is_reduced_signals(self.fs, self.target):
            return self._await_own_listener(tmp, as_target, nobody, listener=listener)
        self._may_start(tmp, nobody, listener=listener)
        self._await_handler()
        trigger = _Trigger(self.fs, self.target)
        with _signals_held() as interrupted:
            try:
                connection = self._trigger(trigger, tmp, as_target)
                if connection is not None:
                    return connection
                self._send_quit()
                return self._await_listener(tmp, as_target, interrupted)
            finally:
                trigger.remove()
        raise AttachError("interrupted")  # a held signal whose handler came back

    def _trigger(self, trigger: _Trigger, tmp: int, as_target: bool) -> socket.socket | None:
        """Have a trigger file; or a connection, where another client was faster: a signal now would only print a dump.

        Another client's trigger is left the time to do its work: a throttled JVM needs seconds for it. One that stays was
        left behind, and serves.
        """
        while True:
            ours = trigger.make(tmp)
            try:
                return self._try_connect(tmp, as_target)
            except _NobodyListensError:
                pass
            if ours or trigger.is_old() or self.deadline.spent() >= self.deadline.seconds / 2:
                return None
            self._pause(_SETTLE_STEP_S, "trigger")

    def _await_own_listener(
        self, tmp: int, as_target: bool, nobody: _NobodyListensError, *, listener: bool
    ) -> socket.socket:
        """With -Xrs the JVM starts its listener itself, and once: wait for that of a JVM that is just starting."""
        while not listener and attachtarget.is_starting(self.fs, self.target, _CLOCK_TICKS):
            self._pause(_STARTING_STEP_S, "socket of a starting JVM")
            listener = attachtarget.has_listener(self.fs, self.target.pid)
            connection = self._settle(tmp, as_target) if listener else None
            if connection is not None:
                return connection
        gone = "nobody listens on it" if nobody.orphan else "is gone"
        raise attachtarget.no_signal(
            self.target, f"it was started with -Xrs, and the socket {nobody.path} that it made then {gone}; restart it"
        )

    def _may_start(self, tmp: int, nobody: _NobodyListensError, *, listener: bool) -> None:
        """Raise what forbids the signal. `listener`: its thread is there, and has had the time to make its socket."""
        target = self.target
        if listener:
            if nobody.orphan:
                raise AttachSocketOrphaned(
                    f"nobody listens on {nobody.path}, while {target.pid} ({target.jvm.main}) has a listener elsewhere: "
                    "a dead socket lies over its own; "
                    f"{shell.command('opskit', 'hsperf-check', target.pid, '--fix')} removes it"
                )
            if not attachtarget.remakes(target.java_major):
                raise attachtarget.needs_restart(target, nobody.path)
        self._check_tmp(tmp)

    def _check_tmp(self, tmp: int) -> None:
        """Raise AttachTmp where the JVM could not make its socket: the signal would be for nothing."""
        target = self.target
        space, found = Space.of(os.fstatvfs(tmp)), os.fstat(tmp)
        if space.read_only:
            why, advice = "is read-only where it runs", "mount a writable /tmp there (an emptyDir or a tmpfs)"
        elif space.free_inodes == 0:
            why, advice = "is full: no inode is left", "df -i /tmp shows it; make room"
        elif not attachtarget.may_write(FileId.of(found), target.euid, (target.egid, *target.groups)):
            mode = stat.S_IMODE(found.st_mode)
            why = f"is one that its uid {target.euid} may not write to (uid {found.st_uid} gid {found.st_gid} mode {mode:04o})"
            advice = "chmod 1777 it"
        else:
            return
        raise AttachTmp(
            f"/tmp of {target.pid} ({target.jvm.main}) {why}: it cannot make its socket. No signal was sent; {advice}"
        )

    def _await_handler(self) -> None:
        """Wait for a JVM that is just starting. Raises AttachNoSignal where it will never catch SIGQUIT."""
        while True:
            try:
                why = attachtarget.why_no_signal(self.fs, self.target, _CLOCK_TICKS)
            except GONE:
                raise NoSuchProcess(self.target.pid, "it has ended") from None
            if why is None:
                return
            reason, may_pass = why
            if not may_pass:
                if self.target.jvm.libjvm is None:
                    raise self._denied(f"/proc/{self.target.pid}/maps")
                raise attachtarget.no_signal(self.target, reason)
            self._pause(_STARTING_STEP_S, "handler of SIGQUIT in a starting JVM")

    def _send_quit(self) -> None:
        """SIGQUIT by pidfd, after start time and handler were checked again."""
        if not hasattr(signal, "pidfd_send_signal"):
            raise NotSupported("this Python has no pidfds: SIGQUIT is sent by nothing else")
        from opskit.proc.kernel.syscalls import pidfd_open

        try:
            pidfd = pidfd_open(self.target.pid)
        except OSError as error:
            if error.errno == errno.ENOSYS:
                raise NotSupported("this kernel has no pidfds (Linux 5.3): SIGQUIT is sent by nothing else") from None
            raise NoSuchProcess(self.target.pid, "it has ended") from None
        try:
            attachtarget.check_same(self.fs, self.target)
            why = attachtarget.why_no_signal(self.fs, self.target, _CLOCK_TICKS)
            if why is not None:
                raise attachtarget.no_signal(self.target, why[0])
            signal.pidfd_send_signal(pidfd, signal.SIGQUIT)
        except PermissionError:
            raise self._denied("SIGQUIT", "CAP_KILL") from None
        except GONE:
            raise NoSuchProcess(self.target.pid, "it has ended") from None
        finally:
            os.close(pidfd)

    def _await_listener(self, tmp: int, as_target: bool, interrupted: Callable[[], bool]) -> socket.socket:
        pause = _FIRST_PAUSE_S
        while not interrupted():
            try:
                return self._try_connect(tmp, as_target)
            except _NobodyListensError:
                pass
            self._pause(pause, "listener")
            pause = min(pause * 1.5, _LONGEST_PAUSE_S)
        raise AttachError("interrupted")


class _NobodyListensError(Exception):
    """There is no socket, or an orphan of one."""

    def __init__(self, path: str, *, orphan: bool) -> None:
        self.path, self.orphan = path, orphan
        super().__init__(path)


class _Trigger:
    """The file that turns the JVM's next SIGQUIT into the start of its listener."""

    def __init__(self, fs: ProcFS, target: AttachTarget) -> None:
        self.fs, self.target = fs, target
        self._made: tuple[int, int, int] | None = None  # directory fd, device, inode
        self._theirs_at = 0.0  # when the trigger that was found there was made

    def make(self, tmp: int) -> bool:
        """In the JVM's working directory, or else in its /tmp; with the JVM's own ids.

        False: another client's is there, which does as well. Raises AttachTrigger.
        """
        refused = []
        denied = False
        for place in ("cwd", "tmp"):
            try:
                directory = (
                    os.dup(tmp)
                    if place == "tmp"
                    else os.open(self.fs.path(self.target.pid, "cwd"), os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
                )
            except OSError as error:
                refused.append(f"{self._place(place)}: {os.strerror(error.errno or 0)}")
                denied |= isinstance(error, PermissionError)
                continue
            try:
                if self._make_in(directory):
                    return True
                refused.append(f"{self._place(place)}: the file came to belong to somebody else")
            except FileExistsError:
                if self._check_theirs(directory, self._place(place)):
                    return False
            except OSError as error:
                refused.append(f"{self._place(place)}: {os.strerror(error.errno or 0)}")
                denied |= isinstance(error, PermissionError)
            finally:
                if self._made is None:
                    os.close(directory)
        raise AttachTrigger(
            f"{self.target.pid} ({self.target.jvm.main}) has no attach listener, and its trigger file "
            f"{self.target.trigger_name} cannot be made ({'; '.join(refused)}). No signal was sent: it would only print a "
            "dump into the application's output"
            + (f"; {attachtarget.why_denied(self.fs, self.target, _FOR_A_TRIGGER)}" if denied else "")
        )

    def is_old(self) -> bool:
        """Whether the trigger that was found there, another client's, was left behind by it."""
        return time.time() - self._theirs_at > _TRIGGER_STAYS_S

    def remove(self) -> None:
        """Remove the file that was made, and no other."""
        if self._made is None:
            return
        directory, device, inode = self._made
        self._made = None
        try:
            found = os.lstat(self.target.trigger_name, dir_fd=directory)
            if (found.st_dev, found.st_ino) == (device, inode):
                self._unlink(directory)
        except FileNotFoundError:
            pass
        finally:
            os.close(directory)

    def _make_in(self, directory: int) -> bool:
        flags = os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_WRONLY | os.O_CLOEXEC
        path = f"/proc/self/fd/{directory}/{self.target.trigger_name}"
        fd = _as_user(self.target, lambda: os.open(path, flags, 0o600))
        try:
            made = os.fstat(fd)
        finally:
            os.close(fd)
        self._made = (directory, made.st_dev, made.st_ino)
        if made.st_uid == self.target.euid:
            return True
        self._unlink(directory)  # a mount that changes owners: the JVM would not take it
        self._made = None
        return False

    def _unlink(self, directory: int) -> None:
        try:
            os.unlink(self.target.trigger_name, dir_fd=directory)
        except PermissionError:  # root without rights over that mount
            path = f"/proc/self/fd/{directory}/{self.target.trigger_name}"
            os.close(_as_user(self.target, lambda: _unlinked(path)))

    def _check_theirs(self, directory: int, place: str) -> bool:
        """Whether a trigger that is there already does: another client's, or one that a killed client left."""
        try:
            found = os.lstat(self.target.trigger_name, dir_fd=directory)
        except FileNotFoundError:
            return False
        root_will_do = self.target.java_major is not None and self.target.java_major > 8
        if stat.S_ISREG(found.st_mode) and (found.st_uid == self.target.euid or (found.st_uid == 0 and root_will_do)):
            self._theirs_at = found.st_mtime
            return True
        raise AttachTrigger(
            f"{place}/{self.target.trigger_name} belongs to uid {found.st_uid}: while it is there, {self.target.pid} "
            f"({self.target.jvm.main}, uid {self.target.euid}) starts no listener. No signal was sent; remove that file"
        )

    def _place(self, place: str) -> str:
        if place == "tmp":
            return "/tmp"
        try:
            return self.fs.link(self.target.pid, "cwd").decode("utf-8", "surrogateescape")
        except OSError:
            return f"/proc/{self.target.pid}/cwd"


@contextmanager
def _signals_held() -> Iterator[Callable[[], bool]]:
    """Hold back Ctrl-C and its like until the block is left; gives a function that tells whether one has come."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
    try:
        yield lambda: bool(signal.sigpending() & set(_ENDING))
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def peer_pid(connection: socket.socket) -> int:
    """The process that listens on the other side, as seen from here; 0 where our pid namespace does not see it."""
    pid: int
    pid, _, _ = _UCRED.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size))
    return pid


def listener_of(path: str) -> tuple[int, int] | None:
    """(pid, effective uid) of the process that listens on a socket, as they were when it began to; None where nobody does."""
    try:
        with _connect_unix(path) as connection:
            pid, uid, _ = _UCRED.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size))
            return pid, uid
    except OSError:
        return None


def listener_at(path: str) -> tuple[bool | None, int | None]:
    """(alive, the listener's pid as seen from here) of a socket's path. Connects and closes; nothing is sent.

    Alive None: not to be found out (no rights). A listener whose queue is full is alive; its pid is None then.
    """
    try:
        with _connect_unix(path) as connection:
            return True, peer_pid(connection)
    except BlockingIOError:
        return True, None
    except (ConnectionRefusedError, FileNotFoundError):
        return False, None
    except OSError:
        return None, None


def _connect_unix(address: str) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK)
    try:
        connection.connect(address)
    except BaseException:
        connection.close()
        raise
    return connection


def _unlinked(path: str) -> int:
    os.unlink(path)
    return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)


def _has_ids(target: AttachTarget) -> bool:
    return (os.geteuid(), os.getegid()) == (target.euid, target.egid)


def _as_user(target: AttachTarget, act: Callable[[], int]) -> int:
    """Do something that gives an fd with the JVM's own effective ids: in a child of ours, where they are not ours already.

    Raises what `act` raises, as an OSError.
    """
    if os.geteuid() != 0 or _has_ids(target):
        return act()
    ours, theirs = socket.socketpair()
    with ours, theirs:
        child = os.fork()
        if not child:
            _child(target, act, theirs)
        theirs.close()
        try:
            message, fds, _, _ = socket.recv_fds(ours, 4, 1)
        finally:
            os.waitpid(child, 0)
    code = int.from_bytes(message, "little")
    if code or not fds:
        raise OSError(code or errno.ECHILD, os.strerror(code or errno.ECHILD))
    return fds[0]


def _child(target: AttachTarget, act: Callable[[], int], report: socket.socket) -> NoReturn:
    """What the child does: take on the ids (the group first, while that is still allowed), act, send the fd or the error."""
    code, fds = errno.EIO, []
    try:
        os.setgroups(target.groups)
        os.setegid(target.egid)
        os.seteuid(target.euid)
        fds = [act()]
        code = 0
    except OSError as error:
        code = error.errno or errno.EIO
    finally:
        socket.send_fds(report, [code.to_bytes(4, "little")], fds)
        os._exit(0)
