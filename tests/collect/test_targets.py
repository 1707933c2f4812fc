"""Which process a word of the command line names."""

from __future__ import annotations

import os

import pytest
from jvmtree import LIBJVM, Tree

from opskit.collect.targets import WhichProcess, is_file, is_pid, resolve_jvm, resolve_process
from opskit.errors import NoSuchProcess, UsageError
from opskit.host import Host
from opskit.proc.fs import ProcFS
from opskit.proc.process import command_name


@pytest.fixture
def tree(tmp_path):
    return Tree(tmp_path)


@pytest.fixture
def host(tree):
    return Host(tree.fs)


def test_digits_alone_are_a_pid_and_a_slash_makes_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "5").touch()
    (tmp_path / "dump.txt").touch()
    assert is_pid("5")
    assert not is_file("5")
    assert is_file("./5")
    assert is_file("-")
    assert is_file("dump.txt")
    assert not is_file("kafka")
    assert not is_pid("٥")


def test_a_pid_is_taken_as_it_is(tree, host):
    """Whether it is a JVM is found out by whoever reads it, with a better error."""
    tree.process(300, ("sh",), threads=1)
    assert resolve_jvm(host, "300") == 300
    with pytest.raises(NoSuchProcess, match="no process 301: opskit jvms"):
        resolve_jvm(host, "301")
    for word in ("0", "99999999999999999999"):
        with pytest.raises(UsageError, match=f"'{word}' is not a PID"):
            resolve_jvm(host, word)


def test_a_process_is_found_by_its_jvms_class_or_its_exact_name(tree, host):
    """A JVM's main class comes before a process's name; several are listed; none is an error that says what to type."""
    tree.process(300, ("nginx",), threads=1)
    tree.process(40, ("java", "-cp", "x", "kafka.Kafka"), maps=LIBJVM)
    tree.process(41, ("nginx-helper",), threads=1)
    assert resolve_process(host, "kafka", "pipes") == 40
    assert resolve_process(host, "nginx", "pipes") == 300
    assert resolve_process(host, "7", "pipes") == 7
    for word in ("nginx-h", ""):
        with pytest.raises(
            UsageError,
            match="is not a PID, a part of a running JVM's main class or jar or the name of a process; ps -e lists them",
        ):
            resolve_process(host, word, "pipes")
    tree.process(42, ("nginx",), threads=1)
    with pytest.raises(UsageError, match="2 processes match 'nginx'; give the PID of one") as which:
        resolve_process(host, "nginx", "pipes")
    assert [line.split()[0] for line in which.value.lines] == ["42", "300"]


def test_a_part_of_the_main_class_or_jar_is_enough(tree, host):
    tree.process(40, ("java", "-cp", "x", "kafka.Kafka", "server.properties"), maps=LIBJVM)
    tree.process(50, ("java", "-jar", "/srv/billing-3.jar", "kafka"), maps=LIBJVM)
    assert resolve_jvm(host, "kafka") == 40
    assert resolve_jvm(host, "Billing") == 50
    tree.process(60, ("java", "org.kafka.Connect"), maps=LIBJVM)
    with pytest.raises(UsageError, match="2 JVMs match 'k'") as caught:
        resolve_jvm(host, "k")
    assert [line.split()[0] for line in caught.value.lines] == ["40", "60"]
    assert caught.value.lines[0].endswith("  kafka.Kafka")
    with pytest.raises(
        UsageError, match="'zookeeper' is not a PID or a part of a running JVM's main class or jar; these are"
    ) as caught:
        resolve_jvm(host, "zookeeper")
    assert len(caught.value.lines) == 3


def test_nothing_said_means_the_only_jvm(tree, host):
    tree.process(1, ("init",))
    with pytest.raises(UsageError, match="no JVM is running here"):
        resolve_jvm(host, None)
    tree.process(40, ("java", "kafka.Kafka"), maps=LIBJVM)
    assert resolve_jvm(host, None) == 40
    tree.process(50, ("java", "-jar", "/srv/billing-3.jar"), maps=LIBJVM)
    with pytest.raises(UsageError, match="which JVM") as caught:
        resolve_jvm(host, None)
    assert len(caught.value.lines) == 2


def test_hundreds_of_jvms_are_not_all_listed(tree, host):
    for pid in range(100, 160):
        tree.process(pid, ("java", "app.Worker"), maps=LIBJVM, threads=2)
    with pytest.raises(UsageError, match="60 JVMs match") as caught:
        resolve_jvm(host, "worker")
    assert len(caught.value.lines) == 41
    assert caught.value.lines[-1] == "… 20 more; opskit jvms lists them all"


def test_opskit_itself_is_never_meant():
    """Its exe is a Python, as that of many programs."""
    fs, ours = ProcFS(), os.getpid()
    try:
        assert resolve_process(Host(fs), command_name(fs, ours), "pipes") != ours
    except WhichProcess as which:
        assert all(line.split()[0] != str(ours) for line in which.lines)  # noqa: PT017


def test_a_jvm_is_also_found_by_its_process_name(tree, host):
    """`java` is in no main class; a file could have been meant where the command takes files; an ended PID where it left files."""
    tree.process(40, ("java", "kafka.Kafka"), maps=LIBJVM)
    tree.process(41, ("java-helper",), threads=1)
    assert resolve_jvm(host, "java") == resolve_process(host, "java", "pipes") == 40
    assert resolve_jvm(host, "999", may_have_ended=True) == 999
    with pytest.raises(
        UsageError, match="'x' is not a PID, a file or a part of a running JVM's main class or jar; these"
    ):
        resolve_jvm(host, "x", or_file=True)
    tree.process(50, ("java", "org.kafka.Connect"), maps=LIBJVM)
    for find in (lambda: resolve_jvm(host, "kafka"), lambda: resolve_process(host, "kafka", "limits")):
        with pytest.raises(UsageError, match="2 JVMs match 'kafka'; give the PID of one"):
            find()
