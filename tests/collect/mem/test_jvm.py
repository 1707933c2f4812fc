"""What a JVM says about its memory, read in real ones: with and without rights, attach listener, hsperfdata, mappings."""

from __future__ import annotations

import os
import pickle

import holders
import jvms
import pytest
from jvmtree import LIBJVM, Tree, elf
from stracing import OPENS, SIGNALS, traced

from opskit.collect.mem.facts import JvmMemory
from opskit.collect.mem.jvm import committed_bytes, read_jvm
from opskit.errors import NoSuchProcess
from opskit.host import Host
from opskit.jvm.attach import target as targets
from opskit.jvm.attach.client import AttachClient
from opskit.jvm.discover import read_perfdata
from opskit.proc.files.smaps import Region, Usage, parse_smaps
from opskit.proc.ranges import Range

pytestmark = pytest.mark.xdist_group("JVMs by PID")
MIB = 1 << 20
UNLOCK = ("-XX:+UnlockDiagnosticVMOptions", "-XX:+UnlockExperimentalVMOptions")
COLLECTORS = ("Serial", "Parallel", "G1", "Shenandoah")


@pytest.fixture
def host():
    return Host.at(None, None)


def look(host, pid, **options):
    return read_jvm(host, pid, host.fs.load(parse_smaps, pid, "smaps"), **options)


@pytest.mark.parametrize("collector", COLLECTORS)
def test_buffers_to_the_byte(host, jvm_version, collector, tmp_path):
    """Direct and mapped buffers as the JVM's own MXBeans count them."""
    if collector == "Shenandoah" and jvm_version == 11:
        pytest.skip("this JDK 11 has no Shenandoah")
    file = tmp_path / "file"
    file.write_bytes(b"x" * 300_001)
    options = ("-Xmx64m", *UNLOCK, f"-XX:+Use{collector}GC")
    with holders.java("direct=7", "small=2", f"mapped={file}", version=jvm_version, options=options) as held:
        found, _ = look(host, held.pid)
        assert (found.direct_bytes, found.mapped_buffer_bytes) == (9 * MIB, 300_001)
        assert (found.direct_bytes, found.mapped_buffer_bytes) == holders.buffers(held)
        assert found.collector == collector
        assert holders.grow(held, "d")
        assert look(host, held.pid)[0].direct_bytes == 10 * MIB


@pytest.mark.parametrize("options", [(), ("-XX:+ZGenerational",)], ids=["ZGC", "generational"])
def test_zgc_gives_the_right_bytes_or_none(host, options):
    """While ZGC would look where an object is now, a value is unknown; it is never another one."""
    with holders.java("direct=5", version=21, options=("-Xmx64m", "-XX:+UseZGC", *options)) as held:
        client = AttachClient(host.fs, held.pid)
        seen = set()
        for _ in range(3):
            seen.add(look(host, held.pid)[0].direct_bytes)
            client.jcmd("GC.run")
            seen.add(look(host, held.pid)[0].direct_bytes)
            assert holders.buffers(held)[0] == 5 * MIB
    assert seen <= {5 * MIB, None}


@pytest.mark.parametrize("collector", COLLECTORS)
def test_the_heap_in_use(host, jvm_version, collector):
    """What the collector's own objects say is what GC.heap_info says, but for what is allocated between the two."""
    if collector == "Shenandoah" and jvm_version == 11:
        pytest.skip("this JDK 11 has no Shenandoah")
    options = ("-Xms64m", "-Xmx64m", "-XX:-UsePerfData", *UNLOCK, f"-XX:+Use{collector}GC")
    with holders.java("heap=20", version=jvm_version, options=options) as held:
        inside, _ = look(host, held.pid)
        asked, _ = look(host, held.pid, ask=True)
    assert "attach" not in inside.sources
    assert asked.heap_used_bytes >= 19 * MIB
    assert abs(inside.heap_used_bytes - asked.heap_used_bytes) <= 2 * MIB


def test_limits_in_force(host, jvm_version):
    """What the flags say, in bytes; without a flag its default, None for no limit."""
    options = (
        "-Xms32m", "-Xmx96m", "-Xss600k", "-XX:MaxDirectMemorySize=20m", "-XX:MaxMetaspaceSize=80m", "-XX:+AlwaysPreTouch",
        "-XX:CompressedClassSpaceSize=32m", "-XX:ReservedCodeCacheSize=48m", "-XX:+UseSerialGC",
    )  # fmt: skip
    with holders.java("threads=15", "loaders=40", version=jvm_version, options=options) as held:
        found, ranges = look(host, held.pid)
    assert found.heap_max_bytes == 96 * MIB
    assert 32 * MIB <= found.heap_committed_bytes <= 33 * MIB
    assert found.heap_touched
    assert (found.direct_max_bytes, found.metaspace_max_bytes) == (20 * MIB, 80 * MIB)
    assert (found.class_space_max_bytes, found.code_reserved_bytes) == (32 * MIB, 48 * MIB)
    assert found.stack_bytes == 600 * 1024
    assert 40 < found.class_loaders < 50
    assert 15 < found.threads < 40
    assert found.main == "MemoryHolder"
    assert found.release.startswith(str(jvm_version))
    assert found.missing == ()
    [class_space] = [each for each in ranges if each.kind == "class-space"]
    assert class_space.end - class_space.start == 32 * MIB


def test_limits_by_default(host):
    """No limit of metaspace; direct buffers may grow to the heap's limit."""
    with holders.java("heap=1", options=("-Xmx64m", "-XX:-UseCompressedClassPointers", "-XX:+UseG1GC")) as held:
        found, ranges = look(host, held.pid)
    assert found.metaspace_max_bytes is None
    assert found.class_space_max_bytes is None
    assert found.direct_max_bytes == 64 * MIB
    assert (found.direct_bytes, found.mapped_buffer_bytes) == (0, 0)
    assert not found.heap_touched
    assert not [each for each in ranges if each.kind == "class-space"]


def test_no_safepoint(host, jvm_version):
    """An idle JVM without periodic safepoints has none more after ten looks, with and without its attach listener."""
    options = ("-Xmx64m", "-XX:+UnlockDiagnosticVMOptions", "-XX:GuaranteedSafepointInterval=0")
    with holders.java("heap=1", version=jvm_version, options=options) as held:
        for has_listener in (False, True):
            if has_listener:
                AttachClient(host.fs, held.pid).jcmd("VM.version")
            before = read_perfdata(host.fs, held.pid).number("sun.rt.safepoints")
            sources = {look(host, held.pid)[0].sources for _ in range(10)}
            assert read_perfdata(host.fs, held.pid).number("sun.rt.safepoints") == before
            assert [("attach" in each) for each in sources] == [has_listener]


def test_the_listener_is_started_only_if_asked(host):
    """Without --ask nothing is sent, also where its socket was deleted; with it, its answer is of now."""
    with holders.java("heap=20", version=21, options=("-Xmx64m",)) as held:
        assert look(host, held.pid)[0].sources == ("vmStructs", "hsperfdata")
        assert not targets.has_listener(host.fs, held.pid)
        found, _ = look(host, held.pid, ask=True)
        assert targets.has_listener(host.fs, held.pid)
        assert found.sources == ("vmStructs", "hsperfdata", "attach")
        assert 20 * MIB <= found.heap_used_bytes <= 30 * MIB
        assert 0 < found.metaspace_used_bytes <= found.metaspace_committed_bytes
        os.unlink(f"/tmp/.java_pid{held.pid}")
        found, _ = look(host, held.pid)
        assert found.sources == ("vmStructs", "hsperfdata")
        assert not os.path.exists(f"/tmp/.java_pid{held.pid}")
        assert "Full thread dump" not in held.output()


def test_nothing_is_sent(root_only):
    """Held against strace: the memory is opened for reading; no signal, no ptrace, no connection."""
    with holders.java("heap=1", "direct=1", options=("-Xmx64m",)) as held:
        run = traced(
            "mem", held.pid, calls=(*OPENS, *SIGNALS, "ptrace", "connect", "process_vm_readv", "process_vm_writev")
        )
    assert run.code == 0, run.err
    assert run.of(*SIGNALS, "ptrace", "process_vm_readv", "process_vm_writev") == []
    assert all("/nscd/" in call for call in run.of("connect"))  # glibc asks it for the user's name
    assert run.writing() == []
    assert any(f"/proc/{held.pid}/mem" in call for call in run.of(*OPENS))


def test_no_environment_variable_is_shown(opskit):
    """VM.info has them: no output contains its text, also where the listener runs."""
    secret = "password-of-the-database"  # noqa: S105
    held = jvms.start("sleep=1", env={"SECRET": secret}, options=("-Xmx64m",), properties=(f"-Dkey={secret}",))
    try:
        for options in (("--ask",), ("-v",)):
            done = opskit("mem", str(held.pid), *options, "-f", "json")
            assert done.code == 0
            assert secret not in done.out + done.err
    finally:
        held.stop()


def test_without_mappings(host):
    """Its own figures need no smaps; what needs the size of mappings is unknown."""
    with holders.java("direct=3", options=("-Xmx64m", "-XX:+UseSerialGC")) as held:
        whole, _ = look(host, held.pid)
        found, ranges = read_jvm(host, held.pid, ())
    assert ranges == []
    assert found.direct_bytes == 3 * MIB
    moving = {"metaspace_committed_bytes": None, "heap_used_bytes": None}
    assert found._replace(**moving) == whole._replace(**moving)


def test_without_counters(host):
    """Without hsperfdata its memory tells nearly all, and the rest is named."""
    with holders.java("direct=3", options=("-Xmx64m", "-XX:-UsePerfData", "-XX:+UseParallelGC")) as held:
        found, ranges = look(host, held.pid)
    assert (found.collector, found.heap_max_bytes, found.direct_bytes) == ("Parallel", 64 * MIB, 3 * MIB)
    assert found.sources == ("vmStructs",)
    assert 0 < found.heap_used_bytes < 10 * MIB
    assert len(found.missing) == 1
    assert "UsePerfData" in found.missing[0]
    assert ranges


def test_without_rights(host, as_user):
    """Another user's JVM: who it is, and that its memory cannot be read."""
    with holders.java("direct=3", options=("-Xmx64m",)) as held:
        found, ranges = as_user(65534, lambda: _plain(read_jvm(Host.at(None, None), held.pid, ())))
    assert JvmMemory(*found).main == "MemoryHolder"
    assert ranges == []
    assert any(f"permission denied for /proc/{held.pid}/mem" in each for each in JvmMemory(*found).missing)


def _plain(answer):
    found, ranges = answer
    assert pickle.dumps(found)
    return tuple(found), ranges


def test_other_processes(host):
    """No JVM: nothing. A process that is not there is said to be so."""
    assert read_jvm(host, os.getpid(), ()) == (None, [])
    with pytest.raises(NoSuchProcess):
        read_jvm(host, 1 << 22, ())


def test_other_virtual_machines(tmp_path):
    """OpenJ9 and native images have no rows, and the reason is given."""
    tree = Tree(tmp_path)
    tree.process(50, maps=LIBJVM + LIBJVM.replace("/server/libjvm.so", "/default/libj9vm29.so"))
    tree.process(60, ("server",))
    (tree.root / "proc/60/exe").symlink_to(tree.write("srv/server", elf(".svm_heap")))
    for pid, name in ((50, "OpenJ9"), (60, "native image")):
        found, ranges = read_jvm(Host(tree.fs), pid, ())
        assert ranges == []
        assert found == JvmMemory(found.main, missing=found.missing)
        assert name in found.missing[0]


def test_a_copy_without_memory(tmp_path):
    """A captured tree has no mem: what its counters say, and that the rest is missing."""
    tree = Tree(tmp_path)
    tree.process(4242, maps=LIBJVM + tree.perf(4242))
    found, ranges = read_jvm(Host(tree.fs), 4242, ())
    assert ranges == []
    assert found.sources == ("hsperfdata",)
    assert any("/4242/mem" in each for each in found.missing)


def test_a_jvm_that_ends(host):
    """Its end between two reads is NoSuchProcess, or a record with unknown values; never another exception."""
    with holders.java("heap=1", options=("-Xmx64m",)) as held:
        regions = host.fs.load(parse_smaps, held.pid, "smaps")
    with pytest.raises(NoSuchProcess):
        read_jvm(host, held.pid, regions)


def test_committed_bytes():
    """What is accessible of a range, of each region that it cuts."""
    regions = [
        Region(start, end, permissions, 0, 0, "", deleted=False, usage=Usage())
        for start, end, permissions in ((0, 10, "rw-p"), (10, 20, "---p"), (20, 30, "r--p"))
    ]
    assert committed_bytes(regions, [Range(5, 25, "java-heap")]) == 10
    assert committed_bytes(regions, []) == 0


def test_committed_metaspace_without_its_mappings(host, monkeypatch):
    """Where only the class space was found, the JVM's counter has both."""
    monkeypatch.setattr("opskit.jvm.memory.ranges.metaspace_spans", lambda *_: [])
    with holders.java("classes=300") as held:
        found, ranges = look(host, held.pid)
    assert {"class-space"} == {each.kind for each in ranges} & {"class-space", "metaspace"}
    spaces = sum(each.end - each.start for each in ranges if each.kind == "class-space")
    assert found.metaspace_committed_bytes > found.metaspace_used_bytes if found.metaspace_used_bytes else spaces > MIB
    assert found.metaspace_committed_bytes > 6 * MIB
