"""irqbalance (irqbalance(1), its cputree.c and irqbalance.c): the daemon that moves interrupts between CPUs every ten seconds.

Its environment names the CPUs that it leaves alone: IRQBALANCE_BANNED_CPUS (a mask, deprecated), IRQBALANCE_BANNED_CPULIST (`0-3`). Where
neither is set, even to nothing, these are the CPUs of isolcpus and nohz_full. Options: --banirq=N (-i), --oneshot (-o); IRQBALANCE_ONESHOT.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.proc.cpu_masks import parse_cpu_mask
from opskit.proc.files.cpu_times import parse_cpu_list
from opskit.proc.fs import optional
from opskit.quantities import integer
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opskit.proc.fs import ProcFS

NAME = "irqbalance"
_LIST, _MASK, _ONCE = b"IRQBALANCE_BANNED_CPULIST", b"IRQBALANCE_BANNED_CPUS", b"IRQBALANCE_ONESHOT"


class IrqBalance(NamedTuple):
    """A running one. `banned` None: its environment cannot be read. `ignores_isolation`: its environment names the CPUs instead."""

    pid: int
    banned: frozenset[int] | None
    one_shot: bool = False
    banned_irqs: frozenset[int] = frozenset()
    ignores_isolation: bool = False


def read_irqbalance(fs: ProcFS, pid: int, left_alone: frozenset[int]) -> IrqBalance:
    """What one is told by its options and environment. `left_alone`: the CPUs of isolcpus and nohz_full."""
    words = (optional(fs.read, pid, "cmdline") or b"").split(b"\0")
    environment = optional(fs.read, pid, "environ")
    named = dict(_variables(environment or b""))
    if _MASK in named:
        banned = parse_cpu_mask(named[_MASK].decode("ascii", "replace")) or frozenset()
    elif _LIST in named:
        banned = parse_cpu_list(named[_LIST].decode("ascii", "replace")) or frozenset()
    else:
        banned = left_alone
    return IrqBalance(
        pid,
        None if environment is None else banned,
        _ONCE in named or any(word in (b"--oneshot", b"-o") for word in words),
        frozenset(_banned_irqs(words)),
        _MASK in named or _LIST in named,
    )


def _variables(environment: bytes) -> Iterator[tuple[bytes, bytes]]:
    for each in environment.split(b"\0"):
        name, _, value = each.partition(b"=")
        yield name, value


def _banned_irqs(words: Sequence[bytes]) -> Iterator[int]:
    """`--banirq=85`, `--banirq 85`, `-i85`, `-i 85`."""
    for at, word in enumerate(words):
        value: bytes | None = None
        if word in (b"--banirq", b"-i"):
            value = words[at + 1] if at + 1 < len(words) else None
        elif word.startswith(b"--banirq="):
            value = word[len(b"--banirq=") :]
        elif word.startswith(b"-i"):
            value = word[2:]
        number = None if value is None else integer(value)
        if number is not None:
            yield number
