"""The state of the kernel's clock: adjtimex(2) without changes, which everyone may ask (include/uapi/linux/timex.h).

It is the same clock in every container. A time namespace shifts only CLOCK_MONOTONIC and CLOCK_BOOTTIME.
"""

from __future__ import annotations

import ctypes
import os

from opskit.records import NamedTuple

PLL, INSERT, DELETE, UNSYNCHRONISED, NANOSECONDS = 0x0001, 0x0010, 0x0020, 0x0040, 0x2000
_STATUS = {
    PLL: "PLL", 0x0002: "PPSFREQ", 0x0004: "PPSTIME", 0x0008: "FLL", INSERT: "INS", DELETE: "DEL", UNSYNCHRONISED: "UNSYNC",
    0x0080: "FREQHOLD", 0x0100: "PPSSIGNAL", 0x0200: "PPSJITTER", 0x0400: "PPSWANDER", 0x0800: "PPSERROR", 0x1000: "CLOCKERR",
    NANOSECONDS: "NANO", 0x4000: "MODE", 0x8000: "CLK",
}  # fmt: skip
STATES = ("TIME_OK", "TIME_INS", "TIME_DEL", "TIME_OOP", "TIME_WAIT", "TIME_ERROR")
_LARGEST_ERROR_S = 16.0  # NTP_PHASE_LIMIT
_USUAL_TICK_US, _PPM_OF_A_TICK = 10_000, 100.0  # USER_HZ is 100 on every architecture

_libc = ctypes.CDLL(None, use_errno=True)
_long = ctypes.c_long


class _Timex(ctypes.Structure):
    _fields_ = (
        ("modes", ctypes.c_uint), ("offset", _long), ("freq", _long), ("maxerror", _long), ("esterror", _long),
        ("status", ctypes.c_int), ("constant", _long), ("precision", _long), ("tolerance", _long), ("time", _long * 2),
        ("tick", _long), ("ppsfreq", _long), ("jitter", _long), ("shift", ctypes.c_int), ("stabil", _long), ("jitcnt", _long),
        ("calcnt", _long), ("errcnt", _long), ("stbcnt", _long), ("tai", ctypes.c_int), ("unused", ctypes.c_int * 11),
    )  # fmt: skip


class KernelClock(NamedTuple):
    """What the kernel knows of its clock. `state`: of STATES; `status`: the mask of STA_ flags.

    `offset_s`: still to be corrected by the kernel's PLL; `most_error_s`: grows by 500 us a second until a daemon sets it;
    `rate_ppm`: the correction of the hardware's rate; `tai_s`: TAI - UTC, 0 where nobody has set it.
    """

    state: str
    status: int
    offset_s: float
    most_error_s: float
    estimated_error_s: float
    rate_ppm: float
    tai_s: int

    @property
    def is_synchronised(self) -> bool:
        """Whether a program has told the kernel that its clock is right."""
        return not self.status & UNSYNCHRONISED and self.state != "TIME_ERROR"

    @property
    def is_at_limit(self) -> bool:
        """Whether the largest error is the largest that the kernel tells."""
        return self.most_error_s >= _LARGEST_ERROR_S

    @property
    def is_cleared(self) -> bool:
        """Whether nobody has told the kernel an error since boot, or since the clock was set (ntp_clear)."""
        return self.estimated_error_s >= _LARGEST_ERROR_S

    @property
    def flags(self) -> tuple[str, ...]:
        """The names of the status flags, as adjtimex(2) has them without STA_."""
        return tuple(name for bit, name in _STATUS.items() if self.status & bit)

    @property
    def leap(self) -> str | None:
        """`inserted` or `deleted`: the leap second that ends this UTC day; None: there is none."""
        return "inserted" if self.status & INSERT else "deleted" if self.status & DELETE else None


def read_kernel_clock() -> KernelClock:
    """Ask the kernel. Raises OSError: EPERM or ENOSYS where a sandbox forbids the call."""
    timex = _Timex()
    state = _libc.adjtimex(ctypes.byref(timex))
    if state < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    unit = 1e-9 if timex.status & NANOSECONDS else 1e-6
    rate_ppm = timex.freq / 65536 + (timex.tick - _USUAL_TICK_US) * _PPM_OF_A_TICK
    name = STATES[state] if state < len(STATES) else f"state {state}"
    return KernelClock(
        name, timex.status, timex.offset * unit, timex.maxerror / 1e6, timex.esterror / 1e6, rate_ppm, timex.tai
    )
