"""The answer of a seccomp filter to the start of a thread."""

from __future__ import annotations

import ctypes
import errno
import os
import select
import signal
import socket
import struct
import time

import pytest
from eachof import each_of
from hypothesis import given
from hypothesis import strategies as st
from trees import Link

from opskit.errors import BadInput
from opskit.proc.fs import ProcFS
from opskit.proc.kernel import syscalls
from opskit.proc.kernel.seccomp import Undecided, filter_answer, own_answer, parse_filter, run, start_answer
from opskit.proc.kernel.syscalls import seccomp_filters

ALLOW, KILL, LOG, TRACE = 0x7FFF0000, 0x80000000, 0x7FFC0000, 0x7FF00000
X86 = 0xC000003E


def code(*instructions):
    """A filter's bytes."""
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in instructions)


def only(number, answer, otherwise=ALLOW):
    """A filter with one answer for one system call."""
    return parse_filter(code((0x20, 0, 0, 0), (0x15, 0, 1, number), (0x06, 0, 0, answer), (0x06, 0, 0, otherwise)))


@pytest.mark.parametrize(
    ("filters", "answer"),
    [
        ([only(1, 0x50001)], "allowed"),
        ([only(435, 0x50001)], "EPERM"),
        ([only(435, 0x50000 | errno.ENOSYS)], "allowed"),
        ([only(435, 0x50000 | errno.ENOSYS), only(56, 0x50001)], "EPERM"),
        ([only(435, KILL)], "SIGSYS"),
        ([only(435, 0)], "SIGSYS"),
        ([only(435, 0x30000)], "SIGSYS"),
        ([only(435, LOG)], "allowed"),
        ([only(435, TRACE)], None),
        ([only(1, 0x50001), only(435, 0x5000D)], "EACCES"),
        ([only(435, 0x50001), only(435, KILL)], "SIGSYS"),
    ],
)
def test_what_pthread_create_meets(filters, answer):
    """clone3 first, clone only after ENOSYS; of several filters the strictest."""
    assert start_answer(filters, "x86_64") == answer


def test_a_filter_may_ask_for_the_architecture_and_for_clones_flags():
    """As container runtimes' do: other architectures are killed, clone with a namespace flag is refused."""
    program = parse_filter(
        code(
            (0x20, 0, 0, 4),
            (0x15, 1, 0, X86),
            (0x06, 0, 0, KILL),
            (0x20, 0, 0, 0),
            (0x15, 3, 0, 435),
            (0x15, 0, 3, 56),
            (0x20, 0, 0, 16),
            (0x45, 2, 1, 0x7E020000),
            (0x06, 0, 0, 0x50000 | errno.ENOSYS),
            (0x06, 0, 0, ALLOW),
            (0x06, 0, 0, 0x50001),
        )
    )
    assert start_answer([program], "x86_64") == "allowed"
    assert start_answer([program], "aarch64") == "SIGSYS"
    assert start_answer([program], "sparc") is None


def test_what_is_not_known_beforehand_is_undecided():
    """A filter that looks at clone3's pointer."""
    assert start_answer([parse_filter(code((0x20, 0, 0, 16), (0x16, 0, 0, 0)))], "x86_64") is None
    with pytest.raises(Undecided):
        run(parse_filter(code((0x00, 0, 0, 1))), {})


def test_arithmetic_memory_and_jumps():
    """LD, ST, ALU, TAX, TXA, JSET and JA: ((435 * 2 + 1) & 0xff) by way of the index."""
    program = parse_filter(
        code(
            (0x20, 0, 0, 0),
            (0x24, 0, 0, 2),
            (0x02, 0, 0, 3),
            (0x60, 0, 0, 3),
            (0x04, 0, 0, 1),
            (0x07, 0, 0, 0),
            (0x00, 0, 0, 0xFF),
            (0x5C, 0, 0, 0),
            (0x05, 0, 0, 1),
            (0x06, 0, 0, 77),
            (0x16, 0, 0, 0),
        )
    )
    assert run(program, {0: 435}) == (435 * 2 + 1) & 0xFF


@pytest.mark.parametrize("data", [b"", b"\0" * 7, b"\0" * 12])
def test_half_an_instruction_is_refused(data):
    """Only whole instructions are accepted."""
    with pytest.raises(BadInput):
        parse_filter(data)


@given(st.binary(min_size=8, max_size=160).filter(lambda data: len(data) % 8 == 0))
def test_no_program_hangs_or_breaks_it(data):
    """Jumps go forward only, as the kernel's verifier requires; every program ends with an answer or undecided."""
    try:
        value = run(parse_filter(data), {0: 435, 4: X86})
    except Undecided:
        return
    assert 0 <= value < 2**32


@pytest.mark.parametrize(
    ("doing", "link", "asked"),
    [
        ("running\n", None, True),
        ("0 0x3 0x1 0x2 0x0 0x0 0x0 0x7ff 0x7fe\n", "pipe:[7]", True),
        ("0 0x3 0x1 0x2 0x0 0x0 0x0 0x7ff 0x7fe\n", "socket:[7]", False),
        ("202 0x1 0x2 0x0 0x0 0x0 0x0 0x7ff 0x7fe\n", None, True),
        ("232 0x4 0x2 0x0 0x0 0x0 0x0 0x7ff 0x7fe\n", None, False),  # epoll_wait would return EINTR
        ("-1 0x7ff 0x7fe\n", None, False),
        ("", None, False),
    ],
)
def test_a_process_is_stopped_only_where_it_does_not_notice(tree, doing, link, asked):
    """The system call that it sleeps in decides whether its filters are read."""
    files = {"proc/7/syscall": doing} | ({"proc/7/fd/3": Link(link)} if link else {})
    called = []

    def read(pid):
        called.append(pid)
        return [code((0x06, 0, 0, ALLOW))]

    root = tree(files)
    answer = filter_answer(ProcFS(f"{root}/proc", str(root)), 7, "x86_64", read)
    assert bool(called) == asked
    assert answer == ("allowed" if asked else None)


def test_no_right_to_read_filters_is_no_answer(tree):
    """EPERM, a process that ended, one that did not stop."""
    root = tree({"proc/7/syscall": "running\n"})

    def refuse(_pid):
        raise PermissionError(1, "no")

    assert filter_answer(ProcFS(f"{root}/proc", str(root)), 7, "x86_64", refuse) is None


@pytest.mark.parametrize(
    ("code_", "starts", "answer"),
    [
        (errno.EINVAL, None, "allowed"),
        (errno.EPERM, None, "EPERM"),
        (errno.ENOSYS, True, "allowed"),
        (errno.ENOSYS, False, None),
    ],
)
def test_the_answer_to_opskit_itself(code_, starts, answer):
    """A thread is started only where clone() decides."""
    assert own_answer(code_, lambda: starts) == answer


# --- compared with the kernel ---

LD, LDX, ST, STX, ALU, JMP, RET, MISC = range(8)
ABS, IMM, MEM, LEN, X = 0x20, 0x00, 0x60, 0x80, 0x08
ADD, SUB, MUL, DIV, OR, AND, LSH, RSH, NEG, XOR = 0x00, 0x10, 0x20, 0x30, 0x40, 0x50, 0x60, 0x70, 0x80, 0xA0
JA, JEQ, JGT, JGE, JSET = 0x00, 0x10, 0x20, 0x30, 0x40
TAX, TXA = 0x07, 0x87
RET_A = 0x16
NOBODYS_CALL = 1999  # no system call of any architecture has this number


class Filter(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_char_p))


def install(*programs):
    """Install filters in this process, the first one first. Raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS
    for program in programs:
        if libc.prctl(22, 2, ctypes.byref(Filter(len(program) // 8, program)), 0, 0):  # PR_SET_SECCOMP
            raise OSError(ctypes.get_errno(), "the kernel takes no such filter")


def in_a_child(work):
    """The number that a function returns in a child, or `signal N`."""
    receive, send = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.write(send, str(work()).encode())
        except OSError as error:
            os.write(send, f"refused {error.errno}".encode())
        finally:
            os._exit(0)
    os.close(send)
    with open(receive, encoding="ascii") as pipe:
        said = pipe.read()
    _, status = os.waitpid(child, 0)
    return f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else said


def kernels(body, arguments):
    """A filter's accumulator as the kernel computes it: twelve bits each as the errno of three calls."""
    start = [
        (LD | ABS, 0, 0, 0),
        (JMP | JGE, 0, 1, NOBODYS_CALL),
        (JMP | JGT, 0, 1, NOBODYS_CALL + 2),
        (RET, 0, 0, ALLOW),
    ]
    end = [
        (TAX, 0, 0, 0),
        (LD | ABS, 0, 0, 0),
        (JMP | JEQ, 3, 0, NOBODYS_CALL + 1),
        (JMP | JEQ, 5, 0, NOBODYS_CALL + 2),
        (TXA, 0, 0, 0),
        (JMP | JA, 0, 0, 5),
        (TXA, 0, 0, 0),
        (ALU | RSH, 0, 0, 12),
        (JMP | JA, 0, 0, 2),
        (TXA, 0, 0, 0),
        (ALU | RSH, 0, 0, 24),
        (ALU | AND, 0, 0, 0xFFF),
        (ALU | OR, 0, 0, 0x50000),
        (RET_A, 0, 0, 0),
    ]
    program = code(*start, *body, *end)

    def work():
        install(program)
        libc = ctypes.CDLL(None, use_errno=True)
        parts = []
        for number in range(3):
            ctypes.set_errno(0)
            libc.syscall(ctypes.c_long(NOBODYS_CALL + number), *(ctypes.c_long(argument) for argument in arguments))
            parts.append(ctypes.get_errno() << 12 * number)
        return sum(parts)

    said = in_a_child(work)
    if said.startswith("refused"):
        pytest.skip("filters are not permitted here") if said == f"refused {errno.ENOSYS}" else pytest.fail(said)
    return int(said)


def assert_as_the_kernel(*body, arguments=()):
    """The accumulator at the end of a program is the kernel's."""
    data = {0: NOBODYS_CALL, 4: X86}
    for index, argument in enumerate(arguments):
        data |= {16 + 8 * index: argument & 0xFFFFFFFF, 20 + 8 * index: argument >> 32}
    ours = run(parse_filter(code(*body, (RET_A, 0, 0, 0))), data)
    assert 0 <= ours < 2**32
    kernel = kernels(body, arguments)
    assert ours == kernel, f"we say {ours:#x}, the kernel {kernel:#x}"


@each_of("operand", [0, 1, 7, 31, 0xFFFFFFFF])
@each_of("operation", [ADD, SUB, MUL, DIV, OR, AND, LSH, RSH, NEG, XOR])
def test_arithmetic_is_the_kernels(operation, operand):
    """Each operation, with a constant and with the index, at values that overflow 32 bits."""
    for left in (0, 5, 0x80000001, 0xFFFFFFFF):
        if (operand > 31 and operation in (LSH, RSH)) or (operand == 0 and operation == DIV):
            continue  # such a constant is refused
        assert_as_the_kernel((LD | IMM, 0, 0, left), (ALU | operation, 0, 0, operand))
        if operation != NEG:  # it has no operand
            assert_as_the_kernel((LD | IMM, 0, 0, left), (LDX | IMM, 0, 0, operand), (ALU | operation | X, 0, 0, 3))


@pytest.mark.parametrize("comparison", [JEQ, JGT, JGE, JSET], ids=["jeq", "jgt", "jge", "jset"])
def test_jumps_are_the_kernels(comparison):
    """Below, at and above the operand, a constant and the index; both ways out."""
    for left in (5, 6, 7, 8, 0x80000000):
        ways = [(LD | IMM, 0, 0, 77), (JMP | JA, 0, 0, 2), (LD | IMM, 0, 0, 88), (JMP | JA, 0, 0, 0)]
        assert_as_the_kernel((LD | IMM, 0, 0, left), (JMP | comparison, 0, 2, 6), *ways)
        indexed = ((LDX | IMM, 0, 0, 6), (LD | IMM, 0, 0, left), (JMP | comparison | X, 0, 2, 99))
        assert_as_the_kernel(*indexed, *ways)


def test_loads_and_stores_are_the_kernels():
    """Memory words by their number, the size of the data, the call's arguments in two halves each, the index."""
    stores = [(LD | IMM, 0, 0, 0x1000 + number) for number in range(16)]
    written = [step for number, load in enumerate(stores) for step in (load, (ST, 0, 0, number))]
    for number in (0, 1, 14, 15):
        assert_as_the_kernel(*written, (LD | MEM, 0, 0, number))
        assert_as_the_kernel(*written, (LDX | MEM, 0, 0, number), (TXA, 0, 0, 0))
    assert_as_the_kernel((LDX | IMM, 0, 0, 9), (STX, 0, 0, 3), (LD | IMM, 0, 0, 0), (LD | MEM, 0, 0, 3))
    assert_as_the_kernel((LD | LEN, 0, 0, 0))
    assert_as_the_kernel((LDX | LEN, 0, 0, 0), (TXA, 0, 0, 0))
    assert_as_the_kernel((LD | IMM, 0, 0, 9), (TAX, 0, 0, 0), (LD | IMM, 0, 0, 1), (TXA, 0, 0, 0))
    arguments = (0x1122334455667788, 3)
    for offset in (0, 16, 20, 24, 28):
        assert_as_the_kernel((LD | ABS, 0, 0, offset), arguments=arguments)


def test_what_the_kernel_refuses_or_kills_for_is_undecided():
    """The remainder is no operation of a filter's; a division by an index of 0 kills the caller."""
    assert in_a_child(lambda: install(code((ALU | 0x90, 0, 0, 2), (RET, 0, 0, ALLOW)))) == f"refused {errno.EINVAL}"
    for body in ([(ALU | 0x90, 0, 0, 2)], [(LDX | IMM, 0, 0, 0), (ALU | DIV | X, 0, 0, 5)]):
        with pytest.raises(Undecided):
            run(parse_filter(code((LD | IMM, 0, 0, 7), *body, (RET_A, 0, 0, 0))), {})
    divided = code(
        (LD | ABS, 0, 0, 0), (JMP | JEQ, 1, 0, NOBODYS_CALL), (RET, 0, 0, ALLOW), (LDX | IMM, 0, 0, 0),
        (ALU | DIV | X, 0, 0, 5), (RET, 0, 0, ALLOW),
    )  # fmt: skip

    def divide():
        install(divided)
        return ctypes.CDLL(None).syscall(ctypes.c_long(NOBODYS_CALL))

    assert in_a_child(divide) == f"signal {signal.SIGSYS}"


ACTIONS = [KILL, 0x00000000, 0x00030000, 0x00050000 | errno.EACCES, LOG, ALLOW]  # the strictest first


@pytest.mark.parametrize("stricter", range(len(ACTIONS) - 1))
def test_of_two_filters_the_stricter_one_decides_as_in_the_kernel(stricter):
    """Whichever was installed first; asked of clone3's number, and of the kernel with a number that is no call."""
    for milder in range(stricter + 1, len(ACTIONS)):
        pair = [ACTIONS[stricter], ACTIONS[milder]]
        expected = {0: "SIGSYS", 1: "SIGSYS", 2: "SIGSYS", 3: "EACCES", 4: "allowed"}[stricter]
        for order in (pair, pair[::-1]):
            assert start_answer([only(435, action) for action in order], "x86_64") == expected
            raw = [
                code((LD | ABS, 0, 0, 0), (JMP | JEQ, 0, 1, NOBODYS_CALL), (RET, 0, 0, action), (RET, 0, 0, ALLOW))
                for action in order
            ]

            def call(raw=raw):
                install(*raw)
                libc = ctypes.CDLL(None, use_errno=True)
                libc.syscall(ctypes.c_long(NOBODYS_CALL))
                return errno.errorcode[ctypes.get_errno()]

            kernel = in_a_child(call)
            assert kernel == {"SIGSYS": f"signal {signal.SIGSYS}", "EACCES": "EACCES", "allowed": "ENOSYS"}[expected]


def test_an_errno_without_a_name_is_a_number():
    """Of the filter's answer only the data is the errno."""
    assert start_answer([only(435, 0x00050000 | 4000)], "x86_64") == "errno 4000"


@pytest.mark.parametrize(
    ("machine", "arch", "clone"),
    [("x86_64", 0xC000003E, 56), ("aarch64", 0xC00000B7, 220), ("riscv64", 0xC00000F3, 220)],
)
def test_each_architecture_has_its_numbers(machine, arch, clone):
    """include/uapi/linux/audit.h, and clone of its table; clone3 is 435 everywhere."""

    def answered(number, flags=None):
        refuse = (RET, 0, 0, 0x50000 | errno.EACCES)
        asked = [(LD | ABS, 0, 0, 16), (JMP | JEQ, 1, 0, flags)] if flags else []
        here = [(LD | ABS, 0, 0, 4), (JMP | JEQ, 1, 0, arch), (RET, 0, 0, KILL), (LD | ABS, 0, 0, 0)]
        absent = [(JMP | JEQ, 0, 1, 435), (RET, 0, 0, 0x50000 | errno.ENOSYS)] if number != 435 else []
        mine = [(JMP | JEQ, 0, len(asked) + 1, number), *asked, refuse]
        return start_answer([parse_filter(code(*here, *absent, *mine, (RET, 0, 0, ALLOW)))], machine)

    assert answered(435) == "EACCES"
    assert answered(clone) == "EACCES"
    # What glibc asks clone() for; as strace shows it: CLONE_VM|…|CLONE_CHILD_CLEARTID.
    assert answered(clone, 0x3D0F00) == "allowed"
    assert answered(clone, 0x3D0F01) == "EACCES"
    assert answered(clone + 1) == "allowed"


def test_the_upper_half_of_clones_flags_is_nothing():
    """They are an int; a filter may look at all 64 bits."""
    zero = parse_filter(
        code(
            (LD | ABS, 0, 0, 0), (JMP | JEQ, 0, 1, 435), (RET, 0, 0, 0x50000 | errno.ENOSYS), (LD | ABS, 0, 0, 20),
            (JMP | JEQ, 1, 0, 0), (RET, 0, 0, 0x50001), (RET, 0, 0, ALLOW),
        )
    )  # fmt: skip
    assert start_answer([zero], "x86_64") == "allowed"


# The calls that the kernel restarts after a stop, by its tables (arch/x86/entry/syscalls/syscall_64.tbl,
# include/uapi/asm-generic/unistd.h), with arguments with which they sleep forever.
SLEEPS = {
    "poll": (7, (0, 0, -1)),
    "select": (23, (0, 0, 0, 0, 0)),
    "pause": (34, ()),
    "nanosleep": (35, ("long", 0)),
    "wait4": (61, (-1, 0, 0, 0)),
    "rt_sigsuspend": (130, ("zeros", 8)),
    "futex": (202, ("zeros", 0, 0, 0)),
    "clock_nanosleep": (230, (1, 0, "long", 0)),
    "waitid": (247, (0, 0, 0, 4, 0)),
    "pselect6": (270, (0, 0, 0, 0, 0, 0)),
    "ppoll": (271, (0, 0, 0, 0, 0)),
}


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the numbers are x86-64's")
@pytest.mark.parametrize("name", [*SLEEPS, "read", "epoll_wait"])
def test_a_real_sleeper_does_not_notice_that_its_filter_was_read(root_only, name):
    """It stays in the same call. Where a call would return EINTR, as a read from a socket, no filter is read."""
    left, right = socket.socketpair()
    reading, writing = os.pipe()
    woken, wake = os.pipe()
    child = os.fork()
    if not child:
        sleeper = os.fork() if name in ("wait4", "waitid") else None
        if sleeper == 0:
            ctypes.CDLL(None).prctl(1, 9)  # PR_SET_PDEATHSIG, SIGKILL
            time.sleep(600)
        install(code((RET, 0, 0, ALLOW)))
        long, zeros = struct.pack("=qq", 600, 0), bytes(64)
        epoll = select.epoll()
        special = {"read": (0, (reading, "zeros", 1)), "epoll_wait": (232, (epoll.fileno(), "zeros", 1, -1))}
        number, arguments = (SLEEPS | special)[name]
        known = {"long": ctypes.c_char_p(long), "zeros": ctypes.create_string_buffer(zeros)}
        words = [known[word] if isinstance(word, str) else ctypes.c_long(word) for word in arguments]
        ctypes.CDLL(None).syscall(ctypes.c_long(number), *words)
        os.write(wake, b"woken")
        os._exit(0)
    fs, asked = ProcFS(), []

    def read(pid):
        asked.append(pid)
        return seccomp_filters(pid)

    try:
        call = str((SLEEPS | {"read": (0, ()), "epoll_wait": (232, ())})[name][0])
        for _ in range(2000):
            before = fs.read(child, "syscall").split()
            if before[0].decode() == call and b"\nSeccomp:\t2" in fs.read(child, "status"):
                break
            time.sleep(0.005)
        else:
            pytest.fail(f"{name} is not slept in: {before}")
        answer = filter_answer(fs, child, "x86_64", read)
        time.sleep(0.02)
        # A call with a timeout is restarted as restart_syscall(2).
        assert fs.read(child, "syscall").split()[0].decode() in (call, "219")
        assert not select.select([woken], [], [], 0)[0]
        assert (answer, bool(asked)) == ((None, False) if name == "epoll_wait" else ("allowed", True))
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        for fd in (reading, writing, woken, wake):
            os.close(fd)
        left.close()
        right.close()


def test_a_signal_between_seize_and_interrupt_is_delivered(root_only, monkeypatch):
    """The tracer passes on the signal at which the process stopped first."""
    heard, hear = os.pipe()
    child = os.fork()
    if not child:
        signal.signal(signal.SIGUSR1, lambda *_: os.write(hear, b"signal"))
        install(code((RET, 0, 0, ALLOW)))
        os.write(hear, b"ready")
        while True:
            time.sleep(600)
    ptrace = syscalls._ptrace

    def with_signal(request, *rest):
        result = ptrace(request, *rest)
        if request == syscalls._PTRACE_SEIZE:
            os.kill(child, signal.SIGUSR1)
            while b"tracing stop" not in ProcFS().read(child, "status"):
                time.sleep(0.001)
        return result

    try:
        assert os.read(heard, 6) == b"ready"
        monkeypatch.setattr(syscalls, "_ptrace", with_signal)
        assert len(seccomp_filters(child)) == 1
        assert select.select([heard], [], [], 60)[0], "the signal was lost"
        assert os.read(heard, 6) == b"signal"
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(heard)
        os.close(hear)


@pytest.mark.parametrize(
    ("call", "asked"),
    [
        (72, True), (73, True), (95, True), (98, True), (101, True), (115, True), (133, True), (260, True),
        (22, False), (207, False), (71, False), (74, False),
    ],
)  # fmt: skip
def test_the_calls_of_arm(tree, call, asked):
    """pselect6, ppoll, waitid, futex, nanosleep, clock_nanosleep, rt_sigsuspend, wait4; not epoll_pwait and recvfrom."""
    root = tree({"proc/7/syscall": f"{call} 0x3 0x1 0x2 0x0 0x0 0x0 0x7ff 0x7fe\n"})
    read = lambda _pid: [code((RET, 0, 0, ALLOW))]  # noqa: E731
    assert filter_answer(ProcFS(f"{root}/proc", str(root)), 7, "aarch64", read) == ("allowed" if asked else None)


@pytest.mark.parametrize(("target", "answer"), [("pipe:[7]", "allowed"), ("socket:[7]", None)])
def test_a_read_on_arm(tree, target, answer):
    """Number 63; a socket may have a timeout."""
    files = {"proc/7/syscall": "63 0x3 0x1 0x2 0x0 0x0 0x0 0x7ff 0x7fe\n", "proc/7/fd/3": Link(target)}
    root = tree(files)
    read = lambda _pid: [code((RET, 0, 0, ALLOW))]  # noqa: E731
    assert filter_answer(ProcFS(f"{root}/proc", str(root)), 7, "aarch64", read) == answer


@pytest.mark.parametrize(("machine", "doing"), [("sparc64", "0 0x3\n"), ("x86_64", "35\n"), ("x86_64", "x 0x3\n")])
def test_what_is_slept_in_must_be_known(tree, machine, doing):
    """Another architecture, or a line that is cut: no process is stopped for it."""
    root = tree({"proc/7/syscall": doing, "proc/7/fd/3": Link("pipe:[7]")})
    asked = []
    assert filter_answer(ProcFS(f"{root}/proc", str(root)), 7, machine, asked.append) is None
    assert asked == []


def test_no_filter_and_a_garbled_one_are_no_answer(tree):
    """An empty list of filters, and half an instruction."""
    root = tree({"proc/7/syscall": "running\n"})
    fs = ProcFS(f"{root}/proc", str(root))
    assert filter_answer(fs, 7, "x86_64", lambda _pid: []) is None
    assert filter_answer(fs, 7, "x86_64", lambda _pid: [b"1234"]) is None


def test_a_kernel_that_looks_at_the_pointer_first_lets_it_pass():
    """EFAULT, like EINVAL, comes from the kernel, not from a filter."""
    assert own_answer(errno.EFAULT, lambda: False) == "allowed"
    assert own_answer(errno.EACCES, lambda: True) == "EACCES"
