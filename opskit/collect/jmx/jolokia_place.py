"""Find a Jolokia that runs in a JVM: by its property or its option, and only where the JVM listens on that port itself."""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

from opskit import shell
from opskit.errors import AttachError, NotPermitted, NotSupported, UsageError
from opskit.jvm.attach.client import AttachClient
from opskit.jvm.attach.target import command_words
from opskit.jvm.attach.wire import decode
from opskit.jvm.discover import find_jvm
from opskit.jvm.jolokia import Url, parse_url, url_in_properties, url_of_option
from opskit.jvm.launch import jvm_options
from opskit.proc.files.net_tcp import parse_net_tcp
from opskit.proc.fs import optional
from opskit.proc.rights import ANY_COMMAND, how_to_be_allowed
from opskit.proc.tcp_sockets import LISTEN, host_text
from opskit.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from opskit.host import Host

_TRIES, _PAUSE_S = 5, 0.2  # the property is empty right after Jolokia was loaded
_ANY = ("0.0.0.0", "::")  # noqa: S104  (not bound to)


class Place(NamedTuple):
    """`namespace_of`: the PID of the JVM whose network namespace is another one than ours."""

    url: Url
    namespace_of: int | None = None


def discover(host: Host, pid: int, *, may_start: bool) -> Place:
    """The Jolokia of a JVM. Raises NotSupported where there is none, and as find_jvm does."""
    host.prove_own(pid)
    jvm = find_jvm(host.fs, pid, host.clock_ticks)
    who = f"{pid} ({jvm.main})"
    option = url_of_option(jvm_options(*command_words(host.fs, pid)))
    why_not = ""
    found: Url | None = None
    try:
        is_near = option is not None or any(
            b"jolokia" in each for each in optional(host.fs.fd_targets, pid, default=[])
        )
        text = _property(host, pid, may_start=may_start, tries=_TRIES if is_near else 1)
        found = parse_url(text, f"the property jolokia.agent of {who}") if text else None
    except (AttachError, NotPermitted, UsageError) as error:
        why_not = str(error)
        if isinstance(error, AttachError) and error.reason == "no-listener":
            why_not = f"{why_not}; with --ask the listener is started, and the property jolokia.agent is read"
    url = found or option
    if url is None:
        advice = "start the JVM with -javaagent:jolokia-agent-jvm-javaagent.jar, or name one: --jolokia http://HOST:PORT/jolokia"
        raise NotSupported(f"no Jolokia was found in {who}: {why_not or f'it has no property jolokia.agent; {advice}'}")
    return _proven(host, pid, who, url)


def _property(host: Host, pid: int, *, may_start: bool, tries: int) -> str | None:
    client = AttachClient(host.fs, pid, may_start=may_start)
    for number in range(tries):
        if number:
            host.sleep(_PAUSE_S)
        found = url_in_properties(decode(client.execute("properties")))
        if found:
            return found
    return None


def _proven(host: Host, pid: int, who: str, url: Url) -> Place:
    """The place where the JVM itself listens on this port: what it says of itself leads us to no other server. Raises NotSupported."""
    fs = host.fs
    held = set(optional(fs.fd_targets, pid, default=[]))
    ours, theirs = optional(fs.link, "self", "ns", "net"), optional(fs.link, pid, "ns", "net")
    if not held or theirs is None:
        raise NotPermitted(
            f"the Jolokia of {who} was not asked: permission denied for /proc/{pid}/fd, which proves that {url.shown} is its own; "
            f"{how_to_be_allowed(fs, 'CAP_SYS_PTRACE', *ANY_COMMAND, pid=pid)}, or name the URL: --jolokia URL"
        )
    tables = [
        *fs.maybe(parse_net_tcp, pid, "net", "tcp", default=[]),
        *fs.maybe(parse_net_tcp, pid, "net", "tcp6", default=[]),
    ]
    own = [
        host_text(each.local).strip("[]") for each in tables
        if each.state == LISTEN and each.local_port == url.port and b"socket:[%d]" % each.inode in held
    ]  # fmt: skip
    if not own:
        given = shell.command("opskit", "jmx", pid, "--jolokia", "http://HOST:PORT/jolokia")
        raise NotSupported(
            f"the Jolokia of {who} was not asked: {who} does not listen on port {url.port} of {url.shown}, as it says; "
            f"if another process does it for it, name it: {given}"
        )
    address = own[0]
    if address in _ANY:
        address = "127.0.0.1"
    # A certificate is for the name that Jolokia gives itself.
    url = url._replace(address=address) if url.scheme == "https" else url._replace(host=address)
    return Place(url, pid if theirs != ours else None)


def entered(host: Host, place: Place) -> AbstractContextManager[None]:
    """The network namespace of the JVM, for the time of the requests. Raises NotPermitted."""
    return nullcontext() if place.namespace_of is None else _inside(host, place.namespace_of)


@contextmanager
def _inside(host: Host, pid: int) -> Iterator[None]:
    from opskit.proc.kernel.network_namespace import NetworkNamespace

    advice = how_to_be_allowed(host.fs, "CAP_SYS_ADMIN CAP_SYS_PTRACE", *ANY_COMMAND, pid=pid)
    refused = f"cannot reach the Jolokia of {pid}: permission denied for its network namespace (a container?); {advice}"
    try:
        space = NetworkNamespace(host.fs.path(pid, "ns", "net"))
    except PermissionError:
        raise NotPermitted(refused) from None
    try:
        with space.inside():
            yield
    except PermissionError:
        raise NotPermitted(refused) from None
    finally:
        space.close()
