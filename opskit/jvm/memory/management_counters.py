"""The counters behind java.lang.management in a JVM that has no memory for counters (-XX:-UsePerfData): it keeps these few apart.

Source: src/hotspot/share/runtime/perfData.hpp (PerfData: the name, the unit, the address of the value); services/threadService.cpp,
classLoadingService.cpp, management.cpp; compiler/compileBroker.cpp.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from opskit.jvm.memory.variables import read_variables
from opskit.jvm.perfdata.hsperfdata import Counter, PerfData, Unit
from opskit.proc.memory import c_string

if TYPE_CHECKING:
    from opskit.proc.fs import ProcFS
    from opskit.proc.memory import Memory

_VARIABLES = (
    "_ZN13ThreadService20_total_threads_countE",
    "_ZN13ThreadService19_live_threads_countE",
    "_ZN13ThreadService19_peak_threads_countE",
    "_ZN13ThreadService21_daemon_threads_countE",
    "_ZN19ClassLoadingService21_classes_loaded_countE",
    "_ZN19ClassLoadingService23_classes_unloaded_countE",
    "_ZN19ClassLoadingService28_shared_classes_loaded_countE",
    "_ZN19ClassLoadingService30_shared_classes_unloaded_countE",
    "_ZN13CompileBroker23_perf_total_compilationE",
    "_ZN10Management23_begin_vm_creation_timeE",
    "_ZN10Management18_vm_init_done_timeE",
)
_ENTRY = struct.Struct("<8xQiiB15xQ")  # name, variability, unit, on the C heap, the value's address
_POINTER, _VALUE = struct.Struct("<Q"), struct.Struct("<q")
_FREQUENCY, _TICKS_PER_S = "sun.os.hrt.frequency", 1_000_000_000  # of os::elapsed_frequency() on Linux
_UNITS = {unit.value: unit for unit in Unit}
_LONGEST_NAME = 128


def read_management_counters(fs: ProcFS, pid: int, memory: Memory) -> PerfData:
    """Those that are found, under their names in hsperfdata. Raises NotSupported without a table of symbols."""
    found: dict[str, Counter] = {}
    for address in read_variables(fs, pid, _VARIABLES).values():
        entry = _read(memory, address)
        if entry is not None:
            found[entry[0]] = entry[1]
    if found:
        found[_FREQUENCY] = Counter(_TICKS_PER_S, Unit.HERTZ)
    return PerfData(f"the memory of {pid}", bool(found), found)


def _read(memory: Memory, variable: int) -> tuple[str, Counter] | None:
    pointer = memory.read(variable, _POINTER.size)
    data = memory.read(_POINTER.unpack(pointer)[0], _ENTRY.size) if len(pointer) == _POINTER.size else b""
    if len(data) < _ENTRY.size:
        return None
    name_at, _, unit, _, value_at = _ENTRY.unpack(data)
    name, value = c_string(memory, name_at, _LONGEST_NAME), memory.read(value_at, _VALUE.size)
    if not name or len(value) < _VALUE.size:
        return None
    return name.decode("latin-1"), Counter(_VALUE.unpack(value)[0], _UNITS.get(unit))
