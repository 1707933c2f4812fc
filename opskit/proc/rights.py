"""Our own rights, and how to get missing ones: as root, by a capability, outside of a user namespace.

/proc/self/status (capabilities(7), user_namespaces(7), include/uapi/linux/capability.h):

Uid:    0       0       0       0
CapEff: 00000000a80425fb      capabilities in force
CapBnd: 00000000a80425fb      the most that root gets when started from here
NoNewPrivs:     0             1: sudo has no effect
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opskit.proc.files.status import parse_status
from opskit.proc.fs import ProcFS, optional
from opskit.proc.namespaces import INITIAL, namespace
from opskit.records import NamedTuple
from opskit.shell import Syntax, command

if TYPE_CHECKING:
    from opskit.proc.files.status import Status

RUN_AS_ROOT = "run as root"
ANY_COMMAND = ("opskit", Syntax("…"))
_BY_BIT = (
    "CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_DAC_READ_SEARCH", "CAP_FOWNER", "CAP_FSETID", "CAP_KILL", "CAP_SETGID",
    "CAP_SETUID", "CAP_SETPCAP", "CAP_LINUX_IMMUTABLE", "CAP_NET_BIND_SERVICE", "CAP_NET_BROADCAST", "CAP_NET_ADMIN",
    "CAP_NET_RAW", "CAP_IPC_LOCK", "CAP_IPC_OWNER", "CAP_SYS_MODULE", "CAP_SYS_RAWIO", "CAP_SYS_CHROOT",
    "CAP_SYS_PTRACE", "CAP_SYS_PACCT", "CAP_SYS_ADMIN", "CAP_SYS_BOOT", "CAP_SYS_NICE", "CAP_SYS_RESOURCE",
    "CAP_SYS_TIME", "CAP_SYS_TTY_CONFIG", "CAP_MKNOD", "CAP_LEASE", "CAP_AUDIT_WRITE", "CAP_AUDIT_CONTROL",
    "CAP_SETFCAP", "CAP_MAC_OVERRIDE", "CAP_MAC_ADMIN", "CAP_SYSLOG", "CAP_WAKE_ALARM", "CAP_BLOCK_SUSPEND",
    "CAP_AUDIT_READ", "CAP_PERFMON", "CAP_BPF", "CAP_CHECKPOINT_RESTORE",
)  # fmt: skip
_BITS = {name: 1 << bit for bit, name in enumerate(_BY_BIT)}
_STRONGER = {"CAP_DAC_READ_SEARCH": "CAP_DAC_OVERRIDE", "CAP_PERFMON": "CAP_SYS_ADMIN"}  # one of the two is enough
# A container runtime's defaults, and what kubectl's profile "general" adds; the others need "sysadmin".
_GENERAL = {
    "CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_FSETID", "CAP_KILL", "CAP_SETGID", "CAP_SETUID", "CAP_SETPCAP",
    "CAP_NET_BIND_SERVICE", "CAP_NET_RAW", "CAP_SYS_CHROOT", "CAP_MKNOD", "CAP_AUDIT_WRITE", "CAP_SETFCAP",
    "CAP_SYS_PTRACE", "CAP_DAC_READ_SEARCH",
}  # fmt: skip


class Rights(NamedTuple):
    """Effective uid, masks of effective and bounding capabilities, their restrictions; `groups` are gids as text."""

    euid: int
    effective: int
    bounding: int
    no_new_privs: bool
    in_initial_user_namespace: bool  # capabilities hold for the whole machine
    groups: frozenset[str]


def our_rights(fs: ProcFS) -> Rights | None:
    """The rights of opskit, or of the opskit that made a capture; None: unknown."""
    return optional(fs.calls.ask, read_rights)


def read_rights() -> Rights | None:
    """Our own rights; None without a /proc of ours."""
    fs = ProcFS()
    ours = namespace(fs, "self", "user")
    return None if ours is None else fs.maybe(lambda text: _rights(parse_status(text), ours), "self", "status")


def _rights(status: Status, user_namespace: bytes) -> Rights:
    return Rights(
        euid=status.effective_uid,
        effective=status.mask("CapEff") or 0,
        bounding=status.mask("CapBnd") or 0,
        no_new_privs=status.fields.get("NoNewPrivs") == "1",
        in_initial_user_namespace=user_namespace == INITIAL["user"],
        groups=frozenset((str(status.effective_gid), *status.fields.get("Groups", "").split())),
    )


def missing(mask: int, capabilities: str) -> list[str]:
    """The capabilities of a list (`CAP_SETUID CAP_SETGID`) that are not in a mask."""
    return [name for name in capabilities.split() if not mask & (_BITS[name] | _BITS.get(_STRONGER.get(name, ""), 0))]


def names_of(mask: int) -> list[str]:
    """The names of the capabilities in a mask; of newer ones the number."""
    return [_BY_BIT[bit] if bit < len(_BY_BIT) else f"capability {bit}" for bit in range(64) if mask >> bit & 1]


def how_to_be_allowed(fs: ProcFS, capabilities: str, *words: object, pid: int | None = None) -> str:
    """A clause about what to do after a refusal: `run as root: sudo opskit pipes 42`, or what is missing and how to get it.

    `capabilities`: what root needs (`CAP_SYS_PTRACE`), separated by blanks; empty: only to be the machine's root.
    `words`: the command to repeat. `pid`: the process that could not be read.
    """
    as_root = f"{RUN_AS_ROOT}: {command('sudo', *words)}" if words else RUN_AS_ROOT
    rights = our_rights(fs)
    if rights is None:
        return as_root
    if rights.euid == 0 and not fs.is_live:
        return "this copy does not contain it"
    foreign = not rights.in_initial_user_namespace and (pid is None or _is_in_another_user_namespace(fs, pid))
    lacking = missing(rights.effective, capabilities)
    if rights.euid == 0 and lacking:
        return f"root lacks {' and '.join(lacking)} here; {_as_its_own_user(fs, rights, lacking, words, pid)}{_more(lacking)}"
    if rights.euid != 0 and (lacking or not capabilities):
        never = missing(rights.bounding, capabilities)
        if never:
            return f"even root lacks {' and '.join(never)} here; {_more(never)}"
        if rights.no_new_privs:
            return f"sudo has no effect here (no_new_privs is set); {_more(lacking)}"
        if not foreign or pid is None:
            return as_root
    if foreign:
        return "this is a user namespace (a rootless container?), whose root has no rights outside of it; run opskit as root on the host"
    held = f"we have {' and '.join(capabilities.split())}" if capabilities else "we are root"
    return f"refused although {held}: {'; '.join(obstacles(fs, pid)) or 'a security module or sandbox forbids it'}"


def as_owner_or_root(fs: ProcFS, capabilities: str, pid: int, uid: int, gid: int | None = None) -> str:
    """The same where the process's own user is allowed too, for any opskit command."""
    advice = how_to_be_allowed(fs, capabilities, *ANY_COMMAND, pid=pid)
    if uid == 0 or not advice.startswith(RUN_AS_ROOT):
        return advice
    group = () if gid is None else ("-g", f"#{gid}")
    return f"{command('sudo', '-u', f'#{uid}', *group, *ANY_COMMAND)}, or {RUN_AS_ROOT}"


def outside_or_with(capabilities: str) -> str:
    """A clause: where opskit has these capabilities, separated by blanks: on the host, or in another container."""
    return _more(capabilities.split())


def _more(lacking: list[str]) -> str:
    """How to start a container with these capabilities, or as root where the list is empty."""
    profile = "general" if set(lacking) <= _GENERAL else "sysadmin"
    debug = command("kubectl", "debug", f"--profile={profile}", Syntax("…"))
    added = [word for name in lacking for word in ("--cap-add", name.removeprefix("CAP_"))]
    run = command("docker", "run", *(added or ["--user", "root"]), Syntax("…"))
    return f"run opskit on the host, or in a container started with {debug} or {run}"


def _as_its_own_user(fs: ProcFS, rights: Rights, lacking: list[str], words: tuple[object, ...], pid: int | None) -> str:
    """A clause for a process without capabilities, which its own user may read without a new container."""
    if pid is None or not words or lacking != ["CAP_SYS_PTRACE"] or missing(rights.effective, "CAP_SETUID CAP_SETGID"):
        return ""
    ids = fs.maybe(_plain_ids, pid, "status")
    if ids is None or ids[0] == rights.euid or _is_in_another_user_namespace(fs, pid):
        return ""
    as_user = command("setpriv", f"--reuid={ids[0]}", f"--regid={ids[1]}", "--clear-groups", *words)
    return f"its own user may: {as_user}; or "


def _plain_ids(text: str) -> tuple[int, int] | None:
    """(uid, gid) of a process without capabilities whose ids are all the same."""
    status = parse_status(text)
    uids, gids = (set(status.fields.get(key, "").split()[:3]) for key in ("Uid", "Gid"))
    if len(uids) != 1 or len(gids) != 1 or status.mask("CapPrm") != 0:
        return None
    return status.real_uid, status.real_gid


def _is_in_another_user_namespace(fs: ProcFS, pid: int) -> bool:
    """By its uid map, which everyone may read; the namespace link is closed to us here."""
    theirs, ours = optional(fs.read, pid, "uid_map"), optional(fs.calls.ask, our_uid_map)
    return None not in (theirs, ours) and theirs != ours


def obstacles(fs: ProcFS, pid: int | None) -> list[str]:
    """What may refuse us although modes and capabilities allow: Yama, a security module."""
    seen = []
    scope, ours = optional(fs.calls.ask, our_obstacles, default=(None, None))
    if scope in ("2", "3"):
        seen.append(f"kernel.yama.ptrace_scope is {scope}")
    theirs = None if pid is None else _line(fs, pid, "attr", "current")
    if ours and ours not in ("unconfined", theirs):
        seen.append(
            f"a security module confines us ({ours}){f' and it ({theirs})' if theirs else ''}: its audit log has more"
        )
    elif theirs and theirs != "unconfined":
        seen.append(f"it runs under the security label {theirs}")
    return seen


def our_uid_map() -> bytes:
    """The map of our user namespace. Raises OSError."""
    return ProcFS().read("self", "uid_map")


def our_obstacles() -> tuple[str | None, str | None]:
    """Yama's ptrace_scope of this machine, and our own security label."""
    fs = ProcFS()
    return _line(fs, "sys", "kernel", "yama", "ptrace_scope"), _line(fs, "self", "attr", "current")


def _line(fs: ProcFS, *parts: object) -> str | None:
    return fs.maybe(lambda text: text.removesuffix("\n").rstrip("\0"), *parts) or None
