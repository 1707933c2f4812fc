"""What one JVM's MBeans are read from: its counters, its memory, the kernel's files. Nothing is sent to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from opskit.errors import BadInput, NoSuchProcess, NotSupported, OpskitError
from opskit.jvm.discover import HOTSPOT, OPENJ9, find_jvm
from opskit.jvm.launch import jdk_release, major_of
from opskit.jvm.perfdata.hsperfdata import parse_hsperfdata
from opskit.proc.files.smaps import parse_smaps
from opskit.proc.memory import c_string, i32, u64
from opskit.proc.rights import as_owner_or_root

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from opskit.host import Host
    from opskit.jvm.discover import Jvm
    from opskit.jvm.memory.flags import FlagValue
    from opskit.jvm.memory.objects import Objects
    from opskit.jvm.memory.vmstructs import VmStructs
    from opskit.jvm.perfdata.hsperfdata import PerfData
    from opskit.proc.fs import ProcFS
    from opskit.proc.memory import Memory
    from opskit.proc.touched_memory import TouchedMemory

_COLLECTOR_FLAGS = (
    "UseG1GC",
    "UseSerialGC",
    "UseParallelGC",
    "UseZGC",
    "UseShenandoahGC",
    "UseEpsilonGC",
    "UseConcMarkSweepGC",
)
_OTHER_FLAGS = ("ActiveProcessorCount", "UseContainerSupport")
_LOGGED = (("gc",), ("class", "load"))
_OF_MEMORY = "memory pools, collectors, buffer pools and flags"
_MOST_ARGUMENTS, _LONGEST_ARGUMENT = 4096, 1 << 16
_LARGEST_COUNTERS, _LONGEST_RELEASE = 16 << 20, 64
_SAFEPOINTS = "_ZN20SafepointSynchronize18_safepoint_counterE"  # odd in a safepoint
_NO_CAUSE = "No GC"
_MOST_TRIES, _PAUSE_S = 24, 0.005
_Found = TypeVar("_Found")
_VERSIONS = ("java.property.java.version", "java.property.java.vm.specification.version")


class Sources:
    """One HotSpot JVM, looked at repeatedly. `missing`: what could not be read in this look, and what to do."""

    def __init__(self, host: Host, pid: int) -> None:
        """Raise NoSuchProcess, NotAJvm, NotPermitted; NotSupported for other JVMs than HotSpot."""
        self.host, self.pid = host, pid
        self.jvm = self._find()
        self.missing: list[str] = []
        self.at_s = self.at_monotonic_s = 0.0  # of the look, by the wall clock and by the monotonic one
        self.structs: VmStructs | None = None
        self.variables: dict[str, int] = {}
        self.flags: dict[str, FlagValue] = {}
        self.perf: PerfData | None = None
        self._memory: TouchedMemory | None = None
        self._objects: Objects | None = None
        self._classes: Mapping[str, int] = {}
        self._logs: Mapping[tuple[str, ...], bool | None] = {}

    def _find(self) -> Jvm:
        jvm = find_jvm(self.host.fs, self.pid, self.host.clock_ticks)
        if jvm.kind == HOTSPOT or (jvm.kind != OPENJ9 and jvm.perf is not None):
            return jvm
        if jvm.kind == OPENJ9:
            raise NotSupported(
                f"{self.pid} is an Eclipse OpenJ9 JVM: only HotSpot shares its counters and its memory's layout"
            )
        raise jvm.no_perf or NotSupported(f"{self.pid} is a GraalVM native image, which shares no counters")

    def look(self) -> None:
        """Read anew what changes. Raises as the constructor; NoSuchProcess where another process has the PID by now."""
        before, self.jvm = self.jvm, self._find()
        if before.start_ticks != self.jvm.start_ticks:
            raise NoSuchProcess(self.pid, "it ended while it was watched")
        self.at_s, self.at_monotonic_s = self.host.now().timestamp(), self.host.monotonic()
        self.missing, self._classes, self._logs = [], {}, {}
        self.perf = self.jvm.perf
        if self.jvm.kind == HOTSPOT:
            self._read_memory()
        else:
            self.missing.append(f"{self.pid} is a GraalVM native image: what only HotSpot's memory tells is left out")
        if self.perf is None:
            self.perf = self._private_counters()
        if self.perf is None and self.jvm.no_perf is not None:
            self.missing.append(str(self.jvm.no_perf))

    @property
    def memory(self) -> Memory | None:
        """The JVM's memory; None: no rights, or no layout of it."""
        return self._memory if self.structs is not None else None

    @property
    def opened(self) -> tuple[VmStructs, Memory]:
        """The layout and the memory. Raises NotSupported where they could not be read; `missing` says why."""
        if self.structs is None or self._memory is None:
            raise NotSupported("the JVM's memory was not read")
        return self.structs, self._memory

    def objects(self) -> Objects:
        """Its heap. Raises NotSupported."""
        structs, memory = self.opened
        if self._objects is None:
            from opskit.jvm.memory.objects import Objects

            self._objects = Objects(structs, memory, self.flags)
        return self._objects

    def boot_classes(self) -> Mapping[str, int]:
        """Those classes that the beans are read from, as far as they are loaded. Raises NotSupported."""
        if not self._classes:
            from opskit.jvm.memory.buffer_pools import BUFFER_CLASSES
            from opskit.jvm.memory.finalization import FINALIZATION_CLASSES

            names, (structs, _), flags = (*BUFFER_CLASSES, *FINALIZATION_CLASSES), self.opened, self.flags
            from opskit.jvm.memory.objects import Objects

            def find(memory: TouchedMemory) -> dict[str, int]:
                return Objects(structs, memory, flags).classes.boot_classes(names)

            self._classes = self.worked_out("boot_classes", "dict[str, int]", find)
        return self._classes

    def worked_out(self, name: str, returns: str, make: Callable[[TouchedMemory], _Found]) -> _Found:
        """What is made of much of the memory, and is small: make(memory)."""
        from opskit.proc.touched_memory import TouchedMemory

        fs, pid, ours = self.host.fs, self.pid, self._memory

        def work(machine: ProcFS) -> _Found:
            if machine is fs and ours is not None:
                return make(ours)
            memory = TouchedMemory(machine, pid, machine.load(parse_smaps, pid, "maps"))
            try:
                return make(memory)
            finally:
                memory.close()

        try:
            return fs.calls.work_out(fs, name, returns, (pid,), work)
        except OSError as error:  # it has ended, or is not in a capture
            raise NotSupported(f"{_OF_MEMORY}: {fs.path(pid, 'mem')}: {error.strerror}") from None

    @property
    def release(self) -> str | None:
        """The JDK's version; None: unknown."""
        counted = self.text(*_VERSIONS)
        return counted or jdk_release(self.host.fs, self.jvm).get("JAVA_VERSION") or self._built_release()

    def _built_release(self) -> str | None:
        """That of libjvm: of `17.0.9+9` or `17.0.9+9-Debian`; None: of JDK 8, which has the version of HotSpot (`25.432-b06`)."""
        at = self.structs.find(("Abstract_VM_Version", "_s_vm_release")) if self.structs is not None else None
        text = c_string(self._memory, u64(self._memory, at) or 0, _LONGEST_RELEASE) if at and self._memory else None
        release, plus, _ = (text or b"").decode("latin-1").partition("+")
        return release if plus else None

    @property
    def major(self) -> int | None:
        """The feature release: 17."""
        return major_of(self.release) if self.release else None

    def number(self, name: str) -> int | None:
        """A counter; None: not counted, or negative, which only a damaged file has."""
        value = self.perf.number(name) if self.perf is not None else None
        return value if value is not None and value >= 0 else None

    def text(self, *names: str) -> str | None:
        """The first text of these counters that is there."""
        found = (self.perf.text(name) for name in names) if self.perf is not None else ()
        return next(filter(None, found), None)

    def variable(self, name: str, size: int) -> int | None:
        """The unsigned value of a static variable of libjvm; None: not known here."""
        at = self.variables.get(name)
        if at is None or self._memory is None:
            return None
        data = self._memory.read(at, size)
        return int.from_bytes(data, "little") if len(data) == size else None

    def steady(self, what: str, read: Callable[[], _Found]) -> _Found | None:
        """What `read` gives of the JVM's memory between two safepoints, as MBeans see it; `read` gives None to be called again.

        None: it never was read so, which `missing` tells.
        """
        said = len(self.missing)
        for _ in range(_MOST_TRIES):
            before = self._safepoint_count()
            if before is None:
                if not self.host.can_look_after(_PAUSE_S):
                    break
                self.host.sleep(_PAUSE_S)
                continue
            self.forget()
            found = read()
            if found is not None and self._safepoint_count() == before:
                return found
            del self.missing[said:]
        self.missing.append(f"{what}: the JVM was in a safepoint, or reached one, whenever it was read; try again")
        return None

    def forget(self) -> None:
        """Read the JVM's memory anew from now on."""
        if self._memory is not None:
            self._memory.forget()

    def _safepoint_count(self) -> int | None:
        """That of the safepoints so far; None: in one. Where libjvm is stripped, by the JVM's counters, which tell collections only."""
        at = self.variables.get(_SAFEPOINTS)
        data = self._memory.read_anew(at, 4) if at is not None and self._memory is not None else b""
        if len(data) == 4:
            count = int.from_bytes(data, "little")
            return None if count % 2 else count
        perf = self._find().perf
        if perf is None:
            return 0
        is_collecting = perf.text("sun.gc.cause") not in (None, _NO_CAUSE)
        is_paused = is_collecting and not (self.flags.get("UseZGC") or self.flags.get("UseShenandoahGC"))
        return None if is_paused else perf.number("sun.rt.safepoints") or 0

    def logs_info(self, *tags: str) -> bool | None:
        """Whether the JVM logs these tags on level info. None: unknown."""
        if self._memory is None:
            return None
        from opskit.jvm.memory.log_levels import read_logs_info

        if not self._logs:
            self._logs = read_logs_info(self._memory, self.variables, _LOGGED)
        return self._logs.get(tags)

    def arguments(self) -> list[str] | None:
        """The JVM's options, as it keeps them: of files of flags, then of the environment and the command line. None: unknown."""
        try:
            structs, memory = self.opened
            lists = [
                (structs.at(("Arguments", f"_num_jvm_{kind}")), structs.at(("Arguments", f"_jvm_{kind}_array")))
                for kind in ("flags", "args")
            ]
        except NotSupported:
            return None
        found: list[str] = []
        for count_at, array_at in lists:
            count, array = i32(memory, count_at), u64(memory, array_at) or 0
            if count is None or not 0 <= count <= _MOST_ARGUMENTS:
                return None
            for number in range(count):
                text = c_string(memory, u64(memory, array + 8 * number) or 0, _LONGEST_ARGUMENT)
                if text is None:
                    return None
                found.append(text.decode("utf-8", "replace"))
        return found

    def _read_memory(self) -> None:
        fs, pid = self.host.fs, self.pid
        try:
            if self._memory is None or self.structs is None:
                self._open()
            else:
                self.forget()
        except PermissionError:
            advice = as_owner_or_root(fs, "CAP_SYS_PTRACE", pid, self.jvm.uid)
            self.missing.append(f"{_OF_MEMORY}: permission denied for {fs.path(pid, 'mem')}: {advice}")
        except OSError as error:
            self.missing.append(f"{_OF_MEMORY}: {fs.path(pid, 'mem')}: {error.strerror}")
        except OpskitError as error:
            self.missing.append(str(error))

    def _open(self) -> None:
        from opskit.collect.jmx.beans_of_runtime import START
        from opskit.collect.jmx.beans_of_system import SYSTEM_VARIABLES
        from opskit.collect.jmx.beans_of_threads import THREAD_VARIABLES
        from opskit.jvm.memory.flags import read_flags
        from opskit.jvm.memory.log_levels import LOG_VARIABLES
        from opskit.jvm.memory.memory_service import MANAGERS, POOLS
        from opskit.jvm.memory.objects import OBJECT_FLAGS
        from opskit.jvm.memory.pool_use import USE_FLAGS, USE_VARIABLES
        from opskit.jvm.memory.variables import read_variables
        from opskit.jvm.memory.vmstructs import read_vmstructs
        from opskit.proc.touched_memory import TouchedMemory

        fs, pid = self.host.fs, self.pid
        if self._memory is None:
            self._memory = TouchedMemory(fs, pid, fs.load(parse_smaps, pid, "maps"))
        structs = read_vmstructs(fs, pid, self._memory)
        names = {*_COLLECTOR_FLAGS, *_OTHER_FLAGS, *USE_FLAGS, *OBJECT_FLAGS}
        self.flags = self.worked_out(
            "jvm_flags", "dict[str, bool | int | float | str | None]", lambda memory: read_flags(structs, memory, names)
        )
        self.structs = structs
        try:
            self.variables = read_variables(
                fs,
                pid,
                (
                    _SAFEPOINTS,
                    START,
                    POOLS,
                    MANAGERS,
                    *USE_VARIABLES,
                    *THREAD_VARIABLES,
                    *SYSTEM_VARIABLES,
                    *LOG_VARIABLES,
                ),
            )
        except NotSupported as error:
            from opskit.jvm.memory.stripped import find_lists

            self.variables = find_lists(structs, self._memory, fs.load(parse_smaps, pid, "maps"))
            self.missing.append(f"Metaspace, Verbose: {error}")

    def _private_counters(self) -> PerfData | None:
        """The counters of a JVM that does not share them: it keeps all or, with -XX:-UsePerfData, a few in its own memory."""
        from opskit.jvm.memory.management_counters import read_management_counters

        try:
            structs, memory = self.opened
            start, size = (u64(memory, structs.at(("PerfMemory", field))) or 0 for field in ("_start", "_capacity"))
            data = memory.read(start, size) if start and 0 < size <= _LARGEST_COUNTERS else b""
            name = f"the memory of {self.pid}"
            found = parse_hsperfdata(data, name) if data else read_management_counters(self.host.fs, self.pid, memory)
        except (NotSupported, BadInput):
            return None
        return found if found is not None and found.accessible else None
