"""The arguments for a live JVM: PID, SAMPLES, INTERVAL, or the options instead of them."""

from __future__ import annotations

import os

import pytest

from opskit.collect.jpmp.words import read_words
from opskit.errors import NoSuchProcess, UsageError
from opskit.host import Host

HOST = Host.at(None, None)
ME = str(os.getpid())


@pytest.mark.parametrize(
    ("words", "kind", "options", "expected"),
    [
        ((ME,), "threads", {}, (20, None)),
        ((ME, "5"), "threads", {}, (5, None)),
        ((ME, "5", "250ms"), "threads", {}, (5, 0.25)),
        ((ME, "5", "0"), "threads", {}, (5, 0.0)),
        ((ME,), "virtual", {}, (1, None)),
        ((ME, "3"), "synchronizers", {}, (3, None)),
        ((ME,), "virtual", {"samples": 4, "interval_s": 2.0}, (4, 2.0)),
        ((ME, "5"), "threads", {"interval_s": 0.5}, (5, 0.5)),
    ],
)
def test_words_and_options(words, kind, options, expected):
    """What walks the heap or writes a file happens once, unless more is asked for."""
    pid, schedule = read_words(HOST, words, kind, **options)
    assert (pid, schedule.samples, schedule.interval_s) == (os.getpid(), *expected)


@pytest.mark.parametrize(
    ("words", "options", "message"),
    [
        ((ME, "0"), {}, "SAMPLES is 0; give a whole number from 1 up"),
        ((ME, "many"), {}, "SAMPLES is 'many'"),
        ((ME, "5", "soon"), {}, "INTERVAL is 'soon'"),
        ((ME, "5", "1", "2"), {}, "'2' is an unexpected argument"),
        ((ME, "5"), {"samples": 5}, "-c and SAMPLES exclude each other"),
        ((ME, "5", "1"), {"interval_s": 1.0}, "-i and INTERVAL exclude each other"),
        (("No-Such-File", "x"), {}, "'No-Such-File' is not a file, and 'x' is not a number of samples"),
        (("No-Such-Class",), {}, "'No-Such-Class' is not a file, and not part of a running JVM's main class or jar"),
    ],
)
def test_bad_words(words, options, message):
    """Each names what was given and what to give."""
    with pytest.raises(UsageError) as raised:
        read_words(HOST, words, "threads", **options)
    assert message in str(raised.value)


def test_a_pid_that_is_gone():
    """By number, nothing else is tried."""
    with pytest.raises(NoSuchProcess):
        read_words(HOST, (str(2**31 - 2),), "threads")
