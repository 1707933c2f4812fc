"""CPU profiles for the tests of what judges and shows them: a shop with HTTP threads, virtual threads, a compiler and a collector."""

from __future__ import annotations

from opskit.collect.cpu_profile import CpuProfile, StackKey, ThreadOnCpu
from opskit.collect.jpmp.collect import Facts
from opskit.proc.unwind.cursor import Frame

HZ = 100.0


def java(name, kind="compiled", line=10):
    """A frame of a Java method."""
    return Frame(name, kind, f"{name.split('.')[-2].partition('$')[0]}.java", line)


def native(*names):
    return [Frame(name, "native") for name in names]


ENTRY = [
    *native("thread_native_entry", "JavaThread::run"), Frame("StubRoutines (call_stub)", "stub"),
    java("java.lang.Thread.run", "interpreted", 840),
]  # fmt: skip
SHOP = "com.example.shop."


def stack(*frames, below=ENTRY):
    """The frames from the outermost on, above the entry of a thread; leaf first in the profile."""
    return tuple(reversed([*below, *frames]))


SEARCH = stack(
    java(f"{SHOP}Orders.load"), java(f"{SHOP}Dao.find", "inlined", 31), java("org.h2.mvstore.Page.search", line=7)
)
GET = stack(
    java(f"{SHOP}Orders.load"), java(f"{SHOP}Dao.find", "inlined", 31), java("java.util.HashMap.get", "inlined", 552)
)
GET_COLD = stack(java(f"{SHOP}Orders.load"), java(f"{SHOP}Dao.find"), java("java.util.HashMap.get", "c1", 552))
WRITE = stack(
    java(f"{SHOP}Orders.write"), java("sun.nio.ch.SocketDispatcher.writev0"), *native("writev"),
    Frame("entry_SYSCALL_64", "kernel"), Frame("tcp_sendmsg", "kernel"),
)  # fmt: skip
SPIN = stack(java(f"{SHOP}Handler$$Lambda/0x00007f1a.run"), java("java.lang.System.nanoTime", "compiled", None))
COMPILE = stack(
    *native("Compile::Compile", "PhaseIdealLoop::build_and_optimize"), below=native("clone3", "thread_native_entry")
)


def profile(stacks, threads, **changes):
    """A profile of 5 s. `threads`: TID -> (name, CPU ms, ms in run queues)."""
    met = {}
    for key, count in stacks.items():
        met[key.tid] = met.get(key.tid, 0) + count
    known = {tid: ThreadOnCpu(*thread, met.get(tid, 0)) for tid, thread in threads.items()}
    cpu_ms = sum(thread[1] or 0.0 for thread in threads.values())
    made = CpuProfile(
        4711,
        42,
        "com.example.shop.Main",
        HZ,
        5.0,
        known,
        stacks,
        0,
        {"root": sum(met.values())},
        cpu_ms,
        "cpus",
        True,
        True,
    )
    return made._replace(**changes)


def shop(**changes):
    """Two HTTP threads with 1,700 and 3,300 ms, virtual threads, the C2 compiler, a collector that no sample met."""
    stacks = {
        StackKey(11, None, SEARCH): 120, StackKey(12, None, SEARCH): 100, StackKey(12, None, GET): 70,
        StackKey(12, None, GET_COLD): 20, StackKey(11, None, WRITE): 45, StackKey(20, None, COMPILE): 30,
        StackKey(30, "#41", SPIN): 25, StackKey(31, "handler-7", SPIN): 25,
        **{StackKey(12, None, stack(java(f"{SHOP}Orders.load"), java(f"{SHOP}Rare{number}.call"))): 5 for number in range(20)},
    }  # fmt: skip
    threads = {
        11: ("http-exec-1", 1700.0, 30.0), 12: ("http-exec-2", 3300.0, 50.0), 20: ("C2 CompilerThre", 300.0, 3.0),
        21: ("GC Thread#0", 42.0, 1.0), 30: ("ForkJoinPool-1-worker-1", 250.0, 0.0), 31: ("ForkJoinPool-1-worker-2", 250.0, 0.0),
        40: ("main", 12.0, 0.0), 41: ("idler", 0.0, 0.0),
    }  # fmt: skip
    ends = {"root": 529, "rule": 4, "torn": 2}
    made = profile(stacks, threads, ends=ends, lost=3, debug_non_safepoints=False)
    return made._replace(cpu_ms=made.cpu_ms + 100.0)._replace(**changes)


def facts(taken=None, **changes):
    """The facts of a run with the unwinding sampler."""
    return Facts(cpu=taken or shop(), sampler="unwind")._replace(**changes)
