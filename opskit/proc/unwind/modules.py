"""The code of a process: executable mappings, the ELF files in them, and the names of their functions."""

from __future__ import annotations

from bisect import bisect_right
from functools import cached_property
from typing import TYPE_CHECKING

from opskit.proc.elf.call_frames import CallFrames
from opskit.proc.elf.debug_files import debug_file
from opskit.proc.elf.demangle import demangle
from opskit.proc.elf.file import X86_64, elf_in_memory, open_elf
from opskit.proc.elf.symbols import Symbols, debug_data, symbol_sources
from opskit.proc.files.maps import parse_code_mappings
from opskit.proc.fs import optional
from opskit.proc.unwind.perf_map import PerfMap

if TYPE_CHECKING:
    from opskit.proc.elf.cfa_program import Rule
    from opskit.proc.elf.file import ElfFile
    from opskit.proc.files.maps import CodeMapping
    from opskit.proc.fs import ProcFS
    from opskit.proc.memory import Memory

_VDSO = "[vdso]"
# Mappings that look like files and have generated code: huge pages, System V memory, shared anonymous memory.
_NOT_FILES = ("/anon_hugepage", "/SYSV", "/dev/")
_UNKNOWN = "[unknown]"


class Module:
    """One executable mapping. Its file is opened when it is first asked for something."""

    def __init__(self, fs: ProcFS, pid: int, memory: Memory, mapping: CodeMapping) -> None:
        self._fs, self._pid, self._memory, self.mapping = fs, pid, memory, mapping
        path = mapping.path
        self.label = path if path.startswith("[") else f"[{path.rpartition('/')[2]}]" if path else _UNKNOWN
        self.is_file = path == _VDSO or (path.startswith("/") and not path.startswith(_NOT_FILES))
        if path.startswith("/memfd:"):  # a program, or generated code that is mapped twice
            self.is_file = memory.read(mapping.first or mapping.start, 4) == b"\x7fELF"

    def rule(self, pc: int) -> Rule | None:
        """How to unwind the code at a pc; None without call frame information."""
        if self._call_frames is None:
            return None
        address = self._address(pc)
        return None if address is None else self._call_frames.rule(address)

    def name(self, pc: int) -> str | None:
        """The short name of the function at a pc."""
        address = self._address(pc)
        if address is None:
            return None
        for symbols in self._symbols:
            found = symbols.name(address)
            if found is not None:
                return demangle(found)
        return None

    def code(self, pc: int, size: int) -> bytes:
        """The instructions from a pc on."""
        return self._memory.read(pc, size) or (self._image.read(self._address(pc) or 0, size) if self._image else b"")

    def _address(self, pc: int) -> int | None:
        image = self._image
        if image is None:
            return None
        if self.mapping.path == _VDSO:
            return pc - image.bias
        return image.address_of(pc - self.mapping.start + self.mapping.offset)

    @cached_property
    def _image(self) -> ElfFile | None:
        if not self.is_file:
            return None
        mapping = self.mapping
        if mapping.path == _VDSO:
            return elf_in_memory(self._memory, mapping.start, is_whole=True)
        # That very file, also when it was deleted or replaced; it needs CAP_CHECKPOINT_RESTORE.
        exact = open_elf(self._fs, self._fs.path(self._pid, "map_files", f"{mapping.start:x}-{mapping.end:x}"))
        if exact is not None:
            return exact
        path = None if mapping.deleted else optional(self._fs.inside, self._pid, mapping.path)
        named = open_elf(self._fs, path) if path else None
        loaded = elf_in_memory(self._memory, mapping.first) if mapping.first is not None else None
        is_other = named is not None and loaded is not None and named.build_id != loaded.build_id
        return loaded if named is None or is_other else named

    @cached_property
    def _call_frames(self) -> CallFrames | None:
        return CallFrames(self._image) if self._image is not None and self._image.machine == X86_64 else None

    @cached_property
    def _symbols(self) -> tuple[Symbols, ...]:
        image = self._image
        if image is None:
            return ()
        sources = symbol_sources(image)
        beside = debug_file(self._fs, self._pid, image, self.mapping.path) or debug_data(image)
        if beside is not None:
            sources += symbol_sources(beside)
        return (Symbols(sources),)


class Modules:
    """The code of one process. `generation` grows when its mappings change."""

    def __init__(self, fs: ProcFS, pid: int, memory: Memory) -> None:
        self._fs, self._pid, self._memory = fs, pid, memory
        self._perf_map = PerfMap(fs, pid)
        self._starts: list[int] = []
        self._modules: list[Module] = []
        self._may_read = self._may_look = True
        self.generation = 0

    def forget(self) -> None:
        """Look again for new mappings and symbols, when something is found in none. Once per drain."""
        self._may_read = self._may_look = True

    def find(self, pc: int) -> Module | None:
        """The executable mapping of a pc."""
        at = bisect_right(self._starts, pc) - 1
        if at >= 0 and pc < self._modules[at].mapping.end:
            return self._modules[at]
        if self._may_read:
            self._read()
            return self.find(pc)
        return None

    def generated(self, pc: int) -> str | None:
        """The name of generated code, by the perf map."""
        if self._may_look:
            self._may_look = False
            if self._perf_map.refresh():
                self.generation += 1
        return self._perf_map.name(pc)

    def name(self, pc: int) -> str:
        """The function at a pc, or `[library.so]`, or `[unknown]`."""
        module = self.find(pc)
        if module is None:
            return _UNKNOWN
        return (module.name(pc) if module.is_file else self.generated(pc)) or module.label

    def _read(self) -> None:
        self._may_read = False
        mappings = self._fs.maybe(parse_code_mappings, self._pid, "maps") or []
        known = {each.mapping: each for each in self._modules}
        if mappings and mappings != [each.mapping for each in self._modules]:
            self._modules = [
                known.get(each) or Module(self._fs, self._pid, self._memory, each) for each in mappings
            ]  # fmt: skip
            self._starts = [each.start for each in mappings]
            self.generation += 1
