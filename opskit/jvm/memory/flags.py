"""The values of a JVM's flags, read in its memory: the table JVMFlag::flags (JDK 8: Flag::flags), as -XX:+PrintFlagsFinal has them.

Nothing is sent to the JVM. Source: src/hotspot/share/runtime/flags/jvmFlag.hpp.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Union

from opskit.proc.memory import c_string, i32, u64
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from opskit.jvm.memory.vmstructs import VmStructs
    from opskit.proc.memory import Memory

FlagValue = Union[bool, int, float, str, None]

_OWNERS = ("JVMFlag", "Flag")  # from JDK 9 on, JDK 8
_MOST_FLAGS, _MOST_ENTRY_BYTES, _LONGEST_NAME, _LONGEST_TEXT = 8192, 256, 96, 4096
_MOST_NAME_BYTES = 1 << 20
_MANAGEABLE, _NOT_MANAGEABLE = (b"HeapDumpOnOutOfMemoryError", b"HeapDumpPath"), b"UseG1GC"
_ORIGIN, _ON_COMMAND_LINE = 0xF, 1 << 17  # of a flag's bits
_POINTER = struct.Struct("<Q")
# Since JDK 15 the type is its place in JVM_FLAG_NON_STRING_TYPES_DO, before that its name.
_TYPES = ("bool", "int", "uint", "intx", "uintx", "uint64_t", "size_t", "double", "ccstr", "ccstrlist")
_FORMS = {"int": "<i", "uint": "<I", "intx": "<q", "uintx": "<Q", "uint64_t": "<Q", "size_t": "<Q", "double": "<d"}


class Manageable(NamedTuple):
    """A flag that may be set in the running JVM. `origin`: of JVMFlagOrigin, 0 default, 1 command line, and so on."""

    name: str
    value: FlagValue
    origin: int


def read_flags(vm: VmStructs, memory: Memory, names: Collection[str]) -> dict[str, FlagValue]:
    """The values of these flags; without those that the JVM does not have or that cannot be read. None: a text that is not set.

    Raises NotSupported where the table is not described.
    """
    name_at, value_at, type_at = (vm.at(*((owner, part) for owner in _OWNERS)) for part in ("_name", "_addr", "_type"))
    begin, size, table = _table(vm, memory)
    wanted = {name.encode(): name for name in names}
    if not max(name_at, value_at, type_at) + _POINTER.size <= size + 4 <= _MOST_ENTRY_BYTES:
        return {}
    type_of = _type_reader(vm, memory)
    values: dict[str, FlagValue] = {}
    places = range(0, len(table) - size + 1, size)
    names_of = _strings(memory, [_POINTER.unpack_from(table, at + name_at)[0] for at in places])
    for at, found in zip(places, names_of):
        if len(values) == len(wanted):
            break
        name = wanted.get(found)
        (address,) = _POINTER.unpack_from(table, at + value_at)
        if name is not None and address:
            values.update(_value(memory, name, address, type_of(begin + at + type_at)))
    return values


def read_manageable_flags(vm: VmStructs, memory: Memory) -> list[Manageable]:
    """The flags that may be set in the running JVM, in the order of its table; empty where they cannot be told apart.

    The bit that marks them differs between releases: it is what flags that are always manageable have, and UseG1GC lacks. Raises
    NotSupported where the table is not described.
    """
    flags_at, name_at, value_at, type_at = (
        vm.at(*((owner, part) for owner in _OWNERS)) for part in ("_flags", "_name", "_addr", "_type")
    )
    begin, size, table = _table(vm, memory)
    if max(flags_at, type_at, name_at + 4, value_at + 4) + 4 > size or not table:
        return []
    places = range(0, len(table) - size + 1, size)
    names = [*_strings(memory, [_POINTER.unpack_from(table, at + name_at)[0] for at in places])]
    found = {name: struct.unpack_from("<I", table, at + flags_at)[0] for at, name in zip(places, names)}
    known = [found.get(name, 0) for name in _MANAGEABLE]
    mark = known[0] & known[1] & ~found.get(_NOT_MANAGEABLE, ~0) & ~_ORIGIN & ~_ON_COMMAND_LINE
    values: dict[str, FlagValue] = {}
    type_of, chosen = _type_reader(vm, memory), {name for name, bits in found.items() if mark and bits & mark == mark}
    for at, name in zip(places, names):
        if name in chosen:
            (address,) = _POINTER.unpack_from(table, at + value_at)
            values.update(_value(memory, name.decode("latin-1"), address, type_of(begin + at + type_at)))
    return [Manageable(name, value, found[name.encode("latin-1")] & _ORIGIN) for name, value in values.items()]


def _table(vm: VmStructs, memory: Memory) -> tuple[int, int, bytes]:
    """Where the table begins, the bytes of an entry, and the entries."""
    begin = u64(memory, vm.at(*((owner, "flags") for owner in _OWNERS))) or 0
    count = u64(memory, vm.at(*((owner, "numFlags") for owner in _OWNERS))) or 0
    size = vm.size(*_OWNERS)
    return begin, size, memory.read(begin, min(count, _MOST_FLAGS) * size) if size <= _MOST_ENTRY_BYTES else b""


def _strings(memory: Memory, addresses: list[int]) -> Iterator[bytes]:
    """The text at each address, empty where none is. They are close together in libjvm, and are read at once."""
    low = min(filter(None, addresses), default=0)
    span = max(addresses, default=0) - low + _LONGEST_NAME
    data = memory.read(low, span) if span <= _MOST_NAME_BYTES else b""
    for address in addresses:
        begin = address - low
        end = data.find(b"\0", begin, begin + _LONGEST_NAME + 1) if address else -1
        yield data[begin:end] if end >= 0 else c_string(memory, address, _LONGEST_NAME) or b""


def _type_reader(vm: VmStructs, memory: Memory) -> Callable[[int], str]:
    """A function that gives the type of the flag whose field _type is at an address."""
    if vm.field(*((owner, "_type") for owner in _OWNERS)).type == "int":
        return lambda at: dict(enumerate(_TYPES)).get(i32(memory, at) or 0, "")
    return lambda at: (c_string(memory, u64(memory, at) or 0, _LONGEST_NAME) or b"").decode("latin-1")


def _value(memory: Memory, name: str, address: int, kind: str) -> dict[str, FlagValue]:
    """The flag and its value; nothing where it cannot be read."""
    if kind == "bool":
        found = memory.read(address, 1)
        return {name: found != b"\0"} if found else {}
    if kind.startswith("ccstr"):
        text_at = u64(memory, address)
        text = c_string(memory, text_at, _LONGEST_TEXT) if text_at else None
        return {name: None if text is None else text.decode("utf-8", "replace")} if text_at is not None else {}
    form = struct.Struct(_FORMS.get(kind, "<0s"))
    found = memory.read(address, form.size)
    return {name: form.unpack(found)[0]} if form.size and len(found) == form.size else {}
