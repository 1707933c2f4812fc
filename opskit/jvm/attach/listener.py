"""Connect to a JVM's attach listener, and prove who listens.

After connect() the kernel names the listener (SO_PEERCRED): it must be the process that was asked for. That is stronger than the
owner and mode of the socket's file, which the JDK's own client goes by. HotSpot goes by the user and group IDs of its client.
"""

from __future__ import annotations

import errno
import os
import socket
import stat
import struct
from typing import TYPE_CHECKING, NoReturn

from opskit.errors import AttachError
from opskit.jvm.attach.target import AttachTarget, check_same, denied, has_our_tmp
from opskit.proc.file_id import kind_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from opskit.jvm.attach.deadline import Deadline
    from opskit.proc.fs import ProcFS

FIRST_PAUSE_S, LONGEST_PAUSE_S, SETTLE_STEP_S = 0.001, 0.05, 0.01
_SETTLE_S = 0.5  # a listener that another client has just started makes its socket within this time
_DIRECTORY = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
_UCRED = struct.Struct("3i")


class NoListenerError(Exception):
    """There is no socket, or (`orphan`) one that no process listens on."""

    def __init__(self, *, orphan: bool) -> None:
        self.orphan = orphan
        super().__init__()


def open_tmp(fs: ProcFS, target: AttachTarget) -> int:
    """An fd (O_PATH) of the JVM's own /tmp. Raises NoSuchProcess, AttachError (denied, tmp)."""
    try:
        return os.open(fs.inside(target.pid, "/tmp"), _DIRECTORY)
    except PermissionError:
        if not has_our_tmp(fs, target.jvm):
            raise denied(fs, target, f"/proc/{target.pid}/root/tmp") from None
        return os.open("/tmp", _DIRECTORY)
    except OSError as error:  # none, a file, a loop of links
        check_same(fs, target)
        why = f"{error.strerror}: the JVM cannot make its socket or a file there"
        raise AttachError("tmp", target.who, why=why, advice="make it a directory where the JVM runs") from None


class Listener:
    """A JVM's listener, by the socket in its /tmp. `as_target`: connect with the JVM's own IDs, the only ones JDK 8 accepts."""

    def __init__(self, fs: ProcFS, target: AttachTarget, deadline: Deadline, *, as_target: bool) -> None:
        self.fs, self.target, self.deadline, self.as_target = fs, target, deadline, as_target
        self.path = f"/tmp/{target.socket_name}"
        self.tmp = open_tmp(fs, target)  # closed by the caller
        self._ignored: tuple[int, int] | None = None

    def exists(self) -> bool:
        """Whether something is at the socket's path."""
        return self._seen() is not None

    def ignore(self) -> None:
        """From now on take the socket that is there for none: its listener has ended, and the next one replaces it."""
        self._ignored = self._seen()

    def _seen(self) -> tuple[int, int] | None:
        try:
            found = os.lstat(self.target.socket_name, dir_fd=self.tmp)
        except OSError:
            return None
        return found.st_dev, found.st_ino

    def connect(self) -> socket.socket:
        """Connect, and prove who listens. Raises NoListenerError, AttachError (socket-insecure, socket-foreign, denied)."""
        name = self.target.socket_name
        try:
            found = os.lstat(name, dir_fd=self.tmp)
        except FileNotFoundError:
            raise NoListenerError(orphan=False) from None
        except PermissionError:
            raise denied(self.fs, self.target, self.path, "CAP_DAC_READ_SEARCH") from None
        if self._ignored == (found.st_dev, found.st_ino):
            raise NoListenerError(orphan=False)
        if not stat.S_ISSOCK(found.st_mode):
            kind = f"a {kind_of(found.st_mode)}"
            raise AttachError("socket-insecure", self.target.who, path=self.path, kind=kind, uid=found.st_uid)
        connection = self._connected(f"/proc/self/fd/{self.tmp}/{name}")
        try:
            self._prove_peer(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _prove_peer(self, connection: socket.socket) -> None:
        peer = _credentials(connection)[0]
        if peer != self.target.pid:
            other = f"process {peer}" if peer else "a process in a PID namespace that is not visible from here"
            raise AttachError("socket-foreign", self.target.who, path=self.path, other=other, peer=peer)

    def _connected(self, address: str) -> socket.socket:
        pause = FIRST_PAUSE_S
        while True:
            try:
                if self.as_target:
                    # The JVM sees the IDs that the connecting process had at that moment; the connection itself is ours.
                    return socket.socket(fileno=as_user(self.target, lambda: _connect_unix(address).detach()))
                return _connect_unix(address)
            except BlockingIOError:  # its queue of five is full
                self.deadline.pause(pause, "place in the queue of its listener")
                pause = min(pause * 2, LONGEST_PAUSE_S)
            except ConnectionRefusedError:
                raise NoListenerError(orphan=True) from None
            except FileNotFoundError:
                raise NoListenerError(orphan=False) from None
            except PermissionError:
                capabilities = "CAP_SETUID CAP_SETGID" if self.as_target else "CAP_DAC_OVERRIDE"
                raise denied(self.fs, self.target, self.path, capabilities) from None

    def settle(self) -> socket.socket | None:
        """Wait for the socket of a listener that another client has just started. None: it made none."""
        begun = self.deadline.spent()
        while self.deadline.spent() - begun < _SETTLE_S:
            self.deadline.pause(SETTLE_STEP_S, "socket")
            try:
                return self.connect()
            except NoListenerError:
                continue
        return None


def listener_of(path: str) -> tuple[int, int] | None:
    """(PID, effective UID) of the process that listens on a socket, as they were at its listen(); None where none does."""
    try:
        with _connect_unix(path) as connection:
            return _credentials(connection)
    except OSError:
        return None


def listener_at(path: str) -> tuple[bool | None, int | None]:
    """(alive, the listener's PID in our namespace) of a socket's path. Connects and closes; nothing is sent.

    Alive None: unknown (no rights). A listener whose queue is full is alive, with the PID None; 0: a PID that we cannot see.
    """
    try:
        with _connect_unix(path) as connection:
            return True, _credentials(connection)[0]
    except BlockingIOError:
        return True, None
    except (ConnectionRefusedError, FileNotFoundError):
        return False, None
    except OSError:
        return None, None


def _credentials(connection: socket.socket) -> tuple[int, int]:
    """(PID, effective UID) of the process on the other side; PID 0 where our PID namespace does not contain it."""
    pid, uid, _ = _UCRED.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size))
    return pid, uid


def _connect_unix(address: str) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK)
    try:
        connection.connect(address)
    except BaseException:
        connection.close()
        raise
    return connection


def has_ids(target: AttachTarget) -> bool:
    """Whether our effective IDs are the JVM's."""
    return (os.geteuid(), os.getegid()) == (target.euid, target.egid)


def as_user(target: AttachTarget, act: Callable[[], int]) -> int:
    """The fd that `act` returns, with the JVM's effective IDs: in a child where root must take them on. Raises OSError."""
    if os.geteuid() != 0 or has_ids(target):
        return act()
    ours, theirs = socket.socketpair()
    with ours, theirs:
        child = os.fork()
        if not child:
            _act_in_child(target, act, theirs)
        theirs.close()
        try:
            message, fds, _, _ = socket.recv_fds(ours, 4, 1)
        finally:
            os.waitpid(child, 0)
    code = int.from_bytes(message, "little")
    if code or not fds:
        raise OSError(code or errno.ECHILD, os.strerror(code or errno.ECHILD))
    return fds[0]


def _act_in_child(target: AttachTarget, act: Callable[[], int], report: socket.socket) -> NoReturn:
    """In the child: take on the IDs (the group first, while that is still allowed), act, send the fd or the error."""
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
