"""Names of Java threads in a JVM's memory, while threads start, end and are renamed."""

from __future__ import annotations

from pathlib import Path

import jvms
import pytest

from opskit.host import Host
from opskit.jvm.attach.client import AttachClient
from opskit.jvm.memory.objects import Objects
from opskit.jvm.memory.threads import JavaThreads, virtual_name
from opskit.jvm.memory.vmstructs import read_vmstructs
from opskit.proc.memory import ProcessMemory

NASTY = {'say "hi" #1 prio=5', "a;b;c", "tab\there", "escape\x1b[31mred", "\u202eright to left", "umlaut ä 日本"}
ZGC = ("-XX:+UnlockExperimentalVMOptions", "-XX:+UseZGC")
SHENANDOAH = ("-XX:+UnlockExperimentalVMOptions", "-XX:+UseShenandoahGC")
LAYOUTS = {
    "default": (),
    "wide pointers": ("-XX:-UseCompressedOops",),
    "wide classes": ("-XX:-UseCompressedClassPointers",),
    "ZGC": ZGC,
    "generational ZGC": (*ZGC, "-XX:+ZGenerational"),
    "Shenandoah": SHENANDOAH,
    "compact headers": ("-XX:+UnlockExperimentalVMOptions", "-XX:+UseCompactObjectHeaders"),
}
VERSIONS = {
    "default": (11, 17, 21, 25),
    "wide pointers": (11, 25),
    "wide classes": (17, 25),
    "ZGC": (11, 17, 21, 25),
    "generational ZGC": (21,),
    "Shenandoah": (17, 25),
    "compact headers": (25,),
}
CASES = [(version, layout) for layout, versions in VERSIONS.items() for version in versions]


def threads_of(jvm):
    """The threads of a JVM, and its memory."""
    fs = Host.at(None, None).fs
    memory = ProcessMemory(fs, jvm.pid)
    structs = read_vmstructs(fs, jvm.pid, memory)
    return JavaThreads(structs, memory, Objects(structs, memory)), memory


def mounted(jvm, threads):
    """The names of the virtual threads that run now."""
    fs = Host.at(None, None).fs
    memory = ProcessMemory(fs, jvm.pid)
    structs = read_vmstructs(fs, jvm.pid, memory)
    at, objects = structs.find(("JavaThread", "_vthread")), Objects(structs, memory)
    running = (objects.handle(thread + at, "OopHandle") for thread in map(threads.thread, tids(jvm)) if at and thread)
    return {virtual_name(objects, each) for each in running} - {None}


def tids(jvm):
    """TID -> the kernel's name."""
    tasks = Path(f"/proc/{jvm.pid}/task").iterdir()
    return {int(task.name): (task / "comm").read_text(errors="replace").removesuffix("\n") for task in tasks}


@pytest.mark.parametrize(("version", "layout"), CASES)
def test_names_in_every_layout_of_objects(version, layout):
    """Names in Latin-1 and UTF-16; those of VM threads are the kernel's. The kernel's names are the first 15 bytes."""
    modes = ("nasty", "sleep=2", *(("virtualburn=1",) if version >= 21 else ()))
    jvm = jvms.start(*modes, version=version, options=("-Xmx64m", *LAYOUTS[layout]))
    try:
        threads, _ = threads_of(jvm)
        found = {comm: threads.name(tid) for tid, comm in tids(jvm).items()}
        carried = mounted(jvm, threads)
        names = set(found.values())
        assert NASTY | {"", "main", "sleep-0", "sleep-1", "Signal Dispatcher"} <= names
        assert found["VM Thread"] is None
        assert {comm: found[comm] for comm in ("sleep-0", "Signal Dispatch")} == {
            "sleep-0": "sleep-0",
            "Signal Dispatch": "Signal Dispatcher",
        }
        if version >= 21:
            assert [name[:1] for name in carried] == ["#"]
        else:
            assert carried == set()
    finally:
        jvm.stop()


def test_threads_that_start_and_end(workload):
    """A new thread is found after `forget`; those of a JVM that has ended keep their names."""
    jvm = workload("sleep=1")
    threads, memory = threads_of(jvm)
    before = {tid: threads.name(tid) for tid in tids(jvm)}
    assert "sleep-0" in before.values()
    AttachClient(Host.at(None, None).fs, jvm.pid, jvms.START_S).thread_dump()  # it starts a Java thread
    new = set(tids(jvm)) - set(before)
    assert [threads.name(tid) for tid in new] == [None] * len(new)
    memory.forget()
    threads.forget()
    assert "Attach Listener" in {threads.name(tid) for tid in new}
    assert threads.name(1 << 22) is None  # no such thread
    known = {tid: threads.name(tid) for tid in before}
    jvm.stop()
    memory.forget()
    threads.forget()
    assert {tid: threads.name(tid) for tid in before} == known == before


def test_the_memory_of_another_program():
    """Nothing is found, and nothing is raised."""
    jvm = jvms.start("sleep=1", version=17)
    threads, memory = threads_of(jvm)
    jvm.stop()
    memory.forget()
    assert [threads.name(tid) for tid in range(jvm.pid, jvm.pid + 5)] == [None] * 5
