"""What irqbalance is told by its environment and its options."""

from __future__ import annotations

import pytest

from opskit.proc.fs import ProcFS
from opskit.proc.irqbalance import IrqBalance, read_irqbalance

ISOLATED = frozenset({2, 3})


@pytest.fixture
def told(tree):
    """A function of the command line's words and the environment; None: it cannot be read."""

    def read(words=("irqbalance",), environ=b""):
        files = {"proc/812/cmdline": b"".join(word.encode() + b"\0" for word in words)}
        if environ is not None:
            files["proc/812/environ"] = environ
        root = tree(files)
        return read_irqbalance(ProcFS(str(root / "proc"), str(root)), 812, ISOLATED)

    return read


def test_without_a_word_it_leaves_isolated_cpus_alone(told):
    """It moves interrupts again and again."""
    assert told() == IrqBalance(812, ISOLATED)


@pytest.mark.parametrize(
    ("environ", "banned"),
    [
        (b"A=1\0IRQBALANCE_BANNED_CPUS=00000001,00000003\0B=2\0", {0, 1, 32}),
        (b"IRQBALANCE_BANNED_CPUS=c", {2, 3}),
        (b"IRQBALANCE_BANNED_CPULIST=0-1,7\0", {0, 1, 7}),
        (b"IRQBALANCE_BANNED_CPUS=1\0IRQBALANCE_BANNED_CPULIST=5\0", {0}),  # the mask comes first
        (b"IRQBALANCE_BANNED_CPUS=\0", set()),
        (b"IRQBALANCE_BANNED_CPULIST=\xff\0", set()),
    ],
)
def test_banned_cpus_replace_the_isolated_ones(told, environ, banned):
    """Even where the variable is empty or no list."""
    found = told(environ=environ)
    assert (found.banned, found.ignores_isolation) == (banned, True)


def test_names_that_are_longer_are_other_variables(told):
    """And a value is no name."""
    environ = b"IRQBALANCE_BANNED_CPUS_OLD=f\0X=IRQBALANCE_BANNED_CPUS=f\0"
    assert told(environ=environ) == IrqBalance(812, ISOLATED)


def test_another_users_environment(told):
    """The CPUs are unknown, the options are not."""
    found = told(["irqbalance", "--oneshot"], None)
    assert (found.banned, found.one_shot, found.ignores_isolation) == (None, True, False)


@pytest.mark.parametrize(
    ("words", "environ", "is_once"),
    [
        (["-o"], b"", True),
        (["--oneshot"], b"", True),
        ([], b"IRQBALANCE_ONESHOT=\0", True),
        (["--foreground"], b"", False),
        (["--policyscript=--oneshot"], b"", False),
    ],
)
def test_one_shot(told, words, environ, is_once):
    """Then nothing that is typed is undone."""
    assert told(["irqbalance", *words], environ).one_shot is is_once


@pytest.mark.parametrize(
    ("words", "banned"),
    [
        (["--banirq=85", "-i", "86", "-i87", "--banirq", "88"], {85, 86, 87, 88}),
        (["--banirq"], set()),
        (["-i", "x", "--banirq=-1", "-i99999999999999999999999"], set()),
        (["--interval=5"], set()),
    ],
)
def test_banned_interrupts(told, words, banned):
    """In all forms of the option."""
    found = told(["irqbalance", *words]).banned_irqs
    assert {number for number in found if number < 1 << 32} == banned


def test_a_process_that_has_ended(tmp_path):
    """Its environment is unknown."""
    (tmp_path / "proc").mkdir()
    assert read_irqbalance(ProcFS(str(tmp_path / "proc"), str(tmp_path)), 812, ISOLATED).banned is None
