"""The method of a compile task, in every form of its line."""

from __future__ import annotations

import pytest

from opskit.analysis.crash.case import task_method


@pytest.mark.parametrize(
    ("task", "method"),
    [
        ("C2:   1234   12   4   java.util.HashMap::get (23 bytes)", ("java.util.HashMap", "get")),
        (
            "C2:    595   73             sun.nio.cs.UTF_8$Encoder::encode (359 bytes)",
            ("sun.nio.cs.UTF_8$Encoder", "encode"),
        ),
        ("C2:147541338 34397 %s!   4       com.acme.Order::run @ 2888 (3436 bytes)", ("com.acme.Order", "run")),
        (
            "C2:   2489  129    b        jdk.internal.module.Builder::<init> (45 bytes)",
            ("jdk.internal.module.Builder", "<init>"),
        ),
        ("C1:    100   12       3       com.acme.Money::plus-impl (9 bytes)", ("com.acme.Money", "plus-impl")),
        ("C2:   1234", None),
        (None, None),
    ],
    ids=["8-tiered", "8-c2", "loop", "constructor", "kotlin", "cut", "none"],
)
def test_the_method_of_a_compile_task(task, method):
    """Of a loop that is compiled alone (OSR), the line has the bytecode index after @."""
    assert task_method(task) == method
