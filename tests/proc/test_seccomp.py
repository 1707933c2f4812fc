"""What a seccomp filter answers to the start of a thread."""

from __future__ import annotations

import errno
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trees import Link

from opskit.errors import BadInput
from opskit.proc.fs import ProcFS
from opskit.proc.seccomp import Undecided, filter_answer, own_answer, parse_filter, run, start_answer

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
    """Whatever the kernel sends, it is whole."""
    with pytest.raises(BadInput):
        parse_filter(data)


@given(st.binary(min_size=8, max_size=160).filter(lambda data: len(data) % 8 == 0))
def test_no_program_hangs_or_breaks_it(data):
    """Jumps go forward only, as the kernel's verifier wants them; the rest is an answer or undecided."""
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
    """What it sleeps in decides whether its filters are read at all."""
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
def test_what_we_are_told_ourselves(code_, starts, answer):
    """A thread is started only where clone() decides."""
    assert own_answer(code_, lambda: starts) == answer
