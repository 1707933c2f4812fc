"""Which process a word means that is no command; a machine without any."""

from __future__ import annotations

import os
import time

import pytest

from opskit.checks.run import Request, run_checks
from opskit.checks.word import process_of_word
from opskit.collect.targets import WhichProcess
from opskit.errors import OpskitError, TargetTimeout
from opskit.host import Host
from opskit.proc.fs import ProcFS


@pytest.fixture
def finding(monkeypatch):
    """What a word means, where the search does this."""

    def of(search):
        monkeypatch.setattr("opskit.checks.word.find_process", lambda *_: search())
        return process_of_word(Host(ProcFS()), "orders")

    return of


def test_a_process_of_another_tree(tree):
    """The child reads that tree, too."""
    root = str(tree({"proc/7/stat": "7 (orders) S 1", "proc/7/comm": "orders\n", "proc/meminfo": "MemTotal: 1 kB\n"}))
    assert process_of_word(Host.at(root, None), "orders") == 7
    assert process_of_word(Host.at(root, None), "others") is None


def test_no_proc_is_mounted(tmp_path):
    """Neither a name, nor a PID, nor the machine can be looked at: one line that says so."""
    host = Host(ProcFS(str(tmp_path)))
    for ask in (
        lambda: process_of_word(host, "1"),
        lambda: process_of_word(host, "orders"),
        lambda: run_checks(host, Request()),
    ):
        with pytest.raises(OpskitError, match="lists no process: it is not mounted here; mount -t proc proc /proc"):
            ask()


def test_several_processes_with_long_names(finding):
    """The list arrives whole, however many parts the child sends it in."""
    lines = tuple(f"{number} {'x' * 100_000}" for number in range(20))

    def several():
        raise WhichProcess("20 JVMs match 'orders'", lines)

    with pytest.raises(OpskitError, match="20 JVMs match 'orders'") as raised:
        finding(several)
    assert raised.value.lines == lines


def test_a_search_that_does_not_end(finding, monkeypatch):
    """An error that says what helps; the same where its process is killed."""
    with pytest.raises(TargetTimeout, match="'orders': the process that measures has ended; give its PID"):
        finding(lambda: os._exit(1))
    monkeypatch.setattr("opskit.checks.word._LONGEST_S", 0.03)
    with pytest.raises(
        TargetTimeout, match=r"^cannot tell which process is 'orders': no answer within 0.03 s; give its PID$"
    ):
        finding(lambda: time.sleep(0.1))
    os.waitpid(-1, 0)
