"""Start a JVM's attach listener: trigger file, SIGQUIT, and wait for its socket.

SIGQUIT goes by pidfd, after every reason against it was checked, and start time and signal handler once more.
"""

from __future__ import annotations

import errno
import os
import signal
import stat
from contextlib import contextmanager
from typing import TYPE_CHECKING

from opskit import shell
from opskit.errors import AttachError, NoSuchProcess, NotSupported
from opskit.jvm.attach import target as targets
from opskit.jvm.attach.deadline import CLOCK_TICKS
from opskit.jvm.attach.descriptors import shortage
from opskit.jvm.attach.listener import FIRST_PAUSE_S, LONGEST_PAUSE_S, SETTLE_STEP_S, Listener, NoListenerError
from opskit.jvm.attach.trigger import Trigger
from opskit.proc.file_id import FileId, space_of
from opskit.proc.fs import GONE

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterator

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_STARTING_STEP_S = 0.02
_LOOKS_FOR_FDS = 5


class Starter:
    """Starts the listener that a Listener has found missing, if it `may_start` one."""

    def __init__(self, listener: Listener, *, may_start: bool = True) -> None:
        self.may_start = may_start
        self.listener, self.fs, self.target, self.deadline = listener, listener.fs, listener.target, listener.deadline

    def connect(self, *, first: bool) -> socket.socket:
        """A connection to the JVM's own listener, which is started if needed. The caller closes it. Raises AttachError.

        `first`: nothing was exchanged yet. Then descriptors are counted before anything is sent, as accept(2) without one ends the
        listener, and its thread is looked for, as the kernel still takes connections for one that has ended.
        """
        if first and self.listener.exists():
            self._check_descriptors(listens=True)
        try:
            connection = self.listener.connect()
        except NoListenerError as missing:
            has_thread = targets.has_listener(self.fs, self.target.pid)
            settled = self.listener.settle() if has_thread else None
            return settled or self._start(orphan=missing.orphan, has_thread=has_thread)
        if not first or not targets.names_threads(self.target.java_major):
            return connection
        if targets.has_listener(self.fs, self.target.pid):
            return connection
        connection.close()
        return self._restart()

    def _restart(self) -> socket.socket:
        """A new listener for one that has ended and left its socket."""
        if not targets.remakes(self.target.java_major):
            raise targets.needs_restart(self.target, ended=True)
        self.listener.ignore()
        return self._start(orphan=False, has_thread=False)

    def _check_descriptors(self, *, listens: bool) -> None:
        """Raise AttachError (no-fds) where the JVM has none left for a while: a busy server may have none for a moment."""
        looks = 0
        while lacking := shortage(self.fs, self.target.pid, listens=listens):
            looks += 1
            if looks == _LOOKS_FOR_FDS:
                raise AttachError("no-fds", self.target.who, what=lacking.sentence)
            self.deadline.pause(SETTLE_STEP_S, "file descriptor")

    def _start(self, *, orphan: bool, has_thread: bool) -> socket.socket:
        """Trigger, SIGQUIT, wait. `has_thread`: the listener's thread is there, and had the time to make its socket."""
        if not self.may_start:
            raise AttachError("no-listener", self.target.who)
        if targets.is_disabled(self.fs, self.target.jvm):
            raise AttachError("disabled", self.target.who)
        if targets.reduced_signals(*targets.command_words(self.fs, self.target.pid)):
            return self._await_own_listener(orphan=orphan, has_thread=has_thread)
        if has_thread and orphan:
            advice = f"{shell.command('opskit', 'hsperf-check', self.target.pid, '--fix')} removes it"
            raise AttachError("socket-orphaned", self.target.who, path=self.listener.path, advice=advice)
        if has_thread and not targets.remakes(self.target.java_major):
            raise targets.needs_restart(self.target)
        self._check_tmp()
        self._await_handler()
        self._check_descriptors(listens=False)
        trigger = Trigger(self.fs, self.target)
        with _signals_held() as interrupted:
            try:
                connection = self._trigger(trigger)
                if connection is not None:
                    return connection
                self._send_quit()
                return self._await_listener(interrupted)
            finally:
                trigger.remove()
        raise AttachError("failed", self.target.who)  # a held signal whose handler came back

    def _trigger(self, trigger: Trigger) -> socket.socket | None:
        """Make the trigger file; a connection where another client was faster: a signal would then only print a dump.

        Another client's trigger is waited for: a throttled JVM needs seconds. One that stays was left behind, and is used.
        """
        while True:
            ours = trigger.make(self.listener.tmp)
            try:
                return self.listener.connect()
            except NoListenerError:
                pass
            if ours or trigger.is_old() or self.deadline.is_half_spent():
                return None
            self.deadline.pause(SETTLE_STEP_S, "trigger")

    def _await_own_listener(self, *, orphan: bool, has_thread: bool) -> socket.socket:
        """With -Xrs the JVM starts its listener itself, once: wait for that of a JVM that is starting."""
        while not has_thread and targets.is_starting(self.fs, self.target, CLOCK_TICKS):
            self.deadline.pause(_STARTING_STEP_S, "socket of a starting JVM")
            has_thread = targets.has_listener(self.fs, self.target.pid)
            connection = self.listener.settle() if has_thread else None
            if connection is not None:
                return connection
        lost = "no process listens on it" if orphan else "was deleted"
        why = f"it was started with -Xrs, and the socket {self.listener.path} that it made then: {lost}; restart it"
        raise self._no_signal(why)

    def _no_signal(self, why: str) -> AttachError:
        return AttachError("no-signal-handler", self.target.who, why=why)

    def _check_tmp(self) -> None:
        """Raise AttachError (tmp) where the JVM could not make its socket."""
        target, tmp = self.target, self.listener.tmp
        space, found = space_of(os.fstatvfs(tmp)), os.fstat(tmp)
        if space.read_only:
            why, advice = "it is read-only where the JVM runs", "mount a writable /tmp there (an emptyDir or a tmpfs)"
        elif space.free_inodes == 0:
            why, advice = "it is full (no free inode)", "free some: df -i /tmp shows the use"
        elif not targets.may_write(FileId.of(found), target.euid, (target.egid, *target.groups)):
            mode = stat.S_IMODE(found.st_mode)
            why = f"uid {target.euid} may not write to it (uid {found.st_uid} gid {found.st_gid} mode {mode:04o})"
            advice = "chmod 1777 it"
        else:
            return
        why += ", so the JVM cannot make its socket. No signal was sent"
        raise AttachError("tmp", target.who, why=why, advice=advice)

    def _await_handler(self) -> None:
        """Wait for a JVM that is starting. Raises AttachError (no-signal-handler) where it never catches SIGQUIT."""
        while True:
            try:
                why = targets.why_no_signal(self.fs, self.target, CLOCK_TICKS)
            except GONE:
                raise NoSuchProcess(self.target.pid, "it has ended") from None
            if why is None:
                return
            reason, may_pass = why
            if not may_pass:
                if self.target.jvm.libjvm is None:
                    raise targets.denied(self.fs, self.target, f"/proc/{self.target.pid}/maps")
                raise self._no_signal(reason)
            self.deadline.pause(_STARTING_STEP_S, "handler of SIGQUIT in a starting JVM")

    def _send_quit(self) -> None:
        """SIGQUIT by pidfd, after start time and handler were checked again."""
        if not hasattr(signal, "pidfd_send_signal"):
            raise NotSupported("this Python has no pidfds, and SIGQUIT is sent in no other way")
        from opskit.proc.kernel.syscalls import pidfd_open

        try:
            pidfd = pidfd_open(self.target.pid)
        except OSError as error:
            if error.errno == errno.ENOSYS:
                why = "this kernel has no pidfds (Linux 5.3), and SIGQUIT is sent in no other way"
                raise NotSupported(why) from None
            raise NoSuchProcess(self.target.pid, "it has ended") from None
        try:
            targets.check_same(self.fs, self.target)
            against = targets.why_no_signal(self.fs, self.target, CLOCK_TICKS)
            if against is not None:
                raise self._no_signal(against[0])
            signal.pidfd_send_signal(pidfd, signal.SIGQUIT)
        except PermissionError:
            raise targets.denied(self.fs, self.target, "SIGQUIT", "CAP_KILL") from None
        except GONE:
            raise NoSuchProcess(self.target.pid, "it has ended") from None
        finally:
            os.close(pidfd)

    def _await_listener(self, interrupted: Callable[[], bool]) -> socket.socket:
        pause = FIRST_PAUSE_S
        while not interrupted():
            try:
                return self.listener.connect()
            except NoListenerError:
                pass
            self.deadline.pause(pause, "listener")
            pause = min(pause * 1.5, LONGEST_PAUSE_S)
        raise AttachError("failed", self.target.who)


@contextmanager
def _signals_held() -> Iterator[Callable[[], bool]]:
    """Block SIGINT, SIGTERM and SIGHUP; yields a function that returns whether one of them is pending."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
    try:
        yield lambda: bool(signal.sigpending() & set(_ENDING))
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
