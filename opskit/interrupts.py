"""Signals that end a run (SIGINT, SIGTERM, SIGHUP) as exceptions, and guards for what must be undone.

    with Guard():
        make()                    # a signal waits
        try:
            with Interruptible(): # a signal raises, once
                use()
        finally:
            undo()                # a signal waits

Outside of guards every signal raises, so that a second Ctrl-C ends a long report. A waiting signal raises when the last
guard is left. A forked child ends by the signal's default action and never runs the parent's cleanup.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    import signal as _signal
    from types import FrameType, TracebackType
else:
    import _signal  # `signal` turns every number into an enum, which costs a millisecond of start-up

_ENDING = (_signal.SIGINT, _signal.SIGTERM, _signal.SIGHUP)
_AGAIN = 0.001  # seconds from a swallowed signal until it raises again


class Terminated(KeyboardInterrupt):
    """SIGTERM or SIGHUP came. It unwinds like Ctrl-C, also where Ctrl-C shows the results so far."""


class _State:
    """The handler's state, one a process: handlers run in the main thread only."""

    pid = guards = 0
    armed = ending = False  # armed: whether a signal may raise now, within guards
    waiting = 0  # a signal that came in a guard and is not raised yet
    ended_by = 0  # SIGTERM or SIGHUP, once one came


_state = _State()


def install() -> None:
    """Turn the signals into exceptions. An ignored one (nohup, a background job) stays ignored."""
    _state.pid = os.getpid()
    for number in _ENDING:
        if _signal.getsignal(number) in (_signal.SIG_DFL, _signal.default_int_handler):
            _signal.signal(number, _handle)
    sys.unraisablehook = _raise_again


def note(number: int) -> None:
    """Remember a signal that another handler took: SIGTERM and SIGHUP end the run."""
    if number != _signal.SIGINT:
        _state.ended_by = _state.ended_by or number


def hold() -> None:
    """Let no signal raise any more: the run is ending."""
    _state.ending = True


def end_by_signal() -> None:
    """End by SIGTERM or SIGHUP if one came."""
    if _state.ended_by:
        _end_by(_state.ended_by)


def _end_by(number: int) -> NoReturn:
    """End by a signal's default action, so that the parent sees the signal."""
    _signal.signal(number, _signal.SIG_DFL)
    os.kill(os.getpid(), number)
    os._exit(128 + number)  # PID 1 of a container survives its own signals


def _handle(number: int, frame: FrameType | None) -> None:
    if os.getpid() != _state.pid:
        _end_by(number)
    note(number)
    # This signal may have interrupted the handling of another one before that was noted, and raises out of it.
    for interrupted in (frame, frame and frame.f_back):
        if interrupted is not None and interrupted.f_code is _handle.__code__:
            note(interrupted.f_locals["number"])
    if _state.ending:
        return
    if _state.guards and not _state.armed:
        _state.waiting = number
    elif _is_in_hook(frame):
        _raise_later()
    else:
        _raise(number)


def _raise(number: int) -> NoReturn:
    _state.armed, _state.waiting = False, 0
    raise KeyboardInterrupt if number == _signal.SIGINT else Terminated


def _raise_again(args: sys.UnraisableHookArgs) -> None:
    """Raise a signal once more that came in a finalizer or a weakref callback: Python drops what they raise."""
    if not issubclass(args.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(args)
        return
    _raise_later()


def _raise_later() -> None:
    """Raise by a timer: Python drops what the hook raises, too. It repeats, as the hook may take longer than its interval."""
    _signal.signal(_signal.SIGALRM, _raise_now)
    _signal.setitimer(_signal.ITIMER_REAL, _AGAIN, _AGAIN)


def _raise_now(_alarm: int, frame: FrameType | None) -> None:
    if not _is_in_hook(frame):
        _signal.setitimer(_signal.ITIMER_REAL, 0)
        _handle(_state.ended_by or _signal.SIGINT, frame)


def _is_in_hook(frame: FrameType | None) -> bool:
    while frame is not None and frame.f_code is not _raise_again.__code__:
        frame = frame.f_back
    return frame is not None


class Guard:
    """Make, use and undo something: signals wait, except in the part in `Interruptible`."""

    # The order of the assignments matters: a signal may come between any two of them.
    _was_armed = False

    def __enter__(self) -> None:
        """Let signals wait."""
        self._was_armed, _state.armed = _state.armed, False
        _state.guards += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Raise a waiting signal, unless one is unwinding already."""
        interrupted = isinstance(error, KeyboardInterrupt)
        _state.guards -= 1
        _state.armed = self._was_armed and not interrupted
        if _state.waiting and not interrupted and (_state.armed or not _state.guards):
            _raise(_state.waiting)


class Interruptible:
    """The part of a guard in which one signal raises; later ones wait."""

    def __enter__(self) -> None:
        """Raise a waiting signal, or the next one."""
        _state.armed = True
        if _state.waiting:
            _raise(_state.waiting)

    def __exit__(self, *_: object) -> None:
        """Let signals wait again."""
        _state.armed = False
