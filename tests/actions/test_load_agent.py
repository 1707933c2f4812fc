"""The agent of `opskit jmx --agent` in real JVMs: values as a JMX client in the JVM reads them, what stays, what refuses it."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path
from typing import NamedTuple

import agentjar
import jvms
import psutil
import pytest
from atonce import ForEach

from opskit.actions import load_agent
from opskit.actions.load_agent import Agent, AgentRead
from opskit.errors import AttachError, NoSuchProcess, NotSupported, OpskitError, UsageError
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
    return listening, threads_without_ours(workload), process.num_fds()


def threads_without_ours(workload):
    """The JVM's threads once the agent's has ended, which it does a moment after its last value."""
    deadline = time.monotonic() + 30
    while "opskit-jmx" in (found := agentjar.told(workload, "threads", "THREADS")[-1]):
        assert time.monotonic() < deadline, found
    return found


class Told(NamedTuple):
    """Everything that one JVM shows."""

    agent: Agent
    first: AgentRead
    second: AgentRead
    printed: dict  # by a JMX client in the JVM
    states: list  # before, after the first read, after the second
    warnings: int
    others: dict  # of what one version is enough for


def in_a_jvm(version):
    """Read twice, then what one version is enough for. Where root runs this, one JVM is another user's."""
    popen = {"user": 65534, "group": 65534, "extra_groups": []} if version == 21 and os.geteuid() == 0 else {}
    with beans(version, **popen) as workload:
        AttachClient(ProcFS(), workload.pid).jcmd("VM.version")  # starts the listener
        states = [state(workload)]
        agent, first = read(workload, *ALL, timeout_s=60)
        states.append(state(workload))
        second = agent.read()
        states.append(state(workload))
        printed = {key: value for each in ALL[:3] for key, value in agentjar.client_values(workload, each).items()}
        warnings = sum(line.startswith(WARNING) for line in workload.output().splitlines())
        others = {"patterns": read(workload, *PATTERNS, timeout_s=3)[1], **hanging(workload)} if version == 17 else {}
    others["ended"] = outcome(agent.read)
    return Told(agent, first, second, printed, states, warnings, others)


def hanging(workload):
    """What a getter that hangs shows, in order; ends when its thread has."""
    agent, found = read(workload, "app.slow:*", timeout_s=2)
    shown = {"found": found, "again": agent.read(), "threads": agentjar.told(workload, "threads", "THREADS")[-1]}
    shown["question"] = Agent(Host(ProcFS()), workload.pid, ["a:*"]).question
    agentjar.told(workload, "release", "RELEASED")
    threads_without_ours(workload)
    return shown


PATTERNS = [
    "app.many:area=east,name=n7,type=Kinds", "app.many:*,name=n1?", "app.kinds:* Gauge.used", "*:type=Slow Be*",
    'app.hostile:type=Kinds,name="a \\"quoted\\", name" Count', "nothing at all", "app.plain:type=Plain Ma?",
    "app.kinds:type=(.*+[ Count", "app.kinds:type=Kinds,name=all Coun",
]  # fmt: skip
jvm = ForEach(in_a_jvm, [11, 17, 21, 25])


def told(version):
    """What the JVM of this version showed; each of several tests asks for it."""
    if version not in TOLD:
        TOLD[version] = jvm.result(version)
    return TOLD[version]


TOLD = {}


@pytest.mark.xdist_group("jmx_agent")
@pytest.mark.parametrize("version", [11, 17, 21, 25])
def test_values_are_those_of_a_jmx_client_and_nothing_else_stays(version):
    """Every kind of attribute, throwing ones and hostile names; no port, no thread, one fd; the same at a second load."""
    agent, first, second, printed, (before, after, again), warnings, others = told(version)
    ours = agentjar.values_of(each for each in first.beans if not each.name.startswith("app.plain"))
    assert ours.keys() == printed.keys()
    assert not [key for key, value in ours.items() if not agentjar.is_same(value, printed[key])]
    assert len(printed) > 1000
    assert agentjar.values_of(second.beans).keys() == agentjar.values_of(first.beans).keys()
    assert first.missing == []
    assert before[:2] == after[:2] == again[:2]
    assert before[2] + 1 == after[2] == again[2]
    assert isinstance(others["ended"], NoSuchProcess)
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


@pytest.mark.xdist_group("jmx_agent")
def test_a_getter_that_hangs_costs_itself_only():
    """It is named, the others are read, it is not asked again, and its thread ends when it returns."""
    shown = told(17).others
    found, again = shown["found"], shown["again"]
    values = {each.name: each.value for each in found.beans[0].attributes}
    assert values == {"After": 2, "Before": 1, "Stuck": None}
    assert found.beans[0].attributes[2].error == "no value within 0.5 s"
    for each in (found, again):
        assert sum("app.slow:type=Slow Stuck" in sentence for sentence in each.left_behind) == 1
    assert again.beans[0].attributes[2].error == "no value within 0.5 s; not read again"
    assert "opskit-jmx" in shown["threads"]
    assert "1 of its threads waits" in shown["question"]


@pytest.mark.xdist_group("jmx_agent")
def test_patterns_choose_what_is_read():
    """Patterns of both orders, of quoted names, of single attributes and of parts of them; a getter that is not meant is not called."""
    found = told(17).others["patterns"]
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


REFUSALS = {
    "-XX:-EnableDynamicAgentLoading": (NotSupported, "it runs with -XX:-EnableDynamicAgentLoading"),
    "-XX:+DisableAttachMechanism": (AttachError, "it was started with -XX:+DisableAttachMechanism"),
    "--limit-modules=java.base,java.instrument": (NotSupported, "lacks the module java.management"),
    "--limit-modules=java.base,java.management": None,
}
# What the JVM itself answers, where the command line does not show it.
ANSWERS = {
    "-XX:-EnableDynamicAgentLoading": "it runs with -XX:-EnableDynamicAgentLoading",
    "--limit-modules=java.base,java.instrument": "its class failed to start",
}


def refused(option):
    """What is said before anything is sent, whether nothing was, and what comes of loading it nevertheless."""
    agentjar.require_jar()
    with jvms.running("sleep=1", options=("-Xmx64m", *agentjar.FAST, option)) as workload:
        ask = Host(ProcFS()), workload.pid, ["java.lang:type=Memory Verbose"]
        said = outcome(lambda: Agent(*ask))
        sent = "Attach Listener" in workload.output() or Path(f"/tmp/.java_pid{workload.pid}").exists()
        return said, sent, outcome(lambda: _Unchecked(*ask).read()) if "Attach" not in option else None


def outcome(call):
    """What it gives, or raises."""
    try:
        return call()
    except OpskitError as error:
        return error


class _Unchecked(Agent):
    def _check(self):
        pass


refusing = ForEach(refused, list(REFUSALS))


@pytest.mark.xdist_group("jmx_agent_refused")
@pytest.mark.parametrize("option", list(REFUSALS))
def test_what_the_jvm_lacks_is_said(option):
    """Before anything is sent, in one line; else by the JVM's own answer. A limit of modules does not hide java.instrument."""
    said, sent, answered = refusing.result(option)
    assert not sent
    if REFUSALS[option] is None:
        assert isinstance(said, Agent)
        assert answered.beans[0].attributes[0].value is False
        return
    kind, text = REFUSALS[option]
    assert isinstance(said, kind)
    assert text in str(said)
    if option in ANSWERS:
        assert ANSWERS[option] in str(answered)
        assert isinstance(answered, NotSupported)


def test_a_pattern_is_needed():
    """Nothing is read unasked."""
    with pytest.raises(UsageError, match="no pattern"):
        Agent(Host(ProcFS()), os.getpid(), [])


def test_without_a_jar_the_way_to_one_is_said(monkeypatch):
    """A wheel that was built without a javac."""
    monkeypatch.setattr(load_agent, "_JAR", "missing.jar")
    with pytest.raises(NotSupported, match="built without a javac"):
        Agent(Host(ProcFS()), os.getpid(), ["a:*"])
