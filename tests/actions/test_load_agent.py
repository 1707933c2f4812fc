"""The agent of `opskit jmx --agent` in real JVMs: values as a JMX client in the JVM reads them, what stays, what refuses it."""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path

import agentjar
import jvms
import psutil
import pytest
from atonce import AtOnce, ForEach

from opskit.actions import load_agent
from opskit.actions.load_agent import Agent
from opskit.errors import AttachError, NotSupported, UsageError
from opskit.host import Host
from opskit.jvm.attach.client import AttachClient
from opskit.proc.fs import ProcFS

ALL = ("app.kinds:*", "app.hostile:*", "app.many:area=east,*", "app.plain:type=Plain")
WARNING = "WARNING: A Java agent has been loaded dynamically"


@contextlib.contextmanager
def beans(version=17, *options, **popen):
    agentjar.require_jar()
    workload = agentjar.start(version, *options, **popen)
    try:
        yield workload
    finally:
        workload.stop()


def read(workload, *patterns, timeout_s=10.0):
    agent = Agent(Host(ProcFS()), workload.pid, patterns, timeout_s=timeout_s)
    return agent, agent.read()


def state(workload):
    process = psutil.Process(workload.pid)
    listening = sorted(each.laddr for each in process.net_connections() if each.status == psutil.CONN_LISTEN)
    return listening, agentjar.told(workload, "threads", "THREADS")[-1], process.num_fds()


def in_a_jvm(version):
    """Everything that one JVM of this version shows."""
    with beans(version) as workload:
        AttachClient(ProcFS(), workload.pid).jcmd("VM.version")  # starts the listener
        before = state(workload)
        agent, first = read(workload, *ALL, timeout_s=60)
        after = state(workload)
        second = agent.read()
        again = state(workload)
        printed = {key: value for each in ALL[:3] for key, value in agentjar.client_values(workload, each).items()}
        warnings = sum(line.startswith(WARNING) for line in workload.output().splitlines())
        return agent, first, second, printed, (before, after, again), warnings


jvm = ForEach(in_a_jvm, [11, 17, 21, 25])


@pytest.mark.xdist_group("jmx_agent")
@pytest.mark.parametrize("version", [11, 17, 21, 25])
def test_values_are_those_of_a_jmx_client_and_nothing_else_stays(version):
    """Every kind of attribute, throwing ones and hostile names; no port, no thread, one fd; the same at a second load."""
    agent, first, second, printed, (before, after, again), warnings = jvm.result(version)
    ours = agentjar.values_of(each for each in first.beans if not each.name.startswith("app.plain"))
    assert ours.keys() == printed.keys()
    assert not [key for key, value in ours.items() if not agentjar.is_same(value, printed[key])]
    assert len(printed) > 1000
    assert agentjar.values_of(second.beans).keys() == agentjar.values_of(first.beans).keys()
    assert first.missing == []
    assert before[:2] == after[:2] == again[:2]
    assert before[2] + 1 == after[2] == again[2]
    assert warnings == (2 if version >= 21 else 0)
    assert ("WARNING" in agent.question) == (version >= 21)
    assert "stay in the JVM until it restarts" in agent.question
    check_plain(next(each for each in first.beans if each.name.startswith("app.plain")))


def check_plain(bean):
    found = {each.name: each.value if each.error is None else each.error for each in bean.attributes}
    bounds = "larger than 2 MiB, or nested deeper than 32 levels"
    assert found == {
        "Atomic": 12, "BadError": "no text", "BadToString": "no text", "Colour": "crimson", "Custom": "1; not JSON",
        "Cycle": bounds, "Deep": bounds, "Fatal": "java.lang.StackOverflowError: deep", "Huge": bounds, "Long": bounds,
        "Map": {"a": 1, "b": [True, "x"]}, "Type": "class AppBeans",
        "Table": {"1": {"id": 1, "name": "first"}, "2": {"id": 2, "name": "second"}},
        "TwoKeys": [{"id": 1, "name": "first"}, {"id": 2, "name": "second"}],
        "Unchecked": "java.lang.IllegalArgumentException: bad \x1b[0m state",
    }  # fmt: skip


at_once = AtOnce()
outcomes = at_once.fixture()


@at_once.test
def test_a_getter_that_hangs_costs_itself_only():
    """It is named, the others are read, it is not asked again, and its thread ends when it returns."""
    with beans() as workload:
        agent, found = read(workload, "app.slow:*", timeout_s=2)
        values = {each.name: each.value for each in found.beans[0].attributes}
        assert values == {"After": 2, "Before": 1, "Stuck": None}
        assert found.beans[0].attributes[2].error == "no value within 0.5 s"
        assert any("app.slow:type=Slow Stuck" in each for each in found.left_behind)
        again = agent.read()
        assert again.beans[0].attributes[2].error == "no value within 0.5 s; not read again"
        assert "opskit-jmx" in agentjar.told(workload, "threads", "THREADS")[-1]
        assert "1 of its threads waits" in Agent(Host(ProcFS()), workload.pid, ["a:*"]).question
        agentjar.told(workload, "release", "RELEASED")
        while "opskit-jmx" in agentjar.told(workload, "threads", "THREADS")[-1]:
            continue


@at_once.test
def test_patterns_choose_what_is_read():
    """Patterns of both orders, of quoted names, of single attributes and of parts of them; a getter that is not meant is not called."""
    with beans() as workload:
        patterns = [
            "app.many:area=east,name=n7,type=Kinds", "app.many:*,name=n1?", "app.kinds:* Gauge.used", "*:type=Slow Be*",
            'app.hostile:type=Kinds,name="a \\"quoted\\", name" Count', "nothing at all", "app.plain:type=Plain Ma?",
            "app.kinds:type=(.*+[ Count", "app.kinds:type=Kinds,name=all Coun",
        ]  # fmt: skip
        _, found = read(workload, *patterns, timeout_s=3)
        names = [each.name for each in found.beans]
        assert names == sorted([
            'app.hostile:type=Kinds,name="a \\"quoted\\", name"', "app.kinds:type=Kinds,name=all", "app.plain:type=Plain",
            "app.slow:type=Slow", *(f"app.many:type=Kinds,name=n{number},area=east" for number in (7, *range(10, 20))),
        ])  # fmt: skip
        chosen = {each.name: [attribute.name for attribute in each.attributes] for each in found.beans}
        assert chosen["app.kinds:type=Kinds,name=all"] == ["Gauge"]
        assert chosen["app.slow:type=Slow"] == ["Before"]
        assert chosen["app.plain:type=Plain"] == ["Map"]
        assert len(chosen["app.many:type=Kinds,name=n7,area=east"]) == 34
        assert found.missing == []


@at_once.test
def test_another_users_jvm_as_root():
    """Root reads a JVM of another user, which leaves nothing of ours in /tmp."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    with beans(21, user=65534, group=65534, extra_groups=[]) as workload:
        _, found = read(workload, "app.kinds:* Count")
        assert [each.value for bean in found.beans for each in bean.attributes] == [-42]


@at_once.test
def test_what_the_jvm_lacks_is_said_before_anything_is_sent():
    """Dynamic loading switched off, attach disabled, modules missing: one line each, and no listener is started."""
    agentjar.require_jar()
    cases = {
        "-XX:-EnableDynamicAgentLoading": (NotSupported, "it runs with -XX:-EnableDynamicAgentLoading"),
        "-XX:+DisableAttachMechanism": (AttachError, "it was started with -XX:+DisableAttachMechanism"),
        "--limit-modules=java.base,java.instrument": (NotSupported, "lacks the module java.management"),
    }
    for option, (kind, said) in cases.items():
        with jvms.running("sleep=1", options=("-Xmx64m", option)) as workload:
            with pytest.raises(kind, match=re.escape(said)):
                Agent(Host(ProcFS()), workload.pid, ["a:*"])
            assert "Attach Listener" not in workload.output()
            assert not Path(f"/tmp/.java_pid{workload.pid}").exists()


@at_once.test
def test_what_the_jvm_answers_is_said():
    """Where the command line does not show it, the JVM's own refusal becomes one line. A limit of modules does not hide java.instrument."""
    agentjar.require_jar()
    for option, said in {
        "-XX:-EnableDynamicAgentLoading": "it runs with -XX:-EnableDynamicAgentLoading",
        "--limit-modules=java.base,java.management": None,
        "--limit-modules=java.base,java.instrument": "its class failed to start",
    }.items():
        with jvms.running("sleep=1", options=("-Xmx64m",), env={"JDK_JAVA_OPTIONS": option}) as workload:
            agent = _Unchecked(Host(ProcFS()), workload.pid, ["java.lang:type=Memory Verbose"])
            if said is None:
                assert agent.read().beans[0].attributes[0].value is False
                continue
            with pytest.raises(NotSupported, match=said):
                agent.read()


class _Unchecked(Agent):
    def _check(self):
        pass


def test_a_pattern_is_needed():
    """Nothing is read unasked."""
    with pytest.raises(UsageError, match="no pattern"):
        Agent(Host(ProcFS()), os.getpid(), [])


def test_without_a_jar_the_way_to_one_is_said(monkeypatch):
    """A wheel that was built without a javac."""
    monkeypatch.setattr(load_agent, "_JAR", "missing.jar")
    with pytest.raises(NotSupported, match="built without a javac"):
        Agent(Host(ProcFS()), os.getpid(), ["a:*"])


def test_the_command_says_what_stays_before_it_loads(inprocess, monkeypatch):
    """Without --yes nothing is loaded; with it the values, and what is left. A newer opskit notices the class of an older one."""
    with beans() as workload:
        words = ("jmx", str(workload.pid), "--agent", "app.kinds:* Count", "app.slow:* Before", "-f", "text")
        refused = inprocess(*words)
        assert refused.code == 2
        assert "45 MiB" in refused.err
        assert "--agent --yes" in refused.err
        assert not any("opskit-jmx.jar" in os.readlink(each) for each in Path(f"/proc/{workload.pid}/fd").iterdir())
        done = inprocess(*words, "--yes")
        assert done.code == 0
        assert "app.kinds:type=Kinds,name=all Count -42" in done.out
        assert "app.slow:type=Slow Before 1" in done.out
        assert "45 MiB" in done.err
        assert "stay in the JVM until it restarts" in done.err
        monkeypatch.setattr(load_agent.protocol, "PROTOCOL", 2)
        newer = inprocess(*words, "--yes")
        assert newer.code == 2
        assert "another opskit (protocol 1, this one speaks 2)" in newer.err
    assert not list(Path("/tmp").glob(f".opskit-{os.getpid()}-*"))  # of this test and those before it
