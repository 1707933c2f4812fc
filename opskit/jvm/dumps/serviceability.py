r"""The stacks that the serviceability agent prints of a hung or dead JVM: `jstack -F` and `-m`, `jhsdb jstack`, JDK 5 to 25.

    Attaching to process ID 31781, please wait...
    JVM version is 1.5.0_13-119
    Thread 3987: (state = BLOCKED)                                   JDK 5 to 8; on macOS Thread t@60675
     - java.lang.Object.wait(long) @bci=0 (Interpreted frame)
     - java.lang.ref.ReferenceQueue.remove(long) @bci=44, line=116 (Compiled frame)

    "Finalizer" #3 daemon prio=8 tid=0x… nid=0x469c in Object.wait() [0x…]                            JDK 9+
       java.lang.Thread.State: WAITING (on object monitor)
       JavaThread state: _thread_blocked
     - java.lang.Object.wait(long) @bci=0 (Interpreted frame)
    ␉- waiting on <0x000000069ec02f40> (a java.lang.ref.ReferenceQueue$Lock)

    ----------------- 18086 -----------------                        -m: native frames between Java's
    0x00007fc36b1116f1␉__futex_abstimed_wait_common + 0xc6
    0x00007fc35494df0a␉* T.run() bci:4 line:1 (Interpreted frame)

The agent writes no file names: a frame is `T.run(line 38)`. Source: src/jdk.hotspot.agent/.../StackTrace.java, PStack.java.
"""

from __future__ import annotations

import re

from opskit.jvm.dumps.dialect import Dialect, blocks, decoded, native_id
from opskit.jvm.dumps.thread_dump import STATES, Lock, Thread, ThreadDump, state_by_frame
from opskit.quantities import integer

_ATTACH = re.compile(rb"(?m)^Attaching to (?:process ID|core) ")
_THREAD = re.compile(
    r"(?m)^(?:Thread (?:t@)?(?P<tid>[0-9]+): \(state = (?P<state>\w+)\)|-{17} (?P<lwp>[0-9]+) -{17}"
    r'|"(?P<name>[^\n]*)" (?P<about>[^"\n]*\bnid=[^\n]*))$'
)
_FRAME = re.compile(r" - ([\w.$/+<>-]+)\([^)]*\) @bci=-?\d+(?:, line=(\d+))?(?:, pc=\w+)?(?:, Method\*=\w+)? \(")
_NATIVE = re.compile(r"0x[0-9a-f]+\s+(\* )?(\S.*)$")
_JAVA_IN_NATIVE = re.compile(r"([\w.$/+<>-]+)\([^)]*\) bci:-?\d+(?: line:(\d+))?")
_HIDDEN = re.compile(r"\+0x([0-9a-f]+)")
_JAVA_STATE = re.compile(r"java\.lang\.Thread\.State: ([A-Z_]+)")
_LOCK = re.compile(r"\s+- ([a-z][a-z ]*?) <(0x[0-9a-f]+)>(?: \(a (.*)\))?")
_VERSION = re.compile(r"(?m)^JVM version is (.*)$")
_NID = re.compile(r"\bnid=(0x[0-9a-f]+|[0-9]+)\b")
_NATIVE_ROOT = re.compile(
    r"\t(?:start_thread|clone3?|__clone\w*|_start|main|__libc_start\w*|__futex_abstimed_wait_common|\?+)\b"
)
_JAVA_ID = re.compile(r"^#([0-9]+)")


class ServiceabilityParser(Dialect):
    """Parser of the agent's stacks."""

    NAME = "jstack -F"
    HINTS = (b"Attaching to ", b"Debugger attached", b"Deadlock Detection:")
    START = re.compile(
        rb"(?m)^(?:Attaching to (?:process ID|core) |Debugger attached successfully|Deadlock Detection:$)"
    )
    FRAGMENT = re.compile(rb"(?m)^(?:Thread (?:t@)?\d+: \(state = |----------------- \d+ -----------------$)")

    def parse(self, text: bytes) -> list[ThreadDump]:
        """The dumps in the text: one for each time the agent attached."""
        return self._dumps(text, [match.start() for match in _ATTACH.finditer(text)] or [0])

    def dump(self, data: bytes) -> ThreadDump:
        """One dump, or a fragment of one."""
        text = decoded(data)
        threads: list[Thread] = []
        native, cut_off = None, False
        for header, block, is_last in blocks(_THREAD, text):
            if header["lwp"]:
                native = integer(header["lwp"])
                if not block.strip():
                    continue  # the next line names its Java thread
            if is_last and not _is_whole(block):
                cut_off = True
            else:
                threads.append(self._thread(header, block, native))
        version = _VERSION.search(text)
        return ThreadDump(self.NAME, threads, version=version and version[1], cut_off=cut_off)

    def _thread(self, header: re.Match[str], block: str, native: int | None) -> Thread:
        frames: list[str] = []
        locks: list[Lock] = []
        for line in block.split("\n"):
            if match := _FRAME.match(line):
                frames.append(_frame(match[1], match[2]))
            elif match := _NATIVE.match(line):
                frames.append(_native_frame(match[2], is_java=bool(match[1])))
            elif self.with_locks and (match := _LOCK.match(line)):
                locks.append(Lock(match[1], match[2], match[3], len(frames) - 1))
        about = header["about"] or ""
        nid, java_id = _NID.search(about), _JAVA_ID.match(about)
        stated = _JAVA_STATE.search(block)
        state = stated[1] if stated and stated[1] in STATES else _state(header["state"] or "", frames)
        if header["tid"]:
            native = integer(header["tid"])
        elif nid:
            native = native_id(nid[1])
        return Thread(
            self.table.stack(frames, state), header["name"], native, integer(java_id[1]) if java_id else None,
            " daemon " in about if about else None, locks=tuple(locks),
        )  # fmt: skip


def _is_whole(last: str) -> bool:
    """Whether the last thread is whole: it ends with a blank line; with -m, with a thread's first native frame."""
    if "\n\n" in last:
        return True
    lines = last.rstrip("\n").split("\n")
    return last.endswith("\n") and (lines[-1] == "    - None" or _NATIVE_ROOT.search(lines[-1]) is not None)


def _state(agents: str, frames: list[str]) -> str | None:
    """The Java state; the agent's BLOCKED is the VM's term for every thread that waits."""
    if agents.removesuffix("_TRANS") in ("IN_NATIVE", "IN_JAVA", "IN_VM"):
        return "RUNNABLE"
    return state_by_frame(frames) if agents.startswith("BLOCKED") else "NEW" if agents == "NEW" else None


def _frame(method: str, line: str | None) -> str:
    return _HIDDEN.sub(r"/0x\1", method) + (f"(line {line})" if line else "(Unknown Source)")


def _native_frame(words: str, *, is_java: bool) -> str:
    if is_java:
        match = _JAVA_IN_NATIVE.match(words)
        return _frame(match[1], match[2]) if match else words
    return words.rpartition(" + 0x")[0] or words
