"""A CPU profile in every format: goldens, the first screen, few samples, no samples, other samplers."""

from __future__ import annotations

import json
import re

import pytest
from cpuprofiles import SEARCH, facts, java, profile, shop, stack
from schemafiles import keeps_to_schema

from opskit.analysis.jpmp.judge import Weighing, judge
from opskit.analysis.jpmp.stacks import Naming, Selection
from opskit.collect.asprof import AsprofProfile
from opskit.collect.cpu_profile import StackKey
from opskit.collect.jpmp.load import Load
from opskit.jvm.profiles import WeightedStack
from opskit.render.formats import json as as_json
from opskit.render.formats import markdown, table
from opskit.render.report import About
from opskit.render.views.jpmp.report import Look, View, profile_report

ABOUT = About(
    "HOST",
    "2026-01-02T03:04:05Z",
    "VERSION",
    "opskit jpmp 4711 --on-cpu",
    {"pid": 4711, "main": "com.example.shop.Main"},
)
LOAD = Load(5.0, 5.9, {1: 5900.0}, {1: 84.0}, {}, "G1", 3, 0.01, None, 2, 0.3, None)


def report(found=None, format_="table", how=None, **view):
    found = found or facts(load=LOAD)
    how = how or Weighing(selection=Selection(idle=False), by="cpu_ms")
    return profile_report(ABOUT, found, how, judge(found, how), View(format_, **view))


def shown(format_, found=None, how=None, **view):
    made = report(found, format_, how, **view)
    if format_ == "table":
        return table.render(made, 80, None if "top" in view else 24) if view.get("terminal") else table.render(made)
    if format_ == "text":
        return "".join(f"{line}\n" for line in [*made.text(), *made.footer])
    if format_ in ("json", "markdown"):
        return {"json": as_json, "markdown": markdown}[format_].render(made)
    return made.draw(format_)


@pytest.mark.parametrize("format_", ["table", "markdown", "json", "text", "folded", "speedscope"])
def test_goldens(format_, golden):
    """Methods by their own time and with callees, stacks, marks where they belong."""
    golden(f"jpmp-cpu.{format_}", shown(format_))


def test_the_first_screen(golden):
    """On 80 x 24 the verdict, the best rows and how it was sampled are seen without scrolling."""
    out = shown("table", terminal=True)
    golden("jpmp-cpu-screen.txt", out)
    assert sum(-(-max(len(line), 1) // 80) for line in out.splitlines()) <= 24


def test_the_json_keeps_to_its_schema():
    """Also with the roots of --by-pool."""
    for root in (None, "thread", "pool"):
        document = json.loads(shown("json", how=Weighing(root=root, by="cpu_ms")))
        for name in ("jpmp", "profile"):
            keeps_to_schema(document, name)
        assert all(len(each["kinds"]) == len(each["frames"]) for each in document["stacks"])
        assert sum(each["cpu_ms"] for each in document["stacks"]) == pytest.approx(document["cpu_ms"], abs=0.1)


def test_waits_that_the_kernel_does_not_count_are_unknown():
    """Without schedstat they are null, and not 0."""
    taken = profile({StackKey(1, None, SEARCH): 20}, {1: ("t-1", None, None), 2: ("t-2", None, None)}, cpu_ms=200.0)
    assert json.loads(shown("json", facts(taken)))["profiler"]["waited_ms"] is None
    one = profile({StackKey(1, None, SEARCH): 20}, {1: ("t-1", 200.0, 7.5), 2: ("t-2", None, None)})
    assert json.loads(shown("json", facts(one)))["profiler"]["waited_ms"] == 7.5


def test_lines_names_and_roots():
    """--lines writes files and lines of Java frames; --by-thread has the thread as the root, a virtual one above its carrier."""
    out = shown("text", how=Weighing(Naming(lines=True), root="thread", by="cpu_ms"))
    assert "org.h2.mvstore.Page.search(Page.java:7),com.example.shop.Dao.find(Dao.java:31)," in out
    assert ",thread_native_entry,virtual thread #41,ForkJoinPool-1-worker-1\n" in out


def test_the_table_names_the_threads_of_a_stack():
    """With --by-thread the thread itself, which is then no frame; a virtual one in its carrier."""
    out = shown("table", how=Weighing(root="thread", by="cpu_ms"), terminal=True, top=0)
    assert re.search(r"samples  http-exec-1\n  org\.h2\.mvstore\.Page\.search\n", out)
    assert "samples  virtual thread #41 in ForkJoinPool-1-worker-1\n  j.lang.System.nanoTime\n" in out
    assert "\n  http-exec-1\n" not in out


def test_rows_with_few_samples_are_not_ranked():
    """With nine samples no method is named; the table has no row for them, text has all."""
    taken = profile({StackKey(1, None, SEARCH): 9}, {1: ("t-1", 90.0, 0.0)})
    out = shown("table", facts(taken))
    assert (
        "no method has 10 samples itself, so none is named as the hottest: --duration and -F give more samples" in out
    )
    assert "below 10 samples: 1 more method (100 %), 1 more stack (100 %)" in out
    assert "Page.search" not in out
    assert "     90 org.h2.mvstore.Page.search," in shown("text", facts(taken))


def test_methods_that_may_change_places_are_named_together():
    """Their intervals overlap."""
    other = SEARCH[1:]
    taken = profile({StackKey(1, None, SEARCH): 52, StackKey(1, None, other): 48}, {1: ("t-1", 1000.0, 0.0)})
    out = shown("table", facts(taken))
    assert (
        "org.h2.mvstore.Page.search uses 52.0 % ± 9.6 of the CPU time itself (520 ms) in t-*; Dao.find 48.0 % ± 9.6 may use more"
        in out
    )
    assert "± is a 95 % interval: the first methods may change places" in out


@pytest.mark.parametrize(
    ("few", "sure"), [(9, "the first methods may change places"), (1, "the first method is certain")]
)
def test_a_method_with_few_samples_may_be_the_first(few, sure):
    """It is not ranked, but the order of those that are does not hold without it."""
    taken = profile({StackKey(1, None, SEARCH): 10, StackKey(1, None, SEARCH[1:]): few}, {1: ("t-1", 190.0, 0.0)})
    assert f"± is a 95 % interval: {sure}; below 10 samples: 1 more method" in shown("table", facts(taken))


def test_callers_are_those_that_the_user_knows():
    """Neither generated methods nor those of the JDK, where there are others; of a chain the one nearest to the leaf."""
    frames = stack(java("com.example.shop.Main.run"), java("com.example.shop.Main$$Lambda.run"), java("java.util.Map.get"),
                   java("com.example.shop.Cart.sum"), java("java.util.Map.all"), java("java.lang.Math.exp"))  # fmt: skip
    taken = profile({StackKey(1, None, frames): 60, StackKey(1, None, frames[1:]): 40}, {1: ("t-1", 1000.0, 0.0)})
    assert "\nwith callees: Cart.sum 100.0 % ± 1.8\n" in shown("table", facts(taken))


def test_a_process_without_cpu_time():
    """The verdict says so; a picture of nothing is an error elsewhere."""
    out = shown("table", facts(profile({}, {1: ("main", 0.0, 0.0)})))
    assert "com.example.shop.Main used no CPU time in 5.0 s" in out


def test_options_that_leave_nothing():
    """They are named."""
    how = Weighing(selection=Selection(include=(re.compile("Nothing"),)), by="cpu_ms")
    assert "is left by --state, --include and --exclude" in shown("table", how=how)


def test_what_is_missing_is_said():
    """Kernel frames, lines that are approximate, sentences of the sampler, incomplete stacks by reason."""
    out = shown("table", facts(shop(kernel_seen=False, missing=("the names of 2 libraries",))))
    assert "kernel frames are missing: only root or CAP_PERFMON may see them" in out
    assert "DebugNonSafepoints is off: lines and innermost inlined frames are approximate" in out
    assert "the names of 2 libraries" in out
    assert "6 stacks (1.1 %) are incomplete: 4 no unwind information, 2 changed while read" in out
    assert "\nDebugNonSafepoints is on\n" in shown("table", facts(shop(debug_non_safepoints=True)))


def test_details():
    """-v says which perf events were opened, and how much of each stack was copied."""
    out = shown("table", facts(shop(stack_bytes=16384)), verbose=True)
    assert "perf events of every CPU; 16.0 KiB of each stack copied" in out
    assert "perf events of the threads of the process" in shown(
        "table", facts(shop(stack_bytes=1, scope="threads")), verbose=True
    )
    assert "perf events" not in shown("table", facts(shop(stack_bytes=16384)))


def test_a_difference_to_dumps_compares_java_frames():
    """Native frames that dumps never have are left out of both."""
    dumps = [WeightedStack(("org.h2.mvstore.Page.search", "com.example.shop.Dao.find", "com.example.shop.Orders.load",
                            "java.lang.Thread.run"), "RUNNABLE", 5, 50.0)]  # fmt: skip
    found = facts(before=facts()._replace(cpu=None, stacks=dumps, files=("before.txt",)))
    made = profile_report(
        ABOUT, found, Weighing(by="cpu_ms"), judge(found, Weighing(by="cpu_ms")), View("svg", look=Look())
    )
    picture = made.draw("svg")
    assert "Page.search" in picture
    assert "_[j]" not in picture
    assert "StubRoutines (call_stub)" not in picture
    assert "PhaseIdealLoop::build_and_optimize" in picture  # a stack without Java stays whole
    assert not any("no frame in common" in line for line in made.footer)


def test_what_async_profiler_measured():
    """Allocations are weighed by bytes, and no CPU time is claimed; the footer says what stays in the JVM."""
    taken = profile({StackKey(1, None, SEARCH): 4096}, {1: ("t-1", None, None)}, cpu_ms=200.0)
    of = AsprofProfile(
        taken, "alloc", "bytes", "/opt/libasyncProfiler.so", "4.0", ("the library stays mapped until 4711 ends",)
    )
    found = facts(taken, sampler="asprof", asprof=of)
    how = Weighing(by="samples")
    made = profile_report(ABOUT, found, how, judge(found, how), View("svg", look=Look()))
    assert "bytes of com.example.shop.Main 4711" in made.draw("svg")
    assert any("async-profiler 4.0 (alloc, loaded from /opt/libasyncProfiler.so)" in line for line in made.footer)
    assert "the library stays mapped until 4711 ends" in made.footer
    document = json.loads(shown("json", found, how))
    assert (document["weight"], document["profiler"]["unit"], document["methods"]) == ("samples", "bytes", None)
    assert (document["profiler"]["lost"], document["profiler"]["explained"]) == (None, None)
    assert "as a flame graph" not in shown("table", found, how)


def test_async_profiler_does_not_say_what_it_lost():
    """Of CPU time neither: no 0 is claimed."""
    taken = profile({StackKey(1, None, SEARCH): 20}, {1: ("t-1", 200.0, 0.0)})
    found = facts(taken, sampler="asprof", asprof=AsprofProfile(taken, "ctimer", "samples", "/opt/x.so", "4.0", ()))
    assert "Hz for 5.0 s, 20 samples, 0 incomplete; 100 % of the CPU time explained" in shown("table", found)
    assert json.loads(shown("json", found))["profiler"]["lost"] is None
