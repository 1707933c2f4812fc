"""Which client could attach to a JVM now: jstack of JDK 8 and of later ones, as root and as the JVM's user, and opskit. Pure.

What the JDK's client refuses (src/jdk.attach/linux/native/libattach/VirtualMachineImpl.c, checkPermissions):

    uid != ours or gid != ours or mode & 066    JDK 8, for everybody
    the same, but root may differ in uid, gid   JDK 11 and later

The JVM accepts only clients with its own euid and egid; later ones also root.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.analysis.hsperf_check.rules import (
    CLIENT_MODE,
    NOT_SECURE,
    Subject,
    lost_listener,
    named,
    takes_trigger_of,
)
from opskit.jvm.attach.target import may_write, remakes
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opskit.collect.hsperf_check import Facts
    from opskit.jvm.attach.files import Surroundings

_HIDDEN = "its /tmp cannot be looked into from here"
_NOT_IN_A_COPY = "a copy does not contain it: sockets, owners and modes of /tmp are not copied"


class ClientVerdict(NamedTuple):
    """Whether a client could attach, and why not. None: unknown."""

    client: str
    works: bool | None
    why: str | None = None

    @property
    def result(self) -> str:
        """Works, refused or unknown."""
        return "unknown" if self.works is None else "works" if self.works else "refused"


class _Client(NamedTuple):
    """One of the JDK's. `old`: JDK 8's, which makes no exception for root."""

    name: str
    uid: int
    gid: int
    old: bool = False


def clients(facts: Facts, around: Surroundings) -> Iterator[ClientVerdict]:
    """Judge each client."""
    found = [_Client("jstack of JDK 8 as root", 0, 0, old=True), _Client("jstack of JDK 11+ as root", 0, 0)]
    if around.euid != 0:
        found.append(_Client(f"jstack as {facts.user_name(around.euid)}", around.euid, around.egid))
    why: str | None
    for client in [*found, None]:
        name = client.name if client else "opskit as root"
        if around.disabled:
            why = "started with -XX:+DisableAttachMechanism"
        elif around.stopped:
            why = f"it {around.stopped.why}" + (": the client hangs" if client else "")
        elif around.shortage:
            why = around.shortage.why
        elif around.tmp is None:
            yield ClientVerdict(name, None, _NOT_IN_A_COPY if facts.is_copy else _HIDDEN)
            continue
        else:
            why = _jdk_refusal(facts, around, client) if client else _opskit_refusal(around)
        yield ClientVerdict(name, why is None, why)


def _jdk_refusal(facts: Facts, around: Surroundings, client: _Client) -> str | None:
    """Why the JDK's client is refused; None where it is not."""
    subject = Subject(facts, around.pid, around, around.socket.entry if around.socket else None)
    if client.old and around.tmp is not None and not around.tmp.shared:
        return "it looks in its own /tmp, not in the JVM's"
    if client.old and around.jvm.ns_pid != around.pid:
        inner = around.jvm.ns_pid
        return f"it looks for .java_pid{around.pid}; the JVM, {inner} in its own pid namespace, makes .java_pid{inner}"
    if around.socket is None:
        refusal = _no_listener(around, old=client.old)
        if refusal is None and client.uid != around.euid and (client.old or around.java_major == 8):
            return f"{NOT_SECURE}: the socket will belong to {subject.user}, and JDK 8 makes no exception for root"
        return refusal
    if lost_listener(around):
        return "its listener has ended: the client hangs"
    return _broken(around) or _insecure(subject, client) or _not_accepted(subject, client)


def _insecure(s: Subject, client: _Client) -> str | None:
    """What is `not secure` about a socket's owner, group and mode for this client."""
    reasons = []
    if client.uid != 0 or client.old:
        if s.file.uid != client.uid:
            whose = f"the JVM runs as {s.user}"
            if s.file.uid == s.jvm.euid:
                whose = f"the client as {named(s.case.user_name(client.uid), client.uid)}"
            reasons.append(f"the owner of {s.path} is {s.owner}, {whose}")
        if s.file.gid != client.gid or (reasons and s.file.gid != s.jvm.egid):
            whose = f"the JVM runs with group {s.jvm_group}"
            if s.file.gid == s.jvm.egid:
                whose = f"the client has {named(s.case.group_name(client.gid), client.gid)}"
            reasons.append(f"the group of {s.path} is {s.group}, {whose}")
    if not reasons and s.entry.mode & CLIENT_MODE:
        reasons.append(f"{s.path} has mode {s.mode}, others may read or write it")
    return f"{NOT_SECURE}: {'; '.join(reasons)}" if reasons else None


def _not_accepted(s: Subject, client: _Client) -> str | None:
    if client.uid != 0 and s.entry.mode & 0o200 == 0:
        return f"Permission denied: {s.path} has mode {s.mode}"
    if s.jvm.java_major == 8 and (client.uid, client.gid) != (s.jvm.euid, s.jvm.egid):
        return f"a JVM of JDK 8 accepts only clients that run as it does: {s.user}"
    return None


def _broken(around: Surroundings) -> str | None:
    """What is wrong with the socket for every client."""
    socket = around.socket
    if socket is None:
        return None
    path = socket.entry.path
    if socket.entry.kind != "socket":
        return f"{path} is a {socket.entry.kind}, not a socket"
    if socket.alive is False:
        return f"Connection refused: no process listens on {path}"
    if socket.peer not in (None, around.pid):
        return f"{path} is not its own: the client would talk to process {socket.peer or 'unseen'} instead"
    return None


def _no_listener(around: Surroundings, *, old: bool) -> str | None:
    """Why the listener could not be started; None where it could."""
    if around.reduced and old:
        return "never try: it sends SIGQUIT, which kills a JVM started with -Xrs"
    if around.reduced:
        return "its socket was deleted, and with -Xrs it makes no other"
    if around.listener and not remakes(around.java_major):
        return "its socket was deleted, and it makes no other one before a restart"
    tmp = around.tmp
    if tmp is not None:
        if tmp.space.read_only:
            return f"{tmp.entry.path} is read-only: no socket can be made"
        if tmp.space.free_inodes == 0:
            return f"{tmp.entry.path} is full: no socket can be made"
        if not may_write(tmp.entry.file, around.euid, (around.egid, *around.groups)):
            return f"the JVM may not make its socket in {tmp.entry.path}"
    for trigger in around.triggers:
        owner = trigger.entry.file.uid
        if trigger.in_cwd and not takes_trigger_of(around, owner):
            return f"{trigger.entry.path} belongs to uid {owner}: no listener is started while it is there"
    return None


def _opskit_refusal(around: Surroundings) -> str | None:
    socket = around.socket
    orphan = socket is not None and socket.alive is False and socket.entry.kind == "socket" and not around.listener
    if lost_listener(around) and not remakes(around.java_major):
        return "its listener has ended, and it starts no other one before a restart"
    if socket is None or orphan or lost_listener(around):  # the JVM's own socket takes the place of an orphan
        return _no_listener(around, old=False)
    return _broken(around)
