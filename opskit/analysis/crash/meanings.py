"""What a signal and its code mean (sigaction(2), signal(7)), and what the address tells."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.quantities import plural

if TYPE_CHECKING:
    from opskit.jvm.logs.crashes.record import Event

NULL_PAGE = 4096
SENT = ("SI_USER", "SI_TKILL", "SI_QUEUE")
_SIGNALS = {
    "SIGSEGV": "invalid memory access",
    "SIGBUS": "a mapped page could not be read or written",
    "SIGILL": "an instruction that the CPU does not execute",
    "SIGFPE": "an arithmetic error",
    "SIGABRT": "the process called abort()",
    "SIGTRAP": "a breakpoint instruction",
    "SIGSYS": "a system call that a seccomp filter refuses",
    "SIGQUIT": "a request to quit",
    "EXCEPTION_ACCESS_VIOLATION": "invalid memory access",
    "EXCEPTION_STACK_OVERFLOW": "the stack is full",
    "EXCEPTION_IN_PAGE_ERROR": "a page of a mapped file could not be read",
    "EXCEPTION_ILLEGAL_INSTRUCTION": "an instruction that the CPU does not execute",
    "EXCEPTION_INT_DIVIDE_BY_ZERO": "integer division by zero",
}
_CODES = {
    "SEGV_MAPERR": "nothing is mapped at this address",
    "SEGV_ACCERR": "the mapping at this address does not allow the access",
    "SEGV_BNDERR": "a bound check of the CPU failed",
    "SEGV_PKUERR": "a protection key forbids the access",
    "BUS_ADRALN": "the address is not aligned",
    "BUS_ADRERR": "a page of a mapped file does not exist: beyond the file's end, or without space for it",
    "BUS_OBJERR": "the hardware or the storage behind a mapped file reported an error",
    "BUS_MCEERR_AR": "the memory has a hardware error",
    "BUS_MCEERR_AO": "the memory has a hardware error",
    "FPE_INTDIV": "integer division by zero",
    "FPE_INTOVF": "integer overflow",
    "FPE_FLTDIV": "floating-point division by zero",
    "FPE_FLTINV": "invalid floating-point operation",
    "ILL_ILLOPC": "unknown instruction",
    "ILL_ILLOPN": "unknown operand of an instruction",
    "ILL_PRVOPC": "privileged instruction",
    "SI_KERNEL": "the address is not canonical, and the kernel does not report it: an overwritten pointer, or a wrong length or offset",
}


def is_null(address: int | None) -> bool:
    """Whether the address is the null pointer, or a field of it."""
    return address is not None and 0 <= address < NULL_PAGE


def null_words(address: int) -> str:
    """`the null pointer`, `the null pointer plus 24 bytes`."""
    return f"the null pointer plus {plural(address, 'byte')}" if address else "the null pointer"


def meaning_of(event: Event) -> str | None:
    """A phrase for the signal and its code; None where the JVM ended itself without one."""
    if event.kind != "signal":
        return None
    general = _SIGNALS.get(event.name, "unknown signal")
    if is_sent(event):
        return "another process sent it, or the JVM itself: no memory access failed"
    if event.code == "SI_KERNEL" and event.name != "SIGSEGV":
        return general
    code = _CODES.get(event.code or "", general)
    if event.code == "SI_KERNEL" or event.address is None or event.name not in ("SIGSEGV", "SIGBUS"):
        return code
    where = null_words(event.address) if is_null(event.address) else f"0x{event.address:x}"
    if event.pc is not None and event.pc == event.address:
        return f"jump to {where}, where there is no code"
    if event.code in ("SEGV_MAPERR", "SEGV_ACCERR"):
        what = "nothing is mapped there" if event.code == "SEGV_MAPERR" else "its mapping does not allow the access"
        return f"access to {where}: {what}"
    return f"{code} (0x{event.address:x})"


def is_sent(event: Event) -> bool:
    """Whether a process sent the signal: no instruction raised it."""
    return event.kind == "signal" and (event.code in SENT or (event.code is None and event.sender_pid is not None))
