"""Read application MBeans by our own agent: a jar that the JVM loads through its attach listener, and that stays loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opskit.collect.jmx.facts import Bean
    from opskit.host import Host


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
        self.host, self.pid, self.patterns, self.timeout_s = host, pid, patterns, timeout_s

    @property
    def stays(self) -> Sequence[str]:
        """Sentences: what loading it leaves in the JVM until its restart."""
        raise NotImplementedError

    @property
    def question(self) -> str:
        """The question for `agreed`."""
        raise NotImplementedError

    def read(self) -> AgentRead:
        """Load it, and read the beans of the patterns. The listener is started where it does not run. Raises as the class says."""
        raise NotImplementedError
