"""What interrupts take of a CPU, as a thread there sees it: it reads the clock without a pause for moments, in a child process.

The clock tick of a CPU is an interrupt too: where others come often, and a hypervisor delivers them late, it finds softirqs more often than they run.
"""

from __future__ import annotations

import time
from itertools import repeat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opskit.proc.kernel.children import Send

_GAP_NS = 1_000  # Python takes a tenth of it between two readings
_LOOPS = 500


def measure(begin_s: float, rounds: int, round_s: float, apart_s: float, send: Send) -> None:
    """Spin for some rounds, the first one `begin_s` from now, `apart_s` from begin to begin. Send the ns for which this thread was on the CPU, and those that interrupts took of them."""
    ran = lost = 0
    time.sleep(begin_s)
    for number in range(rounds):
        if number:
            time.sleep(max(apart_s - round_s, 0.0))
        begun, before = time.monotonic_ns(), time.thread_time_ns()
        last, gaps = _spin(begun, round(round_s * 1e9))
        # The kernel may run others when this call ends: that is no part of the round.
        used = time.thread_time_ns() - before
        waited = last - begun - used
        ran, lost = ran + used, lost + min(max(gaps - waited, 0), used)
    send({"ran_ns": ran, "lost_ns": lost})


def _spin(begun: int, ns: int) -> tuple[int, int]:
    """The last reading, and the gaps between readings: interrupts, and waiting for the CPU."""
    now, gaps = time.monotonic_ns, 0
    last = begun
    while last < begun + ns:
        for _ in repeat(None, _LOOPS):
            at = now()
            if at - last >= _GAP_NS:
                gaps += at - last
                at = now()
            last = at
    return last, gaps
