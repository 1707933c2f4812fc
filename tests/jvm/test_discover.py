"""Finding JVMs in a tree: whose file is whose, and why there is none."""

from __future__ import annotations

import os
import pwd
import subprocess
import sys
from types import SimpleNamespace

import hsperf
import pytest
from jvmtree import LIBJVM, START_MS, Tree, elf
from shells import CONTAINER_ROOT, NOBODY

from opskit.errors import NoSuchProcess, NotAJvm, NotPermitted, NotSupported
from opskit.jvm.discover import (
    HOTSPOT,
    NATIVE_IMAGE,
    OPENJ9,
    find_jvm,
    find_jvms,
    read_perfdata,
    survey,
    user_inside,
)
from opskit.proc.fs import ProcFS


@pytest.fixture
def tree(tmp_path):
    return Tree(tmp_path)


def test_a_jvm_is_found_by_the_file_it_maps(tree):
    """Also one that is linked into its launcher, without any libjvm."""
    tree.process(4242, maps=tree.perf(4242))
    tree.process(11, ("nginx",))
    tree.process(12, ("sh",), threads=1)
    [jvm] = find_jvms(tree.fs)
    assert (jvm.pid, jvm.ns_pid, jvm.kind, jvm.main, jvm.uid) == (4242, 4242, HOTSPOT, "com.example.Main", os.getuid())
    assert jvm.perf.get("sun.rt.javaCommand") == "com.example.Main x"
    assert jvm.no_perf is None


def test_a_jvm_without_a_file_is_found_by_libjvm(tree):
    tree.process(4242, ("java", "-XX:-UsePerfData", "-jar", "/srv/app.jar", "-XX:+UsePerfData"), maps=LIBJVM)
    [jvm] = find_jvms(tree.fs)
    assert (jvm.kind, jvm.main, jvm.perf) == (HOTSPOT, "/srv/app.jar", None)
    assert jvm.libjvm == "/opt/jdk/lib/server/libjvm.so"
    with pytest.raises(NotSupported, match="-XX:-UsePerfData"):
        read_perfdata(tree.fs, 4242)


@pytest.mark.parametrize(
    ("words", "environ", "reason"),
    [
        (("java", "-XX:+PerfDisableSharedMem", "Main"), "", r"-XX:\+PerfDisableSharedMem"),
        (("java", "Main"), "HOME=/\0JAVA_TOOL_OPTIONS=-Xmx1g -XX:-UsePerfData\0", "-XX:-UsePerfData"),
        (("java", "-XX:-UsePerfData", "-XX:+UsePerfData", "Main"), "", "hsperf-check 4242"),
        (("java", "-XX:+UsePerfData", "Main"), "_JAVA_OPTIONS=-XX:-UsePerfData\0", "-XX:-UsePerfData"),
    ],
)
def test_why_there_are_no_counters(tree, words, environ, reason):
    tree.process(4242, words, maps=LIBJVM, environ=environ)
    with pytest.raises(NotSupported, match=reason):
        read_perfdata(tree.fs, 4242)


def test_a_file_that_is_left_over_makes_no_jvm(tree):
    """A file named after this process's PID, left by an earlier JVM or by one in a container that shares /tmp."""
    tree.process(4242, ("nginx",))
    tree.perf(4242)
    assert find_jvms(tree.fs) == []
    with pytest.raises(NotAJvm, match=r"4242 \(nginx\) is not a JVM"):
        find_jvm(tree.fs, 4242)


def test_two_containers_that_share_tmp_and_the_inner_pid(tree):
    """Both have PID 1 inside; the file belongs to the one that maps it."""
    line = tree.perf(1)
    tree.process(500, maps=LIBJVM + line, ns_pid=1)
    tree.process(600, maps=LIBJVM, ns_pid=1)
    tree.process(1, ("init",))  # and our own init has that name as well
    one, other = find_jvms(tree.fs)
    assert (one.pid, other.pid) == (500, 600)
    assert one.perf is not None
    assert other.perf is None


def test_of_several_users_files_the_mapped_one_counts(tree):
    tree.perf(4242, "old", began_ms=START_MS + 10)
    line = tree.perf(4242, "app", began_ms=START_MS + 20)
    tree.perf(4242, "zoe", began_ms=START_MS + 30)
    tree.process(4242, maps=LIBJVM + line)
    assert read_perfdata(tree.fs, 4242).source.endswith("/tmp/hsperfdata_app/4242")


class Closed(ProcFS):
    """A tree with unreadable maps, as those of another user's processes."""

    def read_path(self, path, *limit):
        if path.endswith(("/maps", "/environ")):
            raise PermissionError(13, "Permission denied")
        return super().read_path(path, *limit)


def test_of_what_is_closed_to_us_names_tell(tree):
    """A java launcher, or HotSpot's own thread; with a file of the same owner that began after the process."""
    closed = Closed(tree.fs.proc, tree.fs.root)
    tree.process(40)
    tree.process(50, ("jsvc.exec", "org.Daemon"))
    tree.write("proc/50/task/53/comm", "VM Thread\n")
    tree.process(60, ("nginx",))
    tree.perf(60)
    found = survey(closed)
    assert [(jvm.pid, jvm.main) for jvm in found.jvms] == [(40, "com.example.Main"), (50, "jsvc.exec")]
    assert found.denied == [60]
    with pytest.raises(NotPermitted, match="only that user and root may read"):
        read_perfdata(closed, 40)
    tree.perf(40, "old", began_ms=START_MS - 60_000)
    assert find_jvm(closed, 40).perf is None
    tree.perf(40, "app", began_ms=START_MS + 60)
    assert find_jvm(closed, 40).perf.source.endswith("/tmp/hsperfdata_app/40")


def test_a_link_in_the_files_place_is_not_followed(tree):
    target = tree.write("elsewhere", hsperf.build({"sun.rt.createVmBeginTime": START_MS + 80}))
    (tree.root / "tmp/hsperfdata_app").mkdir()
    (tree.root / "tmp/hsperfdata_app/4242").symlink_to(target)
    tree.process(4242, maps=LIBJVM)
    assert find_jvm(tree.fs, 4242).perf is None
    (tree.root / "tmp/hsperfdata_app/4242").unlink()
    os.mkfifo(tree.root / "tmp/hsperfdata_app/4242")
    assert find_jvm(tree.fs, 4242).perf is None


def test_openj9_and_native_images_are_said_to_be_so(tree):
    tree.process(50, maps=LIBJVM + LIBJVM.replace("/server/libjvm.so", "/default/libj9vm29.so"))
    tree.process(60, ("server",))
    (tree.root / "proc/60/exe").symlink_to(tree.write("srv/server", elf(".svm_heap")))
    tree.process(70, ("other",))
    (tree.root / "proc/70/exe").symlink_to(tree.write("srv/other", elf(".data")))
    openj9, native = find_jvms(tree.fs)
    assert (openj9.pid, openj9.kind) == (50, OPENJ9)
    assert "OpenJ9" in str(openj9.no_perf)
    assert (native.pid, native.kind) == (60, NATIVE_IMAGE)
    assert "native image" in str(native.no_perf)


def test_an_executable_on_another_machine_is_not_touched(tree):
    """Its server may be down: then a stat there never returns."""
    tree.process(60, ("server",))
    (tree.root / "proc/60/exe").symlink_to(tree.write("srv/nfs/server", elf(".svm_heap")))
    tree.write("proc/60/mountinfo", f"36 35 0:41 / {tree.root}/srv/nfs rw - nfs4 box:/x rw\n")
    assert find_jvms(tree.fs) == []
    tree.write("proc/60/mountinfo", f"36 35 0:41 / {tree.root}/srv/nfs rw - ext4 /dev/sda1 rw\n")
    assert [jvm.kind for jvm in find_jvms(tree.fs)] == [NATIVE_IMAGE]


def test_a_damaged_process_does_not_end_the_search(tree):
    tree.process(60, maps=LIBJVM)
    tree.process(70, maps=LIBJVM)
    tree.write("proc/60/stat", "60 (java) S\n")
    found = survey(tree.fs)
    assert [jvm.pid for jvm in found.jvms] == [70]
    assert found.denied == [60]


def test_what_is_no_process_and_what_has_ended(tree):
    with pytest.raises(NoSuchProcess, match="no process 999"):
        find_jvm(tree.fs, 999)
    tree.process(70, ("defunct",), threads=1)
    status = (tree.root / "proc/70/status").read_text().replace("S (sleeping)", "Z (zombie)")
    tree.write("proc/70/status", status)
    with pytest.raises(NotAJvm, match="zombie"):
        find_jvm(tree.fs, 70)
    tree.process(71)
    tree.write("proc/71/status", (tree.root / "proc/71/status").read_text().replace("Tgid:\t71", "Tgid:\t70"))
    with pytest.raises(NotAJvm, match=r"71 .* is a thread of process 70"):
        find_jvm(tree.fs, 71)


def test_a_jvm_that_is_just_starting_is_waited_for(tree):
    """Its file is not accessible at first; the wait sleeps, and ends."""
    line = tree.perf(4242)
    tree.process(4242, maps=LIBJVM + line)
    path = tree.root / "tmp/hsperfdata_app/4242"
    ready = path.read_bytes()
    unready = ready[:7] + b"\0" + ready[8:]

    def put(content):
        with path.open("r+b") as file:
            file.write(content)

    put(unready)
    with pytest.raises(NotSupported, match="just starting"):
        read_perfdata(tree.fs, 4242)
    waits = []

    def sleep(seconds):
        waits.append(seconds)
        if len(waits) == 3:
            put(ready)

    assert read_perfdata(tree.fs, 4242, sleep).accessible
    assert len(waits) == 3
    put(unready)
    waits = [0, 0, 0]
    with pytest.raises(NotSupported, match="just starting"):
        read_perfdata(tree.fs, 4242, sleep)
    assert all(seconds > 0 for seconds in waits[3:])


@pytest.mark.parametrize(("threads", "says"), [(1, "it has ended, and its parent"), (5, "its other threads run on")])
def test_a_zombie(tree, threads, says):
    """A zombie with other threads has not ended."""
    tree.write("proc/7/status", f"Name:\tjava\nState:\tZ (zombie)\nThreads:\t{threads}\n")
    with pytest.raises(NotAJvm, match=says):
        find_jvm(tree.fs, 7)


def test_a_process_whose_files_are_all_closed(root_only):
    """With hidepid=1 not even status can be read: an error that names the owner, not a bug."""
    process = subprocess.Popen(["sleep", "600"], user=NOBODY, group=NOBODY, extra_groups=[])
    script = 'mount -t proc -o hidepid=1 p /proc && exec "$@"'
    shell = ("unshare", "-m", "sh", "-c", script, "sh", *CONTAINER_ROOT, "--regid", "1", "--clear-groups")
    try:
        words = (*shell, sys.executable, "-m", "opskit", "safepoints", str(process.pid))
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (2, "")
        assert f"/proc/{process.pid}/maps: permission denied" in done.stderr
        assert f"setpriv --reuid={NOBODY}" in done.stderr or "CAP_SYS_PTRACE" in done.stderr
    finally:
        process.kill()
        process.wait()


def test_the_name_of_a_user_where_a_process_runs(tree):
    """Its passwd file has the uid of its user namespace."""
    tree.write("proc/7/root/etc/passwd", "root:x:0:0::/:/bin/sh\n")
    tree.write("proc/7/uid_map", "0 100000 65536\n")
    assert user_inside(tree.fs, 7, 100_000) == "root"
    assert user_inside(tree.fs, 7, 100_001) == ""
    assert user_inside(tree.fs, 7, 5) is None
    assert user_inside(tree.fs, 8, 100_000) is None


def test_a_user_without_a_line_in_our_passwd(monkeypatch):
    """LDAP has users too: HotSpot finds them by getpwuid()."""
    monkeypatch.setattr(pwd, "getpwuid", lambda uid: SimpleNamespace(pw_name=f"ldap-{uid}"))
    assert user_inside(ProcFS(), os.getpid(), 4242) == "ldap-4242"
