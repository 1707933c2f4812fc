"""Java frames of real JVMs: tests/java/Chains.java has threads whose stacks are known, in all kinds of generated code."""

from __future__ import annotations

import re
import time
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import jvms
import pytest

from opskit.host import scheduled_first
from opskit.jvm.attach.client import AttachClient
from opskit.jvm.memory.vmstructs import read_vmstructs
from opskit.jvm.unwind.java import java_unwinder
from opskit.proc.fs import ProcFS
from opskit.proc.kernel.cpu_samples import CpuSampler
from opskit.proc.memory import ProcessMemory
from opskit.proc.unwind.modules import Modules
from opskit.proc.unwind.native import NativeUnwinder
from opskit.proc.unwind.walk import walk

METHODS = (
    "spin", "recurse", "throwing", "copying", "checksum", "encrypt", "handle", "megamorphic", "nanotime", "natives",
    "locking", "mathematics", "initialize", "deoptimize",
)  # fmt: skip
# Precise tables, and no inlining into Chains.middle, where C2 would mix all methods.
PRECISE = (
    "-XX:+UnlockDiagnosticVMOptions", "-XX:+UnlockExperimentalVMOptions", "-XX:+DebugNonSafepoints", "-XX:CompileCommand=quiet",
    *(f"-XX:CompileCommand=dontinline,Chains.{name}" for name in (*METHODS, "invalid", "callee")),
)  # fmt: skip
SECOND = {11: "-Xint", 17: "-XX:TieredStopAtLevel=1", 21: "-XX:-TieredCompilation", 25: "-XX:+UseZGC"}
_NUMBER = "/0x[0-9a-f]+"  # of a class made at run time; JDK 11 does not have it in the class's name
STACK_BYTES = 32 << 10  # interpreted frames are large
LEVELS = {"c1": {1, 2, 3}, "compiled": {0, 4}}


@contextmanager
def chains(*names, version, options=()):
    """A profiler of a JVM with threads by the names of their methods."""
    jvm = jvms.run([jvms.java(version), "-Xmx256m", *options, "-cp", jvms.classes(), "Chains", *names])
    try:
        yield Profiler(jvm.pid)
    finally:
        jvm.stop()


class Profiler:
    """Samples a JVM, and walks each sample."""

    def __init__(self, pid):
        fs = ProcFS()
        self.pid, self.memory, self.names = pid, ProcessMemory(fs, pid), {}
        self.java = java_unwinder(read_vmstructs(fs, pid, self.memory), self.memory)
        self.modules = Modules(fs, pid, self.memory)
        self.unwinders = [self.java, NativeUnwinder(self.modules)]

    def run(self, seconds, wanted=(), hz=397):
        """The thread's name and stack of each sample; longer until all wanted threads have a whole stack, on a busy machine."""
        found, start = [], time.monotonic()
        with scheduled_first(), CpuSampler(ProcFS(), self.pid, hz, STACK_BYTES) as sampler:
            while (passed := time.monotonic() - start) < 30:
                names = {name for name, stack in found if stack.end == "root"}
                if passed >= seconds and names.issuperset(wanted):
                    break
                time.sleep(sampler.pause_s)
                self.forget()
                found += [
                    (self._name(each.tid), walk(each.registers, each.stack, self.unwinders)) for each in sampler.drain()
                ]
        return found

    def forget(self):
        """Read the JVM's memory anew."""
        for each in (self.memory, self.java, self.modules):
            each.forget()

    def _name(self, tid):
        if self.names.get(tid) not in METHODS:  # a thread names itself when it has begun to run
            try:
                self.names[tid] = Path(f"/proc/{self.pid}/task/{tid}/comm").read_text().strip()
            except FileNotFoundError:
                return None
        return self.names[tid]


def is_exact(name, stack):
    """Whether the program's own frames are the chain that the thread has."""
    java = [frame.name for frame in stack.frames if frame.kind not in ("native", "kernel", "stub")]
    own = [frame for frame in java if frame.startswith("Chains.")]
    if not own:  # rare: named, and not yet in the program
        return False
    if (
        java[-1] != "java.lang.Thread.run"
        or own[-1] != "Chains.lambda$main$0"
        or own[-2:-1] not in ([], ["Chains.outer"])
    ):
        return False
    own = own[:-2]
    if own[-1:] != ["Chains.middle"]:
        return not own
    inner = {"initialize": {"Chains.spin", "Chains$Initialized.<clinit>"}}.get(name, {f"Chains.{name}"})
    return not own[:-1] or own[-2] in inner


def check(found):
    """Nearly all stacks are whole, and these are exact."""
    ends = Counter(stack.end for name, stack in found if name in METHODS and stack.end != "none")
    assert ends["root"] >= 0.95 * sum(ends.values()), ends
    whole = [(name, stack) for name, stack in found if name in METHODS and stack.end == "root"]
    assert {name for name, _ in whole} == set(METHODS)
    wrong = [(name, [frame.name for frame in stack.frames]) for name, stack in whole if not is_exact(name, stack)]
    assert len(wrong) <= len(whole) // 100, wrong[:3]
    return whole


def test_stacks_in_other_modes(root_only, jvm_version):
    """The interpreter alone, C1 alone, C2 alone, and another collector, each in one version."""
    with chains(*METHODS, version=jvm_version, options=(*PRECISE, SECOND[jvm_version])) as profiler:
        whole = check(profiler.run(1.0, METHODS))
    kinds = Counter(frame.kind for _, stack in whole for frame in stack.frames)
    expected = {11: {"compiled": 0, "c1": 0, "inlined": 0}, 17: {}, 21: {"c1": 0}, 25: {}}[jvm_version]
    assert {kind: kinds[kind] for kind in expected} == expected


def test_a_deoptimized_caller(root_only, jvm_version):
    """A compiled method waits for its callee and loses its code: its return address is that of the deoptimization handler."""
    with chains("deoptimize", version=jvm_version, options=PRECISE) as profiler:
        found = profiler.run(0.8, ["deoptimize"])
    stacks = [stack for name, stack in found if name == "deoptimize" and stack.end == "root"]
    assert [stack for stack in stacks if not is_exact("deoptimize", stack)] == []
    callers = Counter(stack.frames[1].kind for stack in stacks if stack.frames[0].name == "Chains.callee")
    assert callers["compiled"] + callers["c1"] > 1, callers


class Run(NamedTuple):
    """A JVM that still runs, and its stacks from the program's start on."""

    profiler: Profiler
    found: list


# Behind the other tests: the last JVM runs to the end of the module.
@pytest.fixture(scope="module", params=sorted(jvms.WHEELS))
def run(request, root_only):
    """One for each JDK, with precise tables."""
    with chains(*METHODS, version=request.param, options=PRECISE) as profiler:
        yield Run(profiler, profiler.run(1.6, METHODS))


def test_stacks_are_those_of_the_program(run):
    """Interpreted, C1, C2, inlined and native code, stubs, exceptions and class initializers, from the program's start on."""
    whole = check(run.found)
    kinds = {frame.kind for _, stack in whole for frame in stack.frames}
    assert kinds >= {"interpreted", "compiled", "inlined", "stub", "native"}
    deepest = max((stack for name, stack in whole if name == "recurse"), key=lambda stack: len(stack.frames))
    assert sum(frame.name == "Chains.recurse" for frame in deepest.frames) == 100
    lines = {frame.line for name, stack in whole for frame in stack.frames if frame.name == "Chains.spin"}
    assert any(_source_line("value = step(value + round)") == line for line in lines), lines
    assert {frame.source for _, stack in whole for frame in stack.frames if frame.name == "Chains.middle"} == {
        "Chains.java"
    }


def test_stubs_have_names(run):
    """By HotSpot's own list, which no table describes."""
    names = {stack.frames[0].name for _, stack in run.found if stack.frames}
    assert "updateBytesCRC32" in names
    assert any("arraycopy" in name for name in names)


def test_the_code_cache_has_what_the_jvm_lists(run):
    """Compiler.codelist names the same methods, levels and addresses."""
    java = run.profiler.java
    listed = re.findall(
        r"^(\d+) (-?\d+) \d+ (\S+?)\(\S* \[0x(\w+), 0x(\w+) - 0x(\w+)\]",
        AttachClient(ProcFS(), run.profiler.pid).jcmd("Compiler.codelist"),
        re.MULTILINE,
    )
    assert len(listed) > 20
    run.profiler.forget()
    same = 0
    for _, level, name, header, begin, end in listed:
        found = java.index.find((int(begin, 16) + int(end, 16)) // 2)
        if found is None or found[0].header != int(header, 16):
            continue  # compiled again meanwhile
        blob, nmethod = found
        assert (blob.begin, blob.end) == (int(begin, 16), int(end, 16))
        (*_, frame) = java.index.frames(nmethod, blob.begin, is_leaf=True)
        assert re.sub(_NUMBER, "", frame.name) == re.sub(_NUMBER, "", name)
        assert int(level) in LEVELS[frame.kind]
        same += 1
    assert same >= 0.9 * len(listed)


def _source_line(text):
    lines = jvms.SOURCE.with_name("Chains.java").read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)
