"""Saved histograms are read into facts; words are told apart into files and a JVM."""

from __future__ import annotations

import pytest
from histotext import text

from opskit.collect.jmap_diff import collect, files_among
from opskit.errors import BadInput, UsageError


def test_files_in_their_order(tmp_path):
    """All histograms of all files; none of them paused a JVM."""
    paths = []
    for name, sizes in (("a", (16, 32)), ("b", (48,))):
        path = tmp_path / name
        path.write_text("".join(text([("a.B", 1, size)]) for size in sizes))
        paths.append(str(path))
    facts = collect(paths)
    assert [sample.histogram.rows["a.B"][1] for sample in facts.samples] == [16, 32, 48]
    assert [sample.pause_s for sample in facts.samples] == [None] * 3
    assert (facts.jvm, facts.saved, facts.error) == (None, None, None)
    with pytest.raises(BadInput, match="a single histogram"):
        collect(paths[1:])


@pytest.mark.parametrize(("words", "files"), [
    ([], ()),
    (["4242"], ()),
    (["no.such.Main"], ()),
    (["./a"], ("./a",)),
    (["-"], ("-",)),
    (["./a", "b"], ("./a", "b")),
])  # fmt: skip
def test_files_among_words(words, files):
    """A PID or a name alone is a JVM."""
    assert files_among(words) == files


@pytest.mark.parametrize("words", [["4242", "./a"], ["./a", "4242"], ["-", "-"]])
def test_a_mixture_is_refused(words):
    """A PID with files, and standard input twice."""
    with pytest.raises(UsageError):
        files_among(words)
