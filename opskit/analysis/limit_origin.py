"""Who set a limit, and what to type to move it. Pure: it compares what the files say with what holds."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from opskit import shell
from opskit.proc.config.systemd_units import owner_of_path, unit_of_path
from opskit.proc.files.limits import UNLIMITED
from opskit.quantities import integer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opskit.analysis.limits import Limit, Verdict
    from opskit.analysis.thread_stack import Stack
    from opskit.proc.config.pam_limits import PamLimit
    from opskit.proc.files.sysctl import Setting
    from opskit.proc.limit_sources import Origins
    from opskit.proc.thread_limits import Situation

_PRLIMIT = {"RLIMIT_AS": "as", "RLIMIT_DATA": "data", "RLIMIT_MEMLOCK": "memlock", "RLIMIT_NPROC": "nproc"}
_PAM_ITEM = {"RLIMIT_STACK": "stack", **_PRLIMIT, "RLIMIT_NOFILE": "nofile"}
_CONTAINER = re.compile(r"(?:docker[-/]|libpod-|cri-containerd-|crio-)([0-9a-f]{12,64})|/([0-9a-f]{64})(?:/|$)")
_PLAIN_NAME = re.compile(r"[A-Za-z_][\w.@-]*", re.ASCII)
# Where only root makes cgroups: in a subtree that is delegated to a user, a directory may have any container's name.
_DOCKERS_OWN = re.compile(r"/docker/([0-9a-f]{64})|(?:/[^/]+\.slice)*/docker-([0-9a-f]{64})\.scope")
_DEFAULT_TASKS_MAX_SHARE = 0.15  # systemd-system.conf(5), DefaultTasksMax
_SLICE_TASKS_MAX_SHARE = 0.33


def explained(verdict: Verdict, situation: Situation, origins: Origins) -> Verdict:
    """The verdict with `set_by` and `fix` in each row that has a value."""
    return replace(
        verdict,
        limits=tuple(
            replace(
                limit,
                set_by=set_by(limit, situation, origins) if limit.value is not None else limit.set_by,
                fix=fix(limit, situation, origins, verdict.stack) if limit.state == "counts" else limit.fix,
            )
            for limit in verdict.limits
        ),
    )


def set_by(limit: Limit, situation: Situation, origins: Origins) -> str | None:
    """Who set it; several candidates are joined by "; or". None where nobody is known to have."""
    if limit.name.startswith("RLIMIT_"):
        found = list(_rlimit(limit.name, situation, origins))
    elif limit.cgroup is not None:
        found = list(_cgroup(limit, situation, origins))
    elif limit.name.startswith(("kernel.", "vm.")):
        setting = origins.sysctl.get(limit.name)
        if setting is None:
            found = [_kernel_default(limit.name)]
        elif limit.name != "vm.overcommit_memory" and setting.value != _plain(limit.value):
            found = [f"sysctl -w or a program, since boot ({setting.place} does not hold any more)"]
        else:
            found = [setting.place]
    else:
        found = []
    return "; or ".join(found) or None


def _plain(value: float | None) -> str:
    return "unlimited" if value in (None, UNLIMITED) else f"{value:.0f}"


def _kernel_default(name: str) -> str:
    return {
        "kernel.threads-max": "the kernel, from the size of RAM; no sysctl.d file sets it",
        "kernel.pid_max": "the kernel or systemd's default; no sysctl.d file sets it",
    }.get(name, "the kernel's default; no sysctl.d file sets it")


def _rlimit(name: str, situation: Situation, origins: Origins) -> Iterator[str]:
    limit = situation.limits.get(name)
    if limit is None:
        return
    named = list(_lines_giving(name, limit.soft, situation, origins))
    yield from named
    if not named or _set_by_itself(name, limit.soft, situation):
        yield _inherited(name, limit.soft, situation)
    if not named and (kernel := _kernel_rlimit(name, limit.soft, situation)):
        yield kernel


def _lines_giving(name: str, soft: float, situation: Situation, origins: Origins) -> Iterator[str]:
    """The lines of files that give this very value: limits.conf, the unit, all units' default."""
    pam = _pam_line(name, situation, origins)
    if pam:
        yield pam
    key = f"Limit{name.removeprefix('RLIMIT_')}"
    unit = origins.units.get(origins.unit or "", {}).get(key)
    line = unit or origins.manager.get(f"Default{key}")
    if line and _same(_unit_soft(line.value), soft):
        yield line.place


def _set_by_itself(name: str, soft: float, situation: Situation) -> bool:
    """Whether its parent has another value. A child of init may have lost the session that had the same."""
    parent = situation.ancestors[0] if situation.ancestors else None
    above = parent.limits.get(name) if parent and parent.pid != 1 else None
    return above is not None and above.soft != soft


def _same(one: float | None, other: float) -> bool:
    return one is not None and (one == other or (math.isinf(other) and one >= 2**63))


def _pam_line(name: str, situation: Situation, origins: Origins) -> str | None:
    given = _pam_source(name, situation, origins)
    if given is None:
        return None
    return given.setting.place + (" (the unit there is KB)" if given.in_kb and given.value != UNLIMITED else "")


def _pam_source(name: str, situation: Situation, origins: Origins) -> PamLimit | None:
    """The line of limits.conf that gives the value that holds; services do not read the file."""
    if origins.in_service or name not in situation.limits:
        return None
    soft = situation.limits[name].soft
    given = origins.pam.limits.get((name, "soft"))
    hard = origins.pam.limits.get((name, "hard"))
    if hard and (given is None or hard.value < given.value) and _same(hard.value, soft):
        given = hard  # pam_limits lowers the soft limit to the hard one
    if given is None:
        return None
    value = given.value
    if name == "RLIMIT_NOFILE" and value == UNLIMITED and situation.nr_open:
        value = situation.nr_open
    return given if _same(value, soft) else None


_SUFFIXES = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40, "P": 1 << 50, "E": 1 << 60}


def _unit_soft(text: str) -> float | None:
    """The soft limit of `LimitX=soft:hard` or `LimitX=both` (systemd.exec(5))."""
    word = text.partition(":")[0].strip()
    if word == "infinity":
        return UNLIMITED
    suffix = word[-1:].upper() if integer(word[-1:]) is None else ""
    number = integer(word[:-1] if suffix else word)
    return None if number is None or suffix not in _SUFFIXES else number * _SUFFIXES[suffix]


def _inherited(name: str, soft: float, situation: Situation) -> str:
    """Where on the way from init to the process the value first shows."""
    same = None
    for ancestor in situation.ancestors:
        above = ancestor.limits.get(name)
        if above is None or above.soft != soft:
            who = f"its parent {same.pid} ({same.command})" if same and same is situation.ancestors[0] else (
                f"{same.pid} ({same.command}), an ancestor" if same else "the process itself or prlimit"
            )  # fmt: skip
            there = _amount(name, above.soft) if above else "no such limit"
            return f"{who} ({ancestor.pid} ({ancestor.command}) above has {there})"
        same = ancestor
    if same is None:
        return "the process that started it"
    if same.pid == 1:
        return f"inherited from 1 ({same.command}) down"
    return f"inherited: its ancestors up to {same.pid} ({same.command}) have the same"


def _amount(name: str, value: float) -> str:
    if value == UNLIMITED:
        return "unlimited"
    if name in ("RLIMIT_NPROC", "RLIMIT_NOFILE", "RLIMIT_SIGPENDING") or value % 1024:
        return f"{value:.0f}"
    for shift, unit in ((40, "TiB"), (30, "GiB"), (20, "MiB")):
        if value % (1 << shift) == 0 and value:
            return f"{int(value) >> shift} {unit}"
    return f"{int(value) >> 10} KiB"


def _kernel_rlimit(name: str, soft: float, situation: Situation) -> str | None:
    if name in ("RLIMIT_NPROC", "RLIMIT_SIGPENDING") and situation.threads_max and soft == situation.threads_max // 2:
        return "the kernel's default (half of kernel.threads-max)"
    defaults: dict[str, tuple[float, ...]] = {
        "RLIMIT_STACK": (8 << 20,),
        "RLIMIT_AS": (UNLIMITED,),
        "RLIMIT_DATA": (UNLIMITED,),
        "RLIMIT_MEMLOCK": (8 << 20, 64 << 10),
        "RLIMIT_NOFILE": (1024,),
    }
    return "the kernel's default" if soft in defaults.get(name, ()) else None


def _cgroup(limit: Limit, situation: Situation, origins: Origins) -> Iterator[str]:
    unit, container = unit_of_path(limit.cgroup or ""), container_of(limit.cgroup or "")
    keys = ("TasksMax",) if limit.name == "pids.max" else ("MemoryMax", "MemoryLimit")
    settings = origins.units.get(unit or "", {})
    lines = [settings[key] for key in keys if key in settings]
    yield from (line.place for line in lines)
    if limit.value == UNLIMITED and not lines:
        return
    default: Setting | None = origins.manager.get("DefaultTasksMax")
    if limit.name == "pids.max" and unit and not lines and not container:
        if default:
            yield default.place
        elif _is_share(limit.value, situation, unit):
            yield "systemd's default for " + ("user slices (33 %)" if unit.endswith(".slice") else "units (15 %)")
        else:
            yield f"systemctl set-property of {unit}, or whoever manages it"
    if container:
        yield f"the container runtime, for container {container[:12]}"
    elif not unit:
        yield f"whoever made the cgroup {limit.cgroup}"


def _is_share(value: float | None, situation: Situation, unit: str) -> bool:
    """Whether it is systemd's share of the smaller of threads-max and pid_max."""
    caps = [cap for cap in (situation.threads_max, situation.pid_max) if cap]
    share = _SLICE_TASKS_MAX_SHARE if unit.endswith(".slice") else _DEFAULT_TASKS_MAX_SHARE
    return bool(caps) and value is not None and abs(value - share * min(caps)) <= 2


def container_of(path: str) -> str | None:
    """The container's id in a cgroup's path, as Docker, Podman, containerd and CRI-O write it."""
    match = _CONTAINER.search(path)
    return (match[1] or match[2]) if match else None


def fix(limit: Limit, situation: Situation, origins: Origins, stack: Stack) -> str | None:
    """A command to type, or a line to write, that moves the limit."""
    pid = situation.pid
    if limit.name == "RLIMIT_STACK":
        return _stack_fix(stack, situation, origins)
    if limit.name in _PRLIMIT:
        wanted = _raised(limit, thousand=limit.unit == "bytes")
        live = shell.command("prlimit", "--pid", pid, f"--{_PRLIMIT[limit.name]}={wanted}:{wanted}")
        arenas = "; or start it with MALLOC_ARENA_MAX=2" if limit.name == "RLIMIT_AS" and limit.note else ""
        return f"{live} (now); {_lasting(limit, situation, origins, wanted)} (for good){arenas}"
    if limit.name == "pids.max":
        return _pids_fix(limit, origins)
    if limit.name in ("memory.max", "memory.limit_in_bytes"):
        wanted = _raised(limit)
        of_unit = None if container_of(limit.cgroup or "") else _set_property(limit, f"MemoryMax={wanted}")
        return of_unit or _written(limit, wanted)
    if limit.name == "vm.overcommit_memory":
        return "sysctl -w vm.overcommit_memory=0; or smaller stacks"
    if limit.name == "seccomp":
        return (
            "a container runtime whose profile answers clone3 with ENOSYS (runc 1.0.3, containerd 1.5.10, Docker 20.10.10, "
            "libseccomp 2.5.0 or newer); to prove it: --security-opt seccomp=unconfined"
        )
    if limit.name.startswith(("kernel.", "vm.")):
        wanted = _raised(limit)
        line = shell.command("echo", f"{limit.name} = {wanted}", shell.Syntax(">"), "/etc/sysctl.d/90-threads.conf")
        return f"{shell.command('sysctl', '-w', f'{limit.name}={wanted}')}; for good: {line}"
    return None


def _raised(limit: Limit, *, thousand: bool = False) -> int:
    """Twice the value; for sizes in whole MiB."""
    doubled = 2 * int(limit.value or 0)
    if limit.name == "kernel.pid_max":
        return 4194304
    return max(doubled, 1 << 20) >> 20 << 20 if thousand else max(doubled, 64)


def _lasting(limit: Limit, situation: Situation, origins: Origins, wanted: int) -> str:
    if origins.in_service:
        return f"{_edit(origins)}: [Service] Limit{limit.name.removeprefix('RLIMIT_')}={wanted}"
    return _pam_fix(limit.name, situation, origins, wanted >> 10 if limit.unit == "bytes" else wanted)


def _pam_fix(name: str, situation: Situation, origins: Origins, number: int) -> str:
    """The line that gives the value as it should be, or a new one for the user, which beats those for groups and all."""
    given = _pam_source(name, situation, origins)
    if given is None:
        # `:UID` is that user alone (limits.conf(5)); a bare number would be a user's name.
        who = origins.user if _PLAIN_NAME.fullmatch(origins.user) else f":{situation.status.real_uid}"
        return f"/etc/security/limits.conf: `{who} - {_PAM_ITEM[name]} {number}`"
    words = given.setting.text.split()
    return f"{given.setting.path} line {given.setting.line}: `{' '.join(words[:3])} {number}`"


_USUAL_STACK = 8 << 20


def _stack_fix(stack: Stack, situation: Situation, origins: Origins) -> str:
    if stack.follows_rlimit and stack.bytes <= _USUAL_STACK:
        return "smaller stacks: ulimit -s 1024 before it is started"
    if stack.kind == "java":
        return "start the JVM with a smaller -Xss"
    if stack.kind == "given":
        return "a smaller stack"
    if origins.in_service:
        restart = shell.command("systemctl", "restart", *shell.operands(origins.unit))
        return f"{_edit(origins)}: [Service] LimitSTACK=8M; then {restart}"
    line = _pam_fix("RLIMIT_STACK", situation, origins, _USUAL_STACK >> 10)
    return f"ulimit -s 8192, then start it anew; for good: {line} (KB); in Python: threading.stack_size(8 << 20)"


def _edit(origins: Origins) -> str:
    return shell.command("systemctl", "edit", *shell.operands(origins.unit))


def _set_property(limit: Limit, assignment: str) -> str | None:
    """The command that sets a property of the unit whose cgroup this is; None where it is no unit's own."""
    found = owner_of_path(limit.cgroup or "")
    if found is None or not found.is_own:
        return None
    words = ("set-property", *shell.operands(found.unit), assignment)
    if found.manager_uid is None:
        return shell.command("systemctl", *words)
    # Root's own `systemctl --user` is another manager, which may have a unit of this name.
    as_user = ("sudo", "-u", f"#{found.manager_uid}", f"XDG_RUNTIME_DIR=/run/user/{found.manager_uid}")
    return shell.command(*as_user, "systemctl", "--user", *words)


def _written(limit: Limit, wanted: int) -> str:
    return shell.command("echo", wanted, shell.Syntax(">"), limit.source)


def _pids_fix(limit: Limit, origins: Origins) -> str:
    path, wanted = limit.cgroup or "", _raised(limit)
    if container_of(path) and "kubepods" in path:
        return "podPidsLimit in the kubelet's configuration"
    if container := _DOCKERS_OWN.fullmatch(path):
        return shell.command("docker", "update", "--pids-limit", wanted, (container[1] or container[2])[:12])
    of_unit = _set_property(limit, f"TasksMax={wanted}") if origins.unit else None
    return of_unit or _written(limit, wanted)
