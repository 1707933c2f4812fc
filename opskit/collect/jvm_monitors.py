"""Look at who waits for whose monitor in JVMs, several times within a window, in their memory: nothing is sent, none is paused.

The table of a libjvm's data structures is read once for all JVMs that run it.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from opskit.errors import BadInput, NotSupported
from opskit.jvm.discover import HOTSPOT
from opskit.jvm.mapped_files import parse_jvm_maps
from opskit.jvm.memory.monitors import TYPES, Monitors, Wait
from opskit.jvm.memory.vmstructs import find_libjvm, read_vmstructs
from opskit.proc.files.status import parse_status
from opskit.proc.files.syscall import parse_syscall
from opskit.proc.fs import optional
from opskit.proc.memory import ProcessMemory
from opskit.proc.thread_names import thread_name
from opskit.quantities import integer
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from opskit.host import Host
    from opskit.jvm.discover import Jvm
    from opskit.jvm.memory.vmstructs import VmStructs

T = TypeVar("T")
_MOST_JVMS = 50
_MOST_THREADS = 5_000  # of a JVM; each costs a read
_ENOUGH_LOOKS = 3  # a busy monitor may have the same holder in two of them
_VERSION = "java.property.java.vm.version"


class Party(NamedTuple):
    """A thread: its TID here, 0: unknown; its name; the system call that it sleeps in, None: none, or unknown."""

    tid: int
    name: str
    call: str | None = None


class Waits(NamedTuple):
    """What every look at a JVM showed: who waits for whom, by addresses; the threads that hold. `seconds`: from the first to the last.

    `awake`: those that hold and were on a CPU meanwhile, so that they may have let go; known where the looks are too few to show it.
    """

    jvm: Jvm
    seconds: float
    waits: Mapping[int, Wait]
    parties: Mapping[int, Party]
    awake: frozenset[int] = frozenset()


class MonitorWatch:
    """Looks at these JVMs when it is made, and with each `look`.

    Numbers of JVMs: `closed` are closed to us, `unlike` have no table of monitors, `left_out` are too many.
    """

    def __init__(self, host: Host, jvms: Iterable[Jvm]) -> None:
        self._host = host
        self._watched: list[_Watched] = []
        self.closed = self.unlike = 0
        tables: dict[object, VmStructs] = {}
        hotspot = [jvm for jvm in jvms if jvm.kind == HOTSPOT and host.fs.has_rates]
        self.left_out = len(hotspot[_MOST_JVMS:])
        for jvm in hotspot[:_MOST_JVMS]:
            try:
                self._watched.append(_Watched(host, jvm, tables))
            except OSError:
                self.closed += 1
            except (NotSupported, BadInput):
                self.unlike += 1
        self._begun_s = host.monotonic()
        self.look()

    def look(self) -> None:
        """Keep what is still so."""
        for each in self._watched:
            with suppress(OSError):
                each.look()

    @property
    def crowded(self) -> int:
        """How many had too many threads at the last look."""
        return sum(each.is_crowded for each in self._watched)

    def result(self) -> Sequence[Waits]:
        """The JVMs in which threads wait."""
        seconds = self._host.monotonic() - self._begun_s
        found = [
            Waits(each.jvm, seconds, each.waits, each.parties(), each.awake()) for each in self._watched if each.waits
        ]
        self.close()
        return found

    def close(self) -> None:
        """Close the memory of the JVMs."""
        for each in self._watched:
            each.memory.close()


class _Watched:
    def __init__(self, host: Host, jvm: Jvm, tables: dict[object, VmStructs]) -> None:
        self.host, self.jvm = host, jvm
        self.memory = ProcessMemory(host.fs, jvm.pid)
        self.waits: dict[int, Wait] = {}
        self._looks = 0
        self._slept: dict[
            int, int | None
        ] = {}  # how often each thread that holds had given up its CPU at the first look, of a capture
        self.is_crowded = False
        try:
            self._vm = self._unless_it_hangs(self._table, tables)
            self._monitors = Monitors(self._vm, self.memory)
        except BaseException:
            self.memory.close()
            raise

    def _unless_it_hangs(self, read: Callable[..., T], *arguments: object) -> T:
        """read(*arguments), which reads the memory. Raises OSError where another check hangs in it."""
        fs = self.host.fs
        return read(*arguments) if fs.kept is None else fs.kept.ask(fs.path(self.jvm.pid, "mem"), read, *arguments)

    def _table(self, tables: dict[object, VmStructs]) -> VmStructs:
        fs, pid = self.host.fs, self.jvm.pid
        maps = fs.load(parse_jvm_maps, pid, "maps")
        version = self.jvm.perf.text(_VERSION) if self.jvm.perf else None
        if maps.libjvm is None or version is None:
            return read_vmstructs(fs, pid, self.memory, TYPES)
        key = maps.libjvm.path, maps.libjvm.inode, version
        if key not in tables:
            tables[key] = read_vmstructs(fs, pid, self.memory, TYPES)
        return _moved(tables[key], find_libjvm(fs, pid)[0])

    def look(self) -> None:
        """Read all waits again, and keep those that are as before."""
        self.memory.forget()
        found = self._unless_it_hangs(self._monitors.waits, _MOST_THREADS)
        self.is_crowded = found is None
        now = found or {}
        if self._looks:
            now = {thread: wait for thread, wait in self.waits.items() if now.get(thread) == wait}
        self.waits = now
        if not self._looks and self.host.is_recorded:
            self._slept = self._sleeps()
        self._looks += 1

    def parties(self) -> dict[int, Party]:
        """The threads that hold what others wait for; each of a deadlock does."""
        threads = {wait.holder for wait in self.waits.values()} - {0}
        tids = {thread: self._monitors.tid(thread) for thread in threads}
        outer = self._outer_tids() if self.jvm.ns_pid != self.jvm.pid else {tid: tid for tid in tids.values()}
        names = self._names(outer)
        found, fs = {}, self.host.fs
        for thread, tid in tids.items():
            text = fs.maybe(str, self.jvm.pid, "task", outer.get(tid, 0), "syscall", default="")
            call = parse_syscall(text, fs.machine)
            found[thread] = Party(outer.get(tid, 0), names.get(tid) or f"thread {tid}", call and call.name)
        return found

    def awake(self) -> frozenset[int]:
        """Of a capture with few samples: the threads that hold and did not sleep all the time."""
        if self._looks >= _ENOUGH_LOOKS:
            return frozenset()
        now = self._sleeps()
        return frozenset(thread for thread, before in self._slept.items() if now.get(thread, before) != before)

    def _sleeps(self) -> dict[int, int | None]:
        fs, pid = self.host.fs, self.jvm.pid
        tids = {wait.holder: self._monitors.tid(wait.holder) for wait in self.waits.values() if wait.holder}
        outer = self._outer_tids() if self.jvm.ns_pid != pid else {tid: tid for tid in tids.values()}
        found = {
            thread: fs.maybe(parse_status, pid, "task", outer.get(tid, 0), "status") for thread, tid in tids.items()
        }
        return {
            thread: status and integer(status.fields.get("voluntary_ctxt_switches", ""))
            for thread, status in found.items()
        }

    def _outer_tids(self) -> dict[int, int]:
        """Our TIDs by those that the JVM itself sees."""
        fs, pid = self.host.fs, self.jvm.pid
        found = (
            (tid, fs.maybe(parse_status, pid, "task", tid, "status")) for tid in optional(fs.tids, pid, default=[])
        )
        return {(status.ns_pids or (tid,))[-1]: tid for tid, status in found if status is not None}

    def _names(self, outer: Mapping[int, int]) -> dict[int, str | None]:
        """The names by the JVM's TIDs: in full, else as the kernel has cut them."""
        from opskit.jvm.memory.flags import read_flags
        from opskit.jvm.memory.objects import OBJECT_FLAGS, Objects
        from opskit.jvm.memory.threads import JavaThreads

        fs, pid = self.host.fs, self.jvm.pid
        comms = {tid: thread_name(fs, pid, each) for tid, each in outer.items()}
        try:
            vm = read_vmstructs(fs, pid, self.memory)
            flags = fs.calls.work_out(
                fs, "object_flags", "dict[str, bool | int | float | str | None]", (pid,),
                lambda machine: read_flags(vm, self.memory if machine is fs else ProcessMemory(machine, pid), OBJECT_FLAGS),
            )  # fmt: skip
            threads = JavaThreads(vm, self.memory, Objects(vm, self.memory, flags), comms.get)
        except (OSError, NotSupported, BadInput):
            return comms
        return {tid: threads.name(tid) or comm for tid, comm in comms.items()}


def _moved(vm: VmStructs, begin: int) -> VmStructs:
    """The same table for a JVM that has the library at another address."""
    by = begin - vm.libjvm
    fields = {name: each._replace(at=each.at + by) if each.is_static else each for name, each in vm.fields.items()}
    return vm._replace(fields=fields, libjvm=begin)
