"""Marks of frames: those of perf and async-profiler, one for each place in the call tree."""

from __future__ import annotations

import pytest

from opskit.analysis.jpmp.frame_kinds import kind_of, kinds_of
from opskit.analysis.jpmp.frame_marks import kinds_by_marks, marked, unmarked, without_native


def test_the_marks():
    """Java by how it ran, the kernel; native code and labels have none. Without kinds nothing is marked."""
    names = ("a", "b", "c", "d", "e", "f", "g", "h")
    kinds = ("label", "native", "stub", "interpreted", "c1", "compiled", "inlined", "kernel")
    assert marked([(names, kinds, 1)]) == [(("a", "b", "c", "d_[0]", "e_[1]", "f_[j]", "g_[i]", "h_[k]"), 1)]
    assert marked([(names, (), 3)]) == [(names, 3)]


def test_a_place_has_the_mark_of_most_of_its_weight():
    """The same method below the same callers is one box; below others it may have another mark."""
    found = marked([
        (("run", "get"), ("interpreted", "compiled"), 3),
        (("run", "get"), ("compiled", "inlined"), 5),
        (("main", "get"), ("interpreted", "c1"), 1),
    ])  # fmt: skip
    assert [path for path, _ in found] == [("run_[j]", "get_[i]"), ("run_[j]", "get_[i]"), ("main_[0]", "get_[1]")]


@pytest.mark.parametrize(("frame", "plain"), [
    ("a.B.run_[j]", "a.B.run"), ("a.B.run_[i]", "a.B.run"), ("a.B.run_[0]", "a.B.run"), ("a.B.run_[1]", "a.B.run"),
    ("tcp_sendmsg_[k]", "tcp_sendmsg_[k]"), ("[libc.so.6]", "[libc.so.6]"), ("a.B.run", "a.B.run"), ("x[j]", "x[j]"),
])  # fmt: skip
def test_marks_of_java_are_taken_off_for_a_comparison(frame, plain):
    """A method is the same before and after it was compiled; the kernel's mark stays."""
    assert unmarked(frame) == plain


def test_flame_graphs_colour_what_is_marked():
    """Java, inlined, native, kernel, threads; copies of functions that compilers make are no Java."""
    names = [
        "a.B.run_[j]",
        "java.util.HashMap.get_[i]",
        "tcp_sendmsg_[k]",
        "memcpy",
        "pthread.part.0",
        "[C2 CompilerThread]",
    ]
    assert kinds_of(names, [], threads=["[C2 CompilerThread]"]) == {
        "a.B.run_[j]": "application", "java.util.HashMap.get_[i]": "inlined", "tcp_sendmsg_[k]": "kernel", "memcpy": "native",
        "pthread.part.0": "native", "[C2 CompilerThread]": "thread",
    }  # fmt: skip
    assert kind_of("do_sys_poll.constprop.0") == "native"


def test_native_frames_are_left_out_for_a_comparison_with_dumps():
    """Kinds, or marks, tell them; a stack without Java methods stays whole, and so does one of which nothing is known."""
    frames = ("memcpy", "a.B.run_[j]", "clone3")
    assert kinds_by_marks(frames) == ("native", "compiled", "native")
    assert kinds_by_marks(("memcpy", "a.B.run")) == ()
    assert without_native(frames, kinds_by_marks(frames)) == ("a.B.run_[j]",)
    assert without_native(("memcpy", "main"), ("native", "label")) == ("memcpy", "main")
    assert without_native(("memcpy", "a.B.run", "main"), ("native", "c1", "label")) == ("a.B.run", "main")
    assert without_native(("a",), ()) == ("a",)
