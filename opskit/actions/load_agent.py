"""Read application MBeans by our own agent: a jar that the JVM loads through its attach listener, and that stays loaded.

    load instrument false /tmp/.opskit-…/opskit-jmx.jar=1 /tmp/.opskit-…      "return code: 0"

The jar (opskit/jvm/agent/OpskitJmx.java, built by hatch_build.py) has one class, opens no port, and keeps no thread. It is loaded again
for each read: the JVM keeps the class of the first jar. Sources: src/java.instrument/share/native/libinstrument/InvocationAdapter.c,
src/hotspot/share/prims/jvmtiAgent.cpp.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from opskit import shell
from opskit.actions.private_directory import PrivateDirectory
from opskit.collect.jmx.collect import paths_of
from opskit.collect.jmx.facts import Attribute, Bean
from opskit.collect.jmx.secrets import without_secrets
from opskit.errors import AttachError, NotSupported, UsageError
from opskit.interrupts import Guard, Interruptible
from opskit.jvm.agent import protocol
from opskit.jvm.attach.client import AttachClient
from opskit.jvm.attach.target import check_same, command_words, is_disabled, seems_to_listen
from opskit.jvm.attach.wire import decode
from opskit.jvm.launch import jdk_release, jvm_options, last_flag
from opskit.jvm.object_names import parse_pattern, type_first, wants_attribute
from opskit.proc.fs import optional
from opskit.proc.thread_names import thread_name
from opskit.quantities import agreeing, plural, signed
from opskit.records import NamedTuple
from opskit.redact import redact_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opskit.collect.jmx.facts import Value
    from opskit.host import Host

_JAR, _ASK, _OUT = "opskit-jmx.jar", "ask", "out"
LARGEST_ANSWER_BYTES = 64 << 20
_ATTRIBUTE_SHARE = 4  # of the deadline that one attribute may take
_GRACE_S = 10.0  # for the listener's start, and for loading itself
_WARNS_FROM = 21  # JEP 451
_CODE = re.compile(rb"(?:return code: |^)(-?[0-9]{1,10})\s*$", re.MULTILINE)
_DYNAMIC = "EnableDynamicAgentLoading"
# What libinstrument returns from Agent_OnAttach.
_CODES = {
    100: "it could not read the jar: a security module may hide the file from it",
    101: "its system class loader takes no agent (no method appendToClassPathForInstrumentation)",
    102: "its class failed to start, as in a Java runtime without java.management; the JVM printed why to its standard error",
    -1: "the instrument library failed to initialize",
    -4: "out of memory",
}
_STAYS = "about 45 MiB of resident memory, 1,500 JDK classes and an fd of its jar stay in the JVM until it restarts; less where JMX is in use"
_THREAD, _MOST_WAITING = "opskit-jmx", 8
# Modules that need no java.management themselves.
_WITHOUT_MANAGEMENT = frozenset({
    "java.base", "java.compiler", "java.datatransfer", "java.instrument", "java.logging", "java.net.http", "java.prefs", "java.sql",
    "java.transaction.xa", "java.xml", "jdk.charsets", "jdk.crypto.ec", "jdk.httpserver", "jdk.net", "jdk.unsupported", "jdk.zipfs",
})  # fmt: skip
_MODULES = ("java.instrument", "java.management")


class AgentRead(NamedTuple):
    """What the agent read. `missing`: sentences (a getter that hangs, a limit); `left_behind`: sentences on what stays in the JVM."""

    beans: Sequence[Bean]
    missing: Sequence[str] = ()
    left_behind: Sequence[str] = ()


class Agent:
    """The agent for one JVM: made and told of first, loaded once it is agreed to.

        agent = Agent(host, pid, patterns)      # raises what would refuse it; changes nothing
        if agreed(yes, agent.question): ...     # the question says what stays
            found = agent.read()                # loads it; each further read() loads it again

    Raises UsageError (no pattern), NotSupported (no jar built, JDK modules missing, dynamic loading switched off), NoSuchProcess,
    NotAJvm, NotPermitted and AttachError.
    """

    def __init__(self, host: Host, pid: int, patterns: Sequence[str], *, timeout_s: float = 10.0) -> None:
        self.host, self.timeout_s = host, timeout_s
        self.patterns = [parse_pattern(each) for each in patterns]
        if not patterns:
            advice = "name MBeans, for example 'com.example:*'; '*:*' reads all of them"
            raise UsageError(
                f"--agent: no pattern: getters of an application may be slow or have side effects; {advice}"
            )
        self.jar = read_jar()
        host.prove_own(pid)
        self.client = AttachClient(host.fs, pid, timeout_s + _GRACE_S)
        self.target = self.client.target
        self._hanging: dict[tuple[str, str], str] = {}
        self._words, self._environment = command_words(host.fs, pid)
        self._listened = seems_to_listen(host.fs, self.target.jvm)
        names = (thread_name(host.fs, pid, tid) for tid in optional(host.fs.tids, pid, default=[]))
        self._waiting = sum(name == _THREAD for name in names)
        self._check()

    def _check(self) -> None:
        """Raise what is known to refuse the agent before anything is sent."""
        who, fs, jvm = self.target.who, self.host.fs, self.target.jvm
        if is_disabled(fs, jvm):
            raise AttachError("disabled", who)
        if self._waiting >= _MOST_WAITING:
            raise NotSupported(
                f"opskit's agent is not loaded into {who} again: {self._waiting} of its threads wait for getters that hang; "
                f"{shell.command('opskit', 'jpmp', self.target.pid)} shows where"
            )
        if self._flag == f"-XX:-{_DYNAMIC}":
            raise NotSupported(_dynamic_off(who))
        modules = jdk_release(fs, jvm).get("MODULES", "").split()
        for module in _MODULES:
            if modules and module not in modules:
                raise NotSupported(_without_module(who, module))
        limited = _limited_modules(jvm_options(self._words, self._environment), self._words)
        if limited and limited <= _WITHOUT_MANAGEMENT:  # java.instrument is found beyond the limit
            raise NotSupported(_without_module(who, "java.management"))

    @property
    def _flag(self) -> str | None:
        return last_flag(self._words, self._environment, _DYNAMIC)

    @property
    def _warns(self) -> bool:
        major = self.target.java_major
        return major is not None and major >= _WARNS_FROM and self._flag != f"-XX:+{_DYNAMIC}"

    @property
    def stays(self) -> Sequence[str]:
        """Sentences: what loading it leaves in the JVM until its restart."""
        sentences = [_STAYS]
        if self._warns:
            sentences.append(
                "the JVM prints four WARNING lines about a dynamically loaded agent to its standard error, at each read"
            )
        if self._waiting:
            waits = agreeing(self._waiting, "waits", "wait")
            sentences.append(f"{self._waiting} of its threads {waits} for a getter that hangs, since an earlier read")
        if not self._listened:
            sentences.append("its attach listener is started, by SIGQUIT, and stays")
        return sentences

    @property
    def question(self) -> str:
        """The question for `agreed`."""
        return f"Load opskit's agent ({len(self.jar):,} bytes) into {self.target.who}? {_sentences(self.stays)}"

    def read(self) -> AgentRead:
        """Load it, and read the beans of the patterns. The listener is started where it does not run. Raises as the class says."""
        check_same(self.host.fs, self.target)  # a watch may outlive the JVM
        with Guard():
            place = PrivateDirectory(self.host, self.target, executable=False)
            try:
                with Interruptible():
                    answer = self._load(place)
            finally:
                place.remove()
        return self._judged(answer)

    def _load(self, place: PrivateDirectory) -> protocol.Answer:
        total_ms = round(self.timeout_s * 1000)
        wanted = [each.text for each in self.patterns]
        limits = (total_ms // _ATTRIBUTE_SHARE, total_ms, LARGEST_ANSWER_BYTES)
        place.put(_ASK, protocol.request(wanted, *limits, self._hanging))  # each getter that hangs keeps a thread
        place.receive(_OUT)
        jar = place.put(_JAR, self.jar)
        try:
            reply = self.client.execute("load", "instrument", "false", f"{jar}={protocol.PROTOCOL} {place.path}")
        except AttachError as error:
            if error.reason != "command-failed":
                raise
            raise NotSupported(self._why(str(error.facts.get("said", "")), None)) from None
        found = _CODE.search(reply)
        code = signed(found[1]) if found else None if reply.strip() else 0
        if code != 0:
            raise NotSupported(self._why(decode(reply), code))
        return protocol.parse_answer(place.read(_OUT, LARGEST_ANSWER_BYTES + (1 << 20)))

    def _why(self, said: str, code: int | None) -> str:
        who = self.target.who
        if _DYNAMIC in said or "Dynamic agent loading is not enabled" in said:
            return _dynamic_off(who)
        for module in _MODULES:
            if f"Module {module} not found" in said:
                return _without_module(who, module)
        why = _CODES.get(code or 0) or (" ".join(said.split())[:300] or "no message")
        return f"cannot load opskit's agent into {who}: {why}"

    def _judged(self, answer: protocol.Answer) -> AgentRead:
        who = self.target.who
        if answer.protocol is None:
            raise NotSupported(f"opskit's agent in {who} wrote nothing: is the disk of its /tmp full?")
        if answer.protocol != protocol.PROTOCOL:
            raise NotSupported(
                f"{who} has the agent of another opskit (protocol {answer.protocol}, this one speaks {protocol.PROTOCOL}), "
                "which stays until the JVM restarts: use that opskit, or restart the JVM"
            )
        missing = []
        whole: dict[str, bool] = {}  # MBeans of which every attribute is meant
        hanging = [each for each in answer.records if each.hangs]
        beans: dict[str, dict[str, Attribute]] = {}
        for (bean, name), why in self._hanging.items():
            beans.setdefault(type_first(bean), {})[name] = Attribute(name, None, "agent", f"{why}; not read again")
        for record in answer.records:
            if record.name is None:
                missing.append(f"{record.bean} could not be read: {record.error}")
                continue
            value: Value = record.value  # type: ignore[assignment]  # JSON
            if record.bean not in whole:
                whole[record.bean] = any(each.matches(record.bean) for each in self.patterns)
            if whole[record.bean] or wants_attribute(self.patterns, record.bean, record.name, paths_of(value)):
                limit_s = self.timeout_s / _ATTRIBUTE_SHARE
                error = f"no value within {limit_s:g} s" if record.hangs else record.error
                if record.hangs:
                    self._hanging[record.bean, record.name] = f"no value within {limit_s:g} s"
                attribute = Attribute(
                    record.name, without_secrets(record.name, value), "agent", error and redact_text(error)
                )
                beans.setdefault(type_first(record.bean), {}).setdefault(record.name, attribute)
        missing += self._cut(answer)
        found = [
            Bean(name, tuple(attributes[each] for each in sorted(attributes)))
            for name, attributes in sorted(beans.items())
        ]
        return AgentRead(found, missing, self._left_behind(hanging))

    def _cut(self, answer: protocol.Answer) -> list[str]:
        if isinstance(answer.end, int):
            if not answer.end:
                return []
            left = f"{plural(answer.end, 'MBean or attribute', 'MBeans or attributes')} not read"
            return [f"{left}: {self.timeout_s:g} s had passed, or three getters did not return; name fewer MBeans"]
        if answer.end == protocol.SIZE:
            return [
                f"not everything was read: the agent writes at most {LARGEST_ANSWER_BYTES >> 20} MiB; name fewer MBeans"
            ]
        if answer.end is None:
            return ["not everything was read: what the agent wrote has no end (is the disk of the JVM's /tmp full?)"]
        return [f"the agent failed: {protocol.why(answer.end)}"]

    def _left_behind(self, hanging: Sequence[protocol.Record]) -> list[str]:
        left = [
            "opskit's agent, the JDK classes that it uses and an fd of its removed jar stay in the JVM until it restarts"
        ]
        getters = [*self._hanging, *((each.bean, each.name or "") for each in hanging)]  # also of earlier reads
        for what in dict.fromkeys(" ".join(filter(None, each)) for each in getters):
            left.append(f'a thread "{_THREAD}" waits in the JVM until the getter of {what} returns')
        if not self._listened:
            left.append("the attach listener of the JVM, which this run started, stays too")
        return left


def read_jar() -> bytes:
    """The agent, as it was built. Raises NotSupported."""
    import pkgutil

    try:
        found = pkgutil.get_data("opskit.jvm.agent", _JAR)
    except OSError:
        found = None
    if not found:
        build = shell.command("python3", "hatch_build.py")
        raise NotSupported(
            "--agent: this opskit was built without a javac, and has no agent; install a JDK and build opskit again "
            f"(in a checkout: {build}), or read the MBeans by --jolokia"
        )
    return found


def _limited_modules(options: Sequence[str], words: Sequence[str]) -> frozenset[str]:
    """The modules of --limit-modules; empty where it was not given."""
    given = [word.partition("=")[2] for word in options if word.startswith("--limit-modules=")]
    given += [value for word, value in zip(words, words[1:]) if word == "--limit-modules"]
    return frozenset(name for names in given for name in names.split(","))


def _dynamic_off(who: str) -> str:
    return f"cannot load opskit's agent into {who}: it runs with -XX:-{_DYNAMIC}; read its MBeans by a Jolokia that starts with it (--jolokia)"


def _without_module(who: str, module: str) -> str:
    what = "no agent can be loaded" if module == "java.instrument" else "it has no MBeans"
    return f"cannot load opskit's agent into {who}: its Java runtime lacks the module {module}, so {what}"


def _sentences(texts: Sequence[str]) -> str:
    return " ".join(f"{text[:1].upper()}{text[1:]}." for text in texts)
