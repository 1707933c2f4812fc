"""What is known of a process while it is sampled: how to unwind its stacks, and the names of its frames and threads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from opskit.proc.files.kallsyms import KernelSymbols, parse_kallsyms
from opskit.proc.memory import ProcessMemory
from opskit.proc.unwind.cursor import Frame
from opskit.proc.unwind.walk import walk

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opskit.host import Host
    from opskit.proc.kernel.cpu_samples import Sample
    from opskit.proc.unwind.cursor import Stack, Unwinder

UNKNOWN_KERNEL = "[kernel]"


class Target(Protocol):
    """A sampled process. `debug_non_safepoints`: whether the JVM has the flag on; None: not a JVM, or unknown.

    `missing`: sentences about what cannot be read.
    """

    debug_non_safepoints: bool | None
    missing: tuple[str, ...]

    def walk(self, sample: Sample) -> Stack:
        """The frames of a sample."""

    def refresh(self) -> None:
        """Read the process's memory and mappings anew from now on; called once per drain."""

    def thread_name(self, tid: int) -> str | None:
        """The full name of a thread by its TID as the process sees it; None where only the kernel names it."""

    def close(self) -> None:
        """Free what is open."""


class CpuTarget:
    """A process of this machine: native code, and Java code where it is a JVM."""

    def __init__(self, host: Host, pid: int) -> None:
        """Raise OSError where its memory cannot be read."""
        self.debug_non_safepoints: bool | None = None
        self.missing: tuple[str, ...] = ()
        self._fs = host.fs
        self._memory = ProcessMemory(host.fs, pid)
        self._unwinders: Sequence[Unwinder] = ()
        self._kernel: KernelSymbols | None = None
        self._kernel_frames: dict[int, Frame] = {}

    def walk(self, sample: Sample) -> Stack:
        """The frames of a sample."""
        kernel = [self._kernel_frame(pc) for pc in sample.kernel] if sample.kernel else ()
        return walk(sample.registers, sample.stack, self._unwinders, kernel)

    def refresh(self) -> None:
        """Read the process's memory anew from now on."""
        self._memory.forget()

    def thread_name(self, tid: int) -> str | None:  # noqa: ARG002
        """The full name of a thread."""
        return None

    def close(self) -> None:
        """Close the process's memory."""
        self._memory.close()

    def _kernel_frame(self, pc: int) -> Frame:
        frame = self._kernel_frames.get(pc)
        if frame is None:
            if self._kernel is None:
                self._kernel = self._fs.maybe(parse_kallsyms, "kallsyms", default=KernelSymbols())
            frame = self._kernel_frames[pc] = Frame(self._kernel.name(pc) or UNKNOWN_KERNEL, "kernel")
        return frame
