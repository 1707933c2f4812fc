"""The code of a process: executable mappings, the ELF files in them, and the names of their functions."""

from __future__ import annotations

from bisect import bisect_right
from functools import cached_property
from typing import TYPE_CHECKING

from opskit.proc.elf.call_frames import CallFrames
from opskit.proc.elf.debug_files import debug_file
from opskit.proc.elf.demangle import demangle
from opskit.proc.elf.file import X86_64, elf_in_memory, open_elf
from opskit.proc.elf.go_functions import GoFunctions
from opskit.proc.elf.symbols import Symbols, complete_source, debug_data, dynamic_source
from opskit.proc.files.maps import parse_code_mappings
from opskit.proc.fs import optional
from opskit.proc.unwind.perf_map import PerfMap

if TYPE_CHECKING:
    from opskit.proc.elf.cfa_program import Rule
    from opskit.proc.elf.file import ElfFile
    from opskit.proc.files.maps import CodeMapping
    from opskit.proc.fs import ProcFS
    from opskit.proc.memory import Memory

VDSO = "[vdso]"
# Mappings that look like files and have generated code: huge pages, System V memory, shared anonymous memory.
_NOT_FILES = ("/anon_hugepage", "/SYSV", "/dev/")
_UNKNOWN = "[unknown]"
_MOST_DRAINS_TO_WAIT = 8
_LARGEST_FUNCTION_BYTES = 1 << 20


class Binary:
    """An ELF file of a process, or what is mapped in its place. It is opened when it is first asked for something."""

    def __init__(self, fs: ProcFS, pid: int, memory: Memory, mapping: CodeMapping) -> None:
        self._fs, self._pid, self._memory, self._mapping = fs, pid, memory, mapping

    @cached_property
    def image(self) -> ElfFile | None:
        """The file; None where the mapping is of no ELF file, or where nothing may be read."""
        mapping = self._mapping
        if mapping.path == VDSO:
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
    def call_frames(self) -> CallFrames | None:
        """Its call frame information, of code for this kind of CPU."""
        return CallFrames(self.image) if self.image is not None and self.image.machine == X86_64 else None

    @cached_property
    def symbols(self) -> Symbols:
        """Its functions: all of them, or where it was stripped those that other files use, and what it has beside them."""
        image = self.image
        if image is None:
            return Symbols([])
        complete = complete_source(image)
        if complete is None:
            beside = debug_file(self._fs, self._pid, image, self._mapping.path)
            complete = complete_source(beside) if beside is not None else None
        if complete is not None:
            return Symbols([complete])
        local = debug_data(image)
        found = [dynamic_source(image), complete_source(local) if local is not None else None]
        return Symbols([each for each in found if each is not None])

    @cached_property
    def _go_functions(self) -> GoFunctions | None:
        return GoFunctions(self.image) if self.image is not None else None

    def begin(self, address: int) -> int | None:
        """Where the function at an address begins."""
        return max(
            (each.begin(address) or 0 for each in (self.symbols, self._go_functions) if each is not None), default=None
        )

    def name(self, address: int) -> str | None:
        """The short name of the function at an address."""
        found = self.symbols.name(address)
        if found is not None:
            return demangle(found)
        return self._go_functions.name(address) if self._go_functions is not None else None


class Module:
    """One executable mapping. Those of one file share its binary."""

    def __init__(self, mapping: CodeMapping, binary: Binary, memory: Memory) -> None:
        self.mapping, self.binary, self._memory = mapping, binary, memory
        path = mapping.path
        self.is_file = path == VDSO or (path.startswith("/") and not path.startswith(_NOT_FILES))
        if path.startswith("/memfd:"):  # a program, or generated code that is mapped twice
            self.is_file = memory.read(mapping.first or mapping.start, 4) == b"\x7fELF"
        self.label = path if path.startswith("[") else f"[{path.rpartition('/')[2]}]" if self.is_file else _UNKNOWN

    def rule(self, pc: int) -> Rule | None:
        """How to unwind the code at a pc; None without call frame information."""
        address = self._address(pc)
        frames = self.binary.call_frames if address is not None else None
        return None if address is None or frames is None else frames.rule(address)

    def name(self, pc: int) -> str | None:
        """The short name of the function at a pc."""
        address = self._address(pc)
        return None if address is None else self.binary.name(address)

    def code_before(self, pc: int, most: int) -> bytes:
        """The instructions of the function up to a pc, so many bytes of its begin; empty where it is unknown."""
        address = self._address(pc)
        begin = None if address is None else self.binary.begin(address)
        size = 0 if address is None or not begin else address - begin
        return self.code(pc - size, min(size, most)) if 0 < size < _LARGEST_FUNCTION_BYTES else b""

    def code(self, pc: int, size: int) -> bytes:
        """The instructions from a pc on."""
        found = self._memory.read(pc, size)
        address = None if found else self._address(pc)
        return found if address is None or self.binary.image is None else self.binary.image.read(address, size)

    def _address(self, pc: int) -> int | None:
        """The address as the linker has it."""
        image = self.binary.image if self.is_file else None
        if image is None:
            return None
        if self.mapping.path == VDSO:
            return pc - image.bias
        return image.address_of(pc - self.mapping.start + self.mapping.offset)


class Modules:
    """The code of one process. `generation` grows when its mappings change, `names` when those of generated code do."""

    def __init__(self, fs: ProcFS, pid: int, memory: Memory) -> None:
        self._fs, self._pid, self._memory = fs, pid, memory
        self._perf_map = PerfMap(fs, pid)
        self._starts: list[int] = []
        self._modules: list[Module] = []
        self._may_read = self._may_look = True
        self._reads_without_news = self._drains_to_wait = 0
        self.generation = self.names = 0

    def forget(self) -> None:
        """Look again for new mappings and symbols, when something is found in none. Once per drain.

        The mappings of a large process cost milliseconds: where there are often no new ones, they are read less often.
        """
        self._may_look = True
        if self._drains_to_wait:
            self._drains_to_wait -= 1
        else:
            self._may_read = True

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
            self.names += self._perf_map.refresh()
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
        if not mappings or mappings == [*known]:
            self._reads_without_news = self._drains_to_wait = min(self._reads_without_news + 1, _MOST_DRAINS_TO_WAIT)
            return
        self._reads_without_news = 0
        binaries = {_file_of(each): known[each].binary for each in mappings if each in known}
        modules = []
        for each in mappings:
            if each not in known:
                binary = binaries.setdefault(_file_of(each), Binary(self._fs, self._pid, self._memory, each))
                modules.append(Module(each, binary, self._memory))
            else:
                modules.append(known[each])
        self._modules, self._starts = modules, [each.start for each in mappings]
        self.generation += 1


def _file_of(mapping: CodeMapping) -> tuple[str, bool, int | None, int]:
    """What the mappings of one loaded file have in common."""
    return mapping.path, mapping.deleted, mapping.first, mapping.start if mapping.first is None else 0
