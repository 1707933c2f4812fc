"""What to type, or which line to write, to raise a limit."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from opskit import shell
from opskit.analysis.limits.origin import container_of, docker_id, pam_source
from opskit.analysis.unit_property import set_property

if TYPE_CHECKING:
    from opskit.analysis.limits.limit import Limit
    from opskit.analysis.limits.thread_stack import Stack
    from opskit.collect.limits.facts import LimitSources, ThreadLimitFacts

_PRLIMIT = {"RLIMIT_AS": "as", "RLIMIT_DATA": "data", "RLIMIT_MEMLOCK": "memlock", "RLIMIT_NPROC": "nproc"}
_PAM_ITEM = {"RLIMIT_STACK": "stack", **_PRLIMIT}
_PLAIN_NAME = re.compile(r"[A-Za-z_][\w.@-]*", re.ASCII)
_USUAL_STACK = 8 << 20
_LARGEST_PID_MAX = 4194304
_FIXED = {
    "vm.overcommit_memory": "sysctl -w vm.overcommit_memory=0; or smaller stacks",
    "seccomp": (
        "a container runtime whose profile answers clone3 with ENOSYS (runc 1.0.3, containerd 1.5.10, Docker 20.10.10, "
        "libseccomp 2.5.0 or newer); to prove it: --security-opt seccomp=unconfined"
    ),
}


def fix(limit: Limit, facts: ThreadLimitFacts, stack: Stack) -> str | None:
    """A command to type, or a line to write, that moves the limit."""
    if limit.name in _FIXED:
        return _FIXED[limit.name]
    if limit.name == "RLIMIT_STACK":
        return _stack_fix(stack, facts)
    if limit.name in _PRLIMIT:
        wanted = _raised(limit)
        live = shell.command("prlimit", "--pid", facts.pid, f"--{_PRLIMIT[limit.name]}={wanted}:{wanted}")
        arenas = "; or start it with MALLOC_ARENA_MAX=2" if limit.name == "RLIMIT_AS" and limit.note else ""
        return f"{live} (now); {_lasting(limit, facts, wanted)} (for good){arenas}"
    if limit.name == "pids.max":
        return pids_fix(limit, may_be_unit=bool(facts.sources.unit))
    if limit.cgroup is not None:
        wanted = max(2 * int(limit.value or 0), 64)
        of_unit = None if container_of(limit.cgroup) else set_property(limit.cgroup, f"MemoryMax={wanted}")
        return of_unit or written(limit, wanted)
    if limit.name.startswith(("kernel.", "vm.")):
        wanted = _LARGEST_PID_MAX if limit.name == "kernel.pid_max" else _raised(limit)
        line = shell.command("echo", f"{limit.name} = {wanted}", shell.Syntax(">"), "/etc/sysctl.d/90-threads.conf")
        return f"{shell.command('sysctl', '-w', f'{limit.name}={wanted}')}; for good: {line}"
    return None


def _raised(limit: Limit) -> int:
    doubled = 2 * int(limit.value or 0)
    return max(doubled, 1 << 20) >> 20 << 20 if limit.unit == "bytes" else max(doubled, 64)


def _lasting(limit: Limit, facts: ThreadLimitFacts, wanted: int) -> str:
    if facts.sources.in_service:
        return f"{_systemctl('edit', facts.sources)}: [Service] Limit{limit.name.removeprefix('RLIMIT_')}={wanted}"
    return _pam_fix(limit.name, facts, wanted >> 10 if limit.unit == "bytes" else wanted)


def _pam_fix(name: str, facts: ThreadLimitFacts, number: int) -> str:
    """The line that sets the value, corrected, or a new one for the user, which beats those for groups and all."""
    given = pam_source(name, facts)
    if given is None:
        # `:UID` is that user alone (limits.conf(5)); a bare number would be a user's name.
        user = facts.sources.user
        who = user if _PLAIN_NAME.fullmatch(user) else f":{facts.status.real_uid}"
        return f"/etc/security/limits.conf: `{who} - {_PAM_ITEM[name]} {number}`"
    words = given.setting.text.split()
    return f"{given.setting.path} line {given.setting.line}: `{' '.join(words[:3])} {number}`"


def _systemctl(verb: str, sources: LimitSources) -> str:
    return shell.command("systemctl", verb, *shell.operands(sources.unit))


def _stack_fix(stack: Stack, facts: ThreadLimitFacts) -> str:
    if stack.follows_rlimit and stack.bytes <= _USUAL_STACK:
        return "smaller stacks: ulimit -s 1024 before it is started"
    if stack.kind == "java":
        return "start the JVM with a smaller -Xss"
    if stack.kind == "given":
        return "a smaller stack"
    if facts.sources.in_service:
        edit, restart = (_systemctl(verb, facts.sources) for verb in ("edit", "restart"))
        return f"{edit}: [Service] LimitSTACK=8M; then {restart}"
    line = _pam_fix("RLIMIT_STACK", facts, _USUAL_STACK >> 10)
    return f"ulimit -s 8192, then start it anew; for good: {line} (KB); in Python: threading.stack_size(8 << 20)"


def written(limit: Limit, wanted: int) -> str:
    """The command that writes a cgroup's limit file."""
    return shell.command("echo", wanted, shell.Syntax(">"), limit.source)


def pids_fix(limit: Limit, *, may_be_unit: bool = True) -> str:
    """The command that doubles a cgroup's pids.max."""
    path, wanted = limit.cgroup or "", _raised(limit)
    if container_of(path) and "kubepods" in path:
        return "podPidsLimit in the kubelet's configuration"
    if container := docker_id(path):
        return shell.command("docker", "update", "--pids-limit", wanted, container)
    of_unit = set_property(path, f"TasksMax={wanted}") if may_be_unit else None
    return of_unit or written(limit, wanted)
