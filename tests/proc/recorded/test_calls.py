"""Answers that no file gives: as they were recorded, and as an archive may claim."""

from __future__ import annotations

import errno
import json
import socket

import pytest

from opskit.errors import BadInput, NotSupported
from opskit.proc.fs import ProcFS
from opskit.proc.inet_diag import SKMEMINFO, Reader
from opskit.proc.kernel.adjtimex import KernelClock, read_kernel_clock
from opskit.proc.kernel.affinity import allowed_cpus
from opskit.proc.kernel.clock_reads import read_pair
from opskit.proc.kernel.names import user_by_uid
from opskit.proc.kernel.sock_diag import extensions
from opskit.proc.recorded.answers import decode, decoder, encode
from opskit.proc.recorded.call_samples import CallSamples
from opskit.proc.recorded.clock import TapeClock
from opskit.proc.recorded.fs import TapeFS
from opskit.proc.recorded.network import dump_key
from opskit.proc.recorded.tape import CALL, Failure, Mark, Origin, Tape
from opskit.proc.tcp_sockets import LISTEN

ANSWERS = [
    (None, "int | None"), (-1, "int | None"), (1 << 63, "int"), (True, "bool"), (0.1, "float"), (2, "float"),
    ('a\udc80\n"é', "str"), (b"caf\xe9 %", "bytes"), (b"\0\xff", "bytes"), (bytes(range(256)) * 40, "bytes"),
    ((1, b"", "x"), "tuple[int, bytes, str]"), ((), "tuple[int, ...]"), ([b"\1", b"a"], "list[bytes]"),
    (frozenset({0, 1, 2, 3, 8}), "frozenset[int]"), (frozenset(), "frozenset[int]"), (frozenset({"b", "a"}), "frozenset[str]"),
    ({"a": (1, None)}, "dict[str, tuple[int, int | None]]"), ((True, None), "tuple[bool | None, int | None]"),
    (KernelClock("TIME_OK", 8193, 1e-9, 0.5, 0.1, -3.25, 37), "KernelClock"),
]  # fmt: skip


@pytest.mark.parametrize(("answer", "kind"), ANSWERS, ids=[f"{at}-{kind}" for at, (_, kind) in enumerate(ANSWERS)])
def test_an_answer_comes_back_exactly(answer, kind):
    """Through JSON, with its types."""
    found = decode(json.loads(json.dumps(encode(answer))), kind)
    assert found == answer
    assert type(found) is type(answer)
    if not isinstance(answer, frozenset):  # whose order is that of the process
        assert repr(found) == repr(answer)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (True, "int"), (1.0, "int"), (1 << 64, "int"), (float("nan"), "float"), ("x", "float"), (None, "str"), ("\u20ac", "bytes"),
        ({"base64": "a"}, "bytes"), ({"deflated": "AAAA"}, "bytes"), ({"exec": ""}, "bytes"), ([1], "tuple[int, int]"),
        ([1, 2, 3], "tuple[int, int]"), ({}, "list[int]"), ([0], "frozenset[int]"), ([0, 1 << 40], "frozenset[int]"),
        ([3, 1], "frozenset[int]"), ([[[1]]], "frozenset[list[int]]"), ([[[1], 2]], "dict[list[int], int]"),
        (["TIME_OK"], "KernelClock"), ([1] * 7, "KernelClock"), ([], "int | None"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_bad_input(value, kind):
    """One line that names the capture."""
    with pytest.raises(BadInput, match="the capture: a recorded answer is no "):
        decode(value, kind)


def test_no_other_class_is_made():
    """A type is one of the table."""
    for name in ("Popen", "os.system", "int |", "list[int] x"):
        with pytest.raises((KeyError, IndexError)):
            decoder(name)


def test_what_no_answer_may_hold_is_refused():
    """Before it is written."""
    for value in (float("inf"), 1 << 64, object(), 1j):
        with pytest.raises(ValueError, match="no answer may hold"):
            encode(value)


def recording(source=None):
    tape = Tape(Origin(), (Mark(0.0, 0.0), Mark(1.0, 1.0)))
    return TapeFS(tape, TapeClock(tape.marks), source)


def test_a_question_is_asked_once_and_replayed():
    """The errors too. What was not asked is in no capture."""
    fs = recording(ProcFS())
    clock = fs.calls.ask(read_kernel_clock)
    assert fs.calls.ask(user_by_uid, 0) == "root"
    with pytest.raises(ProcessLookupError):
        fs.calls.ask(allowed_cpus, 2**31 - 2)
    fs.source = None
    assert fs.calls.ask(read_kernel_clock) == clock
    assert fs.calls.ask(user_by_uid, 0) == "root"
    with pytest.raises(ProcessLookupError, match="No such process"):
        fs.calls.ask(allowed_cpus, 2**31 - 2)
    with pytest.raises(OSError, match="it is not in the capture"):
        fs.calls.ask(user_by_uid, 1)


def test_samples_stand_at_their_marks():
    """Sockets and clocks are asked at each mark; a replay has those of its mark."""
    fs = recording(ProcFS())
    samples = CallSamples(fs.tape, ProcFS(), ("/proc/self/ns/none",))
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        samples.sample(0)
    samples.sample(1)
    samples.keep()
    fs.source = None
    keys = [*fs.tape.answers[CALL][0]]
    assert [key.partition("(")[0] for key in keys] == [
        "proc.kernel.adjtimex.read_kernel_clock", "proc.kernel.clock_reads.read_pair", "network.dump", "network.dump",
    ]  # fmt: skip
    first, listening = fs.calls.ask(read_pair), port_listens(fs, port)
    fs.clock.sleep(1.0)
    assert fs.calls.ask(read_pair).at_s > first.at_s
    assert [listening, port_listens(fs, port)] == [True, False]


def port_listens(fs, port):
    """By the dump of this mark."""
    tape = fs.tape.find(CALL, dump_key(None, 1 << LISTEN, extensions(SKMEMINFO)), fs.clock.mark)
    rows = [row for chunk in decode(tape[1], "list[bytes]") for _, row in Reader().rows(chunk)]
    return port.to_bytes(2, "big") in {row[2][:2] for row in rows}


@pytest.mark.parametrize(
    "held",
    [None, [], "answer", ["answer"], ["error", "SystemExit", "x"], ["error", 1, 2], ["answer", {}], {"answer": 1}],
)
def test_a_forged_answer_is_bad_input(held):
    """Whatever stands in the archive."""
    fs = recording()
    fs.tape.keep(CALL, "proc.kernel.names.user_by_uid(0)", held)
    with pytest.raises(BadInput, match="the capture: a recorded answer is "):
        fs.calls.ask(user_by_uid, 0)


def test_recorded_errors_are_raised():
    """An OSError by its number, others by name."""
    fs = recording()
    key = "proc.kernel.names.user_by_uid(0)"
    fs.tape.keep(CALL, key, Failure(errno.EPERM, "no"))
    with pytest.raises(PermissionError, match="no"):
        fs.calls.ask(user_by_uid, 0)
    fs.tape.keep(CALL, key, ["error", "NotSupported", "too old"])
    with pytest.raises(NotSupported, match=r"^too old$"):
        fs.calls.ask(user_by_uid, 0)
