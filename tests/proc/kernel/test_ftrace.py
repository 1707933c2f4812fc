"""The text of the kernel's tracer."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from opskit.proc.kernel.ftrace import (
    CALLS,
    PATH_CALLS,
    Failure,
    named,
    parse_buffer_stats,
    parse_failures,
    parse_path_offset,
)

LINES = b"""\
CPU:1 [LOST 150800 EVENTS]
         python3-9372    [000] .....  3697.270890: sys_access -> 0xfffffffffffffffe
 kworker/0:1-7 a-12      (   9999) [001] d..1. 1.000001: sys_newfstatat -> 0xfffffffffffffffe
          <...>-77      [012]  3697.270890: sys_exit: NR 262 = -2
"""


def test_both_kinds_of_events_and_odd_names():
    """Syscalls and raw_syscalls, with and without the irq and tgid columns; lost events are no event."""
    assert [named(event) for event in parse_failures(LINES)] == [
        Failure(b"python3", 9372, "access"),
        Failure(b"kworker/0:1-7 a", 12, "newfstatat"),
        Failure(b"<...>", 77, CALLS.get(262, "system call 262")),
    ]


comms = st.binary(min_size=1, max_size=15).filter(lambda comm: not set(comm) & {0, 10} and comm.strip() == comm)


@given(comms, st.integers(1, 4_194_304), st.integers(0, 511), st.sampled_from(PATH_CALLS))
def test_a_thread_may_be_called_anything(comm, tid, cpu, call):
    """The comm is what stands before the last -TID [CPU], whatever it looks like itself."""
    line = b"%16s-%-7d [%03d] .....  3697.270890: sys_%s -> 0xfffffffffffffffe" % (comm, tid, cpu, call.encode())
    assert [named(event) for event in parse_failures(line)] == [Failure(comm, tid, call)]


def test_a_cpus_events_are_all_counted():
    """Read, waiting, overwritten and dropped: every event counts once."""
    text = (
        "entries: 9380\noverrun: 366125\ncommit overrun: 0\nbytes: 263940\noldest event ts:  3698.287655\n"
        "now ts:  3698.318149\ndropped events: 5\nread events: 20495\n"
    )
    assert parse_buffer_stats(text) == 9380 + 366125 + 5 + 20495


def test_every_path_call_is_named_once():
    """The table of names has those of every architecture's numbers, and the older ones."""
    assert len(set(PATH_CALLS)) == len(PATH_CALLS)
    assert {"openat", "stat", "statx", "newstat", "stat64"} <= set(PATH_CALLS)


FORMAT = """\
name: sys_enter_%s
ID: 854
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;

\tfield:int __syscall_nr;\toffset:8;\tsize:4;\tsigned:1;
\tfield:int dfd;\toffset:16;\tsize:8;\tsigned:0;
\tfield:%s;\toffset:%s;\tsize:8;\tsigned:0;

print fmt: "dfd: 0x%%08lx, filename: 0x%%08lx", ((unsigned long)(REC->dfd)), ((unsigned long)(REC->filename))
"""


def test_where_the_path_of_a_call_stands():
    """By the name of the argument; None for a call without a path, and for a malformed file."""
    assert parse_path_offset(FORMAT % ("newfstatat", "const char * filename", "24")) == 24
    assert parse_path_offset(FORMAT % ("rename", "const char * oldname", "16")) == 16
    assert parse_path_offset(FORMAT % ("readlink", "const char *path", "16")) == 16
    assert parse_path_offset(FORMAT % ("connect", "struct sockaddr * uservaddr", "24")) is None
    assert parse_path_offset(FORMAT % ("x", "const char * filename", "99999")) is None
    assert parse_path_offset("") is None
