"""Name the processes that look up absent files, from a few seconds of the kernel's tracepoints.

A child process traces. It mounts tracefs where no path leads to it, and counts failed path lookups by perf events, which
end with the child. It stops when the time is up, when the parent asks it to, and when the parent has ended.

Where perf_event_open is refused, the child makes a tracing instance instead and removes it at the end. If the child is
killed, the parent starts another one to clean up; if both are killed, the next run removes the instance.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
from typing import TYPE_CHECKING, Any, NoReturn

from opskit import interrupts
from opskit.actions.lookup_tracer import Tracer, clean_up
from opskit.analysis.dentry.lookups import Looker, Lookups
from opskit.errors import BugInChild, NotPermitted, NotSupported, TargetTimeout, where_raised
from opskit.proc.namespaces import in_first_pid_namespace
from opskit.proc.rights import how_to_be_allowed

if TYPE_CHECKING:
    from collections.abc import Callable

    from opskit.host import Host

_EVENTS = ("perf", "syscalls", "raw_syscalls")
_GRACE_S = 20.0  # for setting up and removing
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_ERRORS = {"permission": NotPermitted, "support": NotSupported, "bug": BugInChild}


def check_may_trace(host: Host) -> None:
    """Raise NotPermitted unless we may trace this machine and its PIDs are the kernel's own."""
    if not host.is_own:
        raise NotPermitted(f"{host.fs.proc} is another machine or pid namespace: --culprit can only trace this one")
    if not in_first_pid_namespace(host.fs):
        raise NotPermitted(
            "this is a pid namespace (a container): the kernel traces by the host's PIDs, which differ from those here; "
            "run opskit dentry --culprit on the host"
        )
    if not host.is_root:
        advice = how_to_be_allowed(host.fs, "CAP_SYS_ADMIN", "opskit", "dentry", "--culprit")
        raise NotPermitted(f"tracing needs root; {advice}")


def trace_failed_lookups(host: Host, seconds: float, events: tuple[str, ...] = _EVENTS) -> Lookups:
    """Trace the whole machine. Ctrl-C, SIGTERM and SIGHUP end the trace early; the result holds what was seen so far.

    `events`: the sources to try, best first. Raises NotPermitted, NotSupported, TargetTimeout.
    """
    check_may_trace(host)
    results, result_end = os.pipe()
    stop_end, stop = os.pipe()
    masked = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
    try:
        child = os.fork()
        if child == 0:
            os.close(results)
            os.close(stop)
            _run_child(lambda: Tracer(host, seconds, events, stop_end).run(), result_end)
        os.close(result_end)
        os.close(stop_end)
        answer = _answer_of(host, child, results, stop, seconds)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, masked)
        os.close(results)
        os.close(stop)
    if "error" in answer:
        raise _ERRORS[answer["error"]](answer["message"])
    lookers = []
    for row in answer.pop("lookers"):
        uid, count = row.pop("uid"), row["lookups"]
        user = None if uid is None else host.user_name(uid)
        per_s, share = count / max(answer["seconds"], 0.001), count / max(answer["total"], 1)
        lookers.append(Looker(user=user, per_s=per_s, share=share, **row))
    return Lookups(lookers=tuple(lookers), **answer)


def _answer_of(host: Host, child: int, results: int, stop: int, seconds: float) -> dict[str, Any]:
    """The child's answer. A signal that would end us first lets the child end and answer. Called with these blocked."""
    pending: list[int] = []

    def asked_to_end(number: int, _frame: object) -> None:
        pending.append(number)
        interrupts.note(number)
        os.write(stop, b"!")

    heard = [number for number in _ENDING if signal.getsignal(number) != signal.SIG_IGN]
    before = {number: signal.signal(number, asked_to_end) for number in heard}
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)
        data = _read_until(host, results, host.monotonic() + seconds + _GRACE_S)
        if not data:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            _clean_up_after(child)
            raise TargetTimeout("the tracer did not answer in time, or was killed; what it had set up was removed")
        os.waitpid(child, 0)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if signal.SIGQUIT in pending:
            os.kill(os.getpid(), signal.SIGQUIT)
    answer: dict[str, Any] = json.loads(data)
    return answer if "error" in answer else {**answer, "interrupted": bool(pending)}


def _read_until(host: Host, fd: int, deadline: float) -> bytes:
    chunks = []
    while (left := deadline - host.monotonic()) > 0:
        ready, _, _ = select.select([fd], [], [], left)
        if not ready:
            return b""
        chunk = os.read(fd, 65536)
        if not chunk:
            break
        chunks.append(chunk)
    return b"".join(chunks)


def _run_child(work: Callable[[], dict[str, Any]], result_end: int) -> NoReturn:
    """Write the result of the work, or its error, to the pipe. Signals of the terminal are the parent's to handle."""
    try:
        for number in (*_ENDING, signal.SIGPIPE):
            signal.signal(number, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)
        os.setsid()
        try:
            answer = work()
        except NotPermitted as refused:
            answer = {"error": "permission", "message": str(refused)}
        except NotSupported as refused:
            answer = {"error": "support", "message": str(refused)}
        except OSError as error:
            answer = {"error": "support", "message": f"the kernel's tracer refused: {error}"}
        except BaseException as error:  # noqa: BLE001  (the parent ends with it as with its own)
            answer = {"error": "bug", "message": where_raised(error)}
            if os.environ.get("OPSKIT_DEBUG"):
                sys.excepthook(*sys.exc_info())
        with open(result_end, "w", encoding="utf-8") as pipe:
            json.dump(answer, pipe)
    except BrokenPipeError:  # the parent has ended
        pass
    finally:
        os._exit(0)


def _clean_up_after(pid: int) -> None:
    """Remove the tracing instance of a child that was killed."""
    cleaner = os.fork()
    if cleaner == 0:
        try:
            for number in _ENDING:
                signal.signal(number, signal.SIG_IGN)
            clean_up(pid)
        finally:
            os._exit(0)
    os.waitpid(cleaner, 0)
