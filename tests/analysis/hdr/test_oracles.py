"""Sums of logs beside what HdrHistogram's own classes say of them: equal to the last bit."""

from __future__ import annotations

import subprocess
from pathlib import Path

import maven
import pytest

from opskit.analysis.hdr.sums import Sums
from opskit.collect.hdr.collect import collect
from opskit.collect.hdr.facts import Request

TESTS = Path(__file__).resolve().parents[2]
HERE = TESTS / "fixtures" / "hdr"
JAR = "org.hdrhistogram:HdrHistogram:2.2.2"


def answers(text):
    """File and tag -> the figures."""
    rows = (line.split("\t") for line in text.splitlines())
    return {(file, tag): [_number(word) for word in rest] for file, tag, *rest in rows}


def _number(word):
    return int(word) if word.isdigit() else float(word)


def ours(folder, names):
    """The same of opskit."""
    sums = Sums()
    facts = collect(Request([str(folder / name) for name in names]), sums.add)
    assert not facts.bad_lines
    found = {}
    for each in sums.series():
        values = each.values
        figures = [values.total, values.least, values.most, values.mean, values.deviation, *values.percentiles]
        key = Path(each.files[0]).name, str(each.tag) if each.tag else "null"
        found[key] = figures if values.total else [0, 0, 0, 0.0, 0.0, 0, 0, 0, 0, 0]
    return found


@pytest.mark.parametrize("release", ["2.0.3", "2.1.0", "2.2.2"])
def test_figures_are_those_of_the_library(release):
    """Integers of 0 to 5 digits, a lowest value of 1000, values up to 2^63, decimals whose range moved; V0, V1 and V2."""
    theirs = answers((HERE / f"oracle-{release}.tsv").read_text())
    assert ours(HERE, sorted({file for file, _ in theirs})) == theirs


def test_figures_are_those_of_the_library_here(tmp_path):
    """Other values than the captured ones, written and read by the library in this run."""
    path = maven.jars(JAR)
    classes = maven.classes(TESTS / "java" / "HdrOracle.java", path, 11)
    command = ["java", "-XX:TieredStopAtLevel=1", "-cp", f"{path}:{classes}", "HdrOracle", str(tmp_path), "99", "400"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    theirs = answers(done.stdout)
    assert ours(tmp_path, ["v2.hdr", "decimals.hdr"]) == theirs
    assert len(theirs) == 13
