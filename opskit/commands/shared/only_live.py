"""What a capture cannot answer: options that measure, ask or change the machine itself, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opskit.errors import NotSupported

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opskit.host import Host

_MEASURES = "measures the machine that it runs on"
_ATTACHES = "attaches to the JVM"
_THERE = "run it on that machine, without --from"
# command -> parameter -> (what it does, what to do instead); "" is the whole command
_ONLY_LIVE: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "capture": {"": ("reads a machine or a tree", "it is one already: read it with opskit --from")},
    "cswitch": {"bench": (_MEASURES, _THERE)},
    "irqs": {"jitter": (_MEASURES, _THERE)},
    "limits": {"probe": ("starts threads", _THERE)},
    "dentry": {"culprit": ("traces the kernel", _THERE), "drop": ("changes the machine", _THERE)},
    "clock": {"server": ("asks a time server now", _THERE)},
    "hsperf-check": {"probe": (_ATTACHES, _THERE), "fix": ("changes files of the machine", _THERE)},
    "jmap-diff": {"live": ("has the JVM run a full GC", _THERE)},
    "jmx": {"agent": ("loads an agent into the JVM", _THERE), "jolokia": ("asks the JVM by HTTP", _THERE)},
    "profile": {"": ("samples threads that run now", f"{_THERE}; opskit jpmp shows the thread dumps that were taken")},
    "jpmp": {
        "on_cpu": ("samples threads that run now", _THERE),
        "offcpu": ("traces the kernel's scheduler", _THERE),
        "asprof": ("loads a library into the JVM", _THERE),
        "virtual": ("has the JVM write a dump", _THERE),
        "synchronizers": ("has the JVM walk its heap", _THERE),
    },
}
_SAME = {"attach-check": "hsperf-check"}


def only_live(command: str) -> Mapping[str, tuple[str, str]]:
    """What of a command a capture cannot answer: parameter -> (what it does, what to do instead)."""
    return _ONLY_LIVE.get(_SAME.get(command, command), {})


def check_answerable(host: Host, command: str, given: Mapping[str, Any], names: Mapping[str, str]) -> None:
    """Raise NotSupported for what needs the machine itself; the host is a capture. `names`: of options."""
    for parameter, (does, instead) in only_live(command).items():
        if not parameter or given.get(parameter) not in (None, False, ()):
            what = names[parameter] if parameter else command
            raise NotSupported(f"{what} {does}, and {host.capture} is a capture; {instead}")
