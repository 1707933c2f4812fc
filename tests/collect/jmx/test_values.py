"""Values that are read from outside, beside those of a JMX client in the same JVM: every collector, JDK 11 to 25."""

from __future__ import annotations

import os
import random
import signal
from contextlib import ExitStack
from itertools import cycle

import beanclients
import cgroups
import pytest

from opskit.collect.jmx.beans_of_memory import memory_beans
from opskit.collect.jmx.beans_of_runtime import asked_properties, system_properties
from opskit.collect.jmx.collect import Collector, collect, read_beans
from opskit.collect.jmx.facts import Request
from opskit.collect.jmx.sources import Sources
from opskit.errors import NoSuchProcess, NotAJvm, OpskitError, UsageError
from opskit.host import Host
from opskit.jvm.discover import read_perfdata
from opskit.jvm.memory.memory_service import MANAGERS, POOLS
from opskit.jvm.memory.stripped import find_lists
from opskit.jvm.memory.variables import read_variables
from opskit.jvm.memory.vmstructs import read_vmstructs
from opskit.proc.files.smaps import parse_smaps
from opskit.proc.touched_memory import TouchedMemory

pytestmark = pytest.mark.xdist_group("JVMs by PID")
UNLOCK = "-XX:+UnlockExperimentalVMOptions"
SECRET = ("-Dshop.password=hunter2", "-Dname=with a blank")
CASES = {
    "11-CMS": (11, ("-XX:+UseConcMarkSweepGC", *SECRET)),
    "17-Parallel": (17, ("-XX:+UseParallelGC", "-XX:-UsePerfData", *SECRET)),
    "25-Shenandoah": (
        25,
        (UNLOCK, "-XX:+UseShenandoahGC", "-XX:ShenandoahGCMode=generational", "-XX:+PerfDisableSharedMem"),
    ),
    "21-ZGC": (21, ("-XX:+UseZGC", "-XX:+ZGenerational", "-Xlog:gc")),
    "25-G1": (25, ("-XX:+UseG1GC", "-XX:TieredStopAtLevel=1")),
    "25-Serial": (25, ("-XX:+UseSerialGC", "-Xint")),
}
_TRIES = 6


@pytest.fixture(scope="module")
def clients(tmp_path_factory):
    """The JVMs of all cases."""
    file = tmp_path_factory.mktemp("mapped") / "file"
    file.write_bytes(b"x" * 8192)
    with beanclients.clients(CASES, str(file)) as started:
        yield started


@pytest.fixture(params=CASES)
def client(request, clients):
    """One of them."""
    return clients[request.param]


def values(facts):
    return {bean.name: {each.name: each.value for each in bean.attributes} for bean in facts.beans}


def test_values_equal_those_of_a_jmx_client(client):
    """Each attribute: equal at rest, or between two answers of the client while it changes."""
    host, found = Host.at(None, None), ["nothing was compared"]
    client.ask("g")
    for _ in range(_TRIES):
        before, facts, after = client.beans(), collect(host, Request(client.pid)), client.beans()
        if beanclients.collections(before) == beanclients.collections(after):
            found = beanclients.differences(before, values(facts), after)
        if not found:
            break
    assert found == []
    if "-Dshop.password=hunter2" in client.options:
        runtime = values(facts)["java.lang:type=Runtime"]
        assert runtime["SystemProperties"]["shop.password"] == "…"
        assert {"-Dshop.password=…", "-Dname=with a blank"} < set(runtime["InputArguments"])
    assert "hunter2" not in str(facts)


def test_the_last_cause_of_a_collection(clients):
    """Of the collector that ran last."""
    client = clients["25-Serial"]
    client.ask("g")
    found = values(collect(Host.at(None, None), Request(client.pid, ("*:type=GarbageCollector,* LastGcCause",))))
    assert list(found.values()) == [{"LastGcCause": "System.gc()"}]


def test_nothing_happens_in_the_jvm(clients):
    """No class is loaded, no safepoint is reached, no thread starts, and the attach listener is not started."""
    client = clients["25-G1"]
    fs = Host.at(None, None).fs

    def counted():
        perf = read_perfdata(fs, client.pid)
        names = [name for name in perf.counters if name.startswith(("java.cls.", "java.threads."))]
        return {name: perf.number(name) for name in (*names, "sun.rt.safepoints")}

    for _ in range(_TRIES):  # the JVM may stop for something of its own
        before = counted()
        collector = Collector(Host.at(None, None), Request(client.pid))
        first, second = collector.look(), collector.look()
        after = counted()
        if after == before:
            break
    assert after == before
    assert len(first.beans) == len(second.beans) > 15
    assert not any(fs.read(client.pid, "task", tid, "comm") == b"Attach Listener\n" for tid in fs.tids(client.pid))


class Damaged:
    """The memory of a JVM, of which a random bit of some reads is wrong."""

    def __init__(self, memory, seed):
        self._memory, self._random = memory, random.Random(seed)  # noqa: S311  (not for secrets)

    def forget(self):
        pass

    def read_anew(self, address, size):
        return self._memory.read_anew(address, size)

    def read(self, address, size):
        found = bytearray(self._memory.read(address, size))
        if found and self._random.random() < 0.02:
            at = self._random.randrange(len(found))
            found[at] ^= 1 << self._random.randrange(8)
        return bytes(found)


@pytest.mark.parametrize("case", ["11-CMS", "21-ZGC", "25-G1"])
def test_damaged_memory_gives_values_or_sentences(clients, case):
    """The JVM changes while it is read, and may be hostile: nothing is raised but what `missing` says."""
    sources = Sources(Host.at(None, None), clients[case].pid)
    sources.look()
    whole = sources._memory
    for seed in range(12):
        sources._memory, sources._objects, sources._classes, sources.missing = Damaged(whole, seed), None, {}, []
        try:
            found = read_beans(sources, None, None)
        except OpskitError:
            continue
        assert "java.lang:type=OperatingSystem" in {bean.name for bean in found}


@pytest.mark.parametrize("counts", [[None], [2, 4]])
def test_values_of_two_sides_of_a_safepoint_are_left_out(clients, monkeypatch, counts):
    """In a long pause, and where pauses follow each other, memory pools have no usage, and the reason is told."""
    host, waits, found = Host.at(None, None), [], cycle(counts)
    sources = Sources(host, clients["25-Serial"].pid)
    sources.look()
    sources.boot_classes()
    monkeypatch.setattr(host, "sleep", waits.append)
    monkeypatch.setattr(sources, "_safepoint_count", lambda: next(found))
    assert memory_beans(sources) == []
    assert any(each.startswith("memory pools and collectors: the JVM was in a safepoint") for each in sources.missing)
    assert 0 <= sum(waits) < 1


def test_safepoints_without_symbols(clients, monkeypatch):
    """Where libjvm is stripped, the JVM's counters tell them."""
    sources = Sources(Host.at(None, None), clients["25-Serial"].pid)
    sources.look()
    monkeypatch.setattr(sources, "variables", {})
    before = sources._safepoint_count()
    clients["25-Serial"].ask("g")
    assert sources._safepoint_count() > before > 0


def test_release_without_counters_and_files(clients, monkeypatch):
    """The JVM's memory tells it."""
    sources = Sources(Host.at(None, None), clients["17-Parallel"].pid)  # it has no counters
    sources.look()
    monkeypatch.setattr("opskit.collect.jmx.sources.jdk_release", lambda *_: {})
    assert sources.release.startswith("17.")


def test_loads_are_of_the_time_between_two_looks(clients):
    """A first look has none, and says what to do."""
    host, pid = Host.at(None, None), clients["25-G1"].pid
    collector = Collector(host, Request(pid, ("*:type=OperatingSystem *Load",)))
    first = collector.look()
    assert (first.beans, [each for each in first.missing if "-w" in each]) != ([], [])
    host.sleep(0.05)
    [bean] = collector.look().beans
    loads = {each.name: each.value for each in bean.attributes}
    assert loads.keys() == {"ProcessCpuLoad", "SystemCpuLoad", "CpuLoad"}
    assert all(0 <= each <= 1 for each in loads.values())
    [bean] = collect(host, Request(pid, ("*:type=OperatingSystem ProcessCpuLoad",), window_s=0.05)).beans
    assert [each.name for each in bean.attributes] == ["ProcessCpuLoad"]


def test_patterns_and_names(clients):
    """Only what is meant is given; with patterns the names of all are known."""
    facts = collect(Host.at(None, None), Request(clients["25-G1"].pid, ("java.lang:type=Memory HeapMemoryUsage",)))
    assert [(bean.name, [each.name for each in bean.attributes]) for bean in facts.beans] == [
        ("java.lang:type=Memory", ["HeapMemoryUsage"])
    ]
    assert "HeapMemoryUsage.used" in facts.names["java.lang:type=Memory"]
    assert "java.lang:type=MemoryPool,name=CodeHeap 'non-nmethods'" in facts.names or len(facts.names) > 12


def test_lists_are_found_without_symbols(client):
    """Where libjvm is stripped: the same variables that its table of symbols names."""
    fs = Host.at(None, None).fs
    regions = fs.load(parse_smaps, client.pid, "maps")
    memory = TouchedMemory(fs, client.pid, regions)
    named = read_variables(fs, client.pid, (POOLS, MANAGERS))
    assert find_lists(read_vmstructs(fs, client.pid, memory), memory, regions) == named


def test_asked_properties_are_those_of_its_memory(clients):
    """The attach command `properties` and the JVM's heap have the same."""
    sources = Sources(Host.at(None, None), clients["25-Serial"].pid)
    sources.look()
    source, read = system_properties(sources)
    assert source == "memory"
    assert read["java.version"].startswith("25")
    assert asked_properties(sources) == read


def test_limits_of_a_container(tmp_path):
    """Memory and CPUs as the JVM takes them from its cgroups."""
    name, limit = f"opskit-jmx-{os.getpid()}", 300 << 20
    file = tmp_path / "file"
    file.write_bytes(b"x" * 8192)
    with ExitStack() as stack:
        memory = stack.enter_context(cgroups.new_cgroup("memory", name, "memory.limit_in_bytes memory.max"))
        cpu = stack.enter_context(cgroups.new_cgroup("cpu", f"{name}-cpu", "cpu.cfs_quota_us cpu.max"))
        old = (memory / "memory.limit_in_bytes").exists()
        (memory / ("memory.limit_in_bytes" if old else "memory.max")).write_text(str(limit))
        if (cpu / "cpu.cfs_quota_us").exists():
            (cpu / "cpu.cfs_quota_us").write_text("90000")
        else:
            (cpu / "cpu.max").write_text("90000 100000")
        shell = (
            "sh",
            "-c",
            'echo $$ > "$0"; echo $$ > "$1"; shift; exec "$@"',
            f"{memory}/cgroup.procs",
            f"{cpu}/cgroup.procs",
        )
        with beanclients.clients({"17": (17, ("-XX:+UseSerialGC",))}, str(file), shell) as started:
            request = Request(started["17"].pid, ("*:type=OperatingSystem",), window_s=0.01)
            [bean], missing = (facts := collect(Host.at(None, None), request)).beans, "\n".join(facts.missing)
            theirs = started["17"].beans()[bean.name]
            for file in ("cpu.cfs_quota_us", "cpu.max"):
                if (cpu / file).exists():
                    (cpu / file).write_text("-1" if old else "max 100000")
            share = next(each for each in (cpu / "cpu.shares", cpu / "cpu.weight") if each.exists())
            share.write_text("512")
            later = collect(Host.at(None, None), request)
    ours = {each.name: each.value for each in bean.attributes}
    names = (
        "TotalMemorySize",
        "TotalPhysicalMemorySize",
        "TotalSwapSpaceSize",
        "AvailableProcessors",
        "MaxFileDescriptorCount",
    )
    assert {each: ours[each] for each in names} == {each: theirs[each] for each in names}
    assert (ours["TotalMemorySize"], ours["AvailableProcessors"]) == (limit, 1)
    assert not {"CpuLoad", "ProcessCpuLoad"} & {*ours}
    assert "those of its container, which has a CPU quota of 0.9" in missing
    assert "AvailableProcessors" not in {each.name for each in later.beans[0].attributes}
    assert "AvailableProcessors: JDK releases differ in what they make of cpu." in "\n".join(later.missing)


def test_without_rights_the_rest_is_given(clients, as_user):
    """Another user's JVM: what everybody may read, and what to do about the rest."""
    pid = clients["25-G1"].pid
    facts = as_user(65534, lambda: collect(Host.at(None, None), Request(pid)))
    assert [bean.name for bean in facts.beans] == ["java.lang:type=OperatingSystem", "java.lang:type=Runtime"]
    assert any(each.startswith("memory pools") and "run as root" in each for each in facts.missing)
    assert f"{pid} is a JVM of uid 0" in "\n".join(facts.missing)


def test_a_stopped_jvm_and_one_that_has_ended(clients):
    """Nothing is asked of the JVM: a stopped one is read as any other. Of one that has ended the error says so."""
    client = clients["25-Shenandoah"]
    collector = Collector(Host.at(None, None), Request(client.pid))
    client.jvm.signal(signal.SIGSTOP)
    assert len(collector.look().beans) > 15
    client.jvm.signal(signal.SIGCONT)
    client.jvm.stop()
    with pytest.raises(NoSuchProcess, match=f"no process {client.pid}"):
        collector.look()
    with pytest.raises(NotAJvm):
        collect(Host.at(None, None), Request(os.getpid()))
    with pytest.raises(UsageError, match="no JVM was named"):
        collect(Host.at(None, None), Request(None))
