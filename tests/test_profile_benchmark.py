"""How benchmarks/profile.py compares profiles: names of two profilers made alike, shares, differences."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "benchmarks"))

import profile_stacks as stacks

THEIRS = """\
[main tid=7];clone3;java/lang/Thread.run_[j];Shop$$Lambda$3.0x00007f1c0800.run_[j];Shop.serve_[j];java/util/HashMap.get_[i] 60
[main tid=7];clone3;java/lang/Thread.run_[j];Shop.serve_[j];java/io/File.read_[0];Java_java_io_File_read;__GI_read 30
[GC Thread#0 tid=9];clone3;G1ParScanThreadState::trim_queue(unsigned int) 10
[main tid=7];[unknown_Java] 25
"""
OURS = """\
clone3;java.lang.Thread.run_[j];Shop$$Lambda.run_[j];Shop.serve_[j];java.util.HashMap.get_[i] 500
clone3;java.lang.Thread.run_[j];Shop$$Lambda.run_[j];Shop.serve_[j];java.util.HashMap.get_[i];__restore_rt;libasyncProfiler.so 60
clone3;java.lang.Thread.run_[j];Shop.serve_[j];java.io.File.read_[j];Java_java_io_File_read;read;do_syscall_64_[k] 340
clone3;G1ParScanThreadState::trim_queue 100
"""


@pytest.mark.parametrize(
    ("written", "name", "kind"),
    [
        ("java/util/HashMap.get_[j]", "java.util.HashMap.get", "java"),
        ("Shop$$Lambda$14/0x00000008000d1040.run_[1]", "Shop$$Lambda.run", "java"),
        ("Shop$$Lambda$14.500977346.run_[j]", "Shop$$Lambda.run", "java"),
        ("java/lang/invoke/LambdaForm$MH.0x00007f.invoke_[0]", "java.lang.invoke.LambdaForm$MH.invoke", "java"),
        ("do_syscall_64_[k]", "do_syscall_64", "kernel"),
        ("__pread64", "pread", "native"),
        ("clock_gettime@@GLIBC_2.17", "clock_gettime", "native"),
        ("void A<B<C>, (D)1>::e<int>(F const&, G) const", "A::e", "native"),
        ("ResourceObj::operator new(unsigned long)", "new", "native"),
        ("vtable stub", "vtable stub", "native"),
        ("[vdso]", "[vdso]", "native"),
        ("__vdso_clock_gettime", "[vdso]", "native"),
    ],
)
def test_names_are_alike(written, name, kind):
    """A frame has one name, however a profiler writes it."""
    assert stacks.frame(written) == (name, kind == "java", kind == "kernel")


def test_shares_of_the_same_program_agree():
    """Native and kernel leaves count for the Java method above them; the profiler's own frames do not count, and failed walks have no method."""
    theirs, failed = stacks.parse_baseline(THEIRS)
    ours = stacks.parse(OURS)
    assert failed == pytest.approx(0.2)
    for of, most in ((stacks.leaf_method, 10), (stacks.methods, 18)):
        found = stacks.compare(stacks.shares(ours, of), stacks.shares(theirs, of))
        assert found.most == pytest.approx(most)
        assert not found.lead
    assert stacks.shares(theirs, stacks.leaf_method) == {
        "java.util.HashMap.get": 0.48,
        "java.io.File.read": 0.24,
        "[no Java method]": 0.08,
    }
    assert stacks.shares(ours, stacks.leaf_frame)["read"] == 0.34


def test_differences_are_in_points_over_large_rows():
    """The largest and the mean difference leave out rows below 5 % in both; another top row has a lead."""
    found = stacks.compare({"a": 0.5, "b": 0.46, "c": 0.04}, {"a": 0.4, "b": 0.59, "c": 0.01})
    assert found.most == pytest.approx(13)
    assert found.mean == pytest.approx(11.5)
    assert found.worst == "b 46.0 against 59.0 %"
    assert found.lead == pytest.approx(4)


def test_chance():
    """The expected error of a share of a quarter with 1,000 samples is 2.7 points."""
    assert stacks.noise({"a": 0.25, "b": 0.2}, 1000) == pytest.approx(2.68, abs=0.01)
