"""Unwind native code: by the call frame information of its files, else by frame pointers."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from opskit.proc.elf.expressions import evaluate
from opskit.proc.unwind.calls import ends_with_call
from opskit.proc.unwind.cursor import (
    PC,
    R8,
    R9,
    R10,
    R11,
    R12,
    R13,
    R14,
    R15,
    RAX,
    RBP,
    RBX,
    RCX,
    RDI,
    RDX,
    REGISTERS,
    RSI,
    RSP,
    Frame,
)  # fmt: skip

if TYPE_CHECKING:
    from collections.abc import Callable

    from opskit.proc.elf.cfa_program import Rule
    from opskit.proc.unwind.cursor import Cursor
    from opskit.proc.unwind.modules import Module, Modules

    # What is needed to undo a frame: the register and offset that give the CFA; a reader of the words from -size up to
    # the CFA, of which the last is the return address; the registers that are among them. The last part, where that is
    # not enough, takes the unwinder and the cursor instead.
    Step = Callable[["NativeUnwinder", Cursor], bool]
    Plan = tuple[
        Frame, int, int, Callable[[bytes, int], tuple[int, ...]], int, tuple[tuple[int, int], ...],
        "Step | None",
    ]  # fmt: skip

_KEPT = frozenset((RBX, RBP, RSP, R12, R13, R14, R15))  # a function gives them back as they were
_CALLER_SAVED = tuple(number for number in range(PC) if number not in _KEPT)
# Where threads begin, in code that does not say so.
_ROOTS = frozenset(
    ("_start", "_start_c", "clone", "__clone", "clone3", "__clone3", "thread_start", "runtime.goexit", "runtime.mcall", "runtime.mstart",
     "runtime.rt0_go", "runtime.clone")
)  # fmt: skip
_MUSL_ROOTS = frozenset(("libc_start_main_stage2", "start"))  # their callers have neither rules nor frame pointers
_SIGRETURN = b"\x48\xc7\xc0\x0f\x00\x00\x00\x0f\x05"  # mov rax, 15; syscall
# struct ucontext on the stack of a handler that returns: where its registers begin, and their order (uc_mcontext.gregs).
_SAVED_AT = 40
_SAVED = (R8, R9, R10, R11, R12, R13, R14, R15, RDI, RSI, RBP, RBX, RDX, RAX, RCX, RSP, PC)
_SETS_FRAME_POINTER, _RETURN = b"\x55\x48\x89\xe5", b"\xc3"  # push rbp; mov rbp, rsp
_PROLOGUE_BYTES = 64
_MOST_PLANS = 1 << 16
_MOST_SAVED_BYTES = 512
_WORDS = [struct.Struct(f"<{count}Q").unpack_from for count in range(_MOST_SAVED_BYTES // 8 + 1)]
_HIGHEST = 1 << 64


class NativeUnwinder:
    """An Unwinder of everything that is mapped from files, and of generated code that a perf map names.

    `anonymous`: of all other generated code as well, by frame pointers; for processes that nothing else unwinds.
    """

    def __init__(self, modules: Modules, *, anonymous: bool = False) -> None:
        self._modules, self._anonymous = modules, anonymous
        self._plans: dict[int, Plan] = {}
        self._returns: dict[int, bool] = {}
        self._generated: set[int] = set()  # the plans of generated code
        self._generation, self._names = modules.generation, modules.names

    def owns(self, pc: int) -> bool:
        """Whether it can unwind this code."""
        module = self._modules.find(pc)
        if module is None:
            return False
        return module.is_file or self._anonymous or self._modules.generated(pc) is not None

    def step(self, cursor: Cursor) -> bool:
        """Add the frame at the cursor and go to its caller."""
        registers = cursor.registers
        pc = registers[PC] or 0
        # A call may be a function's last instruction: the address before the return address is surely in it.
        at = pc if cursor.signalled else pc - 1
        plan = self._plans.get(at)
        if plan is None or self._generation != self._modules.generation or self._names != self._modules.names:
            plan = self._new_plan(at)
        frame, register, offset, words, size, saved, other = plan
        cursor.frames.append(frame)
        if other is not None:
            return other(self, cursor)
        base = registers[register]
        if base is None:
            return cursor.stop("rule")
        cfa = base + offset
        begin = cfa - size - cursor.base
        if begin < 0:
            return _in_epilogue(cursor, cfa, size, saved)
        try:
            found = words(cursor.stack, begin)
        except (struct.error, OverflowError):
            return cursor.stop("dump" if cursor.is_beyond(cfa - 8) else "torn")
        for number, index in saved:
            registers[number] = found[index]
        registers[PC] = pc = found[-1]
        registers[RSP] = cfa
        cursor.signalled = False
        return True if pc else cursor.stop("root")

    def _new_plan(self, at: int) -> Plan:
        modules = self._modules
        if self._generation != modules.generation or len(self._plans) >= _MOST_PLANS:
            self._plans.clear()
            self._generated.clear()
            self._returns.clear()
        elif self._names != modules.names:
            for each in self._generated:
                self._plans.pop(each, None)
            self._generated.clear()
        self._generation, self._names = modules.generation, modules.names
        plan = self._plans[at] = self._plan(at)
        return plan

    def _plan(self, at: int) -> Plan:
        module = self._modules.find(at)
        rule = module.rule(at) if module is not None else None
        # Its rule begins a byte early, for those who look up the address before a return address.
        name = self._modules.name(at + 1 if rule is not None and rule.is_signal else at)
        frame = Frame(name, "native")
        if module is not None and not module.is_file:
            self._generated.add(at)
        # No bound method: a plan that refers to the unwinder would keep its files open until the garbage collector runs.
        step = NativeUnwinder._by_pointers if rule is None else lambda _, cursor: _by_rule(cursor, rule)
        if rule is None and module is not None and (_is_sigreturn(module, at) or _is_sigreturn(module, at + 1)):
            step = _from_signal
        if name in _ROOTS or (rule is None and name in _MUSL_ROOTS):
            return _other(frame, lambda this, cursor: step(this, cursor) if cursor.signalled else cursor.stop("root"))
        return (None if rule is None else _simple(frame, rule)) or _other(frame, step)

    def _by_pointers(self, cursor: Cursor) -> bool:
        """Go on by the return address on top of the stack, in a leaf function, or by the frame pointer."""
        registers = cursor.registers
        sp, bp = registers[RSP], registers[RBP]
        if sp is None:
            return cursor.stop("rule")
        if cursor.signalled and not self._has_frame(registers[PC] or 0) and self._is_return(cursor.word(sp)):
            return _returned(cursor, cursor.word(sp) or 0, sp + 8, bp)
        if bp is None or bp < sp or bp % 8:
            return cursor.stop("rule")
        if cursor.is_beyond(bp + 8):
            return cursor.stop("dump")
        pc = cursor.word(bp + 8)
        if not self._is_return(pc):
            return cursor.stop("rule")
        return _returned(cursor, pc or 0, bp + 16, cursor.word(bp))

    def _has_frame(self, pc: int) -> bool:
        """Whether the function has set its frame pointer before the pc, so that the word on top of the stack is its own."""
        module = self._modules.find(pc)
        if module is None or module.code(pc, 1) == _RETURN:
            return False
        return _SETS_FRAME_POINTER in module.code_before(pc, _PROLOGUE_BYTES)

    def _is_return(self, pc: int | None) -> bool:
        """Whether a word can be a return address: in executable memory, after a call, or at the entry of a thread."""
        if not pc:
            return False
        found = self._returns.get(pc)
        if found is None:
            module = self._modules.find(pc - 1)
            found = module is not None and (
                ends_with_call(module.code(pc - 8, 8))
                or _is_sigreturn(module, pc)
                or module.name(pc - 1) in _ROOTS  # Go returns to a place in goexit that it never called from
            )
            if len(self._returns) >= _MOST_PLANS:
                self._returns.clear()
            self._returns[pc] = found
        return found


def _is_sigreturn(module: Module, pc: int) -> bool:
    """Whether a signal handler returns to this pc."""
    return module.code(pc, len(_SIGRETURN)) == _SIGRETURN


def _from_signal(_: NativeUnwinder, cursor: Cursor) -> bool:
    """Go to what a signal interrupted, by the registers that the kernel has saved: in C libraries without a rule for it."""
    registers = cursor.registers
    sp = registers[RSP] or 0
    found = [cursor.word(sp + _SAVED_AT + 8 * number) for number in range(len(_SAVED))]
    if found[-1] is None:
        return cursor.stop("dump" if cursor.is_beyond(sp + _SAVED_AT + 8 * len(_SAVED)) else "torn")
    for number, value in zip(_SAVED, found):
        registers[number] = value
    cursor.signalled = True
    return True


def _other(frame: Frame, step: Step) -> Plan:
    return frame, RSP, 0, _WORDS[1], 8, (), step


def _simple(frame: Frame, rule: Rule) -> Plan | None:
    """The plan of a rule of the usual form; None for others."""
    if rule.expression is not None or rule.register not in _KEPT or rule.is_signal or rule.return_address != PC:
        return None
    if rule.saved.get(PC) != ("offset", -8):
        return None
    offsets = {}
    for number, (how, value) in rule.saved.items():
        if how == "same" or number not in _KEPT:
            continue
        if (
            how != "offset"
            or not isinstance(value, int)
            or value % 8
            or not -_MOST_SAVED_BYTES <= value < 0
            or number == RSP
        ):
            return None
        offsets[number] = value
    size = max(8, *(-value for value in offsets.values())) if offsets else 8
    return (
        frame, rule.register, rule.offset, _WORDS[size // 8], size,
        tuple((number, (size + value) // 8) for number, value in offsets.items()), None,
    )  # fmt: skip


def _in_epilogue(cursor: Cursor, cfa: int, size: int, saved: tuple[tuple[int, int], ...]) -> bool:
    """As a plan says, where some registers were already popped: compilers leave their rules, to words below the stack pointer."""
    pc = cursor.word(cfa - 8)
    if pc is None:
        return cursor.stop("dump" if cursor.is_beyond(cfa - 8) else "torn")
    registers = cursor.registers
    for number, index in saved:
        found = cursor.word(cfa - size + 8 * index)
        if found is not None:
            registers[number] = found
    registers[PC], registers[RSP] = pc, cfa
    cursor.signalled = False
    return True if pc else cursor.stop("root")


def _by_rule(cursor: Cursor, rule: Rule) -> bool:
    """Any rule: expressions, signal frames, a thread's entry."""
    if rule.return_address not in rule.saved:
        return cursor.stop("rule")
    if rule.saved[rule.return_address][0] == "undefined":
        return cursor.stop("root")
    words = _Words(cursor)
    old = cursor.registers
    if rule.expression is not None:
        cfa = evaluate(rule.expression, old, words)
    else:
        base = old[rule.register] if 0 <= rule.register < PC else None
        cfa = None if base is None else base + rule.offset
    if cfa is None or not 0 < cfa < _HIGHEST:
        return cursor.stop("dump" if words.are_beyond else "rule")
    new = [*old]
    if not rule.is_signal:
        for number in _CALLER_SAVED:
            new[number] = None
    new[RSP] = cfa
    for number in rule.saved:
        if number < REGISTERS:
            new[number] = _value(cursor, words, rule, number, cfa)
    words.are_beyond = False
    pc = new[PC] = _value(cursor, words, rule, rule.return_address, cfa)
    if pc is None:
        return cursor.stop("dump" if words.are_beyond else "torn")
    cursor.registers[:] = new
    cursor.signalled = rule.is_signal
    return True if pc else cursor.stop("root")


class _Words:
    """Reads words of the copied stack. `are_beyond`: one was wanted that lies above it."""

    def __init__(self, cursor: Cursor) -> None:
        self._cursor, self.are_beyond = cursor, False

    def __call__(self, address: int) -> int | None:
        found = self._cursor.word(address)
        if found is None and self._cursor.is_beyond(address):
            self.are_beyond = True
        return found


def _value(cursor: Cursor, words: _Words, rule: Rule, number: int, cfa: int) -> int | None:
    """A register of the caller."""
    how, value = rule.saved[number]
    registers = cursor.registers
    if isinstance(value, bytes):
        found = evaluate(value, registers, words, cfa)
        return found if found is None or how == "value_expression" else words(found)
    if how == "offset":
        return registers[number] if cfa + value < cursor.base and number in _KEPT else words(cfa + value)
    if how == "value_offset":
        return cfa + value
    if how == "register":
        return registers[value] if 0 <= value < REGISTERS else None
    return registers[number] if how == "same" else None


def _returned(cursor: Cursor, pc: int, sp: int, bp: int | None) -> bool:
    """Go to the caller; what else the function has saved is unknown."""
    registers = cursor.registers
    registers[PC], registers[RSP], registers[RBP] = pc, sp, bp
    for number in (RBX, R12, R13, R14, R15):
        registers[number] = None
    cursor.signalled = False
    return True
