"""The CPU model: /proc/cpuinfo (proc_cpuinfo(5); the lines differ from one architecture to the next).

model name	: AMD EPYC 9B14
flags		: fpu vme hypervisor
"""

from __future__ import annotations

from opskit.records import NamedTuple

_MODELS = ("model name", "cpu model", "cpu", "uarch", "Model")  # x86, MIPS, POWER, RISC-V, boards
_LONGEST = 120


class CpuInfo(NamedTuple):
    """`model`: None where the kernel does not know it (arm64). `is_virtual`: whether a hypervisor says so; only x86 has that flag."""

    model: str | None
    is_virtual: bool


def parse_cpuinfo(text: str) -> CpuInfo:
    """The first CPU's model, and whether there is a hypervisor."""
    found: dict[str, str] = {}
    for line in text.partition("\n\n")[0].splitlines():
        name, colon, value = line.partition(":")
        if colon:
            found.setdefault(name.strip(), value.strip())
    model = next((found[name] for name in _MODELS if found.get(name)), None)
    return CpuInfo(model and " ".join(model[:_LONGEST].split()), "hypervisor" in found.get("flags", "").split())
