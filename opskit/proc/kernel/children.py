"""Child processes that measure: forked, silent, with a socket to the parent. They end with it, whatever ends it: prctl(2), PR_SET_PDEATHSIG."""

from __future__ import annotations

import _thread
import ctypes
import errno
import gc
import json
import os
import select
import signal
import socket
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NoReturn

from opskit.errors import BugInChild, NotSupported, OpskitError, where_raised

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    Send = Callable[[Mapping[str, Any]], None]

_PR_SET_PDEATHSIG, _PR_SET_NAME = 1, 15
_IGNORED = (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTSTP)  # the terminal's, which are for the parent
_MANY_FDS = 1 << 16  # where /proc does not list them
_LARGEST_MESSAGE, _PART_BYTES = 1 << 18, 1 << 15
_MORE = b"+"  # begins a part of a message that is not its last
_END_S, _GRACE_S = 1.0, 0.02  # how long a child is waited for that is about to end, or may be
_LONGEST_POLL_MS = (1 << 31) - 1  # 24 days

_libc = ctypes.CDLL(None, use_errno=True)


class Stopped(BaseException):
    """The parent asks a child to send what it has and to end: SIGTERM."""


class Child:
    """A child process: what it sends, and its end."""

    def __init__(self, pid: int, messages: socket.socket) -> None:
        self.pid, self._messages = pid, messages
        self._is_reaped, self._status = False, 0
        self._parts = bytearray()

    def fileno(self) -> int:
        """The socket, for select(2)."""
        return self._messages.fileno()

    def receive(self) -> dict[str, Any] | None:
        """The next message, empty if only a part is there; None: none is there, or it has ended. Raises what its work raised."""
        while True:
            try:
                data = self._messages.recv(_LARGEST_MESSAGE, socket.MSG_DONTWAIT)
            except OSError:
                return {} if self._parts else None
            if not data:
                return None
            if not data.startswith(_MORE):
                break
            self._parts += data.removeprefix(_MORE)
        # Where a signal interrupts this, the message is lost; it must not begin the next one.
        whole, self._parts = self._parts + data, bytearray()
        message: dict[str, Any] = json.loads(whole)
        if "bug" in message:
            raise BugInChild(f"unexpected exception in a child process: {message['bug']}")
        if "errno" in message:
            raise OSError(message["errno"], os.strerror(message["errno"]))
        if "error" in message:
            error = OpskitError(message["error"])
            error.lines = tuple(message["lines"])
            raise error
        return message

    def stop(self) -> None:
        """Ask it to send what it has."""
        if not self._is_reaped:
            os.kill(self.pid, signal.SIGTERM)

    def leave(self, *, has_ended: bool) -> int | None:
        """Read no more of it, without a signal: wait for it if it has ended or is about to; else it ends with us. As `reap`."""
        until_s = time.monotonic() + (_END_S if has_ended else _GRACE_S)
        has_ended = False
        while not has_ended and (left_s := until_s - time.monotonic()) > 0 and wait_for([self], left_s):
            # Not by `receive`, which a signal may have interrupted between two parts of a message.
            with suppress(OSError):
                has_ended = not self._messages.recv(_LARGEST_MESSAGE, socket.MSG_DONTWAIT)
        self._messages.close()
        return self.reap(wait=has_ended)

    def reap(self, *, wait: bool = False) -> int | None:
        """Its exit status, negative for a signal; None while it runs."""
        if not self._is_reaped:
            with suppress(ChildProcessError):
                pid, status = os.waitpid(self.pid, 0 if wait else os.WNOHANG)
                if not pid:
                    return None
                self._status = os.waitstatus_to_exitcode(status)
            self._is_reaped = True
        return self._status

    def end(self) -> None:
        """Kill and reap it."""
        if not self._is_reaped:
            with suppress(OSError):  # where a real-time thread keeps its CPU, it could not even end there
                os.sched_setaffinity(self.pid, os.sched_getaffinity(0))
            os.kill(self.pid, signal.SIGKILL)  # not yet waited for: the PID is the child's
            with suppress(ChildProcessError):
                os.waitpid(self.pid, 0)
            self._is_reaped = True
            self._messages.close()


def start_child(work: Callable[[Send], None], keep: Iterable[int] = (), *, patient: bool = False) -> Child:
    """Do the work in a child, which has only these fds open. Raises NotSupported where no process can be started.

    Called in a Guard; the caller calls `end` or `leave`. Ctrl-C does not reach the child; SIGTERM raises Stopped in it.
    `patient`: it waits until the parent has room for a message, which may be of any size and come from any thread; otherwise that
    message is lost.
    """
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    parent = os.getpid()
    try:
        pid = fork()
    except NotSupported:
        ours.close()
        theirs.close()
        raise
    if pid == 0:
        _run(work, theirs, parent, {theirs.fileno(), *keep}, patient=patient)
    theirs.close()
    return Child(pid, ours)


def wait_for(children: Collection[Child], timeout_s: float) -> list[Child]:
    """The children that have sent something, or have ended, as soon as there are any; none after the timeout."""
    poller = select.poll()  # select() ends at fd 1023
    by_fd = {child.fileno(): child for child in children}
    for number in by_fd:
        poller.register(number, select.POLLIN)
    return [by_fd[number] for number, _ in poller.poll(min(max(timeout_s, 0) * 1000, _LONGEST_POLL_MS))]


def answer_of(child: Child, timeout_s: float) -> dict[str, Any]:
    """What a child sends next. Raises what its work raised; ChildProcessError where it has ended, TimeoutError."""
    until_s = time.monotonic() + timeout_s
    message: dict[str, Any] | None = {}
    while message == {}:  # or only a part
        if not wait_for([child], until_s - time.monotonic()):
            raise TimeoutError(errno.ETIMEDOUT, f"no answer within {timeout_s:g} s")
        message = child.receive()
    if message is None:
        raise ChildProcessError(errno.ECHILD, "the process that measures has ended")
    return message


def pin(cpus: Collection[int]) -> None:
    """Let this process run on these CPUs only. Raises OSError (EINVAL) where none of them is online and in its cpuset."""
    os.sched_setaffinity(0, cpus)


def fork() -> int:
    """As os.fork. Raises NotSupported where no process can be started."""
    try:
        return os.fork()
    except OSError as error:
        why = f"cannot start a child process: {error.strerror}"
        raise NotSupported(f"{why}; opskit limits shows which limit is reached") from None


def close_from(first: int) -> None:
    """Close the fds from this one on. Python 3.9 and kernels before 5.9 close each number, open or not."""
    try:
        last = max(map(int, os.listdir("/proc/self/fd")))  # a number: the kernel's names
    except OSError:
        last = _MANY_FDS
    os.closerange(first, last + 1)


def _run(
    work: Callable[[Send], None], messages: socket.socket, parent: int, keep: set[int], *, patient: bool
) -> NoReturn:
    send = _sender(messages, patient=patient)
    try:
        signal.signal(signal.SIGTERM, _stop)
        for number in _IGNORED:
            signal.signal(number, signal.SIG_IGN)
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:  # it ended before that
            os._exit(0)
        _libc.prctl(_PR_SET_NAME, b"opskit-measure", 0, 0, 0)
        _close_others(keep)
        gc.disable()
        work(send)
    except Stopped:
        pass
    except OSError as error:
        send({"errno": error.errno or errno.EIO})
    except OpskitError as error:
        send({"error": str(error), "lines": error.lines})
    except BaseException as error:  # noqa: BLE001  (the parent ends with it as with its own)
        send({"bug": where_raised(error)})
    finally:
        os._exit(0)


def _sender(messages: socket.socket, *, patient: bool) -> Send:
    flags, lock = 0 if patient else socket.MSG_DONTWAIT, _thread.allocate_lock()

    def send(message: Mapping[str, Any]) -> None:
        data = json.dumps(message).encode()
        with suppress(BlockingIOError, BrokenPipeError), lock:  # a parent that is slow gets the next one
            while patient and len(data) > _PART_BYTES:
                messages.send(_MORE + data[:_PART_BYTES])
                data = data[_PART_BYTES:]
            messages.send(data, flags)

    return send


def _stop(_number: int, _frame: object) -> NoReturn:
    raise Stopped


def _close_others(keep: set[int]) -> None:
    null = os.open(os.devnull, os.O_RDWR)
    for number in {0, 1, 2} - keep:  # ours may have such a number where opskit was started without one of them
        os.dup2(null, number)
    last = 2
    for number in sorted(keep):
        os.closerange(last + 1, number)
        last = max(last, number)
    close_from(last + 1)
